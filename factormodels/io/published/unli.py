"""UNLI: pairs of sentences and how probable people hold the second given the first.

Source: Chen et al. 2020, "Uncertain Natural Language Inference", https://nlp.jhu.edu/unli/.
Relied on: programs that read train.csv, dev.csv and test.csv of u-snli.zip by the columns `id`,
`pre`, `hyp`, `nli` (SNLI's category), `unli` (the probability), and copies with `premise`,
`hypothesis`, `label`; the tables themselves were not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from factormodels.decoded_values import filled_field, first_key, shown
from factormodels.errors import InputError
from factormodels.io.json_records import record_at, record_id
from factormodels.io.records import Source
from factormodels.validation import validated_id, validated_probability

_PREMISE, _HYPOTHESIS, _PROBABILITY = ("pre", "premise"), ("hyp", "hypothesis"), ("unli", "label")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two texts and how probable people hold the second to be, given the first.

    Attributes:
        id: name of the pair, unique in its file.
        premise: the text that is given.
        hypothesis: the text that is judged.
        probability: people's probability of the hypothesis, in [0, 1].
        category: the owner's category of the pair; empty where there is none.
    """

    id: str
    premise: str
    hypothesis: str
    probability: float
    category: str = ""

    def __post_init__(self) -> None:
        validated_id(self.id, "a pair of texts")
        probability = validated_probability(self.probability, f"pair {self.id!r}")
        object.__setattr__(self, "probability", probability)


def parse_unli(obj: object, source: Source, line: int | None = None) -> JudgedPair:
    """Pair of a row.

    Raises:
        InputError: if a text is missing or the probability is none.
    """
    record, where = record_at(obj, source, line)
    key = first_key(record, _PROBABILITY)
    if key not in record:
        raise InputError(f"{where}: the key {key!r} is missing; add it")
    value = record[key]
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise InputError(
                f"{where}: key {key!r}: {shown(value)} is not a probability; give a number from 0 "
                "to 1"
            ) from None
    name, category = record.get("id"), record.get("nli")
    return JudgedPair(
        id=record_id(source, line) if name in (None, "") else str(name),
        premise=filled_field(record, first_key(record, _PREMISE), where),
        hypothesis=filled_field(record, first_key(record, _HYPOTHESIS), where),
        probability=validated_probability(value, f"{where}: key {key!r}"),
        category="" if category is None else str(category),
    )
