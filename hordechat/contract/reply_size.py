"""How long a chat reply is: what it is charged and rewarded by, and what its worker's speed is measured with."""

from collections.abc import Sequence

from hordechat.contract.chat.submission import ToolCall


def chat_reply_characters(
    *, content: str | None, reasoning_content: str | None = None, tool_calls: Sequence[ToolCall] = ()
) -> int:
    """Return the code points a model wrote: content, reasoning, and each call's function name and arguments.

    What a worker puts around them (the role, call ids, JSON) is not the model's work. Count a reply as it is stored,
    its NUL characters replaced.
    """
    calls = sum(len(call.name) + len(call.arguments) for call in tool_calls)
    return len(content or "") + len(reasoning_content or "") + calls
