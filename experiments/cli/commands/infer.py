"""`factormodels infer`: the posteriors of a file's models, or their most probable states."""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from experiments.cli.console import (
    heading,
    messages,
    output,
    plain_table,
    show_table,
    write_json,
)
from experiments.cli.help_text import choices
from experiments.cli.options import shared
from experiments.findings.text import counted, duration, verdict
from factormodels.claims import Atom, Context
from factormodels.encodings import DEFAULT_ENCODING, ENCODINGS
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.io.files import atomic_path
from factormodels.recorded_verdicts import RecordedVerdict, recorded_verdicts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

    from experiments.study.inputs import LoadedModel
    from inference.backend import Backend
    from inference.posterior import Posterior
    from inference.tasks import SearchedAssignment

_Answer: TypeAlias = "tuple[LoadedModel, Posterior | SearchedAssignment]"

_STATES_IN_COLUMNS = 6
_TEXT_SHOWN = 160
_SEARCH_SECONDS = 60.0


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Fact graph JSON, UAI or BIF, told apart by content; or the name of an embedded "
            "dataset.",
        ),
    ],
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Evidence: a UAI evidence file, or a JSON object that gives names their "
            "states (or lists of likelihoods, one per state).",
        ),
    ] = None,
    backend: shared.BackendName = "auto",
    set_: shared.BackendSettings = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Tighten bounds on log Z for this many seconds with the backend auto, showing "
            "each improvement. Ctrl-C stops and shows the best so far. With --map: for so long may "
            "toulbar2 search where elimination does not fit (60).",
        ),
    ] = None,
    map_: Annotated[
        bool,
        typer.Option(
            "--map",
            help="The most probable states of all variables together, in place of the "
            "probability of each; of a graph too wide, the best that toulbar2 finds.",
        ),
    ] = False,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How a relation of a fact graph becomes a table: "
            f"{choices(ENCODINGS, DEFAULT_ENCODING)}.",
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Variant of the fact graph: given (default, as recorded), FR1, FR2 or FR3.",
        ),
    ] = None,
    response: shared.ResponseId = None,
    json_: Annotated[
        bool,
        typer.Option("--json", help="Print a JSON object, one per response, and nothing else."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the JSON object, or a line per response."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Rows of the table to show; 0 shows all.")
    ] = 200,
) -> None:
    """Compute the posterior of a model, or of every response of a file.

    Shows the probability of every variable, log Z (and whether it is exact, a
    bound or an estimate), how the algorithm ended, and how long it took (without
    loading and compiling, which the first call does). For a fact graph these are
    the probabilities that claims and passages are true, beside what other assessors
    said of the claims where the file has recorded it. Unnamed variables of a UAI
    file are called 0, 1, ...

    [b]Examples[/b]

      factormodels infer graph.json
      factormodels infer graph.json --variant FR1 --encoding conditional
      factormodels infer network.uai --evidence network.uai.evid --json
      factormodels infer network.uai --backend lbp --set damping=0.5
      factormodels infer network.uai --seconds 60
      factormodels infer network.bif --evidence seen.json --map
      factormodels infer corpus.jsonl --out posteriors.jsonl
      factormodels infer corpus.jsonl --response bridge --out posterior.json
      factormodels infer worked-examples --response factreasoner-example-1
    """
    from experiments.cli.progress import announced
    from experiments.study.backend_settings import build_backend, parse_settings
    from experiments.study.inputs import load_models, with_evidence_file
    from inference import ZeroPartitionError
    from inference.warm_up import small_graph, warm_up

    # Before the computation, which may take long.
    if out is not None and out.is_dir():
        raise InputError(f"{out}: this is a folder; name a file in it")
    settings = parse_settings(set_ or ())
    if map_ and backend not in ("exact", "auto"):
        raise InputError(f"--map has algorithms of its own; leave --backend {backend} out")
    if seconds is not None and not map_:
        if backend != "auto":
            raise InputError(
                f"--seconds is for the backend auto, and --backend asks for {backend}; leave one "
                "out, or give the limit by --set seconds=S where a backend has it"
            )
        settings = {**settings, "seconds": seconds}
    algorithm = build_backend("exact" if map_ else backend, settings)
    models = load_models(file, response=response, variant=variant, encoding=encoding)
    first = list(islice(models, 2))
    several = len(first) > 1
    for option, value in (("--evidence", evidence), ("--seconds", seconds)):
        if several and value is not None:
            names = ", ".join(graph.id for one in first if (graph := one.fact_graph) is not None)
            raise InputError(
                f"{file}: it holds several responses, and {option} is for one; choose it with "
                f"--response ({names}, ...)"
            )
    if evidence is not None:
        seen = with_evidence_file(first[0].factor_graph, evidence)
        first = [replace(first[0], factor_graph=seen)]
    # Loaded and compiled before, so that the time shown is inference's alone.
    with announced(messages()):
        warm_up(algorithm)
        if map_:
            _assignment(small_graph(), algorithm, None)
    answers: Iterator[_Answer]
    if map_:
        answers = (
            (one, _assignment(one.factor_graph, algorithm, seconds)) for one in chain(first, models)
        )
    elif several:
        answers = _posteriors(chain(first, models), algorithm)
    else:
        ask = _tightened if seconds else _inferred
        answers = ((one, ask(algorithm, one.factor_graph)) for one in first)
    try:
        with _lines_of(out) as keep:
            _show(answers, keep, several=several, json_=json_, rows=rows)
    except ZeroPartitionError as error:
        raise ZeroPartitionError(f"{file}: {error}") from None


