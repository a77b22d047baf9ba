"""Posterior of the weights of potentials, sampled by NumPyro's No-U-Turn sampler.

from calibration.learned_potentials.posterior import sample_posterior
draws = sample_posterior(graphs, Potentials())
draws.values["atom_prior"]

JAX receives the log likelihood of labels with its exact gradient, which is computed from beliefs.
`fit_potentials` returns an optimum with standard errors clustered by response; this module samples
the whole posterior of the weights under the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.learned_potentials.graph_fitting import checked_scale
from calibration.learned_potentials.graph_loss import learning_problem
from calibration.learned_potentials.graph_potentials import Potentials, Weight, apply, weights_of
from calibration.validation import Floats, whole_number
from factormodels.extraction.optional_libraries import optional_module
from factormodels.fact_graph import FactGraph
from inference.backend import Backend


@dataclass(frozen=True, eq=False)
class PotentialPosterior:
    """Draws of the weights of potentials, given labels.

    Attributes:
        potentials: specification of the weights.
        weights: the weights, in order.
        draws: float64 (n_draws, k).
        divergences: number of divergent transitions; if it is above 0, the draws may not represent
            the posterior.
    """

    potentials: Potentials
    weights: tuple[Weight, ...]
    draws: Floats
    divergences: int

    @property
    def values(self) -> dict[str, Floats]:
        """Draws by name, (n_draws,) each, with log odds converted to probabilities."""
        return {
            weight.name: np.array([weight.natural(value) for value in column])
            for weight, column in zip(self.weights, self.draws.T.tolist(), strict=True)
        }

    def graphs(self, graph: FactGraph, n: int) -> list[FactGraph]:
        """Response under n evenly spaced draws.

        The mean of its posteriors over these graphs accounts for the uncertainty of the weights.
        """
        chosen = np.linspace(0, len(self.draws) - 1, n).round().astype(np.int64)
        names = [weight.name for weight in self.weights]
        draws = (dict(zip(names, self.draws[at].tolist(), strict=True)) for at in chosen)
        return [apply(graph, self.potentials, values) for values in draws]


def sample_posterior(
    graphs: Sequence[FactGraph],
    potentials: Potentials,
    *,
    scale: float = 2.0,
    backend: str | Backend = "auto",
    n_warmup: int = 300,
    n_draws: int = 500,
    seed: int = 0,
) -> PotentialPosterior:
    """Sample the posterior of weights under normal priors centered at their initial values.

    Args:
        graphs: the responses, with labels on atoms.
        potentials: specification of the weights.
        scale: standard deviation of the priors.
        backend: an inference backend whose beliefs are the derivative of its log Z.
        n_warmup: number of draws for adaptation, which are discarded.
        n_draws: number of draws to keep.
        seed: seed of the sampler.

    Raises:
        InputError: as `fit_potentials`, or for a backend without such beliefs.
        MissingDependencyError: if NumPyro, JAX or PyTorch is not installed.
    """
    n_warmup, n_draws = whole_number(n_warmup, "n_warmup", 1), whole_number(n_draws, "n_draws", 1)
    spread = checked_scale(scale, "scale") or 1.0
    jax = optional_module("jax", "numpyro")
    infer = optional_module("numpyro.infer", "numpyro")
    from inference.tasks.autodiff import differentiable

    weights = weights_of(potentials, graphs)
    problem = learning_problem(graphs, potentials, weights, backend)
    problem.require_beliefs()
    start = np.array([weight.start for weight in weights], dtype=np.float64)

    def energy(theta: Floats) -> tuple[float, Floats]:
        value, scores = problem.value_and_scores(np.asarray(theta, dtype=np.float64))
        away = (theta - start) / spread
        return value + float(away @ away) / 2.0, scores.sum(axis=0) + away / spread

    with jax.enable_x64(True):
        kernel = infer.NUTS(potential_fn=differentiable(energy, "jax"))
        sampler = infer.MCMC(kernel, num_warmup=n_warmup, num_samples=n_draws, progress_bar=False)
        sampler.run(
            jax.random.key(whole_number(seed, "seed", 0)),
            init_params=jax.numpy.asarray(start),
            extra_fields=("diverging",),
        )
        draws = np.asarray(sampler.get_samples(), dtype=np.float64)
        diverging = int(np.asarray(sampler.get_extra_fields()["diverging"]).sum())
    return PotentialPosterior(potentials, weights, draws, diverging)
