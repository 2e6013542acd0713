"""What a pass asks for, follows, and says."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.actions.diag import GPU_PROBE_COMMAND, JOB_SCRIPT_PATH
from sentinel.actions.diag import DiagAction as DiagAction
from sentinel.checks.diag import DiagCheck, archive
from sentinel.checks.diag.dispatch import SbatchOptions, parse_time_limit
from sentinel.core.actions import ActionOutcome, ActionRecord, Answer, NodeReading
from sentinel.core.cluster import Job, JobEnd, Node
from sentinel.core.errors import CannotTell, Invalid
from sentinel.core.gpu_ledger import GpuEvent, GpuLedger, GpuSighting
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Answered, Partial, TimedOut, Unreachable
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share
from sentinel.testing import START, FixedSlurm, ManualClock, context
from tests.lab.gpus import PERSISTENCE, Failure, dcgmi_json, gpus_of, nvidia_smi
from tests.store.gpu_memory import MemoryGpus

HOUR = 3600.0


def node(name: str, state: str = "IDLE", *flags: str, partition: str = "prod") -> Node:
    return Node(
        name=name, state=state, flags=frozenset(flags), partitions=(partition,), gres="gpu:8"
    )


class Site:
    """Passes of one check over a queue and an archive that the test fills."""

    def __init__(self, folder: Path, cluster: list[Node] | None = None, **settings: Any) -> None:
        self.check = DiagCheck(archive=FilePath(str(folder)), **{"share": Share(100), **settings})
        self.folder, self.clock = folder, ManualClock()
        self.nodes = cluster or [node(f"n{i}") for i in range(4)]
        self.jobs: list[Job] | None = []
        self.ends = dict[str, JobEnd]()
        self.gpus: GpuLedger = MemoryGpus()
        self.memory: Any = {}

    def look(self, seconds: float = 60, **more: Any) -> Report:
        slurm = FixedSlurm(nodes=self.nodes, jobs=self.jobs, ends=self.ends)
        now = self.clock.advance(seconds)
        report = self.check.run(context(slurm, now, memory=self.memory, gpus=self.gpus, **more))
        self.memory = report.memory
        return report

    def asked(self, report: Report) -> list[str]:
        return [r.target for r in report.requests if r.action == "diag"]

    def queue(self, report: Report, state: str = "RUNNING") -> None:
        """Its jobs are there."""
        self.jobs = [
            Job(
                str(100 + i), str(100 + i), "", "", r.params["name"], "root", "prod", state, "",
                r.target, 1, "", None, None, None, None,
            )
            for i, r in enumerate(report.requests)
        ]  # fmt: skip

    def end(self, report: Report, name: str, text: str, code: int = 0, number: int = 0) -> None:
        """One of them has ended, and left what its script leaves."""
        (request,) = [r for r in report.requests if r.target == name]
        path = request.params["out"]
        self.jobs = [j for j in self.jobs or [] if j.name != request.params["name"]]
        for suffix, content in (
            ("", text),
            (".gpus", nvidia_smi(gpus_of(number))),
            (".rc", f"{code}\n"),
        ):
            Path(path + suffix).write_text(content)


def of(report: Report, subject: str) -> Finding:
    (found,) = [f for f in report.findings if f.subject == subject]
    return found


def test_idle_nodes_are_asked_once(tmp_path: Path) -> None:
    """Those that are under way, and those tested lately, are left alone."""
    site = Site(tmp_path, fresh=Duration(12 * HOUR))
    first = site.look()
    assert site.asked(first) == ["n0", "n1", "n2", "n3"]
    site.queue(first)
    assert site.asked(site.look()) == []
    for name in ("n0", "n1", "n2", "n3"):
        site.end(first, name, dcgmi_json("4"))
    report = site.look()
    assert {f.status for f in report.findings} == {Status.OK}
    assert "dcgmi diag -r 2 passed at " in of(report, "n0").summary
    assert site.asked(site.look(11 * HOUR)) == []
    assert len(site.asked(site.look(HOUR))) == 4


@pytest.mark.parametrize(
    ("share", "nodes", "wave"),
    [
        (10, 4, 1),
        (25, 4, 1),
        (49, 4, 1),
        (50, 4, 2),
        (99, 4, 3),
        (100, 4, 4),
        (10, 19, 1),
        (10, 20, 2),
    ],
)
def test_a_wave_is_a_share_of_the_partition(
    tmp_path: Path, share: float, nodes: int, wave: int
) -> None:
    """One at least; the next begins when one has ended."""
    site = Site(tmp_path, [node(f"n{i}") for i in range(nodes)], share=Share(share))
    first = site.look()
    assert len(site.asked(first)) == wave
    site.queue(first)
    assert site.asked(site.look()) == []
    site.end(first, site.asked(first)[0], dcgmi_json("4"))
    assert len(site.asked(site.look())) == int(wave < nodes)


def test_each_partition_has_a_wave_of_its_own(tmp_path: Path) -> None:
    """A node in two counts in both."""
    both = replace(node("n4"), partitions=("prod", "dev"))
    others = [node("d0", partition="dev"), node("d1", partition="dev")]
    site = Site(tmp_path, [node("n0"), node("n1"), both, *others], share=Share(50))
    assert site.asked(site.look()) == ["n0", "d0"]


@pytest.mark.parametrize(
    ("state", "flags", "idle", "all_"),
    [
        ("IDLE", (), True, True),
        ("MIXED", (), False, True),
        ("ALLOCATED", (), False, True),
        ("IDLE", ("PLANNED",), False, True),
        ("IDLE", ("RESERVED",), False, True),
        ("IDLE", ("DRAIN",), False, False),
        ("IDLE", ("POWERED_DOWN",), False, False),
        ("IDLE", ("REBOOT_REQUESTED",), False, False),
        ("IDLE", ("COMPLETING",), False, False),
        ("IDLE", ("NOT_RESPONDING",), False, False),
        ("DOWN", (), False, False),
    ],
)
def test_who_is_fit_for_it(
    tmp_path: Path, state: str, flags: tuple[str, ...], idle: bool, all_: bool
) -> None:
    """`idle` and not spoken for; `all` that can take a job."""
    for which, fit in (("idle", idle), ("all", all_)):
        site = Site(tmp_path, [node("n0", state, *flags)], nodes=which)
        assert site.asked(site.look()) == (["n0"] if fit else [])


def test_suspects_alone_and_more_deeply(tmp_path: Path) -> None:
    """Nodes that hold a GPU of which the ledger thinks ill; level 4 once level 2 has passed."""
    site = Site(tmp_path, nodes="suspect", fresh=Duration(HOUR))
    uuid = gpus_of(0)[3].uuid
    site.gpus.record_sightings([GpuSighting(uuid=uuid, node="n2")], site.clock.now())
    assert site.asked(site.look()) == []
    site.gpus.add_events([GpuEvent(id="1", subject=uuid, what="xid 48", at=site.clock.now())])
    first = site.look()
    assert [(r.target, r.params["level"]) for r in first.requests] == [("n2", "2")]
    site.end(first, "n2", dcgmi_json("4"))
    site.look()
    second = site.look(HOUR)
    assert [(r.target, r.params["level"]) for r in second.requests] == [("n2", "4")]
    assert second.requests[0].params["seconds"] == str(4 * 3600)


def test_suspects_need_not_be_tested_more_deeply(tmp_path: Path) -> None:
    """Level 4 holds a node for hours: without it the level stays what is configured."""
    levels = []
    for deepen in (True, False):
        (tmp_path / str(deepen)).mkdir()
        settings = {"nodes": "suspect", "fresh": Duration(HOUR), "deepen": deepen}
        site = Site(tmp_path / str(deepen), **settings)
        uuid = gpus_of(0)[3].uuid
        site.gpus.record_sightings([GpuSighting(uuid=uuid, node="n2")], site.clock.now())
        site.gpus.add_events([GpuEvent(id="1", subject=uuid, what="xid 48", at=site.clock.now())])
        site.end(site.look(), "n2", dcgmi_json("4"))
        site.look()
        levels += [r.params["level"] for r in site.look(HOUR).requests]
    assert levels == ["4", "2"]


def test_a_failure_is_told_recorded_and_drained(tmp_path: Path) -> None:
    """With UUID and serial of the GPU; the drain is asked for once."""
    site = Site(tmp_path, on_fail="drain")
    first = site.look()
    site.queue(first)
    site.end(first, "n1", dcgmi_json("4", [Failure(gpu=5)], node=1), 226, number=1)
    report = site.look()
    bad = gpus_of(1)[5]
    found = of(report, "n1")
    assert found.status is Status.CRITICAL
    assert f"{bad.uuid} serial {bad.serial}" in found.summary
    assert [(r.action, r.target) for r in report.requests] == [("drain", "n1")]
    assert "dcgmi diag -r 2 failed: GPU 5: memory: Memory error" in report.requests[0].reason
    assert [e.what for e in site.gpus.read_events(bad.uuid)] == ["diag fail"]
    assert site.gpus.read_standings(site.clock.now())[bad.uuid].judged == "lemon"
    again = site.look()
    assert again.requests == ()
    assert of(again, "n1").status is Status.CRITICAL
    site.gpus.set_mark(bad.uuid, "", "replaced", "root", site.clock.now())
    assert "n1" not in {f.subject for f in site.look().findings}


def test_serials_join_before_indexes(tmp_path: Path) -> None:
    """DCGM prints serials; its numbers need not be those of nvidia-smi."""
    site = Site(tmp_path)
    first = site.look()
    bad = gpus_of(1)[2]
    text = dcgmi_json("4", [Failure(gpu=5)]).replace("1650000000005", bad.serial)
    site.end(first, "n1", text, 226, number=1)
    assert bad.uuid in of(site.look(), "n1").summary


def test_a_gpu_that_is_lost_shifts_no_blame_to_its_neighbour(tmp_path: Path) -> None:
    """nvidia-smi shows seven: neither its index nor a serial it does not show names one of them."""
    for text in (
        dcgmi_json("4", [Failure(gpu=5)], node=1),
        re.sub('"1650[0-9]+"', '"<<<NOT_SUPPORTED>>>"', dcgmi_json("4", [Failure(gpu=5)])),
    ):
        site = Site(tmp_path)
        first = site.look()
        site.queue(first)
        site.end(first, "n1", text, 226, number=1)
        out = next(r.params["out"] for r in first.requests if r.target == "n1")
        shown = [gpu for gpu in gpus_of(1) if gpu.index != 5]
        Path(f"{out}.gpus").write_text(nvidia_smi(shown))
        assert of(site.look(), "n1").status is Status.CRITICAL
        assert [e.subject for e in site.gpus.read_entries() if e.heat] == ["node:n1"]


def test_a_serial_that_is_not_there_is_not_looked_up_by_its_number(tmp_path: Path) -> None:
    """DCGM's numbers need not be those of nvidia-smi."""
    site = Site(tmp_path)
    first = site.look()
    site.end(first, "n1", dcgmi_json("4", [Failure(gpu=5)]).replace("1650000000005", "4711"), 226)
    assert "serial 4711" in of(site.look(), "n1").summary
    assert [e.subject for e in site.gpus.read_entries() if e.heat] == ["node:n1"]


