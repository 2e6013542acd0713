"""`sentinel nodes test --test memory|disk` on a real cluster of sixteen nodes: who is slow among peers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import needs
from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.nodes.test_measures import STREAM

SIZE = 16
ALL = [f"node-{at}" for at in range(SIZE)]
COMMAND_LIMIT_S = 240


@pytest.fixture(scope="module")
def wide_lab() -> Iterator[Lab]:
    if why := needs.why_no_lab():
        needs.skip(why)
    with Lab(nodes=SIZE) as lab:
        yield lab


@pytest.fixture
def wide(wide_lab: Lab) -> Iterator[Lab]:
    wide_lab.reset()
    for number in range(SIZE):
        _put_stream(wide_lab, number, 72_859.9)
    yield wide_lab
    wide_lab.reset()


def _put_stream(lab: Lab, number: int, rate: float) -> None:
    """It prints as much as fio does before the numbers: a long answer arrives whole."""
    text = "-" * 20_000 + "\n" + STREAM.replace("72859.9", str(rate))
    _put(lab, number, "stream_c", f"cat <<'END'\n{text}END")


def _put(lab: Lab, number: int, name: str, script: str) -> None:
    program = lab.nodes[number].bin / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def _test(lab: Lab, home: Path, *words: str) -> Done:
    config = home / "sentinel.yaml"
    config.write_text(
        f"state: {home}/state\nchecks: {{root: {{kind: fs, paths: [/]}}}}\n"
        "channels: {out: {kind: console}}\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "sentinel", "nodes", *words, "-c", str(config)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=COMMAND_LIMIT_S,
        env={**lab.env, "HOME": str(home)},
        cwd=lab.work,
        check=False,
    )


def test_the_slow_node_of_sixteen_is_named_and_left_out(wide: Lab, tmp_path: Path) -> None:
    """It is told, not drained; no job is left. Tested again at once only if it is named."""
    _put_stream(wide, 5, 36_000.0)
    words = ("test", "--test", "memory", "--share", "100%")
    done = _test(wide, tmp_path, *words)
    assert done.returncode == 1, done.stderr
    slow = (
        "memory: SLOW     node-5: triad 36,000 MB/s, 51% below the median of 15 peers, 72,860 MB/s"
    )
    assert done.stdout.splitlines()[0] == slow
    assert "memory: PASS     node-[0-4,6-15]: triad like its 15 peers" in done.stdout
    assert len(done.stdout.splitlines()) == 2
    wait_until(lambda: not wide.ask(["squeue", "-h"]), "the end of all jobs")
    assert "DRAIN" not in wide.ask(["sinfo", "-h", "-N", "-o", "%T"]).upper()
    assert _test(wide, tmp_path, "exclude").stdout == "node-5\n"
    again = _test(wide, tmp_path, *words)
    assert "memory: left out node-[0-15]: tested not long ago" in again.stderr
    _put_stream(wide, 5, 72_000.0)
    named = _test(wide, tmp_path, "test", "node-5", "--test", "memory")
    assert (named.returncode, named.stdout) == (
        0,
        "memory: PASS     node-5: triad like its 15 peers, median 72,860 MB/s\n",
    )


@pytest.mark.long
def test_hangs_and_missing_programs_are_no_verdict_about_a_node(wide: Lab, tmp_path: Path) -> None:
    """Six hang or lack it, so the other ten are nine peers of each, and pass."""
    for number in (0, 1):
        _put(wide, number, "stream_c", "exec sleep 1000")
    for number in (2, 3, 4, 5):
        (wide.nodes[number].bin / "stream_c").unlink()
    words = ("test", "--test", "memory", "--share", "100%", "--time", "1", "--json")
    done = _test(wide, tmp_path, *words)
    rows = {row["node"]: row for row in json.loads(done.stdout)["memory"]}
    told = {name: row["word"] for name, row in rows.items()}
    assert [told[name] for name in ALL] == [
        *["inconclusive"] * 2, *["missing"] * 4, *["pass"] * 10
    ]  # fmt: skip
    assert "did not end in time" in rows["node-0"]["text"]
    assert "install STREAM" in rows["node-2"]["text"]
    assert rows["node-9"]["measures"] == {"triad": 72859.9}
    assert done.returncode == 1
    assert _test(wide, tmp_path, "exclude").stdout == "\n"
    wait_until(lambda: not wide.ask(["squeue", "-h"]), "the end of all jobs")


def test_nodes_that_a_pending_job_could_use_are_left_alone(wide: Lab, tmp_path: Path) -> None:
    """Fifteen are idle, and a job waits for sixteen."""
    wide.sbatch("sleep 1000", nodes=1, nodelist="node-0", exclusive=True)
    wide.sbatch("sleep 1000", nodes=SIZE, exclusive=True)
    wait_until(
        lambda: sorted(wide.ask(["squeue", "-h", "-o", "%t %r"]).split()) == [
            "None", "PD", "R", "Resources"
        ],
        "one job that runs and one that waits",
    )  # fmt: skip
    done = _test(wide, tmp_path, "test", "--test", "memory")
    assert done.stdout == ""
    assert "memory: left out node-[1-15]: " in done.stderr
    assert "a pending job could use them" in done.stderr


def test_a_limit_of_the_operator_needs_no_peers(wide: Lab, tmp_path: Path) -> None:
    words = ("test", "node-[0-1]", "--test", "memory", "--share", "100%")
    done = _test(wide, tmp_path, *words)
    told = "INCONCLUSIVE node-[0-1]: triad: 1 peers, 8 are needed; median 72,860 MB/s"
    assert told in done.stdout
    _put_stream(wide, 1, 30_000.0)
    done = _test(wide, tmp_path, *words, "--at-least", "gpu:triad=50000")
    told = "FAIL     node-1: triad 30,000 MB/s, below the limit of 50,000 MB/s"
    assert told in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--test", "fs", "--share", "5%"], "--share belongs to the tests disk, ib, memory, nccl"),
        (["--at-least", "write=1"], "--at-least belongs to the tests"),
        (["--test", "disk", "--at-least", "write"], "'write' is no limit; write it like write=800"),
        (["--test", "disk", "--share", "0%"], "--share: must be above 0%"),
        (["--test", "disk", "--share", "some"], "'some' is no share"),
        (["--test", "disk", "--fresh", "soon"], "--fresh: 'soon' is no duration"),
        (["--test", "ib", "--pairs", "0"], "--pairs: must be 1 or more"),
    ],
)
def test_a_wrong_call_is_told_before_anything_runs(
    fresh: Lab, tmp_path: Path, words: list[str], told: str
) -> None:
    done = _test(fresh, tmp_path, "test", *words)
    assert (done.returncode, done.stdout) == (64, "")
    assert told in done.stderr


HERE = """\
export HOME={home}
exec >{home}/out 2>{home}/err
{python} -m sentinel nodes test --here --test memory {words}
code=$?
srun $(cat {home}/out) --nodes={left} --ntasks={left} hostname | sort >{home}/used 2>>{home}/err
echo $code >{home}/part && mv {home}/part {home}/code
"""


def _test_here(lab: Lab, left: int, *words: str) -> tuple[int, str, str, set[str]]:
    """Exit code, stdout and stderr in a job of an ordinary user, and where its next step ran."""
    user = lab.user("alice")
    script = HERE.format(home=user.home, python=sys.executable, words=" ".join(words), left=left)
    lab.sbatch(script, user=user, nodes=SIZE, exclusive=True, chdir=user.home)
    wait_until((user.home / "code").exists, "the end of the job's test", COMMAND_LIMIT_S)
    out, err, used = ((user.home / name).read_text() for name in ("out", "err", "used"))
    return int((user.home / "code").read_text()), out, err, set(used.split())


def test_in_ones_own_job_the_slow_node_is_left_out(wide: Lab) -> None:
    """One line for srun on stdout, which the job's next step takes as it is; the rest on stderr."""
    _put_stream(wide, 5, 36_000.0)
    code, out, err, used = _test_here(wide, SIZE - 1)
    assert (code, out) == (1, "--exclude=node-5\n"), err
    assert "memory: SLOW     node-5: triad 36,000 MB/s, 51% below the median of 15 peers" in err
    assert "memory: PASS     node-[0-4,6-15]: " in err
    assert used == {name for name in ALL if name != "node-5"}


def test_in_ones_own_job_of_good_nodes_nothing_is_left_out(wide: Lab) -> None:
    """Also where the program is missing: that blames no node."""
    (wide.nodes[3].bin / "stream_c").unlink()
    code, out, err, used = _test_here(wide, SIZE)
    assert (code, out) == (0, "--exclude=\n"), err
    assert "memory: MISSING  node-3: no stream_c" in err
    assert used == set(ALL)


def test_here_is_refused_outside_of_a_job_and_beside_other_nodes(
    fresh: Lab, tmp_path: Path
) -> None:
    done = _test(fresh, tmp_path, "test", "--here")
    assert (done.returncode, done.stdout) == (64, "")
    assert "--here: this is no job of Slurm" in done.stderr
    done = _test(fresh, tmp_path, "test", "node-0", "--here")
    assert "--here tests the nodes of your own job; leave out NODES" in done.stderr
