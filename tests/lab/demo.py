"""A night on a real cluster, told on the terminal as it happens; ends by itself.

A training job runs and dies, the alert and the mail come, it is submitted again, the resolved
message comes. What is seen between the headings is sentinel's own output.
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.lab.cluster import Lab
from tests.lab.smtp import Mail, SmtpServer
from tests.lab.tied import tied
from tests.lab.waiting import wait_until

JOB = "llm-10b-stage-2"
CONFIG = """\
cluster: demo
state: {folder}/state

checks:
  training:
    kind: job
    every: 2s
    for: 0s
    name: {job}
    queued: 0
  scratch:
    kind: fs
    every: 10s
    paths: [/]
    warn: {{free: 1MB}}

channels:
  screen: {{kind: console}}
  oncall:
    kind: email
    to: [oncall@example.org]
    from: sentinel@example.org
    host: 127.0.0.1
    port: {port}
    security: none
"""
TRAINING = """\
for step in 1 2 3 4 5 6 7 8; do
  echo "iteration ${step}00 loss 2.$((9 - step))"
  sleep $2
done
[ "$1" = survives ] && exec sleep 600
echo "RuntimeError: CUDA error: an illegal memory access was encountered" >&2
exit 1
"""


class Narrator:
    """Headings with the seconds since the start, and sentinel's lines indented below them.

    `pace`: 1 leaves a person time to read, 0 does not.
    """

    def __init__(self, pace: int) -> None:
        self.pace = pace
        self._begin = time.monotonic()
        self._colour = sys.stdout.isatty()

    def heading(self, text: str) -> None:
        line = f"[{time.monotonic() - self._begin:3.0f} s] {text}"
        print(f"\n\033[1;36m{line}\033[0m" if self._colour else f"\n{line}", flush=True)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds * self.pace)

    def show(self, text: str) -> None:
        for line in text.rstrip("\n").splitlines():
            print(f"    {line}", flush=True)


class Watchdog:
    """`sentinel run`, its lines shown as they come."""

    def __init__(self, config: Path, lab: Lab, tell: Narrator) -> None:
        self._tell = tell
        self._process = subprocess.Popen(
            tied([sys.executable, "-m", "sentinel", "run", "-c", str(config)]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**lab.env, "PYTHONUNBUFFERED": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM, SIGKILL where that does not end it; the exit code."""
        self._process.terminate()
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait(10)
        finally:
            self._reader.join(5)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._tell.show(line)


def main(*, fast: bool = False) -> int:
    """0 when everything came as promised, 1 when something did not."""
    tell = Narrator(0 if fast else 1)
    with tempfile.TemporaryDirectory(prefix="sentinel-demo-") as name:
        tell.heading("A Slurm cluster of four nodes with eight GPUs each starts on this machine")
        with Lab() as lab, SmtpServer(Path(name)) as smtp:
            tell.show(f"Its network is {lab.subnet}: nobody on this machine had an address there.")
            tell.show(lab.ask(["sinfo"]))
            missing = play(lab, smtp, Path(name), tell)
    for what in missing:
        tell.heading(f"This did not come: {what}")
    tell.heading("The cluster is removed, nothing is left of it")
    return 1 if missing else 0


def play(lab: Lab, smtp: SmtpServer, folder: Path, tell: Narrator) -> list[str]:
    """The night itself; what was promised and did not come."""
    tell.pause(4)
    first = submit(lab, "dies", tell.pace)
    tell.heading(f"01:00  Training runs as job {first}; sentinel watches it with this file")
    config = folder / "sentinel.yaml"
    config.write_text(CONFIG.format(folder=folder, job=JOB, port=smtp.port))
    tell.show(config.read_text())
    tell.pause(6)
    tell.heading("$ sentinel run -c sentinel.yaml")
    watchdog = Watchdog(config, lab, tell)
    try:
        return night(lab, smtp, first, watchdog, tell)
    finally:
        code = watchdog.stop()
        tell.heading(f"Sentinel was asked to stop (SIGTERM): exit code {code}")


def night(lab: Lab, smtp: SmtpServer, first: str, watchdog: Watchdog, tell: Narrator) -> list[str]:
    """From the death of the first job to the mail about the second."""
    lab.wait_state(first, "FAILED", limit=60)
    died = time.monotonic()
    tell.heading(f"03:12  Job {first} has died, and nothing is queued behind it")
    if not arrives(smtp, 1, watchdog):
        return ["the mail about the dead training"]
    tell.heading(f"The mail was in the mail server's hands {time.monotonic() - died:.0f} s later")
    tell.show(letter(smtp.mails[0]))
    tell.pause(15)

    second = submit(lab, "survives", tell.pace)
    tell.heading(f"03:20  Somebody reads it and submits the training again: job {second}")
    if not arrives(smtp, 2, watchdog):
        return ["the resolved mail"]
    tell.pause(1)
    tell.heading("The resolved mail has come too")
    tell.show(letter(smtp.mails[1]))
    tell.pause(12)
    return summary(smtp, first, second, tell)


def summary(smtp: SmtpServer, first: str, second: str, tell: Narrator) -> list[str]:
    """What a reader takes along; complains where the mails do not form one thread."""
    bad, good = (mail.message["References"] for mail in smtp.mails[:2])
    one_thread = bad is not None and bad == good
    tell.heading(f"Summary: job {first} died, the mail came, job {second} runs, all is well again")
    tell.show(f"mails: {len(smtp.mails)}   in one thread: {'yes' if one_thread else 'no'}")
    tell.pause(3)
    return [] if one_thread else ["both mails in one thread"]


def submit(lab: Lab, fate: str, pace: int) -> str:
    """The training on all four nodes; its job id."""
    script = lab.work / "train.sh"
    script.write_text("#!/bin/sh\n" + TRAINING)
    options = [f"--job-name={JOB}", "--nodes=4", "--gres=gpu:8", "--time=12:00:00"]
    seconds = "1.5" if pace else "0.3"
    return lab.ask(["sbatch", "--parsable", *options, str(script), fate, seconds]).strip()


def arrives(smtp: SmtpServer, count: int, watchdog: Watchdog, limit: float = 40.0) -> bool:
    """Whether so many mails came within the limit (seconds)."""
    try:
        wait_until(lambda: len(smtp.mails) >= count or not watchdog.running, "mail", limit)
    except TimeoutError:
        return False
    return len(smtp.mails) >= count


def letter(mail: Mail) -> str:
    """Headers a person looks at, and the text part."""
    body = mail.message.get_body(("plain",))
    text = body.get_content().strip() if body else ""
    head = "\n".join(f"{name}: {mail.message[name]}" for name in ("To", "Subject"))
    return "\n".join(f"| {line}" for line in f"{head}\n\n{text}".splitlines())
