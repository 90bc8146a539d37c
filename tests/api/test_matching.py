"""Which request a pop gets: restrictions, pages, priority users, what it skipped."""

import re
from typing import Any, ClassVar
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import REGISTRY

from hordechat.contract import chat
from hordechat.infra import address_timeouts, clock
from requests_app.rules import needs
from requests_app.selectors.candidates import CANDIDATES_A_PAGE
from tests.horde import MODEL, Horde, chat_body, make_person, one_value
from workers_app.rules.capabilities import mask_of

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
EVERYTHING = [
    "seed", "reasoning_effort", "presence_penalty", "frequency_penalty", "tools", "json_object", "json_schema",
    "tools_with_response_format", "tool_choice_enforced", "structured_output_enforced", "prompt_overflow_refused",
]  # fmt: skip


def request_of(generation_id: str) -> str:
    return str(one_value("SELECT request_id FROM processing_gens WHERE id = %s", [generation_id]))


def worker_id(name: str = "worker one") -> str:
    return str(one_value("SELECT id FROM workers WHERE name = %s", [name]))


@pytest.mark.spec("REQ-13", "REQ-16", "REQ-20", "ELG-06", "ELG-21")
@pytest.mark.parametrize(
    ("changes", "feature"),
    [
        ({"seed": 0}, "seed"),
        ({"reasoning_effort": "none"}, "reasoning_effort"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"frequency_penalty": -0.5}, "frequency_penalty"),
        ({"tools": [TOOL]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "json_object"),
    ],
)
def test_a_request_goes_to_a_worker_that_declares_what_it_needs(
    horde: Horde, changes: dict[str, Any], feature: str
) -> None:
    lacking = [each for each in EVERYTHING if each != feature]
    request_id = horde.queued(**changes)

    assert horde.pop(chat_features=lacking)[1]["id"] is None
    assert horde.status(request_id)[1]["is_possible"] is False
    assert request_of(horde.pop(chat_features=EVERYTHING)[1]["id"]) == request_id


@pytest.mark.spec("REQ-15", "REQ-18", "POP-17", "POP-18", "POP-08", "TLS-32", "POP-25", "POP-26", "POP-28")
def test_the_worker_gets_what_the_client_sent_narrowed_to_what_it_needs(horde: Horde) -> None:
    other = {"type": "function", "function": {"name": "other"}}
    choice = {"type": "function", "function": {"name": "look"}}
    horde.queued(seed=-5, reasoning_effort="low", tools=[TOOL, other], tool_choice=choice, presence_penalty=1)

    payload = horde.pop(chat_features=EVERYTHING)[1]["payload"]

    assert (payload["seed"], payload["reasoning_effort"], payload["presence_penalty"]) == (-5, "low", 1.0)
    assert (payload["tools"], payload["tool_choice"]) == ([TOOL], "required")
    assert "prompt" not in payload
    assert one_value("SELECT jsonb_array_length(chat_extras -> 'tools') FROM waiting_prompts") == 2


@pytest.mark.spec("TLS-23", "TLS-27", "POP-04", "FLT-09")
def test_tool_rounds_are_stored_and_sent_as_they_were(horde: Horde) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{ }"}}
    sent = [
        {"role": "user", "content": "2 + 2"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "4", "tool_call_id": "c"},
    ]
    horde.queued(messages=sent)

    payload = horde.pop(chat_features=EVERYTHING)[1]["payload"]

    assert payload["messages"] == [sent[0], {"role": "assistant", "tool_calls": [call], "content": None}, sent[2]]
    assert "prompt" not in payload


@pytest.mark.spec("HOP-09", "HOP-08", "GUA-14")
def test_best_effort_waives_guarantees_and_no_feature(horde: Horde) -> None:
    best = {"conformance": "best_effort"}
    strict, waived = horde.queued(), horde.submit(horde=best)[1]["id"]
    horde.submit(horde=best, seed=1)

    assert request_of(horde.pop(chat_features=[])[1]["id"]) == waived
    assert horde.pop(chat_features=[])[1]["id"] is None
    assert request_of(horde.pop()[1]["id"]) == strict