def test_a_fault_of_all_gpus_at_once_is_the_nodes(tmp_path: Path) -> None:
    """A fabric that fails makes no lemons; the node is drained all the same."""
    site = Site(tmp_path, on_fail="drain")
    first = site.look()
    failures = [Failure(gpu=g, test="pcie", error_id=14, text="NVLink error") for g in range(8)]
    site.end(first, "n1", dcgmi_json("4", failures), 226, number=1)
    report = site.look()
    assert [r.target for r in report.requests if r.action == "drain"] == ["n1"]
    assert [e.subject for e in site.gpus.read_entries() if e.heat] == ["node:n1"]


def test_only_told_unless_the_file_says_drain(tmp_path: Path) -> None:
    """And consent covers no more than that."""
    site = Site(tmp_path)
    assert set(site.check.grants()) == {"diag"}
    assert set(DiagCheck(on_fail="drain").grants()) == {"diag", "drain"}
    first = site.look()
    site.end(first, "n1", dcgmi_json("4", [Failure(gpu=5)]), 226)
    assert [r for r in site.look().requests if r.action == "drain"] == []


@pytest.mark.parametrize(
    ("text", "code", "status", "words"),
    [
        (dcgmi_json("4", [PERSISTENCE]), 226, Status.WARNING, "configuration"),
        (
            dcgmi_json("4", [Failure(gpu=1, error_id=500, text="something new")]),
            205,
            Status.WARNING,
            "unknown fault: GPU 1: memory: something new",
        ),
        ("", 235, Status.UNKNOWN, "host engine"),
        ("", 124, Status.UNKNOWN, "too long"),
        (dcgmi_json("4")[:-9], 0, Status.UNKNOWN, "broken JSON"),
        (dcgmi_json("4", gpus=7), 0, Status.UNKNOWN, "only 7 of 8"),
    ],
)
def test_what_proves_nothing(
    tmp_path: Path, text: str, code: int, status: Status, words: str
) -> None:
    """Unknown; a setting to be mended is a warning. No ledger entry, no drain."""
    site = Site(tmp_path, on_fail="drain")
    site.end(site.look(), "n1", text, code)
    report = site.look()
    assert of(report, "n1").status is status
    assert words in of(report, "n1").summary
    assert [r for r in report.requests if r.action == "drain"] == []
    assert [e for e in site.gpus.read_entries() if e.heat] == []


