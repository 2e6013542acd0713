#!/usr/bin/env python3
"""Runs on nodes, fed to `python3`: one program that measures, and one line per node of what it said.

Standard library only, Python 3.6 or newer. Arguments: mark, test, name and address of the first
node, port, GPUs, directory, seconds. Line: the mark, the node, a word, a text. Words: `measured`
(the text is what the program printed, in base64), `served` (the other node of the pair measures),
`missing` (the node lacks the program, or what it needs), `fail` (the program ended with an error),
`inconclusive` (it did not end in time, or could not be tried).
"""

import base64
import ctypes
import glob
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

MEBIBYTE = 1 << 20
MAX_OUTPUT_BYTES = MEBIBYTE // 8
MAX_SCRATCH_BYTES = 1024 * MEBIBYTE
MIN_SCRATCH_BYTES = 64 * MEBIBYTE
FREE_PER_SCRATCH_BYTE = 20  # so the test takes 5% of what is free at most
MAX_IB_DEVICES = 16
FURTHER_DIRECTORIES = "/usr/local/sbin:/usr/local/bin:/usr/bin:/bin:/opt/nccl-tests/build"
# File systems whose devices have no number of their own, though a disk of this node is below.
LOCAL_WITHOUT_DEVICE = ("btrfs", "zfs", "bcachefs", "overlay")
LIBAIO_PACKAGE = "the package fio-engine-libaio"
PR_SET_PDEATHSIG = 1


class Missing(Exception):
    """The node lacks what the test needs."""


class Failed(Exception):
    """The program ended with an error. `said` is all that it printed."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(why)
        self.said = said


class CannotTell(Exception):
    """The test says nothing about the node."""


def find_program(names: "list[str]", what: str) -> str:
    """Relative folders of PATH are left out: root may type this in anybody's."""
    told = (os.environ.get("PATH", "") + ":" + FURTHER_DIRECTORIES).split(":")
    path = ":".join(folder for folder in told if folder.startswith("/"))
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return found
    raise Missing("no {}; install {}".format(" or ".join(names), what))


