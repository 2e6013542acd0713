"""The first pass of a chain sends a test message through each channel, from where it runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.chain import proofs, work
from sentinel.chain.folder import ChainFolder
from sentinel.chain.journal import JournalEntry
from sentinel.chain.model import Chain
from sentinel.chain.status import _find_silent_job, chain_facts, chain_lines
from sentinel.chain.timers import CronTable
from sentinel.cli import main
from sentinel.core.model import Status
from sentinel.doctor.cron import NO_RUN_YET, check_chain
from sentinel.slurm.client import SlurmClient
from sentinel.wiring import app
from tests.chain.test_timers import put_crontab
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
        self.chain = Chain(
            name="s", every=60, command=(str(called),), mode="crontab",
            config=str(self.config), delivers=delivers,
        )  # fmt: skip
        self.place.install_files(self.chain, "")

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


def test_a_login_and_status_say_that_no_message_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`no alerts` is no calm where none would arrive. A channel that was changed since is not named."""
    put_crontab(tmp_path, monkeypatch)
    site = Site(tmp_path)
    CronTable("crontab", site.chain, site.place).install_entry()
    site.config.write_text(f"state: {tmp_path}\n{site.config.read_text()}")
    main(["tick", "-c", str(site.config)])

    def count_lines(*words: str) -> int:
        capsys.readouterr()
        assert main([*words, "-c", str(site.config)]) == 0
        shown = capsys.readouterr()
        return " ".join((shown.out + shown.err).split()).count("no message leaves")

    for answer, count in (("FAILED (network): no", 2), ("ok: 250", 0)):
        site.answer(f'echo "$3: {answer}"; exit {count}')
        (tmp_path / "chain" / "proofs.json").unlink(missing_ok=True)
        site.passes()
        assert [count_lines("cron", "ensure"), count_lines("status")] == [count, count]
    site.answer('echo "$3: FAILED (network): no"; exit 1')
    (tmp_path / "chain" / "proofs.json").unlink()
    site.passes()
    site.config.write_text(site.config.read_text().replace("mail.example.org", "new.example.org"))
    assert [count_lines("cron", "ensure"), count_lines("status")] == [1, 1]


def test_a_login_and_doctor_say_that_the_first_job_made_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cron ensure` stands in a login script: its silence would be taken for a good night. It ends
    with the first pass."""
    put_crontab(tmp_path, monkeypatch)
    site = Site(tmp_path)
    CronTable("crontab", site.chain, site.place).install_entry()
    site.config.write_text(f"state: {tmp_path}\n{site.config.read_text()}")
    slot = site.chain.slot_at(time.time())
    failed = JournalEntry(slot=slot, what="failed", at=time.time(), job="7", text="no such file")

    def ensure() -> str:
        capsys.readouterr()
        assert main(["cron", "ensure", "-c", str(site.config)]) == 0
        return capsys.readouterr().err

    assert "pass" not in ensure()
    site.place.append_entry(failed)
    assert "the first pass failed in job 7: no such file" in ensure()
    (item,) = check_chain(site.place.folder, SlurmClient())
    assert (item.status, item.remedy) == (Status.CRITICAL, NO_RUN_YET)
    (site.folder / "chain" / "links.jsonl").unlink()
    hour = 60 * site.chain.every
    site.place.append_entry(replace(failed, slot=slot - hour, at=failed.at - hour))
    (item,) = check_chain(site.place.folder, SlurmClient())
    assert ("nothing was watched" in item.text, item.remedy) == (True, NO_RUN_YET)
    site.place.append_entry(replace(failed, what="ran", text=""))
    assert "pass" not in ensure()


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


FIRST_SLOT = 1_800_000_000
LATER = {"job": "5", "name": "s-b", "state": "PENDING", "reason": "BeginTime"}


@pytest.mark.parametrize(
    ("links", "after", "is_said"),
    [
        ([{**LATER, "slot": FIRST_SLOT + 600}], 31, True),
        ([{**LATER, "slot": FIRST_SLOT + 600}], 20, False),
        ([{**LATER, "slot": FIRST_SLOT}], 300, False),
        ([{**LATER, "slot": FIRST_SLOT, "state": "RUNNING"}], 300, False),
        ([{**LATER, "slot": FIRST_SLOT + 600}], -300, False),
        ([], 300, False),
    ],
)
def test_a_first_job_that_left_no_word_did_not_see_the_folder(
    links: list[dict[str, Any]], after: float, is_said: bool
) -> None:
    """A home that is not on the nodes. One that waits, is at work or has just begun has time yet; of a
    queue that is not seen nothing is said."""
    chain = Chain(name="s", every=600, command=("sentinel",), installed=FIRST_SLOT - 500)
    said = _find_silent_job(chain, "/home/a b/chain", links, FIRST_SLOT + after)
    assert bool(said) is is_said
    if said:
        assert "do compute nodes see /home/a b/chain? Try: srun ls -d '/home/a b/chain'" in said[0]
