"""What an ordinary user tries at the page, the processes and the kernel's log."""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
import time
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from sentinel.alerting.signed_links import LinkClaim, LinkSigner
from sentinel.clock import SystemClock
from sentinel.gpu import xid
from sentinel.nodes import script
from sentinel.nodes.probe import ProbeRequest, kernel
from sentinel.store.spare_journals import JournalDir
from sentinel.web.api import LIST_ENDPOINTS
from tests.hostile.stage import LINK_SECRET, SECRET, TOKEN, Outcome, Stage
from tests.user_files.test_identity import in_child

WATCH_PROCESSES = """
import os, sys, time
words, looks = [bytes.fromhex(w) for w in sys.argv[2:]], 0  # its own arguments are none of sentinel's
found = set()
while not os.path.exists(sys.argv[1]):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ", "maps", "mem"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    data = file.read(2**16) if name != "mem" else b""
            except OSError:
                continue
            looks += 1
            found |= {f"{name} of a process shows {w.decode()}" for w in words if w in data
                      and int(pid) != os.getpid()}
    time.sleep(0.05)
print(looks, *found, sep="\\n")
"""

WATCH_ARGUMENTS = """
import os, re, subprocess, sys
over, job = sys.argv[1], sys.argv[2]
mark = re.compile(rb"x[A-Za-z0-9+/]{11}(?=[|;.])")
control = subprocess.Popen(["scontrol"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
seen, questions, hits = set(), 0, 0
while not os.path.exists(over):
    for pid in [name for name in os.listdir("/proc") if name.isdigit() and name not in seen]:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
        except OSError:
            continue
        if not words.partition(b"\\0")[0].endswith(b"squeue"):
            continue
        seen.add(pid)
        questions += 1
        if found := mark.search(words):
            hits += 1
            os.write(control.stdin.fileno(), b"update JobId=%s Comment=%s|\\n" % (job.encode(), found[0]))
print(questions, hits)
"""

KERNEL_LINES = [
    "overlayfs: failed to resolve '/tmp/NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.': -2",
    "process 'NVRM: Xid (PCI:0000:3b:00): 48, pid=12, name=x, DBE' started with executable stack",
    "overlayfs: x\nNVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "python[99]: segfault at 0 ip 00 sp 00 error 4 in NVRM: Xid (PCI:0000:3b:00): 79, pid=1, x[400+1]",
    "usb 1-1: Product: \\x0aNVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.",
    "NVRM: Xid (PCI:[1234]: segfault at 0 ip 0000000000000000 sp 00007ffd error 6",
]


KERNEL_NAMES = [
    "amdgpu: a",
    "amdgpu: GPU Rec",
    "NVRM: Xid (PCI:",
    "[drm:a [amdgpu",
    "nvidia-nvswitch",
]
KERNEL_FILES = ["GPU will not be initialized", "1 uncorrectable hardware errors detected in umc block",
                "GPU Recovery Failed: -22", "x\nNVRM: Xid (PCI:0000:10:00): 79, pid=1"]  # fmt: skip
"""15 bytes of a program's name, and the file in which it crashes: fs/proc, mm/memory.c (segfault)."""

KERNEL_FORMS = {"kmsg\n6,2,12000000,-;": "\\x0a", "syslog\n<6>[   12.000000] ": "\n<6>[   12.000000] ",
                "indented\n[   12.000000] ": "\n               "}  # fmt: skip
"""How a node answers: the source with the beginning of a line of level info, and what a newline becomes."""


def hold_connections(stage: Stage) -> Outcome:
    """250 connections from 127/8 with headers, event streams or bodies that do not end."""
    starts = {
        "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-",
        "streams": b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "bodies": b"POST /alerts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\na",
    }
    harm, tries = [], 0
    for what, start in starts.items():
        held: list[socket.socket] = []
        for n in range(250):
            try:
                line = socket.create_connection(
                    ("127.0.0.1", stage.port), 2, (f"127.0.{2 + n // 200}.{1 + n % 200}", 0)
                )
                held.append(line)
                line.sendall(start)
            except OSError:
                continue
            tries += 1
        for path in ("/healthz", "/", "/metrics") * 3:
            status, _ = stage.get(path, "root")
            harm += [f"{path} answered {status} beside slow {what}"] if status != 200 else []
        for line in held:
            line.close()
    return Outcome(tries, harm)


