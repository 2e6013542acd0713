"""Rules of the one place that starts processes; every process here is a real one."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel import proc
from sentinel.proc.stuck import start_ticks
from tests.lab.fuse import Fuse
from tests.lab.waiting import HANG_LIMIT_S


def sh(script: str, **options: object) -> proc.Done:
    return proc.run(["sh", "-c", script], **{"limit": 20.0, **options})  # type: ignore[arg-type]


def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def zombies() -> list[str]:
    listing = subprocess.run(
        ["ps", "-o", "stat=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return [line for line in listing.splitlines() if line.startswith("Z")]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 0", 0, id="success"),
        pytest.param("exit 3", 3, id="the command's own code"),
        pytest.param("kill -9 $$", -9, id="a signal is negative"),
        pytest.param("exit 127", 127, id="127 without env's complaint is the command's own"),
    ],
)
def test_the_exit_code_is_the_commands_own(script: str, code: int) -> None:
    """Codes pass through; signals are negative."""
    assert sh(script).code == code


def test_out_and_err_stay_apart_and_bytes_stay_bytes() -> None:
    """Nothing is decoded, nothing mixed."""
    done = sh(r"printf '\377\000a'; printf b >&2")
    assert (done.out, done.err) == (b"\xff\0a", b"b")


def test_stdin_larger_than_any_pipe_is_fed_while_output_is_read() -> None:
    """Neither side waits for the other."""
    text = os.urandom(3_000_000)
    assert proc.run(["cat"], limit=20, stdin=text).out == text


def test_a_command_that_ignores_its_stdin_is_no_error() -> None:
    """A broken pipe is the command's choice."""
    assert proc.run(["true"], limit=20, stdin=b"x" * 3_000_000).code == 0


def test_without_stdin_the_command_reads_an_end_of_file() -> None:
    """It never waits for sentinel's own terminal."""
    assert proc.run(["cat"], limit=20).out == b""


def test_the_environment_and_the_folder_are_those_given(tmp_path: Path) -> None:
    """Nothing of sentinel's own environment leaks when one is given."""
    done = proc.run(["env"], limit=20, env={"PATH": "/usr/bin:/bin", "A": "1"})
    assert sorted(done.out.split()) == [b"A=1", b"PATH=/usr/bin:/bin"]
    assert proc.run(["pwd"], limit=20, cwd=str(tmp_path)).out == os.fsencode(tmp_path) + b"\n"


def test_arguments_are_never_read_by_a_shell() -> None:
    """An argv is a list: what it holds stays text, also bytes of no encoding."""
    words = ["$(id)", "a b", "*", "-x", "\udcff", "A=1"]
    done = proc.run(["printf", "%s\\n", *words], limit=20)
    assert done.out.split(b"\n")[:-1] == [os.fsencode(word) for word in words]


def test_the_command_starts_with_default_signals_and_in_its_own_session() -> None:
    """SIGPIPE ends a writer again (Python ignores it), and no terminal's ^C reaches it."""
    done = sh("grep -E 'SigIgn|SigBlk' /proc/self/status; cat /proc/$$/stat")
    ignored = [int(line.split()[1], 16) for line in done.out.splitlines()[:2]]
    fields = done.out.splitlines()[2].rpartition(b")")[2].split()
    assert [mask & 1 << (signal.SIGPIPE - 1) for mask in ignored] == [0, 0]
    assert int(fields[3]) != os.getsid(0)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param("sleep 60", "did not finish", id="a command that takes too long"),
        pytest.param("trap '' TERM; sleep 60 & wait; sleep 60", "did not", id="deaf to SIGTERM"),
        pytest.param("exec >&- 2>&-; sleep 60", "did not finish", id="one that closed its output"),
        pytest.param(
            "sleep 60 &", "left behind.*was ended too", id="a grandchild that holds the output"
        ),
        pytest.param("kill -STOP $$", "did not finish", id="a stopped one"),
    ],
)
def test_a_command_past_its_limit_is_ended_with_its_group(script: str, why: str) -> None:
    """TimedOut says why; nobody of the group is left, no file stays open, no zombie."""
    before = open_files()
    marked = f": {os.urandom(8).hex()}; {script}"
    with pytest.raises(proc.TimedOut, match=why) as late:
        sh(marked, limit=HANG_LIMIT_S)
    assert late.value.stuck is None
    assert not zombies()
    assert open_files() == before
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert marked not in listing.stdout


