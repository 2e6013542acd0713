"""GPUs and diagnostics, hunted by somebody who had read the code; the answers were committed before the program ran."""

from __future__ import annotations

import json
from collections.abc import Callable

from sentinel.gpu import amd
from sentinel.gpu.dcgm import Ran, judge
from tests.lab.gpus import dcgmi_json, gpus_of, nvidia_smi
from tests.world import gpu_answers as gpus
from tests.world.case import Case, each
from tests.world.gpu_answers import MILD, advice, page
from tests.world.test_gpus_drawn import COST, GITHUB

MODULES = GITHUB + "NVIDIA/open-gpu-kernel-modules"
AMDGPU = "Linux, drivers/gpu/drm/amd/amdgpu/"
AFTER = "amdgpu 0000:c1:00.0: amdgpu: GPU reset(3) succeeded!"
LISTED = json.dumps(
    [{"gpu": 0, "bdf": "0000:05:00.0", "uuid": "a1ff74a1-0000-1000-8001-000000000001"}]
)

HUNTED_1 = (
    Case("the-driver-s-watchdog", MODULES + " src/nvidia/src/kernel/gpu/rc/kernel_rc_watchdog.c",
         lambda: advice("NVRM: GPU0 krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7"), "ask the vendor's support", COST),
    Case("poison-is-consumed", AMDGPU + "amdgpu_umc.c",
         lambda: advice("amdgpu 0000:c1:00.0: amdgpu: RAS poison is consumed by client 12, kick off gpu reset flow", AFTER), MILD, COST),
    Case("too-many-bad-pages", AMDGPU + "amdgpu_ras_eeprom.c",
         lambda: advice("amdgpu 0000:c1:00.0: amdgpu: RAS records:129 exceed threshold:128, GPU will not be initialized. Replace this GPU or increase the threshold"),
         "drain the node and diagnose", COST),
    Case("a-bar-of-nothing", MODULES + " kernel-open/nvidia/nv-pci.c", lambda: gpus.statuses(nvidia_smi(gpus_of(0)[:7])), {"node": "critical"}, COST),
    Case("no-power-state", "Linux, drivers/pci/pci.c pci_power_up()",
         lambda: advice("nvidia 0000:18:00.0: Unable to change power state from D3cold to D0, device inaccessible"), "reboot the node", COST),
    Case("a-switch-s-egress", "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/ (SXid 12028)",
         lambda: advice("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)"), MILD, COST),
    Case("a-switch-s-link", "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/ (SXid 20034)",
         lambda: advice("nvidia-nvswitch3: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"), "drain the node and diagnose", COST),
    Case("words-before-the-json", GITHUB + "NVIDIA/DCGM dcgmi/CommandOutputController.cpp",
         lambda: judge(Ran(out="Warning: the host engine is of another version\n" + dcgmi_json("4", level=2), code=0, level=2, gpus=8)).outcome, "pass", COST),
    Case("an-error-in-place-of-tests", GITHUB + "NVIDIA/DCGM testing/python3/dcgm_diag_schema.json",
         lambda: judge(Ran(out='{"DCGM Diagnostic": {"runtime_error": "Diagnostic could not be run because the Tesla recommended driver is not being used."}}', code=226, level=2, gpus=8)).outcome, "inconclusive", COST),
    Case("the-power-brake", "nvidia-smi(1), clocks_event_reasons",
         lambda: gpus.statuses(page(("<clocks_event_reason_hw_slowdown>Not Active<", "<clocks_event_reason_hw_power_brake_slowdown>Active</clocks_event_reason_hw_power_brake_slowdown><clocks_event_reason_hw_slowdown>Not Active<"))), {0: "warning"}, COST),
    Case("the-fabric-waits", "nvml.h, NVML_GPU_FABRIC_STATE_IN_PROGRESS", lambda: gpus.statuses(page(("<state>Completed<", "<state>In Progress<"), ("<status>Success<", "<status>N/A<"))), {0: "warning"}, COST),
    Case("rows-failed-on-an-a100", GITHUB + "Azure/azhpc-diagnostics/pull/50", lambda: gpus.statuses(page(("<remapped_row_failure>No<", "<remapped_row_failure>Yes<"), version="v11")), {0: "critical"}, COST),
    Case("a-recovery-in-other-words", "nvml.h, NVML_GPU_RECOVERY_ACTION_NODE_REBOOT", lambda: gpus.statuses(page(("<gpu_recovery_action>None<", "<gpu_recovery_action>Node Reboot<"))), {0: "critical"}, COST),
    Case("seven-of-eight-attached", "nvidia-smi of a node on which one does not answer", lambda: gpus.statuses(nvidia_smi(gpus_of(0)[:7]).replace("<attached_gpus>7<", "<attached_gpus>8<")), {"node": "critical"}, COST),
    Case("numbers-with-their-units", "amd-smi 23.4 of ROCm 6.0", lambda: amd.parse(LISTED, '[{"gpu": 0, "temperature": {"edge": "N/A", "hotspot": "41 C"}, "power": {"current_power": "N/A"}}]').gpus[0].temperature, 41.0, COST),
)  # fmt: skip


@each(*HUNTED_1)
def test_a_form_of_gpus_that_was_hunted(
    case: Case, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
