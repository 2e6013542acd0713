"""Disks and quotas, drawn by a seed from `sources/disks.txt`; the answers were committed before the program ran.

A source whose form a test has already, or that has none for these checks, gives its place to the next of the draw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sentinel.checks.filesystems.limits import SpaceLimits, judge_usage, parse_usage
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.verdict import (
    PathObservation,
    PathState,
    VerdictSettings,
    path_finding,
)
from sentinel.checks.quota import collect
from sentinel.checks.quota.judge import quota_finding, targets_finding
from sentinel.checks.quota.tools import beegfs, command, gpfs, linux, lustre, trees
from sentinel.checks.quota.tools.quota import QuotaRow
from sentinel.core import mounts
from sentinel.core.clock import Instant
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.values import Share
from tests.world.case import Case, each

GITHUB = "https://github.com/"
LFS = "https://github.com/lustre/lustre-release lustre/utils/lfs.c"
COST = "Jobs die because nothing can be written, or somebody is woken for a disk that is well."
CRIT, WARN = (
    SpaceLimits(used=Share(95), inodes_used=Share(95)),
    SpaceLimits(used=Share(85), inodes_used=Share(85)),
)
NOW = 1_800_000_000.0


def quotas(rows: Iterable[QuotaRow]) -> dict[str, str]:
    """The status of each quota, by its name."""
    return {row.name: quota_finding("/p", row, WARN, CRIT, NOW).status.value for row in rows}


def disk(line: str) -> str:
    """The status of what statfs(2) answered, or that it cannot be believed."""
    try:
        return judge_usage(parse_usage(line), WARN, CRIT)[0].value
    except ValueError:
        return "unknown"


def mounted(row: str, before: tuple[str, ...] = ("mount", "superblock")) -> str:
    """The status of a half-full file system of that row, which was writable before."""
    [mount] = mounts.parse_mount_table(row.encode()).list_mounts_of_types(
        {row.split(" - ")[1].split()[0]}
    )
    answer = PathAnswer(usage=parse_usage("4096 1000 500 500 100 50 ext4"), real=mount.point)
    now = Instant(wall=0, boot="b", mono=0)
    rules = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
    sight = PathObservation(path=mount.point, answer=answer, mount=mount, at=now)
    return path_finding(sight, PathState(writable=before), rules).status.value


def refused(error: str) -> str:
    """The status of a path whose file system answers with that error."""
    now = Instant(wall=0, boot="b", mono=0)
    rules = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
    sight = PathObservation(path="/p", answer=PathAnswer(error=error, real="/p"), at=now)
    return path_finding(sight, PathState(), rules).status.value


def told(read: Callable[[], object]) -> object:
    """What it reads, or that it cannot tell."""
    try:
        return read()
    except CannotTell:
        return "cannot tell"


def ask(tool: str, kind: str = "user", name: str = "alice") -> object:
    """The answer of a tool that was put into the PATH."""
    mount = mounts.Mount(
        id=1, parent=0, device="0:9", root="/", point="/sc", type="nfs", source="srv:/sc",
        options=frozenset({"rw"}), super_options=frozenset({"rw"}),
    )  # fmt: skip
    question = collect.QuotaQuestion(
        path="/sc", mount=mount, kind=kind, name=name, limit=0.5, now=NOW
    )
    return told(lambda: quotas(collect.ask_quotas(tool, question)))


LFS_QUOTA = (
    "Disk quotas for usr bob (uid 1002):\n"
    "      Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace\n"
)
BEEGFS_DF = """\
METADATA SERVERS:
TargetID   Cap. Pool        Total         Free    %      ITotal       IFree    %
========   =========        =====         ====    =      ======       =====    =
       1      normal     100.0GiB      95.0GiB  95%      100.0M       99.0M  99%

STORAGE TARGETS:
TargetID   Cap. Pool        Total         Free    %      ITotal       IFree    %
========   =========        =====         ====    =      ======       =====    =
     101   emergency    1000.0GiB      10.0GiB   1%      100.0M       99.0M  99%
     102      normal    1000.0GiB     500.0GiB  50%      100.0M       99.0M  99%
