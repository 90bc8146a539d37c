"""The roll-up moves finished generations into totals, each once, and forgets what no span needs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hordechat.infra import clock
from requests_app import tasks
from requests_app.models import FinishedGeneration, GenerationTotal
from requests_app.rules.statistics import GenerationOutcome
from requests_app.selectors import lapsed, readiness
from requests_app.services import statistics
from tests.horde import count_rows, one_value
from tests.plans import plan_of
from tests.statistics.generations import MODEL, NOW, finish, finished, list_rows, told

pytestmark = pytest.mark.django_db
MINUTE = NOW.replace(second=0)
HOUR = NOW.replace(minute=0, second=0)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def test_adds_them_to_their_minute_their_hour_and_all_time() -> None:
    finish(2)
    finish(outcome="faulted", written_tokens=0, max_length=100, milliseconds=150_000)
    finish(is_chat=True, written_tokens=7)
    finish(finished_at=NOW - timedelta(minutes=1))

    assert statistics.roll_up_all(now=NOW) == 5

    assert list_rows() == [
        ("all", BEGINNING, MODEL, False, "faulted", 1, 100, 0, 150_000),
        ("all", BEGINNING, MODEL, False, "ok", 3, 192, 60, 4500),
        ("all", BEGINNING, MODEL, True, "ok", 1, 64, 7, 1500),
        ("hour", HOUR, MODEL, False, "faulted", 1, 100, 0, 150_000),
        ("hour", HOUR, MODEL, False, "ok", 3, 192, 60, 4500),
        ("hour", HOUR, MODEL, True, "ok", 1, 64, 7, 1500),
        ("minute", MINUTE - timedelta(minutes=1), MODEL, False, "ok", 1, 64, 20, 1500),
        ("minute", MINUTE, MODEL, False, "faulted", 1, 100, 0, 150_000),
        ("minute", MINUTE, MODEL, False, "ok", 2, 128, 40, 3000),
        ("minute", MINUTE, MODEL, True, "ok", 1, 64, 7, 1500),
    ]
    assert count_rows("finished_generations") == {"finished_generations": 0}


def test_a_second_run_adds_nothing_and_a_later_one_what_came_meanwhile() -> None:
    finish(3)
    statistics.roll_up_all(now=NOW)
    before = list_rows()

    assert statistics.roll_up_all(now=NOW) == 0
    assert list_rows() == before

    finish(4)
    assert statistics.roll_up_all(now=NOW) == 4
    assert [row[5:7] for row in list_rows()] == [(7, 448)] * 3


def test_works_in_bounded_batches_the_oldest_first() -> None:
    finish(5)

    assert [statistics.roll_up_batch(limit=2) for _ in range(4)] == [2, 2, 1, 0]

    assert [row[5] for row in list_rows()] == [5, 5, 5]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ended=st.lists(
        st.tuples(
            st.integers(0, 200),
            st.sampled_from([MODEL, "openai/gpt-oss-120b", "somebody's own", ""]),
            st.booleans(),
            st.sampled_from(list(GenerationOutcome)),
            st.integers(1, 2**31 - 1),
        ),
        max_size=40,
    ),
    limit=st.integers(1, 7),
)
def test_whatever_ended_all_periods_add_up_to_it(
    ended: list[tuple[int, str, bool, GenerationOutcome, int]], limit: int
) -> None:
    GenerationTotal.objects.all().delete()
    FinishedGeneration.objects.bulk_create(
        finished(
            finished_at=NOW - timedelta(minutes=minutes),
            model=model,
            is_chat=is_chat,
            outcome=outcome,
            max_length=length,
        )
        for minutes, model, is_chat, outcome, length in ended
    )

    while statistics.roll_up_batch(limit=limit):
        pass

    for period in ("minute", "hour", "all"):
        rows = [row for row in list_rows() if row[0] == period]
        assert sum(row[5] for row in rows) == len(ended)
        assert sum(row[6] for row in rows) == sum(length for *_, length in ended)
        for outcome in GenerationOutcome:
            assert sum(row[5] for row in rows if row[4] == outcome) == sum(each[3] is outcome for each in ended)


def test_all_names_of_a_model_are_summed_under_the_one_it_is_listed_by() -> None:
    for name in (MODEL, f"aphrodite/{MODEL}", "koboldcpp/chronos-70b-v2.Q4_K_M", f"{MODEL}::somebody#12"):
        finish(model=name)

    statistics.roll_up_all(now=NOW)

    assert [(row[2], row[5]) for row in list_rows()] == [(MODEL, 4)] * 3


def test_models_the_reference_lacks_are_summed_together_however_many_there_are() -> None:
    for number in range(300):
        finish(model=f"invented {number}", is_chat=number % 2 == 0)
    finish(model="x" * 255)

    statistics.roll_up_all(now=NOW)

    assert [row[2:] for row in list_rows()] == [
        ("other", False, "ok", 151, 151 * 64, 151 * 20, 151 * 1500),
        ("other", True, "ok", 150, 150 * 64, 150 * 20, 150 * 1500),
    ] * 3


def test_sums_go_beyond_four_bytes() -> None:
    finish(3, max_length=2**31 - 1, written_tokens=2**31 - 1, milliseconds=2**40)

    statistics.roll_up_all(now=NOW)

    assert list_rows()[0][5:] == (3, 3 * (2**31 - 1), 3 * (2**31 - 1), 3 * 2**40)


@pytest.mark.parametrize("table", ["finished_generations", "generation_totals"])
def test_an_unknown_outcome_is_in_neither_table(table: str) -> None:
    finish()
    statistics.roll_up_all(now=NOW)
    finish()

    with pytest.raises(IntegrityError, match=f"{table}_outcome_known"), transaction.atomic():
        one_value(f"UPDATE {table} SET outcome = 'lost' RETURNING 1")


def test_an_unknown_period_is_in_no_total() -> None:
    finish()
    statistics.roll_up_all(now=NOW)

    with pytest.raises(IntegrityError, match="generation_totals_period_known"), transaction.atomic():
        one_value("UPDATE generation_totals SET period = 'week' RETURNING 1")


def test_forgets_minutes_after_two_hours_and_hours_after_31_days_in_batches() -> None:
    for age in (timedelta(0), timedelta(hours=2), timedelta(hours=2, minutes=1), timedelta(days=31, hours=1)):
        finish(finished_at=NOW - age)
    statistics.roll_up_batch()

    assert statistics.prune_batch(now=MINUTE, limit=2) == 2
    assert [statistics.prune_batch(now=MINUTE, limit=2) for _ in range(2)] == [1, 0]

    assert [(period, starts_at) for period, starts_at, *_ in list_rows()] == [
        ("all", BEGINNING),
        ("hour", HOUR - timedelta(hours=2)),
        ("hour", HOUR),
        ("minute", MINUTE - timedelta(hours=2)),
        ("minute", MINUTE),
    ]
    assert list_rows()[0][5] == 4


def test_the_task_rolls_up_and_forgets() -> None:
    now = clock.now()
    finish(finished_at=now)
    finish(finished_at=now - timedelta(days=40))

    tasks.roll_up_statistics()

    assert [(row[0], row[5]) for row in list_rows()] == [("all", 2), ("hour", 1), ("minute", 1)]


def test_the_backlog_is_what_ended_more_than_a_minute_ago() -> None:
    finish(3, finished_at=NOW - timedelta(seconds=60))
    finish(4, finished_at=NOW - timedelta(seconds=59))

    assert lapsed.get_backlog(now=NOW).by_task()["roll_up_statistics"] == 3

    statistics.roll_up_all(now=NOW)
    assert lapsed.get_backlog(now=NOW).by_task()["roll_up_statistics"] == 0


def test_the_backlog_is_counted_up_to_a_bound_and_shown_to_operators() -> None:
    finish(lapsed.BACKLOG_BOUND + 10, finished_at=NOW - timedelta(hours=1))

    report: dict[str, Any] = readiness.get(now=NOW).as_json()

    assert report["beat"]["roll_up_statistics"]["backlog"] == lapsed.BACKLOG_BOUND


def test_each_span_counts_what_ended_in_it() -> None:
    ages = (
        timedelta(minutes=1, seconds=30),  # 12:04:00 is not settled
        timedelta(minutes=1, seconds=31),  # 12:03:59 is
        timedelta(minutes=2, seconds=31),
        timedelta(hours=1, minutes=2),
        timedelta(hours=23, minutes=5),
        timedelta(hours=23, minutes=6),
        timedelta(days=29, hours=23, minutes=5),
        timedelta(days=30),
    )
    for age in ages:
        finish(finished_at=NOW - age)
    finish(is_chat=True, outcome="cancelled")
    statistics.roll_up_all(now=NOW)

    assert [(span, total.replies) for (span, model), total in told().items() if model is None] == [
        ("minute", 1), ("hour", 2), ("day", 5), ("month", 7), ("total", 8),
    ]  # fmt: skip
    assert [(span, total.cancelled) for (span, model), total in told(is_chat=True).items() if model is None] == [
        ("minute", 0), ("hour", 0), ("day", 1), ("month", 1), ("total", 1),
    ]  # fmt: skip


def test_totals_are_told_together_and_by_model() -> None:
    finish(2)
    finish(model="invented", max_length=10, written_tokens=5, milliseconds=500)
    finish(model="invented", outcome="faulted", max_length=1000, written_tokens=0, milliseconds=150_000)
    finish(outcome="cancelled", written_tokens=0)
    statistics.roll_up_all(now=NOW)

    totals = told()

    day = [(model, total) for (span, model), total in totals.items() if span == "day"]
    assert [
        (model, total.replies, total.cancelled, total.faulted, total.requested_tokens, total.written_tokens)
        for model, total in day
    ] == [(None, 3, 1, 1, 138, 45), (MODEL, 2, 1, 0, 128, 40), ("other", 1, 0, 1, 10, 5)]
    assert [total.milliseconds for _, total in day] == [3500, 3000, 500]
    assert day[2][1].tokens_per_second == 10
    assert [key for key in totals if key[0] == "minute"] == [("minute", None)]
    assert totals["minute", None].tokens_per_second == 0


class TestPlans:
    """Statements over full tables go by the keys."""

    @pytest.fixture(autouse=True)
    def full_tables(self) -> None:
        finish(20_000)
        with connection.cursor() as cursor:
            cursor.execute(FULL_TOTALS)
            cursor.execute("ANALYZE finished_generations, generation_totals")

    def test_taking_a_batch_reads_no_backlog(self) -> None:
        plan = plan_of(lambda: statistics.roll_up_batch(limit=5000))

        assert plan.count("finished_generations_pkey") >= 2
        assert "Seq Scan" not in plan

    @pytest.mark.parametrize("is_chat", [True, False])
    def test_spans_read_no_totals_beside_their_own(self, is_chat: bool) -> None:
        plan = plan_of(lambda: told(is_chat=is_chat))

        assert "generation_totals_pkey" in plan
        assert "Seq Scan" not in plan

    def test_pruning_reads_no_totals_that_stay(self) -> None:
        plan = plan_of(lambda: statistics.prune_batch(now=NOW, limit=10))

        assert plan.count("generation_totals_pkey") == 2
        assert "Tid Scan" in plan
        assert "Seq Scan" not in plan

    def test_the_backlog_reads_the_oldest_alone(self) -> None:
        plan = plan_of(lambda: lapsed.get_backlog(now=NOW))

        assert "finished_generations_pkey" in plan
        assert "Seq Scan on finished_generations" not in plan


FULL_TOTALS = """
INSERT INTO generation_totals (
    period, starts_at, model, is_chat, outcome, generations, requested_tokens, written_tokens, milliseconds
)
SELECT period, '2026-03-02T12:00:00Z'::timestamptz - age, 'model ' || model, is_chat, 'ok', 1, 1, 1, 1
  FROM (
           SELECT 'hour' AS period, make_interval(hours => number) AS age
             FROM generate_series(0, 743) AS number
            UNION ALL
           SELECT 'minute', make_interval(mins => number)
             FROM generate_series(0, 120) AS number
       ) AS kept,
       generate_series(1, 20) AS model,
       unnest('{true,false}'::boolean[]) AS is_chat
"""
