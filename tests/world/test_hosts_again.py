"""Further lines of the kernel and states of arrays, as people showed them; the answers were written first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.world.case import Case, each
from tests.world.test_hosts import COST, GITHUB, LINUX, drives, said

HUNTED_3 = (
    Case(
        "two-drives-of-raid6-lost", "Documentation/admin-guide/md.rst",
        lambda: drives("raid md5 array_state clean", "raid md5 level raid6", "raid md5 degraded 2", "raid md5 sync_action recover", "raid md5 metadata_version 1.2"),
        {"md5": "warning"}, COST,
    ),
    Case(
        "rebuild-that-waits-for-another-array", GITHUB + "ccebelenski/anas/issues/9",
        lambda: drives("raid md2 array_state active", "raid md2 level raid5", "raid md2 degraded 1", "raid md2 sync_action recover", "raid md2 metadata_version 1.2"),
        {"md2": "warning"}, COST,
    ),
    Case(
        "frozen-and-whole", "Documentation/admin-guide/md.rst",
        lambda: drives("raid md2 array_state clean", "raid md2 level raid1", "raid md2 degraded 0", "raid md2 sync_action frozen"), {}, COST,
    ),
    Case(
        "stripes-without-a-drive", LINUX + "drivers/md/md.c, raid0.c",
        lambda: drives("raid md3 array_state broken", "raid md3 level raid0", "raid md3 metadata_version 1.2"), {"md3": "critical"}, COST,
    ),
    Case(
        "read-only-until-written", GITHUB + "dracutdevs/dracut/pull/49",
        lambda: drives("raid md127 array_state read-auto", "raid md127 level raid1", "raid md127 degraded 0", "raid md127 sync_action idle"), {}, COST,
    ),
    Case(
        "attached-not-enough-to-start", GITHUB + "canonical/probert/issues/125",
        lambda: drives("raid md127 array_state inactive", "raid md127 level ", "raid md127 metadata_version 1.2"), {"md127": "warning"}, COST,
    ),
    Case(
        "linear-knows-no-degraded", LINUX + "drivers/md/md-linear.c",
        lambda: drives("raid md4 array_state clean", "raid md4 level linear", "raid md4 metadata_version 1.2"), {}, COST,
    ),
    Case(
        "drive-that-sleeps-too-deep", GITHUB + "raspberrypi/linux/issues/6661",
        lambda: said(
            "nvme nvme0: 4/0/0 default/read/poll queues",
            "nvme nvme0: Ignoring bogus Namespace Identifiers",
            "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
            "nvme nvme0: Does your device have a faulty power saving mode enabled?",
            'nvme nvme0: Try "nvme_core.default_ps_max_latency_us=0 pcie_aspm=off" and report a bug',
            "nvme0n1: I/O Cmd(0x2) @ LBA 32545872, 8 blocks, I/O Error (sct 0x3 / sc 0x71) ",
            "I/O error, dev nvme0n1, sector 32545872 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
            "nvme 0000:01:00.0: enabling device (0000 -> 0002)", level=4,
        ), {"nvme0": "warning"}, COST,
    ),
    Case(
        "power-saving-that-the-drive-refuses", GITHUB + "Frogging-Family/linux-tkg/issues/953",
        lambda: said("nvme nvme0: failed to set APST feature (2)", level=3), {}, COST,
    ),
    Case(
        "power-saving-of-older-kernels", GITHUB + "systemd/systemd/issues/23738",
        lambda: said("nvme nvme0: failed to set APST feature", level=3), {}, COST,
    ),
    Case(
        "power-saving-of-a-drive-that-is-gone", GITHUB + "xcp-ng/xcp-ng-org/pull/27",
        lambda: said("print_req_error: I/O error, dev nvme1n1, sector 223301496", "nvme nvme0: failed to set APST feature (-19)", level=3),
        {"nvme1": "warning", "nvme0": "unknown"}, COST,
    ),
    Case(
        "drive-that-asks-for-a-reset", LINUX + "drivers/nvme/host/core.c, nvme_handle_aer_persistent_error()",
        lambda: said("nvme nvme3: resetting controller due to persistent internal error", level=4), {"nvme3": "warning"}, COST,
    ),
    Case(
        "event-that-says-nothing", GITHUB + "mchehab/rasdaemon/issues/155",
        lambda: said("mce: [Hardware Error]: Machine check events logged", "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 9: 0000000000000000",
                     "mce: [Hardware Error]: TSC 2ac997e3063c3 ", "mce: [Hardware Error]: PROCESSOR 0:50663 TIME 947185249 SOCKET 0 APIC 0 microcode 7000019", level=0),
        {"processor": "ok"}, COST,
    ),
    Case(
        "array-that-was-not-shut-down", GITHUB + "md-raid-utilities/mdadm/issues/282",
        lambda: said("md/raid:md0: not clean -- starting background reconstruction", "md: resync of RAID array md0", "md: md0: resync done.", level=3), {}, COST,
    ),
    Case(
        "stale-drive-left-out", LINUX + "drivers/md/md.c",
        lambda: said("md: kicking non-fresh sdc1 from array!", level=4), {}, COST,
    ),
    Case(
        "discard-that-the-drive-does-not-do", LINUX + "block/blk-core.c",
        lambda: said("blk_update_request: critical target error, dev nvme0n1, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0", level=3), {}, COST,
    ),
    Case(
        "file-as-a-disk", LINUX + "block/blk-core.c",
        lambda: said("I/O error, dev loop3, sector 0 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2", "Buffer I/O error on dev loop3, logical block 0, async page read", level=3), {}, COST,
    ),
    Case(
        "drivers-of-memory-begin", LINUX + "drivers/edac/edac_mc.c",
        lambda: said("EDAC i10nm: v0.0.6", "EDAC MC0: Giving out device to module i10nm_edac controller Intel_10nm Socket#0 IMC#0: DEV 0000:7e:0c.0 (INTERRUPT)", level=6), {}, COST,
    ),
    Case(
        "old-form-of-amd", LINUX + "drivers/edac/edac_mc.c, amd64_edac",
        lambda: said("EDAC MC1: 1 UE on mc#1csrow#3channel#0 (csrow:3 channel:0 page:0x4b5d1 offset:0x9c0 grain:64)", level=0), {"memory": "critical"}, COST,
    ),
)  # fmt: skip


@each(*HUNTED_3)
def test_what_a_host_says_besides(case: Case, record_property: Callable[[str, Any], None]) -> None:
    """How bad each part is."""
    answer = case.form()
    record_property("right", case.right)
    record_property("answer", answer)
    assert answer == case.right
