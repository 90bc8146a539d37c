"""The documented keys of a chat submit that this server does not serve yet: refused, never accepted and ignored."""

from collections.abc import Mapping

from pydantic import BaseModel

from hordechat.contract.chat import ChatBody

NOT_YET_SERVED: Mapping[str, tuple[object, ...]] = {
    "stream": (False,),
    "tools": ([],),
    "tool_choice": (),
    "parallel_tool_calls": (),
    "response_format": ({"type": "text"},),
    "seed": (),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "horde.only": (),
    "horde.ignore": (),
    "horde.trusted_workers": (False,),
    "horde.validated_backends": (False,),
    "horde.slow_workers": (True,),
    "horde.conformance": ("strict",),
    "horde.max_context_length": (),
    "horde.context_fit": ("truncate_oldest",),
    "horde.max_kudos": (),
    "horde.dry_run": (False,),
    "horde.operation_key": (),
}
"""Each path with the values that have no effect, which pass, as null does."""


def find_unserved(body: ChatBody) -> str | None:
    """Return the path of the first key that is set to something this server does not serve yet."""
    for path, neutral_values in NOT_YET_SERVED.items():
        value = _value_at(body, path)
        if value is not None and value not in neutral_values:
            return path
    return None


def _value_at(body: BaseModel, path: str) -> object:
    key, _, rest = path.partition(".")
    value: object = getattr(body, key)
    return _value_at(value, rest) if rest and isinstance(value, BaseModel) else value
