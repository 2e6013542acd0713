"""Errors that sentinel raises, by who has to do something about them.

SentinelError
├── CannotTell        a check could not see; the answer is unknown, never empty
│   └── CannotAsk     not even the question could be put: nothing is known of the other side
├── Invalid           a setting is wrong; carries the path of the key
├── ChannelError      a message was not taken; permanent or worth another try
└── StoreError        the state cannot be read or written
    ├── StoreBusy     another sentinel leads on this state
    └── Fenced        this sentinel no longer leads: stop at once
"""


class SentinelError(Exception):
    """Base of every error that is shown to a person; its text is one line."""


class CannotTell(SentinelError):
    """The question could not be answered. A failed query is never an empty result.

    `message` says it in a person's words. `words` are the words of the program or host that was
    asked; they are shown below the message.
    """

    exit_code = 69
    """EX_UNAVAILABLE of sysexits(3)."""

    def __init__(self, message: str = "", words: str = "") -> None:
        super().__init__(f"{message}: {words}" if words else message)
        self.message, self.words = message, words


class CannotAsk(CannotTell):
    """The question could not even be asked (no such command), so nothing is known of the other
    side."""


class Invalid(SentinelError, ValueError):
    """A setting is wrong. `path` are the keys below the object that raised it."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


class ChannelError(SentinelError):
    """A channel did not accept the message.

    `permanent`: the same message will be refused again. `reason`: one word for counting (auth,
    refused, recipient, rate, network, timeout, tls, server). `retry_after`: seconds, if the other
    side named them.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        reason: str = "network",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.reason = reason
        self.retry_after = retry_after


class StoreError(SentinelError):
    """The state cannot be read or written just now."""

    exit_code = 74
    """EX_IOERR of sysexits(3)."""


class StoreBusy(StoreError):
    """Another sentinel leads on this state; its text names it. `since`: µs UTC, 0 if not known."""

    since = 0


class Fenced(StoreError):
    """A newer leader has taken over; nothing more may be written, sent or done."""


def describe_missing_extra(extra: str, error: ImportError) -> str:
    """What to do if a library of an extra is missing or incomplete: the command of pip."""
    wanted = f"'slurm-sentinel[{extra}]'"
    if isinstance(error, ModuleNotFoundError) and "." not in str(error.name):
        return f"needs the extra: pip install {wanted}"
    return f"needs the extra, which is not whole ({error}): pip install --force-reinstall {wanted}"
