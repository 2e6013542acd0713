"""What the kernel, drives and arrays of hosts say, as people showed it; the answers were written first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sentinel.checks.host.judge import judge_drives, judge_smart
from sentinel.checks.host.kernel_words import find_said_words
from sentinel.core.model import Status
from sentinel.nodes.probe import KernelLine
from sentinel.nodes.probe import host as host_sections
from tests.world.case import Case, each

GITHUB = "https://github.com/"
LINUX = "Linux 6.12, "
COST = "A host that loses data takes jobs, or somebody is woken for one that does not."


def said(*texts: str, level: int | None = 4) -> dict[str, str]:
    """By part, the worst of what the kernel said; `ok` is an error that was corrected."""
    worst: dict[str, Status] = {}
    for word in find_said_words([KernelLine(at=1.0, level=level, text=text) for text in texts]):
        before = worst.get(word.part, Status.OK)
        worst[word.part] = max(before, word.status, key=lambda status: status.rank)
    return {part: status.value for part, status in worst.items()}


def drives(*lines: str) -> dict[str, str]:
    """By array or drive, how bad it is at the second look."""
    hardware = host_sections.hardware([*lines, "end"])
    odd: dict[str, int] = {}
    list(judge_drives(hardware, odd))
    return {name: status.value for name, status, _ in judge_drives(hardware, odd)}


def health(*lines: str) -> dict[str, str]:
    """By drive, how bad what it says is."""
    return {name: s.value for name, s, _ in judge_smart(host_sections.smart([*lines, "end"]))}


HUNTED_1 = (
    Case(
        "scrubbing-error-of-one-module", GITHUB + "radiasoft/devops/issues/134",
        lambda: said(
            "mce: [Hardware Error]: Machine check events logged",
            "EDAC sbridge MC1: HANDLING MCE MEMORY ERROR",
            "EDAC sbridge MC1: CPU 1: Machine Check Event: 0 Bank 11: 8c00004f000800c2",
            "EDAC sbridge MC1: PROCESSOR 0:306e4 TIME 1519356496 SOCKET 1 APIC 20",
            "EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 "
            "page:0xee30a0 offset:0x0 grain:32 syndrome:0x0 -  area:DRAM err_code:0008:00c2 socket:1)",
        ), {"processor": "ok"}, COST,
    ),
    Case(
        "old-form-without-a-word", GITHUB + "openstreetmap/operations/issues/300",
        lambda: said("EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0 offset:0x0 grain:8 syndrome:0x0)"), {}, COST,
    ),
    Case(
        "uncorrectable-by-the-driver", GITHUB + "andikleen/mcelog/issues/74",
        lambda: said("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0xe16677 offset:0x0 grain:32 -  err_code:0000:009f socket:0 imc:0 rank:0)"),
        {"memory": "critical"}, COST,
    ),
    Case(
        "firmware-hands-over-memory", GITHUB + "andikleen/mcelog/issues/74",
        lambda: said(
            "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
            "{1}[Hardware Error]: event severity: recoverable",
            "{1}[Hardware Error]:  Error 0, type: recoverable",
            "{1}[Hardware Error]:  fru_text: Card01, ChnA, DIMM0",
            "{1}[Hardware Error]:   section_type: memory error",
            "{1}[Hardware Error]:   physical_address: 0x0000000e16677000",
            "Memory failure: 0xe16677: already hardware poisoned",
        ), {"memory": "critical"}, COST,
    ),
    Case(
        "corrected-pcie-by-firmware", GITHUB + "ROCm/legacy-rocm-build/issues/2927",
        lambda: said(
            "{359}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 512",
            "{359}[Hardware Error]: It has been corrected by h/w and requires no further action",
            "{359}[Hardware Error]: event severity: corrected",
            "{359}[Hardware Error]:  Error 0, type: corrected",
            "{359}[Hardware Error]:   section_type: PCIe error",
            "{359}[Hardware Error]:   port_type: 4, root port",
        ), {}, COST,
    ),
    Case(
        "found-at-boot-uncorrected", GITHUB + "andikleen/mcelog/issues/70",
        lambda: said(
            "mce: CPU supports 7 MCE banks",
            "mce: [Hardware Error]: Machine check events logged",
            "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 4: a600000000020408",
            "mce: [Hardware Error]: TSC 0 ADDR fef4c9e0 ",
            "mce: [Hardware Error]: PROCESSOR 0:706a1 TIME 1537152664 SOCKET 0 APIC 0 microcode 28",
        ), {"processor": "critical"}, COST,
    ),
    Case(
        "corrected-in-a-cache", GITHUB + "home-assistant/operating-system/issues/2989",
        lambda: said(
            "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 6: cc59dec000041152",
            "mce: [Hardware Error]: TSC 0 ADDR 1422ff800 MISC 13020004086 ",
        ), {"processor": "ok"}, COST,
    ),
    Case(
        "only-that-events-were-logged", GITHUB + "andikleen/mcelog/issues/116",
        lambda: said("mce: [Hardware Error]: Machine check events logged"), {"processor": "ok"}, COST,
    ),
    Case(
        "heat-is-logged-as-machine-check", GITHUB + "mbusb/multibootusb/issues/164",
        lambda: said(
            "CPU3: Core temperature above threshold, cpu clock throttled (total events = 57536)",
            "mce: [Hardware Error]: Machine check events logged",
            "CPU2: Core temperature/speed normal",
        ), {}, COST,
    ),
    Case(
        "heat", GITHUB + "erpalma/throttled/issues/186",
        lambda: said(
            "mce: CPU2: Core temperature above threshold, cpu clock throttled (total events = 2675)",
            "mce: CPU6: Package temperature/speed normal",
        ), {}, COST,
    ),
    Case(
        "edac-takes-its-devices", GITHUB + "oVirt/ovirt-node-ng-image/issues/88",
        lambda: said(
            "MCE: In-kernel MCE decoding enabled.",
            "EDAC amd64: Node 0: DRAM ECC enabled.",
            "EDAC MC0: Giving out device to module amd64_edac controller F19h: DEV 0000:00:18.3 (INTERRUPT)",
            "EDAC MC: UMC0 chip selects:",
            "EDAC amd64: MC: 0: 32768MB 1: 32768MB",
        ), {}, COST,
    ),
    Case(
        "amd-status-is-a-detail", GITHUB + "oracle/oracle-linux/issues/166",
        lambda: said("[Hardware Error]: CPU:0 (17:31:0) MC255_STATUS[-|CE|-|-|AddrV|-|-|-]: 0x8400000000000000"), {}, COST,
    ),
    Case(
        "amd-corrected", GITHUB + "mchehab/rasdaemon/issues/121",
        lambda: said(
            "mce: [Hardware Error]: Machine check events logged",
            "[Hardware Error]: Corrected error, no action required.",
        ), {"processor": "ok"}, COST,
    ),
    Case(
        "amd-restartable", LINUX + "drivers/edac/mce_amd.c decode_error_status()",
        lambda: said("mce: [Hardware Error]: Machine check events logged", "[Hardware Error]: Uncorrected, software restartable error."),
        {"processor": "critical"}, COST,
    ),
    Case(
        "a-severity-of-tomorrow", "made up: " + LINUX + "drivers/firmware/efi/cper.c knows four",
        lambda: said("{7}[Hardware Error]: event severity: severe", "{7}[Hardware Error]:   section_type: memory error"),
        {"memory": "unknown"}, COST,
    ),
)  # fmt: skip

HUNTED_2 = (
    Case(
        "drive-timed-out-and-came-back", GITHUB + "linux-surface/linux-surface/issues/733",
        lambda: said("nvme nvme0: I/O 12 QID 5 timeout, aborting", "nvme nvme0: Abort status: 0x0"), {"nvme0": "warning"}, COST,
    ),
    Case(
        "drive-removed", GITHUB + "linux-nvme/nvme-cli/issues/151",
        lambda: said(
            "nvme nvme2: I/O 0 QID 0 timeout, reset controller",
            "nvme nvme2: Device not ready; aborting reset",
            "nvme nvme2: Removing after probe failure status: -19",
            "nvme2n1: detected capacity change from 800166076416 to 0",
        ), {"nvme2": "critical"}, COST,
    ),
    Case(
        "newer-form-of-a-timeout", LINUX + "drivers/nvme/host/pci.c nvme_timeout()",
        lambda: said("nvme nvme1: I/O tag 0 (3000) opcode 0x1 (I/O Cmd) QID 1 timeout, aborting req_op:WRITE(1) size:131072", level=4),
        {"nvme1": "warning"}, COST,
    ),
    Case(
        "controller-is-down", GITHUB + "Joshua-Riek/ubuntu-rockchip/issues/155",
        lambda: said(
            "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS read failed (134)",
            "blk_update_request: I/O error, dev nvme0n1, sector 500118016 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0",
            "nvme 0004:41:00.0: can't change power state from D3cold to D0 (config space inaccessible)",
            "nvme nvme0: Removing after probe failure status: -19",
        ), {"nvme0": "critical"}, COST,
    ),
    Case(
        "drive-is-found-at-boot", GITHUB + "raspberrypi/linux/issues/6661",
        lambda: said(
            "nvme nvme0: pci function 0000:01:00.0", "nvme 0000:01:00.0: enabling device (0000 -> 0002)",
            "nvme nvme0: missing or invalid SUBNQN field.", "nvme nvme0: allocated 16 MiB host memory buffer.",
            "nvme nvme0: 4/0/0 default/read/poll queues", "nvme nvme0: Ignoring bogus Namespace Identifiers", " nvme0n1: p1 p2",
            level=4,
        ), {}, COST,
    ),
    Case(
        "not-supported-is-no-error", GITHUB + "spdk/spdk/issues/1502",
        lambda: said("blk_update_request: operation not supported error, dev nvme0n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0"), {}, COST,
    ),
    Case(
        "medium-errors", GITHUB + "raspberrypi/rpi-eeprom/issues/378",
        lambda: said("blk_update_request: critical medium error, dev nvme0n1, sector 534080 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 0"),
        {"nvme0": "warning"}, COST,
    ),
    Case(
        "array-is-checked", LINUX + "drivers/md/md.c",
        lambda: said("md: data-check of RAID array md0", "md: md0: data-check done.")
        | drives("raid md0 array_state active", "raid md0 level raid1", "raid md0 degraded 0", "raid md0 sync_action check"), {}, COST,
    ),
    Case(
        "array-is-built", GITHUB + "rhinstaller/kickstart-tests/issues/1328",
        lambda: said("md/raid1:md0: not clean -- starting background reconstruction", "md/raid1:md0: active with 2 out of 2 mirrors", "md: resync of RAID array md0")
        | drives("raid md0 array_state clean", "raid md0 level raid1", "raid md0 degraded 0", "raid md0 sync_action resync"), {}, COST,
    ),
    Case(
        "array-lost-a-drive", GITHUB + "kiwix/operations/issues/514",
        lambda: said("md/raid1:md1: Disk failure on sda3, disabling device.\nmd/raid1:md1: Operation continuing on 1 devices.")
        | drives("raid md1 array_state active", "raid md1 level raid1", "raid md1 degraded 1", "raid md1 sync_action idle"),
        {"md1": "warning"}, COST,
    ),
    Case(
        "container-of-a-bios", GITHUB + "glensc/nagios-plugin-check_raid/issues/34",
        lambda: drives("raid md0 array_state inactive", "raid md0 level container", "raid md0 metadata_version external:imsm",
                       "raid md127 array_state active", "raid md127 level raid1", "raid md127 degraded 0", "raid md127 metadata_version external:/md0/0"), {}, COST,
    ),
    Case(
        "array-not-started", GITHUB + "dankamongmen/growlight/issues/84",
        lambda: drives("raid md127 array_state inactive", "raid md127 metadata_version 1.2"), {"md127": "warning"}, COST,
    ),
    Case(
        "worn-out-and-sound", GITHUB + "smartmontools/smartmontools/issues/537",
        lambda: health("nvme0 0x04"), {"nvme0": "warning"}, COST,
    ),
    Case(
        "healthy-drive", GITHUB + "linux-nvme/nvme-cli/issues/1037",
        lambda: health("nvme0 0"), {}, COST,
    ),
    Case(
        "read-only-drive", "NVM Express Base Specification 2.0, figure 207",
        lambda: health("nvme0 0x8", "nvme1 0x00", "nvme2 0x40"), {"nvme0": "critical", "nvme2": "unknown"}, COST,
    ),
)  # fmt: skip


@each(*HUNTED_1, *HUNTED_2)
def test_what_a_host_says(case: Case, record_property: Callable[[str, Any], None]) -> None:
    """How bad each part is."""
    answer = case.form()
    record_property("right", case.right)
    record_property("answer", answer)
    assert answer == case.right


FORGED = (
    "EDAC MC0: 1 UE [4711]: segfault at 0 ip 00005 sp 00007 error 6 in x[5+1] likely on CPU 3 (core 1, socket 0)",
    "EDAC MC0: 1 UE invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
    "Memory failure:[4711]: segfault at 0 ip 00005 sp 00007 error 6 in 0x1[5+1]",
    "nvme nvme0: I/O[4711]: segfault at 0 ip 0000512 QID 1 timeout, aborting",
    "I/O error, dev [4711]: segfault at 0 ip 0 sp 0 error 6 in sda, sector 1[5+1]",
    "md/raid1:md0: D[4711]: segfault at 0 ip 0 in isk failure on sda, disabling device.",
    "traps: mce: [Hardware[4711] trap invalid opcode ip:0 sp:0 error:0 in event severity: fatal",
    "x\nEDAC MC0: 1 UE memory read error on CPU_SrcID#0 (channel:0)",
    "audit: mce: Uncorrected hardware memory error in user-access at af34214200",
)


def test_only_what_the_kernel_warns_of_is_a_trouble() -> None:
    """A level of information, or none that is known, is none of its errors; a storm is a notice."""
    lost = "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0 (channel:2 slot:0 page:0xbf8 grain:32)"
    assert [said(lost, level=level) for level in (4, 6, None)] == [{"memory": "critical"}, {}, {}]
    storm = "mce: CMCI storm detected: switching to poll mode"
    assert said(storm, level=5) == {"processor": "warning"}
    logged = "mce: [Hardware Error]: Machine check events logged"
    assert said(logged, level=6) == {"processor": "ok"}


def test_a_process_cannot_speak_for_the_hardware() -> None:
    """Made here: names of 15 bytes, files with any name, names with newlines; at each level."""
    assert [said(text, level=level) for text in FORGED for level in (None, 3, 6)] == [{}] * len(
        FORGED
    ) * 3
