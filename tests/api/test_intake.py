"""The documented order of a chat submission, step by step, and what a request keeps of what was sent."""

import socket
from decimal import Decimal
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import REGISTRY
from pytest_django import Settings

from billing_app.rules import pricing
from billing_app.rules.pricing import PricedGeneration
from hordechat.contract import chat
from hordechat.errors import HordeError
from hordechat.infra import address_timeouts, clock
from requests_app.services import intake, prompt_filters
from tests.horde import MODEL, TRACES, Horde, chat_body, count_rows, one_value

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"
LARGE = "elinas/chronos-70b-v2"
TOO_LONG = [{"role": "user", "content": "x" * 90_000}]
STOPS = ["s" * 2001]

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
FORMAT = {"type": "json_schema", "json_schema": {"strict": True, "name": "a", "schema": {
    "type": "object", "properties": {}, "required": [], "additionalProperties": False,
}}}  # fmt: skip


def admit(site: Horde, /, **changes: Any) -> intake.Accepted | intake.Repeated | intake.Quoted:
    """Submit below the wire, which refuses by name what no worker is handed yet."""
    return intake.submit_chat(
        api_key=site.requester.api_key,
        submission=chat.parse(chat_body(**changes)),
        address=None,
        client_agent="test",
        now=clock.now(),
    )


def row(*, without: str = "id,created,expiry,order_key") -> dict[str, Any]:
    """Return the one request there is, as JSON, but for what differs from one to the next."""
    stored = one_value(f"SELECT to_jsonb(r) - '{{{without}}}'::text[] FROM waiting_prompts r")
    found: dict[str, Any] = orjson.loads(stored) if isinstance(stored, str) else stored
    return found


def forget(horde: Horde) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM queue_rows")
        cursor.execute("DELETE FROM waiting_prompts")


