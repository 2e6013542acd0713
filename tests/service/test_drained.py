"""Nodes go back to work, or do not, on a real cluster: Slurm drains, sentinel proves and undrains."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Lab
from tests.lab.needs import SLURM_BIN
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes, saying
from tests.service.ward import CLEAN, KILL, NODE, Ward, alive, daemon, login, stuck
from tests.service.watch import Watch


@pytest.fixture
def ward(fresh: Lab, night: Watch, tmp_path: Path) -> Ward:
    for node in fresh.nodes:
        (node.bin / "nvidia-smi").write_text(CLEAN)
    (tmp_path / "ssh").mkdir()
    ward = Ward(fresh, night, Nodes(fresh, tmp_path / "ssh"))
    ward.tick()  # who sees nodes leave service knows what their reasons replaced
    return ward


@pytest.mark.long
def test_slurm_drains_a_node_and_sentinel_gives_it_back_when_the_process_is_gone(
    ward: Ward,
) -> None:
    """A task in state D: why not, for as long as it hangs; then undrained, and a job runs there."""
    lab = ward.lab
    job = lab.unkillable_job(nodelist=NODE)
    wait_until(lab.fuse.withheld, "the task in state D")
    ward.tick()
    lab.scancel(job)
    lab.wait_node(NODE, "DRAIN")
    ward.tick()
    assert ward.drained()
    assert "processes hang in the kernel (state D): cat (pid " in ward.told()
    lab.fuse.release()
    wait_until(lambda: not ward.nodes.on(NODE, "pgrep -x cat").stdout, "the end of the task")
    ward.tick_until(lambda: not ward.drained())
    assert lab.ask(["srun", f"--nodelist={NODE}", "hostname"]).strip() == NODE
    seen, intended, done = ward.log()
    assert seen["reason"].startswith(KILL)
    assert seen["at"] <= intended["at"] <= done["at"]
    assert (intended["what"], done["what"]) == ("intended", "done")
    assert intended["evidence"]["blocked"] == "+ no task in state D"
    assert "undrain node-2: done" in ward.told()


@pytest.mark.long
def test_a_reason_that_hides_another_is_not_touched(ward: Ward) -> None:
    """Slurm forgot an administrator's note and sentinel's own; the ledger did not."""
    notes = {NODE: "RMA GPU3", "node-3": "sentinel: bad GPU"}
    for node, note in notes.items():
        ward.drain(node, note)
    ward.tick()
    for node in notes:
        ward.drain(node)
    ward.tick()
    ward.tick()
    for node, note in notes.items():
        assert ward.drained(node), ward.log(node)
        assert f"its reason replaced another one: '{note}'" in ward.told(), ward.log(node)
        assert ward.acted(node) == []


@pytest.mark.long
def test_a_node_that_was_drained_before_the_first_look(ward: Ward) -> None:
    """slurmctld's log gives it back where it goes back to a job on that node; a reason that was
    replaced in it, or a log that begins later, does not."""
    log, tail = ward.lab.folder / "log/slurmctld", ward.watch.folder / "tail"
    for node in (NODE, "node-3"):
        ward.lab.ask(["srun", f"--nodelist={node}", "true"])
    ward.drain("node-3", "RMA GPU3")
    for node in (NODE, "node-3"):
        ward.drain(node)
    shutil.rmtree(ward.watch.state)
    drains = [n for n, line in enumerate(log.read_text().splitlines()) if "reason set" in line]
    tail.write_text("\n".join(log.read_text().splitlines()[drains[-2] :]) + "\n")
    for keys in ("", f", slurmctld_log: {tail}"):
        ward.configure(keys)
        ward.tick()
        assert "drained while sentinel did not look" in ward.told()
        assert ward.acted() == []
    ward.configure(f", slurmctld_log: {log}")
    ward.tick_until(lambda: not ward.drained())
    assert ward.drained("node-3")
    assert ward.acted("node-3") == []


@pytest.mark.long
def test_what_cannot_be_seen_is_not_clean(ward: Ward) -> None:
    """Cut off the network, nvidia-smi hangs, nvidia-smi prints an error with exit code 0, sshd
    answers garbage: four drained nodes that are idle and clean, and none of them is touched."""
    lab = ward.lab
    ward.configure(timeout="13s")
    for node in lab.nodes:
        ward.drain(node.name)
    (lab.nodes[3].bin / "nvidia-smi").write_text(f"#!/bin/sh\nexec cat {lab.fuse.point}/data\n")
    lab.fuse.hold("open")
    (lab.nodes[2].bin / "nvidia-smi").write_text("#!/bin/sh\necho 'Unable to determine GPU0'\n")
    lab.cut_node(1)
    with saying(b"SSH-2.0-nonsense\r\n" + b"\0\xff" * 4000 + b"") as port:
        ward.nodes.divert("node-0", port)
        ward.tick()
    told = {line["subject"]: line["summary"] for line in ward.watch.book}
    assert [ward.drained(node.name) for node in lab.nodes] == [True] * 4
    assert told["node-0"].startswith("the node could not be asked: ")
    assert told["node-1"].startswith("the node could not be asked: ")
    assert told["node-2"].startswith("gpu processes: not read, ")
    assert told["node-3"].startswith("gpu processes: not read, ")
    assert [ward.acted(node.name) for node in lab.nodes] == [[]] * 4


RACES = {
    "RMA GPU3": "reason='RMA GPU3'",
    "taken down": f"state=down reason='{KILL}'",
}


@pytest.mark.long
@pytest.mark.parametrize("change", RACES.values(), ids=RACES)
def test_a_reason_that_changes_between_proof_and_change_stops_it(ward: Ward, change: str) -> None:
    """An administrator is faster by milliseconds: the node is read once more, and left alone."""
    ward.drain()
    race = f"{SLURM_BIN}/scontrol update nodename={NODE} {change}"
    ward.wrap(
        f'[ "$5" != {NODE} ] || [ -e {ward.watch.folder}/raced ] || '
        f"{{ touch {ward.watch.folder}/raced; {race}; }}"
    )
    ward.tick_until((ward.watch.folder / "raced").exists)
    assert (ward.drained(), ward.updates) == (True, 0)
    assert ward.acted() == ["intended", "withdrawn"]
    assert "meanwhile it" in ward.log()[-1]["detail"]


OVERTAKEN = (
    ("state=drain reason='RMA GPU3'", "RMA GPU3"),
    (f"state=drain reason='{KILL} again'", f"{KILL} again"),
    ("reason='RMA GPU3'", "RMA GPU3"),
)


def overtake(ward: Ward, change: str) -> None:
    """An administrator who drains the node right before sentinel's change reaches slurmctld."""
    race = f"{SLURM_BIN}/scontrol update nodename={NODE} {change}"
    ward.wrap(f'case "$*" in *State=UNDRAIN*) {race} ;; esac')


