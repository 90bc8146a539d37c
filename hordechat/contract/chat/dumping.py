"""The way back from a submission to a body that parses to it."""

from hordechat.contract.chat.submission import ChatSubmission


def dump(submission: ChatSubmission) -> dict[str, object]:
    """Return a body for this submission, of the keys that are not at their default.

    What the parser does not keep cannot come back: keys without effect, and `developer`, which became `system`.
    """
    sampling = submission.sampling
    optional: dict[str, object] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "seed": sampling.seed,
        "reasoning_effort": None if sampling.reasoning_effort is None else sampling.reasoning_effort.value,
        "stop": list(sampling.stop_sequence) or None,
        "tools": [tool.document for tool in submission.tools] or None,
        "tool_choice": None if submission.tool_choice is None else submission.tool_choice.as_json(),
        "parallel_tool_calls": submission.parallel_tool_calls,
        "response_format": None if submission.response_format is None else submission.response_format.document,
        "stream": submission.is_streamed or None,
        "horde": submission.horde.model_dump(mode="json", exclude_defaults=True) or None,
    }
    models: dict[str, object] = (
        {"model": submission.models[0]} if submission.names_one_model else {"models": list(submission.models)}
    )
    return {
        **models,
        "messages": [message.as_json() for message in submission.messages],
        "max_tokens": submission.max_length,
        **{key: value for key, value in optional.items() if value is not None},
    }
