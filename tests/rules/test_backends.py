"""Which worker programs count as validated backends."""

import pytest

from workers_app.rules.backends import is_validated


@pytest.mark.parametrize(
    ("bridge_agent", "expected"),
    [
        ("KoboldCppEmbedWorker:2:https://github.com/LostRuins/koboldcpp", True),
        ("AI Horde Worker:24.0.1:https://github.com/x/y", True),
        ("AI Horde Worker~aphrodite~oai:1.2.3:", True),
        ("TabbyAPI:v1.0:url:with:colons", True),
        ("hordechat bridge:0.1.0:", False),
        ("unknown:0:unknown", False),
        ("TabbyAPI", False),
        ("TabbyAPI:x:y", False),
        ("tabbyapi:1:y", False),
        ("", False),
    ],
)
def test_a_validated_backend_is_told_by_its_name(bridge_agent: str, expected: bool) -> None:
    assert is_validated(bridge_agent) is expected