def window(ward: Ward) -> str:
    """What the newest record of the audit log says of the time between look and change."""
    intent = [event for event in ward.log() if event["what"] == "intended"][-1]
    return str(intent["evidence"]["window"])


@pytest.mark.long
def test_a_drain_that_sentinel_overtakes_is_back_each_time(ward: Ward) -> None:
    """slurmctld's log, found by slurm.conf, shows what was erased; asked for by a check or by hand."""
    ward.drain()
    overtake(ward, OVERTAKEN[0][0])
    ward.tick_until(lambda: "it replaced 'RMA GPU3' by author not known" in ward.told())
    assert ward.drained()
    for change, reason in OVERTAKEN:
        wait_until(lambda: "NOT_RESPONDING" not in ward.lab.node(NODE)["State"], "slurmd is heard")
        ward.drain()
        overtake(ward, change)
        ward.watch.say("nodes", "undrain", NODE, "--force", PATH=ward.path)
        assert ward.drained()
        assert f"{reason} (by author not known)" in ward.lab.node(NODE)["Reason"]
        assert ward.acted()[-1] == "unclear"
        assert window(ward).startswith("watched, ")


def test_where_the_log_cannot_be_read_the_window_is_told_as_unwatched(ward: Ward) -> None:
    """With how long it was; the node is as the last change left it."""
    ward.configure(f", slurmctld_log: {ward.watch.folder}/none")
    ward.drain()
    overtake(ward, OVERTAKEN[0][0])
    ward.watch.say("nodes", "undrain", NODE, "--force", PATH=ward.path)
    assert not ward.drained()
    assert re.match(r"unwatched, \d+ ms: .*No such file", window(ward))


