"""Why the state is not written just now."""

from msgspec import Struct

from sentinel.core.clock import Instant


class Trouble(Struct, frozen=True):
    """Since when and why, and how many writes wait.

    `lost_detail`: too many waited. No open alert or unsent message is lost, but samples
    are, and of transitions all but the newest thousand. `kept_in`: the journal that holds what
    waits, empty where only this process's memory does.
    """

    since: Instant
    why: str
    waiting: int = 0
    lost_detail: bool = False
    kept_in: str = ""