class TestTheOrder:
    """Of two faults the one of the earlier step is told."""

    @pytest.mark.spec("ORD-01", "ORD-24")
    def test_the_size_comes_before_the_syntax(self, horde: Horde) -> None:
        assert horde.submit(b"{" * (36 * 1024 * 1024 + 1))[1]["rc"] == "RequestTooLarge"

    @pytest.mark.spec("ORD-29")
    def test_ranges_come_before_the_switch_the_key_and_the_model_and_whole_params_after(
        self, horde: Horde, settings: Settings
    ) -> None:
        unknown: dict[str, Any] = {"model": "no/model", "api_key": "nobody"}
        assert horde.submit(temperature=6, **unknown)[1]["rc"] == "BadRequest"
        assert horde.submit(stop=STOPS, **unknown)[1]["rc"] == "InvalidAPIKey"
        assert horde.submit(stop=STOPS, model="no/model")[1]["rc"] == "UnknownChatModel"
        settings.HORDE = settings.HORDE.model_copy(update={"chat_admission_enabled": False})
        assert horde.submit(temperature=6)[1]["rc"] == "BadRequest"
        assert horde.submit(stop=STOPS)[1]["rc"] == "ChatAdmissionDisabled"

    @pytest.mark.spec("ORD-09")
    @pytest.mark.parametrize(
        ("stop", "rc"), [(STOPS, "ExcessiveStopSequence"), ([str(n) for n in range(129)], "TooManyStopSequences")]
    )
    @pytest.mark.parametrize("is_dry_run", [False, True])
    def test_whole_params_are_judged_after_the_context_and_before_anything_is_written(
        self, horde: Horde, stop: list[str], rc: str, is_dry_run: bool
    ) -> None:
        horde.pop()
        before = count_rows(*TRACES)

        assert horde.submit(stop=stop, messages=TOO_LONG)[1]["rc"] == "PromptExceedsContext"
        assert horde.submit(stop=stop, horde={"max_kudos": 1, "dry_run": is_dry_run})[1]["rc"] == rc
        assert count_rows(*TRACES) == before

    @pytest.mark.spec("ORD-06", "ORD-05")
    @pytest.mark.parametrize(
        ("rc", "cause"),
        [
            ("MaintenanceMode", "INSERT INTO site_modes (maintenance) VALUES (true) RETURNING 1"),
            ("InvalidAPIKey", "UPDATE api_keys SET revoked_at = now() RETURNING 1"),
            ("DeletedUser", "UPDATE users SET is_deleted = true WHERE id > 0 RETURNING 1"),
            ("TooManyPrompts", "UPDATE users SET concurrency = 0 RETURNING 1"),
            ("TimeoutIP", None),
            ("CorruptPrompt", "UPDATE users SET is_flagged = true WHERE id > 0 RETURNING 1"),
        ],
    )
    def test_every_shared_check_comes_before_the_model(self, horde: Horde, rc: str, cause: str | None) -> None:
        horde.pop()
        # What one text may become in all is 1 MiB; this is more.
        prompt_filters.add(regex="child", replacement="a" * 255, now=clock.now())
        messages = [{"role": "user", "content": "child " * 5000}]
        if cause is None:
            address_timeouts.put("127.0.0.1", seconds=60, now=clock.now())
        else:
            one_value(cause)
        try:
            assert horde.submit(model="no/model", messages=messages)[1]["rc"] == rc
        finally:
            address_timeouts.remove("127.0.0.1")

    @pytest.mark.spec("ORD-30")
    @pytest.mark.parametrize("key", ["only", "ignore"])
    @pytest.mark.parametrize("worker", ["x", str(uuid4())], ids=["no id", "nobody's id"])
    def test_a_worker_nobody_has_is_refused_before_the_model(self, horde: Horde, key: str, worker: str) -> None:
        horde.pop()
        own = str(one_value("SELECT id FROM workers"))
        before = count_rows(*TRACES)

        with pytest.raises(HordeError) as refused:
            admit(horde, model="no/model", horde={key: [own, worker]})

        assert refused.value.code == "WorkerNotFound"
        assert worker in refused.value.message
        assert count_rows(*TRACES) == before
        one_value("UPDATE workers SET last_check_in = now() - interval '1 day' RETURNING 1")
        with pytest.raises(HordeError) as refused:
            admit(horde, model="no/model", horde={key: [own]})
        assert refused.value.code == "UnknownChatModel", "a worker that is offline is known"

    @pytest.mark.spec("ORD-07", "ORD-08")
    def test_the_length_is_lowered_after_the_model_was_found_and_before_the_context_is_sized(
        self, horde: Horde
    ) -> None:
        # 5,400 characters are 1,805 tokens: with 240 of output they fit 2,048, with 4,000 they do not.
        messages = [{"role": "user", "content": "x" * 5400}]
        asked: dict[str, Any] = {"messages": messages, "max_tokens": 4000, "horde": {"context_fit": "reject"}}
        assert horde.submit(**asked)[1]["rc"] == "UnknownChatModel"
        assert horde.submit(**asked | {"model": LARGE})[1]["rc"] == "NoEligibleWorker"
        horde.pop(chat_limits={"max_context_length": 2048, "max_length": 240})

        assert horde.submit(**asked)[0] == 202
        assert horde.submit(**asked | {"messages": [{"role": "user", "content": "x" * 5500}]})[1]["rc"] == (
            "PromptExceedsContext"
        )

    @pytest.mark.spec("OPK-42")
    def test_a_claimed_key_is_looked_up_after_the_body_and_before_the_shared_checks(self, horde: Horde) -> None:
        horde.pop()
        options = {"operation_key": KEY}
        first = horde.submit(horde=options)[1]
        one_value("UPDATE users SET concurrency = 0, is_deleted = true WHERE id > 0 RETURNING 1")
        address_timeouts.put("127.0.0.1", seconds=60, now=clock.now())
        try:
            assert horde.submit(horde=options) == (200, first)
            assert horde.submit(horde=options, max_tokens=1)[1]["rc"] == "BadRequest"
        finally:
            address_timeouts.remove("127.0.0.1")


class TestModels:
    """Which models a request may name."""

    @pytest.mark.spec("MDL-17")
    def test_one_unknown_model_refuses_the_whole_list(self, horde: Horde) -> None:
        horde.pop()
        before = count_rows(*TRACES)

        assert horde.submit(model=None, models=[MODEL, "no/model"]) == (
            404,
            {"message": "'models[1]' names an unknown model: 'no/model'.", "rc": "UnknownChatModel"},
        )
        assert count_rows(*TRACES) == before

    @pytest.mark.spec("MDL-24")
    def test_a_list_of_one_is_told_as_one(self, horde: Horde) -> None:
        assert horde.submit(model=None, models=[LARGE])[1]["message"] == (
            f"No worker is currently serving the model '{LARGE}'."
        )

    @pytest.mark.spec("MDL-06", "MDL-01")
    def test_the_workers_are_asked_only_about_models_the_reference_lacks(self, horde: Horde) -> None:
        horde.pop(models=[LARGE], model_id=LARGE)
        horde.pop(name="worker two")

        with CaptureQueriesContext(connection) as captured:
            assert horde.submit(model=None, models=[LARGE, MODEL])[0] == 202

        [asked] = [query["sql"] for query in captured if query["sql"].startswith("-- chat_fleet")]
        assert f"chat_model_id = ANY('{{{MODEL}}}'::varchar[])\n           )" in asked, "which of these is declared"
        assert f"chat_model_id = ANY('{{{LARGE},{MODEL}}}'::varchar[])" in asked, "who serves these"


