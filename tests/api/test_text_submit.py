"""A text submit queues a request under the text route's own rules, or refuses it and leaves nothing."""

from decimal import Decimal
from typing import Any

import pytest

from tests.horde import MODEL, TRACES, Horde, count_rows, one_value, text_body


@pytest.mark.spec("RTE-22")
def test_the_least_is_queued_with_the_defaults_of_text(horde: Horde) -> None:
    status, body = horde.submit_text()

    assert status == 202
    assert set(body) == {"id", "kudos", "message"}
    columns = "is_chat, prompt, submitted_prompt, params, models, n, jobs, max_length, max_context_length, slow_workers"
    assert one_value(f"SELECT row_to_json(r) FROM (SELECT {columns} FROM waiting_prompts) r") == {
        "is_chat": False,
        "prompt": "Once upon a time",
        "submitted_prompt": "Once upon a time",
        "params": {},
        "models": [],
        "n": 1,
        "jobs": 1,
        "max_length": 80,
        "max_context_length": 2048,
        "slow_workers": True,
    }
    assert one_value("SELECT (model, is_chat)::text FROM queue_rows") == '("",f)'
    assert horde.kudos(horde.requester) == Decimal(9999)


@pytest.mark.spec("MDL-21", "RTE-22", "FTR-28")
def test_a_model_nobody_knows_or_serves_is_accepted_and_waits(horde: Horde) -> None:
    status, body = horde.submit_text(models=["no/model", MODEL, "no/model"])

    assert status == 202
    assert "No online worker can serve this request now." in body["message"]
    assert one_value("SELECT array_agg(model::text ORDER BY model) FROM queue_rows") == [MODEL, "no/model"]
    assert one_value("SELECT chat_required_features FROM waiting_prompts") is None


def test_says_nothing_when_a_worker_can_serve_it(horde: Horde) -> None:
    horde.pop(chat_jobs=None, prompt_jobs=None)

    assert set(horde.submit_text(models=[MODEL])[1]) == {"id", "kudos"}


@pytest.mark.spec("MDL-22")
def test_a_worker_of_text_serves_the_model_for_text_alone(horde: Horde) -> None:
    horde.pop(chat_jobs=None, prompt_jobs=None)

    assert horde.submit()[1]["rc"] == "UnknownChatModel"
    assert horde.submit(model="elinas/chronos-70b-v2")[1]["rc"] == "NoEligibleWorker"
    assert "message" not in horde.submit_text(models=[MODEL])[1]


@pytest.mark.parametrize(
    ("params", "models", "kudos"),
    [
        # A billion parameters count 0.01 a token; C(2048) = 3.4; a generation has its burn and the request its tax.
        ({"max_length": 80}, [], (80 * 13 * 3.4 / 100 + 1) * 1 + 1),
        ({"max_length": 80, "n": 3}, [], (80 * 13 * 3.4 / 100 + 1) * 3 + 1),
        ({"max_length": 100}, [MODEL], 100 * 0.027 * 3.4 + 1 + 1),
        ({"max_length": 100, "max_context_length": 1024}, [MODEL], 100 * 0.027 * 2.2 + 1 + 1),
    ],
)
def test_tells_the_estimate_a_dry_run_gives(
    horde: Horde, params: dict[str, Any], models: list[str], kudos: float
) -> None:
    before = count_rows(*TRACES)

    quoted = horde.submit_text(params=params, models=models, dry_run=True)

    assert quoted[0] == 200
    assert quoted[1]["kudos"] == round(kudos)
    assert count_rows(*TRACES) == before
    assert horde.submit_text(params=params, models=models)[1]["kudos"] == quoted[1]["kudos"]


def test_a_dry_run_tells_what_it_would_be_run_with(horde: Horde) -> None:
    horde.pop(chat_jobs=None, prompt_jobs=None, max_context_length=8192)

    status, body = horde.submit_text(
        prompt="x" * 6000, params={"temperature": 0.5}, models=[MODEL], context_fit="grow", dry_run=True
    )

    assert (status, body["resolved"]) == (
        200,
        {
            "prompt": "x" * 6000,
            "params": {"temperature": 0.5, "max_context_length": 4096},
            "models": [MODEL],
            "style": None,
            "estimated_prompt_tokens": 2000,
            "context_fit": "grow",
        },
    )


