"""Kernel lines of NVIDIA's drivers: every documented form, and what the table says of them."""

import pytest
from msgspec.structs import replace

from sentinel.gpu import xid, xid_table
from sentinel.gpu.advice import (
    RECOVERY_ACTIONS,
    Advice,
    recovery,
    recovery_action,
    worst,
)

MIG = "NVRM: Xid (PCI:0000:07:00 GPU-I:05): 94, pid=99, Contained: CE User Channel (0x9)."


def one(line: str, level: int | None = None) -> xid.Event:
    (event,) = xid.read([line], [level]).events
    return event


@pytest.mark.parametrize(
    ("line", "kind", "code", "bus"),
    [
        ("NVRM: Xid (PCI:0000:07:00): 63, pid=18, Row Remapper: New row", "xid", 63, "07:00"),
        ("NVRM: Xid (0000:07:00): 14, Channel 01", "xid", 14, "07:00"),
        (
            "NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU",
            "xid",
            79,
            "07:00",
        ),
        (MIG, "xid", 94, "07:00"),
        ("NVRM: Xid (PCI:0000:07:00): 13", "xid", 13, "07:00"),
        ("NVRM: GPU 0000:07:00.0: GPU has fallen off the bus.", "xid", 79, "07:00"),
        ("NVRM: GPU at PCI:0000:07:00: GPU has fallen off the bus.", "xid", 79, "07:00"),
        ("NVRM: GPU at 0000:07:00.0 has fallen off the bus.", "xid", 79, "07:00"),
        (
            "nvidia-nvswitch3: SXid (PCI:0000:07:00.0): 12028, Non-fatal, Link 32",
            "sxid",
            12028,
            "07:00",
        ),
    ],
)
def test_every_form_of_a_line(line: str, kind: str, code: int, bus: str) -> None:
    """With and without PCI:, MIG instances, unknown processes, no Xid at all, switches."""
    event = one(line)
    assert (event.kind, event.code, event.bus) == (kind, code, f"00000000:{bus.upper()}.0")


def test_an_address_without_a_domain_is_as_long_as_a_name() -> None:
    """So it counts as a line without an address does."""
    line = "NVRM: GPU 07:00.0: GPU has fallen off the bus."
    assert (one(line, 4).code, one(line, 4).bus) == (79, "00000000:07:00.0")
    assert xid.read([line] * 2, (6, None)) == xid.Told()


def test_who_it_was() -> None:
    """The process where the driver knows it, the MIG instance, the text without either."""
    event = one("NVRM: Xid (PCI:0000:07:00): 94, pid=250, name=python3, Ch 00000008")
    assert (event.pid, event.process, event.text) == (250, "python3", "Ch 00000008")
    unknown = one("NVRM: Xid (PCI:0000:07:00): 64, pid='<unknown>', name=<unknown>, Row Remapper")
    assert (unknown.pid, unknown.process, unknown.text) == (None, "", "Row Remapper")
    assert (one(MIG).mig, one(MIG).pid) == ("05", 99)


GPU = "PCI:0000:3b:00"


