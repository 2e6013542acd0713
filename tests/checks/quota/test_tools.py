"""Rules of reading each quota tool's output, in the forms its manual gives."""

import re
from collections.abc import Callable

import pytest

from sentinel.checks.quota.tools import beegfs, gpfs, linux, lustre, trees
from sentinel.checks.quota.tools.quota import QuotaAmount, QuotaRow, UnexpectedQuotaOutput

KIB, DAY, NOW = 1024, 86_400.0, 1_800_000_000.0

QUOTA = """\
Disk quotas for user alice (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
          /home 2097152* 1048576 4194304 1800086400    1000       0    2000       0
       /scratch      20       0       0       0       5       0       0       0
"""
REPQUOTA = """\
User,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,FileUsed,FileSoftLimit,FileHardLimit,FileGrace
root,ok,ok,20,0,0,0,2,0,0,0
"al,ice",soft,ok,150,100,200,1800003600,5,0,0,0
#1001,hard,ok,200,100,200,1700000000,5,4,10,1800000060
"""
XFS = """\
#0                   0          0          0     00 [--------]          3          0          0     00 [--------]
#7               20480      10240      40960     00 [6 days]        100         50        200     00 [2 days 03:00:00]
"""
LFS = """\
Disk quotas for usr alice (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
/lustre/scratch
                 5242880* 4194304 6291456 6d23h59m58s  120000       0 1000000       -
uid 1000 is using default file quota setting
"""
LFS_DF = """\
UUID                   1K-blocks        Used   Available Use% Mounted on
sc-MDT0000_UUID         41699840        3840    41693952   1% /sc[MDT:0]
sc-OST0000_UUID         98706432    93088768     5615616  95% /sc[OST:0]
sc-OST0001_UUID        100038656     3591168    96445440   4% /sc[OST:1]
OST0002             : inactive device
sc-OST0003_UUID     : Resource temporarily unavailable

filesystem_summary:    198745088    96679936   102061056  49% /sc
"""
LFS_DF_I = """\
UUID                      Inodes       IUsed       IFree IUse% Mounted on
sc-MDT0000_UUID          1000000      900000      100000  90% /sc[MDT:0]
sc-OST0000_UUID          1000000      100000      900000  10% /sc[OST:0]
sc-OST0001_UUID          1000000      100000      900000  10% /sc[OST:1]
OST0002             : inactive device

filesystem_summary:      1000000      900000      100000  90% /sc
"""
MMLSQUOTA = """\
mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:fid:filesetname:
mmlsquota::0:1:::gpfs01:USR:1234:alice%3Aml:2097152:1048576:12582912:1024:6 days:4000:0:500000:10:none:e:on:off:::
mmlsquota::0:1:::gpfs01:FILESET:5:root:100:0:0:0:none:1:0:0:0:none:e:on:off:::
"""
BEEGFS = """\
name,id,size,hard,files,hard
alice,1000,2097152,1073741824,120,unlimited
"""
BEEGFS_DF = """\
METADATA SERVERS:
TargetID   Cap. Pool        Total         Free    %      ITotal       IFree    %
========   =========        =====         ====    =      ======       =====    =
       1      normal     200.0GiB     100.0GiB  50%        1.0M        0.5M  50%

STORAGE TARGETS:
TargetID   Cap. Pool        Total         Free    %      ITotal       IFree    %
========   =========        =====         ====    =      ======       =====    =
     101         low      10.0TiB       0.5TiB   5%     1000.0M      900.0M  90%
     102   emergency      10.0TiB       0.1TiB   1%     1000.0M      900.0M  90%
"""
BEEGFS_8 = """\
{"id":1000,"inode":"120/∞","name":"alice","pool":"storage_pool_default","space":"2097152/1073741824","type":"user"}
{"id":1000,"inode":"7/9","name":"alice","pool":"storage_pool_default","space":"1/2","type":"group"}
"""
BEEGFS_8_TARGETS = """\
{"alias":"meta_1","cap_pool":"Normal","consistency":"Good","id":{"num_id":1,"node_type":2},"inodes":"100","inodes_free":"50","inodes_used":"50 (50.00%)","last_contact":"2s ago","node":"meta:1","reachability":"Online","space":"100000","space_free":"50000","space_used":"500 (50.00%)","storage_pool":"(n/a)","sync_state":"Healthy","type":2}
{"alias":"full","cap_pool":"Emergency","consistency":"Bad","id":{"num_id":101,"node_type":3},"inodes":"-","inodes_free":"-","inodes_used":"-","last_contact":"4s ago","node":"storage:1","reachability":"Online","space":"100000","space_free":"5000","space_used":"950 (95.00%)","storage_pool":"storage:1","sync_state":"Healthy","type":3}
{"alias":"gone","cap_pool":"Normal","consistency":"Good","id":{"num_id":102,"node_type":3},"inodes":"-","inodes_free":"-","inodes_used":"-","last_contact":"unknown","node":"storage:2","reachability":"Offline","space":"-","space_free":"-","space_used":"-","storage_pool":"storage:1","sync_state":"Healthy","type":3}
"""
QGROUPS = """\
Qgroupid    Referenced    Exclusive  Max referenced  Max exclusive   Path
--------    ----------    ---------  --------------  -------------   ----
0/5              16384        16384            none           none   <toplevel>
0/256          5259264      5250000        20971520        6000000   proj with blanks
"""


