"""What each return code means and what to do about it, as `docs/errors.md`, which links may point into for good.

`python -m hordechat.http.error_catalogue [--check]` writes that page.
"""

import sys
from dataclasses import dataclass
from http import HTTPStatus

from hordechat.contract import limits
from hordechat.errors import ErrorCode
from hordechat.generated_page import GeneratedPage
from hordechat.http.error_status import STATUS_BY_CODE


@dataclass(frozen=True)
class Entry:
    """A return code's line on the page."""

    meaning: str
    remedy: str


CATALOGUE: dict[ErrorCode, Entry] = {
    ErrorCode.ABORTED_GENERATION: Entry(
        "The generation was given up: its lease lapsed before the reply came, or its worker gave it back.",
        "Drop the reply and pop again. If it happens often, declare smaller limits or serve a faster model.",
    ),
    ErrorCode.ANONYMOUS_FORBIDDEN_WORKER: Entry(
        "The anonymous key cannot run workers.",
        "Ask the operator of the site for an account and pop with its key.",
    ),
    ErrorCode.BAD_REQUEST: Entry(
        "The request cannot be read, or a value has the wrong shape, type or range.",
        "Correct what the message names; `errors`, when present, has a sentence for each path. "
        "A missing `apikey` header is reported there too.",
    ),
    ErrorCode.CHAT_ADMISSION_DISABLED: Entry(
        "The operator takes no new chat requests now; what is queued is served.",
        "Try again later. A request you sent before is found by repeating it under its operation key.",
    ),
    ErrorCode.CHAT_DECLARATION_INVALID: Entry(
        "The chat fields of a pop do not fit together.",
        "Correct the field the message names. Nothing was handed out, and the last valid declaration stands.",
    ),
    ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE: Entry(
        "The request carries images and the server has nowhere to keep them now; nothing was queued or charged.",
        "Try again later, or send the request without its images.",
    ),
    ErrorCode.CHAT_KUDOS_CAP_EXCEEDED: Entry(
        "The request is estimated to cost more than its `horde.max_kudos`.",
        "Raise the cap, ask for fewer tokens, or send a shorter conversation.",
    ),
    ErrorCode.CHAT_MODEL_MISMATCH: Entry(
        "A reply or fault names another model than its job was assigned to.",
        "Send the `model` of the pop's answer as `model_id`.",
    ),
    ErrorCode.CHAT_REQUEST_CONFLICT: Entry(
        "Two values of a chat request contradict each other.", "Send only one of the keys the message names."
    ),
    ErrorCode.CHAT_SUBMIT_INVALID: Entry(
        "A worker's submit is not shaped like a reply to its job.",
        "Correct the fields the message names and submit again; the job is still yours until its lease ends.",
    ),
    ErrorCode.CHAT_SUBMIT_NONCONFORMANT: Entry(
        "A reply does not keep what its strict request asks for: a tool choice, or the format of the content.",
        "Generate again and submit within the lease, or give the job back with `state: faulted`; a fault after this "
        "refusal does not count as a dropped job. A schema that cannot be compiled fits no reply: give the job back.",
    ),
    ErrorCode.CORRUPT_PROMPT: Entry(
        "The texts of a request could not be screened: that took too long, made them too long, or left nothing.",
        "Send less text, or another one; leave out long runs of the same characters.",
    ),
    ErrorCode.DELETED_USER: Entry(
        "The account is scheduled for deletion.", "Ask the operator of the site, or call with another account's key."
    ),
    ErrorCode.DUPLICATE_GENERATION: Entry(
        "The generation has a reply already, and its worker was paid for it.",
        "Nothing to do: an earlier try of the same submit arrived.",
    ),
    ErrorCode.EXCESSIVE_STOP_SEQUENCE: Entry(
        f"The sequences of `stop` hold more than {limits.MAX_STOP_SEQUENCE_CHARACTERS} characters together.",
        "Send shorter or fewer sequences.",
    ),
    ErrorCode.INTERNAL_SERVER_ERROR: Entry(
        "The server met something its code did not foresee.",
        "Try again later. Tell the operator the `X-Request-Id` of the answer: the log has the details under it.",
    ),
    ErrorCode.INVALID_API_KEY: Entry(
        "No user has this API key, or the key was revoked.",
        "Check the `apikey` header; ask the operator for a key, or use `0000000000` to stay anonymous.",
    ),
    ErrorCode.INVALID_EXTRA_SOURCE_IMAGES: Entry(
        "A text request carries images. The code ends in a dot.", "Send images in the messages of a chat request."
    ),
    ErrorCode.INVALID_JOB_ID: Entry(
        "No generation has this id; it may have expired with its request.",
        "Drop the reply and pop again. Send the `id` of the pop's answer unchanged.",
    ),
    ErrorCode.INVALID_PRIORITY_USERNAME: Entry(
        "An entry of `priority_usernames` does not look like `alias#id`.", "Correct it, or leave it out."
    ),
    ErrorCode.KUDOS_UPFRONT: Entry(
        "The request is above the free output allowance, or for chosen or fast workers alone, and your free kudos do "
        "not cover what it may cost.",
        "Ask for a shorter output than the allowance the message names, wait until held kudos are free again, or earn "
        "some with a worker.",
    ),
    ErrorCode.MAINTENANCE_MODE: Entry(
        "The operator works on the site, which takes no new requests meanwhile.", "Try again later."
    ),
    ErrorCode.METHOD_NOT_ALLOWED: Entry(
        "The route exists and does not take this method.", "Use a method the `Allow` header lists."
    ),
    ErrorCode.MISSING_FULL_SAMPLER_ORDER: Entry(
        "`params.sampler_order` holds fewer than 7 different samplers.", "Send all of them, or leave the key out."
    ),
    ErrorCode.MISSING_PROMPT: Entry("The `prompt` of a text request is empty.", "Send a text."),
    ErrorCode.NO_ELIGIBLE_WORKER: Entry(
        "The models are known and no online worker serves one of them now; or the kudos do not cover a request that no "
        "online worker could serve either.",
        "Try again later, or accept more models.",
    ),
    ErrorCode.NUL_BYTE_IN_PAYLOAD: Entry(
        "A string or key of the body holds the character U+0000, which cannot be stored.",
        "Remove the character or replace it.",
    ),
    ErrorCode.ONLY_SERVICE_ACCOUNT_PROXY: Entry(
        "`proxied_account` comes from a user who is no service.", "Leave the key out."
    ),
    ErrorCode.OPERATION_KEY_CONFLICT: Entry(
        "The operation key names another request of yours, which was not sent with this body.",
        "Use a new key for a new request, or send the first request's body again.",
    ),
    ErrorCode.PROMPT_EXCEEDS_CONTEXT: Entry(
        "The conversation and the reply asked for do not fit the context.",
        "Shorten the conversation or lower `max_tokens`.",
    ),
    ErrorCode.RATE_LIMIT_EXCEEDED: Entry(
        "The address or the API key sent more requests to this route than it may in a second, minute, hour or day.",
        "Wait the seconds of the `Retry-After` header. `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the end of the "
        "period as Unix time, come with every answer, so that a client can keep below the limit.",
    ),
    ErrorCode.REQUEST_NOT_FOUND: Entry(
        "No request of this family has this id.",
        f"Check the id; requests are kept for {limits.REQUEST_LIFE_SECONDS // 60} minutes after their last activity.",
    ),
    ErrorCode.REQUEST_TOO_LARGE: Entry(
        "The body is larger than this route takes.", "Send less; the message names the limit in bytes."
    ),
    ErrorCode.REQUIRES_TRUST: Entry(
        "`disable_batching` with `n` above 1 is a privilege of trusted users.", "Leave the key out, or send `n` 1."
    ),
    ErrorCode.ROUTE_NOT_FOUND: Entry("No route has this path.", "Check the path; `/api/schema/` lists the routes."),
    ErrorCode.SERVICE_UNAVAILABLE: Entry(
        "The server cannot reach its database.",
        "Repeat the request after the seconds of the `Retry-After` header. In the rare case that the connection broke "
        "during a commit, the change was made: a reply then answers `DuplicateGen`, a chat request is queued twice.",
    ),
    ErrorCode.SHARED_KEY_EMPTY: Entry(
        "All a shared key could spend is spent.", "Ask the key's owner for more, or call with a key of your own."
    ),
    ErrorCode.SHARED_KEY_EXPIRED: Entry(
        "The time of a shared key is over.", "Ask the key's owner, or call with a key of your own."
    ),
    ErrorCode.SHARED_KEY_INSUFFICIENT_KUDOS: Entry(
        "A shared key has less left than the request may cost.",
        "Ask for a shorter output or a smaller model, or ask the key's owner for more.",
    ),
    ErrorCode.SOURCE_IMAGE_SIZE_EXCEEDED: Entry(
        f"An image holds more than {limits.MAX_CHAT_IMAGE_BYTES // limits.MIB} MiB, or all images of a request hold "
        f"more than {limits.MAX_CHAT_IMAGE_TOTAL_BYTES // limits.MIB} MiB together, base64 undone.",
        "Send smaller or fewer images.",
    ),
    ErrorCode.SOURCE_IMAGE_URL_REFUSED: Entry(
        "An image's address leads to where the server does not fetch from.",
        "Send a public address, or the image itself.",
    ),
    ErrorCode.TIMEOUT_ADDRESS: Entry(
        "Requests from your address are refused for a while.",
        "Wait as long as the message says; ask the operator of the site when it is a mistake.",
    ),
    ErrorCode.TOKEN_OVERFLOW: Entry(
        "`params.max_length` is above `params.max_context_length`.", "Lower the one or raise the other."
    ),
    ErrorCode.TOO_MANY_EXTRA_SOURCE_IMAGES: Entry(
        f"The messages of a request hold more than {limits.MAX_CHAT_IMAGE_COUNT} images together.",
        "Send fewer images.",
    ),
    ErrorCode.TOO_MANY_PROMPTS: Entry(
        "You have as many requests waiting as your account may.",
        "Wait until some are served, or cancel them. The limit is `concurrency` in what `find_user` shows.",
    ),
    ErrorCode.TOO_MANY_SAME_ADDRESSES: Entry(
        "You have as many workers at this address as one may have.", "Use one worker with more `threads` instead."
    ),
    ErrorCode.TOO_MANY_STOP_SEQUENCES: Entry(
        f"`stop` holds more than {limits.MAX_STOP_SEQUENCES} different sequences.", "Send fewer sequences."
    ),
    ErrorCode.TOO_MANY_WORKERS: Entry(
        "You have as many workers as a user may have who is not trusted yet.",
        "Use the names of workers you have; serve with them until you are trusted.",
    ),
    ErrorCode.TOO_MANY_WORKERS_TRUSTED: Entry(
        "You have as many workers as a trusted user may have.", "Use the names of workers you have."
    ),
    ErrorCode.UNKNOWN_CHAT_MODEL: Entry(
        "No online worker declared this model.",
        "Check the spelling, or try again when a worker serves it.",
    ),
    ErrorCode.UNSUPPORTED_CHAT_PARAMETER: Entry(
        "A key or value of a chat request is outside the contract, passes one of its limits, or is not served yet.",
        "Remove or change what the message names; `/api/schema/` lists what is accepted.",
    ),
    ErrorCode.USER_NOT_FOUND: Entry("Nobody has the API key a look-up names.", "Check the `apikey` header."),
    ErrorCode.WORKER_FLAGGED_MAINTENANCE: Entry(
        "The account is flagged, and its workers are served nothing.", "Ask the operator of the site."
    ),
    ErrorCode.WORKER_MAINTENANCE: Entry(
        "The worker is in maintenance and its owner waits for nothing it serves; the message says why.",
        "End the maintenance, or stop the worker until it ends.",
    ),
    ErrorCode.WORKER_NOT_FOUND: Entry("A request names a worker that does not exist.", "Check the worker's id."),
    ErrorCode.WRONG_CREDENTIALS: Entry(
        "The API key is not the key of the worker's owner, or not the one a text request was submitted under.",
        "Use that key; a worker of your own needs a name of its own, since names are taken across the site.",
    ),
}

HEAD = """\
# Errors

Generated from `hordechat/http/error_catalogue.py` by `python -m hordechat.http.error_catalogue`.

Every refusal is a JSON object with `message`, a sentence for people, and `rc`, a return code for programs. Messages may
change; return codes and their statuses do not. A body that does not validate adds `errors`, a sentence for each path.
Every response carries `X-Request-Id`, under which the server's log has what happened.
"""


def render() -> str:
    """Return the page."""
    sections = [_section(code, CATALOGUE[code], STATUS_BY_CODE[code]) for code in sorted(ErrorCode)]
    return "\n".join([HEAD, *sections])


def _section(code: ErrorCode, entry: Entry, status: HTTPStatus) -> str:
    return f"## {code}\n\nStatus {status.value}. {entry.meaning}\n\n{entry.remedy}\n"


PAGE = GeneratedPage("errors.md", "hordechat.http.error_catalogue", render)

if __name__ == "__main__":
    sys.exit(PAGE.main())
