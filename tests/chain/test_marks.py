"""Whose link a job is, by what was written down before it was submitted."""

import pytest
from msgspec.structs import replace

from sentinel.chain.marks import LinkMark, recognise_links
from sentinel.chain.model import Chain, ChainLink

NOW = 6000
CHAIN = Chain(name="s", every=600, command=("sentinel",), revision="new", installed=NOW)
A, B = "s-a", "s-b"


def link(job: int, name: str = A, submitted: int | None = NOW, **more: object) -> ChainLink:
    return ChainLink(
        **{"job": str(job), "name": name, "state": "PENDING", "submitted": submitted, **more}
    )  # type: ignore[arg-type]


def mark(job: str = "", name: str = A, at: float = NOW, **more: object) -> LinkMark:
    return LinkMark(**{"name": name, "slot": 6600, "revision": "new", "at": at, "job": job, **more})  # type: ignore[arg-type]


def known(links: list[ChainLink], *marks: LinkMark) -> list[tuple[str, int, str]]:
    found = recognise_links(CHAIN, links, marks)[0]
    return [(one.job, one.slot, one.revision) for one in found]


OTHER = {"slot": 1200, "revision": "old"}


@pytest.mark.parametrize(
    ("links", "marks", "expected"),
    [
        ([link(7)], [mark(), mark("7")], [("7", 6600, "new")]),
        ([link(7, **OTHER)], [mark(), mark("7")], [("7", 6600, "new")]),
        ([link(7, submitted=NOW + 9000)], [mark("7")], [("7", 6600, "new")]),
        ([link(7)], [mark("7", **OTHER)], [("7", 1200, "old")]),
        ([link(7)], [mark("7"), mark("7", slot=7800)], [("7", 7800, "new")]),
        ([link(7)], [mark("7", name=B, **OTHER)], [("7", 0, "new")]),
        ([link(7)], [mark()], [("7", 6600, "new")]),
        ([link(7), link(8)], [mark()], [("7", 6600, "new"), ("8", 0, "new")]),
        ([link(7)], [mark(at=NOW - 700, **OTHER)], [("7", 0, "new")]),
        ([link(7)], [mark(at=NOW + 400, **OTHER)], [("7", 0, "new")]),
        ([link(7)], [mark(name=B)], [("7", 0, "new")]),
        ([link(7)], [mark(), mark("6")], [("7", 0, "new")]),
        ([link(7, **OTHER)], [mark()], [("7", 1200, "old")]),
        ([link(7, slot=6600, revision="new", submitted=60)], [], [("7", 6600, "new")]),
        ([link(7, submitted=60)], [], [("7", 0, "")]),
        ([link(7, submitted=60)], [mark()], [("7", 0, "new")]),
        ([link(7, submitted=60)], [mark(name=B), mark(**OTHER)], [("7", 0, "")]),
        ([link(7, submitted=None)], [], [("7", 0, "new")]),
    ],
    ids=[
        "by the id that sbatch returned",
        "a comment that the site rewrote proves nothing",
        "a requeue gives it a new time of submission",
        "of an older installation",
        "moved since then",
        "an id that was given again, to another strand",
        "no id came back: by name and time",
        "one mark is one job",
        "a mark of long before",
        "a mark that is younger than the job",
        "a mark of another strand",
        "a mark whose job is known",
        "of the version before, of an older installation",
        "of the version before",
        "unknown, and older than the installation",
        "a clock is wrong, and a submission has no answer",
        "another strand or installation has none",
        "unknown: by its name",
    ],
)
def test_a_link_is_known(
    links: list[ChainLink], marks: list[LinkMark], expected: list[tuple[str, int, str]]
) -> None:
    """By its job id; else by its name and its time of submission; never by a comment alone."""
    assert known(links, *marks) == expected


def test_a_job_is_adopted_once() -> None:
    """What was found out by its time is written down: a requeue changes that time."""
    links, marks = [link(7)], [mark(), mark()]  # the folder's, and that of this process
    adopted = recognise_links(CHAIN, links, marks)[1]
    assert adopted == [mark("7")]
    assert recognise_links(CHAIN, [link(7, submitted=9000)], [*marks, *adopted])[1] == []
    assert known([link(7, submitted=9000)], *marks, *adopted) == [("7", 6600, "new")]


def test_a_chain_that_could_write_nothing_goes_on() -> None:
    """A disk that is full since the installation: the links are known by their names."""
    links = [link(7), link(8, B)]
    assert known(links) == [("7", 0, "new"), ("8", 0, "new")]
    assert [one.job for one in recognise_links(replace(CHAIN, installed=0), links, [])[0]] == [
        "7",
        "8",
    ]
