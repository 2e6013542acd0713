"""What scontrol answers about a batch script, and how jobs get the wish in it."""

import pytest

from sentinel.checks.wishes import MAX_LETTERS_PER_RUN, list_refusals
from sentinel.core.errors import CannotTell
from sentinel.core.script_memory import KnownScript
from sentinel.core.wishes import parse_wish
from sentinel.slurm.queue import read_queue
from sentinel.slurm.script_wishes import ScriptUnreadable, know_script
from sentinel.testing import job
from tests.slurm.answers import NONCE, listed, row
from tests.slurm.test_snapshot import World, unmarked
from tests.slurm.test_snapshot import world as world

SAID = "job script retrieval failed: "


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(
    ("err", "kind"),
    [
        ("Job script not specified", None),
        ("Invalid job id specified", None),
        ("Invalid user id", ScriptUnreadable),
        ("Access/permission denied", ScriptUnreadable),
        ("Something that nobody knows", ScriptUnreadable),
        ("Unable to contact slurm controller (connect failure)", CannotTell),
        ("", CannotTell),
    ],
)
def test_a_failure_is_known_by_its_words(
    world: World, err: str, kind: type[Exception] | None, code: int
) -> None:
    """scontrol 22.05 ends with 0 also when it fails."""
    world.stand_ins.says("scontrol", b"", err=err and f"{SAID}{err}\n", code=code)
    slurm = world.snapshot("alice")
    if kind is None:
        assert slurm.read_script("10") == b""
        return
    with pytest.raises(kind) as caught:
        slurm.read_script("10")
    assert type(caught.value) is kind


def test_one_command_reads_one_script_and_no_environment(world: World) -> None:
    """Never `scontrol show job`."""
    world.stand_ins.says("scontrol", b"#!/bin/sh\n#SENTINEL off\n\n")
    assert world.snapshot("alice").read_script("10") == b"#!/bin/sh\n#SENTINEL off\n\n"
    assert world.stand_ins.told("scontrol") == ["write batch_script 10 -"]


def test_jobs_have_the_wish_of_their_script(world: World) -> None:
    """From the next answer on. It is one request as before."""
    slurm = world.snapshot("alice")
    (plain,) = slurm.jobs()
    world.clock.advance(60)
    slurm.use_script_wishes({plain.array_id: know_script(plain, b"#SENTINEL off\n")})
    (wished,) = slurm.jobs()
    assert (plain.wish, wished.wish) == ("", "sentinel: off")
    assert len(world.stand_ins.told("squeue")) == 2
    world.clock.advance(60)
    world.stand_ins.says("squeue", unmarked(listed(row(comment=b"sentinel: stale=1h"))))
    assert [one.wish for one in slurm.jobs()] == ["sentinel: stale=1h"]


HOSTILE = (
    b"sentinel:" + b"x" * 1015,
    b"sentinel: stale=00:12:00 {n}",
    b'sentinel: {n} progress="(a+)+b',
    b"sentinel: \x1b[31m{n}\nalice|train",
    b'sentinel: progress="(x+x+)+y {n}(\\d+)" stale=1m',
    b"sentinel: gr\xfc\xdfe {n}",
    b"sentinel: off {n}",
    b"sentinel:",
    b"x" * 1024,
    b'{{"APS": {n}}}',
    b"00:12:00",
    b"gr\xfc\xdfe sentinel: off",
)


def test_each_of_5000_recorded_comments_is_followed_or_refused_or_anothers() -> None:
    """The text of one user, as squeue prints it; whatever it holds, it makes no other job."""
    texts = [HOSTILE[n % len(HOSTILE)].replace(b"{n}", b"%d" % n) for n in range(5000)]
    rows = [
        row(id=b"%d" % n, job=b"%d" % n, array=b"%d" % n, user=b"mallory", comment=text)
        for n, text in enumerate(texts)
    ]
    jobs = read_queue(listed(*rows), NONCE)
    assert [one.id for one in jobs] == [str(n) for n in range(5000)]
    for one, text in zip(jobs, texts, strict=True):
        wish = parse_wish(one.wish)
        assert (wish is not None) is text.startswith(b"sentinel:")
        if wish is not None:
            assert wish.off or wish.is_own_watch or wish.refused
            assert all(why.isprintable() for why in wish.refused)
    letters = list_refusals(jobs, lambda one: one.name)
    assert {letter.user for letter in letters} == {"mallory"}
    assert len(letters) == MAX_LETTERS_PER_RUN


def test_the_script_of_another_job_with_the_same_id_is_not_its_own() -> None:
    """After a cold start slurmctld gives ids again."""
    one, other = job("10"), job("10", command="/other.sh")
    assert know_script(one, b"") != know_script(other, b"")
    assert know_script(one, b"") == know_script(job("10", "PENDING"), b"")
    assert know_script(one, b"") == KnownScript(know_script(one, b"").digest)
