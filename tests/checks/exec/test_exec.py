"""Rules of the exec check, with real programs that behave and misbehave."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from sentinel import proc
from sentinel.checks.exec import MAX_NUMBERS, NO_ANSWER, ExecCheck, parse_output, parse_perfdata
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.model import Finding, Report, Status
from sentinel.proc import CommandNotFound, TimedOut, TooMuchOutput
from sentinel.testing import context
from tests.lab import needs
from tests.lab.fuse import Fuse
from tests.lab.waiting import HANG_LIMIT_S


def run(*command: str, memory: Any = None, limit: float = 20.0, **settings: Any) -> Report:
    check = ExecCheck(command=list(command), **settings)
    return check.run(context(name="load", limit=limit, memory=memory or {}))


def sh(script: str, **options: Any) -> Finding:
    (finding,) = run("sh", "-c", script, **options).findings
    return finding


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, Status.OK), (1, Status.WARNING), (2, Status.CRITICAL), (3, Status.UNKNOWN)],
)
def test_the_exit_code_is_the_status_and_the_first_line_the_summary(
    code: int, status: Status
) -> None:
    """The Nagios plugin API."""
    finding = sh(f"echo 'DISK - 3% free'; exit {code}")
    assert (finding.subject, finding.status, finding.summary) == ("load", status, "DISK - 3% free")


@pytest.mark.parametrize(
    ("script", "summary"),
    [
        ("exit 4", f"the command sh ended with exit code 4, {NO_ANSWER}"),
        ("echo hm; exit 255", f"the command sh ended with exit code 255, {NO_ANSWER}; it said: hm"),
        ("echo hm; kill -SEGV $$", "sh was ended by signal 11 (SIGSEGV): hm"),
        (
            "exec no-such-thing",
            f"exit code 127, {NO_ANSWER}; it said: sh: 1: exec: no-such-thing",
        ),
    ],
)
def test_what_is_no_answer_of_a_plugin_is_unknown(script: str, summary: str) -> None:
    """A plugin that dies has seen nothing; what it said is told."""
    finding = sh(script)
    assert finding.status is Status.UNKNOWN
    assert summary in finding.summary


def test_a_silent_command_is_judged_by_its_code_alone() -> None:
    """`test -e FILE` is a check too; stderr is told where there is no output."""
    assert sh("exit 0").summary == "the command sh ended with exit code 0 and said nothing"
    assert sh("echo oops >&2; exit 2").summary == "oops"


@pytest.mark.parametrize(
    ("script", "details"),
    [
        ("echo oops >&2; exit 2", ""),
        ("echo oops >&2; echo more >&2; exit 2", "oops\nmore"),
        ("echo BAD; echo oops >&2; exit 2", "oops"),
        ("echo BAD; echo long; echo oops >&2; exit 2", "long"),
        ("echo OK; echo oops >&2", ""),
    ],
)
def test_what_a_bad_plugin_complains_of_is_told_once(script: str, details: str) -> None:
    """In the details, unless the summary has it already."""
    assert sh(script).details == details


def test_numbers_become_values_and_samples() -> None:
    """Under the check's name, in the unit of the plugin."""
    report = run("sh", "-c", "echo \"OK | load1=0.5;8;16;0; '/var log'=7MB;;;0;9\"")
    assert report.findings[0].values == {"load1": 0.5, "/var log": 7.0}
    assert [(s.subject, s.name, s.value) for s in report.samples] == [
        ("load", "load1", 0.5),
        ("load", "/var log", 7.0),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("a=1 b=2", {"a": 1, "b": 2}, id="several"),
        pytest.param("a=1.5s;2;3;0;10", {"a": 1.5}, id="unit and limits"),
        pytest.param("a=-3% b=4c c=5KB", {"a": -3, "b": 4, "c": 5}, id="units of all kinds"),
        pytest.param("'it''s one'=1", {"it's one": 1}, id="a doubled quote is one"),
        pytest.param("'a=b'=1", {"a=b": 1}, id="an equals sign in quotes"),
        pytest.param("a=U b=2", {"b": 2}, id="undetermined is left out"),
        pytest.param("a=1;@5:10;~:3;;", {"a": 1}, id="ranges"),
        pytest.param("a=1.2.3 b=- c=2", {"c": 2}, id="no numbers"),
        pytest.param("a=1e9 b=2.5E-3s;1 c=3EB", {"a": 1e9, "b": 0.0025, "c": 3}, id="exponents"),
        pytest.param(
            "a=1e b=1x9 c=2,5", {"a": 1}, id="what follows a number is a unit or spoils it"
        ),
        pytest.param("''=1 a=2", {"a": 2}, id="a label without a letter is none"),
        pytest.param("", {}, id="nothing"),
        pytest.param("no performance data", {}, id="only words"),
    ],
)
def test_performance_data_is_read_as_the_guidelines_say(text: str, found: dict[str, float]) -> None:
    """'label'=value[UOM];[warn];[crit];[min];[max]"""
    assert parse_perfdata(text) == found


