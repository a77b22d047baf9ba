"""WikiContradict: questions to which two passages of Wikipedia give answers that contradict.

Source: Hou et al. 2024, "WikiContradict: A Benchmark for Evaluating LLMs on Real-World Knowledge
Conflicts from Wikipedia" (MIT). Relied on: the columns of WikiContradict_dataset_v1_rag_qa.csv in
ibm-research/Wikipedia_contradict_benchmark as programs that load it name them (`question_ID`,
`question`, `context1`, `context2`, `answer1`, `answer2`, `contradictType`, `samepassage`,
`merged_context`, `ref_answer`, `WikipediaArticleTitle`, `url`), and two files of its authors in
IBM/FactReasoner: data/wiki_contradict_refined.jsonl (besides these `context1_self_contained`,
`answer1_self_contained`, `contradiction_type`) and data/wiki_contradict_simple_humaneval.jsonl
(`gt_answer_1`, `model`). The table itself was not seen.
"""

from __future__ import annotations

from factormodels.claims import Atom, Context, Relation, RelationKind
from factormodels.fact_graph import FactGraph
from factormodels.io.json_records import (
    as_object,
    filled_field,
    first_key,
    location,
    record_id,
    text_field,
)
from factormodels.io.published.stances import DEFAULT_STRENGTHS, Strengths
from factormodels.io.records import Source

_CONTEXTS = (("context1_self_contained", "context1"), ("context2_self_contained", "context2"))
_ANSWERS = (("answer1", "gt_answer_1"), ("answer2", "gt_answer_2"))
_STATEMENTS = ("answer1_self_contained", "answer2_self_contained")
_METADATA = (
    *("question_ID", "contradictType", "contradiction_type", "samepassage", "ref_answer", "model"),
)


def looks_like_wikicontradict(obj: object) -> bool:
    """Whether a row or JSON value has the columns of WikiContradict."""
    return isinstance(obj, dict) and all(
        any(key in obj for key in keys) for keys in (("question",), *_CONTEXTS, *_ANSWERS)
    )


def parse_wikicontradict(
    obj: object, source: Source, line: int | None = None, strengths: Strengths = DEFAULT_STRENGTHS
) -> FactGraph:
    """Fact graph of a question with its two passages.

    The passages are contexts that contradict each other. The atoms are what each passage answers,
    as a statement where the record has one, else the question with the answer: its own passage
    entails it and the other contradicts it. They have no labels, since Wikipedia says both. The
    metadata hold what kind of contradiction it is.

    Raises:
        InputError: if a column or a text is missing.
    """
    where = location(source, line)
    record = as_object(obj, where)
    question = filled_field(record, "question", where).strip()
    title = text_field(record, "WikipediaArticleTitle", where, "")
    link = text_field(record, "url", where, "")
    atoms = []
    for number, (keys, statement) in enumerate(zip(_ANSWERS, _STATEMENTS, strict=True), start=1):
        answer = filled_field(record, first_key(record, keys), where)
        said = text_field(record, statement, where, "").strip()
        atoms.append(Atom(f"a{number}", said or f"{question} {answer}"))
    contexts = tuple(
        Context(
            f"c{number}",
            filled_field(record, first_key(record, keys), where),
            title=title,
            link=link,
            retrieved_for=("a1", "a2"),
        )
        for number, keys in enumerate(_CONTEXTS, start=1)
    )
    entails, contradicts = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION
    return FactGraph(
        record_id(source, line),
        tuple(atoms),
        contexts,
        (
            Relation("c1", "a1", entails, strengths.support),
            Relation("c1", "a2", contradicts, strengths.conflict),
            Relation("c2", "a1", contradicts, strengths.conflict),
            Relation("c2", "a2", entails, strengths.support),
            Relation("c1", "c2", contradicts, strengths.conflict),
        ),
        query=question,
        topic=title,
        metadata={key: record[key] for key in _METADATA if record.get(key) not in (None, "")},
    )