def quota(text: str) -> list[QuotaRow]:
    return linux.read_linux_quota(text, "user", "alice", {"/home"}, NOW)


def test_quota_1_of_one_mount() -> None:
    """KiB, the mark of being over, the grace as the moment of its end."""
    (found,) = quota(QUOTA)
    assert found.space == QuotaAmount(
        used=2097152 * KIB, soft=1048576 * KIB, hard=4194304 * KIB, grace=DAY
    )
    assert found.entries == QuotaAmount(used=1000, hard=2000)
    assert linux.read_linux_quota(QUOTA, "user", "alice", {"/other"}, NOW) == []
    assert linux.read_linux_quota(QUOTA, "user", "alice", {"/other", "/home"}, NOW) == [found]


def test_quota_1_of_nfs_may_give_a_span() -> None:
    """rpc.rquotad of some servers sends what is left rather than when it ends."""
    (found,) = quota(QUOTA.replace("1800086400", "6days"))
    assert found.space.grace == 6 * DAY


def test_quota_1_wraps_a_long_name() -> None:
    """Where --no-wrap is not known the name stands alone."""
    (found,) = quota(QUOTA.replace("/home ", "/home\n"))
    assert found.space.used == 2097152 * KIB


def test_repquota_8_as_csv() -> None:
    """From the right, since a name may hold a comma; an unknown uid stands as #1001."""
    root, alice, number = linux.read_repquota(REPQUOTA, "user", NOW)
    assert root.space == QuotaAmount(used=20 * KIB)
    assert (alice.name, alice.space.grace) == ('"al,ice"', 3600.0)
    assert (number.name, number.space.grace, number.space.hard_end) == ("1001", 0.0, 100 * KIB)
    assert number.entries == QuotaAmount(used=5, soft=4, hard=10, grace=60.0)


def test_xfs_quota_8_projects() -> None:
    """Both halves with their own grace."""
    none, seven = linux.read_xfs_quota(XFS, "project")
    assert none.space == QuotaAmount(used=0)
    assert seven == QuotaRow(
        kind="project",
        name="7",
        space=QuotaAmount(used=20480 * KIB, soft=10240 * KIB, hard=40960 * KIB, grace=6 * DAY),
        entries=QuotaAmount(used=100, soft=50, hard=200, grace=2 * DAY + 10_800),
    )


def test_lfs_quota_with_a_wrapped_row() -> None:
    """A long path stands on its own line, and remarks follow."""
    (found,) = lustre.read_lustre_quota(LFS, "user", "alice")
    assert found.space == QuotaAmount(
        used=5242880 * KIB, soft=4194304 * KIB, hard=6291456 * KIB, grace=604_798.0
    )
    assert found.entries == QuotaAmount(used=120_000, hard=1_000_000)


