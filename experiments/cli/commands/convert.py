"""`factormodels convert`: a model from one format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.console import output
from experiments.cli.help_text import choices
from experiments.cli.options import shared
from experiments.findings.text import counted
from factormodels.encodings import DEFAULT_ENCODING, ENCODINGS
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.io import write, write_many
from factormodels.variants import variant as variant_of

SUFFIXES = (".json", ".jsonl", ".uai")


def command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Fact graph JSON, FactReasoner, FActScore, Factcheck-Bench, UAI or BIF; or the "
            "name of an embedded dataset.",
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="A file ending in .json, .jsonl or .uai.")
    ],
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Variant of the fact graphs: given (default), FR1, FR2 or FR3."
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Encoding of relations in a .uai file: {choices(ENCODINGS, DEFAULT_ENCODING)}.",
        ),
    ] = None,
    response: shared.ResponseId = None,
) -> None:
    """Convert a model from one format to another.

    The format of INPUT is recognised by its content, that of OUTPUT is chosen by its
    suffix: .json for one fact graph, .jsonl for one fact graph per line, .uai for a
    factor graph (the names of its variables are written to OUTPUT.names).

    [b]Examples[/b]

      factormodels convert factreasoner.json graph.json
      factormodels convert graph.json graph.uai --variant FR2 \\
          --encoding conditional
      factormodels convert alarm.bif alarm.uai
      factormodels convert annotated.jsonl graphs.jsonl
      factormodels convert demonstration demonstration.jsonl
    """
    output().print(convert(source, target, variant=variant, encoding=encoding, response=response))


def convert(
    source: Path,
    target: Path,
    *,
    variant: str | None = None,
    encoding: str | None = None,
    response: str | None = None,
) -> str:
    """Write the model in `source` as `target` and return one line that says what was written.

    Args:
        source: file of a model, of any format that can be read, or an embedded dataset's name.
        target: file to write; its suffix tells the format.
        variant: view of the fact graphs; as recorded if None.
        encoding: encoding of relations in a factor graph; the default encoding if None.
        response: id of one response, in a file that holds many.

    Raises:
        InputError: if the source is bad, or cannot become what the suffix says.
    """
    from experiments.study.inputs import DEFAULT_VARIANT, load_model, read_graphs, read_model

    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{target}: a model cannot be written to {suffix or 'a file without suffix'}; "
            f"use {', '.join(SUFFIXES)}"
        )
    # samefile sees through links and different spellings of a path.
    if source.exists() and target.exists() and source.samefile(target):
        raise InputError(f"{target}: this is the input itself; give the output another name")
    if suffix == ".uai":
        graph = load_model(
            source, response=response, variant=variant, encoding=encoding
        ).factor_graph
        write(graph, target)
        variables, factors = graph.n_variables, graph.n_factors
        return f"{target}: {counted(variables, 'variable')}, {counted(factors, 'factor')}"
    if encoding is not None:
        raise InputError(
            f"{target}: a fact graph holds relations, not tables, so --encoding {encoding} has "
            "nothing to do; leave it out"
        )
    view = variant or DEFAULT_VARIANT
    if suffix == ".jsonl" and response is None:
        graphs = [variant_of(graph, view) for graph in read_graphs(source)]
        write_many(graphs, target)
        atoms = sum(len(graph.atoms) for graph in graphs)
        return f"{target}: {counted(len(graphs), 'response')}, {counted(atoms, 'atom')}"
    model = read_model(source, response)
    if not isinstance(model, FactGraph):
        raise InputError(
            f"{source}: this is a general network, which has no atoms and contexts; write it to "
            "a .uai file"
        )
    fact_graph = variant_of(model, view)
    write(fact_graph, target)
    parts = (
        counted(len(fact_graph.atoms), "atom"),
        counted(len(fact_graph.contexts), "context"),
        counted(len(fact_graph.relations), "relation"),
    )
    return f"{target}: {', '.join(parts)}"
