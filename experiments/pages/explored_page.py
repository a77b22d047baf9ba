"""The page of `factormodels explore`: sliders and switches on the left, results on the right.

Served by NiceGUI on the loopback interface alone, at an address that holds a token.
"""

from __future__ import annotations

import io
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.findings.figures.drawing import draw_to
from experiments.findings.figures.graph_figure import draw_fact_graph, in_words
from experiments.settings.conventions import graph_names, note_of
from experiments.study.units import strengthened
from factormodels.conventions import DEFAULT
from factormodels.encodings import ENCODINGS
from factormodels.errors import FactormodelsError, InputError, MissingDependencyError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.fact_graph_json import write_fact_graph
from factormodels.io.networks.uai_results import write_evidence
from factormodels.io.source.files import write_text
from factormodels.variants import VARIANTS, variant
from inference import Posterior, entries, infer


@dataclass(frozen=True)
class Exploration:
    """Response with the changes made to it.

    Attributes:
        graph: the original response.
        variant: view of the graph.
        encoding: encoding of relations as factors.
        backend: name of the algorithm.
        strength: multiplier of the log odds of every relation's probability.
        priors: changed priors of atoms and contexts, by id.
        probabilities: changed probabilities of relations, by (source, target).
        left_out: ids of the contexts that are left out.
        observed: observed states, true or false, by id of the claim.
    """

    graph: FactGraph
    variant: str = "given"
    encoding: str = "implication"
    backend: str = "auto"
    strength: float = 1.0
    priors: Mapping[str, float] = field(default_factory=dict)
    probabilities: Mapping[tuple[str, str], float] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    observed: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Explored:
    """Results of an exploration.

    Attributes:
        view: the fact graph after the changes.
        posterior: the answer.
        claims: P(true) by id of atom.
    """

    view: FactGraph
    posterior: Posterior
    claims: Mapping[str, float]


def changed_graph(asked: Exploration) -> FactGraph:
    """The response with all changes except the observations, before any variant is applied."""
    graph, left_out = asked.graph, asked.left_out
    contexts = tuple(context for context in graph.contexts if context.id not in left_out)
    relations = [
        replace(
            relation,
            probability=asked.probabilities.get(
                (relation.source, relation.target), relation.probability
            ),
        )
        for relation in graph.relations
        if not {relation.source, relation.target} & left_out
    ]
    scaled = strengthened(
        np.array([relation.probability for relation in relations]), asked.strength
    )
    changed = replace(
        graph,
        contexts=contexts,
        relations=tuple(
            replace(relation, probability=float(p))
            for relation, p in zip(relations, scaled, strict=True)
        ),
    )
    kept = {context.id for context in contexts}
    return changed.with_priors(
        atoms={name: p for name, p in asked.priors.items() if name in set(graph.atom_ids)},
        contexts={name: p for name, p in asked.priors.items() if name in kept},
    )


def _factor_graph(asked: Exploration) -> tuple[FactGraph, FactorGraph]:
    view = variant(changed_graph(asked), asked.variant)
    states = {name: int(value) for name, value in asked.observed.items()}
    return view, view.to_factor_graph(asked.encoding).with_evidence(states)


def conventions_of(asked: Exploration) -> str:
    """Sentence on the conventions on which the posteriors of the page depend."""
    return note_of(replace(DEFAULT, encoding=asked.encoding), graph_names([asked.variant]))


def explored(asked: Exploration) -> Explored:
    """Posteriors of a response with the changes.

    Raises:
        FactormodelsError: if the backend cannot answer, or a change is out of range.
    """
    view, graph = _factor_graph(asked)
    posterior = infer(graph, asked.backend)
    claims = {atom.id: float(posterior.marginals[atom.id][1]) for atom in view.atoms}
    return Explored(view, posterior, claims)


_PATIENCE = 300.0
"""Maximum seconds for making a page (half a minute for a large graph on a slow machine), and for
keeping a page that waits for an answer: by default, NiceGUI drops it after about six seconds, with
all of the user's choices."""

_SEEN = 5e-4
"""Smallest reported change of a probability."""


def moved(before: Explored, now: Explored) -> list[tuple[str, float]]:
    """The claims whose probability changed by at least `_SEEN`, the largest change first."""
    changes = {
        name: now.claims[name] - p for name, p in before.claims.items() if name in now.claims
    }
    seen_changes = [(name, change) for name, change in changes.items() if abs(change) >= _SEEN]
    return sorted(seen_changes, key=lambda item: -abs(item[1]))


