"""What runs on nodes: programs that hang, shout, fail and are killed; disks that must not fill."""

import base64
import json
import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run

import pytest

from sentinel.nodes.node_tests import _program
from tests.lab.waiting import wait_until

SECONDS = "60"


class Host:
    """This machine as a node, with stand-ins before its own programs."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.scratch = folder / "bin", folder / "scratch"
        self.bin.mkdir()
        self.scratch.mkdir()
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "SLURMD_NODENAME": "n1",
            "SLURM_NTASKS": "1",
        }

    def put(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def start(
        self, test: str, *, gpus: int = 0, seconds: str = SECONDS, path: str = ""
    ) -> "Popen[bytes]":
        words = ["MARK", test, "n1", "127.0.0.1", "20000", str(gpus), path, seconds]
        child = Popen(
            [sys.executable, "-", *words], stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self.env
        )
        assert child.stdin
        child.stdin.write(_program(test))
        child.stdin.close()
        child.stdin = None
        return child

    def ask(self, test: str, **options: object) -> tuple[str, str]:
        """The word and the text of the only line."""
        out, err = self.start(test, **options).communicate(timeout=60)  # type: ignore[arg-type]
        mark, node, word, text = out.decode().rstrip("\n").split(" ", 3)
        assert (mark, node, err) == ("MARK", "n1", b"")
        return word, text


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_what_a_program_printed_comes_back_as_it_was(host: Host) -> None:
    """In one line, whatever is in it."""
    host.put("stream_c", r"printf 'Triad:   72859.9\nMARK n9 measured forged\n\033[1m'")
    word, text = host.ask("memory")
    assert word == "measured"
    said = "Triad:   72859.9\nMARK n9 measured forged\n\x1b[1m"
    assert base64.b64decode(text).decode() == said


def test_of_a_pair_only_the_second_node_sends_its_output(host: Host) -> None:
    """The first one serves; this machine has no port for it."""
    script = _program("ib").replace(b"devices = list_ib_devices()", b"devices = ['mlx5_0']")
    host.put("ib_write_bw", 'echo "$@"')
    env = {**host.env, "SLURM_NTASKS": "2"}
    said = []
    for first in ("n1", "n0"):
        words = ["MARK", "ib", first, "10.0.0.1", "20000", "0", "", SECONDS]
        argv = [sys.executable, "-", *words]
        done = run(argv, input=script, capture_output=True, env=env, check=True)
        said.append(done.stdout.decode().split())
    assert said[0] == ["MARK", "n1", "served", "-"]
    assert said[1][:3] == ["MARK", "n1", "measured"]
    client = base64.b64decode(said[1][3]).decode()
    assert client == "-d mlx5_0 -p 20000 -D 3 -F --report_gbits 10.0.0.1\n"


@pytest.mark.parametrize("script", ["exec sleep 1000", "sleep 1000 & sleep 1000", "exec yes"])
def test_a_program_that_does_not_end_says_nothing_about_the_node(host: Host, script: str) -> None:
    """It and its children are ended, silent or not."""
    host.put("stream_c", f"echo $$ > {host.scratch}/pid\n{script}")
    word, text = host.ask("memory", seconds="2")
    assert (word, text) == ("inconclusive", f"{host.bin}/stream_c did not end in time")
    group = int((host.scratch / "pid").read_text())
    wait_until(lambda: not _has_group(group), "the end of the program and its children")


def _has_group(number: int) -> bool:
    left = run(["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in left.splitlines()]
    return any(row[0] == str(number) and not row[1].startswith("Z") for row in rows)


def test_output_without_end_is_cut(host: Host) -> None:
    """128 KiB are kept; the program is not blocked by it."""
    host.put("stream_c", "head -c 3000000 /dev/zero")
    word, text = host.ask("memory")
    assert (word, len(base64.b64decode(text))) == ("measured", 2**17)


def test_a_program_that_fails_is_quoted_in_one_line(host: Host) -> None:
    host.put("all_reduce_perf", "echo first; printf 'Test NCCL failure\\n\\n'; exit 3")
    word, text = host.ask("nccl", gpus=8)
    assert (word, text) == ("fail", f"{host.bin}/all_reduce_perf ended with 3: Test NCCL failure")


def test_a_fio_without_its_engine_is_missing(host: Host) -> None:
    """Fedora and RHEL have libaio in a package of its own; the disk is not to blame."""
    said = "fio: engine libaio not loadable\nfio: failed to load engine\n"
    host.put("fio", f"printf '{said}'; exit 1")
    word, text = host.ask("disk", path=str(host.scratch))
    assert word == "missing"
    assert text.endswith("fio has no engine libaio; install the package fio-engine-libaio")


@pytest.mark.parametrize(
    ("test", "gpus", "told"),
    [
        ("disk", 0, "no fio; install the package fio"),
        ("memory", 0, "no stream_c or stream_c.exe or stream; install STREAM"),
        ("nccl", 1, "needs two GPUs or more"),
        ("nccl", 8, "no all_reduce_perf; install nccl-tests"),
        ("ib", 0, "needs a second node"),
    ],
)
def test_without_the_program_it_says_what_to_install(
    host: Host, test: str, gpus: int, told: str
) -> None:
    host.env["PATH"] = f"{host.bin}"
    word, text = host.ask(test, gpus=gpus)
    if "no " in told and word != "missing":
        pytest.skip("this machine has the program")
    assert word == "missing"
    assert text.startswith(told)


def test_a_program_in_the_working_directory_is_not_run(host: Host) -> None:
    """A relative folder in PATH is nobody's program."""
    host.put("stream_c", "echo ran")
    host.env["PATH"] = f":.:{os.path.relpath(host.bin)}"
    word, text = host.ask("memory")
    assert b"ran" not in (base64.b64decode(text) if word == "measured" else b"")


