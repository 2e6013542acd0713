"""Slurm hangs, is dead, unreachable or cannot prove who asks: sentinel says that it is blind."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Lab
from tests.lab.service import Service
from tests.service.watch import Watch, age, processes, wait_gone

TIMEOUT = 2.0
KILLING = 1.0  # seconds that proc gives a killed group, and some for a busy machine
CONFIG = """\
slurm: {{timeout: 2s}}
checks:
  training: {{kind: job, every: 1s, name: train, for: 0s, blind_after: 2, pulse_log: {folder}/pulse.log}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""

Fault = tuple[Callable[[Lab], None], Callable[[Lab], None]]
# SIGTERM: killed by SIGKILL it may forget the job, and then the job is truly gone.
FAULTS: dict[str, Fault] = {
    "slurmctld is stopped": (Lab.stop_controller, Lab.cont_controller),
    "slurmctld is dead": (lambda lab: lab.kill_controller(signal.SIGTERM), Lab.start_controller),
    "slurmctld is unreachable": (Lab.cut_controller, Lab.join_controller),
    "munge is stopped": (lambda lab: lab.munge.stop(), lambda lab: lab.munge.cont()),
    "munge is dead": (lambda lab: lab.munge.kill(), lambda lab: lab.munge.start()),
}
HANGS = ["slurmctld is stopped", "slurmctld is unreachable", "munge is stopped"]


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_an_ill_slurm_is_told_as_blindness_and_never_as_a_dead_job(
    night: Watch, fresh: Lab, fault: str
) -> None:
    """One alert with an empty subject and status unknown, ended after the recovery; the job that
    runs all the while is not spoken of. No command outlives its limit, and one asks at a time."""
    breaks, mends = FAULTS[fault]
    service = watching(night, fresh)
    breaks(fresh)
    (blind,) = night.wait_told(service)
    assert (blind["subject"], blind["status"], blind["reason"]) == ("", "unknown", "firing")
    assert "squeue" in f"{blind['summary']} {blind['details']}"
    for _ in range(20):
        assert_no_pile(night)
        time.sleep(0.1)
    mends(fresh)
    night.wait_told(service, reason="resolved")
    assert [(line["subject"], line["reason"]) for line in night.book] == [
        ("", "firing"),
        ("", "resolved"),
    ]
    assert service.terminate() == 0
    wait_gone(str(night.folder))


@pytest.mark.parametrize("fault", HANGS)
def test_a_service_stops_while_slurm_hangs_and_leaves_no_process(
    night: Watch, fresh: Lab, fault: str
) -> None:
    """SIGTERM in the middle of a question: exit 0, and the command that asks goes too."""
    service = watching(night, fresh)
    FAULTS[fault][0](fresh)
    service.wait_for(lambda: clients(night, service), "a command that hangs")
    assert service.terminate(15) == 0
    wait_gone(str(night.folder), 3.0)


def test_a_start_while_slurm_is_down_goes_on_with_the_alerts_of_before(
    night: Watch, fresh: Lab
) -> None:
    """Alerts are kept by the cluster's name, which slurmctld says: one that is down must not turn
    each of them into another one under the name of this host."""
    night.lamp(2)
    night.configure("""\
        checks:
          LAMP
        channels:
          book: {{kind: file, path: {folder}/book.jsonl}}
    """)
    night.config.write_text(night.config.read_text().replace("cluster: lab\n", ""))
    service = night.run()
    (fired,) = night.wait_told(service)
    assert service.terminate() == 0
    fresh.kill_controller(signal.SIGTERM)
    night.lamp(0)
    service = night.run()
    (ended,) = night.wait_told(service, reason="resolved")
    assert service.terminate() == 0
    assert [line["reason"] for line in night.book] == ["firing", "resolved"]
    assert ended["cluster"] == fired["cluster"] != os.uname().nodename
    fresh.start_controller()


@pytest.mark.long
def test_a_dead_job_is_told_of_as_soon_as_slurm_answers_again(night: Watch, fresh: Lab) -> None:
    """What ended while sentinel was blind is no secret afterwards."""
    job = fresh.sbatch("exec sleep 6", name="train")
    service = watching(night, fresh, job)
    fresh.munge.kill()
    night.wait_told(service, subject="")
    fresh.munge.start()
    fresh.wait_state(job, "COMPLETED")
    (dead,) = night.wait_told(service, subject="train")
    assert dead["status"] == "critical"
    assert f"job {job} completed with exit code 0" in dead["summary"]


@pytest.mark.long
def test_a_slurm_that_fails_is_asked_ever_less_often(night: Watch, fresh: Lab) -> None:
    """Eight runs in eight seconds are no more than two questions."""
    asked = night.folder / "asked"
    count_questions(night, asked)
    service = watching(night, fresh)
    fresh.kill_controller()
    night.wait_told(service)
    before, runs = questions(asked), pulses(night)
    service.wait_for(lambda: pulses(night) >= runs + 8, "eight runs")
    assert 1 <= questions(asked) - before <= 2
    assert len(night.book) == 1


def watching(night: Watch, lab: Lab, job: str = "") -> Service:
    """A service that has seen the job run, and has nothing to tell."""
    job = job or lab.sbatch("exec sleep 300", name="train")
    lab.wait_state(job, "RUNNING")
    night.configure(CONFIG)
    service = night.run()
    service.wait_for(lambda: pulses(night) >= 1, "the first run")
    assert night.book == []
    return service


def pulses(night: Watch) -> int:
    path = night.folder / "pulse.log"
    return len(path.read_text().splitlines()) if path.exists() else 0


def clients(night: Watch, service: Service) -> dict[int, str]:
    """Slurm's commands that this service started, and that run now."""
    mine = processes(str(night.folder))
    return {pid: line for pid, line in mine.items() if pid != service.pid and "squeue" in line}


def assert_no_pile(night: Watch) -> None:
    """At most one question at a time, and none older than its limit."""
    asking = {p: line for p, line in processes(str(night.folder)).items() if "sentinel" not in line}
    assert len(asking) <= 1, asking
    for pid, line in asking.items():
        assert age(pid) < TIMEOUT + KILLING + 1.0, line


def count_questions(night: Watch, asked: Path) -> None:
    """The real squeue behind a script that notes each call."""
    real = shutil.which("squeue")
    folder = night.folder / "bin"
    folder.mkdir()
    script = folder / "squeue"
    script.write_text(f'#!/bin/sh\necho >> {asked}\nexec {real} "$@"\n')
    script.chmod(0o755)
    night.env["PATH"] = f"{folder}:{night.env['PATH']}"


def questions(asked: Path) -> int:
    return len(asked.read_text().splitlines())