@pytest.mark.parametrize(
    "record",
    [
        # the name of a file within a record of the kernel
        f"overlayfs: failed to resolve '/tmp/NVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off': -2",
        f"process 'NVRM: Xid ({GPU}): 48, pid=12, name=x, DBE' started with executable stack",
        f"python[9]: segfault at 0 ip 0 sp 0 error 4 in NVRM: Xid ({GPU}): 79, pid=1, x[4+1]",
        f"kworker NVRM: GPU {GPU[4:]}.0: RmInitAdapter failed! (0x26:0x56:1474)",
        f"mallory-usb: \\x0aNVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        f"NVRM: [9] Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        f"x [1.5] NVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        f"[1.5] [1.5] NVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        # a later line of a record
        f"overlayfs: x\nNVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        f"NVRM: x[9]: segfault in x\nNVRM: Xid ({GPU}): 79, pid=1, x[4+1]",
        f"\nNVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
        "python[9]: segfault in NVRM: The NVIDIA GPU 0000:18:00.0\nNVRM: fallen off the bus",
        # the name of a process, at most 15 bytes, with that of a file behind it
        "NVRM: Xid[9]: segfault at 0 ip 0 sp 0 error 4 in ): 79, pid=1[4+1]",
        "NVRM: Xid (PCI:[9]: segfault at 0 ip 0 sp 0 error 4 in ): 79, pid=1, x[4+1]",
        "NVRM: Xid (PCI:[9]: segfault at 0 ip 0 sp 0 error 4 in 0000:3b:00): 79, x[4+1]",
        "NVRM: [9]: segfault at 0 error 4 in fallen off the bus and is not responding[4+1]",
        "NVRM: GPU 01:00[9]: segfault at 0 error 4 in  has fallen off the bus[4+1]",
        "NVRM: GPU at PC[9]: segfault in I:0000:3b:00: GPU-11111111-2222-3333-4444-555555555555",
        "nvidia-nvswitch[9]: segfault in 0: SXid (PCI:0000:3b:00.0): 20034, Fatal, Link 1[4+1]",
        "amdgpu 0000:e3:[9]: segfault in 00.0: uncorrectable hardware error(x) detected![4+1]",
        "amdgpu: a[9]: segfault at 0 error 4 in uncorrectable hardware error(x) detected![4+1]",
        "[drm:x [amdgpu][9]: segfault at 0 error 4 in ] *ERROR* GPU Recovery Failed: -19[4+1]",
    ],
)
def test_a_line_counts_only_from_its_driver(record: str) -> None:
    """Users choose names of processes and files; the kernel puts them into its records."""
    assert xid.read([record]) == xid.Told()
    assert xid.read([record] * 8, range(8)) == xid.Told()


WHOLE = (
    f"NVRM: Xid ({GPU}): 79, pid=1, GPU has fallen off the bus.",
    f"NVRM: GPU {GPU[4:]}.0: GPU has fallen off the bus.",
    f"NVRM: The NVIDIA GPU {GPU[4:]}.0 installed in this system has fallen off the bus and is not",
    "NVRM: fallen off the bus and is not responding to commands.",
    f"NVRM: GPU {GPU[4:]}.0: RmInitAdapter failed! (0x26:0x56:1474)",
    f"NVRM: GPU at {GPU}: GPU-11111111-2222-3333-4444-555555555555",
    "nvidia-nvswitch0: SXid (PCI:0000:3b:00.0): 20034, Fatal, Link 1",
    "amdgpu 0000:3b:00.0: amdgpu: Fatal error during GPU init",
    "amdgpu 0000:3b:00.0: {1}uncorrectable hardware error(x) detected!",
    "[drm:x [amdgpu]] *ERROR* GPU Recovery Failed: -19",
)


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize(
    "name",
    [
        *("NVRM: x", "NVRM: Xid (PCI:", "NVRM: The NVIDI", "NVRM: GPU 0000:"),
        *("nvidia-nvswitch", "amdgpu 0000:3b:", "amdgpu: x", "[drm:x [amdgpu]"),
    ],
)
def test_a_driver_in_the_name_of_a_program_and_of_its_file(name: str, whole: str) -> None:
    """As Linux reports a program that crashes: by its name first, at the level of information, with
    its file's behind. The driver's own line is the control."""
    crash = f"{name}[31286]: segfault at 0 ip 000055ac sp 00007ffd error 6 in {whole}[1132+1000]"
    assert xid.read([crash], (6,)) == xid.Told()
    assert xid.read([crash]) == xid.Told()
    assert xid.read([whole], (3,)) != xid.Told()


@pytest.mark.parametrize(
    "name",
    [
        "amdgpu: a",
        "amdgpu: [power",
        "amdgpu: GPU Rec",
        "NVRM: a",
        "[drm:a [amdgpu",
        "[x] amdgpu: a",
    ],
)
@pytest.mark.parametrize(
    "file",
    [
        "GPU will not be initialized",
        "1 uncorrectable hardware errors detected in umc block",
        "3 poison consumption detected",
        "Uncorrectable hardware error! x detected",
        "GPU Recovery Failed: -22",
        "RmInitAdapter failed! (0x26:0x56:1474)",
    ],
)
def test_words_of_a_driver_in_the_name_of_a_file(name: str, file: str) -> None:
    """Behind a process's name of few bytes, whatever the level says of it."""
    crash = f"{name}[1234]: segfault at 0 ip 000055d0 sp 00007ffd error 6 in {file}[1139,55d0+1000]"
    assert xid.read([crash] * 9, (None, *range(8))) == xid.Told()