@pytest.mark.parametrize(
    ("state", "words"),
    [("TIMEOUT", "timed out"), ("DEADLINE", "missed its deadline"), ("NODE_FAIL", "ended because one of its nodes failed"),
     ("OUT_OF_BREATH", "OUT_OF_BREATH")],
)  # fmt: skip
def test_a_job_that_left_nothing(tmp_path: Path, state: str, words: str) -> None:
    """By how Slurm says it ended; after a grace in which its files may still come."""
    site = Site(tmp_path)
    first = site.look()
    site.queue(first)
    site.look()
    site.ends = {j.job_id: JobEnd(job_id=j.job_id, state=state) for j in site.jobs or []}
    site.jobs = []
    assert "asked for" in of(site.look(60), "n1").summary
    found = of(site.look(120), "n1")
    assert found.status is Status.UNKNOWN
    assert words in found.summary


def test_a_job_that_never_came(tmp_path: Path) -> None:
    """The guard refused it, or sbatch did: where to look is said, and it is tried again later."""
    site = Site(tmp_path)
    site.look()
    assert "never came into the queue" in of(site.look(130), "n1").summary
    assert site.asked(site.look(60)) == []
    assert "n1" in site.asked(site.look(2 * HOUR))


class Log:
    """The guard has refused the newest wish about n1."""

    def __init__(self, report: Report) -> None:
        (wish,) = [r for r in report.requests if r.target == "n1"]
        self.record = ActionRecord(
            id="a1", action="diag", target="n1", reason=wish.reason, by="burn-in",
            at=START, outcome=ActionOutcome.REFUSED, params=wish.params,
            rule="maintenance", why="cooling until noon",
        )  # fmt: skip

    def records(self, target: str = "", limit: int = 100) -> list[ActionRecord]:
        return [self.record] if target == "n1" else []

    def readings(self, node: str, limit: int = 100) -> list[NodeReading]:
        return []


