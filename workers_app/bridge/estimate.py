"""How many tokens a prompt takes, for backends that cannot be asked."""

import json
import math

from workers_app.bridge.values import Payload

PLAIN_CHARACTERS_PER_TOKEN = 3
WIDE_BYTES_PER_TOKEN = 2


def _serialise(payload: Payload) -> str:
    # The JSON's own keys and braces stand for what a chat template adds around each message.
    return json.dumps([payload.dump_messages(), payload.tools or ()], ensure_ascii=False)


def plain_tokens(payload: Payload) -> int:
    """Count a token for every three characters of the messages' texts."""
    characters = sum(len(text) for message in payload.messages for text in message.texts())
    return math.ceil(characters / PLAIN_CHARACTERS_PER_TOKEN)


def careful_tokens(payload: Payload) -> int:
    """Estimate on the high side, tool calls and definitions included.

    English words take about four characters a token: three are counted. Digits and signs count as a token each. Other
    scripts count a token for every two bytes of UTF-8. Dense text, such as long random letters, can still take more.
    """
    text = _serialise(payload)
    loose = sum(character.isascii() and (character.isalpha() or character == " ") for character in text)
    wide_characters = sum(not character.isascii() for character in text)
    wide_bytes = len(text.encode("utf-8", "replace")) - (len(text) - wide_characters)
    dense = len(text) - loose - wide_characters
    return math.ceil(loose / PLAIN_CHARACTERS_PER_TOKEN + dense + wide_bytes / WIDE_BYTES_PER_TOKEN)
