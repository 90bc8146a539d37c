"""What the command line takes and what it refuses."""

from pathlib import Path

import pytest

from hordechat.contract.vocabulary import Capability
from workers_app.bridge import options
from workers_app.bridge.completion import Kind
from workers_app.bridge.options import OpenAIOptions, Options

NAMED = ["--name", "my worker", "--model", "my/model"]
ENVIRONMENT = {"HORDE_BRIDGE_API_KEY": "secret-key"}


def test_the_defaults() -> None:
    chosen = options.read(NAMED, ENVIRONMENT)

    assert chosen == Options(
        url="http://127.0.0.1:7001",
        name="my worker",
        model="my/model",
        max_context_length=8192,
        max_length=1024,
        threads=1,
        poll_seconds=2.0,
        grace_seconds=30.0,
        is_once=False,
        openai=OpenAIOptions(
            url="http://127.0.0.1:8080",
            model="my/model",
            kind=Kind.OPENAI,
            checks_context=False,
            features=frozenset({Capability.SEED, Capability.PRESENCE_PENALTY, Capability.FREQUENCY_PENALTY}),
            api_key=None,
        ),
        api_key="secret-key",
    )
    assert "secret-key" not in repr(chosen)


@pytest.mark.parametrize(
    ("given", "checks"),
    [
        (["--backend-kind", "llamacpp"], True),
        (["--backend-kind", "vllm"], True),
        (["--backend-kind", "koboldcpp"], False),
        (["--backend-kind", "llamacpp", "--no-context-check"], False),
        (["--context-check"], True),
    ],
)
def test_the_context_check_is_on_where_the_backend_counts(given: list[str], checks: bool) -> None:
    chosen = options.read([*NAMED, *given], ENVIRONMENT).openai

    assert chosen is not None
    assert chosen.checks_context is checks


def test_features_replace_the_usual_ones() -> None:
    chosen = options.read([*NAMED, "--feature", "tools", "--feature", "seed"], ENVIRONMENT).openai

    assert chosen is not None
    assert chosen.features == {Capability.TOOLS, Capability.SEED}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://horde.example/api/v2/", "https://horde.example"),
        ("http://[::1]:7001", "http://[::1]:7001"),
        ("https://horde.example/sub", "https://horde.example/sub"),
    ],
)
def test_addresses_lose_the_part_the_routes_add(given: str, url: str) -> None:
    assert options.read([*NAMED, "--url", given], ENVIRONMENT).url == url


def test_the_key_file_wins_over_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")

    assert options.read([*NAMED, "--api-key-file", str(file)], ENVIRONMENT).api_key == "from-file"


@pytest.mark.parametrize(
    ("given", "environ", "sentence"),
    [
        (NAMED, {}, "There is no API key: set HORDE_BRIDGE_API_KEY or name a file"),
        (NAMED, {"HORDE_BRIDGE_API_KEY": "  "}, "There is no API key"),
        (NAMED, {"HORDE_BRIDGE_API_KEY": "a\nb"}, "has characters no HTTP header can carry"),
        (NAMED, {**ENVIRONMENT, "HORDE_BRIDGE_BACKEND_KEY": "schlüssel"}, "HORDE_BRIDGE_BACKEND_KEY has characters"),
        ([*NAMED, "--api-key-file", "/nonexistent"], ENVIRONMENT, "/nonexistent cannot be read as text."),
        (["--model", "my/model"], ENVIRONMENT, "required: --name"),
        (["--name", "x"], ENVIRONMENT, "required: --model"),
        (["--name", " ", "--model", "my/model"], ENVIRONMENT, "--name takes a name of 1 to 100 characters."),
        (["--name", "x", "--model", "ab"], ENVIRONMENT, "--model takes a name of 3 to 255 characters."),
        ([*NAMED, "--url", "horde.example"], ENVIRONMENT, "argument --url: it has to look like http://host:port"),
        ([*NAMED, "--url", "http://key@host"], ENVIRONMENT, "argument --url: it has to look like"),
        ([*NAMED, "--url", "http://host:99999"], ENVIRONMENT, "argument --url: it has to look like"),
        ([*NAMED, "--url", "http://[::1"], ENVIRONMENT, "argument --url: it has to look like"),
        ([*NAMED, "--threads", "0"], ENVIRONMENT, "--threads: it has to be a whole number from 1 to 50"),
        ([*NAMED, "--threads", "1.5"], ENVIRONMENT, "--threads: it has to be a whole number"),
        ([*NAMED, "--poll-seconds", "nan"], ENVIRONMENT, "--poll-seconds: it has to be a number from 0.1 to 300"),
        ([*NAMED, "--max-length", "0"], ENVIRONMENT, "--max-length: it has to be a whole number from 1 to 2147483647"),
        ([*NAMED, "--max-length", "9000"], ENVIRONMENT, "--max-length may not be above --max-context-length."),
        ([*NAMED, "--feature", "vision"], ENVIRONMENT, "argument --feature: invalid choice: 'vision'"),
        ([*NAMED, "--backend-kind", "other"], ENVIRONMENT, "argument --backend-kind: invalid choice: 'other'"),
        ([*NAMED, "--backend", "demo", "--feature", "tools"], ENVIRONMENT, "--feature needs --backend openai."),
        ([*NAMED, "--backend", "demo", "--context-check"], ENVIRONMENT, "--context-check needs --backend openai."),
    ],
)
def test_what_is_refused(
    given: list[str], environ: dict[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        options.read(given, environ)

    assert left.value.code == 2
    assert sentence in capsys.readouterr().err
