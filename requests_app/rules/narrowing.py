"""The worker's copy of a request's extras: what it needs to obey the tool choice, and no more."""

from collections.abc import Mapping

TOOL_KEYS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})


def narrow_extras(extras: Mapping[str, object]) -> dict[str, object]:
    """Return what a worker receives; the stored extras stay the client's, since replies are judged by them (TLS-32).

    A function choice becomes the one function under `required`, which every backend that can force a call knows.
    """
    choice = extras.get("tool_choice")
    if choice == "none":
        return {key: value for key, value in extras.items() if key not in TOOL_KEYS}
    if isinstance(choice, Mapping):
        name = _function_name(choice)
        return {**extras, "tools": _named(extras.get("tools"), name), "tool_choice": "required"}
    return dict(extras)


def _named(tools: object, name: object) -> list[object]:
    return [tool for tool in tools if _function_name(tool) == name] if isinstance(tools, list) else []


def _function_name(value: object) -> object:
    """Return `function.name` of a tool or a tool choice."""
    function = value.get("function") if isinstance(value, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None
