"""Pages that are made from the code at every build, so that they cannot drift from it.

They are written into docs/generated: the API reference, one page per package; the command line;
the backends, the keys of a study, the rows of a run and the JSON Schemas.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PACKAGES = ("factormodels", "inference", "calibration", "experiments")

INTERNAL = (".kernels", ".cli.commands")
"""What the names of packages without a page end in: compiled loops behind the backends, and the
command line's options, which have a page of their own."""


def connect(app: Sphinx) -> None:
    """Have the pages written before the sources are listed."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / "generated"))


def write_pages(folder: Path) -> None:
    """Write every generated page; one whose text has not changed keeps its date."""
    from command_line import page as command_line
    from study_keys import network_keys, study_keys

    pages = {f"reference/{name}": reference_page(name) for name in documented_packages()}
    pages["reference/index"] = reference_index()
    pages["command-line"] = command_line()
    pages["schemas"] = schemas_page()
    pages["parts/backends"] = backends_table()
    pages["parts/promises"] = promises_table()
    pages["parts/rows"] = rows_table()
    pages["parts/scores"] = scores_table()
    pages["analyses"] = analyses_page()
    pages["parts/datasets"] = datasets_list()
    pages["parts/formats"] = formats_table()
    pages["parts/verdicts"] = verdicts_table()
    pages["parts/extras"] = extras_table()
    pages["parts/functions"] = functions_table()
    pages["parts/study-keys"] = study_keys()
    pages["parts/network-keys"] = network_keys()
    pages["parts/published"] = published_table()
    wanted = {folder / f"{name}.md": text for name, text in pages.items()}
    for path in folder.rglob("*.md"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def documented_packages() -> list[str]:
    """Packages that have a page, from the lowest layer to the highest."""
    return [name for package in PACKAGES for name in _packages(package)]


def modules_of(package: str) -> list[str]:
    """Package and the public modules directly in it."""
    path = importlib.import_module(package).__path__
    return [
        package,
        *(
            f"{package}.{module.name}"
            for module in sorted(iter_modules(path), key=lambda module: module.name)
            if not module.ispkg and not module.name.startswith("_")
        ),
    ]


def _packages(package: str) -> Iterator[str]:
    yield package
    for module in sorted(
        iter_modules(importlib.import_module(package).__path__), key=lambda module: module.name
    ):
        name = f"{package}.{module.name}"
        if module.ispkg and not name.endswith(INTERNAL):
            yield from _packages(name)


def reference_index() -> str:
    """Page that the reference begins with."""
    listed = "\n".join(documented_packages())
    return (
        "# Reference\n\nMade from the docstrings. Imports run one way: experiments → calibration → "
        "inference → factormodels.\n\n```{toctree}\n:maxdepth: 1\n\n" + listed + "\n```\n"
    )


def reference_page(package: str) -> str:
    """Page of one package: its modules, each with what it defines."""
    parts = [f"# {package}\n"]
    for name in modules_of(package):
        if name != package:
            parts.append(f"## {name.rpartition('.')[2]}\n")
        parts.append(
            f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n```\n"
        )
    return "\n".join(parts)


def schemas_page() -> str:
    """Page of the JSON Schemas."""
    from experiments.analyses.schemas_by_name import SCHEMAS, schema

    parts = [
        "# JSON Schemas\n",
        "Draft 2020-12; `factormodels list schemas NAME` prints them, "
        "`experiments.analyses.schemas_by_name.schema` "
        "returns them. [Data formats](../reference/data-formats.md) says what they are of.\n",
    ]
    for name in SCHEMAS:
        text = json.dumps(schema(name), indent=2, ensure_ascii=False)
        parts.append(f"## {name}\n\n```json\n{text}\n```\n")
    return "\n".join(parts)


def backends_table() -> str:
    """Registered backends with what their entries say."""
    from inference.registry import entries

    rows = [
        f"| `{name}` | {entry.log_z_kind} | {entry.summary} | {entry.limits} | "
        f"{f'`{entry.extra}`' if entry.extra else 'core'} |"
        for name, entry in entries().items()
    ]
    return _table(("name", "log Z", "algorithm", "graphs", "installed with"), rows)


def promises_table() -> str:
    """Promises of every backend by class of graphs, from the table of the tests."""
    from tests.inference.promises import PROMISES

    rows = []
    for promise in PROMISES:
        settings = ", ".join(f"{key}={value}" for key, value in promise.settings.items())
        summary = (promise.graphs.__doc__ or "").split(".")[0].removeprefix("Return ")
        rows.append(
            f"| `{promise.backend}` | {settings} | {promise.kind} | {' '.join(summary.split())} | "
            f"{len(promise.seeds)} | {promise.tolerance:g} | {promise.reason} |"
        )
    heads = ("backend", "settings", "promise", "graphs", "how many", "tolerance", "why so much")
    return _table(heads, rows)


def scores_table() -> str:
    """Scores of the registry with their meanings, better directions and intervals."""
    from calibration.scores import REGISTRY

    better = {True: "higher", False: "lower", None: ""}
    rows = [
        f"| `{name}` | {_cell(score.title)} | {_cell(score.meaning)} | "
        f"{better[score.higher_is_better]} | {str(score.interval).replace('_', ' ')} |"
        for name, score in REGISTRY.items()
    ]
    return _table(("name", "title", "meaning", "better", "interval"), rows)


def rows_table() -> str:
    """Columns of a run's rows."""
    from experiments.study.rows import SCHEMA

    rows = [
        f"| `{field.name}` | {field.type} | {'yes' if field.nullable else 'no'} | "
        f"{(field.metadata or {})[b'description'].decode()} |"
        for field in SCHEMA
    ]
    return _table(("column", "type", "null", "meaning"), rows)


