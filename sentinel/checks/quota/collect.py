"""Asks tools about quotas and targets, and reads their answers.

Each tool is asked for raw units with LC_ALL=C, in a child that can be abandoned. A tool that is
missing, fails, hangs or prints an unknown form raises CannotTell: without an answer, nothing is
concluded about a quota."""

from __future__ import annotations

import grp
import os
import pwd
import re
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from sentinel import proc
from sentinel.checks.quota.always import ALWAYS
from sentinel.checks.quota.tools import beegfs, gpfs, linux, lustre, trees
from sentinel.checks.quota.tools.quota import QuotaRow, UnexpectedQuotaOutput
from sentinel.checks.quota.tools.targets import StorageTarget
from sentinel.core.errors import CannotTell
from sentinel.core.long_lines import cut_long_lines, decode_document, decode_lines
from sentinel.core.mounts import Mount
from sentinel.core.text import shortened, visible
from sentinel.proc.mounts import read_mounts

MOST = 4 << 20
"""How many bytes the answer of a tool may have: enough for a hundred thousand users."""

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
"""The tool for each type of mount, for `measure: quota`."""

TARGETS = frozenset({"lustre", "beegfs"})
PLACES = "/usr/sbin:/sbin:/usr/local/sbin:/usr/lpp/mmfs/bin"
"""Directories with such tools that are not in the PATH of ordinary users and cron."""

CEPH_COUNTS = ("ceph.dir.rbytes", "ceph.dir.rentries")
_WITHOUT_ROWS = re.compile(r"Disk quotas for .*: (?:none|no .*)")
"""heading() of quota.c (quota-tools): a text behind the colon stands in place of rows. It is "none",
or "no limited resources used"."""

NO_ATTRIBUTE = "No such attribute"
"""The message of getfattr(1) for an attribute that is not set: strerror(3) of ENODATA."""


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
"""The kinds of owners for which each tool knows quotas."""


class QuotaQuestion(Struct, frozen=True, kw_only=True):
    """A question about one quota."""

    path: str  # Path that the quota applies to.
    mount: Mount  # The mount that the path is on.
    kind: str  # Whose quota: user, group or project.
    name: str  # Name of the user, group or project.
    limit: float  # Time limit of the question in seconds.
    now: float  # Epoch seconds.

    @property
    def owner_name(self) -> str:
        """The owner's name, or the number of the user who runs this; all tools understand numbers.
        Raises CannotTell if no owner is given and there is no default."""
        own = {"user": os.getuid, "group": os.getgid}
        if self.name or self.kind in own:
            return self.name or str(own[self.kind]())
        raise CannotTell(f"quotas: name the {self.kind}, as in {self.kind}:NAME")

    @property
    def owner_number(self) -> int:
        """The number of that user or group. Raises CannotTell if this machine does not know the
        name."""
        if self.owner_name.isdigit():
            return int(self.owner_name)
        try:
            if self.kind == "user":
                return pwd.getpwnam(self.owner_name).pw_uid
            return grp.getgrnam(self.owner_name).gr_gid
        except KeyError as error:
            raise CannotTell(f"there is no {self.kind} {visible(self.owner_name)} here") from error


def choose_tool(measure: str, mount: Mount) -> str:
    """The tool for that mount. Empty if statfs is enough. Raises CannotTell if no tool fits."""
    kind = BY_TYPE.get(mount.type, "")
    if measure == "auto":
        return kind if kind in ALWAYS else ""
    if measure == "quota" and not kind:
        raise CannotTell(
            f"{visible(mount.type)} has no quotas that sentinel can ask for; name a tool with `tool`"
        )
    return {"statfs": "", "quota": kind}.get(measure, measure)


def ask_quotas(tool: str, question: QuotaQuestion) -> list[QuotaRow]:
    """The tool's answer; empty if there is no quota. Raises CannotTell."""
    if question.kind not in WHOSE[tool]:
        known = ", ".join(WHOSE[tool])
        raise CannotTell(f"{tool} knows quotas of a {known}, not of a {question.kind}")
    try:
        return TOOLS[tool](question)
    except UnexpectedQuotaOutput as error:
        raise CannotTell(f"{tool}: {visible(str(error))}") from error


def tool_output(argv: Sequence[str], limit: float) -> str:
    """The output of a command. Raises CannotTell if it fails."""
    done = run_quota_tool(argv, limit)
    if done.code:
        raise CannotTell(f"{argv[0]}: {_why_failed(done)}")
    text = decode_document(done.out, "surrogateescape")
    return text if text.lstrip()[:1] in ("{", "[") else cut_long_lines(text)


def run_quota_tool(argv: Sequence[str], limit: float) -> proc.Done:
    """Run a command with English messages, and with the directories of administrators' tools in its
    PATH."""
    path = f"{os.environ.get('PATH', os.defpath)}:{PLACES}"
    env = {**proc.english_environment(), "PATH": path}
    return proc.run(argv, limit=max(0.1, limit), env=env, max_output=MOST)


