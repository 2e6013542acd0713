"""GPUs and diagnostics: what nvidia-smi, dcgmi and amd-smi print, as people showed it."""

import json
from dataclasses import replace
from typing import Any

from sentinel.checks.gpu import GpuCheck
from sentinel.gpu import amd
from sentinel.gpu.dcgm import Ran, judge
from sentinel.gpu.errors import Unreadable
from sentinel.nodes.probe import Unread
from tests.checks.gpu.world import World
from tests.lab.gpus import Failure, dcgmi_json, dcgmi_table, gpus_of, nvidia_smi
from tests.world.case import Case, each

SMI_MAN = "nvidia-smi(1) of driver 580, RETURN VALUE"
MOCK = "https://github.com/NVIDIA/k8s-test-infra (tests/e2e/go/assertions/nvidiasmi/testdata)"
BLIND = "A node without GPUs keeps its jobs waiting, or a healthy one is called dead."
MISSED = "A GPU that cannot do its work is given to the next job."
FALSE = "A healthy GPU is taken out, or its alert wakes somebody for nothing."


@each(
    Case(
        "library-mismatch",
        "https://github.com/anderskm/gputil/issues/55",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161",
        "critical",
        BLIND,
    ),
    Case(
        "no-handle-short-domain",
        "https://github.com/NVIDIA/dcgm-exporter/issues/604",
        "Unable to determine the device handle for GPU 000:BA:80.0: Unknown Error",
        "critical",
        BLIND,
    ),
    Case(
        "no-handle-without-blank",
        "https://github.com/akash-network/support/issues/209",
        "Unable to determine the device handle for GPU0000:A1:00.0: Unknown Error",
        "critical",
        BLIND,
    ),
    Case(
        "nvml-unknown-error",
        "https://github.com/NVIDIA/nvidia-docker/issues/1671",
        "Failed to initialize NVML: Unknown Error",
        "unknown",
        "In a container whose devices were taken away it is said of healthy GPUs.",
    ),
    Case(
        "driver-not-loaded",
        SMI_MAN,
        "Failed to initialize NVML: Driver Not Loaded",
        "critical",
        BLIND,
    ),
    Case(
        "no-rights",
        SMI_MAN,
        "Failed to initialize NVML: Insufficient Permissions",
        "unknown",
        FALSE,
    ),
)
def test_what_nvidia_smi_says_in_place_of_a_page(case: Case) -> None:
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.nodes["n1"].smi = Unread(kind="failed", why=case.form.partition("\n")[0])
    found = here.bad()
    assert {f.status.value for f in found.values()} == {case.right}


def page_with(*changes: tuple[str, str], count: int = 1) -> str:
    """A page of eight GPUs with the first (or all: -1) of each piece of text replaced."""
    text = nvidia_smi(gpus_of(0))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, count)
    return text


HEALTH = (
    "<health><summary>{}</summary><bandwidth>{}</bandwidth>"
    "<route_recovery_in_progress>False</route_recovery_in_progress>"
    "<route_unhealthy>{}</route_unhealthy><access_timeout_recovery>False"
    "</access_timeout_recovery><incorrect_configuration>{}</incorrect_configuration></health>"
)
RUBIN = (
    "<partition_assigned>True</partition_assigned><gfm_state>Connected</gfm_state></health>"
    "<cliques><clique_entry><clique_type>Unicast Pointer</clique_type><clique_id>7</clique_id>"
    "</clique_entry></cliques>"
)
REPAIRS = "<channel_repair_pending>{}</channel_repair_pending><tpc_repair_pending>{}</tpc_repair_pending><unrepairable_memory>{}</unrepairable_memory></ecc_errors>"