def test_a_refusal_is_told_as_one(tmp_path: Path) -> None:
    """In the guard's words, at once."""
    site = Site(tmp_path)
    found = of(site.look(logbook=Log(site.look())), "n1")
    assert found.status is Status.UNKNOWN
    assert "not dispatched (maintenance): cooling until noon" in found.summary


def test_a_blind_queue_changes_nothing(tmp_path: Path) -> None:
    """No run is given up because squeue does not answer."""
    site = Site(tmp_path)
    first = site.look()
    site.queue(first)
    site.look()
    site.jobs = None
    assert "running" in of(site.look(HOUR), "n1").summary
    site.jobs = []
    site.end(first, "n1", dcgmi_json("4"))
    assert "passed" in of(site.look(), "n1").summary


@pytest.mark.parametrize(("user", "shown"), [("root", "running"), ("mallory", "never came into")])
def test_a_job_of_another_user_is_no_test_whatever_its_name(
    tmp_path: Path, user: str, shown: str
) -> None:
    """Everybody reads the name in the queue: a job that waits for ever would keep a node from its test."""
    site = Site(tmp_path)
    site.queue(site.look())
    site.jobs = [replace(job, user=user) for job in site.jobs or []]
    assert shown in of(site.look(600), "n1").summary


def test_a_run_is_not_given_up_while_nobody_can_see_the_queue(tmp_path: Path) -> None:
    """It was asked for, and squeue has not answered since: a failure it finds is still heard."""
    site = Site(tmp_path)
    first = site.look()
    site.jobs = None
    assert "under way" in of(site.look(600), "n1").summary
    site.queue(first)
    assert "running" in of(site.look(), "n1").summary
    site.end(first, "n1", dcgmi_json("4", [Failure(gpu=5)]), 226)
    assert of(site.look(), "n1").status is Status.CRITICAL


