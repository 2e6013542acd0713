"""What a node's shell does, run here: whose programs it starts, and what it leaves behind."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from sentinel.core.errors import CannotTell
from sentinel.stacks import script
from sentinel.stacks.parse.model import NodeStacks, StacksDump
from sentinel.stacks.parse.ras import read_ras
from sentinel.stacks.parse.read import packed_by_node, read_node, unpack_node
from sentinel.stacks.parse.two_looks import stack_facts
from sentinel.stacks.script import ScriptOptions
from tests.lab.cgroups import Cgroups
from tests.lab.waiting import wait_until

JOB = f"9900{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:]}"
"""Each worker's own: a job's processes are looked for on the whole machine."""
NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sentinel-script-"))
    folder.chmod(0o755)
    yield folder
    rmtree(folder)


@pytest.fixture
def environment(place: Path, cgroups: Cgroups, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's Python that runs in a job, with a py-spy of that user beside it."""
    monkeypatch.setattr(sys, "executable", "/nowhere/bin/python")
    own = place / "env"
    own.mkdir()
    tool = own / "py-spy"
    tool.write_text(f'#!/bin/sh\nid -u >>{own}/ran\necho "py-spy 0.4.0"\necho "[]" >&2\n')
    tool.chmod(0o755)
    for path in (own, tool):
        os.chown(path, NOBODY, NOBODY)
    argv = [f"{own}/python3", "-c", "import time; time.sleep(600)"]
    env = {"PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        argv, executable="/usr/bin/python3", env=env, user=NOBODY, start_new_session=True
    ) as process:
        cmdline = Path(f"/proc/{process.pid}/cmdline")
        wait_until(lambda: f"{own}/python3".encode() in cmdline.read_bytes(), "the program")
        cgroups.move(process.pid, f"job_{JOB}/step_0/user/task_0")
        yield own
        process.kill()


def asked(user: int, temporary: Path) -> NodeStacks:
    """What the script tells, run as that user."""
    text = script.script_text(ScriptOptions(job_id=JOB), "MARK", 8.0)
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary)}
    argv = ["/bin/sh", "-c", f"{text}\nmain"]
    done = subprocess.run(argv, env=env, user=user, capture_output=True, check=True, cwd="/")
    (data,) = packed_by_node(done.stdout, "MARK").values()
    return read_node(unpack_node(data), "node-0")


@pytest.mark.root
def test_root_never_runs_what_lies_beside_a_users_python(environment: Path, place: Path) -> None:
    """Whoever has a job could else be root on its nodes, as soon as root asks for its stacks."""
    told = asked(0, place)
    assert not (environment / "ran").exists()
    assert told.no_tool == "py-spy is not installed on this node"
    assert [p.name for p in told.processes] == ["python3"]


@pytest.mark.root
def test_root_does_not_run_it_though_it_seems_to_be_roots(
    environment: Path, cgroups: Cgroups, place: Path
) -> None:
    """A mount of the user's may name root as its owner, and any mode. Here they are so indeed."""
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="sentinel-test-") as own:
        Path(own).chmod(0o755)
        tool = Path(own) / "py-spy"
        tool.write_text(f"#!/bin/sh\ntouch {own}/ran\necho py-spy 0.4.0\n")
        tool.chmod(0o755)
        argv = [f"{own}/python3", "-c", "import time; time.sleep(600)"]
        env = {"PATH": "/usr/bin:/bin"}
        with subprocess.Popen(
            argv, executable="/usr/bin/python3", env=env, user=NOBODY, start_new_session=True
        ) as process:
            cmdline = Path(f"/proc/{process.pid}/cmdline")
            wait_until(lambda: argv[0].encode() in cmdline.read_bytes(), "the program")
            cgroups.move(process.pid, f"job_{JOB}/step_0/user/task_1")
            told = asked(0, place)
            process.kill()
        assert told.no_tool == "py-spy is not installed on this node"
        assert [path.name for path in Path(own).iterdir()] == ["py-spy"]
        assert len(told.processes) == 2


@pytest.mark.root
def test_a_user_runs_what_lies_beside_ones_own_python(environment: Path, place: Path) -> None:
    """py-spy comes with many an environment of a training, and the nodes have none."""
    place.chmod(0o777)
    told = asked(NOBODY, place)
    assert set((environment / "ran").read_text().split()) == {str(NOBODY)}
    assert told.tool == "py-spy 0.4.0"


@pytest.mark.root
def test_nothing_is_left_behind(environment: Path, place: Path) -> None:
    """Neither by one that has ended, nor by one that was told to end in between."""
    place.chmod(0o777)
    before = set(place.iterdir())
    asked(0, place)
    assert set(place.iterdir()) == before
    slow = environment / "py-spy"
    slow.write_text(f"#!/bin/sh\n>{environment}/begun\nsleep 30\n")
    text = script.script_text(ScriptOptions(job_id=JOB), "MARK", 30.0)
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}
    argv = ["/bin/sh", "-c", f"{text}\nmain"]
    with subprocess.Popen(argv, env=env, user=NOBODY, start_new_session=True, cwd="/") as process:
        wait_until((environment / "begun").exists, "py-spy")
        assert set(place.iterdir()) != before
        os.killpg(process.pid, 15)
    assert set(place.iterdir()) == before