def test_keeps_what_the_client_sent_and_nothing_else(horde: Horde) -> None:
    params = {
        "n": 2,
        "max_length": 100,
        "temperature": 1,
        "stop_sequence": ["\n"],
        "sampler_order": [6, 0, 1, 3, 4, 2, 5],
    }
    horde.submit_text(params={**params, "unknown": 1}, models=[MODEL], webhook="https://example.org/hook", unknown=[1])

    assert one_value(
        "SELECT row_to_json(r) FROM (SELECT params, n, jobs, max_length, webhook FROM waiting_prompts) r"
    ) == {
        "params": {"temperature": 1.0, "stop_sequence": ["\n"], "sampler_order": [6, 0, 1, 3, 4, 2, 5]},
        "n": 2,
        "jobs": 2,
        "max_length": 100,
        "webhook": "https://example.org/hook",
    }


PATHS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt"),
    ({"prompt": 5}, "prompt"),
    ({"params": []}, "params"),
    ({"params": {"n": 0}}, "params.n"),
    ({"params": {"n": 21}}, "params.n"),
    ({"params": {"n": True}}, "params.n"),
    ({"params": {"max_length": 15}}, "params.max_length"),
    ({"params": {"max_length": 4097}}, "params.max_length"),
    ({"params": {"max_context_length": 79}}, "params.max_context_length"),
    ({"params": {"max_context_length": 1_048_577}}, "params.max_context_length"),
    ({"params": {"temperature": 5.01}}, "params.temperature"),
    ({"params": {"temperature": "1"}}, "params.temperature"),
    ({"params": {"top_p": 0}}, "params.top_p"),
    ({"params": {"top_k": 201}}, "params.top_k"),
    ({"params": {"rep_pen": 0.9}}, "params.rep_pen"),
    ({"params": {"rep_pen_range": 4097}}, "params.rep_pen_range"),
    ({"params": {"stop_sequence": "x"}}, "params.stop_sequence"),
    ({"params": {"stop_sequence": [1]}}, "params.stop_sequence[0]"),
    ({"params": {"singleline": 1}}, "params.singleline"),
    ({"params": {"temperature": None}}, "params.temperature"),
    ({"params": {"singleline": None}}, "params.singleline"),
    ({"params": {"n": None}}, "params.n"),
    ({"params": {"sampler_order": [1] * 101}}, "params.sampler_order"),
    ({"models": "x"}, "models"),
    ({"models": [""]}, "models[0]"),
    ({"models": ["x"] * 201}, "models"),
    ({"models": ["x" * 256]}, "models[0]"),
    ({"dry_run": "false"}, "dry_run"),
    ({"webhook": "https://" + "x" * 1024}, "webhook"),
    ({"slow_workers": 0}, "slow_workers"),
]


@pytest.mark.parametrize(("changes", "path"), PATHS, ids=[str(changes)[:40] for changes, _ in PATHS])
def test_a_field_that_does_not_validate_is_named(horde: Horde, changes: dict[str, Any], path: str) -> None:
    before = count_rows(*TRACES)

    status, body = horde.submit_text(**changes)

    assert (status, body["rc"], body["message"]) == (400, "BadRequest", "Input payload validation failed")
    assert list(body["errors"]) == [path]
    assert "TextParams" not in body["errors"][path]
    assert count_rows(*TRACES) == before


@pytest.mark.parametrize("field", ["prompt", "params", "models", "workers", "dry_run", "webhook", "context_fit"])
def test_null_is_no_value(horde: Horde, field: str) -> None:
    status, body = horde.call(
        "POST", "generate/text/async", text_body() | {field: None}, api_key=horde.requester.api_key
    )

    assert (status, body["rc"]) == (400, "BadRequest")


@pytest.mark.parametrize("mode", ["truncate_oldest", "", 5, ["grow"], {}])
def test_an_unknown_mode_of_fitting_is_refused_with_those_there_are(horde: Horde, mode: object) -> None:
    assert horde.submit_text(context_fit=mode) == (
        400,
        {"message": "'context_fit' has to be one of ignore, reject, grow.", "rc": "BadRequest"},
    )


