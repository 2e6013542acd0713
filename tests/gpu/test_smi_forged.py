"""A process's name is its user's text: in `nvidia-smi -q -x` it is a name, and never a GPU or a page
that nobody can read."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from sentinel.gpu import smi
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Inventory, Occupant
from tests.lab.gpus import gpus_of, nvidia_smi

BUSY = (Path(__file__).parent / "h200" / "busy.xml").read_text()
UUID = "GPU-11111111-2222-3333-4444-555555555555"
OUT = "</process_name></process_info></processes>"
BACK = "<processes><process_info><pid>2</pid><process_name>"
FAILED = "<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>"
NEW = f'<gpu id="00000000:00:07.0"><uuid>{UUID}</uuid>'


def named(name: str, page: str = BUSY) -> str:
    assert "<process_name>python3<" in page
    return page.replace("<process_name>python3<", f"<process_name>{name}<")


def without_names(found: Inventory) -> Inventory:
    return Inventory(
        gpus=tuple(structs.replace(gpu, processes=()) for gpu in found.gpus),
        driver=found.driver,
        cuda=found.cuda,
        form=found.form,
        attached=found.attached,
        remarks=found.remarks,
    )


@pytest.mark.parametrize(
    "name",
    [
        "a<b",
        "a & b",
        "a\x01b\x1b[2J",
        "\ud800",
        "]]>",
        "<!--",
        "<![CDATA[",
        "<?xml version='1.0'?>",
        "two\nlines",
        "</nvidia_smi_log>",
        "<process_name>",
        "<processes>",
        "</processes>",
        f"x{OUT}</gpu>{NEW}{FAILED}{BACK}",
        f"x{OUT}\n{FAILED}\n{BACK}",
        f"x{OUT}<gpu_recovery_action>Reset</gpu_recovery_action>{BACK}",
        f"x{OUT}</gpu></nvidia_smi_log>",
        "x" * 100_000,
    ],
)
def test_whatever_a_name_holds_the_gpu_is_the_same(name: str) -> None:
    """And its process is seen, by the number and the kind that stand before the name."""
    plain, found = smi.parse(BUSY), smi.parse(named(name))
    assert without_names(found) == without_names(plain)
    (gpu,) = found.gpus
    assert (gpu.processes[0].pid, gpu.processes[0].kind) == (1899, "C")


def test_a_plain_name_is_read_as_it_is() -> None:
    """A control; and one that the driver has escaped."""
    for name, read in (("python3", "python3"), ("a &amp; b &lt;c&gt;", "a & b <c>")):
        assert smi.parse(named(name)).gpus[0].processes == (
            Occupant(pid=1899, name=read, kind="C", memory=1740 * 2**20),
        )


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bus", ["00000000:00:06.0", "00000000:00:07.0"])
@pytest.mark.parametrize("uuid", [UUID, "GPU-99999999-2222-3333-4444-555555555555"])
def test_lines_that_pose_as_a_gpu_make_the_page_unreadable(end: str, bus: str, uuid: str) -> None:
    """A name with newlines may look like the first line of a GPU; then nothing is known."""
    lines = [f"x{OUT}</gpu>", f'\t<gpu id="{bus}">', f"<uuid>{uuid}</uuid>{FAILED}{BACK}"]
    with pytest.raises(Unreadable):
        smi.parse(named(end.join(lines)))


def test_two_names_hide_no_gpu_between_them() -> None:
    """One opens what the other closes: all eight GPUs are there, each as it was."""
    gpus = gpus_of(0)
    for first, last in (
        ("<!--", "-->"),
        (f"x{OUT}<a>{BACK}", f"x{OUT}</a>{BACK}"),
        (f"x{OUT}</gpu><a><gpu>{BACK}", f"x{OUT}</gpu></a><gpu>{BACK}"),
    ):
        names = {0: first, 3: last}
        page = nvidia_smi(
            [replace(gpu, processes=((7, names.get(gpu.index, "python")),)) for gpu in gpus]
        )
        found = smi.parse(page)
        assert [gpu.uuid for gpu in found.gpus] == [gpu.uuid for gpu in gpus]
        assert [gpu.processes[0].pid for gpu in found.gpus] == [7] * 8
        assert not any(gpu.remapped and gpu.remapped.failed for gpu in found.gpus)


def test_a_gpu_that_stands_there_twice_is_not_known() -> None:
    """In place of one that is lost a forged one could stand; as many as attached, and different
    ones, are the control."""
    one, two = gpus_of(0, 2)
    assert len(smi.parse(nvidia_smi([one, two])).gpus) == 2
    for same in (replace(two, uuid=one.uuid), replace(two, bus=one.address)):
        with pytest.raises(Unreadable, match="twice"):
            smi.parse(nvidia_smi([one, same]))
    with pytest.raises(Unreadable, match="2 GPUs of 1"):
        smi.parse(nvidia_smi([one, two]).replace("gpus>2<", "gpus>1<"))
    lost = nvidia_smi([one]).replace("gpus>1<", "gpus>2<")
    assert len(smi.parse(lost).gpus) == 1


def test_a_line_of_a_gpu_in_a_name_is_noticed_where_the_number_is_right() -> None:
    """The forged GPU hides in an element, so that all that count are real; the page says more."""
    one, two = gpus_of(0, 2)
    hides = f'x</process_name></process_info>{FAILED}<a>\n<gpu id="00000000:0F:00.0">\n</gpu></a>{BACK[11:]}'
    page = nvidia_smi([replace(one, processes=((7, hides),)), two])
    with pytest.raises(Unreadable):
        smi.parse(page)
    assert len(smi.parse(page.replace(hides, "python")).gpus) == 2