@pytest.mark.parametrize(
    ("line", "kind", "levels"),
    [
        ("NVRM: RmInitAdapter failed! (0x62:0x65:2028)", "init", 5),
        ("NVRM: fallen off the bus and is not responding to commands.", "xid", 5),
        ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", "driver", 5),
        ("amdgpu: Fatal error during GPU init", "init", 4),
        ("amdgpu: 1 uncorrectable hardware errors detected in umc block", "ras", 4),
        ("[drm:x [amdgpu]] *ERROR* GPU Recovery Failed: -19", "init", 4),
        ("amdgpu: Failed to quiesce KFD", "driver", 4),
    ],
)  # fmt: skip
def test_a_line_without_an_address_counts_at_its_drivers_level(
    line: str, kind: str, levels: int
) -> None:
    """Where the level is milder or not known, it is no evidence; nor with anything behind it."""
    told = [xid.read([line], [level]).events for level in (*range(8), None)]
    assert [bool(events) for events in told] == [n < levels for n in range(8)] + [False]
    assert {event.kind for events in told for event in events} == {kind}
    if kind != "driver":
        assert kind not in {e.kind for e in xid.read([f"{line} of x"], (3,)).events}


@pytest.mark.parametrize(
    ("attributes", "mig"),
    [
        ("", ""),
        (" GPU-I:05", "05"),
        (" GPU-I:05 GPU-CI:01", "05"),
        (" GPU-I:13 GPU-CI:00", "13"),
        (" GPU-I:05 NEW-ID:2a", "05"),
        (" NEW-ID:2a", ""),
    ],
)
def test_the_xid_of_a_mig_instance_belongs_to_its_gpu(attributes: str, mig: str) -> None:
    """The driver attributes it to an instance, and to a compute instance within it."""
    event = one(f"NVRM: Xid ({GPU}{attributes}): 95, pid=7, name=python, Uncontained: x")
    assert (event.code, event.bus, event.mig) == (95, "00000000:3B:00.0", mig)
    assert (event.pid, event.process) == (7, "python")


def test_a_newline_in_the_name_of_the_process_ends_the_line() -> None:
    """What follows it is not read; the Xid is."""
    event = one(f"NVRM: Xid ({GPU}): 31, pid=7, name=a\nNVRM: Xid (P, Ch 00000008, Fatal")
    assert (event.code, event.process, event.text) == (31, "a", "")


@pytest.mark.parametrize(
    ("said", "fatal"),
    [
        ("pid=7, name=a, Nonfatal, Ch 00000008", None),
        ("pid=7, name=a, Fatal, Ch 00000008", None),
        ("pid='<unknown>', name=<unknown>, Fatal", True),
        ("RLW_REMAP Nonfatal XC0 i0 Link 00", False),
    ],
)
def test_no_program_says_by_its_name_how_bad_an_xid_is(said: str, fatal: bool | None) -> None:
    """A name may hold a comma, and seems to end there. Of a link's errors the driver names no process."""
    event = one(f"NVRM: Xid ({GPU}): 149, {said}")
    assert (event.code, event.fatal) == (149, fatal)


def test_a_gpu_lost_in_three_lines_is_one_event() -> None:
    """As older drivers tell it, without any Xid."""
    lines = [
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2901) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    ]
    (event,) = xid.read(lines).events
    assert (event.code, event.bus) == (79, "00000000:18:00.0")
    assert xid.read(["\n".join(lines)]) == xid.Told(events=(replace(event, line=0),))
    (late,) = xid.read(lines[2:], (4,)).events
    assert (late.code, late.bus) == (79, "")  # one is lost, and nobody knows which


@pytest.mark.parametrize(
    "lines",
    [
        [
            "NVRM: The NVIDIA GPU 0000:18:00.0 installed in this system has fallen off the bus and is not responding to commands."
        ],
        [
            "NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:1e07) installed in this",
            "NVRM: system has fallen off the bus and is not responding to commands.",
        ],
    ],
)
def test_a_gpu_lost_in_other_words(lines: list[str]) -> None:
    """One line or two; a GPU that is only named above is not the one."""
    (event,) = xid.read(lines).events
    assert (event.code, event.bus) == (79, "00000000:18:00.0")
    named = "NVRM: The NVIDIA GPU 0000:29:00.0 (PCI ID: 10de:1) installed in this system is not supported"
    other = "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus."
    assert [e.bus for e in xid.read([named, other]).events] == ["00000000:18:00.0"]
    far = [named, *[""] * 3, "NVRM: fallen off the bus and is not"]
    assert [e.bus for e in xid.read(far, (4,) * 5).events] == [""]


