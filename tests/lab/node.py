"""A compute node: own address, host name, process table and mounts; slurmd and sshd in it."""

import os
import stat
import weakref
from contextlib import suppress
from pathlib import Path

import psutil

from tests.lab.daemons import Daemon, Daemons
from tests.lab.network import FIRST_NODE, Network
from tests.lab.slurmconf import GPUS

INSIDE = """\
hostname "$1"
mount --bind "$2/bin/$1" /usr/local/sbin
[ ! -e /dev/kmsg ] || mount --bind "$2/kmsg/$1" /dev/kmsg
for file in .bashrc .bash_profile .profile; do
    [ ! -e "/root/$file" ] || mount --bind /dev/null "/root/$file"
done
mkdir -p /run/sshd "$2/munge-$1"
cp -p "$2/munge/key" "$2/munge-$1/key"
mount --bind "$2/munge-$1" "$2/munge"
munged --force --socket="$2/munge/socket" --key-file="$2/munge/key" \
    --seed-file="$2/munge/seed" --pid-file="$2/munge/pid"
/usr/sbin/sshd -f "$2/ssh/sshd_config" -E "$2/log/sshd-$1"
env SLURM_CONF="$2/slurm.conf" slurmd -D -c -N "$1" $3
exit
"""
"""Runs as process 1 of the node, so everything in it ends with slurmd. The shell stays: it dies with
`unshare` (PR_SET_PDEATHSIG of prctl(2)), as slurmd would not from 24.11 on: at a reconfigure a thread of
it starts it anew, and threads lose that setting. A slurmd that outlived its node's crash kept the port.
`env` puts SLURM_CONF last: where it is the first, slurmstepd 22.05 has no room for its title ("[1.bat").
Its munged is its own: one for all nodes takes the second use of a credential for a replay, which newer
Slurms do not forgive. So is its kernel log: what is written into the real one, a tool that watches this
machine believes. The files with which root's logins begin are this machine's own affair: what they do
(pyenv's rehash takes a lock in root's home) must neither be done nor be killed halfway by a test."""


class Node:
    """Running after `start`."""

    def __init__(self, number: int, folder: Path, net: Network, daemons: Daemons) -> None:
        self.name = f"node-{number}"
        self.address = net.address(FIRST_NODE + number)
        self.bin = folder / "bin" / self.name
        self._host, self._folder, self._net = FIRST_NODE + number, folder, net
        self._daemons = daemons
        self._space = net.add_host(self._host)
        self._daemon: Daemon | None = None
        self._kernel = self._kernel_log()
        self._said = 0
        self._make_folders()

    def start(self, *, booted: bool = False) -> None:
        """Boot it unless it runs; does not wait until Slurm knows. `booted`: slurmd says that the host
        was (`-b`), which a node has to that Slurm has woken."""
        if self._daemon and self._daemon.running:
            return
        argv = ["ip", "netns", "exec", self._space]
        argv += ["unshare", "--pid", "--fork", "--kill-child", "--uts", "--mount", "--mount-proc"]
        argv += [
            "sh",
            "-c",
            INSIDE,
            "sh",
            self.name,
            str(self._folder),
            *(["-b"] if booted else []),
        ]
        log = self._folder / f"log/{self.name}.out"
        self._daemon = self._daemons.start(self.name, argv, log)

    def crash(self) -> None:
        """Power off: every process in the node is gone, nothing says goodbye.

        `unshare --kill-child` has the kernel kill the node's process 1 with it.
        """
        assert self._daemon is not None, "start() comes first"
        self._daemon.kill()

    def forget_jobs(self) -> None:
        """Boot anew where jobs have left something: of one that slurmctld has forgotten nobody else ends
        it, and to slurmd its id is taken ("already running, do not launch second copy")."""
        if not self._daemon or not self._daemon.running:
            return
        for process in psutil.Process(self._daemon.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.name() == "slurmstepd" or "SLURM_JOB_ID" in process.environ():
                    self.crash()
                    self.start()
                    return

    def cut(self) -> None:
        """Pull the network cable; the jobs in it go on."""
        self._net.cut(self._host)

    def join(self) -> None:
        self._net.join(self._host)

    def stand_in(self, program: str, output: str, code: int = 0) -> None:
        """What `program` (nvidia-smi, dcgmi) prints on this node, whatever its arguments."""
        (self.bin / f".{program}.out").write_text(output)
        script = self.bin / program
        script.write_text(f'#!/bin/sh\ncat "${{0%/*}}/.{program}.out"\nexit {code}\n')
        script.chmod(0o755)

    def kernel_says(self, text: str, level: int = 6) -> None:
        """A record of the node's kernel log (Documentation/ABI/testing/dev-kmsg). Unlike the real
        one's it is read once."""
        record = f"{level},{self._said},{1_000_000 + self._said},-;{text}\n"
        os.write(self._kernel, record.encode())
        self._said += 1

    def equip(self) -> None:
        """The stand-ins with which a node begins, and no others; nothing in its kernel log."""
        with suppress(BlockingIOError):
            while os.read(self._kernel, 4096):
                pass
        for tool in self.bin.iterdir():
            tool.unlink()
        lines = (
            f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: {self._uuid(gpu)})" for gpu in range(GPUS)
        )
        self.stand_in("nvidia-smi", "\n".join(lines) + "\n")

    def _make_folders(self) -> None:
        for folder in (self.bin, self._folder / "spool" / self.name, self._folder / "gpu"):
            folder.mkdir(parents=True, exist_ok=True)
        for gpu in range(GPUS):
            device = self._folder / f"gpu/{self.name}-{gpu}"
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        self.equip()

    def _kernel_log(self) -> int:
        """A FIFO, held open as long as this object is there: who reads all that there is then meets
        EAGAIN, as in /dev/kmsg."""
        path = self._folder / "kmsg" / self.name
        path.parent.mkdir(exist_ok=True)
        os.mkfifo(path, 0o644)
        held = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        weakref.finalize(self, os.close, held)
        return held

    def _uuid(self, gpu: int) -> str:
        return f"GPU-00000000-0000-0000-{self._host:04x}-{gpu:012x}"
