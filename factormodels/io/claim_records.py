"""Records of claims with human labels and the model's own judgments.

A file of records is JSON Lines, one claim per line:

    {"response": "r1", "sentence": 2, "sentences": 6, "claim": "a4", "label": "NS",
     "judgments": {"direct_asking": "true", "none_of_the_above": "neither"},
     "log_probabilities": {"direct_asking": {"true": -0.1, "false": -2.4}}}

A setting that is absent or null was not asked or not answered. The claim is then missing in that
setting: it is counted as missing and never as a wrong judgment. Log-probabilities are optional.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from factormodels.claims import ClaimLabel, ModelJudgment
from factormodels.decoded_values import as_object, as_text, located, shown, text_field
from factormodels.errors import InputError
from factormodels.io.json import check_keys, encode
from factormodels.io.source.files import write_text
from factormodels.io.source.places import location
from factormodels.io.tables.records import json_records, read_content, strictly
from factormodels.validation import validated_id


class Setting(StrEnum):
    """Form of the question to the model about its own claim (Self-Known paper, section 3)."""

    DIRECT_ASKING = "direct_asking"
    """Whether the claim itself is true or false."""
    QUESTION_ANSWERING = "question_answering"
    """Whether the answer to a question made from the claim is true or false."""
    NONE_OF_THE_ABOVE = "none_of_the_above"
    """The same with a third choice, none of the above."""


Choice = TypeVar("Choice", bound=StrEnum)

_KEYS = ("response", "sentence", "sentences", "claim", "label", "judgments", "log_probabilities")
_EARLIER_KEY = "judgements"  # in files of earlier versions


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """A claim of a response, its human label, and the model's judgments of it.

    Attributes:
        response: id of the response.
        sentence: index i of the claim's sentence in the response, from 1.
        sentences: number n of sentences of the response.
        claim: id of the claim, unique in its response.
        label: S supported, NS unsupported, IR irrelevant.
        direct_asking: judgment in that setting; None if there is none.
        question_answering: likewise.
        none_of_the_above: likewise.
        log_probabilities: natural log-probabilities of the judgments by setting, if available;
            unlikely judgments may be absent.

    Raises:
        InputError: for an empty id, a sentence outside 1..n, an unknown label or judgment, or a
            log-probability that is not a number from -inf to 0.
    """

    response: str
    sentence: int
    sentences: int
    claim: str
    label: ClaimLabel
    direct_asking: ModelJudgment | None = None
    question_answering: ModelJudgment | None = None
    none_of_the_above: ModelJudgment | None = None
    log_probabilities: Mapping[Setting, Mapping[ModelJudgment, float]] = field(
        default_factory=dict, hash=False, kw_only=True
    )

    def __post_init__(self) -> None:
        validated_id(self.response, "a response")
        where = f"response {self.response!r}"
        validated_id(self.claim, f"a claim of {where}")
        where = f"{where}, claim {self.claim!r}"
        for name in ("sentence", "sentences"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{where}: {name} is {value!r}; give a whole number from 1")
        if self.sentence > self.sentences:
            raise InputError(
                f"{where}: sentence {self.sentence} of {self.sentences} does not exist; "
                "count sentences from 1 and give their number as 'sentences'"
            )
        object.__setattr__(self, "label", _choice(ClaimLabel, self.label, f"{where}: label"))
        for setting in Setting:
            judged = getattr(self, setting.value)
            if judged is not None:
                judgment = _choice(ModelJudgment, judged, f"{where}: judgment by {setting.value}")
                object.__setattr__(self, setting.value, judgment)
        where = f"{where}: log-probabilities"
        given_logs = {
            _choice(Setting, setting, where): _log_probabilities(logs, f"{where} by {setting}")
            for setting, logs in self.log_probabilities.items()
        }
        object.__setattr__(self, "log_probabilities", given_logs)

    @property
    def id(self) -> str:
        """The response and the claim, which together identify a record."""
        return f"{self.response}, {self.claim}"

    @property
    def position(self) -> float:
        """The relative position i/n of the claim's sentence, in (0, 1]."""
        return self.sentence / self.sentences

    def judgment(self, setting: str) -> ModelJudgment | None:
        """Return the judgment in a setting; None if there is none.

        Raises:
            InputError: if the setting does not exist.
        """
        judgment: ModelJudgment | None = getattr(self, setting_named(setting).value)
        return judgment


def setting_named(setting: str) -> Setting:
    """Return the setting with a given name.

    Raises:
        InputError: if no setting has that name.
    """
    return _choice(Setting, setting, "setting")


