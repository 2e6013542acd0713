"""GPUs and diagnostics, drawn by a seed from `sources/gpus.txt`; the answers were committed before the program ran."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from sentinel.gpu.dcgm import Ran, judge
from sentinel.nodes.probe import kernel
from tests.lab.gpus import dcgmi_json, gpus_of, nvidia_smi
from tests.world import gpu_answers as gpus
from tests.world.case import Case, each
from tests.world.gpu_answers import MILD, advice, page

GITHUB = "https://github.com/"
GPUD = GITHUB + "leptonai/gpud/"
DCGM = GITHUB + "NVIDIA/DCGM/blob/master/dcgmlib/"
REMAPPED = re.compile("<remapped_rows>.*?</remapped_rows>", re.DOTALL)
COST = "A GPU that cannot work is given to jobs, or a healthy one is taken out or wakes somebody."

TURING = (
    ("<serial>165000000000</serial>", "<serial>N/A</serial>"),
    ("<sram_correctable>0<", "<sram_correctable>N/A<"),
    ("<dram_correctable>0<", "<dram_correctable>N/A<"),
    ("<dram_uncorrectable>0<", "<dram_uncorrectable>N/A<"),
    ("<sram_uncorrectable>0<", "<sram_uncorrectable>N/A<"),
    ("<current_ecc>Enabled<", "<current_ecc>N/A<"),
    ("<current_mig>Disabled<", "<current_mig>N/A<"),
    ("<fan_speed>N/A<", "<addressing_mode>None</addressing_mode><fan_speed>0 %<"),
    ("<state>Completed</state>", "<state>N/A</state>"),
    ("<status>Success</status>", "<status>N/A</status>"),
)
TESLA = (
    '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v6.dtd">\n<nvidia_smi_log>\n'
    "<timestamp>Mon Sep 18 22:10:18 2017</timestamp><driver_version>340.102</driver_version>"
    "<attached_gpus>8</attached_gpus>\n"
    + "".join(
        f'<gpu id="0000:{n:02X}:00.0"><product_name>GeForce 8800 GT</product_name><persistence_mode>Disabled'
        f"</persistence_mode><serial>N/A</serial><uuid>{gpu.uuid}</uuid><minor_number>{gpu.index}</minor_number>"
        f"<pci><pci_bus>{n:02X}</pci_bus><pci_domain>0000</pci_domain><pci_bus_id>0000:{n:02X}:00.0</pci_bus_id></pci>"
        "<fan_speed>35 %</fan_speed><performance_state>P0</performance_state><clocks_throttle_reasons>N/A"
        "</clocks_throttle_reasons><fb_memory_usage><total>511 MiB</total><used>4 MiB</used><free>507 MiB</free>"
        "</fb_memory_usage><utilization><gpu_util>N/A</gpu_util></utilization><ecc_mode><current_ecc>N/A</current_ecc>"
        "</ecc_mode><ecc_errors><volatile><single_bit><total>N/A</total></single_bit><double_bit><total>N/A</total>"
        "</double_bit></volatile></ecc_errors><retired_pages><pending_retirement>N/A</pending_retirement>"
        "</retired_pages><temperature><gpu_temp>53 C</gpu_temp></temperature><power_readings><power_state>N/A"
        "</power_state><power_management>N/A</power_management><power_draw>N/A</power_draw></power_readings>"
        "<processes>N/A</processes></gpu>\n"
        for n, gpu in enumerate(gpus.gpus_of(0), 1)
    )
    + "</nvidia_smi_log>\n"
)

# Seed 20261126, from 72 sources.
DRAWN_1 = (
    Case(
        "recovery-action-becomes-less", GPUD + "tree/main/components/accelerator/nvidia/xid",
        lambda: advice("NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x4 (Drain and Reset) to 0x1 (GPU Reset Required)"),
        "reset the GPU", COST,
    ),
    Case(
        "a-number-without-a-text", GPUD + "tree/main/components/accelerator/nvidia/xid",
        lambda: advice("NVRM: Xid (PCI:0000:04:00): 69"), MILD, COST,
    ),
    Case(
        "remapped-rows-in-one-word", GPUD + "pull/128",
        lambda: gpus.statuses(REMAPPED.sub("<remapped_rows>N/A</remapped_rows>", page(version="v12"))),
        {}, COST,
    ),
    Case(
        "no-row-remapping-in-this-model", GPUD + "pull/221",
        lambda: gpus.statuses(page(("<remapped_row_pending>No<", "<remapped_row_pending>N/A<"), ("<remapped_row_failure>No<", "<remapped_row_failure>N/A<"),
                                   ("<remapped_row_unc>0<", "<remapped_row_unc>N/A<"), count=-1)),
        {}, COST,
    ),
    Case(
        "no-driver-answers", GITHUB + "ci-for-research/self-hosted-runners/issues/40",
        lambda: gpus.statuses("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.", 1),
        {"node": "critical"}, COST,
    ),
    Case(
        "no-devices", GITHUB + "pytorch/pytorch/issues/167118",
        lambda: gpus.statuses("No devices were found", 1), {"node": "critical"}, COST,
    ),
    Case(
        "the-scheduler-of-an-amd-gpu", GITHUB + "ROCm/legacy-rocm-build/issues/2533",
        lambda: advice("[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=16060, emitted seq=16062",
                       "amdgpu 0000:0a:00.0: amdgpu: GPU reset begin!",
                       "[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=3",
                       "amdgpu: failed to remove hardware queue from MES, doorbell=0x1002",
                       "amdgpu: MES might be in unrecoverable state, issue a GPU reset"),
        "ask the vendor's support", COST,
    ),
    Case(
        "clocks-are-held-back", DCGM + "dcgm_errors.h",
        lambda: gpus.diagnosis(43, "Clocks event for GPU 3 because of clocks event HW Power Brake: Not a benign one.", 1, 15, "targeted_power"),
        "inconclusive", COST,
    ),
    Case(
        "a-gpu-of-a-desktop", GITHUB + "AstraExt/astra-monitor/issues/131",
        lambda: gpus.statuses(page(*TURING[1:2], *TURING[2:4], *TURING[6:], version="v12", count=-1)), {}, COST,
    ),
    Case(
        "a-program-faults-and-the-driver-resets", GITHUB + "pytorch/pytorch/issues/120775",
        lambda: advice("iwlwifi 0000:04:00.0: Error sending STATISTICS_CMD: time out after 2000ms.",
                       "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.1 timeout, signaled seq=213, emitted seq=215",
                       "amdgpu 0000:0b:00.0: amdgpu: GPU reset begin!", "amdgpu 0000:0b:00.0: amdgpu: MODE1 reset",
                       "amdgpu 0000:0b:00.0: amdgpu: GPU mode1 reset", "amdgpu 0000:0b:00.0: amdgpu: GPU reset succeeded, trying to resume"),
        MILD, COST,
    ),
    Case(
        "linux-7-says-amdgpu-once", GITHUB + "pop-os/cosmic-epoch/issues/3764",
        lambda: advice("amdgpu 0000:28:00.0: Dumping IP State", "amdgpu 0000:28:00.0: [drm] AMDGPU device coredump file has been created",
                       "amdgpu 0000:28:00.0: ring gfx_0.0.0 timeout, signaled seq=57638, emitted seq=57641",
                       "amdgpu 0000:28:00.0:  Process train pid 2288 thread train:cs0 pid 2316", "amdgpu 0000:28:00.0: Starting gfx_0.0.0 ring reset",
                       "amdgpu 0000:28:00.0: Ring gfx_0.0.0 reset failed", "amdgpu 0000:28:00.0: GPU reset begin!. Source:  1",
                       "amdgpu 0000:28:00.0: BACO reset", "amdgpu 0000:28:00.0: GPU reset succeeded, trying to resume",
                       "amdgpu 0000:28:00.0: VRAM is lost due to GPU reset!"),
        MILD, COST,
    ),
    Case(
        "device-ids-of-seven", GITHUB + "NVIDIA/DCGM/issues/282",
        lambda: judge(Ran(out=dcgmi_json("4", gpus=7, level=1).replace('"2330"', '"3182"').replace("4.2.3", "4.5.2"), code=0, level=1, gpus=7)).outcome,
        "pass", COST,
    ),
    Case(
        "power-err-at-one-look", GITHUB + "Azure/azhpc-diagnostics/issues/77",
        lambda: gpus.statuses(page(("<power_draw>71.5 W<", "<power_draw>Unknown Error<"), version="v11"), 1), {}, COST,
    ),
    Case(
        "a-channel-that-died-of-another-xid", GITHUB + "NVIDIA/open-gpu-kernel-modules/issues/1150",
        lambda: advice("NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
                       "NVRM: Xid (PCI:0000:ed:00): 45, pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145"),
        MILD, COST,
    ),
    Case("a-page-of-2014", GITHUB + "netdata/netdata/pull/2759", lambda: gpus.statuses(TESLA), {}, COST),
)  # fmt: skip

# The next fifteen of the same draw.
DRAWN_2 = (
    Case(
        "bit-errors-of-a-link", GPUD + "blob/main/components/accelerator/nvidia/xid/catalog_generated.go",
        lambda: advice("NVRM: Xid (PCI:0008:01:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 01 (0x00082226 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)"),
        MILD, COST,
    ),
    Case(
        "ecc-is-off", DCGM + "dcgm_errors.h",
        lambda: gpus.diagnosis(55, "Skipping test memory because ECC is not enabled on GPU 3", 5, 10), "inconclusive", COST,
    ),
    Case(
        "another-driver-owns-them", GITHUB + "mattshma/bigdata/issues/133",
        lambda: advice("NVRM: The NVIDIA probe routine was not called for 3 device(s).", "NVRM: This can occur when a driver such as: ",
                       "NVRM: nouveau, rivafb, nvidiafb or rivatv ", "NVRM: No NVIDIA graphics adapter probed!"),
        MILD, "Said of drivers that a person binds otherwise; nvidia-smi's own words make it critical.",
    ),
    Case(
        "the-power-unit-of-an-amd-gpu-is-stuck", GITHUB + "ROCm/legacy-rocm-build/issues/2196",
        lambda: advice("amdgpu 0000:0d:00.0: amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x00000012 SMN_C2PMSG_82:0x00000005",
                       "amdgpu 0000:0d:00.0: amdgpu: Failed to export SMU metrics table!", "amdgpu 0000:0d:00.0: amdgpu: Failed to get current clock freq!"),
        "ask the vendor's support", COST,
    ),
    Case(
        "many-warps", GPUD + "tree/main/components/accelerator/nvidia/xid",
        lambda: advice("NVRM: Xid (PCI:0000:9b:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Global Exception on (GPC 10, TPC 1, SM 1): Multiple Warp Errors"),
        MILD, COST,
    ),
    Case(
        "rows-are-pending", GITHUB + "Azure/azhpc-diagnostics/pull/50",
        lambda: gpus.statuses(page(("<remapped_row_pending>No<", "<remapped_row_pending>Yes<"), version="v11")), {0: "warning"}, COST,
    ),
    Case(
        "a-program-s-opcode", GITHUB + "ublue-os/bazzite/issues/5729",
        lambda: advice("amdgpu 0000:03:00.0: [drm] REG_WAIT timeout 1us * 100 tries - dcn32_program_compbuf_size line:147",
                       "amdgpu 0000:03:00.0: Illegal opcode in command stream", "amdgpu 0000:03:00.0: ring gfx_0.0.0 timeout, signaled seq=41, emitted seq=43",
                       "amdgpu 0000:03:00.0: Starting gfx_0.0.0 ring reset", "amdgpu 0000:03:00.0: Ring gfx_0.0.0 reset failed",
                       "amdgpu 0000:03:00.0: GPU reset begin!. Source:  1", "amdgpu 0000:03:00.0: MODE1 reset",
                       "amdgpu 0000:03:00.0: GPU reset succeeded, trying to resume"),
        MILD, COST,
    ),
    Case(
        "a-link-s-registers", GPUD + "blob/main/components/accelerator/nvidia/xid/catalog_generated.go",
        lambda: advice("NVRM: Xid (PCI:0000:01:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000 0x00000000 0x00000000)"),
        MILD, COST,
    ),
    Case(
        "eight-lanes-of-sixteen", DCGM + "src/dcgm_errors.c",
        lambda: gpus.diagnosis(46, "GPU 3 is running at PCI link width 8X, which is below the minimum allowed link width of 16 (parameter 'min_pci_width')", 5, 13, "pcie"),
        "inconclusive", "DCGM calls it a matter of configuration: it drains nothing.",
    ),
    Case(
        "a-history-of-calls", GITHUB + "NVIDIA/open-gpu-kernel-modules/issues/446",
        lambda: advice("NVRM: GPU3 RPC event history (CPU <- GSP):", "NVRM:     -3    76   GSP_RM_CONTROL              4124 0x0000000020809001 0x0000000000000008 0x00065013118ceff5 0x00065013118cf053     94us  "),
        MILD, COST,
    ),
    Case(
        "dcgm-asks-for-another-run", DCGM + "src/dcgm_errors.c",
        lambda: gpus.diagnosis(130, "A retest was requested before results can be given for GPU 3.", 3, 8, "diagnostic"), "inconclusive", COST,
    ),
    Case(
        "a-watchdog-bites", GPUD + "blob/main/components/accelerator/nvidia/xid/catalog_generated.go",
        lambda: advice("NVRM: Xid (PCI:0000:01:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000 0x00000000 0x00000000)"),
        "reset the GPU", COST,
    ),
    Case(
        "somebody-draws-on-it", DCGM + "src/dcgm_errors.c",
        lambda: gpus.diagnosis(25, "NVVS has detected processes with graphics contexts open running on at least one GPU. This may cause some tests to fail.", 6, 8, "software"),
        "inconclusive", COST,
    ),
    Case(
        "power-under-a-new-name", GITHUB + "Checkmk/checkmk/pull/681",
        lambda: gpus.statuses(page(("<gpu_power_readings>", "<gpu_power_readings><power_state>P8</power_state><requested_power_limit>220.00 W</requested_power_limit>"), version="v12", count=-1)),
        {}, COST,
    ),
    Case(
        "drain-and-reset", GPUD + "tree/main/components/accelerator/nvidia/xid",
        lambda: advice("NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"), "reset the GPU", COST,
    ),
)  # fmt: skip


# The next of the same draw: 31, 32, 34, 36, 39 to 41, 46, 50, 51, 54, 61 to 64. The others were used or have no form for these checks.
DRAWN_3 = (
    Case("four-h100-nvl", GITHUB + "wilicc/gpu-burn/issues/141",
         lambda: gpus.of_four(nvidia_smi([replace(gpu, model="NVIDIA H100 NVL") for gpu in gpus_of(0, 4)], driver="580.95.05")), {}, COST),
    Case("a-link-with-a-priv-error", GITHUB + "NVIDIA/nccl/issues/2241",
         lambda: advice("NVRM: GPU1 kbifCacheVFInfo_GB100: Unable to read NV_PF0_INITIAL_AND_TOTAL_VFS",
                        "NVRM: Xid (PCI:0000:1b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)",
                        "NVRM: Xid (PCI:0000:1b:00): 137, RLW_RXPIPE interrupt hit on link 11 on GPU0: PRIV Error"), MILD, COST),
    Case("a-fan-that-does-not-answer", GITHUB + "NVIDIA/open-gpu-kernel-modules/issues/1193",
         lambda: gpus.statuses(page(("<fan_speed>N/A<", "<fan_speed>Unknown Error<"), ("<instant_power_draw>71.5 W<", "<instant_power_draw>N/A<"))), {0: "warning"}, COST),
    Case("eight-h20", GITHUB + "Project-HAMi/HAMi/issues/1520",
         lambda: gpus.statuses(page(("NVIDIA H100 80GB HBM3", "NVIDIA H20-3e"), (">4 MiB</used>", ">135144 MiB</used>"), count=-1)), {}, COST),
    Case("status-226-and-no-word", GITHUB + "NVIDIA/DCGM/issues/158", lambda: judge(Ran(out="", code=226, level=4, gpus=8)).outcome, "inconclusive", COST),
    Case("lost-in-three-records", GITHUB + "leptonai/gpud/pull/1209",
         lambda: advice("NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: (PCI ID: 10de:2901) installed in this system has", "NVRM: fallen off the bus and is not responding to commands."),
         "reboot the node", COST),
    Case("a-page-of-driver-430", GITHUB + "a0s/nvidia-smi-exporter/issues/1", lambda: gpus.statuses(page(version="v10").replace("H100 80GB HBM3", "GeForce GTX 1080")), {}, COST),
    Case("fatal-at-the-start", GITHUB + "ROCm/legacy-rocm-build/issues/1552",
         lambda: advice("amdgpu 0000:83:00.0: amdgpu: amdgpu_device_ip_init failed", "amdgpu 0000:83:00.0: amdgpu: Fatal error during GPU init"), "drain the node and diagnose", COST),
    Case("a-ring-fails-in-a-reset", GITHUB + "rocm-arch/rocm-arch/issues/829",
         lambda: advice("amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!", "amdgpu 0000:0c:00.0: [drm:amdgpu_ring_test_helper [amdgpu]] *ERROR* ring kiq_2.1.0 test failed (-110)"),
         "ask the vendor's support", COST),
    Case("mes-one-does-not-respond", GITHUB + "ublue-os/bazzite/issues/4464",
         lambda: advice("amdgpu 0000:08:00.0: amdgpu: GPU reset begin!", "amdgpu 0000:08:00.0: amdgpu: failed to suspend display audio",
                        "amdgpu 0000:08:00.0: amdgpu: MES(1) failed to respond to msg=REMOVE_QUEUE", "amdgpu 0000:08:00.0: amdgpu: failed to unmap legacy queue"),
         "ask the vendor's support", COST),
    Case("the-table-of-rows-was-not-kept", GPUD + "tree/main/components/accelerator/nvidia/xid",
         lambda: advice("NVRM: Xid (PCI:0000:04:00): 64, Failed to persist row remap table — GPU may require servicing"), "drain the node and diagnose", COST),
    Case("nvidia-smi-waits-for-the-gsp", GPUD + "tree/main/components/accelerator/nvidia/xid",
         lambda: advice("NVRM: Xid (PCI:0000:9b:00): 119, pid=42, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 10 (FREE) (0xa55a0090 0x0)."),
         "reset the GPU", COST),
    Case("lost-at-the-driver-s-start", GITHUB + "NVIDIA/NVSentinel/issues/155",
         lambda: advice(*(line.text for line in kernel.log(["syslog", "<4>[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
                          "<4>[ 1843.308145] NVRM: (PCI ID: 10de:26b5) installed in this system has",
                          "<4>[ 1843.308145] NVRM: fallen off the bus and is not responding to commands.",
                          "<4>[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s)."], "boot", None).lines)), "reboot the node", COST),
    Case("power-of-the-module", GITHUB + "Breakend/experiment-impact-tracker/pull/80",
         lambda: gpus.statuses(page(("</gpu_power_readings>", "</gpu_power_readings><module_power_readings><power_state>P8</power_state><power_draw>N/A</power_draw></module_power_readings>"), version="v12", count=-1)), {}, COST),
    Case("a-link-is-down-for-good", GITHUB + "leptonai/gpud/pull/1160",
         lambda: advice("NVRM: Xid (PCI:0000:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"), "reset the GPU", COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3)
def test_a_form_of_gpus_that_was_drawn(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
