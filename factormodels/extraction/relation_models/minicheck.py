"""MiniCheck models as relation models, through transformers, from a local folder.

Source: Tang, Laban and Durrett 2024, "MiniCheck: Efficient Fact-Checking of LLMs on Grounding
Documents" (Liyan06/MiniCheck, Apache-2.0). Its RoBERTa and DeBERTa are classifiers with two
outputs, unsupported and supported; its Flan-T5 generates the first token of "0" or "1". All read
one text, the document and the claim separated by the end-of-text token, and use the best part of a
document.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factormodels.errors import InputError
from factormodels.extraction.optional_libraries import optional_module, without_progress_bars
from factormodels.extraction.relation_models.nli import NliRelations, placed_model, positions_of

_UNSUPPORTED, _SUPPORTED = "0", "1"
_PREFIX = "predict: "
"""Prefix of documents in the training of MiniCheck's Flan-T5."""

_LONGEST = 2048
"""MiniCheck's maximum tokens for models whose configuration has no limit."""


@dataclass(frozen=True)
class MiniCheckRelations(NliRelations):
    """A MiniCheck model: entailment with the probability of support, else neutral.

    Attributes:
        answers: tokens of the answers unsupported and supported, for a generative model; None for a
            classifier.
        prefix: text before a document.
    """

    answers: tuple[int, int] | None = None
    prefix: str = field(default="", repr=False)

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        import torch

        joined = [
            f"{self.prefix}{document}{self.tokenizer.eos_token}{claim}" for document, claim in pairs
        ]
        inputs = self.tokenizer(joined, padding=True, return_tensors="pt").to(self.device)
        with torch.no_grad():
            if self.answers is None:
                logits = self.model(**inputs).logits
            else:
                start = torch.full(
                    (len(joined), 1), self.model.config.decoder_start_token_id or 0
                ).to(self.device)
                written = self.model(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    decoder_input_ids=start,
                )
                logits = written.logits[:, 0, list(self.answers)]
        result: NDArray[np.float64] = logits.double().cpu().numpy()
        return result


def load_minicheck(
    folder: str | os.PathLike[str], *, batch_size: int = 16, device: str = "cpu"
) -> MiniCheckRelations:
    """Load a MiniCheck model from a folder with transformers; nothing is downloaded.

    A model with an encoder and a decoder is treated as Flan-T5, any other as a classifier.

    Args:
        folder: folder with the model, its tokenizer and configuration.
        batch_size: pairs per forward pass.
        device: device of the model, such as "cpu" or "cuda".

    Raises:
        InputError: if the folder does not exist or contains no such model.
        MissingDependencyError: if transformers or torch is not installed.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder; name the folder of a MiniCheck model")
    optional_module("torch", "nli")
    transformers = optional_module("transformers", "nli")
    try:
        config = transformers.AutoConfig.from_pretrained(str(path), local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(path), local_files_only=True)
        writes = bool(config.is_encoder_decoder)
        kind = (
            transformers.AutoModelForSeq2SeqLM
            if writes
            else transformers.AutoModelForSequenceClassification
        )
        with without_progress_bars():
            model = kind.from_pretrained(str(path), local_files_only=True)
    # A tokenizer may need another library, which the reason then names.
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: transformers finds no MiniCheck model there ({reason}); name a folder "
            "that save_pretrained wrote"
        ) from None
    if not writes and model.config.num_labels != 2:
        raise InputError(
            f"{path}: it has {model.config.num_labels} outputs, but a MiniCheck model has two, "
            "unsupported and supported; take nli:FOLDER for others"
        )
    if tokenizer.eos_token is None:
        raise InputError(
            f"{path}: its tokenizer has no end-of-text token, which separates the texts"
        )
    prefix = _PREFIX if writes else ""
    answers = None
    if writes:
        first, second = (
            tokenizer.encode(word, add_special_tokens=False)[0]
            for word in (_UNSUPPORTED, _SUPPORTED)
        )
        answers = first, second
    # The separator and the prefix reduce the tokens available for the document.
    taken = len(tokenizer.encode(f"{prefix}{tokenizer.eos_token}", add_special_tokens=False))
    limit = min(tokenizer.model_max_length, positions_of(config), _LONGEST) - taken
    return MiniCheckRelations(
        *(f"minicheck:{path.name}", (1, None, None), batch_size, limit, device),
        tokenizer=tokenizer,
        model=placed_model(model, device),
        answers=answers,
        prefix=prefix,
    )
