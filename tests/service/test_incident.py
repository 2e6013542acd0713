"""One cause, one message: what a night on the cluster sends when Slurm hangs or a node dies."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.clock import SystemClock
from sentinel.core.clock import shift_instant
from sentinel.core.model import Batch
from sentinel.store.opening import open_store
from tests.lab.cluster import Lab
from tests.lab.gpus import gpus_of, nvidia_smi
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.service.watch import Watch

NAMES = [f"team{n}" for n in range(10)]
CONFIG = """\
slurm: {{timeout: 2s}}
checks:
  slurm: {{kind: slurm, every: 1s, for: 0s}}
  nodes: {{kind: nodes, every: 1s, for: 0s, each: true}}
  training: {{kind: job, every: 1s, name: train, for: 0s}}
{more}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


def watching(night: Watch, lab: Lab) -> list[str]:
    """Thirteen checks that ask Slurm, all of them well, and the job that one of them watches."""
    jobs = [lab.sbatch("exec sleep 600", name=name, no_requeue=True) for name in ["train", *NAMES]]
    more = "\n".join(f"  {n}: {{kind: job, every: 1s, name: {n}, for: 0s}}" for n in NAMES)
    night.configure(CONFIG, more=more)
    return jobs


@pytest.mark.long
def test_a_slurmctld_that_hangs_is_one_incident(night: Watch, fresh: Lab) -> None:
    """At most two messages when it begins and two when it ends, with thirteen checks that ask it;
    no check is told as blind by itself, and every job is alive all the while."""
    watching(night, fresh)
    service = night.run()

    def well() -> bool:
        checks = night.status()["checks"]
        return all(check["status"] == "ok" for check in checks)

    service.wait_for(well, "all well", 60)
    assert night.book == []
    fresh.stop_controller()
    night.wait_told(service, 1, check="slurm", reason="firing")
    service.wait_for(lambda: _members(night) >= 11, "eleven that cannot see", 60)
    assert len(night.book) <= 2, night.book
    fresh.cont_controller()
    night.wait_told(service, 1, check="slurm", reason="resolved")
    service.wait_for(lambda: _members(night) == 0, "the end of the incident", 60)
    assert len(night.book) <= 4, night.book
    assert len({line["incident"] for line in night.told(check="slurm")}) == 1


@pytest.mark.long
def test_a_node_that_dies_under_a_training_is_one_incident(night: Watch, fresh: Lab) -> None:
    """The training is told, and the node; both in one incident."""
    job, *_ = watching(night, fresh)
    node = ""

    def runs() -> bool:
        nonlocal node
        node = fresh.run(["squeue", "-h", "-j", job, "-o", "%N"]).stdout.strip()
        return bool(node)

    wait_until(runs, "the training runs")
    service = night.run()
    service.wait_for(lambda: "train" in night.say("status").stdout, "a first look")
    fresh.crash_node(int(node.rpartition("-")[2]))
    night.wait_told(service, 1, 90, check="training", reason="firing")
    night.wait_told(service, 1, 90, check="nodes", subject=node, reason="firing")
    told = {line["check"]: line["incident"] for line in night.book if line["subject"]}
    assert told["training"] == told["nodes"], json.dumps(night.book)


WATCHED = """\
remote: {{ssh_options: "-F {ssh} -o UserKnownHostsFile={known}", connect_timeout: 2s}}
slurm: {{timeout: 5s}}
checks:
  nodes: {{kind: nodes, every: 1s, for: 0s, each: true}}
  gpus: {{kind: gpu, every: 1s, nodes: all, for: 0s, blind_after: 45}}
  root: {{kind: fs, every: 1s, nodes: all, paths: [/], for: 0s, blind_after: 45}}
  training: {{kind: job, every: 1s, name: train, for: 0s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  mail: {{kind: email, to: [o@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
"""


@pytest.mark.long
def test_a_node_that_dies_with_its_gpus_and_mounts_watched_is_one_thread(
    night: Watch, fresh: Lab, smtp: SmtpServer, tmp_path: Path
) -> None:
    """One incident and one thread of two mails: the node, when Slurm does not hear from it, and the
    training, when Slurm ends it half a minute later. Of what cannot be seen there any more nobody hears."""
    nodes = Nodes(fresh, tmp_path)
    for one in fresh.nodes:
        one.stand_in("nvidia-smi", nvidia_smi(gpus_of(int(one.name.rpartition("-")[2]))))
    job = fresh.sbatch("exec sleep 600", name="train", no_requeue=True)
    where = ["squeue", "-h", "-j", job, "-t", "R", "-o", "%N"]
    wait_until(lambda: fresh.run(where).stdout.strip(), "the training runs")
    node = fresh.run(where).stdout.strip()
    night.configure(WATCHED, ssh=nodes.config, known=nodes.known, port=smtp.port)
    service = night.run()
    names = {"nodes", "gpus", "root", "training"}
    service.wait_for(
        lambda: {c["check"] for c in night.status()["checks"] if c["status"] == "ok"} >= names,
        "all well",
        60,
    )
    assert night.book == []
    fresh.crash_node(int(node.rpartition("-")[2]))
    night.wait_told(service, 1, 90, check="training", reason="firing")
    night.wait_told(service, 1, 90, check="nodes", subject=node, reason="firing")
    service.wait_for(lambda: _without(night, node) == {"gpus", "root"}, "looks without it", 60)
    service.wait_for(lambda: not night.status()["unsent"], "an empty outbox")
    assert {line["check"] for line in night.book} == {"training", "nodes"}
    assert len({line["incident"] for line in night.book}) == 1
    threads = {str(mail.message["References"]).split()[0] for mail in smtp.mails}
    assert (len(smtp.mails), len(threads)) == (2, 1)


