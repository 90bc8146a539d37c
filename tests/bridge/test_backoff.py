"""How long the bridge waits between attempts."""

import pytest

from workers_app.bridge import backoff


@pytest.mark.parametrize(
    ("failures", "retry_after_seconds", "least", "most"),
    [
        (1, None, 0.5, 1),
        (2, None, 1, 2),
        (4, None, 4, 8),
        (7, None, 30, 60),
        (100_000, None, 30, 60),
        (1, 0, 0, 0.25),
        (1, 7, 7, 7.25),
        (1, 86_400, 300, 300.25),
    ],
)
def test_the_pause_grows_up_to_a_bound(
    failures: int, retry_after_seconds: float | None, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 1.0)  # the other tests wait less

    pauses = [backoff.delay_seconds(failures, retry_after_seconds) for _ in range(50)]

    assert least <= min(pauses) <= max(pauses) <= most
    assert len(set(pauses)) > 1
