"""`sentinel nodes` as people use it, on a real Slurm cluster."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lab.accounts import User
from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.needs import SLURM_BIN
from tests.lab.waiting import wait_until

SCONTROL = f"{SLURM_BIN}/scontrol"

# Each update is counted; what else happens with it is the test's.
COUNTING = """\
#!/bin/sh
[ "$1" = update ] || exec {real} "$@"
echo "$*" >> {log}
{then}
"""


class Desk:
    """A person at the lab's login node, with a state and a configuration of their own."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self._folder = lab, folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        self.updates_log = folder / "updates"
        self.updates_log.touch()
        self.config = folder / "sentinel.yaml"
        self.configure()
        self.wrap('exec {real} "$@"')

    def configure(self, text: str = "", slurm: str = "{timeout: 4s}") -> None:
        watched = "checks: {root: {kind: fs, paths: [/]}}\nchannels: {out: {kind: console}}"
        state = self._folder / "state"
        self.config.write_text(f"state: {state}\nslurm: {slurm}\n{watched}\n{text}\n")

    def wrap(self, then: str) -> None:
        """What the scontrol on PATH does with an update, after it was counted."""
        path = self._bin / "scontrol"
        inside = then.replace("{real}", SCONTROL)
        path.write_text(COUNTING.format(real=SCONTROL, log=self.updates_log, then=inside))
        path.chmod(0o755)

    @property
    def updates(self) -> list[str]:
        return self.updates_log.read_text().splitlines()

    @property
    def env(self) -> dict[str, str]:
        return {**self.lab.env, "PATH": f"{self._bin}:{os.environ['PATH']}"}

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "sentinel", "nodes", *words, "-c", str(self.config)]

    def run(self, *words: str) -> Done:
        return self.lab.run(self.argv(*words), env=self.env, limit=60)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*words), env=self.env, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def history(self, node: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.json("list", "--history", node)
        return found

    def outcomes(self, node: str) -> list[str]:
        """What was seen and done, the oldest first."""
        return [row["what"] for row in self.history(node)]


@pytest.fixture
def desk(fresh: Lab, tmp_path: Path) -> Desk:
    return Desk(fresh, tmp_path)


def state(lab: Lab, name: str) -> set[str]:
    return set(lab.node(name)["State"].split("+"))


def test_drain_and_undrain_by_hand(desk: Desk) -> None:
    """Both through the guard, both in the history, with who did it and what was seen."""
    drained = desk.run("drain", "node-1", "--reason", 'bad "GPU"\nComment=x [root@1]')
    assert (drained.returncode, drained.stderr) == (0, "1 node: node-1\n")
    assert drained.stdout.startswith("node-1: drain: done: now IDLE+DRAIN, reason 'sentinel: bad")
    assert desk.lab.node("node-1")["Reason"].startswith(
        r"sentinel: bad 'GPU'\nComment:x [root@1] ["
    )
    undrained = desk.run("undrain", "node-1", "--force")
    assert (undrained.returncode, undrained.stderr) == (0, "1 node: node-1\n")
    assert "DRAIN" not in state(desk.lab, "node-1")
    rows = desk.history("node-1")
    assert [r["what"] for r in rows if r["what"] != "seen"] == ["intended", "done"] * 2
    first = next(r for r in rows if r["what"] == "seen")
    assert first["reason"].startswith("sentinel: bad 'GPU'")
    assert all(r["by"].endswith(" by hand") for r in rows if r["what"] == "intended")
    desk.lab.wait_ready()
    job = desk.lab.sbatch("true", nodelist="node-1")
    desk.lab.wait_state(job, "COMPLETED")


def test_a_dry_run_prints_what_the_real_run_does_and_changes_nothing(desk: Desk) -> None:
    """The very command, the verdict per node and the exit code; no state is made."""
    words = ("drain", "node-[1-2]", "--reason", "rack 7")
    dry = desk.run(*words, "--dry-run")
    assert dry.stdout == (
        "node-1: would drain (1 of 10 in this hour); now IDLE\n"
        "  scontrol update NodeName=node-1 State=DRAIN 'Reason=sentinel: rack 7'\n"
        "node-2: not done (share): 1 of 4 nodes of partition main within the last hour, at most 1 "
        "(10%); --force sets it aside\n"
    )
    assert (desk.updates, (desk.config.parent / "state").exists()) == ([], False)
    real = desk.run(*words)
    assert real.stderr == dry.stderr == "2 nodes: node-[1-2]\n"
    assert desk.updates == ["update NodeName=node-1 State=DRAIN Reason=sentinel: rack 7"]
    assert real.stdout.splitlines()[1] == dry.stdout.splitlines()[2]
    assert (real.returncode, dry.returncode) == (1, 1)


BAD = {
    "nosuch": "Slurm knows no node nosuch",
    "node-[0-9]": "Slurm knows no nodes node-[4-9]",
    "node-[3-1]": "the range 3-1 runs backwards",
    "node-1;id": "';' is in no node name",
    "$(id)": "'$' is in no node name",
    "": "no node is named",
    "node-1 State=DOWN": "'=' is in no node name",
    "ALL": "Slurm knows no node ALL",
}


@pytest.mark.parametrize("verb", ["drain", "undrain"])
def test_nodes_that_are_none(desk: Desk, verb: str) -> None:
    """One line that says what is wrong, exit code 64, and Slurm is not told a thing."""
    for nodes, says in BAD.items():
        done = desk.run(verb, nodes, "--reason", "x")
        assert (done.returncode, done.stdout) == (64, ""), nodes
        assert done.stderr.startswith("sentinel: "), nodes
        assert says in done.stderr, nodes
        assert done.stderr.count("\n") == 1, nodes
    assert desk.updates == []


def as_user(user: User) -> str:
    return f"{{timeout: 4s, command_prefix: [runuser, -u, {user.name}, --]}}"


def test_a_user_without_privilege(desk: Desk) -> None:
    """One line before anything is tried; nothing is changed, no state is made."""
    desk.configure(slurm=as_user(desk.lab.user("alice")))
    done = desk.run("drain", "node-[0-3]", "--reason", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (77, "", 1)
    assert re.search(
        r"no right to change nodes: \S*alice\S* is neither root nor SlurmUser", done.stderr
    )
    assert (desk.updates, (desk.config.parent / "state").exists()) == ([], False)


def test_slurms_own_refusal_is_an_error_in_the_log_and_ends_the_command(desk: Desk) -> None:
    """Where the right could not be asked for beforehand: Slurm's words, once, not per node."""
    bob = desk.lab.user("bob")
    desk.configure(slurm=f"{{timeout: 4s, change_prefix: [runuser, -u, {bob.name}, --]}}")
    done = desk.run("drain", "node-[0-3]", "--reason", "x", "--force")
    assert done.returncode == 1
    assert done.stdout == (
        "node-0: drain: error: Slurm does not let this user do that: "
        "slurm_update error: Invalid user id\n"
    )
    assert desk.outcomes("node-0") == ["intended", "error"]
    assert "DRAIN" not in state(desk.lab, "node-0")


@pytest.mark.long
def test_a_time_out_that_happens_later_is_found_out_and_not_repeated(desk: Desk) -> None:
    """slurmctld hangs in the update and does it when it wakes up: unknown, then done; one update."""
    go = desk.config.parent / "go"
    desk.wrap(f'until [ -e {go} ]; do sleep 0.05; done; exec {{real}} "$@"')
    process = desk.start("drain", "node-2", "--reason", "slow")
    wait_until(lambda: desk.updates, "the update begun", 30)
    desk.lab.controller.stop()
    go.touch()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, desk.outcomes("node-2")) == (1, ["intended", "unknown"])
    assert "no answer within 4s" in out
    blind = desk.run("drain", "node-2", "--reason", "slow")
    assert (blind.returncode, desk.outcomes("node-2")) == (69, ["intended", "unknown"])
    desk.lab.controller.cont()
    desk.lab.wait_node("node-2", "DRAIN")
    later = desk.run("drain", "node-2", "--reason", "slow")
    assert (later.returncode, len(desk.updates)) == (0, 1)
    assert "nothing to do: it is drained already" in later.stdout
    assert [w for w in desk.outcomes("node-2") if w != "seen"] == ["intended", "done"]


def test_each_node_is_told_as_soon_as_it_is_done(desk: Desk) -> None:
    """Of a thousand nodes the first is done minutes before the last, and Ctrl-C may come between."""
    go = desk.config.parent / "go"
    desk.wrap(
        f'[ "$2" != NodeName=node-2 ] || until [ -e {go} ]; do sleep 0.05; done; exec {{real}} "$@"'
    )
    process = desk.start("drain", "node-[1-2]", "--reason", "x", "--force")
    wait_until(lambda: len(desk.updates) == 2, "the second update begun", 30)
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 0)[0]
    assert process.stdout.readline().startswith("node-1: drain: done: ")
    go.touch()
    assert process.communicate(timeout=60)[0].startswith("node-2: drain: done: ")


