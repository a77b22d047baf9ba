"""Keys of studies and manifests that earlier versions spelled differently."""

from __future__ import annotations

from typing import Any

_CURRENT = {"labelled": "labeled", "unlabelled": "unlabeled"}


def rename_earlier_keys(plain: Any) -> None:
    """Give the keys of earlier versions their current spelling, in place and at any depth.

    A key whose value is a mapping stays, since it may be the name of a dataset.
    """
    for value in plain.values() if isinstance(plain, dict) else plain:
        if isinstance(value, dict | list):
            rename_earlier_keys(value)
    if not isinstance(plain, dict) or not _CURRENT.keys() & plain.keys():
        return
    renamed = dict[Any, Any]()
    for key, value in plain.items():
        current = _CURRENT.get(key, key) if isinstance(key, str) else key
        # Both spellings at once stay, for the check of unknown keys to name one of them.
        keeps = isinstance(value, dict) or (current != key and current in plain)
        renamed[key if keeps else current] = value
    plain.clear()
    plain.update(renamed)
