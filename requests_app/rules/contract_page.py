"""The contract as `docs/contract.md`: every key with its range, every limit, every return code of both submits.

`python -m requests_app.rules.contract_page [--check]` writes that page from the contract's models, limits and codes.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hordechat.contract import limits
from hordechat.contract.chat import ChatBody
from hordechat.contract.text_request import TextBody
from hordechat.errors import ErrorCode
from hordechat.generated_page import GeneratedPage
from requests_app.rules.served import NOT_YET_SERVED

CODES: Mapping[ErrorCode, str] = {
    ErrorCode.RATE_LIMIT_EXCEEDED: "The address or the API key submitted too often; the body is not read.",
    ErrorCode.REQUEST_TOO_LARGE: "The body is longer than 36 MiB, declared or counted; the rest is not read.",
    ErrorCode.NUL_BYTE_IN_PAYLOAD: "A string or key holds a NUL character.",
    ErrorCode.BAD_REQUEST: "The body is no JSON object, or a value has a wrong shape, type or range.",
    ErrorCode.UNSUPPORTED_CHAT_PARAMETER: "A key or value is outside the contract, passes a limit, breaks the order of "
    "tool calls and answers or the rules of strict schemas, or is not served yet.",
    ErrorCode.TOO_MANY_EXTRA_SOURCE_IMAGES: "The messages hold too many images.",
    ErrorCode.SOURCE_IMAGE_SIZE_EXCEEDED: "An image, or all of them together, is too large.",
    ErrorCode.CHAT_REQUEST_CONFLICT: "Two values contradict each other, or `openai_guards` misses the word json.",
    ErrorCode.OPERATION_KEY_CONFLICT: "The operation key was used for another request.",
    ErrorCode.CHAT_ADMISSION_DISABLED: "The operator takes no new chat requests.",
    ErrorCode.MAINTENANCE_MODE: "The operator takes no requests at all.",
    ErrorCode.INVALID_API_KEY: "Nobody has the API key.",
    ErrorCode.SHARED_KEY_EMPTY: "All the shared key could spend is spent.",
    ErrorCode.SHARED_KEY_EXPIRED: "The shared key's time is over.",
    ErrorCode.DELETED_USER: "The account is scheduled for deletion.",
    ErrorCode.TOO_MANY_PROMPTS: "The user has as many requests waiting as they may.",
    ErrorCode.TIMEOUT_ADDRESS: "Requests from this address are refused for a while.",
    ErrorCode.CORRUPT_PROMPT: "The texts cannot be screened in time; only a flagged user's are, and those for a model "
    "that is marked as not safe for work.",
    ErrorCode.UNKNOWN_CHAT_MODEL: "A model nobody knows; every entry of `models` has to be known.",
    ErrorCode.NO_ELIGIBLE_WORKER: "No worker serves one of the models now.",
    ErrorCode.PROMPT_EXCEEDS_CONTEXT: "The conversation does not fit, as far as `context_fit` lets it be changed.",
    ErrorCode.TOO_MANY_STOP_SEQUENCES: "`stop` holds too many different sequences.",
    ErrorCode.EXCESSIVE_STOP_SEQUENCE: "The sequences of `stop` are too long together.",
    ErrorCode.CHAT_KUDOS_CAP_EXCEEDED: "The request is estimated to cost more than `max_kudos`.",
    ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE: "The request holds images, and there is nowhere to keep them.",
    ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS: "The shared key has less left than the request may cost.",
    ErrorCode.KUDOS_UPFRONT: "The output asked for is above the free allowance, and the user does not own what it may "
    "cost. When no online worker could serve it either, that is told instead, as `NoEligibleWorker`.",
}
"""Each return code of the chat submit and when it is given, in the order things are judged."""

TEXT_HEAD = """\
# Text requests

`POST /api/v2/generate/text/async` takes a prompt. Unknown keys are ignored here, and types are as strict as above; null
is no value.

```
curl -s http://127.0.0.1:7001/api/v2/generate/text/async -H 'apikey: 0000000000' -H 'Content-Type: application/json' \\
     -d '{"prompt": "Once upon a time", "params": {"max_length": 80}}'
```

`GET` and `DELETE /api/v2/generate/text/status/{id}` read and cancel it; `GET /api/v2/generate/text/request/{id}` shows
what was sent, to the key it was sent under.
"""

HEAD = """\
# The chat contract