def run_program(argv: "list[str]", end: float, fds: "tuple[int, ...]" = ()) -> str:
    """What the program printed. It is killed at the moment `end` (monotonic), or earlier if this
    program ends."""
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        os.setpgid(0, 0)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=prepare,
            pass_fds=fds,
            cwd="/",
        )
    except OSError as error:
        raise Missing(f"{argv[0]}: {error.strerror}") from error
    try:
        out = read_until(child, end)
        child.wait(max(0.1, end - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        raise CannotTell(f"{argv[0]} did not end in time") from None
    finally:
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a process in state D cannot be ended
            child.wait(5)
    text = out.decode("utf-8", "replace")
    if child.returncode:
        last = text.strip().rpartition("\n")[2]
        raise Failed(f"{argv[0]} ended with {child.returncode}: {last}", text)
    return text


def read_until(child: "subprocess.Popen[bytes]", end: float) -> bytes:
    """The output; what is beyond the limit is read and dropped. Raises TimeoutError."""
    assert child.stdout is not None
    out = b""
    with child.stdout as pipe:
        while True:
            if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError
            part = os.read(pipe.fileno(), 65536)
            if not part:
                return out
            if time.monotonic() > end:
                raise TimeoutError
            out += part[: MAX_OUTPUT_BYTES - len(out)]


def disk(args: "Args") -> str:
    fio = find_program(["fio"], "the package fio")
    folder = find_local_directory(args.directory)
    there = os.statvfs(folder)
    free = there.f_bavail * there.f_frsize
    size = min(MAX_SCRATCH_BYTES, free // FREE_PER_SCRATCH_BYTE // MEBIBYTE * MEBIBYTE)
    if size < MIN_SCRATCH_BYTES:
        text = "{} has {} MiB free; the test wants {} MiB, so that it fills nothing"
        least = MIN_SCRATCH_BYTES * FREE_PER_SCRATCH_BYTE
        raise CannotTell(text.format(folder, free // MEBIBYTE, least // MEBIBYTE))
    # The file has no name, so it is gone with the last process that holds it, whatever ends it.
    with tempfile.TemporaryFile(dir=folder) as scratch:
        try:
            os.posix_fallocate(scratch.fileno(), 0, size)
        except OSError as error:
            raise CannotTell(f"{folder}: {error.strerror}") from error
        common = [
            f"--filename=/proc/self/fd/{scratch.fileno()}",
            f"--size={size}",
            "--bs=1M",
            "--direct=1",
            "--ioengine=libaio",
            "--iodepth=16",
            "--thread",
            "--fallocate=none",
            "--allow_file_create=0",
            f"--runtime={max(1, int(args.seconds / 3))}",
        ]
        argv = [fio, "--output-format=json", "--name=write", "--rw=write", "--end_fsync=1", *common]
        argv += ["--name=read", "--stonewall", "--rw=read", *common]
        try:
            return run_program(argv, args.end, (scratch.fileno(),))
        except Failed as error:
            if "engine libaio not loadable" in error.said:
                raise Missing(f"{fio} has no engine libaio; install {LIBAIO_PACKAGE}") from error
            raise


def find_local_directory(wanted: str) -> str:
    """The wanted directory, else the first usual one that lies on a disk of this node."""
    if wanted:
        if not os.path.isdir(wanted):
            raise Missing(f"no directory {wanted}")
        if not is_on_local_disk(wanted):
            raise CannotTell(f"{wanted} is on no local disk")
        return wanted
    for folder in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):  # noqa: S108
        if folder.startswith("/") and os.access(folder, os.W_OK) and is_on_local_disk(folder):
            return folder
    raise CannotTell(
        "no local disk below TMPDIR, /tmp or /var/tmp; name a directory of one: --path"
    )


def is_on_local_disk(folder: str) -> bool:
    """By the mount of the folder. Network file systems and memory have major number 0."""
    number, found = os.stat(folder).st_dev, ""
    device = f"{os.major(number)}:{os.minor(number)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            if before.split()[2:3] == [device]:
                found = after.split()[0]
    return os.major(number) != 0 or found in LOCAL_WITHOUT_DEVICE


def memory(args: "Args") -> str:
    names = ["stream_c", "stream_c.exe", "stream"]  # ImageMagick has a `stream` too
    found = find_program(names, "STREAM (stream.c, built with OpenMP)")
    return run_program([found], args.end)


def nccl(args: "Args") -> str:
    if args.gpus < 2:
        raise Missing("needs two GPUs or more")
    found = find_program(["all_reduce_perf"], "nccl-tests (github.com/NVIDIA/nccl-tests)")
    words = ["-b", "1G", "-e", "1G", "-g", str(args.gpus), "-n", "20", "-w", "5", "-c", "1"]
    return run_program([found, *words], args.end)


def ib(args: "Args") -> str:
    if args.size < 2:
        raise Missing("needs a second node")
    found = find_program(["ib_write_bw"], "the package perftest")
    devices = list_ib_devices()[:MAX_IB_DEVICES]
    if not devices:
        raise Missing("no active InfiniBand or RoCE port below /sys/class/infiniband")
    told = []
    for at, device in enumerate(devices):
        words = [found, "-d", device, "-p", str(args.port + at), "-D", "3", "-F", "--report_gbits"]
        told.append(run_program(words, args.end) if args.is_first else connect(words, args))
    return "\n".join(told)


def connect(words: "list[str]", args: "Args") -> str:
    """As the second node, until the first one listens."""
    patience = min(args.end, time.monotonic() + 20)
    while True:
        try:
            return run_program([*words, args.address], args.end)
        except Failed:
            if time.monotonic() > patience:
                raise
            time.sleep(0.5)


def list_ib_devices() -> "list[str]":
    found = set()
    for path in glob.glob("/sys/class/infiniband/*/ports/*/state"):
        with suppress(OSError), open(path, encoding="utf-8") as file:
            if "ACTIVE" in file.read():
                found.add(path.split("/")[4])
    return sorted(found)


class Args:
    def __init__(self, words: "list[str]") -> None:
        self.mark, self.test, first, self.address, port, gpus, self.directory, seconds = words[:8]
        self.port, self.gpus, self.seconds = int(port), int(gpus), int(seconds)
        self.end = time.monotonic() + self.seconds
        self.node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        self.is_first = self.node == first
        self.size = int(os.environ.get("SLURM_NTASKS", "1"))


TESTS = {"disk": disk, "memory": memory, "nccl": nccl, "ib": ib}


def main() -> None:
    args = Args(sys.argv[1:])
    try:
        text = TESTS[args.test](args)
        word = "served" if args.test == "ib" and args.is_first else "measured"
        # The lines of both nodes of a pair share one stream, so only one of them is long.
        text = "-" if word == "served" else base64.b64encode(text.encode()).decode()
    except Missing as error:
        word, text = "missing", str(error)
    except Failed as error:
        word, text = "fail", str(error)
    except Exception as error:
        word = "inconclusive"
        text = str(error) if isinstance(error, CannotTell) else json.dumps(repr(error))
    if word not in ("measured", "served"):
        text = " ".join(text.split())[:300]
    sys.stdout.write(f"{args.mark} {args.node} {word} {text}\n")
    sys.stdout.flush()
    os._exit(0)  # without waiting for a program that cannot be ended


main()
