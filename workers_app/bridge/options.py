"""The command line and the two secrets of the environment, checked before anything is sent."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hordechat.contract.limits import (
    MAX_INTEGER,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_WORKER_NAME_CHARACTERS,
    MAX_WORKER_THREADS,
)
from hordechat.contract.vocabulary import Capability
from workers_app.bridge.completion import DIALECTS, Kind
from workers_app.bridge.openai import DEFAULT_FEATURES
from workers_app.bridge.values import SERVABLE

API_KEY_VARIABLE = "HORDE_BRIDGE_API_KEY"
BACKEND_KEY_VARIABLE = "HORDE_BRIDGE_BACKEND_KEY"
MIN_MODEL_NAME_CHARACTERS = 3
MAX_KEY_FILE_CHARACTERS = 4096

DEMO = "demo"
OPENAI = "openai"
NO_ADDRESS = "it has to look like http://host:port or https://host/path"
OPENAI_ONLY = ("backend_url", "backend_model", "backend_kind", "context_check", "feature")


@dataclass(frozen=True)
class OpenAIOptions:
    """Where the model is and what it can do."""

    url: str
    model: str
    kind: Kind
    checks_context: bool
    features: frozenset[Capability]
    api_key: str | None = field(repr=False)


@dataclass(frozen=True)
class Options:
    """Everything the bridge was told; `openai` is None for the demo backend."""

    url: str
    name: str
    model: str
    max_context_length: int
    max_length: int
    threads: int
    poll_seconds: float
    grace_seconds: float
    is_once: bool
    openai: OpenAIOptions | None
    api_key: str = field(repr=False)


def read(arguments: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Return the options, or leave the process with code 2 and a sentence that says what to change."""
    parser = _make_parser()
    given = parser.parse_args(arguments)
    if given.max_length > given.max_context_length:
        parser.error("--max-length may not be above --max-context-length.")
    if not MIN_MODEL_NAME_CHARACTERS <= len(given.model) <= MAX_MODEL_NAME_CHARACTERS:
        parser.error(f"--model takes a name of {MIN_MODEL_NAME_CHARACTERS} to {MAX_MODEL_NAME_CHARACTERS} characters.")
    if not 1 <= len(given.name.strip()) <= MAX_WORKER_NAME_CHARACTERS:
        parser.error(f"--name takes a name of 1 to {MAX_WORKER_NAME_CHARACTERS} characters.")
    return Options(
        url=given.url,
        name=given.name,
        model=given.model,
        max_context_length=given.max_context_length,
        max_length=given.max_length,
        threads=given.threads,
        poll_seconds=given.poll_seconds,
        grace_seconds=given.grace_seconds,
        is_once=given.once,
        openai=_read_openai(parser, given, environ),
        api_key=_read_api_key(parser, given.api_key_file, environ),
    )


def _read_openai(
    parser: argparse.ArgumentParser, given: argparse.Namespace, environ: Mapping[str, str]
) -> OpenAIOptions | None:
    if given.backend == DEMO:
        for name in OPENAI_ONLY:
            if getattr(given, name) is not None:
                parser.error(f"--{name.replace('_', '-')} needs --backend openai.")
        return None
    kind = Kind(given.backend_kind or Kind.OPENAI)
    backend_key = environ.get(BACKEND_KEY_VARIABLE) or None
    if backend_key is not None:
        _require_header_value(parser, backend_key, BACKEND_KEY_VARIABLE)
    return OpenAIOptions(
        url=given.backend_url or "http://127.0.0.1:8080",
        model=given.backend_model or given.model,
        kind=kind,
        checks_context=DIALECTS[kind].counts_prompts if given.context_check is None else given.context_check,
        features=frozenset(map(Capability, given.feature)) if given.feature else DEFAULT_FEATURES,
        api_key=backend_key,
    )


def _read_api_key(parser: argparse.ArgumentParser, path: Path | None, environ: Mapping[str, str]) -> str:
    if path is None:
        key, source = environ.get(API_KEY_VARIABLE, ""), API_KEY_VARIABLE
    else:
        source = str(path)
        try:
            with path.open(encoding="utf-8") as file:
                key = file.read(MAX_KEY_FILE_CHARACTERS)
        except (OSError, UnicodeDecodeError):
            parser.error(f"--api-key-file: {path} cannot be read as text.")
    key = key.strip()
    if not key:
        parser.error(f"There is no API key: set {API_KEY_VARIABLE} or name a file that holds it with --api-key-file.")
    _require_header_value(parser, key, source)
    return key


def _require_header_value(parser: argparse.ArgumentParser, value: str, source: str) -> None:
    if not (value.isascii() and value.isprintable()):
        parser.error(f"The key in {source} has characters no HTTP header can carry.")


