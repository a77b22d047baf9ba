"""How scores stand up to padding: curves and tables with and without Core, for any assessor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibration.claims.counts import f1_at_k_prime
from calibration.intervals import Scale, mean_interval
from calibration.scores.measures import DECISION_TOLERANCE, verdicts
from experiments.evaluators.gaming import (
    CORRUPTIONS,
    CanonicalRelations,
    Padded,
    Padding,
    corrupted,
    padded_by_model,
    padded_from,
    padding_alone,
    paddings_of,
    subject_of,
)
from experiments.findings.table import ENDS, Column, Table, data_frame, interval_column
from factormodels.errors import InputError, unknown_name
from factormodels.extraction.language_model import LanguageModel
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.extraction.stages.assessors import ASSESSORS, assess, posteriors
from factormodels.extraction.stages.relations import with_relations
from factormodels.fact_graph import FactGraph
from factormodels.nouns import counted
from factormodels.selection import (
    CachedRelations,
    Core,
    Informativeness,
    SolverSettings,
    Weighting,
    read_templates,
    restricted,
    select,
    subclaims_of,
    templates_of,
    uniform,
)
from factormodels.selection.atom_relations import relate_atoms
from factormodels.selection.program import EdgeRule
from factormodels.selection.weights import EPSILON
from factormodels.variants import merge_duplicate_contexts
from factormodels.variants import variant as variant_of
from inference import infer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Assessor = Callable[[FactGraph], Sequence[bool]]
"""Says of each atom of a response, in order, whether it is supported.

It may leave out atoms that do not count, as one that relates atoms to each other does.
"""


def by_labels(graph: FactGraph) -> list[bool]:
    """The human label of each atom; one without a label is not supported."""
    return [atom.label is True for atom in graph.atoms]


def verified(graphs: Sequence[FactGraph], assessor: Assessor) -> tuple[FactGraph, ...]:
    """Responses whose claims have the verdicts of an assessor for labels.

    Those of which it supports no claim are left out: what is appended to a response has to be true
    of it.

    Args:
        graphs: the responses; labels that they have play no part.
        assessor: says of every atom, in order, whether it is supported.
    """
    found = []
    for graph in graphs:
        said = zip(graph.atoms, assessor(graph), strict=True)
        atoms = tuple(replace(atom, label=supported) for atom, supported in said)
        if any(atom.label for atom in atoms):
            found.append(replace(graph, atoms=atoms))
    return tuple(found)


def labelled_by(
    graphs: Sequence[FactGraph],
    verifier: str | None,
    assessors: Mapping[str, Assessor],
    source: str,
) -> tuple[tuple[FactGraph, ...], str, str]:
    """The responses with labels, whose they are, and what is to be said of that.

    Args:
        graphs: the responses.
        verifier: the assessor whose verdicts are taken for labels; None: people's, if there are
            any.
        assessors: by name.
        source: what the responses are called.

    Raises:
        InputError: for an unknown assessor, or one that supports no claim of any response.
    """
    if verifier is None:
        if any(atom.label is not None for graph in graphs for atom in graph.atoms):
            return tuple(graphs), "human labels", ""
        recorded = any(graph.relations for graph in graphs)
        verifier = "FR2" if recorded else next(name for name in assessors if "FR2, " in name)
    if verifier not in assessors:
        raise InputError(unknown_name(f"--verifier {verifier!r}", verifier, assessors))
    kept = verified(graphs, assessors[verifier])
    if not kept:
        raise InputError(
            f"{source}: {verifier} supports no claim of it, so nothing true can be appended; give "
            "responses with evidence (`factormodels assess --documents FOLDER --out FOLDER`), or "
            "another --verifier"
        )
    left_out = len(graphs) - len(kept)
    without = f"; {counted(left_out, 'response')} of which it supports no claim left out"
    remark = f"What {verifier} supports counts as true{without if left_out else ''}."
    return kept, f"verdicts of {verifier}", remark


def assessors_by_name(
    relations: RelationModel, model: LanguageModel | None, missing: Counter[str]
) -> dict[str, Assessor]:
    """The assessors that say of every claim whether it is supported, by name.

    Args:
        relations: the relation model of "FR2, NAME"; the others read what is recorded.
        model: the language model of the prompt-based assessors; None leaves them out.
        missing: where their missing verdicts are counted, by name.
    """
    prompted = (
        {} if model is None else {each: by_prompt(each, model, missing) for each in ASSESSORS}
    )
    return {
        **{variant: by_inference(variant) for variant in ("FR1", "FR2", "FR3")},
        f"FR2, {relations.name}": by_inference("FR2", relations),
        **prompted,
    }


def by_inference(variant: str, relations: RelationModel | None = None) -> Assessor:
    """FactReasoner as an assessor, by exact inference.

    Args:
        variant: FR1, FR2 or FR3.
        relations: predicts the relations; None takes those of the graph.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = graph
        if relations is not None:
            # Predicted anew for each version of a response, as it would be for one never seen
            # before.
            related = with_relations(merge_duplicate_contexts(graph), relations, variant)
        seen = variant_of(related, variant)
        posterior = infer(seen.to_factor_graph())
        p: NDArray[np.float64] = posterior.marginals.of_state(1, seen.atom_ids)
        return [bool(v > 0) for v in verdicts(p, DECISION_TOLERANCE)]

    return assessor


