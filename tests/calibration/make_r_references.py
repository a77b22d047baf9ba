"""Compute what R gives for clustered claims of two methods; write r_references.json beside it.

    python make_r_references.py

It needs Rscript with pROC and rms. The file says which package gave each number;
tests compare.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).with_name("r_references.json")
SEED = 17

R_SCRIPT = r"""
suppressMessages({library(pROC); library(rms)})
d <- read.csv(commandArgs(TRUE)[1])
put <- function(name, values) {
  for (i in seq_along(values)) cat(sprintf("%s %.17g\n", name, values[[i]]))
}
section <- function(...) cat("#", paste(...), "\n")

section("pROC", as.character(packageVersion("pROC")))
one <- roc(d$y, d$p, quiet = TRUE, direction = "<", levels = c(0, 1))
other <- roc(d$y, d$q, quiet = TRUE, direction = "<", levels = c(0, 1))
put("auroc", c(auc(one), auc(other)))
put("auroc_variance", c(var(one), var(other)))
put("auroc_covariance", cov(one, other))
put("auroc_interval", ci.auc(one)[c(1, 3)])
put("auroc_p_value", roc.test(one, other, method = "delong", paired = TRUE)$p.value)

section("rms", as.character(packageVersion("rms")))
# As the whole table, with probabilities of 0 and 1, which val.prob leaves out.
with_ends <- d$p
with_ends[c(3, 50)] <- 0
with_ends[c(7, 90)] <- 1
v <- suppressWarnings(val.prob(with_ends, d$y, pl = FALSE))
# val.prob takes scores that need no logit over all that are left as well.
put("left_out", unlist(v[c("Intercept", "Slope", "Brier", "C (ROC)")]))

section("stats", as.character(getRversion()))
logit <- qlogis(d$p)
put("temperature", 1 / coef(glm(y ~ logit - 1, data = d, family = binomial,
                                control = list(epsilon = 1e-15))))
"""


def claims() -> dict[str, Any]:
    """Return two methods' probabilities p and q of claims, labels, responses and a covariate."""
    generator = np.random.default_rng(SEED)
    response = np.repeat(np.arange(16), generator.integers(3, 14, 16))
    level = generator.normal(0, 0.8, 16)[response]
    truth = level + generator.normal(0, 1.2, response.size)
    y = generator.random(response.size) < 1 / (1 + np.exp(-truth))

    def judgments(noise: float, slope: float) -> Any:
        logit = slope * truth + generator.normal(0, noise, response.size)
        return np.round(np.clip(1 / (1 + np.exp(-logit)), 0.005, 0.995), 4)

    return {
        "response": response.tolist(),
        "x": np.round(generator.random(response.size) + 0.3 * (response % 3), 3).tolist(),
        "y": y.astype(int).tolist(),
        "p": judgments(0.5, 1.4).tolist(),
        "q": judgments(1.5, 1.0).tolist(),
    }


def main() -> None:
    """Compute every number and write the file."""
    data = claims()
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "data.csv", Path(folder) / "script.R"
        columns = np.c_[tuple(data.values())]
        np.savetxt(table, columns, "%.17g", ",", header=",".join(data), comments="")
        script.write_text(R_SCRIPT, encoding="utf-8")
        result = subprocess.run(
            ["Rscript", script, table], check=True, capture_output=True, text=True
        )
    packages: dict[str, dict[str, list[float]]] = {}
    for line in result.stdout.splitlines():
        name, _, value = line.partition(" ")
        if name == "#":
            values_of = packages.setdefault(f"R: {value.strip()}", {})
        else:
            values_of.setdefault(name, []).append(float(value))
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items()]
    lines.append(f' "packages": {json.dumps(packages)}')
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