def _without(night: Watch, node: str) -> set[str]:
    """The checks that say that they do not look at the node any more, and are ok of the others."""
    checks = night.status()["checks"]
    return {c["check"] for c in checks if c["status"] == "ok" and f"not {node}" in c["summary"]}


def _members(night: Watch) -> int:
    out = night.say("incidents", "--json").stdout
    return max((row["alerts"] for row in json.loads(out)), default=0)


OUT = """\
slurm: {{timeout: 5s}}
checks:
  nodes: {{kind: nodes, every: 1s, for: 0s, each: true}}
  training: {{kind: job, every: 1s, name: train, for: 0s}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


@pytest.mark.long
def test_a_training_dies_on_a_node_that_was_acknowledged_yesterday(
    night: Watch, fresh: Lab
) -> None:
    """One waking message: as new, in an incident of its own, and with no word that somebody has it.
    The node was drained while the training went on; the state is aged by a day in between."""
    job = fresh.sbatch("exec sleep 600", name="train", no_requeue=True)
    where = ["squeue", "-h", "-j", job, "-t", "R", "-o", "%N"]
    wait_until(lambda: fresh.run(where).stdout.strip(), "the training runs")
    node = fresh.run(where).stdout.strip()
    fresh.run(["scontrol", "update", f"nodename={node}", "state=drain", "reason=RMA"])
    night.configure(OUT)
    service = night.run()
    (out,) = night.wait_told(service, 1, 60, check="nodes", subject=node, reason="firing")
    night.say("incidents", "ack", out["incident"], "--who", "ann", "--note", "RMA tomorrow")
    night.wait_told(service, 1, check="nodes", subject=node, reason="ack")
    service.terminate()
    _age(night.state, 86_400)
    before, service = len(night.book), night.run()
    fresh.crash_node(int(node.rpartition("-")[2]))
    (dead,) = night.wait_told(service, 1, 120, check="training", reason="firing")
    service.wait_for(lambda: _members(night) == 1, "two incidents")
    assert dead["severity"] == "critical"
    assert dead["incident"] == dead["alert"] != out["incident"]
    assert "ann" not in dead["note"]
    told = [line for line in night.book[before:] if line["subject"] in (node, "train")]
    assert [line["check"] for line in told] == ["training"]


def _age(state: Path, seconds: float) -> None:
    """All that fires has done so for so much longer."""
    now = SystemClock().now()
    store = open_store(str(state), now).store
    store.take_lead("the test", now)
    alerts = tuple(
        replace(
            alert,
            since=shift_instant(alert.since, -seconds),
            fired=alert.fired and shift_instant(alert.fired, -seconds),
        )
        for alert in store.read_alerts()
    )
    store.commit(Batch(at=now, alerts=alerts))
    store.close()


FULL = """\
slurm: {{timeout: 2s}}
checks:
  space: {{kind: fs, every: 1s, for: 0s, paths: ["{point}"]}}
  trainings: {{kind: job, every: 1s, for: 0s, users: [{users}]}}
routes:
  - {{match: {{kind: job}}, to: [book, owners]}}
  - {{to: [book]}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  owners: {{kind: email, to: owner, owner_domain: example.org, from: s@example.org, host: {host}, port: {port}, security: none}}
"""


@pytest.mark.long
def test_a_full_file_system_under_three_trainings_is_one_incident(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """It names the three, and each user hears of their own, once. The file system says that it is
    full; the trainings, which work in it, end as on one that is."""
    point, go = fresh.fuse.point, fresh.work / "full"
    users = [fresh.user(f"u{n}") for n in range(3)]
    script = f"until [ -e {go} ]; do sleep 0.2; done; exit 28"
    for user in users:
        options = {"user": user, "output": "/dev/null", "chdir": str(point), "no_requeue": True}
        fresh.sbatch(script, name="llm", **options)
    names = ", ".join(user.name for user in users)
    night.configure(FULL, point=point, host=smtp.host, port=smtp.port, users=names)
    service = night.run()
    service.wait_for(lambda: "trainings, all ok" in night.say("status", "--json").stdout, "all")
    fresh.fuse.space(total=1 << 30, free=0)
    go.touch()
    service.wait_for(lambda: _members(night) == 4, "one incident of four", 90)
    service.wait_for(lambda: len(smtp.mails) >= 3, "three mails", 30)
    rows = json.loads(night.say("incidents", "--json").stdout)
    assert len(rows) == 1, rows
    (row,) = rows
    assert sorted(row["trainings"]) == [f"{user.name}/llm" for user in users]
    assert sorted(row["users"]) == [user.name for user in users]
    assert str(point) in row["title"]
    wanted = sorted(f"{user.name}@example.org" for user in users)
    assert sorted(address for mail in smtp.mails for address in mail.recipients) == wanted
