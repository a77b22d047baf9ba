"""Text of PDFs, through pypdf."""

from __future__ import annotations

import io
import time

from factormodels.extraction.optional_libraries import optional_module

_SECONDS = 30.0
"""Maximum seconds for a document, since a single page of some files takes minutes."""


def is_pdf(body: bytes) -> bool:
    """Return whether bytes are a PDF; its mark need not be at the very beginning."""
    return b"%PDF-" in body[:1024]


def pdf_text(body: bytes, characters: int | None = None) -> str:
    """Return the text of a PDF, page by page, separated by empty lines, with single spaces.

    Args:
        body: the file.
        characters: maximum length of the text; None for no limit.

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
    # pypdf raises arbitrary exceptions for damaged files.
    except Exception as error:
        raise ValueError(f"this PDF cannot be read ({type(error).__name__})") from None
    return "\n\n".join(pages)[:characters]
