"""Compute what other libraries give for one set of forecasts; write references.json beside it.

    python make_references.py

Run it alone, in an environment of its own: one of the libraries is called `calibration`, like a
package of this project. It needs

    pip install model-diagnostics==1.5.0 torchmetrics==1.9.0 uncertainty-calibration==0.1.4 \
        calzone-tool==0.1.0 relplot==1.0.3 venn-abers==1.5.4 betacal==1.1.0

and R with rms and SpecsVerification; where the latter is not installed, BRIER_DECOMP is the path of
its file R/BrierDecomp.R. The file says which library gave each number; tests compare.
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
if (requireNamespace("SpecsVerification", quietly = TRUE)) {
  BrierDecomp <- SpecsVerification::BrierDecomp
} else {
  source(Sys.getenv("BRIER_DECOMP"))
}
n_bins <- as.numeric(commandArgs(TRUE)[2])
plain <- BrierDecomp(d$p, d$y, n_bins)["component", ]
corrected <- BrierDecomp(d$p, d$y, n_bins, TRUE)["component", ]
values <- c(
  brier = v[["Brier"]], spiegelhalter_z = v[["S:z"]], spiegelhalter_p = v[["S:p"]],
  calibration_intercept = coef(line)[[1]], calibration_slope = coef(line)[[2]],
  calibration_in_the_large = coef(large)[[1]],
  ici = mean(distance), e50 = distance[[ceiling(0.5 * nrow(d))]],
  e90 = distance[[ceiling(0.9 * nrow(d))]], emax = max(distance),
  murphy_reliability = plain[["REL"]], murphy_resolution = plain[["RES"]],
  murphy_uncertainty = plain[["UNC"]],
  murphy_reliability_corrected = corrected[["REL"]],
  murphy_resolution_corrected = corrected[["RES"]],
  murphy_uncertainty_corrected = corrected[["UNC"]]
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
    values = {}
    for name, loss in (("brier", scoring.SquaredError()), ("log_loss", scoring.LogLoss())):
        row = scoring.decompose(y_obs=y, y_pred=p, scoring_function=loss).to_dicts()[0]
        for term in ("miscalibration", "discrimination", "uncertainty"):
            values[f"corp_{name}_{term}"] = float(row[term])
        values[name] = float(row["score"])
    return values


def of_torchmetrics(p: Any, y: Any) -> dict[str, float]:
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    predicted, labels = torch.tensor(p, dtype=torch.float64), torch.tensor(y)

    def binary(norm: str) -> float:
        return float(functional.binary_calibration_error(predicted, labels, N_BINS, norm))

    return {"ece": binary("l1"), "maximum_calibration_error": binary("max")}


def of_uncertainty_calibration(p: Any, y: Any) -> dict[str, float]:
    utils = import_module("calibration.utils")

    def error(power: int, debias: bool) -> float:
        return float(
            utils.lower_bound_scaling_ce(
                p, y, power, debias, N_BINS, binning_scheme=utils.get_equal_bins, mode="marginal"
            )
        )

    verdict = (p > 0.5).astype(np.int64)
    area, _ = utils.get_selective_stats(np.maximum(p, 1 - p), (verdict == y).astype(np.int64))
    claims, _ = utils.get_selective_stats(p, y)
    return {
        "ece_equal_mass": error(1, False),
        "rms_calibration_error": error(2, False),
        "rms_calibration_error_debiased": error(2, True),
        "aurc": 1 - float(area),
        "aurc_claims": 1 - float(claims),
    }


def of_calzone(p: Any, y: Any) -> dict[str, float]:
    metrics = import_module("calzone.metrics")
    groups = np.array_split(np.argsort(p), N_BINS)
    observed = np.array([y[group].mean() for group in groups])
    expected = np.array([p[group].mean() for group in groups])
    sizes = np.array([group.size for group in groups])
    statistic, p_value, _ = metrics.hosmer_lemeshow_test(observed, expected, sizes, df=N_BINS)
    z, z_p = metrics.spiegelhalter_z_test(y, np.stack([1 - p, p], axis=1))
    return {
        "hosmer_lemeshow": float(statistic),
        "hosmer_lemeshow_p": float(p_value),
        "spiegelhalter_z": float(z),
        "spiegelhalter_p": float(z_p),
    }


def of_relplot(p: Any, y: Any) -> dict[str, float]:
    relplot = import_module("relplot")
    relplot.config.use_logit_scaling = False
    return {"smooth_ece": float(relplot.smECE(p, y))}


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
            ["Rscript", script, data, str(N_BINS)], check=True, capture_output=True, text=True
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
        f"calzone-tool {version('calzone-tool')}": of_calzone(p, y),
        f"relplot {version('relplot')}": of_relplot(p, y),
        "R: rms 6.5-0; BrierDecomp of SpecsVerification, commit 68999e9": of_r(p, y),
    }
    made["recalibration"] = {
        f"venn-abers {version('venn-abers')}": of_venn_abers(p, y),
        f"betacal {version('betacal')}": of_betacal(p, y),
    }
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in made.items())
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
