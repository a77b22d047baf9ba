"""Current names of keys that earlier versions of studies and manifests spelled differently."""

from __future__ import annotations

from typing import Any

_CURRENT = {"labelled": "labeled", "unlabelled": "unlabeled"}


def rename_earlier_keys(plain: Any) -> None:
    """Rename the keys of earlier versions, in place and at any depth.

    A key whose value is a mapping is kept, since it may be the name of a dataset.
    """
    for value in plain.values() if isinstance(plain, dict) else plain:
        if isinstance(value, dict | list):
            rename_earlier_keys(value)
    if not isinstance(plain, dict) or not _CURRENT.keys() & plain.keys():
        return
    renamed = dict[Any, Any]()
    for key, value in plain.items():
        current = _CURRENT.get(key, key) if isinstance(key, str) else key
        # If both spellings occur, keep both, so that the check of unknown keys reports one.
        keeps = isinstance(value, dict) or (current != key and current in plain)
        renamed[key if keeps else current] = value
    plain.clear()
    plain.update(renamed)