@pytest.mark.spec("ELG-16", "HOP-01", "HOP-02")
@pytest.mark.parametrize(("key", "serves"), [("only", "worker one"), ("ignore", "worker two")])
@pytest.mark.parametrize("family", ["chat", "text"])
def test_chosen_workers_alone_serve_it(horde: Horde, key: str, serves: str, family: str) -> None:
    taking: dict[str, Any] = {"prompt_jobs": None}
    for name in ("worker one", "worker two"):
        horde.pop(name=name, **taking)
    if family == "chat":
        assert horde.submit(horde={key: [worker_id()]})[0] == 202
    else:
        assert horde.submit_text(workers=[worker_id()], worker_blacklist=key == "ignore")[0] == 202
    [refused] = {"worker one", "worker two"} - {serves}

    assert horde.pop(name=refused, **taking)[1]["skipped"] == {"worker_id": 1}
    assert horde.pop(name=serves, **taking)[1]["id"] is not None


@pytest.mark.spec("ELG-17", "ELG-18", "ELG-19", "ELG-27")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"trusted_workers": True}, "untrusted"),
        ({"validated_backends": True}, "bridge_version"),
        ({"slow_workers": False}, "performance"),
    ],
)
def test_a_restriction_that_is_not_met_is_counted(horde: Horde, options: dict[str, Any], reason: str) -> None:
    agent = "KoboldCppEmbedWorker:2:https://example.org"
    horde.pop(name="good", bridge_agent=agent)
    one_value("UPDATE workers SET speed = 5, speed_samples = '{5}' RETURNING 1")
    horde.submit(horde=options)
    horde.submit_text(**options)
    stranger = make_person("stranger")

    skipped = horde.pop(name="new", api_key=stranger.api_key, prompt_jobs=None)[1]["skipped"]

    assert skipped == {reason: 2}
    assert horde.pop(name="good", bridge_agent=agent)[1]["id"] is not None


@pytest.mark.spec("ELG-14", "ELG-15", "TMP-02", "TMP-05", "TMP-06", "TMP-07", "TMP-11", "ELG-27")
def test_tools_go_to_a_worker_that_applies_their_temperature(horde: Horde) -> None:
    def limits(temperature: float | None) -> dict[str, Any]:
        found: dict[str, Any] = {"max_context_length": 8192, "max_length": 1024}
        return found if temperature is None else found | {"tools_max_temperature": temperature}

    request_id = horde.queued(tools=[TOOL], temperature=0.7)
    assert one_value("SELECT chat_tools_temperature FROM waiting_prompts") == 0.7

    refused = horde.pop(chat_features=EVERYTHING, chat_limits=limits(0.69))[1]

    assert (refused["id"], refused["skipped"]) == (None, {}), "what SQL filters is not counted"
    assert request_of(horde.pop(chat_features=EVERYTHING, chat_limits=limits(0.7))[1]["id"]) == request_id
    assert one_value("SELECT chat_tools_temperature FROM waiting_prompts") == 0.7
    horde.queued(tools=[TOOL])
    assert horde.pop(chat_features=EVERYTHING, chat_limits=limits(0.99))[1]["id"] is None, "1.0 when it is left out"
    assert horde.pop(chat_features=EVERYTHING, chat_limits=limits(None))[1]["id"] is not None


@pytest.mark.spec("SPD-03", "SPD-04", "SPD-05", "SPD-06")
def test_an_output_the_worker_cannot_finish_in_time_is_not_offered(horde: Horde) -> None:
    large: dict[str, Any] = {"chat_limits": {"max_context_length": 8192, "max_length": 4096}}
    horde.pop(**large)
    beyond = horde.submit(max_tokens=1201)[1]["id"]
    within = horde.submit(max_tokens=1200)[1]["id"]

    assert request_of(horde.pop(**large)[1]["id"]) == within
    assert horde.pop(**large)[1]["id"] is None
    one_value("UPDATE workers SET speed = 10.1, speed_samples = '{10.1}' RETURNING 1")
    assert request_of(horde.pop(**large)[1]["id"]) == beyond