def by_related_atoms(variant: str, relations: RelationModel) -> Assessor:
    """FactReasoner with atoms related to each other: of atoms that say the same, one counts.

    Args:
        variant: FR1, FR2 or FR3, by the relations that are recorded.
        relations: says which atom entails which.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        if not graph.atoms:
            return []
        related = relate_atoms(variant_of(graph, variant), relations)
        posterior = infer(related.graph.to_factor_graph())
        p: NDArray[np.float64] = posterior.marginals.of_state(1, graph.atom_ids)
        supported = verdicts(p, DECISION_TOLERANCE) > 0
        # Of atoms that say the same, the one that represents them is its own representative.
        return [bool(supported[k]) for k, own in enumerate(related.representative) if own == k]

    return assessor


def by_prompt(name: str, model: LanguageModel, missing: Counter[str] | None = None) -> Assessor:
    """A prompt-based assessor; an atom without a verdict is not supported.

    Args:
        name: a name of `factormodels.extraction.stages.assessors.ASSESSORS`.
        model: the language model that judges.
        missing: where verdicts that are missing are counted, by the assessor's name.
    """

    def assessor(graph: FactGraph) -> list[bool]:
        found = assess(graph, name, model) if graph.atoms else ()
        if missing is not None:
            missing[name] += sum(bool(verdict.missing) for verdict in found)
        p = posteriors(found)
        # The tolerance is that of the other assessors, so that 1/2 counts alike in all.
        return [p.get(atom, 0.0) > 0.5 + DECISION_TOLERANCE for atom in graph.atom_ids]

    return assessor


_CURVES = (
    *("assessor", "core", "response", "padding", "appended", "precision", "raised"),
    "responses",
)
GAINS: Mapping[str, str] = {
    "plain": "gain without Core",
    "core": "gain with Core",
    "kept_off": "kept off by Core",
}
"""What padding gains in precision, and what tables call it."""

_GAINS = (
    *("assessor", "kind"),
    *(f"{gain}{end}" for gain in GAINS for end in ENDS),
    "responses",
)

WEIGHTS = ("informativeness", "uniform")

GAMMA = 0.1
"""Gamma of F1@K' in tables: four claims too many or too few leave a recall of 0.80."""


