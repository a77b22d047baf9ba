"""The shape of the house: which way imports run, what an import loads, what library code does."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.processes import run_python

ROOT = Path(__file__).resolve().parents[1]

LAYERS = ("factormodels", "inference", "calibration", "experiments")
"""The packages from the lowest to the highest: each imports only itself and those before it."""

LIBRARY = ("factormodels", "inference", "calibration")

ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "factormodels": (
        *(("selection",), ("datasets", "extraction"), ("aligned_claims", "io")),
        ("metadata",),
        ("interchange", "samples", "synthetic", "variants"),
        *(("fact_graph",), ("compile", "conventions")),
        ("discourse", "encodings", "passage_sources", "words"),
        ("claims", "factor_graph"),
        ("arrays", "decoded_values", "texts", "validation"),
        *(("errors", "object_repr"), ("control_characters", "garbage_collection", "nouns")),
    ),
    "factormodels.io": (
        *(("file_report",), ("reading", "taught_responses", "writing")),
        *(("formats", "networks"), ("relation_record", "relation_table"), ("claim_rows", "labels")),
        ("claim_records", "fact_graph_json", "learned_files", "store"),
        *(("tables",), ("json", "yaml"), ("not_used", "source")),
    ),
    "factormodels.extraction": (
        ("claim_failures", "fastfact", "refusals", "self_judgment"),
        *(("pipeline", "preverification"), ("probe", "stages", "text_match")),
        ("relation_models", "retrieval"),
        *(("asking",), ("embeddings", "prompts"), ("language_model",)),
        ("addressed", "http"),
        ("concurrency", "optional_libraries", "sentences", "word_lists"),
    ),
    "inference": (
        ("compile_kernels", "conformance"),
        *(("warm_up",), ("tasks",), ("auto", "builtin_backends", "peers"), ("anytime",)),
        *(("sampling",), ("mini_buckets", "variational"), ("exact", "messages")),
        *(("row_posteriors", "trace"), ("batch", "enumeration"), ("memory", "possible_states")),
        ("stacked_graphs", "stop"),
        ("kernels", "registry"),
        *(("backend",), ("evidence", "thread_team"), ("evidence_rows", "posterior", "settings")),
    ),
    "calibration": (
        ("compile_kernels", "learned_potentials"),
        ("scoring",),
        ("cells",),
        ("figures",),
        ("label_bias", "self_knowledge"),
        ("significance",),
        ("claims", "recalibration", "curves", "estimation", "filtering"),
        ("scores",),
        ("intervals",),
        ("folds", "forecasts"),
        ("labels",),
        ("grouping",),
        ("estimate", "tabular", "validation"),
    ),
    "calibration.scores": (
        *(("response_measures",), ("estimates",), ("many_samples",), ("registry",)),
        *(("families",), ("binning", "cells")),
        *(("definition", "logistic", "mesh_sums"),),
        *(("coverage", "kernels", "measures"),),
    ),
    "experiments": (
        *(("cli",), ("methods",), ("analyses", "pages"), ("networks",), ("study",)),
        ("evaluators",),
        *(("asking",), ("columns",), ("findings", "progress", "settings")),
        ("destination", "parallel_map"),
        ("worker_process",),
    ),
}
"""The rooms of a package, its folders and the modules at its top, from the highest to the lowest:
each imports only itself and those of later rows. `__init__` stands above all of them."""

FOLDERS = {*LAYERS, "docs", "notebooks", "tests"}

NOT_AT_IMPORT = {
    *("torch", "jax", "jaxlib", "pyro", "numpyro", "pgmpy", "pgmax", "litellm", "networkx"),
    *("numba", "scipy", "pandas", "sklearn", "statsmodels", "matplotlib"),
}

MOST_MODULES = 400
"""An import of the library loads about 310 modules, most of them numpy's."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


ENTRY = "factormodels/__main__.py"
"""The command, which is called `python -m factormodels`: the one place that imports upwards.

An entry point looked up at run time would name the command without an import, and fail where what
is installed is older than the source, or is another checkout."""


