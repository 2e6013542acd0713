"""What a link does when it is called, and `sentinel cron run`."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel import proc
from sentinel.chain import work
from sentinel.chain.folder import ChainFolder
from sentinel.chain.journal import JournalEntry
from sentinel.chain.model import Chain
from sentinel.chain.proofs import read_proofs
from sentinel.config.settings import Settings
from sentinel.core.errors import CannotTell
from sentinel.proc import threads
from sentinel.wiring import app


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("sbatch", "goes_on"), [("echo 5", True), ("exit 1", False)])
def test_a_relay_submits_what_is_due_beside_its_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str, goes_on: bool
) -> None:
    """Whether its successor was taken or not; the passes are the service's."""
    config = tmp_path / "sentinel.yaml"
    config.write_text(
        f"state: {tmp_path}/state\nchecks: {{scripts: {{kind: cron, base: {tmp_path}}}}}\n"
        f"channels: {{book: {{kind: file, path: {tmp_path}/book}}}}\n"
    )
    program(tmp_path / "sbatch", f"touch {tmp_path}/taken; {sbatch}")
    called = program(tmp_path / "sentinel", f'echo "$*" >>{tmp_path}/calls')
    chain = Chain(
        name="s", every=600, command=(str(called),), mode="relay", strands=1, time_limit=86400,
        config=str(config), revision="r",
    )  # fmt: skip
    row = f"s/%A/5/; s/%j/{chain.strand_names[0]}/; s/%T/PENDING/; s/%e/N\\/A/; s/%k/sentinel 1 r/; s/%r/x/; s/%V/1/"
    program(
        tmp_path / "squeue",
        f"[ -e {tmp_path}/taken ] || exit 0; echo \"$SQUEUE_FORMAT\" | sed '{row}'",
    )
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(chain, "")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("sentinel.chain.link.SUCCESSOR_PATIENCE_S", (0.0,))
    assert work.run_link(place.folder, app.load_settings) is goes_on
    assert (tmp_path / "calls").read_text() == f"cron run -c {config}\n"
    mail = f"book: {{kind: webhook, url: 'http://127.0.0.1:1/{tmp_path.name}'}}"
    config.write_text(config.read_text().replace("book:", f"{mail}, file:"))
    config.chmod(0o600)
    for delivers in (False, True):
        (tmp_path / "calls").unlink()
        place.install_files(replace(chain, delivers=delivers), "")
        work.run_link(place.folder, app.load_settings)
        tested = [f"notify test book -c {config}"] if delivers else []
        called_with = (tmp_path / "calls").read_text().splitlines()
        assert called_with == [*tested, f"cron run -c {config}"]


def test_one_base_that_is_away_stops_no_other(tmp_path: Path) -> None:
    """Its error is told at the end, with its exit code."""
    (tmp_path / "good/cron.hourly").mkdir(parents=True)
    argv = [sys.executable, "-m", "sentinel", "cron", "run"]
    bases = ["--base", f"{tmp_path}/away", "--base", f"{tmp_path}/good", "--base", f"{tmp_path}/no"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*argv, *bases], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("No such file or directory")) == (66, 2)
    assert (tmp_path / "good/.sentinel/cron.json").exists()


class Host:
    """A chain under crontab whose sentinel is a program of a few lines that notes its calls."""

    def __init__(self, folder: Path, answer: str, *, cron: bool = False, **more: Any) -> None:
        self.folder, self.config = folder, folder / "sentinel.yaml"
        scripts = f", scripts: {{kind: cron, base: {folder}}}" if cron else ""
        book = f"book: {{kind: webhook, url: 'http://127.0.0.1:1/{folder.name}'}}"
        self.config.write_text(f"checks: {{a: {{kind: memory}}{scripts}}}\nchannels: {{{book}}}\n")
        self.config.chmod(0o600)
        called = program(folder / "sentinel", f'echo "$*" >>{folder}/calls; {answer}')
        self.place = ChainFolder(str(folder / "chain"))
        self.chain = Chain(
            **{
                "name": "s", "every": 60, "command": (str(called),), "mode": "crontab",
                "config": str(self.config), "delivers": False, **more,
            }
        )  # fmt: skip
        self.place.install_files(self.chain, "")

    def run(self) -> tuple[list[str], JournalEntry]:
        """The calls of one link, without the file's name, and the last line of its journal."""
        assert work.run_link(self.place.folder, app.load_settings)
        calls = (self.folder / "calls").read_text().replace(f" -c {self.config}", "")
        return calls.splitlines(), self.place.read_journal()[-1]


