"""Pages from templates: each holds its style and script, so that it can be read by itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from experiments.report import texts
from experiments.report.graph_shapes import WIDTH

if TYPE_CHECKING:
    from jinja2 import Environment

INDEX = "index.html"
RESPONSE = "response.html"


def environment() -> Environment:
    """The templates, in which every text is escaped."""
    from jinja2 import Environment as Templates
    from jinja2 import FunctionLoader, StrictUndefined

    folder = resources.files("experiments.report") / "templates"
    found = Templates(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        # A name that a template misspells is an error, not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    script = (folder / "report.js").read_text(encoding="utf-8")
    # The policy below allows exactly this script, by its hash.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    found.globals |= {
        "style": (folder / "report.css").read_text(encoding="utf-8"),
        "script": script,
        # Whatever a claim's text may hold: no other script runs, and nothing is fetched.
        "policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'",
        "in_turn": texts.in_turn,
        "absent": texts.ABSENT,
        "drawing_width": WIDTH,
    }
    return found


def page(found: Environment, template: str, shown: Mapping[str, Any]) -> bytes:
    """A page as UTF-8: a template, filled with what it shows.

    Args:
        found: the templates.
        template: name of the template.
        shown: what it shows.
    """
    # A lone surrogate in a claim is not a character: it is shown as one that cannot be.
    return found.get_template(template).render(**shown).encode("utf-8", "replace")
