"""`factormodels fit`: priors and reliabilities learned from labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.console import heading, output, plain_table, show_table
from experiments.cli.options import shared
from experiments.findings.text import counted, number

if TYPE_CHECKING:
    from rich.console import Console

    from calibration.learned_priors import CrossValidation
    from experiments.runner.learning import Adaptation, Learning

_COMPARED = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "log_likelihood": "-log P(labels) per response",
}

_WHY = {
    "boundary": "The likelihood grows up to a share of 0 or 1",
    "unidentified": "The evidence hardly depends on truth, so that any share suits it",
    "not_converged": "The estimate of the share did not settle",
    "other_evidence": "The evidence here is not distributed as among the labelled claims, whatever "
    "share is true (p = {p}); make both with the same relation model, retriever and number of "
    "passages, or label some of these responses",
    "too_few_responses": "Whether the evidence is distributed as among the labelled claims cannot "
    "be told from one response; give two or more",
}
"""Why responses without labels do not determine their share of true claims."""


def command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Labelled responses, or the name of an embedded dataset."
        ),
    ],
    atom_prior: Annotated[
        str, typer.Option(metavar="WHAT", help="Prior of atoms: learn, keep, or a number.")
    ] = "learn",
    context_prior: Annotated[
        str, typer.Option(metavar="WHAT", help="Prior of contexts: learn, keep, or a number.")
    ] = "keep",
    relations: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Relations: temperature (scales the logit of what each states), probability "
            "(replaces it by one per class), or keep.",
        ),
    ] = "temperature",
    by: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Classes of relations with values of their own: kind, or stance "
            "(Factcheck-Bench).",
        ),
    ] = None,
    encoding: shared.Encoding = "implication",
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="likelihood, log_loss or brier.")
    ] = "likelihood",
    backend: shared.BackendName = "auto",
    penalty: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Standard deviation of a normal prior on logit and log scales."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(min=0, metavar="N", help="Folds of the cross-validation; 0 for none.")
    ] = 5,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of folds and bootstrap.")
    ] = 0,
    unlabelled: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Responses without labels, such as another model's: estimate their share of true "
            "claims, with the strengths that were learned.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the responses, with what was learned, to this file: those of "
            "--unlabelled, if there are any.",
        ),
    ] = None,
) -> None:
    """Learn priors and reliabilities of relations from labels.

    Fits by maximum likelihood, with standard errors over responses. Then judges
    every response by what was learned from the others, and compares that with the
    graphs as given. Of responses without labels, the share of true claims is estimated
    from their evidence: strengths that were learned stay, the prior is exchanged.

    [b]Examples[/b]

      factormodels fit factcheck-bench
      factormodels fit factcheck-bench --relations probability --by stance
      factormodels fit graphs.jsonl --context-prior learn --out learned.jsonl
      factormodels fit labelled.jsonl --unlabelled new.jsonl --out adapted.jsonl
    """
    from experiments.runner import learning

    graphs = learning.labelled_graphs(file)
    specification = learning.specification(atom_prior, context_prior, relations, by, encoding)
    others = None
    if unlabelled is not None:
        # Before what takes time: nothing is learned that cannot be moved.
        others = learning.unlabelled_graphs(unlabelled, specification)
        learning.check_exchangeable(graphs)
    settings = learning.LearningSettings(objective, backend, penalty, folds, seed)
    analysed = learning.analyse(graphs, specification, settings)
    console = output()
    _show(console, analysed)
    adapted = None
    if others is not None:
        adapted = learning.adapt(analysed.learned, graphs, others)
        _show_share(console, adapted, unlabelled)
    if out is not None:
        known = analysed.learned.apply_all(graphs) if adapted is None else adapted.graphs
        learning.write_learned(known, analysed.learned, out)
        console.print(f"wrote {out}", soft_wrap=True)


def _show(console: Console, learning: Learning) -> None:
    """Print what was learned, and the comparison with the graphs as they are given."""
    learned = learning.learned
    heading(
        console,
        f"{learned.n_labelled:,} labelled atoms in {learned.n_responses:,} responses; encoding "
        f"{learned.specification.encoding}, {learned.objective} by {learned.backend}: "
        f"{learned.status.value.replace('_', ' ')}",
    )
    titles = ["stated", "learned", "standard error", "95 % interval"]
    table = plain_table(["parameter"], titles, ["status"], wrap=True)
    for row in learned.table():
        table.add_row(
            row.name,
            number(row.start),
            number(row.estimate),
            number(row.standard_error),
            f"{number(row.lower)} to {number(row.upper)}",
            row.status.value,
        )
    show_table(console, table)
    if learning.validated is not None:
        _show_comparison(console, learning.validated)


def _show_share(console: Console, adapted: Adaptation, source: Path | None) -> None:
    """Print the share of true claims among responses without labels."""
    prior = adapted.prior
    console.print()
    heading(
        console,
        f"{source}: {counted(adapted.n_claims, 'claim')} of "
        f"{counted(len(adapted.graphs), 'response')}, whose labels play no part",
    )
    table = plain_table(["share of true claims"], ["estimate", "95 % interval"], wrap=True)
    table.add_row("among the labels", number(prior.old_share), "")
    told = f"{number(prior.lower)} to {number(prior.upper)}" if prior.determined else "--"
    table.add_row("here", number(prior.share) if prior.determined else "--", told)
    show_table(console, table)
    if not prior.determined:
        why = _WHY[prior.status.value].format(p=number(prior.evidence_p))
        console.print(f"{why}: the learned prior stays.", soft_wrap=True)


def _show_comparison(console: Console, validated: CrossValidation) -> None:
    console.print()
    folds = len(validated.fits)
    heading(console, f"Held-out responses, {folds} folds: learned minus as given (below 0: better)")
    titles = ["as given", "learned", "difference", "95 % interval"]
    table = plain_table(["score"], titles, wrap=True)
    for name, title in _COMPARED.items():
        test = validated.comparisons[name]
        if name == "log_likelihood":
            # Negated, so that below 0 is better in every row.
            scores = -validated.log_likelihood.mean(), -validated.default_log_likelihood.mean()
        else:
            scores = validated.score(name)
        table.add_row(
            title,
            number(float(scores[1]), 4),
            number(float(scores[0]), 4),
            f"{test.estimate:+.4f}",
            f"{test.lower:+.4f} to {test.upper:+.4f}",
        )
    show_table(console, table)
    console.print()
    heading(console, "Rivals that learn without a graph: learned minus rival (below 0: better)")
    titles = ["score", "rival's", "learned", "difference", "95 % interval"]
    table = plain_table(["rival"], titles, wrap=True)
    for rival, title in (("platt", "Platt scaling of as given"), ("base_rate", "base rate")):
        for name in ("brier", "log_loss"):
            test = validated.rival_comparisons[rival][name]
            table.add_row(
                title,
                _COMPARED[name],
                number(validated.rival_score(rival, name), 4),
                number(validated.score(name)[0], 4),
                f"{test.estimate:+.4f}",
                f"{test.lower:+.4f} to {test.upper:+.4f}",
            )
    show_table(console, table)