def test_success_without_effect(desk: Desk) -> None:
    """scontrol exits 0 and nothing happened: the log says so. Newer Slurms keep the last reason of a
    node that is well."""
    desk.wrap("exit 0")
    done = desk.run("drain", "node-1", "--reason", "x")
    assert done.returncode == 1
    said = "node-1: drain: no effect: Slurm accepted it, and yet it is IDLE"
    assert done.stdout.startswith((f"{said}\n", f"{said}, reason '"))
    assert [word for word in desk.outcomes("node-1") if word != "seen"] == ["intended", "no effect"]


def test_two_commands_at_once_on_one_node(desk: Desk) -> None:
    """One acts; the other finds that it is being done, or done."""
    desk.wrap('sleep 1; exec {real} "$@"')
    both = [desk.start("drain", "node-3", "--reason", f"by {n}", "--force") for n in "ab"]
    told = [process.communicate(timeout=60) for process in both]
    assert len(desk.updates) == 1, told
    assert sum(": drain: done: " in out for out, _ in told) == 1
    assert [w for w in desk.outcomes("node-3") if w == "done"] == ["done"]


def test_a_command_that_is_killed_leaves_an_intent_that_blocks(desk: Desk) -> None:
    """kill -9 amid the update: the log says intended, and nobody else touches the node."""
    pid = desk.config.parent / "pid"
    desk.wrap(f"echo $$ > {pid}; exec sleep 300")
    process = desk.start("drain", "node-1", "--reason", "x")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), "the update begun", 30)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert next(word for word in desk.outcomes("node-1") if word != "seen") == "intended"
    desk.wrap('exec {real} "$@"')
    again = desk.run("drain", "node-1", "--reason", "again", "--force")
    assert again.returncode == 1
    assert "not done (unresolved): drain of node-1 by " in again.stdout
    assert len(desk.updates) == 1


