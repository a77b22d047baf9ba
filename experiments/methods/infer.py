"""Posteriors of models, or their most probable states."""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from experiments.columns.frame import claim_row, long_frame
from experiments.destination import check_destination
from experiments.findings.findings import CLAIMS, Findings
from experiments.findings.table import Column, Table, columns_as
from experiments.findings.text import duration, shortened, verdict, word
from experiments.progress import tell
from experiments.settings import USUAL, Option, front_door
from experiments.settings.backend_settings import AlgorithmSettings, build_backend
from experiments.settings.conventions import graph_names, note_of, own_prior_remarks
from experiments.settings.inputs import (
    LoadedModel,
    Models,
    ModelSettings,
    evidence_parts,
    is_evidence_table,
    relation_remarks,
    with_evidence,
)
from experiments.settings.limits import FilePath
from factormodels.claims import Atom, Context
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.metadata.recorded_verdicts import recorded_verdicts
from factormodels.nouns import counted

if TYPE_CHECKING:
    import pandas as pd

    from inference.backend import Backend, Recorder
    from inference.posterior import Posterior
    from inference.tasks import SearchedAssignment

Answer: TypeAlias = "tuple[LoadedModel, Posterior | SearchedAssignment]"

_STATES_IN_COLUMNS = 6
_SEARCH_SECONDS = 60.0

_DOUBTFUL = 0.1
"""Root mean square error of marginals from which on a sentence has the reason of their choice."""

_FEW = 16
"""Number of models that are read before the first is answered."""


class InferSettings(ModelSettings, AlgorithmSettings):
    """Query.

    Options of `infer`.
    """

    evidence: Annotated[
        tuple[Any, ...],
        Option("FILE|NAME=STATE", usual=True),
        BeforeValidator(evidence_parts),
    ] = ()
    """Evidence: Alarm=on, or a file; repeatable. A file is UAI evidence, a JSON object that maps
    names to states (or to lists of likelihoods, one per state), or a table (CSV, Parquet) with a
    column for each variable. Each row of a table is a separate query."""

    seconds: Annotated[float | None, Field(ge=0), Option("S", usual=True)] = None
    """With the backend auto, tighten bounds on log Z for this many seconds and show each
    improvement; Ctrl-C stops and shows the best so far. For another backend, its time limit if it
    has one. With --map, the time limit of toulbar2 if elimination does not fit in memory (60 by
    default)."""

    trace: Annotated[FilePath | None, Option("PATH", usual=True)] = None
    """Write the results of each algorithm over processor time (brackets, estimates, errors and
    marginals): tables and a figure into a folder, or the table into a file."""

    map_: Annotated[bool, USUAL] = False
    """Find the jointly most probable states of all variables instead of the probability of each. If
    the graph is too wide for elimination, toulbar2 searches for the best states."""


@front_door
def infer(source: Models, settings: InferSettings) -> Findings:
    """Compute the posterior of a model, or of every response of a file.

    Shows the probability of every variable, log Z (exact, a bound or an estimate), and the status
    and time of the algorithm. The time excludes loading and compiling, which happen in the first
    call. For a fact graph these are the probabilities that claims and passages are true, with other
    assessors' verdicts on the claims if the file has them. Unnamed variables of a UAI file are
    called 0, 1, ...

    Examples::

        infer("graph.json")
        infer("graph.json", variant="FR1", encoding="conditional")
        infer("network.bif", evidence="Alarm=on")
        infer("network.bif", evidence="rows.csv").save("posteriors.parquet")
        infer("network.uai", evidence="network.uai.evid").as_json()
        infer("network.uai", backend="lbp,damping=0.5")
        infer("network.uai", seconds=60)
        infer("network.uai", seconds=60, trace="anytime")
        infer("network.bif", evidence="seen.json", map_=True)
        infer("corpus.jsonl").save("posteriors")
        infer("worked-examples", response="factreasoner-example-1")

    Args:
        source: Fact graph JSON, UAI or BIF, recognized by content; or the name of an embedded
            dataset. In Python also a graph, or fact graphs.
        settings: options; in Python, pass the fields as keywords instead.

    Raises:
        InputError: if the source cannot be read, or an option does not fit it.
        InferenceError: if the backend has no answer.
    """
    from inference import ZeroPartitionError

    name = name_of(source)
    try:
        if any(map(is_evidence_table, settings.evidence)):
            return _of_rows(source, settings)
        if settings.trace is not None:
            return _traced(source, settings, settings.trace)
        several, answers = _answers(source, settings)
        return findings_of(name, list(answers), several=several)
    except ZeroPartitionError as error:
        raise ZeroPartitionError(f"{name}: {error}") from None


