"""`factormodels backends`: the list, and one backend with its settings."""

from __future__ import annotations

import dataclasses

from experiments.cli.commands.backends import _meanings
from inference import Entry, entries, register, unregister
from inference.registry import backend_class
from tests.experiments.conftest import Invoke


def test_backends_are_listed_with_settings(invoke: Invoke) -> None:
    result = invoke("backends")
    assert result.exit_code == 0
    for name, entry in entries().items():
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())
        assert entry.summary in result.stdout
    assert "damping=adaptive" in result.stdout


def test_a_backend_that_is_not_installed_names_the_command(invoke: Invoke) -> None:
    entry = Entry("absent", "no_such:Thing", "x", "none", requires=("no_such",), extra="things")
    register(entry)
    try:
        result = invoke("backends")
        assert "needs no_such; install it with pip install 'factorfacts[things]'" in result.stdout
        refused = invoke("backends", "absent")
        assert refused.exit_code == 2
        assert "pip install 'factorfacts[things]'" in refused.stderr
    finally:
        unregister("absent")


def test_a_backend_shows_types_defaults_and_meanings(invoke: Invoke) -> None:
    text = " ".join(invoke("backends", "lbp").stdout.split())
    assert "damping (float | adaptive; default adaptive) weight of the old log message" in text
    assert "schedule (one of sweep, flooding, residual, random; default sweep)" in text
    null = " ".join(invoke("backends", "exact").stdout.split())
    assert "memory_limit (int | null; default null)" in null


def test_every_setting_of_every_backend_has_a_meaning(invoke: Invoke) -> None:
    for name, entry in entries().items():
        if not entry.missing:
            backend = backend_class(name)
            settings = {field.name for field in dataclasses.fields(backend)}
            assert set(_meanings(backend)) == settings, name
    assert invoke("backends", "nonsense").exit_code == 2
