"""Configuration of the documentation; `make docs` builds it, with warnings as errors."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

project = "factormodels"
author = "the contributors of factormodels"
copyright = "the contributors of factormodels, Apache-2.0"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "generated/parts", "results/*/*"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
default_role = "literal"
# Quotes and dashes of prose are options and code more often than not.
smartquotes = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3

autodoc_default_options = {"show-inheritance": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = False
# There are none, and to look for them every source would be parsed once more.
autodoc_use_type_comments = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Every reference within these packages must resolve; what other libraries define is not looked up,
# since that would need the network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!(factormodels|inference|calibration|experiments)\.).*"),
    # A check of a setting that is made within a function has no page.
    (r"py:.*", r".*<locals>.*"),
]

# Two classes of one name: the docstring's own module decides for its reader.
suppress_warnings = ["ref.python"]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "factormodels"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False


def setup(app: Sphinx) -> None:
    """Connect what this project adds: docstrings as we write them, pages made from the code."""
    import docstrings
    import generated_pages
    import math_markup
    import object_lookup

    # Trees of documents are circles of millions of objects: they are looked for seldom.
    gc.set_threshold(100_000, 20, 100)
    # Autodoc tells of each step with each object, to nobody.
    logging.disable(logging.DEBUG)
    object_lookup.connect(app)
    docstrings.connect(app)
    generated_pages.connect(app)
    math_markup.connect(app)