Generated from `hordechat/contract` by `python -m requests_app.rules.contract_page`.

`POST /api/v2/generate/chat/async` takes a JSON object in the form of OpenAI's chat completions. Types are strict: no
number in a string, no 1 for true. An unknown key is refused whatever its value, and a value is never clamped. Null on
an optional key is the same as leaving it out, except where a row says otherwise.

```
curl -s http://127.0.0.1:7001/api/v2/generate/chat/async -H 'apikey: 0000000000' -H 'Content-Type: application/json' \\
     -d '{"model": "demo/echo", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 64}'
```

Any Python program can judge a body without a server: `hordechat.contract.json_body.parse_object` reads its bytes and
`hordechat.contract.chat.parse` returns a submission or raises one refusal, with the path it concerns.
"""

LIMIT_GROUPS = ("Bodies", "Chat requests", "Text requests", "Images", "Tools and response formats")

TEXT_CODES: Mapping[ErrorCode, str] = {
    code: CODES[code] for code in (ErrorCode.RATE_LIMIT_EXCEEDED, ErrorCode.NUL_BYTE_IN_PAYLOAD)
} | {
    ErrorCode.REQUEST_TOO_LARGE: "The body is longer than 4 MiB, declared or counted; the rest is not read.",
    ErrorCode.BAD_REQUEST: "The body is no JSON object, a value has a wrong shape, type or range, `webhook` is no "
    "https address, or a shared key is for shorter outputs.",
    ErrorCode.PROMPT_EXCEEDS_CONTEXT: "The prompt does not fit, under `context_fit` reject or grow.",
    ErrorCode.MAINTENANCE_MODE: CODES[ErrorCode.MAINTENANCE_MODE],
    ErrorCode.INVALID_API_KEY: CODES[ErrorCode.INVALID_API_KEY],
    ErrorCode.SHARED_KEY_EMPTY: CODES[ErrorCode.SHARED_KEY_EMPTY]
    + " With `allow_downgrade` the request runs as the anonymous user's instead.",
    ErrorCode.SHARED_KEY_EXPIRED: CODES[ErrorCode.SHARED_KEY_EXPIRED],
    ErrorCode.ONLY_SERVICE_ACCOUNT_PROXY: "`proxied_account` comes from a user who is no service.",
    ErrorCode.DELETED_USER: CODES[ErrorCode.DELETED_USER],
    ErrorCode.INVALID_EXTRA_SOURCE_IMAGES: "`extra_source_images` holds anything.",
    ErrorCode.MISSING_PROMPT: "`prompt` is empty.",
    ErrorCode.WORKER_NOT_FOUND: "`workers` names one that does not exist.",
    ErrorCode.REQUIRES_TRUST: "`disable_batching` with `n` above 1, from a user who is not trusted.",
    ErrorCode.TOO_MANY_PROMPTS: CODES[ErrorCode.TOO_MANY_PROMPTS],
    ErrorCode.TIMEOUT_ADDRESS: CODES[ErrorCode.TIMEOUT_ADDRESS],
    ErrorCode.CORRUPT_PROMPT: "The prompt cannot be screened in time, or nothing is left of it.",
    ErrorCode.TOKEN_OVERFLOW: "`params.max_length` is above the context.",
    ErrorCode.MISSING_FULL_SAMPLER_ORDER: "`params.sampler_order` leaves samplers out.",
    ErrorCode.TOO_MANY_STOP_SEQUENCES: "`params.stop_sequence` holds too many different sequences.",
    ErrorCode.EXCESSIVE_STOP_SEQUENCE: "The sequences of `params.stop_sequence` are too long together.",
    ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS: CODES[ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS],
    ErrorCode.KUDOS_UPFRONT: "The output is above the free allowance, or the request is for chosen or fast workers "
    "alone, and the user does not own what it may cost. With `allow_downgrade` it is lowered to what is free instead.",
    ErrorCode.NO_ELIGIBLE_WORKER: "As `KudosUpfront`, of a request no online worker could serve either.",
}
"""The same for the text submit."""


def render() -> str:
    """Return the page."""
    schema = ChatBody.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    shapes = [name for name, shape in definitions.items() if shape.get("properties")]
    sections = [HEAD, _keys("The body", schema, definitions)]
    sections += [_keys(_title(name), definitions[name], definitions) for name in sorted(shapes)]
    sections += [_unserved(), _codes(CODES), _examples(), _text(), _limits()]
    return "\n".join(sections)


def _text() -> str:
    schema = TextBody.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    return "\n".join(
        [
            TEXT_HEAD,
            _keys("The body of a text request", schema, definitions),
            _keys("Its `params`", definitions["TextParams"], definitions),
            _codes(TEXT_CODES, title="Return codes of a text submit"),
        ]
    )


def _keys(title: str, shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    required = set(shape.get("required", ()))
    lines = [f"## {title}", "", str(shape.get("description", "")), ""]
    lines += ["| Key | Values | Default | Meaning |", "| --- | --- | --- | --- |"]
    for key, value in shape["properties"].items():
        default = "required" if key in required else _default(value)
        lines.append(f"| `{key}` | {_values(value, definitions)} | {default} | {value.get('description', '')} |")
    return "\n".join([*lines, ""])


def _title(name: str) -> str:
    return "The `horde` object" if name == "ChatHordeOptions" else f"`{_shape(name)}`"


def _shape(name: str) -> str:
    return name.removesuffix("Body")


def _default(value: Mapping[str, Any]) -> str:
    default = value.get("default")
    return "none" if default is None else f"`{json.dumps(default)}`"


def _values(value: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        is_vocabulary = "enum" in definitions[name]
        return _values(definitions[name], definitions) if is_vocabulary else f"`{_shape(name)}`"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if branches := value.get("anyOf", value.get("oneOf")):
        return " or ".join(_values(branch, definitions) for branch in branches if branch.get("type") != "null")
    kind = value.get("type", "any JSON")
    if kind == "array":
        return (
            f"list of {_values(value.get('items', {}), definitions)}{_range(value, 'minItems', 'maxItems', ' entries')}"
        )
    if kind == "string":
        pattern = f" of `{value['pattern'].strip('^$')}`" if "pattern" in value else ""
        uuid = " (a UUID)" if value.get("format") == "uuid" else ""
        return f"string{pattern}{uuid}{_range(value, 'minLength', 'maxLength', ' characters')}"
    return f"{kind}{_range(value, 'minimum', 'maximum', '')}"


def _range(value: Mapping[str, Any], low: str, high: str, unit: str) -> str:
    bounds = [f"from {value[low]}" if low in value else "", f"to {value[high]}" if high in value else ""]
    text = " ".join(bound for bound in bounds if bound)
    return f", {text}{unit}" if text else ""


def _limits() -> str:
    lines = ["## Limits", "", "| Limit | Number | What it bounds |", "| --- | --- | --- |"]
    lines += [f"| `{name}` | {getattr(limits, name)} | {reason} |" for name, reason in _documented_limits()]
    return "\n".join([*lines, ""])


def _documented_limits() -> Iterator[tuple[str, str]]:
    """Yield the constants of the chat groups with the sentence below each, in the order of the module."""
    source = Path(limits.__file__).read_text(encoding="utf-8")
    statements = ast.parse(source).body
    for place, statement in enumerate(statements):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        if _group_of(source, statement.lineno) not in LIMIT_GROUPS:
            continue
        following = statements[place + 1]
        is_sentence = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        yield statement.targets[0].id, str(following.value.value) if is_sentence else ""  # type: ignore[attr-defined]


def _group_of(source: str, line: int) -> str:
    headings = [text for text in source.splitlines()[:line] if text.startswith("# -- ")]
    return headings[-1].strip("# -") if headings else ""


def _unserved() -> str:
    paths = ", ".join(f"`{path}`" for path in NOT_YET_SERVED)
    return (
        "## Not served yet\n\n"
        "These keys are judged as above and then refused by name, unless they are at their default or without effect: "
        f"{paths}.\n"
    )


def _codes(codes: Mapping[ErrorCode, str], *, title: str = "Return codes") -> str:
    lines = [f"## {title}", "", "[errors.md](errors.md) has the remedies.", "", "| rc | When |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| `{code}` | {when} |" for code, when in codes.items()), ""])


def _examples() -> str:
    # From the model itself: its JSON schema sorts the keys of examples.
    extra: Any = ChatBody.model_config["json_schema_extra"]
    blocks = [f"```json\n{json.dumps(example, indent=2)}\n```" for example in extra["examples"]]
    return "\n\n".join(["## Examples", *blocks]) + "\n"


PAGE = GeneratedPage("contract.md", "requests_app.rules.contract_page", render)

if __name__ == "__main__":
    sys.exit(PAGE.main())
