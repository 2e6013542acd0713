"""A link does one deed to one alert until its end, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerting.signed_links import BadLink, LinkClaim, LinkSigner
from sentinel.core.clock import shift_instant
from sentinel.testing import START

SIGNER = LinkSigner("https://sentinel.example.org/", b"k" * 32, 3600.0)
NOW = START.wall // 10**6


def token(word: str = "Acknowledge", alert: str = "a1", channel: str = "oncall") -> str:
    return SIGNER.action_links(alert, channel, START)[word].removesuffix("/").rpartition("/")[2]


def test_a_link_allows_what_it_was_made_for() -> None:
    """The deed, the alert, whom it was sent to, and until when."""
    assert SIGNER.verify_token(token(), START) == LinkClaim("ack", "a1", "oncall", NOW + 3600)
    assert SIGNER.verify_token(token("Silence"), START).deed == "silence"


def test_one_link_acknowledges_all_or_there_is_none() -> None:
    (link,) = SIGNER.ack_all_link(["a1", "a2"], "oncall", START).values()
    claim = SIGNER.verify_token(link.removesuffix("/").rpartition("/")[2], START)
    assert claim == LinkClaim("ack", "a1,a2", "oncall", NOW + 3600)
    assert SIGNER.ack_all_link([f"{n:016x}" for n in range(999)], "oncall", START) == {}


def test_a_link_ends() -> None:
    """To the second."""
    SIGNER.verify_token(token(), shift_instant(START, 3599))
    with pytest.raises(BadLink, match="expired"):
        SIGNER.verify_token(token(), shift_instant(START, 3600))


def test_every_bit_counts() -> None:
    """No token that differs in one character from ours is valid."""
    good = token()
    for place, old in enumerate(good):
        for new in "A_" if old not in "A_" else "Bz":
            with pytest.raises(BadLink):
                SIGNER.verify_token(good[:place] + new + good[place + 1 :], START)


@pytest.mark.parametrize("more", ["A", "=", "==", "\n", " ", "/", "é", "A" * 5000])
def test_a_token_has_one_spelling(more: str) -> None:
    """What decoders forgive is not forgiven."""
    with pytest.raises(BadLink, match="not valid"):
        SIGNER.verify_token(token() + more, START)


@given(st.text() | st.text("AB_-09=", max_size=100))
def test_whatever_stands_in_an_address_is_answered(text: str) -> None:
    """In words, never by another error."""
    with pytest.raises(BadLink):
        SIGNER.verify_token(text, START)


def test_another_secret_signs_nothing_of_ours() -> None:
    """Nor does an empty claim."""
    other = LinkSigner(SIGNER.url, b"q" * 32, 3600.0)
    with pytest.raises(BadLink):
        other.verify_token(token(), START)
    with pytest.raises(BadLink):
        SIGNER.verify_token(SIGNER.make_token(LinkClaim("ack", "a1", "x", NOW))[:22], START)


def test_a_secret_is_not_shown() -> None:
    """A signer may end up in a log."""
    assert "kkkk" not in repr(SIGNER)


@given(st.text(max_size=30).filter(str.isprintable), st.text("abcdef0123456789", min_size=1))
def test_links_pass_through_every_markup(channel: str, alert: str) -> None:
    """Only characters that no service takes for anything, and an end that all take for one."""
    for url in SIGNER.action_links(alert, channel, START).values():
        assert re.fullmatch(r"https://sentinel\.example\.org/a/[A-Za-z0-9_-]+/", url)
        assert len(url) < 500