def test_the_reason_that_was_shown_must_still_be_there(desk: Desk) -> None:
    """Somebody writes another reason right before the change: not touched."""
    desk.run("drain", "node-1", "--reason", "first")
    scontrol = desk.config.parent / "bin/scontrol"
    scontrol.write_text(
        f"""#!/bin/sh
if [ "$1 $5" = "-o node-1" ]; then
  {SCONTROL} update NodeName=node-1 State=DRAIN Reason="RMA 4711"
fi
[ "$1" = update ] && echo "$*" >> {desk.updates_log}
exec {SCONTROL} "$@"
"""
    )
    done = desk.run("undrain", "node-1", "--force")
    assert done.returncode == 1
    assert (
        "withdrawn: meanwhile its reason changed from 'sentinel: first' to 'RMA 4711'"
        in done.stdout
    )
    assert len(desk.updates) == 1
    assert "DRAIN" in state(desk.lab, "node-1")


@pytest.mark.long
def test_the_list_tells_states_reasons_and_ages(desk: Desk) -> None:
    """Base, flags, reason, who and since when; a summary by state; untrusted text is inert. Columns are
    aligned where $COLUMNS is set, as by xdist, and else have tabs between them."""
    desk.lab.ask(["scontrol", "update", "NodeName=node-0", "State=DRAIN", "Reason=\x1b[31mred"])
    desk.lab.crash_node(2)
    desk.lab.wait_node("node-2", "NOT_RESPONDING")
    table = desk.run("list")
    assert (table.returncode, "\x1b" in table.stdout) == (0, False)
    assert re.search(r"node-0\s+IDLE\+DRAIN\s+\w+\s+root\s+\\x1b\[31mred", table.stdout)
    assert re.search(r"2\s+IDLE\s+node-\[1,3\]", table.stdout)
    found = desk.json("list", "node-[0,2]")
    assert sum(found["summary"].values()) == 2
    first = found["nodes"][0]
    assert (first["base"], first["flags"]) == ("IDLE", ["DRAIN"])
    assert abs(first["reason_time"] - time.time()) < 300


