"""Below the sentence of an alert stands what it does not say, each fact once."""

import pytest

from sentinel.channels.format.facts import make_facts
from sentinel.channels.format.text import make_card
from sentinel.core.model import Notification
from tests.channels.samples import notification


def facts(**fields: object) -> dict[str, str]:
    """What stands below a message with these fields."""
    n = notification(**{"labels": {}, "values": {}, **fields})
    return dict(make_facts(n, make_card(n).title))


def test_what_the_sentence_says_is_not_repeated() -> None:
    """Whole words only: 3 B is not said by 13 B, nor 97 by 97%."""
    values = {"used_percent": 97.0, "free_bytes": 3, "inodes": 97}
    assert facts(summary="97% used, 13 B free", values=values) == {"free": "3 B", "inodes": "97"}
    assert facts(summary="97% used, 3 B free", values=values) == {"inodes": "97"}


def test_a_short_number_needs_its_name_beside_it() -> None:
    """Or any digit of a sentence would hide it."""
    assert facts(summary="8 of 9 are gone", values={"entries": 9}) == {"entries": "9"}
    assert facts(summary="9 entries are there", values={"entries": 9}) == {}


@pytest.mark.parametrize(
    ("kind", "name"), [("quota", "inodes"), ("du", "inodes"), ("clean", "entries")]
)
def test_files_and_directories_are_called_inodes(kind: str, name: str) -> None:
    """The word that people search for; `clean` counts something else."""
    assert facts(kind=kind, values={"entries": 9}) == {name: "9"}


def test_a_label_that_stands_in_the_title_is_not_repeated() -> None:
    """Who it is about is said by the title; whose it is stays."""
    labels = {"job": "tr11-176B", "user": "alice"}
    assert facts(subject="tr11-176B", labels=labels) == {"user": "alice"}


def test_what_helps_nobody_to_decide_is_for_machines() -> None:
    """A yes or no, nothing, what is not known, and how something was measured."""
    values = {"clean": False, "up": True, "version": "", "trainer": "unknown", "calls": 8}
    assert facts(values={**values, "power_w": 71.5, "temperature_c": 41.0}) == {
        "power": "71.5 W",
        "temperature": "41°C",
    }


def gpu(summary: str) -> Notification:
    """An alert about a GPU of n1."""
    return notification(
        check="gpu", kind="gpu", subject="GPU-7", labels={"node": "n1"}, summary=summary
    )


def test_a_gpu_is_told_with_its_node() -> None:
    """In place of its UUID, which stands among the facts."""
    card = make_card(gpu("Xid 79"))
    assert card.title == "gpu n1"
    assert ("GPU", "GPU-7") in card.facts


def test_details_that_the_sentence_holds_are_left_out() -> None:
    """All of them or none: a line that is taken out of quoted ones would be a gap."""
    n = notification(summary="out: n1: bad dimm (DRAIN)", details="n1: bad dimm (DRAIN)")
    assert make_card(n).lines == ()
    n = notification(summary="out: n1: bad dimm", details="n1: bad dimm\nn2: fan")
    assert make_card(n).lines == ("n1: bad dimm", "n2: fan")
    assert make_card(notification(summary="job", details="b")).lines == ("b",)