class TestWhatIsKept:
    """What the row holds of a submission, beside its messages."""

    @pytest.mark.spec("HOP-10", "FTR-27")
    @pytest.mark.parametrize("conformance", ["strict", "best_effort"])
    def test_the_conformance(self, horde: Horde, conformance: str) -> None:
        horde.pop()
        admit(horde, horde={"conformance": conformance})

        assert row()["chat_conformance"] == conformance

    @pytest.mark.spec("FTR-25", "FTR-28")
    @pytest.mark.parametrize(
        ("changes", "needs"),
        [
            ({"horde": {"conformance": "best_effort"}}, []),
            ({}, ["prompt_overflow_refused"]),
            (
                {"seed": 1, "tools": [TOOL], "response_format": FORMAT, "frequency_penalty": 1},
                [
                    "frequency_penalty",
                    "json_schema",
                    "prompt_overflow_refused",
                    "seed",
                    "structured_output_enforced",
                    "tools",
                    "tools_with_response_format",
                ],
            ),
        ],
    )
    def test_the_needs_sorted(self, horde: Horde, changes: dict[str, Any], needs: list[str]) -> None:
        horde.pop()
        admit(horde, **changes)

        assert row()["chat_required_features"] == needs
        assert row()["feature_mask"] == one_value("SELECT feature_mask FROM queue_rows")

    @pytest.mark.spec("TLS-28")
    def test_tools_and_formats_in_the_shape_they_were_sent(self, horde: Horde) -> None:
        horde.pop()
        choice = {"type": "function", "function": {"name": "look"}}
        admit(horde, tools=[TOOL], tool_choice=choice, parallel_tool_calls=False, response_format=FORMAT, stream=True)

        assert row()["chat_extras"] == {
            "tools": [TOOL],
            "tool_choice": choice,
            "parallel_tool_calls": False,
            "response_format": FORMAT,
            "stream_progress": True,
        }
        assert '"json_schema": {"name"' in one_value("SELECT chat_extras::text FROM waiting_prompts")

    @pytest.mark.spec("TLS-31")
    @pytest.mark.parametrize("changes", [{}, {"tools": [], "response_format": {"type": "text"}, "stream": False}])
    def test_no_extras_where_none_apply(self, horde: Horde, changes: dict[str, Any]) -> None:
        horde.pop()
        horde.submit(**changes)

        assert one_value("SELECT chat_extras IS NULL FROM waiting_prompts") is True

    @pytest.mark.spec("HOP-15", "HOP-16", "HOP-18", "HOP-19", "HOP-29")
    @pytest.mark.parametrize(
        "options",
        [
            {"openai_guards": True},
            {"availability_mode": "fail_fast"},
            {"include_reasoning": False},
            {"max_kudos": 12_345},
        ],
        ids=lambda options: next(iter(options)),
    )
    def test_nothing_of_options_about_the_handling(self, horde: Horde, options: dict[str, Any]) -> None:
        horde.pop()
        assert horde.submit()[0] == 202
        plain = row()
        forget(horde)

        assert horde.submit(horde=options)[0] == 202

        assert row() == plain

    @pytest.mark.spec("CTX-18")
    def test_what_was_changed_of_its_sizes(self, horde: Horde) -> None:
        horde.pop(chat_limits={"max_context_length": 4096, "max_length": 100})
        horde.submit()
        assert one_value("SELECT context_adjustments IS NULL FROM waiting_prompts") is True
        forget(horde)

        horde.submit(max_tokens=5000, messages=[{"role": "user", "content": "x" * 9000}])

        assert row()["context_adjustments"] == [
            {"from": 5000, "to": 100, "reason": "worker_max_length"},
            {"from": 2048, "to": 4096, "reason": "grow"},
        ]
        assert (row()["max_length"], row()["max_context_length"]) == (100, 4096)
        definition = "SELECT data_type FROM information_schema.columns WHERE table_name = 'waiting_prompts'"
        assert one_value(f"{definition} AND column_name = 'context_adjustments'") == "jsonb"

    @pytest.mark.spec("FLT-28", "FLT-19")
    def test_the_text_as_it_was_sent(self, horde: Horde) -> None:
        horde.pop(chat_limits={"max_context_length": 2048, "max_length": 1024})
        sent = [{"role": "user", "content": "x" * 6000}, {"role": "user", "content": "Now"}]

        horde.submit(messages=sent)

        assert row()["submitted_prompt"] == "user: " + "x" * 6000 + "\nuser: Now"
        assert row()["prompt"] == "user: Now"


