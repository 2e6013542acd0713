"""Nodes go back to work, or do not, on a real cluster: Slurm drains, sentinel proves and undrains."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.accounts import User
from tests.lab.cluster import Lab
from tests.lab.waiting import wait_until
from tests.remote.nodes import Nodes, saying
from tests.service.watch import Watch

NODE = "node-2"
CONFIG = """\
remote:
  ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"
  timeout: {timeout}
  connect_timeout: 2s
guard: {{breaker: {{share: 100%}}}}
checks:
  drained: {{kind: drained, every: 1s, {keys}}}
channels:
  book: {{kind: file, path: "{folder}/book.jsonl"}}
"""
CLEAN = """\
#!/bin/sh
case "$*" in
*query-compute-apps*) exit 0 ;;
"-q -x") echo '<nvidia_smi_log>'; for g in 0 1 2 3 4 5 6 7; do echo "<gpu id=\\"$g\\">"; done
    echo '</nvidia_smi_log>' ;;
esac
"""
KILL = "Kill task failed"


SCONTROL = """\
#!/bin/sh
# $1 is update, or -o (show). Each update is counted.
[ "$1" = update ] && echo "$*" >>{folder}/updates
{then}
exec /usr/bin/scontrol "$@"
"""


class Ward:
    """The lab with one sentinel that looks after its drained nodes."""

    def __init__(self, lab: Lab, watch: Watch, nodes: Nodes) -> None:
        self.lab, self.watch, self.nodes = lab, watch, nodes
        self.configure()

    def configure(self, more: str = "", timeout: str = "20s") -> None:
        keys = f"undrain: true, limits: {{cooldown: 0s, share: 100%}}{more}"
        ssh = {"ssh": self.nodes.config, "known": self.nodes.known}
        self.watch.configure(CONFIG, keys=keys, timeout=timeout, **ssh)

    def tick(self, code: int = 0) -> None:
        done = self.watch.say("tick", "--all", PATH=self.path)
        assert done.returncode == code, done.stderr

    def wrap(self, then: str) -> None:
        """What the scontrol on sentinel's PATH does before it does what it was told."""
        tool = self.watch.folder / "bin/scontrol"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(SCONTROL.format(folder=self.watch.folder, then=then))
        tool.chmod(0o755)

    @property
    def path(self) -> str:
        return f"{self.watch.folder}/bin:{os.environ['PATH']}"

    @property
    def updates(self) -> int:
        """How often Slurm was told to change something."""
        counted = self.watch.folder / "updates"
        return len(counted.read_text().splitlines()) if counted.exists() else 0

    def drain(self, node: str = NODE, reason: str = KILL) -> None:
        update = ["scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}"]
        self.lab.ask(update)
        self.lab.wait_node(node, "DRAIN")

    def drained(self, node: str = NODE) -> bool:
        return "DRAIN" in self.lab.node(node)["State"].split("+")

    def finding(self, node: str = NODE) -> dict[str, Any]:
        """What a one-shot says of the node now."""
        said = json.loads(self.watch.say("check", "drained", "--json").stdout)
        return next(f for f in said["findings"] if f["subject"] == node)

    def log(self, node: str = NODE) -> list[dict[str, Any]]:
        """Ledger and audit log of the node."""
        events: list[dict[str, Any]] = json.loads(
            self.watch.say("nodes", "list", "--history", node, "--json").stdout
        )
        return events

    def acted(self, node: str = NODE) -> list[str]:
        return [e["what"] for e in self.log(node) if e["what"] != "seen"]

    def told(self) -> str:
        return " | ".join(line["summary"] for line in self.watch.book)


