"""Groups of kept claims: do promises hold in each, with several scores and dependencies?

Question: `keep` promises that with a probability no kept claim of a new response is false. Does it
hold overall and in each third of responses by length, by two scores and with the claims that a
claim depends on, and how many claims are kept?
Data: factscore (posteriors under FR1) and selfcheck (the share of Yes among votes), embedded, with
the order of claims as a second score and entailments between claims; files of
tatsu-lab/conformal-factual-lm that factormodels-data.yaml names NQ and MATH under
datasets.self-judged, with the two scores of its language model, and for MATH each step depending on
the step before; and simulated responses, of which a tenth has saturated probabilities.
Rival: one threshold; and maci-conformal 0.2.2 on the same splits, in an environment of its own.

    python notebooks/questions/kept_groups.py --export claims.json
    rival/bin/python notebooks/rivals/maci_filter.py claims.json kept.json 400
    python notebooks/questions/kept_groups.py --parts parts --rival kept.json \
        --out docs/results/kept-groups

Each set of data is kept in the folder of --parts: an interrupted run continues there. It takes 1
minute of processor time, and the rival 7 minutes for all splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.filtering import Promise, ScoredClaims, fit_calibrator
from calibration.filtering.calibrator import Group
from calibration.filtering.dependencies import Dependencies
from calibration.validation import Floats, Integers
from experiments.analyses.user_data import DATA_FILE, user_data
from experiments.columns.verdicts import entailing_claims
from experiments.findings.artifacts import Artifacts
from experiments.findings.notebook import answer_question
from experiments.findings.table import Table, columns_as, data_frame
from experiments.progress import tell
from factormodels import datasets
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.json import decode
from factormodels.io.source.files import read_text, write_text
from factormodels.variants import variant
from inference.batch import claim_posteriors

if TYPE_CHECKING:
    import pandas as pd

EMBEDDED = ("factscore", "selfcheck")
ANSWERED = ("NQ", "MATH")
SATURATED = "a tenth saturated"
GROUPS = ("short", "middle", "long")


@dataclass(frozen=True, eq=False)
class LabeledClaims:
    """Labeled claims of a set of data.

    Attributes:
        values: scores (n, k).
        y: labels (n,).
        responses: response of each claim, from 0 in order.
        groups: group of each response.
        names: names of the scores.
        dependencies: edges between claims; None: there are none in these data.
    """

    values: Floats
    y: Floats
    responses: Integers
    groups: tuple[str, ...]
    names: tuple[str, ...]
    dependencies: Dependencies | None = None

    @property
    def n_responses(self) -> int:
        """Number of responses."""
        return len(self.groups)


@dataclass(frozen=True)
class Method:
    """A way to filter.

    Attributes:
        title: its name.
        n_scores: number of scores that it uses.
        by_group: whether each group has its own threshold.
        depends: whether dependencies count.
    """

    title: str
    n_scores: int = 1
    by_group: bool = False
    depends: bool = False


METHODS = (
    Method("one threshold"),
    Method("by length", by_group=True),
    Method("two scores", n_scores=2),
    Method("two scores, by length", n_scores=2, by_group=True),
    Method("with dependencies", depends=True),
)


def kept_groups(
    *,
    data: tuple[str, ...] = (*ANSWERED, *EMBEDDED, SATURATED),
    confidence: float = 0.8,
    splits: int = 400,
    parts: Path | None = None,
    export: Path | None = None,
    rival: Path | None = None,
    seed: int = 0,
) -> Artifacts:
    """Return the share of new responses that have what was promised, and of claims kept.

    Args:
        data: names of sets of data.
        confidence: probability that no kept claim of a response is false.
        splits: random halves of the responses.
        parts: folder where finished data are kept and taken from; None: nowhere.
        export: file to which claims and splits are written for the rival; nothing else is done.
        rival: file of the claims that the rival keeps of these; None: it is left out.
        seed: seed of the halves.

    Raises:
        InputError: for unknown data, or a file of other splits.
    """
    known = (*ANSWERED, *EMBEDDED, SATURATED)
    for name in data:
        if name not in known:
            raise InputError(unknown_name(f"--data {name}", name, known))
    named_data = {name: claims for name in data if (claims := claims_of(name)) is not None}
    absent = [name for name in data if name not in named_data]
    halves = {name: halves_of(each, splits, seed) for name, each in named_data.items()}
    if export is not None:
        write_text(export, exported(named_data, halves, confidence))
        return Artifacts(remarks=(f"The claims and splits are in {export}.",))
    masks: Any = {} if rival is None else decode(read_text(rival), rival)
    rows: list[pd.DataFrame] = []
    for name, claims in named_data.items():
        part = None if parts is None else parts / f"{name.replace(' ', '-')}.csv"
        rows.append(own_rows(claims, halves[name], confidence, seed, part).assign(data=name))
        of_rival = [
            {"method": method, **outcomes_of(claims, halves[name][: len(each)], each), "data": name}
            for method, each in masks.get(name, {}).items()
        ]
        rows += [data_frame(of_rival)] if of_rival else []
    return Artifacts({"promises": promises_table(rows, absent, confidence, splits)})


def promises_table(
    rows: list[pd.DataFrame], absent: list[str], confidence: float, splits: int
) -> Table:
    """The table of all data."""
    import pandas as pd

    frame = pd.concat(rows, ignore_index=True)
    columns = columns_as(
        "method | faultless:3 no false claim | worst:3 in the worst group | empty:3 empty | "
        "kept:3 claims kept | kept_true:3 true claims kept | splits:0 halves"
    )
    caption = (
        f"Shares of new responses without a false claim among the kept ones, where {confidence:g} "
        "is promised, and of claims kept."
    )
    note = (
        f"Means over {splits} random halves, for the rival over the first of these: calibrated on "
        "one, tried on the other. Groups are "
        "thirds of the responses by number of claims, in the simulation the two kinds."
    )
    if absent:
        where = f"datasets.self-judged in {user_data().where or DATA_FILE}"
        note += f" Without {' and '.join(absent)}: {where} names no file of that name."
    return Table(frame, columns, caption, group="data", note=note)


# ----------------------------------------------------------------------------------------- data


def claims_of(name: str) -> LabeledClaims | None:
    """The labeled claims of a set of data; None of a file that the user does not name."""
    if name == SATURATED:
        return saturated_claims(400, 0)
    if name in EMBEDDED:
        return embedded_claims(name)
    path = dict(user_data().places("self-judged")).get(name)
    if not isinstance(path, Path):
        return None
    return answered_claims(path, in_steps=name == "MATH")


def answered_claims(path: Path, *, in_steps: bool) -> LabeledClaims:
    """Claims of a file of tatsu-lab/conformal-factual-lm, with its two scores.

    The frequency score, agreements minus contradictions of five samples, is scaled to [0, 1].

    Args:
        path: the file.
        in_steps: whether each claim depends on the one before.
    """
    content: Any = decode(read_text(path), path)
    answers = [answer["claims"] for answer in content["data"] if answer["claims"]]
    claims = [claim for answer in answers for claim in answer]
    values = [(claim["gpt-score"], (claim["frequency-score"] + 5) / 10) for claim in claims]
    sizes = np.array([len(answer) for answer in answers])
    return LabeledClaims(
        np.array(values),
        np.array([float(claim["annotation"].strip() == "Y") for claim in claims]),
        np.repeat(np.arange(sizes.size), sizes),
        by_length(sizes),
        ("confidence", "frequency"),
        steps(sizes) if in_steps else None,
    )


def embedded_claims(name: str) -> LabeledClaims:
    """Labeled claims of embedded biographies: their probability, and how early they stand."""
    graphs = [
        graph
        for graph in datasets.with_claim_relations(datasets.load(name))
        if any(atom.label is not None for atom in graph.atoms)
    ]
    atoms = [(graph, number) for graph in graphs for number in range(len(graph.atoms))]
    labeled = np.array([graph.atoms[number].label is not None for graph, number in atoms])
    early = np.array([1 - (number + 0.5) / len(graph.atoms) for graph, number in atoms])
    y = np.array([float(bool(graph.atoms[number].label)) for graph, number in atoms])
    responses = np.repeat(np.arange(len(graphs)), [len(graph.atoms) for graph in graphs])
    return LabeledClaims(
        np.column_stack([probabilities(graphs), early])[labeled],
        y[labeled],
        responses[labeled],
        by_length(np.bincount(responses[labeled])),
        ("probability", "order"),
        entailments(graphs).of(labeled),
    )


def probabilities(graphs: list[FactGraph]) -> Floats:
    """Probability of every claim, in order: the share of Yes among votes, or a posterior."""
    votes = [graph.metadata.get("votes", {}).get(a.id) for graph in graphs for a in graph.atoms]
    if all(votes):
        return np.array([each.count("Y") / len(each) for each in votes])
    return claim_posteriors([variant(graph, "FR1") for graph in graphs], "implication")


def entailments(graphs: list[FactGraph]) -> Dependencies:
    """Edges from each claim to the claims of its response that entail it."""
    claims: list[int] = []
    on: list[int] = []
    first = 0
    for graph in graphs:
        position = {name: first + number for number, name in enumerate(graph.atom_ids)}
        for claim, others in entailing_claims(graph).items():
            claims += [position[claim]] * len(others)
            on += [position[other] for other in others]
        first += len(graph.atoms)
    return Dependencies(np.array(claims, dtype=np.int64), np.array(on, dtype=np.int64))


def steps(sizes: Integers) -> Dependencies:
    """Edges from each claim of a response to the one before."""
    starts = np.cumsum(sizes) - sizes
    claims = np.setdiff1d(np.arange(sizes.sum()), starts)
    return Dependencies(claims, claims - 1)


def by_length(sizes: Integers) -> tuple[str, ...]:
    """Third of the responses, by number of claims, to which each belongs."""
    edges = np.quantile(sizes, [1 / 3, 2 / 3])
    return tuple(GROUPS[number] for number in np.digitize(sizes, edges, right=True).tolist())


def saturated_claims(n: int, seed: int) -> LabeledClaims:
    """Simulated responses of eight claims, of which a tenth has the probability .99 throughout.

    A fifth of the claims of these is true. The probabilities of the others are calibrated.
    """
    from scipy.special import expit

    generator = np.random.default_rng(seed)
    saturated = np.arange(n) % 10 == 0
    log_odds = generator.normal(1.0, 0.7, n)[:, None] + generator.normal(0, 1.8, (n, 8))
    p = np.clip(np.round(expit(log_odds), 3), 0.01, 0.99)
    y = generator.random((n, 8)) < np.where(saturated[:, None], 0.2, expit(log_odds))
    p[saturated] = 0.99
    return LabeledClaims(
        p.reshape(-1, 1),
        y.ravel().astype(np.float64),
        np.repeat(np.arange(n), 8),
        tuple("saturated" if each else "other" for each in saturated.tolist()),
        ("probability",),
    )


# --------------------------------------------------------------------------------------- splits


def halves_of(claims: LabeledClaims, splits: int, seed: int) -> list[list[int]]:
    """First half of the responses in each split."""
    generator = np.random.default_rng(seed)
    n = claims.n_responses
    return [sorted(generator.permutation(n)[: n // 2].tolist()) for _ in range(splits)]


def exported(
    claims: Mapping[str, LabeledClaims], halves: Mapping[str, list[list[int]]], confidence: float
) -> str:
    """Claims and splits as JSON, for the rival."""
    import json

    data = {}
    for name, each in claims.items():
        if len(each.names) < 2:
            continue
        members = [np.flatnonzero(each.responses == n) for n in range(each.n_responses)]
        data[name] = {
            "names": each.names,
            "splits": halves[name],
            "responses": [
                {"values": each.values[inside].T.tolist(), "y": each.y[inside].tolist()}
                for inside in members
            ],
        }
    return json.dumps({"confidence": confidence, "data": data})


def own_rows(
    claims: LabeledClaims,
    halves: list[list[int]],
    confidence: float,
    seed: int,
    part: Path | None = None,
) -> pd.DataFrame:
    """A row for each of our methods that these data allow.

    Args:
        claims: the claims.
        halves: first halves of the splits.
        confidence: the promise.
        seed: seed of the parts that choose scores.
        part: file of these rows, which is read if it exists and written if not.

    Raises:
        InputError: if the file is of other splits.
    """
    import pandas as pd

    if part is not None and part.exists():
        rows = pd.read_csv(part)
        if {*rows["splits"]} != {len(halves)}:
            raise InputError(
                f"{part}: it was made with other --splits; name another folder with --parts"
            )
        return rows
    made = []
    for method in METHODS:
        if method.n_scores > len(claims.names) or (method.depends and claims.dependencies is None):
            continue
        tell(f"filters {method.title}")
        masks = [filtered(claims, first, method, confidence, seed) for first in halves]
        made.append({"method": method.title, **outcomes_of(claims, halves, masks)})
    rows = data_frame(made)
    if part is not None:
        part.parent.mkdir(parents=True, exist_ok=True)
        rows.to_csv(part, index=False)
    return rows


def filtered(
    claims: LabeledClaims, first: list[int], method: Method, confidence: float, seed: int
) -> list[list[bool]]:
    """Kept claims of each response of the second half, calibrated on the first."""
    calibrating = np.isin(claims.responses, first)
    groups: list[Group] = [
        (claims.groups[response],) if method.by_group else ()
        for response in claims.responses.tolist()
    ]
    names = claims.names[: method.n_scores]
    values = claims.values[:, : method.n_scores]
    scored = ScoredClaims(values, claims.responses.tolist(), groups, names=names)
    if method.depends and claims.dependencies is not None:
        scored = replace(scored, dependencies=claims.dependencies)
    calibrator = fit_calibrator(
        scored.of(calibrating),
        claims.y[calibrating],
        names,
        Promise.of(1.0, confidence),
        n_splits=1,
        seed=seed,
    )
    kept = calibrator.keep(scored.of(~calibrating))
    responses = claims.responses[~calibrating]
    return [kept[responses == response].tolist() for response in np.unique(responses).tolist()]


def outcomes_of(
    claims: LabeledClaims, halves: list[list[int]], masks: list[list[list[bool]]]
) -> dict[str, Any]:
    """Shares of responses and claims over all second halves.

    Raises:
        InputError: if the masks are those of other splits.
    """
    if not masks or len(masks) != len(halves):
        raise InputError("--rival: it was made with other --splits; export and filter again")
    faultless = np.zeros(claims.n_responses)
    tried = np.zeros(claims.n_responses)
    n_empty = n_kept = n_true = n_claims = n_all_true = 0.0
    labels = [claims.y[claims.responses == n] for n in range(claims.n_responses)]
    for first, kept in zip(halves, masks, strict=True):
        second = sorted({*range(claims.n_responses)} - {*first})
        for response, mask in zip(second, kept, strict=True):
            inside = np.array(mask, dtype=bool)
            y = labels[response]
            if inside.size != y.size:
                raise InputError("--rival: it was made of other claims; export and filter again")
            tried[response] += 1
            faultless[response] += bool((y[inside] == 1).all())
            n_empty += not inside.any()
            n_kept += inside.sum()
            n_true += y[inside].sum()
            n_claims += y.size
            n_all_true += y.sum()
    of_group = np.array(claims.groups)
    return {
        "faultless": faultless.sum() / tried.sum(),
        "worst": min(
            faultless[of_group == group].sum() / tried[of_group == group].sum()
            for group in dict.fromkeys(claims.groups)
        ),
        "empty": n_empty / tried.sum(),
        "kept": n_kept / n_claims,
        "kept_true": n_true / n_all_true,
        "splits": len(halves),
    }


if __name__ == "__main__":
    answer_question(kept_groups, __file__)
