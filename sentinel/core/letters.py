"""Messages to the author of a wish. They are no alerts: no status, statistic, report or route of
others counts them."""

from typing import Literal

from msgspec import Struct

from sentinel.core.guidance import LookingCommand

WISH_REASON = "wish"
"""The reason of a notification that is a letter."""


class Letter(Struct, frozen=True, kw_only=True):
    """A message to one user. It may be asked for in every run; it is sent once a day.

    id: Names its cause: letters of one id are one message a day.
    over: What the letter of this id told has ended. Nothing is sent if that letter was not.
    """

    id: str
    user: str  # The only reader.
    subject: str  # What it is about: the training.
    severity: Literal["ok", "warning", "critical"]  # How bad it is.
    summary: str  # One line for people.
    job: str = ""  # Name of the job.
    details: str = ""  # Further lines.
    commands: tuple[LookingCommand, ...] = ()  # Commands that the reader would run next.
    over: bool = False