def test_lfs_quota_says_none_for_a_grace_that_ended() -> None:
    """Over the soft limit with a grace of none: nothing more can be written."""
    (found,) = lustre.read_lustre_quota(LFS.replace("6d23h59m58s", "none"), "user", "alice")
    assert found.space.grace == 0.0


BY_DEFAULT = """\
Disk quotas for usr alice (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
            /sc  900000       0       0       -      10       0       0       -
uid 1000 is using default block quota setting
uid 1000 is using default file quota setting
"""
DEFAULT = """\
Disk default usr quota:
     Filesystem   bquota  blimit  bgrace   iquota  ilimit  igrace
            /sc   500000 1000000  604800        0      50  604800
"""


def test_lfs_quota_of_somebody_who_is_held_by_the_default() -> None:
    """Zeros and "is using default": the limits are what `lfs quota -U` says."""
    assert lustre.limits_by_default(BY_DEFAULT) == {"block", "file"}
    assert lustre.limits_by_default(BY_DEFAULT.replace("uid 1000 ", "    uid 1000 ")) == {
        "block",
        "file",
    }
    (found,) = lustre.read_lustre_quota(BY_DEFAULT, "user", "alice", DEFAULT)
    assert found.space == QuotaAmount(used=900_000 * KIB, soft=500_000 * KIB, hard=1_000_000 * KIB)
    assert found.entries == QuotaAmount(used=10, hard=50)
    for nothing in ("", "Permission denied.\n", BY_DEFAULT):
        with pytest.raises(UnexpectedQuotaOutput):
            lustre.read_lustre_quota(BY_DEFAULT, "user", "alice", nothing)


@pytest.mark.parametrize("what", ["block", "file"])
def test_lfs_quota_default_of_one_half(what: str) -> None:
    """The other has a limit of its own; where the row has the default's already, nobody asks."""
    other = {"block": "file", "file": "block"}[what]
    text = BY_DEFAULT.replace(f"uid 1000 is using default {other} quota setting\n", "")
    assert lustre.limits_by_default(text) == {what}
    (found,) = lustre.read_lustre_quota(text, "user", "alice", DEFAULT)
    assert found.entries is not None
    assert (bool(found.space.hard_end), bool(found.entries.hard_end)) == (
        what == "block",
        what == "file",
    )
    known = BY_DEFAULT.replace("0       0       -", "7       9       -")
    assert lustre.limits_by_default(known) == frozenset()
    assert lustre.limits_by_default(LFS) == frozenset()


def test_lfs_quota_with_a_soft_limit_that_only_notifies() -> None:
    """A grace of `notify` never ends: lfs prints it as so many weeks (2^48 - 1 seconds)."""
    text = LFS.replace("6d23h59m58s", "465380906w1d20h4m5s")
    assert lustre.read_lustre_quota(text, "user", "alice")[0].space.grace is None


def test_lfs_quota_that_calls_itself_inaccurate_is_no_answer() -> None:
    """A target is away: the sum is too small."""
    with pytest.raises(UnexpectedQuotaOutput, match="did not answer"):
        lustre.read_lustre_quota(LFS.replace("5242880*", "[5242880]"), "user", "alice")


def test_lfs_df_of_space_and_inodes() -> None:
    """Every target once, the ones that are away with the reason."""
    found = {t.name: t for t in lustre.read_lfs_df(LFS_DF, LFS_DF_I)}
    assert list(found) == ["sc-MDT0000", "sc-OST0000", "sc-OST0001", "OST0002", "sc-OST0003"]
    full, meta = found["sc-OST0000"], found["sc-MDT0000"]
    assert (full.kind, full.used, full.free) == ("data", 93088768 * KIB, 5615616 * KIB)
    assert full.used_percent == 94.31
    assert (meta.kind, meta.inodes_used_percent) == ("metadata", 90.0)
    assert found["OST0002"].trouble == "inactive device"
    assert found["sc-OST0003"].trouble == "Resource temporarily unavailable"


