"""Studies as data: what a configuration may say, and one sentence for whatever it may not."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.analyses.study import load_analysis
from experiments.asking.settings import AskingSettings
from experiments.methods.select import SelectSettings
from experiments.networks.config import load_networks
from experiments.settings import Settings, choices_of, declared_in, meanings_of
from experiments.settings.inputs import ModelSettings
from experiments.study.cells import PriorSetting
from experiments.study.config import (
    ACCESS,
    AssessorChoice,
    BackendChoice,
    DatasetChoice,
    LanguageModelChoice,
    Only,
    RelationModelChoice,
    SelectionChoice,
    Study,
    as_plain,
    config_hash,
)
from experiments.study.reading import (
    embedded_studies,
    is_analysis,
    is_of_networks,
    load_study,
    read_raw,
    study_of_plain,
    validated,
    written_out,
)
from factormodels.errors import InputError
from factormodels.io.yaml import parse_yaml
from tests.refusals import refused

MINIMAL = "study: small\ndatasets: [demonstration]\n"


def load(tmp_path: Path, text: str, *overrides: str) -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(str(path), overrides).study


def test_defaults_are_those_of_the_readme(tmp_path: Path) -> None:
    study = load(tmp_path, MINIMAL)
    assert study.variants == ("FR2",)
    assert study.encodings == ("implication",)
    assert [title for backend in study.backends for title, _ in backend.settings_of_each()] == [
        "auto"
    ]
    assert study.prior_settings == (PriorSetting("data", None, None),)
    assert study.strengths == (1.0,)
    assert study.selected == ()
    assert study.backend_seeds == (0,)
    assert (study.seed, study.unlabeled, study.k) == (0, "exclude", "median")
    assert (study.reliability.bins, study.reliability.strategy) == (10, "quantile")
    assert study.outputs == ("csv", "latex", "markdown", "reliability")


@pytest.mark.parametrize(
    ("of_study", "of_command", "names"),
    [
        (LanguageModelChoice, AskingSettings, ACCESS),
        (RelationModelChoice, AskingSettings, ACCESS),
        (AssessorChoice, AskingSettings, ACCESS),
        (SelectionChoice, SelectSettings, ("rule", "templates", "share")),
    ],
)
def test_a_key_that_is_an_option_too_is_declared_once(
    of_study: type[Settings], of_command: type[Settings], names: Sequence[str]
) -> None:
    assert len(names) > 2
    for name in names:
        assert declared_in(of_study, name) is declared_in(of_command, name)
        assert of_study.model_fields[name].description == meanings_of(of_command)[name] != ""


def test_encodings_and_variants_are_those_that_commands_take() -> None:
    of_study = {name: field.annotation for name, field in Study.model_fields.items()}
    for name in ("encoding", "variant"):
        annotation = ModelSettings.model_fields[name].annotation
        assert choices_of(of_study[f"{name}s"]) == choices_of(annotation) != ()


def test_a_text_stands_for_the_mapping_whose_key_it_is(tmp_path: Path) -> None:
    short = """study: s
datasets: [demonstration]
relation_models: [lexical]
assessors: [factscore]
language_model: openai/x
conventions: paper
backends: [exact, lbp]
selections: [core]
significance: {pairs: [[exact, lbp]]}
"""
    long = """study: s
datasets: [{name: demonstration}]
relation_models: [{model: lexical}]
assessors: [{assessor: factscore}]
language_model: {model: openai/x}
conventions: {like: paper}
backends: [{backend: exact}, {backend: lbp}]
selections: [{selection: core}]
significance: {pairs: [[{backend: exact}, {backend: lbp}]]}
"""
    assert load(tmp_path, short) == load(tmp_path, long)
    assert load_study(written_out(parse_yaml(short, "s"))).study == load(tmp_path, long)


def test_a_full_study_is_read(tmp_path: Path) -> None:
    study = load(
        tmp_path,
        """
study: full.study-1
description: everything
datasets:
  - {name: factcheck-bench, options: {stances: {refute: null}}, limit: 3}
  - {path: data/graphs.jsonl, name: mine}
  - {path: data/other.jsonl}