REFUSALS: list[tuple[dict[str, Any], int, str]] = [
    ({"prompt": ""}, 400, "MissingPrompt"),
    ({"prompt": "x" * 1_048_577}, 400, "BadRequest"),
    ({"prompt": "a\u0000b"}, 400, "NulByteInPayload"),
    ({"webhook": "http://example.org"}, 400, "BadRequest"),
    ({"proxied_account": "somebody"}, 400, "OnlyServiceAccountProxy"),
    ({"extra_source_images": [{"image": "x"}]}, 400, "InvalidExtraSourceImages."),
    ({"workers": ["nobody"]}, 404, "WorkerNotFound"),
    ({"workers": ["9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"]}, 404, "WorkerNotFound"),
    ({"disable_batching": True, "params": {"n": 2}}, 400, "RequiresTrust"),
    ({"params": {"max_length": 200, "max_context_length": 199}}, 400, "TokenOverflow"),
    ({"params": {"max_context_length": 80, "max_length": 81}}, 400, "TokenOverflow"),
    ({"params": {"sampler_order": [0, 1, 2, 3, 4, 5, 5]}}, 400, "MissingFullSamplerOrder"),
    ({"params": {"stop_sequence": [f"{number}" for number in range(129)]}}, 400, "TooManyStopSequences"),
    ({"params": {"stop_sequence": ["a" * 2001]}}, 400, "ExcessiveStopSequence"),
    ({"prompt": "x" * 7000, "context_fit": "reject"}, 400, "PromptExceedsContext"),
    ({"prompt": "x" * 7000, "context_fit": "grow"}, 400, "PromptExceedsContext"),
]


@pytest.mark.parametrize(
    ("changes", "status", "rc"), REFUSALS, ids=[f"{rc} {str(changes)[:30]}" for changes, _, rc in REFUSALS]
)
@pytest.mark.parametrize("is_dry_run", [False, True])
def test_a_refusal_leaves_nothing(
    horde: Horde, changes: dict[str, Any], status: int, rc: str, is_dry_run: bool
) -> None:
    before = count_rows(*TRACES)

    answered, body = horde.submit_text(dry_run=is_dry_run or None, **changes)

    assert (answered, body["rc"]) == (status, rc)
    assert count_rows(*TRACES) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"disable_batching": True},
        {"prompt": "x" * 1_048_576},
        {"models": [f"model {number}" for number in range(200)]},
        {"extra_source_images": []},
        {"params": {"max_length": 4096, "max_context_length": 4096}},
        {"style": "x", "softprompt": "y", "nsfw": False, "extra_slow_workers": True, "anything": {"a": [1]}},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_what_has_no_effect_or_is_at_its_bound_is_taken(horde: Horde, changes: dict[str, Any]) -> None:
    assert horde.submit_text(**changes)[0] == 202


def test_a_service_may_say_for_whom_it_asks(horde: Horde) -> None:
    one_value("UPDATE users SET is_service = true WHERE id = %s RETURNING 1", [horde.requester.id])

    horde.submit_text(proxied_account="somebody")

    assert one_value("SELECT proxied_account FROM waiting_prompts") == "somebody"


def test_keeps_the_first_five_named_workers(horde: Horde) -> None:
    for number in range(6):
        horde.pop(name=f"worker {number}")
    ids = [str(one_value("SELECT id FROM workers WHERE name = %s", [f"worker {number}"])) for number in range(6)]

    assert horde.submit_text(workers=[*ids, "nobody"], worker_blacklist=True)[0] == 202
    assert one_value("SELECT workers::text[] FROM waiting_prompts") == ids[:5]


ORDER: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "x" * 7000, "context_fit": "reject"}, "PromptExceedsContext"),
    ({"webhook": "http://x"}, "BadRequest"),
    ({"api_key": "nobody"}, "InvalidAPIKey"),
    ({"proxied_account": "somebody"}, "OnlyServiceAccountProxy"),
    ({"extra_source_images": [1]}, "InvalidExtraSourceImages."),
    ({"workers": ["nobody"]}, "WorkerNotFound"),
    ({"disable_batching": True, "params": {"n": 20}}, "RequiresTrust"),
    ({"params": {"n": 20}}, "TooManyPrompts"),
]


@pytest.mark.spec("ORD-20")
@pytest.mark.parametrize("place", range(len(ORDER) - 1))
def test_of_two_faults_the_earlier_in_the_documented_order_is_told(horde: Horde, place: int) -> None:
    one_value("UPDATE users SET concurrency = 5 WHERE id = %s RETURNING 1", [horde.requester.id])
    first, rc = ORDER[place]

    for second, later in ORDER[place + 1 :]:
        assert (
            horde.submit_text(
                **second,
            )[1]["rc"]
            == later
        )
        assert horde.submit_text(**{**second, **first})[1]["rc"] == rc


@pytest.mark.spec("ORD-20")
def test_text_is_sized_before_the_key_is_looked_at_and_chat_after_the_model(horde: Horde) -> None:
    too_long = "x" * 90_000

    text = horde.submit_text(prompt=too_long, context_fit="reject", api_key="nobody")
    chat = horde.submit(messages=[{"role": "user", "content": too_long}], api_key="nobody")

    assert text[1]["rc"] == "PromptExceedsContext"
    assert chat[1]["rc"] == "InvalidAPIKey"