def _why_failed(done: proc.Done) -> str:
    text = " ".join(decode_lines(done.err or done.out).split())
    return shortened(visible(text), 300) or f"exit code {done.code}"


def _ask_quota(q: QuotaQuestion) -> list[QuotaRow]:
    """The answer of quota(1). It exits with 1 also if somebody is over quota, and leaves out a file
    system whose server does not answer. So only its output counts."""
    argv = ["quota", "--raw-grace", "--no-wrap", "--hide-device", "--show-mntpoint"]
    done = run_quota_tool([*argv, f"--{q.kind}", "--", q.owner_name], q.limit)
    text = decode_lines(done.out, "surrogateescape")
    if done.code not in (0, 1) or "Disk quotas for" not in text:
        why = f": {_why_failed(done)}" if done.err else ""
        raise CannotTell(
            f"quota: it printed nothing about quotas{why or '; are they switched on?'}"
        )
    found = linux.read_linux_quota(text, q.kind, q.name, {q.mount.point, *_mount_points(q)}, q.now)
    if done.err and not found:
        raise CannotTell(f"quota: {_why_failed(done)}")
    last = text.rstrip().rpartition("\n")[2].lstrip()
    if last.startswith(("Disk", "Filesystem")) and not _WITHOUT_ROWS.fullmatch(last):
        raise CannotTell("quota: its answer ends before the first file system, and not with none")
    return _only_enforced(found, q)


def _mount_points(q: QuotaQuestion) -> Iterator[str]:
    """All places where the same file system is mounted, since quota(1) names only one of them."""
    try:
        yield from read_mounts().list_mount_points(q.mount.device)
    except (OSError, ValueError):
        return


def _only_enforced(found: list[QuotaRow], q: QuotaQuestion) -> list[QuotaRow]:
    """The quotas without limits if XFS is mounted so that it only counts (xfs(5), uqnoenforce);
    else unchanged."""
    counted = {"qnoenforce", f"{q.kind[0]}qnoenforce"} & {*q.mount.options, *q.mount.super_options}
    return [linux.unlimited_quota(one) for one in found] if counted else found


def _ask_repquota(q: QuotaQuestion) -> list[QuotaRow]:
    numbers = ["--no-names"] if q.name.isdigit() else []
    argv = ["repquota", "--raw-grace", "--output=csv", f"--{q.kind}", *numbers]
    found = linux.read_repquota(tool_output([*argv, "--", q.mount.point], q.limit), q.kind, q.now)
    if q.mount.type == "xfs":
        found = linux.apply_xfs_defaults(found)
    return _choose_named(_only_enforced(found, q), q)


def _ask_xfs(q: QuotaQuestion) -> list[QuotaRow]:
    numbers = "-n" if q.name.isdigit() or not q.name else ""
    report = f"report -{q.kind[0]} -N -b -i {numbers}".strip()
    text = tool_output(["xfs_quota", "-x", "-c", report, "--", q.mount.point], q.limit)
    if not text.strip():  # its exit code is 0 after any error
        raise CannotTell("xfs_quota: it printed nothing; it needs root, and quotas switched on")
    return _choose_named(
        _only_enforced(linux.apply_xfs_defaults(linux.read_xfs_quota(text, q.kind)), q), q
    )


def _ask_lustre(q: QuotaQuestion) -> list[QuotaRow]:
    name = q.name or (_lustre_project(q) if q.kind == "project" else q.owner_name)
    text = tool_output(["lfs", "quota", f"-{q.kind[0]}", name, q.mount.point], q.limit)
    default = _lustre_default(q) if lustre.limits_by_default(text) else ""
    return lustre.read_lustre_quota(text, q.kind, q.name or name * (q.kind == "project"), default)


def _lustre_default(q: QuotaQuestion) -> str:
    """The default quota, which holds for owners without limits of their own; on most systems only
    root may ask for it. Raises CannotTell."""
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
    option = {"user": "-u", "group": "-g", "fileset": "-j"}[q.kind]
    device = q.mount.source.rpartition("/")[2]
    return gpfs.read_gpfs_quota(
        tool_output(["mmlsquota", "-Y", option, q.owner_name, device], q.limit)
    )


def _ask_beegfs(q: QuotaQuestion) -> list[QuotaRow]:
    who = ["--uid" if q.kind == "user" else "--gid", q.owner_name]
    argv = ["beegfs-ctl", "--getquota", "--csv", f"--mount={q.mount.point}", *who]
    try:
        return beegfs.read_beegfs_quota(tool_output(argv, q.limit), q.kind)
    except proc.CommandNotFound:
        number = q.owner_number
        ids = str(number) if os.geteuid() == 0 else "current"  # only root may give another id
        argv = [*beegfs.USAGE, f"--{q.kind[0]}ids={ids}"]
        return beegfs.read_beegfs_usage(tool_output(argv, q.limit), q.kind, number)


