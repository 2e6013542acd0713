"""What is shown of the ledger of runs, and its metrics."""

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch, Status
from sentinel.core.run_ledger import LedgerRow
from sentinel.report.gpu_time import CLASSES
from sentinel.report.run_report import group_runs
from sentinel.status.collect import read_status_inputs
from sentinel.status.privacy import Viewer
from sentinel.status.run_facts import MAX_RUNS, select_largest_runs
from sentinel.status.run_reader import REREAD_S, RunReader
from sentinel.status.types import Facts, JobFact
from sentinel.status.view_model import build_facts
from sentinel.store.memory import MemoryStore
from sentinel.testing import START
from sentinel.web.metrics import render_metrics
from tests.web.scenery import around, week

CLUSTER = "h100-prod"


def kept(*rows: LedgerRow) -> MemoryStore:
    state = MemoryStore()
    state.take_lead("test", START)
    state.commit(Batch(at=START, ledger=rows))
    return state


def shown(*rows: LedgerRow) -> Facts:
    return build_facts(read_status_inputs(kept(*rows), around(), START))


def held(run: str, gpus: int, cluster: str = CLUSTER, hours: float = 1) -> LedgerRow:
    began = shift_instant(START, -3600.0 * hours).wall
    return LedgerRow(
        run=run, kind="held", began=began, ended=START.wall, job="1", gpus=gpus, cluster=cluster
    )


def series(facts: Facts) -> dict[tuple[str, str, str], float]:
    """Cluster, run and class -> GPU-seconds, read as a scraper would."""
    return {
        (s.labels["cluster"], s.labels["run"], s.labels["class"]): s.value
        for family in text_string_to_metric_families(render_metrics(facts).decode())
        for s in family.samples
        if s.name == "sentinel_run_gpu_seconds"
    }


def test_a_run_has_its_parts_its_strip_and_its_steps() -> None:
    """Of the last week; the parts add up to what was held."""
    (run,) = shown(*week()).runs
    assert (run.run, run.elsewhere) == ("llm-10b", "")
    assert set(run.gpu_seconds) == set(CLASSES)
    assert sum(run.gpu_seconds.values()) == (48 + 38 + 36 + 14 + 9) * 64 * 3600
    assert {"steps", "slow", "lost", "hung", "down", "queued", "blind"} == {
        s.kind for s in run.strip
    }
    assert run.strip[-1].ended == START.wall / 1e6
    assert run.goodput is not None
    assert run.sentence.startswith(
        "Run llm-10b held 9,280 GPU-hours. 83% of them went into the model"
    )


def test_what_ended_more_than_a_week_ago_is_not_shown() -> None:
    """Nor what only waits."""
    old = replace(held("old", 8, hours=200), ended=shift_instant(START, -190 * 3600.0).wall)
    waits = replace(held("waits", 0), kind="queued")
    assert [run.run for run in shown(old, waits, held("new", 8)).runs] == ["new"]


def test_one_run_more_than_are_shown() -> None:
    """Those that held most stay, with all of their classes, so no user can flood Prometheus."""
    many = [held(f"run-{n}", n + 1) for n in range(MAX_RUNS + 1)]
    facts = shown(*many)
    assert [run.run for run in facts.runs] == [f"run-{n}" for n in range(MAX_RUNS, 0, -1)]
    assert len(series(facts)) == MAX_RUNS * len(CLASSES)
    assert series(facts)[CLUSTER, f"run-{MAX_RUNS}", "unknown"] == (MAX_RUNS + 1) * 3600


def test_only_the_largest_runs_get_an_account() -> None:
    """One user may run thousands of jobs of different names: an account of each took all the time."""
    many = [held(f"run-{n}", n) for n in range(4 * MAX_RUNS)]
    twice = replace(
        many[1], gpus=4 * MAX_RUNS, ended=many[1].began
    )  # of one start: the last counts
    found = select_largest_runs(group_runs([*many, twice]), 0, START.wall)
    assert found == [(CLUSTER, f"run-{n}") for n in range(4 * MAX_RUNS - 1, 3 * MAX_RUNS - 1, -1)]
    assert select_largest_runs(group_runs(many), START.wall, START.wall) == []


def test_runs_of_one_name_in_two_clusters_are_two() -> None:
    """Each has the name of its own cluster."""
    found = series(shown(held("llm", 8), held("llm", 4, "east")))
    assert found[CLUSTER, "llm", "unknown"] == 8 * 3600
    assert found["east", "llm", "unknown"] == 4 * 3600


def test_a_hostile_name_stays_text() -> None:
    """In labels and on a terminal."""
    facts = shown(held('a"}\n evil{x="\x1b[2J', 8))
    assert len(series(facts)) == len(CLASSES)
    assert "\x1b" not in facts.runs[0].run + facts.runs[0].sentence


def test_the_ledger_is_read_once_a_minute() -> None:
    """And again after it, and for another cluster's name."""
    state, reader = kept(held("llm", 8)), RunReader()
    first = reader.read_runs(state, CLUSTER, START)
    state.commit(Batch(at=START, ledger=(held("other", 8),)))
    assert reader.read_runs(state, CLUSTER, shift_instant(START, REREAD_S - 1)) is first
    later = reader.read_runs(state, CLUSTER, shift_instant(START, REREAD_S))
    assert {run.run for run in later} == {"llm", "other"}
    (one, _) = reader.read_runs(state, "west", START)
    assert one.elsewhere == CLUSTER


def test_a_run_is_for_the_owner_of_all_its_jobs_alone() -> None:
    """Of a name that two users have, and of one that nobody is known to have, neither sees it."""

    def job(subject: str, user: str, elsewhere: str = "") -> JobFact:
        return JobFact(
            check="c", kind="job", subject=subject, user=user, elsewhere=elsewhere,
            status=Status.OK, summary="", seen=0.0,
        )  # fmt: skip

    names = ("anns", "both", "nobodys", "unseen", "east")
    jobs = (job("anns", "ann"), job("anns", ""), job("both", "ann"), job("both", "bob"))
    jobs = (*jobs, job("nobodys", ""), job("east", "ann", "east"))
    facts = replace(shown(*(held(name, 8) for name in names)), jobs=jobs, private=())

    def seen(name: str) -> list[str]:
        return [run.run for run in Viewer(name, all=False).filter_facts(facts).runs]

    assert (seen("ann"), seen("bob"), seen("")) == (["anns"], [], [])
    assert len(Viewer().filter_facts(facts).runs) == len(names)