@pytest.mark.long
def test_maintenance_by_hand(desk: Desk) -> None:
    """On: nothing is done, whoever asks; it ends by itself or by hand."""
    assert desk.run("maintenance", "on", "--for", "2h", "--reason", "cooling").returncode == 0
    status = desk.run("maintenance", "status")
    assert (status.returncode, "cooling" in status.stdout) == (1, True)
    refused = desk.run("drain", "node-1", "--reason", "x")
    assert "not done (maintenance): maintenance for 1h 59m: cooling" in refused.stdout
    assert desk.run("maintenance", "off").returncode == 0
    assert desk.run("drain", "node-1", "--reason", "x").returncode == 0
    assert desk.json("maintenance", "status") == {}
    assert desk.run("maintenance", "on", "--for", "soon").returncode == 64


def test_the_configuration_rules(desk: Desk) -> None:
    """Limits, the standing maintenance, and a kind that there is not."""
    desk.configure("actions: {drain: {limits: {share: 100%, per_hour: 2}}}")
    done = desk.run("drain", "node-[0-2]", "--reason", "x")
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == [
        "drain", "drain", "not done (per_hour)",
    ]  # fmt: skip
    desk.configure("guard: {maintenance: true}")
    assert "not done (maintenance)" in desk.run("drain", "node-3", "--reason", "x").stdout
    desk.configure("actions: {dran: {enabled: true}}")
    wrong = desk.run("drain", "node-3", "--reason", "x")
    assert wrong.returncode == 78
    assert "actions.dran: there is no action 'dran' (did you mean 'drain'?)" in wrong.stderr


def test_a_dry_run_of_undrain_says_what_the_check_of_drained_nodes_says(desk: Desk) -> None:
    """What is not proven of the node, in the words of the check; nothing of other nodes."""
    assert desk.run("drain", "node-1", "--reason", "x").returncode == 0
    desk.lab.ask([SCONTROL, "update", "nodename=node-2", "state=drain", "reason=Kill task failed"])
    dry = desk.run("undrain", "node-2", "--dry-run")
    said = dry.stdout.splitlines()[-1]
    assert said.startswith("node-2: the check drained says: ")
    assert "; not known whether it is ready to return; drained" in said
    assert dry.stdout.count("the check drained says") == 1
    [row] = desk.json("undrain", "node-2", "--dry-run")
    assert (row["check"], row["status"]) == ("drained", "warning")
    assert "not known whether it is ready to return" in row["proof"]


def test_the_breaker_is_open_where_the_next_action_would_find_it_so(desk: Desk) -> None:
    """It is written down by that action; who asks before is not told that it is closed."""
    assert "breaker closed" in desk.run("breaker", "status").stdout
    desk.run("drain", "node-[0-2]", "--reason", "x", "--force")
    for verb, code in (("status", 1), ("close", 0)):
        shown = desk.run("breaker", verb)
        assert (
            "3 of 4 nodes left service within 10m (more than 1 opens the breaker)" in shown.stdout
        )
        assert shown.returncode == code
    assert "more than 1" in desk.json("breaker", "status")["breaker"]["why"]
    refused = desk.run("drain", "node-3", "--reason", "x")
    assert "not done (breaker): 3 of 4 nodes left service" in refused.stdout