def read_records(path: str | os.PathLike[str]) -> list[ClaimRecord]:
    """Read records from a file of JSON Lines or a JSON list, in order.

    Raises:
        InputError: if the file cannot be read or is empty, or a line is malformed, repeats a claim,
            or states another number of sentences for its response than an earlier line.
    """
    lines: dict[tuple[str, str], int] = {}
    lengths: dict[str, tuple[int, int]] = {}
    records = []
    content = read_content(path, in_memory=True)
    empty = isinstance(content, str) and not content.strip()
    for entry in strictly(() if empty else json_records(content, path)):
        line = entry.line or 1
        where = location(path, line)
        record = parse_record(entry.value, where)
        key = (record.response, record.claim)
        if key in lines:
            raise InputError(
                f"{where}: response {record.response!r} has the claim {record.claim!r} on line "
                f"{lines[key]} already; give each claim once"
            )
        lines[key] = line
        length, stated = lengths.setdefault(record.response, (record.sentences, line))
        if length != record.sentences:
            raise InputError(
                f"{where}: response {record.response!r} has {record.sentences} sentences here and "
                f"{length} on line {stated}; give the correct number"
            )
        records.append(record)
    if not records:
        raise InputError(f"{path}: the file holds no record; give one JSON object per line")
    return records


def write_records(records: Iterable[ClaimRecord], path: str | os.PathLike[str]) -> None:
    """Write records as JSON Lines, completely or not at all.

    Raises:
        InputError: if the file cannot be written.
    """
    lines = [encode(as_json_object(record), f"{path}") for record in records]
    write_text(path, "".join(f"{line}\n" for line in lines))


def looks_like_record(obj: object) -> bool:
    """Return whether a JSON value has the keys of a record."""
    return isinstance(obj, dict) and {"response", "sentence", "claim", "label"} <= set(obj)


def parse_record(value: object, where: str) -> ClaimRecord:
    """Return the record of a JSON value.

    Args:
        value: the JSON value.
        where: its place, for errors.

    Raises:
        InputError: if it is malformed.
    """
    obj = as_object(value, where)
    if _EARLIER_KEY in obj and "judgments" not in obj:
        obj = {"judgments" if key == _EARLIER_KEY else key: each for key, each in obj.items()}
    check_keys(obj, _KEYS, where)
    stated = obj.get("judgments")
    judgments = {} if stated is None else as_object(stated, f"{where}: key 'judgments'")
    check_keys(judgments, tuple(setting.value for setting in Setting), f"{where}: judgments")
    for key in ("sentence", "sentences"):
        if key not in obj:
            raise InputError(f"{where}: the key {key!r} is missing; add it")
    # Errors of these fields name their place; later ones name the response and the claim.
    response, claim = text_field(obj, "response", where), text_field(obj, "claim", where)
    label = _choice(ClaimLabel, text_field(obj, "label", where), f"{where}: key 'label'")
    by_setting = _judgments(judgments, where)
    logs = _log_probabilities_by_setting(obj, where)
    with located(where):
        return ClaimRecord(
            response=response,
            sentence=obj["sentence"],
            sentences=obj["sentences"],
            claim=claim,
            label=label,
            **by_setting,
            log_probabilities=logs,
        )


def as_json_object(record: ClaimRecord) -> dict[str, Any]:
    """Return the JSON object of a record, without missing values."""
    judgments = {
        setting.value: str(judgment)
        for setting in Setting
        if (judgment := record.judgment(setting)) is not None
    }
    obj = {
        "response": record.response,
        "sentence": record.sentence,
        "sentences": record.sentences,
        "claim": record.claim,
        "label": str(record.label),
        "judgments": judgments,
    }
    if record.log_probabilities:
        obj["log_probabilities"] = {
            str(setting): {str(judgment): value for judgment, value in logs.items()}
            for setting, logs in record.log_probabilities.items()
        }
    return obj


def _judgments(stated: Mapping[str, Any], where: str) -> dict[str, ModelJudgment]:
    judgments_at = f"{where}: judgments"
    return {
        name: _choice(
            ModelJudgment,
            as_text(value, f"{judgments_at}: {name!r}"),
            f"{judgments_at}: {name!r}",
        )
        for name, value in stated.items()
        if value is not None
    }


def _log_probabilities_by_setting(obj: Mapping[str, Any], where: str) -> dict[Setting, Any]:
    logs_at = f"{where}: key 'log_probabilities'"
    by_setting = as_object(obj.get("log_probabilities") or {}, logs_at)
    return {
        _choice(Setting, name, logs_at): as_object(logs, f"{logs_at}: {name!r}")
        for name, logs in by_setting.items()
    }


def _log_probabilities(logs: Mapping[Any, Any], where: str) -> dict[ModelJudgment, float]:
    for value in logs.values():
        if isinstance(value, bool) or not isinstance(value, float | int) or not value <= 0.0:
            raise InputError(
                f"{where}: {shown(value)} is not a logarithm of a probability; give 0 or less"
            )
    return {_choice(ModelJudgment, name, where): float(value) for name, value in logs.items()}


def _choice(kind: type[Choice], value: Any, what: str) -> Choice:
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(kind)
        raise InputError(f"{what} is {shown(value)}; use one of {names}") from None
