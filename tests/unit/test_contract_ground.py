"""The contract stands alone: its numbers fit together, its words are stored as they are, and it needs no framework."""

import subprocess
import sys

import pytest

from hordechat.contract import limits, text
from hordechat.contract.refusals import path_of
from hordechat.contract.vocabulary import Capability
from tests.spec.rows import PROJECT

WITHOUT_FRAMEWORKS = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"django", "rest_framework", "celery", "psycopg", "redis"}:
            raise ImportError(f"{name} is out of bounds")

sys.meta_path.insert(0, Refuse())
import hordechat.contract, hordechat.errors
modules = [module.name for module in pkgutil.iter_modules(hordechat.contract.__path__, "hordechat.contract.")]
for name in modules:
    importlib.import_module(name)
print(len(modules))
"""


def test_the_contract_does_without_any_framework() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_FRAMEWORKS], cwd=PROJECT, capture_output=True, text=True, check=False
    )

    assert (answer.stderr, answer.returncode) == ("", 0)
    assert int(answer.stdout) >= 8


@pytest.mark.spec("BDY-01")
def test_the_body_bounds_are_the_documented_ones() -> None:
    assert limits.MAX_CHAT_BODY_BYTES == 37_748_736
    assert limits.MAX_REPLY_BODY_BYTES == 4 * 1024 * 1024
    assert limits.MAX_BODY_BYTES == 256 * 1024


def test_every_cap_of_a_chat_request_at_once_is_within_its_body() -> None:
    images_base64_bytes = -(-25 * limits.MIB // 3) * 4
    most_separators = 20 * limits.MAX_CHAT_MESSAGE_COUNT

    assert images_base64_bytes + limits.MAX_CHAT_TEXT_BYTES < limits.MAX_CHAT_BODY_BYTES
    assert most_separators < limits.MAX_JSON_SEPARATORS


def test_a_reply_at_its_caps_is_within_its_body() -> None:
    assert limits.MAX_REASONING_BYTES * 2 + limits.KIB < limits.MAX_REPLY_BODY_BYTES


def test_a_request_outlives_its_lease_and_a_worker_its_window() -> None:
    assert limits.TEXT_JOB_LEASE_SECONDS < limits.ONLINE_SECONDS < limits.REQUEST_LIFE_SECONDS
    assert limits.CHECK_IN_WINDOW_SECONDS < limits.ONLINE_SECONDS


def test_the_bits_of_capabilities_never_move() -> None:
    assert list(Capability) == [
        "seed",
        "reasoning_effort",
        "presence_penalty",
        "frequency_penalty",
        "vision",
        "tools",
        "json_object",
        "json_schema",
        "tools_with_response_format",
        "tool_choice_enforced",
        "single_tool_call_enforced",
        "structured_output_enforced",
        "prompt_overflow_refused",
    ]


@pytest.mark.parametrize(
    "value",
    ["\0", "a\0b", ["\0"], {"a": "\0"}, {"\0": 1}, {"a": [{"b": ["c", {"d\0": None}]}]}],
)
def test_finds_a_nul_in_any_string_or_key(value: object) -> None:
    assert text.holds_nul(value)


@pytest.mark.parametrize("value", ["", "\\u0000", "␀", 0, None, True, 0.0, [], {}, {"a": ["b", {"c": 1}]}])
def test_finds_no_nul_where_there_is_none(value: object) -> None:
    assert not text.holds_nul(value)


def test_looks_for_nul_at_any_depth() -> None:
    nested: object = "\0"
    for _ in range(100_000):
        nested = [nested]

    assert text.holds_nul(nested)


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (("a",), "a"),
        (("messages", 0, "content", 1, "type"), "messages[0].content[1].type"),
        (("horde", "only", 2), "horde.only[2]"),
        ((0, "a"), "[0].a"),
    ],
)
def test_paths_read_like_code(location: tuple[str | int, ...], path: str) -> None:
    assert path_of(location) == path
