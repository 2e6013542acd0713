"""Metrics as Prometheus reads them, judged by Prometheus' own promtool."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from sentinel.checks import KINDS
from sentinel.checks.exec import ExecCheck
from sentinel.checks.fs import FsCheck
from sentinel.checks.log import Log
from sentinel.checks.memory import MemoryCheck
from sentinel.core.clock import shift_instant
from sentinel.core.declared import ANY, OWN_METRIC_NAMES, Metric
from sentinel.core.model import Status
from sentinel.plugin import Check
from sentinel.status.collect import read_status_inputs
from sentinel.status.last_seen import ShownFinding
from sentinel.status.metrics import MAX_SERIES
from sentinel.status.types import CheckFact, Facts, RequestStats, Vitals
from sentinel.status.view_model import build_facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from sentinel.web.metrics import MAX_LABEL_CHARS, render_metrics
from sentinel.web.textfile import write_textfile
from sentinel.wiring.app import CHECKS
from tests.channels.samples import HOSTILE
from tests.lab import needs
from tests.status.test_run_reader import shown
from tests.web.scenery import alert, around, disk, looked, progress, scene, store, week

PLACE = Path(__file__).parents[2] / "config" / "prometheus"
VITALS = Vitals(
    lag_s=0.002, started=1.0, slurm={"squeue": RequestStats(requests=3, failures=1, seconds=0.5)}
)


def families(facts: Facts) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """name -> labels -> value, read as a scraper would; whose it is, which each says, left out."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(render_metrics(facts).decode()):
        for sample in family.samples:
            assert sample.labels.pop("cluster") == facts.cluster, sample.name
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), "the same series twice"
            found[sample.name][labels] = sample.value
    return found


def one(facts: Facts, name: str, **labels: str) -> float:
    return families(facts)[f"sentinel_{name}"][tuple(sorted(labels.items()))]


