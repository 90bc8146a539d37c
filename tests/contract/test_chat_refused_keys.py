"""Every parameter of a chat completion is in the contract or refused by name."""

import pytest

from hordechat.contract.chat import ChatBody
from hordechat.contract.limits import MAX_REFUSED_KEY_CHARACTERS
from tests.contract.bodies import refuse, said, unsupported

OPENAI_PARAMETERS_TAKEN = [
    "frequency_penalty",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_p",
    "user",
]

OPENAI_PARAMETERS_REFUSED = [
    "audio",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "modalities",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "top_logprobs",
    "verbosity",
    "web_search_options",
]

OF_OTHER_ROUTES_AND_SERVERS = [
    "background",
    "best_of",
    "echo",
    "extra_body",
    "guided_json",
    "include",
    "input",
    "instructions",
    "max_length",
    "max_output_tokens",
    "min_p",
    "params",
    "previous_response_id",
    "prompt",
    "reasoning",
    "rep_pen",
    "repetition_penalty",
    "stop_sequence",
    "suffix",
    "text",
    "thinking",
    "top_k",
    "truncation",
]


def test_the_contract_is_openais_keys_and_two_of_our_own() -> None:
    assert set(ChatBody.model_fields) == {*OPENAI_PARAMETERS_TAKEN, "models", "horde"}


@pytest.mark.spec("RFS-01", "RFS-02", "RFS-03", "RFS-27", "RFS-33")
@pytest.mark.parametrize(
    "key", [*OPENAI_PARAMETERS_REFUSED, *OF_OTHER_ROUTES_AND_SERVERS, "Model", "modèle", "", "messages ", "a.b"]
)
@pytest.mark.parametrize("value", [None, True, {"a": 1}])
def test_refuses_a_key_outside_the_contract_whatever_its_value(key: str, value: object) -> None:
    assert said(refuse(**{key: value})) == unsupported(key)


@pytest.mark.spec("RFS-02")
def test_quotes_a_key_only_as_far_as_a_person_reads() -> None:
    assert said(refuse(**{"k" * 1_000_000: 1})) == unsupported("k" * MAX_REFUSED_KEY_CHARACTERS)
