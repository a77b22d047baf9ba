"""Resistance of a score to gaming: true sentences appended to responses, with and without Core.

from experiments.evaluators.gaming import Guard, gains, gaming
scores = gaming(graphs, {"Core": Guard(CoreChoices(LexicalRelations()))}, counts=(5, 20))
gains(scores)

Source: Core, section 5.3, figure 4 and table 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibration.claims.counts import f1_at_k_prime
from calibration.intervals import Scale, mean_interval
from calibration.scores.measures import DECISION_TOLERANCE, verdicts
from experiments.evaluators.core_choices import CoreChoices, selected
from experiments.evaluators.padding import Padded, Padder, corrupted, paddings_of
from experiments.findings.table import data_frame, named
from factormodels.claims import RelationKind
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import (
    Judgment,
    Missing,
    RelationModel,
    TextPair,
)
from factormodels.extraction.stages.assessors import assess, posteriors
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.selection import Core, restricted
from factormodels.selection.atom_relations import relate_atoms
from factormodels.variants import merge_duplicate_contexts, normalized_text
from factormodels.variants import variant as variant_of
from inference import infer

if TYPE_CHECKING:
    import pandas as pd

Assessor = Callable[[FactGraph], Sequence[bool]]
"""Function that returns, for each atom of a response in order, True if it is supported.

It may omit atoms that do not count, as an assessor with relations between atoms does.
"""

NO_GUARD = "no guard"
"""Guard of the rows in which every claim counts."""

VERSIONS = ("clean", "corrupted", "swapped", "alone")
"""Padded text: an unchanged response; a response with half of its true claims denied, or with
exchanged names and numbers; or nothing, so that the response is only padding.
"""

GAMMA = 0.1
"""Gamma of F1@K': with four claims too many or too few, recall is 0.80."""

COLUMNS = (
    *("response", "version", "padding", "appended", "guard", "assessor"),
    *("claims", "counted", "supported"),
)


@dataclass(frozen=True)
class Guard:
    """Guard between a response and its score.

    Attributes:
        choices: Core's choices for selecting claims.
        templates_known: True if the relation model ignores the templates of padding, like a perfect
            judge of paraphrases; False if it judges the literal words, as for an unseen response.
    """

    choices: CoreChoices
    templates_known: bool = False

    def core(self, graph: FactGraph, padding: Padded) -> Core:
        """Core for a response and its padded versions."""
        if not self.templates_known:
            return self.choices.core(graph)
        known = CanonicalRelations(self.choices.relations, padding.canonical)
        return replace(self.choices, relations=known).core(graph)


@dataclass(frozen=True)
class CanonicalRelations:
    """Relation model that ignores the templates and judges only the content.

    Texts with the same content entail each other; for other texts the model judges their content.

    Attributes:
        model: the relation model.
        canonical: content by text, as in `Padded.canonical`; any other text is its own content.
    """

    model: RelationModel
    canonical: Mapping[str, str]

    @property
    def name(self) -> str:
        """The model's name with a suffix."""
        return f"{self.model.name}, templates known"

    def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
        """Return an answer per pair, in order."""
        stated = [self._canonical(pair) for pair in pairs]
        # Many pairs consist of few texts: each text is normalized once.
        texts = dict.fromkeys(text for pair in stated for text in (pair.premise, pair.hypothesis))
        plain = {text: normalized_text(text) for text in texts}
        same = [plain[pair.premise] == plain[pair.hypothesis] for pair in stated]
        # Ask only about these: pairs with the same content need no judgment.
        different = [pair for pair, alike in zip(stated, same, strict=True) if not alike]
        answers = iter(self.model.judge(different) if different else [])
        entailed = Judgment(RelationKind.ENTAILMENT, 1.0, "recorded", (1.0, 0.0, 0.0))
        return [entailed if alike else next(answers) for alike in same]

    def _canonical(self, pair: TextPair) -> TextPair:
        """Pair with the canonical content in place of its texts."""
        premise = self.canonical.get(pair.premise, pair.premise)
        hypothesis = self.canonical.get(pair.hypothesis, pair.hypothesis)
        if premise is pair.premise and hypothesis is pair.hypothesis:
            return pair
        return replace(pair, premise=premise, hypothesis=hypothesis)


