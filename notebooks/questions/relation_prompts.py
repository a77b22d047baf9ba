"""Prompts for relations: which words get the most evidence out of a small model?

The same pairs were asked about in every prompt; a prompt to which a model gives no label in a fifth
of its answers is counted and not compared. Half of the responses choose a prompt and a
correction of the label bias by their log loss; the other half says what the choice is worth.

Question: which prompt, with which correction of its label bias, has the smallest log loss?
Data: factcheck-bench, embedded, whose stances people judged, with recorded answers of two models.
Rival: the default prompt, "relation", and the share of each relation in the half that chooses.

    python notebooks/questions/relation_prompts.py --out docs/results/relation-prompts

It takes 3 seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.folds import response_folds
from calibration.label_bias import compare_corrections, fit_vector_scaling, label_scores
from calibration.validation import Floats, Integers
from experiments.evaluators.recorded_relations import (
    LEARNED,
    PairKey,
    corrected_pairs,
    judged_pairs,
    label_columns_of,
    read_record,
    record_costs,
    recorded_pairs,
    relation_score_row,
)
from experiments.findings.artifacts import Artifacts, PaperFigure
from experiments.findings.figures import estimate_figure
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame, named
from factormodels import datasets
from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.errors import InputError
from factormodels.extraction.asking.table import RELATION
from factormodels.io.relation_record import RelationRecord
from factormodels.nouns import counted

LEAST_ANSWERED = 0.8
"""Least share of pairs with probabilities for a prompt to be compared; others are only counted."""

RECORDS = (
    "factcheck-bench.smollm2-135m-instruct.prompts",
    "factcheck-bench.qwen2.5-coder-1.5b-instruct.prompts",
)

RIVALS = {"default": RELATION.prompt, "defined": "relation"}
"""Prompts that are compared with the choice: the default, and the one that defines entailment,
contradiction and neutral."""

SHARES = "shares of labels"
"""Rival that gives every pair the shares of the relations in the half that chooses."""


def relation_prompts(*, records: tuple[str, ...] = RECORDS, seed: int = 0) -> Artifacts:
    """Return scores of every prompt and correction, what is chosen, and what prompts cost.

    Args:
        records: embedded records of answers, or files of them.
        seed: seed of the halves and of the bootstrap over responses.
    """
    stances = {"irrelevant": (RelationKind.NEUTRAL, 1.0)}
    graphs = datasets.load("factcheck-bench", stances=stances).graphs
    judged = judged_pairs(graphs)
    names = [graph.id for graph in graphs]
    half = dict(zip(names, response_folds(names, 2, seed).tolist(), strict=True))
    rows: dict[str, list[dict[str, Any]]] = {"prompts": [], "choice": [], "costs": []}
    remarks = []
    for name in records:
        record = read_record(name)
        comparison = compared_prompts(record, judged, half)
        rows["prompts"] += score_rows(comparison, seed)
        rows["choice"].append(choice_row(comparison, seed))
        rows["costs"] += cost_rows(record, comparison)
        remarks.append(_extent(record, comparison))
    frames = {name: data_frame(made) for name, made in rows.items()}
    shown = frames["prompts"][lambda frame: frame["correction"] != SHARES]
    shown = shown.assign(row=shown["model"] + "\n" + shown["prompt"])
    figure = estimate_figure(shown, "row", {"log_loss": "log loss, held back"}, by="correction")
    return Artifacts(
        {
            name: Table(frames[name], columns_as(head), caption, group="model", note=note)
            for name, (head, caption, note) in TABLES.items()
        },
        {"losses": PaperFigure(figure, shown, "log loss of every prompt and correction")},
        tuple(remarks),
    )


TABLES = {
    "prompts": (
        "prompt | correction | chosen_by:3 log loss, half that chooses | log_loss:3± log loss, "
        "held back | accuracy:3± | ece:3± ECE",
        "Prompts for relations by the answers of small models, on human stances",
        "Intervals: 95% over responses. ECE: of the likeliest relation's probability. Learned: "
        "vector scaling that the half that chooses teaches.",
    ),
    "choice": (
        "prompt | correction | pairs:0 held back | log_loss:3± log loss | default:3± "
        "difference from the default | defined:3± difference from the prompt relation | "
        "shares:3± difference from the shares of labels",
        "The prompt and correction with the smallest log loss in one half, on the other",
        "Differences are paired over responses; below 0 the choice is better. The default and the "
        "prompt relation have the correction that is best for them in the half that chooses.",
    ),
    "costs": (
        "prompt | pairs:0 | of:0 | missing:0 | asked:0 tokens asked | read:0 tokens read | "
        "answered:1 tokens answered | seconds:1",
        "Cost of a pair by prompt",
        "Means over pairs. Read: not in the server's prefix cache. Seconds: of the server's "
        "processor time, with one thread.",
    ),
}
"""Columns, caption and note of each table."""


def _extent(record: RelationRecord, comparison: Comparison) -> str:
    """Number of pairs and responses in the comparison of a model, in words."""
    keys = comparison.keys
    responses = counted(len({response for response, *_ in keys}), "response")
    return (
        f"{record.origin.model}: {len(keys):,} of {counted(record.origin.pairs, 'pair')}, of "
        f"{responses}; {int(comparison.chooses.sum()):,} of them choose."
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers of a model to several prompts about the same pairs.

    Attributes:
        model: name of the model.
        keys: the pairs that every compared prompt has probabilities of, (n,).
        y: column of the relation that people found, (n,).
        chooses: whether a pair is of the half that chooses, (n,).
        chosen_by: probabilities of the pairs of that half by prompt and correction.
        held_back: the same of the other half.
    """

    model: str
    keys: tuple[PairKey, ...]
    y: Integers
    chooses: Any
    chosen_by: dict[tuple[str, str], Floats]
    held_back: dict[tuple[str, str], Floats]

    @property
    def responses(self) -> list[str]:
        """Responses of the pairs that are held back."""
        return [key[0] for key, chooses in zip(self.keys, self.chooses, strict=True) if not chooses]

    @property
    def prompts(self) -> frozenset[str]:
        """The prompts that are compared."""
        return frozenset(prompt for prompt, _ in self.chosen_by)

    def loss(self, name: tuple[str, str]) -> float:
        """Log loss of a prompt and correction in the half that chooses."""
        return label_scores(self.chosen_by[name], self.y[self.chooses]).log_loss

    def best(self, prompt: str = "") -> tuple[str, str]:
        """Prompt and correction with the smallest log loss in the half that chooses.

        Args:
            prompt: the only prompt, one of `prompts`; empty for any.
        """
        names = [name for name in self.chosen_by if prompt in ("", name[0]) and name[1] != LEARNED]
        return min(names, key=self.loss)


