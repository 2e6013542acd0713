"""slurmdbd and its database, on the controller's host: what sacct and sacctmgr ask."""

import subprocess
from pathlib import Path

from tests.lab.daemons import Daemon, Daemons
from tests.lab.network import CONTROLLER, Network
from tests.lab.waiting import wait_until

DATABASE = ["mariadbd", "--no-defaults", "--user=mysql", "--bind-address=127.0.0.1", "--port=3306"]
DATABASE += ["--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M"]
SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=controller
DbdAddr={address}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/log/slurmdbd
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=3306
StorageUser=slurm
"""


class Accounting:
    """Running after `start`; the controller is started after it."""

    def __init__(self, folder: Path, net: Network, daemons: Daemons) -> None:
        self._folder, self._net, self._daemons = folder, net, daemons
        self._data = folder / "database"
        self._daemon: Daemon | None = None

    @property
    def settings(self) -> dict[str, object]:
        """The lines of slurm.conf that lead to it."""
        return {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": self._net.address(CONTROLLER),
            "AccountingStoragePass": self._folder / "munge/socket",
            "AccountingStorageTRES": "gres/gpu",
        }

    def start(self) -> None:
        """Make the database unless there is one, start both; returns when slurmdbd listens."""
        if not self._data.exists():
            self._start_database()
        conf = self._folder / "slurmdbd.conf"
        address = self._net.address(CONTROLLER)
        conf.write_text(SLURMDBD.format(folder=self._folder, address=address))
        conf.chmod(0o600)  # slurmdbd refuses to start otherwise
        self._start_slurmdbd()
        wait_until(lambda: _listens(self._space, 6819), self._log, 30.0)

    def stop(self) -> None:
        """SIGSTOP slurmdbd: sacct gets no answer."""
        assert self._daemon is not None, "start() comes first"
        self._daemon.stop()

    def cont(self) -> None:
        """Let it go on; nothing where there is none."""
        if self._daemon:
            self._daemon.cont()

    @property
    def _space(self) -> str:
        return self._net.namespace(CONTROLLER)

    def _start_database(self) -> None:
        # Its own: a MariaDB that starts removes the temporary tables in there, of whomever they are,
        # and whose they were ends with signal 11.
        temporary = self._folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        files = [f"--datadir={self._data}", f"--tmpdir={temporary}"]
        install = ["mariadb-install-db", "--no-defaults", "--user=mysql", "--skip-test-db"]
        install += ["--auth-root-authentication-method=normal", *files]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"mariadb-install-db: {done.returncode}: {done.stdout}{done.stderr}")
        files += [f"--socket={self._data}/socket", f"--pid-file={self._data}/pid"]
        argv = ["ip", "netns", "exec", self._space, *DATABASE, *files]
        self._daemons.start("mariadbd", argv, self._folder / "log/mariadbd")
        wait_until(lambda: _listens(self._space, 3306), "mariadbd listening", 30.0)

    def _start_slurmdbd(self) -> None:
        inside = 'hostname controller; exec env SLURM_CONF="$1" slurmdbd -D'
        argv = ["ip", "netns", "exec", self._space, "unshare", "--uts"]
        argv += ["sh", "-c", inside, "sh", str(self._folder / "slurm.conf")]
        self._daemon = self._daemons.start("slurmdbd", argv, self._folder / "log/slurmdbd.out")

    def _log(self) -> str:
        return f"slurmdbd listening\n{(self._folder / 'log/slurmdbd').read_text()[-2000:]}"


def _listens(namespace: str, port: int) -> bool:
    argv = ["ip", "netns", "exec", namespace, "ss", "-Hltn", f"sport = :{port}"]
    return bool(subprocess.run(argv, capture_output=True, check=True).stdout)