def ask_targets(tool: str, point: str, left: Callable[[], float]) -> list[StorageTarget]:
    """The storage targets of a file system, by `lustre` or `beegfs`. `left` returns the seconds
    that are left. Raises CannotTell."""
    if tool == "lustre":
        return lustre.read_lfs_df(_lfs_df([point], left()), _lfs_df(["-i", point], left()))
    try:
        return beegfs.read_beegfs_targets(tool_output(["beegfs-df", "-p", point], left()))
    except proc.CommandNotFound:
        return beegfs.read_beegfs_list(tool_output(beegfs.LIST, left()))


def _lfs_df(words: Sequence[str], limit: float) -> str:
    """The report of lfs-df(1). After a target that does not answer, the report goes on and ends
    with that error's number (mntdf() in lustre/utils/lfs.c). So a report with its summary is
    complete."""
    done = run_quota_tool(["lfs", "df", *words], limit)
    text = decode_lines(done.out, "surrogateescape")
    if done.code and not lustre.is_whole_report(text):
        raise CannotTell(f"lfs: {_why_failed(done)}")
    return text


def _ask_ceph(q: QuotaQuestion) -> list[QuotaRow]:
    deadline = time.monotonic() + q.limit
    found: list[QuotaRow] = []
    # the quotas of all parent directories apply too
    for path in _path_and_above(q.path, q.mount.point):
        # Virtual attributes are not listed, so each is requested by its name.
        values = _ceph_some(trees.CEPH[2:], path, deadline)
        if values or path == q.path:
            values |= _ceph_some(trees.CEPH[:2], path, deadline)
            found += trees.read_ceph_quota(values, "" if path == q.path else path)
    return [max(found, key=trees.fuller_share)]


def _path_and_above(path: str, point: str) -> Iterator[str]:
    """The path and its parents on the same mount."""
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
    """The value of an attribute; empty if it is not set, which for a limit means none. Raises
    CannotTell."""
    done = run_quota_tool(["getfattr", "--absolute-names", "-n", name, "--", path], limit)
    if done.code == 1 and NO_ATTRIBUTE in decode_lines(done.err):
        return {}
    if done.code:
        raise CannotTell(f"getfattr: {_why_failed(done)}")
    return {name: _attribute_value(decode_lines(done.out), name)}


def _attribute_value(text: str, name: str) -> str:
    found = re.search(rf'^{re.escape(name)}="(\d+)"$', text, re.M)
    if not found:
        raise UnexpectedQuotaOutput(text)
    return found[1]


def _ask_zfs(q: QuotaQuestion) -> list[QuotaRow]:
    person = q.kind != "dataset"
    dataset = q.mount.source if person else q.name or q.mount.source
    properties = ",".join(trees.zfs_properties(q.kind, q.owner_name if person else ""))
    argv = ["zfs", "get", "-Hp", "-o", "property,value", properties, "--", dataset]
    found = trees.read_zfs_quota(
        tool_output(argv, q.limit), q.kind, q.owner_name if person else dataset
    )
    return [_zfs_default(one, q, dataset) if person else one for one in found]


def _zfs_default(one: QuotaRow, q: QuotaQuestion, dataset: str) -> QuotaRow:
    """The quota with the default limits applied. Before OpenZFS 2.4 there is no such property, and
    no default quota."""
    properties = ",".join(trees.zfs_defaults(q.kind))
    done = run_quota_tool(
        ["zfs", "get", "-Hp", "-o", "property,value", properties, "--", dataset], q.limit
    )
    if done.code:
        if b"invalid property" in done.err:
            return one
        raise CannotTell(f"zfs: {_why_failed(done)}")
    return trees.apply_zfs_defaults(one, decode_lines(done.out), q.kind)


def _ask_btrfs(q: QuotaQuestion) -> list[QuotaRow]:
    only = [] if q.name else ["-F"]  # the subvolume's own qgroup, and those that contain it
    done = run_quota_tool(["btrfs", "qgroup", "show", "--raw", "-re", *only, q.path], q.limit)
    if done.code:
        raise CannotTell(f"btrfs: {_why_failed(done)}")
    trees.refuse_stale(decode_lines(done.err))
    found = trees.read_btrfs_quota(decode_lines(done.out, "surrogateescape"))
    return _choose_named(found, q) or found[:1]


def _choose_named(found: list[QuotaRow], q: QuotaQuestion) -> list[QuotaRow]:
    """The quota with the requested name; without a name, all quotas that have a limit. Raises
    CannotTell."""
    if not q.name:
        return [
            one
            for one in found
            if one.unread or one.space.hard_end or (one.entries and one.entries.hard_end)
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