def _traced(source: Models, settings: InferSettings, path: Path) -> Findings:
    """Posterior of one model, with a table and a figure of its trace, which are written to `path`.

    Raises:
        InputError: if `path` cannot be written, or there are several models.
    """
    from experiments.methods.inferred_trace import trace_findings
    from inference.posterior import Posterior

    if settings.map_:
        raise InputError("--trace applies to posteriors, and --map computes none; leave one out")
    read = (source,) if isinstance(source, str | os.PathLike) else ()
    check_destination(path, inputs=read, option="--trace")
    _, answers = _answers(source, settings)
    ((model, answer),) = answers
    if not isinstance(answer, Posterior) or answer.trace is None:
        raise InputError(f"{name_of(source)}: there is no trace; leave --trace out")
    trace = answer.trace
    stats = {name: value for name, value in answer.stats.items() if name != "trace"}
    answer = replace(answer, stats=stats)
    findings = findings_of(name_of(source), [(model, answer)])
    # The path of the trace is not part of the question.
    asked = settings.model_dump(mode="json", exclude={"out", "trace"}, fallback=str)
    traced = trace_findings(name_of(source), trace, answer, findings.sentences, asked)
    files = traced.save(path)
    return replace(
        findings,
        sentences=(*findings.sentences, f"The trace is in {', '.join(map(str, files))}."),
        tables={**findings.tables, **traced.tables},
        unshown=(*findings.unshown, *traced.unshown),
        draw=traced.draw,
    )


def _of_rows(source: Models, settings: InferSettings) -> Findings:
    """Posteriors of the one model of a source for each row of a table of evidence."""
    from experiments.methods.inferred_rows import infer_each_row

    if settings.trace is not None:
        raise InputError(
            "--trace applies to a single answer, and a table of evidence has an answer for each "
            "row; leave --trace out, or give --evidence NAME=STATE"
        )
    if settings.map_:
        raise InputError(
            "--map takes one observation of each variable, and a table of evidence has a row "
            "for each case; leave --map out, or give --evidence NAME=STATE"
        )
    model = settings.load_one(source)
    return infer_each_row(name_of(source), model, settings.evidence, _algorithm(settings))


