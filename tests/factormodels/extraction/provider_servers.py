"""Servers that speak the wire formats of providers, and refuse what these refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.factormodels.extraction.questions import claim_of, sentences_of
from tests.factormodels.extraction.web_server import Answer, Asked

Body = dict[str, Any]

THOUGHTS = "It may be a contradiction. Verdict: contradicted."
"""What a model that reasons thinks before it answers: the opposite of what it says."""

_REASONING_TOKENS = 2000


@dataclass(frozen=True)
class Said:
    """Answer of the model behind a server.

    Attributes:
        text: the answer.
        probabilities: of the words that it might begin with, where log-probabilities are wanted.
    """

    text: str
    probabilities: Mapping[str, float] = field(default_factory=dict)


def answer_to(question: str) -> Said:
    """Answer of any of the models to a question of the stages."""
    if "<sentences>" in question:
        claims = [
            {"sentence": n, "claim": f"The bridge has {n} arches."}
            for n, _ in sentences_of(question)
        ]
        return Said(f"Here are the claims:\n```json\n{json.dumps(claims)}\n```")
    if "<premise>" in question:
        if "confidence" in question:
            return Said('{"relation": "entailment", "confidence": 0.8}')
        if "Relation:" in question:
            return Said("It has arches.\nRelation: entailment")
        return Said("entailment", {"entailment": 0.75, "contradiction": 0.15, "neutral": 0.1})
    if "<response>" in question:
        return Said(json.dumps({"claim": claim_of(question)}))
    return Said("The passage says so.\nVerdict: supported")


@dataclass(frozen=True)
class Provider:
    """A provider as its models are reached through litellm.

    Attributes:
        model: a model's name as litellm spells it.
        answer: the server's answer to a request.
        origin: where probabilities of relations should come from.
        lacking: what should be found not to be taken, before or after the first call.
    """

    model: str
    answer: Callable[[Asked], Answer]
    origin: str
    lacking: frozenset[str]


def _reply(body: Body, status: int = 200) -> Answer:
    return Answer(json.dumps(body), status, {"Content-Type": "application/json"})


# --- OpenAI's format, and those who speak it ----------------------------------------------------


@dataclass(frozen=True)
class ChatCompletions:
    """A server of chat completions.

    Attributes:
        refuses: parameter -> what the server says of it.
        ignores: parameters that change nothing.
        reasons: whether the model thinks first, and needs tokens for it.
        thoughts: where the thoughts stand: a field of the message, or "content".
    """

    refuses: Mapping[str, str] = field(default_factory=dict)
    ignores: frozenset[str] = frozenset()
    reasons: bool = False
    thoughts: str = ""
    status: int = 400
    error: Callable[[str, str], Body] = lambda name, message: {
        "error": {"message": message, "type": "invalid_request_error", "param": name,
                  "code": "unsupported_parameter"}
    }  # fmt: skip

    def __call__(self, asked: Asked) -> Answer:
        request = json.loads(asked.body)
        for name, message in self.refuses.items():
            if name in request and not (name == "temperature" and request[name] == 1):
                return _reply(self.error(name, message), self.status)
        answered = answer_to("\n".join(str(message["content"]) for message in request["messages"]))
        most = request.get("max_completion_tokens", request.get("max_tokens", math.inf))
        reply: Body = {"content": answered.text}
        finish = "stop"
        if self.reasons and most < _REASONING_TOKENS:
            reply["content"], finish = "", "length"
        if self.thoughts == "content":
            end = f"</think>\n\n{answered.text}" if finish == "stop" else ""
            reply["content"] = f"<think>\n{THOUGHTS}\n{end}"
        elif self.thoughts:
            reply[self.thoughts] = THOUGHTS
        tokens: list[Body] = []
        if request.get("logprobs") and "logprobs" not in self.ignores:
            tokens = self._tokens(answered, reply["content"], request["top_logprobs"])
        return _reply(
            completion(request, reply, tokens, finish, (40, 4)) | {"service_tier": "on_demand"}
        )

    def _tokens(self, answered: Said, content: str, count: int) -> list[Body]:
        """Tokens of all that was generated, thoughts among them."""
        before = content.removesuffix(answered.text)
        words = [(before, {before: 1.0})] if before else []
        words.append((answered.text, dict(answered.probabilities) or {answered.text: 1.0}))
        return [token(word, offered, count) for word, offered in words]


def completion(
    request: Body, message: Body, tokens: list[Body], finish: str, usage: tuple[int, int]
) -> Body:
    """A chat completion: its message, tokens if any, why it ends, tokens of question and answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    counts = {"prompt": usage[0], "completion": usage[1], "total": sum(usage)}
    return {
        **{"id": "1", "object": "chat.completion", "created": 0, "model": request.get("model", "")},
        "choices": [{**choice, "logprobs": {"content": tokens} if tokens else None}],
        "usage": {f"{name}_tokens": count for name, count in counts.items()},
    }