def test_a_grandchild_of_the_group_is_ended_too(tmp_path: Path) -> None:
    """Its pid is really gone, not merely forgotten."""
    note = tmp_path / "pid"
    with pytest.raises(proc.TimedOut):
        sh(f"sleep 60 & echo $! > {note}; wait", limit=HANG_LIMIT_S)
    assert eventually(lambda: not alive(int(note.read_text())))


def test_a_process_that_left_the_group_is_said_to_run_on(tmp_path: Path) -> None:
    """It cannot be ended with the group, and nobody may believe that it was."""
    note = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ >{note}; exec sleep 60' & sleep 0.2"
    with pytest.raises(proc.TimedOut, match="it runs on, in a session of its own"):
        sh(script, limit=HANG_LIMIT_S)
    pid = int(note.read_text())
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_background_process_without_the_output_is_none_of_ours() -> None:
    """Plugins may start daemons; a command that ended well is not punished for them."""
    assert sh("sleep 5 >/dev/null 2>&1 & echo started").out == b"started\n"


def test_output_is_bounded() -> None:
    """Exactly the bound is taken; one byte more ends the command."""
    assert len(sh("head -c 1000 /dev/zero", max_output=1000).out) == 1000
    with pytest.raises(proc.TooMuchOutput, match="sh printed more than 1 kB"):
        sh("head -c 1001 /dev/zero", max_output=1000)
    with pytest.raises(proc.TooMuchOutput):
        proc.run(["yes"], limit=20, max_output=1000)
    assert not zombies()


def not_programs(folder: Path) -> list[tuple[list[str], str]]:
    plain, script = folder / "plain", folder / "script"
    plain.write_text("hello")
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    return [
        (["no-such-program"], "cannot start no-such-program: it is not installed, or not in PATH"),
        ([f"{folder}/missing"], "No such file or directory"),
        ([str(plain)], "Permission denied (not a file that may be executed)"),
        ([str(folder)], "Permission denied (not a file that may be executed)"),
        ([str(script)], "No such file or directory"),
        (["a\0b"], "cannot start a\\x00b: embedded null byte"),
        (["a=b"], "cannot start a=b: its name holds '='"),
        (["check -w 5"], "(the name holds a blank: arguments are items of their own)"),
        (["evil\x1b[31m"], "cannot start evil\\x1b[31m: "),
    ]


def test_what_is_no_program_is_not_found_and_says_why(tmp_path: Path) -> None:
    """Missing, not executable, a directory, no interpreter: one line each."""
    before = open_files()
    for argv, message in not_programs(tmp_path):
        with pytest.raises(proc.CommandNotFound) as error:
            proc.run(argv, limit=20)
        assert message in str(error.value)
        assert str(error.value).isprintable()
    assert open_files() == before


