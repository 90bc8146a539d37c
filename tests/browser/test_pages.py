"""The pages for people, in a real browser that reaches nothing but the site."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import LiveHorde

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (on Debian: apt install chromium)"),
]
FLAGS = (
    "--headless",
    "--no-sandbox",  # continuous integration runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
)


def render(url: str, profile: Path) -> str:
    """Return a page's document as it stands once its scripts have run."""
    assert CHROMIUM is not None
    shown = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", url],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    return shown.stdout


def test_the_reference_shows_the_chat_body_with_an_example(live: LiveHorde, tmp_path: Path) -> None:
    document = render(f"{live.api.url}/api/#/chat/generate_chat_async_create", tmp_path)

    for path in ("/api/v2/generate/chat/async", "/api/v2/generate/text/pop", "/api/v2/find_user"):
        assert f'data-path="{path}"' in document
    assert "Queue a chat request" in document
    assert "demo/echo" in document


def test_the_admin_asks_for_a_login(live: LiveHorde, tmp_path: Path) -> None:
    document = render(f"{live.api.url}/admin/", tmp_path)

    assert 'name="username"' in document
    assert 'type="password"' in document
    assert "/static/admin/css/base.css" in document
