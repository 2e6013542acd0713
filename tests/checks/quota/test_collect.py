"""Rules of asking quota tools: what they are asked, and what no answer may be taken for a good one."""

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as msgspec_replace

from sentinel.checks.filesystems.limits import FileSystemUsage, SpaceLimits
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.report import ask_all
from sentinel.checks.filesystems.verdict import PathObservation
from sentinel.checks.quota import collect
from sentinel.checks.quota.check import QuotaCheck
from sentinel.checks.quota.questions import QuotaQuestions, QuotaWanted
from sentinel.checks.quota.tools.quota import QuotaAmount
from sentinel.checks.quota.tools.trees import ZFS
from sentinel.core import mounts
from sentinel.core.errors import CannotTell
from sentinel.core.model import Finding, Status
from sentinel.core.mounts import Mount
from sentinel.core.settings import FilePath
from sentinel.core.values import Share, Size
from sentinel.testing import START, context

LUSTRE = Mount(
    id=1, parent=0, device="0:9", root="/", point="/sc", type="lustre", source="m@tcp:/sc",
    options=frozenset({"rw"}), super_options=frozenset({"rw"}),
)  # fmt: skip


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a script in the place of a tool."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name: str, script: str) -> None:
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    return make


def ask(tool: str, kind: str = "user", name: str = "alice", limit: float = 5.0) -> Any:
    question = collect.QuotaQuestion(
        path="/sc/x", mount=LUSTRE, kind=kind, name=name, limit=limit, now=1_800_000_000.0
    )
    return collect.ask_quotas(tool, question)


ROW = "/sc 100 0 200 - 5 0 0 -"


def test_a_tool_is_asked_in_no_language(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gets its arguments as they are, one by one."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    tool("lfs", f'[ "$LC_ALL:$#:$3:$4" = "C:4:x; rm -rf /:/sc" ] && echo "{ROW}"')
    (found,) = ask("lustre", name="x; rm -rf /")
    assert (found.space.used, found.space.hard) == (102400, 204800)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'quota: cannot connect' >&2; exit 2", "lfs: quota: cannot connect"),
        ("exit 3", "lfs: exit code 3"),
        ("echo all is well", "printed something new: 'all is well'"),
        ("printf 'x\\033[31m'", r"printed something new"),
        (":", "printed something new"),
        ("sleep 60", "did not finish within"),
        ("exec cat /dev/zero", "printed more than"),
        (f"echo '{ROW}'; kill -9 $$", "lfs: /sc 100"),
    ],
)
def test_a_tool_that_fails_hangs_or_lies_is_no_answer(tool: Any, script: str, why: str) -> None:
    """Never no quota, never a good one."""
    tool("lfs", script)
    with pytest.raises(CannotTell, match=re.escape(why)):
        ask("lustre", limit=0.7 if script == "sleep 60" else 30.0)


def test_a_tool_that_is_missing_is_no_answer() -> None:
    """It is named."""
    with pytest.raises(CannotTell, match="cannot start mmlsquota"):
        ask("gpfs")


def test_projects_of_lustre_are_found_by_their_folder(tool: Any) -> None:
    """`project` alone is the one of the path."""
    tool("lfs", f'case "$1" in project) echo "77 P $3";; *) [ "$3" = 77 ] && echo "{ROW}";; esac')
    (found,) = ask("lustre", kind="project", name="")
    assert found.row_title == "project:77"


def test_quota_1_exits_1_when_somebody_is_over_quota(tool: Any) -> None:
    """That is an answer; without a word about quotas it is none."""
    head = "Disk quotas for user alice (uid 1000):"
    tool("quota", f"echo '{head}'; echo '/sc 200* 100 0 1800000060 5 0 0 0'; exit 1")
    (found,) = ask("quota")
    assert (found.space.over_soft, found.space.grace) == (True, 60.0)
    tool("quota", "echo 'quota: not found' >&2; exit 1")
    with pytest.raises(CannotTell, match="nothing about quotas"):
        ask("quota")


