"""One chat request as a client sends it: submit, poll, read the reply, see the kudos move."""

import http
import http.client
import json
import time
from dataclasses import dataclass

from hordechat.local.accounts import Accounts
from hordechat.local.refusals import Refused
from hordechat.local.stack import Api, get_json, send_json

QUESTION = "Good morning! Who are you, and who answers me here?"
MODEL = "demo/echo"
WORKER_SECONDS = 30
REPLY_SECONDS = 30
SUBMIT_PAUSE_SECONDS = 0.6
"""Between tries; an account may submit twice a second."""

POLL_SECONDS = 0.1
PATIENT_POLL_SECONDS = 1.0
POLLS_AT_FIRST = 20
"""A status may be read 60 times a minute: often while the reply can come at any moment, then once a second."""

NOT_YET = {"UnknownChatModel", "NoEligibleWorker"}
"""What a submit is refused with until the demo worker has asked for work once."""


@dataclass(frozen=True)
class Demo:
    """What came of the request."""

    reply: str
    seconds: float
    kudos: float
    client_kudos: tuple[float, float]
    """Before and after."""
    owner_kudos: tuple[float, float]


def body() -> dict[str, object]:
    """Return the chat request the demo sends."""
    return {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 64}


def curl(api: Api, accounts: Accounts) -> str:
    """Return a command line that sends the same request."""
    return (
        f"curl -s {api.url}/api/v2/generate/chat/async -H 'apikey: {accounts.demo_client.api_key}' "
        f"-H 'Content-Type: application/json' -d '{json.dumps(body())}'"
    )


def run(api: Api, accounts: Accounts) -> Demo:
    """Send the request and wait for its reply.

    Raises:
        Refused: it was not taken or not answered.
    """
    try:
        return _converse(api, accounts)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Refused(f"The API did not answer the demo request as it should ({error!r}).") from error


def _converse(api: Api, accounts: Accounts) -> Demo:
    client_before = _kudos(api, accounts.demo_client.api_key)
    owner_before = _kudos(api, accounts.demo_owner.api_key)
    started, request_id = _submit(api, accounts.demo_client.api_key)
    status = _wait_for_reply(api, request_id)
    seconds = time.monotonic() - started
    return Demo(
        reply=_text_of(status),
        seconds=seconds,
        kudos=_number(status.get("kudos")),
        client_kudos=(client_before, _kudos(api, accounts.demo_client.api_key)),
        owner_kudos=(owner_before, _kudos(api, accounts.demo_owner.api_key)),
    )


def _submit(api: Api, api_key: str) -> tuple[float, str]:
    deadline = time.monotonic() + WORKER_SECONDS
    while True:
        started = time.monotonic()
        status, answer = send_json(api.port, "POST", "/api/v2/generate/chat/async", body(), {"apikey": api_key})
        if status == http.HTTPStatus.ACCEPTED:
            return started, str(answer["id"])
        if answer.get("rc") not in NOT_YET or time.monotonic() > deadline:
            raise Refused(f"The chat request was refused with {status}: {json.dumps(answer)}")
        time.sleep(SUBMIT_PAUSE_SECONDS)


def _wait_for_reply(api: Api, request_id: str) -> dict[str, object]:
    deadline = time.monotonic() + REPLY_SECONDS
    polls = 0
    while time.monotonic() < deadline:
        status, answer = get_json(api.port, f"/api/v2/generate/chat/status/{request_id}")
        if status != http.HTTPStatus.OK:
            raise Refused(f"The status of the chat request was refused with {status}: {json.dumps(answer)}")
        if answer.get("done"):
            return answer
        polls += 1
        time.sleep(POLL_SECONDS if polls < POLLS_AT_FIRST else PATIENT_POLL_SECONDS)
    raise Refused(f"The chat request was not answered in {REPLY_SECONDS} s; the log of the demo worker says more.")


def _text_of(status: dict[str, object]) -> str:
    generations = status.get("generations")
    if not isinstance(generations, list) or not generations:
        raise Refused(f"The chat request ended without a reply: {json.dumps(status)}")
    generation = generations[0]
    text = generation.get("text") or (generation.get("message") or {}).get("content")
    if not text:
        raise Refused(f"The chat request ended with an empty reply: {json.dumps(status)}")
    return str(text)


def _kudos(api: Api, api_key: str) -> float:
    status, answer = get_json(api.port, "/api/v2/find_user", {"apikey": api_key})
    if status != http.HTTPStatus.OK:
        raise Refused(f"The account's kudos could not be read ({status}): {json.dumps(answer)}")
    return _number(answer.get("kudos"))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
