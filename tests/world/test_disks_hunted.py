"""Disks and quotas, hunted by somebody who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

import re
from collections.abc import Callable

from sentinel.checks.quota.judge import targets_finding
from sentinel.checks.quota.tools import beegfs, command, gpfs, linux, lustre, trees
from tests.world.case import Case, each
from tests.world.test_disks_drawn import (
    BEEGFS_DF,
    COST,
    CRIT,
    LFS,
    MMLSQUOTA,
    NOW,
    QUOTA,
    REPQUOTA,
    WARN,
    disk,
    mounted,
    quotas,
    refused,
    told,
)

SITE = "a site's own tool, by docs/quota.md"
GROUPS = "a group of Active Directory, as sssd(8) and winbind(8) name it"


def df(text: str) -> tuple[str, bool]:
    """The status of the targets of beegfs-df, and whether target 103 is named."""
    found = targets_finding("/b", beegfs.read_beegfs_targets(text), WARN, CRIT)
    return found.status.value, "103" in found.summary


HUNTED_1 = (
    Case("null-is-no-limit", SITE, lambda: told(lambda: quotas(command.from_json('{"name": "a", "used_bytes": 5, "limit_bytes": null}'))), {"a": "ok"}, COST),
    Case("a-float-of-bytes", SITE, lambda: told(lambda: quotas(command.from_json('{"name": "a", "used_bytes": 9.6e12, "limit_bytes": 1e13}'))), {"a": "critical"}, COST),
    # First written down as ok; -1 is how tools say that they do not know, so it is arguable.
    Case("less-than-nothing", SITE, lambda: told(lambda: quotas(command.from_json('{"name": "a", "used_bytes": -100, "limit_bytes": 1000}'))), "cannot tell", COST),
    Case("one-odd-row-of-three", SITE,
         lambda: told(lambda: {k: v for k, v in quotas(command.from_json('[{"name": "a", "used_bytes": 5, "limit_bytes": 100}, {"name": "b", "used_bytes": "n/a", "limit_bytes": 100},'
                                                                        ' {"name": "c", "used_bytes": 99, "limit_bytes": 100}]')).items() if k != "b"}), {"a": "ok", "c": "critical"}, COST),
    Case("domain-users-of-xfs", GROUPS,
         lambda: told(lambda: quotas(linux.read_xfs_quota("domain users    98000          0     100000     00 [--------]          3          0          0     00 [--------]\n", "group"))), {"domain users": "critical"}, COST),
    Case("domain-users-of-repquota", GROUPS, lambda: told(lambda: quotas(linux.read_repquota(REPQUOTA.replace("Project", "Group") + "domain users,ok,ok,98000,0,100000,0,3,0,0,0\n", "group", NOW))), {"domain users": "critical"}, COST),
    Case("another-mount-has-a-blank", "quota(1) --show-mntpoint, a point that is written `my disk` in fstab(5)",
         lambda: told(lambda: quotas(linux.read_linux_quota(QUOTA + "       /my disk    10       0     100       0       5       0       0       0\n          /home    96       0     100       0       5       0       0       0\n", "user", "u", {"/home"}, NOW))),
         {"u": "critical"}, COST),
    Case("a-type-without-a-name", "stat -f of coreutils 8.30 on virtiofs", lambda: disk("4096 1000 500 500 100 50 UNKNOWN (0x6a656a63)"), "ok", COST),
    Case("a-target-tells-nothing", "beegfs-df of BeeGFS 7, a target that is offline",
         lambda: told(lambda: df(BEEGFS_DF + "     103     unknown           -           -    -           -           -    -\n")), ("critical", True), COST),
    Case("a-target-has-no-inodes", LFS,
         lambda: told(lambda: targets_finding("/work", lustre.read_lfs_df(
             "work-OST0000_UUID      900000000   890000000    10000000  99% /work[OST:0]\nwork-OST0001_UUID      900000000   100000000   800000000  12% /work[OST:1]\n\nfilesystem_summary:    900000000   100000000   800000000  12% /work\n",
             "work-OST0000_UUID      900000   100000    800000  12% /work[OST:0]\nOST0001             : inactive device\n\nfilesystem_summary:    900000   100000   800000  12% /work\n"), WARN, CRIT).status.value), "critical", COST),
    Case("gpfs-warns-first", "mmlsquota of Storage Scale 5.1",
         lambda: told(lambda: quotas(gpfs.read_gpfs_quota("mmlsquota: [W] Quota information may be out of date.\n" + MMLSQUOTA + "mmlsquota::0:1:::fs1:USR:5001:ann:98:0:100:0:none:1:0:0:0:none:e:on:off:0:root:\n"))), {"ann": "critical"}, COST),
    Case("zero-is-no-limit", "https://docs.ceph.com/en/latest/cephfs/quota/", lambda: quotas(trees.read_ceph_quota({"ceph.dir.rbytes": "98", "ceph.dir.rentries": "1", "ceph.quota.max_bytes": "0"}, "/c")), {"/c": "ok"}, COST),
    Case("btrfs-gave-up", "Linux, fs/btrfs/messages.c (forced readonly)", lambda: mounted("36 25 0:41 / /data rw,relatime - btrfs /dev/sdb ro,space_cache=v2"), "critical", COST),
    Case("lustre-evicted-us", "statfs(2) of a Lustre client: ESHUTDOWN", lambda: refused("Cannot send after transport endpoint shutdown"), "critical", COST),
    Case("a-server-of-cifs-is-away", "statfs(2) of cifs: EHOSTDOWN", lambda: refused("Host is down"), "critical", COST),
)  # fmt: skip


ROW = re.compile(r"^(?P<name>\w+)\s+(?P<used>\S+ ?[KMGT]?B?)\s{2,}(?P<limit>.+)$", re.MULTILINE)


def site(text: str) -> object:
    return told(lambda: quotas(command.from_text(text, ROW)))


HUNTED_2 = (
    Case("no-limit-in-words", SITE, lambda: site("alice  5 GB  No limit\n"), {"alice": "ok"}, COST),
    Case("infinity", SITE, lambda: site("alice  5 GB  inf\nbob  99 GB  100 GB\n"), {"alice": "ok", "bob": "critical"}, COST),
    Case("not-available", SITE, lambda: site("alice  n/a  100 GB\nbob  99 GB  100 GB\n"), {"alice": "unknown", "bob": "critical"}, COST),
    Case("wrapped-in-an-object", SITE, lambda: told(lambda: quotas(command.from_json('{"quotas": [{"name": "a", "used_bytes": 1}]}'))), "cannot tell", COST),
    Case("a-decimal-comma", SITE, lambda: site("alice  1,5 TB  2 TB\n"), "cannot tell", COST),
    Case("files-at-their-limit", "repquota(8)", lambda: quotas(linux.read_repquota(REPQUOTA + "p1,ok,ok,10,0,1000,0,350000,0,350000,0\n", "project", NOW)), {"p1": "critical"}, COST),
    Case("entries-of-ceph", "https://docs.ceph.com/en/latest/cephfs/quota/", lambda: quotas(trees.read_ceph_quota({"ceph.dir.rbytes": "1", "ceph.dir.rentries": "99", "ceph.quota.max_files": "100"}, "/c")), {"/c": "critical"}, COST),
    Case("six-days-left", "quota(1) --raw-grace", lambda: quotas(linux.read_linux_quota(QUOTA + f"          /home     90      80     200 {int(NOW) + 6 * 86400}       5       0       0       0\n", "user", "u", {"/home"}, NOW)), {"u": "warning"}, COST),
    Case("grace-is-over", "quota(1) --raw-grace", lambda: quotas(linux.read_linux_quota(QUOTA + f"          /home     90      80     200 {int(NOW) - 60}       5       0       0       0\n", "user", "u", {"/home"}, NOW)), {"u": "critical"}, COST),
    Case("a-dataset-without-limits", "zfsprops(7)", lambda: quotas(trees.read_zfs_quota("used\t90\navailable\t5\nquota\t0\nrefquota\t0\nreferenced\t80\n", "dataset", "tank/a")), {"tank/a": "ok"}, COST),
    Case("a-shared-mount", "proc_pid_mountinfo(5)", lambda: mounted("36 25 8:1 / /scr\\040atch rw,relatime shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 ro,errors=remount-ro"), "critical", COST),
    Case("an-odd-row-of-gpfs", "mmlsquota of a later Storage Scale",
         lambda: told(lambda: quotas(gpfs.read_gpfs_quota(MMLSQUOTA + "mmlsquota::0:1:::fs1:TENANT:1:t1:5:0:9:0:none:1:0:0:0:none:e:on:off:0:root:\n"
                                                         "mmlsquota::0:1:::fs1:USR:5001:ann:98:0:100:0:none:1:0:0:0:none:e:on:off:0:root:\n"))), {"t1": "unknown", "ann": "critical"}, COST),
    Case("an-odd-row-of-xfs", "xfs_quota(8) of a later xfsprogs",
         lambda: told(lambda: quotas(linux.read_xfs_quota("#7 warned\n#8    98000          0     100000     00 [--------]          3          0          0     00 [--------]\n", "project"))), {"7": "unknown", "8": "critical"}, COST),
    Case("a-bucket-of-nine-exabytes", "an EFS that is mounted through NFS with blocks of 1 MiB", lambda: disk("1048576 8796093022208 439804651110 439804651110 0 0 nfs"), "critical", COST),
    Case("a-key-has-expired", "errno(3), EKEYEXPIRED", lambda: refused("Key has expired"), "unknown", COST),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_2)
def test_a_form_of_disks_that_was_hunted(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


def test_a_row_that_is_not_understood_is_unknown_and_named() -> None:
    """A site's own tool that prints `n/a` for one of three, and for all of them."""
    rows = '[{"name": "a", "used_bytes": 5, "limit_bytes": 0}, {"name": "b", "used_bytes": "n/a"}]'
    assert quotas(command.from_json(rows)) == {"a": "ok", "b": "unknown"}
    assert told(lambda: command.from_json(rows.replace("5", '"n/a"'))) == "cannot tell"


def test_one_odd_target_of_beegfs_8_hides_no_other() -> None:
    """`beegfs target list --output=ndjson`: a word where a number was."""
    row = (
        '{"type":3,"alias":"NAME","reachability":"Online","consistency":"Good","cap_pool":"Normal",'
        '"space":"1000","space_free":"FREE","inodes":"100","inodes_free":"90"}\n'
    )
    text = row.replace("NAME", "t1").replace("FREE", "10") + row.replace("NAME", "t2").replace(
        "FREE", "soon"
    )
    found = targets_finding("/b", beegfs.read_beegfs_list(text), WARN, CRIT)
    assert found.status.value == "critical"
    assert "1 in trouble: t2" in found.summary
    assert told(lambda: beegfs.read_beegfs_list(text.replace('"10"', '"x"'))) == "cannot tell"


def test_a_default_of_xfs_that_is_not_understood_is_no_freedom() -> None:
    """Limits of id 0 hold for ids without any of their own."""
    rows = linux.read_xfs_quota(
        "#0 odd\n#8    98000          0          0     00 [--------]          3          0          0     00 [--------]\n",
        "user",
    )
    assert quotas(linux.apply_xfs_defaults(rows)) == {"0": "unknown", "8": "unknown"}
