"""`factormodels list backends`: the list, and one backend with its settings."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.settings.backend_settings import settings_described
from inference import Entry, entries, register, unregister
from inference.registry import backend_class
from tests.experiments.conftest import invoke


def test_backends_are_listed_with_settings() -> None:
    result = invoke("list", "backends")
    for name, entry in entries().items():
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())
        # Long sentences go on in the next line.
        assert entry.summary[:40] in result.stdout
    assert "damping=adaptive" in result.stdout


def test_a_backend_that_is_not_installed_names_the_command() -> None:
    entry = Entry("absent", "no_such:Thing", "x", "none", requires=("no_such",), extra="things")
    register(entry)
    try:
        result = invoke("list", "backends")
        assert "needs no_such; install it with pip install 'factorfacts[things]'" in result.stdout
        assert (
            "pip install 'factorfacts[things]'"
            in invoke("list", "backends", "absent", code=2).stderr
        )
    finally:
        unregister("absent")


def test_sentences_of_lists_are_wrapped_in_a_pipe_too() -> None:
    lines = invoke("list", "backends", "lbp").stdout.splitlines()
    assert max(map(len, lines)) < 170
    assert " ".join(settings_described("lbp")[0].meaning.split()).endswith("in every iteration).")
    assert any(line.rstrip().endswith("in every iteration).") for line in lines)


def test_a_backend_shows_types_defaults_and_meanings() -> None:
    text = " ".join(invoke("list", "backends", "lbp").stdout.split())
    assert "damping --damping float | adaptive adaptive weight of the old log message" in text
    assert "schedule --schedule one of sweep, flooding, residual, random sweep" in text
    null = " ".join(invoke("list", "backends", "exact").stdout.split())
    assert "memory_limit --memory-limit int | null null" in null


@pytest.mark.parametrize("command", ["infer", "assess", "draw"])
@pytest.mark.parametrize("typed", [("--backend", "lbp"), ("--backend=lbp,damping=0.5",)])
def test_the_help_shows_the_settings_of_the_backend_that_is_named(
    command: str, typed: tuple[str, ...]
) -> None:
    plain = " ".join(invoke(command, "--help-all").stdout.split())
    assert "`factormodels list backends`" in plain
    assert "--max-iterations" not in plain
    for asked in ("--help", "--help-all"):
        text = " ".join(invoke(command, *typed, asked).stdout.split())
        _, _, settings = text.partition("Settings of the backend lbp: ")
        for each in settings_described("lbp"):
            # The command may have the option itself.
            assert f"{each.option} " in text
            if f"{each.option} " in settings:
                assert each.meaning in settings
                assert f"[default: {each.default}]" in settings
        assert "--damping VALUE" in settings


def test_the_help_refuses_an_unknown_backend() -> None:
    assert "did you mean 'lbp'" in invoke("infer", "--backend", "lpb", "--help", code=2).stderr


def test_every_setting_of_every_backend_has_a_meaning() -> None:
    for name, entry in entries().items():
        if not entry.missing:
            backend = backend_class(name)
            settings = {field.name for field in dataclasses.fields(backend)}
            described = settings_described(name)
            assert {each.setting for each in described if each.meaning} == settings, name
    invoke("list", "backends", "nonsense", code=2)
