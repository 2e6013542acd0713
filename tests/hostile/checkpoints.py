"""What an ordinary user writes into a folder of checkpoints that root's service judges."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.stage import Outcome, Stage
from tests.lab.waiting import wait_until

WRITE = """
import os, sys
os.chdir(sys.argv[1])
def put(path, text="w"):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
for n in (1, 2):
    put(f"step1/model-0000{n}-of-30000000.safetensors")
for n in range(4000):
    put(f"step2/x{n % 1000}_rank{n}.pt")
os.makedirs("step3")
os.chdir("step3")
for _ in range(600):
    os.mkdir("rank1")
    os.chdir("rank1")
for n in range(400):
    open(f"x{n}.pt", "w").close()
os.chdir(sys.argv[1])
for n in range(4):
    put(f"step4/{n}.index.json", "[" + "[[[]]]," * 4_000_000 + "[]]")
os.mkdir("../over")
"""
SET_TIMES = """
import os, subprocess, sys
for number, moment in enumerate(map(int, sys.argv[2:])):
    for step in (1, 2, 3):
        folder = f"{sys.argv[1]}/time{number}/ckpt/step{step}"
        os.makedirs(folder)
        open(f"{folder}/w", "w").write("weights")
        subprocess.run(["touch", "-d", f"@{moment}", f"{folder}/w", folder])
print("set")
"""
TIMES = (2**62, -(2**62), 2**63 - 1, 253_402_300_801)
PLACES = 2 + 4000 + 400 + 4
MAX_MEMORY_KIB = 2**20
"""Of the service at its most; it has 150,000 beside all other attacks. The names of step1 made it 2,000,000."""


def set_times(stage: Stage) -> Outcome:
    """Checkpoints with times that no calendar holds, in a file system that keeps them: those of all other
    users are judged as before."""
    folder = f"/dev/shm/{stage.mallory.name}-times"
    done = stage.python_as(stage.mallory, SET_TIMES, folder, *TIMES).communicate(timeout=30)[0]
    try:
        for number in range(len(TIMES)):
            name = f"maltime{number}"
            (stage.mallory.home.parent / name).symlink_to(f"{folder}/time{number}")
            stage.lab.sbatch("exec sleep 500", name=name, user=stage.mallory, output="/dev/null")
        ended = stage.await_passes("saves", 3, 120)
    finally:
        stage.lab.run(["rm", "-rf", folder])
    harm = [] if ended and done else ["the check `saves` did not come to its end"]
    told = [m["summary"] for m in stage.book if (m["check"], m["subject"]) == ("saves", "")]
    harm += [
        f"it sees nobody's: {text[:200]}" for text in told if text.startswith("internal error")
    ]
    return Outcome(len(TIMES), harm)


def promise_parts(stage: Stage) -> Outcome:
    """Names that promise thirty million parts, or lie deep, or lack each other's ranks; indexes of brackets.
    The check comes to its end, and the service stays small."""
    folder = stage.mallory.home / "parts" / "ckpt"
    stage.lab.run(["mkdir", "-p", str(folder)], user=stage.mallory)
    (stage.mallory.home.parent / "malparts").symlink_to(folder.parent)
    stage.python_as(stage.mallory, WRITE, folder).communicate(timeout=90)
    stage.lab.sbatch("exec sleep 500", name="malparts", user=stage.mallory, output="/dev/null")
    wait_until((folder.parent / "over").exists, "the files", 30)
    ended = stage.await_passes("saves", 4, 120)
    harm = [] if ended else ["the check `saves` did not come to its end"]
    assert stage.service is not None
    status = Path(f"/proc/{stage.service.pid}/status").read_text()
    most = int(status.partition("VmHWM:")[2].split()[0])
    harm += [f"the service took {most >> 10} MiB"] if most > MAX_MEMORY_KIB else []
    return Outcome(PLACES, harm)