def test_where_nothing_can_be_started_nothing_is_called_missing() -> None:
    """No file descriptor left, say: that is no word about the program."""
    result = in_python(
        "import resource\n"
        "from sentinel import proc\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6))\n"
        "try: proc.run(['true'], limit=20)\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    assert result.stdout == "CannotAsk cannot start true: Too many open files\n"


def test_a_missing_folder_is_not_found(tmp_path: Path) -> None:
    """The message names the folder and the program."""
    with pytest.raises(proc.CommandNotFound, match="cannot start true in /nope: No such file"):
        proc.run(["true"], limit=20, cwd="/nope")


def test_a_commands_own_words_are_not_taken_for_a_failed_start() -> None:
    """Only what env itself says before the program ran counts."""
    assert sh("echo 'env: hm' >&2; exit 1").code == 1
    assert sh("echo x; echo 'env: hm: hm' >&2; exit 127").code == 127


def test_many_threads_may_run_commands_at_once() -> None:
    """Each gets its own answer; nothing stays open."""
    answers: dict[int, bytes] = {}
    before = open_files()

    def work(number: int) -> None:
        for _ in range(5):
            answers[number] = sh(f"echo {number}").out

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {n: b"%d\n" % n for n in range(16)}
    assert open_files() == before
    assert not zombies()


def in_python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )


def test_it_works_without_any_standard_stream(tmp_path: Path) -> None:
    """A caller that closed 0, 1 and 2 does not cross the wires."""
    result = tmp_path / "result"
    in_python(
        "import os; [os.close(n) for n in (0, 1, 2)]\n"
        "from sentinel.proc import run\n"
        "d = run(['sh', '-c', 'cat; echo e >&2'], stdin=b'o', limit=20)\n"
        f"open({str(result)!r}, 'w').write(repr((d.out, d.err)))"
    )
    assert result.read_text() == repr((b"o", b"e\n"))


def test_a_lost_exit_status_is_cannot_tell() -> None:
    """Where SIGCHLD is ignored the kernel forgets the code; that is never taken for success."""
    result = in_python(
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from sentinel import proc; proc.run(['true'], limit=20)"
    )
    assert "CannotTell: the exit status of a command was lost" in result.stderr


LATE = """
import sys, threading, time
from pathlib import Path
from sentinel import proc
from sentinel.proc import running

def late(frame, event, arg):
    "The thread gets no processor between the start of a command and its note of it."
    if frame.f_code is running.add_group.__code__:
        time.sleep(0.2)

threading.settrace(late)
command = ["sh", "-c", "echo $$ > pid.new; mv pid.new pid; exec sleep 60"]
threading.Thread(target=proc.run, args=[command], kwargs={"limit": 60}, daemon=True).start()
while not Path("pid").exists():
    time.sleep(0.01)
"""


def test_a_command_that_is_just_being_started_ends_with_sentinel_too(tmp_path: Path) -> None:
    """On a busy machine a command ran already, and the thread that had started it had not noted its
    number, when a signal ended sentinel: the command stayed."""
    program = [sys.executable, "-c", LATE]
    subprocess.run(program, cwd=tmp_path, check=True, timeout=30, stderr=subprocess.DEVNULL)
    pid = int((tmp_path / "pid").read_text())
    assert eventually(lambda: not alive(pid))


def test_importing_it_costs_no_heavy_module() -> None:
    """A one-shot in an epilog pays for every import."""
    heavy = {"asyncio", "subprocess", "dataclasses", "threading", "shutil", "logging"}
    if sys.version_info < (3, 11):
        heavy -= {"subprocess", "threading"}  # of uuid, which msgspec imports
    result = in_python(f"import sys, sentinel.proc; print(sorted({heavy} & set(sys.modules)))")
    assert result.stdout == "[]\n"


def test_a_live_process_counts_as_stuck_only_by_pid_start_and_boot() -> None:
    """A pid that was given to another process, or another boot, is not the same child."""
    here, began = proc.boot_id(), start_ticks(os.getpid())
    assert began is not None
    assert proc.still_stuck(proc.StuckProcess(os.getpid(), began, here))
    assert not proc.still_stuck(proc.StuckProcess(os.getpid(), began + 1, here))
    assert not proc.still_stuck(proc.StuckProcess(os.getpid(), began, "another boot"))
    assert not proc.still_stuck(proc.StuckProcess(2**22 + 1, began, here))


