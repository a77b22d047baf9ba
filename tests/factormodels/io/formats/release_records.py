"""A made-up record of every published format, and its expected graph."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factormodels.io import read_judged_pairs, read_many, read_prompts
from factormodels.io.claim_records import read_records

FASTFACT: dict[str, Any] = {
    "question": "Who was Ada Example?",
    "prompt_source": "factscore_bio",
    "response": "Ada Example painted. She lived in Ulm.",
    "model": "a-model",
    "question_id": "bio_3",
    "claims_lst": [
        {
            "claim_id": "x-0",
            "claim": "She painted.",
            "revised_claim": "Ada Example painted.",
            "pre-label": "unsure",
            "verification_result": {
                "verification_context": (
                    "Evidence 1\nSource Title: Painters\nContent: Ada Example\npainted birds.\n\n"
                    "Evidence 2\nSource Title: Ulm\nContent: Ulm is a town.\n\n"
                ),
                "verification_label": "refuted",
            },
            "annotator_label": "supported",
            "annotation_status_details": {"action": "kept", "agreement": "disagreed_corrected"},
        },
        {
            "claim": "Ada Example lived in Ulm.",
            "revised_claim": None,
            "verification_result": {
                "verification_context": "Evidence 1\nSource Title: Ulm\nContent: Ulm is a town.\n"
            },
            "annotator_label": "not enough evidence",
            "annotation_status_details": {"action": "new"},
        },
        {
            "claim": "She lived.",
            "annotator_label": "redundant",
            "annotation_status_details": {"action": "removed", "reason": "redundant"},
        },
    ],
}
UNLI: dict[str, Any] = {
    "id": "p-1",
    "pre": "A man sings.",
    "hyp": "A man performs.",
    "nli": "2",
    "unli": "0.945",
}
SELFCHECK: dict[str, Any] = {
    "wiki_bio_test_idx": 62464,
    "main_passage": "Ada Example painted. She lived in Ulm.",
    "main_sentences": ["Ada Example painted.", "She lived in Ulm."],
    "annotation": ["accurate", "minor_inaccurate"],
    "responses": {"prompt": [["Yes", "No", "Yes"], ["No", "No", "No"]]},
}
SELF_JUDGED: dict[str, Any] = {
    "prompt": "Who was Ada Example?",
    "original-output": "A painter of Ulm.",
    "claims": [
        {"subclaim": "She painted.", "gpt-score": 1.0, "annotation": "Y"},
        {"subclaim": "She was of Ulm.", "gpt-score": 0.7, "annotation": "S "},
    ],
}
RESPONSE: dict[str, Any] = {
    "question": "Who was Ada Example?",
    "response": "A painter.",
    "model": "a-model",
}
CLAIM: dict[str, Any] = {
    "response": "ada",
    "sentence": 1,
    "sentences": 4,
    "claim": "a1",
    "label": "S",
    "judgments": {"direct_asking": "true"},
}
LONGFACT: dict[str, Any] = {"prompt": "What is a ledger?", "canary": "A canary."}
QUESTION: dict[str, Any] = {"question": "Why is it blue?", "prompt_source": "eli5"}
ELI5: dict[str, Any] = {
    "q_id": "5l",
    "title": "Why is it blue?",
    "selftext": "The sky.",
    "subreddit": "explainlikeimfive",
}
PASSAGES: dict[str, Any] = {
    "name": "Ada Example",
    "sent": "Ada Example paints.",
    "passages": [{"title": "Ada", "text": "<s>She paints.</s>"}],
}
FACTSCORE_OUTPUT: dict[str, Any] = {
    "score": 0.5,
    "respond_ratio": 1.0,
    "decisions": [
        [
            {"atom": "Ada Example painted.", "is_supported": True},
            {"atom": "Ada Example lived in Ulm.", "is_supported": False},
        ]
    ],
    "num_facts_per_response": 2.0,
}
VERISCORE: dict[str, Any] = {
    "Ada Example painted.": {
        "search_results": "Search result 1\nTitle: Ada",
        "response": "###Supported.###",
        "verification_result": "supported",
    },
    "Ada Example lived in Ulm.": {"response": "", "verification_result": "inconclusive"},
}
VERIFIED_RESPONSE: dict[str, Any] = {
    "question": "Who was Ada Example?",
    "response": "She did.",
    "abstained": False,
    "all_claims": ["Ada Example painted.", "Ada Example sang.", "Ada Example lived in Ulm."],
    "claim_verification_result": [
        {"claim": "Ada Example painted.", "verification_result": "supported"},
        {"claim": "Ada Example lived in Ulm.", "verification_result": "unsupported"},
    ],
}
SAFE: dict[str, Any] = {
    "prompt": "Who was Ada Example?",
    "response": "She painted. She lived in Ulm.",
    "checked_statements": [
        {
            "sentence": "She painted.",
            "atomic_fact": "She painted.",
            "self_contained_atomic_fact": "Ada Example painted.",
            "relevance_data": None,
            "rate_data": {"response": "So.", "answer": "Supported"},
            "annotation": "Supported",
        },
        {"atomic_fact": "She lived in Ulm.", "annotation": "Irrelevant"},
    ],
    "Supported": 1,
    "Irrelevant": 1,
    "Not Supported": 0,
}
POLYGRAPH: dict[str, Any] = {
    "uncertainty": 0.7,
    "input_text": "Who was Ada Example?",
    "generation_text": "Ada Example painted.",
    "model_path": "a-model",
}
MINICHECK: dict[str, Any] = {
    "doc": "A register says that she painted.",
    "claim": "Ada Example painted.",
    "pred_label": 1,
    "raw_prob": 0.98,
}

MINED: dict[str, Any] = {
    "atoms": {"a0": "She was born in 1871.", "a1": "She was born in 1881."},
    "relations": [
        {
            "source_id": "a0",
            "target_id": "a1",
            "level2_sense": "Alternative",
            "level1_type": "exclusive",
            "probability": 0.9,
        }
    ],
    "fact_graph": {
        "nodes": [
            {"id": "a0", "type": "atom", "probability": 0.5},
            {"id": "a1", "type": "atom", "probability": 0.5},
        ],
        "edges": [
            {
                "source": "a0",
                "target": "a1",
                "relation": "exclusive",
                "probability": 0.9,
                "link": "atom_atom",
            }
        ],
    },
}

DERIVED = {
    "id": "r",
    "categories": ["rare"],
    "sentences": 1,
    "atoms": [[1, "S"], [1, "NS"]],
    "passages": [["0123456789abcdef", [1, 2]]],
    "evidence": [[4012, 113, 250, 17]],
    "between": [[]],
    "texts": [10000, 6667, 5000, 5000, 2500, 0],
}

FACTOOL: dict[str, Any] = {
    "prompt": "Who was Ada Example?",
    "response": "She painted in Ulm.",
    "claims": [
        {"claim": "Ada Example painted.", "label": True},
        {"claim": "Ada Example lived in Ulm.", "label": False},
        {"claim": "Ada Example was kind.", "label": None},
    ],
    "label": False,
}
FACTOOL_OUTPUT: dict[str, Any] = {
    "average_claim_level_factuality": 0.5,
    "detailed_information": [
        {
            "prompt": "Who was Ada Example?",
            "response": "She painted in Ulm.",
            "claims": [{"claim": "Ada Example painted."}, {"claim": "Ada Example lived in Ulm."}],
            "evidences": [
                {"evidence": ["She painted birds."], "source": ["https://a.example"]},
                {"evidence": ["She lived in Bonn."], "source": ["None"]},
            ],
            "claim_level_factuality": [
                {"factuality": True, "claim": "Ada Example painted."},
                {"factuality": False, "correction": "She lived in Bonn."},
            ],
            "response_level_factuality": False,
        }
    ],
}
REFCHECKER: dict[str, Any] = {
    "id": "7",
    "response": "Ada Example painted in Ulm.",
    "reference": ["Ada Example painted birds."],
    "claude2_response_kg": [
        {
            "triplet": ["Ada Example", "painted", "birds"],
            "human_label": "Entailment",
            "nli_label": "Neutral",
        },
        {"triplet": ["Ada Example", "lived in", "Ulm"], "human_label": "Neutral"},
        {"triplet": ["Ada Example", "lived in", "Rome"], "human_label": "Contradiction"},
    ],
}
EXPERTQA: dict[str, Any] = {
    "question": "Who was Ada Example?",
    "answers": {
        "gpt4": {
            "answer_string": "She painted. She lived in Ulm.",
            "claims": [
                {
                    "claim_string": "She painted.",
                    "evidence": ["[1] https://a.example She painted birds."],
                    "support": "Complete",
                    "correctness": "Definitely correct",
                    "fact_score": 0.75,
                },
                {"claim_string": "She lived in Ulm.", "correctness": "Likely incorrect"},
                {"claim_string": "She was kind.", "correctness": "Unsure"},
            ],
        },
    },
}
WICE: dict[str, Any] = {
    "label": "not_supported",
    "supporting_sentences": [[]],
    "claim": "Ada Example lived in Rome.",
    "evidence": ["(meta data) TITLE: Painters", "Ada Example painted birds.", "She lived in Ulm."],
    "meta": {"id": "dev1", "claim_title": "Ada Example"},
}
UQLM: dict[str, Any] = {
    "prompt": "Who was Ada Example?",
    "response": "She painted in Ulm.",
    "sampled_responses": ["She painted."],
    "claims_data": [
        {"claim": "Ada Example painted.", "removed": False, "entailment": 0.9},
        {"claim": "Ada Example lived in Ulm.", "removed": True, "entailment": 0.25},
    ],
}
RAGAS: dict[str, Any] = {
    "user_input": "Who was Ada Example?",
    "response": "She painted in Ulm.",
    "retrieved_contexts": ["Ada Example painted birds.", "Ulm is a town."],
}
RAGAS_TURNS: dict[str, Any] = {
    "user_input": [
        {"type": "human", "content": "Who was Ada Example?"},
        {"type": "ai", "content": "I will look.", "tool_calls": []},
        {"type": "tool", "content": "Ada Example painted birds."},
        {"type": "ai", "content": "She painted."},
    ],
    "statements": [{"statement": "Ada Example painted.", "verdict": 1}],
}

RECORDS: dict[str, dict[str, Any]] = {
    "fastfact-bench": FASTFACT,
    "unli": UNLI,
    "selfcheck": SELFCHECK,
    "self-judged": SELF_JUDGED,
    "claim-records": CLAIM,
    "responses": RESPONSE,
    "longfact": LONGFACT,
    "prompts": QUESTION,
    "factscore-passages": PASSAGES,
    "factscore-derived": DERIVED,
    "factscore-output": FACTSCORE_OUTPUT,
    "veriscore-output": VERISCORE,
    "safe-output": SAFE,
    "lm-polygraph-output": POLYGRAPH,
    "minicheck-scores": MINICHECK,
    "factreasoner-relations": MINED,
    "factool": FACTOOL,
    "factool-output": FACTOOL_OUTPUT,
    "refchecker": REFCHECKER,
    "expertqa": EXPERTQA,
    "wice": WICE,
    "uqlm-output": UQLM,
    "ragas": RAGAS,
    "ragas-turns": RAGAS_TURNS,
}
"""One record by name of its format, of those without tests of their own elsewhere."""
RESULTS: dict[str, Any] = {
    "factuality_score_per_atom": [
        {"a0": {"score": 0.9, "support": "S"}},
        {"a1": {"score": 0.25, "support": "NS"}},
    ],
    "factuality_score": 0.5,
    "marginals": [
        {"variable": "a1", "probabilities": [0.75, 0.25]},
        {"variable": "a0", "probabilities": [0.1, 0.9]},
        {"variable": "c_a0_0", "probabilities": [0.2, 0.8]},
    ],
    "predictions": {"a1": "NS", "a0": "S"},
    "references": {"a0": "S", "a1": "S"},
    "query": "Question: What is basalt?",
    "response": "Basalt is a rock. It floats.",
    "topic": "basalt",
}
FACTREASONER: dict[str, Any] = {
    "input": "Question: What is basalt?",
    "output": "Basalt is a rock. It floats.",
    "topic": "basalt",
    "cat": ["rocks"],
    "atoms": [
        {
            "id": "a0",
            "text": "Basalt is a rock.",
            "original": "It is a rock.",
            "label": "S",
            "contexts": ["c_a0_0", "c_a0_1"],
        },
        {
            "id": "a1",
            "text": "Basalt floats.",
            "original": "Basalt floats.",
            "label": "NS",
            "contexts": ["c_a0_1", "c_a0_1"],
        },
        {"id": "a2", "text": "Basalt is lovely.", "label": "C"},
    ],
    "contexts": [
        {
            "id": "c_a0_0",
            "title": "Basalt",
            "text": "Basalt is an igneous rock.",
            "link": "https://rocks.example/basalt",
            "snippet": "an igneous rock",
            "synthetic_summary": "It is igneous.",
            "probability": 0.7,
        },
        {"id": "c_a0_1", "title": "Density", "text": "Basalt sinks in water."},
        {"id": "c_q_0", "title": "Rocks", "text": ""},
    ],
    "results": RESULTS,
}
FACTSCORE: dict[str, Any] = {
    "input": "Question: Tell me a bio of Ada Example.",
    "output": "Ada Example paints. Hello. She was born in Ulm, a town.",
    "topic": "Ada Example",
    "cat": ["rare", "Europe"],
    "annotations": [
        {
            "text": "Ada Example paints.",
            "is-relevant": True,
            "model-atomic-facts": [{"text": "Ada Example paints."}],
            "human-atomic-facts": [{"text": "Ada Example is a painter.", "label": "S"}],
        },
        {
            "text": "Hello.",
            "is-relevant": False,
            "model-atomic-facts": [],
            "human-atomic-facts": None,
        },
        {
            "text": "She was born in Ulm, a town.",
            "is-relevant": True,
            "model-atomic-facts": [],
            "human-atomic-facts": [
                {"text": "She was born in Ulm.", "label": "NS"},
                {"text": "Ulm is a town.", "label": "IR"},
            ],
        },
    ],
}
FACTCHECK: dict[str, Any] = {
    "prompt": "What is basalt?",
    "response": "Basalt is a dark rock. It floats and is lovely.",
    "response_factuality": False,
    "sentences": {
        "sentence1": {
            "claims": ["Basalt is a dark rock."],
            "claims_factuality_label": [True],
            "claim_checkworthiness": ["factual"],
            "auto_evidence": [["Basalt is  dark.", "Basalt sinks.", "Basalt is dark."]],
            "auto_evidence_url": [["https://a.example", "https://b.example", "https://c.example"]],
            "stance_claim_autoEvid": [["partially-support", "irrelevant", "completely-support"]],
        },
        "sentence2": {
            "claims": ["Basalt floats.", "Basalt is lovely."],
            "claims_factuality_label": [False, "unknown"],
            "claim_checkworthiness": ["factual", "opinion"],
            "auto_evidence": [["BASALT SINKS.", "Granite is grey."], ["Basalt sinks."]],
            "auto_evidence_url": [["https://d.example", "https://e.example"], [None]],
            "stance_claim_autoEvid": [["refute", "irrelevant"], []],
            "revised_claims": ["Basalt sinks.", "", ""],
        },
    },
}

FACT_GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "a1", "type": "atom", "probability": 0.5, "text": "A claim.", "label": True},
        {"id": "c1", "type": "context", "probability": 0.9, "text": "A passage."},
    ],
    "edges": [{"source": "c1", "target": "a1", "relation": "entailment", "probability": 0.8}],
}


KNOWN: dict[str, dict[str, Any]] = {
    **{"factcheck-bench": FACTCHECK, "factreasoner": FACTREASONER, "factscore": FACTSCORE},
    **{"fact-graph": FACT_GRAPH, **RECORDS},
}
"""One record by name of its format."""
READERS: dict[str, Any] = {
    **{"responses": read_many, "prompts": read_prompts, "pairs": read_judged_pairs},
    "claims": read_records,
}
"""What reads files, by what a format holds."""


JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1.5, float("nan"), 10**400, "", "junk", [], [[]], ["junk"], {}, {"a": 1}),
)
"""What a value of a record is replaced by to damage it."""


def lines(*records: Any) -> str:
    """JSON Lines of records; numbers that JSON cannot hold as Python writes them."""
    return "\n".join(map(json.dumps, records)) + "\n"


def lines_at(path: Path, *records: Any) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def table(*records: dict[str, Any], delimiter: str = ",") -> str:
    """A table of records, of the columns of the first."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def written(folder: Path, text: str, name: str = "data.jsonl") -> Path:
    """A file of a text, its line ends as they are."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, step))


def replaced(record: Any, value: Any, *path: Any) -> Any:
    """A copy of the record with another value at a path."""
    copied, branch = _place(record, path)
    branch[path[-1]] = value
    return copied


def removed(record: Any, *path: Any) -> Any:
    """A copy of the record without the value at a path."""
    copied, branch = _place(record, path)
    del branch[path[-1]]
    return copied


def _place(record: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
    """A copy of the record, and what of it holds the end of the path."""
    copied = branch = copy.deepcopy(record)
    for step in path[:-1]:
        branch = branch[step]
    return copied, branch