def _address(text: str) -> str:
    """Return a base address without the path the routes are appended to."""
    try:
        parts = urlsplit(text.strip())
        has_good_port = parts.port is None or parts.port > 0
    except ValueError:
        raise argparse.ArgumentTypeError(NO_ADDRESS) from None
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not has_good_port or not is_plain:
        raise argparse.ArgumentTypeError(NO_ADDRESS)
    address = parts.geturl().rstrip("/")
    for suffix in ("/api/v2", "/v1"):
        address = address.removesuffix(suffix)
    return address


class _Bounded:
    """An argument's type: a number within bounds."""

    def __init__(self, number: type[int] | type[float], low: float, high: float) -> None:
        self._number = number
        self._low = low
        self._high = high

    def __call__(self, text: str) -> float:
        try:
            value = self._number(text)
        except ValueError:
            value = float("nan")
        if not self._low <= value <= self._high:
            word = "a whole number" if self._number is int else "a number"
            raise argparse.ArgumentTypeError(f"it has to be {word} from {self._low} to {self._high}")
        return value


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m workers_app.bridge",
        description="Serve a horde's chat requests with a model of your own, or with a demo that has no model.",
        epilog=f"The worker owner's API key comes from {API_KEY_VARIABLE} or --api-key-file, never from an argument. "
        f"{BACKEND_KEY_VARIABLE} is sent to the backend as a Bearer token when it is set. "
        "Exit codes: 0 stopped, 1 refused by the horde (or --once without a reply), 2 a bad option.",
        allow_abbrev=False,
    )
    horde = parser.add_argument_group("the horde")
    horde.add_argument(
        "--url",
        type=_address,
        default="http://127.0.0.1:7001",
        help="address of the horde, without /api/v2 (default: %(default)s)",
    )
    horde.add_argument("--name", required=True, help="the worker's name, unique on the horde (required)")
    horde.add_argument(
        "--api-key-file",
        type=Path,
        metavar="FILE",
        help=f"a file that holds the worker owner's API key (default: the key is read from {API_KEY_VARIABLE})",
    )
    horde.add_argument("--model", required=True, help="the name the horde knows the model by (required)")
    horde.add_argument(
        "--max-context-length",
        type=_Bounded(int, 1, MAX_INTEGER),
        default=8192,
        metavar="TOKENS",
        help="context one generation has, prompt and reply together (default: %(default)s)",
    )
    horde.add_argument(
        "--max-length",
        type=_Bounded(int, 1, MAX_INTEGER),
        default=1024,
        metavar="TOKENS",
        help="longest reply offered (default: %(default)s)",
    )
    backend = parser.add_argument_group("the backend")
    backend.add_argument(
        "--backend",
        choices=(OPENAI, DEMO),
        default=OPENAI,
        help="openai: a server with /v1/chat/completions; demo: labelled text, no model (default: %(default)s)",
    )
    backend.add_argument(
        "--backend-url",
        type=_address,
        metavar="URL",
        help="address of the server, with or without /v1 (default: http://127.0.0.1:8080)",
    )
    backend.add_argument("--backend-model", metavar="NAME", help="the model's name there (default: the --model)")
    backend.add_argument(
        "--backend-kind",
        choices=[kind.value for kind in Kind],
        metavar="KIND",
        help=f"which server it is: {', '.join(Kind)}; decides the spelling of sampling keys and how prompts are "
        "counted (default: openai)",
    )
    backend.add_argument(
        "--context-check",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="count each prompt first and refuse one that does not fit; strict requests, the usual ones, come only to "
        "a worker that does (default: on for llamacpp and vllm, which count exactly; off for openai and koboldcpp, "
        "where it is an estimate)",
    )
    backend.add_argument(
        "--feature",
        action="append",
        choices=[feature.value for feature in SERVABLE],
        metavar="FEATURE",
        help=f"something the backend really does, may be repeated: {', '.join(SERVABLE)} "
        f"(default: {', '.join(sorted(DEFAULT_FEATURES))})",
    )
    pace = parser.add_argument_group("pace")
    pace.add_argument(
        "--threads",
        type=_Bounded(int, 1, MAX_WORKER_THREADS),
        default=1,
        metavar="N",
        help="generations served at the same time (default: %(default)s)",
    )
    pace.add_argument(
        "--poll-seconds",
        type=_Bounded(float, 0.1, 300),
        default=2.0,
        metavar="SECONDS",
        help="pause after a pop that brought nothing, give or take a quarter (default: %(default)s)",
    )
    pace.add_argument(
        "--grace-seconds",
        type=_Bounded(float, 0, 600),
        default=30.0,
        metavar="SECONDS",
        help="how long running generations may go on after SIGINT or SIGTERM (default: %(default)s)",
    )
    pace.add_argument(
        "--once", action="store_true", help="wait for one generation, serve it and exit (default: serve until stopped)"
    )
    return parser