@pytest.mark.parametrize(
    ("letters", "trouble"),
    [
        ("", ""),
        (" D", ""),
        (" f", ""),
        (" DN", "takes no new files"),
        (" S", "out of space"),
        (" fX", "state X, not known here"),
    ],
)
def test_lfs_df_marks_targets_by_letters(letters: str, trouble: str) -> None:
    """One that is being rebuilt must not blind for all the others, lfs-df(1)."""
    text = LFS_DF.replace("/sc[OST:0]", f"/sc[OST:0]{letters}")
    found = {
        t.name: t
        for t in lustre.read_lfs_df(text, LFS_DF_I.replace("[OST:0]", f"[OST:0]{letters}"))
    }
    target = found["sc-OST0000"]
    assert (target.trouble, target.used_percent, target.inodes) == (trouble, 94.31, 1_000_000)


def test_lfs_df_of_a_mount_with_a_blank() -> None:
    """The name of the target and the numbers come before it."""
    text = LFS_DF.replace("/sc[", "/my sc[")
    assert len(lustre.read_lfs_df(text, LFS_DF_I)) == 5


def test_mmlsquota_counts_what_is_in_doubt() -> None:
    """Columns by name, names unescaped, KiB."""
    user, fileset = gpfs.read_gpfs_quota(MMLSQUOTA)
    assert user == QuotaRow(
        kind="user",
        name="alice:ml",
        space=QuotaAmount(
            used=(2097152 + 1024) * KIB, soft=1048576 * KIB, hard=12582912 * KIB, grace=6 * DAY
        ),
        entries=QuotaAmount(used=4010, hard=500_000),
    )
    assert (fileset.kind, fileset.name, fileset.space) == (
        "fileset",
        "root",
        QuotaAmount(used=102400),
    )


def test_mmlsquota_none_is_a_grace_that_never_began() -> None:
    """There the word for one that ended is `expired`."""
    running = MMLSQUOTA.replace("6 days", "none")
    assert gpfs.read_gpfs_quota(running)[0].space.grace is None
    assert gpfs.read_gpfs_quota(MMLSQUOTA.replace("6 days", "expired"))[0].space.grace == 0.0


def test_mmlsquota_names_people_with_their_fileset() -> None:
    """They have a quota in each; two of one name would be one alert."""
    rows = MMLSQUOTA + MMLSQUOTA.splitlines()[1].replace(":::", "::proj7:")[:-1] + "\n"
    rows = rows.replace("e:on:off::proj7", "e:on:off:7:proj7")
    assert [q.name for q in gpfs.read_gpfs_quota(rows)] == ["alice:ml", "root", "alice:ml@proj7"]


def test_beegfs_quota_in_several_pools() -> None:
    """Each pool has its own rows and heading."""
    head = "Quota information for storage pool {} (ID: {}):\n\n"
    text = head.format("Default", 1) + BEEGFS + "\n" + head.format("fast", 2) + BEEGFS
    assert len(beegfs.read_beegfs_quota(text, "user")) == 2


def test_beegfs_quota() -> None:
    """Bytes already; unlimited is no limit."""
    (found,) = beegfs.read_beegfs_quota(BEEGFS, "user")
    assert found.space == QuotaAmount(used=2097152, hard=1073741824)
    assert found.entries == QuotaAmount(used=120)


def test_beegfs_quota_without_numbers_is_no_answer() -> None:
    """beegfs-ctl leaves out what is not valid, and ends with 0."""
    for text in (BEEGFS.splitlines()[0] + "\n", BEEGFS + BEEGFS.splitlines()[0] + "\n"):
        with pytest.raises(UnexpectedQuotaOutput, match="without numbers"):
            beegfs.read_beegfs_quota(text, "user")


def test_beegfs_files_that_are_not_counted_everywhere() -> None:
    """`-`: nowhere; `120+`: at least so many, which proves only that a limit is passed."""

    def files(used: str, limit: str) -> QuotaAmount | None:
        row = BEEGFS.replace(",120,unlimited", f",{used},{limit}")
        return beegfs.read_beegfs_quota(row, "user")[0].entries

    assert files("-", "100") is None
    assert files("120+", "unlimited") == QuotaAmount(used=120)
    assert files("120+", "100") == QuotaAmount(used=120, hard=100)
    with pytest.raises(UnexpectedQuotaOutput, match="do not count"):
        files("120+", "1000")


