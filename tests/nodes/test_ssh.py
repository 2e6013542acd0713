"""ssh against a real sshd: what gets through unchanged, and what each failure is told as."""

import os
import socket
import time
from pathlib import Path

import pytest

from sentinel import proc
from sentinel.core.node_answers import (
    Answered,
    Garbage,
    HostKeyChanged,
    HostKeyUnknown,
    NotAsked,
    Partial,
    Refused,
    TimedOut,
    Unreachable,
)
from sentinel.nodes.probe import NodeProbe, ProbeRequest
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.ssh import Ssh
from tests.lab.waiting import wait_until
from tests.nodes.nodes import saying
from tests.nodes.sshd import Sshd

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIDkBYqJEdc5UpjPSnFVi3QAcvkuB1XWIGaN2uP0pYhn"


def test_arguments_arrive_as_they_are_and_no_shell_sees_them(sshd: Sshd) -> None:
    """Quotes, blanks, dollars, newlines and bytes beyond ASCII; stdin too; the code is its own."""
    words = ["a b", "$(touch /tmp/x)", "'", '"', "*", "; exit 9", "-n", "", "ä\nb", "!!", "\\n"]
    script = 'for a; do printf "%s\\0" "$a"; done; cat; echo err >&2; exit 255'
    argv = ["sh", "-c", script, "sh", *words]
    told = sshd.reach().run(["node"], argv, limit=10, stdin=b"in\0put")["node"]
    out = b"".join(os.fsencode(word) + b"\0" for word in words) + b"in\0put"
    assert told == Answered(code=255, out=out, err=b"err\n")


def test_one_login_a_question(sshd: Sshd) -> None:
    """Every node is one round trip, by sshd's own log."""
    before = sshd.log.read_text().count("Accepted publickey")
    told = sshd.reach().run(["a", "b", "c"], ["true"], limit=60)
    assert told == {name: Answered(code=0) for name in "abc"}
    assert sshd.log.read_text().count("Accepted publickey") - before == 3


def test_noise_before_the_command_is_no_part_of_its_answer(tmp_path: Path, sshd: Sshd) -> None:
    """What sshd prints first is left out, and a signal to the command is the command's."""
    (tmp_path / "banner").write_text("Permission denied (banner)\n")
    with Sshd(tmp_path / "server", ["-o", f"Banner={tmp_path}/banner"]) as loud:
        told = loud.reach().run(["node"], ["sh", "-c", "printf x; kill -9 $$"], limit=10)["node"]
    assert isinstance(told, Answered)
    assert (told.code, told.out) == (137, b"x")


@pytest.mark.parametrize(
    ("forced", "answer", "words"),
    [
        ("echo welcome", Garbage, "welcome"),
        ("exit 1", Garbage, "exit code 1"),
        ("echo This account is currently not available.; exit 1", Refused, "not available"),
        ("echo 'Access denied by pam_slurm_adopt: no jobs' >&2; exit 255", Refused, "adopt"),
        ("kill -9 $$", Unreachable, "without a word"),
    ],
)
def test_a_server_that_runs_something_else_did_not_answer(
    tmp_path: Path, sshd: Sshd, forced: str, answer: type[Refused], words: str
) -> None:
    """A forced command or a shell that lets nobody in is no answer, whatever its exit code."""
    with Sshd(tmp_path / "server", ["-o", f"ForceCommand={forced}"]) as other:
        told = other.reach().run(["node"], ["true"], limit=60)["node"]
    assert isinstance(told, answer), told
    assert words in told.why


def test_a_hundred_megabytes_are_cut_off(sshd: Sshd) -> None:
    """A node that floods is ended and is no full answer; the others are not touched."""
    began = time.monotonic()
    told = sshd.reach().run(["flood"], ["head", "-c", "100000000", "/dev/zero"], limit=20)
    assert isinstance(told["flood"], Partial)
    assert "more than 8.39 MB" in told["flood"].why
    assert time.monotonic() - began < 15
    assert sshd.reach().run(["fine"], ["echo", "fine"], limit=60)["fine"] == Answered(
        code=0, out=b"fine\n"
    )


def test_what_stays_below_the_bound_arrives_whole(sshd: Sshd) -> None:
    """Eight million bytes, stdout and stderr apart."""
    argv = ["sh", "-c", "head -c 8000000 /dev/zero; echo err >&2"]
    told = sshd.reach().run(["node"], argv, limit=20)["node"]
    assert told == Answered(code=0, out=bytes(8_000_000), err=b"err\n")


def test_a_connection_that_breaks_is_a_partial_answer(sshd: Sshd) -> None:
    """What came until then is kept; nobody takes it for the whole."""
    kill = ["sh", "-c", "echo half; sleep 0.3; kill -9 $(ps -o ppid= -p $PPID)"]
    told = sshd.reach().run(["node"], kill, limit=10)["node"]
    assert isinstance(told, Partial), told
    assert told.out == b"half\n"