def token(word: str, offered: Mapping[str, float], count: int | None = None) -> Body:
    """A token with the logarithms of its probability and of the first alternatives'."""
    listed = list(offered.items())[:count]
    return {
        **{"token": word, "logprob": math.log(offered.get(word, 1.0))},
        "top_logprobs": [{"token": other, "logprob": math.log(value)} for other, value in listed],
    }


def _detail(name: str, message: str) -> Body:
    """An error as servers built on pydantic write it."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": message}]}


def _reasoning(name: str) -> str:
    return f"Unsupported parameter: '{name}' is not supported with this model."


# --- Formats of their own -----------------------------------------------------------------------


def anthropic(asked: Asked) -> Answer:
    """Anthropic's messages: an unknown parameter is refused, the longest answer demanded."""
    request = json.loads(asked.body)
    known = {"model", "messages", "system", "max_tokens", "temperature", "stream", "metadata"}
    wrong = [f"{name}: Extra inputs are not permitted" for name in sorted(request.keys() - known)]
    wrong += ["max_tokens: Field required"] * ("max_tokens" not in request)
    if wrong:
        error = {"type": "invalid_request_error", "message": wrong[0]}
        return _reply({"type": "error", "error": error}, 400)
    answered = answer_to(f"{request.get('system')}{request['messages'][-1]['content'][0]['text']}")
    thinking = {"type": "thinking", "thinking": THOUGHTS, "signature": "s"}
    content = [thinking, {"type": "text", "text": answered.text}]
    head = {"id": "1", "type": "message", "role": "assistant", "model": request["model"]}
    usage = {"input_tokens": 40, "output_tokens": 4}
    rest = {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
    return _reply({**head, "content": content, **rest})


def gemini(asked: Asked) -> Answer:
    """Gemini's generateContent: no log-probabilities, and thoughts that count as output."""
    request = json.loads(asked.body)
    settings = request["generationConfig"]
    if {"responseLogprobs", "logprobs"} & settings.keys():
        message = "Logprobs is not enabled for models/gemini-2.5-flash"
        error = {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
        return _reply({"error": error}, 400)
    text = json.dumps([request.get("system_instruction"), request["contents"][-1]])
    answered = answer_to(text.replace("\\n", "\n"))
    most = settings.get("max_output_tokens", settings.get("maxOutputTokens", math.inf))
    cut = most < _REASONING_TOKENS
    parts = [] if cut else [{"text": THOUGHTS, "thought": True}, {"text": answered.text}]
    content = {"role": "model", "parts": parts}
    candidate = {"content": content, "finishReason": "MAX_TOKENS" if cut else "STOP", "index": 0}
    counts = {"prompt": 40, "candidates": 4, "thoughts": 100, "total": 144}
    usage = {f"{name}TokenCount": count for name, count in counts.items()}
    return _reply({"candidates": [candidate], "usageMetadata": usage})


def bedrock(asked: Asked) -> Answer:
    """Bedrock's converse: an unknown parameter is refused."""
    request = json.loads(asked.body)
    known = {"maxTokens", "temperature", "topP", "stopSequences"}
    strange = sorted(request.get("inferenceConfig", {}).keys() - known)
    strange += sorted(request.get("additionalModelRequestFields", {}))
    if strange:
        message = f"The model returned the following errors: {strange[0]}: extraneous key"
        return _reply({"message": message}, 400)
    answered = answer_to(f"{request.get('system')}" + request["messages"][-1]["content"][0]["text"])
    output = {"message": {"role": "assistant", "content": [{"text": answered.text}]}}
    usage = {"inputTokens": 40, "outputTokens": 4, "totalTokens": 44}
    rest = {"stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
    return _reply({"output": output, **rest})


def ollama(asked: Asked) -> Answer:
    """Ollama's chat: an unknown parameter is ignored."""
    request = json.loads(asked.body)
    if asked.path != "/api/chat":
        return _reply({"error": "not found"}, 404)  # litellm asks about the model, too
    answered = answer_to("\n".join(str(message["content"]) for message in request["messages"]))
    message = {"role": "assistant", "content": answered.text, "thinking": THOUGHTS}
    head = {"model": request["model"], "created_at": "2026-01-01T00:00:00Z", "message": message}
    rest = {"done": True, "done_reason": "stop", "prompt_eval_count": 40, "eval_count": 4}
    return _reply({**head, **rest})


_OPENAI_REASONING = ChatCompletions(
    {name: _reasoning(name) for name in ("temperature", "logprobs", "top_logprobs", "max_tokens")},
    reasons=True,
)
_NO_LOG_PROBABILITIES = frozenset({"logprobs"})
_MISTRAL = ChatCompletions(
    dict.fromkeys(("logprobs", "top_logprobs", "seed", "max_completion_tokens"),
                  "Extra inputs are not permitted"),
    status=422, error=_detail,
)  # fmt: skip
_DEEPSEEK_REASONING = ChatCompletions(
    {"logprobs": "deepseek-reasoner does not support the parameter `logprobs`"},
    reasons=True, thoughts="reasoning_content",
)  # fmt: skip
_GROQ = ChatCompletions({"logprobs": "property 'logprobs' is unsupported"})
_TOGETHER = ChatCompletions({"logprobs": "Invalid type for 'logprobs': expected an integer"})
# It passes on what the provider behind it takes, and says nothing of the rest.
_OPENROUTER = ChatCompletions(ignores=_NO_LOG_PROBABILITIES)
_THINKING_ALOUD = ChatCompletions(reasons=True, thoughts="content")


def _provider(
    model: str, answer: Callable[[Asked], Answer], origin: str, *lacking: str
) -> Provider:
    return Provider(model, answer, origin, frozenset(lacking))


_BEDROCK = "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0"
_VERBALIZED = ("verbalized", "logprobs")

PROVIDERS = (
    _provider("anthropic/claude-sonnet-4-5", anthropic, *_VERBALIZED, "seed"),
    _provider("gemini/gemini-2.5-flash", gemini, *_VERBALIZED, "seed"),
    _provider(_BEDROCK, bedrock, *_VERBALIZED, "seed"),
    _provider("bedrock/converse/amazon.nova-lite-v1:0", bedrock, *_VERBALIZED, "seed"),
    _provider("openai/gpt-4o-mini", ChatCompletions(), "logprobs"),
    _provider("openai/gpt-5", _OPENAI_REASONING, *_VERBALIZED, "temperature"),
    _provider("openai/gpt-5-mini", _OPENAI_REASONING, *_VERBALIZED, "temperature"),
    _provider("openai/o3-mini", _OPENAI_REASONING, *_VERBALIZED, "temperature"),
    _provider("mistral/mistral-small-latest", _MISTRAL, *_VERBALIZED),
    _provider("deepseek/deepseek-chat", ChatCompletions(), "logprobs"),
    _provider("deepseek/deepseek-reasoner", _DEEPSEEK_REASONING, *_VERBALIZED),
    _provider("groq/llama-3.3-70b-versatile", _GROQ, *_VERBALIZED),
    _provider("together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", _TOGETHER, *_VERBALIZED),
    _provider("openrouter/meta-llama/llama-3.1-8b-instruct", _OPENROUTER, *_VERBALIZED),
    _provider("hosted_vllm/llama", ChatCompletions(), "logprobs"),
    # Models that litellm does not know to reason: one thinks in the answer, one out of sight.
    _provider("openai/of-tomorrow", _OPENAI_REASONING, *_VERBALIZED, "temperature"),
    _provider("hosted_vllm/r1-distilled", _THINKING_ALOUD, "logprobs"),
    _provider("ollama_chat/llama3.1", ollama, *_VERBALIZED),
)