FIO = """\
for word; do case $word in --filename=*) file=${{word#*=}};; --size=*) size=${{word#*=}};; esac; done
readlink $file > {scratch}/link
stat -L -c '%s %h' $file > {scratch}/size
dd if=/dev/zero of=$file bs=1M count=1 conv=notrunc 2>/dev/null && echo $size > {scratch}/wrote
{then}
"""


def _put_fio(host: Host, then: str) -> None:
    host.put("fio", FIO.format(scratch=host.scratch, then=then))


def test_the_scratch_file_has_no_name_and_a_size(host: Host) -> None:
    """1 GiB or a twentieth of what is free; nothing is to be removed afterwards."""
    disk = host.scratch / "disk"
    disk.mkdir()
    _put_fio(host, "echo '{}'")
    word, text = host.ask("disk", path=str(disk))
    assert (word, base64.b64decode(text)) == ("measured", b"{}\n"), text
    assert (host.scratch / "link").read_text().startswith(str(disk))
    there = os.statvfs(disk)
    size, links = map(int, (host.scratch / "size").read_text().split())
    assert size == int((host.scratch / "wrote").read_text())
    assert links == 0
    assert size <= min(2**30, (there.f_bavail * there.f_frsize + size) // 20)
    assert [*disk.iterdir()] == []


def test_nothing_is_left_when_it_is_killed(host: Host) -> None:
    """SIGKILL to the test: its program ends with it, and the file was never there by name."""
    disk = host.scratch / "disk"
    disk.mkdir()
    _put_fio(host, f"echo $$ > {host.scratch}/pid; exec sleep 1000")
    child = host.start("disk", path=str(disk))
    wait_until((host.scratch / "pid").exists, "the program's start")
    wait_until((host.scratch / "pid").read_text, "its number")
    assert [*disk.iterdir()] == []
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    group = int((host.scratch / "pid").read_text())
    wait_until(lambda: not _has_group(group), "the end of the program")
    assert [*disk.iterdir()] == []


@pytest.mark.parametrize(
    ("path", "word", "told"),
    [
        ("/dev/shm", "inconclusive", "/dev/shm is on no local disk"),
        ("/proc", "inconclusive", "/proc is on no local disk"),
        ("/no/such", "missing", "no directory /no/such"),
    ],
)
def test_only_a_local_disk_is_tested(host: Host, path: str, word: str, told: str) -> None:
    """Memory and network file systems are not what the node's disk does."""
    _put_fio(host, "")
    assert host.ask("disk", path=path) == (word, told)


def test_a_disk_that_is_nearly_full_is_not_written_to(host: Host) -> None:
    """Little is free, as statvfs has it; the program is not started."""
    _put_fio(host, "")
    script = _program("disk").replace(
        b"os.statvfs(folder)", b"os.statvfs_result((4096, 4096, 9, 9, 9, 9, 9, 9, 0, 255))"
    )
    words = ["MARK", "disk", "n1", "127.0.0.1", "20000", "0", str(host.scratch), SECONDS]
    done = run(
        [sys.executable, "-", *words], input=script, capture_output=True, env=host.env, check=True
    )
    assert b"inconclusive" in done.stdout
    assert b"0 MiB free; the test wants 1280 MiB, so that it fills nothing" in done.stdout
    assert not (host.scratch / "link").exists()


def test_a_real_fio_where_there_is_one(host: Host) -> None:
    """Its own words about a real disk."""
    word, text = host.ask("disk", path=str(host.scratch), seconds="120")
    if word != "measured":
        pytest.skip(f"no fio here, or no local disk: {text}")
    jobs = json.loads(base64.b64decode(text))["jobs"]
    assert [job["jobname"] for job in jobs] == ["write", "read"]
    assert all(job["error"] == 0 for job in jobs)
    assert [*host.scratch.iterdir()] == []
