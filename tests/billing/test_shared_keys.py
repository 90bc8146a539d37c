"""Users have a bounded number of shared keys, which operators make, list and end."""

import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from billing_app.errors import TooManySharedKeys, UserRefused
from billing_app.models import SharedKey, User
from billing_app.rules.shared_keys import max_shared_keys
from billing_app.selectors import shared_keys as kept_keys
from billing_app.services import accounts, shared_keys
from tests.billing.books import NOW
from tests.races import at_once

db = pytest.mark.django_db
LATER = NOW + timedelta(days=1)


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("shared_key", *arguments, stdout=output)
    return output.getvalue()


def make_user(**flags: bool) -> int:
    owner = accounts.create_user(alias="alice", now=NOW)
    User.objects.filter(id=owner.id).update(**flags)
    return owner.id


@pytest.mark.parametrize(
    ("is_trusted", "is_education", "most"),
    [(False, False, 3), (True, False, 10), (False, True, 1000), (True, True, 10)],
)
def test_the_limit_follows_trust_before_education(is_trusted: bool, is_education: bool, most: int) -> None:
    assert max_shared_keys(is_trusted=is_trusted, is_education=is_education) == most


@db
def test_a_key_is_made_with_all_its_limits() -> None:
    user_id = make_user()

    made = shared_keys.create(
        user_id=user_id, kudos=Decimal("12.50"), expires_at=LATER, name="class", max_text_tokens=200, now=NOW
    )

    key = SharedKey.objects.get()
    assert (key.id, key.user_id, key.name) == (made.id, user_id, "class")
    assert (key.left_kudos, key.used_kudos, key.max_text_tokens) == (Decimal("12.50"), Decimal(0), 200)
    assert (key.created_at, key.expires_at) == (NOW, LATER)
    assert str(made.id) not in repr(made)
    assert made.unique_alias == f"alice#{user_id}"


@db
@pytest.mark.parametrize(("flags", "most"), [({}, 3), ({"is_trusted": True, "is_education": True}, 10)])
def test_a_user_has_at_most_so_many_that_have_not_expired(flags: dict[str, bool], most: int) -> None:
    user_id = make_user(**flags)
    made = [shared_keys.create(user_id=user_id, expires_at=LATER, now=NOW) for _ in range(most)]

    with pytest.raises(TooManySharedKeys, match=f"The user has {most} shared keys"):
        shared_keys.create(user_id=user_id, now=NOW)
    assert SharedKey.objects.count() == most

    shared_keys.create(user_id=make_user(), now=NOW)
    shared_keys.expire(key_id=made[0].id, now=NOW)
    shared_keys.create(user_id=user_id, now=NOW)
    with pytest.raises(TooManySharedKeys):
        shared_keys.create(user_id=user_id, now=NOW)
    shared_keys.create(user_id=user_id, now=LATER)


@pytest.mark.usefixtures("committed")
def test_the_limit_holds_for_many_at_once() -> None:
    user_id = make_user()
    shared_keys.create(user_id=user_id, now=NOW)

    def create() -> str:
        try:
            shared_keys.create(user_id=user_id, now=NOW)
        except TooManySharedKeys:
            return "refused"
        return "made"

    answers = at_once(*[create] * 8)

    assert sorted(answers) == ["made"] * 2 + ["refused"] * 6
    assert SharedKey.objects.filter(user_id=user_id).count() == 3


@db
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"kudos": Decimal(-2)}, "The kudos have to be 0 or more"),
        ({"kudos": Decimal("0.001")}, "The kudos have to be 0 or more"),
        ({"kudos": Decimal(10) ** 15}, "and below 1000000000000000, with at most two decimals"),
        ({"kudos": Decimal("NaN")}, "The kudos have to be 0 or more"),
        ({"expires_at": NOW}, "expire in the future"),
        ({"name": "x" * 256}, "The name has to be at most 255"),
        ({"name": "a\nb"}, "The name has to be"),
        ({"max_text_tokens": -1}, "The tokens have to be 0 to"),
        ({"max_text_tokens": 2**31}, "The tokens have to be 0 to"),
    ],
)
def test_values_that_cannot_be_used_are_refused(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(UserRefused, match=complaint):
        shared_keys.create(user_id=make_user(), now=NOW, **changes)  # type: ignore[arg-type] # one wrong value each

    assert SharedKey.objects.count() == 0


@db
def test_expiring_twice_keeps_the_first_moment() -> None:
    made = shared_keys.create(user_id=make_user(), now=NOW)

    assert shared_keys.expire(key_id=made.id, now=LATER)
    assert not shared_keys.expire(key_id=made.id, now=LATER + timedelta(days=1))

    assert SharedKey.objects.get().expires_at == LATER


@db
def test_create_list_and_expire_print_sentences() -> None:
    user_id = make_user()

    first = run("create", f"alice#{user_id}", "--kudos", "-1", "--name", "friends").splitlines()
    key_id = first[1]

    assert first[0] == f"Made a shared key of alice#{user_id}; whoever has it can spend:"
    assert SharedKey.objects.get(id=UUID(key_id)).left_kudos is None
    assert run("list", str(user_id)) == (
        f"alice#{user_id}: 1 shared keys.\n{key_id}  unlimited, 0.00 used, never expires  friends\n"
    )
    assert run("expire", key_id) == "The shared key is expired now.\n"
    assert run("expire", key_id) == "The shared key had expired before.\n"
    assert ", expired " in run("list", str(user_id))


@db
def test_create_and_list_print_one_line_of_json() -> None:
    user_id = make_user()
    before = datetime.now(tz=UTC)

    made = json.loads(run("create", str(user_id), "--days", "7", "--max-text-tokens", "100", "--json"))
    listed = json.loads(run("list", str(user_id), "--json"))

    assert made == {"id": listed[0]["id"], "alias": f"alice#{user_id}"}
    assert len(listed) == 1
    assert listed[0] | {"expires_at": None, "created_at": None} == {
        "id": made["id"], "name": "", "left_kudos": "5000.00", "used_kudos": "0.00", "max_text_tokens": 100,
        "expires_at": None, "created_at": None,
    }  # fmt: skip
    created, expires = (datetime.fromisoformat(listed[0][key]) for key in ("created_at", "expires_at"))
    assert expires - created == timedelta(days=7)
    assert before <= created
    assert made["id"] not in repr(kept_keys.find_of_user(user_id=user_id))


@db
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["create", "0"], "The anonymous user has no shared keys"),
        (["create", "99999"], "There is no user with the id 99999."),
        (["create", "9" * 30], "There is no user with the id 9+."),
        (["create", "alice#0"], "The user with the id 0 is Anonymous#0, not alice#0."),
        (["list", "alice#0"], "The user with the id 0 is Anonymous#0, not alice#0."),
        (["create", "alice"], "neither a user's number nor an alias"),
        (["create", "1", "--kudos", "many"], "'many' is not a number"),
        (["create", "1", "--kudos", "sNaN"], "'sNaN' is not a number"),
        (["create", "1", "--kudos", "-2"], "The kudos have to be 0 or more"),
        (["create", "1", "--days", "0"], "'0' is not a number of days"),
        (["create", "1", "--days", "9999999"], "is not a number of days"),
        (["list", "99999"], "There is no user with the id 99999."),
        (["expire", "abc"], "invalid UUID value"),
        (["expire", str(uuid4())], "There is no shared key with this id."),
        ([], "required: ACTION"),
    ],
)
def test_the_command_refuses_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)

    assert SharedKey.objects.count() == 0
