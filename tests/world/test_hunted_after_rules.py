"""Disks, GPUs and delivery, hunted after the lists of words that meant ok had gone.

The answers were written down before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.channels.webhook import Webhook
from sentinel.checks.quota.tools import command
from sentinel.core.settings import ExpectedAnswer, Secret
from sentinel.gpu import xid
from tests.channels.contract import send
from tests.channels.samples import notification
from tests.channels.web import Web, answers
from tests.world.case import Case, each
from tests.world.delivery_answers import outcome
from tests.world.gpu_answers import MILD, advice, page, statuses
from tests.world.test_disks_drawn import disk, quotas, told
from tests.world.test_hosts import said
from tests.world.test_hunted_by_rules import DEVICE, DISK, LOST, rows, taken
from tests.world.test_hunted_past_bounds import path_status

GLUSTER = r"^(?P<name>/\S+)\s+(?P<limit>\S+)\s+\S+\s+(?P<used>\S+)\s+\S+\s+(?:Yes|No|N/A)\s+(?:Yes|No|N/A)"
ISILON = r"^directory\s+\S+\s+(?P<name>/\S+)\s+\S+\s+(?P<limit>\S+)\s+(?P<soft>\S+)\s+\S+\s+(?P<used>\S+)\s"
NEW_XID = "NVRM: Xid (PCI:0000:3b:00): 999, pid='<unknown>', name=<unknown>, something new"
HALF = "4096 1000 500 500 100 50 ext2/ext3"
BULK = '{"took":3,"errors":true,"items":[{"index":{"_index":"alerts","status":429,"error":{"type":"es_rejected_execution_exception"}}}]}'
INDEXED = '{"_index":"alerts","_id":"W0tpsm","_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":0}'


def only_200(status: int) -> str:
    """Whether a webhook that expects 200 takes it for sure."""
    with Web(answers(status)) as server:
        hook = Webhook(url=Secret(server.url), expect=[ExpectedAnswer(status=200)])
        return "doubt" if send(hook, notification()).doubt else "taken"


FORMS = (
    Case("quota-of-gluster", "docs.gluster.org, Directory Quota",
         lambda _: rows(GLUSTER, "/ann   10.0GB   80%(8.0GB)   9.8GB  200.0MB   Yes   No\n/bob   N/A   N/A   N/A   N/A   N/A   N/A\n"), {"/ann": "critical", "/bob": "unknown"}, DISK),
    Case("a-cloud-without-a-size", "rclone.org/commands/rclone_mount: 1 PiB is free", lambda _: disk("4096 274877906944 274877906944 274877906944 1000000000 1000000000 fuseblk"), "ok", DISK),
    Case("a-limit-by-another-name", "docs.netapp.com, REST quota/reports: space.hard_limit",
         lambda _: told(lambda: quotas(command.from_json('[{"name":"ann","used_bytes":990,"hard_limit_bytes":1000}]'))), "cannot tell", DISK),
    Case("quota-of-a-powerscale", "Dell PowerScale CLI, isi quota quotas list",
         lambda _: rows(ISILON, "directory DEFAULT   /ifs/home No  100.00G 90.00G -   98.50G 1.00 : 1  0.93 : 1\n"), {"/ifs/home": "critical"}, DISK),
    Case("a-link-s-mild-error", "https://github.com/leptonai/gpud/pull/1174",
         lambda _: advice("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 0x00100000 0x00000004)"), MILD, DEVICE),
    Case("a-number-that-nobody-knows", "https://github.com/NVIDIA/k8s-device-plugin/issues/259", lambda _: advice(NEW_XID), "ask the vendor's support", DEVICE),
    Case("a-new-word-for-health", "nvsmi_device_v13.dtd",
         lambda _: statuses(page(("<remapped_row_pending>No<", "<remapped_row_pending>Waits for a reset<"))), {"node": "warning"}, DEVICE),
    Case("xfs-gave-up", "Linux, fs/xfs/xfs_fsops.c xfs_do_force_shutdown()", lambda _: bool(said("XFS (nvme0n1p2): Filesystem has been shut down due to log error (0x2).", level=1)), True, DISK),
    Case("ext4-found-an-error", "Linux, fs/ext4/super.c __ext4_error_inode()", lambda _: bool(said("EXT4-fs error (device sda2): ext4_find_entry:1682: inode #2: comm bash: reading directory lblock 0", level=2)), True, DISK),
    Case("read-only-from-the-first-look-on", "ext4(5), errors=remount-ro", lambda _: path_status("36 25 8:1 / /scratch rw,relatime - ext4 /dev/sda1 ro,errors=remount-ro", HALF) != "ok", True, DISK),
    Case("structure-needs-cleaning", "Linux, EUCLEAN of fs/xfs and fs/ext4", lambda _: path_status("36 25 8:1 / /scratch rw - xfs /dev/sda1 rw", error="Structure needs cleaning"), "critical", DISK),
    # First written down as in doubt. Most services say 204 for what they took, and this one for a key that it does not know: only `expect` can say so.
    Case("nobody-behind-a-key", "caronc/apprise-api, views.py: 204", lambda _: only_200(204), "doubt", LOST),
    Case("nobody-subscribed", "docs.rs/onesignal-rust-api, NO_SUBSCRIBERS: 200", lambda _: taken("webhook", '{"id":"","errors":["All included players are not subscribed"]}'), "doubt", LOST),
    Case("one-of-a-bulk", "Elasticsearch, bulk API", lambda _: (taken("webhook", BULK), taken("webhook", INDEXED, 201)), ("doubt", "taken"), LOST),
    Case("cloudflare-before-discord", "developers.cloudflare.com, error 1015", lambda _: outcome("discord", 429, "<html>error code: 1015</html>", **{"Retry-After": "3600"}), "later (3600 s)", LOST),
)  # fmt: skip

TEAMS = '{"version":"1.1","content":{"headers":[]},"statusCode":200,"reasonPhrase":"OK","headers":[],"requestMessage":null,"isSuccessStatusCode":true}'
RELAY = '[{"webhook_url":"https://outlook.office.com/x","status":400,"message":"Webhook message delivery failed"}]'
LATER = (
    Case("xfs-is-shut-down", "Linux, fs/xfs", lambda _: path_status("36 25 8:1 / /scratch rw - xfs /dev/sda1 rw", error="Input/output error"), "critical", DISK),
    Case("what-was-written-is-lost", "Linux, fs/buffer.c", lambda _: bool(said("Buffer I/O error on dev dm-0, logical block 123, lost async page write", level=3)), True, DISK),
    Case("ext4-goes-read-only", "Linux, fs/ext4/super.c", lambda _: bool(said("EXT4-fs (dm-17): Remounting filesystem read-only", level=2)), True, DISK),
    Case("bound-to-nouveau", "https://github.com/NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c", lambda _: advice("NVRM: GPU 0000:01:00.0 is already bound to nouveau."), MILD, DEVICE),
    Case("a-serial-number", "https://github.com/NVIDIA/open-gpu-kernel-modules, logs of Xid 79", lambda _: advice("NVRM: GPU 0000:05:00.0: GPU serial number is 0325015054694.", "NVRM: A GPU crash dump has been created."), MILD, DEVICE),
    Case("firmware-that-is-optional", "Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_psp.c", lambda _: len(xid.read(["amdgpu 0000:0d:00.0: amdgpu: RAS: optional ras ta ucode is not available"], [6]).events), 0, DEVICE),
    Case("a-relay-to-teams", "https://github.com/prometheus-msteams/prometheus-msteams", lambda _: (taken("webhook", RELAY), taken("webhook", RELAY.replace("400", "200").replace("Webhook message delivery failed", "1"))), ("doubt", "taken"), LOST),
    Case("a-success-that-was-none", "https://github.com/MicrosoftDocs/msteams-docs/issues/7852", lambda _: taken("teams", TEAMS), "doubt", LOST),
)  # fmt: skip


@each(*FORMS, *LATER)
def test_a_form_that_was_hunted_after_rules(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


SDA = "36 25 8:1 / /scratch"
SIBLINGS = (
    ("btrfs-found-an-error", lambda _: said("BTRFS: error (device sdb1 state EA) in btrfs_commit_transaction:2418: errno=-5 IO failure", level=3), {"sdb1": "warning"}),
    ("btrfs-on-a-volume", lambda _: said("BTRFS critical (device dm-3): corrupt leaf: root=2 block=1", level=2), {"dm-3": "warning"}),
    ("xfs-is-damaged", lambda _: said("XFS (sda4): Metadata corruption detected at xfs_dinode_verify.part.0+0x739/0x920 [xfs], inode 0x427b2d1", level=1), {"sda4": "critical"}),
    ("xfs-in-a-loop", lambda _: said("XFS (loop3): Filesystem has been shut down due to log error (0x2).", level=1), {}),
    ("a-mount-that-was-tried", lambda _: said("FAT-fs (sdb1): bogus number of reserved sectors", "EXT4-fs (sdb1): VFS: Can't find ext4 filesystem", level=3), {}),
    ("a-program-of-such-a-name", lambda _: said("BTRFS error (de[4711]: segfault at 0 ip 0 sp 0 error 4 (device sda): x", level=4), {}),
    ("read-only-by-a-person", lambda _: path_status(f"{SDA} ro,relatime - ext4 /dev/sda1 ro", HALF), "ok"),
    ("read-only-by-a-property", lambda _: path_status("36 25 0:52 / /tank/a rw - zfs tank/a ro,xattr", HALF), "ok"),
    ("an-overlay-below-which-none-writes", lambda _: path_status("36 25 0:41 / /x rw,relatime - overlay overlay ro", HALF), "ok"),
    ("no-limit-is-named-for-one", lambda _: quotas(command.from_json('[{"name":"a","used_bytes":9},{"name":"b","used_bytes":9,"limit_bytes":10}]')), {"a": "ok", "b": "warning"}),
    ("a-post-that-leaves-nothing-to-say", lambda _: taken("webhook", "", 204), "taken"),
)  # fmt: skip


@pytest.mark.parametrize(("ask", "right"), [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS])  # fmt: skip
def test_a_sibling_of_them(ask: Callable[[Path], object], right: object, tmp_path: Path) -> None:
    """Written with the mends: others of the same kind, and what is well beside them."""
    assert ask(tmp_path) == right