@pytest.mark.parametrize(
    ("line", "bus"),
    [
        ("NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x26:0xffff:1482)", "00000000:07:00.0"),
        ("NVRM: GPU-0000:07:00: RmInitAdapter failed!", "00000000:07:00.0"),
        ("NVRM: RmInitAdapter failed! (0x62:0x65:2028)", ""),
    ],
)
def test_a_gpu_that_could_not_be_started(line: str, bus: str) -> None:
    """Without an Xid; in old drivers without saying which."""
    event = one(line, 4)
    assert (event.kind, event.bus, event.advice) == ("init", bus, Advice.DIAGNOSE)
    assert event.text.startswith("RmInitAdapter failed")


PROBE_COUNT = "NVRM: The NVIDIA probe routine failed for 1 device(s)."


@pytest.mark.parametrize(
    "line",
    [
        "nvidia 0000:9b:00.0: probe with driver nvidia failed with error -1",
        "nvidia: probe of 0000:9b:00.0 failed with error -1",
        "amdgpu 0000:9b:00.0: probe with driver amdgpu failed with error -22",
        "amdgpu: probe of 0000:9b:00.0 failed with error -22",
    ],
)
def test_a_gpu_that_its_driver_did_not_take(line: str) -> None:
    """It is in no list of the driver's: really_probe() in drivers/base/dd.c. The count that follows
    tells nothing more."""
    (event,) = xid.read([line, PROBE_COUNT], [4, 4]).events
    assert (event.kind, event.bus) == ("init", "00000000:9B:00.0")
    assert "probe failed with error" in event.text


def test_the_count_of_failed_probes_alone() -> None:
    """Without a device, at the driver's level only."""
    (event,) = xid.read([PROBE_COUNT], [4]).events
    assert (event.kind, event.bus) == ("init", "")
    assert xid.read([PROBE_COUNT], [6]).events == xid.read([PROBE_COUNT]).events == ()


@pytest.mark.parametrize(
    "line",
    [
        "nvidia 0000:9b:00.0: enabling device (0000 -> 0003)",
        "nvidia 0000:9b:00.0: probe with driver vfio-pci failed with error -22",
        "nvidia: probe of nothing failed with error -1",
        "nvidia: probe of 0000:9b:00.0 failed with error -1 it seems",
    ],
)
def test_other_lines_about_a_probe_are_no_events(line: str) -> None:
    """The control."""
    assert xid.read([line], [4]).events == ()


@pytest.mark.parametrize("name", ["amdgpu 0000:29:00.0:", "amdgpu 0000:29:00.0: amdgpu:"])
@pytest.mark.parametrize("said", ["Fatal error during GPU init", "GPU reset end with ret = -110"])
def test_an_amd_gpu_that_could_not_be_started_or_reset(name: str, said: str) -> None:
    """The driver's name stands once or twice; a reset that succeeds is no trouble."""
    event = one(f"{name} {said}")
    assert (event.kind, event.bus, event.text) == ("init", "00000000:29:00.0", said)
    fine = [f"{name} GPU reset succeeded, trying to resume", f"{name} GPU reset begin!"]
    assert xid.read(fine).events == ()


@pytest.mark.parametrize(
    ("said", "fatal", "advice"),
    [
        (
            "socket: 0, die: 1, 2 new uncorrectable hardware errors detected in umc block",
            True,
            Advice.RESET,
        ),
        (
            "{17}socket: 0, die: 1 1 uncorrectable hardware errors detected in gfx block",
            True,
            Advice.RESET,
        ),
        ("3 uncorrectable hardware errors detected in umc block", True, Advice.RESET),
        ("Uncorrectable hardware error (ERREVENT_ATHUB_INTERRUPT) detected!", True, Advice.RESET),
        (
            "socket: 0, die: 1, 1 new deferred hardware errors detected in umc block",
            False,
            Advice.MONITOR,
        ),
        (
            "{17} socket: 0, die: 1, 1 new poison consumption detected in gfx block",
            False,
            Advice.MONITOR,
        ),
    ],
)
def test_memory_errors_of_amd_gpus(said: str, fatal: bool, advice: Advice) -> None:
    """The new ones count; totals repeat them, and corrected ones need nobody."""
    event = one(f"amdgpu 0000:c1:00.0: amdgpu: {said}")
    assert (event.kind, event.bus, event.fatal) == ("ras", "00000000:C1:00.0", fatal)
    assert event.advice is advice