@dataclass(frozen=True)
class CoreChoices:
    """How selection is set up for each response.

    Attributes:
        relations: the relation model that judges claims.
        weights: "informativeness", with the bleached claims of the response's domain, or "uniform".
        rule: see `factormodels.selection.conflicts_of`.
        templates_known: whether the relation model sees through the templates of padding, as a
            perfect judge of paraphrases would; otherwise it judges the words that are there, as any
            judge of a response that it has never seen must.
        domain: domain of the bleached claims; None takes that of `subject_of`.
        templates: file of bleached claims by domain; None takes the project's.
        solver: limits of the solver.
        share: least share of faithful claims among the chosen; None asks for none.
        epsilon: what is taken off each informativeness.
        cap: the relation model whose answer caps it; None takes `relations`.
        graded: the relation model that gives P(claim given a bleached one), as Core wants it; None
            takes `relations`.

    Raises:
        InputError: for unknown weights, or templates that do not have the domain.
    """

    relations: RelationModel
    weights: str = "informativeness"
    rule: EdgeRule = "either"
    templates_known: bool = False
    domain: str | None = None
    templates: Path | None = None
    solver: SolverSettings = field(default_factory=SolverSettings)
    share: float | None = None
    epsilon: float = EPSILON
    cap: RelationModel | None = None
    graded: RelationModel | None = None

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise InputError(
                f"the weights {self.weights!r} are unknown; use one of {', '.join(WEIGHTS)}"
            )

    def core(self, graph: FactGraph, padding: Padded | None = None) -> Core:
        """Core for a response and its padded versions."""
        model = self.relations
        if self.templates_known and padding is not None:
            model = CanonicalRelations(model, padding.canonical)
        # Weights and exclusions ask about the same pairs.
        cached = CachedRelations(model)
        weighting: Weighting = uniform
        if self.weights == "informativeness":
            informing = cached if self.graded is None else CachedRelations(self.graded)
            # Who excludes whom also says what a bleached claim entails, beside a graded model.
            capping = self.cap or (None if self.graded is None else cached)
            weighting = Informativeness(
                informing, self._templates(graph), cap=capping, epsilon=self.epsilon
            )
        return Core(cached, weighting, self.rule, share=self.share, solver=self.solver)

    def remembering(self) -> CoreChoices:
        """The same choices, whose relation models are asked about each pair once.

        For one response: its versions and paddings share most of their pairs, different responses
        few, and what is remembered of all would grow with their number.
        """
        return replace(
            self,
            relations=CachedRelations(self.relations),
            cap=None if self.cap is None else CachedRelations(self.cap),
            graded=None if self.graded is None else CachedRelations(self.graded),
        )

    def _templates(self, graph: FactGraph) -> tuple[str, ...]:
        domain = self.domain or subject_of(graph).domain
        if self.templates is None:
            return templates_of(domain)
        own = read_templates(self.templates)
        if domain not in own:
            raise InputError(
                f"{self.templates}: it has no bleached claims of the domain {domain!r}; name one "
                f"of {', '.join(own)}"
            )
        return own[domain]


@dataclass(frozen=True)
class Score:
    """The score of one response.

    Attributes:
        counted: number of claims that count.
        supported: number of these that the assessor supports.
    """

    counted: int
    supported: int

    @property
    def precision(self) -> float:
        """The share that is supported; 0 if nothing counts."""
        return self.supported / self.counted if self.counted else 0.0


def selected(graph: FactGraph, core: Core) -> FactGraph:
    """The response with the claims that count: what an assessor then sees."""
    # Bleached claims are filled with the subject; topics of the embedded responses are subject
    # areas.
    topic = subject_of(graph).name
    claims = [replace(claim, topic=topic) for claim in subclaims_of(graph)]
    return restricted(graph, [claim.id for claim in select(claims, core).chosen])


def score(graph: FactGraph, assessor: Assessor) -> Score:
    """The score of a response."""
    found = list(assessor(graph))
    return Score(len(found), sum(found))


