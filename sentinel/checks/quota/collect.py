"""What is asked about quotas and targets: which tool, how, and what its answer says.

Each tool is asked for raw units with LC_ALL=C, by a child that can be abandoned. A tool that is
missing, fails, hangs or prints something new raises CannotTell: no quota is never concluded from
no answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.checks.quota.always import ALWAYS
from sentinel.checks.quota.tools.quota import QuotaRow, StorageTarget, UnexpectedQuotaOutput
from sentinel.core.errors import CannotTell
from sentinel.core.mounts import Mount
from sentinel.core.text import shortened, visible
from sentinel.proc.mounts import read_mounts

MOST = 4 << 20
"""Bytes of a tool's answer: a hundred thousand users."""

BY_TYPE = {
    "lustre": "lustre",
    "gpfs": "gpfs",
    "beegfs": "beegfs",
    "ceph": "ceph",
    "fuse.ceph": "ceph",
    "fuse.ceph-fuse": "ceph",
    "zfs": "zfs",
    "btrfs": "btrfs",
    "xfs": "quota",
    "ext4": "quota",
    "ext3": "quota",
    "nfs": "quota",
    "nfs4": "quota",
}
"""The tool for a mount's type, for `measure: quota`."""

TARGETS = frozenset({"lustre", "beegfs"})
PLACES = "/usr/sbin:/sbin:/usr/local/sbin:/usr/lpp/mmfs/bin"
"""Where such tools are, and what ordinary users and cron have not in their PATH."""

CEPH_COUNTS = ("ceph.dir.rbytes", "ceph.dir.rentries")
NO_ATTRIBUTE = "No such attribute"
"""What getfattr(1) says of an attribute that is not set, in strerror(3)'s words for ENODATA."""


_LINUX = ("user", "group", "project")
WHOSE = {
    "quota": _LINUX,
    "repquota": _LINUX,
    "xfs": _LINUX,
    "lustre": _LINUX,
    "gpfs": ("user", "group", "fileset"),
    "beegfs": ("user", "group"),
    "ceph": ("directory",),
    "zfs": ("dataset", *_LINUX),
    "btrfs": ("qgroup",),
}
"""What each tool has quotas of."""


class QuotaQuestion(Struct, frozen=True, kw_only=True):
    """One quota to ask about: where, whose, by when, and what time it is (s UTC)."""

    path: str
    mount: Mount
    kind: str
    name: str
    limit: float
    now: float

    @property
    def owner_name(self) -> str:
        """The name, or who runs this: numbers are understood by all tools. Raises CannotTell
        where nobody is meant."""
        own = {"user": os.getuid, "group": os.getgid}
        if self.name or self.kind in own:
            return self.name or str(own[self.kind]())
        raise CannotTell(f"quotas: name the {self.kind}, as in {self.kind}:NAME")

    @property
    def owner_number(self) -> int:
        """Of that user or group. Raises CannotTell where this machine knows no such name."""
        import grp
        import pwd

        if self.owner_name.isdigit():
            return int(self.owner_name)
        try:
            if self.kind == "user":
                return pwd.getpwnam(self.owner_name).pw_uid
            return grp.getgrnam(self.owner_name).gr_gid
        except KeyError as error:
            raise CannotTell(f"there is no {self.kind} {visible(self.owner_name)} here") from error


def choose_tool(measure: str, mount: Mount) -> str:
    """What to ask about that mount; empty: statfs alone. Raises CannotTell where nothing fits."""
    kind = BY_TYPE.get(mount.type, "")
    if measure == "auto":
        return kind if kind in ALWAYS else ""
    if measure == "quota" and not kind:
        raise CannotTell(
            f"no tool is known for quotas of {visible(mount.type)}; name it in measure"
        )
    return {"statfs": "", "quota": kind}.get(measure, measure)