@pytest.mark.long
def test_an_error_of_slurm_is_told_in_its_words(ward: Ward) -> None:
    """The log says error, the node is still drained, and the next run says why."""
    ward.drain()
    ward.wrap(
        '[ "$1" != update ] || { echo "slurm_update error: Invalid node state specified" >&2; '
        "exit 1; }"
    )
    told = "error: Slurm refuses that for a node in its present state: slurm_update error: Inv"
    ward.tick_until(lambda: f"not given back: {told}" in ward.seen())
    assert ward.drained()
    assert ward.acted()[:2] == ["intended", "error"]
    assert f"undrain {NODE}: {told}" in ward.told()


@pytest.mark.long
def test_a_sentinel_that_dies_between_intent_and_outcome_acts_once(ward: Ward) -> None:
    """Killed while scontrol ran: the next one finds the intent, and does nothing twice."""
    ward.drain()
    ward.wrap('[ "$1" != update ] || [ -e died ] || { touch died; kill -9 $PPID; }')
    ward.tick_until(lambda: ward.updates, code=-9)
    ward.tick()
    ward.tick()
    assert ward.updates == 1
    assert ward.acted()[0] == "intended"


@pytest.mark.long
def test_two_sentinels_on_one_state_change_a_node_once(ward: Ward) -> None:
    """A pass and a command by hand in the same second."""
    ward.drain()
    ward.wrap('[ "$1" != update ] || sleep 0.5')
    hand = ward.watch.start("nodes", "undrain", NODE)
    ward.tick_until(lambda: not ward.drained())
    hand.wait(30)
    assert ward.updates <= 1
    assert not ward.drained()
    changed = [what for what in ward.acted() if what == "done"]
    assert len(changed) == 1


@pytest.fixture
def other(ward: Ward) -> Ward:
    """A second sentinel on the same cluster, with a state of its own."""
    folder = ward.watch.folder / "other"
    folder.mkdir()
    return Ward(ward.lab, Watch(folder, ward.watch.run, ward.lab.env), ward.nodes)


MARK = "sentinel:returned:"


def refused(ward: Ward, node: str = NODE) -> list[dict[str, Any]]:
    """What a cap refused there; that of maintenance is no cap."""
    found = [event for event in ward.log(node) if event["what"] == "refused"]
    return [event for event in found if event["rule"] != "maintenance"]


@pytest.mark.long
@pytest.mark.parametrize("guard", ["", ", mark: true"], ids=["by default", "with marks"])
def test_two_sentinels_with_states_of_their_own_keep_one_cap(
    ward: Ward, other: Ward, guard: str
) -> None:
    """The second sees what the first returned, says so, and leaves the rest. Nothing is written into
    a node by default; with marks only where the Comment is empty."""
    ward.lab.ask(["scontrol", "update", "nodename=node-0", "comment=rack-7"])
    names = [node.name for node in ward.lab.nodes][:3]
    ward.configure(limits=", per_hour: 2", guard=guard)
    other.configure(guard=", maintenance: true")
    other.tick()
    for name in names:
        ward.drain(name)
    other.tick()
    ward.tick_until(lambda: sum(map(ward.drained, names)) == 1)
    [left] = [name for name in names if ward.drained(name)]
    other.configure(limits=", per_hour: 2", guard=guard)
    other.tick_until(lambda: refused(other, left))
    other.tick()
    assert ward.drained(left)
    [told] = refused(other, left)
    assert told["rule"] == ("per_hour" if guard else "others")
    assert "not by this sentinel" in told["why"]
    comments = [ward.lab.node(name).get("Comment", "") for name in names]
    assert comments[0] == "rack-7"
    marked = [name for name, text in zip(names, comments, strict=True) if text.startswith(MARK)]
    assert marked == ([n for n in names[1:] if n != left] if guard else [])
    ward.lab.ask(["scontrol", "update", f"nodename={','.join(names)}", "comment="])


