"""Every field of every kind changes something: the report, what is asked for, or what is planned.

Each is set in a world in which it matters, and what a check of it shows has to differ from what
it shows without. A field that is not in the table fails. What changes nothing beside the
others is refused: test_unused.py.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from sentinel.chain.scripts_submit import ScriptSubmitter
from sentinel.checks.log.reader import LogReader
from sentinel.config.loader import load_config
from sentinel.config.shapes import RecordShape, settings_fields, type_shape
from sentinel.core.clock import Instant, shift_instant
from sentinel.core.cluster import Controller, Job, Node
from sentinel.core.errors import CannotTell, SentinelError
from sentinel.core.gpu_ledger import GpuEvent, GpuSighting
from sentinel.core.node_answers import Answer, Answered
from sentinel.nodes.probe import NodeMemory, NodeProbe, ProbeRequest
from sentinel.testing import START, FixedSlurm, context
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.checks.diag.test_check import Site
from tests.checks.drained import test_check as drained
from tests.checks.drained.nodes import CLEAN, NODE, process
from tests.checks.gpu.world import World
from tests.checks.host import test_host as host
from tests.checks.idle.world import World as IdleWorld
from tests.checks.job.making import ended, job, pending
from tests.checks.network import test_network as links
from tests.checks.remote.test_asked import HALF, WELL
from tests.checks.sensors import test_sensors as heat
from tests.lab.gpus import dcgmi_json, gpus_of

HOUR = 3600.0
GB = 10**9
TIGHT = replace(
    WELL,
    memory=NodeMemory(
        total=100 * GB, available=40 * GB, swap_total=GB, swap_free=GB // 2, oom_kills=0
    ),
    disks={"/tmp": replace(HALF, inodes=10, inodes_free=5)},
)
NODES = [
    Node(name="n1", state="IDLE", partitions=("prod",)),
    Node(
        name="n2", state="DOWN", reason="maint x", partitions=("prod",), reason_time=1_799_990_000
    ),
    Node(name="n3", state="ALLOCATED", flags=frozenset({"COMPLETING"}), partitions=("dev",)),
]


class Way:
    """A way to nodes, all of which tell the same."""

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        return {node: Answered(code=0, out=b"1 0 S init\n2 0 S sshd\n") for node in nodes}

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe]:
        return dict.fromkeys(nodes, TIGHT)


def falling(subject: str, name: str, seconds: float) -> list[tuple[Instant, float]]:
    """A history of an hour in which everything gets worse."""
    worse = -1 if name.startswith(("free", "available")) else 1
    start = 10**15 if worse < 0 else 10
    rows = [
        (shift_instant(START, -60.0 * m), start - worse * m * (10**9 if worse < 0 else 0.5))
        for m in range(60, 0, -1)
    ]
    return [row for row in rows if row[0].wall >= START.wall - seconds * 1e6]


def looked(check: Any, *, passes: Sequence[tuple[float, Sequence[Job]]] = ((0, ()),)) -> Any:
    """What the passes of the check show, one after the other, and what it would be granted."""
    memory: Mapping[str, Any] = {}
    told: list[Any] = [check.grants(), check.may_ask, check.watched_logs()]
    for seconds, jobs in passes:
        nodes = NODES if seconds else [replace(n, state="IDLE", reason="") for n in NODES]
        slurm = FixedSlurm(
            jobs=jobs,
            nodes=nodes,
            ends={"10": ended("10"), "12": ended("12", "COMPLETED")},
            controller=Controller(primary="c1", primary_up=True, latency=5.0),
            gpus={"10": 8, "20": 64},
        )
        now = shift_instant(START, seconds)
        ctx = context(slurm, now, memory=memory, remote=Way(), history=falling, limit=20.0)
        try:
            report = check.run(ctx)
        except SentinelError as error:
            told.append(str(error))
            continue
        memory = report.memory or {}
        told.append((report.findings, report.requests, report.coverage, check.pulse(report, now)))
    return repr(told)


TRAIN = job("10", user="alice", nodes="n1")
QUEUE = [TRAIN, pending("11"), job("20", user="bob", name="eval", partition="dev", node_count=1)]


def of_jobs(check: Any) -> Any:
    """A training runs, ends, is started again, waits, and is gone for good."""
    again = job("12", user="alice", nodes="n1")
    late = [(300.0, [again]), (600.0, [pending("13")]), (HOUR, []), (4 * HOUR, []), (40 * HOUR, [])]
    return looked(check, passes=[(0, QUEUE), *late])


def of_nodes(check: Any) -> Any:
    """n2 comes and goes; n3 ends a job for long."""
    return looked(check, passes=[(0, [TRAIN]), (400.0, [TRAIN]), (900.0, [TRAIN])])


def of_network(check: Any) -> Any:
    """A port flaps, then stays down."""
    flapped = replace(links.WELL, counters={"link_downed": 1})
    looks = [links.probe(port) for port in (links.WELL, flapped, links.DOWN, links.DOWN)]
    settings = {name: getattr(check, name) for name in ("ignore", "settle", "flaps", "trial")}
    return repr(
        [r.findings for r in links.nights(*({check.nodes: at} for at in looks), **settings)]
    )


def of_sensors(check: Any) -> Any:
    """A processor is too hot, a fan stands still."""
    night = heat.Night(nodes=check.nodes, ipmi=check.ipmi, ignore=check.ignore, trial=check.trial)
    way = heat.Way(heat.hwmon(heat.HOT), heat.Ipmi(readings=(heat.DEAD,)))
    return repr([night.look(way).findings for _ in range(2)])


def of_log(check: Any) -> Any:
    """What a pass goes by; that each part of it counts is shown in tests/checks/log."""
    with LogReader(in_child=False) as reader:
        plan = check._make_plan(context(), reader)
    finder = plan.source.patterns.finder
    parts = [vars(finder), check.jobs_of(), check.grants(), check.users, plan.source.path]
    parts += [check.match, check.min_gpus, check.min_nodes]
    return re.sub(r" at 0x\w+", "", repr([plan, *parts]))


def of_drained(check: Any) -> Any:
    """A node with a user's process and one with a task in state D, both ill in their GPUs' log."""
    person = replace(CLEAN, processes=(process(50, 1000, "alice"),))
    told = [check.grants()]
    for probe, nodes in (
        (CLEAN, [NODE]),
        (CLEAN, [replace(NODE, reason="Epilog error")]),
        (person, [NODE]),
        (drained.LEFT, [NODE]),
        (drained.STUCK, [NODE]),
        (replace(CLEAN, gpus=None), [NODE]),
        (replace(CLEAN, kernel=None), [NODE]),
    ):
        report = drained.run(check, probe=probe, nodes=nodes)
        told.append((report.findings, report.requests))
    told.append(drained.completing(check=check).findings)
    return repr(told)


def of_diag(check: Any, folder: Path) -> Any:
    """A wave, a failure, and a suspect that has passed."""
    site = Site(folder)
    site.check = check
    site.nodes = [
        replace(n, partitions=("prod", "dev") if n.name == "n1" else ("prod",)) for n in site.nodes
    ]
    site.gpus.record_sightings([GpuSighting(uuid=gpus_of(0)[3].uuid, node="n2")], site.clock.now())
    site.gpus.add_events(
        [GpuEvent(id="1", subject=gpus_of(0)[3].uuid, what="xid 48", at=site.clock.now())]
    )
    first = site.look()
    for request in first.requests:
        if request.target == "n2" and request.params["out"].startswith(str(folder)):
            site.end(first, "n2", dcgmi_json("4"))
    reports = [first, site.look(), site.look(HOUR), site.look(11 * HOUR), site.look(3 * HOUR)]
    return repr([check.grants(), *((r.findings, r.requests) for r in reports)])


def of_gpus(check: Any) -> Any:
    """Hot GPUs, an Xid of yesterday, a lemon."""
    world = World(check, ("n1", "n2"))
    world.nodes["n1"].gpus[0] = world.nodes["n1"].gpus[0]
    world.nodes["n1"].xid(79)
    reports = [world.look(), world.look(7200.0)]
    events = world.gpus.read_entries() if world.gpus is not None else ()
    return repr(
        [
            check.grants(),
            check.jobs_of(),
            *((r.findings, r.requests, r.coverage) for r in reports),
            len(events),
        ]
    )


def of_cron(check: Any, folder: Path) -> Any:
    """What a pass submits with, whom it trusts, and which logs it leaves."""
    logs = folder / "log" / "cron.daily"
    for number in range(3):
        (logs / "backup").mkdir(parents=True, exist_ok=True)
        path = logs / "backup" / f"{number}.log"
        path.touch()
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return repr((vars(ScriptSubmitter(None, str(folder), check.sbatch)), looked(check)))  # type: ignore[arg-type]


def of_disks(check: Any) -> Any:
    """Without the numbers, which no two looks at a disk in use share."""
    return re.sub(r"\d+(\.\d+)?( [kMGTP]?B)?", "N", of_nodes(check))


def of_idle(check: Any) -> Any:
    """A job of alice that holds GPUs and moves little, and one of the partition dev."""
    world = IdleWorld(nodes=2)
    world.check = check
    world.jobs = [
        world.job("4711", nodes="node-0"),
        world.job("12", nodes="node-1", partition="dev", name="eval"),
    ]
    world.held["12"] = 8
    world.nodes["node-1"].steps.clear()
    world.nodes["node-1"].has_daemon("12")
    try:
        return repr([report.findings for report in world.watch(4500)])
    except CannotTell as error:
        return str(error)


def of_hosts(check: Any) -> Any:
    """An error of memory, many that were corrected, and a task that does not run."""
    night = host.Night()
    night.check = check
    many = replace(host.MEMORY, corrected=150)
    slow = host.ClockSync(word="Normal", offset=-7.0)
    parts = {
        "hardware": replace(host.FINE, memory=(many,)),
        "stalled": host.tasks(host.TASK),
        "clock": slow,
        "gpu_memory": {"GPU-1": 50 * GB},
        "gpu_processes": (),
    }
    ways = (host.Way(), host.Way(**parts, kernel=host.log(host.UE)), host.Way(**parts))
    return repr([night.look(way, after=400).findings for way in (*ways, *ways[2:])])


SEEN: dict[str, Callable[..., Any]] = {
    "job": of_jobs, "nodes": of_nodes, "log": of_log, "drained": of_drained, "gpu": of_gpus, "fs": of_disks,
    "network": of_network, "sensors": of_sensors, "idle": of_idle, "host": of_hosts,
}  # fmt: skip
WITH_FOLDER = {"diag": of_diag, "cron": of_cron}

BASE: dict[str, dict[str, Any]] = {
    "chain": {"dir": "@/chain"},
    "checkpoint": {"path": "@/ckpt"},
    "clean": {"root": "@/logs", "match": r"step(\d+)", "older_than": "1h"},
    "cron": {"base": "@/cron"},
    "diag": {"archive": "@/diag", "share": "100%"},
    "drained": {},
    "du": {"paths": ["@/ckpt"]},
    "exec": {"command": ["printenv", "HOME"]},
    "fs": {"paths": ["@"]},
    "gpu": {"nodes": "n[1-2]"},
    "host": {"nodes": "n1", "trial": "0s"},
    "idle": {"users": ["*"], "trial": "0s"},
    "job": {"name": "train", "users": ["alice"]},
    "log": {"job": "train"},
    "memory": {"nodes": "n1"},
    "network": {"nodes": "n1"},
    "nodes": {},
    "quota": {
        "paths": ["@"],
        "command": [
            "echo",
            '{"used_bytes": 90, "limit_bytes": 100, "entries": 9, "entries_limit": 10}',
        ],
    },
    "sensors": {"nodes": "n1"},
    "service": {"processes": ["sshd"], "nodes": "n1"},
    "slurm": {},
}
"""The least of each kind, `@` is a folder."""

JOB = {"nodes": None, "job": "train"}
FULL_IN = {"full_in": "99w"}
FIELDS: dict[str, dict[str, Any]] = {
    "chain": {"dir": "@/other"},
    "checkpoint": {
        "path": "@/none", "match": r"none(\d+)", "complete.marker": "DONE",
        "complete.latest": "latest", "complete.min_size": "1GB", "complete.settled": "5000w",
        "job": "train", "users": ({"job": "train"}, ["alice"]), "late_after": "1s", "fewest": 9,
        "job_match": ({"path": "@/%x"}, "train"), "min_gpus": ({"path": "@/%x"}, 8),
        "min_nodes": ({"path": "@/%x"}, 1),
    },
    "clean": {
        "root": "@/ckpt", "match": "none",         "remove": True,
        "limits": ({"remove": True}, {"per_hour": 1}),
    },
    "diag": {
        "test": "cuda", "command": ({"test": "command", "command": ["/bin/true"]}, ["/bin/df"]),
        "nodes": "suspect", "level": 3, "sbatch.partition": "dev", "sbatch.account": "a",
        "sbatch.qos": "q", "sbatch.reservation": "r", "sbatch.time": "01:00:00", "share": "1%",
        "fresh": "1h", "starts_within": "5m",         "archive": "@/other", "on_fail": "drain", "limits": ({"on_fail": "drain"}, {"per_hour": 1}),
    },
    "drained": {
        "reasons": ["Epilog"], "undrain": True, "clean_up": True, "reboot": True,
        "reboot_after": ({"reboot": True}, "1m"), "completing": "1h",
        "limits": ({"undrain": True}, {"per_hour": 1}), "ignore_users": ["alice"],
        "first_uid": 60000, "expect_gpus": 3, "proofs": {"df": ["/bin/df"]},
        "slurmctld_log": "@/none", "xids": False,
    },
    "du": {
        "size": "1kB", "top": 1, "paths": ["@/logs"], "warn.used": ({"size": "1PB"}, "0%"),
        "warn.free": ({"size": "1PB"}, "900PB"),         "crit.used": ({"size": "1PB", "warn": {"used": "0%"}}, "0%"),
        "crit.free": ({"size": "1PB"}, "900PB"),
    },
    "exec": {"command": ["printenv", "PATH"], "env": {"HOME": "/elsewhere"}},
    "fs": {
        "paths": ["/"], "warn.used": "0%", "warn.free": "900PB", "warn.inodes_used": "0%",
        "crit.used": ({"warn": {"used": "0%"}}, "0%"), "crit.free": "900PB",
        "crit.inodes_used": ({"warn": {"inodes_used": "0%"}}, "0%"),         "nodes": "n1", "job": ({"job": "other"}, "train"),
        "users": ({"job": "train"}, ["alice"]), "mounted": True, "reliable": "1%",
                "headroom": "8 checkpoints of 9PB", "write_probe": True,
    },
    "gpu": {
        "nodes": "n1", "expect": 9, "warn.temperature": 1, "crit.temperature": ({"warn": {"temperature": 1}}, 2),
        "remember": "1s", "signals": False, "drain": True,
        "limits": ({"drain": True}, {"per_hour": 1}),
    },
    "idle": {
        "users": ["bob"], "exclude": ["dev"], "window": "2h", "grace": "3h", "traffic": "1kB", "trial": "7d",
        "prometheus": "http://127.0.0.1:9",
    },
    "job": {
        "name": "eval", "match": ({"name": None}, "ev.*"), "users": ["bob"], "partition": "dev",
        "min_gpus": 9, "min_nodes": 9, "queued": 5,
        "done_when": {"file": "@/tracker"}, "starts_within": "1m", "restarts": "1 in 1w",
        "on_storm": ({"restarts": "1 in 1w"}, ["hold"]), "checkpoints": {"path": "@/ckpt"},
        "kill_switch": "@/tracker", "pulse_log": "@/pulse", "on_death": ["resubmit"],
    },
    "log": {
        "path": "/x/log", "job": "other", "match": ({"job": None, "match": "a"}, "b"), "users": ["bob"],
        "min_gpus": 64, "min_nodes": 8, "stale_after": "1h",
        "floor": ({"stale_after": "auto"}, "1m"), "ceiling": ({"stale_after": "auto"}, "2h"),
        "learn_from": ["/x/before"],
        "startup": "1h", "joining": "1h", "progress": r"step (\d+)",
        "metrics": ["/x/m.jsonl"], "phases": {"a": {"begin": "x"}}, "loss": r"l (\d+)", "nan_after": 9,
        "slower_than": ({"progress": r"step (\d+)"}, "50%"), "errors": {"a": "b"},
        "known_errors": False, "ignore": ["x"], "heartbeat": "/x/beat", "ask_nodes": False, "looks": "off",
        "trial": "0s",
        "checkpoints": {"path": "/x"}, "on_stale": ["stacks"],
        "killswitch": ({"on_stale": ["killswitch"], "killswitch": "/x/a"}, "/x/b"),
        "signal": ({"on_stale": ["cancel"]}, "TERM"),
    },
    "memory": {
        "nodes": "n2", "job": ({"nodes": None, "users": ["alice"], "job": "other"}, "train"),
        "users": (JOB, ["alice"]), "warn.used": "1%", "warn.available": "900TB",
        "warn.swap_used": "1%", "warn.full_in": "99w", "crit.used": ({"warn": {"used": "1%"}}, "1%"),
        "crit.available": "900TB", "crit.swap_used": "1%", "crit.full_in": ({"warn": {"full_in": "99w"}}, "99w"),
        "window": "1s",
    },
    "network": {
        "trial": "0s",
        "nodes": "n2", "ignore": ["mlx5_*"], "settle": "1h", "flaps": "1 in 1h",
    },
    "nodes": {
        "partition": "dev", "nodes": "n1", "need": 9, "spare": ({"need": 1}, "100%"), "each": False,
        "ignore": ["maint"], "flapping": "1 in 9w", "completing": "1m",
    },
    "quota": {
        "paths": ["/"], "tool": ({"command": None}, "btrfs"), "quotas": ({"command": None, "tool": "btrfs"}, ["qgroup:0/7"]),
        "command": ["echo", '{"used_bytes": 1, "limit_bytes": 100}'],
        "pattern": ({"command": ["echo", "7 of 9"]}, "(?P<used>.*) of (?P<limit>.*)"),
        "warn.used": "1%", "warn.free": "900B", "warn.inodes_used": "1%",         "crit.used": "86%", "crit.free": "900B", "crit.inodes_used": "86%",         "crit.grace": ({"command": ["echo", '{"used_bytes": 90, "limit_bytes": 100, "soft_bytes": 80, "grace_seconds": 172800}']}, "3d"),
        "headroom": "8 checkpoints of 1TB",
    },
    "host": {
        "nodes": "n2", "skip": ["tasks"], "ignore": ["mem*"], "corrected": "200 in 1d", "stalled": "5m", "offset": "1000s", "gpu_memory": "60GB",
        "remember": "5m", "trial": "1h",
    },
    "sensors": {"trial": "0s", "nodes": "n2", "ipmi": True, "ignore": ["core*"]},
    "service": {"processes": ["none"], "units": ["none.service"], "users": ["no-such-user"], "nodes": "n2"},
    "slurm": {"warn.latency": "9s", "crit.latency": "3s"},
}  # fmt: skip

ELSEWHERE: dict[str, str] = {
    "clean.complete": "clean/test_rules.py::test_incomplete_ones_do_not_count_as_newest",
    "clean.ignore": "clean/test_steps.py::test_what_is_named_in_ignore_is_neither_a_pointer_nor_a_part",
    "clean.keep_every": "clean/test_rules.py::test_what_may_go_of_six",
    "clean.keep_last": "clean/test_rules.py::test_what_may_go_of_six",
    "clean.older_than": "checks/clean/test_check.py::test_a_clock_that_was_set_forward_makes_nothing_old",
    "clean.pointers": "clean/test_pointers.py::test_pointers_elsewhere_count_when_they_are_named",
    "cron.base": "chain/test_lab.py::test_scripts_run_when_due_and_their_ends_are_told",
    "cron.logs.age": "chain/test_script_directory.py::test_a_configured_check_says_what_is_submitted_and_what_stays",
    "cron.logs.count": "chain/test_script_directory.py::test_a_configured_check_says_what_is_submitted_and_what_stays",
    "cron.sbatch": "chain/test_script_directory.py::test_a_configured_check_says_what_is_submitted_and_what_stays",
    "cron.stale_after": "checks/cron/test_check.py::test_how_long_passes_may_stay_away_can_be_set",
    "cron.trust": "chain/test_script_directory.py::test_whose_scripts_run_can_be_said",
    "cron.trust_groups": "chain/test_script_directory.py::test_a_group_that_is_named_may_write_a_directory",
    "diag.keep": "checks/diag/test_probation_lab.py::test_a_node_that_comes_back_is_kept_tested_and_given_back",
    "diag.deepen": "checks/diag/test_check.py::test_suspects_need_not_be_tested_more_deeply",
    "drained.slurmd_log": "checks/drained/test_check.py::test_a_log_on_the_node_is_read_where_it_is_named",
    "du.calls": "checks/du/test_du.py::test_calls_a_second_are_capped",
    "du.crit.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "du.threads": "checks/du/test_du.py::test_calls_a_second_are_capped",
    "du.warn.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "du.within": "checks/du/test_du.py::test_a_partial_answer_says_so",
    "fs.crit.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "fs.lag": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "fs.measure": "checks/quota/test_collect.py::test_the_tool_fits_the_mount",
    "fs.read_only": "checks/fs/test_check.py::test_how_bad_read_only_is_can_be_set",
    "fs.warn.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "gpu.busy.last": "checks/gpu/test_recorder.py::test_only_the_last_while_counts",
    "gpu.busy.pcie_rx": "checks/gpu/test_recorder.py::test_what_is_no_work_can_be_set",
    "gpu.busy.power": "checks/gpu/test_recorder.py::test_a_gpu_that_is_not_at_work",
    "gpu.busy.share": "checks/gpu/test_recorder.py::test_only_the_last_while_counts",
    "gpu.busy.utilization": "checks/gpu/test_recorder.py::test_what_is_no_work_can_be_set",
    "gpu.crit.memory_temperature": "checks/gpu/test_check.py::test_each_limit_of_a_gpu_can_be_set",
    "gpu.crit.pcie_rx": "checks/gpu/test_check.py::test_each_limit_of_a_gpu_can_be_set",
    "gpu.dmon": "checks/gpu/test_recorder.py::test_a_gpu_that_is_not_at_work",
    "gpu.vendor": "gpu/test_amd.py::test_the_check_reads_them",
    "gpu.warn.memory_temperature": "checks/gpu/test_check.py::test_each_limit_of_a_gpu_can_be_set",
    "gpu.warn.pcie_rx": "checks/gpu/test_check.py::test_each_limit_of_a_gpu_can_be_set",
    "job.forget_after": "checks/job/test_trainings.py::test_forgetting_takes_a_time_that_can_be_set",
    "job.gap": "checks/job/test_rhythm.py::test_gap_in_the_file_counts",
    "job.hidden_reasons": "checks/job/test_node_threats.py::test_what_users_may_not_see_is_not_told",
    "job.node_warnings": "checks/job/test_node_threats.py::test_only_running_jobs_are_at_stake",
    "quota.crit.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "quota.lag": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
    "quota.warn.full_in": "checks/fs/test_forecast.py::test_the_time_that_is_left_is_judged",
}
"""What needs a world of its own, with the test that shows it."""


def names(cls: Any, before: str = "") -> Iterator[str]:
    """Every field, `warn.used` for one within another."""
    for key, info in settings_fields(cls).items():
        found = type_shape(info.type)
        if isinstance(found, RecordShape):
            yield from names(found.cls, f"{before}{key}.")
        else:
            yield before + key


def test_every_field_of_every_kind_is_here() -> None:
    """A new one says what it changes."""
    assert sorted(BASE) == CHECKS.kind_names()
    every = {
        f"{kind}.{name}" for kind in CHECKS.kind_names() for name in names(CHECKS.load_kind(kind))
    }
    known = {f"{k}.{name}" for k, rows in FIELDS.items() for name in rows} | {*ELSEWHERE}
    assert every == known, (
        "a row in FIELDS says what it changes, or one in ELSEWHERE which test does"
    )


@pytest.mark.parametrize(("field", "test"), ELSEWHERE.items())
def test_what_is_shown_elsewhere_is_shown_there(field: str, test: str) -> None:
    """That test is there, and its file speaks of the field."""
    file, _, name = test.partition("::")
    text = (Path(__file__).parents[1] / file).read_text()
    assert f"def {name}(" in text
    assert re.search(rf"\b{field.rpartition('.')[2]}\b", text)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints and old logs."""
    root = tmp_path_factory.mktemp("fields")
    for at in ("ckpt", "logs"):
        for number in range(1, 7):
            (root / at / f"step{number}").mkdir(parents=True)
            (root / at / f"step{number}" / "data").write_bytes(b"x" * 1000 * number)
            if number < 4:
                (root / at / f"step{number}" / "DONE").touch()
            for path in (root / at / f"step{number}").iterdir():
                os.utime(path, (1_700_000_000 + number,) * 2)
            os.utime(root / at / f"step{number}", (1_700_000_000 + number,) * 2)
    (root / "tracker").write_text("step1")
    for name in ("diag", "other", "cron"):
        (root / name).mkdir()
    return root