def _show(
    answers: Iterable[_Answer],
    keep: Callable[[str], object],
    *,
    several: bool,
    json_: bool,
    rows: int,
) -> None:
    """Keep every answer as a line of JSON, and print it so or, as far as rows go, as a table."""
    console = output()
    left, hidden = float(rows or math.inf), 0
    remarks = Counter[str]()
    for model, answer in answers:
        line = as_json(answer, model.factor_graph, model.fact_graph)
        keep(line)
        if json_:
            write_json(line)
            continue
        remarks.update(_remarks(model, answer))
        if left <= 0:
            hidden += 1
            continue
        if several and model.fact_graph is not None:
            heading(console, model.fact_graph.id)
        limit = 0 if math.isinf(left) else int(left)
        _show_answer(console, answer, model.factor_graph, model.fact_graph, limit=limit)
        left -= model.factor_graph.n_variables
        if several:
            console.print()
    if hidden:
        console.print(
            f"... and {counted(hidden, 'more response')}: --rows 0 shows, --out FILE writes all"
        )
    for remark, count in remarks.items():
        whose = f"{counted(count, 'response')}: " if several else ""
        messages().print(f"{whose}{remark}", soft_wrap=True)


@contextmanager
def _lines_of(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Yield what adds lines to a file, which is there whole in the end; to none if it is None."""
    if path is None:
        yield lambda _: None
        return
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as stream,
    ):
        yield stream.write


def _remarks(model: LoadedModel, answer: Posterior | SearchedAssignment) -> Iterator[str]:
    """Yield what must be known beside the numbers."""
    from inference.posterior import Posterior, Status

    facts = model.fact_graph
    if facts is not None and facts.contexts and not facts.relations:
        yield (
            "it has no relations between claims and passages, so what is shown are the priors; "
            "find relations with `factormodels assess`"
        )
    if answer.status is Status.INTERRUPTED:
        yield "interrupted: this is the best that was found by then"
    is_tightened = isinstance(answer, Posterior) and "upper_by" in answer.stats
    if answer.status is Status.NOT_CONVERGED and isinstance(answer, Posterior) and not is_tightened:
        yield (
            f"{answer.backend} did not converge: these numbers are where it stood when it "
            f"stopped; see `factormodels backends {answer.backend}` for its settings"
        )


def _inferred(algorithm: Backend, graph: FactorGraph) -> Posterior:
    return algorithm.infer(graph)


def _posteriors(models: Iterable[LoadedModel], algorithm: Backend) -> Iterator[_Answer]:
    """Yield models with their posteriors, of which a part at a time is in memory.

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
        # Those before it have been yielded, so it is the first that waits.
        facts = waiting[0].fact_graph
        reason = error.__cause__ or error
        raise type(error)(f"response {facts.id if facts else ''!r}: {reason}") from None


def _assignment(
    graph: FactorGraph, algorithm: Backend, seconds: float | None
) -> SearchedAssignment:
    """The most probable states of all variables; of wide graphs, those that a search finds."""
    from inference.exact.backend import Exact
    from inference.tasks import search_map

    exact = algorithm if isinstance(algorithm, Exact) else None
    return search_map(graph, exact, seconds=_SEARCH_SECONDS if seconds is None else seconds)


def _tightened(algorithm: Backend, graph: FactorGraph) -> Posterior:
    """The last of the posteriors of `auto`, whose bounds are shown as they tighten."""
    from rich.live import Live

    from inference.auto import Auto

    if not isinstance(algorithm, Auto):
        raise InputError("--seconds needs the backend auto")
    console = messages()
    with Live(console=console, transient=True, auto_refresh=False) as live:
        for posterior in algorithm.infer_each(graph):
            live.update(_bounds(posterior), refresh=True)
    return posterior


def _bounds(posterior: Posterior) -> str:
    """The bounds on log Z and whose they are, on one line."""
    stats = posterior.stats
    return (
        f"{duration(stats['seconds'])}: log Z from {stats['lower']:.4f} ({stats['lower_by']}) "
        f"to {stats['upper']:.4f} ({stats['upper_by']}), gap {stats['gap']:.4g}"
    )


def as_json(
    answer: Posterior | SearchedAssignment,
    graph: FactorGraph | None = None,
    fact_graph: FactGraph | None = None,
) -> str:
    """The answer as one JSON object on one line, ending in a newline.

    Keys of a posterior: `marginals` {name: [probability of each state]}, `log_z` (null where there
    is none or it is not finite), `log_z_kind`, `status`, `stats` (the backend, seconds and what
    else it reports). Of an assignment: `assignment` {name: state, by its name where it has one},
    `log_potential`, `upper` (which that of no assignment passes), `status`, `stats`. Of both,
    `states` {name: [name of each state]} where states have names, `response`, the id of a
    response, and `recorded` {assessor: {atom: {label, p}}} where its file has verdicts of others.
    """
    from factormodels.io.plain_yaml import jsonable
    from inference.posterior import Posterior

    named = {}
    if graph is not None and graph.state_names is not None:
        named = dict(zip(graph.names, map(list, graph.state_names), strict=True))
    document: dict[str, Any] = {}
    if fact_graph is not None:
        document["response"] = fact_graph.id
    if isinstance(answer, Posterior):
        names, starts = answer.marginals.names, answer.marginals.starts.tolist()
        values = answer.marginals.flat.tolist()
        marginals = {
            name: values[start:stop]
            for name, start, stop in zip(names, starts, starts[1:], strict=False)
        }
        document |= {
            "marginals": jsonable(marginals),
            "log_z": jsonable(answer.log_z),
            "log_z_kind": str(answer.log_z_kind),
            "status": str(answer.status),
            "stats": {"backend": answer.backend, **jsonable(answer.stats)},
        }
    else:
        states = answer.assignment.by_name()
        document |= {
            "assignment": {
                name: named[name][state] if named else state for name, state in states.items()
            },
            "log_potential": jsonable(answer.assignment.log_potential),
            "upper": jsonable(answer.upper),
            "status": str(answer.status),
            "stats": jsonable(answer.stats),
        }
    if named:
        document["states"] = named
    recorded = {} if fact_graph is None else recorded_verdicts(fact_graph)
    if recorded:
        document["recorded"] = {
            name: {atom: {"label": one.label, "p": one.p_true} for atom, one in verdicts.items()}
            for name, verdicts in recorded.items()
        }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def _show_answer(
    console: Console,
    answer: Posterior | SearchedAssignment,
    graph: FactorGraph,
    fact_graph: FactGraph | None,
    *,
    limit: int = 0,
) -> None:
    """Print an answer as an aligned table with a line of facts below.

    Args:
        console: where to print.
        answer: what was computed.
        graph: the factor graph that was asked, with its evidence.
        fact_graph: the fact graph behind it, if there is one.
        limit: rows to show; 0 shows all.
    """
    from inference.posterior import Posterior

    shown = min(limit or graph.n_variables, graph.n_variables)
    if fact_graph is not None:
        table = _claims_table(answer, graph, fact_graph, shown)
    elif isinstance(answer, Posterior):
        table = _general_table(answer, graph, shown)
    else:
        table = plain_table(["variable", "state"], last=["status"], fold=True)
        for position, state in enumerate(answer.assignment.states[:shown].tolist()):
            name = str(state) if graph.state_names is None else graph.state_names[position][state]
            table.add_row(graph.names[position], name, _observed(graph, position))
    show_table(console, table)
    if shown < graph.n_variables:
        console.print(
            f"... and {graph.n_variables - shown:,} more variables: --rows 0 shows, "
            "--out FILE writes all"
        )
    console.print(_facts(answer) if isinstance(answer, Posterior) else _assignment_facts(answer))


def _observed(graph: FactorGraph, position: int) -> str:
    return "observed" if graph.evidence[position] != UNOBSERVED else ""


def _assignment_facts(found: SearchedAssignment) -> str:
    parts = [f"log potential {found.assignment.log_potential:.6f}", f"status {found.status}"]
    if found.gap:
        parts.append(f"another may have {found.gap:.4g} more")
    return "\n" + " · ".join([*parts, duration(found.stats.get("seconds", math.nan))])


def _facts(posterior: Posterior) -> str:
    from inference.posterior import Status

    if posterior.log_z is None:
        log_z = "log Z: none"
    else:
        rounded = round(posterior.log_z, 6) + 0.0  # so that -0.0 is shown as 0
        log_z = f"log Z {rounded:.6f} ({posterior.log_z_kind})"
    backend, exact = posterior.backend, posterior.status is Status.EXACT
    if exact and posterior.answered_by != backend:
        backend += f" ({posterior.answered_by})"
    parts = [log_z, f"status {posterior.status}", f"backend {backend}"]
    if "iterations" in posterior.stats:
        parts.append(counted(posterior.stats["iterations"], "iteration"))
    if posterior.stats.get("gap"):
        parts.append(
            f"log Z at least {posterior.stats['lower']:.6f}, {posterior.stats['gap']:.4g} less"
        )
    if "upper_by" in posterior.stats and not exact:
        parts.append(
            f"upper by {posterior.stats['upper_by']}, lower by {posterior.stats['lower_by']}"
        )
    if "marginals_by" in posterior.stats and not exact:
        parts.append(f"marginals by {posterior.stats['marginals_by']}")
    parts.append(duration(posterior.stats.get("seconds", math.nan)))
    return "\n" + " · ".join(parts)


def _claims_table(
    answer: Posterior | SearchedAssignment, graph: FactorGraph, fact_graph: FactGraph, shown: int
) -> Table:
    from inference.posterior import Posterior

    both: tuple[Atom | Context, ...] = (*fact_graph.atoms, *fact_graph.contexts)
    items = both[:shown]
    labelled = any(atom.label is not None for atom in fact_graph.atoms)
    recorded = recorded_verdicts(fact_graph)
    texts = any(_text(item) for item in items)
    known = ["status", "label", "kind"] if labelled else ["status", "kind"]
    title = "P(true)" if isinstance(answer, Posterior) else "state"
    table = plain_table(["variable"], [title, *recorded], known, fold=True)
    table.add_column("prior", justify="right", no_wrap=True)
    if texts:
        table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    if isinstance(answer, Posterior):
        probabilities = answer.marginals.of_state(1)[:shown].tolist()
        cells = [(f"{one:.4f}", verdict(one)) for one in probabilities]
    else:
        cells = [(str(state == 1).lower(), "") for state in answer.assignment.states[:shown]]
    for position, (item, (cell, said)) in enumerate(zip(items, cells, strict=True)):
        is_atom = isinstance(item, Atom)
        row = [item.id, cell]
        for verdicts in recorded.values():
            one = verdicts.get(item.id) if is_atom else None
            row.append("" if one is None else _said(one))
        row.append(_observed(graph, position) or said)
        if labelled:
            label = item.label if isinstance(item, Atom) else None
            row.append("" if label is None else str(label).lower())
        row += ["atom" if is_atom else "context", f"{item.prior:g}"]
        if texts:
            row.append(_text(item))
        table.add_row(*row, style=None if is_atom else "dim")
    return table


def _said(recorded: RecordedVerdict) -> str:
    """A recorded posterior, or where there is none the verdict."""
    return recorded.label if recorded.p_true is None else f"{recorded.p_true:.4f}"


def _text(item: Atom | Context) -> str:
    text = item.text or (item.title if isinstance(item, Context) else "")
    return textwrap.shorten(text, _TEXT_SHOWN, placeholder=" ...")


def _general_table(posterior: Posterior, graph: FactorGraph, shown: int) -> Table:
    widest = int(graph.cardinalities[:shown].max(initial=0))
    # A column per state while these fit beside each other; otherwise one cell holds them all.
    named = None if graph.state_names is None else graph.state_names[:shown]
    # States of different names have no columns in common.
    alike = named is None or len(set(named)) <= 1
    in_columns = widest <= _STATES_IN_COLUMNS and alike
    table = plain_table(["variable"], last=["status" if in_columns else "states"], fold=True)
    if in_columns:
        for state in range(widest):
            title = str(state) if not named else named[0][state]
            table.add_column(f"P({title})", justify="right", no_wrap=True)
    else:
        title = "probability of each state"
        table.add_column(title if named else f"{title}, from 0")
    for place, (name, vector, observed) in enumerate(_vectors(posterior, graph, shown)):
        status = "observed" if observed else ""
        cells = [f"{value:.6f}" for value in vector]
        if in_columns:
            table.add_row(name, status, *cells)
        else:
            if named:
                cells = [f"{own} {cell}" for own, cell in zip(named[place], cells, strict=True)]
            table.add_row(name, status or str(len(cells)), (", " if named else " ").join(cells))
    return table


def _vectors(
    posterior: Posterior, graph: FactorGraph, shown: int
) -> Iterator[tuple[str, NDArray[np.float64], bool]]:
    for position, name in enumerate(graph.names[:shown]):
        yield name, posterior.marginals[name], bool(graph.evidence[position] != UNOBSERVED)