@pytest.mark.long
def test_a_return_by_others_counts_while_its_slurmd_is_not_yet_heard(ward: Ward) -> None:
    """Until it registers Slurm calls it NOT_RESPONDING; whoever returned it may go on all the same."""
    ward.lab.configure(SlurmdTimeout=300)
    ward.configure(guard=", maintenance: true")
    for name in ("node-0", NODE):
        ward.drain(name)
    ward.tick()
    ward.lab.cut_node(0)
    ward.lab.ask(["scontrol", "update", "nodename=node-0", "state=undrain"])
    assert "NOT_RESPONDING" in ward.lab.node("node-0")["State"]
    ward.configure()
    ward.tick_until(lambda: refused(ward))
    assert [e["rule"] for e in refused(ward)] == ["others"]
    assert ward.drained()


@pytest.mark.long
def test_a_node_whose_task_stays_in_state_d_is_rebooted_where_switched_on(ward: Ward) -> None:
    """By Slurm, which drains first, and gives it back when it is up again."""
    ward.configure(", reboot: true, reboot_after: 1s")
    stuck(ward)
    ward.drain()
    ward.tick_until(lambda: "reboot" in ward.told())
    assert ward.acted() == ["intended", "done"]
    intended, done = [e for e in ward.log() if e["what"] != "seen"]
    assert (intended["action"], intended["evidence"]["gpu processes"]) == ("reboot", "+ none")
    assert "REBOOT" in done["detail"]
    assert "reboot node-2: done" in ward.told()
    ward.lab.run(["scontrol", "update", f"nodename={NODE}", "state=down", "reason=test"])


@pytest.mark.long
def test_configured_proofs_run_on_the_node(ward: Ward) -> None:
    """NHC says no, and then yes; what it said last is in the log."""
    nhc = ward.lab.work / "nhc"
    nhc.write_text("#!/bin/sh\nhostname\nexit 1\n")
    nhc.chmod(0o755)
    ward.configure(f", proofs: {{nhc: [{nhc}]}}")
    ward.drain()
    ward.tick_until(lambda: f"exit code 1: {NODE}; not ready to return" in ward.seen())
    assert ward.drained()
    nhc.write_text("#!/bin/sh\necho ok\n")
    ward.tick_until(lambda: not ward.drained())
    intended = [event for event in ward.log() if event["what"] == "intended"]
    assert intended[-1]["evidence"]["nhc"] == "+ exit code 0: ok"


@pytest.mark.long
def test_clean_up_ends_nothing_that_neither_kernel_nor_slurmstepd_counts_to_the_job(
    ward: Ward,
) -> None:
    """Under proctrack/linuxproc nobody knows whose the daemon is that has left its job: root's process
    and a login carry the same id. All live, the node is not given back, and why is told."""
    lab = ward.lab
    ward.configure(", clean_up: true")
    alice, bob = lab.user("alice"), lab.user("bob")
    failed = lab.sbatch(daemon(4711), user=alice, nodelist=NODE)
    lab.wait_state(failed, "COMPLETED")
    healthy = lab.sbatch("exec sleep 601", user=bob, nodelist=NODE)
    wait_until(lambda: alive(ward, "sleep 601"), "the healthy job")
    ward.nodes.on(NODE, f"SLURM_JOB_ID={failed} setsid sleep 4712 >/dev/null 2>&1 &")
    with login(ward, alice, f"SLURM_JOB_ID={failed} sleep 4713"):
        wait_until(lambda: alive(ward, "sleep 4713"), "the login")
        ward.drain()
        ward.tick()
        ward.tick()
        sleepers = ("sleep 4711", "sleep 4712", "sleep 4713")
        assert all(alive(ward, command) for command in sleepers)
    assert lab.states(healthy) == ["RUNNING"]
    lab.scancel(healthy)
    lab.wait_state(healthy, "CANCELLED")
    wait_until(lambda: not alive(ward, "sleep 601"), "the end of the healthy job")
    ward.tick()
    assert "but some carry its id, as anybody may" in ward.finding()["details"]
    assert (ward.acted(), ward.drained()) == ([], True)
    ward.nodes.on(NODE, "pkill -KILL -f '^sleep 471'")
    ward.tick_until(lambda: not ward.drained())