"""
QGROUPS = (
    "Qgroupid    Referenced    Exclusive  Max referenced  Max exclusive   Path\n"
    "--------    ----------    ---------  --------------  -------------   ----\n"
)
NA = re.compile(r"(?P<name>/\S*)\s+(?P<limit>\S+)\s+\S+\s+(?P<used>\S+)")
WEKA = re.compile(
    r"(?P<name>/\S+)\s+\S+\s+(?P<used>[\d.]+ \wiB)\s+(?P<soft>[\d.]+ \wiB)\s+(?P<limit>[\d.]+ \wiB)"
)
REPQUOTA = (
    "Project,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,"
    "FileUsed,FileSoftLimit,FileHardLimit,FileGrace\n"
)
MMLSQUOTA = (
    "mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:blockLimit:"
    "blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:fid:"
    "filesetname:\n"
)

# Seed 20261128, from 67 sources.
DRAWN_1 = (
    Case("a-target-in-the-emergency-pool", "https://doc.beegfs.io/7.4/",
         lambda: targets_finding("/b", beegfs.read_beegfs_targets(BEEGFS_DF), WARN, CRIT).status.value, "critical", COST),
    Case("a-bucket-of-four-gigabytes", GITHUB + "s3fs-fuse/s3fs-fuse/issues/2489",
         lambda: disk("4096 1048576 1048576 1048576 4294967295 4294967295 fuseblk"), "ok", COST),
    Case("a-bucket-of-sixteen-exbibytes", GITHUB + "s3fs-fuse/s3fs-fuse/issues/2111",
         lambda: disk("16777216 1099511627776 1099511627776 1099511627776 4294967295 4294967295 fuseblk"), "ok", COST),
    Case("qgroups-are-inconsistent", GITHUB + "nachoparker/btrfs-du/issues/1",
         lambda: told(lambda: trees.refuse_stale("WARNING: qgroup data inconsistent, rescan recommended\n")), "cannot tell", COST),
    Case("quota-of-a-pool", LFS,
         lambda: quotas(lustre.read_lustre_quota(LFS_QUOTA.replace("kbytes", "  used") + "           /work 1048576       0 2097152       -       0       0       0       -\n", "user", "bob")),
         {"bob": "ok"}, COST),
    Case("grace-has-expired", LFS,
         lambda: quotas(lustre.read_lustre_quota(LFS_QUOTA + "           /work  110000* 100000  200000 expired     10       0       0       -\n", "user", "bob")),
         {"bob": "critical"}, COST),
    Case("a-firewall-before-rquotad", GITHUB + "ocf/nix/issues/395", ("quota", "sleep 60"), "cannot tell", COST),
    Case("a-list-of-nothing", GITHUB + "gluster/glusterfs/issues/2260",
         lambda: told(lambda: quotas(command.from_text("/     N/A       N/A        N/A     N/A             N/A                  N/A\n", NA))), "cannot tell", COST),
    Case("a-path-behind-the-numbers", GITHUB + "kdave/btrfs-progs/issues/1104",
         lambda: quotas(trees.read_btrfs_quota(QGROUPS + "0/5              16384        16384            none           none   <toplevel>\n"
                                               "0/304      15225425920  15203934208     26843545600           none   root/var/log\n")),
         {"0/5": "ok", "0/304": "ok"}, COST),
    Case("ext4-gave-up-on-an-old-kernel", GITHUB + "sonic-net/sonic-buildimage/issues/23146",
         lambda: mounted("36 25 7:1 / /host/image rw,relatime - ext4 /dev/loop1 ro,errors=remount-ro"), "critical", COST),
    Case("quota-of-weka", "https://docs.weka.io (weka fs quota list)",
         lambda: quotas(command.from_text("/home/alice   alice   8.00 GiB  9.00 GiB  10.00 GiB  -  80.00%\n", WEKA)), {"/home/alice": "ok"}, COST),
    Case("numbers-in-brackets", LFS,
         lambda: told(lambda: quotas(lustre.read_lustre_quota(
             LFS_QUOTA + "           /work [1048576]      0 2097152       -   [100]       0       0       -\n"
             "Some errors happened when getting quota info. Some devices may be not working or deactivated. The data in \"[]\" is inaccurate.\n", "user", "bob"))),
         "cannot tell", COST),
    Case("repquota-by-project", GITHUB + "pelican/docs/pull/186",
         lambda: quotas(linux.read_repquota(REPQUOTA + "235844d3-9258-4846-bb04-bcff209ccf9a,ok,ok,9961472,0,10485760,0,1000,0,0,0\n", "project", NOW)),
         {"235844d3-9258-4846-bb04-bcff209ccf9a": "critical"}, COST),
    Case("the-parent-s-quota", "https://docs.ceph.com/en/latest/cephfs/quota/",
         lambda: quotas(trees.read_ceph_quota({"ceph.dir.rbytes": "98", "ceph.dir.rentries": "1", "ceph.quota.max_bytes": "100"}, "/c/project")),
         {"/c/project": "critical"}, COST),
    Case("a-fileset-of-a-project", GITHUB + "treydock/gpfs_exporter/blob/master/collectors/mmrepquota_test.go",
         lambda: quotas(gpfs.read_gpfs_quota(MMLSQUOTA + "mmlsquota::0:1:::project:FILESET:408:PZS1003:341467872:2147483648:2147483648:0:none:6286:2000000:2000000:0:none:e:on:off:::\n")),
         {"PZS1003": "ok"}, COST),
)  # fmt: skip

# The next fifteen of the same draw.
DRAWN_2 = (
    Case("bcachefs-goes-read-only", GITHUB + "koverstreet/bcachefs/issues/244",
         lambda: mounted("36 25 0:41 / /data rw,relatime - bcachefs /dev/mmcblk2p2 ro,compression=lz4"), "critical", COST),
    Case("a-holder-of-space", GITHUB + "kdave/btrfs-progs/pull/792",
         lambda: quotas(trees.read_btrfs_quota(QGROUPS + "0/258          1048576      1048576            none           none   <squota space holder>\n")), {"0/258": "ok"}, COST),
    Case("xfs-quota-prints-nothing", GITHUB + "kubernetes-retired/external-storage/issues/1337", ("xfs_quota", ":"), "cannot tell", COST),
    Case("a-qtree-in-json", "https://docs.netapp.com (volume quota report), by a site's command",
         lambda: quotas(command.from_json('[{"used_bytes": 95000000000, "limit_bytes": 100000000000, "name": "qtree1", "volume": "v1"}]')), {"qtree1": "critical"}, COST),
    Case("limits-above-the-volume", GITHUB + "openebs/dynamic-localpv-provisioner/issues/150",
         lambda: quotas(linux.read_xfs_quota("#0              0          0          0     00 [--------]          3          0          0     00 [--------]\n"
                                             "#1        1048576   16777216   19922944     00 [--------]          3          0          0     00 [--------]\n", "project")),
         {"0": "ok", "1": "ok"}, COST),
    Case("files-by-default", GITHUB + "llnl/lustre-tools-llnl/pull/32",
         lambda: sorted(lustre.limits_by_default(LFS_QUOTA + "           /p/l    1024       0   18432       -       7       0       0       -\nuid 1002 is using default file quota setting\n")),
         ["file"], COST),
    Case("refquota-is-tighter", "https://openzfs.github.io/openzfs-docs/man/master/7/zfsprops.7.html",
         lambda: quotas(trees.read_zfs_quota("used\t90\navailable\t5\nquota\t200\nrefquota\t85\nreferenced\t80\n", "dataset", "tank/a")), {"tank/a": "warning"}, COST),
    Case("nobody-is-limited", GITHUB + "openSUSE/snapper/issues/564",
         lambda: quotas(trees.read_btrfs_quota("qgroupid         rfer         excl     max_rfer     max_excl parent  child\n+-------         ----         ----     --------     -------- ------  -----\n"
                                               "0/5             16384        16384         none         none ---     ---  \n0/263    154627416064     11198464         none         none ---     ---  \n")),
         {"0/5": "ok", "0/263": "ok"}, COST),
    Case("zeros-in-the-columns-of-grace", GITHUB + "openshift/origin-server/pull/5706",
         lambda: quotas(linux.read_linux_quota("Disk quotas for user u (uid 1001): \n     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
                                               "          /home    1024       0 1048576       0      55       0   40000       0\n", "user", "u", {"/home"}, NOW)), {"u": "ok"}, COST),
    Case("less-than-nothing-is-used", GITHUB + "juicedata/juicefs/pull/4591",
         lambda: disk("4096 274877906944 274877906969 274877906969 10485760 10485760 fuseblk"), "ok", COST),
    Case("a-colon-in-a-name", "https://www.ibm.com/docs/en/storage-scale (mmlsquota -Y)",
         lambda: quotas(gpfs.read_gpfs_quota(MMLSQUOTA + "mmlsquota::0:1:::fs1:USR:5001:DOM%3Aalice:950:0:1000:0:none:1:0:0:0:none:e:on:off:0:root:\n")), {"DOM:alice": "critical"}, COST),
    Case("a-raid-is-degraded", LFS,
         lambda: targets_finding("/work", lustre.read_lfs_df(*[
             "UUID                   1K-blocks        Used   Available Use% Mounted on\nwork-MDT0000_UUID       40000000    10000000    30000000  25% /work[MDT:0]\n"
             "work-OST0003_UUID      900000000   100000000   800000000  12% /work[OST:3] Df\n\nfilesystem_summary:    900000000   100000000   800000000  12% /work\n"] * 2), WARN, CRIT).status.value,
         "ok", COST),
    Case("stale-qgroups", GITHUB + "kdave/btrfs-progs/issues/687",
         lambda: quotas(trees.read_btrfs_quota(QGROUPS + "0/256            16384        16384            none           none   subv1\n0/257            16384        16384            none           none   <stale>\n")),
         {"0/256": "ok", "0/257": "ok"}, COST),
    Case("no-limit-at-all", "https://doc.beegfs.io/7.4/advanced_topics/quota.html",
         lambda: quotas(beegfs.read_beegfs_quota("name,id,size,hard,files,hard\nalice,1001,123456,unlimited,12,unlimited\n", "user")), {"alice": "ok"}, COST),
    Case("eight-exbibytes-of-efs", GITHUB + "gocd/gocd/issues/2797",
         lambda: disk("1048576 8796093022208 8796093022208 8796093022208 0 0 nfs"), "ok", COST),
)  # fmt: skip


QUOTA = "Disk quotas for user u (uid 1001): \n     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"


def gpfs_row(row: str) -> object:
    return quotas(gpfs.read_gpfs_quota(MMLSQUOTA + row + "\n"))


# The next of the same draw: 40, 41, 43 to 46, 48 to 55, 57. The others were used or have no form for these checks.
DRAWN_3 = (
    Case("rquotad-refuses", GITHUB + "dCache/nfs4j/issues/133",
         ("quota", "echo 'quota: error while getting quota from srv:/pnfs for user1 (id 101056): Connection refused' >&2; echo 'Disk quotas for user user1 (uid 101056): '; exit 1"), "cannot tell", COST),
    Case("terabytes-in-doubt", GITHUB + "treydock/gpfs_exporter/blob/master/collectors/mmrepquota_test.go",
         lambda: gpfs_row("mmlsquota::0:1:::scratch:FILESET:0:root:928235294208:0:0:5308909920:none:141909093:0:0:140497:none:i:on:off:::"), {"root": "ok"}, COST),
    Case("an-empty-xfs", GITHUB + "minio/minio/issues/8035", lambda: disk("4096 249929063 249920782 249920782 499967104 499967082 xfs"), "ok", COST),
    Case("a-bucket-without-a-size", GITHUB + "awslabs/mountpoint-s3/pull/871", lambda: disk("4096 0 0 0 0 0 fuse"), "unknown", COST),
    Case("a-group-below-a-tebibyte", GITHUB + "molgenis/cluster-utils/pull/14",
         lambda: gpfs_row("mmlsquota::0:1:::umcg:GRP:2001:gcc:471859200:0:524288000:0:none:1395:0:0:400:none:e:on:off:0:root:"), {"gcc": "warning"}, COST),
    Case("root-in-a-fileset", GITHUB + "treydock/gpfs_exporter/blob/master/collectors/mmrepquota_test.go",
         lambda: gpfs_row("mmlsquota::0:1:::home:USR:0:root:337419744:0:0:163840:none:1395:0:0:400:none:i:on:off::foo:"), {"root@foo": "ok"}, COST),
    Case("qgroups-without-paths", GITHUB + "kdave/btrfs-progs/issues/62",
         lambda: quotas(trees.read_btrfs_quota("qgroupid         rfer         excl     max_rfer     max_excl\n--------         ----         ----     --------     --------\n0/257    1726224000000 1726224000000 1726224000001         none\n")),
         {"0/257": "critical"}, COST),
    Case("nobody-implements-statfs", GITHUB + "mar-file-system/marfs/issues/34", lambda: refused("Function not implemented"), "unknown", COST),
    Case("a-default-of-zfs", "https://openzfs.github.io/openzfs-docs/man/master/7/zfsprops.7.html",
         lambda: quotas([trees.apply_zfs_defaults(trees.read_zfs_quota("userused@1000\t96\nuserquota@1000\tnone\nuserobjused@1000\t1\nuserobjquota@1000\tnone\n", "user", "1000")[0],
                                                  "defaultuserquota\t100\ndefaultuserobjquota\tnone\n", "user")]), {"1000": "critical"}, COST),
    Case("a-pebibyte-of-nothing", GITHUB + "itbh-at/wusel/issues/30", lambda: disk("1024 1099511627776 1099511627776 1099511627776 0 0 fuse"), "ok", COST),
    Case("a-volume-that-is-full", GITHUB + "xtreemfs/xtreemfs/issues/35", lambda: disk("131072 3002072825 2932736 2932736 0 0 fuse"), "critical", COST),
    Case("no-quota-of-zfs", "https://openzfs.github.io/openzfs-docs/man/master/8/zfs-userspace.8.html",
         lambda: quotas(trees.read_zfs_quota("userused@1000\t5\nuserquota@1000\tnone\nuserobjused@1000\t1\nuserobjquota@1000\tnone\n", "user", "1000")), {"1000": "ok"}, COST),
    Case("files-over-soft-and-no-grace", GITHUB + "rcgsheffield/sheffield_hpc/pull/1947",
         lambda: quotas(linux.read_linux_quota(QUOTA + "         /users 3289000 52428800 78643200       0 321000*  300000  350000    none\n", "user", "u", {"/users"}, NOW)), {"u": "critical"}, COST),
    Case("usage-of-beegfs-8", "https://doc.beegfs.io/latest/advanced_topics/quota.html",
         lambda: quotas(beegfs.read_beegfs_usage('{"name":"alice","id":1001,"type":"user","pool":"pool_default","space":"950/1000","inode":"1/∞"}\n', "user", 1001)), {"alice": "critical"}, COST),
    Case("six-days-of-grace", "https://www.ibm.com/docs/en/storage-scale (mmlsquota -Y)",
         lambda: gpfs_row("mmlsquota::0:1:::fs1:USR:5001:ann:1100:1000:2000:0:6 days:1:0:0:0:none:e:on:off:0:root:"), {"ann": "warning"}, COST),
)  # fmt: skip


def lfs_row(row: str, kind: str = "user") -> object:
    return told(lambda: quotas(lustre.read_lustre_quota(LFS_QUOTA + row + "\n", kind, "bob")))


def lfs_df(flag: str) -> str:
    """The status of two targets, the second with that letter behind it."""
    text = (
        "work-OST0000_UUID      900000000   100000000   800000000  12% /work[OST:0]\n"
        f"work-OST0001_UUID      900000000   100000000   800000000  12% /work[OST:1] {flag}\n\n"
        "filesystem_summary:   1800000000   200000000  1600000000  12% /work\n"
    )
    return targets_finding("/work", lustre.read_lfs_df(text, text), WARN, CRIT).status.value


# Seed 20261201, from 31 sources: 20 that were added for it, and those that were left.
DRAWN_4 = (
    Case("a-row-in-two-lines", GITHUB + "NatLabRockies/HPC/pull/390",
         lambda: lfs_row("/projects/a-name-that-is-longer-than-its-column\n                151074500000* 85899345920 85899345920       -      10       0       0       -", "project"), {"bob": "critical"}, COST),
    Case("a-target-without-space", LFS, lambda: lfs_df("S"), "warning", COST),
    Case("qgroups-without-members", GITHUB + "rockstor/rockstor-core/issues/2854",
         lambda: quotas(trees.read_btrfs_quota(QGROUPS + "0/268            16384        16384            none           none   sftp-share\n2015/1               0            0            none           none   <0 member qgroups>\n")),
         {"0/268": "ok", "2015/1": "ok"}, COST),
    Case("two-pools", "https://doc.beegfs.io/7.4/advanced_topics/quota.html",
         lambda: sorted(row.space.used for row in beegfs.read_beegfs_quota("Quota information for storage pool Default (ID: 1):\nname,id,size,hard,files,hard\nalice,1001,5,unlimited,12,unlimited\n"
                                                                           "Quota information for storage pool fast (ID: 2):\nname,id,size,hard,files,hard\nalice,1001,97,100,12,unlimited\n", "user")), [5, 97], COST),
    Case("no-heading", "https://doc.beegfs.io/7.4/advanced_topics/quota.html", lambda: told(lambda: quotas(beegfs.read_beegfs_quota("alice,1001,5,unlimited,12,unlimited\n", "user"))), "cannot tell", COST),
    Case("a-summary-alone", LFS, lambda: told(lambda: lustre.read_lfs_df("filesystem_summary:   1800000000   200000000  1600000000  12% /work\n", "")), "cannot tell", COST),
    Case("remarks-of-gpfs", GITHUB + "hpcugent/vsc-filesystems/blob/master/test/gpfs.py",
         lambda: gpfs_row("mmlsquota::0:1:::fstest:USR:2510001:2510001:0:5242880:5242880:0:none:1:0:0:0:none:e:on:off:0:root:"), {"2510001": "ok"}, COST),
    Case("no-limit-of-ceph", "https://docs.ceph.com/en/latest/cephfs/quota/", lambda: quotas(trees.read_ceph_quota({"ceph.dir.rbytes": "5", "ceph.dir.rentries": "2"}, "/c")), {"/c": "ok"}, COST),
    Case("a-dead-daemon-of-fuse", "errno(3), ENOTCONN", lambda: refused("Transport endpoint is not connected"), "critical", COST),
    Case("a-device-that-is-gone", "errno(3), ENODEV", lambda: refused("No such device"), "critical", COST),
    Case("a-target-that-takes-nothing-new", LFS, lambda: lfs_df("N"), "warning", COST),
    Case("grace-of-gpfs-has-expired", "https://www.ibm.com/docs/en/storage-scale (mmlsquota -Y)",
         lambda: gpfs_row("mmlsquota::0:1:::fs1:USR:5001:ann:1100:1000:2000:0:expired:1:0:0:0:none:e:on:off:0:root:"), {"ann": "critical"}, COST),
    Case("quota-of-vast", "https://support.vastdata.com (quotas), by a site's command",
         lambda: told(lambda: quotas(command.from_json('[{"name": "/proj", "used_bytes": 860, "limit_bytes": 1000, "soft_bytes": null, "state": "OK", "guid": "8d-1"}]'))), {"/proj": "warning"}, COST),
    Case("six-days-and-some", LFS, lambda: lfs_row("           /work  110000* 100000  200000 6d23h59m58s     10       0       0       -"), {"bob": "warning"}, COST),
    Case("no-right-to-look", "errno(3), EACCES", lambda: refused("Permission denied"), "unknown", COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4)
def test_a_form_of_disks_that_was_drawn(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    if isinstance(case.form, tuple):
        tool, script = case.form
        file = tmp_path / tool
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        answer = ask({"xfs_quota": "xfs"}.get(tool, tool))
    else:
        answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