def by_labels(graph: FactGraph) -> list[bool]:
    """The human label of each atom; an unlabeled atom is not supported."""
    return [atom.label is True for atom in graph.atoms]


def by_inference(variant: str, relations: RelationModel | None = None) -> Assessor:
    """FactReasoner as an assessor, by exact inference.

    Args:
        variant: FR1, FR2 or FR3.
        relations: model that predicts the relations; None for the relations of the graph.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = graph
        if relations is not None:
            # Predict relations for each version of a response, as for a new response.
            related = with_relations(merge_duplicate_contexts(graph), relations, variant)
        return _supported(variant_of(related, variant))

    return assessor


def by_related_atoms(variant: str, relations: RelationModel) -> Assessor:
    """FactReasoner with relations between atoms: equivalent atoms count once.

    Args:
        variant: FR1, FR2 or FR3, by the recorded relations.
        relations: model of entailment between atoms.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = relate_atoms(variant_of(graph, variant), relations)
        supported = _supported(related.graph)
        # Among equal atoms, the representative represents itself.
        return [supported[k] for k, atom in enumerate(related.representative) if atom == k]

    return assessor


def by_prompt(name: str, model: LanguageModel, missing: Counter[str] | None = None) -> Assessor:
    """A prompt-based assessor; an atom without a verdict is not supported.

    Args:
        name: a name of `factormodels.extraction.asking.table.ASSESSORS`.
        model: the language model that judges.
        missing: counter of missing verdicts, by the assessor's name.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        judged = assess(graph, name, model) if graph.atoms else ()
        if missing is not None:
            missing[name] += sum(bool(verdict.missing) for verdict in judged)
        p = posteriors(judged)
        # Use the same tolerance as for other assessors, so that they treat 1/2 alike.
        return [p.get(atom, 0.0) > 0.5 + DECISION_TOLERANCE for atom in graph.atom_ids]

    return assessor


def verified(graphs: Sequence[FactGraph], assessor: Assessor) -> tuple[FactGraph, ...]:
    """Responses with the verdicts of an assessor as labels.

    Responses without a supported claim are left out, because padding repeats claims that are true.

    Args:
        graphs: the responses; their labels are ignored.
        assessor: the assessor.
    """
    labeled = []
    for graph in graphs:
        judged = zip(graph.atoms, assessor(graph), strict=True)
        atoms = tuple(replace(atom, label=supported) for atom, supported in judged)
        if any(atom.label for atom in atoms):
            labeled.append(replace(graph, atoms=atoms))
    return tuple(labeled)


def gaming(
    graphs: Sequence[FactGraph],
    guards: Mapping[str, Guard],
    *,
    assessors: Mapping[str, Assessor] | None = None,
    paddings: Mapping[str, Padder] | None = None,
    counts: Sequence[int] = (20,),
    versions: Sequence[str] = ("clean", "alone"),
    corrupt: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Scores of padded responses, a row per response, version, padding, count, guard and assessor.

    Columns: response, its id; version, of `VERSIONS`; padding, its name; appended, the number of
    sentences, from 0 (without a row for an empty response); guard, `NO_GUARD` or a name of
    `guards`; assessor; claims, the number of claims of the unpadded response; counted, the number
    of claims that count; supported, the number of these that the assessor supports; precision, the
    share supported, 0 if nothing counts; f1, F1@K' with `GAMMA` and with K' the number of claims of
    the unpadded response, so that padding does not raise its own target.

    A padding with fewer sentences than a count has no row for that count.

    Args:
        graphs: responses with texts and labels, each with a claim labeled true; `verified` turns
            verdicts into labels.
        guards: guards by name, in addition to `NO_GUARD`.
        assessors: assessors by name; None for the labels.
        paddings: paddings by name; None for `paddings_of` (templates and other responses).
        counts: numbers of appended sentences, in addition to 0.
        versions: versions to pad; clean responses are always included.
        corrupt: share of the true claims that are turned false in "corrupted" and "swapped".
        seed: seed of the corruption.

    Raises:
        InputError: without responses, for an unknown version, a count below 0 or a share outside
            [0, 1], if two responses have the same id, or if no claim of a response is labeled
            true.
    """
    _check(graphs, guards, counts, versions)
    assessors = {"human labels": by_labels} if assessors is None else assessors
    paddings = paddings_of(graphs) if paddings is None else paddings
    lengths, wanted = sorted({0, *counts}), dict.fromkeys(("clean", *versions))
    rows: list[tuple[Any, ...]] = []
    for number, graph in enumerate(graphs):
        # The versions and paddings of a response share most of their pairs.
        remembering = {
            name: replace(guard, choices=guard.choices.remembering())
            for name, guard in guards.items()
        }
        wholes = {"clean": graph, "alone": graph}
        if "corrupted" in versions:
            # A seed for each response, so that the draws do not repeat.
            wholes["corrupted"] = corrupted(graph, corrupt, seed + number)
        if "swapped" in versions:
            wholes["swapped"] = corrupted(graph, corrupt, seed + number, graphs)
        for (name, padder), version in product(paddings.items(), wanted):
            whole = wholes[version]
            padding = padder(whole, lengths[-1]) if lengths[-1] else Padded(whole)
            cores = {each: guard.core(whole, padding) for each, guard in remembering.items()}
            for appended, view in _views(whole, padding, lengths, version):
                for guard, core in ((NO_GUARD, None), *cores.items()):
                    counting = view if core is None else selected(view, core)
                    for assessor, judge in assessors.items():
                        judgments = list(judge(counting))
                        key = (graph.id, version, name, appended, guard, assessor)
                        rows.append((*key, len(graph.atoms), len(judgments), sum(judgments)))
    scores = data_frame(rows, [*COLUMNS])
    counted, supported = scores["counted"], scores["supported"]
    scores["precision"] = supported / counted.where(counted > 0, 1)
    scores["f1"] = f1_at_k_prime(supported, counted - supported, scores["claims"], GAMMA)
    return scores


