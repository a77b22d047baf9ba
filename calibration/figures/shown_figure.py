"""A figure that a notebook shows as the last expression of a cell."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

from calibration.figures.style import laid_out, paper_style

_DOTS_PER_INCH = 200
_WIDTH_OF_AN_INCH = 100


class ShownFigure(Figure):
    """A figure outside pyplot, which notebooks show only if it says how: as a paper gets it.

    Attributes:
        caption: sentences for below the figure: sample sizes, and what bands and bars are.
    """

    caption: str = ""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Bytes of a PNG file and the width in pixels at which it is shown, as IPython asks."""
        picture = io.BytesIO()
        with paper_style(), laid_out(self):
            self.savefig(picture, format="png", dpi=_DOTS_PER_INCH)
        return picture.getvalue(), {"width": round(_WIDTH_OF_AN_INCH * self.get_figwidth())}