def limited() -> float:
    return REGISTRY.get_sample_value("horde_pop_lease_capacity_limited_total", {"gentype": "text"}) or 0


@pytest.mark.spec("SPD-15", "SPD-16", "SPD-25")
@pytest.mark.parametrize(("speed", "counts"), [(None, 0), (8.5, 1), (9.0, 0)])
def test_pops_that_the_own_speed_limits_are_counted(horde: Horde, speed: float | None, counts: int) -> None:
    horde.pop()
    one_value("UPDATE workers SET speed = %s RETURNING 1", [speed])
    before = limited()

    with CaptureQueriesContext(connection) as captured:
        horde.pop()

    assert limited() == before + counts
    assert len(captured) == 2


@pytest.mark.spec("SPD-05", "SPD-24")
def test_a_reply_measures_its_worker(horde: Horde) -> None:
    _, generation_id = horde.in_flight(max_tokens=1000)
    one_value("UPDATE processing_gens SET created = now() - interval '10 s' RETURNING 1")

    horde.reply(generation_id, message={"role": "assistant", "content": "x" * 4000})

    [sample] = one_value("SELECT speed_samples FROM workers")
    seconds = one_value("SELECT extract(epoch FROM finished_at - created) FROM processing_gens")
    assert sample == round(1000 / float(seconds), 1), "a thousand tokens in ten seconds and a little"
    assert one_value("SELECT speed FROM workers") == sample
    one_value("UPDATE workers SET speed_samples = array_fill(1.0::float8, ARRAY[20]) RETURNING 1")
    _, generation_id = horde.in_flight(max_tokens=1000)
    horde.reply(generation_id)
    assert one_value("SELECT cardinality(speed_samples) FROM workers") == 20


def test_a_worker_too_slow_to_measure_has_a_speed(horde: Horde) -> None:
    _, generation_id = horde.in_flight(max_tokens=16)
    one_value("UPDATE processing_gens SET created = now() - interval '1000 s' RETURNING 1")

    horde.reply(generation_id)

    assert one_value("SELECT (speed, speed_samples)::text FROM workers") == "(1,{0})"


class TestPriority:
    """Requests of its owner and of the users it names come first, in the order of the queue, then everybody's."""

    def test_named_users_come_before_richer_ones(self, horde: Horde) -> None:
        friend = make_person("friend")
        horde.queued()
        favoured = horde.submit(api_key=friend.api_key)[1]["id"]

        job = horde.pop(priority_usernames=[f"anything#{friend.id}"])[1]["id"]

        assert request_of(job) == favoured

    def test_the_owners_own_come_first_without_being_named(self, horde: Horde) -> None:
        horde.queued()
        own = horde.submit(api_key=horde.owner.api_key)[1]["id"]

        assert request_of(horde.pop()[1]["id"]) == own

    @pytest.mark.parametrize("name", ["friend", "a#b", "#", "a#", "a#-1", "a#1.5", "a#" + "9" * 30])
    def test_a_name_without_an_id_is_refused(self, horde: Horde, name: str) -> None:
        before = one_value("SELECT count(*) FROM workers")

        assert horde.pop(priority_usernames=[name])[1]["rc"] == "InvalidPriorityUsername"
        assert one_value("SELECT count(*) FROM workers") == before

    @pytest.mark.parametrize("state", ["maintenance", "paused"])
    def test_named_users_do_not_hide_the_owners_from_a_worker_that_serves_nobody_else(
        self, horde: Horde, state: str
    ) -> None:
        friend = make_person("friend", kudos=100_000)
        horde.pop()
        for _ in range(CANDIDATES_A_PAGE):
            horde.submit(api_key=friend.api_key)
        own = horde.submit(api_key=horde.owner.api_key)[1]["id"]
        one_value(f"UPDATE workers SET {state} = true RETURNING 1")

        status, body = horde.pop(priority_usernames=[f"friend#{friend.id}"])

        assert (status, request_of(body["id"])) == (200, own)
        assert one_value("SELECT fake FROM processing_gens") is False

    def test_the_models_of_one_request_do_not_hide_the_next(self, horde: Horde) -> None:
        stranger = make_person("stranger", kudos=1000)
        models = [f"org/{number}" for number in range(CANDIDATES_A_PAGE)]
        horde.pop_text(models=models, api_key=stranger.api_key)
        assert horde.submit_text(models=models, trusted_workers=True, api_key=stranger.api_key)[0] == 202
        servable = horde.submit_text(models=models[:1], api_key=stranger.api_key)[1]["id"]
        one_value("UPDATE workers SET maintenance = true RETURNING 1")

        status, body = horde.pop_text(models=models, api_key=stranger.api_key)

        assert (status, request_of(body["id"])) == (200, servable)


