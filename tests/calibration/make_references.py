"""Compute what other libraries give for one set of forecasts; write references.json beside it.

    python make_references.py

Run it alone, in an environment of its own: one of the libraries is called `calibration`, like a
package of this project. It needs

    pip install model-diagnostics==1.5.0 torchmetrics==1.9.0 uncertainty-calibration==0.1.4 \
        relplot==1.0.3 netcal==1.4.0 venn-abers==1.5.4 betacal==1.1.0

and R with rms. The file says which library gave each number; tests compare.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).with_name("references.json")
N_BINS = 10
SEED = 2

R_SCRIPT = """
suppressMessages(library(rms))
d <- read.csv(commandArgs(TRUE)[1])
v <- val.prob(d$p, d$y, pl = FALSE)
x <- qlogis(d$p)
knots <- sort(x)[ceiling(nrow(d) * c(0.05, 0.35, 0.65, 0.95) - 1e-9)]
fit <- glm(y ~ rcs(x, knots), data = d, family = binomial, control = list(epsilon = 1e-15))
distance <- sort(abs(fitted(fit) - d$p))
large <- glm(y ~ offset(x), data = d, family = binomial, control = list(epsilon = 1e-15))
line <- glm(y ~ x, data = d, family = binomial, control = list(epsilon = 1e-15))
values <- c(
  brier = v[["Brier"]],
  calibration_intercept = coef(line)[[1]], calibration_slope = coef(line)[[2]],
  calibration_in_the_large = coef(large)[[1]], e90 = distance[[ceiling(0.9 * nrow(d))]]
)
writeLines(sprintf("%s %.17g", names(values), values))
"""


def forecasts() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return 240 probabilities without ties, none on the edge of a bin, and labels off them."""
    generator = np.random.default_rng(SEED)
    p = np.round(generator.uniform(0.15, 0.9, 240), 5)
    confidence = np.round(np.maximum(p, 1 - p), 5)
    if np.unique(confidence).size < p.size or np.isclose(p * 20, np.round(p * 20)).any():
        raise ValueError("choose another seed: there are ties, or probabilities on an edge")
    return p, (generator.random(240) < 0.35 + 0.5 * p).astype(np.int64)


def of_model_diagnostics(p: Any, y: Any) -> dict[str, float]:
    scoring = import_module("model_diagnostics.scoring")
    parts = scoring.decompose(y_obs=y, y_pred=p, scoring_function=scoring.SquaredError())
    row = parts.to_dicts()[0]
    terms = ("miscalibration", "discrimination", "uncertainty")
    log_loss = scoring.decompose(y_obs=y, y_pred=p, scoring_function=scoring.LogLoss())
    return {f"corp_brier_{term}": float(row[term]) for term in terms} | {
        "brier": float(row["score"]),
        "log_loss": float(log_loss.to_dicts()[0]["score"]),
    }


def of_torchmetrics(p: Any, y: Any) -> dict[str, float]:
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    predicted, labels = torch.tensor(p, dtype=torch.float64), torch.tensor(y)
    return {"ece": float(functional.binary_calibration_error(predicted, labels, N_BINS, "l1"))}


def of_uncertainty_calibration(p: Any, y: Any) -> dict[str, float]:
    utils = import_module("calibration.utils")
    verdict = (p > 0.5).astype(np.int64)
    area, _ = utils.get_selective_stats(np.maximum(p, 1 - p), (verdict == y).astype(np.int64))
    return {"aurc": 1 - float(area)}


def of_relplot(p: Any, y: Any) -> dict[str, float]:
    relplot = import_module("relplot")
    relplot.config.use_logit_scaling = False
    return {"smooth_ece": float(relplot.smECE(p, y))}


def of_netcal(p: Any, y: Any) -> dict[str, float]:
    metrics = import_module("netcal.metrics")
    return {
        "ece": float(metrics.ECE(N_BINS).measure(p, y)),
        "mce": float(metrics.MCE(N_BINS).measure(p, y)),
        "ace": float(metrics.ACE(N_BINS).measure(p, y)),
        "ece_equal_mass": float(metrics.ECE(N_BINS, equal_intervals=False).measure(p, y)),
    }


def of_venn_abers(p: Any, y: Any) -> dict[str, list[float]]:
    library = import_module("venn_abers")
    train, test = slice(0, 200), slice(200, 240)
    both = np.stack([1 - p, p], axis=1)
    merged, pair = library.VennAbersCalibrator().predict_proba(
        p_cal=both[train], y_cal=y[train], p_test=both[test], p0_p1_output=True
    )
    return {
        "lower": [float(value) for value in pair[:, 0]],
        "upper": [float(value) for value in pair[:, 1]],
        "merged": [float(value) for value in merged[:, 1]],
    }


def of_betacal(p: Any, y: Any) -> dict[str, list[float]]:
    betacal = import_module("betacal")
    fitted = betacal.BetaCalibration("abm").fit(p.reshape(-1, 1), y)
    return {"abm": [float(value) for value in fitted.predict(p[:40])]}


def of_r(p: Any, y: Any) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "data.csv", Path(folder) / "script.R"
        np.savetxt(data, np.c_[p, y], "%.17g", ",", header="p,y", comments="")
        script.write_text(R_SCRIPT, encoding="utf-8")
        result = subprocess.run(
            ["Rscript", script, data], check=True, capture_output=True, text=True
        )
    lines = (line.split() for line in result.stdout.splitlines())
    return {name: float(value) for name, value in lines}


def main() -> None:
    """Compute every number and write the file."""
    p, y = forecasts()
    made: dict[str, Any] = {"p": p.tolist(), "y": y.tolist(), "n_bins": N_BINS}
    made["libraries"] = {
        f"model-diagnostics {version('model-diagnostics')}": of_model_diagnostics(p, y),
        f"torchmetrics {version('torchmetrics')}": of_torchmetrics(p, y),
        f"uncertainty-calibration {version('uncertainty-calibration')}": (
            of_uncertainty_calibration(p, y)
        ),
        f"relplot {version('relplot')}": of_relplot(p, y),
        f"netcal {version('netcal')}": of_netcal(p, y),
        "R: rms 6.5-0": of_r(p, y),
    }
    made["recalibration"] = {
        f"venn-abers {version('venn-abers')}": of_venn_abers(p, y),
        f"betacal {version('betacal')}": of_betacal(p, y),
    }
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in made.items())
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