@each(
    Case(
        "unrepairable-memory",
        "nvidia-smi 580: ecc_errors/unrepairable_memory",
        page_with(("</ecc_errors>", REPAIRS.format("No", "No", "Yes"))),
        {0: "critical"},
        MISSED,
    ),
    Case(
        "repairs-pending",
        "nvidia-smi 580: ecc_errors/channel_repair_pending",
        page_with(("</ecc_errors>", REPAIRS.format("Yes", "Yes", "No"))),
        {0: "warning"},
        "It is reset while jobs run, or never.",
    ),
    Case(
        "repairs-not-told",
        "https://github.com/NVIDIA/k8s-test-infra (qx-gb200.xml, driver 580.173.02)",
        page_with(("</ecc_errors>", REPAIRS.format("N/A", "No", "N/A"))),
        {},
        FALSE,
    ),
    Case(
        "fabric-insufficient-resources",
        "https://github.com/Azure/azhpc-images/pull/506",
        page_with(("<status>Success<", "<status>Insufficient Resources<")),
        {0: "warning"},
        MISSED,
    ),
    Case(
        "fabric-route-unhealthy",
        f"{MOCK}/qx-gb200-fabric-degraded.xml",
        page_with(("</status>", "</status>" + HEALTH.format("Unhealthy", "Full", "True", "N/A"))),
        {0: "warning"},
        MISSED,
    ),
    Case(
        "fabric-limited-capacity",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html",
        page_with(
            ("</status>", "</status>" + HEALTH.format("Limited Capacity", "Full", "False", "None"))
        ),
        {0: "warning"},
        MISSED,
    ),
    Case(
        "fabric-wrong-partition",
        "https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html",
        page_with(
            ("</status>", "</status>" + HEALTH.format("Healthy", "Full", "False", "No Partition"))
        ),
        {0: "warning"},
        MISSED,
    ),
    Case(
        "fabric-healthy",
        f"{MOCK}/hardware/qx-gb300.xml",
        page_with(
            ("</status>", "</status>" + HEALTH.format("Healthy", "Full", "False", "None")), count=-1
        ),
        {},
        FALSE,
    ),
    Case(
        "fabric-not-supported",
        "https://github.com/leptonai/gpud/pull/1206",
        page_with(("<state>Completed<", "<state>Not Supported<"), count=-1),
        {},
        FALSE,
    ),
    Case(
        "rubin-615",
        f"{MOCK}/hardware/qx-vrnvl72.xml",
        page_with(
            (
                "</status>",
                "</status>" + HEALTH.format("Healthy", "Full", "False", "None")[:-9] + RUBIN,
            ),
            (
                "</clocks_event_reasons>",
                "<clocks_event_reason_board_limit>Not Active</clocks_event_reason_board_limit>"
                "<clocks_event_reason_reliability>Active</clocks_event_reason_reliability>"
                "</clocks_event_reasons>",
            ),
            (
                "</remapped_rows>",
                "<remapped_row_corr_inactive>0</remapped_row_corr_inactive></remapped_rows>"
                "<remapped_banks><bank_remapper_active_remappings>0"
                "</bank_remapper_active_remappings><bank_remapper_pending>No"
                "</bank_remapper_pending><bank_remapper_histogram><bank_remapper_histogram_max>"
                "252 group(s)</bank_remapper_histogram_max></bank_remapper_histogram>"
                "</remapped_banks>",
            ),
            count=-1,
        ),
        {},
        FALSE,
    ),
    Case(
        "one-of-two-is-lost",
        f"{MOCK}/qx-gb200-lost.xml",
        page_with((">41 C<", ">GPU is lost<"), (">71.5 W<", ">GPU is lost<")),
        {0: "critical"},
        MISSED,
    ),
    Case(
        "one-limit-unknown",
        "https://github.com/Quake4/MindMiner/issues/627",
        page_with((">700.00 W<", ">[Unknown Error]<")),
        {0: "warning"},
        FALSE,
    ),
    Case(
        "renamed-power",
        "https://github.com/influxdata/telegraf/issues/16569",
        page_with(("<instant_power_draw>", "<average_power_draw>71 W</average_power_draw><instant_power_draw>"), count=-1),
        {},
        FALSE,
    ),
    Case(
        "recovery-reset",
        "https://github.com/NVIDIA/DCGM/issues/263",
        page_with(("<gpu_recovery_action>None<", "<gpu_recovery_action>Reset<")),
        {0: "critical"},
        MISSED,
    ),
    Case(
        "inforom-behind-the-page",
        "https://github.com/Azure/azhpc-diagnostics (test of check_inforom)",
        page_with() + "WARNING: infoROM is corrupted at gpu 0000:18:00.0\n",
        {0: "warning"},
        "All GPUs of the node become unknown for a message about one.",
    ),
    Case(
        "deprecated-fields",
        f"{MOCK}/hardware/qx-a100.xml",
        page_with((">No</remapped_row_failure>", ">Requested functionality has been deprecated</remapped_row_failure>"), count=-1),
        {},
        FALSE,
    ),
    Case(
        "mig-for-a-user-without-rights",
        "https://github.com/IDSIA/sacred/issues/864",
        page_with(
            (">4 MiB</used>", ">Insufficient Permissions</used>"),
            ("<gpu_util>0 %<", "<gpu_util>Insufficient Permissions<"),
            ("<current_mig>Disabled<", "<current_mig>Enabled<"),
            count=-1,
        ),
        {},
        FALSE,
    ),
    Case(
        "mig-after-the-next-reset",
        "https://github.com/netdata/netdata/issues/14321",
        page_with(("<pending_mig>Disabled<", "<pending_mig>Enabled<"), count=-1),
        {},
        FALSE,
    ),
    Case(
        "errors-of-one-card",
        "nvidia-smi 595.58.03 of an RTX PRO 6000 with ECC",
        page_with(("<dram_uncorrectable>0<", "<dram_uncorrectable>2<")),
        {0: "warning"},
        MISSED,
    ),
    Case(
        "waits-for-a-reset-everywhere",
        "nvmlErrorString(NVML_ERROR_RESET_REQUIRED)",
        page_with((">41 C<", ">GPU requires reset<"), ("<gpu_util>0 %<", "<gpu_util>GPU requires reset<")),
        {0: "critical"},
        MISSED,
    ),
    Case(
        "a-virtual-gpu-tells-little",
        "vGPU guests of driver 550: nvidia-smi -q -x",
        page_with((">41 C<", ">N/A<"), (">71.5 W<", ">N/A<"), ("<sram_threshold_exceeded>No<", "<sram_threshold_exceeded>N/A<"), count=-1),
        {},
        FALSE,
    ),
)  # fmt: skip
def test_a_page_of_nvidia_smi(case: Case) -> None:
    """At the second look, when a field that could not be read once is told. Only the GPU that says
    something is touched, and there is no note on words."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.nodes["n1"].smi = case.form
    here.look()
    found = {subject: f.status.value for subject, f in here.bad().items()}
    assert found == {gpus_of(0)[gpu].uuid: status for gpu, status in case.right.items()}


def one(
    error_id: int, text: str, severity: int, category: int, test: str = "memory", gpu: int = 3
) -> Failure:
    return Failure(
        gpu=gpu, test=test, text=text, error_id=error_id, severity=severity, category=category
    )


def passed_with(failure: Failure) -> str:
    """All passed, with this message above a Pass."""
    whole = json.loads(dcgmi_json("4", [failure], level=3))
    for category in whole["DCGM Diagnostic"]["test_categories"]:
        for test in category["tests"]:
            test["test_summary"]["status"] = "Pass"
            for result in test["results"]:
                result["status"] = "Pass"
    return json.dumps(whole)


BUSY = "'CUDA-capable device(s) is/are busy or unavailable'"


@each(
    Case(
        "copy-engine-busy",
        "https://github.com/NVIDIA/DCGM/issues/272",
        (
            dcgmi_json(
                "4",
                [
                    one(
                        38,
                        "The memory copy utilization for the GPU: 3 is greater than 10%. This may "
                        "affect the results of the nvbandwidth test.",
                        2,
                        10,
                        "nvbandwidth",
                    )
                ],
                level=3,
            ),
            226,
        ),
        "inconclusive",
        FALSE,
    ),
    Case(
        "copy-engine-remark",
        "nvbandwidth plugin of DCGM 4.6.0 (WaitForMemoryCopyIdle in NVBandwidthPlugin.cpp)",
        (
            passed_with(
                one(
                    38,
                    "GPU 3 memory copy utilization (45%) did not reach idle threshold",
                    1,
                    10,
                    "nvbandwidth",
                )
            ),
            205,
        ),
        "pass",
        FALSE,
    ),
    Case(
        "no-memory-above-a-pass",
        "https://github.com/NVIDIA/DCGM/issues/284",
        (
            passed_with(one(56, "Couldn't allocate at least 75.0% of GPU memory on GPU 3", 4, 8)),
            226,
        ),
        "inconclusive",
        "Memory that was not tested is called good, or a GPU in use is drained.",
    ),
    Case(
        "xid-145",
        "CheckXIDs in nvvs/src/DcgmRecorder.cpp of DCGM 4.6.0",
        (dcgmi_json("4", [one(101, "Detected XID 145 for GPU 3", 4, 5)], level=3), 226),
        "inconclusive",
        FALSE,
    ),
    Case(
        "busy-in-json",
        "https://github.com/NVIDIA/DCGM/issues/224",
        (
            dcgmi_json(
                "4", [one(65, f"API call cudaEventCreate failed for GPU 3: {BUSY}", 4, 8)], level=3
            ),
            226,
        ),
        "inconclusive",
        FALSE,
    ),
    Case(
        "busy-in-a-table",
        "https://github.com/NVIDIA/go-dcgm/issues/52",
        (
            dcgmi_table(
                [
                    Failure(
                        gpu=0,
                        text=f"Error using CUDA API cuCtxCreate Check DCGM and system logs for "
                        f"errors. Reset GPU. Unable to create CUDA context: {BUSY}.",
                    )
                ]
            ),
            226,
        ),
        "inconclusive",
        FALSE,
    ),
    Case(
        "persistence-mode",
        "https://github.com/NVIDIA/NVSentinel/pull/772",
        (
            dcgmi_json(
                "4",
                [
                    one(
                        29,
                        "Persistence Mode: Persistence mode for GPU 0 is disabled. Enable "
                        'persistence mode by running "nvidia-smi -i <gpuId> -pm 1 " as root.',
                        5,
                        8,
                        "software",
                        gpu=0,
                    )
                ],
                level=3,
            ),
            226,
        ),
        "inconclusive",
        FALSE,
    ),
    Case(
        "stress-skipped",
        "https://github.com/NVIDIA/DCGM/issues/55",
        (
            dcgmi_json(
                "3",
                level=3,
                skipped=["diagnostic", "memory_bandwidth", "targeted_stress", "targeted_power"],
            ),
            0,
        ),
        "inconclusive",
        "A node is called good by tests that never ran.",
    ),
    Case(
        "control-faulty-memory",
        "DCGM_FR_FAULTY_MEMORY of DCGM 4.6.0",
        (dcgmi_json("4", [one(52, "Found 8 faulty memory elements on GPU 3", 2, 10)]), 205),
        "fail",
        MISSED,
    ),
    Case(
        "nccl-tests-failed",
        "https://github.com/NVIDIA/DCGM/issues/304",
        (
            dcgmi_json(
                "4",
                [one(129, "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory", 6, 15)],
            ),
            226,
        ),
        "inconclusive",
        FALSE,
    ),
    Case(
        "never-came-back",
        "https://github.com/NVIDIA/DCGM/issues/247",
        ("", 124),
        "inconclusive",
        FALSE,
    ),
    Case(
        "no-such-test",
        "https://github.com/NVIDIA/DCGM/issues/296",
        ("Error: requested tests were not found among possible test choices\n", 198),
        "inconclusive",
        FALSE,
    ),
    Case(
        "row-remap-pending",
        "https://github.com/IBM/autopilot/issues/55",
        (dcgmi_json("4", [one(85, "Row remappings are pending on GPU 3", 6, 10, "software")]), 226),
        "fail",
        "NVIDIA asks to drain and reset it (severity RESET); autopilot only warns, and this is arguable.",
    ),
)
def test_a_diagnosis(case: Case) -> None:
    text, code = case.form
    level = 3 if "nvbandwidth" in text or "targeted" in text else 2
    found = judge(Ran(out=text, code=code, level=level, gpus=8))
    assert found.outcome == case.right
    assert found.confirmed == (case.right == "fail")


LISTED = [
    {"gpu": 0, "bdf": "0000:05:00.0", "uuid": "a1ff74a1-0000-1000-8001-000000000001"},
]
MEASURED: dict[str, Any] = {
    "gpu": 0,
    "usage": {"gfx_activity": {"value": 42, "unit": "%"}, "vcn_activity": ["N/A", {"value": 0}]},
    "power": {"socket_power": {"value": 140, "unit": "W"}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 41, "unit": "C"}},
    "ecc": {"total_uncorrectable_count": 0, "total_deferred_count": 0},
}
GROUPS = (
    "RuntimeError: WARNING: User is missing the following required groups: render, video. Please "
    "add user to these groups.\n"
)
CARDS = (
    "Permission needed to access required GPU device node(s):\n"
    "  - /dev/dri/card0: Permission denied; owner=root(0):video(39);\n\nYou can try:\n"
    "  • Add your user to the group that owns these devices:\n\n"
)


@each(
    Case(
        "rocm-7-without-groups",
        "https://github.com/ROCm/amdsmi/issues/125",
        (GROUPS, ""),
        "required groups: render, video",
        "The administrator looks for broken JSON in place of a group.",
    ),
    Case(
        "rocm-7.1-without-devices",
        "https://github.com/ROCm/amdsmi/issues/184",
        (CARDS + json.dumps(LISTED), json.dumps([MEASURED])),
        "/dev/dri/card0: Permission denied",
        "GPUs that nobody may read are called well.",
    ),
    Case(
        "python-warns",
        "amd-smi of ROCm 7 under Python 3.14",
        (
            json.dumps(LISTED),
            "/usr/lib/python3.14/site-packages/amdsmi/amdsmi_interface.py:3569: SyntaxWarning: "
            "'return' in a 'finally' block\n  return return_dictionary\n" + json.dumps([MEASURED]),
        ),
        41.0,
        "A node is unknown for ever for a warning about the tool's own code.",
    ),
    Case(
        "lists-in-a-field",
        "https://github.com/henrygd/beszel/issues/737",
        (json.dumps(LISTED), json.dumps([MEASURED], indent=4)),
        41.0,
        BLIND,
    ),
    Case(
        "no-json-to-report",
        "https://github.com/ROCm/legacy-rocm-build/issues/4374",
        ("WARNING: No JSON data to report\n", "[]"),
        "No JSON data to report",
        BLIND,
    ),
)
def test_an_answer_of_amd_smi(case: Case) -> None:
    """A heat that is read, or the reason why nothing is."""
    try:
        said: object = amd.parse(*case.form).gpus[0].temperature
    except Unreadable as error:
        said = str(error)
    assert said == case.right if isinstance(case.right, float) else case.right in str(said)


def test_the_second_part_of_a_divided_gpu_has_another_form() -> None:
    """https://github.com/ROCm/amdsmi/issues/134: in mode DPX its usage is the word N/A."""
    listed = [LISTED[0] | {"partition_id": 0}, LISTED[0] | {"gpu": 1, "partition_id": 1}]
    part = {"gpu": 1, "usage": "N/A", "power": "N/A", "temperature": "N/A", "ecc": "N/A"}
    found = amd.parse(json.dumps(listed), json.dumps({"gpu_data": [MEASURED, part]}))
    assert [(gpu.uuid, gpu.temperature) for gpu in found.gpus] == [
        (LISTED[0]["uuid"], 41.0),
        (LISTED[0]["uuid"], None),
    ]
    assert all(gpu.untold == () for gpu in found.gpus)


def test_the_case_of_errors_before_a_reset_and_after_it() -> None:
    """https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/: an uncorrectable error asks for "Drain
    and Reset" until it is made; then the counters since the driver was loaded are 0 and it is well."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    before = here.nodes["n1"].gpus[1]
    here.nodes["n1"].gpus[1] = replace(
        before, recovery="Drain and Reset", pending=True, ecc={"dram_uncorrectable": 2}
    )
    assert {s: f.status.value for s, f in here.bad().items()} == {before.uuid: "critical"}
    here.nodes["n1"].gpus[1] = replace(before, remapped=(0, 1), life={"dram_uncorrectable": 2})
    assert here.bad() == {}
