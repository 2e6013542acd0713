"""Wrong configurations: each mistake is told once, with its place and what to write instead."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.service.watch import Watch

CHECK = "checks: {{a: {{kind: fs, paths: [/]}}}}\n"

MISTAKES = {
    "broken YAML": ("checks:\n  a: {{kind: fs\n", [":4: this is not YAML: "]),
    "a tab": ("checks:\n\ta: {{kind: fs}}\n", [":4: a tab stands where YAML wants spaces"]),
    "an unknown key": (
        "checks:\n  a: {{kind: fs, pathz: [/]}}\n",
        [":4: checks.a.pathz: unknown key (did you mean 'paths'?)"],
    ),
    "an unknown section": ("chanels: {{}}\n", [":3: chanels: unknown key (did you mean 'channels'?)"]),
    "an unknown kind": (
        "checks:\n  a: {{kind: jobs}}\n",
        [":4: checks.a.kind: ", "(did you mean 'job'?)"],
    ),
    "a key twice": (
        "checks:\n  a: {{kind: fs}}\n  b: {{kind: fs}}\n  a: {{kind: memory}}\n",
        [":6: checks.a: key repeated; first in line 4"],
    ),
    "a wrong type": (
        "checks:\n  a:\n    kind: fs\n    paths: 3\n",
        [':6: checks.a.paths[0]: expected a path, got the number 3; write "3" in quotes'],
    ),
    "a wrong value": (
        "checks:\n  a: {{kind: fs, every: fast}}\n",
        [":4: checks.a.every: 'fast' is no duration; write it like 90s, 15m, 2h or 3d"],
    ),
    "a wrong cron": (
        "checks:\n  a: {{kind: fs, cron: '61 * * * *'}}\n",
        [":4: checks.a.cron: ", "61"],
    ),
    "a route to nobody": (
        CHECK + "channels: {{screen: {{kind: console}}}}\nroutes: [{{to: [scren]}}]\n",
        [":5: routes[0].to[0]: there is no channel 'scren'", "screen"],
    ),
    "a secret that is not there": (
        "channels:\n  m: {{kind: webhook, url: {{env: NOT_SET_ANYWHERE}}}}\n",
        [":4: channels.m.url.env: the environment variable NOT_SET_ANYWHERE is not set"],
    ),
    "a pulse into the log that is watched": (
        "checks:\n  j: {{kind: job, name: x, pulse_log: /l}}\n  l: {{kind: log, path: /l, stale_after: 5m}}\n",
        [":4: checks.j.pulse_log: "],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_is_right(watch: Watch, mistake: str) -> None:
    """`FILE:LINE: path.to.key: what is wrong`, on one line; exit 2."""
    text, expected = MISTAKES[mistake]
    watch.configure(text)
    done = watch.say("config", "check")
    assert done.returncode == 2
    (line,) = (done.stdout + done.stderr).splitlines()
    assert line.startswith(f"{watch.config}{expected[0]}")
    assert all(words in line for words in expected)


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines(watch: Watch) -> None:
    """Nobody wants to mend a file one error at a time."""
    watch.configure(
        """\
        checks:
          a: {{kind: fs, every: fast, paths: 3}}
          b: {{kind: nothing}}
        channels:
          c: {{kind: email, to: [], from: x, host: h}}
        routes: [{{to: [d]}}]
        """
    )
    done = watch.say("config", "check")
    lines = [line.split(":")[1] for line in (done.stdout + done.stderr).splitlines()]
    assert len(lines) >= 5
    assert lines == sorted(lines)
    assert set(lines) == {"4", "5", "7", "8"}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["config", "check"], 2),
        (["config", "show"], 78),
        (["run"], 78),
        (["tick"], 78),
        (["tick", "--json"], 78),
        (["check", "a"], 78),
        (["check", "a", "--json"], 78),
        (["check", "a", "--nagios"], 3),
        (["status"], 78),
        (["alerts", "list"], 78),
        (["explain", "x"], 78),
        (["notify", "test"], 78),
        (["doctor"], 78),
    ],
)
def test_every_command_refuses_a_wrong_file_with_its_own_code(
    watch: Watch, words: list[str], code: int
) -> None:
    """64 and above, but 2 for `config check` and Nagios' 3; stdout stays clean but for Nagios."""
    watch.configure("checks: {{a: {{kind: fs, pathz: [/]}}}}\n")
    done = watch.say(*words)
    assert done.returncode == code
    said = done.stdout + done.stderr
    assert "checks.a.pathz: unknown key (did you mean 'paths'?)" in said
    assert_plain(said)
    if code == 78:
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "cannot be read: it is a directory"),
        (lambda path: path.write_bytes(b"\xff\xfe\x00"), "UTF-16; save it as UTF-8"),
        (lambda path: path.write_bytes(b"a: \xe4\n"), "UTF-8"),
        (lambda path: path.write_text("- a list\n"), "must be a mapping, not a list"),
    ],
)
def test_a_file_that_is_none_is_named(watch: Watch, make: object, words: str) -> None:
    """What is wrong with the file as a whole, before any line of it."""
    make(watch.config)  # type: ignore[operator]
    done = watch.say("run")
    assert done.returncode == 78
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"sentinel: {watch.config}")
    assert words in line