@pytest.mark.spec("OPK-44")
def test_a_repeat_is_known_though_the_workers_changed(horde: Horde) -> None:
    horde.pop(chat_limits={"max_context_length": 4096, "max_length": 100})
    asked: dict[str, Any] = {
        "max_tokens": 5000,
        "messages": [{"role": "user", "content": "x" * 9000}],
        "horde": {"operation_key": KEY},
    }
    first = horde.submit(**asked)
    assert first[0] == 202
    horde.pop(chat_limits={"max_context_length": 16_384, "max_length": 2000})

    assert horde.submit(**asked) == (200, first[1])


class TestTheEstimate:
    """By the flattened text, for the sizes the request will run with."""

    @pytest.mark.spec("HOP-28")
    def test_the_cap_is_held_against_the_full_length(self, horde: Horde) -> None:
        horde.pop()
        quote = horde.submit(max_tokens=1000, horde={"dry_run": True})[1]["kudos"]

        refused = horde.submit(max_tokens=1000, horde={"max_kudos": int(quote) - 1})
        request_id = horde.submit(max_tokens=1000, horde={"max_kudos": int(quote)})[1]["id"]
        horde.reply(horde.pop()[1]["id"])

        assert refused[1]["rc"] == "ChatKudosCapExceeded"
        assert horde.status(request_id)[1]["kudos"] < quote - 1, "a short reply costs less than the refused cap"

    @pytest.mark.spec("HOP-43")
    def test_the_cap_is_held_against_the_rounded_number_with_the_tax_of_images(self, horde: Horde) -> None:
        horde.pop()
        image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
        messages = [{"role": "user", "content": [image, image]}]
        quote = horde.submit(messages=messages, horde={"dry_run": True})[1]["kudos"]
        plain = horde.submit(horde={"dry_run": True})[1]["kudos"]
        assert (quote, plain) == (18, 8), "7.88 rounded, and five for each image"

        def capped(kudos: int) -> Any:
            return horde.submit(messages=messages, horde={"dry_run": True, "max_kudos": kudos})

        assert capped(17)[1]["message"] == (
            "This request is estimated to cost 18 kudos at current pricing, above its max_kudos of 17."
        )
        assert capped(18)[0] == 200

    @pytest.mark.spec("FLT-10", "FLT-13", "CTX-10")
    def test_sizes_context_and_price_go_by_the_same_estimate(self, horde: Horde) -> None:
        horde.pop(chat_limits={"max_context_length": 65_536, "max_length": 100})
        # "user: " and 12,282 characters are 4,096 tokens; with 100 of output the context has to grow to 8,192.
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": "x" * 12_282}], "max_tokens": 5000}

        quoted = horde.submit(**asked, horde={"dry_run": True})[1]
        queued = horde.submit(**asked)[1]

        assert quoted["estimated_prompt_tokens"] == 4096
        assert row()["max_context_length"] == 8192
        assert row()["prompt"] == "user: " + "x" * 12_282
        # 100 x 0.027 x C(8192) = 11.848 is 31.99; with burn and tax 33.99.
        assert quoted["kudos"] == queued["kudos"] == 34

    @pytest.mark.spec("FLT-10")
    def test_the_charge_goes_by_the_flattened_prompt(self, horde: Horde) -> None:
        horde.pop()
        # Both texts are 600 characters; flattened, the two messages are 10 more, which makes three tokens.
        one = [{"role": "user", "content": "x" * 600}]
        two = [{"role": "system", "content": "x" * 300}, {"role": "user", "content": "x" * 300}]

        charges = [self._charge(horde, messages) for messages in (one, two)]

        assert charges == [self._charge_of(len("user: ") + 600), self._charge_of(len("system: \nuser: ") + 600)]
        assert charges[0] != charges[1]

    def _charge(self, horde: Horde, messages: list[dict[str, str]]) -> Decimal:
        request_id = horde.submit(messages=messages, max_tokens=512)[1]["id"]
        content = {"role": "assistant", "content": "y" * 2000}
        assert horde.reply(horde.pop()[1]["id"], message=content)[0] == 200
        return Decimal(str(horde.status(request_id)[1]["kudos"])) - pricing.tax()

    def _charge_of(self, prompt_characters: int) -> Decimal:
        return pricing.settle(
            PricedGeneration(
                model=None,
                reply_characters=2000,
                prompt_characters=prompt_characters,
                max_length=512,
                is_backend_validated=False,
                is_owner_trusted=True,
            )
        ).charge


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"{name}_total", labels) or 0


