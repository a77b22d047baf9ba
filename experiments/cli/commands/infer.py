"""`factormodels infer`: the posterior of one model."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import messages, output, plain_table, show_table, write_json
from experiments.cli.help_text import choices
from experiments.cli.options import shared
from experiments.paper.text import counted, duration, verdict
from factormodels.claims import Atom, Context
from factormodels.encodings import DEFAULT_ENCODING, ENCODINGS
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.io.files import write_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console
    from rich.table import Table

    from inference.backend import Backend
    from inference.posterior import Posterior

_STATES_IN_COLUMNS = 6
_TEXT_SHOWN = 160


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
            "each improvement. Ctrl-C stops and shows the best so far.",
        ),
    ] = None,
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
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON object to a file.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Rows of the table to show; 0 shows all.")
    ] = 200,
) -> None:
    """Compute the posterior of one model.

    Shows the probability of every variable, log Z (and whether it is exact, a
    bound or an estimate), how the algorithm ended, and how long it took (without
    loading and compiling, which the first call does). For a fact graph these are
    the probabilities that claims and passages are true. Unnamed variables of a
    UAI file are called 0, 1, ...

    [b]Examples[/b]

      factormodels infer graph.json
      factormodels infer graph.json --variant FR1 --encoding conditional
      factormodels infer network.uai --evidence network.uai.evid --json
      factormodels infer network.uai --backend lbp --set damping=0.5
      factormodels infer network.uai --seconds 60
      factormodels infer corpus.jsonl --response bridge --out posterior.json
      factormodels infer worked-examples --response factreasoner-example-1
    """
    from experiments.cli.progress import announced
    from experiments.study.backend_settings import build_backend, parse_settings
    from experiments.study.inputs import load_model, with_evidence_file
    from inference import ZeroPartitionError
    from inference.posterior import Status
    from inference.warm_up import warm_up

    # Before the computation, which may take long.
    if out is not None and out.is_dir():
        raise InputError(f"{out}: this is a folder; name a file in it")
    settings = parse_settings(set_ or ())
    if seconds is not None:
        if backend != "auto":
            raise InputError(
                f"--seconds is for the backend auto, and --backend asks for {backend}; leave one "
                "out, or give the limit by --set seconds=S where a backend has it"
            )
        settings = {**settings, "seconds": seconds}
    algorithm = build_backend(backend, settings)
    model = load_model(file, response=response, variant=variant, encoding=encoding)
    graph = model.factor_graph
    if evidence is not None:
        graph = with_evidence_file(graph, evidence)
    # Loaded and compiled before, so that the time shown is inference's alone.
    with announced(messages()):
        warm_up(algorithm)
    try:
        posterior = _tightened(algorithm, graph) if seconds else algorithm.infer(graph)
    except ZeroPartitionError as error:
        raise ZeroPartitionError(f"{file}: {error}") from None
    if out is not None:
        write_text(out, as_json(posterior, graph))
    if json_:
        write_json(as_json(posterior, graph))
        return
    console = output()
    _show_posterior(console, posterior, graph, model.fact_graph, limit=rows)
    if posterior.status is Status.INTERRUPTED:
        messages().print("interrupted: these are the best bounds that were found by then")
    if posterior.status is Status.NOT_CONVERGED and seconds is None:
        messages().print(
            f"{posterior.backend} did not converge: these numbers are where it stood when it "
            f"stopped; see `factormodels backends {posterior.backend}` for its settings"
        )


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


def as_json(posterior: Posterior, graph: FactorGraph | None = None) -> str:
    """The posterior as one JSON object on one line, ending in a newline.

    Keys: `marginals` {name: [probability of each state]}, `log_z` (null where there is none or it
    is not finite), `log_z_kind`, `status`, `stats` (the backend, seconds and what else it reports),
    and, where the states of the graph have names, `states` {name: [name of each state]}.
    """
    from factormodels.io.plain_yaml import jsonable

    names, starts = posterior.marginals.names, posterior.marginals.starts.tolist()
    values = posterior.marginals.flat.tolist()
    marginals = {
        name: values[start:stop]
        for name, start, stop in zip(names, starts, starts[1:], strict=False)
    }
    document = {
        "marginals": jsonable(marginals),
        "log_z": jsonable(posterior.log_z),
        "log_z_kind": str(posterior.log_z_kind),
        "status": str(posterior.status),
        "stats": {"backend": posterior.backend, **jsonable(posterior.stats)},
    }
    if graph is not None and graph.state_names is not None:
        named = zip(graph.names, graph.state_names, strict=True)
        document["states"] = {name: list(own) for name, own in named}
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def _show_posterior(
    console: Console,
    posterior: Posterior,
    graph: FactorGraph,
    fact_graph: FactGraph | None,
    *,
    limit: int = 0,
) -> None:
    """Print the posterior as an aligned table with a line of facts below.

    Args:
        console: where to print.
        posterior: what was computed.
        graph: the factor graph that was asked, with its evidence.
        fact_graph: the fact graph behind it, if there is one.
        limit: rows to show; 0 shows all.
    """
    shown = min(limit or graph.n_variables, graph.n_variables)
    if fact_graph is None:
        table = _general_table(posterior, graph, shown)
    else:
        table = _claims_table(posterior, graph, fact_graph, shown)
    show_table(console, table)
    if shown < graph.n_variables:
        console.print(
            f"... and {graph.n_variables - shown:,} more variables: --rows 0 shows, "
            "--out FILE writes all"
        )
    console.print(_facts(posterior))


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
    posterior: Posterior, graph: FactorGraph, fact_graph: FactGraph, shown: int
) -> Table:
    both: tuple[Atom | Context, ...] = (*fact_graph.atoms, *fact_graph.contexts)
    items = both[:shown]
    labelled = any(atom.label is not None for atom in fact_graph.atoms)
    texts = any(_text(item) for item in items)
    known = ["status", "label", "kind"] if labelled else ["status", "kind"]
    table = plain_table(["variable"], ["P(true)"], known, fold=True)
    table.add_column("prior", justify="right", no_wrap=True)
    if texts:
        table.add_column("text", no_wrap=True, overflow="ellipsis", ratio=1)
    probability = posterior.marginals.of_state(1)
    for position, item in enumerate(items):
        is_atom = isinstance(item, Atom)
        row = [
            item.id,
            f"{probability[position]:.4f}",
            "observed"
            if graph.evidence[position] != UNOBSERVED
            else verdict(float(probability[position])),
        ]
        if labelled:
            label = item.label if isinstance(item, Atom) else None
            row.append("" if label is None else str(label).lower())
        row += ["atom" if is_atom else "context", f"{item.prior:g}"]
        if texts:
            row.append(_text(item))
        table.add_row(*row, style=None if is_atom else "dim")
    return table


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