def save(asked: Exploration, folder: Path) -> list[Path]:
    """Write the graph, the figure and the study that reproduce an exploration.

    Observations are in observed.evid, since a study has none; study.yaml states the command.

    Raises:
        InputError: if the folder cannot be written.
    """
    from factormodels.io.source.files import prepare_folder
    from factormodels.io.yaml import parse_yaml

    solved = explored(asked)
    prepare_folder(folder)
    graph, figure, study = (folder / name for name in ("graph.json", "graph.pdf", "study.yaml"))
    # The probabilities of the relations already include the strength.
    write_fact_graph(changed_graph(asked), graph)
    draw_to(figure, solved.view, solved.posterior)
    paths = [graph, figure, study]
    remark = ""
    if asked.observed:
        position = {name: at for at, name in enumerate(_factor_graph(asked)[1].names)}
        paths.append(folder / "observed.evid")
        states = {position[name]: int(value) for name, value in asked.observed.items()}
        write_evidence(states, paths[-1])
        remark = (
            "# Claims were observed, which a study cannot say; this command answers as the page "
            f"did:\n# factormodels infer graph.json --variant {asked.variant} "
            f"--encoding {asked.encoding} --backend {asked.backend} --evidence observed.evid\n"
        )
    lines = (
        f"{remark}study: explored\ndatasets:\n  - path: graph.json\nvariants: [{asked.variant}]\n"
        f"encodings: [{asked.encoding}]\nbackends: [{asked.backend}]\n"
    )
    parse_yaml(lines, str(study))
    write_text(study, lines)
    return paths


MOST_CONTROLS = 100
"""Maximum number of claims, of passages, and of relations that can be changed on a page."""


def serve(
    graphs: Sequence[FactGraph],
    *,
    port: int,
    out: Path,
    start: Exploration,
    show: bool,
    show_address: Callable[[str], None],
) -> dict[str, tuple[Explored, Explored]]:
    """Serve the page until it is interrupted.

    Returns:
        The first and the last result, by response.

    Args:
        graphs: the responses to choose from.
        port: port on 127.0.0.1.
        out: folder in which the page saves.
        start: initial state of the page.
        show: whether a browser is opened.
        show_address: function that receives the address.

    Raises:
        MissingDependencyError: if NiceGUI is not installed.
    """
    try:
        from nicegui import app, ui
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.responses import PlainTextResponse
    except ImportError:
        raise MissingDependencyError(
            "explore needs nicegui; install it with: pip install 'factorfacts[explore]'"
        ) from None

    kept: dict[str, tuple[Explored, Explored]] = {}
    token = secrets.token_urlsafe(16)
    address = f"http://127.0.0.1:{port}/{token}"
    # Reject requests under the name of another site that resolves to this machine, and requests of
    # another site's page to this page or its socket, which NiceGUI opens to every origin.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    app.add_middleware(_own_origin, port=port)

    @ui.page("/{secret}", title="factormodels explore", response_timeout=_PATIENCE)
    def page(secret: str) -> Any:
        if not secrets.compare_digest(secret.encode(), token.encode()):
            return PlainTextResponse("no such page", status_code=404)
        _Page(ui, {graph.id: graph for graph in graphs}, start, out, kept)
        return None

    app.on_startup(lambda: show_address(address))
    with suppress(KeyboardInterrupt):
        ui.run(
            host="127.0.0.1", port=port, reload=False, show=f"/{token}" if show else False,
            show_welcome_message=False, title="factormodels explore", uvicorn_logging_level="error",
            reconnect_timeout=_PATIENCE,
        )  # fmt: skip
    return kept


def _own_origin(served: Any, port: int) -> Any:
    """An ASGI application that rejects the requests and sockets of another site's page."""
    from starlette.responses import PlainTextResponse

    allowed = {f"http://{host}:{port}".encode() for host in ("127.0.0.1", "localhost")}

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        # Browsers send the origin of the requesting page; there is none if the address is opened
        # directly.
        origins = {value for name, value in scope.get("headers", ()) if name == b"origin"}
        answered = served if origins <= allowed else PlainTextResponse("foreign origin", 403)
        await answered(scope, receive, send)

    return answer


