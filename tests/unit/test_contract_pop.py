"""A pop is taken with its declaration, or refused with the field that is wrong."""

from math import inf, nan
from typing import Any

import pytest

from hordechat.contract import pop
from hordechat.contract.pop import NO_DECLARATION, ChatDeclaration
from hordechat.contract.refusals import InvalidPayload
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.refusals import body_of

MODEL = "demo/echo"
LIMITS: dict[str, object] = {"max_context_length": 8192, "max_length": 1024}
TEXT_POP: dict[str, Any] = {"name": "worker one", "models": [MODEL]}
CHAT_POP: dict[str, Any] = {**TEXT_POP, "chat_jobs": True, "chat_limits": LIMITS, "model_id": MODEL}
ABSENT = object()


def declare(sent: dict[str, Any], **changes: object) -> ChatDeclaration:
    body = {key: value for key, value in {**sent, **changes}.items() if value is not ABSENT}
    return pop.read_declaration(pop.parse(body))


def refuse(sent: dict[str, Any], **changes: object) -> HordeError:
    with pytest.raises(HordeError) as refused:
        declare(sent, **changes)
    return refused.value


def limits(**changes: object) -> dict[str, object]:
    return {key: value for key, value in {**LIMITS, **changes}.items() if value is not ABSENT}


def test_a_text_worker_is_taken_with_the_documented_defaults() -> None:
    assert pop.parse(TEXT_POP).model_dump(exclude_none=True) == {
        "name": "worker one",
        "models": [MODEL],
        "max_length": 512,
        "max_context_length": 2048,
        "bridge_agent": "unknown:0:unknown",
        "threads": 1,
        "nsfw": True,
        "amount": 1,
        "priority_usernames": [],
        "chat_jobs": False,
        "prompt_jobs": True,
    }


def test_ignores_keys_it_does_not_know() -> None:
    assert declare(TEXT_POP, softprompts=None, anything={}) == NO_DECLARATION


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ABSENT),
        ("name", ""),
        ("name", " \t"),
        ("name", "n" * 101),
        ("name", 1),
        ("models", ABSENT),
        ("models", []),
        ("models", ["ab"]),
        ("models", ["m" * 256]),
        ("models", MODEL),
        ("max_length", -1),
        ("max_length", 2**31),
        ("max_context_length", 2**31),
        ("max_context_length", "2048"),
        ("bridge_agent", "b" * 1001),
        ("threads", 0),
        ("threads", 51),
        ("amount", 0),
        ("amount", 21),
        ("nsfw", 1),
    ],
)
def test_refuses_a_field_of_a_wrong_type_or_range(key: str, value: object) -> None:
    error = refuse(TEXT_POP, **{key: value})

    assert error.code is ErrorCode.BAD_REQUEST
    assert [path.partition("[")[0] for path in body_of(error)["errors"]] == [key]  # type: ignore[attr-defined] # a dict


@pytest.mark.spec("DCL-12", "DCL-25", "DCL-38")
def test_keeps_known_features_and_transports_sorted_and_drops_the_others() -> None:
    declaration = declare(
        CHAT_POP,
        chat_features=["vision", "seed", "telepathy", "vision", "", "SEED"],
        image_transports=["url", "pigeon", "base64", "url"],
    )

    assert declaration.features == ("seed", "vision")
    assert declaration.image_transports == ("base64", "url")


@pytest.mark.spec("DCL-13", "DCL-24", "DCL-38")
@pytest.mark.parametrize("sent", [ABSENT, None, [], ["telepathy"]])
def test_none_recognised_is_an_empty_declaration(sent: object) -> None:
    declaration = declare(CHAT_POP, chat_features=sent, image_transports=sent)

    assert (declaration.features, declaration.image_transports) == ((), ())


@pytest.mark.spec("DCL-14", "DCL-32")
@pytest.mark.parametrize(("sent", "kept"), [(ABSENT, None), (None, None), (0, 0.0), (1, 1.0), (0.7, 0.7)])
def test_the_limits_are_two_lengths_and_an_optional_temperature(sent: object, kept: float | None) -> None:
    declaration = declare(CHAT_POP, chat_limits=limits(tools_max_temperature=sent, anything="else"))

    assert declaration == ChatDeclaration(
        accepts_chat_jobs=True,
        features=(),
        max_context_length=8192,
        max_length=1024,
        tools_max_temperature=kept,
        model_id=MODEL,
        image_transports=(),
    )


@pytest.mark.spec("DCL-21", "DCL-30")
@pytest.mark.parametrize("models", [["other"], [MODEL, "other", MODEL], [MODEL + " "], ["DEMO/ECHO"]])
def test_the_model_has_to_be_exactly_one_of_the_pops(models: list[str]) -> None:
    error = refuse(CHAT_POP, models=models)

    assert (error.code, error.message) == (
        ErrorCode.CHAT_DECLARATION_INVALID,
        "'model_id' has to be exactly one of 'models'.",
    )