def analyses_page() -> str:
    """Page of the analyses that a study can ask for, each with its settings."""
    from study_keys import analysis_keys

    return (
        "# Analyses\n\n"
        "What a study with the key `analysis` can ask for, and the keys of its `settings`. "
        "[Studies](../reference/studies.md) says how such a study is written; "
        "`factormodels list studies` shows the embedded ones.\n\n" + analysis_keys()
    )


def published_table() -> str:
    """Every number of the papers that ours can be put beside, and its command."""
    from experiments.analyses.published import published_numbers

    rows = []
    for number in published_numbers().to_dict("records"):
        shown = (number[name] for name in ("source", "printed", "command", "needs"))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in shown) + " |")
    return _table(("source", "printed", "command", "data and models of the paper"), rows)


def datasets_list() -> str:
    """Embedded datasets with their titles and licenses."""
    from factormodels import datasets

    rows = []
    for name in datasets.names():
        card = datasets.card(name)
        rows.append(f"| `{name}` | {card.title} | {card.license} |")
    return _table(("dataset", "what", "license"), rows)


def formats_table() -> str:
    """Formats of datasets that are read."""
    from factormodels.io.formats.registry import formats

    rows = [
        f"| `{each.name}` | {each.title} | {each.owner} | {each.holds} | "
        f"{', '.join(f'`{key}`' for key in each.keys)} |"
        for each in formats()
    ]
    return _table(("format", "dataset", "published by", "gives", "known by"), rows)


def verdicts_table() -> str:
    """Tools whose verdicts are read, with their files and probabilities."""
    from factormodels.io.formats.registry import formats

    tools = sorted((each.verdicts for each in formats() if each.verdicts), key=lambda of: of.tool)
    rows = [f"| {of.tool} | {of.file} | {of.probability} |" for of in tools]
    return _table(("tool", "file", "P(true)"), rows)


EXTRAS = {
    "jax": "the backends `exact_jax`, `lbp_jax`, `numpyro` and `pgmax`; derivatives in JAX",
    "pyro": "the backend `mean_field`",
    "pgmpy": "the backend `pgmpy`; models of pgmpy",
    "pyagrum": "the backend `pyagrum`; models of pyAgrum",
    "toulbar2": "the most probable assignment where elimination does not fit",
    "llm": "language models, embeddings and web search; HTML and PDF as documents",
    "learn": "`fit` and `apply`",
    "nli": "local classifiers as relation models",
    "dense": "local models of embeddings",
    "excel": "workbooks of Excel",
    "explore": "the page of `explore`",
    "dask": "runs on a Dask cluster",
    "notebooks": "the notebooks",
    "docs": "the documentation",
    "dev": "the tests",
    "all": "all of these but `dense`",
}
"""Purposes of the extras of setup.cfg."""


def functions_table() -> str:
    """Functions of `experiments` with the first lines of their docstrings."""
    import experiments

    rows = []
    for name in experiments.__all__:
        purpose = (getattr(experiments, name).__doc__ or "").partition("\n\n")[0]
        rows.append(f"| `{name}` | {_cell(' '.join(purpose.split()))} |")
    return _table(("function", "purpose"), rows)


def extras_table() -> str:
    """Extras of the distribution with their purposes and libraries."""
    setup = ConfigParser()
    setup.read(Path(__file__).resolve().parents[1] / "setup.cfg", encoding="utf-8")
    rows = []
    for name, listed in setup["options.extras_require"].items():
        libraries = re.findall(r"^[\w-]+(?=[<>=\[]|$)", listed, re.M)
        rows.append(f"| `{name}` | {EXTRAS[name]} | {', '.join(libraries)} |")
    return _table(("extra", "for", "libraries"), rows)


def _cell(text: str) -> str:
    """Escape the bars, asterisks and powers of a text for a cell of a Markdown table."""
    return re.sub(r"([|*^])", r"\\\1", text)


def _table(heads: tuple[str, ...], rows: list[str]) -> str:
    head = "| " + " | ".join(heads) + " |"
    return "\n".join([head, "|" + " --- |" * len(heads), *rows]) + "\n"