def name_of(source: Models) -> str:
    """Name of models: their file or dataset, or the response."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    return source.id if isinstance(source, FactGraph) else "the model"


def _answers(source: Models, settings: InferSettings) -> tuple[bool, Iterator[Answer]]:
    """Return True if there are several models, and an iterator of models with lazy answers."""
    from inference.warm_up import small_graph, warm_up, warm_up_for

    seconds, most_probable = settings.seconds, settings.map_
    algorithm = _algorithm(settings)
    models = settings.load(source)
    first = list(islice(models, _FEW + 1))
    several = len(first) > 1
    tightens = seconds is not None and settings.backend == "auto"
    for option, is_given in (
        ("--evidence", bool(settings.evidence)),
        ("--seconds", tightens),
        ("--trace", settings.trace is not None),
    ):
        if several and is_given:
            names = ", ".join(graph.id for model in first if (graph := model.fact_graph))
            raise InputError(
                f"{name_of(source)}: it contains several responses, and {option} applies to a "
                f"single response; choose it with --response ({names}, ...)"
            )
    if settings.evidence:
        seen = with_evidence(first[0].factor_graph, settings.evidence)
        first = [replace(first[0], factor_graph=seen)]
    # Load and compile first, so that the reported time is that of inference alone.
    if len(first) > _FEW:
        warm_up(algorithm)
    else:
        warm_up_for(algorithm, [model.factor_graph for model in first])
    if most_probable:
        _assignment(small_graph(), algorithm, None)
        return several, (
            (model, _assignment(model.factor_graph, algorithm, seconds))
            for model in chain(first, models)
        )
    if several:
        return True, _posteriors(chain(first, models), algorithm)
    if settings.trace is not None:
        ask: Callable[[FactorGraph], Posterior] = partial(_recorded, algorithm)
    else:
        ask = partial(_tightened, algorithm) if tightens and seconds else algorithm.infer
    return False, ((model, _without_preparation(ask, model.factor_graph)) for model in first)


def _without_preparation(ask: Callable[[FactorGraph], Posterior], graph: FactorGraph) -> Posterior:
    """Posterior whose `seconds` leave out kernels that the warm-up did not need."""
    from inference.kernels.preparation import PREPARATION

    before = PREPARATION.seconds
    posterior = ask(graph)
    seconds = posterior.stats["seconds"] - (PREPARATION.seconds - before)
    return replace(posterior, stats={**posterior.stats, "seconds": max(seconds, 0.0)})


def _algorithm(settings: InferSettings) -> Backend:
    name, seconds = settings.backend, settings.seconds
    if settings.map_:
        if name not in ("exact", "auto"):
            raise InputError(f"--map does not use backends; leave --backend {name} out")
        return build_backend("exact", settings.backend_settings)
    if seconds is None:
        return settings.algorithm
    if not isinstance(name, str):
        raise InputError(
            f"--seconds: the backend {name.name} is already built; set its time limit there and "
            "leave --seconds out"
        )
    if "seconds" in settings.backend_settings:
        raise InputError("--seconds is given 2 times; keep one")
    return build_backend(name, {**settings.backend_settings, "seconds": seconds})


def _posteriors(models: Iterable[LoadedModel], algorithm: Backend) -> Iterator[Answer]:
    """Yield models with their posteriors, computed a part at a time.

    Raises:
        InferenceError: for the first that has none, with the id of its response.
    """
    from inference import InferenceError, infer_stream

    waiting: deque[LoadedModel] = deque()

    def graphs() -> Iterator[FactorGraph]:
        for model in models:
            waiting.append(model)
            yield model.factor_graph

    try:
        for posterior in infer_stream(graphs(), algorithm):
            yield waiting.popleft(), posterior
    except InferenceError as error:
        # Earlier models have been yielded, so this is the first that waits.
        facts = waiting[0].fact_graph
        reason = error.__cause__ or error
        raise type(error)(f"response {facts.id if facts else ''!r}: {reason}") from None


def _assignment(
    graph: FactorGraph, algorithm: Backend, seconds: float | None
) -> SearchedAssignment:
    """Most probable states of all variables; for wide graphs, the best states of a search."""
    from inference.exact.backend import Exact
    from inference.tasks import search_map

    exact = algorithm if isinstance(algorithm, Exact) else None
    return search_map(graph, exact, seconds=_SEARCH_SECONDS if seconds is None else seconds)


def _tightened(algorithm: Backend, graph: FactorGraph, record: Recorder | None = None) -> Posterior:
    """Last posterior of `auto`, with its bounds reported as they tighten."""
    from inference.auto import Auto

    if not isinstance(algorithm, Auto):
        raise InputError("--seconds needs the backend auto")
    for posterior in algorithm.infer_each(graph, record):
        stats = posterior.stats
        tell(
            f"{duration(stats['seconds'])}: log Z from {stats['lower']:.4f} ({stats['lower_by']}) "
            f"to {stats['upper']:.4f} ({stats['upper_by']}), gap {stats['gap']:.4g}"
        )
    return posterior


def _recorded(algorithm: Backend, graph: FactorGraph) -> Posterior:
    """Posterior with its trace; bounds of `auto` are reported as they tighten."""
    from inference.auto import Auto
    from inference.trace import TraceRecorder, traced, with_trace

    if not isinstance(algorithm, Auto):
        return traced(algorithm, graph)
    recorder = TraceRecorder(graph)
    return with_trace(_tightened(algorithm, graph, recorder), recorder)


# --- Remarks -------------------------------------------------------------------------------------


def findings_of(
    source: str,
    answers: Sequence[Answer],
    *,
    several: bool = False,
    **more: Any,
) -> Findings:
    """Convert the answers of one or several models to findings.

    Tables: `posteriors` (or `states`, the most probable) by variable, or for a general network by
    variable and state, with `variables` as a readable view; `models`, a row per model.
    """
    from inference.posterior import Posterior

    is_posterior = isinstance(answers[0][1], Posterior)
    name = "posteriors" if is_posterior else "states"
    tables, unshown = {}, ["models"]
    if answers[0][0].fact_graph is not None:
        tables[name] = _claims_and_passages(answers, source)
        if is_posterior:
            table = tables[name]
            more["tidy"] = lambda: _claims(answers, table)
            more["frames"] = {CLAIMS: more["tidy"]}
    elif is_posterior:
        tables = _variables(*answers[0], source)
        unshown.append(name)
    else:
        tables[name] = _states(*answers[0], source)
    tables["models"] = _models(answers)
    remarks = Counter(remark for answer in answers for remark in _remarks(*answer))
    sentences = [
        f"{counted(count, 'response')}: {remark}." if several else f"{remark}."
        for remark, count in remarks.items()
    ]
    sentences += _improbable(model for model, _ in answers)
    if not several:
        answer: Any = answers[0][1]
        facts = _facts(answer) if is_posterior else _assignment_facts(answer)
        sentences.insert(0, ", ".join(facts) + ".")
        sentences += _lacks(answer) if is_posterior else ()
    return Findings(
        source=source,
        sentences=tuple(sentences),
        tables=tables,
        unshown=tuple(unshown[several:]),
        **more,
    )


def _improbable(models: Iterable[LoadedModel]) -> tuple[str, ...]:
    """Return sentences about relations that are too improbable, and about passages with their own
    priors."""
    known = [model for model in models if model.fact_graph is not None]
    if not known:
        return ()
    views = [model.fact_graph for model in known if model.fact_graph is not None]
    # A view already has the declared priors and does not show which ones the data stated.
    responses = [model.response for model in known if model.response is not None]
    return (
        *relation_remarks(views, known[0].encoding),
        *own_prior_remarks(responses, known[0].conventions),
    )


def _remarks(model: LoadedModel, answer: Posterior | SearchedAssignment) -> Iterator[str]:
    """Yield caveats about the numbers."""
    from inference.posterior import LogZKind, Posterior, Status

    facts = model.fact_graph
    if facts is not None and facts.contexts and not facts.relations:
        yield (
            "no relations between claims and passages, so the shown values are the priors; "
            "find relations with `factormodels assess`"
        )
    if answer.status is Status.INTERRUPTED:
        yield "interrupted: this is the best result so far"
    is_tightened = isinstance(answer, Posterior) and "upper_by" in answer.stats
    if answer.status is Status.NOT_CONVERGED and isinstance(answer, Posterior) and not is_tightened:
        what = "these numbers are its last iterate"
        if answer.log_z_kind in (LogZKind.UPPER, LogZKind.LOWER):
            both = "gap" in answer.stats
            bounds = "the bounds on log Z hold" if both else "the bound on log Z holds"
            what = f"{bounds} all the same, and the marginals are approximations"
        yield (
            f"{answer.backend} did not converge: {what}; see "
            f"`factormodels list backends {answer.backend}` for its settings"
        )


def _lacks(posterior: Posterior) -> Iterator[str]:
    """Yield why an answer of `auto` is not exact, and why it has no estimate with an error."""
    stats = posterior.stats
    if "upper_by" not in stats or stats["upper_by"] == "exact":
        return
    if "reason" in stats:
        yield f"Not exact: {stats['reason']}."
    why = stats.get("missing", {}).get("estimate_standard_error")
    if why is not None:
        yield f"No estimate of log Z with a standard error: {why}."


def _models(answers: Sequence[Answer]) -> Table:
    """A row per model: log Z or the log potential, and the algorithm's statistics."""
    from factormodels.io.json import jsonable
    from inference.posterior import Posterior

    rows: list[dict[str, Any]] = []
    for model, answer in answers:
        row: dict[str, Any] = {"response": model.fact_graph.id if model.fact_graph else None}
        if isinstance(answer, Posterior):
            row |= {"log_z": answer.log_z, "log_z_kind": str(answer.log_z_kind)}
            row["backend"] = answer.backend
        else:
            row |= {"log_potential": answer.assignment.log_potential, "upper": answer.upper}
        stats = jsonable(answer.stats)
        rows.append({**stats, **row, "status": str(answer.status), "seconds": stats.get("seconds")})
    is_log_z = "log_z" in rows[0]
    log_columns = "log_z:6 log Z | log_z_kind kind" if is_log_z else "log_potential:6 log potential"
    columns = columns_as(f"response | {log_columns} | status | seconds> time", seconds=duration)
    return Table(rows, columns, "Models.")


