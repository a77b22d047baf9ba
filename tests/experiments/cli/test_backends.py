"""`factormodels list backends`: the list, and one backend with its settings."""

from __future__ import annotations

import dataclasses

from experiments.methods.lists import _meanings
from inference import Entry, entries, register, unregister
from inference.registry import backend_class
from tests.experiments.conftest import invoke


def test_backends_are_listed_with_settings() -> None:
    result = invoke("list", "backends")
    for name, entry in entries().items():
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())
        assert entry.summary in result.stdout
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


def test_a_backend_shows_types_defaults_and_meanings() -> None:
    text = " ".join(invoke("list", "backends", "lbp").stdout.split())
    assert "damping float | adaptive adaptive weight of the old log message" in text
    assert "schedule one of sweep, flooding, residual, random sweep" in text
    null = " ".join(invoke("list", "backends", "exact").stdout.split())
    assert "memory_limit int | null null" in null


def test_every_setting_of_every_backend_has_a_meaning() -> None:
    for name, entry in entries().items():
        if not entry.missing:
            backend = backend_class(name)
            settings = {field.name for field in dataclasses.fields(backend)}
            assert set(_meanings(backend)) == settings, name
    invoke("list", "backends", "nonsense", code=2)
