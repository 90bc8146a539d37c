"""Screen the texts of a submission: for a flagged user, and where a model is marked as not safe for work.

The filter rewrites, it does not block. Whom it does not concern gets every text byte for byte as sent, and no statement
is spent on the filters.
"""

from collections.abc import Sequence

from hordechat.contract.chat import Message
from hordechat.model_reference import reference
from requests_app.errors import CorruptPrompt
from requests_app.rules import screening
from requests_app.rules.screening import Budget, Filter
from requests_app.selectors import prompt_filters
from requests_app.selectors.requesters import Requester


def screen_messages(
    messages: tuple[Message, ...], *, prompt: str, requester: Requester, models: Sequence[str]
) -> tuple[Message, ...]:
    """Return the messages as workers may get them; an emptied text stays as an empty one (FLT-15, FLT-16).

    `prompt` is the whole submission flattened, by which it is judged (FLT-10, FLT-20); texts are rewritten one by one.

    Raises:
        CorruptPrompt: the texts cannot be screened in time.
    """
    budget = Budget()
    filters = _find_filters(prompt, requester=requester, models=models, budget=budget)
    return messages if filters is None else screening.rewrite_messages(messages, filters, budget=budget)


def screen_prompt(prompt: str, *, requester: Requester, models: Sequence[str]) -> str:
    """Return a text request's prompt as workers may get it.

    Raises:
        CorruptPrompt: nothing is left of it, or it cannot be screened in time.
    """
    budget = Budget()
    filters = _find_filters(prompt, requester=requester, models=models, budget=budget)
    if filters is None:
        return prompt
    rewritten = screening.rewrite_text(prompt, filters, budget=budget)
    if not rewritten:
        raise CorruptPrompt
    return rewritten


def _find_filters(prompt: str, *, requester: Requester, models: Sequence[str], budget: Budget) -> list[Filter] | None:
    """Return the filters to apply, None when the submission is to stay as it is."""
    if requester.is_flagged:
        return prompt_filters.list_replacements()
    if not any(facts.is_nsfw for model in models if (facts := reference.find(model)) is not None):
        return None
    filters = prompt_filters.list_replacements()
    return filters if screening.is_age_related(prompt, filters, budget=budget) else None