def ask_quotas(tool: str, question: QuotaQuestion) -> list[QuotaRow]:
    """What the tool says; empty where there is no quota. Raises CannotTell."""
    if question.kind not in WHOSE[tool]:
        known = ", ".join(WHOSE[tool])
        raise CannotTell(f"{tool} knows quotas of a {known}, not of a {question.kind}")
    try:
        return TOOLS[tool](question)
    except UnexpectedQuotaOutput as error:
        raise CannotTell(f"{tool}: {visible(str(error))}") from error


def tool_output(argv: Sequence[str], limit: float) -> str:
    """What a command prints; raises CannotTell where it ends otherwise than well."""
    done = run_quota_tool(argv, limit)
    if done.code:
        raise CannotTell(f"{argv[0]}: {_why_failed(done)}")
    return os.fsdecode(done.out)


def run_quota_tool(argv: Sequence[str], limit: float) -> proc.Done:
    """The end of a command, in no language, found where tools of administrators are."""
    path = f"{os.environ.get('PATH', os.defpath)}:{PLACES}"
    env = {**proc.english_environment(), "PATH": path}
    return proc.run(argv, limit=max(0.1, limit), env=env, max_output=MOST)


def _why_failed(done: proc.Done) -> str:
    text = " ".join(os.fsdecode(done.err or done.out).split())
    return shortened(visible(text), 300) or f"exit code {done.code}"


def _ask_quota(q: QuotaQuestion) -> list[QuotaRow]:
    """quota(1) exits 1 where somebody is over quota, too, and where a server did not answer it
    leaves that file system out: only what it printed tells."""
    from sentinel.checks.quota.tools import linux

    argv = ["quota", "--raw-grace", "--no-wrap", "--hide-device", "--show-mntpoint"]
    done = run_quota_tool([*argv, f"--{q.kind}", "--", q.owner_name], q.limit)
    text = os.fsdecode(done.out)
    if done.code not in (0, 1) or "Disk quotas for" not in text:
        why = f": {_why_failed(done)}" if done.err else ""
        raise CannotTell(
            f"quota: it printed nothing about quotas{why or '; are they switched on?'}"
        )
    found = linux.read_linux_quota(text, q.kind, q.name, {q.mount.point, *_mount_points(q)}, q.now)
    if done.err and not found:
        raise CannotTell(f"quota: {_why_failed(done)}")
    last = text.rstrip().rpartition("\n")[2].split()
    if last[0] in ("Disk", "Filesystem") and last[-1] != "none":
        raise CannotTell("quota: its answer ends before the first file system, and not with none")
    return _only_enforced(found, q)


def _mount_points(q: QuotaQuestion) -> Iterator[str]:
    """Where the same file system is mounted: quota(1) names one place of several."""
    try:
        yield from read_mounts().list_mount_points(q.mount.device)
    except (OSError, ValueError):
        return


def _only_enforced(found: list[QuotaRow], q: QuotaQuestion) -> list[QuotaRow]:
    """XFS counts without holding anybody to a limit where it is mounted so (xfs(5), uqnoenforce)."""
    from sentinel.checks.quota.tools import linux

    counted = {"qnoenforce", f"{q.kind[0]}qnoenforce"} & {*q.mount.options, *q.mount.super_options}
    return [linux.unlimited_quota(one) for one in found] if counted else found


