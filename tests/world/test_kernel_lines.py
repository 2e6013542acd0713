"""Lines of the kernel's log: what its drivers say, and what users make the kernel say."""

from sentinel.checks.network.driver_lines import find_driver_errors
from sentinel.gpu import xid
from sentinel.gpu.advice import Advice
from sentinel.nodes.probe import KernelLine, kernel
from tests.world.case import Case, each

BOOT = "daf8f080-aeed-4f6a-a5ba-3c5d802ffd16"
OPEN_MODULES = "https://github.com/NVIDIA/open-gpu-kernel-modules"
ROCM = "https://github.com/ROCm/legacy-rocm-build/issues"


def advice_of(*records: str) -> list[str]:
    return [event.advice.value for event in xid.read(records).events]


@each(
    Case(
        name="recovery-action-in-new-words",
        source=f"{OPEN_MODULES} (gpu.c); drivers of the 600 series print other words",
        form="NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)",
        right="reset the GPU",
        cost="A GPU on which every new program fails is only a warning to ask support.",
    ),
    Case(
        name="recovery-action-os-reboot",
        source="kernel log of a driver of the 610 series",
        form="NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
        right="reboot the node",
        cost="Somebody resets a GPU that only a reboot brings back.",
    ),
    Case(
        name="recovery-action-unknown",
        source="made up: a number and a word of the future",
        form="NVRM: Xid (PCI:0000:41:00): 154, GPU recovery action changed from 0x0 (None) to 0xb (Wash)",
        right="ask the vendor's support",
        cost="What is unknown passes for well, or drains the node.",
    ),
    Case(
        name="mig-compute-instance",
        source=f"{OPEN_MODULES}, src/nvidia/src/kernel/gpu/rc/kernel_rc.c",
        form="NVRM: Xid (PCI:0000:41:00 GPU-I:02 GPU-CI:01): 95, pid=311, name=python, Uncontained: x",
        right="reset the GPU",
        cost="The Xid belongs to the node and to no GPU; the ledger never learns which one fails.",
    ),
    Case(
        name="amdgpu-athub-small-letters",
        source=f"{ROCM}/4021",
        form="amdgpu 0000:a6:00.0: {3}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        right="reset the GPU",
        cost="A GPU with a fatal error is well, as the driver writes a small u.",
    ),
    Case(
        name="amdgpu-mes-hangs",
        source=f"{ROCM}/3265",
        form="amdgpu 0000:a6:00.0: amdgpu: MES might be in unrecoverable state, issue a GPU reset",
        right="ask the vendor's support",
        cost="A GPU whose scheduler hangs is well.",
    ),
    Case(
        name="amdgpu-page-fault-of-a-program",
        source=f"{ROCM}/3265",
        form="amdgpu 0000:a6:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:169 vmid:8 pasid:7)",
        right=None,
        cost="Each bug of a user's kernel wakes an operator.",
    ),
)
def test_what_the_driver_of_a_gpu_says(case: Case) -> None:
    """The advice, by the record alone."""
    assert advice_of(case.form) == ([case.right] if case.right else [])


RESET = (
    "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
    "[drm:gfx_v11_0_cp_gfx_enable.isra.0 [amdgpu]] *ERROR* failed to halt cp gfx",
    "amdgpu 0000:c5:00.0: amdgpu: GPU reset succeeded, trying to resume",
)
POISON = "amdgpu 0000:c5:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block"


@each(
    Case(
        name="reset-that-went-well",
        source=f"{ROCM}/6273",
        form=RESET,
        right=[],
        cost="Each hang of a program that the driver mends wakes an operator.",
    ),
    Case(
        name="reset-of-another-gpu",
        source=f"{ROCM}/6273, with two GPUs",
        form=(RESET[0].replace("c5", "a6"), RESET[2]),
        right=["ask the vendor's support"],
        cost="A GPU whose scheduler hangs is well, as its neighbour was reset.",
    ),
    Case(
        name="no-reset",
        source=f"{ROCM}/6273, cut before the reset",
        form=RESET[:1],
        right=["ask the vendor's support"],
        cost="A GPU whose scheduler hangs is well.",
    ),
    Case(
        name="memory-error-before-a-reset",
        source="Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c",
        form=(POISON, RESET[2]),
        right=["reset the GPU"],
        cost="A reset hides that memory fails.",
    ),
)
def test_what_a_reset_of_amdgpu_mends(case: Case) -> None:
    """What stays of the lines before it."""
    assert advice_of(*case.form) == case.right


