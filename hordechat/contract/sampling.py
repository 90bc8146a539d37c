"""What a request's sampling params have to be together, chat or text; judged after its context was sized (ORD-09)."""

from collections.abc import Iterable

from hordechat.contract.limits import MAX_STOP_SEQUENCE_CHARACTERS, MAX_STOP_SEQUENCES
from hordechat.contract.refusals import ExcessiveStopSequence, TooManyStopSequences


def check_stop_sequences(sequences: Iterable[str], *, path: str) -> None:
    """Refuse more or longer stop sequences than a worker takes; repeated ones count once (REQ-41).

    Raises:
        TooManyStopSequences, ExcessiveStopSequence: with the path.
    """
    different = set(sequences)
    if len(different) > MAX_STOP_SEQUENCES:
        raise TooManyStopSequences(f"'{path}' holds more than {MAX_STOP_SEQUENCES} different sequences.")
    if sum(map(len, different)) > MAX_STOP_SEQUENCE_CHARACTERS:
        raise ExcessiveStopSequence(
            f"The sequences of '{path}' hold more than {MAX_STOP_SEQUENCE_CHARACTERS} characters."
        )
