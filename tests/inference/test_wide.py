"""The scenario `wide` of tests/endurance, on a small network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from factormodels import write
from factormodels.synthetic import grid
from inference import infer
from tests.endurance import wide


def test_a_wrong_answer_beside_a_network_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = grid(6, 6, coupling=0.3, field=0.3, seed=0)
    monkeypatch.setattr(wide, "DRAWN", {"grid": lambda _: graph})
    write(graph, tmp_path / "grid.uai")
    (tmp_path / "grid.uai.evid").write_text("0")
    log_z = infer(graph, "exact").log_z
    assert log_z is not None
    for off, right in ((0.0, True), (3.0, False)):
        log10 = (log_z + off) / np.log(10.0)
        (tmp_path / "grid.uai.PR").write_text(f"PR\n{log10:.8f}\n")
        drawn, given = wide.wide(str(tmp_path), seconds=0.2)
        assert drawn["right"]
        assert given["right"] is right
        assert given["log Z"] == pytest.approx(log_z + off, abs=1e-6)