@pytest.fixture
def ward(fresh: Lab, night: Watch, tmp_path: Path) -> Iterator[Ward]:
    tools = [node.bin / "nvidia-smi" for node in fresh.nodes]
    before = [tool.read_bytes() for tool in tools]
    for tool in tools:
        tool.write_text(CLEAN)
    (tmp_path / "ssh").mkdir()
    yield Ward(fresh, night, Nodes(fresh, tmp_path / "ssh"))
    fresh.fuse.release()
    for tool, content in zip(tools, before, strict=True):
        tool.write_bytes(content)


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
    assert "not clean: in state D: cat(" in ward.told()
    lab.fuse.release()
    wait_until(lambda: not ward.nodes.on(NODE, "pgrep -x cat").stdout, "the end of the task")
    wait_until(lambda: not ward.drained() or ward.tick(), "the undrain")
    assert lab.ask(["srun", f"--nodelist={NODE}", "hostname"]).strip() == NODE
    seen, intended, done = ward.log()
    assert seen["reason"].startswith(KILL)
    assert seen["at"] <= intended["at"] <= done["at"]
    assert (intended["what"], done["what"]) == ("intended", "done")
    assert intended["evidence"]["blocked"] == "+ no task in state D"
    assert "undrain node-2: done" in ward.told()


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


def test_what_cannot_be_seen_is_not_clean(ward: Ward) -> None:
    """Cut off the network, nvidia-smi hangs, nvidia-smi prints an error with exit code 0, sshd
    answers garbage: four drained nodes that are idle and clean, and none of them is touched."""
    lab = ward.lab
    ward.configure(timeout="11s")
    for node in lab.nodes:
        ward.drain(node.name)
    (lab.nodes[2].bin / "nvidia-smi").write_text(f"#!/bin/sh\nexec cat {lab.fuse.point}/data\n")
    lab.fuse.hold("open")
    (lab.nodes[3].bin / "nvidia-smi").write_text("#!/bin/sh\necho 'Unable to determine GPU0'\n")
    lab.cut_node(1)
    with saying(b"SSH-2.0-nonsense\r\n" + b"\0\xff" * 4000 + b"") as port:
        ward.nodes.divert("node-0", port)
        ward.tick()
    told = {line["subject"]: line["summary"].partition("clean: ")[2] for line in ward.watch.book}
    assert [ward.drained(node.name) for node in lab.nodes] == [True] * 4
    assert told["node-0"].startswith("responds: garbage: ")
    assert told["node-1"].startswith("responds: ")
    assert told["node-2"].startswith("gpu processes: not read, ")
    assert told["node-3"].startswith("gpu processes: not read, garbage: ")
    assert [ward.acted(node.name) for node in lab.nodes] == [[]] * 4


RACES = {
    "RMA GPU3": "reason='RMA GPU3'",
    "taken down": f"state=down reason='{KILL}'",
}


@pytest.mark.parametrize("change", RACES.values(), ids=RACES)
def test_a_reason_that_changes_between_proof_and_change_stops_it(ward: Ward, change: str) -> None:
    """An administrator is faster by milliseconds: the node is read once more, and left alone."""
    ward.drain()
    race = f"/usr/bin/scontrol update nodename={NODE} {change}"
    ward.wrap(
        f'[ "$5" != {NODE} ] || [ -e {ward.watch.folder}/raced ] || '
        f"{{ touch {ward.watch.folder}/raced; {race}; }}"
    )
    ward.tick()
    assert (ward.watch.folder / "raced").exists(), ward.told()
    assert (ward.drained(), ward.updates) == (True, 0)
    assert ward.acted() == ["intended", "withdrawn"]
    assert "meanwhile it" in ward.log()[-1]["detail"]


def test_an_error_of_slurm_is_told_in_its_words(ward: Ward) -> None:
    """The log says error, the node is still drained, and the next run says why."""
    ward.drain()
    ward.wrap(
        '[ "$1" != update ] || { echo "slurm_update error: Invalid node state specified" >&2; '
        "exit 1; }"
    )
    ward.tick()
    ward.tick()
    assert ward.drained()
    assert ward.acted()[:2] == ["intended", "error"]
    assert "not given back: error: slurm_update error: Invalid node state" in ward.told()


def test_a_sentinel_that_dies_between_intent_and_outcome_acts_once(ward: Ward) -> None:
    """Killed while scontrol ran: the next one finds the intent, and does nothing twice."""
    ward.drain()
    ward.wrap('[ "$1" != update ] || [ -e died ] || { touch died; kill -9 $PPID; }')
    ward.tick(code=-9)
    assert ward.updates == 1
    ward.tick()
    ward.tick()
    assert ward.updates == 1
    assert ward.acted()[0] == "intended"


