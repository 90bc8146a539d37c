"""What the mapping to and from chat completions does, row by row."""

import pytest

from hordechat.contract.vocabulary import FaultReason, FinishReason
from tests.bridge import stands
from workers_app.bridge.completion import Kind, build_request, explain_failure, read_completion, split_reasoning
from workers_app.bridge.values import GenerationFailed, Payload
from workers_app.bridge.wire import Answer

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


def make_payload(**changes: object) -> Payload:
    return Payload.model_validate(stands.payload(**changes))


def test_a_neutral_payload_becomes_openai_keys_alone() -> None:
    body = build_request(make_payload(), model="local", kind=Kind.OPENAI)

    assert body == {
        "model": "local",
        "messages": [{"role": "user", "content": "Hello there"}],
        "max_tokens": 64,
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "stream": False,
    }


@pytest.mark.parametrize(
    ("kind", "changes", "added"),
    [
        (Kind.OPENAI, {"rep_pen": 1.1}, {"repetition_penalty": 1.1}),
        (Kind.OPENAI, {"top_k": 40}, {"top_k": 40}),
        (Kind.OPENAI, {"min_p": 0.05}, {"min_p": 0.05}),
        (Kind.OPENAI, {"stop_sequence": ["###", "END"]}, {"stop": ["###", "END"]}),
        (Kind.OPENAI, {"stop_sequence": []}, {}),
        (Kind.OPENAI, {"seed": 0}, {"seed": 0}),
        (Kind.OPENAI, {"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        (Kind.OPENAI, {"tools": TOOLS, "tool_choice": "required"}, {"tools": TOOLS, "tool_choice": "required"}),
        (Kind.OPENAI, {"tools": TOOLS, "parallel_tool_calls": False}, {"tools": TOOLS, "parallel_tool_calls": False}),
        (Kind.OPENAI, {"response_format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        (Kind.OPENAI, {"stream_progress": True}, {}),
        (Kind.LLAMACPP, {}, {"repeat_penalty": 1.0, "top_k": 0, "min_p": 0.0}),
        (Kind.LLAMACPP, {"top_k": 40, "rep_pen": 1.2}, {"repeat_penalty": 1.2, "top_k": 40, "min_p": 0.0}),
        (Kind.VLLM, {}, {"repetition_penalty": 1.0, "top_k": -1, "min_p": 0.0}),
        (Kind.VLLM, {"min_p": 0.1}, {"repetition_penalty": 1.0, "top_k": -1, "min_p": 0.1}),
        (Kind.KOBOLDCPP, {}, {"rep_pen": 1.0, "top_k": 0, "min_p": 0.0}),
    ],
)
def test_what_a_payload_adds(kind: Kind, changes: dict[str, object], added: dict[str, object]) -> None:
    neutral = build_request(make_payload(), model="local", kind=Kind.OPENAI)

    assert build_request(make_payload(**changes), model="local", kind=kind) == {**neutral, **added}


def test_messages_go_out_key_for_key() -> None:
    messages = [
        {"role": "system", "content": "Be brief.", "name": "rules"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
    ]

    assert build_request(make_payload(messages=messages), model="m", kind=Kind.OPENAI)["messages"] == messages


@pytest.mark.parametrize(
    ("native", "finish_reason"),
    [
        ("stop", FinishReason.STOP),
        ("eos", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("max_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("tool_calls", FinishReason.STOP),  # without calls
        ("abort", FinishReason.STOP),
        ("x" * 40, FinishReason.STOP),
    ],
)
def test_finish_reasons(native: str, finish_reason: FinishReason) -> None:
    reply = read_completion(stands.completion("Yes.", finish_reason=native), make_payload())

    assert (reply.content, reply.finish_reason, reply.native_finish_reason) == ("Yes.", finish_reason, native[:32])


def test_an_absent_finish_reason_is_stop_without_a_native_one() -> None:
    reply = read_completion(stands.completion("Yes.", finish_reason=None), make_payload())

    assert (reply.finish_reason, reply.native_finish_reason) == (FinishReason.STOP, None)


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (None, (None, None, None)),
        ("many", (None, None, None)),
        ({"prompt_tokens": 7, "completion_tokens": 0}, (7, 0, None)),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 4}}, (None, 9, 4)),
        ({"prompt_tokens": -1, "completion_tokens": 10_000_001}, (None, None, None)),
        ({"prompt_tokens": True, "completion_tokens": 1.5, "completion_tokens_details": None}, (None, None, None)),
    ],
)
def test_counts_are_taken_when_they_are_counts(usage: object, counts: tuple[int | None, ...]) -> None:
    reply = read_completion({**stands.completion("Yes."), "usage": usage}, make_payload())

    assert (reply.prompt_tokens, reply.completion_tokens, reply.reasoning_tokens) == counts


@pytest.mark.parametrize(
    ("message", "content", "reasoning"),
    [
        ({"content": "Yes.", "reasoning_content": "Hm."}, "Yes.", "Hm."),
        ({"content": "Yes.", "reasoning": "Hm."}, "Yes.", "Hm."),
        ({"content": "<think>\nHm.\n</think>\n\nYes."}, "Yes.", "Hm."),
        ({"content": "<think>Cut off"}, "", "Cut off"),
        ({"content": "<think></think>Yes."}, "Yes.", None),
        ({"content": "The tag <think> opens a block."}, "The tag <think> opens a block.", None),
        ({"content": "<think>kept</think>", "reasoning_content": "Hm."}, "<think>kept</think>", "Hm."),
        ({"content": None}, "", None),
        ({"content": "", "reasoning": ""}, "", None),
    ],
)
def test_reasoning_is_kept_out_of_the_content(message: dict[str, object], content: str, reasoning: str | None) -> None:
    reply = read_completion({"choices": [{"message": message}]}, make_payload())

    assert (reply.content, reply.reasoning_content) == (content, reasoning)


def test_split_reasoning_reads_one_block_only() -> None:
    assert split_reasoning("<think>a</think>b<think>c</think>") == ("b<think>c</think>", "a")


def test_tool_calls_are_put_right() -> None:
    calls = [
        {"index": 0, "id": "call_a", "type": "function", "function": {"name": "look_up", "arguments": '{"q": 1}'}},
        {"id": "call_a", "function": {"name": "look_up", "arguments": {"q": "é"}}},
        {"id": None, "function": {"name": "look_up"}},
    ]

    reply = read_completion(
        stands.completion(None, finish_reason="tool_calls", tool_calls=calls), make_payload(tools=TOOLS)
    )

    assert reply.content is None
    assert reply.finish_reason is FinishReason.TOOL_CALLS
    assert [call.function.arguments for call in reply.tool_calls] == ['{"q": 1}', '{"q": "é"}', "{}"]
    assert reply.tool_calls[0].id == "call_a"
    assert len({call.id for call in reply.tool_calls}) == 3


@pytest.mark.parametrize("changes", [{}, {"tools": TOOLS}])
def test_a_call_to_a_function_not_offered_is_a_tool_violation(changes: dict[str, object]) -> None:
    calls = [{"id": "a", "function": {"name": "delete_all", "arguments": "{}"}}]

    with pytest.raises(GenerationFailed) as failed:
        read_completion(stands.completion(None, tool_calls=calls), make_payload(**changes))

    assert failed.value.reason is FaultReason.TOOL_VIOLATION


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"error": {"message": "no"}},
        {"choices": []},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"message": {"content": None, "tool_calls": [{"id": "a"}]}}]},
    ],
)
def test_what_is_no_completion_is_a_generation_error(value: object) -> None:
    with pytest.raises(GenerationFailed) as failed:
        read_completion(value, make_payload())

    assert failed.value.reason is FaultReason.GENERATION_ERROR


@pytest.mark.parametrize(
    ("body", "changes", "reason"),
    [
        (b'{"error": {"type": "exceed_context_size_error"}}', {}, FaultReason.PROMPT_OVERFLOW),
        (b"This model's maximum context length is 8192 tokens.", {}, FaultReason.PROMPT_OVERFLOW),
        (b'{"code": "context_length_exceeded"}', {}, FaultReason.PROMPT_OVERFLOW),
        (b"failed to parse grammar", {"tools": TOOLS}, FaultReason.UNBUILDABLE_GRAMMAR),
        (b"Invalid JSON schema", {"response_format": {"type": "json_schema"}}, FaultReason.UNBUILDABLE_GRAMMAR),
        (b"failed to parse grammar", {}, FaultReason.GENERATION_ERROR),
        (b"out of memory", {}, FaultReason.GENERATION_ERROR),
    ],
)
def test_a_backends_error_gives_the_reason_and_none_of_its_words(
    body: bytes, changes: dict[str, object], reason: FaultReason
) -> None:
    failure = explain_failure(Answer(400, {}, body), make_payload(**changes))

    assert (failure.reason, failure.note) == (reason, "the backend answered 400")
