"""Small models of random weights, as transformers saves them: what tests of loaders open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from factormodels.extraction.relation_models.base import TextPair


def transformers() -> Any:
    """Return the library, which takes a second to import; without it a test is skipped."""
    return pytest.importorskip("transformers", reason="the extra nli is not installed")


_WORDS = ["the", "bridge", "opened", "in", "was", "built", "it", "is", "green", "red"]
_WORDS += ["predict", ":", "1890", "1891", "0", "1"]
_SPECIAL: Mapping[str, int] = {"<pad>": 0, "</s>": 1, "<unk>": 2, "<s>": 3}

PAIRS = [
    TextPair("the bridge opened in 1890", "it opened in 1890"),
    TextPair("the bridge is green", "the bridge is red"),
]


def tokenizer(folder: Path) -> Any:
    """Save and return a tokenizer of words with the special tokens that models want."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    words = {**_SPECIAL, **{word: at for at, word in enumerate(_WORDS, len(_SPECIAL))}}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 3), ("</s>", 1)]
    )
    named = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "bos_token": "<s>"}
    wrapped = transformers().PreTrainedTokenizerFast(
        tokenizer_object=made, **named, model_max_length=64
    )
    wrapped.save_pretrained(folder)
    return wrapped


def roberta(**further: Any) -> Any:
    """The configuration of a small RoBERTa for these words."""
    return transformers().RobertaConfig(
        vocab_size=len(_SPECIAL) + len(_WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=66,
        type_vocab_size=1,
        pad_token_id=0,
        **further,
    )


def classifier(folder: Path, **further: Any) -> Path:
    """Save a RoBERTa that classifies, with its tokenizer; `further` goes to its configuration."""
    torch.manual_seed(0)
    tokenizer(folder)
    transformers().RobertaForSequenceClassification(roberta(**further)).save_pretrained(folder)
    return folder


def writer(folder: Path) -> Path:
    """Save a T5 of Flan-T5's kind, whose gates and output are its own, with its tokenizer."""
    torch.manual_seed(0)
    tokenizer(folder)
    config = transformers().T5Config(
        vocab_size=len(_SPECIAL) + len(_WORDS),
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    transformers().T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
