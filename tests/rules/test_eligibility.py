"""Which worker may take which request, and why not: a table of one change each."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from hordechat.contract.pop import ChatDeclaration
from hordechat.contract.vocabulary import Capability
from workers_app.rules.capabilities import mask_of
from workers_app.rules.eligibility import RefusalReason, RequestNeeds, WorkerSnapshot, find_refusal

ID = UUID(int=7)
MODEL = "org/model"
DECLARED = ChatDeclaration(
    accepts_chat_jobs=True,
    accepts_prompt_jobs=True,
    features=("tools", "vision"),
    max_context_length=4096,
    max_length=1200,
    tools_max_temperature=1.0,
    model_id=MODEL,
    image_transports=("url",),
)
WORKER = WorkerSnapshot(
    id=ID,
    owner_id=1,
    is_owner_trusted=True,
    is_in_maintenance=False,
    is_backend_validated=True,
    is_slow=False,
    speed=None,
    models=(MODEL, "org/other"),
    max_length=512,
    max_context_length=2048,
    declaration=DECLARED,
    feature_mask=mask_of(("tools", "vision")),
)
CHAT = RequestNeeds(
    user_id=2,
    is_chat=True,
    models=(MODEL, "org/third"),
    feature_mask=mask_of(("tools",)),
    max_length=1200,
    max_context_length=4096,
    tools_temperature=1.0,
    workers=(),
    worker_blacklist=False,
    trusted_workers=True,
    validated_backends=True,
    slow_workers=False,
)
TEXT = replace(
    CHAT, is_chat=False, models=("org/other",), feature_mask=0, max_length=512, max_context_length=2048,
    tools_temperature=None,
)  # fmt: skip


def declares(**changes: object) -> WorkerSnapshot:
    return replace(WORKER, declaration=replace(DECLARED, **changes))  # type: ignore[arg-type] # values of each field


@pytest.mark.spec("ELG-01", "ELG-13", "DCL-18", "DCL-19", "TMP-07", "SPD-04")
@pytest.mark.parametrize("request_needs", [CHAT, TEXT], ids=["chat", "text"])
def test_a_request_every_rule_lets_pass_is_taken(request_needs: RequestNeeds) -> None:
    assert find_refusal(WORKER, request_needs) is None


@pytest.mark.parametrize(
    ("worker", "request_needs", "reason"),
    [
        pytest.param(replace(WORKER, is_in_maintenance=True), CHAT, "maintenance"),
        pytest.param(replace(WORKER, is_in_maintenance=True), replace(CHAT, user_id=1), None),
        pytest.param(replace(WORKER, is_owner_trusted=False), CHAT, "untrusted", marks=pytest.mark.spec("ELG-17")),
        pytest.param(replace(WORKER, is_owner_trusted=False), TEXT, "untrusted"),
        pytest.param(replace(WORKER, is_owner_trusted=False), replace(CHAT, trusted_workers=False), None),
        pytest.param(WORKER, replace(CHAT, workers=(uuid4(),)), "worker_id", marks=pytest.mark.spec("ELG-16")),
        pytest.param(WORKER, replace(CHAT, workers=(uuid4(), ID)), None, marks=pytest.mark.spec("HOP-01")),
        pytest.param(
            WORKER, replace(CHAT, workers=(ID,), worker_blacklist=True), "worker_id", marks=pytest.mark.spec("HOP-02")
        ),
        pytest.param(WORKER, replace(CHAT, workers=(uuid4(),), worker_blacklist=True), None),
        pytest.param(
            replace(WORKER, is_backend_validated=False), CHAT, "bridge_version", marks=pytest.mark.spec("ELG-18")
        ),
        pytest.param(replace(WORKER, is_backend_validated=False), TEXT, "bridge_version"),
        pytest.param(replace(WORKER, is_slow=True), CHAT, "performance", marks=pytest.mark.spec("ELG-19")),
        pytest.param(replace(WORKER, is_slow=True), replace(CHAT, slow_workers=True), None),
        pytest.param(declares(accepts_chat_jobs=False), CHAT, "chat_jobs", marks=pytest.mark.spec("ELG-03")),
        pytest.param(
            WORKER, replace(CHAT, models=("org/other",)), "chat_model", marks=pytest.mark.spec("ELG-04", "ELG-05")
        ),
        pytest.param(
            WORKER,
            replace(CHAT, feature_mask=mask_of(("tools", "seed"))),
            "chat_features",
            marks=pytest.mark.spec("ELG-06"),
        ),
        pytest.param(
            declares(image_transports=("messages_url",)),
            replace(CHAT, feature_mask=mask_of(("vision",))),
            "image_transports",
            marks=pytest.mark.spec("ELG-07", "FTR-12", "DCL-26"),
        ),
        pytest.param(
            declares(image_transports=("base64", "messages_url")),
            replace(CHAT, feature_mask=mask_of(("vision",))),
            None,
        ),
        pytest.param(
            WORKER, replace(CHAT, max_context_length=4097), "max_context_length", marks=pytest.mark.spec("ELG-11")
        ),
        pytest.param(WORKER, replace(CHAT, max_length=1201), "max_length", marks=pytest.mark.spec("ELG-12")),
        pytest.param(
            WORKER,
            replace(CHAT, tools_temperature=1.01),
            "tools_max_temperature",
            marks=pytest.mark.spec("ELG-14", "TMP-06", "TMP-01", "TMP-08"),
        ),
        pytest.param(WORKER, replace(CHAT, tools_temperature=None), None, marks=pytest.mark.spec("TMP-10")),
        pytest.param(
            declares(tools_max_temperature=None),
            replace(CHAT, tools_temperature=2.0),
            None,
            marks=pytest.mark.spec("TMP-09"),
        ),
        pytest.param(
            declares(max_length=9999),
            replace(CHAT, max_length=1201),
            "lease_speed",
            marks=pytest.mark.spec("SPD-01", "SPD-03", "SPD-04", "SPD-07"),
        ),
        pytest.param(
            replace(WORKER, speed=10.0), replace(CHAT, max_length=1200), None, marks=pytest.mark.spec("SPD-02")
        ),
        pytest.param(replace(WORKER, speed=9.9), replace(CHAT, max_length=1200), "lease_speed"),
        pytest.param(replace(WORKER, speed=0.1), TEXT, None, marks=pytest.mark.spec("SPD-10")),
        pytest.param(declares(accepts_prompt_jobs=False), TEXT, "models", marks=pytest.mark.spec("ELG-25", "DCL-09")),
        pytest.param(WORKER, replace(TEXT, models=("org/third",)), "models"),
        pytest.param(WORKER, replace(TEXT, models=()), None),
        pytest.param(WORKER, replace(TEXT, max_context_length=2049), "max_context_length"),
        pytest.param(WORKER, replace(TEXT, max_length=513), "max_length"),
    ],
)
def test_one_rule_that_fails_is_the_reason(
    worker: WorkerSnapshot, request_needs: RequestNeeds, reason: str | None
) -> None:
    assert find_refusal(worker, request_needs) == reason


@pytest.mark.spec("ELG-26")
def test_of_several_reasons_the_first_in_the_documented_order_is_told() -> None:
    worst = replace(
        CHAT,
        models=("org/other",),
        feature_mask=mask_of(Capability),
        max_context_length=9999,
        max_length=9999,
        tools_temperature=2.0,
    )
    worker = declares(accepts_chat_jobs=False, image_transports=(), max_length=5000)
    told: list[str] = []
    for mend in (
        {},
        {"worker": replace(worker, declaration=replace(worker.declaration, accepts_chat_jobs=True))},
        {"models": (MODEL,)},
        {"feature_mask": mask_of(("vision",))},
        {"feature_mask": 0},
        {"max_context_length": 4096},
        {"max_length": 5000},
        {"tools_temperature": None},
        {"max_length": 1200},
    ):
        worker = mend.pop("worker", worker)  # type: ignore[assignment] # one value of its own kind
        worst = replace(worst, **mend)
        told.append(str(find_refusal(worker, worst)))

    assert told == [
        "chat_jobs",
        "chat_model",
        "chat_features",
        "image_transports",
        "max_context_length",
        "max_length",
        "tools_max_temperature",
        "lease_speed",
        "None",
    ]


def test_vision_counts_for_the_queue_only_beside_a_transport() -> None:
    assert WORKER.covered_mask == mask_of(("tools", "vision"))
    assert declares(image_transports=("messages_url",)).covered_mask == mask_of(("tools",))
    assert declares(image_transports=None).covered_mask == mask_of(("tools",))


def test_every_reason_can_be_given() -> None:
    assert {reason.value for reason in RefusalReason} >= {"chat_jobs", "lease_speed", "worker_id"}