def sources(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


class Outline(NamedTuple):
    """The parts of a source that tests read; trees of all sources would take hundreds of MB."""

    imports: tuple[tuple[str, int], ...]
    """Absolute names of imported modules and their lines, imports within functions too."""

    loads: tuple[tuple[str, str], ...]
    """Imported modules, and names imported from them; without what is imported for types alone."""

    classes: tuple[str, ...]
    """Names of classes."""

    parts: tuple[tuple[int, int], ...]
    """First and last lines of parts of functions: one statement that holds others, or two in a
    row.
    """


def outline(path: Path) -> Outline:
    """Return the outline of a module."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    return _outline(path.read_text(encoding="utf-8"), tuple(package))


@cache
def _outline(source: str, package: tuple[str, ...]) -> Outline:
    """Cached outline of a source within a package: every source is parsed once."""
    imports, loads, classes, parts = [], [], [], []
    tree = ast.parse(source)
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, for_types = waiting.pop()
        if isinstance(node, ast.Import):
            imports += [(alias.name, node.lineno) for alias in node.names]
            loads += [] if for_types else [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            imports.append((".".join([*base, node.module or ""]), node.lineno))
            loads += [] if for_types else [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name)
        elif isinstance(node, ast.stmt):
            parts += list(_parts(getattr(node, "body", [])))
        # Expressions, which are most of a tree, hold no statements.
        for field in ("cases", "handlers", "orelse", "finalbody"):
            waiting += [(each, for_types) for each in reversed(getattr(node, field, []))]
        within = for_types or (isinstance(node, ast.If) and is_for_types(node))
        waiting += [(each, within) for each in reversed(getattr(node, "body", []))]
    return Outline(tuple(imports), tuple(loads), tuple(classes), tuple(parts))


def _parts(body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    alone = [(each, each) for each in body if hasattr(each, "body")]
    for first, last in (*alone, *pairwise(body)):
        if not is_docstring_or_import(first) and not is_docstring_or_import(last):
            yield first.lineno, last.end_lineno or 0


def imported_names(path: Path) -> tuple[tuple[str, int], ...]:
    """Return (absolute name of an imported module, line), imports within functions too."""
    return outline(path).imports


def nodes_about(words: Iterable[str], source: str) -> Iterator[ast.AST]:
    """Yield the nodes of a source; none where no word of those looked for is in it."""
    if any(word in source for word in words):
        yield from ast.walk(ast.parse(source))


def upward_imports(path: Path) -> list[str]:
    layer = LAYERS.index(module_name(path).split(".")[0])
    above = LAYERS[layer + 1 :]
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for name, line in imported_names(path)
        if name.split(".")[0] in (*above, "tests")
    ]


def room_faults(package: str) -> list[str]:
    """Return the imports of a package that run from one room into one that is no lower."""
    row = {room: number for number, rooms in enumerate(ROOMS[package]) for room in rooms}
    folder = package.replace(".", "/")
    faults = []
    for path in sources(folder):
        own_room = path.relative_to(ROOT / folder).with_suffix("").parts[0]
        if own_room in ("__init__", "__main__"):
            continue
        for name, line in imported_names(path):
            room = name.removeprefix(f"{package}.").partition(".")[0]
            where = f"{path.relative_to(ROOT)}:{line}"
            if name == package:
                faults.append(f"{where} imports {package} as a whole")
            elif name.startswith(f"{package}.") and room != own_room and row[own_room] >= row[room]:
                faults.append(f"{where} imports {name}")
    return faults


def library_faults(source: str) -> list[str]:
    """Return what library code must not do: print, configure logging, assert."""
    faults = []
    for node in nodes_about(("assert", "print", "basicConfig"), source):
        if isinstance(node, ast.Assert):
            faults.append(f"line {node.lineno}: assert")
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name == "basicConfig" or (isinstance(called, ast.Name) and name == "print"):
                faults.append(f"line {node.lineno}: {name}")
    return faults


def doubled_classes() -> dict[str, list[str]]:
    """Return the public class names that are defined more than once, with their modules.

    `Settings` of an analysis is identified by its module.
    """
    places: dict[str, list[str]] = {}
    for path in sources(*LAYERS):
        module = module_name(path)
        for name in outline(path).classes:
            if name.startswith("_"):
                continue
            if name != "Settings" or not module.startswith("experiments.analyses."):
                places.setdefault(name, []).append(module)
    return {name: modules for name, modules in places.items() if len(modules) > 1}


def is_for_types(statement: ast.If) -> bool:
    """Return whether imports within a statement are for types alone."""
    return "TYPE_CHECKING" in ast.unparse(statement.test)


def loaded_by(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """Return what a module loads, in its functions too, and the folders of that.

    The folders of the module itself are being loaded already, and count if it imports from them.
    """
    name = module_name(path)
    loaded = {
        whole if (whole := f"{module}.{imported}") in modules else module
        for module, imported in outline(path).loads
    }
    packages = {".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 2)}
    folders = {each.rpartition(".")[0] for each in loaded}
    for each in tuple(folders):
        folders.update(".".join(each.split(".")[:depth]) for depth in range(1, each.count(".") + 1))
    return (loaded | (folders - packages)) & modules.keys()


def circle_of_files(paths: Iterable[Path]) -> list[str]:
    """Return modules that need each other, at import or in a function; none if there are none.

    Every module is a start, since a package can hide a circle by loading its parts in order.
    """
    modules = {module_name(path): path for path in paths}
    try:
        TopologicalSorter({n: loaded_by(path, modules) for n, path in modules.items()}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", LAYERS)
def test_imports_run_downwards(package: str) -> None:
    paths = sources(package)
    assert paths, f"there is no source in {package}"
    faults = [fault for path in paths for fault in upward_imports(path)]
    assert [fault for fault in faults if not fault.startswith(f"{ENTRY}:")] == []


def test_no_files_import_in_a_circle() -> None:
    assert circle_of_files(sources(*LAYERS)) == []


@pytest.mark.parametrize("hidden", ["", "import lower\n"])
def test_a_circle_is_seen_through_a_folder(
    hidden: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.test_architecture.ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    written = {
        # What hides it: who imports `top` has the room loaded before.
        "top.py": f"{hidden}import room\nimport low\n",
        "low.py": "if True:\n    from room.words import WORDS\n",
        "lower.py": "",
        "room/__init__.py": "from room.reader import read\n",
        "room/reader.py": "import low\n",
        "room/words.py": "import lower\n",
    }
    for name, source in written.items():
        (tmp_path / name).write_text(source, encoding="utf-8")
    assert {*circle_of_files(tmp_path.rglob("*.py"))} == {"low", "room", "room.reader"}
    (tmp_path / "room/__init__.py").write_text("", encoding="utf-8")
    assert circle_of_files(tmp_path.rglob("*.py")) == []


@pytest.mark.parametrize("end", ["top", "room"])
def test_a_circle_is_seen_through_a_function(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.test_architecture.ROOT", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "top.py").write_text("import room\n", encoding="utf-8")
    (tmp_path / "room/__init__.py").write_text("from room.low import WORDS\n", encoding="utf-8")
    low = tmp_path / "room/low.py"
    low.write_text(f"def asked():\n    from {end} import read\n", encoding="utf-8")
    assert {*circle_of_files(tmp_path.rglob("*.py"))} == {"room", "room.low", end}
    low.write_text(f"if TYPE_CHECKING:\n    from {end} import read\n", encoding="utf-8")
    assert circle_of_files(tmp_path.rglob("*.py")) == []


def test_the_command_alone_imports_upwards_and_nothing_imports_it() -> None:
    upward = [fault.partition(" ")[2] for fault in upward_imports(ROOT / ENTRY)]
    assert upward == ["imports experiments.cli.main"]
    entry = module_name(ROOT / ENTRY)
    importing = [
        path for path in sources(*LAYERS) for name, _ in imported_names(path) if name == entry
    ]
    assert importing == []


def test_experiments_has_rooms_alone() -> None:
    at_the_top = {path.name for path in (ROOT / "experiments").glob("*.py")}
    # Every room may report progress, may be given a destination for what it found, and may have
    # tasks run elsewhere.
    modules = {"destination.py", "parallel_map.py", "progress.py", "worker_process.py"}
    assert at_the_top == {"__init__.py", "__main__.py", *modules}


@pytest.mark.parametrize("package", ROOMS)
def test_rooms_import_only_lower_ones(package: str) -> None:
    existing = {
        path.name if path.is_dir() else path.stem
        for path in (ROOT / package.replace(".", "/")).iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("__")) or any(path.glob("*.py"))
    }
    listed = {room for rooms in ROOMS[package] for room in rooms}
    assert existing == listed, (
        f"not in ROOMS and in {package}, or the reverse: {', '.join(sorted(existing ^ listed))}; "
        "change ROOMS in this file, and for a folder docs/development/architecture.md"
    )
    assert room_faults(package) == []


def test_an_import_between_rooms_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "ROOMS", {"p": (("high",), ("one", "other"), ("low",))})
    (tmp_path / "p" / "one").mkdir(parents=True)
    (tmp_path / "p" / "__init__.py").write_text("from p.high import x\n")
    (tmp_path / "p" / "low.py").write_text("import p.low\n")
    (tmp_path / "p" / "one" / "module.py").write_text(
        "from p.low import x\n"
        "from p.one.module import y\n"
        "from p.other.deep import z\n"
        "from p import x\n"
        "def late():\n"
        "    from ..high import z\n"
    )
    assert room_faults("p") == [
        "p/one/module.py:3 imports p.other.deep",
        "p/one/module.py:4 imports p as a whole",
        "p/one/module.py:6 imports p.high",
    ]


def test_an_upward_import_is_seen_in_every_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "inference" / "deep" / "module.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import numpy, calibration.scores.families.pointwise\n"
        "from factormodels import read\n"
        "from experiments.cli.main import main\n"
        "from .. import exact\n"
        "from calibrationlike import thing\n"
        "def late():\n"
        "    from calibration import brier\n"
    )
    assert upward_imports(path) == [
        "inference/deep/module.py:1 imports calibration.scores.families.pointwise",
        "inference/deep/module.py:3 imports experiments.cli.main",
        "inference/deep/module.py:7 imports calibration",
    ]


@pytest.mark.parametrize("packages", [(package,) for package in LIBRARY] + [LIBRARY])
def test_an_import_loads_nothing_heavy(packages: tuple[str, ...]) -> None:
    loaded, _ = run_python(
        f"import sys, {', '.join(packages)}; print(*{{m.partition('.')[0] for m in sys.modules}})"
    )
    modules = set(loaded.split())
    assert set(packages) <= modules
    assert modules & NOT_AT_IMPORT == set()


def test_an_import_loads_little() -> None:
    # What is loaded is counted, since seconds depend on what else the machine does.
    loaded, _ = run_python(f"import sys, {', '.join(LIBRARY)}; print(len(sys.modules))")
    assert int(loaded) < MOST_MODULES


def test_the_folders_are_those_of_the_house() -> None:
    ignored = [
        line.strip("/")
        for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir()
        and not path.name.startswith(".")
        and not any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored)
    }
    assert {*LAYERS, "tests"} <= folders <= FOLDERS


def test_library_code_neither_prints_nor_asserts_nor_configures_logging() -> None:
    faults = [
        f"{path.relative_to(ROOT)}, {fault}"
        for path in sources(*LAYERS)
        for fault in library_faults(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_every_class_has_a_name_of_its_own() -> None:
    assert doubled_classes() == {}


def test_faults_of_library_code_are_seen() -> None:
    source = (
        "assert x\n"
        "print(1)\n"
        "logging.basicConfig()\n"
        "console.print(1)\n"
        "basicConfig()\n"
        "'print(1); assert x'\n"
    )
    assert library_faults(source) == [
        "line 1: assert",
        "line 2: print",
        "line 3: basicConfig",
        "line 5: basicConfig",
    ]


ADDRESS_GATE = "factormodels/extraction/http/addresses.py"
REQUEST_GATES = {
    "factormodels/extraction/http/requests.py": {"AsyncClient"},
    # What it makes an address of is one that was read already.
    "factormodels/extraction/http/transport.py": {
        "URL",
        "AsyncConnectionPool",
        "AsyncHTTPTransport",
    },
}
"""The files that send requests, with what each may call."""

READS_ADDRESSES = {"urllib", "idna", "yarl", "requests", "aiohttp", "urllib3"}
"""Libraries that read addresses, each with exceptions of its own."""

SENDS_REQUESTS = {"AsyncClient", "URL", "urlopen", "AsyncConnectionPool", "AsyncHTTPTransport"}


def address_faults(path: Path) -> list[str]:
    """Return where an address would be read, or asked for, but by the gate for addresses."""
    faults = [
        f"line {line}: {name}"
        for name, line in imported_names(path)
        if name.partition(".")[0] in READS_ADDRESSES
    ]
    allowed = REQUEST_GATES.get(str(path.relative_to(ROOT)), set())
    for node in nodes_about(SENDS_REQUESTS, path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in SENDS_REQUESTS - allowed:
                faults.append(f"line {node.lineno}: {name}")
    return faults


def test_addresses_pass_one_gate() -> None:
    faults = [
        f"{path.relative_to(ROOT)}, {fault}"
        for path in sources(*LAYERS)
        if path != ROOT / ADDRESS_GATE
        for fault in address_faults(path)
    ]
    assert faults == []


def test_a_way_round_the_gate_for_addresses_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        "from urllib.parse import urljoin\n"
        "import httpx\n"
        "httpx.URL(link)\n"
        "async def late():\n"
        "    import idna\n"
        "    httpx.AsyncClient()\n"
    )
    assert address_faults(path) == [
        "line 1: urllib.parse",
        "line 5: idna",
        "line 3: URL",
        "line 6: AsyncClient",
    ]


PARSED_BY_NICEGUI = {
    *("default_props", "default_classes", "default_style", "run_javascript", "eval"),
    *("run_method", "run_chart_method", "add_slot", "add_head_html", "add_body_html", "add_css"),
    *("html", "markdown", "restructured_text", "mermaid", "interactive_image", "set_content"),
}
"""What reads a text as attributes, HTML, a template or JavaScript."""

CLASSES = {"classes", "style"}
"""What reads a text as classes or styles, which may be ours alone."""


def page_faults(source: str) -> list[str]:
    """Return where a text of a graph could act on a page of NiceGUI.

    Attributes are set by value, by the function `_with` alone, whose names are identifiers: a name
    that begins with a colon would make JavaScript of its value.
    """
    tree = ast.parse(source)
    gate = [node for node in tree.body if getattr(node, "name", "") == "_with"]
    within = {id(node) for function in gate for node in ast.walk(function)}
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("props", "_props"):
            faults += [f"line {node.lineno}: {node.attr}"] * (id(node) not in within)
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        computed = any(not isinstance(value, ast.Constant) for value in given)
        if name in PARSED_BY_NICEGUI or (name in CLASSES and computed):
            faults.append(f"line {node.lineno}: {name}")
        faults += [
            f"line {node.lineno}: {keyword.arg}"
            for keyword in node.keywords
            if keyword.arg in ("js_handler", "html", "options_html", "sanitize")
            or (name == "_with" and keyword.arg is None)
        ]
    return sorted(faults)


def test_no_text_acts_on_the_page() -> None:
    users = {
        str(path.relative_to(ROOT).parent): path
        for path in sources(*LAYERS)
        if any(name.split(".")[0] == "nicegui" for name, _ in imported_names(path))
    }
    assert [*users] == ["experiments/pages"]
    faults = [
        f"{path.relative_to(ROOT)}, {fault}"
        for path in sources("experiments/pages")
        for fault in page_faults(path.read_text(encoding="utf-8"))
    ]
    assert faults == []


def test_a_text_that_would_act_on_a_page_is_seen() -> None:
    source = (
        "slider.props(f'data-testid=\"{name}\"')\n"
        "label.props('dense')\n"
        "label.classes('w-full').style(color)\n"
        "element._props[key] = value\n"
        "ui.html(text, sanitize=False)\n"
        "label.on('click', js_handler=text)\n"
        "def _with(element, name, value):\n"
        "    element.props[name] = value\n"
        "_with(label, **named)\n"
    )
    assert page_faults(source) == [
        "line 1: props",
        "line 2: props",
        "line 3: style",
        "line 4: _props",
        "line 5: html",
        "line 5: sanitize",
        "line 6: js_handler",
        "line 9: None",
    ]


MARKED = {
    "service": ("ScriptedServer", "WebServer", "LocalCluster", "cluster_here"),
    "notebook": ("tests.notebooks.execution", "execute_notebooks import"),
    "browser": ("playwright.sync_api",),
    "kill": ("SIGKILL", "SIGINT", "killed_run import"),
}
"""By marker of a test, what a module holds whose tests, or some of them, must carry it."""


def missing_markers(source: str) -> list[str]:
    return [
        marker
        for marker, signs in MARKED.items()
        if any(sign in source for sign in signs) and f"pytest.mark.{marker}" not in source
    ]


def test_tests_that_a_quick_run_leaves_out_are_marked() -> None:
    paths = [path for path in sources("tests") if path.name.startswith("test_")]
    missing = {
        str(path.relative_to(ROOT)): missing_markers(path.read_text(encoding="utf-8"))
        for path in paths
        if path != Path(__file__).resolve()
    }
    assert {name: markers for name, markers in missing.items() if markers} == {}


def test_a_missing_marker_is_seen() -> None:
    source = "from x import ScriptedServer\nos.kill(1, SIGKILL)\npytestmark = pytest.mark.kill\n"
    assert missing_markers(source) == ["service"]


GATES: dict[str, tuple[str, ...]] = {
    # The second reads nothing where there is no file; the third rescues into a file without a name.
    "sqlite3": tuple(
        f"factormodels/io/store/{name}.py" for name in ("sqlite", "tables", "results")
    ),
    "yaml": ("factormodels/io/yaml.py",),
    "openpyxl": ("factormodels/io/tables/workbooks.py",),
    "pyarrow": ("factormodels/io/tables/arrow.py",),
}
"""By library what alone may read with it: these files turn its faults into sentences."""

ARROW_READERS = {
    *(
        "open_file",
        "open_stream",
        "read_record_batch",
        "read_message",
        "read_schema",
        "read_tensor",
    ),
    *("ParquetFile", "ParquetDataset", "read_table", "read_pandas", "read_metadata", "memory_map"),
    *("read_feather", "read_row_group", "read_row_groups", "iter_batches", "RecordBatchFileReader"),
    *("RecordBatchStreamReader", "FileSystemDataset", "read_parquet", "read_orc", "read_ipc"),
}
"""What pyarrow, and pandas through it, opens files and bytes by; all else of it may be used."""


def ways_round(path: Path) -> list[str]:
    """Return where a file reads with a library that has a gate, unless it is that gate."""
    name = str(path.relative_to(ROOT))
    faults = [
        f"{name}:{line} imports {library}"
        for library, line in imported_names(path)
        if library in ("sqlite3", "yaml", "openpyxl") and name not in GATES[library]
    ]
    if name in GATES["pyarrow"]:
        return faults
    for node in nodes_about(ARROW_READERS, path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Attribute) and node.attr in ARROW_READERS:
            faults.append(f"{name}:{node.lineno} reads by {node.attr}")
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyarrow"):
            faults += [
                f"{name}:{node.lineno} reads by {alias.name}"
                for alias in node.names
                if alias.name in ARROW_READERS
            ]
    return faults


def test_files_of_others_are_read_through_their_gates() -> None:
    assert [fault for path in sources(*LAYERS) for fault in ways_round(path)] == []


def test_a_way_round_a_gate_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        "import pyarrow as pa\n"
        "import pyarrow.parquet as pq\n"
        "from pyarrow.parquet import ParquetFile, write_table\n"
        "def late():\n"
        "    import sqlite3\n"
        "    from yaml import safe_load\n"
        "    read_table(x)\n"
        "    return pq.read_table(x), pa.ipc.open_stream(x), pa.table(x)\n"
    )
    assert ways_round(path) == [
        "module.py:5 imports sqlite3",
        "module.py:6 imports yaml",
        "module.py:3 reads by ParquetFile",
        "module.py:8 reads by read_table",
        "module.py:8 reads by open_stream",
    ]


LATEX_MAKERS = {"experiments/findings/latex.py", "experiments/findings/markup.py"}
"""What may say of a text that it is LaTeX; all others have theirs from `escape_latex`."""


def test_few_say_of_a_text_that_it_is_latex() -> None:
    makers = {
        str(path.relative_to(ROOT))
        for path in sources(*LAYERS)
        for node in nodes_about(["Latex"], path.read_text(encoding="utf-8"))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "Latex"
    }
    assert makers == LATEX_MAKERS
    # Only one of them begins a comment, so that no text can leave one.
    beginning = {
        str(path.relative_to(ROOT))
        for path in sources(*LAYERS)
        if re.search(r"""f["']%\s""", path.read_text(encoding="utf-8"))
    }
    assert beginning == {"experiments/findings/markup.py"}


def twice(paths: Sequence[Path]) -> list[list[str]]:
    """Places of code in functions that stands more than once, five lines or more of it."""
    places: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        for first, last in outline(path).parts:
            if last - first >= 4:
                part = tuple(line.strip() for line in lines[first - 1 : last])
                places.setdefault(part, []).append(f"{path.relative_to(ROOT)}:{first}")
    return [places_of_text for places_of_text in places.values() if len(places_of_text) > 1]


def is_docstring_or_import(node: ast.stmt) -> bool:
    """True for a docstring or an import."""
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def test_no_code_of_five_lines_stands_twice() -> None:
    # Kernels are compiled, each by itself.
    assert twice([path for path in sources(*LAYERS) if "kernels" not in path.parts]) == []


def test_code_that_stands_twice_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    lines = ("    try:", "        x = 1", "    except OSError:", "        x = 2", "    return x")
    path = tmp_path / "module.py"
    path.write_text("\n".join(("def one():", *lines, "def other():", *lines, "")))
    assert twice([path]) == [["module.py:2", "module.py:8"]]