def test_between_its_times_it_only_follows(tmp_path: Path) -> None:
    """With `cron` it is run in between, and begins nothing then."""
    site = Site(tmp_path)
    assert site.asked(site.look(due=False)) == []
    first = site.look(due=True)
    assert len(site.asked(first)) == 4
    site.end(first, "n0", dcgmi_json("4"))
    assert "passed" in of(site.look(due=False), "n0").summary


def test_outputs_of_people_and_epilogs_are_read_too(tmp_path: Path) -> None:
    """Those that came since the last look; once."""
    site = Site(tmp_path, [node("n9", "DOWN")])
    site.look()
    path = tmp_path / archive.make_output_name(1, "n9", site.clock.now())
    path.write_text(dcgmi_json("4", [Failure(gpu=0)], node=9))
    Path(f"{path}.gpus").write_text(nvidia_smi(gpus_of(9)))
    Path(f"{path}.rc").write_text("226\n")
    assert of(site.look(), "n9").status is Status.CRITICAL
    site.look()
    assert len(site.gpus.read_events(gpus_of(9)[0].uuid)) == 1


def test_a_one_shot_reads_the_archive(tmp_path: Path) -> None:
    """It asks for nothing; without any output it cannot tell."""
    site = Site(tmp_path)
    with pytest.raises(CannotTell, match="no output"):
        site.look(one_shot=True)
    for level, failures in ((1, ()), (2, (Failure(gpu=5),))):
        path = tmp_path / archive.make_output_name(level, "n1", site.clock.advance(60))
        path.write_text(dcgmi_json("4", failures))
        Path(f"{path}.rc").write_text("0\n")
    report = site.look(one_shot=True)
    assert (of(report, "n1").status, report.requests) == (Status.CRITICAL, ())


def test_what_is_remembered_may_be_anything(tmp_path: Path) -> None:
    """Memory of another version is no reason to fail."""
    site = Site(tmp_path)
    site.memory = {"runs": 7, "last": [1], "looked": "x"}
    assert len(site.asked(site.look())) == 4


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("30:00", 1800), ("01:30:00", 5400), ("1-0", 86_400), ("1-2:30", 95_400),
     ("2-00:00:10", 172_810)],
)  # fmt: skip
def test_time_limits_as_slurm_writes_them(text: str, seconds: int) -> None:
    """sbatch(1), --time."""
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": "everything[", "level": 2}, "idle, suspect, all"),
        ({"archive": FilePath("here")}, "absolute"),
        ({"share": Share(0)}, "above 0%"),
    ],
)
def test_settings_that_make_no_sense(settings: Any, words: str) -> None:
    """Said when the file is read."""
    with pytest.raises(Invalid, match=words):
        DiagCheck(**settings)


@pytest.mark.parametrize(
    "options", [{"time": "soon"}, {"time": "1"}, {"partition": "--wrap=x y"}, {"account": "a b"}]
)
def test_sbatch_takes_no_other_options(options: dict[str, str]) -> None:
    """Nor anything that would be one."""
    with pytest.raises(Invalid):
        SbatchOptions(**options)


def test_the_job_that_is_asked_for(tmp_path: Path) -> None:
    """One node, alone on it, all its GPUs, an end of its own before the job's, a last moment."""
    sbatch = SbatchOptions(partition="prod", account="ops", time="01:00:00")
    site = Site(tmp_path, [node("n0")], sbatch=sbatch, starts_within=Duration(HOUR))
    (request,) = site.look().requests
    (command,) = DiagAction().commands(request)
    assert command[0] == "sbatch"
    for word in (
        "--nodelist=n0", "--exclusive", "--gres=gpu:8", "--time=60", "--deadline=now+120minutes",
        "--partition=prod", "--account=ops", "--no-requeue",
    ):  # fmt: skip
        assert word in command
    assert command[-4:] == (JOB_SCRIPT_PATH, "2", request.params["out"], "3540")


