"""AMD's tools, whose JSON changes from release to release."""

import json

import pytest

from sentinel.checks.gpu import GpuCheck
from sentinel.checks.gpu.judge import CRIT, WARN, problems
from sentinel.core.model import Status
from sentinel.core.node_answers import Answered, Unreachable
from sentinel.gpu import amd
from sentinel.gpu.errors import Unreadable
from sentinel.nodes.probe import Cursor, KernelLine, KernelLog, NodeIdentity, NodeProbe
from sentinel.testing import FixedSlurm, context

LIST = [{"gpu": 0, "bdf": "0000:05:00.0", "uuid": "aaff74a1-0000-1000-8000-000000000001"}]
NESTED = {
    "gpu": 0,
    "usage": {"gfx_activity": {"value": 97, "unit": "%"}},
    "power": {"socket_power": {"value": 650, "unit": "W"}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 91, "unit": "C"}, "mem": {"value": 60}},
    "ecc": {"total_correctable_count": 5, "total_uncorrectable_count": 2},
}
FLAT = {
    "gpu": 0,
    "usage": {"gfx_activity": 97},
    "power": {"socket_power": "650"},
    "temperature": {"hotspot": 91, "mem": 60},
    "ecc": {"total_correctable_count": "5", "total_uncorrectable_count": "2"},
}


@pytest.mark.parametrize("metric", [NESTED, FLAT])
@pytest.mark.parametrize("wrapped", [True, False])
def test_both_forms_say_the_same(metric: dict[str, object], wrapped: bool) -> None:
    """Values with a unit or without, in a list or in gpu_data."""
    rows = {"gpu_data": [metric]} if wrapped else [metric]
    (gpu,) = amd.parse(json.dumps(LIST), json.dumps(rows)).gpus
    assert (gpu.uuid[:8], gpu.bus, gpu.index) == ("aaff74a1", "00000000:05:00.0", 0)
    assert (gpu.temperature, gpu.memory_temperature, gpu.power) == (91, 60, 650)
    assert (gpu.utilization, gpu.ecc.dram_uncorrected) == (97, 2)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '[{"gpu": null}]', "[" * 10_000, "nothing"]
)
def test_what_is_no_list_is_unreadable(text: str) -> None:
    """Never a node without GPUs."""
    with pytest.raises(Unreadable):
        amd.parse(text, json.dumps([NESTED]))


LOST = {
    "gpu": 0,
    "usage": "N/A",
    "power": {"socket_power": "N/A", "gfx_voltage": "N/A"},
    "temperature": {"edge": "N/A", "hotspot": "N/A", "mem": "N/A"},
    "ecc": {"total_correctable_count": "N/A", "total_uncorrectable_count": "N/A"},
}


@pytest.mark.parametrize(
    ("partition", "status"),
    [({}, Status.UNKNOWN), ({"partition_id": 0}, Status.UNKNOWN), ({"partition_id": 3}, None)],
)
def test_a_gpu_for_which_the_driver_does_not_answer_is_not_well(
    partition: dict[str, int], status: Status | None
) -> None:
    """All is N/A: it was ok. The further parts of a divided MI300X tell no more than that."""
    (gpu,) = amd.parse(json.dumps([LIST[0] | partition]), json.dumps([LOST])).gpus
    told = dict(problems(gpu, WARN, CRIT))
    assert set(told) == ({status} if status else set())
    assert not told or "tells no temperature, power or utilization" in told[Status.UNKNOWN]


class Told:
    """Nodes that answer amd-smi."""

    def run(self, nodes, argv, *, limit, stdin=b""):  # type: ignore[no-untyped-def]
        out = json.dumps(LIST if "list" in argv else [NESTED]).encode()
        answers = {"n1": Answered(code=0, out=out), "n2": Unreachable("no route")}
        return {n: answers.get(n, Answered(code=1)) for n in nodes}

    def probe(self, nodes, wants, *, limit):  # type: ignore[no-untyped-def]
        said = "socket: 0, die: 0, 1 new uncorrectable hardware errors detected in umc block"
        line = KernelLine(at=10.0, level=3, text=f"amdgpu 0000:05:00.0: amdgpu: {said}")
        cursor = Cursor(boot="b", source="kmsg", position=1)
        who = NodeIdentity(hostname="n1", kernel="6", boot="b", uptime=20.0, time=0, uid=0)
        lines = {"n1": (line,)}
        return {
            node: NodeProbe(
                identity=who,
                kernel=KernelLog(
                    source="kmsg", lines=lines.get(node, ()), cursor=cursor, lost=None
                ),
            )
            for node in nodes
        }


def test_the_check_reads_them() -> None:
    """Heat and ECC are judged; silent nodes and failures are unknown."""
    check = GpuCheck(nodes="n[1-3]", vendor="amd")
    report = check.run(context(FixedSlurm(nodes=[]), remote=Told()))
    found = {f.subject: f for f in report.findings}
    bad = found.pop("aaff74a1-0000-1000-8000-000000000001")
    assert bad.status is Status.CRITICAL
    assert "ras uncorrectable" in bad.summary
    assert "91°C" in bad.summary
    assert "2 uncorrectable" in bad.summary
    assert {name: f.status for name, f in found.items()} == {
        "n2": Status.UNKNOWN,
        "n3": Status.UNKNOWN,
    }


