"""What LM-Polygraph's manager saves, read without running it.

Source: `UEManager.save` of LM-Polygraph (IINemo/lm-polygraph, MIT), which gives `torch.save` a
dictionary: `estimations`, the numbers of each estimator by its level and name, and `stats`, the
texts that they are about. The file is an archive with a pickle, a program that builds objects.
Here its steps are followed as far as they build lists, dictionaries, numbers and texts; whatever
else it would call is kept as its arguments and not called, so that neither torch nor the classes
of LM-Polygraph are needed.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from factormodels.errors import InputError
from factormodels.io.guarded_opening import Source, refuse_larger, refuse_more_values

_PICKLE = "data.pkl"
_DICTIONARIES = ("collections defaultdict", "collections OrderedDict")
_CLAIM_LEVEL, _TEXT_LEVEL = "claim", "sequence"
_TEXTS = ("greedy_texts", "blackbox_greedy_texts")
_COLUMNS = 4
_BYTES_PER_STEP = 64
"""What a step of a pickle may take in memory: an object and its place."""


@dataclass(eq=False)
class Unbuilt:
    """An object that was not made: what would have been called, and what with.

    Attributes:
        name: module and name of what would be called.
        state: attributes of the object, where they are told.
    """

    name: str = ""
    state: Any = None


def is_torch_archive(content: bytes) -> bool:
    """Whether a file's content is what torch.save writes, an archive with a pickle."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _pickle_name(archive) is not None
    except Exception:  # Whatever a damaged archive raises: it is none of these.
        return False