def _facts(posterior: Posterior) -> list[str]:
    from inference.posterior import Status

    if posterior.log_z is None:
        log_z = "log Z: none"
    else:
        rounded = round(posterior.log_z, 6) + 0.0  # so that -0.0 is shown as 0
        log_z = f"log Z {rounded:.6f} ({posterior.log_z_kind})"
    backend, exact = posterior.backend, posterior.status is Status.EXACT
    if exact and posterior.answered_by != backend:
        backend += f" ({posterior.answered_by})"
    stats = posterior.stats
    parts = [log_z, f"status {posterior.status}", f"backend {backend}"]
    if "iterations" in stats:
        parts.append(counted(stats["iterations"], "iteration"))
    if stats.get("gap"):
        parts.append(f"log Z at least {stats['lower']:.6f}, {stats['gap']:.4g} less")
    if "upper_by" in stats and not exact:
        parts.append(f"upper by {stats['upper_by']}, lower by {stats['lower_by']}")
    error = stats.get("estimate_standard_error")
    if error is not None and not exact:
        parts.append(f"estimate {stats['estimate']:.6g} ± {error:.2g} ({stats['estimate_by']})")
    if "marginals_by" in stats and not exact:
        error = stats.get("marginals_error")
        about = "of unknown error" if error is None else f"root mean square error about {error:.2g}"
        if error is None or error >= _DOUBTFUL:
            about += f" ({stats['marginals_reason']})"
        parts.append(f"marginals by {stats['marginals_by']}, {about}")
    return [*parts, duration(stats.get("seconds", math.nan))]