@pytest.mark.parametrize(
    ("said", "kind", "advice"),
    [
        (
            "{1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
            "ras",
            Advice.RESET,
        ),
        ("UNCORRECTABLE HARDWARE ERROR (ERREVENT_ATHUB_INTERRUPT) DETECTED!", "ras", Advice.RESET),
        ("{2}socket: 0, die: 1, 1 New Uncorrectable Hardware Errors detected", "ras", Advice.RESET),
        ("GPU reset(3) failed", "init", Advice.DIAGNOSE),
        (
            "RAS records:129 exceed threshold:128, GPU will not be initialized. Replace this GPU",
            "init",
            Advice.DIAGNOSE,
        ),
        ("MES might be in unrecoverable state, issue a GPU reset", "driver", Advice.CONTACT),
        ("a fault of the future: status 0x12 error", "driver", Advice.CONTACT),
    ],
)
def test_lines_of_amdgpu_whatever_their_capitals(said: str, kind: str, advice: Advice) -> None:
    """Forms of Linux 5.15 to 6.11, and what is not known here: a warning."""
    for prefix in ("amdgpu 0000:c1:00.0: ", "amdgpu 0000:c1:00.0: amdgpu: "):
        event = one(prefix + said)
        assert (event.kind, event.bus, event.advice) == (kind, "00000000:C1:00.0", advice)


def test_an_unknown_line_of_amdgpu_is_judged_by_its_level() -> None:
    """Where that is known; else by its words."""
    line = "amdgpu 0000:c1:00.0: amdgpu: the flux is odd"
    assert [e.kind for e in xid.read([line] * 3, (3, 4, None)).events] == ["driver"]
    assert [e.kind for e in xid.read([line + ", failed"] * 3, (3, 6, None)).events] == [
        "driver"
    ] * 2
    nameless = "amdgpu: Failed to quiesce KFD"
    assert [e.kind for e in xid.read([nameless] * 3, (3, 6, None)).events] == ["driver"]
    power = "amdgpu: [powerplay] Failed to send message 0x26, response 0x0"
    assert [e.kind for e in xid.read([power] * 3, (3, 6, None)).events] == ["driver"]
    drm = "[drm:mes_v11_0_submit_pkt [amdgpu]] *ERROR* MES failed to response msg=3"
    assert [(e.kind, e.bus) for e in xid.read([drm], (3,)).events] == [("driver", "")]


@pytest.mark.parametrize(
    "said",
    [
        "[gfxhub] page fault (src_id:0 ring:169 vmid:8 pasid:32771, for process python pid 7)",
        "[gfxhub0] retry page fault (src_id:0 ring:0 vmid:8 pasid:32771)",
        "  in page starting at address 0x0000000000000000 from client 10",
        "GCVM_L2_PROTECTION_FAULT_STATUS:0x00040B53",
        "\t MAPPING_ERROR: 0x1",
        "\t Faulty UTCL2 client ID: SQC (data) (0xa)",
        "GPU reset begin!",
        "GPU reset(1) succeeded!",
        "{1}[Hardware Error]: aca entry[00].STATUS=0xfaa00000000d080b",
        "socket: 0, die: 1, 5 uncorrectable hardware errors detected in total in umc block",
        "socket: 0, die: 1, 5 new correctable hardware errors detected in umc block",
        "0 uncorrectable hardware errors detected in umc block",
        "ring gfx timeout",
    ],
)
def test_other_lines_of_amdgpu_are_no_events(said: str) -> None:
    """Totals come again and again; a program's own faults, and details of what a line of its own
    tells, are none of the device."""
    line = f"amdgpu 0000:c1:00.0: amdgpu: {said}"
    assert xid.read([line, line], (3, None)).events == ()


