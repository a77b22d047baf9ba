"""NUTS: the posterior of the parameters by NumPyro, over the likelihood that is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from calibration.learned_priors.posterior import PRIOR_SCALE, ParameterPosterior, target
from calibration.learned_priors.specification import Specification
from calibration.validation import Floats, whole_number
from factormodels.errors import MissingDependencyError
from factormodels.fact_graph import FactGraph
from inference.backend import Backend
from inference.sampling.diagnostics import effective_sample_size, split_chains, split_r_hat

_SPREAD = 1.5
"""Chains start further apart than the posterior spreads, so that R-hat sees what is not mixed."""


def sample_posterior(
    graphs: Sequence[FactGraph],
    specification: Specification | None = None,
    *,
    prior_scale: float = PRIOR_SCALE,
    chains: int = 4,
    warm_up: int = 300,
    draws: int = 500,
    backend: str | Backend = "auto",
    seed: int = 0,
) -> ParameterPosterior:
    """Draws of the parameters from their posterior, by NumPyro's No-U-Turn sampler.

    Args:
        graphs: the responses, with labels on atoms.
        specification: what is learned; None: one atom prior and one temperature.
        prior_scale: standard deviation of the normal priors on the scales without bounds, around
            the values that the graphs state.
        chains: number of chains, run one after another.
        warm_up: steps of each chain before its first draw.
        draws: draws of each chain, at least 4.
        backend: ``auto``, ``exact`` or ``lbp``, by name or built.
        seed: seed of the starts and the sampler.

    Raises:
        InputError: as `fit` does, or for bad settings.
        MissingDependencyError: if NumPyro is not installed.

    Source: Hoffman & Gelman 2014, "The No-U-Turn sampler".
    """
    chains = whole_number(chains, "chains", 1)
    warm_up, draws = whole_number(warm_up, "warm_up", 1), whole_number(draws, "draws", 4)
    seed = whole_number(seed, "seed", 0)
    try:
        import numpyro  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "sampling the posterior needs numpyro, which is not installed; "
            "run: pip install 'factorfacts[jax]'"
        ) from error
    density = target(graphs, specification, prior_scale, backend)
    k = len(density.mode)
    starts = _SPREAD * np.random.default_rng(seed).normal(size=(chains, k))
    with _double_precision():
        found, diverging = _run(density.log_density, starts, warm_up, draws, seed)
    series = density.mode + found @ density.root.T
    return ParameterPosterior(
        specification=density.specification,
        parameters=density.parameters,
        draws=series,
        r_hat=split_r_hat(series),
        effective_draws=effective_sample_size(split_chains(series)),
        method="nuts",
        prior_scale=density.prior_scale,
        divergences=int(diverging.sum()),
        bounds=np.zeros(0),
        seed=seed,
    )


@contextmanager
def _double_precision() -> Iterator[None]:
    """Let JAX compute in double precision, as it did before when the block ends.

    In single precision the energy of a few hundred responses would lose the digits that matter.
    The setting is that of the process, not `jax.enable_x64` of this thread, since JAX calls the
    likelihood from threads of its own.
    """
    import jax

    configuration: Any = jax.config  # It has no types.
    before = configuration.jax_enable_x64
    configuration.update("jax_enable_x64", True)
    try:
        yield
    finally:
        configuration.update("jax_enable_x64", before)


def _run(
    log_density: Any, starts: Floats, warm_up: int, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Standardised draws (chains, draws, k) and whether each step diverged."""
    import jax
    from numpyro.infer import MCMC, NUTS

    from inference.tasks.autodiff import differentiable

    log_posterior = differentiable(log_density, "jax")

    def potential(z: Any) -> Any:
        return -log_posterior(z)

    sampler = MCMC(
        NUTS(potential_fn=potential),
        num_warmup=warm_up,
        num_samples=draws,
        num_chains=len(starts),
        chain_method="sequential",
        progress_bar=False,
    )
    begun = jax.numpy.asarray(starts if len(starts) > 1 else starts[0])
    sampler.run(jax.random.key(seed), init_params=begun, extra_fields=("diverging",))
    found = np.asarray(sampler.get_samples(group_by_chain=True), dtype=np.float64)
    diverging = sampler.get_extra_fields(group_by_chain=True)["diverging"]
    return found, np.asarray(diverging, dtype=np.float64)
