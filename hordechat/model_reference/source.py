"""The operator's own reference: read from the URL or file that `HORDE_IMAGE_LLM_REFERENCE` names, and judged.

Only the operator says what is read, never a client. The place is not logged: a URL may carry a password.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
import orjson

from hordechat.model_reference.facts import ModelFacts
from hordechat.model_reference.table import LARGEST_PARAMETERS, MAX_NAME_CHARACTERS

MAX_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 10.0
WHOLE_READ_SECONDS = 30.0
MAX_REDIRECTS = 3


class SourceUnreachable(Exception):
    """The place could not be read."""


class SourceBroken(Exception):
    """What was read there is no reference."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A reference that was read: its models, and the names of entries that are none."""

    models: Mapping[str, ModelFacts]
    refused_names: tuple[str, ...]


def read(place: str) -> Reading:
    """Read the reference at a URL or path.

    Raises:
        SourceUnreachable: the place does not answer in time, or not with a reference's content.
        SourceBroken: it holds no reference, or too large a one.
    """
    return parse(_read_url(place) if place.startswith(("http://", "https://")) else _read_file(Path(place)))


def parse(content: bytes | str) -> Reading:
    """Judge a reference entry by entry; one that is no model does not spoil the others.

    Raises:
        SourceBroken: it is no JSON object, or none of its entries is a model.
    """
    try:
        entries = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise SourceBroken(f"it is not JSON: {error}") from None
    if not isinstance(entries, dict):
        raise SourceBroken("it is not a JSON object")
    judged = {name: _read_entry(name, entry) for name, entry in entries.items()}
    models = {name: facts for name, facts in judged.items() if facts}
    if not models:
        raise SourceBroken("it names no model")
    return Reading(models=models, refused_names=tuple(name for name, facts in judged.items() if not facts))


def dump(models: Mapping[str, ModelFacts]) -> str:
    """Return the models in the shape `parse` reads, nothing else of their entries kept."""
    entries = {name: {"parameters": facts.parameters, "nsfw": facts.is_nsfw} for name, facts in models.items()}
    return orjson.dumps(entries, option=orjson.OPT_SORT_KEYS).decode()


def _read_entry(name: str, entry: object) -> ModelFacts | None:
    if not isinstance(entry, dict) or not 0 < len(name) <= MAX_NAME_CHARACTERS or "\0" in name:
        return None
    parameters, is_nsfw = entry.get("parameters"), entry.get("nsfw", False)
    if type(parameters) is not int or not isinstance(is_nsfw, bool) or not 0 < parameters <= LARGEST_PARAMETERS:
        return None
    return ModelFacts(parameters=parameters, is_nsfw=is_nsfw)


def _read_file(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise SourceUnreachable("there is no such file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceUnreachable(error.strerror or type(error).__name__) from None
    _require_bounded(content)
    return content


def _read_url(url: str) -> bytes:
    give_up_at = time.monotonic() + WHOLE_READ_SECONDS
    content = bytearray()
    try:
        with (
            httpx2.Client(
                timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                headers={"Accept-Encoding": "identity"},
            ) as client,
            client.stream("GET", url) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise SourceUnreachable(f"it answers with status {response.status_code}")
            for chunk in response.iter_bytes():
                content += chunk
                _require_bounded(content)
                if time.monotonic() > give_up_at:
                    raise SourceUnreachable(f"it takes longer than {WHOLE_READ_SECONDS:.0f} seconds")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SourceUnreachable(type(error).__name__) from None
    return bytes(content)


def _require_bounded(content: bytes | bytearray) -> None:
    if len(content) > MAX_BYTES:
        raise SourceBroken(f"it is larger than {MAX_BYTES} bytes")
