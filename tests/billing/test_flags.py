"""Operators flag users and clear flags, as often as they like."""

import io

import pytest
from django.core.management import CommandError, call_command

from billing_app.models import User
from billing_app.services import accounts
from tests.billing.books import NOW

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("flag", *arguments, stdout=output)
    return output.getvalue()


def test_a_user_is_flagged_and_cleared_by_number_or_alias() -> None:
    alice, bob = (accounts.create_user(alias=alias, now=NOW) for alias in ("alice", "bob"))

    assert run(str(alice.id)) == f"User {alice.id} is flagged now.\n"
    assert run(alice.unique_alias) == f"User {alice.id} is flagged already.\n"
    assert User.objects.get(id=alice.id).is_flagged
    assert not User.objects.get(id=bob.id).is_flagged

    assert run(alice.unique_alias, "--clear") == f"User {alice.id} is not flagged now.\n"
    assert run(str(alice.id), "--clear") == f"User {alice.id} is not flagged already.\n"
    assert not User.objects.filter(is_flagged=True).exists()


def test_a_number_behind_another_users_alias_flags_nobody() -> None:
    alice, bob = (accounts.create_user(alias=alias, now=NOW) for alias in ("alice", "bob"))

    with pytest.raises(CommandError, match=f"The user with the id {bob.id} is bob#{bob.id}, not alice#{bob.id}."):
        run(f"alice#{bob.id}")

    assert not User.objects.filter(is_flagged=True).exists()
    assert run(f"#{alice.id}") == f"User {alice.id} is flagged now.\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["0"], "The anonymous user is everybody and is never flagged."),
        (["Anonymous#0", "--clear"], "The anonymous user is everybody"),
        (["99999"], "There is no user with the id 99999."),
        (["99999", "--clear"], "There is no user with the id 99999."),
        (["9" * 30], "There is no user with the id 9+."),
        ([f"alice#{'9' * 30}"], "There is no user with the id 9+."),
        (["alice"], "neither a user's number nor an alias"),
    ],
)
def test_what_cannot_be_flagged_is_refused_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)

    assert not User.objects.filter(is_flagged=True).exists()
