"""What an alert is about, in the words of a subject line."""

from sentinel.core.model import Notification
from sentinel.core.shown import GPU_PREFIX, PCI_DOMAIN
from sentinel.core.text import shorten_to_line

_MAX_WORD_LENGTH = 80
_HOST_KINDS = ("exec", "fs", "service")


def card_title(n: Notification) -> str:
    """The check and its subject, each once, and the host of what is true there. A GPU is called by its
    node and slot: nobody knows it by its UUID."""
    check, subject = short_word(n.check), short_word(n.subject)
    if is_called_by_slot(n):
        slot = short_word(str(n.values.get("slot") or "")).removeprefix(PCI_DOMAIN)
        return f"{check} {short_word(n.labels['node'])}{f' slot {slot}' if slot else ''}"
    names = " ".join(filter(None, ("" if check in subject.split() else check, subject)))
    # A job may have run on more nodes than its label.
    device = n.labels.get("node", "") if n.kind == "gpu" else ""
    host = n.values.get("host") if n.kind in _HOST_KINDS else ""
    place = short_word(device or str(host or ""))
    return f"{names} on {place}" if place and place not in names + n.summary else names


def is_called_by_slot(n: Notification) -> bool:
    """Whether its title leaves out its subject: a GPU on a node that is known."""
    return n.kind == "gpu" and n.subject.startswith(GPU_PREFIX) and bool(n.labels.get("node"))


def short_word(text: str) -> str:
    """A name as it stands in a line."""
    return shorten_to_line(text, _MAX_WORD_LENGTH)
