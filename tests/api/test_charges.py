"""What a reply costs and earns, by the model that served it, its backend and its owner's trust."""

from decimal import Decimal
from typing import Any

import pytest

from billing_app.selectors import ledger
from tests.horde import Horde, Person, make_person, one_value

LARGE = "elinas/chronos-70b-v2"
VALIDATED = "TabbyAPI:1.0:here"
PROMPT = [{"role": "user", "content": "x" * (8000 - len("user: "))}]
REPLY = {"role": "assistant", "content": "x" * 2000}


def serve(
    horde: Horde, *, model: str, owner: Person | None = None, state: str = "ok", **declared: Any
) -> dict[str, Any]:
    """Walk a request of 8,000 characters to a reply of 2,000, and return the submit's answer."""
    key = (owner or horde.owner).api_key
    worker = {"name": f"worker of {key}", "models": [model], "model_id": model, **declared}
    horde.pop(api_key=key, **worker)
    assert horde.submit(model=model, messages=PROMPT, max_tokens=512)[0] == 202
    job = horde.pop(api_key=key, **worker)[1]["id"]
    status, body = horde.reply(job, api_key=key, model_id=model, message=REPLY, state=state)
    assert status == 200, body
    return body


@pytest.mark.spec("PRC-01", "PRC-02", "PRC-25")
@pytest.mark.parametrize(
    ("bridge_agent", "reward"),
    [(VALIDATED, Decimal("637.41")), ("own worker:1:x", Decimal("191.22"))],
)
def test_a_known_model_earns_by_its_size_and_backend(horde: Horde, bridge_agent: str, reward: Decimal) -> None:
    body = serve(horde, model=LARGE, bridge_agent=bridge_agent)

    # 500 tokens x B(68.98) = 1.3962 x 68.98 / 125 x C(512) = 1.6545, and 0.3 of it where the backend is not validated.
    assert body == {"reward": float(reward)}
    assert horde.kudos(horde.owner) == reward
    assert horde.kudos(horde.requester) == Decimal(10_000) - 1 - reward - 1


def test_an_untrusted_owner_gets_half_in_escrow(horde: Horde) -> None:
    newcomer = make_person("newcomer")

    body = serve(horde, model=LARGE, owner=newcomer, bridge_agent=VALIDATED)

    escrow = one_value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'escrow'", [newcomer.id])
    assert body == {"reward": 637.41}
    assert (horde.kudos(newcomer), escrow) == (Decimal("318.71"), Decimal("318.70"))
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'reply'") == 2


def test_a_censored_reply_pays_both_halves_and_charges_its_burn_alone(horde: Horde) -> None:
    newcomer = make_person("newcomer")

    assert serve(horde, model=LARGE, owner=newcomer, state="censored", bridge_agent=VALIDATED) == {"reward": 637.41}

    escrow = one_value("SELECT posted_kudos FROM accounts WHERE user_id = %s AND kind = 'escrow'", [newcomer.id])
    assert (horde.kudos(newcomer), escrow) == (Decimal("318.71"), Decimal("318.70"))
    assert horde.kudos(horde.requester) == Decimal(10_000) - 1 - 1
    assert ledger.reconcile().is_sound


def test_an_untrusted_owner_of_an_unknown_model_earns_the_context_alone(horde: Horde) -> None:
    newcomer = make_person("newcomer")

    # C(512) of a prompt of 2,000 tokens that counts up to max_length.
    assert serve(horde, model="own/model", owner=newcomer) == {"reward": 1.65}


@pytest.mark.spec("MDL-01", "MDL-10", "MDL-25")
def test_a_model_of_the_reference_is_known_before_anybody_serves_it(horde: Horde) -> None:
    status, body = horde.submit(model=LARGE)
    assert (status, body["rc"]) == (403, "NoEligibleWorker")

    status, body = horde.submit(model=None, models=[LARGE, "no/model"])
    assert (status, body["rc"]) == (404, "UnknownChatModel")


@pytest.mark.spec("MDL-16", "PRC-24")
def test_the_estimate_reads_the_first_listed_model(horde: Horde) -> None:
    horde.pop()

    answers = [
        horde.submit(model=None, models=models)[1]["kudos"] for models in ([LARGE, "demo/echo"], ["demo/echo", LARGE])
    ]

    # 64 tokens of 68.98 billion parameters, 64 x 1.3962 x 68.98 x 3.4 / 100 and 2 more; and of an unknown model.
    assert answers == [212.0, 8.0]
