"""`nvidia-smi -q -x` of every generation, `-q`, and whatever else a node may answer."""

import pytest

from sentinel.gpu import quantities, smi
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Gpu, Occupant
from sentinel.gpu.smi_tree import MOST
from tests.lab.gpus import FakeGpu, gpus_of, nvidia_smi

BAD = FakeGpu(
    uuid="GPU-11111111-2222-3333-4444-555555555555",
    index=3,
    serial="1650123456789",
    bus="00000000:10:1C.0",
    temperature=91,
    power=640.25,
    utilization=97,
    pending=True,
    remapped=(1, 4),
    ecc={"dram_correctable": 177, "dram_uncorrectable": 2},
    life={"dram_correctable": 1770, "dram_uncorrectable": 9},
    throttled=("hw_slowdown", "hw_thermal_slowdown"),
    processes=((4711, "python train.py"),),
)


def only(text: str) -> Gpu:
    (gpu,) = smi.parse(text).gpus
    return gpu


@pytest.mark.parametrize("version", ["v10", "v11", "v12", "v13"])
def test_every_generation_says_the_same_of_one_gpu(version: str) -> None:
    """Elements were renamed over the years; what they say is read alike."""
    gpu = only(nvidia_smi([BAD], version))
    assert (gpu.uuid, gpu.serial, gpu.bus, gpu.index) == (BAD.uuid, BAD.serial, BAD.bus, 3)
    assert (gpu.temperature, gpu.power, gpu.utilization) == (91, 640.25, 97)
    assert (gpu.ecc.dram_uncorrected, gpu.ecc_life.dram_uncorrected) == (2, 9)
    assert gpu.throttled == ("hw_slowdown", "hw_thermal_slowdown")
    assert gpu.processes == (
        Occupant(pid=4711, name="python train.py", kind="C", memory=1000 * 2**20),
    )
    assert gpu.mig is False


@pytest.mark.parametrize("version", ["v11", "v12", "v13"])
def test_remapped_rows_since_ampere(version: str) -> None:
    """Both counts, pending, failed, and the banks' histogram."""
    rows = only(nvidia_smi([BAD], version)).remapped
    assert rows is not None
    assert (rows.corrected, rows.uncorrected, rows.pending, rows.failed) == (1, 4, True, False)


def test_retired_pages_before_ampere() -> None:
    """Both counts; what is pending; no remapping is None and not "no"."""
    gpu = only(nvidia_smi([BAD], "v10"))
    assert gpu.remapped is None
    assert gpu.retired is not None
    assert (gpu.retired.single_bit, gpu.retired.double_bit, gpu.retired.pending) == (2, 1, True)


def test_uncorrectable_sram_is_the_sum_of_its_kinds() -> None:
    """v13 splits the counter into parity and SECDED."""
    from dataclasses import replace

    counts = {"sram_uncorrectable_parity": 3, "sram_uncorrectable_secded": 2}
    assert only(nvidia_smi([replace(BAD, ecc=counts)], "v13")).ecc.sram_uncorrected == 5


@pytest.mark.parametrize(
    ("version", "said", "meant"),
    [
        ("v13", "None", "None"),
        ("v13", "Drain and Reset", "Drain and Reset"),
        ("v13", "N/A", ""),
        ("v12", "Reset", "Reset"),
        ("v12", "Drain and Reset", "Drain and Reset"),
        ("v12", "None", ""),
        ("v11", "Reset", ""),
    ],
)
def test_recovery_action(version: str, said: str, meant: str) -> None:
    """One field since v13, two flags in v12, nothing before; not told is never "None"."""
    from dataclasses import replace

    assert only(nvidia_smi([replace(BAD, recovery=said)], version)).recovery == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (("Completed", "Success"), ""),
        (("In Progress", "N/A"), "In Progress"),
        (("Completed", "Insufficient Resources"), "Completed: Insufficient Resources"),
        (("N/A", "N/A"), ""),
    ],
)
def test_how_far_the_nvlink_fabric_is(said: tuple[str, str], meant: str) -> None:
    """In all forms that tell it; a GPU without NVSwitch has none."""
    from dataclasses import replace

    for version in ("v12", "v13"):
        assert only(nvidia_smi([replace(BAD, fabric=said)], version)).fabric == meant
    assert only(nvidia_smi([replace(BAD, fabric=said)], "v11")).fabric == ""


@pytest.mark.parametrize("words", ["[Unknown Error]", "ERR!", "GPU is lost", "GPU requires reset"])
def test_what_the_driver_cannot_read_is_a_trouble(words: str) -> None:
    """Neither a number nor nothing."""
    from dataclasses import replace

    gpu = only(nvidia_smi([replace(BAD, trouble=words)]))
    assert gpu.temperature is None
    assert gpu.troubles == (f"gpu_temp: {words.strip('[]')}",)