def promtool(*words: str, text: bytes | None = None, cwd: Path = PLACE) -> str:
    program = needs.require_program("promtool", "prometheus")
    done = subprocess.run(
        [program, *words], input=text, cwd=cwd, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


FULL = replace(
    scene([alert(1, "gpu00003"), alert(2, "", Status.UNKNOWN)]),
    vitals=VITALS,
    gpu_standings={"lemon": 1, "good": 3},
    runs=shown(*week()).runs,
)


def test_promtool_finds_no_fault_with_names_units_and_help() -> None:
    """Prometheus' own conventions, by Prometheus' own tool."""
    promtool("check", "metrics", text=render_metrics(FULL))


def test_every_rule_fires_when_it_should_and_only_then() -> None:
    """The alert rules are run against series by promtool; their tests lie beside them."""
    promtool("check", "rules", "sentinel.rules.yml")
    promtool("test", "rules", "sentinel.test.yml")


def test_rules_and_dashboard_ask_for_nothing_that_is_not_there(tmp_path: Path) -> None:
    """Every metric that an expression names is one that sentinel gives, and every expression is
    one that Prometheus understands."""
    dashboard = json.loads((PLACE / "grafana-dashboard.json").read_text())
    asked = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
    assert len(asked) > 20
    rules = [{"record": f"r{n}", "expr": e} for n, e in enumerate(asked)]
    book = tmp_path / "rules.yml"
    book.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    promtool("check", "rules", str(book))
    texts = [*asked, (PLACE / "sentinel.rules.yml").read_text()]
    names = {n for text in texts for n in re.findall(r"\bsentinel_\w+", text)}
    assert names <= set(families(FULL)), names - set(families(FULL))


def test_what_another_cluster_says_bears_its_name() -> None:
    """By the check that asked it."""
    found = scene()
    checks = (CheckFact(name="a", kind="job", status=Status.OK, elsewhere="west"), *found.checks)
    text = render_metrics(replace(found, checks=checks)).decode()
    whose = {
        sample.labels["check"]: sample.labels["cluster"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "sentinel_check_status"
    }
    assert whose.pop("a") == "west"
    assert set(whose.values()) == {found.cluster}


def test_numbers_are_in_base_units() -> None:
    """Seconds, bytes, shares from 0 to 1."""
    where = {"check": "scratch", "path": "/scratch"}
    assert one(FULL, "filesystem_used_ratio", **where) == pytest.approx(0.875)
    assert one(FULL, "filesystem_free_bytes", **where) == 12e12
    assert one(FULL, "filesystem_full_seconds", **where) == 36_000
    assert one(FULL, "check_duration_seconds", check="scratch", kind="fs") == 0.0125
    assert one(FULL, "slurm_requests_total", command="squeue") == 3
    assert one(FULL, "loop_lag_seconds") == 0.002
    assert one(FULL, "outbox_oldest_seconds", channel="oncall") == 90
    assert one(FULL, "training_progress_per_second", check="progress", subject="llm-10b") == (
        pytest.approx(0.1)
    )


def test_a_number_that_is_not_known_is_no_series() -> None:
    """0 would be an answer; there is none."""
    unknown = replace(disk(), values={"full_in_s": None, "free_bytes": 0.0})
    found = families(looked({"scratch": (FsCheck, [unknown])}))
    assert "sentinel_filesystem_full_seconds" not in found
    assert list(found["sentinel_filesystem_free_bytes"].values()) == [0.0]


def test_what_is_not_current_is_no_series() -> None:
    """Slurm and the service are dead for an hour: what was seen says when, and no number is told."""
    old = facts_at(store([alert(1, "gpu00003")]), 3600)
    found = families(old)
    assert "sentinel_filesystem_used_ratio" in families(facts_at(store([]), 0))
    gone = ("filesystem_", "training_", "nodes{", "nodes_with", "jobs")
    assert [n for n in found if n.removeprefix("sentinel_").startswith(gone)] == []
    assert "sentinel_nodes" not in found
    seen = START.wall / 1e6
    assert one(old, "check_seen_timestamp_seconds", check="scratch", kind="fs") == seen
    assert one(old, "nodes_seen_timestamp_seconds") == seen
    assert one(old, "check_status", check="scratch", kind="fs", status="ok") == 0
    assert one(old, "check_status", check="scratch", kind="fs", status="unknown") == 1


def facts_at(state: MemoryStore, after: float) -> Facts:
    return build_facts(read_status_inputs(state, around(), shift_instant(START, after)))


def test_nodes_are_counted_by_state_and_class_of_reason() -> None:
    """The words are from lists of ours, whatever somebody wrote as a reason."""
    assert one(FULL, "nodes", state="drained") == 1
    assert one(FULL, "nodes", state="allocated") == 30
    assert one(FULL, "nodes_with_reason", state="drained", reason="kill_task_failed") == 1
    assert one(FULL, "alerts", check="drained", kind="drained", severity="unknown", state="firing")


def test_what_only_a_service_knows_is_not_in_a_file_of_a_one_shot() -> None:
    """No counters that begin anew at every pass."""
    found = families(replace(FULL, vitals=None))
    assert not [n for n in found if "slurm_request" in n or n.startswith("process_")]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_subjects_stay_inside_their_label(text: str) -> None:
    """Whoever names a path cannot make a series, nor keep the others from being read."""
    hostile = replace(disk(), subject=text.encode("utf-8", "replace").decode())
    found = families(looked({"scratch": (FsCheck, [hostile])}))
    [labels] = found["sentinel_filesystem_free_bytes"]
    assert len(dict(labels)["path"]) <= MAX_LABEL_CHARS


def test_however_many_subjects_there_are_the_series_are_bounded() -> None:
    """Ten thousand paths make MOST of them; a name that is there twice counts once."""
    many = [replace(disk(), subject=f"/p{n // 2}") for n in range(10_000)]
    found = families(looked({"scratch": (FsCheck, many)}))
    assert len(found["sentinel_filesystem_free_bytes"]) == MAX_SERIES


def test_many_nodes_push_no_file_system_out() -> None:
    """Of this host's /tmp something is told, however many nodes another check looks at."""
    nodes = [replace(disk(), subject=f"node-{n}:/tmp") for n in range(250)]
    here = replace(disk(), subject="/tmp")
    found = families(
        looked({"nodes": (FsCheck, nodes), "mem": (MemoryCheck, nodes), "tmp": (FsCheck, [here])})
    )
    series = found["sentinel_filesystem_free_bytes"]
    assert (("check", "tmp"), ("path", "/tmp")) in series
    assert len(series) == MAX_SERIES + 1


def test_memory_is_no_file_system() -> None:
    """It has metrics of its own, by node, and no row among the disks."""
    values = {"used_percent": 50.0, "available_bytes": 8e9, "swap_used_percent": None}
    seen = ShownFinding(
        subject="memory", status=Status.OK, summary="", values=values, labels={"node": "login1"}
    )
    facts = looked({"ram": (MemoryCheck, [seen])})
    found = families(facts)
    assert facts.disks == ()
    assert not [name for name in found if "filesystem" in name]
    assert found["sentinel_memory_used_ratio"] == {(("check", "ram"), ("node", "login1")): 0.5}
    assert "sentinel_memory_swap_used_ratio" not in found


class QueueAge(Check, frozen=True):
    """A plugin of somebody else; `used_percent` is no word that makes it a file system."""

    METRICS = (
        Metric("age_s", "queue_age_seconds", "Age of the oldest.", "seconds", "partition"),
        Metric("used_percent", "queue_used_ratio", "Share.", "percent", "", ("user",)),
        Metric("age_s", "alerts", "A name of sentinel's own."),
    )


def test_a_plugins_numbers_are_exported_like_ours() -> None:
    """By what it declares, and by nothing else; a name of ours it cannot take."""
    values = {"age_s": 90, "used_percent": 25.0, "free_bytes": 1}
    seen = ShownFinding(
        subject="prod", status=Status.OK, summary="", values=values, labels={"user": "ann"}
    )
    facts = looked({"queue": (QueueAge(), [seen]), "foreign": (Check(), [seen])})
    found = families(facts)
    assert found["sentinel_queue_age_seconds"] == {(("check", "queue"), ("partition", "prod")): 90}
    assert found["sentinel_queue_used_ratio"] == {(("check", "queue"), ("user", "ann")): 0.25}
    assert "sentinel_alerts" not in found
    assert not [name for name in found if "filesystem" in name]
    assert (facts.disks, facts.jobs) == ((), ())
    promtool("check", "metrics", text=render_metrics(facts))


def test_what_passes_while_nobody_looks_is_counted() -> None:
    """A quiet training grows quieter, a disk is full sooner; a limit stays what it is."""
    facts = looked({"log": (Log, [progress()]), "scratch": (FsCheck, [disk()])}, after=100.0)
    where = {"check": "log", "subject": "llm-10b"}
    assert one(facts, "training_quiet_seconds", **where) == 112
    assert one(facts, "training_quiet_limit_seconds", **where) == 1200
    assert one(facts, "filesystem_full_seconds", check="scratch", path="/scratch") == 35_900


def test_numbers_whose_names_a_plugin_chose_have_them_as_a_label() -> None:
    """A Nagios plugin's performance data; text is no number."""
    seen = ShownFinding(subject="x", status=Status.OK, summary="", values={"rta": 3, "text": "y"})
    found = families(looked({"ping": (ExecCheck, [seen])}))
    labels = (("check", "ping"), ("subject", "x"), ("value", "rta"))
    assert found["sentinel_exec_perfdata"] == {labels: 3}


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        ({"name": "Age"}, "no name"),
        ({"name": "age", "unit": "seconds"}, "ends with _seconds"),
        ({"name": "age", "unit": "days"}, "no unit 'days'"),
        ({"name": "age_total"}, "_total"),
        ({"name": "age", "labels": ("a-b",)}, "no name"),
        ({"name": "age", "labels": ("check",)}, "two labels"),
    ],
)
def test_a_metric_that_prometheus_would_not_take_is_refused(
    known: dict[str, Any], problem: str
) -> None:
    """Where it is written, not when it is scraped."""
    with pytest.raises(ValueError, match=problem):
        Metric("age_s", help="", **known)