def manager_rows(content: bytes, source: Source) -> list[dict[str, Any]]:
    """A row for each text or claim and estimator, with the fields of LM-Polygraph's own output.

    Estimates of whole texts are of the level "sequence", those of claims of the level "claim";
    others, of tokens, are left out, and so are estimates that are not finite.

    Args:
        content: the bytes, of which `is_torch_archive` is true.
        source: their file, for messages.

    Raises:
        InputError: if it is damaged, too large, or holds no such estimates.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = _pickle_name(archive)
            size = archive.getinfo(str(name)).file_size
            refuse_larger(size * _BYTES_PER_STEP, source)
            saved = plain_values(archive.read(str(name)))
    except InputError:
        raise
    # zlib, struct and the reader of steps raise whatever they meet.
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise InputError(
            f"{source}: it is an archive with a pickle and is damaged ({reason}); save it anew"
        ) from None
    rows = _rows(saved, source)
    if not rows:
        raise InputError(
            f"{source}: it is a pickle of PyTorch's and holds no estimates of texts or claims, as "
            "LM-Polygraph's manager has them; write what you have as JSON Lines (see Verdicts of "
            "other tools in the guide's Data formats)"
        )
    return rows


def _pickle_name(archive: zipfile.ZipFile) -> str | None:
    return next((each for each in archive.namelist() if each.endswith(_PICKLE)), None)


def _rows(saved: Any, source: Source) -> list[dict[str, Any]]:
    """The rows of what a manager saved; none of anything else."""
    estimations, stats = (_mapping(saved).get(key) for key in ("estimations", "stats"))
    refuse_more_values(_most_values_of(_mapping(estimations), _mapping(stats)), source)
    told = _mapping(stats)
    asked = _list(told.get("input_texts"))
    texts = next((found for key in _TEXTS if (found := _list(told.get(key)))), [])
    claims = [[_claim_text(each) for each in _list(own)] for own in _list(told.get("claims"))]
    rows: list[dict[str, Any]] = []
    for key, values in _mapping(estimations).items():
        level, name = key if isinstance(key, tuple) and len(key) == 2 else ("", "")
        if level == _CLAIM_LEVEL:
            judged = [
                (place, text, value)
                for place, (own, estimates) in enumerate(zip(claims, _list(values), strict=False))
                for text, value in zip(own, _list(estimates), strict=False)
            ]
        elif level == _TEXT_LEVEL:
            judged = [
                (place, text, value)
                for place, (text, value) in enumerate(zip(texts, _list(values), strict=False))
            ]
        else:
            continue
        rows += [
            {
                "input_text": asked[place] if place < len(asked) else "",
                "generation_text": text,
                "uncertainty": value,
                "estimator": name,
            }
            for place, text, value in judged
            if isinstance(text, str) and isinstance(value, float | int) and math.isfinite(value)
        ]
    return rows


def _most_values_of(estimations: Mapping[Any, Any], stats: Mapping[Any, Any]) -> int:
    """Return a bound on the values of all rows: many keys may share one list."""
    claims = sum(len(_list(each)) for each in _list(stats.get("claims")))
    estimates = sum(
        sum(len(_list(each)) for each in _list(values))
        if isinstance(key, tuple) and key[:1] == (_CLAIM_LEVEL,)
        else len(_list(values))
        for key, values in estimations.items()
    )
    return claims + _COLUMNS * estimates


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _claim_text(claim: Any) -> Any:
    return _mapping(claim.state).get("claim_text") if isinstance(claim, Unbuilt) else claim


# --- The steps of a pickle -----------------------------------------------------------------------

_CONSTANTS: Mapping[str, Any] = MappingProxyType({"NONE": None, "NEWTRUE": True, "NEWFALSE": False})
_EMPTY: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": list, "EMPTY_SET": Unbuilt}
)
_PASSED_OVER = ("PROTO", "FRAME", "STOP")


def plain_values(pickled: bytes) -> Any:
    """What a pickle holds: dictionaries, lists, numbers and texts; of objects what they would be.

    Tuples are lists, but as keys of a dictionary, where those of texts alone are kept. Nothing is
    imported or called.

    Raises:
        ValueError: if it is no pickle, or of steps that are not known here.
        IndexError: if it takes what it has not built.
        KeyError: as IndexError.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        taken = stack[start:]
        del stack[start:]
        return taken

    argument: Any
    for opcode, argument, _ in pickletools.genops(pickled):
        step = opcode.name
        if step in _PASSED_OVER:
            continue
        if step in _CONSTANTS:
            stack.append(_CONSTANTS[step])
        elif step in _EMPTY:
            stack.append(_EMPTY[step]())
        elif step == "MARK":
            marks.append(len(stack))
        elif step in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif step == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif step in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif step == "GLOBAL":
            stack.append(Unbuilt(argument))
        elif step == "STACK_GLOBAL":
            name, module = stack.pop(), stack.pop()
            stack.append(Unbuilt(f"{module} {name}"))
        elif step in ("TUPLE1", "TUPLE2", "TUPLE3"):
            size = int(step[-1])
            stack[-size:] = [stack[-size:]]
        elif step in ("TUPLE", "LIST"):
            stack.append(since_mark())
        elif step in ("APPEND", "APPENDS"):
            added = [stack.pop()] if step == "APPEND" else since_mark()
            if isinstance(stack[-1], list):
                stack[-1].extend(added)
        elif step in ("SETITEM", "SETITEMS"):
            added = since_mark() if step == "SETITEMS" else [stack.pop(-2), stack.pop()]
            if isinstance(stack[-1], dict):
                stack[-1].update(_items(added))
        elif step in ("REDUCE", "NEWOBJ", "NEWOBJ_EX"):
            for _ in range(2 if step == "NEWOBJ_EX" else 1):
                stack.pop()
            called = stack.pop()
            name = called.name if isinstance(called, Unbuilt) else ""
            stack.append({} if name in _DICTIONARIES else Unbuilt(name))
        elif step == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], Unbuilt):
                stack[-1].state = state
        elif step == "BINPERSID":
            stack[-1] = Unbuilt()
        elif step in ("ADDITEMS", "FROZENSET"):
            since_mark()
            if step == "FROZENSET":
                stack.append(Unbuilt())
        elif not opcode.stack_before and argument is not None:
            # Numbers and texts, which are what the step itself holds.
            stack.append(argument)
        else:
            raise ValueError(f"the step {step} of its pickle is not known")
    return stack[-1]


def _items(added: Sequence[Any]) -> dict[Any, Any]:
    """Keys and values in turn; of keys, texts and tuples of them, and numbers."""
    found: dict[Any, Any] = {}
    for key, value in zip(added[::2], added[1::2], strict=True):
        if isinstance(key, list) and all(isinstance(each, str) for each in key):
            found[tuple(key)] = value
        elif isinstance(key, str | int | float):
            found[key] = value
    return found
