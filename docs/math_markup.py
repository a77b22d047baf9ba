"""Formulas as MathML, which browsers show without a script and without the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from docutils.utils.math import latex2mathml

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx


def connect(app: Sphinx) -> None:
    """Have formulas written as MathML."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(translator: Any, node: Element) -> None:
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise SkipNode


def _block(translator: Any, node: Element) -> None:
    translator.body.append(latex2mathml.tex2mathml(node.astext(), as_block=True))
    raise SkipNode
