"""A place with programs and files that one check asks, one of them spoilt; and one look at it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from sentinel.alerting.observations import RunOutcome
from sentinel.clock import SystemClock
from sentinel.core.model import Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckCommon, CheckConfig
from sentinel.core.values import Duration
from sentinel.engine.runner import CheckRunner
from sentinel.nodes.reach import Reach
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.ssh import Ssh
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.snapshot import SlurmSnapshot
from tests.lab.fuse import Fuse

NOTHING, EMPTY, MIDDLE, RECORD = "nothing there", "empty", "cut in the middle", "cut at a record"
ERROR, DENIED, HANG, NEWER = "an error text", "no permission", "a hang", "a newer word"
FAULTS = (NOTHING, EMPTY, MIDDLE, RECORD, ERROR, DENIED, HANG, NEWER)
"""What stands in the place of a source. Programs end with 0 in all of them but the first, the
sixth and the hang."""

NOBODY = 65534
SAYS = "error: Unable to contact the server (connect failure)\n"

# `§` in an answer becomes the nonce of the call: the end of squeue's format, or sacct's.
PROGRAM = """\
#!/bin/sh
PATH=/usr/bin:/bin
set -- "$@" "$SQUEUE_FORMAT$SQUEUE_FORMAT2"
for word; do case $word in *%o*) mark=${{word##*%o}};; *STDOUT:*) mark=${{word##*STDOUT:}};; \
*NumTasks:*) mark=${{word##*NumTasks:}};; \
--delimiter=*) mark=${{word#--delimiter=}}.;; esac; done
case "$*" in
{answers}esac
exit 1
"""
# The last two words are node and command, as for ssh: the node has the programs of this place.
SSH = """\
#!/bin/sh
for word; do node=$command command=$word; done
PATH={bin}:/usr/bin:/bin
eval "$command"
"""
# A probe's whole answer, MARK where its mark is.
CANNED = """\
#!/bin/sh
PATH=/usr/bin:/bin
read -r mark
while read -r line; do case $line in mark=*) inner=${{line#mark=}}; break ;; esac; done
printf '\\n%s begin\\n' "$mark" | tee /dev/stderr
sed "s/MARK/$inner/" {answer}
printf '\\n%s end 0\\n' "$mark"
"""


class World:
    """What `target` names is spoilt by `fault`; empty: all is as it should be asked.

    `home` holds what the check is pointed at; `memory` is what an earlier look left.
    """

    def __init__(self, folder: Path, target: str = "", fault: str = "") -> None:
        self.folder, self.target, self.fault = folder, target, fault
        self.home, self.bin, self._data = folder / "home", folder / "bin", folder / "data"
        for place in (self.home, self.bin, self._data):
            place.mkdir(exist_ok=True)
        self._answers: dict[str, list[tuple[str, str]]] = {}
        self._after: list[Callable[[], None]] = []
        self.memory: Mapping[str, Any] = {}
        self.ledger: Any = None
        self.says("id", "uid=0(root) gid=0(root)\n", newer="")

    @property
    def now(self) -> float:
        """Seconds."""
        return time.time()

    def says(
        self, name: str, out: str, *, when: str = "", newer: str, record: str = "\n", code: int = 0
    ) -> None:
        """A program: what it prints where its arguments hold the words `when`."""
        label = f"{name} {when}".strip()
        fault = self.fault if label == self.target else ""
        file = self._data / f"{len(list(self._data.iterdir()))}"
        file.write_text(spoilt(out, fault, record, newer))
        code = 0 if fault in (EMPTY, MIDDLE, RECORD, ERROR) else code
        does = "exec sleep 60" if fault == HANG else f'sed "s|§|${{mark%.}}|g" {file}; exit {code}'
        self._answers.setdefault(name, []).insert(0, (when, does))
        if fault == NOTHING:
            self._after.append(lambda: (self.bin / name).unlink(missing_ok=True))
        if fault == DENIED:
            self._after.append(lambda: (self.bin / name).chmod(0o644))

    def node(self, probe: str = "", *, newer: str = "") -> None:
        """A way to nodes: they answer a probe so, or with the programs of this place."""
        fault, ssh = (self.fault if self.target == "ssh" else ""), SSH
        if probe or fault not in ("", HANG, DENIED, NOTHING):
            (self.folder / "probe").write_text(spoilt(probe, fault, "\nMARK ", newer))
            ssh = CANNED
        text = {
            NOTHING: '#!/bin/sh\necho "ssh: connect to host n1 port 22: No route to host" >&2; exit 255\n',
            DENIED: '#!/bin/sh\necho "n1: Permission denied (publickey)." >&2; exit 255\n',
            EMPTY: "#!/bin/sh\nexit 0\n",
            ERROR: f"#!/bin/sh\nprintf '%s' '{SAYS}'\nexit 0\n",
            HANG: "#!/bin/sh\nexec /bin/sleep 60\n",
        }.get(fault, ssh.format(bin=self.bin, answer=self.folder / "probe"))
        (self.bin / "ssh").write_text(text)
        (self.bin / "ssh").chmod(0o755)

    def file(self, path: Path, text: str, *, newer: str, record: str = "\n") -> None:
        """A file; spoilt where its name is the target."""
        path.parent.mkdir(parents=True, exist_ok=True)
        fault = self.fault if path.name == self.target else ""
        path.write_text(spoilt(text, fault, record, newer))
        if fault == NOTHING:
            path.unlink()
        if fault == HANG:
            path.unlink()
            os.mkfifo(path)
        if fault == DENIED:
            self._after.append(lambda: _close(path))

    def tree(self, path: Path, *names: str, age: float = 0.0, newer: str = "new") -> Path:
        """A folder of files of so many seconds' age; its name `folder` is the target."""
        fault = self.fault if self.target == "folder" else ""
        path.mkdir()
        some = {NOTHING: (), EMPTY: (), RECORD: names[:-1], NEWER: (newer,), MIDDLE: names[:1]}
        for name in some.get(fault, names):
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("x" * 5000)
            os.utime(file, (self.now - age,) * 2)
        if fault in (NOTHING, ERROR):
            path.rmdir() if fault == NOTHING else _replace(path, SAYS)
        if fault == DENIED:
            self._after.append(lambda: _close(path))
        if fault == HANG:
            self._hangs = Fuse(path)
            self._hangs.hold("opendir", "getattr", "lookup", "statfs", "open")
        return path

    def look(self, kind: str, plugin: Any, **more: Any) -> RunOutcome:
        """One run of the check as a service makes it, with the memory of the one before."""
        path, tools = os.environ["PATH"], self._tools()
        self._finish()
        limit = (
            2.0 if self.fault == HANG else 20.0
        )  # what does not hang has to answer on a busy machine
        env = {**os.environ, "PATH": str(self.bin)}
        settings = RemoteSettings(timeout=Duration(20), connect_timeout=Duration(1))
        users = plugin.jobs_of()
        clock = SystemClock()
        context = Context(
            name="c",
            limit=3 * limit,
            now=clock.now(),
            slurm=SlurmSnapshot(
                SlurmClient(limit=limit, environ=env), clock, users=users, max_age=5
            ),
            remote=Reach(Ssh(settings, environ=env), fanout=8, patience=limit),
            memory=self.memory,
            logbook=self.ledger,
            **more,
        )
        os.environ["PATH"] = f"{self.bin}:{tools}"
        check: Any = CheckConfig(name="c", common=CheckCommon(kind=kind), plugin=plugin)
        try:
            return CheckRunner().run(check, context)
        finally:
            os.environ["PATH"] = path

    def _tools(self) -> Path:
        """All that this machine has and this place has not a program of its own for."""
        tools = self.folder / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("stat", "realpath", "find", "cat", "tail", "dd", "getent", "timeout"):
            if name not in self._answers:
                with suppress(FileExistsError):
                    (tools / name).symlink_to(f"/usr/bin/{name}")
        return tools

    def close(self) -> None:
        """What hangs is let go."""
        if hasattr(self, "_hangs"):
            self._hangs.close()

    def _finish(self) -> None:
        for name, answers in self._answers.items():
            lines = "".join(f'*"{when}"*) {does} ;;\n' for when, does in answers)
            (self.bin / name).write_text(PROGRAM.format(answers=lines))
            (self.bin / name).chmod(0o755)
        for change in self._after:
            change()


def spoilt(text: str, fault: str, record: str, newer: str) -> str:
    """The text as that fault leaves it: records end with (or begin behind) `record`."""
    if fault == MIDDLE:
        at = text.rstrip().rfind(record, 0, -1) + len(record)
        return text[: (at + len(text.rstrip())) // 2]
    if fault == RECORD:
        at = text.rstrip("\n").removesuffix(record.rstrip("\n")).rfind(record)
        return text[: at + (len(record) if record.endswith("\n") else 1)] if at >= 0 else ""
    return {EMPTY: "", ERROR: SAYS, NEWER: newer}.get(fault, text)


def _close(path: Path) -> None:
    """Root may read all: who looks from here on is somebody else."""
    path.chmod(stat.S_IFMT(path.stat().st_mode))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def _replace(path: Path, text: str) -> None:
    for root, _, names in os.walk(path, topdown=False):
        for name in names:
            os.unlink(os.path.join(root, name))
        os.rmdir(root)
    path.write_text(text)


class Case(Struct, frozen=True, kw_only=True):
    """A source of a kind, in a world in which something is wrong.

    source: its place in the kind's SOURCES. asked: what is spoilt (World.says, file, tree, node).
    truth: what is wrong. believed: faults that nobody can tell from the truth, and why.
    look: makes the world and looks.
    """

    kind: str
    source: int
    asked: str
    truth: str
    look: Callable[[World], RunOutcome]
    believed: Mapping[str, str] = {}


def worst(outcome: RunOutcome) -> Status:
    """Of all findings."""
    return max((f.status for f in outcome.findings), key=lambda s: s.rank)