@each(
    Case(
        name="segfault-of-a-program-called-xid",
        source="Linux 6.18, arch/x86/mm/fault.c show_signal_msg(), seen on a machine",
        form="6,665,1194323175,-;NVRM: Xid (PCI:[31286]: segfault at 0 ip 000055ac sp 00007ffd error 6 in"
        " NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off[1132+1000]",
        right=[],
        cost="Any user makes a healthy node critical, and a lemon of its GPU.",
    ),
    Case(
        name="newline-in-the-name-of-a-program",
        source="Linux 6.18, arch/x86/mm/fault.c show_signal_msg(), seen on a machine",
        form=r"6,665,1194323175,-;NVRM: x\x0aNVRM: X[31286]: segfault at 0 error 6 in NVRM: x"
        r"\x0aNVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.[1132+1000]",
        right=[],
        cost="Any user makes a healthy node critical, and a lemon of its GPU.",
    ),
    Case(
        name="path-of-a-program-with-an-executable-stack",
        source="Linux 5.8 and later, fs/exec.c setup_arg_pages()",
        form=r"4,665,1194323175,-;process '/tmp/x\x0aNVRM: Xid (PCI:0000:41:00): 48, pid=1, DBE' started"
        " with executable stack",
        right=[],
        cost="Any user makes a healthy node critical, and a lemon of its GPU.",
    ),
    Case(
        name="program-that-writes-to-kmsg",
        source="Linux, kernel/printk/printk.c devkmsg_write(): kern becomes user",
        form="12,664,1193474550,-;NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
        right=[],
        cost="A container with /dev/kmsg takes nodes out of service.",
    ),
    Case(
        name="piece-of-a-line",
        source="Linux, Documentation/ABI/testing/dev-kmsg (flag c)",
        form="4,664,1193474550,c;NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
        right=[],
        cost="The name of a cgroup that an out-of-memory report goes on with is an Xid.",
    ),
    Case(
        name="the-driver-itself",
        source=f"{OPEN_MODULES}, src/nvidia/src/kernel/gpu/rc/kernel_rc.c",
        form="4,664,1193474550,-,caller=T311;NVRM: Xid (PCI:0000:41:00): 79, pid='<unknown>',"
        " name=<unknown>, GPU has fallen off the bus.",
        right=[79],
        cost="A lost GPU is not told.",
    ),
    Case(
        name="lost-gpu-in-three-lines-of-one-record",
        source=f"{OPEN_MODULES}, src/nvidia/arch/nvalloc/unix/src/osapi.c",
        form=r"3,664,1193474550,-;NVRM: The NVIDIA GPU 0000:41:00.0\x0aNVRM: (PCI ID: 10de:2330) installed"
        r" in this system has\x0aNVRM: fallen off the bus and is not responding to commands.",
        right=[79],
        cost="A lost GPU is not told.",
    ),
)
def test_who_speaks_in_the_kernels_log(case: Case) -> None:
    """The numbers of the Xids that the driver reported, from a record of /dev/kmsg."""
    log = kernel.log(["kmsg", case.form], BOOT, None)
    assert [event.code for event in xid.read(line.text for line in log.lines).events] == case.right


@each(
    Case(
        name="efa-admin-queue-closed",
        source="Linux, drivers/infiniband/hw/efa/efa_com.c",
        form="efa 0000:44:00.0 rdmap68s0: Admin queue is closed",
        right="warning",
        cost="An adapter that answers no more is well until the training hangs.",
    ),
    Case(
        name="efa-register-timed-out",
        source="Linux, drivers/infiniband/hw/efa/efa_com.c",
        form="efa 0000:44:00.0 rdmap68s0: Reading register timed out. expected: req id[3] offset[0x54]",
        right="warning",
        cost="An adapter that answers no more is well until the training hangs.",
    ),
    Case(
        name="mlx5-health-issue",
        source="Linux, drivers/net/ethernet/mellanox/mlx5/core/health.c",
        form="mlx5_core 0000:44:00.0: print_health_info:431:(pid 0): Health issue observed, firmware"
        " internal error, severity(3) ERROR:",
        right="critical",
        cost="A card whose firmware has failed is well.",
    ),
    Case(
        name="mlx5-transmit-timeout",
        source="https://github.com/NVIDIA/NVSentinel/issues/1334",
        form="mlx5_core 0000:44:00.0 eth2: TX timeout detected",
        right="warning",
        cost="A node whose card has hung stays in service for days.",
    ),
    Case(
        name="mlx5-answer-to-a-tool",
        source="Linux, drivers/net/ethernet/mellanox/mlx5/core/cmd.c",
        form="mlx5_core 0000:44:00.0: mlx5_cmd_out_err:838:(pid 77): ACCESS_REG(0x805) op_mod(0x1) failed,"
        " status bad parameter(0x3), syndrome (0x6c4d48), err(-22)",
        right="",
        cost="Each run of an exporter wakes an operator.",
    ),
    Case(
        name="segfault-of-a-program-called-mlx5",
        source="Linux 6.18, arch/x86/mm/fault.c show_signal_msg()",
        form="mlx5_core 0000:[7]: segfault at 0 error 6 in 44:00.0: Fatal error 3 detected[1132+1000]",
        right="",
        cost="Any user makes a healthy card critical.",
    ),
)
def test_what_the_driver_of_a_card_says(case: Case) -> None:
    """How bad it is, at the level of errors and without any level."""
    for level in (3, None):
        found = list(find_driver_errors([KernelLine(at=1.0, level=level, text=case.form)]))
        assert [status.value for _, status, _ in found] == ([case.right] if case.right else [])


def test_a_word_that_former_versions_kept_is_still_known() -> None:
    """Made here: the state of a service that was upgraded; AMD's GPUs were sent to NVIDIA."""
    assert Advice("ask NVIDIA support") is Advice.CONTACT
    assert "NVIDIA" not in Advice.CONTACT.value
