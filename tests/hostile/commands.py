"""What lies in wait for commands that root types, and for the servers and boards that they ask."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress

from sentinel.clock import SystemClock
from sentinel.nodes.probe import sections
from tests.checks.sensors.test_sensors import CPU, Night, Way, hwmon
from tests.hostile.lure import COMMANDS, lay_lures, make_typed
from tests.hostile.stage import SECRET, Outcome, Stage
from tests.lab.service import Service
from tests.store.false_server import listening
from tests.store.test_false_postgres import ENDLESS, send_without_end

SWAP_LINKS = """
import os, sys
folder, names, target = sys.argv[1], sys.argv[2].split(","), sys.argv[3]
os.chdir(folder)
count = 0
while not os.path.exists("over"):
    for name in names:
        try:
            os.symlink(target, name)
            count += 1
        except OSError:
            pass
    for name in os.listdir("."):
        try:
            with open(f"{name}/copy" if os.path.isdir(name) else name) as file:
                file.read(1) and not os.path.islink(name) and open("read", "w").close()
            os.rename(name, name + ".gone")
        except OSError:
            pass
print(count)
"""
READ_ALERTS = """
import resource, sys
from sentinel.core.errors import StoreError
from sentinel.store import measured_answers
from sentinel.store.postgres import PostgresBackend
from sentinel.store.sql import SqlStore
measured_answers.MAX_ANSWER_BYTES = 32 * 2**20  # an eighth: it is the same way
try:
    SqlStore(PostgresBackend(sys.argv[1])).read_alerts()
