"""Moderators read the filters in the admin and change none of them there."""

import pytest
from django.test import Client

from billing_app.models import User
from requests_app.models import PromptFilter

pytestmark = pytest.mark.django_db
LIST = "/admin/requests_app/promptfilter/"


@pytest.fixture
def staff(client: Client) -> Client:
    client.force_login(User.objects.create(login="mod", alias="mod", is_staff=True))
    return client


def test_filters_can_be_read_and_found_by_their_pattern_and_not_changed(staff: Client) -> None:
    kept = PromptFilter.objects.create(regex="dwarf|elf", filter_type=10, replacement="giant")
    other = PromptFilter.objects.create(regex="castle", filter_type=20)

    everything = staff.get(LIST)
    found = staff.get(LIST, {"q": "dwarf|elf"})
    shown = staff.get(f"{LIST}{kept.pk}/change/")
    refused = [
        staff.post(f"{LIST}{kept.pk}/change/", {"regex": "x"}),
        staff.post(f"{LIST}{kept.pk}/delete/", {"post": "yes"}),
        staff.post(f"{LIST}add/", {"regex": "x", "filter_type": 10}),
    ]

    assert [row.pk for row in everything.context["cl"].queryset] == [kept.pk, other.pk]
    assert [row.pk for row in found.context["cl"].queryset] == [kept.pk]
    assert "giant" in shown.content.decode()
    assert [answer.status_code for answer in refused] == [403] * 3
    assert list(PromptFilter.objects.order_by("id").values_list("regex", flat=True)) == ["dwarf|elf", "castle"]
