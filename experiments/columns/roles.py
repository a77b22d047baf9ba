"""Roles of columns: their content, and the names that identify them.

Every reader of tables uses these roles and names. `experiments.columns.reader` compares names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from factormodels.io.relation_table import SHARE_NAMES


@dataclass(frozen=True)
class Role:
    """A role of a column.

    Attributes:
        meaning: content of the column, for messages.
        option: the option that names such a column; empty without an option.
        names: recognized names, the most likely first. Names in the same tuple are equally likely,
            so a table with two of them is refused.
    """

    meaning: str
    option: str
    names: tuple[str | tuple[str, ...], ...]

    def spellings(self) -> Iterator[str]:
        """Yield every name, one by one."""
        for names in self.names:
            yield from (names,) if isinstance(names, str) else names


_ID_OF_TEXT = (
    *("question id", "prompt id", "qid", "query id", "answer id", "doc id", "document id"),
    *("sample id", "instance id", "example id", "item id", "record id", "task id"),
    *("generation id", "conversation id"),
)
"""Names of ids that several rows of a table of claims can share."""

_UNIQUE_ID = ("uid", "uuid", "guid")

# ------------------------------------------------------------------------------ tables of claims

RESPONSE = Role(
    "response",
    "--group",
    ("response", "response id", "group", "document", "id", *_ID_OF_TEXT, *_UNIQUE_ID),
)
LABEL = Role(
    "label",
    "--label",
    (
        *("label", "human label", "gold", "gold label", "annotation", "annotator label", "truth"),
        *("ground truth", "human", "human judgment", "human judgement", "is true", "correct"),
        *("supported", "factual", "y"),
    ),
)
PROBABILITY = Role(
    "probability",
    "--p",
    ("p", "prob", "probability", "confidence", "conf", "score", "p true", "prediction"),
)
CLAIM = Role("claim", "--claim", ("claim id", "claim", "atom id", "atom"))
CLAIM_OR_WORDS = Role("claim", "--claim", (*CLAIM.names, "subclaim", "fact"))
"""A claim's id, or a text short enough to be one."""
CLAIM_TEXT = Role(
    "claim text",
    "",
    (
        *("claim text", "atom text", "subclaim", "fact", "atomic fact", "statement"),
        "proposition",
    ),
)
TEXT_BESIDE_ID = Role("claim text", "", (*CLAIM_TEXT.names, "text"))
"""Texts of claims, in addition to a column of ids."""
ANY_TEXT = Role("claim text", "", ("text", "content"))
"""Texts of claims or of whole responses."""
SHOWN_TEXT = Role("text", "", ("claim text", "atom text", "text", "statement", "fact"))
"""Text of a claim, for readers and annotators."""
ANSWER = Role("answer", "", ("answer", "answer text", "response text", "output", "generation"))
"""The whole response of a claim."""
MODEL = Role("model", "--model-column", ("model", "method", "system", "model name", "model id"))
DATA = Role("data", "--by", ("dataset", "data", "benchmark", "split"))

# A model's judgments of its own claims, and their positions.
JUDGMENT = Role(
    "judgment",
    "--judgment",
    (
        *("judgment", "judgement", "self judgment", "self judgement", "model judgment"),
        *("model judgement", "judged", "answer"),
    ),
)
CONFIDENCE = Role(
    "confidence",
    "--confidence",
    (
        *("confidence", "self confidence", "model confidence", "verbalized confidence"),
        *("verbalised confidence", "p true", "probability", "gpt score", "llm score"),
        "model score",
    ),
)
VOTES = Role("votes", "--votes", ("votes", "answers", "samples"))
CONDITION = Role("condition", "--condition", ("condition",))
SETTING = Role("setting", "--setting", ("setting",))
SENTENCE = Role(
    "sentence", "--sentence", ("sentence", "sentence index", "sentence id", "sentence number")
)
SENTENCES = Role("sentences", "--sentences", ("sentences", "n sentences", "num sentences"))
POSITION = Role("position", "--position", ("position", "relative position"))

# A filled-in sheet of labels, with the columns of `factormodels estimate`.
SHEET_RESPONSE = Role("response", "", ("response",))
SHEET_CLAIM = Role("claim", "", ("claim",))
SHEET_PROBABILITY = Role("probability", "", ("probability",))
SHEET_BATCH = Role("batch", "", ("batch",))

# --------------------------------------------------------------------- tables of labeled relations

PAIR_RESPONSE = Role("response", "", RESPONSE.names)
PAIR_CLAIM = Role("claim", "", ("claim text", "atom text", "hypothesis", "statement", *CLAIM.names))
PAIR_PASSAGE = Role(
    "passage",
    "",
    (
        *("passage text", "context text", "premise", "passage", "context", "evidence"),
        *("passage id", "context id", "evidence id"),
    ),
)
HUMAN_RELATION = Role(
    "human relation",
    "",
    (
        *("human relation", "gold relation", "true relation", "relation label", "human label"),
        *("gold label", "gold", "label", "human", "annotation", "annotator label"),
    ),
)
"""The human relation of a passage to a claim."""
RELATION_SHARES = tuple(
    Role(kind, "", (*names, f"probabilities.{kind}", f"distribution.{kind}"))
    for kind, names in SHARE_NAMES.items()
)
"""A model's probabilities of entailment, contradiction and neutral, possibly in a single JSON
object."""

# --------------------------------------------------------------------------- tables of responses

RESPONSE_TEXT = Role(
    "response",
    "--text-column",
    (
        ("response",),
        (
            *("answer", "completion", "generation", "output", "prediction", "generated text"),
            *("model response", "model answer", "model output", "llm response", "llm answer"),
        ),
        ("text", "content", "body"),
    ),
)
QUESTION = Role(
    "question",
    "--question-column",
    (
        ("query", "question"),
        ("prompt", "instruction", "input", "user input", "user prompt", "user query"),
    ),
)
ID = Role("id", "--id-column", (("id", "response id"), ("uid", "uuid", "identifier")))
TOPIC = Role("topic", "", (("topic",),))
CONTEXTS = Role(
    "contexts",
    "",
    (("retrieved contexts",), ("contexts",), ("retrieved passages",), ("passages",), ("context",)),
)
DOCUMENTS = Role("documents", "--documents-of", ())
"""The folder or file of a response's own documents, which is never recognized by name."""
SAMPLES = Role(
    "sampled answers",
    "",
    (
        ("sampled responses", "sampled answers", "sample responses", "sample answers"),
        ("sample passages", "gpt3 text samples"),
    ),
)
"""Lists of sampled answers to the question of a row."""
UNIQUE_IN_ROWS = Role(
    "id",
    "--id-column",
    (
        *("qid", "q id", *_ID_OF_TEXT, "completion id", "entry id", "row id", "guid"),
        *("key", "idx", "index", "id str", "case id", "problem id", "custom id", "request id"),
        *("dialogue id", "dialog id", "page id", "pageid", "article id", "topic id"),
    ),
)
"""Roles that identify rows if each row has a distinct value."""