def declared_metrics() -> list[tuple[str, Metric]]:
    kinds = {name: CHECKS.load_kind(name) for name in KINDS}
    return [(name, metric) for name, kind in kinds.items() for metric in kind.METRICS]


@pytest.mark.parametrize(
    ("kind", "metric"), declared_metrics(), ids=lambda x: x if isinstance(x, str) else x.name
)
def test_each_declared_metric_appears(kind: str, metric: Metric) -> None:
    """With its labels, in /metrics and in docs/metrics.md."""
    value = "rta" if metric.value == ANY else metric.value
    labels = dict.fromkeys(metric.labels, "l")
    seen = ShownFinding(subject="s", status=Status.OK, summary="", values={value: 4}, labels=labels)
    facts = looked({"c": (CHECKS.load_kind(kind), [seen])})
    if metric.moves != "rate":  # that has to have a past
        [series] = families(facts)[f"sentinel_{metric.name}"]
        assert {label for label, _ in series} == set(metric.all_labels)
    told = (PLACE.parents[1] / "docs" / "metrics.md").read_text()
    assert f"`sentinel_{metric.name}{{{','.join(sorted(metric.all_labels))}}}`" in told


def test_one_name_is_one_metric() -> None:
    """Two kinds that share a name mean the same by it."""
    found: dict[str, Metric] = {}
    for _, metric in declared_metrics():
        assert found.setdefault(metric.name, metric) == metric


