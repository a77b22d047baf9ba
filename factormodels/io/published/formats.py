"""The formats of datasets: what each is, whose it is, how it is known and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from factormodels.errors import InputError, unknown_name
from factormodels.fact_graph import FactGraph
from factormodels.io.claim_records import ClaimRecord, parse_record
from factormodels.io.fact_graph_json import looks_like_fact_graph, parse_fact_graph
from factormodels.io.json_records import location
from factormodels.io.not_used import Tree, key_tree
from factormodels.io.published.expertqa import looks_like_expertqa, parse_expertqa
from factormodels.io.published.factcheck_bench import parse_factcheck_record
from factormodels.io.published.factool import (
    looks_like_factool,
    looks_like_factool_output,
    parse_factool,
    parse_factool_output,
)
from factormodels.io.published.factreasoner import (
    looks_like_results,
    parse_factreasoner,
    parse_mined,
    parse_results,
)
from factormodels.io.published.factscore import (
    AtomPassages,
    parse_factscore_record,
    parse_passages,
)
from factormodels.io.published.factscore_embedded import parse_derived
from factormodels.io.published.fastfact_bench import (
    QUESTIONS,
    parse_fastfact,
    parse_response,
)
from factormodels.io.published.prompts import (
    Prompt,
    looks_like_longfact,
    looks_like_prompt,
    parse_prompt,
)
from factormodels.io.published.ragas import (
    looks_like_ragas,
    looks_like_ragas_conversation,
    parse_ragas,
)
from factormodels.io.published.refchecker import looks_like_refchecker, parse_refchecker
from factormodels.io.published.self_judgements import (
    looks_like_self_judged,
    parse_self_judged,
    parse_selfcheck,
)
from factormodels.io.published.tool_outputs import (
    gather_minicheck,
    gather_polygraph,
    looks_like_veriscore,
    parse_factscore_output,
    parse_minicheck,
    parse_polygraph,
    parse_safe,
    parse_veriscore,
)
from factormodels.io.published.unli import JudgedPair, parse_unli
from factormodels.io.published.uqlm import gather_uqlm, looks_like_uqlm, parse_uqlm
from factormodels.io.published.wice import gather_wice, parse_wice
from factormodels.io.records import Source
from factormodels.io.relation_table import (
    gather_relations,
    looks_like_relation_row,
    parse_relation_row,
)

Item = FactGraph | Prompt | JudgedPair | AtomPassages | ClaimRecord
Parse = Callable[[Any, Source, int | None], Any]


@dataclass(frozen=True)
class Format:
    """A format of the records of a dataset.

    Attributes:
        name: what the command line calls it.
        title: the dataset.
        owner: where its owner publishes it.
        holds: what a file of it becomes.
        keys: the keys that it is known by.
        spellings: other names of such keys, any of which is as good.
        fields: the keys that a record has: ``a[].b`` is the key b of every entry of the list a,
            ``a{}.b`` of every value of the object a.
        parse: what a record becomes, given its file and line: an item, a list of items, or what
            `gather` takes.
        gather: what becomes of all records together, where that takes more than one.
        looks_like: whether a record is of it, where its keys do not say that.
        companion: the format of the file that belongs beside it; empty where there is none.
        reads: further keys that `parse` takes, or passes over because another key says the same,
            written as in `fields`; * stands for any text. Every other key of a record is not used.
        closed: whether `parse` refuses keys that it does not know.
    """

    name: str
    title: str
    owner: str
    holds: Literal["responses", "prompts", "pairs", "passages", "claims"]
    keys: tuple[str, ...]
    fields: tuple[str, ...]
    parse: Parse
    gather: Callable[[Sequence[Any]], Sequence[Item]] | None = None
    spellings: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    looks_like: Callable[[dict[str, Any]], bool] | None = None
    companion: str = ""
    reads: tuple[str, ...] = ()
    closed: bool = False

    @cached_property
    def used_keys(self) -> Tree | None:
        """The keys of a record that are used; None if `parse` refuses every other key."""
        if self.closed:
            return None
        spelled = (name for names in self.spellings.values() for name in names)
        return key_tree((*self.keys, *spelled, *self.fields, *self.reads))

    def fits(self, obj: object) -> bool:
        """Whether a JSON value is a record of this format, by its keys."""
        if not isinstance(obj, dict):
            return False
        if self.looks_like is not None:
            return self.looks_like(obj)
        return all(
            key in obj or any(name in obj for name in self.spellings.get(key, ()))
            for key in self.keys
        )

    def items(self, parsed: Sequence[Any]) -> list[Item]:
        """Items of parsed records, in order."""
        if self.gather is not None:
            return list(self.gather(parsed))
        gathered: list[Item] = []
        for value in parsed:
            gathered.extend(value if isinstance(value, list) else [value])
        return gathered


FORMATS: tuple[Format, ...] = (
    Format(
        "fact-graph",
        "fact graphs",
        "this project; IBM/FactReasoner",
        "responses",
        ("nodes", "edges"),
        ("nodes[].type", "nodes[].text", "edges[].relation", "edges[].probability"),
        parse_fact_graph,
        looks_like=looks_like_fact_graph,
        closed=True,
    ),
    Format(
        "factreasoner",
        "FactReasoner, atoms and contexts",
        "IBM/FactReasoner",
        "responses",
        ("atoms", "contexts"),
        (
            *("input", "output", "topic", "atoms[].text", "atoms[].label", "atoms[].contexts"),
            *("contexts[].text", "contexts[].title", "contexts[].link"),
        ),
        parse_factreasoner,
        reads=(
            *("cat", "atoms[].id", "atoms[].original", "atoms[].label", "contexts[].id"),
            *("contexts[].snippet", "contexts[].probability", "contexts[].synthetic_summary"),
            *("results", "marginals", "predictions", "factuality_score", "references"),
            "factuality_score_per_atom",
        ),
    ),
    Format(
        "factreasoner-relations",
        "FactReasoner, relations that it mined between claims",
        "IBM/FactReasoner, Apache-2.0",
        "responses",
        ("atoms", "relations", "fact_graph"),
        ("atoms", "relations[].level2_sense", "fact_graph"),
        parse_mined,
        reads=("relations[].*",),
    ),
    Format(
        "factreasoner-results",
        "FactReasoner, what its assessors and baselines conclude",
        "IBM/FactReasoner",
        "responses",
        ("predictions", "factuality_score"),
        ("query", "response", "topic", "predictions"),
        parse_results,
        looks_like=looks_like_results,
        reads=(
            *("input", "marginals", "factuality_score", "factuality_score_per_atom", "references"),
            "num_*",
        ),
    ),
    Format(
        "factscore-output",
        "FActScore, what it decides",
        "shmsw25/FActScore, MIT",
        "responses",
        ("decisions", "score"),
        ("decisions",),
        parse_factscore_output,
        reads=("score", "init_score", "respond_ratio", "num_facts_per_response"),
    ),
    Format(
        "safe-output",
        "SAFE, checked statements",
        "google-deepmind/long-form-factuality, Apache-2.0",
        "responses",
        ("checked_statements",),
        (
            *("prompt", "response", "checked_statements[].annotation"),
            "checked_statements[].self_contained_atomic_fact",
        ),
        parse_safe,
        spellings={"checked_statements": ("per_prompt_data",)},
        reads=(
            *("checked_statements[].atomic_fact", "checked_statements[].sentence"),
            *("checked_statements[].rate_data", "checked_statements[].relevance_data"),
            *("Supported", "Irrelevant", "Not Supported", "per_prompt_data"),
        ),
    ),
    Format(
        "lm-polygraph-output",
        "LM-Polygraph, uncertainty of texts",
        "IINemo/lm-polygraph, MIT",
        "responses",
        ("uncertainty", "generation_text"),
        ("uncertainty", "generation_text", "input_text"),
        parse_polygraph,
        gather_polygraph,
        reads=("response", "estimator", "model_path"),
    ),
    Format(
        "minicheck-scores",
        "MiniCheck, scores of documents and claims",
        "Liyan06/MiniCheck, Apache-2.0",
        "responses",
        ("doc", "claim", "raw_prob"),
        ("doc", "claim", "raw_prob"),
        parse_minicheck,
        gather_minicheck,
        spellings={"raw_prob": ("max_support_prob", "prob", "pred_label")},
        reads=("response", "id", "dataset", "pred_label", "max_support_prob", "prob"),
    ),
    Format(
        "veriscore-output",
        "VeriScore, verified claims",
        "Yixiao-Song/VeriScore, MIT",
        "responses",
        ("verification_result",),
        (),
        parse_veriscore,
        looks_like=looks_like_veriscore,
        reads=(
            *("abstained", "response", "question", "claim_verification_result", "all_claims"),
            *("*.verification_result", "*.response"),
        ),
    ),
    Format(
        "factscore",
        "FActScore, labelled biographies",
        "shmsw25/FActScore",
        "responses",
        ("output", "annotations"),
        (
            *("input", "output", "topic", "cat", "annotations"),
            *("annotations[].is-relevant", "annotations[].human-atomic-facts"),
        ),
        lambda obj, source, line: parse_factscore_record(obj, source, line or 1),
        companion="factscore-passages",
        reads=("annotations[].text", "annotations[].model-atomic-facts"),
    ),
    Format(
        "factscore-derived",
        "FActScore's biographies with relations, without texts",
        "this project, the embedded dataset factscore",
        "responses",
        ("atoms", "passages", "evidence", "between"),
        ("id", "categories", "sentences", "atoms", "passages", "evidence", "between", "texts"),
        parse_derived,
        closed=True,
    ),
    Format(
        "factscore-passages",
        "passages for the atoms of FActScore",
        "as with_passages reads them",
        "passages",
        ("sent", "passages"),
        ("name", "sent", "passages[].title", "passages[].text"),
        parse_passages,
    ),
    Format(
        "claim-records",
        "claims with labels and a model's own judgements",
        "this project, as `factormodels self-knowledge` reads it",
        "claims",
        ("response", "sentence", "claim", "label"),
        ("sentences", "judgements"),
        lambda obj, source, line: parse_record(obj, location(source, line)),
        closed=True,
    ),
    Format(
        "relation-table",
        "relations of passages to claims, a row per pair",
        "this project, as `factormodels fit` reads it",
        "responses",
        ("response", "claim", "passage", "relation"),
        (),
        parse_relation_row,
        gather_relations,
        looks_like=looks_like_relation_row,
        reads=("*",),
    ),
    Format(
        "factcheck-bench",
        "Factcheck-Bench",
        "yuxiaw/Factcheck-GPT",
        "responses",
        ("response", "sentences"),
        (
            *("prompt", "response", "response_factuality", "sentences{}.claims"),
            *("sentences{}.claims_factuality_label", "sentences{}.auto_evidence"),
            *("sentences{}.auto_evidence_url", "sentences{}.stance_claim_autoEvid"),
        ),
        lambda obj, source, line: parse_factcheck_record(obj, source, line or 1),
        reads=(
            *("response_factuality", "sentences{}.claim_checkworthiness"),
            *("sentences{}.text", "sentences{}.revised_claims"),
        ),
    ),
    Format(
        "fastfact-bench",
        "FaStfact-Bench, claims",
        "Yingjia-Wan/FaStfact, FaStfact-Bench",
        "responses",
        ("response", "claims_lst"),
        (
            *("question", "response", "model", "prompt_source", "claims_lst[].claim"),
            *("claims_lst[].annotator_label", "claims_lst[].annotation_status_details"),
            "claims_lst[].verification_result",
        ),
        parse_fastfact,
        reads=(
            *("question_id", "topic", "cat", "id", "claims_lst[].revised_claim"),
            *("claims_lst[].pre-label", "claims_lst[].claim_id", "abstained"),
        ),
    ),
    Format(
        "selfcheck",
        "SelfCheckGPT, passages with labels and votes",
        "potsawee/wiki_bio_gpt3_hallucination; KAIST-CS584-HCI/selfcheckgpt-replication",
        "responses",
        ("main_sentences", "annotation", "responses"),
        ("wiki_bio_test_idx", "main_passage", "main_sentences", "annotation", "responses.prompt"),
        parse_selfcheck,
        reads=("wiki_bio_text", "responses"),
    ),
    Format(
        "self-judged",
        "answers whose claims have a model's own confidence",
        "tatsu-lab/conformal-factual-lm",
        "responses",
        ("original-output", "claims"),
        (),
        parse_self_judged,
        looks_like=looks_like_self_judged,
        reads=(
            *("data", "prompt", "original-output", "claims[].subclaim", "claims[].gpt-score"),
            "claims[].annotation",
        ),
    ),
    Format(
        "unli",
        "UNLI",
        "nlp.jhu.edu/unli, u-snli",
        "pairs",
        ("pre", "hyp", "unli"),
        (),
        parse_unli,
        spellings={"pre": ("premise",), "hyp": ("hypothesis",), "unli": ("label",)},
        reads=("id", "nli"),
    ),
    Format(
        "factool",
        "FacTool, responses with labelled claims",
        "GAIR-NLP/factool, Apache-2.0",
        "responses",
        ("response", "claims"),
        ("prompt", "response", "claims[].label", "label"),
        parse_factool,
        looks_like=looks_like_factool,
        reads=(
            *("id", "question", "category", "model", "entry_point", "answer", "claims[].claim"),
            "claims[].paper_*",
        ),
    ),
    Format(
        "factool-output",
        "FacTool, what it decides",
        "GAIR-NLP/factool, Apache-2.0",
        "responses",
        ("claim_level_factuality", "response"),
        (),
        parse_factool_output,
        looks_like=looks_like_factool_output,
        reads=(
            *("id", "prompt", "question", "category", "model", "entry_point", "search_type"),
            *("claims", "claim", "queries", "evidences", "sources", "response_level_factuality"),
            *("detailed_information", "average_claim_level_factuality"),
            "average_response_level_factuality",
        ),
    ),
    Format(
        "refchecker",
        "RefChecker, triplets with labels",
        "amazon-science/RefChecker, Apache-2.0",
        "responses",
        ("response", "triplets"),
        (),
        parse_refchecker,
        looks_like=looks_like_refchecker,
        reads=(
            *("id", "question", "reference", "claims", "triplets", "ys", "Y"),
            *("*_response_kg[].triplet", "*_response_kg[].*_label"),
        ),
    ),
    Format(
        "expertqa",
        "ExpertQA, answers with judged claims",
        "chaitanyamalaviya/ExpertQA, MIT",
        "responses",
        ("question", "answers"),
        (
            *("question", "answers{}.answer_string", "answers{}.claims[].claim_string"),
            *("answers{}.claims[].evidence", "answers{}.claims[].support"),
        ),
        parse_expertqa,
        looks_like=looks_like_expertqa,
        reads=(
            *("id", "annotator_id", "metadata", "answers{}.claims[].correctness"),
            *("answers{}.claims[].factuality", "answers{}.claims[].fact_score"),
        ),
    ),
    Format(
        "wice",
        "WiCE, claims of Wikipedia with the page that they cite",
        "ryokamoi/wice",
        "responses",
        ("label", "claim", "evidence", "supporting_sentences"),
        ("label", "claim", "evidence", "supporting_sentences", "meta.id", "meta.claim_title"),
        parse_wice,
        gather_wice,
        reads=("meta",),
    ),
    Format(
        "uqlm-output",
        "UQLM, scores of claims",
        "cvs-health/uqlm, Apache-2.0",
        "responses",
        ("claims_data",),
        ("prompt", "response", "claims_data"),
        parse_uqlm,
        gather_uqlm,
        looks_like=looks_like_uqlm,
        reads=("id", "prompts", "responses", "data.prompts", "data.responses", "data.claims_data"),
    ),
    Format(
        "ragas-turns",
        "Ragas, conversations and judged statements",
        "explodinggradients/ragas, Apache-2.0",
        "responses",
        ("user_input", "statements"),
        (),
        parse_ragas,
        looks_like=looks_like_ragas_conversation,
        reads=(
            *("id", "question", "response", "answer", "retrieved_contexts", "contexts"),
            *("statements[].statement", "statements[].verdict", "statements[].reason"),
        ),
    ),
    Format(
        "ragas",
        "Ragas, answers with the passages retrieved for the question",
        "explodinggradients/ragas, Apache-2.0",
        "responses",
        ("user_input", "response", "retrieved_contexts"),
        (),
        parse_ragas,
        looks_like=looks_like_ragas,
        reads=("id", "question", "answer", "contexts"),
    ),
    Format(
        "responses",
        "questions with responses (VeriScore, FaStfact-Bench for evaluation)",
        "Yixiao-Song/VeriScore; Yingjia-Wan/FaStfact",
        "responses",
        ("question", "response"),
        ("question", "response", "model", "prompt_source"),
        parse_response,
        spellings={"question": QUESTIONS[1:]},
        reads=("question_id", "topic", "cat", "id"),
    ),
    Format(
        "longfact",
        "LongFact prompts",
        "google-deepmind/long-form-factuality, longfact",
        "prompts",
        ("prompt", "canary"),
        ("prompt", "canary"),
        parse_prompt,
        looks_like=looks_like_longfact,
    ),
    Format(
        "prompts",
        "prompts (ELI5, AskHistorians, Books, ExpertQA's questions)",
        "Yixiao-Song/VeriScore; carriex/lfqa_eval; chaitanyamalaviya/ExpertQA",
        "prompts",
        ("question",),
        (),
        parse_prompt,
        looks_like=looks_like_prompt,
        reads=(
            *("prompt", "question_text", "title", "selftext", "id", "q_id", "question_id"),
            *("topic", "prompt_source", "subreddit", "category", "metadata", "annotator_id"),
        ),
    ),
)
"""Every format; of those that a record looks like, the first is meant."""

_LOOSE = ("responses", "prompts")
"""Formats known by so few keys that a damaged record of another may look like one of them."""

FORMAT_NAMES = tuple(known.name for known in FORMATS)


def format_named(name: str) -> Format:
    """Format of a name.

    Raises:
        InputError: if there is none.
    """
    for known in FORMATS:
        if known.name == name:
            return known
    raise InputError(unknown_name(f"the format {name!r}", name, FORMAT_NAMES))


def format_of(obj: object) -> Format | None:
    """Format that a record looks like; None if it looks like none."""
    return next((known for known in FORMATS if known.fits(obj)), None)


def record_format(obj: object, of_file: Format | None) -> Format | None:
    """Format that a record is read as, in a file whose other records are of `of_file`.

    A record with too few keys to tell is of the file's format, which may then refuse it. None if it
    looks like no format.
    """
    form = format_of(obj)
    loose = form is not None and form.name in _LOOSE
    return of_file if loose and of_file is not None and of_file.name not in _LOOSE else form


_MOST_COMPARED = 200
"""Keys of a record whose spelling is compared with those of formats: no format has so many."""


def nearest_format(obj: object) -> tuple[Format, tuple[str, ...]] | None:
    """Format whose keys a record most nearly has, and those it lacks; None if none.

    A key spelled nearly as one of a format's counts half.
    """
    import difflib

    if not isinstance(obj, dict):
        return None
    compared = list(islice(obj, _MOST_COMPARED))
    best: tuple[float, Format] | None = None
    for known in FORMATS:
        wanted = {*known.keys, *(_first_step(name) for name in known.fields or known.reads)}
        have = wanted & obj.keys()
        near = sum(
            bool(difflib.get_close_matches(key, compared, n=1, cutoff=0.75))
            for key in wanted - have
        )
        score = (len(have) + near / 2) / len(wanted)
        if score > 0 and (best is None or score > best[0]):
            best = score, known
    if best is None:
        return None
    return best[1], tuple(key for key in best[1].keys if key not in obj)


def _first_step(path: str) -> str:
    """Return the key of a record at which a path begins."""
    return re.split(r"\[\]|\{\}|\.", path, maxsplit=1)[0]