@pytest.mark.parametrize("words", ["[Unknown Error]", "ERR!", "GPU is lost", "N/A"])
def test_a_complaint_is_no_name(words: str) -> None:
    """Two lost GPUs are not one and the same."""
    from dataclasses import replace

    gpu = only(nvidia_smi([replace(BAD, uuid=words, serial=words, model=words)]))
    assert (gpu.uuid, gpu.serial, gpu.model) == ("", "", "")


@pytest.mark.parametrize("words", quantities._COMPLAINTS.pattern.split("|"))
def test_a_complaint_alone_is_found_however_it_is_spelt(words: str) -> None:
    """Short values are passed over before the pattern is tried: none of its words is one."""
    for said in (words, words.lower(), words.upper(), f"{words} in a sentence"):
        assert quantities.complaint(said) == said[: len(words)]


def test_a_program_cannot_pose_as_a_trouble() -> None:
    """Names of processes are users' text."""
    from dataclasses import replace

    assert only(nvidia_smi([replace(BAD, processes=((1, "ERR! GPU is lost"),))])).troubles == ()


@pytest.mark.parametrize("serial", ["N/A", "0000000000000", "[N/A]", ""])
def test_hidden_serials_are_no_serials(serial: str) -> None:
    """Virtual machines and redacted reports show zeros."""
    from dataclasses import replace

    assert only(nvidia_smi([replace(BAD, serial=serial)])).serial == ""


def test_all_gpus_in_order_with_the_driver() -> None:
    """Eight of them; text before the XML is passed over."""
    found = smi.parse("WARNING: infoROM is corrupted at gpu 0\n" + nvidia_smi(gpus_of(1)))
    assert [g.index for g in found.gpus] == list(range(8))
    assert (found.driver, found.cuda, found.form, found.attached) == ("580.65.06", "13.0", "v13", 8)


def test_the_clocks_that_a_gpu_can_run_at_change_nothing() -> None:
    """They are cut out unread. A list without an end is no whole page, also where another has one."""
    plain = nvidia_smi(gpus_of(1))
    clocks = "<supported_clocks><value>9 MHz</value></supported_clocks>"
    listed = plain.replace("<temperature>", f"{clocks}<temperature>")
    assert listed.count(clocks) == 8
    assert smi.parse(listed) == smi.parse(plain)
    with pytest.raises(Unreadable, match="no whole XML"):
        smi.parse(listed.replace("</supported_clocks>", "", 1))


TEXT = """\
==============NVSMI LOG==============

Driver Version                            : 510.73.08
Attached GPUs                             : 1
GPU 00000000:10:1C.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Serial Number                         : 1650000000009
    GPU UUID                              : GPU-99999999-2222-3333-4444-555555555555
    Minor Number                          : 3
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 1
            DRAM Correctable              : 177
        Aggregate
            DRAM Correctable              : 178
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 1
        Pending                           : Yes
        Remapping Failure Occurred        : No
        Bank Remap Availability Histogram
            Max                           : 639 bank(s)
            None                          : 2 bank(s)
    Temperature
        GPU Current Temp                  : 44 C
"""


def test_the_text_form_is_read_too() -> None:
    """What people paste into tickets, and what an RMA bundle holds."""
    gpu = only(TEXT)
    assert (gpu.uuid[:12], gpu.serial, gpu.bus) == (
        "GPU-99999999",
        "1650000000009",
        "00000000:10:1C.0",
    )
    assert gpu.ecc.sram_uncorrected == 1
    assert gpu.remapped is not None
    assert (gpu.remapped.pending, gpu.remapped.failed) == (True, False)
    assert gpu.remapped.banks == {"max": 639, "none": 2}
    assert (gpu.temperature, gpu.retired) == (44, None)


BOMB = """<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>"""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        nvidia_smi(gpus_of(1))[:-200],
        "<html><body>nginx</body></html>",
        "<?xml version='1.0'?><other/>",
        "<?xml version='1.0' encoding='utf-7'?><nvidia_smi_log>",
        BOMB,
        "<?xml version='1.0'?>" + "<a>" * 1000,
        f"<?xml version='1.0'?><nvidia_smi_log>{'<a/>' * MOST}</nvidia_smi_log>",
        "\0" * 100,
    ],
)
def test_what_is_not_whole_is_unreadable(text: str) -> None:
    """Never an inventory without GPUs: that would be a node that lost them all."""
    with pytest.raises(Unreadable):
        smi.parse(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("PCI:0000:10:1c", "00000000:10:1C.0"),
        ("0000:10:1c.0", "00000000:10:1C.0"),
        ("00000000:10:1C.0", "00000000:10:1C.0"),
        ("000d:00:00", "0000000D:00:00.0"),
        ("10:1c", "00000000:10:1C.0"),
        ("10:1", ""),
        ("", ""),
    ],
)
def test_bus_ids_are_written_one_way(text: str, meant: str) -> None:
    """The kernel and nvidia-smi spell them differently; joining needs one spelling."""
    assert bus_id(text) == meant
