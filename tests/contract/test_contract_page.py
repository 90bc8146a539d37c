"""`docs/contract.md` says what the code does."""

import json
import subprocess
import sys
from pathlib import Path

from hordechat.contract import chat
from hordechat.contract.chat import ChatBody, ChatHordeOptions
from requests_app.rules import contract_page

PROJECT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, "-m", "requests_app.rules.contract_page", "--check"]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_page_names_every_key_with_a_meaning() -> None:
    page = contract_page.render()

    for field, shape in [*ChatBody.model_fields.items(), *ChatHordeOptions.model_fields.items()]:
        assert f"| `{field}` |" in page
        assert (shape.description or "").endswith("."), field


def test_the_page_names_every_code_and_limit() -> None:
    page = contract_page.render()

    for code in contract_page.CODES:
        assert f"| `{code}` |" in page
    assert "| `MAX_CHAT_TEXT_BYTES` | 1048576 |" in page
    assert "| `MAX_WORKER_NAME_CHARACTERS`" not in page


def test_the_examples_of_the_page_are_taken() -> None:
    blocks = contract_page.render().split("```json\n")[1:]

    assert len(blocks) == 2
    for block in blocks:
        chat.parse(json.loads(block.split("\n```")[0]))
