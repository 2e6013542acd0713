"""What jobs of an ordinary user do to what sentinel reads for them as root."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tests.hostile.stage import SECRET, Outcome, Stage
from tests.lab.tied import tied
from tests.lab.waiting import wait_until

FLIP = """
import os, sys, time
link, count = sys.argv[1], 0
targets = sys.argv[2:]
while True:
    for target in targets:
        os.symlink(target, link + ".new")
        os.rename(link + ".new", link)
        count += 1
        if not count % 100:
            print(count, file=open(link + ".count", "w"), flush=True)
        time.sleep(0.001)
"""

BUSY = """
import glob, os, sys, time
line = ("[rank1]: iteration 12/1000 | loss: 1.0 | lm loss: 2.0 grad norm: 0.1 | step time 3.0 "
        "Error: x CUDA error: y saving checkpoint done\\n")
block = (line * (2**20 // len(line))).encode()
while True:
    for path in glob.glob(sys.argv[1]):
        with open(path, "r+b") as log:
            log.truncate(0)
            log.write(block)
    time.sleep(2)
"""

FORMS = """
import os, socket, sys
number, at, secret, private, own = int(sys.argv[1]), *sys.argv[2:6]
os.chdir(os.path.dirname(at))
if os.path.lexists(at):
    os.unlink(at)
targets = [
    secret, f"../{secret}", f"/proc/self/root{secret}", private, f"{private}/{os.path.basename(secret)}-1",
    "/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/self/fd/3", "/proc/self/maps",
    "/proc/1/environ", "/proc/thread-self/environ", "/proc/self/cwd/secret", "/dev/zero", "/dev/full",
    "/dev/tty", "/dev/stdin", "/dev/random", "/dev/kmsg", "/etc/shadow", "/etc/passwd", at, "nowhere",
    f"{secret}/", "/", "/root", "/proc", "/proc/kcore", "/sys/kernel/debug", "/dev/shm", "/dev/ptmx",
]
if number < len(targets):
    os.symlink(targets[number], at)
elif number == len(targets):
    os.mkfifo(at)
elif number == len(targets) + 1:
    socket.socket(socket.AF_UNIX).bind(at)
elif number == len(targets) + 2:
    os.mkdir(at)
elif number == len(targets) + 3:
    with open(at, "w") as log:
        log.truncate(2**40)
elif number == len(targets) + 4:
    with open(at, "wb") as log:
        log.write(b"\\x00" * 2**20)
elif number == len(targets) + 5:
    with open(at, "wb") as log:
        log.write(b"iteration 1\\n" + b"\\x1f\\x8b" * 2**19)
elif number == len(targets) + 6:
    with open(at, "wb") as log:
        log.write(b"x" * 2**22)
elif number == len(targets) + 7:
    for n in range(45):
        os.symlink(f"chain{n - 1}" if n else secret, f"chain{n}") if not os.path.lexists(f"chain{n}") else 0
    os.symlink("chain44", at)
elif number == len(targets) + 8:
    os.link(own, at)
else:
    with open(at, "w") as log:
        log.write("loss nan " * 2**17)
"""
FORM_COUNT = 41
STOP_READERS = """
import os, signal, sys, time
over, service = sys.argv[1], int(sys.argv[2])
def is_of_service(pid):
    while pid > 1 and pid != service:
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    return pid == service
count, kinds = 0, [signal.SIGSTOP, signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL]
while not os.path.exists(over):
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if is_of_service(pid):
                count += 1
                os.kill(pid, kinds[count % 4])
        except (OSError, ValueError, IndexError):
            pass  # it has ended, or is not hers
    time.sleep(0.01)
print(count)
"""
DEATHS, ELEMENTS = 200, 40


def flip_links(stage: Stage) -> Outcome:
    """A job's output is a link that leads to her own log, secrets of others and a pipe in turn."""
    home = stage.mallory.home
    own, link, pipe = home / "own.log", home / "flip.log", home / "pipe"
    stage.lab.run(["sh", "-c", f"echo iteration 1 >{own}; mkfifo {pipe}"], user=stage.mallory)
    stage.lab.sbatch("exec sleep 500", name="malflip", user=stage.mallory, output=link)
    targets = (own, *stage.secrets, pipe, stage.private_folder)
    wait_until(link.exists, "the job's output", 20)
    flipper = stage.python_as(stage.mallory, FLIP, link, *targets)
    count = link.with_name("flip.log.count")

    def flips() -> int:
        return int(count.read_text() or 0) if count.exists() else 0

    wait_until(lambda: flips() >= 1000, "1,000 flips", 60)
    seen = stage.await_passes("logs", 5)
    flipper.kill()
    return Outcome(
        flips(), [*stage.leaks(), *([] if seen else ["the check did not come to its end"])]
    )


def put_forms_of_files(stage: Stage) -> Outcome:
    """Forty jobs whose output, log and folder of checkpoints is something else than a file."""
    for number in range(FORM_COUNT):
        home = stage.mallory.home.parent
        log = stage.mallory.home / f"form{number}" / "out.log"
        log.parent.mkdir()
        for name in (f"malform{number}", f"path{number}"):
            if not (home / name).exists():
                (home / name).symlink_to(log.parent)
        stage.lab.run(["true"])
        log.parent.chmod(0o777)
        own = stage.mallory.home / "own.log"
        script = f"python3 -I -c '{FORMS.replace(chr(39), chr(34))}'"
        words = f"{number} {log} {stage.secrets[1]} {stage.private_folder} {own}"
        stage.lab.sbatch(
            f"{script} {words}; ln -s {stage.private_folder} {log.parent}/ckpt; exec sleep 500",
            name=f"malform{number}", user=stage.mallory, output=log,
        )  # fmt: skip
    last = stage.mallory.home / f"form{FORM_COUNT - 1}" / "ckpt"
    wait_until(last.is_symlink, "the forms", 60)
    harm = [] if stage.await_passes("logs", 3) else ["the check `logs` did not come to its end"]
    harm += [] if stage.await_passes("saves", 2) else ["the check `saves` did not come to its end"]
    return Outcome(FORM_COUNT, [*harm, *stage.leaks()])


def flood_with_logs(stage: Stage) -> Outcome:
    """222 jobs write logs of 1 MiB anew every two seconds; alice's one log stands still."""
    lab, home = stage.lab, stage.mallory.home
    script = "\n".join(
        f"sbatch -Q -o {home}/f-{number}.out -J malflood{number} --wrap 'exec sleep 500'"
        for number in range(222)
    )
    lab.run(["sh", "-c", script], user=stage.mallory, limit=120)
    wait_until(lambda: len([*home.glob("f-*.out")]) == 222, "222 jobs", 90)
    writer = stage.python_as(stage.mallory, BUSY, home / "f-*.out")
    log = stage.alice.home / "train.log"
    lab.sbatch("for n in 1 2 3 4 5; do echo iteration $n; sleep 1; done; exec sleep 500",
               name="alitrain", user=stage.alice, output=log)  # fmt: skip
    took = stage.tells_of("alitrain", 90)
    writer.kill()
    return Outcome(222, [] if took else ["alice's log that stands still was not told in 90 s"])


def flood_with_elements(stage: Stage) -> Outcome:
    """The same by 40 elements of one array, which have one name and one owner."""
    lab, home = stage.lab, stage.mallory.home
    lab.sbatch("exec sleep 500", name="malarray", user=stage.mallory, array=f"1-{ELEMENTS}",
               output=home / "e-%a.out")  # fmt: skip
    wait_until(lambda: len([*home.glob("e-*.out")]) == ELEMENTS, "the array", 60)
    writer = stage.python_as(stage.mallory, BUSY, home / "e-*.out")
    lab.sbatch("echo iteration 1; exec sleep 500", name="alibeside", user=stage.alice,
               output=stage.alice.home / "beside.log")  # fmt: skip
    took = stage.tells_of("alibeside", 90)
    writer.kill()
    return Outcome(ELEMENTS, [] if took else ["alice's log that stands still was not told in 90 s"])


def flood_with_deaths(stage: Stage) -> Outcome:
    """Hundreds of jobs with names of their own fail at once; alice's training dies beside them."""
    lab = stage.lab
    script = "\n".join(
        f"sbatch -Q -o /dev/null -J maldead{number} --wrap 'echo step 1; exit 3'"
        for number in range(DEATHS)
    )
    lab.run(["sh", "-c", script], user=stage.mallory, limit=180)
    lab.sbatch("sleep 4; echo Traceback; exit 3", name="alidead", user=stage.alice,
               output=stage.alice.home / "dead.log")  # fmt: skip
    took = stage.tells_of("alidead", 120)
    return Outcome(DEATHS, [] if took else ["alice's death was not told in 120 s"])


def name_flight_recorders(stage: Stage) -> Outcome:
    """A job names alice's private folder as the place of its flight recorder's dumps."""
    script = f"export TORCH_FR_DUMP_TEMP_FILE={stage.private_folder}/\nexec python3 -c 'import time; time.sleep(400)'"
    job = stage.lab.sbatch(
        script, name="malrec", user=stage.mallory, output=stage.mallory.home / "rec.log"
    )
    stage.lab.wait_state(job, "RUNNING")
    done = stage.lab.run(["timeout", "60", *stage.command("stacks", job)], env=stage.env, limit=70)
    harm = ["the stacks name a file of alice's"] if SECRET in done.stdout + done.stderr else []
    return Outcome(1, [*harm, *stage.leaks()])


def forge_names(stage: Stage) -> Outcome:
    """Names and comments of jobs that would be rows, markup, commands of a terminal or of a shell."""
    names = ["x\n999|alitrain|FAILED", "\x1b]0;t\x07\x1b[2J", "<script>alert(1)</script>", "$(touch /tmp/x)",
             "`id`", "a" * 1000, "..", "../../etc", "%u%x%j", "{{7*7}}", "{0.__class__}", "\u202egnp",
             "ali/train", f"{stage.alice.name}/alitrain", "", " ", "'", '"', "|", "\\", "=HYPERLINK(1)"]  # fmt: skip
    for name in names:
        stage.lab.run(["sbatch", "-Q", "-o", "/dev/null", f"--job-name={name}", f"--comment={name}", "--wrap",
                       "exit 3"], user=stage.mallory)  # fmt: skip
    ended = stage.await_passes("jobs", 2)
    text = json.dumps(stage.book) + stage.get("/jobs", "root")[1]
    harm = [f"{bad!r} comes out raw" for bad in ("\x1b", "<script>alert", "\u202e") if bad in text]
    forged = [m for m in stage.book if "FAILED" in str(m.get("subject"))]
    harm += [f"a forged row was told: {m['subject']}" for m in forged if "\n" in str(m["subject"])]
    return Outcome(len(names), [*harm, *([] if ended else ["the check did not come to its end"])])


def bait_administrators(stage: Stage) -> Outcome:
    """A job dies whose folder and log are called like commands; the folder holds a link under the name
    that a command of the message would write to. Root pastes each command of the message, there: the
    link is not followed, the script does not run as root, nor does what stands in a name."""
    folder = stage.mallory.home / "x'; touch owned; '$(touch owned)"
    victim, log = stage.folder / "of-root", folder / "`touch owned`; touch owned #.log"
    victim.write_text("of root\n")
    stage.lab.run(["mkdir", str(folder)], user=stage.mallory)
    done = stage.lab.run(
        ["sbatch", "--parsable", "-D", str(folder), "-o", str(log), "-J", "malbait",
         "--wrap", "sleep 12; exit 3"], user=stage.mallory)  # fmt: skip
    (folder / f"again-{done.stdout.strip()}.sh").symlink_to(victim)

    def told_commands() -> list[str]:
        found = [m for m in stage.book if "malbait" in str(m["subject"])]
        lines = [c for m in found for c in (*m["commands"], *m["acts"])]
        return lines if any("sbatch" in line for line in lines) else []

    deadline = time.monotonic() + 90
    while not (commands := told_commands()) and time.monotonic() < deadline:
        time.sleep(0.2)
    for command in commands:
        for shell in ("sh", "bash"):
            stage.lab.run([shell, "-c", 'cd "$0" && eval "$1"', str(folder), command])
    jobs = stage.lab.run(["squeue", "-h", "-t", "all", "-u", "root", "-o", "%j"]).stdout
    harm = [] if commands else ["no command was told, so that nothing was tried"]
    shown = any("tail" in command and "owned" in command for command in commands)
    harm += [] if shown else ["no command names the log, so that its name was not tried"]
    places = (folder, stage.folder, stage.mallory.home)
    harm += ["what stands in a name ran as root" for at in places if (at / "owned").exists()]
    harm += [] if victim.read_text() == "of root\n" else ["the link was followed as root"]
    harm += ["the script ran as root"] if "malbait" in jobs else []
    return Outcome(len(commands), harm)


def fill_checkpoint_folder(stage: Stage) -> Outcome:
    """100,000 checkpoints in one folder: each pass comes to its end, and the page answers meanwhile."""
    folder = stage.mallory.home / "form0" / "ckpt"
    program = (
        "import os, sys\nat = sys.argv[1]\nos.path.islink(at) and os.unlink(at)\nos.mkdir(at)\n"
        "os.chdir(at)\nfor n in range(100_000): os.mkdir(f'step{n}')\n"
    )
    stage.python_as(stage.mallory, program, folder).communicate(timeout=60)
    ended = stage.await_passes("saves", 2, 90)
    count = sum(1 for _ in folder.iterdir())
    return Outcome(count, [] if ended else ["the check `saves` did not come to its end in 90 s"])


def show_on_terminals(stage: Stage) -> Outcome:
    """Names of jobs that are commands of a terminal, on the one of an administrator."""
    names = ["\x1b]0;t\x07x", "a\nb critical", "\u202egnp", "x\x9b2J", "\rover"]
    for name in names:
        stage.lab.run(["sbatch", "-Q", "-o", "/dev/null", f"--job-name=mal{name}", "--wrap", "exec sleep 300"],
                      user=stage.mallory)  # fmt: skip
    ended = stage.await_passes("logs", 1)
    harm = [] if ended else ["the check did not come to its end"]
    commands = (["status"], ["alerts", "list"], ["top"])
    with ThreadPoolExecutor(len(commands)) as pool:
        screens = [*pool.map(lambda words: _read_terminal(stage, words), commands)]
    for words, shown in zip(commands, screens, strict=True):
        harm += [] if "mal" in shown else [f"`{words[0]}` shows no job, so that nothing was tried"]
        bad = ("\x1b]", "\x07", "\u202e", "\x9b", "\nb critical", "\rover")
        harm += [f"{one!r} comes out raw in `{words[0]}`" for one in bad if one in shown]
    return Outcome(len(names) * 3, harm)


def _read_terminal(stage: Stage, words: Sequence[str]) -> str:
    """What a command prints on a terminal; one without an end is ended 2 s after it shows a job."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    env = {**stage.lab.env, **stage.env, "TERM": "xterm"}
    command = subprocess.Popen(tied(stage.command(*words)), stdin=theirs, stdout=theirs, stderr=theirs, env=env,
                               start_new_session=True)  # fmt: skip
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 40.0
    with suppress(OSError):  # EIO: it has ended
        while (left := deadline - time.monotonic()) > 0:
            if select.select([ours], [], [], left)[0]:
                shown += os.read(ours, 1 << 16)
            if words == ["top"] and b"mal" in shown:
                deadline = min(deadline, time.monotonic() + 2.0)
    command.kill()
    command.wait()
    os.close(ours)
    return shown.decode("utf-8", "replace")


def signal_readers(stage: Stage) -> Outcome:
    """What reads her files does it with her rights: all that belongs to sentinel is told to stop, to end and
    to dump its memory. Passes go on, and no core lies anywhere."""
    assert stage.service
    over = stage.folder / "signalled"
    sender = stage.python_as(stage.mallory, STOP_READERS, over, stage.service.pid)
    ended = stage.await_passes("logs", 3, 90)
    over.touch()
    count = int(sender.communicate(timeout=30)[0] or 0)
    harm = [] if ended else ["the check `logs` did not come to its end in 90 s"]
    harm += [] if count else ["no process was met, so that nothing was tried"]
    status = json.loads(stage.get("/api/v1/jobs", stage.alice.name)[1] or "{}")
    harm += [] if "alitrain" in json.dumps(status) else ["alice's training is not seen any more"]
    cores = [*stage.folder.rglob("core*"), *stage.mallory.home.glob("core*")]
    return Outcome(count, [*harm, *(f"a core: {core}" for core in cores if core.is_file())])


def restart_under_attack(stage: Stage) -> Outcome:
    """The service is killed, started anew and told to read its file again while all goes on: what
    alice was told stays, once."""
    service = stage.service
    assert service
    service.kill9()
    stage.run_service()
    assert stage.service
    for _ in range(5):
        stage.service.signal(1)
        time.sleep(0.5)
    harm = [] if stage.await_passes("logs", 2, 90) else ["no pass ended after the restart"]
    told = [m for m in list(stage.book) if "alitrain" in json.dumps(m)]
    # The flood has done its work: what comes next need not wait behind it.
    end = "squeue -h -o '%A %j' | sed -n 's/ mal\\(flood\\|array\\).*//p' | xargs -r scancel"
    stage.lab.run(["sh", "-c", end], user=stage.mallory)
    return Outcome(6, [*harm, *_find_repeats(told)])


def _find_repeats(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """A beginning that was told although its end was not. One message may come twice after a kill: it
    bears the same key then. That a log was being read at the kill is news, and so is its end."""
    found: list[str] = []
    status: dict[tuple[str, str], str] = {}
    for m in {str(m["key"]): m for m in messages}.values():
        about = (str(m["check"]), str(m["subject"]))
        if m["reason"] == "firing" and status.get(about) == m["status"]:
            found.append(f"began twice: {about}")
        status[about] = str(m["status"])
    return found
