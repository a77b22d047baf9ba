"""A study of many rows is summarized within bounds of memory, and exactly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.conftest import environment

SUMMARIZE = """
import sys
from pathlib import Path
import numpy as np
import pyarrow as pa
from experiments.study.config import DatasetChoice, Significance, Study
from experiments.study.rows import SCHEMA, RowsFile, write_rows
from experiments.study.report.scores import study_scores

N, CELLS, PER_RESPONSE = int(sys.argv[2]), 10, 5
shared = {"study": "s", "dataset": "d", "variant": "FR1", "encoding": "implication",
          "relation_model": "recorded", "prior": "data", "strength": 1.0, "backend": "exact",
          "setting": "{}", "seed": 0,
          "seconds": 1e-4, "status": "exact", "log_z": 0.0, "log_z_kind": "exact",
          "log_z_lower": None, "answered_by": "exact",
          "error": None, "annotation": None, "selections": "all"}
generator = np.random.default_rng(0)
p, label = generator.random(N), pa.array(generator.random(N) < 0.5)
response = pa.array([f"r{i // PER_RESPONSE}" for i in range(N)])
atom = pa.array([f"a{i % PER_RESPONSE}" for i in range(N)])

def cell(number):
    own = {"p": pa.array(p * (1 - number / 100)), "label": label, "response": response,
           "atom": atom, "backend_label": pa.repeat(f"b{number}", N)}
    columns = [own[n] if n in own else pa.repeat(pa.scalar(shared[n], SCHEMA.field(n).type), N)
               for n in SCHEMA.names]
    return pa.table(columns, schema=SCHEMA)

path = Path(sys.argv[1])
write_rows((cell(number) for number in range(CELLS)), path, {})
data = (DatasetChoice(name="d"),)
study = Study(study="s", datasets=data, significance=Significance(resamples=20))
cells = study_scores(study, RowsFile(path)).cells
brier = float(np.mean((p * 0.97 - label.to_numpy(zero_copy_only=False)) ** 2))
print(int(cells["n_atoms"].sum()), cells["brier"][3] - brier)
# Of this program alone: getrusage would count what the process had before it became this program.
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "most_kilobytes"),
    # Imports take about 200 MB of either. A row too much in memory takes about 1 kB.
    [(100_000, 350_000), pytest.param(1_000_000, 2_000_000, marks=pytest.mark.nightly)],
)
def test_rows_take_memory_within_a_bound(tmp_path: Path, rows: int, most_kilobytes: int) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SUMMARIZE, str(tmp_path / "rows.parquet"), str(rows // 10)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        check=True,
    )
    counted, difference, kilobytes = result.stdout.split()
    assert int(counted) == rows
    # Two sums of up to 100,000 squares, each in its own order.
    assert abs(float(difference)) < 1e-12
    assert int(kilobytes) < most_kilobytes
