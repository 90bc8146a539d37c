"""An operator switches the site's maintenance, as often as they like."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from requests_app.models import SiteMode
from requests_app.selectors import site_modes as modes
from requests_app.services import site_modes
from tests.races import at_once

OFF = "Maintenance is off: new requests are taken.\n"
ON = "Maintenance is on: new requests are refused, what is queued is served.\n"


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("maintenance", *arguments, stdout=output)
    return output.getvalue()


@pytest.mark.django_db
def test_it_is_switched_on_and_off_and_shown() -> None:
    assert run("status") == OFF
    assert [run("on"), run("on"), run("status")] == [ON, ON, ON]
    assert modes.is_in_maintenance()
    assert json.loads(run("status", "--json")) == {"maintenance": True, "aborted": 0}
    assert [run("off"), run("off"), run("status")] == [OFF, OFF, OFF]
    assert json.loads(run("off", "--json")) == {"maintenance": False, "aborted": 0}
    assert SiteMode.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [[], ["maybe"]])
def test_anything_else_is_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        run(*arguments)

    assert SiteMode.objects.count() == 0


@pytest.mark.usefixtures("committed")
def test_it_may_be_switched_by_many_at_once() -> None:
    at_once(*[lambda: site_modes.set_maintenance(is_on=True)] * 8)

    assert modes.is_in_maintenance()
    assert SiteMode.objects.count() == 1