def unpack_bodies(stage: Stage) -> Outcome:
    """Small bodies that unpack to a gigabyte, and what comes behind a tunnel that nobody opens."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(2**10)) + packer.flush()
    head = f"Host: localhost\r\nContent-Encoding: deflate\r\nContent-Length: {len(packed)}\r\n\r\n"
    asked = [
        f"POST {path} HTTP/1.1\r\n{head}".encode() + packed for path in ("/nowhere", "/alerts")
    ]
    asked.append(b"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n" + bytes(2**20))

    def send(text: bytes) -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", stage.port), 5) as line:
            line.sendall(text)
            line.recv(1000)

    with ThreadPoolExecutor(30) as pool:
        sent = list(pool.map(send, asked * 10))
    well = stage.get("/healthz")[0] == 200
    return Outcome(len(sent), [] if well else ["/healthz does not answer"])


def read_arguments(stage: Stage) -> Outcome:
    """Mallory reads the arguments of each squeue, and writes its mark into her job's comment before
    slurmctld is asked: the row falls to pieces, or forges another one."""
    job = stage.lab.sbatch("exec sleep 500", name="argmark", user=stage.mallory, output="/dev/null")
    over = stage.folder / "arguments-are-read"
    env = ["env", *(f"{name}={text}" for name, text in stage.lab.env.items())]
    argv = ["/usr/bin/python3", "-I", "-c", WATCH_ARGUMENTS, str(over), job]
    reader = stage.start_as(stage.mallory, [*env, *argv])
    ended = stage.await_passes("jobs", 2, 90)
    over.touch()
    questions, hits = map(int, reader.communicate(timeout=30)[0].split())
    told = [line for line in stage.book if "in the form asked for" in json.dumps(line)]
    harm = [f"{hits} marks were read"] if hits else []
    harm += [] if ended else ["the check did not come to its end"]
    return Outcome(questions, [*harm, *(["squeue's answer was not understood"] if told else [])])


def look_as_another(stage: Stage) -> Outcome:
    """Pages of alice's training as mallory, and as names that are nearly alice's or an administrator's."""
    alice = stage.alice.name
    subject, shown = f"{alice}/alitrain", str(stage.alice.home)
    one = f"check=logs&subject={subject}"
    pages = ["/alerts", "/files", "/audit", "/api/v1/alerts", "/api/v1/jobs", "/api/v1/incidents",
             f"/jobs/one?{one}", f"/jobs/one.json?{one}", f"/files/one?check=logs&path={subject}"]  # fmt: skip
    names = [stage.mallory.name, alice.upper(), f"{alice},root", "%72oot", "ROOT", ""]
    harm = [f"{who!r} sees a path of alice's at {page}"
            for who in names for page in pages if shown in stage.get(page, who)[1]]  # fmt: skip
    if not any(shown in stage.get(page, alice)[1] for page in pages):
        harm.append("alice does not see her own path, so that nothing was tried")
    return Outcome(len(names) * len(pages), harm)


def look_at_quotas(stage: Stage) -> Outcome:
    """What alice may use and uses, on each page and in each table."""
    one = f"/files/one?check=disk&path={stage.alice.home.parent}"
    pages = ["/", "/alerts", "/files", one, *(f"/api/v1/{name}" for name in LIST_ENDPOINTS)]
    theirs = f"user:{stage.alice.name}"
    ended = [stage.await_passes(check, 1) for check in ("disk", "quotas")]
    harm = [] if all(ended) else ["a check did not come to its end"]
    for page in pages:
        for name in (stage.mallory.name, "nobody", ""):
            if theirs in stage.get(page, name)[1]:
                harm.append(f"{name or 'a stranger'} sees alice's quota on {page}")
    for page in (one, "/api/v1/disks"):
        seen = stage.get(page, "root")[1]
        harm += [] if theirs in seen else [f"the administrator does not see it on {page} either"]
    own = stage.get("/api/v1/disks", stage.mallory.name)[1]
    harm += [] if f"user:{stage.mallory.name}" in own else ["the user's own is not shown"]
    return Outcome(len(pages) * 3, harm[:5])