def robustness_curves(
    graphs: Sequence[FactGraph],
    assessors: Mapping[str, Assessor],
    choices: CoreChoices,
    *,
    counts: Sequence[int] = (0, 5, 10, 15, 20),
    corrupt: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Precision against the number of appended sentences (Core, figure 4).

    Columns: assessor; core, whether selection went before; response, what was padded: "clean",
    "corrupted" (some claims denied) or "swapped" (names and numbers in them exchanged); padding, of
    `paddings_of`; appended, the number of sentences; precision, mean over responses; raised, the
    number of responses whose precision is above that of the clean, unpadded one; responses.

    Args:
        graphs: labelled responses with texts, each with a claim labelled true.
        assessors: by name.
        choices: how selection is set up.
        counts: numbers of appended sentences; 0 is always one of them.
        corrupt: share of the true claims that are turned false in the corrupted responses.
        seed: seed of the corruption.

    Raises:
        InputError: as `padded` and `corrupted` do, or without responses.
    """
    _check(graphs)
    # 0 is what the others are compared with.
    lengths = sorted({0, *counts})
    versions = {
        "clean": list(graphs),
        # A seed for each response, so that the draws do not repeat.
        **{
            name: [
                corrupted(graph, corrupt, seed + k, how, graphs) for k, graph in enumerate(graphs)
            ]
            for name, how in zip(("corrupted", "swapped"), CORRUPTIONS, strict=True)
        },
    }
    paddings = paddings_of(graphs)
    scores: dict[tuple[Padding, str, bool, str, int], list[float]] = {}
    for k in range(len(graphs)):
        remembering = choices.remembering()
        for padding, (response, given) in product(paddings, versions.items()):
            whole = given[k]
            # One selection for all lengths: weights and exclusions ask about the same pairs.
            core = remembering.core(whole, padded_from(whole, padding, lengths[-1], graphs))
            for n in lengths:
                version = padded_from(whole, padding, n, graphs).graph
                for with_core, view in ((False, version), (True, selected(version, core))):
                    for name, assessor in assessors.items():
                        key = (padding, name, with_core, response, n)
                        scores.setdefault(key, []).append(score(view, assessor).precision)
    order = {name: k for k, name in enumerate(assessors)}
    rows = []
    for (padding, name, with_core, response, n), values in sorted(
        scores.items(),
        key=lambda item: (paddings.index(item[0][0]), item[0][3], order[item[0][1]], *item[0][2:]),
    ):
        # In the order of the responses, as are all of these lists.
        clean = scores[padding, name, with_core, "clean", 0]
        # A mean that differs by rounding alone is not raised.
        raised = sum(v > c + 1e-12 for v, c in zip(values, clean, strict=True))
        rows.append(
            (name, with_core, response, padding, n, float(np.mean(values)), raised, len(values))
        )
    return data_frame(rows, list(_CURVES))


def robustness_table(
    graphs: Sequence[FactGraph],
    scores: Mapping[tuple[str, bool, str], Sequence[Score]],
) -> pd.DataFrame:
    """The scores of normal and padded responses with and without Core (Core, table 4).

    Columns: assessor; core, whether selection went before; kind, "normal", or a padding "appended"
    or "alone"; counted, mean number of claims that count; precision, mean over responses; f1, mean
    F1@K' with K' the number of claims of the normal response.

    Beside the paper's columns, in which a whole response is padding ("alone"), there are those in
    which padding is appended to a normal response. One repeated claim alone is one claim after
    selection, and where it is true its precision is 1: precision cannot tell, F1@K' does.

    Args:
        graphs: the responses.
        scores: theirs, of `padded_scores`.
    """
    # Of the normal response in every row, so that padding does not raise its own target.
    k_prime = [len(graph.atoms) for graph in graphs]
    rows = []
    # As they were first met: assessors, and normal, then each padding.
    names, _, kinds = (list(dict.fromkeys(part)) for part in zip(*scores, strict=True))
    for name, with_core, kind in sorted(
        scores, key=lambda key: (names.index(key[0]), key[1], kinds.index(key[2]))
    ):
        found = scores[name, with_core, kind]
        counted = np.array([one.counted for one in found])
        supported = np.array([one.supported for one in found])
        f1 = f1_at_k_prime(supported, counted - supported, k_prime, GAMMA)
        precision = np.mean([one.precision for one in found])
        rows.append((name, with_core, kind, counted.mean(), precision, f1.mean()))
    return data_frame(rows, ["assessor", "core", "kind", "counted", "precision", "f1"])


def padded_scores(
    graphs: Sequence[FactGraph],
    assessors: Mapping[str, Assessor],
    choices: CoreChoices,
    *,
    appended: int = 20,
    paraphraser: LanguageModel | None = None,
) -> dict[tuple[str, bool, str], list[Score]]:
    """Scores of normal and padded responses, by assessor, whether with Core, and kind.

    Args:
        graphs: labelled responses with texts, each with a claim labelled true.
        assessors: by name.
        choices: how selection is set up.
        appended: number of sentences of padding.
        paraphraser: language model that writes repetitions, beside those of templates.

    Raises:
        InputError: as `padded` does, or without responses.
    """
    _check(graphs)
    scores: dict[tuple[str, bool, str], list[Score]] = {}
    for graph in graphs:
        remembering = choices.remembering()
        paddings: dict[str, Padded] = {
            p: padded_from(graph, p, appended, graphs) for p in paddings_of(graphs)
        }
        if paraphraser is not None:
            paddings["paraphrased"] = padded_by_model(graph, "repetitive", appended, paraphraser)
        kinds = [("normal", graph, Padded(graph))]
        for padding, made in paddings.items():
            kinds.append((f"{padding}, appended", made.graph, made))
            kinds.append((f"{padding}, alone", padding_alone(made, len(graph.atoms)), made))
        for kind, version, made in kinds:
            core = remembering.core(graph, made)
            for with_core, view in ((False, version), (True, selected(version, core))):
                for name, assessor in assessors.items():
                    scores.setdefault((name, with_core, kind), []).append(score(view, assessor))
    return scores


def padding_gains(scores: Mapping[tuple[str, bool, str], Sequence[Score]]) -> pd.DataFrame:
    """What paddings gain in mean precision, paired by response, of `padded_scores`.

    Columns: assessor; kind, a padding "appended" or "alone"; plain, mean gain over the normal
    response without Core; core, that with Core before both; kept_off, what Core keeps off, the
    first less the second; each with the ends of its 95 % interval over responses (Student's t) in
    NAME_lower and NAME_upper, nan where every response gains the same; responses, their number.
    """
    rows = []
    for name, with_core, kind in scores:
        if with_core or kind == "normal":
            continue
        plain, kept = (
            np.array([one.precision for one in scores[name, core, kind]])
            - np.array([one.precision for one in scores[name, core, "normal"]])
            for core in (False, True)
        )
        ends = (mean_interval(gain, scale=Scale.NUMBER) for gain in (plain, kept, plain - kept))
        rows.append((name, kind, *chain.from_iterable(ends), plain.size))
    return data_frame(rows, list(_GAINS))


def gains_table(gains: pd.DataFrame, group: str, caption: str, note: str) -> Table:
    """The table of gains, as `padding_gains` has them, in blocks by the column `group`."""
    shown = (interval_column(name, title, 3) for name, title in GAINS.items())
    return Table(gains, (Column("kind", "padding"), *shown), caption, group=group, note=note)


def robustness_figure(curves: pd.DataFrame, assessor: str, padding: str) -> Figure:
    """The curves of one assessor and padding, with the clean responses' level as a line.

    Raises:
        InputError: if there are no rows of them.
    """
    from calibration.figures.panels import COLUMN, name_lines, nth_look, panels

    mine = curves[(curves["assessor"] == assessor) & (curves["padding"] == padding)]
    if mine.empty:
        raise InputError(f"there are no curves of {assessor!r} with {padding!r} padding")
    with panels(1, 1, (COLUMN, 2.5)) as (figure, ((place,),)):
        lines = {}
        for at, with_core in enumerate((False, True)):
            own = mine[mine["core"] == with_core]
            name = f"{'with' if with_core else 'without'} Core"
            curve = own[own["response"] == "corrupted"].sort_values("appended")
            (lines[name],) = place.plot(curve["appended"], curve["precision"], **nth_look(at))
            clean = own[(own["response"] == "clean") & (own["appended"] == 0)]["precision"]
            if len(clean):
                look = {**nth_look(at), "marker": None, "alpha": 0.7, "linewidth": 0.8}
                ends, level = [0, curve["appended"].max()], clean.iloc[0]
                (lines[f"clean,\n{name}"],) = place.plot(ends, [level, level], **look)
        place.set_xticks(sorted(mine["appended"].unique()))
        place.set(ylim=(0, 1), xlabel=f"{padding} sentences appended")
        place.set_ylabel(f"factual precision, {assessor}")
        name_lines(place, lines)
        return figure


def _check(graphs: Sequence[FactGraph]) -> None:
    if not graphs:
        raise InputError("there are no responses to pad; give at least one")