def test_a_zombie_is_not_stuck() -> None:
    """It has ended; only its parent has not looked."""
    child = os.posix_spawn("/usr/bin/sleep", ["sleep", "60"], os.environ)
    began = start_ticks(child)
    assert began is not None
    stuck = proc.StuckProcess(child, began, proc.boot_id())
    assert proc.still_stuck(stuck)
    os.kill(child, signal.SIGKILL)
    assert eventually(lambda: not proc.still_stuck(stuck))
    os.waitpid(child, 0)


def test_a_child_in_state_d_is_abandoned_within_the_grace_and_buried_later(fuse: Fuse) -> None:
    """Not even SIGKILL ends it: it is told as stuck, and no zombie stays once it ends."""
    fuse.hold("statfs")
    before, began = open_files(), time.monotonic()
    with pytest.raises(proc.TimedOut) as late:
        proc.run(["stat", "-f", str(fuse.point)], limit=HANG_LIMIT_S)
    assert time.monotonic() - began < HANG_LIMIT_S + proc.KILL_GRACE_S + 5
    stuck = late.value.stuck
    assert stuck is not None
    assert proc.still_stuck(stuck)
    assert open_files() == before
    fuse.release()
    assert eventually(lambda: not alive(stuck.pid))
    assert proc.run(["true"], limit=20).code == 0
    assert not zombies()
    assert not proc.still_stuck(stuck)


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        pytest.param(["{fuse}/data"], {}, id="the program"),
        pytest.param(["true"], {"cwd": "{fuse}/data"}, id="the working folder"),
        pytest.param(["data"], {"env": {"PATH": "{fuse}:/usr/bin"}}, id="a folder of PATH"),
    ],
)
def test_a_program_on_a_mount_that_hangs_holds_up_nobody_else(
    fuse: Fuse, argv: list[str], options: dict[str, Any]
) -> None:
    """Neither the caller past its limit nor any other thread: the interpreter goes on."""
    fuse.hold("lookup", "open")
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks[0] += 1

    ticking = threading.Thread(target=tick)
    ticking.start()
    with pytest.raises(proc.TimedOut):
        proc.run(*on(fuse, [argv]), **on(fuse, options), limit=HANG_LIMIT_S)
    stop.set()
    ticking.join()
    fuse.release()
    assert ticks[0] > 10


def on(fuse: Fuse, template: Any) -> Any:
    """The template with the mount's path in place of `{fuse}`."""
    return json.loads(json.dumps(template).replace("{fuse}", str(fuse.point)))


def test_tools_answer_in_english_whatever_the_callers_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What reads their words would not know them in German; an environment that is given stays."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    said = proc.run(["sh", "-c", "echo $LC_ALL"], limit=5).out
    own = proc.run(["/bin/sh", "-c", "echo $LC_ALL"], limit=5, env={"LC_ALL": "fr_FR"}).out
    assert (said, own) == (b"C\n", b"fr_FR\n")


def test_no_tool_is_started_in_another_language_by_an_environment_of_its_own() -> None:
    """An environment is given only to programs of users, or it is English too."""
    theirs = {"checks/exec.py", "channels/program.py", "channels/mail_owners.py"}
    package = Path(proc.__file__).parent.parent
    given = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "env={**os.environ" in path.read_text() or "env=os.environ" in path.read_text()
    }
    assert given <= theirs


def test_a_child_that_acts_as_a_user_gets_nothing_of_this_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it needs is named; a password of root's is not."""
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    monkeypatch.setenv("SLURM_CONF", "/etc/slurm.conf")
    done = proc.run(["/usr/bin/env"], limit=10, env=proc.bare_environment("PATH", "SLURM_CONF"))
    told = dict(line.split("=", 1) for line in done.out.decode().splitlines())
    assert "PGPASSWORD" not in told
    assert {*told} <= {"PATH", "SLURM_CONF", "LC_ALL", "LD_LIBRARY_PATH"}
    assert (told["SLURM_CONF"], told["LC_ALL"]) == ("/etc/slurm.conf", "C")