def test_a_drained_node_is_reached_by_ssh(tmp_path: Path) -> None:
    """No job starts there; it is only tested by name or as a suspect."""
    drained = node("n0", "IDLE", "DRAIN")
    site = Site(tmp_path, [drained], nodes="n0")
    (request,) = site.look().requests
    assert DiagAction().commands(request)[0][:3] == ("setsid", "--fork", "sh")
    look = DiagAction().look(request, _View(drained))
    assert look.not_ready == ""
    assert "not drained any more" in DiagAction().look(request, _View(node("n0"))).not_ready
    busy = node("n0", "MIXED", "DRAIN")
    assert "jobs still on it" in DiagAction().look(request, _View(busy)).not_ready


class _Hands:
    """A drained node that answers to its name with `hostname`; `ran` is what it was told to do."""

    def __init__(self, hostname: str = "n0.cluster", *, started: Any = None) -> None:
        self.hostname, self.started, self.ran = hostname, started, list[str]()

    def ask_node(self, node: str, argv: Any, stdin: bytes = b"") -> Any:
        if argv == GPU_PROBE_COMMAND:
            return Answered(code=0, out=f"{self.hostname}\n".encode())
        self.ran.append(" ".join(argv))
        return self.started or Answered(code=0)


def test_a_diagnostic_through_ssh_runs_on_that_node_or_nowhere(tmp_path: Path) -> None:
    """A name that leads to another host leads to somebody's job; a suspended one hides in IDLE."""
    site = Site(tmp_path, [node("n0", "IDLE", "DRAIN")], nodes="n0")
    (request,) = site.look().requests
    hands = _Hands()
    assert DiagAction().perform(request, hands).answer is Answer.ACCEPTED  # type: ignore[arg-type]
    assert len(hands.ran) == 1
    for name in ("n1", "login", "", "n0\nslurmstepd: [12.batch]"):
        hands = _Hands(name)
        reply = DiagAction().perform(request, hands)  # type: ignore[arg-type]
        assert (reply.answer, hands.ran) == (Answer.REFUSED, [])


@pytest.mark.parametrize(
    ("started", "answer"),
    [
        (TimedOut("x"), Answer.UNSURE),
        (Partial(why="x"), Answer.UNSURE),
        (Unreachable("x"), Answer.REFUSED),
        (Answered(code=127), Answer.REFUSED),
    ],
)
def test_a_start_that_was_not_seen_may_have_happened(
    tmp_path: Path, started: Any, answer: Answer
) -> None:
    """Then none is begun beside it."""
    site = Site(tmp_path, [node("n0", "IDLE", "DRAIN")], nodes="n0")
    (request,) = site.look().requests
    assert DiagAction().perform(request, _Hands(started=started)).answer is answer  # type: ignore[arg-type]


class _View:
    def __init__(self, seen: Node | None) -> None:
        self.seen = seen

    def node(self, name: str) -> Node | None:
        return self.seen


def test_what_was_never_tested_is_not_called_well(tmp_path: Path) -> None:
    """First nothing, then one of four by name, and a node that Slurm does not know."""
    site = Site(tmp_path, share=Share(25))
    none = site.look(due=False).coverage
    assert (none.meant, none.words) == (
        0,
        "there are no nodes to look at: none was to be tested yet",
    )
    first = site.look()
    (name,) = site.asked(first)
    site.end(first, name, dcgmi_json("4"))
    seen = site.look(due=False).coverage
    assert (seen.words, seen.status) == ("saw 1 of 4 nodes: not n[1-3] (not tested yet)", Status.OK)
    lost = Site(tmp_path, nodes="n[0-4]").look(due=False).coverage
    assert (lost.words, lost.status) == ("saw 4 of 5 nodes: not n4", Status.UNKNOWN)


def test_by_the_archive_a_node_without_any_output_is_not_seen(tmp_path: Path) -> None:
    """`sentinel check` of two nodes of which one was tested."""
    site = Site(tmp_path)
    first = site.look()
    site.end(first, "n1", dcgmi_json("4"))
    once = Site(tmp_path, nodes="n[1-2]").look(one_shot=True)
    assert once.coverage.words == "saw 1 of 2 nodes: not n2"
    assert once.status is Status.UNKNOWN


def test_tests_under_way_are_not_seen_while_the_queue_is_not(tmp_path: Path) -> None:
    """That they go on is believed, and not called well."""
    site = Site(tmp_path)
    site.queue(site.look())
    assert site.look().coverage.whole
    site.jobs = None
    seen = site.look().coverage
    assert (seen.words, seen.status) == ("saw 0 of 4 nodes: not n[0-3]", Status.UNKNOWN)