def _assignment_facts(searched: SearchedAssignment) -> list[str]:
    parts = [f"log potential {searched.assignment.log_potential:.6f}", f"status {searched.status}"]
    if searched.gap:
        parts.append(f"another may have {searched.gap:.4g} more")
    return [*parts, duration(searched.stats.get("seconds", math.nan))]


def _claims_and_passages(answers: Sequence[Answer], source: str) -> Table:
    """A row per claim and passage of every response."""
    from inference.posterior import Posterior

    rows: list[dict[str, Any]] = []
    verdicts = [recorded_verdicts(model.fact_graph) if model.fact_graph else {}
                for model, _ in answers]  # fmt: skip
    assessors = dict.fromkeys(name for recorded in verdicts for name in recorded)
    for (model, answer), recorded in zip(answers, verdicts, strict=True):
        facts = model.fact_graph
        if facts is None:
            continue
        items: tuple[Atom | Context, ...] = (*facts.atoms, *facts.contexts)
        values = (
            answer.marginals.of_state(1)
            if isinstance(answer, Posterior)
            else answer.assignment.states == 1
        ).tolist()
        for item, value, seen in zip(items, values, model.factor_graph.evidence, strict=True):
            is_atom = isinstance(item, Atom)
            by_assessor = {
                n: recorded.get(n, {}).get(item.id) if is_atom else None for n in assessors
            }
            rows.append(
                {
                    "response": facts.id,
                    "variable": item.id,
                    "p" if isinstance(answer, Posterior) else "state": value,
                    "status": "observed"
                    if seen != UNOBSERVED
                    else verdict(value)
                    if isinstance(answer, Posterior)
                    else "",
                    "label": item.label if isinstance(item, Atom) else None,
                    "kind": "atom" if is_atom else "context",
                    "prior": item.prior,
                    "text": item.text or (item.title if isinstance(item, Context) else ""),
                    **{name: each.p_true if each else None for name, each in by_assessor.items()},
                    **{
                        f"{n}_label": each.label if each else None
                        for n, each in by_assessor.items()
                    },
                    # A verdict without a probability.
                    **{
                        f"{n}_text": ""
                        if each is None
                        else each.label or ""
                        if each.p_true is None
                        else f"{each.p_true:.4f}"
                        for n, each in by_assessor.items()
                    },
                }
            )
    columns = [*columns_as("variable")]
    if rows and "p" in rows[0]:
        columns.append(Column("p", "P(true)", digits=4))
    else:
        columns.append(Column("state", "state", show=word))
    columns += [Column(f"{name}_text", name, right=True) for name in assessors]
    columns += columns_as("status")
    if any(row["label"] is not None for row in rows):
        columns.append(Column("label", "label", show=word))
    columns += [*columns_as("kind | prior>", prior="{:g}".format)]
    if any(row["text"] for row in rows):
        columns.append(Column("text", "text", show=shortened))
    title = "Claims and passages" if len(answers) > 1 else f"Claims and passages of {source}"
    group = "response" if len(answers) > 1 else ""
    known = next(model for model, _ in answers if model.fact_graph is not None)
    note = note_of(known.conventions, graph_names([known.variant]))
    return Table(rows, tuple(columns), f"{title}.", group=group, note=note)


