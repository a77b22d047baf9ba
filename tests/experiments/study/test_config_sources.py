"""Sources of a study: a base, a file over it, overrides over both; the source named in errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.study.config import OWN_PRIORS, LanguageModelChoice, as_plain
from experiments.study.data import load_data
from experiments.study.design import algorithms, cells
from experiments.study.reading import load_study
from experiments.study.runner import design
from factormodels.errors import InputError
from tests.experiments.conftest import invoke, study_file

MINIMAL = "study: small\ndatasets: [demonstration]\n"


def message(config: object, *overrides: str) -> str:
    """Return what is wrong with a study, wherever that is found."""

    def prepare() -> None:
        loaded = load_study(str(config), overrides)
        algorithms(loaded)
        load_data(loaded)

    with pytest.raises(InputError) as caught:
        prepare()
    return str(caught.value)


def test_a_study_is_laid_over_its_base(folder: Path) -> None:
    (folder / "base.yaml").write_text(
        f"{MINIMAL}variants: [FR1, FR2]\npriors: [{{atom: [0.4], context: [0.9]}}]\n"
        "reliability: {strategy: uniform}\nk: half\n"
    )
    path = study_file(
        folder,
        "base: base.yaml\nstudy: mine\nreliability: {bins: 5}\npriors: [{atom: [0.3]}]\n"
        "variants: [FR3]\n",
    )
    study = load_study(str(path)).study
    assert study.study == "mine"
    assert study.k == "half"
    # Mappings are laid over each other key by key, lists replace lists.
    assert (study.reliability.bins, study.reliability.strategy) == (5, "uniform")
    assert [(p.atom, p.context) for p in study.prior_settings] == [(0.3, None)]
    assert study.variants == ("FR3",)
    assert [choice.title for choice in study.datasets] == ["demonstration"]


def test_bases_stand_on_bases_and_on_embedded_studies(folder: Path) -> None:
    (folder / "one.yaml").write_text("base: compare\nstudy: one\nencodings: [implication]\n")
    path = study_file(folder, "base: one.yaml\nstudy: two\nvariants: [FR1]\n")
    study = load_study(str(path)).study
    assert (study.study, study.variants, study.encodings) == ("two", ("FR1",), ("implication",))
    assert len(study.datasets) == 5


def test_paths_start_in_the_folder_of_the_file_that_names_them(folder: Path) -> None:
    (folder / "shared").mkdir()
    (folder / "mine").mkdir()
    invoke("convert", "demonstration", "shared/data.jsonl")
    (folder / "shared" / "own.json").write_text('{"people": ["{topic} is a person."]}')
    (folder / "shared" / "base.yaml").write_text(
        "study: s\ndatasets: [{path: data.jsonl}]\nassessors: [factscore]\n"
        "language_model: {model: openai/x, cache: a.sqlite}\n"
        "relation_models: [{model: prompted, cache: /b.sqlite}, lexical]\nselections:\n"
        "  - {selection: core, weights: informativeness, domain: people, templates: own.json}\n"
    )
    loaded = load_study(str(study_file(folder / "mine", "base: ../shared/base.yaml\nstudy: t\n")))
    planned, study = design(loaded), loaded.study
    assert len(planned.data[0].graphs) == 14
    assert study.language_model == LanguageModelChoice(
        model="openai/x", cache=Path("../shared/a.sqlite")
    )
    cache = folder / "mine" / str(study.relation_models[0].cache)
    assert cache.resolve() == Path("/b.sqlite")
    (solver,) = planned.selection_solvers
    assert solver.choices.templates is not None
    assert solver.choices.templates.resolve() == (folder / "shared" / "own.json").resolve()


@pytest.mark.parametrize(
    ("base", "error"),
    [
        ("study.yaml", "the study is based on itself"),
        ("absent.yaml", "absent.yaml: there is no such file"),
        ("comparee", "did you mean 'compare'"),
        ("[compare]", "name a file or an embedded study"),
    ],
)
def test_a_bad_base_is_refused(folder: Path, base: str, error: str) -> None:
    text = message(study_file(folder, f"base: {base}\nstudy: s\n"))
    assert error in text
    assert text.startswith(str(folder / "study.yaml"))


def test_an_error_names_the_file_that_said_it(folder: Path) -> None:
    (folder / "base.yaml").write_text(f"{MINIMAL}k: low\n")
    path = study_file(folder, "base: base.yaml\nstudy: mine\nseed: -1\n")
    assert message(path, "k=half").startswith(f"{path}: seed: -1")
    assert message(path, "seed=1").startswith(f"{folder / 'base.yaml'}: k: 'low'")


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        (["seed=-1"], "override 'seed=-1': seed: -1 does not fit"),
        (
            ["seed=1", "report.rows=5"],
            "override 'report.rows=5': report.rows: there is no such key",
        ),
        (["backends[1].settings.damping=high"], "backends[1].settings.damping: 'high' does not"),
        (["backends[1].settings.dampin=1"], "did you mean 'damping'"),
        (["backends[1].grid.damping=[0.5, x]"], "backends[1].grid.damping: 'x' does not fit"),
        (["datasets=[demonstratio]"], "datasets[0]: the dataset 'demonstratio' is unknown (did"),
        (["datasets[0].limit=0"], "datasets[0].limit: 0 does not fit"),
        (["datasets=[{name: s, synthetic: {n_atom: 2}}]"], "did you mean 'n_atoms'"),
        (["backends[0].only.datasets=[x]"], "backends[0].only.datasets names 'x'"),
        (["variants=[FR2]"], "no cell has a backend"),
        (["significance.pairs=[[lpb, exact]]"], "did you mean 'lbp'"),
    ],
)
def test_an_error_in_an_override_names_the_override(
    folder: Path, overrides: list[str], error: str
) -> None:
    path = study_file(
        folder,
        f"{MINIMAL}variants: [FR1, FR2]\nbackends:\n"
        "  - {backend: exact, only: {variants: [FR1]}}\n"
        "  - {backend: lbp, only: {variants: [FR1]}}\n",
    )
    text = message(path, *overrides)
    assert text.startswith("override")
    assert repr(overrides[-1]) in text
    assert error in text
    assert "study.yaml" not in text


def test_error_caused_by_overrides_together_names_the_overrides(folder: Path) -> None:
    path = study_file(folder, f"{MINIMAL}backends: [{{backend: exact, only: {{variants: [FR2]}}}}]")
    text = message(path, "variants=[FR1]", "seed=3")
    assert text.startswith("overrides 'variants=[FR1]', 'seed=3': no cell has a backend")


def test_a_fault_of_the_file_stays_the_files_whatever_is_overridden(folder: Path) -> None:
    path = study_file(folder, f"{MINIMAL}backends: [{{backend: lbp, settings: {{damping: x}}}}]")
    assert message(path, "seed=3").startswith(f"{path}: backends[0].settings.damping: 'x'")


def test_grids_and_lists_become_cells(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [demonstration]\n"
        "priors: [{}, {name: low, atom: [0.1]}, {atom: [0.3, 0.5], context: [0.9, null]}]\n"
        "strengths: [0.5, 1]\n"
        "backends:\n"
        "  - {backend: lbp, settings: {tolerance: 1.0e-9}, grid: {damping: [0.0, 0.5]}}\n"
        "  - {backend: exact, only: {priors: [low], strengths: [1.0]}}\n",
    )
    loaded = load_study(str(path))
    names = [
        "lbp tolerance=1e-09, damping=0.0",
        "lbp tolerance=1e-09, damping=0.5",
    ]
    priors = [
        *(OWN_PRIORS, "low", "atom=0.3 context=0.9", "atom=0.3", "atom=0.5 context=0.9"),
        "atom=0.5",
    ]
    made = [
        (c.view.prior.title, c.view.strength, c.algorithm.title)
        for c in cells(loaded.study, algorithms(loaded))
    ]
    expected = [
        (prior, strength, name)
        for prior in priors
        for strength in (0.5, 1.0)
        for name in [*names, *(["exact"] if (prior, strength) == ("low", 1.0) else [])]
    ]
    assert made == expected


def test_a_dataset_may_leave_out_variants(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets: [demonstration, {name: worked-examples, variants: [FR3, FR1]}]\n"
        "variants: [FR1, FR2]\nbackends: [exact]\n",
    )
    loaded = load_study(str(path))
    made = [(c.dataset, c.view.variant) for c in cells(loaded.study, algorithms(loaded))]
    # A variant that the study does not have, as after an override of `variants`, is none here.
    assert made == [
        ("demonstration", "FR1"),
        ("demonstration", "FR2"),
        ("worked-examples", "FR1"),
    ]
    empty = study_file(folder, "study: s\ndatasets: [{name: a, variants: []}]")
    assert "datasets[0].variants" in message(empty)
    # A key that came later leaves the hashes of studies without it as they were.
    plain = as_plain(loaded.study)
    assert [dataset.get("variants") for dataset in plain["datasets"]] == [None, ["FR3", "FR1"]]
    assert "variants" not in plain["datasets"][0]


def test_seeds_are_for_backends_that_have_one(folder: Path) -> None:
    path = study_file(
        folder,
        f"{MINIMAL}seeds: [3, 4]\nbackends:\n  - gibbs\n  - enumeration\n"
        "  - {backend: gibbs, label: fixed, settings: {seed: 9}}\n"
        "  - {backend: gibbs, label: one, only: {seeds: [4]}}\n",
    )
    seeds = [
        (algorithm.title, algorithm.seed, getattr(algorithm.backend, "seed", None))
        for algorithm in algorithms(load_study(str(path)))
    ]
    assert seeds == [
        *(
            ("gibbs", 3, 3),
            ("gibbs", 4, 4),
            ("enumeration", 3, None),
            ("fixed", 9, 9),
            ("one", 4, 4),
        ),
    ]


def test_subsets_are_drawn_in_the_order_of_the_data(folder: Path) -> None:
    def ids(subset: str) -> list[str]:
        text = f"study: s\ndatasets: [{{name: demonstration, subset: {subset}}}]\n"
        return [
            graph.id for graph in load_data(load_study(str(study_file(folder, text))))[0].graphs
        ]

    everything = ids("{}")
    assert ids(f"{{responses: [{everything[3]}, {everything[1]}]}}") == [
        everything[1],
        everything[3],
    ]
    drawn = ids("{sample: 5, seed: 1}")
    assert len(drawn) == 5
    assert drawn == sorted(drawn, key=everything.index)
    assert drawn != ids("{sample: 5, seed: 2}")
    assert "request fewer" in message(
        study_file(folder, "study: s\ndatasets: [{name: demonstration, subset: {sample: 99}}]\n")
    )
    near = f"{everything[0]}x"
    refusal = message(
        study_file(
            folder,
            f"study: s\ndatasets: [{{name: demonstration, subset: {{responses: [{near}]}}}}]\n",
        )
    )
    assert f"did you mean {everything[0]!r}" in refusal


def test_labeled_subsets_hold_a_label_each(folder: Path) -> None:
    path = study_file(
        folder,
        "study: s\ndatasets:\n  - name: made\n    subset: {labeled: true}\n    synthetic:\n"
        "      {n_responses: 20, n_atoms: 1, contexts_per_atom: 1, unlabeled: 0.5,\n"
        "       strength: 0.8}\n",
    )
    (data,) = load_data(load_study(str(path)))
    assert 0 < len(data.graphs) < 20
    assert data.n_labeled == data.n_atoms
    assert {r.probability for graph in data.graphs for r in graph.relations} == {0.8}