except StoreError as error:
    print(type(error).__name__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
MAX_ANSWER_RSS_MIB = 400
"""Of a command that reads an answer without end; 3,000 in 12 seconds before there was a limit. libpq doubles
its buffer, so how much it has read before the limit is seen depends on how busy the machine is."""
HOURLY = 4
"""Messages within an hour."""
ONE_ROW_MIB = 1024
"""What the longest row of them announces. libpq makes room for all of it and reads on while the server is as
fast as it is (fe-misc.c, `pqReadData`), so nobody can stop it before the row's end."""

TICK_LIMIT_S = 240.0
"""A pass takes up to three second looks, of 30 s each for a job that has died; others' die all the time here."""

BOARD_LINES = [
    "Temp\x1b]0;t\x07 | 30h | cr | 29.1 | 90 degrees C",
    "CPU\u202e | 31h | ok | 29.2 | <script>alert(1)</script>",
    "NVRM: Xid (PCI:0000:3b:00): 79 | 32h | ok | 29.3 | GPU has fallen off the bus",
    "Fan1 | 33h | nr | 29.4 | " + "x" * 100_000,
    "MARK memory ok | 34h | ok | 29.5 | \x9b2J",
    *(f"S{number} | 35h | ns | 7.1 | Word{number}" for number in range(2000)),
    *(f"event {number} | \x1b[2J | Power Unit #0x01 | " + "y" * 5000 for number in range(50)),
]


def lure_commands(stage: Stage) -> Outcome:
    """Root types commands in a folder of mallory's, where modules, programs and a configuration of hers lie
    under every name that one of them might take."""
    folder = stage.mallory.home / "lures"
    folder.mkdir()
    caught = lay_lures(folder)
    env = {"PATH": stage.lab.env["PATH"], **stage.env, "HOME": str(stage.folder)}
    for words in COMMANDS:
        subprocess.run(
            make_typed(words), cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
    harm = [f"root ran hers: {path.name}" for path in caught.iterdir()]
    return Outcome(len(COMMANDS), harm)


def wait_at_copies(stage: Stage) -> Outcome:
    """Root copies the state into a folder like /tmp while mallory lays links under each name that comes to
    mind, and reads what she can."""
    folder, victim = stage.folder / "shared", stage.folder / "victim"
    folder.mkdir()
    folder.chmod(0o1777)
    victim.write_text("of root\n")
    ends = ("", ".part", ".part-journal", ".part-wal", "-journal", "-wal", "-shm", ".new")
    names = [f"copy{number}.db{end}" for number in range(5) for end in ends if end or number == 4]
    swapper = stage.python_as(stage.mallory, SWAP_LINKS, folder, ",".join(names), victim)
    codes = []
    for number in range(5):
        argv = stage.command("state", "backup", str(folder / f"copy{number}.db"))
        codes.append(stage.lab.run(argv, env=stage.env).returncode)
    (folder / "over").touch()
    count = int(swapper.communicate(timeout=30)[0] or 0)
    harm = [] if victim.read_text() == "of root\n" else ["a link was followed"]
    harm += ["mallory read a copy"] if (folder / "read").exists() else []
    harm += [] if 0 in codes else [f"no copy was made: {codes}"]
    copies = [path for path in folder.glob("copy*.db") if not path.is_symlink()]
    harm += [f"{path.name} is not root's alone" for path in copies if path.stat().st_mode & 0o077]
    return Outcome(count + len(codes), harm)


def deliver_forged_names(stage: Stage) -> Outcome:
    """Messages wait for `deliver`; two of them and one that is killed send them: each comes, none twice but
    what the killed one had written and not marked yet, and no name of hers is more than text."""
    text = (stage.folder / "sentinel.yaml").read_text()
    text = text[: text.index("web:")].replace(f"{stage.folder}/state", f"{stage.folder}/spool")
    text = text.replace("book.jsonl", "delivered.jsonl")
    config = stage.folder / "spool.yaml"
    config.write_text(text)
    config.chmod(0o600)

    def argv(*words: str) -> list[str]:
        return [sys.executable, "-m", "sentinel", *words, "-c", str(config)]

    # What died before the first look is nobody's news: they live until they were seen.
    stage.lab.run(argv("tick", "--all", "--no-deliver"), env=stage.env, limit=TICK_LIMIT_S)
    names = ["\x1b]0;t\x07dlv", "dlv\nb critical", "\u202edlv", "$(id)dlv", "dlv'\";"]
    for name in names:
        stage.lab.run(["sbatch", "-Q", "-o", "/dev/null", f"--job-name={name}", "--wrap", "sleep 9; exit 3"],
                      user=stage.mallory)  # fmt: skip
    deadline = time.monotonic() + TICK_LIMIT_S
    while time.monotonic() < deadline:
        stage.lab.run(argv("tick", "--all", "--no-deliver"), env=stage.env, limit=TICK_LIMIT_S)
        if "dlv" in stage.lab.run(argv("alerts", "list"), env=stage.env).stdout:
            break
    book = stage.folder / "delivered.jsonl"
    harm = ["`tick --no-deliver` sent something"] if book.exists() else []
    env = {**stage.lab.env, **stage.env}

    def begin_delivery() -> subprocess.Popen[bytes]:
        none = subprocess.DEVNULL
        return subprocess.Popen(argv("deliver"), env=env, stdout=none, stderr=none)

    killed = begin_delivery()
    with suppress(subprocess.TimeoutExpired):
        killed.wait(0.7)
    killed.kill()
    killed.wait()

    def read_book() -> str:
        return book.read_text() if book.exists() else ""

    written = {str(json.loads(line)["key"]) for line in read_book().splitlines()}
    for one in [begin_delivery(), begin_delivery()]:
        one.wait(60)
    stage.lab.run(argv("deliver"), env=stage.env, limit=60)
    raw = read_book()
    told = [json.loads(line) for line in raw.splitlines()]
    about = [m for m in told if "dlv" in json.dumps(m)]
    harm += [] if about else ["nothing was delivered, so that nothing was tried"]
    harm += [f"{bad!r} comes out raw" for bad in ("\x1b", "\u202e", "\x07") if bad in raw]
    times = Counter(str(m["key"]) for m in told)
    again = [key for key, count in times.items() if count > 1 + (key in written)]
    harm += [f"{len(again)} came again"] if again else []
    harm += ["a secret was delivered"] if SECRET in raw else []
    return Outcome(len(names) + len(told), harm)


def use_up_the_hour(stage: Stage) -> Outcome:
    """Jobs of mallory's die one after the other, and use up `per_hour` of a channel; alice's dies last."""
    folder = stage.folder / "hour"
    folder.mkdir()
    config, book = folder / "sentinel.yaml", folder / "book.jsonl"
    config.write_text(
        f"state: {folder}/state\nchecks: {{jobs: {{kind: job, match: '...hour.*', users: '*', every: 3s}}}}\n"
        f"channels: {{book: {{kind: file, path: {book}, per_hour: {HOURLY}}}}}\n"
    )
    config.chmod(0o600)
    hers = [f"malhour{number}" for number in range(3 * HOURLY)]
    users = dict.fromkeys(hers, stage.mallory) | {"alihour": stage.alice}
    for number, (name, user) in enumerate(users.items()):
        script = f"sleep {15 + 4 * number}; exit 3"
        stage.lab.sbatch(script, name=name, user=user, output="/dev/null")
    service = Service(folder, ["run", "-c", str(config)], {**stage.lab.env, **stage.env})
    with suppress(AssertionError, TimeoutError), closing(service):
        service.wait_for(lambda: book.exists() and "alihour" in book.read_text(), "alice's", 150)
    told = book.read_text() if book.exists() else ""
    count = sum(name in told for name in hers)
    harm = [] if "alihour" in told else ["alice's death waits for the next hour"]
    harm += [] if 0 < count < len(hers) else [f"{count} of hers were told: no cap was reached"]
    return Outcome(len(hers), harm)


def serve_rows_without_end(stage: Stage) -> Outcome:
    """Mallory sits on the port of a PostgreSQL server that is down, and sends without end."""
    harm = []
    for what in ENDLESS:
        with listening(send_without_end(what, [])) as port:
            url = f"postgresql://sentinel@127.0.0.1:{port}/sentinel"
            done = subprocess.run(
                [sys.executable, "-c", READ_ALERTS, url],
                env={**stage.lab.env, **stage.env}, capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        words = done.stdout.split()
        if len(words) != 2 or words[0] != "ExcessiveAnswer":
            harm.append(f"{what}: {done.stdout or done.stderr[-200:]}")
        elif int(words[1]) > MAX_ANSWER_RSS_MIB + (ONE_ROW_MIB if what == "one row" else 0):
            harm.append(f"{what}: {words[1]} MiB")
    return Outcome(len(ENDLESS), harm)


def write_board_texts(stage: Stage) -> Outcome:
    """What a node's board says of itself is text: of no length, no control character, no other section."""
    began = SystemClock().now().wall
    night = Night(nodes="n[1-2]", ipmi=True)
    report = night.look(Way(hwmon(CPU), sections.ipmi(BOARD_LINES)), one_shot=True)
    text = "".join(f"{f.subject}{f.summary}{f.details}{f.commands}" for f in report.findings)
    harm = [f"{bad!r} comes out raw" for bad in ("\x1b", "\x07", "\u202e", "\x9b") if bad in text]
    harm += [f"{len(text):,} characters are told"] if len(text) > 50_000 else []
    harm += [f"{len(report.findings)} findings"] if len(report.findings) > 60 else []
    took = (SystemClock().now().wall - began) / 1_000_000
    return Outcome(len(BOARD_LINES), [*harm, *([f"it took {took:.0f} s"] if took > 10 else [])])
