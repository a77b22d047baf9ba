"""A figure that a notebook shows as the last expression of a cell, and that fits any width."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure
from matplotlib.text import Text

from calibration.figures.style import laid_out, paper_style

_DOTS_PER_INCH = 200
_WIDTH_OF_AN_INCH = 100


class ShownFigure(Figure):
    """A figure outside pyplot, which notebooks show only if it says how: as a paper gets it.

    Attributes:
        caption: sentences for below the figure: sample sizes, and what bands and bars are.
        named: returns a text with the names that readers know, for what draws texts anew.
    """

    caption: str = ""
    named: Callable[[str], str] = staticmethod(str)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._arrangements: list[Callable[[], None]] = []
        self._whole: dict[Text, str] = {}

    def arranged_by(self, arrangement: Callable[[], None]) -> None:
        """Add what places texts and panels by the width of the figure, and do it now.

        It is done again before the figure is drawn at another width or with other names.
        """
        self._arrangements.append(arrangement)
        arrangement()

    def arrange(self) -> None:
        """Place everything by the width that the figure has."""
        for arrangement in self._arrangements:
            arrangement()

    def wrap(self, text: Text, letters: int) -> None:
        """Break each line of a text of the figure at words, whatever was broken before."""
        whole = self._whole.setdefault(text, text.get_text())
        lines = [textwrap.fill(line, max(letters, 1)) for line in whole.split("\n")]
        text.set_text("\n".join(lines))

    def rename(self, named: Callable[[str], str], caption_with: Callable[[str], str]) -> None:
        """Replace names in all texts and in the caption.

        Args:
            named: takes a label and returns it with other names.
            caption_with: takes sentences and returns them with other names.
        """
        for text in self.findobj(Text):
            whole = self._whole.get(text, text.get_text())
            if (other := named(whole)) != whole:
                text.set_text(other)
                if text in self._whole:
                    self._whole[text] = other
        self.caption = caption_with(self.caption)
        self.named = named
        self.arrange()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Bytes of a PNG file and the width in pixels at which it is shown, as IPython asks."""
        picture = io.BytesIO()
        with paper_style(), laid_out(self):
            self.savefig(picture, format="png", dpi=_DOTS_PER_INCH)
        return picture.getvalue(), {"width": round(_WIDTH_OF_AN_INCH * self.get_figwidth())}
