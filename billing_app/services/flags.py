"""Flag a user, whose texts are then rewritten and whose requests wait behind all others; or take the flag away."""

from billing_app.errors import UnknownUser, UserRefused
from billing_app.models import User
from billing_app.rules.accounts import ANONYMOUS_USER_ID


def set_flagged(*, user_id: int, is_flagged: bool) -> bool:
    """Flag a user or clear the flag; False when it stood like this before.

    Raises:
        UnknownUser: nobody has this id.
        UserRefused: the user is the anonymous one.
    """
    if user_id == ANONYMOUS_USER_ID:
        raise UserRefused("The anonymous user is everybody and is never flagged.")
    if User.objects.filter(id=user_id, is_flagged=not is_flagged).update(is_flagged=is_flagged):
        return True
    if not User.objects.filter(id=user_id).exists():
        raise UnknownUser(user_id)
    return False
