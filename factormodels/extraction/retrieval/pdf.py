"""The text of a PDF, through pypdf."""

from __future__ import annotations

import io
import time

from factormodels.extraction.optional_libraries import optional_module

_SECONDS = 30.0
"""Time for a document: of some files a page alone takes minutes to draw."""


def is_pdf(body: bytes) -> bool:
    """Whether bytes are a PDF: its mark may come after some others, as readers allow."""
    return b"%PDF-" in body[:1024]


def pdf_text(body: bytes, characters: int | None = None) -> str:
    """Text of a PDF, page by page, an empty line between them; white space is made single.

    Args:
        body: the file.
        characters: the longest text; None for all.

    Raises:
        ValueError: if the file cannot be read; the message is a clause without the file's name.
        MissingDependencyError: if pypdf is not installed.
    """
    pypdf = optional_module("pypdf", "llm")
    deadline = time.monotonic() + _SECONDS
    pages: list[str] = []
    size = 0
    try:
        for page in pypdf.PdfReader(io.BytesIO(body)).pages:
            text = " ".join(page.extract_text().split())
            if text:
                pages.append(text)
                size += len(text)
            if characters is not None and size > characters:
                break
            if characters is not None and time.monotonic() > deadline:
                break
    # A damaged file makes pypdf raise whatever its parts run into.
    except Exception as error:
        raise ValueError(f"this PDF cannot be read ({type(error).__name__})") from None
    return "\n\n".join(pages)[:characters]
