"""slurmctld, on a host of its own."""

import signal
from pathlib import Path

from tests.lab.daemons import Daemon, Daemons
from tests.lab.network import CONTROLLER, Network


class Controller:
    """Running after `start`. State is kept over restarts, as on a real cluster."""

    def __init__(self, folder: Path, net: Network, daemons: Daemons) -> None:
        self._folder, self._net, self._daemons = folder, net, daemons
        self._space = net.add_host(CONTROLLER)
        self._daemon: Daemon | None = None

    def start(self) -> None:
        """Start unless it runs; does not wait until it answers."""
        if self._daemon and self._daemon.running:
            self._daemon.cont()
            return
        inside = 'hostname controller; exec env SLURM_CONF="$1" slurmctld -D'
        argv = ["ip", "netns", "exec", self._space, "unshare", "--uts"]
        argv += ["sh", "-c", inside, "sh", str(self._folder / "slurm.conf")]
        log = self._folder / "log/slurmctld.out"
        self._daemon = self._daemons.start("slurmctld", argv, log)

    def stop(self) -> None:
        """SIGSTOP: connections are accepted by the kernel, and nobody answers."""
        self._running().stop()

    def cont(self) -> None:
        self._running().cont()

    def kill(self, sig: int = signal.SIGKILL) -> None:
        """SIGKILL may lose the last seconds of state; SIGTERM saves it first."""
        self._running().kill(sig)

    def cut(self) -> None:
        """Its answers are lost on the way: SYNs time out, the worst case for a client."""
        self._net.swallow(CONTROLLER)

    def join(self) -> None:
        self._net.unswallow(CONTROLLER)

    def _running(self) -> Daemon:
        assert self._daemon is not None, "controller.start() comes first"
        return self._daemon
