"""Formulas as MathML, which browsers show without a script and without the network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from docutils.utils.math import latex2mathml

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx


def connect(app: Sphinx) -> None:
    """Have formulas written as MathML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def mathml(formula: str, *, block: bool = False) -> str:
    """Formula of LaTeX as MathML."""
    # The converter sets no space between a function's name and what it is applied to.
    spaced = re.sub(r"\\log(?=\s)", r"\\log\\,", formula)
    markup: str = latex2mathml.tex2mathml(spaced, as_block=block)
    return markup


def _inline(translator: Any, node: Element) -> None:
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def _block(translator: Any, node: Element) -> None:
    # Room above and below, without which the theme shows a scroll bar.
    text = mathml(node.astext(), block=True)
    translator.body.append(f'<div style="padding-block: 0.4em">{text}</div>')
    raise SkipNode