def test_without_any_file_the_places_are_named(watch: Watch) -> None:
    """And the command that writes one."""
    done = watch.say_bare("tick")
    assert done.returncode == 78
    for word in ("-c FILE", "$SENTINEL_CONFIG", "sentinel config init"):
        assert word in done.stderr
    assert_plain(done.stderr)


WRONG_CALLS = {
    (): "COMMAND",
    ("bogus",): "invalid choice: 'bogus'",
    ("run", "--bogus"): "--bogus",
    ("run", "extra"): "extra",
    ("notify", "test", "--confg", "x"): "Try 'sentinel notify test --help'.",
    ("tick", "--confg", "x"): "unrecognized arguments: --confg x (did you mean --config?)",
    ("check",): "NAME|KIND",
    ("check", "nothing"): "kinds: chain, checkpoint, clean",
    ("check", "fss"): "(did you mean 'fs'?)",
    ("check", "job", "extra"): "unexpected argument 'extra'",
    ("check", "fs", "--bogus", "3"): "--bogus: there is no such option; known: --path",
    ("check", "fs", "--pat", "/"): "did you mean --path?",
    ("check", "fs", "--path"): "--path: the path is empty",
    ("check", "fs", "--warn", "used"): "--warn: expected KEY=VALUE",
    ("check", "fs", "--warn", "usde=3%"): "did you mean 'used'?",
    ("check", "fs", "--timeout", "x"): "--timeout: 'x' is no duration",
    ("check", "fs", "--timeout", "0s"): "--timeout: must be longer than 0s",
    ("check", "job"): "needs --name (exact), --match (regex)",
    ("check", "job", "--match", "("): "--match: ",
    ("alerts", "bogus"): "invalid choice",
    ("explain",): "ALERT",
    ("explain", "zz"): "no alert has the id or name 'zz'",
    ("notify",): "ACTION",
    ("config", "bogus"): "invalid choice",
}


@pytest.mark.parametrize("call", WRONG_CALLS, ids=" ".join)
def test_a_wrong_call_is_64_and_never_looks_like_an_answer(
    watch: Watch, call: Sequence[str]
) -> None:
    """argparse's own 2 would be `critical`."""
    done = watch.say_bare(*call)
    assert done.returncode == 64
    assert WRONG_CALLS[tuple(call)] in done.stdout + done.stderr
    assert_plain(done.stdout + done.stderr)