@pytest.mark.parametrize(
    ("characters", "mode", "largest", "context"),
    [
        (5904, "reject", None, 2048),
        (5904, "grow", 4096, 2048),
        (5905, "grow", 8192, 4096),
        (5905, "grow", 3000, 3000),
        (5905, "ignore", 8192, 2048),
    ],
)
def test_grows_to_a_power_of_two_within_the_largest_context(
    horde: Horde, characters: int, mode: str, largest: int | None, context: int
) -> None:
    if largest is not None:
        horde.pop(chat_jobs=None, prompt_jobs=None, max_context_length=largest)

    status, _ = horde.submit_text(prompt="x" * characters, models=[MODEL], context_fit=mode)

    assert status == 202
    assert one_value("SELECT max_context_length FROM waiting_prompts") == context


@pytest.mark.parametrize(
    ("mode", "largest", "quoted"), [("reject", 8192, 2048), ("grow", 2048, 2048), ("grow", 1024, 2048)]
)
def test_a_prompt_that_does_not_fit_is_told_what_it_had_to_fit(
    horde: Horde, mode: str, largest: int, quoted: int
) -> None:
    horde.pop(chat_jobs=None, prompt_jobs=None, max_context_length=largest)

    status, body = horde.submit_text(prompt="x" * 5905, models=[MODEL], context_fit=mode)

    assert (status, body["rc"]) == (400, "PromptExceedsContext")
    assert body["message"].startswith("The prompt is estimated at 1969 tokens, which with max_length 80 ")
    assert f"a context of {quoted} tokens" in body["message"]


@pytest.mark.spec("BDY-10")
def test_a_body_over_4_mib_is_too_large(horde: Horde) -> None:
    for size, status in ((4 * 1024 * 1024, 400), (4 * 1024 * 1024 + 1, 413)):
        assert horde.call("POST", "generate/text/async", b" " * size, api_key=horde.requester.api_key)[0] == status


@pytest.mark.parametrize(
    ("kudos", "is_flagged", "seed"), [(0, False, 0), (10_000, False, 10_000), (10_000, True, 10), (10, True, -100)]
)
def test_begins_in_the_queue_where_its_user_stands(horde: Horde, kudos: int, is_flagged: bool, seed: int) -> None:
    one_value("UPDATE users SET is_flagged = %s WHERE id = %s RETURNING 1", [is_flagged, horde.requester.id])
    one_value("UPDATE accounts SET posted_kudos = %s WHERE user_id = %s RETURNING 1", [kudos, horde.requester.id])

    horde.submit_text()

    started = one_value("SELECT order_key + 50 * floor(extract(epoch FROM created) / 10)::bigint FROM waiting_prompts")
    assert started == seed


def test_the_first_listed_model_is_quoted(horde: Horde) -> None:
    large = "elinas/chronos-70b-v2"
    quotes = [horde.submit_text(models=models, dry_run=True)[1]["kudos"] for models in ([MODEL], [MODEL, large])]

    assert quotes[0] == quotes[1] < horde.submit_text(models=[large, MODEL], dry_run=True)[1]["kudos"]


@pytest.mark.parametrize("changes", [{"trusted_workers": True}, {"workers": "own", "worker_blacklist": True}])
def test_warns_when_the_workers_it_lets_serve_it_are_not_there(horde: Horde, changes: dict[str, Any]) -> None:
    one_value("UPDATE users SET is_trusted = false WHERE id = %s RETURNING 1", [horde.owner.id])
    horde.pop(chat_jobs=None, prompt_jobs=None)
    own = [str(one_value("SELECT id FROM workers"))]
    assert "message" not in horde.submit_text(workers=own)[1]

    answer = horde.submit_text(**changes | ({"workers": own} if "workers" in changes else {}))

    assert "No online worker can serve this request now." in answer[1]["message"]


@pytest.mark.parametrize("count", [8, 9, 200])
def test_a_worker_is_found_by_any_of_the_models(horde: Horde, count: int) -> None:
    horde.pop(chat_jobs=None, prompt_jobs=None)
    models = [*(f"org/model {number}" for number in range(count - 1)), MODEL]

    status, body = horde.submit_text(models=models)

    assert (status, "message" in body) == (202, False)
    assert horde.text_status(body["id"])[1]["eligible_workers"] == 1
    others = horde.submit_text(models=models[:-1])[1]
    assert "message" in others
    assert horde.text_status(others["id"])[1]["eligible_workers"] == 0