variants: [given, FR1, FR2, FR3]
encodings: [conditional, implication]
backends:
  - {backend: lbp, label: damped, settings: {damping: 0.5, tolerance: 1e-6}}
  - {backend: lbp, settings: {schedule: residual}}
  - {backend: exact, only: {datasets: [mine, other], variants: [FR1], encodings: [implication]}}
priors: [{atom: [0.4]}]
seed: 7
unlabeled: false
k: 12
reliability: {bins: 5, strategy: uniform}
outputs: [latex]
""",
    )
    assert [choice.title for choice in study.datasets] == ["factcheck-bench", "mine", "other"]
    titles = [title for backend in study.backends for title, _ in backend.settings_of_each()]
    assert titles == ["damped", "lbp schedule=residual", "exact"]
    # YAML 1.1 alone would read 1e-6 as a text.
    assert study.backends[0].settings == {"damping": 0.5, "tolerance": 1e-6}
    assert study.backends[2].only == Only(
        datasets=("mine", "other"), variants=("FR1",), encodings=("implication",)
    )
    assert study.unlabeled == "false"
    assert study.k == 12


@pytest.mark.parametrize("policy", ["exclude", "'false'", "false", "'true'", "true", "error"])
def test_policies_need_no_quotes(tmp_path: Path, policy: str) -> None:
    study = load(tmp_path, f"{MINIMAL}unlabeled: {policy}\n")
    assert study.unlabeled == policy.strip("'")


@pytest.mark.parametrize("k", ["median", "half", "fixed:5", 5, "'5'"])
def test_policies_of_k(tmp_path: Path, k: str | int) -> None:
    # A number that is written as a text is the number.
    assert load(tmp_path, f"{MINIMAL}k: {k}\n").k == (5 if k == "'5'" else k)


@pytest.mark.parametrize(
    ("extra", "messages"),
    [
        ("backend: [exact]", ("backend:", "'backends'")),
        ("nonsense: 1", ("nonsense", "use one of study, datasets")),
        ("backends: [{backend: lbp, damping: 0.5}]", ("backends[0].damping", "under settings")),
        ("backends: [{backend: lbp, setings: {}}]", ("backends[0].setings", "'settings'")),
        ("backends: [exact, lbpp]", ("backends[1].backend", "did you mean 'lbp'")),
        ("backends: [exact, 5]", ("backends[1]", "5", "mapping")),
        ("backends: exact", ("backends: 'exact' does not fit: give a list, [\"exact\"]",)),
        ("priors: {atom: [0.4]}", ('give a list, [{"atom": [0.4]}]',)),
        ("priors: [{atom: 0.4}]", ("priors[0].atom: 0.4 does not fit: give a list, [0.4]",)),
        (
            "priors: [learned]",
            ("priors[0]: 'learned' is not a mapping", "of atom, context, name, l"),
        ),
        ("report: 5", ("report: 5 is not a mapping",)),
        ("selections: [{selection: core, weights: null}]", ("there is no value", "leave the key")),
        ("backends: [exact, exact]", ("backends[1]", "'exact'", "label")),
        ("backends: []", ("backends: the list is empty; give at least one entry",)),
        ("backends:", ("backends: there is no value; give a list or leave the key out",)),
        ("variants: 5", ("variants: 5 does not fit: give a list",)),
        ("priors:", ("priors: there is no value; give a list or leave the key out",)),
        ("seed: many", ("seed: 'many' does not fit: give a whole number",)),
        ("seed: -2", ("seed: -2 does not fit: give 0 or more",)),
        ("backends: [{backend: lbp, settings: 3}]", ("backends[0].settings", "3")),
        ("backends: [{label: x}]", ("backends[0].backend", "missing")),
        ("backends: [{backend: lbp, only: {variant: [FR1]}}]", ("only.variant", "'variants'")),
        ("backends: [{backend: lbp, only: {variants: [FR9]}}]", ("only.variants[0]", "'FR9'")),
        ("backends: [{backend: lbp, only: {priors: [x]}}]", ("only.priors", "'x'", "data")),
        ("backends: [{backend: lbp, only: {datasets: [x]}}]", ("only.datasets", "'x'")),
        ("variants: [FR1, FR4]", ("variants[1]", "'FR4'", "FR1, FR2, FR3")),
        ("variants: [FR1, FR1]", ("variants", "'FR1'", "twice")),
        ("encodings: [x]", ("encodings[0]", "'x'", "implication, conditional")),
        ("priors: [{atom: [1.2]}]", ("priors[0].atom[0]", "1.2", "1")),
        ("priors: [{atom: [.nan]}]", ("priors[0].atom[0]", "nan", "finite")),
        ("priors: [{atom: ['0.5']}]", ("priors[0].atom[0]", "'0.5'", "number")),
        ("priors: [{atoms: 0.5}]", ("priors[0].atoms", "'atom'")),
        ("priors: [0.5]", ("priors[0]", "mapping")),
        ("priors: 0.5", ("priors: 0.5 does not fit: give a list, [0.5]",)),
        (
            "significance: [[a, b]]",
            ("significance: [['a', 'b']] is not a mapping", "of pairs, mea"),
        ),
        ("significance:", ("significance: there is no value", "{} for the defaults")),
        ("priors: [{atom: [0.5, 1.2]}]", ("priors[0].atom[1]: 1.2", "give 1 or less")),
        ("priors: [{}, {atom: [.5], nam: x}]", ("priors[1].nam", "did you mean 'name'")),
        ("priors: [{}, {}]", ("priors[1] has the name 'data' of another", "name")),
        ("priors: [{name: x, atom: [0.1, 0.2]}]", ("a name needs a single setting",)),
        ("priors: [{atom: [learned]}]", ("priors[0].atom[0]", "'learned'", "number")),
        ("priors: [{learned: {parameters: [temprature]}}]", ("parameters[0]", "'temperature'")),
        ("priors: [{learned: {parameters: []}}]", ("parameters: the list is empty",)),
        ("priors: [{learned: {fold: 3}}]", ("priors[0].learned.fold", "did you mean 'folds'")),
        ("priors: [{learned: {folds: 1}}]", ("priors[0].learned.folds: 1", "give 2 or more")),
        ("priors: [{learned: {backend: exat}}]", ("priors[0].learned.backend", "'exact'")),
        ("priors: [{learned: {penalty: 0}}]", ("priors[0].learned.penalty: 0", "give more than 0")),
        ("priors: [{atom: [0.4], learned: {}}]", ("atom is given and atom_prior is learned",)),
        (
            "priors: [{learned: {parameters: [temperature, probability]}}]",
            ("learn one of the two",),
        ),
        ("priors: [{learned: {parameters: [atom_prior], by: kind}}]", ("by is 'kind'", "leave by")),
        (
            "priors: [{learned: {}}, {learned: {}}]",
            ("priors[1] has the name 'learned' of another", "name"),
        ),
        ("prompts: mine", ("nothing in this study asks a language model", "leave it out")),
        ("selections: [all, cor]", ("selections[1].selection", "did you mean 'core'")),
        ("selections: [{selection: core, ruel: both}]", ("selections[0].ruel", "'rule'")),
        ("selections: [all, all]", ("selections[1] has the name 'all'", "name")),
        ("selections: [{selection: all, rule: both}]", ("rule does not apply", "leave it out")),
        ("selections: [{selection: all, rule: either}]", ("rule does not apply", "leave it out")),
        ("selections: [{selection: all, time_limit: 3.0}]", ("time_limit does not apply",)),
        ("relation_models: [{model: lexical, samples: 6}]", ("samples applies to", "'prompted'")),
        ("relation_models: [{model: lexical, samples: 5}]", ("samples applies to", "'prompted'")),
        ("relation_models: [{model: lexical, method: automatic}]", ("method applies to",)),
        ("relation_models: [{model: recorded, least: 0.5}]", ("leave 'least' out",)),
        ("assessors: [{assessor: recorded, expected: false}]", ("leave expected out",)),
        ("assessors: [safe]\nlanguage_model: x/y", ("'safe'", "use one of factscore")),
        ("assessors: [{assessor: factscore, of: x}]\nlanguage_model: x/y", ("of applies to",)),
        ("selections: [{selection: core, name: a b}]", ("selections[0].name", "'a b'")),
        ("selections: [{selection: core, path: x}]", ("lexical relations have no path",)),
        ("selections: [{selection: core, relations: nli}]", ("the model's folder",)),
        ("selections: [{selection: core, time_limit: 0}]", ("time_limit: 0", "give more than 0")),
        ("selections: []", ("selections: the list is empty",)),
        (
            "selections: [all, core]\n"
            "significance: {pairs: [[{selection: cor}, {selection: all}]]}",
            ("significance.pairs[0] names the selection 'cor'", "did you mean 'core'"),
        ),
        ("strengths: [1, 0]", ("strengths[1]: 0", "give more than 0")),
        ("strengths: 0", ("strengths: 0 does not fit", "give a list, [0]")),
        ("seeds: [1, 1]", ("seeds", "twice")),
        ("measures: [brierr]", ("measures[0]", "did you mean 'brier'")),
        ("backends: [{backend: lbp, grid: {damping: []}}]", ("grid.damping: the list is empty",)),
        ("backends: [{backend: lbp, grid: {damping: 0.5}}]", ("grid.damping", "give a list")),
        (
            "backends: [{backend: lbp, settings: {damping: 0.1}, grid: {damping: [0.5]}}]",
            ("backends[0]", "'damping' is given in settings and in grid"),
        ),
        ("significance: {pairs: [[auto, lbp]]}", ("significance.pairs[0]", "'lbp'", "auto")),
        ("significance: {pairs: [[exact]]}", ("significance.pairs[0]", "at least 2")),
        ("significance: {pairs: [[{variant: FR2}, exact]]}", ("have the same keys",)),
        ("significance: {pairs: [[exact, exact]]}", ("the sides of a pair are equal",)),
        ("significance: {measures: [precison]}", ("did you mean 'precision'",)),
        (
            "significance: {measures: [calibration_slope], alternative: better}",
            ("no better direction",),
        ),
        ("measures: [auc]", ("measures[0]", "'auc'", "auroc")),
        ("significance: {test: t, measures: [brier]}", ("brier is pooled over claims",)),
        ("seed: 1.5", ("seed", "1.5")),
        ("k: low", ("k:", "'low'", "median, half")),
        ("k: 0", ("k:", "0", "above 0")),
        ("k: 2.5", ("k:", "2.5")),
        ("unlabeled: maybe", ("unlabeled", "'maybe'", "exclude")),
        ("reliability: {bins: 0}", ("reliability.bins", "0")),
        ("outputs: [pdf]", ("outputs[0]", "'pdf'", "latex")),
        ("bases: x", ("bases", "did you mean 'base'")),
        ("seed: 1\nseed: 2", ("line 4", "'seed'", "twice")),
        ("seed: [1", ("line", "correct the YAML")),
        ("seed: !!python/object:os.system {}", ("correct the YAML",)),
    ],
)
def test_invalid_studies_are_refused(tmp_path: Path, extra: str, messages: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, f"{MINIMAL}{extra}\n")
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "study.yaml"))
    assert "\n" not in message
    for text in messages:
        assert text in message.removeprefix(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets: [demonstration]", "'study' is missing"),
        ("study: s", "'datasets' is missing"),
        ("study: s\ndatasets: []", "datasets: the list is empty; give at least one entry"),
        ("study: s\ndatasets: [{limit: 3}]", "path of a file"),
        ("study: s\ndatasets: [{name: a, limit: 0}]", "datasets[0].limit"),
        ("study: s\ndatasets: [{path: a.jsonl, options: {x: 1}}]", "options belong to"),
        ("study: s\ndatasets: [a, a]", "datasets[1] has the name 'a'"),
        ("study: s\ndatasets: [{name: a, subset: {topic: [x]}}]", "did you mean 'topics'"),
        ("study: s\ndatasets: [{name: a, synthetic: {}, path: b}]", "from a path or generated"),
        ("study: a/b\ndatasets: [a]", "'a/b'"),
        ("study: ..\ndatasets: [a]", "'..'"),
        ("- 1", "mapping"),
        ("", "mapping"),
    ],
)
def test_required_keys_of_a_study(tmp_path: Path, text: str, message: str) -> None:
    refused(re.escape(message), load, tmp_path, text)


def test_a_key_with_the_value_of_its_default_is_given_and_null_is_not(tmp_path: Path) -> None:
    # What a manifest writes out of a study's defaults is no key that its author gave.
    text = """study: s