def test_beegfs_8_quota() -> None:
    """A user and a group of one number are two; `unlimited` is written as the largest number."""
    (found,) = beegfs.read_beegfs_usage(BEEGFS_8, "user", 1000)
    assert found.space == QuotaAmount(used=2097152, hard=1073741824)
    assert found.entries == QuotaAmount(used=120)
    unlimited = BEEGFS_8.replace("1073741824", str(2**63 - 1))
    assert beegfs.read_beegfs_usage(unlimited, "user", 1000)[0].space == QuotaAmount(used=2097152)


def test_beegfs_8_quota_without_numbers_is_no_answer() -> None:
    """`?` is what no server has told; an id without any has no row, and it ends with 0."""
    with pytest.raises(UnexpectedQuotaOutput, match="no row of user 1001"):
        beegfs.read_beegfs_usage(BEEGFS_8, "user", 1001)
    with pytest.raises(UnexpectedQuotaOutput, match="have not reported"):
        beegfs.read_beegfs_usage(BEEGFS_8.replace("2097152/1073741824", "?/?"), "user", 1000)
    with pytest.raises(UnexpectedQuotaOutput):
        beegfs.read_beegfs_usage(BEEGFS_8.replace("120/∞", "?/500"), "user", 1000)
    (found,) = beegfs.read_beegfs_usage(BEEGFS_8.replace("120/∞", "?/?"), "user", 1000)
    assert found.entries is None


def test_beegfs_8_targets() -> None:
    """Each is told apart with what ails it; one that is away has no sizes."""
    meta, full, gone = beegfs.read_beegfs_list(BEEGFS_8_TARGETS)
    assert (meta.kind, meta.used_percent, meta.inodes_used_percent) == ("metadata", 50.0, 50.0)
    assert (full.kind, full.used_percent, full.inodes) == ("data", 95.0, 0)
    assert full.trouble == "data: Bad, emergency pool"
    assert (gone.name, gone.trouble) == ("gone", "offline")
    waits = BEEGFS_8_TARGETS.replace('"Bad"', '"Needs-resync"').replace("Emergency", "Drained")
    assert beegfs.read_beegfs_list(waits)[1].trouble == "data: Needs-resync, drained pool"
    # It is there, and has no size: that hides no other.
    *others, strange = beegfs.read_beegfs_list(BEEGFS_8_TARGETS.replace("Offline", "Online"))
    assert others == [meta, full]
    assert (strange.name, strange.trouble) == ("gone", "its row is not understood")


def test_xfs_holds_those_without_limits_to_those_of_id_0() -> None:
    """Which are not held themselves; the kernel writes them into an id only when it is used."""
    text = XFS.replace("#0                   0          0          0", "#0 9 500 1000")
    text += "#8 700 0 0 00 [--------] 3 0 9 00 [--------]\n"
    root, seven, eight = linux.apply_xfs_defaults(linux.read_xfs_quota(text, "project"))
    assert root.space == QuotaAmount(used=9 * KIB)
    assert seven.space.hard == 40960 * KIB
    assert eight.space == QuotaAmount(used=700 * KIB, soft=500 * KIB, hard=1000 * KIB)
    assert eight.entries == QuotaAmount(used=3, hard=9)


def test_zfs_people_without_a_quota_are_held_by_the_default() -> None:
    """OpenZFS 2.4; a quota of their own goes first."""
    one = QuotaRow(
        kind="user", name="alice", space=QuotaAmount(used=5), entries=QuotaAmount(used=1, hard=3)
    )
    text = "defaultuserquota\t100\ndefaultuserobjquota\t50\n"
    found = trees.apply_zfs_defaults(one, text, "user")
    assert (found.space, found.entries) == (
        QuotaAmount(used=5, hard=100),
        QuotaAmount(used=1, hard=3),
    )
    with pytest.raises(UnexpectedQuotaOutput):
        trees.apply_zfs_defaults(one, "", "user")