DENIED = """\
Permission needed to access required GPU device node(s):
  - /dev/dri/card0: Permission denied; owner=root(0):video(39);

"""
GROUPS = "User is missing the following required groups: render, video. Please add user to these groups.\n"
PYTHON = """\
/usr/lib/python3.14/site-packages/amdsmi/amdsmi_interface.py:3569: SyntaxWarning: 'return' in a
  return return_dictionary
"""


@pytest.mark.parametrize("text", [DENIED, GROUPS])
def test_a_user_without_rights_sees_nothing_and_is_told_why(text: str) -> None:
    """amd-smi lists GPUs all the same, with values that it may not read (issues of ROCm/amdsmi)."""
    with pytest.raises(Unreadable, match=r"amd-smi list: .*(Permission denied|required groups)"):
        amd.parse(text + json.dumps(LIST), json.dumps([NESTED]))
    with pytest.raises(Unreadable, match="amd-smi metric: "):
        amd.parse(json.dumps(LIST), text + json.dumps([NESTED]))
    with pytest.raises(Unreadable, match="amd-smi list: "):
        amd.parse(text, json.dumps([NESTED]))


def test_text_beside_the_json_is_none_of_it() -> None:
    """Python's own warnings are nobody's business; what the tool says is a remark."""
    said = "WARNING: driver is older than the tool"
    for before, after in ((PYTHON, ""), ("", f"\n{said}\n"), (f"{PYTHON}{said}\n", "")):
        found = amd.parse(json.dumps(LIST), before + json.dumps([NESTED], indent=1) + after)
        assert found.gpus[0].temperature == 91
        assert found.remarks == ((said,) if said in before + after else ())


def test_deferred_errors_are_read_and_judged() -> None:
    """Memory that nobody has read yet: a warning, as of uncorrectable ones; none is the control."""
    for count, words in ((7, "7 deferred memory errors"), (0, "")):
        ecc = {"total_uncorrectable_count": 0, "total_deferred_count": count}
        (gpu,) = amd.parse(json.dumps(LIST), json.dumps([NESTED | {"ecc": ecc}])).gpus
        assert gpu.ecc.deferred == count
        texts = [text for _, text in problems(gpu, WARN, CRIT) if "errors" in text]
        assert [words in text for text in texts] == ([True] if words else [])


@pytest.mark.parametrize(("ecc", "untold"), [({"ue": 2}, True), (None, True), ("N/A", False)])
def test_errors_that_are_told_by_another_name_are_not_none(ecc: object, untold: bool) -> None:
    """A newer form would be a GPU without errors; a board without ECC says N/A."""
    (gpu,) = amd.parse(json.dumps(LIST), json.dumps([NESTED | {"ecc": ecc}])).gpus
    assert gpu.untold == (("uncorrectable errors",) if untold else ())


def test_parts_of_a_divided_gpu_are_one_device() -> None:
    """In mode CPX each part has a row; its UUID is that of the whole, or none. What the first part
    says of the device is not overwritten by the others, and all of them are counted."""
    listed, measured = [], []
    for number in range(16):
        part = number % 8
        uuid = f"{'ab'[number // 8]}aff74a1-0000-1000-8000-000000000001"
        row = {"gpu": number, "bdf": f"0000:{5 + number // 8:02x}:00.{part}", "partition_id": part}
        listed.append(row | {"uuid": uuid if part < 2 else "N/A"})
        measured.append((NESTED if number == 0 else LOST) | {"gpu": number})
    measured[8] = NESTED | {
        "gpu": 8,
        "ecc": {"total_uncorrectable_count": 0},
        "temperature": {"hotspot": 40},
    }
    out = {"list": listed, "metric": measured}

    class Parts(Told):
        def run(self, nodes, argv, *, limit, stdin=b""):  # type: ignore[no-untyped-def]
            return {n: Answered(code=0, out=json.dumps(out[argv[1]]).encode()) for n in nodes}

    report = GpuCheck(nodes="n9", vendor="amd", expect=16).run(
        context(FixedSlurm(nodes=[]), remote=Parts())
    )
    found = {f.subject: f.status for f in report.findings}
    assert found == {
        "aaff74a1-0000-1000-8000-000000000001": Status.WARNING,
        "baff74a1-0000-1000-8000-000000000001": Status.OK,
    }


@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_whole_answer_is_judged_whatever_the_exit_code(code: int) -> None:
    """The code is told of the node; where there is no answer, it is told with the tool's words."""

    class Ended(Told):
        text = json.dumps(LIST)

        def run(self, nodes, argv, *, limit, stdin=b""):  # type: ignore[no-untyped-def]
            out = self.text if "list" in argv else json.dumps([NESTED])
            err = b"AMDSMI_STATUS_DRIVER_NOT_LOADED"
            return {n: Answered(code=code, out=out.encode(), err=err) for n in nodes}

    def look() -> dict[str, str]:
        check = GpuCheck(nodes="n9", vendor="amd")
        report = check.run(context(FixedSlurm(nodes=[]), remote=Ended()))
        return {f.subject: f.summary for f in report.findings}

    assert (f"amd-smi ended with exit code {code}" in look().get("n9", "")) == (code != 0)
    assert "91°C" in look()["aaff74a1-0000-1000-8000-000000000001"]
    Ended.text = ""
    assert ("DRIVER_NOT_LOADED" in look()["n9"]) == (code != 0)