def forge_links(stage: Stage) -> Outcome:
    """Links of messages with each bit changed, another end, another alert, another secret, replayed
    with another method."""
    ids = [str(m["alert"]) for m in stage.book if m.get("alert")]
    if not ids:
        return Outcome(0, ["there is no alert, so that nothing was tried"])
    chance, now = random.Random(1), SystemClock().now()
    claim = LinkClaim("ack", ids[-1], "book", now.wall // 1_000_000 + 3600)
    right = LinkSigner(f"http://127.0.0.1:{stage.port}", LINK_SECRET.encode(), 3600.0)
    wrong = LinkSigner(f"http://127.0.0.1:{stage.port}", b"another secret of mallory", 3600.0)
    token = right.make_token(claim)
    raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
    tokens = [
        wrong.make_token(claim),
        right.make_token(LinkClaim("ack", ids[-1], "book", 1)),
        "",
        "a" * 5000,
    ]
    for _ in range(100):
        at = chance.randrange(len(raw) * 8)
        bent = bytearray(raw)
        bent[at // 8] ^= 1 << at % 8
        tokens.append(urlsafe_b64encode(bent).decode().rstrip("="))
    harm = []
    for one in tokens:
        status, text = stage.ask("POST", f"/a/{one}/", {"Host": "localhost"}, "who=mallory")
        if status == 200 and "Acknowledged" in text:
            harm.append("a forged link was believed")
        time.sleep(0.51 if status == 429 else 0)
    return Outcome(len(tokens), harm[:3])


def replay_links(stage: Stage) -> Outcome:
    """A link is opened by what scans mails, pressed in a loop under other names, after its end, and for
    an alert that is over: one acknowledgement, told once."""
    own = f"{stage.alice.name}/alitrain"  # mallory has jobs with this name in theirs
    found = [m for m in stage.book if m["subject"] == own and m["reason"] == "firing"]
    if not found:
        return Outcome(0, ["alice's training is not told, so that nothing was tried"])
    alert, hour = str(found[-1]["alert"]), SystemClock().now().wall // 1_000_000 + 3600
    signer = LinkSigner(f"http://127.0.0.1:{stage.port}", LINK_SECRET.encode(), 3600.0)

    def press(method: str, claim: LinkClaim, who: str = "") -> str:
        path = f"/a/{signer.make_token(claim)}/"
        headers = {"Host": "localhost", "Content-Type": "application/x-www-form-urlencoded"}
        while (answer := stage.ask(method, path, headers, who))[0] == 429:
            time.sleep(0.5)
        return answer[1]

    def count() -> int:
        return sum(m["alert"] == alert and m["reason"] == "ack" for m in stage.book)

    right = LinkClaim("ack", alert, "book", hour)
    scanned = [press("GET", right) for _ in range(5)]
    harm = ["opening a link acknowledges"] if count() else []
    harm += (
        [] if "Acknowledged" in press("POST", right, "who=alice") else ["the link does not work"]
    )
    harm += [] if stage.await_passes("logs", 2) else ["the check did not come to its end"]
    again = [press("POST", right, f"who=mallory{n}") for n in range(20)]
    late = [LinkClaim("ack", alert, "book", hour - 3601), LinkClaim("ack", "0" * 12, "book", hour)]
    believed = [press("POST", claim, "who=mallory") for claim in late]
    stage.await_passes("logs", 2)
    harm += [f"it was told {count()} times"] if count() != 1 else []
    harm += ["a link was believed after its end"] if "Acknowledged" in "".join(believed) else []
    return Outcome(len(scanned) + len(again) + len(late) + 1, harm)


class ProcessWatch:
    """Mallory reads arguments and environment of every process on the host, beside all other attacks."""

    def __init__(self, stage: Stage) -> None:
        self._over = stage.folder / "watched"
        words = [word.encode().hex() for word in (TOKEN, LINK_SECRET, SECRET)]
        self._watcher = stage.python_as(stage.mallory, WATCH_PROCESSES, self._over, *words)

    def end(self) -> Outcome:
        self._over.touch()
        told = (self._watcher.communicate(timeout=60)[0] or "0").splitlines()
        return Outcome(int(told[0]), told[1:])


def forge_kernel_lines(stage: Stage) -> Outcome:
    """Names of programs, files and devices that would be a fault of a GPU."""
    harm = [f"an Xid out of {line[:60]!r}" for line in KERNEL_LINES if xid.read([line]).events]
    crashes = [f"{name}[9]: segfault at 0 ip 0 sp 0 error 6 in {file}[1000+10]"
               for name in KERNEL_NAMES for file in KERNEL_FILES]  # fmt: skip
    for (form, newline), crash in itertools.product(KERNEL_FORMS.items(), crashes):
        text = form + crash.replace("\n", newline)
        log = kernel.log(text.split("\n"), "b", None)
        found = xid.read([line.text for line in log.lines], [line.level for line in log.lines])
        harm += [f"an event out of {text[:80]!r}"] if found.events else []
    right = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    harm += [] if xid.read([right]).events else ["the driver's own line is not read"]
    return Outcome(len(KERNEL_LINES) + len(KERNEL_FORMS) * len(crashes), harm)


def ask_without_end(stage: Stage) -> Outcome:
    """Thousands of requests from one client that has no token: who has one is answered."""
    flood = (
        "import http.client, sys, time\nend = time.time() + 10\nn = 0\n"
        "while time.time() < end:\n"
        "    line = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=3)\n"
        "    try:\n        line.request('GET', '/'); line.getresponse().read(); n += 1\n"
        "    except OSError: pass\n    line.close()\nprint(n)\n"
    )
    askers = [stage.python_as(stage.mallory, flood, stage.port) for _ in range(2)]
    harm, end = [], time.monotonic() + 9
    while time.monotonic() < end:
        status, _ = stage.get("/alerts", "root")
        harm += [f"the administrator was answered {status}"] if status != 200 else []
        time.sleep(0.3)
    return Outcome(sum(int(one.communicate(timeout=30)[0] or 0) for one in askers), harm[:3])


def squat_in_tmp(stage: Stage) -> Outcome:
    """The names that a sentinel without root uses for what it cannot write, and as a node's probe."""
    keeper = stage.lab.user("keeper")
    probe = f"/tmp/sentinel-{keeper.uid}.{os.uname().nodename}"
    spare = [f"{folder}/sentinel-{keeper.uid}" for folder in ("/dev/shm", "/tmp")]
    stage.lab.ask(["mkdir", "-m", "777", probe, *spare], user=stage.mallory)
    try:
        mine = str(in_child(keeper.uid, _write_spare_journals)).splitlines()
        harm = [f"obeyed or not named: {line}" for line in mine if stage.mallory.name not in line]
        text = script.text(ProbeRequest(parts=("memory",)), "MARK", 20.0).decode()
        said = stage.lab.run(script.ARGV, user=keeper, stdin=text).stdout
        if "MARK memory ok" not in said or f"belongs to uid {stage.mallory.uid}" not in said:
            harm.append(f"the probe is gone, or does not say who sits there: {said[:200]}")
        for place in (probe, *spare):
            harm += [f"{place} was used"] if any(Path(place).iterdir()) else []
        return Outcome(3, harm)
    finally:
        stage.lab.run(["sh", "-c", f"rm -rf {probe}* {' '.join(f'{s}*' for s in spare)}"])


def _write_spare_journals() -> str:
    said = []
    for folder in ("/dev/shm", "/tmp"):
        place = JournalDir(folder, "journal-hostile", shared=True)
        place.require_folder()
        place.journal.restart_with(b"what could not be written")
        right = place.journal.read_records() == [b"what could not be written"]
        said.append(f"{place.squatter if right else 'nothing was kept'}")
    return "\n".join(said)