@pytest.mark.parametrize(
    "words",
    [
        "quota disabled, qgroup data may be out of date",
        "rescan is running, qgroup data may be incorrect",
        "qgroup data inconsistent, rescan recommended",
        "something new about these numbers",
    ],
)
def test_btrfs_numbers_that_are_stale_are_no_answer(words: str) -> None:
    """They come on stderr with exit code 0; without a word the numbers count."""
    with pytest.raises(UnexpectedQuotaOutput):
        trees.refuse_stale(f"WARNING: {words}\n")
    trees.refuse_stale("\n")


def test_beegfs_targets() -> None:
    """Metadata and storage apart; the emergency pool takes no more files."""
    meta, low, emergency = beegfs.read_beegfs_targets(BEEGFS_DF)
    assert (meta.kind, meta.used_percent, meta.inodes_used_percent) == ("metadata", 50.0, 50.0)
    assert (low.name, low.kind, low.used_percent, low.trouble) == ("101", "data", 95.0, "")
    assert emergency.trouble == "emergency pool"


def test_cephfs_attributes() -> None:
    """Recursive bytes and entries; a quota that is not set is none."""
    values = {"ceph.dir.rbytes": "1000", "ceph.dir.rentries": "7", "ceph.quota.max_bytes": "5000"}
    (found,) = trees.read_ceph_quota(values, "/ceph/x")
    assert (found.space, found.entries) == (QuotaAmount(used=1000, hard=5000), QuotaAmount(used=7))
    with pytest.raises(UnexpectedQuotaOutput, match="no directory of CephFS"):
        trees.read_ceph_quota({"ceph.quota.max_bytes": "1"}, "/ceph/x")


@pytest.mark.parametrize(
    ("quota", "refquota", "space"),
    [
        ("0", "0", QuotaAmount(used=900)),
        ("1000", "0", QuotaAmount(used=900, hard=1000)),
        ("1000", "550", QuotaAmount(used=500, hard=550)),
        ("940", "550", QuotaAmount(used=900, hard=940)),
        ("none", "-", QuotaAmount(used=900)),
    ],
)
def test_zfs_datasets_are_held_by_the_tighter_of_two(
    quota: str, refquota: str, space: QuotaAmount
) -> None:
    """quota counts snapshots and children, refquota does not."""
    text = f"used\t900\navailable\t100\nquota\t{quota}\nrefquota\t{refquota}\nreferenced\t500\n"
    assert trees.read_zfs_quota(text, "dataset", "tank/x")[0].space == space


def test_zfs_people() -> None:
    """Bytes and objects of one user."""
    text = (
        "useruse"
        + "d@alice\t100\nuserquota@alice\t200\nuserobjused@alice\t3\nuserobjquota@alice\tnone\n"
    )
    (found,) = trees.read_zfs_quota(text, "user", "alice")
    assert (found.space, found.entries) == (QuotaAmount(used=100, hard=200), QuotaAmount(used=3))


def test_btrfs_qgroups_are_held_by_the_tighter_limit() -> None:
    """Referenced or exclusive bytes, whichever leaves less; a path may hold blanks."""
    top, project = trees.read_btrfs_quota(QGROUPS)
    assert (top.name, top.space) == ("0/5", QuotaAmount(used=16384))
    assert project.space == QuotaAmount(used=5250000, hard=6000000)


READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "quota": (quota, QUOTA),
    "repquota": (lambda text: linux.read_repquota(text, "user", NOW), REPQUOTA),
    "xfs": (lambda text: linux.read_xfs_quota(text, "project"), XFS),
    "lfs quota": (lambda text: lustre.read_lustre_quota(text, "user", "alice"), LFS),
    "lfs df": (lambda text: lustre.read_lfs_df(text, LFS_DF_I), LFS_DF),
    "mmlsquota": (gpfs.read_gpfs_quota, MMLSQUOTA),
    "beegfs": (lambda text: beegfs.read_beegfs_quota(text, "user"), BEEGFS),
    "beegfs-df": (beegfs.read_beegfs_targets, BEEGFS_DF),
    "beegfs 8": (lambda text: beegfs.read_beegfs_usage(text, "user", 1000), BEEGFS_8),
    "beegfs 8 targets": (beegfs.read_beegfs_list, BEEGFS_8_TARGETS),
    "btrfs": (trees.read_btrfs_quota, QGROUPS),
    "zfs": (lambda text: trees.read_zfs_quota(text, "dataset", "tank"), "used\t1\n"),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "Segmentation fault\n",
        "{}\n",
        "/home y 2 3 4 5 6 7 8\n",
        "quota: error while getting quota\n",
    ],
)
def test_something_new_is_never_an_answer(name: str, text: str) -> None:
    """A tool that prints what its manual does not say leaves everything unknown."""
    read, _ = READERS[name]
    with pytest.raises(UnexpectedQuotaOutput):
        read(text)