class _Page:
    """Open page: the changes made on it, and the parts that depend on them."""

    def __init__(
        self,
        ui: Any,
        graphs: dict[str, FactGraph],
        start: Exploration,
        out: Path,
        kept: dict[str, tuple[Explored, Explored]],
    ) -> None:
        self.ui, self.graphs, self.asked, self.out, self.kept = ui, graphs, start, out, kept
        # Changes are measured against the original graph.
        self.first: Explored | None = None
        backends = [name for name, entry in entries().items() if not entry.missing]
        with ui.row().classes("w-full items-end"):
            ui.label("factormodels explore").classes("text-lg font-bold")
            if len(graphs) > 1:
                choice = ui.select(list(graphs), value=start.graph.id, label="Response")
                choice.classes("min-w-28")
                choice.on_value_change(lambda event: self._open(event.value))
            for label, name, values in (
                ("Variant", "variant", VARIANTS),
                ("Encoding", "encoding", [*ENCODINGS]),
                ("Backend", "backend", backends),
            ):
                menu = ui.select([*values], value=getattr(start, name), label=label)
                _with(menu, data_testid=name).classes("min-w-28")
                menu.on_value_change(self._setter(name))
            with ui.column().classes("gap-0"):
                ui.label("Strength of all relations").classes("text-sm")
                with ui.row().classes("items-center no-wrap"):
                    slider = ui.slider(min=0.0, max=3.0, step=0.05, value=start.strength)
                    _with(slider, data_testid="strength").classes("w-40")
                    slider.on_value_change(self._setter("strength"))
                    _show_value(ui, slider)
            undo = ui.button("Undo all", on_click=lambda: self._open(self.asked.graph.id))
            _with(undo, no_caps=True)
            saving = ui.button("Save", on_click=self._save)
            _with(saving, no_caps=True, data_testid="save")
        # The results stay in view while the user scrolls through the controls.
        with ui.column().classes("w-full gap-0 sticky top-0 z-10 bg-white py-1"):
            self.status = _with(ui.label(), data_testid="status").classes("font-mono")
            self.moves = _with(ui.label(), data_testid="moved")
            self.conventions = _with(ui.label(), data_testid="conventions").classes("text-sm")
        with ui.element().classes(
            "w-full flex flex-col lg:flex-row lg:flex-nowrap lg:items-start gap-4"
        ):
            self.controls = ui.column().classes("w-full lg:w-1/3 order-2 lg:order-1")
            results = ui.column().classes("w-full lg:w-2/3 min-w-0 order-1 lg:order-2")
            with results.classes("lg:sticky lg:top-16 lg:max-h-[calc(100vh-4rem)] overflow-y-auto"):
                self.table = ui.table(columns=_columns(start.graph), rows=[], row_key="id")
                _with(self.table, dense=True, wrap_cells=True, data_testid="claims")
                self.table.classes("w-full")
                # One drawing for each kind of screen, so that letters have the same size on both.
                wide = _with(ui.element("img"), data_testid="drawing", alt="graph")
                narrow = _with(ui.element("img"), data_testid="drawing-narrow", alt="graph")
                self.drawings = {
                    _WIDE: wide.classes("max-w-full max-md:hidden"),
                    _NARROW: narrow.classes("max-w-full md:hidden"),
                }
        self._controls()
        self._solve()

    def _setter(self, name: str) -> Callable[[Any], None]:
        def take(event: Any) -> None:
            if event.value is not None:
                self.asked = replace(self.asked, **{name: event.value})
                self._solve()

        return take

    def _open(self, name: str) -> None:
        self.asked = Exploration(
            self.graphs[name], self.asked.variant, self.asked.encoding, self.asked.backend
        )
        self.first = None
        self.table.columns = _columns(self.asked.graph)
        self._controls()
        self._solve()

    def _controls(self) -> None:
        """The sliders of every claim, passage and relation of the response."""
        ui, graph = self.ui, self.asked.graph
        self.controls.clear()
        with self.controls:
            with ui.expansion("Claims: prior and observed state", value=True).classes("w-full"):
                self._limit("claims", len(graph.atoms))
                for atom in graph.atoms[:MOST_CONTROLS]:
                    ui.label(_named(atom.id, atom.text)).classes("text-sm")
                    with ui.row().classes("w-full items-center no-wrap"):
                        self._slider(f"prior-{atom.id}", atom.prior, self._one("priors", atom.id))
                        seen = ui.select(
                            {"": "not observed", "true": "true", "false": "false"}, value=""
                        )
                        _with(seen, dense=True, data_testid=f"observe-{atom.id}")
                        seen.on_value_change(self._observe(atom.id))
            with ui.expansion("Passages: prior, and whether it counts", value=True).classes(
                "w-full"
            ):
                self._limit("passages", len(graph.contexts))
                for context in graph.contexts[:MOST_CONTROLS]:
                    title = _named(context.id, context.title or context.text[:80])
                    ui.label(title).classes("text-sm")
                    with ui.row().classes("w-full items-center no-wrap"):
                        name, prior = f"prior-{context.id}", context.prior
                        self._slider(name, prior, self._one("priors", context.id))
                        kept = ui.switch("in", value=True)
                        _with(kept, data_testid=f"keep-{context.id}")
                        kept.on_value_change(self._keep(context.id))
            with ui.expansion("Relations: probability", value=False).classes("w-full"):
                self._limit("relations", len(graph.relations))
                for relation in graph.relations[:MOST_CONTROLS]:
                    ui.label(in_words(relation)).classes("text-sm")
                    name = f"relation-{relation.source}-{relation.target}"
                    with ui.row().classes("items-center no-wrap"):
                        ends = relation.source, relation.target
                        self._slider(name, relation.probability, self._one("probabilities", ends))

    def _limit(self, noun: str, count: int) -> None:
        if count > MOST_CONTROLS:
            remark = f"Too many for this page: the first {MOST_CONTROLS} of {count:,} {noun}."
            self.ui.label(remark).classes("text-sm italic")

    def _slider(self, name: str, value: float, take: Callable[[float], None]) -> None:
        slider = self.ui.slider(min=0.0, max=1.0, step=0.01, value=value).classes("w-40")
        _with(slider, data_testid=name)
        slider.on_value_change(lambda event: take(float(event.value)))
        _show_value(self.ui, slider)

    def _one(self, field: str, key: Any) -> Callable[[float], None]:
        """Return a setter for one key of a field of the request."""

        def take(value: float) -> None:
            changed: Any = {**getattr(self.asked, field), key: value}
            self.asked = replace(self.asked, **{field: changed})
            self._solve()

        return take

    def _observe(self, name: str) -> Callable[[Any], None]:
        def take(event: Any) -> None:
            observed = {key: value for key, value in self.asked.observed.items() if key != name}
            if event.value:
                observed[name] = event.value == "true"
            self.asked = replace(self.asked, observed=observed)
            self._solve()

        return take

    def _keep(self, name: str) -> Callable[[Any], None]:
        def take(event: Any) -> None:
            left_out = self.asked.left_out - {name} if event.value else self.asked.left_out | {name}
            self.asked = replace(self.asked, left_out=left_out)
            self._solve()

        return take

    def _solve(self) -> None:
        """Run the backend, and show its answer, or the reason without one."""
        try:
            now = explored(self.asked)
        except FactormodelsError as error:
            self.status.set_text(str(error))
            return
        if self.first is None:
            self.first = now
        self.kept[self.asked.graph.id] = (self.first, now)
        posterior = now.posterior
        log_z = "none" if posterior.log_z is None else f"{posterior.log_z:.6f}"
        self.status.set_text(
            f"log Z {log_z} ({posterior.log_z_kind}) · backend {posterior.backend} · "
            f"status {posterior.status}"
        )
        self.conventions.set_text(conventions_of(self.asked))
        moves = moved(self.first, now)
        self.moves.set_text(
            "Moved: " + ", ".join(f"{name} {change:+.3f}" for name, change in moves[:8])
            if moves
            else "No claim has moved."
        )
        changes = dict(moves)
        self.table.rows = [
            {
                "id": atom.id,
                "p": f"{now.claims[atom.id]:.4f}",
                "change": f"{changes[atom.id]:+.3f}" if atom.id in changes else "",
                "label": "" if atom.label is None else str(atom.label).lower(),
                "text": atom.text,
            }
            for atom in now.view.atoms
        ]
        self.table.update()
        for width, drawing in self.drawings.items():
            _with(drawing, src=_picture(now, width))

    def _save(self) -> None:
        try:
            paths = save(self.asked, self.out)
        except InputError as error:
            self.ui.notify(str(error), type="negative")
            return
        self.ui.notify(f"Saved {', '.join(path.name for path in paths)} in {self.out}")