@pytest.mark.parametrize(
    ("text", "fatal", "advice"),
    [
        ("Severity 1 Engine instance 30 Sub-engine instance 00", True, Advice.DIAGNOSE),
        ("Severity 0 Engine instance 30 Sub-engine instance 00", False, Advice.MONITOR),
        ("Severity 7 Engine instance 30 Sub-engine instance 00", None, Advice.CONTACT),
        ("SOE HALT data[0] = 0x0", None, Advice.CONTACT),
    ],
)
def test_switches_that_give_a_severity(text: str, fatal: bool | None, advice: Advice) -> None:
    """1 is fatal, 0 is not (nvswitch_error_severity); what says neither is not mild."""
    event = one(f"nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 24007, {text}")
    assert (event.fatal, event.advice) == (fatal, advice)


def test_a_severity_line_is_part_of_the_error_above_it() -> None:
    """Also where another switch spoke between."""
    mine, other = (f"nvidia-nvswitch{n}: SXid (PCI:0000:a{n}:00.0): 20034, " for n in (0, 1))
    lines = [
        mine + "Fatal, Link 30",
        other + "Fatal, Link 1",
        mine + "Severity 1 Engine instance 30",
    ]
    assert [e.line for e in xid.read(lines).events] == [0, 1]
    assert len(xid.read(lines[1:]).events) == 2


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030}",
        "NVRM: GPU4 RPC history (CPU -> GSP):",
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00",
        "python[7]: NVRM Xid 79",
        "",
    ],
)
def test_other_lines_are_no_events(line: str) -> None:
    """Data lines follow an event and are none."""
    assert xid.read([line]).events == ()


def test_the_driver_names_the_gpu_before_its_first_xid() -> None:
    """Identity survives an nvidia-smi that hangs."""
    told = xid.read(
        [
            "NVRM: GPU at PCI:0000:9b:00: GPU-11111111-2222-3333-4444-555555555555",
            "NVRM: GPU Board Serial Number: 1650000000001",
            "NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=nvidia-smi, Timeout",
        ]
    )
    assert told.uuids == {"00000000:9B:00.0": "GPU-11111111-2222-3333-4444-555555555555"}


@pytest.mark.parametrize(
    ("code", "text", "advice"),
    [
        (13, "Graphics Exception", Advice.RESTART_APP),
        (31, "MMU Fault", Advice.RESTART_APP),
        (43, "", Advice.IGNORE),
        (45, "", Advice.IGNORE),
        (11, "", Advice.RESTART_APP),
        (14, "", Advice.IGNORE),
        (25, "", Advice.RESTART_APP),
        (48, "DBE", Advice.DIAGNOSE),
        (63, "Row Remapper", Advice.RESET),
        (64, "Row Remapper Error", Advice.DIAGNOSE),
        (79, "", Advice.REBOOT),
        (94, "Contained", Advice.RESTART_APP),
        (95, "Uncontained", Advice.RESET),
        (119, "GSP", Advice.RESET),
        (149, "NETIR_LINK_EVT  Fatal   XC0", Advice.DIAGNOSE),
        (149, "NETIR_LINK_EVT  Nonfatal   XC0", Advice.MONITOR),
        (999, "from a driver of the future", Advice.CONTACT),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            Advice.RESET,
        ),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
            Advice.REBOOT,
        ),
        (
            154,
            "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
            Advice.IGNORE,
        ),
        (154, "GPU recovery action changed from 0x0 (None) to 0x9 (Dance)", Advice.CONTACT),
        (154, "GPU recovery action changed from 0x0 (None) to 0x1 (PF FLR)", Advice.RESET),
        (154, "GPU recovery action changed from 0x0 (None) to 0x2 (Dance)", Advice.REBOOT),
        (154, "GPU recovery action changed from 0x0 (None) to 0x9 (OS Reboot)", Advice.REBOOT),
        (154, "GPU recovery action changed from 0x1 (PF FLR) to 0x0 (Dance)", Advice.CONTACT),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x5 (Recover IMEX Domain)",
            Advice.RECOVER_IMEX,
        ),
        (154, "GPU recovery action is 0x0 (None) and more", Advice.CONTACT),
    ],
)
def test_what_to_do(code: int, text: str, advice: Advice) -> None:
    """NVIDIA's own recovery action first, then the table; what is unknown is never nothing."""
    event = one(f"NVRM: Xid (PCI:0000:07:00): {code}, {text}")
    assert event.advice is advice


