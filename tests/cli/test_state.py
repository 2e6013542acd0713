"""Commands that only look at the state."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.host import ALICE, BOB, ROOT, Host


def said(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "XDG_STATE_HOME": str(folder), "HOME": str(folder)}
    env.pop("SENTINEL_CONFIG", None)
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *words],
        env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("words", [("status",), ("alerts", "list"), ("alerts", "history")])
def test_who_only_looks_makes_no_state(words: tuple[str, ...], tmp_path: Path) -> None:
    """Made by root's curious look, it would be in the way of the service's own user."""
    done = said(tmp_path, *words)
    assert done.returncode == 0
    assert done.stderr == (
        f"sentinel: {tmp_path}/sentinel: no state yet; sentinel run or sentinel tick makes it\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("nodes", "maintenance", "status"),
        ("nodes", "breaker", "status", "--json"),
        ("nodes", "list", "--history", "n1"),
        ("gpus", "list"),
    ],
)
def test_nor_who_looks_at_what_was_done(words: tuple[str, ...], tmp_path: Path) -> None:
    """There is nothing on record, and nothing stops actions."""
    assert said(tmp_path, *words).returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("status",), ("alerts", "list"), ("top", "--once")])
def test_who_only_looks_leaves_a_damaged_state_to_those_who_tell_people(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Set aside by a look, nobody would hear that the memory of actions is lost, and the next tick
    would act as if nothing had been done."""
    state = tmp_path / "sentinel"
    assert said(tmp_path, "status").returncode == 0
    state.mkdir()
    (state / "sentinel.db").write_text("this was a state once")
    done = said(tmp_path, *words)
    assert (done.returncode, done.stdout) == (74, "")
    assert "damaged" in done.stderr
    assert "sentinel run or tick sets it aside" in done.stderr
    assert (state / "sentinel.db").read_text() == "this was a state once"


def test_scripts_get_their_document(tmp_path: Path) -> None:
    """Nothing fires where nothing ever ran; stdout is JSON alone."""
    assert json.loads(said(tmp_path, "status", "--json").stdout)["alerts"] == []


def test_an_empty_list_says_which_state_was_looked_at(tmp_path: Path) -> None:
    """It may be that of another user than meant."""
    file = tmp_path / "s.yaml"
    file.write_text(
        f"state: {tmp_path}/own\nchecks: {{lamp: {{kind: exec, command: [/bin/true]}}}}\n"
    )
    assert said(tmp_path, "tick", "-c", str(file)).returncode == 0
    done = said(tmp_path, "alerts", "list", "--json", "-c", str(file))
    assert json.loads(done.stdout) == []
    assert done.stderr.endswith(f"sentinel: no alerts in the state {tmp_path}/own\n")


def test_an_order_has_to_be_written_somewhere(tmp_path: Path) -> None:
    """A silence into nowhere would be believed to hold."""
    done = said(tmp_path, "alerts", "silence", "check=fs", "--for", "1h", "--reason", "x")
    assert done.returncode == 66
    assert "no state yet" in done.stderr
    assert list(tmp_path.iterdir()) == []


MADE = """state: {state}
checks: {{lamp: {{kind: exec, command: [/bin/false]}}}}
channels: {{book: {{kind: file, path: {state}-book}}}}
"""
LOOKS = [["status", "--json"], ["status", "--metrics"], ["top", "--once"], ["alerts", "list"],
         ["explain", "abc"], ["gpus", "list", "--json"], ["nodes", "breaker", "status"]]  # fmt: skip


@pytest.mark.long
def test_another_users_state_is_not_an_empty_one(host: Host) -> None:
    """0700, with an alert that fires: not 0, not `no state yet`, not an empty document. The command
    that is told is one that answers."""
    state = host.home(ALICE) / "state"
    file = host.write(host.folder / "shared" / "s.yaml", MADE.format(state=state), ROOT)
    assert host.run(ALICE, "tick", "-c", file).returncode == 0
    for words in LOOKS:
        done = host.run(BOB, *words, "-c", file)
        assert (done.returncode, done.stdout) == (3, ""), done
        asked = f"sudo -H -u daemon sentinel {' '.join(words)} -c {file}"
        assert done.stderr.endswith(
            f"the state {state} cannot be read: Permission denied; {host.home(ALICE)} belongs to "
            f"daemon, who can: {asked}\n"
        )
    assert json.loads(host.run(ALICE, "status", "--json", "-c", file).stdout)["alerts"]


def test_nor_is_one_whose_files_alone_are_closed(host: Host) -> None:
    """The directory was there before and is open; the database is not."""
    state = host.give(host.folder / "state", ALICE)
    file = host.write(host.folder / "shared" / "s.yaml", MADE.format(state=state), ROOT)
    assert host.run(ALICE, "tick", "-c", file).returncode == 0
    for words in (["status"], ["gpus", "list"], ["nodes", "breaker", "status"]):
        done = host.run(BOB, *words, "-c", file)
        assert (done.returncode, done.stdout) == (3, ""), done
        assert f"the state {state} cannot be read: " in done.stderr
        assert "sudo -H -u daemon sentinel" in done.stderr


