"""What every lab has: an index, a munged, a network, a controller; and its way down."""

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tests.lab import accounts, claim, ledger, paths, slurmconf
from tests.lab.accounting import Accounting
from tests.lab.accounts import User
from tests.lab.client import Client
from tests.lab.controller import Controller
from tests.lab.daemons import Daemons
from tests.lab.munge import Munge
from tests.lab.network import Network
from tests.lab.reaper import Reaper
from tests.lab.waiting import wait_until

Self = TypeVar("Self", bound="Cluster")
FOLDERS = ("log", "state", "spool", "work", "home")


class Cluster(Client):
    """A controller without nodes, up inside `with`; commands are those of Client.

    `settings` are further lines of slurm.conf. `index` is chosen where it is not given.
    With `accounting` there is a slurmdbd, which takes some seconds more.
    """

    def __init__(
        self, index: int | None = None, *, accounting: bool = False, **settings: object
    ) -> None:
        self.index, self._lock = claim.claim(index)
        self.folder = paths.directory(self.index)
        ledger.undo(self.folder)
        super().__init__(self.folder / "slurm.conf", self.folder / "work")
        self.work = self.folder / "work"
        self._settings, self._with_accounting = settings, accounting
        self._ledger = ledger.Ledger(self.folder)
        self._daemons = Daemons(self._ledger)

    def __enter__(self: Self) -> Self:
        self._reaper = Reaper(self.index)
        with ExitStack() as undo:
            undo.callback(self._down)
            self._up()
            undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._down()

    def stop_controller(self) -> None:
        """SIGSTOP slurmctld: clients connect and get no answer, for about 10 s."""
        self.controller.stop()

    def cont_controller(self) -> None:
        self.controller.cont()

    def kill_controller(self, sig: int = signal.SIGKILL) -> None:
        """End slurmctld: connections are refused."""
        self.controller.kill(sig)

    def start_controller(self) -> None:
        """Start slurmctld with the state it left; returns when it and its nodes answer."""
        self.controller.start()
        self.wait_ready()

    def cut_controller(self) -> None:
        """Packets from the controller are lost: connecting times out, up to 30 s."""
        self.controller.cut()

    def join_controller(self) -> None:
        self.controller.join()

    def user(
        self,
        name: str,
        group: str | None = None,
        groups: tuple[str, ...] = (),
        at: Path | None = None,
    ) -> User:
        """An ordinary user, removed with the lab; its real name is in the answer.

        `at`: the home that is in its passwd entry, where nothing is made.
        """
        unique, home = f"{paths.prefix(self.index)}-{name}", self.folder / "home" / name
        self._ledger.add("user", unique)
        if at:
            return accounts.add_user(unique, at, group, groups, made=False)
        removed(home)  # of one who was called so before, with another number
        return accounts.add_user(unique, home, group, groups)

    def group(self, name: str) -> str:
        """A group, removed with the lab; returns its real name."""
        unique = f"{paths.prefix(self.index)}-{name}"
        self._ledger.add("group", unique)
        accounts.add_group(unique)
        return unique

    def wait_ready(self, limit: float = 30.0) -> None:
        """Until the controller answers."""
        wait_until(
            lambda: self.run(["scontrol", "ping"]).returncode == 0,
            lambda: f"slurmctld of lab {self.index}\n{self._log('slurmctld')}",
            limit,
        )

    def _node_lines(self) -> list[str]:
        """The lines of slurm.conf about nodes and partitions."""
        raise NotImplementedError

    def _gres_conf(self) -> str:
        return ""

    def _up(self) -> None:
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True)
        self.work.chmod(0o1777)
        self.munge = Munge(self.folder / "munge", self._daemons)
        self.munge.start()
        self._net = Network(self.index, self._ledger)
        self.subnet = self._net.subnet
        self._net.up()
        self.controller = Controller(self.folder, self._net, self._daemons)
        self.accounting = Accounting(self.folder, self._net, self._daemons)
        if self._with_accounting:
            self._settings = {**self.accounting.settings, **self._settings}
        self._write(self._settings)
        if self._with_accounting:
            self.accounting.start()
        self.controller.start()

    def _write(self, settings: Mapping[str, object]) -> bool:
        """Write the configuration; whether slurm.conf changed."""
        replaced(self.folder / "gres.conf", self._gres_conf())
        replaced(self.folder / "cgroup.conf", slurmconf.cgroup_conf())
        text = slurmconf.slurm_conf(self.folder, self._net, self.index, settings)
        text += "".join(f"{line}\n" for line in self._node_lines())
        return replaced(self.folder / "slurm.conf", text)

    def _log(self, name: str) -> str:
        path = self.folder / "log" / name
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    def _down(self) -> None:
        """Whatever state the lab is in, also half started."""
        ledger.undo(self.folder)
        self._daemons.end()
        self._reaper.dismiss()
        os.close(self._lock)


def removed(path: Path) -> None:
    """Whatever it is, with all that is in it; or nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replaced(path: Path, text: str) -> bool:
    """Whether the file said something else before; who reads it meanwhile sees one or the other."""
    if path.exists() and path.read_text() == text:
        return False
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)
    return True
