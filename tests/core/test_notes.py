"""A note (who has it, until when it is silent, why it comes this way) stands in every form."""

import pytest

from sentinel.channels.format import text
from sentinel.channels.format.blocks import make_chat
from sentinel.channels.format.html import render_cards_html
from sentinel.core.command_places import SETUP_PLACE
from sentinel.core.guidance import Guidance
from tests.channels.samples import notification

REASONS = ["firing", "worse", "repeat", "ack", "flapping", "settled", "resolved", "gone", "action"]


@pytest.mark.parametrize("reason", REASONS)
def test_a_note_stands_in_every_form(reason: str) -> None:
    """Text, HTML and chat: a mail without it was once a mail that could not be made."""
    n = notification(reason=reason, note="acknowledged by <bob>")
    assert "acknowledged by <bob>" in text.render_text([n])
    assert "acknowledged by &lt;bob&gt;" in render_cards_html(text.rank_cards([n]))
    assert "acknowledged by <bob>" in "\n".join(b.text for b in make_chat([n]).blocks)


def test_every_section_has_a_look() -> None:
    """Whatever a card holds, HTML can be made of it."""
    n = notification(
        note="n", guidance=Guidance(todo="t"), links={"Acknowledge": "https://x.example.org/a/t/"}
    )
    page = render_cards_html(text.rank_cards([n, n]))
    commands = "Look closer (on a login node, as yourself)"
    for heading in (
        "Details",
        "What to do",
        commands,
        "Runbook",
        f"{text.MORE_HEADING} ({SETUP_PLACE})",
    ):
        assert f">{heading}</p>" in page
    assert page.count(">n</p>") == 2
    assert 'href="https://x.example.org/a/t/"' in page