@pytest.mark.parametrize("name", [n for n in READERS if n not in ("zfs", "lfs df")])
def test_a_digit_that_became_a_word_is_no_answer(name: str) -> None:
    """No column is guessed, wherever the change is; among other rows it costs that row alone."""
    read, text = READERS[name]
    hurt, count = re.subn(r"(?<=[\s,:\"])(\d{5,}|1000\.0)", "2x", text, count=1)
    assert count == 1
    try:
        found = read(hurt)
    except UnexpectedQuotaOutput:
        return
    assert [row for row in found if getattr(row, "unread", "") or getattr(row, "trouble", "")]


def test_a_digit_that_became_a_word_costs_that_target_alone() -> None:
    """The others are judged: one of them may be full."""
    hurt = re.sub(r"(?<=[\s])(\d{5,})", "2x", LFS_DF, count=1)
    whole = {target.name: target for target in lustre.read_lfs_df(LFS_DF, LFS_DF_I)}
    [(_name, target), *others] = ((t.name, t) for t in lustre.read_lfs_df(hurt, LFS_DF_I))
    assert target.trouble.startswith("its row is not understood: 2x")
    assert target.used_percent is None
    assert len(others) == len(whole) - 1
    assert all(whole[name] == target for name, target in others)


CUT_TABLES: dict[str, tuple[str, Callable[[str], list[QuotaRow]]]] = {
    "quota": (QUOTA, quota),
    "repquota": (REPQUOTA, lambda text: linux.read_repquota(text, "user", NOW)),
    "xfs_quota": (XFS, lambda text: linux.read_xfs_quota(text, "user")),
    "lfs quota": (LFS, lambda text: lustre.read_lustre_quota(text, "user", "alice")),
    "mmlsquota": (MMLSQUOTA, gpfs.read_gpfs_quota),
    "beegfs-ctl": (BEEGFS, lambda text: beegfs.read_beegfs_quota(text, "user")),
    "beegfs": (BEEGFS_8, lambda text: beegfs.read_beegfs_usage(text, "user", 1000)),
    "btrfs": (QGROUPS, trees.read_btrfs_quota),
}


@pytest.mark.parametrize("tool", CUT_TABLES)
def test_a_row_that_lacks_cells_is_unknown_and_costs_no_other(tool: str) -> None:
    """Cut anywhere, or with a cell left out or of another form: what is told of a row is what the whole
    one says, or that it is not understood. A number that is cut in the last cell is beyond telling."""
    text, read = CUT_TABLES[tool]
    whole = {repr(row) for row in read(text)}
    lines = text.splitlines(keepends=True)
    last = max(text.rstrip().rfind(mark) for mark in " ,:\t")
    cuts = [text[:n] for n in range(last)]
    cuts += ["".join(lines[:n]) + line[: m.start()] + new + line[m.end() :] + "".join(lines[n + 1 :])
             for n, line in enumerate(lines) if "HEADER" not in line for m in re.finditer(r"[^\s,:]+", line)
             for new in ("x", "-1", "nan", "1e5", "\u0663")]  # fmt: skip
    for cut in cuts:
        try:
            rows = read(cut)
        except UnexpectedQuotaOutput:
            continue
        for row in rows:
            assert row.unread or repr(row) in whole or _differs_by_name(row, whole), (
                cut[-80:],
                row,
            )


def _differs_by_name(row: QuotaRow, whole: set[str]) -> bool:
    """Names may be any text."""
    return any(repr(row).partition(" space=")[2] in one for one in whole)