@pytest.mark.parametrize(
    ("answer", "what", "text"),
    [
        ("echo '{\"ran\": true}'", "ran", ""),
        ("echo '{\"ran\": true}'; echo slow >&2", "ran", "slow"),
        ("echo '{\"ran\": false}'", "busy", ""),
        ("echo '{}'", "busy", ""),
        ("echo torn", "busy", ""),
        ("exit 3", "failed", "sentinel tick: exit code 3"),
        ("echo why >&2; exit 3", "failed", "why"),
        ("echo '{\"ran\": true}'; exit 3", "failed", "sentinel tick: exit code 3"),
    ],
)
def test_the_journal_tells_what_became_of_a_pass(
    tmp_path: Path, answer: str, what: str, text: str
) -> None:
    """A pass that failed did not run, whatever it printed; what printed nothing sure was busy."""
    calls, last = Host(tmp_path, answer).run()
    assert calls == ["tick --json --no-deliver"]
    assert (last.what, last.text) == (what, text)


def test_a_program_that_is_not_there_is_a_failed_pass(tmp_path: Path) -> None:
    """The link goes on: it may be back in the next slot."""
    host = Host(tmp_path, "")
    (tmp_path / "calls").touch()
    (tmp_path / "sentinel").unlink()
    calls, last = host.run()
    assert (calls, last.what) == ([], "failed")
    assert "sentinel" in last.text


def test_what_a_link_starts_and_fails_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A test message that was refused, and scripts that nobody could submit."""
    answer = 'case $1 in notify) echo "book: refused" >&2; exit 1;; esac'
    host = Host(tmp_path, answer, delivers=True, cron=True)
    host.run()
    assert "test message through book: refused\n" in capsys.readouterr().err
    (tmp_path / "sentinel").unlink()
    host.run()
    assert capsys.readouterr().err.count(f"{tmp_path}/sentinel") == 2  # the scripts and the pass


@pytest.mark.parametrize("is_named", [True, False])
def test_the_configuration_is_read_once(tmp_path: Path, is_named: bool) -> None:
    """The named one, else that of the chain: it may lie on a file system that is slow."""
    host, asked = Host(tmp_path, "echo '{}'"), list[str | None]()

    def settings_of(config: str | None) -> Settings:
        asked.append(config)
        return app.load_settings(config)

    named = str(host.config) if is_named else None
    assert work.run_link(host.place.folder, settings_of, named)
    assert asked == [str(host.config)]


def test_a_long_complaint_is_cut(tmp_path: Path) -> None:
    """The journal is read whole at each pass."""
    _, last = Host(tmp_path, "printf '%01000d' 0 >&2; exit 1").run()
    assert 400 < len(last.text) <= 500


def test_a_link_under_crontab_runs_the_scripts_first(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the file has directories of scripts; what they say, on either stream, is passed on."""
    answer = "[ $1 = tick ] && echo '{\"ran\": true}' || { echo out; echo err >&2; }"
    calls, last = Host(tmp_path, answer, cron=True).run()
    assert calls == ["cron run", "tick --json --no-deliver"]
    assert last.what == "ran"
    assert capfd.readouterr().err == "out\nerr\n"


def test_scripts_that_cannot_be_run_stop_no_pass(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They say nothing, or the program is gone: the pass is told of all the same."""
    calls, last = Host(tmp_path, "[ $1 = tick ] && echo '{\"ran\": true}' || :", cron=True).run()
    assert (len(calls), last.what, capfd.readouterr().err) == (2, "ran", "")
    (tmp_path / "gone").mkdir()
    host = Host(tmp_path / "gone", "", cron=True)
    (tmp_path / "gone/calls").touch()
    (tmp_path / "gone/sentinel").unlink()
    assert host.run()[1].what == "failed"
    assert "gone/sentinel" in capfd.readouterr().err


def test_a_file_with_errors_ends_no_chain(tmp_path: Path) -> None:
    """The pass tells of it: nothing else is known, so no script and no test message goes."""
    host = Host(tmp_path, "echo '{\"ran\": true}'", cron=True, delivers=True)
    host.config.write_text("checks: [")
    calls, last = host.run()
    assert (calls, last.what) == (["tick --json"], "ran")


def test_who_delivers_tries_its_channels_after_the_pass(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The trouble is told before the test; what the test said is told without the channel's name."""
    tick = "echo '{\"ran\": true}'"
    host = Host(tmp_path, f"[ $1 = tick ] && {tick} || echo 'book: ok: 200'", delivers=True)
    calls, _ = host.run()
    assert calls == ["tick --json", "notify test book"]
    assert "test message through book: ok: 200" in capfd.readouterr().err


def test_a_chain_without_a_file_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentinel looks for it in the usual places then."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SENTINEL_CONFIG", str(tmp_path / "sentinel.yaml"))
    host = Host(tmp_path, "echo '{\"ran\": true}'", config="")
    seen: list[str | None] = []

    def settings_of(path: str | None) -> Settings:
        seen.append(path)
        return app.load_settings(str(host.config))

    assert work.run_link(host.place.folder, settings_of)
    assert seen == [None]
    assert (tmp_path / "calls").read_text() == "tick --json --no-deliver\n"