@pytest.mark.parametrize(
    ("text", "advice"),
    [("Fatal, Link 30 LTSSM Fault Up", Advice.DIAGNOSE), ("Non-fatal, Link 61", Advice.MONITOR)],
)
def test_switches_say_themselves_whether_it_is_fatal(text: str, advice: Advice) -> None:
    """SXid lines carry it."""
    line = f"nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, {text}"
    assert one(line).advice is advice


@pytest.mark.parametrize(
    ("code", "text", "advice", "meaning"),
    [
        (
            149,
            "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x0)",
            Advice.RESET,
            "other end",
        ),
        (
            149,
            "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)",
            Advice.RESET,
            "cables",
        ),
        (
            149,
            "NETIR_LINK_DOWN Fatal   XC0 i0 Link 08 (0x026005c6 0x00000000 0x0)",
            Advice.MONITOR,
            "user",
        ),
        (
            149,
            "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x03f005c6 0x00000000 0x0)",
            Advice.DIAGNOSE,
            "NVLink 5 error",
        ),
        (
            149,
            "NETIR_BER_EVENT Nonfatal XC0 i0 Link 00 (0x00000013 0x00000002)",
            Advice.MONITOR,
            "bit errors",
        ),
        (
            149,
            "NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x00000014 0x00000004)",
            Advice.RESET,
            "firmware",
        ),
        (
            149,
            "NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 00 (0x00000014 0x00000003)",
            Advice.MONITOR,
            "firmware",
        ),
        (144, "SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002 0x0)", Advice.RESET, "SAW_MVB"),
        (
            144,
            "SAW_MVB Nonfatal XC0 i0 Link -1 (0x00000001 0x00000004 0x0)",
            Advice.MONITOR,
            "SAW_MVB",
        ),
        (
            145,
            "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000104)",
            Advice.MONITOR,
            "RLW_REMAP",
        ),
        (
            145,
            "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000044)",
            Advice.RESET,
            "RLW_REMAP",
        ),
        (
            146,
            "TLW_RX/TLW_RX_PIPE1 Fatal XC0 i0 Link 00 (0x0000000b 0x00000004)",
            Advice.RESET,
            "TLW_RX",
        ),
        (
            148,
            "NVLPW_CTRL/NVLPW Nonfatal XC0 i0 Link 00 (0x0000000f 0x80000000)",
            Advice.MONITOR,
            "NVLPW",
        ),
        (
            150,
            "MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)",
            Advice.RESET,
            "watchdog",
        ),
        (
            145,
            "NEW_UNIT Fatal XC0 i0 Link 00 (0x00000004 0x00000001)",
            Advice.DIAGNOSE,
            "NVLink 5 error",
        ),
        (
            145,
            "RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x00000000)",
            Advice.MONITOR,
            "NVLink 5 error",
        ),
    ],
)
def test_nvlink_5_by_its_fields(code: int, text: str, advice: Advice, meaning: str) -> None:
    """Unit, status bits, and the reason why a link went down; by the words where they are new."""
    event = one(f"NVRM: Xid (PCI:0009:01:00): {code}, {text}")
    assert (event.advice, meaning in event.meaning) == (advice, True), event.meaning


