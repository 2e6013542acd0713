"""Two real clusters in one sentinel: each is asked by its own slurm.conf, and ill by itself."""

from collections.abc import Iterator

import pytest

from tests.lab.cluster import Lab
from tests.service.watch import Watch

CONFIG = """\
clusters:
  east: {{conf: {east}/slurm.conf, timeout: 5s}}
  west: {{conf: {west}/slurm.conf, timeout: 5s}}
checks:
  jobs-east: {{kind: job, cluster: east, every: 1s, name: train, for: 0s}}
  jobs-west: {{kind: job, cluster: west, every: 1s, name: train, for: 0s, blind_after: 1}}
  slurm-west: {{kind: slurm, cluster: west, every: 1s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
metrics: {{textfile: {folder}/sentinel.prom}}
"""


@pytest.fixture(scope="module")
def west() -> Iterator[Lab]:
    """A cluster beside the worker's own."""
    with Lab(nodes=1) as lab:
        yield lab


def seen(watch: Watch) -> bool:
    """Whether both jobs were looked at and run."""
    jobs = [c for c in watch.status()["checks"] if c["kind"] == "job"]
    return len(jobs) == 2 and all(c["status"] == "ok" for c in jobs)


@pytest.mark.long
def test_a_job_of_each_is_watched_and_one_goes_on_while_the_other_is_dead(
    watch: Watch, fresh: Lab, west: Lab
) -> None:
    """Both jobs have one name. While west's slurmctld is dead east's job dies, and that is told as
    east's; of west it is said that it cannot be seen, and nothing about its job until it ends."""
    jobs = {lab: lab.sbatch("exec sleep 300", name="train") for lab in (fresh, west)}
    for lab, job in jobs.items():
        lab.wait_state(job, "RUNNING")
    watch.configure(CONFIG, east=fresh.folder, west=west.folder)
    service = watch.run()
    service.wait_for(lambda: seen(watch), "both jobs", 60)
    assert watch.book == []

    west.kill_controller()
    service.wait_for(lambda: watch.told(check="slurm-west"), "the dead slurmctld", 40)
    fresh.scancel(jobs[fresh])
    service.wait_for(lambda: watch.told(check="jobs-east"), "the dead job", 40)
    (dead,) = watch.told(check="jobs-east")
    assert (dead["cluster"], dead["subject"], dead["reason"]) == ("east", "train", "firing")
    assert f"job {jobs[fresh]} was cancelled" in dead["summary"]
    assert watch.told(check="slurm-west")[0]["cluster"] == "west"
    assert {line["subject"] for line in watch.told(check="jobs-west")} <= {""}, "blind, not dead"

    west.start_controller()
    service.wait_for(
        lambda: watch.told(check="slurm-west")[-1]["reason"] == "resolved", "west is back", 40
    )
    west.scancel(jobs[west])
    service.wait_for(
        lambda: [line for line in watch.told(check="jobs-west") if line["subject"]],
        "west's dead job",
        40,
    )
    (dead,) = (line for line in watch.told(check="jobs-west") if line["subject"])
    assert dead["cluster"] == "west"
    assert f"job {jobs[west]} was cancelled" in dead["summary"]
    assert dead["incident"] != watch.told(check="jobs-east")[0]["incident"]
    assert service.terminate() == 0