@pytest.mark.spec("DCL-22")
@pytest.mark.parametrize("model", ["a/b:c d", "../etc", "modèle 模型", "%s{}'\"\\", "   "])
def test_no_character_of_a_models_name_is_reserved(model: str) -> None:
    assert declare(CHAT_POP, models=["first", model], model_id=model).model_id == model


@pytest.mark.spec("DCL-27", "DCL-28", "DCL-31", "DCL-35")
@pytest.mark.parametrize(
    ("sent", "changes", "complaint"),
    [
        (CHAT_POP, {"chat_limits": ABSENT}, "'chat_limits' is required when 'chat_jobs' is true."),
        (CHAT_POP, {"chat_limits": None}, "'chat_limits' is required when 'chat_jobs' is true."),
        (CHAT_POP, {"model_id": ABSENT}, "'model_id' is required when 'chat_jobs' is true."),
        (CHAT_POP, {"model_id": None}, "'model_id' is required when 'chat_jobs' is true."),
        (TEXT_POP, {"prompt_jobs": False}, "'prompt_jobs' can be false only when 'chat_jobs' is true."),
        (
            TEXT_POP,
            {"prompt_jobs": False, "chat_jobs": False},
            "'prompt_jobs' can be false only when 'chat_jobs' is true.",
        ),
    ],
)
def test_refuses_an_incomplete_declaration_with_its_field(
    sent: dict[str, Any], changes: dict[str, object], complaint: str
) -> None:
    error = refuse(sent, **changes)

    assert (error.code, error.message) == (ErrorCode.CHAT_DECLARATION_INVALID, complaint)


@pytest.mark.spec("DCL-14", "DCL-29", "DCL-32", "DCL-33", "DCL-35")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_context_length", ABSENT),
        ("max_context_length", None),
        ("max_context_length", 0),
        ("max_context_length", True),
        ("max_context_length", 8192.0),
        ("max_length", ABSENT),
        ("max_length", 0),
        ("max_length", -1),
        ("max_length", "1024"),
        ("max_length", 2**31),
        ("tools_max_temperature", -0.1),
        ("tools_max_temperature", nan),
        ("tools_max_temperature", inf),
        ("tools_max_temperature", True),
        ("tools_max_temperature", "1"),
        ("tools_max_temperature", [[]]),
    ],
)
def test_refuses_a_limit_outside_its_range_with_its_path(key: str, value: object) -> None:
    error = refuse(CHAT_POP, chat_limits=limits(**{key: value}))

    assert error.code is ErrorCode.CHAT_DECLARATION_INVALID
    assert error.message.startswith(f"'chat_limits.{key}' has to be ")


@pytest.mark.spec("DCL-34")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("chat_jobs", "yes"),
        ("chat_jobs", 1),
        ("prompt_jobs", "no"),
        ("chat_features", "seed"),
        ("chat_features", [1]),
        ("chat_features", {"seed": True}),
        ("chat_limits", [8192, 1024]),
        ("chat_limits", "8192"),
        ("model_id", 1),
        ("model_id", [MODEL]),
        ("image_transports", "url"),
        ("image_transports", [None]),
    ],
)
def test_refuses_a_field_of_another_json_type_like_any_other_of_the_pop(key: str, value: object) -> None:
    error = refuse(CHAT_POP, **{key: value})

    assert error.code is ErrorCode.BAD_REQUEST
    assert [path.partition("[")[0] for path in body_of(error)["errors"]] == [key]  # type: ignore[attr-defined] # a dict


@pytest.mark.spec("DCL-37")
@pytest.mark.parametrize("chat_jobs", [ABSENT, False])
def test_without_chat_jobs_the_other_fields_are_neither_judged_nor_kept(chat_jobs: object) -> None:
    declaration = declare(
        TEXT_POP,
        chat_jobs=chat_jobs,
        chat_features="seed",
        chat_limits=[-1],
        model_id={"a": 1},
        image_transports=5,
    )

    assert declaration == ChatDeclaration(
        accepts_chat_jobs=False,
        accepts_prompt_jobs=True,
        features=None,
        max_context_length=None,
        max_length=None,
        tools_max_temperature=None,
        model_id=None,
        image_transports=None,
    )


def test_deeply_nested_values_are_judged_without_recursion() -> None:
    nested: object = 1
    for _ in range(1000):
        nested = [nested]

    for key in pop.PopBody.model_fields:
        assert refuse(CHAT_POP, **{key: nested}).code is ErrorCode.BAD_REQUEST
    assert declare(CHAT_POP, chat_limits=limits(more=nested)).max_length == 1024


@pytest.mark.parametrize("key", ["models", "chat_features", "image_transports"])
def test_a_hundred_thousand_faults_cost_no_more_than_the_first(key: str) -> None:
    assert len(repr(body_of(refuse(CHAT_POP, **{key: [1] * 100_000})))) < 300


@pytest.mark.parametrize("name", ["\x1c", "a\nb", "a\x1bb", " \t ", ""])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(InvalidPayload):
        pop.parse({"name": name, "models": ["a/b"]})


def test_a_name_is_trimmed() -> None:
    assert pop.parse({"name": "  my worker ", "models": ["a/b"]}).name == "my worker"
