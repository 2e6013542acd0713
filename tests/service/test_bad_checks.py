"""What checks are pointed at by mistake, and limits the wrong way round: one clear line each."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.service.watch import Watch

MEGABYTES = "#!/bin/sh\nhead -c 10000000 /dev/zero | tr '\\0' x\n"

Make = Callable[[Path], object]
THINGS: dict[str, Make] = {
    "missing": lambda path: None,
    "a file": lambda path: path.write_text("text\n"),
    "a directory": Path.mkdir,
    "a FIFO": os.mkfifo,
    "a socket": lambda path: os.mknod(path, 0o140644),
    "a loop of links": lambda path: path.symlink_to(path),
    "prints 10 MB": lambda path: script(path, MEGABYTES),
    "hangs": lambda path: script(path, "#!/bin/sh\nsleep 60\n"),
    "hangs in a grandchild": lambda path: script(path, "#!/bin/sh\nsleep 60 & echo OK\n"),
    "is killed": lambda path: script(path, "#!/bin/sh\nkill -9 $$\n"),
    "is for another machine": lambda path: script(path, "\x7fELF"),
    "lacks its interpreter": lambda path: script(path, "#!/no/such/interpreter\n"),
}

# kind and option, what stands there, how the look ends, and the one line that is said
LOOKS: list[tuple[str, str, str, str]] = [
    ("fs --path", "missing", "CRITICAL", "{it}: does not exist"),
    ("fs --path", "a file", "UNKNOWN", "{it}: is not a directory; give the directory that is to be watched"),
    ("fs --path", "a FIFO", "UNKNOWN", "{it}: is not a directory; give the directory that is to be watched"),
    ("fs --path", "a loop of links", "UNKNOWN", "{it}: is a loop of symbolic links"),
    ("log --path", "missing", "UNKNOWN", "{it}: {it} does not exist; check the path"),
    ("log --path", "a directory", "UNKNOWN", "{it}: {it} is a directory, not a log; name a regular file"),
    ("log --path", "a FIFO", "UNKNOWN", "{it}: {it} is a fifo, not a log; name a regular file"),
    ("log --path", "a socket", "UNKNOWN", "{it}: {it} is a socket, not a log; name a regular file"),
    ("log --path", "a loop of links", "UNKNOWN", "{it}: {it} cannot be read: Too many levels of symbolic links"),
    ("exec --command", "missing", "UNKNOWN", "cannot start {it}: No such file or directory"),
    ("exec --command", "a file", "UNKNOWN", "cannot start {it}: Permission denied (not a file that may be executed)"),
    ("exec --command", "a directory", "UNKNOWN", "cannot start {it}: Permission denied (not a file that may be executed)"),
    ("exec --command", "prints 10 MB", "UNKNOWN", "{it} printed more than 1 MB; it was ended"),
    ("exec --command", "hangs", "UNKNOWN", "{it} did not finish within 1s; it was ended"),
    ("exec --command", "hangs in a grandchild", "UNKNOWN", "{it} ended, but a process it left behind kept its output open for 3s; it was ended too"),
    ("exec --command", "is killed", "UNKNOWN", "exec: {it} was ended by signal 9 (SIGKILL)"),
    ("exec --command", "is for another machine", "UNKNOWN", "exec: {it} is no program that this machine can run: …"),
    ("exec --command", "lacks its interpreter", "UNKNOWN", "cannot start {it}: No such file or directory"),
]  # fmt: skip
LIMITS = {"hangs": "1s", "hangs in a grandchild": "3s"}
"""Of what comes to its limit; on a busy machine a shell may need a second to leave a process behind. All
else ends by itself long before the limit that users have."""

CODES = {"CRITICAL": 2, "UNKNOWN": 3}


@pytest.mark.parametrize(("look", "thing", "status", "line"), LOOKS)
def test_a_look_at_the_wrong_thing_says_so_in_one_line(
    watch: Watch, look: str, thing: str, status: str, line: str
) -> None:
    """On stdout, with the exit code of its status; nothing on stderr."""
    it = made(watch, thing)
    limit = ["--timeout", LIMITS[thing]] if thing in LIMITS else []
    done = watch.say_bare("check", *look.split(), it, *limit)
    assert (done.returncode, done.stderr) == (CODES[status], "")
    said, *guidance = done.stdout.splitlines()
    assert_line(said, f"{status} {line.format(it=it)}")
    assert all(line.startswith("         ") for line in guidance)


SETTINGS = {
    "fs --path": "fs, paths: ['{it}']",
    "log --path": "log, path: '{it}'",
    "exec --command": "exec, command: ['{it}']",
}


@pytest.mark.parametrize(("look", "thing", "status", "line"), LOOKS)
def test_a_check_of_the_wrong_thing_raises_an_alert_that_says_so(
    watch: Watch, look: str, thing: str, status: str, line: str
) -> None:
    """One alert: what is seen to be bad under its subject, what cannot be seen as blindness."""
    it = made(watch, thing)
    watch.configure(
        "checks:\n"
        "  it: {{kind: {settings}, timeout: {limit}, blind_after: 1}}\n"
        "channels:\n"
        "  book: {{kind: file, path: {folder}/book.jsonl}}\n",
        settings=SETTINGS[look].format(it=it),
        limit=LIMITS.get(thing, "30s"),
    )
    assert watch.say("tick", "--all").returncode == 0
    (told,) = watch.book
    assert (told["status"], told["reason"]) == (status.lower(), "firing")
    assert (told["subject"] == "") == (status == "UNKNOWN")
    summary = line.format(it=it).removeprefix("exec: " if status == "UNKNOWN" else f"{it}: ")
    assert summary.removesuffix("…") in told["summary"]


REVERSED = {
    "fs --warn used=95% --crit used=85%": "--warn used: warns at 95% but is critical at 85% already: used has to be lower in warn than in crit",
    "fs --warn free=1GB --crit free=2GB": "--warn free: warns at 1 GB but is critical at 2 GB already: free has to be higher in warn than in crit",
    "fs --warn inodes_used=9% --crit inodes_used=8%": "--warn inodes_used: warns at 9% but is critical at 8% already: inodes_used has to be lower in warn than in crit",
    "memory --warn used=98%": "--warn used: warns at 98% but is critical at 97% already: used has to be lower in warn than in crit",
    "memory --warn available=1GB --crit available=2GB": "--warn available: warns at 1 GB but is critical at 2 GB already: available has to be higher in warn than in crit",
    "memory --warn full_in=1h --crit full_in=2h": "--warn full_in: warns at 1h but is critical at 2h already: full_in has to be higher in warn than in crit",
    "slurm --warn latency=20s": "--warn latency: warns at 20s but is critical at 10s already: latency has to be lower in warn than in crit",
}  # fmt: skip


@pytest.mark.parametrize("call", REVERSED)
def test_limits_the_wrong_way_round_are_refused(watch: Watch, call: str) -> None:
    """A wrong call, which no caller takes for an answer; for plugin runners it is unknown."""
    done = watch.say_bare("check", *call.split())
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.splitlines()[0] == f"sentinel: {REVERSED[call]}"
    done = watch.say_bare("check", *call.split(), "--nagios")
    assert (done.returncode, done.stdout) == (3, f"UNKNOWN - {REVERSED[call]}\n")


@pytest.mark.parametrize("call", REVERSED)
def test_limits_the_wrong_way_round_are_refused_at_their_line(watch: Watch, call: str) -> None:
    """By `config check`, before anything runs."""
    kind, *options = call.split()
    pairs = zip(options[::2], options[1::2], strict=True)
    lines = [f"    {o.lstrip('-')}: {{{{{v.replace('=', ': ')}}}}}\n" for o, v in pairs]
    watch.configure(f"checks:\n  it:\n    kind: {kind}\n{''.join(lines)}")
    done = watch.say("config", "check")
    option, _, message = REVERSED[call].partition(": ")
    key = option.lstrip("-").replace(" ", ".")
    assert done.returncode == 2
    assert f"{watch.config}:6: checks.it.{key}: {message}\n" in done.stdout + done.stderr


def test_a_command_and_its_arguments_in_one_word_are_told_apart(watch: Watch) -> None:
    """The most usual mistake with a plugin; no shell takes it apart."""
    done = watch.say_bare("check", "exec", "--command", "check_load -w 5")
    assert done.stdout == (
        "UNKNOWN cannot start check_load -w 5: No such file or directory "
        "(the name holds a blank: arguments are items of their own)\n"
    )
    watch.configure("checks:\n  it: {{kind: exec, command: check_load -w 5}}\n")
    done = watch.say("config", "check")
    assert 'write [check_load, "-w", "5"], or ["check_load -w 5"] if it is one item' in (
        done.stdout + done.stderr
    ), done


def test_one_wrong_path_takes_nothing_from_the_others(watch: Watch) -> None:
    """Each is answered by itself, the worst decides."""
    file = made(watch, "a file")
    done = watch.say_bare(
        "check", "fs", "--path", file, "--path", "/no/such", "--path", "/", "--json"
    )
    assert done.returncode == 2
    seen = {f["subject"]: f["status"] for f in json.loads(done.stdout)["findings"]}
    assert (seen[str(file)], seen["/no/such"]) == ("unknown", "critical")
    assert seen["/"] in ("ok", "warning", "critical")


def made(watch: Watch, thing: str) -> Path:
    path = watch.folder / "it"
    THINGS[thing](path)
    return path


def script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def assert_line(said: str, wanted: str) -> None:
    """Equal, or as far as the wanted line goes where it ends in three dots."""
    assert said == wanted or (wanted.endswith("…") and said.startswith(wanted[:-1]))
    assert said.isprintable()
