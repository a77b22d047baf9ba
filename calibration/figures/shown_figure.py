"""Figure class that notebooks display and that adapts its texts to any width."""

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
    """A figure outside pyplot that displays itself in notebooks in the style of papers.

    Attributes:
        caption: sentences on sample sizes, bands and bars, for below the figure.
        named: function that replaces names in a text by their names for readers, for arrangements
            that write texts again.
    """

    caption: str = ""
    named: Callable[[str], str] = staticmethod(str)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._arrangements: list[Callable[[], None]] = []
        self._whole: dict[Text, str] = {}

    def arranged_by(self, arrangement: Callable[[], None]) -> None:
        """Register a function that places texts and panels for the figure's width, and call it.

        It is called again before the figure is drawn at another width or with other names.
        """
        self._arrangements.append(arrangement)
        arrangement()

    def arrange(self) -> None:
        """Place all texts and panels for the current width of the figure."""
        for arrangement in self._arrangements:
            arrangement()

    def wrap(self, text: Text, letters: int) -> None:
        """Wrap each line of a text at words, starting from its original lines."""
        whole = self._whole.setdefault(text, text.get_text())
        lines = [textwrap.fill(line, max(letters, 1)) for line in whole.split("\n")]
        text.set_text("\n".join(lines))

    def rename(self, named: Callable[[str], str], caption_with: Callable[[str], str]) -> None:
        """Replace names in all texts and in the caption.

        Args:
            named: function that replaces the names in a label.
            caption_with: function that replaces the names in sentences.
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
        """Return a PNG file and its display width in pixels, for IPython."""
        picture = io.BytesIO()
        with paper_style(), laid_out(self):
            self.savefig(picture, format="png", dpi=_DOTS_PER_INCH)
        return picture.getvalue(), {"width": round(_WIDTH_OF_AN_INCH * self.get_figwidth())}