def curves(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean precision by the number of appended sentences (Core, figure 4), of `gaming`.

    Columns: padding; version; assessor; guard; appended; precision, mean over responses; raised,
    the number of responses whose precision exceeds the precision of the clean, unpadded response
    under the same guard; responses, their number.
    """
    keys = ["padding", "version", "assessor", "guard"]
    points = scores[scores["version"] != "alone"].copy()
    clean = points[(points["version"] == "clean") & (points["appended"] == 0)]
    same = ["response", "padding", "assessor", "guard"]
    before = points.merge(clean[[*same, "precision"]], on=same, suffixes=("", "_clean"))
    # A difference from rounding does not count as raised.
    points["raised"] = (before["precision"] > before["precision_clean"] + 1e-12).to_numpy()
    for key in keys:
        # In order of appearance, not alphabetical.
        points[key] = points[key].astype("category").cat.set_categories(points[key].unique())
    means = points.groupby([*keys, "appended"], observed=True).agg(
        precision=("precision", "mean"), raised=("raised", "sum"), responses=("raised", "size")
    )
    return means.reset_index().astype(dict.fromkeys(keys, object))


def by_kind(scores: pd.DataFrame, appended: int | None = None) -> pd.DataFrame:
    """Mean scores of normal and padded responses (Core, table 4), of `gaming`.

    Columns: assessor; guard; kind, "normal", or a padding "appended" or "alone"; counted, mean
    number of claims that count; precision and f1, means over responses.

    The paper has only whole responses of padding ("alone"); this function adds padding appended to
    a normal response. A repeated true claim alone is a single claim after selection, with precision
    1: precision cannot detect it, F1@K' can.

    Args:
        scores: output of `gaming`, with the versions "clean" and "alone".
        appended: number of sentences of padding; None for the largest number.
    """
    kinds = _kinds(scores, appended)
    keys = ["assessor", "guard", "kind"]
    for key in keys:
        kinds[key] = kinds[key].astype("category").cat.set_categories(kinds[key].unique())
    means = kinds.groupby(keys, observed=True)[["counted", "precision", "f1"]].mean()
    return means.reset_index().astype(dict.fromkeys(keys, object))


def gains(scores: pd.DataFrame, appended: int | None = None) -> pd.DataFrame:
    """Gains of paddings in mean precision under each guard, paired by response, from `gaming`.

    Columns: guard; assessor; kind, a padding "appended" or "alone"; plain, mean gain over the
    normal response without a guard; core, the mean gain with the guard; kept_off, plain minus core;
    each with a 95% interval over responses (Student's t) in NAME_lower and NAME_upper, NaN if every
    response gains the same; responses, their number.

    Args:
        scores: output of `gaming`, with a guard.
        appended: number of sentences of padding; None for the largest number.
    """
    kinds = _kinds(scores, appended)
    responses = kinds["response"].unique()
    rows = []
    for (assessor, kind), part in kinds.groupby(["assessor", "kind"], sort=False):
        if kind == "normal":
            continue
        normal = kinds[(kinds["assessor"] == assessor) & (kinds["kind"] == "normal")]
        gained = (_wide(part, responses) - _wide(normal, responses)).dropna()
        for guard in gained.columns.drop(NO_GUARD):
            plain, guarded = gained[NO_GUARD].to_numpy(), gained[guard].to_numpy()
            values = {"plain": plain, "core": guarded, "kept_off": plain - guarded}
            row: dict[str, Any] = {"guard": guard, "assessor": assessor, "kind": kind}
            for name, gain in values.items():
                row |= named(name, mean_interval(gain, scale=Scale.NUMBER))
            rows.append({**row, "responses": plain.size})
    order = list(dict.fromkeys(scores["guard"]))
    return data_frame(sorted(rows, key=lambda row: order.index(row["guard"])))


def _wide(rows: pd.DataFrame, responses: NDArray[Any]) -> pd.DataFrame:
    """Precision of each response (rows) under each guard (columns), in the order of `responses`."""
    wide = rows.pivot_table(index="response", columns="guard", values="precision", sort=False)
    return wide.reindex(responses)


def _kinds(scores: pd.DataFrame, appended: int | None) -> pd.DataFrame:
    """Rows of clean and "alone" responses at 0 and at one count, with their kind."""
    count = scores["appended"].max() if appended is None else appended
    if count < 1 or not (scores["appended"] == count).any():
        raise InputError(
            f"no scores have {count} appended sentences; give a number of `counts`, from 1"
        )
    rows = scores[scores["version"].isin(("clean", "alone"))].copy()
    how = rows["version"].map({"clean": "appended", "alone": "alone"})
    rows["kind"] = (rows["padding"] + ", " + how).where(rows["appended"] > 0, "normal")
    rows = rows[rows["appended"].isin((0, count))]
    # A normal response is the same for every padding.
    return rows.drop_duplicates(["response", "guard", "assessor", "kind"])


def _views(
    whole: FactGraph, padding: Padded, lengths: Sequence[int], version: str
) -> Iterator[tuple[int, FactGraph]]:
    """Yield the number of appended sentences with the padded response."""
    ids, n_before = padding.graph.atom_ids, len(whole.atoms)
    first = n_before if version == "alone" else 0
    for appended in lengths:
        if n_before + appended > len(ids) or (version == "alone" and not appended):
            continue
        yield appended, restricted(padding.graph, ids[first : n_before + appended])


def _supported(graph: FactGraph) -> list[bool]:
    p: NDArray[np.float64] = infer(graph.to_factor_graph()).marginals.of_state(1, graph.atom_ids)
    return [bool(verdict > 0) for verdict in verdicts(p, DECISION_TOLERANCE)]


def _check(
    graphs: Sequence[FactGraph],
    guards: Mapping[str, Guard],
    counts: Sequence[int],
    versions: Sequence[str],
) -> None:
    if not graphs:
        raise InputError("there are no responses to pad; give at least one")
    if len({graph.id for graph in graphs}) < len(graphs):
        raise InputError("two responses have the same id; give each its own id")
    if NO_GUARD in guards:
        raise InputError(f"the guard {NO_GUARD!r} is reserved; choose another name")
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InputError(f"the number of appended sentences is {count!r}; give 0 or more")
    for version in versions:
        if version not in VERSIONS:
            raise InputError(unknown_name(f"the version {version!r}", version, VERSIONS))