datasets: [demonstration]
variants: [FR1]
relation_models: [{model: lexical, language_model: null}, {model: recorded, label: ''}]
selections: [{selection: all, path: null}]
assessors: [{assessor: recorded, of: factreasoner}]
"""
    study = load(tmp_path, text)
    assert study.relation_models[0].given("model", "samples", "language_model") == ["model"]
    again = study_of_plain(as_plain(study), "manifest.json")
    assert again == study
    assert again.relation_models[0].given("model") == []
    assert pickle.loads(pickle.dumps(study)).relation_models[0].given("model") == ["model"]


def test_a_part_that_is_made_in_python_checks_itself() -> None:
    assert BackendChoice(backend="lbp", label="damped").backend == "lbp"
    with pytest.raises(ValueError, match="did you mean 'lbp'"):
        BackendChoice(backend="lbpp")
    with pytest.raises(ValueError, match="given in settings and in grid"):
        BackendChoice(backend="lbp", settings={"damping": 0.1}, grid={"damping": (0.5,)})
    with pytest.raises(ValueError, match="'FR1' is listed twice"):
        Study(study="s", datasets=(DatasetChoice(name="demonstration"),), variants=("FR1", "FR1"))


def test_overrides_reach_every_place(tmp_path: Path) -> None:
    text = f"{MINIMAL}backends: [exact, lbp]\n"
    lists = ("variants=[FR1, FR3]", "encodings=[conditional]", "datasets[0].limit=2", "seed=3")
    parts = ("priors=[{atom: [0.4]}]", "backends[1].settings.damping=0.3")
    study = load(tmp_path, text, *parts, *lists)
    assert [(p.atom, p.context) for p in study.prior_settings] == [(0.4, None)]
    assert study.backends[1].settings == {"damping": 0.3}
    assert study.variants == ("FR1", "FR3")
    assert study.encodings == ("conditional",)
    assert study.datasets[0].limit == 2
    assert study.seed == 3


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed", "key=value"),
        ("=3", "key=value"),
        ("backends[4].label=x", "there is no entry [4]"),
        ("backends.label=x", "'label' is not a key"),
        ("seed.x=1", "seed: {'x': 1}"),
        ("variants[0].x=1", "'x' is not a key"),
        ("backends[x]=1", "is not a path"),
        ("priors=[{atm: [0.5]}]", "'atom'"),
        ("priors=[{atom: [2]}]", "priors[0].atom"),
        ("priors.atom=2", "priors: {'atom': 2} does not fit: give a list"),
        ("variants=[FR1", "YAML"),
        ("base=compare", "'base' cannot be overridden"),
    ],
)
def test_invalid_overrides_are_refused(tmp_path: Path, override: str, message: str) -> None:
    text = f"{MINIMAL}backends: [exact]\nvariants: [FR1]\n"
    refused(re.escape(message), load, tmp_path, text, override)


def test_embedded_studies_are_valid_and_found_by_name() -> None:
    assert "compare" in embedded_studies()
    for name in embedded_studies():
        raw = read_raw(name)
        if is_of_networks(raw):
            study_name = load_networks(raw).study.study
        else:
            study_name = (load_analysis(raw) if is_analysis(raw) else validated(raw)).study.study
        assert study_name == name.rpartition("/")[2]
        assert raw.folder == Path()


def test_an_unknown_name_lists_the_nearest_studies() -> None:
    refused(
        r"'core-pading' is unknown \(did you mean 'papers/core-padding'.*lists all, or name a YAML",
        load_study,
        "core-pading",
    )


def test_a_file_without_suffix_goes_before_an_embedded_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("compare").write_text("study: mine\ndatasets: [demonstration]\n")
    assert load_study("compare").study.study == "mine"


def test_the_hash_depends_on_what_is_asked_alone(tmp_path: Path) -> None:
    first = load(tmp_path, MINIMAL)
    spelled = load(tmp_path, "# other\ndatasets:\n  - name: demonstration\nstudy: small\nseed: 0\n")
    assert config_hash(first) == config_hash(spelled)
    assert config_hash(first) != config_hash(first.model_copy(update={"seed": 1}))


def test_the_plain_form_holds_no_folder(tmp_path: Path) -> None:
    text = f"study: s\ndatasets: [{{path: {tmp_path}/data.jsonl}}]\n"
    plain = as_plain(load(tmp_path, text))
    assert plain["datasets"][0]["path"] == "data.jsonl"
    assert str(tmp_path) not in str(plain)
