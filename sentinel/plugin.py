"""The public face of sentinel: all that a kind of check, channel or action of your own needs.

Everything else in this package may be renamed; what is named here keeps its name and meaning
(docs/plugins.md).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sentinel.core.clock import SECOND, Instant
from sentinel.core.declared import ANY, FILESYSTEM, TRAINING, Metric
from sentinel.core.errors import CannotTell, ChannelError, Invalid
from sentinel.core.guidance import ActingCommand, Guidance, look
from sentinel.core.kinds import Action, Channel, Check
from sentinel.core.model import (
    ActionRequest,
    Coverage,
    Finding,
    Notification,
    Receipt,
    Report,
    Sample,
    Status,
    covered,
)
from sentinel.core.ports import Context, Hands, JobHands, JobView, View
from sentinel.core.settings import FilePath, Secret
from sentinel.core.shown import Column, SubjectCells
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Rate, Share, Size, duration_text, size_text

if TYPE_CHECKING:
    from sentinel.core.action_limits import Limits
    from sentinel.core.actions import Answer, Look, Reply
    from sentinel.proc import Done, TimedOut, run

__all__ = [
    "ANY",
    "FILESYSTEM",
    "SECOND",
    "TRAINING",
    "ActingCommand",
    "Action",
    "ActionRequest",
    "Answer",
    "CannotTell",
    "Channel",
    "ChannelError",
    "Check",
    "Column",
    "Context",
    "Coverage",
    "Done",
    "Duration",
    "FilePath",
    "Finding",
    "Guidance",
    "Hands",
    "Instant",
    "Invalid",
    "JobHands",
    "JobView",
    "Limits",
    "Look",
    "Metric",
    "Notification",
    "Rate",
    "Receipt",
    "Reply",
    "Report",
    "Sample",
    "Secret",
    "Share",
    "Size",
    "Status",
    "SubjectCells",
    "TimedOut",
    "View",
    "covered",
    "duration_text",
    "look",
    "run",
    "shortened",
    "size_text",
    "visible",
]

_LATER = {
    "Answer": "sentinel.core.actions",
    "Done": "sentinel.proc",
    "Limits": "sentinel.core.action_limits",
    "Look": "sentinel.core.actions",
    "Reply": "sentinel.core.actions",
    "TimedOut": "sentinel.proc",
    "run": "sentinel.proc",
}
"""What few kinds need is imported when it is asked for: a one-shot has to start fast."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