def _claims(answers: Sequence[Answer], table: Table) -> pd.DataFrame:
    """The long frame of the claims: the table's rows of claims with what it knows of each."""
    atoms = {
        (model.fact_graph.id, atom.id): atom
        for model, _ in answers
        if model.fact_graph is not None
        for atom in model.fact_graph.atoms
    }
    return long_frame(
        claim_row(
            *(row["response"], atoms[row["response"], row["variable"]], row["p"]),
            **{name: value for name, value in row.items() if name in ("status", "prior")},
        )
        for row in table.records()
        if row["kind"] == "atom"
    )


def _variables(model: LoadedModel, answer: Any, source: str) -> dict[str, Table]:
    """A row per state with its probability, and for readers a row per variable."""
    graph = model.factor_graph
    named = graph.state_names
    # Use a column per state if the columns fit and all variables have these states.
    widest = int(graph.cardinalities.max(initial=0))
    in_columns = widest <= _STATES_IN_COLUMNS and (named is None or len(set(named)) <= 1)
    long: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number, (name, seen) in enumerate(zip(graph.names, graph.evidence, strict=True)):
        vector = answer.marginals[name].tolist()
        states: Sequence[Any] = range(len(vector)) if named is None else named[number]
        observed = bool(seen != UNOBSERVED)
        p_by_state = dict(zip(states, vector, strict=True))
        long += [
            {"variable": name, "state": state, "p": p, "observed": observed}
            for state, p in p_by_state.items()
        ]
        cells: Mapping[str, Any] = {f"P({state})": p for state, p in p_by_state.items()}
        if not in_columns:
            text = ", ".join(f"{state} {p:.6f}" for state, p in p_by_state.items())
            cells = {"states": len(vector), "probabilities": text}
        rows.append({"variable": name, "status": "observed" if observed else "", **cells})
    if in_columns:
        states = range(widest) if not named else named[0]
        titles = [f"P({state})" for state in states]
        rows = [{**dict.fromkeys(titles), **row} for row in rows]
        columns = [Column(title, title, digits=6) for title in titles]
    else:
        columns = [*columns_as("states:0 | probabilities probability of each state")]
    shown = (*columns_as("variable | status"), *columns)
    every = columns_as("variable | state | p:6")
    # The first table goes into a single file and into `frame`: numbers instead of text.
    return {
        "posteriors": Table(long, every, f"Posteriors of {source}, by variable and state."),
        "variables": Table(rows, shown, f"Variables of {source}."),
    }


def _states(model: LoadedModel, answer: Any, source: str) -> Table:
    """The most probable states of all variables."""
    graph = model.factor_graph
    rows = [
        {
            "variable": name,
            "state": state if graph.state_names is None else graph.state_names[number][state],
            "status": "observed" if seen != UNOBSERVED else "",
        }
        for number, (name, state, seen) in enumerate(
            zip(graph.names, answer.assignment.states.tolist(), graph.evidence, strict=True)
        )
    ]
    columns = columns_as("variable | state | status")
    return Table(rows, columns, f"The most probable states of {source}.")
