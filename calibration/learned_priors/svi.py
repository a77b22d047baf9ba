"""SVI: a normal approximation of the posterior of the parameters, by Pyro."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibration.learned_priors.posterior import (
    PRIOR_SCALE,
    ParameterPosterior,
    Target,
    target,
)
from calibration.learned_priors.specification import Specification
from calibration.validation import Floats, whole_number
from factormodels.errors import MissingDependencyError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend

_RATE = 0.05
_LAST_RATE = 0.01
"""Share of the first learning rate that is left at the end, so that the noise of the steps fades;
steps are in units of the posterior's own standard deviations."""


def fit_posterior(
    graphs: Sequence[FactGraph],
    specification: Specification | None = None,
    *,
    prior_scale: float = PRIOR_SCALE,
    steps: int = 500,
    particles: int = 4,
    draws: int = 4000,
    backend: str | Backend = "auto",
    seed: int = 0,
) -> ParameterPosterior:
    """Draws of a multivariate normal fitted to the posterior by variational inference.

    The guide is normal with a full covariance on the scales without bounds. It starts at the
    posterior's mode with the curvature there and climbs the evidence lower bound with Adam.

    Args:
        graphs: the responses, with labels on atoms.
        specification: what is learned; None: one atom prior and one temperature.
        prior_scale: standard deviation of the normal priors, as in `sample_posterior`.
        steps: steps of the ascent.
        particles: draws of the guide in each step.
        draws: draws of the fitted guide that are returned, at least 4.
        backend: ``auto``, ``exact`` or ``lbp``, by name or built.
        seed: seed of all draws.

    Raises:
        InputError: as `fit` does, or for bad settings.
        MissingDependencyError: if Pyro is not installed.

    Source: Kucukelbir et al. 2017, "Automatic differentiation variational inference".
    """
    steps = whole_number(steps, "steps", 1)
    particles, draws = whole_number(particles, "particles", 1), whole_number(draws, "draws", 4)
    seed = whole_number(seed, "seed", 0)
    try:
        import pyro  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "fitting the posterior needs pyro, which is not installed; "
            "run: pip install 'factorfacts[pyro]'"
        ) from error
    density = target(graphs, specification, prior_scale, backend)
    centre, root, bounds = _climb(density, steps, particles, seed)
    noise = np.random.default_rng(seed).normal(size=(1, draws, len(centre)))
    k = len(centre)
    return ParameterPosterior(
        specification=density.specification,
        parameters=density.parameters,
        draws=centre + noise @ root.T,
        r_hat=np.full(k, np.nan),
        effective_draws=np.full(k, float(draws)),
        method="svi",
        prior_scale=density.prior_scale,
        divergences=0,
        bounds=bounds,
        seed=seed,
    )


def _climb(density: Target, steps: int, particles: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Guide's mean (k,), its lower triangular root (k, k), and the bound by step."""
    import pyro
    import torch
    from pyro import distributions, infer
    from pyro.optim import ClippedAdam

    from inference.tasks.autodiff import differentiable

    library: Any = infer  # What it exports has no types.
    double = torch.float64
    start = torch.tensor(density.parameters.start, dtype=double)
    mode, root = (torch.tensor(part, dtype=double) for part in (density.mode, density.root))
    k = len(start)
    log_likelihood = differentiable(density.log_likelihood, "torch")

    def model() -> None:
        normal: Any = distributions.Normal(start, density.prior_scale)
        prior = normal.to_event(1)
        pyro.factor("labels", log_likelihood(pyro.sample("theta", prior)))

    def guide() -> None:
        shift = pyro.param("shift", lambda: torch.zeros(k, dtype=double))
        shape = pyro.param(
            "shape",
            lambda: torch.eye(k, dtype=double),
            constraint=distributions.constraints.lower_cholesky,
        )
        pyro.sample(
            "theta",
            distributions.MultivariateNormal(mode + root @ shift, scale_tril=root @ shape),
        )

    optimiser = ClippedAdam({"lr": _RATE, "lrd": _LAST_RATE ** (1.0 / steps)})
    # Pyro's parameters and torch's generator belong to the process: both are left as they were.
    with pyro.get_param_store().scope(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        elbo = library.Trace_ELBO(
            num_particles=particles, vectorize_particles=True, max_plate_nesting=0
        )
        ascent = library.SVI(model, guide, optimiser, elbo)
        bounds = np.array([-ascent.step() for _ in range(steps)])
        shift, shape = (pyro.param(name).detach() for name in ("shift", "shape"))
        found: tuple[Any, Any] = (mode + root @ shift).numpy(), (root @ shape).numpy()
    return found[0], found[1], bounds