def test_the_environment_of_the_state_belongs_to_the_command_that_is_told(host: Host) -> None:
    """sudo forgets it; as the unit has it, the service's state lies below XDG_STATE_HOME."""
    done = host.run(BOB, "status", XDG_STATE_HOME=host.home(ALICE))
    assert done.returncode == 3
    assert f"sudo -H -u daemon env XDG_STATE_HOME={host.home(ALICE)} sentinel status" in done.stderr


@pytest.mark.long
def test_a_server_that_does_not_answer_has_no_empty_state_either(host: Host) -> None:
    """Nobody listens there."""
    url = "postgresql://nobody@127.0.0.1:9/x?connect_timeout=1"
    text = MADE.format(state=host.folder).replace(f"state: {host.folder}", f"state: {url}")
    file = host.write(host.folder / "s.yaml", text, ROOT)
    for words in (["status", "--json"], ["alerts", "list"]):
        done = host.run(BOB, *words, "-c", file)
        assert (done.returncode, done.stdout) == (3, ""), done


SERVICE = "state: {state}\nchecks: {{the-services: {{kind: exec, command: [/bin/false]}}}}\n"


@pytest.fixture(params=[(0o700, 0o644), (0o755, 0o600)], ids=["directory", "file"])
def service(request: pytest.FixtureRequest, host: Host) -> Host:
    """A service's configuration that only root may read."""
    folder, file = request.param
    text = SERVICE.format(state=host.home(ALICE))
    host.write(host.etc / "sentinel" / "sentinel.yaml", text, ROOT, file)
    (host.etc / "sentinel").chmod(folder)
    return host


WHY = "/etc/sentinel/sentinel.yaml cannot be read: Permission denied"


def test_the_built_in_default_is_not_shown_in_the_services_place(service: Host) -> None:
    """A service is there, and this user may not read what it goes by."""
    for words in (["status"], *LOOKS[2:6]):
        done = service.run(BOB, *words)
        assert (done.returncode, done.stdout) == (3, ""), done
        asked = f"sudo sentinel {' '.join(words)} -c /etc/sentinel/sentinel.yaml"
        assert f"{WHY}; its administrator can: {asked};" in done.stderr


def test_what_needs_no_configuration_says_that_it_goes_without(service: Host) -> None:
    """A kind is a kind; a word that is none may be a name of the file's. One's own file goes
    before, and whoever needs a file ends with 78."""
    done = service.run(BOB, "check", "fs")
    assert done.stdout
    assert f"sentinel: going by the built-in default: {WHY}" in done.stderr
    assert service.run(BOB, "check", "the-services").returncode == 3
    for words in (["tick"], ["config", "check"]):
        done = service.run(BOB, *words)
        assert (done.returncode, done.stdout) == (78, ""), done
        assert WHY in done.stderr
    assert service.run(BOB, "config", "init").returncode == 0
    done = service.run(BOB, "status", "--json")
    own = f"{service.home(BOB)}/.config/sentinel/sentinel.yaml"
    assert (done.returncode, json.loads(done.stdout)["config"]) == (0, own)


@pytest.mark.long
def test_every_command_names_the_file_it_goes_by(host: Host) -> None:
    """Another directory has another file: it is named on stderr, and stdout stays a document."""
    one, other = host.folder / "one" / "sentinel.yaml", host.folder / "other" / "sentinel.yaml"
    for path in (one, other):
        text = MADE.format(state=host.home(BOB) / path.parent.name)
        host.write(path, text, BOB)
    for words in (["status", "--json"], ["gpus", "list"], ["check", "lamp"], ["tick"],
                  ["config", "show"]):  # fmt: skip
        for path in (one, other):
            done = host.run(BOB, *words, cwd=path.parent)
            assert "sentinel: configuration: ./sentinel.yaml\n" in done.stderr, done
    shown = host.run(BOB, "status", "-c", one).stdout
    assert f"; configuration: {one}; state in " in shown
    assert "; configuration: the built-in default; state in " in host.run(BOB, "status").stdout


def test_the_first_configuration_is_written_where_it_is_found(host: Host) -> None:
    """At home, in directories of one's own; root's is the service's, with the service's state."""
    done = host.run(BOB, "config", "init", cwd=host.give(host.folder / "here", BOB))
    file = host.home(BOB) / ".config" / "sentinel" / "sentinel.yaml"
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, str(file))
    assert [stat.S_IMODE(p.stat().st_mode) for p in (file, file.parent, file.parent.parent)] == [
        0o600, 0o700, 0o700,
    ]  # fmt: skip
    assert list((host.folder / "here").iterdir()) == []
    assert host.run(BOB, "config", "check").stdout.startswith(f"{file}: ok")
    assert host.run(BOB, "config", "init").returncode == 73
    xdg = host.home(BOB) / "xdg"
    assert host.run(BOB, "config", "init", XDG_CONFIG_HOME=xdg).returncode == 0
    assert (xdg / "sentinel" / "sentinel.yaml").exists()
    done = host.run(ROOT, "config", "init")
    assert (done.returncode, done.stdout[:28]) == (0, "/etc/sentinel/sentinel.yaml:")
    services = host.etc / "sentinel" / "sentinel.yaml"
    assert "\nstate: /var/lib/sentinel\n" in services.read_text()
    assert stat.S_IMODE(services.stat().st_mode) == 0o600
    assert host.run(ROOT, "config", "check").stdout.startswith("/etc/sentinel/sentinel.yaml: ok")