def _ask_repquota(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import linux

    numbers = ["--no-names"] if q.name.isdigit() else []
    argv = ["repquota", "--raw-grace", "--output=csv", f"--{q.kind}", *numbers]
    found = linux.read_repquota(tool_output([*argv, "--", q.mount.point], q.limit), q.kind, q.now)
    if q.mount.type == "xfs":
        found = linux.apply_xfs_defaults(found)
    return _choose_named(_only_enforced(found, q), q)


def _ask_xfs(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import linux

    numbers = "-n" if q.name.isdigit() or not q.name else ""
    report = f"report -{q.kind[0]} -N -b -i {numbers}".strip()
    text = tool_output(["xfs_quota", "-x", "-c", report, "--", q.mount.point], q.limit)
    if not text.strip():  # it exits 0 whatever goes wrong
        raise CannotTell("xfs_quota: it printed nothing; it needs root, and quotas switched on")
    return _choose_named(
        _only_enforced(linux.apply_xfs_defaults(linux.read_xfs_quota(text, q.kind)), q), q
    )


def _ask_lustre(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import lustre

    name = q.name or (_lustre_project(q) if q.kind == "project" else q.owner_name)
    text = tool_output(["lfs", "quota", f"-{q.kind[0]}", name, q.mount.point], q.limit)
    default = _lustre_default(q) if lustre.limits_by_default(text) else ""
    return lustre.read_lustre_quota(text, q.kind, q.name or name * (q.kind == "project"), default)


def _lustre_default(q: QuotaQuestion) -> str:
    """What holds for those without limits of their own; on most systems only root may ask."""
    option = f"-{q.kind[0].upper()}"
    try:
        return tool_output(["lfs", "quota", option, q.mount.point], q.limit)
    except CannotTell as error:
        raise CannotTell(
            f"the default quota holds, and lfs quota {option} does not tell it: {error}"
        ) from error


def _lustre_project(q: QuotaQuestion) -> str:
    words = tool_output(["lfs", "project", "-d", q.path], q.limit).split()
    if not words or not words[0].isdigit():
        raise UnexpectedQuotaOutput(" ".join(words))
    return words[0]


def _ask_gpfs(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import gpfs

    option = {"user": "-u", "group": "-g", "fileset": "-j"}[q.kind]
    device = q.mount.source.rpartition("/")[2]
    return gpfs.read_gpfs_quota(
        tool_output(["mmlsquota", "-Y", option, q.owner_name, device], q.limit)
    )


def _ask_beegfs(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import beegfs

    who = ["--uid" if q.kind == "user" else "--gid", q.owner_name]
    argv = ["beegfs-ctl", "--getquota", "--csv", f"--mount={q.mount.point}", *who]
    try:
        return beegfs.read_beegfs_quota(tool_output(argv, q.limit), q.kind)
    except proc.CommandNotFound:
        number = q.owner_number
        ids = str(number) if os.geteuid() == 0 else "current"  # only root may name one
        argv = [*beegfs.USAGE, f"--{q.kind[0]}ids={ids}"]
        return beegfs.read_beegfs_usage(tool_output(argv, q.limit), q.kind, number)


def ask_targets(tool: str, point: str, left: Callable[[], float]) -> list[StorageTarget]:
    """What the file system consists of, by `lustre` or `beegfs`; `left` is what is left of the time (s).
    Raises CannotTell."""
    from sentinel.checks.quota.tools import beegfs, lustre

    if tool == "lustre":
        return lustre.read_lfs_df(_lfs_df([point], left()), _lfs_df(["-i", point], left()))
    try:
        return beegfs.read_beegfs_targets(tool_output(["beegfs-df", "-p", point], left()))
    except proc.CommandNotFound:
        return beegfs.read_beegfs_list(tool_output(beegfs.LIST, left()))


def _lfs_df(words: Sequence[str], limit: float) -> str:
    """The report of lfs-df(1). It goes on behind a target that does not answer, and ends with that
    error's number (mntdf() in lustre/utils/lfs.c): a report with its summary is whole."""
    from sentinel.checks.quota.tools import lustre

    done = run_quota_tool(["lfs", "df", *words], limit)
    text = os.fsdecode(done.out)
    if done.code and not lustre.is_whole_report(text):
        raise CannotTell(f"lfs: {_why_failed(done)}")
    return text


def _ask_ceph(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import trees

    deadline = time.monotonic() + q.limit
    found: list[QuotaRow] = []
    for path in _path_and_above(q.path, q.mount.point):  # the quotas of all parents hold
        # Virtual attributes are not listed: each is asked for by its name.
        values = _ceph_some(trees.CEPH[2:], path, deadline)
        if values or path == q.path:
            values |= _ceph_some(trees.CEPH[:2], path, deadline)
            found += trees.read_ceph_quota(values, "" if path == q.path else path)
    return [max(found, key=trees.fuller_share)]


def _path_and_above(path: str, point: str) -> Iterator[str]:
    """The path and its parents, as far as they are on that mount."""
    while True:
        yield path
        if path in (point, "/") or not path.startswith(point.rstrip("/") + "/"):
            return
        path = os.path.dirname(path)


def _ceph_some(names: Sequence[str], path: str, deadline: float) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        found |= _ceph_one(name, path, deadline - time.monotonic())
    return {name: value for name, value in found.items() if value != "0" or name in CEPH_COUNTS}


def _ceph_one(name: str, path: str, limit: float) -> dict[str, str]:
    """What it says; nothing where it is not set, which for a limit is none."""
    done = run_quota_tool(["getfattr", "--absolute-names", "-n", name, "--", path], limit)
    if done.code == 1 and NO_ATTRIBUTE in os.fsdecode(done.err):
        return {}
    if done.code:
        raise CannotTell(f"getfattr: {_why_failed(done)}")
    return {name: _attribute_value(os.fsdecode(done.out), name)}


def _attribute_value(text: str, name: str) -> str:
    import re

    found = re.search(rf'^{re.escape(name)}="(\d+)"$', text, re.M)
    if not found:
        raise UnexpectedQuotaOutput(text)
    return found[1]


def _ask_zfs(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import trees

    person = q.kind != "dataset"
    dataset = q.mount.source if person else q.name or q.mount.source
    properties = ",".join(trees.zfs_properties(q.kind, q.owner_name if person else ""))
    argv = ["zfs", "get", "-Hp", "-o", "property,value", properties, "--", dataset]
    found = trees.read_zfs_quota(
        tool_output(argv, q.limit), q.kind, q.owner_name if person else dataset
    )
    return [_zfs_default(one, q, dataset) if person else one for one in found]


def _zfs_default(one: QuotaRow, q: QuotaQuestion, dataset: str) -> QuotaRow:
    """Before OpenZFS 2.4 there is no such property, and no default quota."""
    from sentinel.checks.quota.tools import trees

    properties = ",".join(trees.zfs_defaults(q.kind))
    done = run_quota_tool(
        ["zfs", "get", "-Hp", "-o", "property,value", properties, "--", dataset], q.limit
    )
    if done.code:
        if b"invalid property" in done.err:
            return one
        raise CannotTell(f"zfs: {_why_failed(done)}")
    return trees.apply_zfs_defaults(one, os.fsdecode(done.out), q.kind)


def _ask_btrfs(q: QuotaQuestion) -> list[QuotaRow]:
    from sentinel.checks.quota.tools import trees

    only = [] if q.name else ["-F"]  # the subvolume's own, and those that it belongs to
    done = run_quota_tool(["btrfs", "qgroup", "show", "--raw", "-re", *only, q.path], q.limit)
    if done.code:
        raise CannotTell(f"btrfs: {_why_failed(done)}")
    trees.refuse_stale(os.fsdecode(done.err))
    found = trees.read_btrfs_quota(os.fsdecode(done.out))
    return _choose_named(found, q) or found[:1]


def _choose_named(found: list[QuotaRow], q: QuotaQuestion) -> list[QuotaRow]:
    """Of a report about all the one that was named, and else those that have a limit."""
    if not q.name:
        return [
            one for one in found if one.space.hard_end or (one.entries and one.entries.hard_end)
        ]
    mine = [one for one in found if one.name == q.name]
    if not mine:
        raise CannotTell(f"there is no {q.kind} {visible(q.name)} in the report")
    return mine


TOOLS: dict[str, Callable[[QuotaQuestion], list[QuotaRow]]] = {
    "quota": _ask_quota,
    "repquota": _ask_repquota,
    "xfs": _ask_xfs,
    "lustre": _ask_lustre,
    "gpfs": _ask_gpfs,
    "beegfs": _ask_beegfs,
    "ceph": _ask_ceph,
    "zfs": _ask_zfs,
    "btrfs": _ask_btrfs,
}
