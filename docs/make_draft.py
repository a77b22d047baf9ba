"""Makes a draft of four pages and the figures of the findings from the results that are kept.

    python -m docs.make_draft results/draft      # `make draft`

The folder gets paper.pdf, set by Typst, paper.tex, and the tables and figures that both take in.
Every number comes from the files in docs/results, written by the commands of the findings.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cyclopts

from calibration.figures.claim_parts import claim_parts_figure
from experiments.findings.artifacts import Artifacts, Origin, PaperFigure, write_artifacts
from experiments.findings.figures.positions import decline_figure
from experiments.findings.paper import Paper, PaperSection, write_paper
from factormodels.errors import InputError
from factormodels.io.source.files import results_folder
from notebooks.questions import core_on_biographies, learned_potentials, real_graphs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]

IMAGES = ROOT / "docs" / "images"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptResults:
    """The kept results of studies.

    Attributes:
        folder: holds a folder for each study.
    """

    folder: Path = ROOT / "docs" / "results"

    def table(self, study: str, stem: str) -> pd.DataFrame:
        """The numbers of a table.

        Raises:
            InputError: if they are not there.
        """
        import pandas as pd

        path = self.folder / study / f"{stem}.csv"
        if not path.is_file():
            script = f"notebooks/questions/{study.replace('-', '_')}.py"
            raise InputError(f"{path}: there is no such file; run python {script}")
        return pd.read_csv(path, keep_default_na=False, na_values=[""])

    def row(self, study: str, stem: str, **wanted: str) -> Mapping[str, Any]:
        """The first row of a table that has the wanted cells.

        Raises:
            InputError: if none has them.
        """
        for row in self.table(study, stem).to_dict("records"):
            if all(str(row[name]) == value for name, value in wanted.items()):
                return {str(name): value for name, value in row.items()}
        raise InputError(f"{self.folder / study / stem}.csv: no row has {wanted}; run it again")

    def digest(self) -> str:
        """SHA-256 of all tables."""
        hashed = hashlib.sha256()
        for path in sorted(self.folder.glob("*/*.csv")):
            hashed.update(path.read_bytes())
        return hashed.hexdigest()


def biographies(kept: KeptResults) -> pd.DataFrame:
    """Scores of every method on the biographies."""
    scores = kept.table("learned-potentials", "scores")
    return scores[scores["data"] == "factscore"]


def ladder(kept: KeptResults) -> Figure:
    """Every method of learning from labels."""
    return learned_potentials.ladder_figure(biographies(kept))


def curves(kept: KeptResults) -> Figure:
    """Scores by the number of labeled responses."""
    return learned_potentials.curve_figure(kept.table("learned-potentials", "curve"))


def one_biography(kept: KeptResults) -> Figure:
    """Probabilities of a biography before and after learning."""
    frame = kept.table("learned-potentials", "biography")
    return claim_parts_figure(frame, tuple(frame.columns[4:]))


def core(kept: KeptResults) -> Figure:
    """Gains of padding, with and without Core."""
    return core_on_biographies.gains_figure(kept.table("core-on-biographies", "gains"))


def kept_by_sentence(kept: KeptResults) -> Figure:
    """Shares of claims that Core keeps, by sentence."""
    return core_on_biographies.kept_figure(kept.table("core-on-biographies", "kept"))


def decline(kept: KeptResults) -> Figure:
    """Truth and posteriors by position in the response."""
    return decline_figure(kept.table("real-graphs", "positions"))


def by_encoding(kept: KeptResults) -> Figure:
    """Strengths learned under each encoding, by every algorithm."""
    return real_graphs.brier_figure(kept.table("learned-encodings", "learned"))


FIGURES: Mapping[str, Callable[[KeptResults], Figure]] = {
    "learned-potentials": ladder,
    "learning-curves": curves,
    "one-biography": one_biography,
    "core-on-biographies": kept_by_sentence,
    "padding-gains": core,
    "real-graphs": decline,
    "learned-encodings": by_encoding,
}
"""The figures of the findings by the name of their image."""


def number(row: Mapping[str, Any], name: str, digits: int = 4) -> str:
    """A number of a row with its interval."""
    value, lower, upper = (f"{row[name + end]:.{digits}f}" for end in ("", "_lower", "_upper"))
    return f"{value} [{lower}, {upper}]"


def artifacts(kept: KeptResults) -> Artifacts:
    """The tables and figures of the draft."""
    across = kept.table("learned-potentials", "across")
    gains = kept.table("core-on-biographies", "gains")
    gains = gains[gains["kind"].str.endswith("appended")]
    return Artifacts(
        tables={
            "scores": learned_potentials.table_of("scores", biographies(kept)),
            "across": learned_potentials.table_of("across", across),
            "gains": core_on_biographies.padding_table(gains, "153 biographies with a true claim."),
        },
        figures={
            name: PaperFigure(make(kept), kept.table(study, stem), title)
            for name, make, study, stem, title in (
                ("ladder", ladder, "learned-potentials", "scores", "Brier score of every method"),
                ("curves", curves, "learned-potentials", "curve", "learning curves"),
                ("core", core, "core-on-biographies", "gains", "what padding gains"),
            )
        },
    )


def draft(kept: KeptResults, made: Artifacts) -> Paper:
    """The paper, each number in its text from the kept results."""
    study = "learned-potentials"
    by = {
        name: kept.row(study, "scores", data="factscore", method=name)
        for name in (
            "default",
            "Platt",
            "boosted trees, neighbors",
            "with causes of biographies",
            "linear, neighbors",
            "boosted trees, neighbors, texts",
            "neighbors, texts",
        )
    }
    ahead = {
        name: kept.row(
            study, "differences", data="factscore", method=name, other="boosted trees, neighbors"
        )
        for name in ("with causes of biographies", "linear, neighbors")
    }
    texts = kept.row(
        *(study, "differences"),
        data="factscore",
        method="with texts",
        other="with causes of biographies",
    )
    gains = {
        kind: kept.row(
            "core-on-biographies",
            "gains",
            judge=core_on_biographies.BLIND,
            kind=f"{kind}, appended",
        )
        for kind in ("repetitive", "uninformative", "off-topic")
    }
    whole = kept.row("core-on-biographies", "kept", sentence="all")
    n_atoms = int(by["default"]["n_atoms"])
    abstract = (
        f"Factor graphs of claims and passages are meant to say how probable each claim of a long "
        f"answer is. On 157 biographies of a language model with {n_atoms:,} claims that people "
        f"labeled, and relations of a model of words, posteriors as stated have a Brier score of "
        f"{number(by['default'], 'brier')}; Platt scaling takes it to {by['Platt']['brier']:.4f}, "
        f"and a prior and temperature of graphs can do no more on stars. Potentials linear in "
        f"columns of evidence and position, with hidden causes of sentences and biographies, reach "
        f"{by['with causes of biographies']['brier']:.4f}. Boosted trees that see the neighbors' "
        f"evidence have {by['boosted trees, neighbors']['brier']:.4f}; a field that sees it too "
        f"has {by['linear, neighbors']['brier']:.4f}. With columns of how much of a claim's text "
        f"passages hold, trees have {by['boosted trees, neighbors, texts']['brier']:.4f} and the "
        f"field {by['neighbors, texts']['brier']:.4f}. Selection by Core keeps "
        f"{whole['kept']:.0%} of the claims; it takes the gain of repetition from "
        f"{gains['repetitive']['plain']:.3f} to {gains['repetitive']['core']:.3f} and that of true "
        f"claims about other topics from {gains['off-topic']['plain']:.3f} to "
        f"{gains['off-topic']['core']:.3f}: it does not see them."
    )
    tables, captions = made.tables, made.figures
    return Paper(
        title="What factor graphs of claims are worth on real judgments",
        authors=("A draft of the project factormodels",),
        abstract=abstract,
        pages=4,
        sections=(
            PaperSection(
                "1 Learning potentials",
                (
                    "Every method is judged on biographies that it has not seen: five folds of "
                    "whole biographies, the same for all, and intervals that redraw biographies. "
                    "In FR1 each claim has passages of its own, so that graphs are forests of "
                    "stars and learned strengths are a logistic regression on their relations. "
                    "What joins claims is a hidden cause of each sentence and of each biography, "
                    "summed out exactly, since the graph is a tree.",
                    "Less boosted trees with neighbors the field has a Brier score of "
                    f"{number(ahead['with causes of biographies'], 'brier')} without neighbors' "
                    f"columns, and of {number(ahead['linear, neighbors'], 'brier')} with them, "
                    "paired over biographies. Columns of how much of what a claim says of its "
                    f"topic passages hold change it by {number(texts, 'brier')}.",
                ),
                {"scores": tables["scores"]},
                {
                    "ladder": f"{captions['ladder'].title} on biographies not seen, with 95% "
                    "intervals over biographies."
                },
            ),
            PaperSection(
                "2 Few labels, and other data",
                (
                    "Learned on few biographies, every method is judged on those of the other "
                    "folds. Learned on all responses of one dataset, it is used on the other, "
                    "whose evidence another relation model made: nothing of that kind should be "
                    "relied on, and a judge refuses it unless told otherwise.",
                ),
                {"across": tables["across"]},
                {
                    "curves": "Brier score by the number of labeled biographies, with 95% "
                    "intervals over the biographies that are judged."
                },
            ),
            PaperSection(
                "3 Selection and padding",
                (
                    f"Core keeps {number(whole, 'kept', 2)} of the claims, least of the first "
                    f"sentence; the share of true ones changes by {number(whole, 'change', 3)}. "
                    "Twenty sentences are then appended: repetitions of a true claim, sentences "
                    "from templates that hold of nearly everything, or true claims of other "
                    "biographies. All of them are true, so that all raise plain precision alike. "
                    "Core takes the gain of the first two away. It was not made for the third: "
                    "claims about others are neither redundant nor uninformative, are kept, and "
                    "weigh more as fewer of the response's own claims are left.",
                ),
                {"gains": tables["gains"]},
                {
                    "core": "What twenty sentences of padding gain in precision, judged by words "
                    "alone, without Core and with it, and the difference."
                },
            ),
        ),
    )


def write_draft(kept: KeptResults, folder: Path) -> tuple[Path, Path]:
    """Write the draft with its tables and figures, and return the paths of the PDF and LaTeX.

    Raises:
        InputError: if kept results are missing, or a file cannot be written.
    """
    made = artifacts(kept)
    origin = Origin("docs/results", kept.digest())
    with results_folder(folder):
        write_artifacts(made, folder, origin)
        return write_paper(draft(kept, made), folder, origin)


def main(
    folder: Path,
    *,
    images: bool = False,
) -> None:
    """Write the draft, and draw the figures of the findings if asked.

    Args:
        folder: where the draft goes.
        images: draw docs/images anew too.
    """
    logging.basicConfig(format="%(message)s")
    logger.setLevel(logging.INFO)
    kept = KeptResults()
    try:
        for path in write_draft(kept, folder):
            logger.info("%s", path)
        if images:
            for name, make in FIGURES.items():
                make(kept).savefig(IMAGES / f"{name}.png", dpi=170, metadata={"Software": None})
    except InputError as error:
        logger.error("%s", error)
        raise SystemExit(2) from None


if __name__ == "__main__":
    cyclopts.run(main)