def shown(kind: str, settings: Mapping[str, Any], folder: Path) -> str:
    """What such a check shows, from its settings as a file has them."""
    settings = {"kind": kind, **{k: v for k, v in settings.items() if v is not None}}
    text = yaml.safe_dump({"checks": {"a": settings}}, width=9999).replace("@", str(folder))
    (folder / "s.yaml").write_text(text)
    (check,) = load_config(str(folder / "s.yaml"), CHECKS, CHANNELS, env={}).settings.checks
    if kind in WITH_FOLDER:  # nothing of an earlier look lies there
        shutil.rmtree(folder / kind)
        (folder / kind).mkdir()
        return str(WITH_FOLDER[kind](check.plugin, folder / kind))
    return str(SEEN.get(kind, of_nodes)(check.plugin))


Looks = Callable[[str, Mapping[str, Any]], str]


@pytest.fixture(scope="module")
def before(folder: Path) -> Iterator[Looks]:
    """What a check shows without the field, looked at once, and once more when all others have been:
    two looks that differ by themselves would prove nothing."""
    looks: dict[str, tuple[str, Mapping[str, Any], str]] = {}

    def look(kind: str, without: Mapping[str, Any]) -> str:
        key = repr((kind, without))
        if key not in looks:
            looks[key] = kind, without, shown(kind, without, folder)
        return looks[key][2]

    yield look
    for kind, without, seen in looks.values():
        now = shown(kind, without, folder)
        assert now == seen, (kind, without)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, known in FIELDS.items() for name in known]
)
def test_a_field_changes_what_a_check_shows(
    kind: str, name: str, folder: Path, before: Looks
) -> None:
    """With and without it, all else the same."""
    given = FIELDS[kind][name]
    beside, value = given if isinstance(given, tuple) else ({}, given)
    without = {**BASE[kind], **beside}
    key, _, below = name.partition(".")
    changed = {**(without.get(key) or {}), below: value} if below else value
    assert before(kind, without) != shown(kind, {**without, key: changed}, folder)