NVIDIA: dict[str, tuple[int, ...]] = {
    "RESTART_APP": (
        *(8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84),
        *(85, 86, 88, 89, 94, *range(96, 106), *range(126, 136), 139),
    ),
    "IGNORE": (
        *(14, 37, 38, 43, 44, 63, 66, 67, 92, 93, 106, 107, 108, 121, 137, 141, 152, 153, 157),
        *(160, 161),
    ),
    "RESET_GPU": (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    "RESTART_BM": (79,),
    "RESTART_VM": (151,),
    "CHECK_MECHANICALS": (54,),
    "UPDATE_SWFW": (78,),
    "CHECK_UVM": (159,),
    "WORKFLOW_XID_45": (45,),
    "WORKFLOW_XID_48": (48,),
    "WORKFLOW_NVLINK_ERR": (74,),
    "WORKFLOW_NVLINK5_ERR": (144, 145, 146, 147, 148, 149, 150),
    "XID_154": (154,),
    "": tuple(range(162, 178)),
}
"""NVIDIA's catalogue: its immediate action by number ("" where it gives none). All other numbers
below 178 are CONTACT_SUPPORT. It ends with 172; 173 to 177 are of newer drivers (nverror.h of
open-gpu-kernel-modules), which give no action."""

MEANS = {
    "RESTART_APP": Advice.RESTART_APP,
    "IGNORE": Advice.IGNORE,
    "RESET_GPU": Advice.RESET,
    "RESTART_BM": Advice.REBOOT,
    "RESTART_VM": Advice.REBOOT,
    "CONTACT_SUPPORT": Advice.CONTACT,
    "XID_154": Advice.CONTACT,  # where the line itself has no known action
    "": Advice.CONTACT,
}


@pytest.mark.parametrize("code", range(1, 178))
def test_a_row_asks_for_what_nvidia_does_or_says_why_not(code: int) -> None:
    """Number by number; and who says that he differs does."""
    said = [name for name, codes in NVIDIA.items() if code in codes] or ["CONTACT_SUPPORT"]
    row = xid_table.row(code)
    assert len(said) == 1
    same = MEANS.get(said[0]) is row.advice
    assert same or row.differs, f"{said[0]}, not {row.advice}"
    assert not (row.differs and all(_same(other) for other in row.codes))


def _same(code: int) -> bool:
    said = next((n for n, codes in NVIDIA.items() if code in codes), "CONTACT_SUPPORT")
    return MEANS.get(said) is xid_table.row(code).advice


def test_every_row_has_a_source_and_a_number_of_its_own() -> None:
    """No number is in two rows; none lacks somebody who says so."""
    codes = [code for row in xid_table.ROWS for code in row.codes]
    assert len(codes) == len(set(codes))
    assert all(row.source.startswith("https://") and row.meaning for row in xid_table.ROWS)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("None", Advice.IGNORE),
        ("Reset", Advice.RESET),
        ("Reboot", Advice.REBOOT),
        ("Drain P2P", Advice.DIAGNOSE),
        ("Drain and Reset", Advice.RESET),
        ("GPU Reset Required", Advice.RESET),
        ("Bus Reset", Advice.RESET),
        ("System Reboot", Advice.REBOOT),
        ("OS Reboot", Advice.REBOOT),
        ("Recover IMEX Domain", Advice.RECOVER_IMEX),
        ("PF FLR", Advice.RESET),
        ("  gpu  RESET required", Advice.RESET),
        ("No reset needed", None),
        ("Reboot not required", None),
        ("", None),
        ("Dance", None),
    ],
)
def test_nvidias_recovery_actions(word: str, advice: Advice | None) -> None:
    """An unknown word is no advice, and least of all "nothing to do". Parts of a word decide
    nothing: "no reset needed" holds "reset"."""
    assert recovery(word) is advice


def test_a_recovery_action_is_told_with_its_word() -> None:
    """What the driver asks for, also where nobody here knows it."""
    head = "NVRM: Xid (PCI:0000:07:00): 154, GPU recovery action changed from 0x0 (None) to"
    assert one(f"{head} 0x1 (PF FLR)").meaning.endswith("changed to PF FLR (0x1)")
    unknown = one(f"{head} 0xb (Wash)")
    assert unknown.meaning.endswith("changed to Wash (0xb), which sentinel does not know")
    assert one("NVRM: Xid (PCI:0000:07:00): 154, in other words").meaning.endswith("changed")


def test_each_recovery_action_has_one_number_and_its_words() -> None:
    """The number decides before the word; number and word of one row mean the same."""
    for action in RECOVERY_ACTIONS:
        for word in (action.word, *action.others):
            assert recovery_action(word) is action
            assert recovery_action(word, action.code) is action
    assert [action.code for action in RECOVERY_ACTIONS] == list(range(8))
    assert recovery("PF FLR", 0) is None  # "nothing to do" by number, something by word
    assert recovery("Dance", 4) is Advice.RESET
    assert recovery("Reboot", 99) is Advice.REBOOT
    assert recovery("Dance", 99) is None


def test_the_worst_advice_is_the_one_that_takes_most() -> None:
    """From ignore to a replacement."""
    assert worst([Advice.MONITOR, Advice.REPLACE, Advice.RESET]) is Advice.REPLACE
    assert worst([]) is Advice.IGNORE
