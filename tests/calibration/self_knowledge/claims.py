"""Claims for the tests: drawn at random, and short to write by hand."""

from __future__ import annotations

import numpy as np

from calibration.self_knowledge import ClaimLabel, ClaimRecord, ModelJudgment

LABELS = list(ClaimLabel)
JUDGMENTS = [*ModelJudgment, None]


def claim(
    response: str,
    sentence: int,
    sentences: int,
    label: str,
    *judgments: str | None,
    number: int = 0,
) -> ClaimRecord:
    """Return a record; its id is unique as long as `number` is, within a sentence."""
    padded = [*judgments, None, None, None][:3]
    return ClaimRecord(
        response,
        sentence,
        sentences,
        f"a{sentence}.{number}",
        ClaimLabel(label),
        *(None if each is None else ModelJudgment(each) for each in padded),
    )


def in_sentence(
    response: str, sentence: int, sentences: int, labels: str, judgment: str | None = None
) -> list[ClaimRecord]:
    """Return the claims of one sentence, from labels such as "S NS IR"."""
    return [
        claim(response, sentence, sentences, label, None, None, judgment, number=number)
        for number, label in enumerate(labels.split())
    ]


def random_records(
    seed: int, n_responses: int = 12, *, missing: float = 0.1, prefix: str = "r"
) -> list[ClaimRecord]:
    """Return claims of random labels and judgments, some later sentences without any."""
    generator = np.random.default_rng(seed)
    records = []
    for response in range(n_responses):
        sentences = int(generator.integers(1, 12))
        for sentence in range(1, sentences + 1):
            for number in range(int(generator.integers(sentence == 1, 6))):
                label = LABELS[generator.choice(3, p=[0.5, 0.35, 0.15])]
                chances = [0.6, 0.25, 0.15] if label is ClaimLabel.SUPPORTED else [0.35, 0.5, 0.15]
                chances = [*(chance * (1 - missing) for chance in chances), missing]
                judgments = [JUDGMENTS[generator.choice(4, p=chances)] for _ in range(3)]
                records.append(
                    ClaimRecord(
                        f"{prefix}{response}",
                        sentence,
                        sentences,
                        f"a{sentence}.{number}",
                        label,
                        *judgments,
                    )
                )
    return records