def test_two_sentinels_on_one_state_change_a_node_once(ward: Ward) -> None:
    """A pass and a command by hand in the same second."""
    ward.drain()
    ward.wrap('[ "$1" != update ] || sleep 0.5')
    hand = ward.watch.start("nodes", "undrain", NODE)
    ward.tick()
    hand.wait(30)
    assert ward.updates <= 1
    assert not ward.drained()
    changed = [what for what in ward.acted() if what == "done"]
    assert len(changed) == 1


def test_a_node_whose_task_stays_in_state_d_is_rebooted_where_switched_on(ward: Ward) -> None:
    """By Slurm, which drains first, and gives it back when it is up again."""
    ward.configure(", reboot: true, reboot_after: 1s")
    stuck(ward)
    ward.drain()
    wait_until(lambda: ward.tick() or ward.acted(), "the reboot")
    state = ward.lab.node(NODE)["State"]
    assert "REBOOT" in state, state
    assert ward.acted() == ["intended", "done"]
    assert "+ none" in ward.log()[-2]["evidence"]["gpu processes"]
    assert "reboot node-2: done" in ward.told()
    ward.lab.run(["scontrol", "update", f"nodename={NODE}", "state=down", "reason=test"])


def test_configured_proofs_run_on_the_node(ward: Ward) -> None:
    """NHC says no, and then yes; what it said last is in the log."""
    nhc = ward.lab.work / "nhc"
    nhc.write_text("#!/bin/sh\nhostname\nexit 1\n")
    nhc.chmod(0o755)
    ward.configure(f", proofs: {{nhc: [{nhc}]}}")
    ward.drain()
    ward.tick()
    assert ward.drained()
    assert f"not clean: exit code 1: {NODE}" in ward.told()
    nhc.write_text("#!/bin/sh\necho ok\n")
    ward.tick()
    assert not ward.drained()
    assert ward.log()[-2]["evidence"]["nhc"] == "+ exit code 0: ok"


def stuck(ward: Ward) -> None:
    """A process in state D on the node that belongs to no job."""
    ward.lab.fuse.hold("open")
    ward.nodes.on(NODE, f"setsid cat {ward.lab.fuse.point}/data >/dev/null 2>&1 &")
    wait_until(ward.lab.fuse.withheld, "the hang")
    ward.nodes.on(NODE, "pkill -9 -x cat")


def test_clean_up_ends_what_the_failed_job_left_and_nothing_else(ward: Ward) -> None:
    """On a shared node: a second user's healthy job, root's process and a login with the failed
    job's id in their environment all live; its daemon does not, though it ignores SIGTERM."""
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
        left = [c for c in ("sleep 4711", "sleep 4712", "sleep 4713") if alive(ward, c)]
    assert left == ["sleep 4712", "sleep 4713"]
    assert lab.states(healthy) == ["RUNNING"]
    assert ward.acted() == ["intended", "done"]
    assert ward.drained()
    ward.nodes.on(NODE, "pkill -f '^sleep 471'")
    lab.scancel(healthy)
    lab.wait_state(healthy, "CANCELLED")
    wait_until(lambda: not ward.drained() or ward.tick(), "the undrain")


def daemon(seconds: int) -> str:
    """A job that leaves a process behind which ignores SIGTERM."""
    return f"setsid sh -c 'trap \"\" TERM; exec sleep {seconds}' >/dev/null 2>&1 & sleep 1"


def alive(ward: Ward, command: str) -> bool:
    return bool(ward.nodes.on(NODE, f"ps -e -o state=,args= | grep '^[^Z] {command}$'").stdout)


@contextmanager
def login(ward: Ward, user: User, command: str) -> Iterator[None]:
    """That user's login by ssh, in which the command runs."""
    subprocess.run(["usermod", "-p", "*", user.name], check=True)  # sshd refuses a locked account
    argv = ["ssh", "-F", str(ward.lab.ssh_config), "-l", user.name, NODE, command]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as process:
        yield
        process.kill()
