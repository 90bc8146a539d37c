"""Whatever a chat submit is refused with: no row, hold, transfer, claim, queue row or Redis key is left of it."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from hordechat.errors import ErrorCode
from hordechat.http.error_status import STATUS_BY_CODE
from hordechat.infra import address_timeouts, clock, redis
from requests_app.rules import contract_page
from requests_app.services import prompt_filters
from tests.horde import MODEL, TRACES, Horde, chat_body, count_rows, make_person, one_value

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
Cause = Callable[[Horde], dict[str, Any] | None]


def sending_images(*parts: dict[str, Any]) -> Cause:
    return lambda _: {"messages": [{"role": "user", "content": list(parts)}]}


def after(statement: str) -> Cause:
    def cause(_: Horde) -> None:
        one_value(statement)

    return cause


def sending(**changes: Any) -> Cause:
    return lambda _: dict(changes)


def claim(horde: Horde) -> dict[str, Any]:
    horde.submit(horde={"operation_key": KEY})
    return {"max_tokens": 65}


def fill_with_children(horde: Horde) -> dict[str, Any]:
    one_value("UPDATE users SET is_flagged = true WHERE id > 0 RETURNING 1")
    prompt_filters.add(regex="child", replacement="a" * 255, now=clock.now())
    return {"messages": [{"role": "user", "content": "child " * 5000}]}


CAUSES: dict[ErrorCode, Cause] = {
    ErrorCode.REQUEST_TOO_LARGE: sending(raw=b"x" * (36 * 1024 * 1024 + 1)),
    ErrorCode.NUL_BYTE_IN_PAYLOAD: sending(messages=[{"role": "user", "content": "\0"}]),
    ErrorCode.BAD_REQUEST: sending(max_tokens=1),
    ErrorCode.UNSUPPORTED_CHAT_PARAMETER: sending(logprobs=True),
    ErrorCode.TOO_MANY_EXTRA_SOURCE_IMAGES: sending_images(*[IMAGE] * 21),
    ErrorCode.SOURCE_IMAGE_SIZE_EXCEEDED: sending_images(
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 7_000_000}}
    ),
    ErrorCode.CHAT_REQUEST_CONFLICT: sending(models=[MODEL]),
    ErrorCode.OPERATION_KEY_CONFLICT: claim,
    ErrorCode.CHAT_ADMISSION_DISABLED: sending(setting={"chat_admission_enabled": False}),
    ErrorCode.MAINTENANCE_MODE: after("INSERT INTO site_modes (maintenance) VALUES (true) RETURNING 1"),
    ErrorCode.INVALID_API_KEY: sending(api_key="nobody"),
    ErrorCode.SHARED_KEY_EMPTY: lambda horde: {"api_key": horde.share_key(horde.requester, left_kudos=0)},
    ErrorCode.SHARED_KEY_EXPIRED: lambda horde: {"api_key": horde.share_key(horde.requester, expires_at=clock.now())},
    ErrorCode.DELETED_USER: after("UPDATE users SET is_deleted = true WHERE id > 0 RETURNING 1"),
    ErrorCode.TOO_MANY_PROMPTS: after("UPDATE users SET concurrency = 0 WHERE id > 0 RETURNING 1"),
    ErrorCode.TIMEOUT_ADDRESS: sending(timeout="127.0.0.1"),
    ErrorCode.CORRUPT_PROMPT: fill_with_children,
    ErrorCode.UNKNOWN_CHAT_MODEL: sending(model="no/model"),
    ErrorCode.NO_ELIGIBLE_WORKER: sending(model="elinas/chronos-70b-v2"),
    ErrorCode.PROMPT_EXCEEDS_CONTEXT: sending(messages=[{"role": "user", "content": "x" * 90_000}]),
    ErrorCode.TOO_MANY_STOP_SEQUENCES: sending(stop=[str(number) for number in range(129)]),
    ErrorCode.EXCESSIVE_STOP_SEQUENCE: sending(stop=["s" * 2001]),
    ErrorCode.CHAT_KUDOS_CAP_EXCEEDED: sending(options={"max_kudos": 1}),
    ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE: sending_images(IMAGE),
    ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS: lambda horde: {"api_key": horde.share_key(horde.requester, left_kudos=1)},
    ErrorCode.KUDOS_UPFRONT: lambda _: {
        "api_key": make_person("poor").api_key,
        "setting": {"free_output_ceiling": 16, "free_output_floor": 16},
    },
}
"""For each return code of the chat submit what leads to it: changes of the body, or of what surrounds it."""


def test_every_code_of_the_chat_submit_has_a_cause_here() -> None:
    assert set(CAUSES) == set(contract_page.CODES) - {ErrorCode.RATE_LIMIT_EXCEEDED}


def redis_keys() -> list[str]:
    clients = (redis.marks(), redis.address_timeouts(), redis.chat_signals())
    return sorted(key for client in clients for key in client.scan_iter())


@pytest.mark.spec("ORD-32", "OPK-25", "HOP-26", "CTX-45")
@pytest.mark.parametrize("code", CAUSES)
@pytest.mark.parametrize("is_dry_run", [False, True], ids=["real", "dry run"])
def test_a_refusal_leaves_no_trace(horde: Horde, settings: Settings, code: ErrorCode, is_dry_run: bool) -> None:
    if is_dry_run and code in {
        ErrorCode.OPERATION_KEY_CONFLICT,
        ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE,
        ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS,
        ErrorCode.KUDOS_UPFRONT,
    }:
        # A dry run looks no key up, stores no image and needs no kudos.
        expected = 200
    else:
        expected = STATUS_BY_CODE[code].value
    horde.pop()
    changes = CAUSES[code](horde) or {}
    options = {"operation_key": KEY, "dry_run": is_dry_run, **changes.pop("options", {})}
    settings.HORDE = settings.HORDE.model_copy(update=changes.pop("setting", {}))
    api_key, raw, timeout = (changes.pop(name, None) for name in ("api_key", "raw", "timeout"))
    if timeout is not None:
        address_timeouts.put(timeout, seconds=60, now=clock.now())
    spent = "SELECT (count(operation_key), sum(consumed_kudos))::text FROM waiting_prompts"
    held = "SELECT (sum(held_kudos), sum(posted_kudos))::text FROM accounts"
    shared = "SELECT (sum(left_kudos), sum(used_kudos))::text FROM shared_keys"
    before = [count_rows(*TRACES), redis_keys(), *map(one_value, (spent, held, shared))]
    try:
        status, body = horde.submit(raw or chat_body(horde=options, **changes), api_key=api_key)
        after_it = [count_rows(*TRACES), redis_keys(), *map(one_value, (spent, held, shared))]
    finally:
        address_timeouts.remove("127.0.0.1")

    assert status == expected, body
    assert body.get("rc") == (None if expected == 200 else code)
    assert after_it == before
