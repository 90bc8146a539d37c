"""The chat contract: the body of a chat submit, judged exactly, without a database."""

from hordechat.contract.chat.body import ChatBody
from hordechat.contract.chat.dumping import dump
from hordechat.contract.chat.options import ChatHordeOptions
from hordechat.contract.chat.parsing import parse
from hordechat.contract.chat.submission import ChatSubmission, Message

__all__ = ["ChatBody", "ChatHordeOptions", "ChatSubmission", "Message", "dump", "parse"]