def test_the_text_file_is_replaced_whole(tmp_path: Path) -> None:
    """Readable by node_exporter, and nothing else is left in its folder."""
    path = tmp_path / "sentinel.prom"
    path.write_text("old")
    write_textfile(str(path), FULL)
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_bytes().startswith(b"# HELP sentinel_build_info")
    assert [p.name for p in tmp_path.iterdir()] == ["sentinel.prom"]


def test_a_folder_that_is_not_there_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    """The caller says so and goes on."""
    with pytest.raises(OSError):
        write_textfile(str(tmp_path / "no" / "sentinel.prom"), FULL)


def test_disks_without_any_number_make_no_series() -> None:
    """A file system that hangs has no size."""
    blank = ShownFinding(subject="/b", status=Status.CRITICAL, summary="hangs")
    assert "sentinel_filesystem_size_bytes" not in families(looked({"a": (FsCheck, [blank])}))


def test_every_metric_is_in_the_documentation() -> None:
    """With its labels, as it is given."""
    told = (PLACE.parents[1] / "docs" / "metrics.md").read_text()
    declared = {f"sentinel_{metric.name}" for metric in FULL.metrics}
    names = re.findall(r"^# HELP (\w+)", render_metrics(FULL).decode(), re.M)
    ours = {n for n in names if n.startswith("sentinel_")} - declared
    assert {n.removeprefix("sentinel_").removesuffix("_total") for n in ours} == OWN_METRIC_NAMES
    for name, series in families(FULL).items():
        if name.startswith("sentinel_"):
            labels = sorted({label for key in series for label, _ in key})
            wanted = f"`{name}{{{','.join(labels)}}}`" if labels else f"`{name}`"
            assert wanted in told, wanted


def test_a_pass_writes_the_file_and_goes_on_where_it_cannot(tmp_path: Path) -> None:
    """A chain has no port; metrics that cannot be written are said, and keep nothing from
    being watched."""
    config, path = tmp_path / "sentinel.yaml", tmp_path / "out" / "sentinel.prom"
    config.write_text(
        f"state: {tmp_path}/state\nmetrics: {{textfile: {path}}}\n"
        "checks: {root: {kind: fs, paths: [/]}}\n"
    )

    def tick() -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "sentinel", "tick", "--all", "-c", str(config)]
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)

    assert "not written: No such file or directory" in tick().stderr
    path.parent.mkdir()
    tick()
    promtool("check", "metrics", text=path.read_bytes())
    assert b'sentinel_filesystem_used_ratio{check="root",cluster="' in path.read_bytes()
