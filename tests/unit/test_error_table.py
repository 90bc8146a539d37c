"""Each return code has one status, one class at least, and its place on the page of errors; each refusal reads well."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest

from hordechat.contract.refusals import InvalidPayload
from hordechat.errors import ErrorCode, HordeError
from hordechat.http import error_catalogue
from hordechat.http.error_catalogue import CATALOGUE
from hordechat.http.error_status import STATUS_BY_CODE
from hordechat.http.refusals import UnexpectedError, body_of, status_of
from tests.spec.rows import PROJECT

ERRORS_OF_APPS = ("requests_app.errors", "workers_app.errors", "billing_app.errors")

SAMPLES: dict[str, object] = {
    "errors": {"a": "Field required."},
    "models": ["a", "b"],
    "generation_id": UUID(int=1),
    "limit_bytes": 1,
    "prompt_tokens": 1,
    "max_length": 1,
    "context": 1,
    "lease_seconds": 150,
    "seconds": 60,
    "allowance": 512,
    "owners_words": "Back on Monday.",
}
"""A value for each parameter of a refusal that is not a plain string."""

FIXED_MESSAGES = {InvalidPayload: "Input payload validation failed", UnexpectedError: "Internal Server Error"}
"""Messages deployed clients know word for word."""


def list_refusals() -> list[type[HordeError]]:
    for package in ("hordechat.contract", "hordechat.http"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    for name in ERRORS_OF_APPS:
        importlib.import_module(name)
    found, pending = [], [HordeError]
    while pending:
        for refusal in pending.pop().__subclasses__():
            found.append(refusal)
            pending.append(refusal)
    return found


REFUSALS = list_refusals()


def make(refusal: type[HordeError]) -> HordeError:
    parameters = inspect.signature(refusal).parameters.values()
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    values: dict[str, Any] = {
        each.name: "A sample." if each.annotation is str else SAMPLES.get(each.name, "sample") for each in required
    }
    arguments = [values.pop(each.name) for each in required if each.kind is not each.KEYWORD_ONLY]
    return refusal(*arguments, **values)


def test_every_code_has_a_status_and_every_status_a_code() -> None:
    assert set(STATUS_BY_CODE) == set(ErrorCode)


def test_every_status_is_a_refusal() -> None:
    assert [code for code, status in STATUS_BY_CODE.items() if not 400 <= status < 600] == []


def test_every_code_has_a_class_that_raises_it() -> None:
    assert {refusal.code for refusal in REFUSALS} == set(ErrorCode)


def test_only_the_known_files_declare_refusals() -> None:
    outside = [
        refusal.__module__
        for refusal in REFUSALS
        if not refusal.__module__.startswith(("hordechat.contract.", "hordechat.http."))
        and refusal.__module__ not in ERRORS_OF_APPS
    ]

    assert outside == []


@pytest.mark.spec("RTE-23")
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.__name__)
def test_every_refusal_becomes_a_body_with_a_whole_sentence_and_its_code(refusal: type[HordeError]) -> None:
    error = make(refusal)

    assert status_of(error) is STATUS_BY_CODE[refusal.code]
    assert body_of(error) == {"message": error.message, "rc": refusal.code.value, **error.extra}
    if refusal in FIXED_MESSAGES:
        assert error.message == FIXED_MESSAGES[refusal]
    else:
        assert error.message.endswith(".")
        assert not error.message.endswith("..")


def test_every_code_has_a_meaning_and_a_remedy() -> None:
    assert set(CATALOGUE) == set(ErrorCode)
    for entry in CATALOGUE.values():
        assert entry.meaning.endswith(".")
        assert entry.remedy.endswith(".")


def test_the_page_of_errors_is_up_to_date() -> None:
    assert error_catalogue.PAGE.path.read_text(encoding="utf-8") == error_catalogue.render()


@pytest.mark.spec("RTE-24")
@pytest.mark.parametrize(
    "code",
    [
        "RequestTooLarge",
        "UnknownChatModel",
        "NoEligibleWorker",
        "OperationKeyConflict",
        "ChatAdmissionDisabled",
        "UnsupportedChatParameter",
        "ChatRequestConflict",
        "ChatKudosCapExceeded",
        "ChatImageStorageUnavailable",
        "SourceImageUrlRefused",
        "PromptExceedsContext",
    ],
)
def test_the_codes_of_chat_are_published(code: str) -> None:
    assert f"\n## {code}\n" in error_catalogue.PAGE.path.read_text(encoding="utf-8")


def test_the_page_has_a_section_of_each_codes_own_name() -> None:
    page = error_catalogue.PAGE.path.read_text(encoding="utf-8")

    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == sorted(ErrorCode)


def test_the_command_checks_the_page() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "hordechat.http.error_catalogue", "--check"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stderr) == (0, "")