class TestInstruments:
    """What is counted of the sizes."""

    @pytest.mark.spec("CTX-16", "CTX-17", "CTX-49")
    @pytest.mark.parametrize("is_dry_run", [False, True])
    def test_each_lowered_request(self, horde: Horde, is_dry_run: bool) -> None:
        horde.pop(chat_limits={"max_context_length": 8192, "max_length": 600})
        labels = {
            "requested_bucket": "1025-2048",
            "declared_bucket": "513-1024",
            "dry_run": str(is_dry_run).lower(),
        }
        before = counted("horde_chat_max_length_lowered", **labels)

        for tokens in (1500, 2000, 600, 64):
            assert horde.submit(max_tokens=tokens, horde={"dry_run": is_dry_run})[0] in {200, 202}

        assert counted("horde_chat_max_length_lowered", **labels) == before + 2

    @pytest.mark.spec("CTX-35")
    @pytest.mark.parametrize(
        ("mode", "characters", "outcome"),
        [
            ("truncate_oldest", 13_000, "truncated"),
            ("truncate_oldest", 60, "fits"),
            ("grow", 7000, "grown"),
            ("grow", 60_000, "refused"),
            ("reject", 7000, "refused"),
        ],
    )
    def test_what_became_of_each_context(self, horde: Horde, mode: str, characters: int, outcome: str) -> None:
        horde.pop(chat_limits={"max_context_length": 4096, "max_length": 100})
        before = counted("horde_text_context_fit", mode=mode, outcome=outcome)

        horde.submit(
            messages=[{"role": "user", "content": "x" * characters}, {"role": "user", "content": "Now"}],
            horde={"context_fit": mode},
        )

        assert counted("horde_text_context_fit", mode=mode, outcome=outcome) == before + 1

    @pytest.mark.parametrize(
        ("mode", "characters", "outcome"),
        [
            ("ignore", 7000, "sent_overlong"),
            ("ignore", 60, "fits"),
            ("grow", 7000, "grown"),
            ("reject", 7000, "refused"),
        ],
    )
    def test_the_same_of_text(self, horde: Horde, mode: str, characters: int, outcome: str) -> None:
        horde.pop(chat_jobs=None, prompt_jobs=None, max_context_length=4096)
        before = counted("horde_text_context_fit", mode=mode, outcome=outcome)

        horde.submit_text(prompt="x" * characters, context_fit=mode)

        assert counted("horde_text_context_fit", mode=mode, outcome=outcome) == before + 1


@pytest.mark.spec("CTX-45", "ORD-32")
def test_a_refused_size_leaves_nothing_and_fetches_nothing(horde: Horde, settings: Settings) -> None:
    horde.pop()
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 16, "free_output_floor": 16})
    before = count_rows(*TRACES)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        image = {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{listener.getsockname()[1]}/a.png"}}
        content = [{"type": "text", "text": "x" * 90_000}, image]

        status, body = horde.submit(
            messages=[{"role": "user", "content": content}], horde={"operation_key": KEY, "context_fit": "grow"}
        )

        assert (status, body["rc"]) == (400, "PromptExceedsContext")
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert count_rows(*TRACES) == before
    assert horde.submit(horde={"operation_key": KEY})[0] == 202, "the key is free"


@pytest.mark.parametrize("family", ["chat", "text"])
def test_of_repeated_stop_sequences_each_is_kept_once(horde: Horde, family: str) -> None:
    horde.pop()
    stops = ["END", "STOP"] * 100_000 + ["END"]

    sent = {"stop": stops} if family == "chat" else {"params": {"stop_sequence": stops}}
    status, body = horde.submit(**sent) if family == "chat" else horde.submit_text(**sent)

    assert status == 202, body
    assert one_value("SELECT params -> 'stop_sequence' FROM waiting_prompts") == '["END", "STOP"]'
