"""Loading of factor graphs from files, datasets and objects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from experiments.settings import USUAL, Option, option_of
from experiments.settings.conventions import SourcePriorSettings
from experiments.settings.limits import EncodingName, VariantName
from factormodels.conventions import DEFAULT, Conventions
from factormodels.encodings import CONDITIONAL, DEFAULT_ENCODING
from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import UNOBSERVED, FactorGraph
from factormodels.io import read_any
from factormodels.io.fact_graph_json import DIALECT
from factormodels.io.json import decode
from factormodels.io.source.files import read_text
from factormodels.io.source.opening import exists
from factormodels.io.tables.data_table import looks_like_table
from factormodels.io.tables.records import read_content
from factormodels.nouns import counted, is_or_are
from factormodels.variants import variant as variant_of
from factormodels.words import state_of_truth

DEFAULT_VARIANT = "given"

_SHOWN = 60
"""Characters of a bad value that an error shows."""


@dataclass(frozen=True)
class LoadedModel:
    """Contents of a loaded file.

    Attributes:
        factor_graph: the model.
        fact_graph: the fact graph it was built from; None for a general network.
        encoding: encoding of the fact graph's relations.
        conventions: conventions by which the fact graph became the model.
        variant: the view of the fact graph.
        response: the recorded response, before its view was taken; None for a general network.
    """

    factor_graph: FactorGraph
    fact_graph: FactGraph | None = None
    encoding: str = DEFAULT_ENCODING
    conventions: Conventions = DEFAULT
    variant: str = DEFAULT_VARIANT
    response: FactGraph | None = None


Models = str | os.PathLike[str] | FactGraph | FactorGraph | Iterable[FactGraph]
"""The name of an embedded dataset, the path of a file, a graph, or several fact graphs."""


class ModelSettings(SourcePriorSettings):
    """Model.

    Options that turn data into models: response, view, encoding and priors.
    """

    response: Annotated[str | None, Option("ID", usual=True)] = None
    """Response to use, if the file has several."""

    variant: Annotated[VariantName | None, USUAL] = None
    """Relations of fact graphs to use; by default all as given."""

    encoding: Annotated[EncodingName | None, USUAL] = None
    """Encoding of relations of fact graphs as tables; by default implications."""

    def load(self, source: Models) -> Iterator[LoadedModel]:
        """Yield models one by one, at least one.

        Args:
            source: fact graph JSON, UAI or BIF, recognized by content; an embedded dataset's name;
                or the models themselves.

        Raises:
            InputError: at the model concerned, for a bad file, an unknown name, a variant or
                encoding of a general network, or if there is no response.
        """
        is_named = isinstance(source, str | os.PathLike)
        path = Path(source) if isinstance(source, str | os.PathLike) else Path("the model")
        loaded: FactGraph | FactorGraph | Iterable[FactGraph]
        if not is_named:
            loaded = source if isinstance(source, FactorGraph) else graphs_of(source)
            if self.response is not None and not isinstance(loaded, FactorGraph):
                loaded = [graph for graph in loaded if graph.id == self.response]
        elif self.response is not None:
            loaded = read_model(path, self.response)
        else:
            check_named(path)
            loaded = read_graphs(path) if is_dataset(path) else read_any(path)
        count = 0
        for model in [loaded] if isinstance(loaded, FactGraph | FactorGraph) else loaded:
            yield self._seen(model, path)
            count += 1
        if not count:
            raise InputError(f"{path}: the file contains no response; name another file")

    def load_one(self, source: Models) -> LoadedModel:
        """Load the only model of a source.

        Raises:
            InputError: as `load`, or if there are several responses and none is named.
        """
        if isinstance(source, str | os.PathLike):
            return self._seen(read_model(Path(source), self.response), Path(source))
        models = list(self.load(source))
        if len(models) > 1:
            raise InputError(
                f"there are {counted(len(models), 'response')}; choose one with --response"
            )
        return models[0]

    def _seen(self, model: FactGraph | FactorGraph, path: Path) -> LoadedModel:
        if isinstance(model, FactGraph):
            conventions = self.declared()
            name, encoding = self.variant or DEFAULT_VARIANT, conventions.encoding
            view = variant_of(model, name, conventions)
            factor_graph = view.to_factor_graph(encoding)
            return LoadedModel(factor_graph, view, encoding, conventions, name, model)
        for name in ("variant", "encoding", *SourcePriorSettings.model_fields):
            value = getattr(self, name)
            if value is not None:
                raise InputError(
                    f"{path}: --{option_of(type(self), name).name} {value} applies to fact graphs "
                    "and this is a general network; leave it out"
                )
        return LoadedModel(model)


def relation_remarks(graphs: Iterable[FactGraph], encoding: str) -> tuple[str, ...]:
    """Sentences on informative relations that have no factor, or a different one than stated.

    Args:
        graphs: the views that inference sees.
        encoding: encoding of their relations.
    """
    improbable = neutral = n_relations = opposed = 0
    for graph in graphs:
        if encoding == CONDITIONAL:
            opposed += int(graph.compiled.opposed(graph.compiled.priors).sum())
        improbable += graph.n_too_improbable(encoding)
        neutral += graph.n_neutral_beside_likelier(encoding)
        n_relations += len(graph.column("relations", "kind"))
    why = {
        "less probable than 1/2 and neutral": improbable,
        "neutral beside a likelier entailment or contradiction, and without a factor": neutral,
    }
    remarks = [
        f"{count:,} of {counted(n_relations, 'relation')} {is_or_are(count)} {what} under the "
        f"encoding {encoding}; mixture reads the whole distribution."
        for what, count in why.items()
        if count
    ]
    if opposed:
        remarks.append(
            f"{opposed:,} of {counted(n_relations, 'relation')} {is_or_are(opposed)} weaker than "
            "the prior of the claim in the same table: without the source, the claim has even "
            "odds."
        )
    return tuple(remarks)


def read_graphs(source: Path) -> Sequence[FactGraph]:
    """The responses of a file, or of the embedded dataset that `source` names.

    A file takes precedence over a dataset of the same name.

    Raises:
        InputError: if the file cannot be read or holds no responses.
    """
    from factormodels.io import read_many

    check_named(source)
    if is_dataset(source):
        from factormodels import datasets

        return datasets.load(str(source)).graphs
    return read_many(source)


Responses = str | os.PathLike[str] | FactGraph | Iterable[FactGraph]
"""The name of an embedded dataset, the path of a file, a fact graph, or several of them."""


def graphs_of(responses: Responses) -> tuple[FactGraph, ...]:
    """Fact graphs of a caller's input, at least one, each with a distinct id.

    Raises:
        InputError: for an unknown dataset, a bad file, other objects than fact graphs, no graph, or
            two graphs with the same id.
    """
    if isinstance(responses, FactGraph):
        return (responses,)
    if isinstance(responses, str | os.PathLike):
        return tuple(read_graphs(Path(responses)))
    # Findings and a loaded dataset have them as an attribute.
    items: Any = getattr(responses, "graphs", responses)
    if is_table(items):
        raise InputError(
            "responses must be fact graphs, and this is a table; read them with "
            "factormodels.read_many"
        )
    if not isinstance(items, Iterable):
        raise InputError(
            f"the responses are {responses!r}; give a file, the name of an embedded dataset, or "
            "fact graphs"
        )
    graphs = tuple(items)
    if not graphs:
        raise InputError("there is no response; give at least one fact graph")
    known_ids: set[str] = set()
    for graph in graphs:
        if not isinstance(graph, FactGraph):
            raise InputError(
                f"responses must be fact graphs, but one of these is a {type(graph).__name__}; "
                "read them with factormodels.read_many"
            )
        if graph.id in known_ids:
            raise InputError(f"two responses have the id {graph.id!r}; give each its own")
        known_ids.add(graph.id)
    return graphs


_OF_ROWS = frozenset({".csv", ".tsv", ".parquet", ".feather", ".arrow", ".xlsx"})
"""Suffixes of files with rows instead of responses."""


def is_table(data: object) -> bool:
    """Return whether data are a table: a path with the suffix of a table, a frame, or records."""
    if isinstance(data, str | os.PathLike):
        return Path(data).suffix in _OF_ROWS
    if isinstance(data, list | tuple):
        return bool(data) and isinstance(data[0], Mapping)
    return isinstance(data, Mapping) or any(
        hasattr(data, names) for names in ("columns", "column_names")
    )


def is_present_table(data: object) -> bool:
    """Return whether data are a table in memory, or the path of a table that exists."""
    return is_table(data) and not (isinstance(data, str | os.PathLike) and not Path(data).is_file())


def check_named(source: Path, otherwise: str = "or the path of a file") -> None:
    """Raise an error for a word that is neither a file nor the name of an embedded dataset.

    Args:
        source: the word, or any other input.
        otherwise: description of other accepted input, for the error.
    """
    if exists(source) or source.suffix or len(source.parts) > 1 or is_dataset(source):
        return
    from factormodels import datasets

    known = unknown_name(f"the dataset {str(source)!r}", str(source), datasets.names())
    raise InputError(f"{known}; name another, {otherwise}")


def read_model(source: Path, response: str | None = None) -> FactGraph | FactorGraph:
    """Read the only model of a file, or one response of a file or embedded dataset.

    Raises:
        InputError: if there is no such model, no response of that name, or several responses and
            none is named.
    """
    check_named(source)
    if is_dataset(source):
        graphs: Iterable[FactGraph] = read_graphs(source)
    else:
        model = read_any(source)
        if isinstance(model, FactorGraph):
            if response is not None:
                raise InputError(
                    f"{source}: it holds no responses; leave --response {response} out"
                )
            return model
        graphs = model
    wanted, count = None, 0
    known: list[str] = []
    # One graph at a time is in memory, whatever the number in the file.
    for graph in graphs:
        count += 1
        known += [graph.id] if count <= 4 else []
        if graph.id == response or (response is None and count == 1):
            wanted = graph
    ids = ", ".join(known) + (", ..." if count > 4 else "")
    if response is None and count > 1:
        raise InputError(
            f"{source}: it holds {counted(count, 'response')}; choose one with --response ({ids})"
        )
    if wanted is not None:
        return wanted
    raise InputError(f"{source}: there is no response {response!r}; it holds {ids}")


def is_dataset(source: Path) -> bool:
    """Return True if `source` names an embedded dataset and not a file."""
    from factormodels import datasets

    return str(source) in datasets.names() and not exists(source)


def evidence_parts(evidence: Any) -> Any:
    """Evidence as a tuple: mappings, texts NAME=STATE, and paths of files."""
    if evidence is None:
        return ()
    several = evidence if isinstance(evidence, list | tuple) else (evidence,)
    return tuple(
        Path(part) if isinstance(part, str) and ("=" not in part or exists(Path(part))) else part
        for part in several
    )


Evidence = Path | str | Mapping[str, Any]
"""A UAI or JSON evidence file, the content of a JSON file, or a text NAME=STATE."""


def with_evidence(graph: FactorGraph, evidence: Evidence | Iterable[Evidence]) -> FactorGraph:
    """Add evidence, in one part or several, to `graph`.

    The JSON object maps the name of a variable to its observed state, or to a list with one
    likelihood per state (soft evidence). A state is given by its name, by its number from 0 unless
    the names are other numbers, or as true or false. These mean states 1 and 0 or, if states have
    names, the states with names such as true and false or yes and no.

    Raises:
        InputError: if a file cannot be read, or an observation does not fit the graph or another
            part.
    """
    for part in evidence_parts(evidence):
        if isinstance(part, str):
            graph = _with_typed_evidence(graph, part)
        elif isinstance(part, Mapping):
            graph = _with_json_evidence(graph, dict(part))
        elif not exists(part):
            raise InputError(
                f"--evidence {part}: there is no such file; name a file, or a variable with its "
                "state, such as --evidence Alarm=on"
            )
        else:
            graph = _with_evidence_of_file(graph, part)
    return graph


_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".xlsx", ".parquet", ".arrow", ".feather")
"""Suffixes of files with rows of evidence."""


def is_evidence_table(part: Any) -> bool:
    """Return True if evidence is a table with a row for each case, by its name or content.

    Raises:
        InputError: if a file cannot be read.
    """
    if not isinstance(part, Path):
        return hasattr(part, "columns") or hasattr(part, "column_names")
    suffixes = [suffix.lower() for suffix in part.suffixes if suffix.lower() != ".gz"]
    if suffixes and suffixes[-1] in _TABLES:
        return True
    # A pipe can be read once, and holds one observation of each variable.
    if not part.is_file():
        return False
    content = read_content(part, in_memory=True)
    if not isinstance(content, str):
        return True
    text = content.lstrip()
    if text.startswith("["):
        return text[1:].lstrip().startswith("{")
    # Evidence of UAI is nothing but whole numbers.
    return (
        not text.startswith("{")
        and not all(word.isdecimal() for word in text.split())
        and looks_like_table(text)
    )


def _with_typed_evidence(graph: FactorGraph, text: str) -> FactorGraph:
    """The graph with the evidence of a text NAME=STATE."""
    name, _, word = text.rpartition("=")
    position = graph.index.get(name)
    if position is not None and graph.evidence[position] != UNOBSERVED:
        raise InputError(f"--evidence {text}: {name!r} is already observed; keep one of its states")
    if position is None and "," in name:
        each = " ".join(f"--evidence {part.strip()}" for part in text.split(","))
        raise InputError(f"--evidence {text}: name one variable in each; write {each}")
    names = () if position is None or graph.state_names is None else graph.state_names[position]
    state: Any = word
    # A state's name takes precedence over the text's value in JSON.
    if word not in names:
        with suppress(json.JSONDecodeError):
            state = json.loads(word)
    try:
        return _with_json_evidence(graph, {name: state})
    except InputError as error:
        raise InputError(f"--evidence {text}: {error}") from None


def _with_evidence_of_file(graph: FactorGraph, path: Path) -> FactorGraph:
    text = read_text(path)
    if not text.strip():
        raise InputError(f"{path}: the file is empty; write 0 for no observations")
    try:
        if text.lstrip().startswith(("{", "[")):
            return _with_json_evidence(graph, decode(text, path))
        from factormodels.io.networks.uai_results import parse_evidence

        return graph.with_evidence(parse_evidence(text, path))
    except InputError as error:
        # Errors of the readers name the file already; those of the graph do not know it.
        if str(error).startswith((f"{path}:", f"{path},")):
            raise
        raise InputError(f"{path}: {error}") from None


def evidence_schema() -> dict[str, Any]:
    """JSON Schema of evidence in JSON: observations by name of variable."""
    return {
        "$schema": DIALECT,
        "$id": "urn:factormodels:evidence:1",
        "title": "Evidence",
        "description": "Names of variables and their observed states; whether these exist depends "
        "on the graph.",
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {
                    "type": "integer",
                    "minimum": 0,
                    "description": "the state, counted from 0; refused where names are others",
                },
                {"type": "boolean", "description": "states 1 and 0, or those with such names"},
                {"type": "string", "description": "the state's name, where states have names"},
                {
                    "type": "array",
                    "items": {"type": "number", "minimum": 0},
                    "minItems": 1,
                    "description": "soft evidence: a likelihood for each state",
                },
            ]
        },
    }


def _with_json_evidence(graph: FactorGraph, data: Any) -> FactorGraph:
    """The graph with the hard and soft evidence of a JSON object."""
    if not isinstance(data, dict):
        raise InputError(
            "evidence in JSON must be an object that maps names to states; write {...}"
        )
    # A likely mistake, with a separate message: every fact graph is a JSON object as well.
    nodes = data.get("nodes")
    if isinstance(nodes, list) and any(isinstance(node, dict) for node in nodes):
        raise InputError(
            "this is a fact graph, not evidence; write an object of names and states, such as "
            '{"c1": 1}'
        )
    hard: dict[str, Any] = {}
    soft: dict[str, list[float]] = {}
    for name, state in data.items():
        if not isinstance(state, list):
            named = isinstance(state, str) and graph.state_names is not None
            if not named and isinstance(state, dict | str) and len(repr(state)) > _SHOWN:
                raise InputError(
                    f"evidence on {name!r}: {_short(state)} is not a state; give a whole number "
                    "from 0, or true or false"
                )
            # JSON's true is Python's True, which is no state number by type.
            hard[name] = _truth_state(graph, name, state) if isinstance(state, bool) else state
        elif all(isinstance(v, int | float) and not isinstance(v, bool) for v in state):
            if state and not any(state):
                raise InputError(
                    f"evidence on {name!r}: every likelihood is zero; give one state more than 0"
                )
            soft[name] = state
        else:
            raise InputError(
                f"evidence on {name!r}: {_short(state)} is not a list of numbers; correct it"
            )
    return graph.with_evidence(hard).with_soft_evidence(soft)


def _truth_state(graph: FactorGraph, name: str, truth: bool) -> int | str:
    """Return the state of the value true or false."""
    if graph.state_names is None or name not in graph.index:
        return int(truth)
    named = graph.state_names[graph.index[name]]
    state = state_of_truth(named, truth=truth)
    if state is None:
        raise InputError(
            f"evidence on {name!r}: {str(truth).lower()} names none of its states, which are "
            f"{', '.join(named)}; give one of these names"
        )
    return state


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
