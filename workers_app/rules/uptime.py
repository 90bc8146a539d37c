"""How long a worker was online, and when that is rewarded (text-path 5.4)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from hordechat.contract.limits import ONLINE_SECONDS, UPTIME_REWARD_SECONDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Uptime:
    """A worker's time online, and up to where it was rewarded, in seconds."""

    seconds: int
    rewarded_seconds: int
    is_reward_due: bool = False

    def after(self, *, last_check_in: datetime, now: datetime, is_serving: bool) -> "Uptime":
        """Return the time online with a check-in now; a worker that was away or kept away begins a new stretch."""
        passed = now - last_check_in
        if not is_serving or passed > timedelta(seconds=ONLINE_SECONDS):
            return Uptime(seconds=self.seconds, rewarded_seconds=self.seconds)
        seconds = self.seconds + max(int(passed.total_seconds()), 0)
        is_due = seconds - self.rewarded_seconds > UPTIME_REWARD_SECONDS
        return Uptime(
            seconds=seconds, rewarded_seconds=seconds if is_due else self.rewarded_seconds, is_reward_due=is_due
        )
