"""Kernel lines of NVIDIA's drivers: every documented form, and what the table says of them."""

import pytest

from sentinel.gpu import xid, xid_table
from sentinel.gpu.advice import Advice, recovery, worst

MIG = "NVRM: Xid (PCI:0000:07:00 GPU-I:05): 94, pid=99, Contained: CE User Channel (0x9)."


def one(line: str) -> xid.Event:
    (event,) = xid.read([line]).events
    return event


@pytest.mark.parametrize(
    ("line", "kind", "code", "bus"),
    [
        ("NVRM: Xid (PCI:0000:07:00): 63, pid=18, Row Remapper: New row", "xid", 63, "07:00"),
        ("[12.5] NVRM: Xid (0000:07:00): 14, Channel 01", "xid", 14, "07:00"),
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


def test_who_it_was() -> None:
    """The process where the driver knows it, the MIG instance, the text without either."""
    event = one("NVRM: Xid (PCI:0000:07:00): 94, pid=250, name=python3, Ch 00000008")
    assert (event.pid, event.process, event.text) == (250, "python3", "Ch 00000008")
    unknown = one("NVRM: Xid (PCI:0000:07:00): 64, pid='<unknown>', name=<unknown>, Row Remapper")
    assert (unknown.pid, unknown.process, unknown.text) == (None, "", "Row Remapper")
    assert (one(MIG).mig, one(MIG).pid) == ("05", 99)


def test_a_gpu_lost_in_three_lines_is_one_event() -> None:
    """As older drivers tell it, without any Xid."""
    lines = [
        "NVRM: The NVIDIA GPU 0000:18:00.0",
        "NVRM: (PCI ID: 10de:2901) installed in this system has",
        "NVRM: fallen off the bus and is not responding to commands.",
    ]
    (event,) = xid.read(lines).events
    assert (event.code, event.bus) == (79, "00000000:18:00.0")
    assert xid.read(lines[2:]).events == ()


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
        ("Recover IMEX Domain", None),
        ("", None),
        ("Dance", None),
    ],
)
def test_nvidias_recovery_actions(word: str, advice: Advice | None) -> None:
    """An unknown word is no advice, and least of all "nothing to do"."""
    assert recovery(word) is advice


def test_the_worst_advice_is_the_one_that_takes_most() -> None:
    """From ignore to a replacement."""
    assert worst([Advice.MONITOR, Advice.REPLACE, Advice.RESET]) is Advice.REPLACE
    assert worst([]) is Advice.IGNORE