def test_beegfs_8_is_asked_where_there_is_no_tool_of_7(tool: Any) -> None:
    """Of somebody else only root may ask by number; a name that nobody has is not asked about."""
    row = '{"name":"root","id":0,"type":"user","space":"5/10","inode":"?/?"}'
    tool("beegfs", f"echo \"$@\" >&2; case $* in *--uids=0|*--uids=current) echo '{row}' ;; esac")
    for name in ("0", "root"):
        (found,) = ask("beegfs", name=name)
        assert (found.name, found.space.used, found.space.hard) == ("root", 5, 10)
    with pytest.raises(CannotTell, match="no row of user 12345"):
        ask("beegfs", name="12345")
    with pytest.raises(CannotTell, match="there is no user nobody-here"):
        ask("beegfs", name="nobody-here")
    tool("beegfs-ctl", "exit 3")
    with pytest.raises(CannotTell, match="beegfs-ctl"):
        ask("beegfs", name="0")


def test_xfs_quota_exits_0_whatever_happens(tool: Any) -> None:
    """So its silence is no answer."""
    tool("xfs_quota", "echo 'report: foreign filesystem' >&2")
    with pytest.raises(CannotTell, match="printed nothing"):
        ask("xfs", kind="project", name="7")


@pytest.mark.parametrize(
    ("measure", "kind", "tool"),
    [
        ("auto", "lustre", "lustre"),
        ("auto", "gpfs", "gpfs"),
        ("auto", "beegfs", "beegfs"),
        ("auto", "ceph", "ceph"),
        ("auto", "xfs", ""),
        ("auto", "nfs4", ""),
        ("statfs", "lustre", ""),
        ("quota", "xfs", "quota"),
        ("quota", "nfs", "quota"),
        ("quota", "zfs", "zfs"),
        ("xfs", "lustre", "xfs"),
    ],
)
def test_the_tool_fits_the_mount(measure: str, kind: str, tool: str) -> None:
    """What is asked without being told to is what costs nothing and says most."""
    mount = Mount(
        id=1, parent=0, device="0:9", root="/", point="/x", type=kind,
        options=frozenset(), super_options=frozenset(),
    )  # fmt: skip
    assert collect.choose_tool(measure, mount) == tool


def test_a_quota_server_that_is_silent_is_not_no_quota(tool: Any) -> None:
    """quota(1) complains on stderr, leaves the file system out and says `none`."""
    for words in ("none", "no limited resources used"):  # heading() of quota.c
        tool("quota", f"echo 'Disk quotas for user alice (uid 1000): {words}'")
        assert ask("quota") == []
    for words in ("", "later"):
        tool("quota", f"echo 'Disk quotas for user alice (uid 1000): {words}'")
        with pytest.raises(CannotTell, match="ends before"):
            ask("quota")
    complaint = "quota: error while getting quota from nfs1:/sc for alice: Connection refused"
    tool("quota", f"echo 'Disk quotas for user alice (uid 1000): none'; echo '{complaint}' >&2")
    with pytest.raises(CannotTell, match="Connection refused"):
        ask("quota")


def test_mmlsquota_that_prints_nothing_is_no_answer(tool: Any) -> None:
    """Nor is a heading without a row: nobody says that it means no quota."""
    tool("mmlsquota", ":")
    with pytest.raises(CannotTell, match="nothing at all"):
        ask("gpfs")
    tool(
        "mmlsquota", "echo 'mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:'"
    )
    with pytest.raises(CannotTell, match="something new: 'mmlsquota::HEADER"):
        ask("gpfs")


CEPH = """case "$3" in
*.rbytes) echo "$3=\\"100\\"";; *.rentries) echo "$3=\\"5\\"";; *.max_files) echo "$3=\\"9\\"";;
*) echo "/sc/x: $3: {error}" >&2; exit 1;; esac"""


