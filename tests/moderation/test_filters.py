"""Moderators keep, remove and try filters; what is kept is sound, single and bounded."""

import io
import json
from datetime import UTC, datetime
from functools import partial

import pytest
from django.core.management import CommandError, call_command

from hordechat.contract.limits import MAX_FILTER_COUNT
from requests_app.errors import FilterRefused
from requests_app.models import PromptFilter
from requests_app.rules.screening import Filter
from requests_app.selectors import prompt_filters as kept_filters
from requests_app.services import prompt_filters
from requests_app.services.prompt_filters import Addition
from tests.races import at_once

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
db = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("filters", *arguments, stdout=output)
    return output.getvalue()


def fill(count: int) -> None:
    PromptFilter.objects.bulk_create(PromptFilter(regex=f"word {each}", filter_type=11) for each in range(count))


@db
def test_replacements_are_the_filters_of_type_10_by_id() -> None:
    second = prompt_filters.add(regex="zebra", replacement="horse", now=NOW).kept
    prompt_filters.add(regex="apple", filter_type=11, now=NOW)
    third = prompt_filters.add(regex="apple", now=NOW).kept

    assert kept_filters.list_replacements() == [
        Filter(id=second.id, regex="zebra", replacement="horse"),
        Filter(id=third.id, regex="apple", replacement=""),
    ]


@db
def test_a_filter_of_the_same_type_and_pattern_is_returned_as_it_is() -> None:
    first = prompt_filters.add(regex="word", replacement="thing", description="why", now=NOW)

    again = prompt_filters.add(regex="word", replacement="other", now=NOW)

    assert first.is_new
    assert again == Addition(kept=first.kept, is_new=False)
    assert kept_filters.list_kept() == [first.kept]


@db
def test_there_are_at_most_500_filters() -> None:
    fill(MAX_FILTER_COUNT)

    with pytest.raises(FilterRefused, match="There are 500 filters"):
        prompt_filters.add(regex="one more", now=NOW)

    assert not prompt_filters.add(regex="word 7", filter_type=11, now=NOW).is_new
    assert PromptFilter.objects.count() == MAX_FILTER_COUNT


@pytest.mark.usefixtures("committed")
def test_the_limit_holds_for_many_at_once() -> None:
    fill(MAX_FILTER_COUNT - 1)

    def add(each: int) -> str:
        try:
            prompt_filters.add(regex=f"new {each}", now=NOW)
        except FilterRefused:
            return "refused"
        return "added"

    answers = at_once(*[partial(add, each) for each in range(6)])

    assert sorted(answers) == ["added", *["refused"] * 5]
    assert PromptFilter.objects.count() == MAX_FILTER_COUNT


@pytest.mark.usefixtures("committed")
def test_the_same_filter_added_many_times_at_once_is_one() -> None:
    additions = at_once(*[lambda: prompt_filters.add(regex="word", now=NOW)] * 6)

    assert sum(addition.is_new for addition in additions) == 1
    assert len({addition.kept.id for addition in additions}) == 1


@db
def test_list_add_and_remove_print_json_and_sentences() -> None:
    assert run("list") == "0 filters.\n"

    made = json.loads(run("add", r"\bdwarf\b", "--replacement", "giant", "--description", "as an example", "--json"))
    described = rf"{made['id']}  type 10  '\bdwarf\b' -> 'giant'  (as an example)"

    assert {key: made[key] for key in ("filter_type", "regex", "replacement", "description")} == {
        "filter_type": 10, "regex": r"\bdwarf\b", "replacement": "giant", "description": "as an example",
    }  # fmt: skip
    assert json.loads(run("list", "--json")) == [made]
    assert run("list") == f"1 filters.\n{described}\n"
    assert run("add", r"\bdwarf\b", "--replacement", "elf") == f"There already, unchanged: {described}\n"
    assert run("remove", str(made["id"])) == f"Removed filter {made['id']}.\n"
    assert run("remove", str(made["id"])) == f"There is no filter {made['id']}.\n"
    assert run("list", "--json") == "[]\n"
    assert run("add", "elf", "--type", "29").startswith("Added: ")


@db
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["add", "(word"], "The pattern '\\(word' cannot be compiled: missing \\)"),
        (["add", "a*"], "The pattern 'a\\*' matches the empty text, and so every text."),
        (["add", ""], "matches the empty text"),
        (["add", "^(a|aa)+$"], "takes longer than 0.5 s"),
        (["add", "x" * 1001], "The pattern has to be at most 1000 printable characters."),
        (["add", "a\nb"], "The pattern has to be"),
        (["add", "x", "--replacement", "y" * 256], "The replacement has to be at most 255"),
        (["add", "x", "--description", "y" * 501], "The description has to be at most 500"),
        (["add", "x", "--type", "9"], "The type has to be 10 to 29, not 9."),
        (["add", "x", "--type", "30"], "The type has to be 10 to 29, not 30."),
        (["remove", "one"], "invalid int value"),
        ([], "required: ACTION"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)

    assert PromptFilter.objects.count() == 0


@db
def test_removing_an_id_no_column_holds_finds_none() -> None:
    assert run("remove", "9" * 30) == f"There is no filter {'9' * 30}.\n"


@db
def test_a_text_is_tried() -> None:
    prompt_filters.add(regex="dwarf", replacement="giant", now=NOW)
    prompt_filters.add(regex="castle", filter_type=20, now=NOW)

    assert json.loads(run("test", "The (dwarf:1.2) and a k-i-d, in a castle!", "--json")) == {
        "normalised": "The dwarf and a kid in a castle",
        "rewritten": "The giant and a adult in a castle",
        "age_related": True,
    }
    assert run("test", "A castle.") == (
        "filters see  'A castle'\nworkers get  'A castle'\nage related  no\n"
    )  # fmt: skip


@db
def test_a_text_that_takes_too_long_is_refused_with_a_sentence() -> None:
    # Not to be had through the service, which tries its patterns first.
    PromptFilter.objects.create(regex="^(a|aa)+$", filter_type=10)

    with pytest.raises(CommandError, match="could not be screened"):
        run("test", "a" * 5000 + "b")