class TestPages:
    """A full page of what the worker may not take does not hide what it may."""

    @pytest.mark.spec("ELG-02")
    def test_what_is_behind_a_page_of_restricted_requests_is_found(self, horde: Horde) -> None:
        stranger = make_person("stranger")
        one_value("UPDATE users SET concurrency = 500 WHERE id = %s RETURNING 1", [horde.requester.id])
        horde.pop()
        for _ in range(CANDIDATES_A_PAGE + 5):
            horde.submit(horde={"trusted_workers": True})
        servable = horde.submit()[1]["id"]

        with CaptureQueriesContext(connection) as captured:
            status, body = horde.pop(name="new", api_key=stranger.api_key)

        assert status == 200
        assert request_of(body["id"]) == servable
        assert sum("-- candidates" in query["sql"] for query in captured) == 2
        assert body["skipped"] == {}

    def test_the_first_page_is_counted_and_the_second_is_not(self, horde: Horde) -> None:
        stranger = make_person("stranger")
        one_value("UPDATE users SET concurrency = 500 WHERE id = %s RETURNING 1", [horde.requester.id])
        horde.pop()
        for _ in range(CANDIDATES_A_PAGE + 5):
            horde.submit(horde={"trusted_workers": True})

        assert horde.pop(name="new", api_key=stranger.api_key)[1]["skipped"] == {"untrusted": CANDIDATES_A_PAGE}


class TestCheckIn:
    """Who may run how many workers, under which names."""

    def test_a_flagged_owner_is_served_nothing(self, horde: Horde) -> None:
        one_value("UPDATE users SET is_flagged = true WHERE id = %s RETURNING 1", [horde.owner.id])

        assert horde.pop()[1]["rc"] == "WorkerFlaggedMaintenance"

    def test_an_address_in_a_time_out_is_served_nothing(self, horde: Horde) -> None:
        horde.pop()
        address_timeouts.put("127.0.0.1", seconds=60, now=clock.now())
        try:
            assert horde.pop()[0] == 200, "inside the window nobody asks"
            assert horde.pop(name="new")[1]["rc"] == "TimeoutIP"
            one_value("UPDATE workers SET last_check_in = now() - interval '31 s' RETURNING 1")
            assert horde.pop()[1]["rc"] == "TimeoutIP"
        finally:
            address_timeouts.remove("127.0.0.1")

    @pytest.mark.parametrize("name", ["my Colab", "TPU-1", "agoogleb"])
    def test_reserved_words_are_refused_in_a_new_name(self, horde: Horde, name: str) -> None:
        status, body = horde.pop(name=name)

        assert (status, body["rc"]) == (400, "BadRequest")
        assert one_value("SELECT count(*) FROM workers") == 0

    def test_an_untrusted_owner_may_have_four(self, horde: Horde) -> None:
        stranger = make_person("stranger")

        answers = [horde.pop(name=f"worker {number}", api_key=stranger.api_key) for number in range(5)]

        assert [status for status, _ in answers] == [200] * 4 + [403]
        assert answers[-1][1]["rc"] == "TooManyWorkers"
        assert horde.pop(name="worker 0", api_key=stranger.api_key)[0] == 200

    def test_a_trusted_owner_may_have_twenty_one_at_an_address(self, horde: Horde) -> None:
        answers = [horde.pop(name=f"worker {number}") for number in range(22)]

        assert [status for status, _ in answers] == [200] * 21 + [403]
        assert answers[-1][1]["rc"] == "TooManyWorkersTrusted"

    @pytest.mark.parametrize(
        ("model", "status"),
        [("mine::owner#{owner}", 200), ("theirs::someone#1", 400), ("a::b::c", 200), ("::x", 200), ("plain", 200)],
    )
    def test_a_personal_model_is_served_by_its_user_alone(self, horde: Horde, model: str, status: int) -> None:
        named = model.format(owner=horde.owner.id)

        answered, body = horde.pop_text(models=[MODEL, named])

        assert answered == status, body