def test_a_ceph_attribute_that_is_not_set_is_no_limit_and_any_other_error_no_answer(
    tool: Any,
) -> None:
    """getfattr(1) ends with 1 for both."""
    tool("getfattr", CEPH.replace("{error}", "No such attribute"))
    (found,) = ask("ceph", kind="directory", name="")
    assert (found.space, found.entries) == (QuotaAmount(used=100), QuotaAmount(used=5, hard=9))
    tool("getfattr", CEPH.replace("{error}", "Operation not permitted"))
    with pytest.raises(CannotTell, match="Operation not permitted"):
        ask("ceph", kind="directory", name="")


def test_a_dataset_is_asked_about_by_its_own_name(tool: Any) -> None:
    """Not that of the mount."""
    lines = "".join(f"{p}\\t{n}\\n" for p, n in zip(ZFS, range(1, 6), strict=True))
    tool("zfs", f'[ "$7" = tank/other ] && printf "{lines}"')
    (found,) = ask("zfs", kind="dataset", name="tank/other")
    assert found.row_title == "dataset:tank/other"


def test_a_qgroup_is_found_by_its_name(tool: Any) -> None:
    """Among all of the file system."""
    rows = "0/5 10 10 none none\\n0/257 20 20 40 none\\n"
    tool("btrfs", f'[ "$5" = /sc/x ] && printf "{rows}"')
    (found,) = ask("btrfs", kind="qgroup", name="0/257")
    assert found.space == QuotaAmount(used=20, hard=40)


@pytest.mark.parametrize(
    ("measure", "name", "line"),
    [
        ("xfs", "alice", "alice 1 0 8 00 [------] 1 0 0 00 [------]"),
        ("xfs", "1000", "#1000 1 0 8 00 [------] 1 0 0 00 [------]"),
        ("repquota", "alice", "alice,ok,ok,1,0,8,0,1,0,0,0"),
        ("repquota", "1000", "#1000,ok,ok,1,0,8,0,1,0,0,0"),
    ],
)
def test_a_report_names_people_as_they_were_asked_for(
    tool: Any, measure: str, name: str, line: str
) -> None:
    """By name or by number."""
    head = (
        "User,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,"
        "FileUsed,FileSoftLimit,FileHardLimit,FileGrace"
    )
    other = line.replace("#1000", "x").replace("alice", "#1")
    numbers = f'case "$*" in *" -n"*|*--no-names*) echo "{line}";; *) echo "{other}";; esac'
    names = f'case "$*" in *" -n"*|*--no-names*) echo "{other}";; *) echo "{line}";; esac'
    said = numbers if name.isdigit() else names
    tool("xfs_quota", said)
    tool("repquota", f"echo {head}; {said}")
    (found,) = ask(measure, name=name)
    assert (found.name, found.space.hard) == (name, 8192)


@pytest.mark.parametrize(("measure", "kind"), [("quota", "project"), ("gpfs", "fileset")])
def test_nobody_in_particular_is_no_project(measure: str, kind: str) -> None:
    """Who runs this has a number, and it is not that of a project."""
    with pytest.raises(CannotTell, match=f"name the {kind}"):
        ask(measure, kind=kind, name="")


