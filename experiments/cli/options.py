"""Options of a command: every field of its settings is one, or a key of one.

`--retriever local,top-k=5` gives two fields, `retriever` and `top_k`. Every field is a key of --set
too, which also reads files of settings; what stands in an option goes before what --set says, and
what stands on the command line before what stands in a file. A key may be written as an option of
its own: `--top-k 5` is `--retriever top-k=5`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from experiments.settings import SET, Settings, choices_of, declared_in, key_of, option_of
from factormodels.errors import InputError, unknown_name
from factormodels.io.files import read_text
from factormodels.io.plain_yaml import parse_yaml

_SET = (
    "Any of these settings, as KEY=VALUE, or a file of them in YAML; what stands in an option goes "
    "before it. Every key may also be written as an option of its own: --KEY VALUE."
)
_OPTION = re.compile(r"(?<![\w-])--(no-)?([a-z][a-z-]*)(?: (?=[^\s:]+:))?")


@dataclasses.dataclass(frozen=True)
class TakenOption:
    """An option of a command.

    Attributes:
        name: without hyphens.
        kind: the settings that it gives fields of.
        head: the field that has no key; empty if every field has.
        keys: the other fields, by key.
        rest: the field that takes what has any other key; empty if none does.
    """

    name: str
    kind: type[Settings]
    head: str = ""
    keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rest: str = ""

    @property
    def panel(self) -> type[Settings]:
        """The class under whose name it stands in the help."""
        return Settings if self.name == SET else declared_in(self.kind, self.first)

    @property
    def first(self) -> str:
        """The field that says where it stands in the help."""
        return next(filter(None, (self.head, self.rest, *self.keys.values())))

    @property
    def default(self) -> Any:
        """What the field without a key is if it is not given."""
        return self.kind.model_fields[self.head].get_default(call_default_factory=True)

    @property
    def is_flag(self) -> bool:
        """Whether nothing stands behind it."""
        return bool(self.head) and not self.keys and _is_flag(self.kind, self.head)

    @property
    def metavar(self) -> str:
        """What stands in the place of what it takes."""
        if self.is_flag:
            return ""
        if self.name == SET:
            return "KEY=VALUE"
        word = metavar_of(self.kind, self.head) if self.head else ""
        keyed = "KEY=VALUE" if self.keys or self.rest else ""
        return ",".join(filter(None, (word, keyed)))

    @property
    def help(self) -> str:
        """What it means, and below that a line for each of its keys."""
        meaning = _SET if self.name == SET else ""
        if self.head:
            meaning = meaning_of(self.kind, self.head)
        lines = [
            f"{key}{'' if _is_flag(self.kind, field) else f'={metavar_of(self.kind, field)}'}: "
            f"{meaning_of(self.kind, field)}"
            for key, field in self.keys.items()
        ]
        if self.rest:
            lines.append(f"{metavar_of(self.kind, self.rest)}: {meaning_of(self.kind, self.rest)}")
        return "\n".join(filter(None, (meaning, *lines)))

    def fields(self, texts: Iterable[str]) -> dict[str, Any]:
        """The fields that are given by what stands behind the option, each time that it stands.

        Raises:
            InputError: for a key that it does not have, or a field that is given twice.
        """
        found: dict[str, list[str]] = {}
        for field, value in (pair for text in texts for pair in self._pairs(text)):
            found.setdefault(field, []).append(value)
        for field, values in found.items():
            if len(values) > 1 and not _takes_several(self.kind, field):
                option = option_of(self.kind, field).name
                raise InputError(f"--{option}: it is given {len(values)} times; keep one")
        return {
            field: values if _takes_several(self.kind, field) else values[0]
            for field, values in found.items()
        }

    def _pairs(self, text: str) -> Iterator[tuple[str, str]]:
        """Fields and values of what stands behind the option once."""
        if not self.keys and not self.rest:
            yield self.head, text
            return
        known = "|".join(key.replace("-", "[-_]") for key in self.keys)
        flags = "|".join(k for k, field in self.keys.items() if _is_flag(self.kind, field))
        seams = [rf"(?:{known})=", *([rf"(?:{flags})(?:,|$)"] if flags else ())]
        if self.rest:
            seams.append(r"[^,=]+=")
        for part in re.split(rf",(?={'|'.join(seams)})", text):
            key, sign, value = part.partition("=")
            field = self.keys.get(key.replace("_", "-"), "")
            if field and (sign or _is_flag(self.kind, field)):
                yield field, value if sign else "true"
            elif self.rest and sign:
                yield self.rest, part
            elif self.head and not (unknown := re.search(r"(?:^|,)([a-z][a-z-]+)=", part)):
                yield self.head, part
            else:
                wrong = unknown[1] if self.head and unknown else key
                if field and not sign:
                    raise InputError(
                        f"--{self.name} {part}: nothing is given for {key!r}; write "
                        f"--{self.name} {key}=VALUE"
                    )
                told = unknown_name(f"--{self.name} {part}: the key {wrong!r}", wrong, self.keys)
                raise InputError(told + self._elsewhere(part))

    def _elsewhere(self, part: str) -> str:
        """Where a key may stand that is none of --set."""
        if self.name != SET or "=" not in part:
            return ""
        others = [
            key_of(self.kind, field)
            for field in self.keys.values()
            if option_of(self.kind, field).rest and metavar_of(self.kind, field) == "KEY=VALUE"
        ]
        return "".join(f"; or give it to the {each}: --{each} {part}" for each in others)


def options_of(kind: type[Settings]) -> list[TakenOption]:
    """The options that give the fields of settings, but for --set, in the order of the help."""
    by_name: dict[str, list[str]] = {}
    for field in _fields(kind):
        by_name.setdefault(key_of(kind, field) or option_of(kind, field).name, []).append(field)
    by_name.pop(SET, None)
    return [_option(kind, name, fields) for name, fields in by_name.items()]


def _option(kind: type[Settings], name: str, fields: Sequence[str]) -> TakenOption:
    head = next((field for field in fields if not key_of(kind, field)), "")
    rest = next((field for field in fields if option_of(kind, field).rest), "")
    keys = {option_of(kind, each).name: each for each in fields if each not in (head, rest)}
    return TakenOption(name, kind, head, keys, rest)


def set_option(kind: type[Settings], *, every: bool = False) -> TakenOption:
    """The option --set with the settings that are keys of no other option, or with every one."""
    fields = [each for each in _fields(kind) if every or key_of(kind, each) == SET]
    return TakenOption(SET, kind, keys={option_of(kind, each).name: each for each in fields})


def fields_set(kind: type[Settings], texts: Iterable[str]) -> dict[str, Any]:
    """The fields that stand behind --set: in files, and as KEY=VALUE, which goes before files.

    Raises:
        InputError: for a file that cannot be read or is no mapping, or a key that no setting has.
    """
    option = set_option(kind, every=True)
    keys = option.keys
    pairs, in_files = [], {}
    for text in texts:
        if "=" in text or text.partition(",")[0].replace("_", "-") in keys:
            pairs.append(text)
            continue
        found = parse_yaml(read_text(Path(text)), text)
        if not isinstance(found, Mapping):
            raise InputError(
                f"{text}: a file of settings is a mapping; write KEY: VALUE in each line"
            )
        for name, value in found.items():
            key = str(name).replace("_", "-")
            if key not in keys:
                raise InputError(unknown_name(f"{text}: the setting {name!r}", key, keys))
            in_files[keys[key]] = value
    return {**in_files, **option.fields(pairs)}


def with_keys_in_options(kind: type[Settings], tokens: Sequence[str]) -> list[str]:
    """Words of a command line, with `--OPTION KEY=VALUE` in place of `--KEY VALUE`."""
    keys = {
        option_of(kind, field).name: (option, _is_flag(kind, field))
        for field in _fields(kind)
        if (option := key_of(kind, field)) and not option_of(kind, field).rest
    }
    for name in (SET, *(option.name for option in options_of(kind))):
        keys.pop(name, None)
    found: list[str] = []
    words = iter(tokens)
    for word in words:
        name, sign, value = word.removeprefix("--").partition("=")
        key = name if name in keys else name.removeprefix("no-")
        of, is_flag = keys.get(key, ("", False))
        if not word.startswith("--") or not of or (key != name and not is_flag):
            found.append(word)
            continue
        if not sign:
            value = ("yes" if key == name else "no") if is_flag else next(words, "")
        found += [f"--{of}", f"{key}={value}"]
    return found


def spelled_as_options(kind: type[Settings], sentence: str) -> str:
    """A sentence that names fields as options of their own, with the options that give them.

    "--top-k 0: give 1 or more" becomes "--retriever top-k=0: give 1 or more".
    """
    options = {
        option_of(kind, field).name: option
        for field in _fields(kind)
        if (option := key_of(kind, field)) and not option_of(kind, field).rest
    }

    def spelled(found: re.Match[str]) -> str:
        negative, name = found[1], found[2]
        if name not in options:
            return found[0]
        if negative:
            return f"--{options[name]} {name}=no"
        return f"--{options[name]} {name}{'=' if found[0].endswith(' ') else ''}"

    return _OPTION.sub(spelled, sentence)


def _fields(kind: type[Settings]) -> list[str]:
    return [name for name in kind.model_fields if option_of(kind, name).command_line]


def _is_flag(kind: type[Settings], field: str) -> bool:
    hint = kind.model_fields[field].annotation
    return hint is bool or hint == bool | None


def _takes_several(kind: type[Settings], field: str) -> bool:
    return get_origin(kind.model_fields[field].annotation) in (tuple, list, frozenset, dict)


def metavar_of(kind: type[Settings], field: str) -> str:
    """What stands in the place of a value of a field."""
    if word := option_of(kind, field).metavar:
        return word
    hint = kind.model_fields[field].annotation
    if choices_of(hint):
        return "NAME"
    several = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    first = next((each for each in several if each is not type(None)), str)
    return {int: "N", float: "X", Path: "FILE"}.get(first, "TEXT")


def meaning_of(kind: type[Settings], field: str) -> str:
    """What a field means, what may be chosen, and the default."""
    info = kind.model_fields[field]
    text = spelled_as_options(kind, " ".join((info.description or "").split()))
    if choices := choices_of(info.annotation):
        text += f" One of {', '.join(map(str, choices))}."
    default = info.get_default(call_default_factory=True)
    if default or type(default) in (int, float):
        shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
        text += f" [default: {shown}]"
    return text