HET = f"""#!/bin/sh
#SBATCH --nodelist=node-0 --ntasks=1
#SBATCH hetjob
#SBATCH --nodelist={NODE} --ntasks=1
srun --het-group=1 sh -c "({daemon(4714)}); exec sleep 602"
"""


@pytest.mark.long
def test_clean_up_spares_the_daemon_of_a_heterogeneous_job_that_runs(ward: Ward) -> None:
    """A real one: what its second component left to init carries the first one's job id, and on
    that node Slurm has no job of that id."""
    lab = ward.lab
    ward.configure(", clean_up: true")
    leader = lab.sbatch(HET, user=lab.user("alice"))
    wait_until(lambda: alive(ward, "sleep 4714") and alive(ward, "sleep 602"), "the component")
    on_node = lab.ask(["squeue", "-h", "-w", NODE, "-o", "%A %i"]).split()
    assert on_node == [str(int(leader) + 1), f"{leader}+1"]
    ward.drain()
    ward.tick()
    ward.tick()
    assert (alive(ward, "sleep 4714"), ward.acted()) == (True, [])
    lab.scancel(leader)
    lab.wait_state(leader, "CANCELLED")
    ward.nodes.on(NODE, "pkill -KILL -f '^sleep 4714'")
    ward.tick_until(lambda: not ward.drained())


def test_the_service_does_what_a_pass_does(ward: Ward) -> None:
    """`sentinel run` gives a clean node back by itself, once, and tells it."""
    service = ward.watch.start("run")
    service.wait_for(lambda: (ward.watch.folder / "state").exists(), "the state")
    ward.drain()
    service.wait_for(lambda: not ward.drained(), "the undrain", 60.0)
    ward.watch.wait_told(service, reason="action")
    assert service.terminate() == 0
    assert ward.acted() == ["intended", "done"]


@pytest.mark.long
def test_a_node_that_never_ends_a_job_is_told_and_rebooted(ward: Ward) -> None:
    """No kill monitor drains it, as from Slurm 25.11.7 on: COMPLETING for ever, without a reason. Both
    kinds tell the task and its file system; with `reboot` it is set DOWN, and rebooted by Slurm."""
    lab = ward.lab
    lab.configure(UnkillableStepTimeout=1000)
    both = "}\n  capacity: {kind: nodes, every: 1s, completing: 1s"
    ward.configure(f", completing: 1s{both}")
    job = lab.unkillable_job(nodelist=NODE)
    ward.tick()
    lab.scancel(job)
    wait_until(lambda: "COMPLETING" in lab.node(NODE)["State"], "the end that does not come")
    where = f"(state D): job {job}: cat (pid "
    ward.tick_until(lambda: ward.told().count(where) == 2)
    told = {line["check"]: line["summary"] for line in ward.watch.book if where in line["summary"]}
    assert set(told) == {"drained", "capacity"}
    assert all(f"opening {lab.fuse.point}/data (fuse" in text for text in told.values())
    assert "DRAIN" not in lab.node(NODE)["State"]
    assert ward.acted() == []
    ward.configure(", completing: 1s, reboot: true, reboot_after: 1s")
    ward.tick_until(lambda: "reboot" in ward.told())
    assert ward.acted() == ["intended", "done"]
    wait_until(lambda: "REBOOT_ISSUED" in lab.node(NODE)["State"], "the reboot")
