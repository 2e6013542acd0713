"""The first pass of a chain sends a test message through each channel, from where it runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sentinel.chain import proofs, work
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.chain.status import chain_facts, chain_lines
from sentinel.slurm.client import SlurmClient
from sentinel.wiring import app
from tests.chain.test_work import program

TWO = """\
  oncall: {{kind: webhook, url: "https://hooks.example.org/{word}"}}
  desk: {{kind: email, to: [a@example.org], from: s@example.org, host: mail.example.org}}
  book: {{kind: file, path: {folder}/book}}
"""


class Site:
    """A chain under crontab whose sentinel is a program of a few lines that notes its calls."""

    def __init__(self, folder: Path, *, delivers: bool = True) -> None:
        self.folder, self.config = folder, folder / "sentinel.yaml"
        self.write("x")
        called = program(folder / "sentinel", f'echo "$*" >>{folder}/calls; . {folder}/answers')
        self.answer('echo "$3: ok: 250 queued"')
        self.place = ChainFolder(str(folder / "chain"))
        self.place.install_files(
            Chain(
                name="s", every=60, command=(str(called),), mode="crontab",
                config=str(self.config), delivers=delivers,
            ),
            "",
        )  # fmt: skip

    def write(self, word: str) -> None:
        """A configuration with two channels that reach somebody and one that does not."""
        channels = TWO.format(word=word, folder=self.folder)
        self.config.write_text(f"checks: {{a: {{kind: memory}}}}\nchannels:\n{channels}")
        self.config.chmod(0o600)

    def answer(self, text: str) -> None:
        """What a test message leads to; a tick tells that it ran."""
        tick = "echo '{\"ran\": true}'"
        (self.folder / "answers").write_text(f"case $1 in tick) {tick} ;; *) {text} ;; esac\n")

    def passes(self, count: int = 1) -> list[str]:
        """The test messages of so many passes, each in a slot of its own."""
        calls = self.folder / "calls"
        calls.write_text("")
        for _ in range(count):
            (self.folder / "chain" / "links.jsonl").unlink(missing_ok=True)
            work.run_link(self.place.folder, app.load_settings)
        return [line.split()[2] for line in calls.read_text().splitlines() if "notify test" in line]


def test_each_channel_is_tried_once_and_a_changed_one_anew(tmp_path: Path) -> None:
    """Not at every pass, and not those that reach nobody."""
    site = Site(tmp_path)
    assert site.passes(3) == ["oncall", "desk"]
    assert [(p.channel, p.ok, p.text) for p in proofs.read_proofs(site.place)] == [
        ("oncall", True, "ok: 250 queued"),
        ("desk", True, "ok: 250 queued"),
    ]
    site.config.write_text(site.config.read_text().replace("mail.example.org", "new.example.org"))
    assert site.passes(2) == ["desk"]


def test_another_kind_of_host_is_tried_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of one partition are alike."""
    site = Site(tmp_path)
    for partition, count in (("batch", 2), ("batch", 0), ("gpu", 2)):
        monkeypatch.setenv("SLURM_JOB_PARTITION", partition)
        assert len(site.passes()) == count


def test_what_fails_is_a_problem_with_a_remedy_and_is_tried_again_a_day_later(
    tmp_path: Path,
) -> None:
    """A relay that refuses compute nodes: `cron status` says so; nothing is sent each pass."""
    site = Site(tmp_path)
    site.answer(
        '[ "$3" = oncall ] && echo "$3: ok: 200" || { echo "$3: FAILED (network): no"; exit 1; }'
    )
    assert site.passes(3) == ["oncall", "desk"]
    found = chain_facts(site.place.folder, SlurmClient())
    host = os.uname().nodename
    assert f"desk: no message leaves {host} ({host}): FAILED (network): no; alerts wait" in (
        " ".join(found["problems"])
    )
    assert "sentinel deliver" in " ".join(found["problems"])
    text = "\n".join(chain_lines(found))
    assert f"oncall: a test message left {host} at" in text
    known = proofs.read_proofs(site.place)
    channels = {p.channel: p.digest for p in known}
    at = known[0].at
    assert proofs.unproven_channels(known, channels, host, at + 3600) == []
    assert proofs.unproven_channels(known, channels, host, at + proofs.AGAIN_S + 60) == ["desk"]


def test_a_chain_that_does_not_deliver_sends_no_test(tmp_path: Path) -> None:
    """Its messages leave from elsewhere."""
    assert Site(tmp_path, delivers=False).passes() == []


def test_a_torn_file_of_proofs_is_no_proof(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (tmp_path / "chain" / "proofs.json").write_text('[{"channel": "oncall"')
    assert site.passes() == ["oncall", "desk"]


def test_where_the_attempt_cannot_be_written_down_nothing_is_sent(tmp_path: Path) -> None:
    """Else each pass would send the same message again, for as long as the folder is not writable."""
    site = Site(tmp_path)
    (tmp_path / "chain" / "proofs.json").mkdir()
    assert site.passes(2) == []


def test_a_pass_that_was_killed_while_it_sent_does_not_send_again(tmp_path: Path) -> None:
    """The attempt stands there, as one of which nobody knows the answer."""
    site = Site(tmp_path)

    class Killed(BaseException):
        pass

    def send(_: str) -> tuple[bool, str]:
        raise Killed

    with pytest.raises(Killed):
        proofs.prove_channels(site.place, {"oncall": "d"}, send, where="n1")
    [known] = proofs.read_proofs(site.place)
    assert (known.ok, known.text) == (False, "the pass ended before the answer came")
    assert proofs.unproven_channels([known], {"oncall": "d"}, "n1", known.at + 60) == []