def test_a_worker_that_is_named_by_no_id_is_nobodys(horde: Horde) -> None:
    horde.pop()

    assert horde.submit(horde={"only": [str(uuid4())]})[1]["rc"] == "WorkerNotFound"


@pytest.mark.spec("REQ-03")
def test_whichever_of_the_models_a_worker_runs_serves_the_request(horde: Horde) -> None:
    for model in (MODEL, "org/b"):
        horde.pop(name=model, models=[model], model_id=model)
    for _ in range(2):
        horde.submit(model=None, models=[MODEL, "org/b"])
    assert one_value("SELECT models FROM waiting_prompts LIMIT 1") == [MODEL, "org/b"]

    served = [horde.pop(name=model, models=[model], model_id=model)[1]["model"] for model in ("org/b", MODEL)]

    assert served == ["org/b", MODEL]
    assert horde.pop(name=MODEL)[1]["id"] is None


@pytest.mark.spec("GUA-07")
def test_a_single_call_may_be_declared(horde: Horde) -> None:
    horde.pop(chat_features=["single_tool_call_enforced", "prompt_overflow_refused"])

    assert one_value("SELECT chat_features FROM workers") == ["prompt_overflow_refused", "single_tool_call_enforced"]


class TestImages:
    """A request with an image goes to a worker that has seen to it, by a mark made when it was created."""

    IMAGE: ClassVar = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]}

    def queued(self, horde: Horde) -> str:
        """Queue a request, and give it the image that cannot be submitted yet."""
        request_id = horde.queued()
        mask = mask_of(("vision", "prompt_overflow_refused"))
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE waiting_prompts SET messages = %s, feature_mask = %s, chat_required_features = %s",
                [orjson.dumps([self.IMAGE]).decode(), mask, ["prompt_overflow_refused", "vision"]],
            )
            cursor.execute("UPDATE queue_rows SET feature_mask = %s", [mask])
        return request_id

    @pytest.mark.spec("ELG-07", "ELG-08", "ELG-10", "FTR-12")
    @pytest.mark.parametrize("transports", [None, [], ["messages_url"]])
    def test_not_to_one_without_a_transport(self, horde: Horde, transports: list[str] | None) -> None:
        request_id = self.queued(horde)
        seeing: dict[str, Any] = {"chat_features": ["vision", "prompt_overflow_refused"]}

        with CaptureQueriesContext(connection) as captured:
            body = horde.pop(**seeing, image_transports=transports)[1]

        assert (body["id"], body["skipped"]) == (None, {}), "the queue's statement returns none"
        [asked] = [query["sql"] for query in captured if query["sql"].startswith("-- candidates")]
        assert re.search(r"\bmessages\b", asked) is None
        assert request_of(horde.pop(**seeing, image_transports=["base64"])[1]["id"]) == request_id

    @pytest.mark.spec("ELG-09")
    @pytest.mark.parametrize(
        "messages",
        [
            [IMAGE],
            [{"role": "user", "content": "image_url"}, IMAGE],
            [{"role": "user", "content": [{"type": "text", "text": "image_url"}]}],
            [{"role": "user", "content": '{"type": "image_url"}'}],
        ],
    )
    @pytest.mark.django_db
    def test_the_mark_agrees_with_the_messages(self, messages: list[dict[str, object]]) -> None:
        submission = chat.parse(chat_body(messages=messages))
        stored = orjson.dumps([message.as_json() for message in submission.messages]).decode()

        is_marked = bool(needs.needs_of(submission, messages=submission.messages).feature_mask & mask_of(("vision",)))

        contained = '[{"content": [{"type": "image_url"}]}]'
        assert one_value("SELECT %s::jsonb @> %s::jsonb", [stored, contained]) is is_marked
