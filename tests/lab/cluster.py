"""A real, throw-away Slurm cluster on one machine, as a context manager.

Every host (controller, nodes) has a network namespace of its own, every node its own process
table and mounts; the machine itself is the login node. Only the GPUs are stand-ins. Several labs
run side by side: names, addresses, ports and folders derive from an index that is claimed first.
"""

from collections.abc import Mapping

from tests.lab import slurmconf, ssh
from tests.lab.base import Cluster, removed
from tests.lab.fuse import Fuse
from tests.lab.node import Node
from tests.lab.waiting import wait_until

LOST = ("DRAIN", "FAIL")
"""Node states that only an administrator ends."""

READY = frozenset({"idle", "mixed", "allocated"})


class Lab(Cluster):
    """A cluster of `nodes` nodes, up in about a second; faults are methods, `reset` undoes them."""

    def __init__(
        self,
        index: int | None = None,
        nodes: int = 4,
        *,
        accounting: bool = False,
        **settings: object,
    ) -> None:
        super().__init__(index, accounting=accounting, **settings)
        self._size = nodes

    def crash_node(self, number: int) -> None:
        """Power off: NOT_RESPONDING within seconds, DOWN after SlurmdTimeout."""
        self.nodes[number].crash()

    def boot_node(self, number: int) -> None:
        self.nodes[number].start()

    def cut_node(self, number: int) -> None:
        """Pull the network cable; jobs on the node go on."""
        self.nodes[number].cut()

    def join_node(self, number: int) -> None:
        self.nodes[number].join()

    def unkillable_job(self, **options: object) -> str:
        """Start a job that survives SIGKILL until `fuse.release()`; returns its id once it hangs.

        Cancelled, it makes Slurm drain its node with "Kill task failed" after
        UnkillableStepTimeout.
        """
        self.fuse.hold("open")
        job = self.sbatch(f"exec cat {self.fuse.point}/data", **options)  # type: ignore[arg-type]
        wait_until(self.fuse.withheld, "a call that is withheld", 30.0)
        return job

    def reset(self) -> None:
        """Undo every fault, cancel every job, resume every node: as just started."""
        self.fuse.reset()
        self.munge.start()
        self.accounting.cont()
        self.controller.join()
        self.controller.start()
        for node in self.nodes:
            node.join()
            node.start()
            node.equip()
        self._configure(self._settings)
        super().wait_ready()
        self.cancel_all()
        for node in self.nodes:
            node.forget_jobs()
        self._resume_all()
        self.wait_ready()
        # Of two tests that call a file alike the second one must not begin with the first one's; job ids
        # begin anew with the controller too.
        for path in self.work.iterdir():
            removed(path)

    def configure(self, **settings: object) -> None:
        """Add lines to slurm.conf and have them read (`scontrol reconfigure`), until `reset`."""
        self._configure({**self._settings, **settings})

    def wait_ready(self, limit: float = 30.0) -> None:
        """Until the controller answers and every node is idle or busy.

        Whoever is DOWN is resumed: slurmctld itself asks a node that it holds for DOWN only at every
        20th ping, here 130 s (MAX_REG_FREQUENCY in src/slurmctld/ping_nodes.c).
        """

        def ready() -> bool:
            states = self._node_states()
            for name, state in states.items():
                if state.startswith("down"):
                    self.run(["scontrol", "update", f"nodename={name}", "state=resume"])
            return len(states) == self._size and set(states.values()) <= READY

        wait_until(ready, lambda: f"lab {self.index} ready\n{self._state()}", limit)

    def _node_lines(self) -> list[str]:
        lines = [slurmconf.node_line(self._net, number) for number in range(self._size)]
        return [*lines, slurmconf.partition_line(f"node-[0-{self._size - 1}]")]

    def _gres_conf(self) -> str:
        return slurmconf.gres_conf(self.folder, self._size)

    def _up(self) -> None:
        self._mount()
        super()._up()
        self.nodes = [
            Node(number, self.folder, self._net, self._daemons) for number in range(self._size)
        ]
        self.ssh_config = ssh.write(self.folder / "ssh", self.nodes)
        for node in self.nodes:
            node.start()
        self.wait_ready()

    def _mount(self) -> None:
        """Before the nodes start: their mounts are private copies."""
        point = self.folder / "fuse"
        point.mkdir(parents=True)
        self._ledger.add("mount", str(point))
        self.fuse = Fuse(point)
        self._ledger.add_process(self.fuse.pid, "fuse")

    def _configure(self, settings: Mapping[str, object]) -> None:
        if self._write(settings):
            super().wait_ready()
            self.ask(["scontrol", "reconfigure"])

    def cancel_all(self) -> None:
        """All jobs end at once: SIGKILL needs no grace. So does what one of them submits meanwhile."""

        def gone() -> bool:
            jobs = self.ask(["squeue", "-h", "-o", "%A"]).split()
            if jobs:
                self.run(["scancel", "--signal=KILL", "--full", *jobs])
                self.run(["scancel", *jobs])
            return not jobs

        wait_until(gone, "an empty queue", 30.0)

    def _resume_all(self) -> None:
        for node in self.nodes:
            flags = self.node(node.name)["State"].split("+")
            if any(flag in flags for flag in LOST):
                self.run(["scontrol", "update", f"nodename={node.name}", "state=resume"])

    def _node_states(self) -> dict[str, str]:
        """State by name, such as "down*"; none while the controller does not answer."""
        asked = self.run(["sinfo", "-h", "-N", "-o", "%N %T"])
        rows = (line.split() for line in asked.stdout.splitlines() if asked.returncode == 0)
        return {row[0]: row[1] for row in rows}

    def _state(self) -> str:
        return self.run(["sinfo", "-N", "-l"]).stdout + self._log("slurmctld")

    def _down(self) -> None:
        super()._down()
        if hasattr(self, "fuse"):
            self.fuse.close()