@pytest.mark.parametrize(
    "call", [("check", "fs", "--bogus", "3"), ("check", "nothing"), ("bogus",)]
)
def test_for_nagios_a_wrong_call_is_unknown(watch: Watch, call: Sequence[str]) -> None:
    """A plugin runner shows the first line of stdout, and 64 means nothing to it."""
    done = watch.say_bare(*call, "--nagios")
    assert done.returncode == 3
    assert done.stdout.startswith("UNKNOWN - ")
    assert_plain(done.stdout + done.stderr)


def test_without_slurm_a_look_says_what_is_missing(watch: Watch) -> None:
    """Unknown, never `no job runs`."""
    done = watch.say_bare("check", "job", "--name", "x", "--json", PATH=str(no_slurm(watch)))
    assert done.returncode == 3
    answer = json.loads(done.stdout)
    assert answer["status"] == "unknown"
    assert answer["summary"].startswith("Slurm's client commands are not installed or not in PATH")


def test_without_slurm_the_service_is_blind_and_says_so(watch: Watch) -> None:
    """The other checks go on."""
    watch.lamp(2)
    watch.env["PATH"] = str(no_slurm(watch))
    watch.configure(
        """\
        checks:
          training: {{kind: job, name: x, every: 1s, blind_after: 2}}
          LAMP
        channels:
          book: {{kind: file, path: {folder}/book.jsonl}}
        """
    )
    service = watch.run()
    watch.wait_told(service, check="lamp")
    (blind,) = watch.wait_told(service, check="training")
    assert (blind["subject"], blind["status"]) == ("", "unknown")
    assert "not installed or not in PATH" in blind["summary"]


def test_an_error_inside_a_check_is_unknown(watch: Watch) -> None:
    """3, not the 1 of a bare traceback, which would be `warning`."""
    site = watch.folder / "site"
    info = site / "odd-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sentinel.checks]\nodd = odd:Odd\n")
    (site / "odd.py").write_text(ODD)
    path = os.pathsep.join([str(site), *filter(None, [watch.env.get("PYTHONPATH")])])
    done = watch.say_bare("check", "odd", "--json", PYTHONPATH=path)
    assert done.returncode == 3
    assert "ZeroDivisionError" in json.loads(done.stdout)["summary"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("forbidden", "not writable by uid"),
        ("forbidden/below", "cannot be made: Permission denied"),
        ("file", "is not a directory"),
        ("read-only", "not writable by uid"),
    ],
)
@pytest.mark.parametrize("command", ["run", "tick"])
def test_a_state_that_cannot_be_written_is_refused_with_the_remedy(
    watch: Watch, command: str, place: str, words: str
) -> None:
    """Before anything is watched: a sentinel without a memory would tell everything twice."""
    (watch.folder / "file").touch()
    (watch.folder / "forbidden").mkdir(0o500)
    (watch.folder / "read-only").mkdir()
    (watch.folder / "read-only" / "sentinel.db").touch(0o400)
    watch.config.write_text(f"state: {watch.folder}/{place}\nchecks: {{a: {{kind: fs}}}}\n")
    argv = [*ORDINARY, sys.executable, "-m", "sentinel", command, "-c", str(watch.config)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=60, env=watch.env, check=False
    )
    assert done.returncode == 74
    line = done.stderr.splitlines()[-1]
    assert f"{watch.folder}/{place}" in line
    assert words in line
    assert "state:" in line
    assert_plain(done.stderr)


ORDINARY = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""Root without its powers is bound by permissions like everybody."""

ODD = '''\
from sentinel.plugin import Check


class Odd(Check):
    """Divides by nothing."""

    def run(self, ctx):
        return 1 / 0
'''


def no_slurm(watch: Watch) -> Path:
    """A PATH with little more than a shell (and what starts the service)."""
    folder = watch.folder / "few"
    folder.mkdir()
    for name in ("sh", "env", "id", "setpriv"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


def assert_plain(text: str) -> None:
    assert "Traceback" not in text
    assert 0 < len(text.splitlines()) < 45  # one line for each of 31 commands, and the heads