def _columns(graph: FactGraph) -> list[dict[str, str]]:
    """Columns of the table of claims, without a column for texts if no claim has one."""
    titles = {"id": "claim", "p": "P(true)", "change": "change", "label": "label", "text": "text"}
    return [
        {"name": key, "label": title, "field": key, "align": "left"}
        for key, title in titles.items()
        if key != "text" or any(atom.text for atom in graph.atoms)
    ]


def _named(name: str, text: str) -> str:
    """A claim or passage on one line: its id, and its text if known."""
    return f"{name}: {text}" if text else name


def _show_value(ui: Any, slider: Any) -> None:
    """Write a slider's value beside it."""
    label = ui.label().classes("text-sm w-10")
    label.bind_text_from(slider, "value", backward=lambda value: f"{value:.2f}")


def _with(element: Any, **attributes: Any) -> Any:
    """An element with attributes by value.

    `element.props("...")` would parse a text, in which a quotation mark begins another attribute
    and a colon before a name makes JavaScript of a value; names here belong to this module.
    """
    for name, value in attributes.items():
        element.props[name.replace("_", "-")] = value
    return element


_WIDE, _NARROW = 624, 350
"""Widths of the drawing in pixels: beside the controls, and on a phone."""


def _picture(result: Explored, width: int) -> str:
    """The drawing of a graph as a data URL of an image, in which a browser runs no script."""
    from calibration.figures.style import paper_style

    buffer = io.BytesIO()
    with paper_style():
        figure = draw_fact_graph(result.view, result.claims, width=width / 96)
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(buffer.getvalue()).decode()}"