def test_a_command_that_does_not_end_is_ended_at_its_limit(sshd: Sshd) -> None:
    """A timeout is an answer of its own; no ssh is left here, and no command on the node."""
    mark = f"{time.monotonic_ns()}"
    began = time.monotonic()
    deaf = ["sh", "-c", "trap '' TERM; sleep 600", mark]
    told = sshd.reach(timeout=2, connect=1).run(["node"], deaf, limit=10)
    assert isinstance(told["node"], TimedOut)
    assert 2 <= time.monotonic() - began < 6
    assert proc.run(["pgrep", "-f", f"^ssh.*{mark}"], limit=5).out == b""
    wait_until(lambda: proc.run(["pgrep", "-f", mark], limit=5).out == b"", "its end on the node")


def test_a_changed_host_key_and_an_unknown_one_are_answers_of_their_own(sshd: Sshd) -> None:
    """Host keys are checked by default, whatever the file of ssh says; the user's words win."""
    sshd.config.write_text(f"{sshd.config.read_text()}  StrictHostKeyChecking no\n")
    sshd.vouch(OTHER_KEY)
    changed = sshd.reach().run(["node"], ["true"], limit=60)["node"]
    sshd.vouch("")
    unknown = sshd.reach().run(["node"], ["true"], limit=60)["node"]
    relaxed = sshd.reach("-o StrictHostKeyChecking=no").run(["node"], ["true"], limit=60)["node"]
    assert isinstance(changed, HostKeyChanged)
    assert "has changed" in changed.why
    assert isinstance(unknown, HostKeyUnknown)
    assert relaxed == Answered(code=0)


def test_a_key_that_is_not_accepted_is_refused(sshd: Sshd) -> None:
    """Permission denied, at once: nothing asks for a password."""
    told = sshd.reach("-o IdentityFile=/dev/null -o User=nobody").run(["node"], ["true"], limit=60)
    answer = told["node"]
    assert isinstance(answer, Refused)
    assert "Permission denied" in answer.why


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (b"", Refused),
        (b"SSH-2.0-x\r\n" + b"\0\xff" * 5000, Garbage),
        (b"\0\xff" * 5000, Garbage),
        (b"SSH-1.5-old\r\n", Garbage),
    ],
)
def test_what_is_no_sshd_is_told_by_what_it_says(
    sshd: Sshd, words: bytes, answer: type[object]
) -> None:
    """A door that closes at once refuses; anything that is not SSH 2 is garbage."""
    with saying(words) as port:
        told = sshd.reach(f"-p {port}").run(["node"], ["true"], limit=60)["node"]
    assert isinstance(told, answer), told


def test_an_sshd_that_accepts_and_says_nothing_timed_out(sshd: Sshd) -> None:
    """A node whose kernel takes connections while nothing else runs is not unreachable."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reach = sshd.reach(f"-p {silent.getsockname()[1]}", connect=1)
        told = reach.run(["node"], ["true"], limit=60)["node"]
    assert isinstance(told, TimedOut), told


def test_nobody_listening_is_unreachable_and_so_is_an_unknown_name(sshd: Sshd) -> None:
    """Connection refused, and no such host."""
    refused = sshd.reach("-p 1").run(["node"], ["true"], limit=60)["node"]
    nowhere = sshd.reach("-o HostName=no-such-host.invalid").run(["node"], ["true"], limit=60)
    assert isinstance(refused, Unreachable)
    assert isinstance(nowhere["node"], Unreachable)


@pytest.mark.parametrize("options", ["-F /no/such/file", "-o NoSuchOption=yes", "-o Port"])
def test_ssh_that_is_set_up_wrongly_asks_nobody(sshd: Sshd, options: str) -> None:
    """A slip in ssh_options is this host's trouble, not the nodes'."""
    reach = Reach(Ssh(RemoteSettings(ssh_options=options)), fanout=1, patience=10)
    told = reach.run(["localhost"], ["true"], limit=60)["localhost"]
    assert isinstance(told, NotAsked), told


def test_without_ssh_nobody_is_asked(tmp_path: Path) -> None:
    """No ssh in PATH is told as that, for every node."""
    reach = Reach(Ssh(RemoteSettings(), environ={"PATH": str(tmp_path)}), fanout=1, patience=10)
    told = reach.run(["a", "b"], ["true"], limit=60)
    assert {type(answer) for answer in told.values()} == {NotAsked}


@pytest.mark.parametrize("name", ["-oProxyCommand=touch {}", "a b", "root@node", "a;b", "", "a\nb"])
def test_a_name_that_is_none_is_not_asked_and_the_others_are(
    tmp_path: Path, sshd: Sshd, name: str
) -> None:
    """Neither an option, a user, nor a command gets anywhere near ssh, and blinds nobody."""
    strange = name.format(tmp_path / "touched")
    told = sshd.reach().run(["fine", strange], ["true"], limit=60)
    assert told["fine"] == Answered(code=0)
    refused = told[strange]
    assert isinstance(refused, NotAsked)
    assert "is no name of a node" in refused.why
    probes = sshd.reach().probe(["fine", strange], ProbeRequest(), limit=60)
    assert isinstance(probes["fine"], NodeProbe)
    assert isinstance(probes[strange], NotAsked)
    assert not (tmp_path / "touched").exists()


def test_no_word_of_a_question_is_an_option_of_ssh() -> None:
    """All that sentinel adds stands before `--`; after it come one name and one command."""
    command = Ssh(RemoteSettings()).command("node", ["-oProxyCommand=x", "-V"])
    assert command[command.index("--") + 1 :] == ["node", "exec -oProxyCommand=x -V"]
