"""What `factormodels fastfact` shows: responses, scores, curves, calls and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from experiments.cli.console import heading, plain_table, show_table
from experiments.findings.text import ABSENT, counted, interval, number

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from experiments.assess.fastfact import FastFactEvaluation, FastFactPlan
    from factormodels.extraction.preverification import Threshold

_CORE = (
    *(("core_claims", "claims"), ("core_supported", "S"), ("core_unsupported", "N")),
    *(("core_precision", "precision"), ("core_recall", "R_K'"), ("core_f1", "F1@K'")),
)
_CURVE = (1, 2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200)
_SCORES = (
    *(("supported", "S"), ("unsupported", "N"), ("irrelevant", "I"), ("missing", "missing")),
    *(("precision", "precision"), ("k_prime", "K'"), ("recall", "R_K'"), ("f1", "F1@K'")),
    *(("claims", "claims"), ("verified_share", "p"), ("searches", "searches"), ("pages", "pages")),
    *(("cost", "cost (US$)"),),
)


def show_evaluation(console: Console, found: FastFactEvaluation) -> None:
    """Print the responses, their score or its curve, and what all of it took."""
    responses = found.responses
    heading(
        console, f"{counted(len(responses), 'response')}, {counted(len(found.claims), 'claim')}"
    )
    if len(responses) == 1:
        _show_claims(console, found.claims)
    _show_frame(console, responses, ["response"], _SCORES, _cell)
    _show_missing(console, responses)
    if "core_claims" in responses:
        console.print()
        heading(console, "the claims that count alone (Core)")
        _show_frame(console, responses, ["response"], _CORE, _cell)
        means = {name: responses[name].mean() for name in ("f1", "core_f1", "precision",
                 "core_precision")}  # fmt: skip
        console.print(
            f"mean precision {number(means['precision'])}, with Core "
            f"{number(means['core_precision'])}; F1@K' {number(means['f1'])}, with Core "
            f"{number(means['core_f1'])}",
            soft_wrap=True,
        )
    if len(found.claims) and found.claims["confidence"].isna().all():
        console.print("the model gives no log-probabilities: no claim was skipped", soft_wrap=True)
    scored = responses["f1"].notna()
    if scored.any():
        console.print()
        heading(console, "F1@K', means over responses, with 95% intervals")
        _show_leaderboard(console, found.summary)
    if not scored.all():
        _show_curve(console, found)
    console.print()
    if found.claim_failures is not None:
        _show_failures(console, found.claim_failures)
    _show_cost(console, found)
    audit = found.audit.iloc[0]
    if audit["claims"]:
        console.print(
            f"audit: {audit['claims']:g} of {audit['skipped']:g} skipped claims verified, "
            f"{audit['wrong']:g} wrong: {audit['share']:.3f} [{audit['lower']:.3f}, "
            f"{audit['upper']:.3f}]",
            soft_wrap=True,
        )


def _show_failures(console: Console, table: pd.DataFrame) -> None:
    """Print what is wrong with extracted claims, a line per group and kind."""
    heading(console, "failures of extracted claims, judged by the model")
    keys = [name for name in table.columns if name not in ("count", "claims", "share",
            "unanswered")]  # fmt: skip
    _show_frame(console, table, keys, (("count", "count"), ("claims", "of claims"),
                ("share", "share")), _cell)  # fmt: skip
    if int(table["unanswered"].max()):
        console.print("some questions of the judge have no answer: their claims are left out")
    console.print()


def _show_claims(console: Console, claims: pd.DataFrame) -> None:
    table = plain_table(["", "known as", "confidence", "verdict"], rest="text")
    for row in claims.to_dict("records"):
        verdict = row["verdict"] or "missing"
        if row["skipped"] and not row["audited"]:
            verdict += " (skipped)"
        said = number(row["confidence"])
        table.add_row(row["claim"], row["prelabel"], said, verdict, row["text"])
    show_table(console, table)
    console.print()


def _show_frame(
    console: Console,
    frame: pd.DataFrame,
    left: Sequence[str],
    right: Sequence[tuple[str, str]],
    cell: Callable[[str, Any], str],
) -> None:
    """Print columns of texts, titled as they are named, and of numbers, by name and title."""
    table = plain_table(left, [title for _, title in right])
    for row in frame.to_dict("records"):
        texts = (str(row[name]) for name in left)
        table.add_row(*texts, *(cell(name, row[name]) for name, _ in right))
    show_table(console, table)


def _cell(name: str, value: Any) -> str:
    if value is None or value != value:
        return ABSENT
    if isinstance(value, str):
        return value
    if name in ("cost", "per_response"):
        return f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}"
    if name == "k_prime":
        return f"{value:,g}"
    return f"{value:,.1f}".removesuffix(".0") if value > 1 else f"{value:.3f}"


def _show_missing(console: Console, responses: pd.DataFrame) -> None:
    lacking = responses[["missing", "missing_chunks", "unread_lines"]]
    claims, chunks, lines = map(int, lacking.sum())
    if claims or chunks or lines:
        some = int((lacking > 0).any(axis=1).sum())
        console.print(
            f"missing in {counted(some, 'response')}: {counted(claims, 'verdict')}, the claims of "
            f"{counted(chunks, 'chunk')} and {counted(lines, 'line')} of claims that could not be "
            "read; they count neither as supported nor as false",
            soft_wrap=True,
        )


def _show_leaderboard(console: Console, summary: pd.DataFrame) -> None:
    titles = (
        *(
            ("responses", "responses"),
            ("scored", "scored"),
            ("f1", "F1@K'"),
            ("f1_interval", "95%"),
        ),
        *(("precision", "precision"), ("claims", "claims"), ("missing", "missing")),
    )
    others = (*dict(titles), "f1_lower", "f1_upper", "missing_chunks", "unread_lines", "cost")
    keys = [name for name in summary.columns if name not in others]
    ends = map(interval, summary["f1_lower"], summary["f1_upper"])
    _show_frame(console, summary.assign(f1_interval=[*ends]), keys, titles, _cell)


def _show_curve(console: Console, found: FastFactEvaluation) -> None:
    lacking = int(found.responses["k_prime"].isna().sum())
    if not lacking:
        return
    console.print()
    console.print(
        f"K', the number of claims that people find, is not known of {counted(lacking, 'response')}"
        " (--k-prime): there is no F1@K'. Means over all responses, for every K' that it could be:",
        soft_wrap=True,
    )
    shown = found.curve[found.curve["k_prime"].isin(_CURVE)]
    titles = (("precision", "precision"), ("recall", "R_K'"), ("f1", "F1@K' if so"))
    _show_frame(console, shown.rename(columns={"k_prime": "K'"}), ["K'"], titles, _cell)


def _show_cost(console: Console, found: FastFactEvaluation) -> None:
    heading(console, "calls, searches and cost by stage, beside FaStfact's table 6")
    titles = (
        *(("needed", "needed"), ("formula", "N/w, pM"), ("audit", "of them audit")),
        *(("calls", "asked anew"), ("cached", "cached"), ("failures", "failed")),
        *(("prompt_tokens", "tokens in"), ("completion_tokens", "out")),
        *(("cost", "cost (US$)"), ("per_response", "per response")),
    )
    _show_frame(console, found.cost, ["stage"], titles, _count)
    unknown = "; of some no price is known" if found.cost["unpriced"].fillna(0).sum() else ""
    console.print(
        "tokens and cost are of all answers, those from the cache, of no use and about responses "
        f"that failed too{unknown}",
        soft_wrap=True,
    )
    console.print()
    heading(console, "what methods need for these responses, by the formulas of table 6")
    columns = ("extracting", "verifying", "searches", "calls")
    methods = found.methods.astype(dict.fromkeys(columns, "float64")).round(1)
    _show_frame(console, methods, ["method"], [(name, name) for name in columns], _count)


def _count(name: str, value: Any) -> str:
    if name in ("cost", "per_response") or value != value:
        return _cell(name, value)
    return f"{value:,.1f}".removesuffix(".0")


def evaluation_as_json(found: FastFactEvaluation) -> str:
    """The tables of an evaluation as JSON, each a list of rows."""
    from json import dumps, loads

    return dumps(
        {
            **{
                name: loads(table.to_json(orient="records"))
                for name, table in found.tables().items()
            },
            "failures": [list(failure) for failure in found.failures],
        }
    )


def threshold_sentence(chosen: Threshold, target_error: float) -> str:
    """What is said of a threshold that was chosen for an error."""
    if not chosen.skipped:
        return f"no theta keeps the error of skipping below {target_error:g} for certain enough"
    return (
        f"theta {chosen.value:.4g}: {chosen.skipped} claims skipped, {chosen.error:.3f} of them "
        f"wrong, at most {chosen.upper:.3f} (95% sure, if claims err independently)"
    )


def show_bound(console: Console, plan: FastFactPlan) -> None:
    """Print what would be asked at most: a dry run sends nothing."""
    from experiments.assess.costs import CLAIMS_PER_SENTENCE
    from factormodels.extraction.sentences import split_chunks, split_sentences

    sentences = [split_sentences(graph.response) for graph in plan.graphs]
    extracting = sum(len(split_chunks(one, plan.settings.stride)) for one in sentences)
    claims = round(CLAIMS_PER_SENTENCE * sum(map(len, sentences)))
    heading(console, "dry run: nothing was sent")
    table = plain_table(["stage"], ["calls"])
    table.add_row("pre-verification", f"{extracting:,}")
    table.add_row("fastfact", f"about {claims:,}, less what is skipped")
    table.add_row("searches", f"about {claims:,}, less what is skipped")
    show_table(console, table)
    console.print(f"claims are not yet known: {CLAIMS_PER_SENTENCE:g} per sentence")