@pytest.mark.root
@pytest.mark.parametrize("says", [b"", b"\0SSH-2.0-x\n\x1b[31m" * 100])
def test_a_port_that_says_nothing_or_garbage_keeps_back_no_stacks(
    cgroups: Cgroups, place: Path, says: bytes
) -> None:
    """A process of the job listens where RAS would. One that never ends its answer is left at the
    limit; what it said is text, and no answer of RAS."""
    place.chmod(0o777)
    program = (
        "import socket, sys; server, kept = socket.socket(fileno=int(sys.argv[1])), []\n"
        "while True:\n kept.append(server.accept()[0]); got = more = b'?'\n"
        # Who closes before all was read resets the connection, and the answer is lost.
        " while more and b'STATUS' not in got: more = kept[-1].recv(99); got += more\n"
        " said = bytes.fromhex(sys.argv[2])\n"
        " if said: kept[-1].sendall(said); kept.pop().close()"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        env = {"PATH": "/usr/bin:/bin", "NCCL_RAS_ADDR": address}
        argv = ["/usr/bin/python3", "-c", program, str(server.fileno()), says.hex()]
        process = subprocess.Popen(
            argv, env=env, pass_fds=[server.fileno()], start_new_session=True
        )
    with process:
        cgroups.move(process.pid, f"job_{JOB}/step_0/user/task_0")
        limit = (
            30.0 if says else 3.0
        )  # what is not waited for to the end has time on a busy machine
        text = script.script_text(
            ScriptOptions(job_id=JOB, asker=os.uname().nodename), "MARK", limit
        )
        argv = ["/bin/sh", "-c", f"{text}\nmain"]
        clean = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}
        done = subprocess.run(argv, env=clean, capture_output=True, check=True, cwd="/", timeout=60)
        process.kill()
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "node-0")
    assert [p.name for p in told.processes] == ["python3"]
    assert ("SSH" in told.ras) == bool(says)
    with pytest.raises(CannotTell):
        read_ras(told.ras)


@pytest.mark.root
def test_processes_of_somebody_else_are_unreadable_and_not_gone(
    environment: Path, place: Path
) -> None:
    """slurmd names them to everybody; py-spy is refused, and says so. A verdict of it accuses nobody."""
    place.chmod(0o777)
    (pid,) = (p.pid for p in asked(0, place).processes)
    slurmd = place / "scontrol"
    slurmd.write_text(
        f"#!/bin/sh\necho PID JOBID STEPID LOCALID GLOBALID\necho {pid} {JOB} 0 0 0\n"
    )
    slurmd.chmod(0o755)
    text = script.script_text(ScriptOptions(job_id=JOB), "MARK", 8.0)
    env = {"PATH": f"{place}:/usr/bin:/bin", "TMPDIR": str(place)}
    argv = ["/bin/sh", "-c", f"{text}\nmain"]
    done = subprocess.run(argv, env=env, user=NOBODY - 1, capture_output=True, check=True, cwd="/")
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "node-0")
    (process,) = told.processes
    assert (process.pid, process.threads) == (pid, ())
    assert process.why.startswith(f"no permission to read it as uid {NOBODY - 1}")
    look = StacksDump(job=JOB, nodes=(told,))
    assert stack_facts(look, look) == ()


@pytest.mark.root
def test_a_driver_that_hangs_keeps_back_no_stacks(environment: Path, place: Path) -> None:
    """What nvidia-smi does not answer in time is left out; the kernel's log is there."""
    tool = place / "nvidia-smi"
    tool.write_text("#!/bin/sh\ntrap '' TERM\nsleep 1000 & wait\nwait\n")
    tool.chmod(0o755)
    text = script.script_text(ScriptOptions(job_id=JOB, evidence=True), "MARK", 3.0)
    env = {"PATH": f"{place}:/usr/bin:/bin", "TMPDIR": str(place)}
    argv = ["/bin/sh", "-c", f"{text}\nmain"]
    done = subprocess.run(argv, env=env, capture_output=True, check=True, cwd="/", timeout=60)
    (data,) = packed_by_node(done.stdout, "MARK").values()
    told = read_node(unpack_node(data), "node-0")
    assert [p.name for p in told.processes] == ["python3"]
    assert told.gpus == ""


@pytest.mark.root
@pytest.mark.parametrize(("size", "kept"), [(1_000_000, True), (100_000_000, False)])
def test_stacks_without_end_take_no_memory_of_the_node(
    environment: Path, place: Path, size: int, kept: bool
) -> None:
    """Names of functions and the depth of a recursion are the user's: a process of 30 threads came to
    more than 100 MB, of which root's shell held copies beside other people's jobs."""
    tool = place / "py-spy"
    frame = '{"name": "f", "filename": "a.py", "line": 1}'
    thread = (
        f'{{"pid": 1, "thread_id": 1, "thread_name": "t", "active": true, "frames": [{frame}]}}'
    )
    tool.write_text(
        '#!/bin/sh\n[ "$1" = dump ] || { echo "py-spy 0.4.0"; exit; }\n'
        f"printf '[%s, ' '{thread}'; head -c {size} /dev/zero | tr '\\0' ' '; echo '{thread}]'\n"
    )
    tool.chmod(0o755)
    text = script.script_text(ScriptOptions(job_id=JOB, tool=str(tool)), "MARK", 20.0)
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place)}
    argv = ["/bin/sh", "-c", f"ulimit -v 200000\n{text}\nmain"]
    done = subprocess.run(argv, env=env, capture_output=True, check=True, cwd="/", timeout=60)
    (data,) = packed_by_node(done.stdout, "MARK").values()
    (process,) = read_node(unpack_node(data), "node-0").processes
    assert bool(process.threads) == kept
    assert ("longer than" in process.why) != kept