class Programs:
    """In place of processes: what was called and how long each may take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *codes: int | None) -> None:
        self.called: list[tuple[str, float]] = []
        self.codes = list(codes)
        monkeypatch.setattr(proc, "run", self.run)

    def run(self, argv: list[str], *, limit: float) -> proc.Done:
        self.called.append((" ".join(argv[1:]), limit))
        code = self.codes.pop(0) if self.codes else 0
        if code is None:
            raise CannotTell("no answer")
        return proc.Done(code=code, out=b'{"ran": true}', err=b"", seconds=0.0)


CHAIN = Chain(name="s", every=60, command=("sentinel",), mode="crontab", delivers=False)


@pytest.mark.parametrize(("left", "scripts"), [(1000.0, 300.0), (300.0, 300.0), (100.0, 100.0)])
def test_a_pass_and_its_scripts_take_no_longer_than_is_left(
    monkeypatch: pytest.MonkeyPatch, left: float, scripts: float
) -> None:
    """And scripts never hold up a pass for more than five minutes."""
    programs = Programs(monkeypatch)
    work._make_pass(CHAIN, left, directories=True)
    assert programs.called == [("cron run", scripts), ("tick --json --no-deliver", left)]


@pytest.mark.parametrize(("mode", "spaced"), [("chain", True), ("relay", True), ("crontab", False)])
def test_a_pass_in_slurm_says_how_far_its_slots_are_apart(
    monkeypatch: pytest.MonkeyPatch, mode: Any, spaced: bool
) -> None:
    """Under crontab each minute may have a pass of its own."""
    programs = Programs(monkeypatch)
    chain = replace(CHAIN, mode=mode, every=600, time_limit=86400, strands=1)
    work._make_pass(chain, 100.0, directories=False)
    words = "tick --json --no-deliver" + (" --spacing=600" if spaced else "")
    assert programs.called == [(words, 100.0)]


@pytest.mark.parametrize(
    ("code", "ok", "text"),
    [(0, True, '{"ran": true}'), (1, False, '{"ran": true}'), (None, False, "no answer")],
)
def test_a_test_message_counts_where_its_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None, ok: bool, text: str
) -> None:
    """It has 90 seconds; one that gives no answer is no proof."""
    programs = Programs(monkeypatch, code)
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(CHAIN, "")
    work._prove_delivery(CHAIN, place, {"book": "digest"})
    assert programs.called == [("notify test book", 90.0)]
    (proof,) = read_proofs(place)
    assert (proof.channel, proof.ok, proof.text) == ("book", ok, text)


def test_files_that_hang_end_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder and the configuration have a minute each; without the latter only a pass is made."""
    programs, limits = Programs(monkeypatch), list[float]()
    place = ChainFolder(str(tmp_path / "chain"))
    place.install_files(CHAIN, "")

    def hang(seconds: float, what: str, work: object) -> None:
        limits.append(seconds)
        raise OSError(110, "no answer")

    def open_folder(folder: str, seconds: float) -> ChainFolder:
        limits.append(seconds)
        return place

    monkeypatch.setattr(threads, "run_within", hang)
    monkeypatch.setattr(work, "ChainFolder", open_folder)
    settings = work._read_settings(CHAIN, app.load_settings)
    assert (settings[1:], settings[0].timeout) == ((False, {}), type(settings[0])().timeout)
    assert work.run_link(place.folder, app.load_settings)
    assert limits == [60.0, 60.0, 60.0]
    assert [words for words, _ in programs.called] == ["tick --json --no-deliver"]