def compared_prompts(
    record: RelationRecord, judged: dict[PairKey, int], half: dict[str, int]
) -> Comparison:
    """Return the answers of a record to its prompts, corrected within each half.

    Args:
        record: the record.
        judged: column of the relation that people found, by pair.
        half: 0 for responses that choose, 1 for those held back.

    Raises:
        InputError: if no pair of either half has probabilities in every prompt.
    """
    by_prompt = {
        prompt: recorded_pairs(record, prompt)
        for prompt in record.asked_prompts
        if answered_share(record, prompt) >= LEAST_ANSWERED
    }
    if not by_prompt:
        raise InputError(
            f"the record of {record.origin.model} has probabilities of most pairs in no prompt; "
            "record more, or another model"
        )
    shared = set(judged).intersection(*(pairs.keys for pairs in by_prompt.values()))
    first = next(iter(by_prompt.values()))
    keys = tuple(key for key in first.keys if key in shared)
    y = label_columns_of(keys, judged)
    chooses = np.array([half[key[0]] == 0 for key in keys], dtype=np.bool_)
    if not chooses.any() or chooses.all():
        raise InputError(
            f"the record of {record.origin.model} has {counted(len(keys), 'pair')} with answers to "
            "every prompt, too few for two halves; record more"
        )
    chosen_by: dict[tuple[str, str], Floats] = {}
    held_back: dict[tuple[str, str], Floats] = {}
    for prompt, pairs in by_prompt.items():
        ordered = pairs.ordered(keys)
        for name, p in corrected_pairs(ordered.part(chooses)).items():
            chosen_by[prompt, name] = p
        for name, p in corrected_pairs(ordered.part(~chooses)).items():
            held_back[prompt, name] = p
        scaling = fit_vector_scaling(ordered.p[chooses], y[chooses])
        held_back[prompt, LEARNED] = scaling.apply(ordered.p[~chooses])
    return Comparison(record.origin.model, keys, y, chooses, chosen_by, held_back)