def test_long_output_is_details_and_may_carry_more_numbers() -> None:
    """The four-part form of the API."""
    answer = parse_output("DISK OK | /=1MB\nline one\nline two | /boot=2MB\n/home=3MB\n")
    assert (answer.line, answer.details) == ("DISK OK", "line one\nline two")
    assert answer.numbers == {"/": 1.0, "/boot": 2.0, "/home": 3.0}


@pytest.mark.parametrize("word", ["a", "' ", "''' ", "'", "a ", "1=", "a=1;", "a=."])
def test_a_megabyte_of_anything_is_read_in_one_pass(word: str) -> None:
    """A pattern that is tried at every letter holds up all of sentinel for hours."""
    assert parse_output(f"OK | {word * (1_000_000 // len(word))}").line == "OK"


def test_a_flood_of_numbers_is_cut() -> None:
    """Each is a sample in the state, run after run; what is infinite cannot even be stored."""
    flood = parse_output("OK | " + " ".join(f"n{i}={i}" for i in range(10_000)))
    assert len(flood.numbers) == MAX_NUMBERS
    assert flood.details == "9500 of 10000 numbers of performance data are not kept"
    assert parse_perfdata("a=1e999 b=-1e999 c=1") == {"c": 1}


@given(st.text())
def test_no_output_upsets_the_parser(text: str) -> None:
    """Plugins print what they like; the summary is always one visible line."""
    assert parse_output(text).line.isprintable()


def test_hostile_output_stays_text() -> None:
    """No escape sequence reaches a terminal, no line break a header."""
    finding = sh(r"printf 'OK \033[31m\r<b>\n\033]0;x\007 more'; exit 1")
    assert finding.summary == "OK \\x1b[31m\\r<b>"
    assert finding.details == "\\x1b]0;x\\x07 more"


def test_ten_megabytes_of_output_are_refused_in_one_line() -> None:
    """The plugin is ended; nothing of it is kept."""
    with pytest.raises(TooMuchOutput, match=r"^sh printed more than 1 MB; it was ended$"):
        sh("head -c 10000000 /dev/zero")


def test_a_plugin_that_hangs_is_ended_at_the_limit() -> None:
    """The message names it and the limit."""
    with pytest.raises(TimedOut, match=r"^sleep did not finish within 1s; it was ended$"):
        run("sleep", "60", limit=1.0)


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    """Missing, not executable, a directory, a file of another machine."""
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    with pytest.raises(CommandNotFound, match="No such file or directory"):
        run("/no/such/plugin")
    for path in (plain, tmp_path):
        with pytest.raises(CommandNotFound, match="not a file that may be executed"):
            run(str(path))
    plain.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"no program ((( of this machine")
    plain.chmod(0o755)
    (finding,) = run(str(plain)).findings
    assert finding.status is Status.UNKNOWN
    assert "no program that this machine can run" in finding.summary


def test_the_environment_is_sentinels_own_and_what_is_added() -> None:
    """PATH and HOME are there, as plugins expect."""
    assert sh('echo "$A $PATH"', env={"A": "1"}).summary.startswith("1 /")


@pytest.mark.parametrize("command", [[], [""]])
def test_a_check_without_a_command_is_refused(command: list[str]) -> None:
    """The message names the key."""
    with pytest.raises(Invalid, match="names no program") as error:
        ExecCheck(command=command)
    assert error.value.path == ("command",)


def test_a_plugin_of_debian_runs_as_it_stands() -> None:
    """check_load of monitoring-plugins-basic, with its performance data."""
    if not Path("/usr/lib/nagios/plugins/check_load").exists():
        needs.skip("needs Debian's monitoring-plugins-basic")
    (finding,) = run("/usr/lib/nagios/plugins/check_load", "-w", "900", "-c", "990").findings
    assert finding.status is Status.OK
    assert set(finding.values) == {"load1", "load5", "load15"}


def test_no_second_plugin_is_started_while_one_hangs_in_the_kernel(fuse: Fuse) -> None:
    """The one that even SIGKILL does not end is remembered; later it runs again."""
    fuse.hold("statfs")
    stuck = run("stat", "-f", str(fuse.point), limit=HANG_LIMIT_S)
    assert stuck.findings[0].status is Status.UNKNOWN
    assert "does not go away" in stuck.findings[0].summary
    with pytest.raises(CannotTell, match=r"an earlier run hangs: process .* no other is started"):
        run("true", memory=stuck.memory)
    assert fuse.withheld() == 1
    fuse.release()
    deadline = time.monotonic() + 10
    while proc.still_stuck(convert((stuck.memory or {})["stuck"], proc.StuckProcess)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert run("true", memory=stuck.memory).memory == {}