def test_tools_of_administrators_are_found(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """cron's PATH is /usr/bin:/bin, and users have no sbin."""
    tool("lfs", 'case "$PATH" in */usr/sbin*/usr/lpp/mmfs/bin*) echo "' + ROW + '";; esac')
    assert ask("lustre")


@pytest.mark.parametrize(
    ("measure", "kind"),
    [("lustre", "fileset"), ("gpfs", "project"), ("beegfs", "project"), ("ceph", "user")],
)
def test_what_a_tool_has_no_quotas_of_is_said(measure: str, kind: str) -> None:
    """Nothing else is measured in its place."""
    with pytest.raises(CannotTell, match=f"not of a {kind}"):
        ask(measure, kind=kind, name="x")


def test_of_two_findings_of_one_name_the_worse_is_told(tmp_path: Path) -> None:
    """Two rows of one name would be one alert that is well and ill by turns."""
    rows = [{"name": "a", "used_bytes": n, "limit_bytes": 100} for n in (99, 1)]
    command = ["echo", json.dumps(rows)]
    check = QuotaCheck(paths=[FilePath(str(tmp_path))], command=command)
    found = [f for f in check.run(context()).findings if f.subject.endswith("command:a")]
    assert [f.status for f in found] == [Status.CRITICAL]


DF = """UUID 1K-blocks Used Available Use% Mounted on
sc-MDT0000_UUID 1000 100 900 10% /sc[MDT:0]
sc-OST0000_UUID 1000000000 {used} {free} 50% /sc[OST:0]
"""


def asked(tool: Any, used: int = 500_000_000, **settings: Any) -> list[Finding]:
    """What is found beyond statfs on a Lustre with a quota of 0.2 MB."""
    text = DF.format(used=used, free=1_000_000_000 - used)
    tool("lfs", f'case "$1" in df) printf %s "{text}";; *) echo "{ROW}";; esac')
    usage = FileSystemUsage(
        size=10**15, used=0, free=10**15, inodes=0, inodes_free=0, type="lustre"
    )
    sight = PathObservation(
        path="/sc", answer=PathAnswer(usage=usage, real="/sc"), mount=LUSTRE, at=START
    )
    found = ask_all(
        QuotaQuestions(QuotaWanted(**settings), context(), time.monotonic() + 10), [sight]
    )
    return list(found.findings)


FREE: dict[str, Any] = {
    "warn": SpaceLimits(free=Size(40 * 10**12)),
    "crit": SpaceLimits(free=Size(10**13)),
}


def test_free_space_of_a_file_system_is_not_asked_of_a_quota_that_was_found_there(
    tool: Any,
) -> None:
    """40 TB free of scratch are wanted; a quota of less could never be well."""
    (quota, targets) = asked(tool, **FREE)
    assert (quota.status, targets.status) == (Status.OK, Status.OK)
    (quota, _) = asked(tool, measure="quota", **FREE)
    assert quota.status is Status.CRITICAL


def test_targets_are_watched_where_only_free_space_is_limited(tool: Any) -> None:
    """One that is full is full, however much the others have."""
    (_, targets) = asked(tool, used=990_000_000, **FREE)
    assert targets.status is Status.CRITICAL


def test_limits_of_shares_hold_for_what_was_found(tool: Any) -> None:
    """Those are meant of everything."""
    (quota, _) = asked(tool, warn=SpaceLimits(used=Share(40)))
    assert quota.status is Status.WARNING


def test_the_default_of_lustre_is_asked_for_and_else_nobody_can_tell(tool: Any) -> None:
    """Zeros that are no freedom: the limit is in another place, mostly open to root only."""
    own = f"{ROW.replace('200', '0')}\nuid 1000 is using default block quota setting"
    ask_default = '[ "$2" = -U ] && [ "$3" = /sc ] && echo "/sc 0 400 7 0 0 7" && exit'
    tool("lfs", f"{ask_default}; echo '{own}'")
    (found,) = ask("lustre")
    assert (found.space.used, found.space.hard_end) == (100 << 10, 400 << 10)
    tool("lfs", f"[ \"$2\" = -U ] && echo 'Permission denied.' >&2 && exit 1; echo '{own}'")
    with pytest.raises(CannotTell, match=r"lfs quota -U does not tell it.*Permission denied"):
        ask("lustre")
    own = own.replace("uid", "gid")
    tool("lfs", f"{ask_default.replace('-U', '-G')}; echo '{own}'")
    assert ask("lustre", kind="group")[0].space.hard_end == 400 << 10


def test_the_quotas_of_parents_hold_in_cephfs(tool: Any) -> None:
    """The fuller one is told; above the mount nobody looks."""
    tool(
        "getfattr",
        'value() { echo "$1=\\"$2\\""; exit; }\n'
        'case "$3 $5" in\n'
        "'ceph.quota.max_bytes /sc') value $3 100;;\n"
        "'ceph.dir.rbytes /sc') value $3 96;;\n"
        "'ceph.dir.rbytes /sc/x') value $3 7;;\n"
        "*rentries*) value $3 1;;\n"
        "esac\n"
        'echo "$5: $3: No such attribute" >&2; exit 1',
    )
    (found,) = ask("ceph", kind="directory", name="")
    assert (found.row_title, found.space) == ("directory:/sc", QuotaAmount(used=96, hard=100))


def test_quota_1_names_one_place_of_several(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bind mount of /data is not free of the quota that stands beside /data."""
    root = mounts.parse_mount_table(Path("/proc/self/mountinfo").read_bytes()).find_mount("/")
    assert root is not None
    monkeypatch.setitem(globals(), "LUSTRE", msgspec_replace(root, point="/bound"))
    tool("quota", "echo 'Disk quotas for user alice (uid 1000):'; echo '/ 95 0 100 0 5 0 0 0'")
    (found,) = ask("quota")
    assert found.space.hard_end == 100 << 10


def test_xfs_that_counts_only_holds_nobody(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mounted with uqnoenforce: what is over the limit is so without harm."""
    loose = msgspec_replace(LUSTRE, type="xfs", super_options=frozenset({"rw", "uqnoenforce"}))
    monkeypatch.setitem(globals(), "LUSTRE", loose)
    row = "#7 900 10 20 00 [--none--] 3 0 0 00 [--------]"
    tool("xfs_quota", f"echo '{row}'")
    assert ask("xfs", name="7")[0].space == QuotaAmount(used=900 << 10)
    monkeypatch.setitem(globals(), "LUSTRE", msgspec_replace(loose, super_options=frozenset()))
    assert ask("xfs", name="7")[0].space.grace == 0.0


def test_numbers_of_btrfs_that_are_stale_are_no_answer(tool: Any) -> None:
    """It says so beside them, and ends with 0; parents of a qgroup hold as well."""
    rows = "0/256 10 10 none none x\\n1/1 90 90 100 none group"
    tool("btrfs", f"case \"$*\" in *-F*) printf '{rows}\\n';; esac")
    (found,) = ask("btrfs", kind="qgroup", name="")
    assert (found.name, found.space.hard) == ("1/1", 100)
    tool(
        "btrfs",
        f"echo 'WARNING: qgroup data inconsistent, rescan recommended' >&2; printf '{rows}\\n'",
    )
    with pytest.raises(CannotTell, match="inconsistent"):
        ask("btrfs", kind="qgroup", name="")


def test_default_quotas_of_zfs(tool: Any) -> None:
    """Asked for only by people; an older zfs does not know the property, and has none."""
    none = "userused@alice\\t5\\nuserquota@alice\\tnone\\nuserobjused@alice\\t1\\nuserobjquota@alice\\tnone"
    default = "defaultuserquota\\t100\\ndefaultuserobjquota\\tnone"
    script = f"case \"$*\" in *default*) {{then}};; *) printf '{none}\\n';; esac"
    tool("zfs", script.replace("{then}", f"printf '{default}\\n'"))
    assert ask("zfs")[0].space.hard_end == 100
    old = "echo \"bad property list: invalid property 'defaultuserquota'\" >&2; exit 2"
    tool("zfs", script.replace("{then}", old))
    assert ask("zfs")[0].space.hard_end == 0
    tool("zfs", script.replace("{then}", "echo 'permission denied' >&2; exit 1"))
    with pytest.raises(CannotTell, match="permission denied"):
        ask("zfs")