def answered_share(record: RelationRecord, prompt: str) -> float:
    """The share of the pairs asked about in a prompt that have probabilities."""
    answers = record.of_prompt(prompt).values()
    return sum(answer.log_p is not None for answer in answers) / max(1, len(answers))


def score_rows(comparison: Comparison, seed: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each prompt and correction, and for the shares of labels."""
    y = comparison.y[~comparison.chooses]
    for (prompt, correction), p in comparison.held_back.items():
        row: dict[str, Any] = {"model": comparison.model, "prompt": prompt}
        row |= {"correction": correction, "chosen_by": np.nan}
        if (prompt, correction) in comparison.chosen_by:
            row["chosen_by"] = comparison.loss((prompt, correction))
        yield row | relation_score_row(p, y, comparison.responses, seed)
    row = {"model": comparison.model, "prompt": "", "correction": SHARES, "chosen_by": np.nan}
    yield row | relation_score_row(label_shares(comparison), y, comparison.responses, seed)


def label_shares(comparison: Comparison) -> Floats:
    """The shares of the relations in the half that chooses, for each pair held back, (n, 3)."""
    chosen_by = comparison.y[comparison.chooses]
    counts = np.bincount(chosen_by, minlength=len(JUDGED_KINDS)) + 1 / len(JUDGED_KINDS)
    shares: Floats = np.tile(counts / counts.sum(), ((~comparison.chooses).sum(), 1))
    return shares


def choice_row(comparison: Comparison, seed: int) -> dict[str, Any]:
    """Row of the chosen prompt, with its differences from `RIVALS` and the shares of labels."""
    y, chosen = comparison.y[~comparison.chooses], comparison.best()
    p = comparison.held_back[chosen]
    scores = relation_score_row(p, y, comparison.responses, seed)
    row: dict[str, Any] = {"model": comparison.model, "prompt": chosen[0], "correction": chosen[1]}
    row |= {"pairs": len(y)} | {name: scores[name] for name in scores if "log_loss" in name}
    rivals = {"shares": label_shares(comparison)}
    for name, prompt in RIVALS.items():
        if prompt in comparison.prompts and prompt != chosen[0]:
            rivals[name] = comparison.held_back[comparison.best(prompt)]
    for name in (*RIVALS, "shares"):
        difference = (np.nan,) * 3
        if name in rivals:
            compared = compare_corrections(p, rivals[name], y, comparison.responses, seed=seed)
            difference = (compared.value, *compared.interval)
        row |= named(name, difference)
    return row


def cost_rows(record: RelationRecord, comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield a row for each prompt: pairs asked about, those without an answer, means of costs."""
    for prompt in record.asked_prompts:
        answers = record.of_prompt(prompt).values()
        row: dict[str, Any] = {"model": comparison.model, "prompt": prompt, "pairs": len(answers)}
        row["of"] = record.origin.pairs
        row["missing"] = sum(answer.log_p is None for answer in answers)
        yield row | record_costs(record, prompt)


if __name__ == "__main__":
    answer_question(relation_prompts, __file__)
