"""Links over time: what is told once, what only settles, and what is never told."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.network.check import MAX_LINKS, NetworkCheck
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.model import Finding, Report, Status
from sentinel.core.node_answers import Answer, Unreachable, Unreached
from sentinel.core.values import Duration, since_text
from sentinel.nodes.probe import (
    Cursor,
    Interface,
    KernelLine,
    KernelLog,
    Network,
    NodeIdentity,
    NodeProbe,
    PciLink,
    Port,
    ProbeRequest,
    Unread,
)
from sentinel.testing import START, context
from tests.kinds import looks

WELL = Port(
    device="mlx5_0",
    port=1,
    state="ACTIVE",
    phys_state="LinkUp",
    rate="400 Gb/sec (4X NDR)",
    link_layer="InfiniBand",
    counters={"link_downed": 0, "symbol_error": 100, "port_rcv_errors": 0},
)
DOWN = replace(WELL, state="DOWN", phys_state="Polling")
ETH = Interface(name="eth1", up=True, speed=100_000, counters={"carrier_changes": 2})
BOND = Interface(name="bond0", up=True, slaves=("eth1", "eth2"))
NIC = PciLink(
    address="0000:17:00.0",
    name="mlx5_0",
    gpu=False,
    width=16,
    width_max=16,
    speed=32.0,
    speed_max=32.0,
)
GPU = replace(NIC, address="0000:18:00.0", name="", gpu=True)


def probe(
    *ports: Port, nets: Sequence[Interface] = (), pci: Sequence[PciLink] = (), boot: str = "b1",
    said: Sequence[str] = (), said_at: float = 90_000.0, **more: Any,
) -> NodeProbe:  # fmt: skip
    lines = tuple(KernelLine(at=said_at, level=3, text=text) for text in said)
    cursor = Cursor(boot=boot, source="kmsg", position=1)
    told: dict[str, Any] = {
        "identity": NodeIdentity(
            hostname="n1", kernel="6", boot=boot, uptime=90_000.0, time=0, uid=0
        ),
        "infiniband": ports,
        "network": Network(interfaces=tuple(nets), pci=tuple(pci)),
        "kernel": KernelLog(source="kmsg", lines=lines, cursor=cursor, lost=0),
    }
    return NodeProbe(**{**told, **more})


class Told:
    """A way to nodes that answers what it was given."""

    def __init__(self, answers: Mapping[str, NodeProbe | Unreached]) -> None:
        self.answers = answers

    def run(
        self, nodes: Sequence[str], argv: Sequence[str], *, limit: float, stdin: bytes = b""
    ) -> Mapping[str, Answer]:
        raise NotImplementedError

    def probe(
        self, nodes: Sequence[str], wants: ProbeRequest, *, limit: float
    ) -> Mapping[str, NodeProbe | Unreached]:
        return {node: self.answers[node] for node in nodes}


def nights(
    *looks: NodeProbe | Mapping[str, NodeProbe | Unreached], every: float = 60, **settings: Any
) -> list[Report]:
    """A report for each look, with the memory of the one before."""
    reports: list[Report] = []
    memory: Mapping[str, Any] = {}
    for number, answers in enumerate(looks):
        told = {"n1": answers} if isinstance(answers, NodeProbe) else answers
        check = NetworkCheck(**{"nodes": ",".join(told), "trial": Duration(0), **settings})
        now = shift_instant(START, number * every)
        report = check.run(context(now=now, remote=Told(told), memory=memory))
        memory = report.memory or {}
        reports.append(report)
    return reports


def bad(report: Report) -> dict[str, tuple[str, str]]:
    """What is bad, by subject."""
    return {f.subject: (f.status.value, f.summary) for f in report.findings if f.status.bad}


def of(report: Report, subject: str) -> Finding:
    return next(f for f in report.findings if f.subject == subject)


def errors(count: int, **more: int) -> Port:
    return replace(WELL, counters={**WELL.counters, "symbol_error": count, **more})


def test_a_link_that_stays_down_is_told_once_and_ends() -> None:
    """At the first look it may still come back; then it is critical, until it is up."""
    first, second, third, fourth, fifth = nights(
        probe(WELL), probe(DOWN), probe(DOWN), probe(WELL), probe(WELL)
    )
    assert (bad(first), bad(second), bad(fourth)) == ({}, {}, {})
    assert of(second, "n1").summary == (
        "0 of 1 links up; mlx5_0/1 down (DOWN, Polling) for 0s; told after 1m"
    )
    at = START.wall / SECOND + 60
    down = f"link is down (DOWN, Polling) {since_text(at, at)}"
    assert bad(third) == {"n1/mlx5_0/1": ("critical", down)}
    files = "/sys/class/infiniband/mlx5_0/ports/1"
    look = f"ssh n1 'cd {files} && grep -s . *state rate counters/*'"
    shown, jobs, drain = looks(of(third, "n1/mlx5_0/1"))
    assert (shown, jobs) == (look, "squeue -w n1 | cat -v")
    assert shlex.split(drain)[:5] == ["sentinel", "nodes", "drain", "n1", "--reason"]
    assert drain.endswith(" --dry-run")
    assert of(fourth, "n1/mlx5_0/1").status is Status.OK
    assert [f.subject for f in fifth.findings] == ["n1"]


def test_a_flap_between_two_looks_has_settled() -> None:
    """Only the counters saw it; three within the hour are told."""
    flapped = [replace(WELL, counters={**WELL.counters, "link_downed": n}) for n in (0, 1, 2, 3)]
    reports = nights(*map(probe, flapped))
    assert [bad(r) for r in reports[:3]] == [{}, {}, {}]
    assert of(reports[1], "n1").summary == "1 of 1 links up; mlx5_0/1 lost its link 0s ago, settled"
    assert bad(reports[3]) == {"n1/mlx5_0/1": ("warning", "lost its link 3 times (3 in 1h)")}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (probe(replace(WELL, rate="200 Gb/sec (2X NDR)")), "runs with 2 lanes; it had 4"),
        (probe(replace(WELL, rate="200 Gb/sec (4X HDR)")), "runs with 200 Gb/s; it had 400"),
        (probe(WELL, pci=[replace(NIC, width=8)]), "runs with 8 lanes; it had 16"),
        (probe(WELL, pci=[replace(NIC, speed=16.0)]), "runs with 16 GT/s; it had 32"),
        (probe(WELL, nets=[replace(ETH, speed=10_000)]), "runs with 10 Gb/s; it had 100"),
    ],
)
def test_slower_than_it_was(now: NodeProbe, words: str) -> None:
    """Against its own best, as a warning with its numbers."""
    before = probe(WELL, nets=[ETH], pci=[NIC])
    (told,) = [v for s, v in bad(nights(before, now)[1]).items() if words in v[1]]
    assert told[0] == "warning"


def test_a_gpu_at_rest_lowers_its_generation() -> None:
    """Never its width: that is told."""
    rests, narrow = replace(GPU, speed=2.5), replace(GPU, width=8)
    reports = nights(*(probe(WELL, pci=[p]) for p in (GPU, rests, narrow)))
    assert [bool(bad(r)) for r in reports] == [False, False, True]


def test_against_its_peers_where_it_was_never_better() -> None:
    """One of eight; two cabled otherwise on purpose are `ignore`d."""
    slow = probe(replace(WELL, rate="200 Gb/sec (4X HDR)"))
    others = {f"n{n}": probe(WELL) for n in range(2, 9)}
    (report,) = nights({"n1": slow, **others})
    assert bad(report) == {
        "n1/mlx5_0/1": ("warning", "runs with 200 Gb/s; most other nodes have 400")
    }
    (report,) = nights({"n1": probe(DOWN), **others})
    assert bad(report)["n1/mlx5_0/1"][1].endswith(
        "down (DOWN, Polling); on most other nodes it is up"
    )
    assert bad(nights({"n1": slow, **others}, ignore=["n1/mlx5_0/*"])[0]) == {}


def test_a_port_that_is_down_on_purpose() -> None:
    """It was never seen up, here or elsewhere."""
    assert [bad(r) for r in nights(probe(DOWN), probe(DOWN), probe(DOWN))] == [{}, {}, {}]


def test_a_port_that_is_not_there_any_more() -> None:
    """Told from the second look on, and no more a week later; a node that cannot be read lost none."""
    blind = probe(infiniband=Unread(kind="late", why="no answer"))
    reports = nights(probe(WELL), blind, probe(), probe(), probe(WELL))
    assert [sorted(bad(r)) for r in reports] == [[], [], [], ["n1/mlx5_0/1"], []]
    assert of(reports[1], "n1").status is Status.UNKNOWN
    assert bad(reports[3])["n1/mlx5_0/1"][0] == "critical"
    assert bad(nights(probe(WELL), probe(), probe(), every=8 * 86_400)[2]) == {}


def test_errors_are_judged_as_rates() -> None:
    """More than ten a second, at two looks in a row, for an hour; a reset or reboot is no rise."""
    fast = [errors(n) for n in (100, 1000, 1900, 1901)]
    reports = nights(*map(probe, fast))
    assert [bool(bad(r)) for r in reports] == [False, False, True, True]
    assert bad(reports[2])["n1/mlx5_0/1"] == (
        "warning", "symbol_error +900 in 1m",
    )  # fmt: skip
    assert not any(map(bad, nights(*map(probe, map(errors, (10_000, 100, 700, 1300))))))
    rebooted = nights(
        probe(errors(1)), probe(errors(9000), boot="b2"), probe(errors(9001), boot="b2")
    )
    assert not any(map(bad, rebooted))


def test_what_drivers_say() -> None:
    """The card by the name of its driver. Of what was said before the first look the last hour
    counts; later the worst of an hour is told."""
    line = "mlx5_core 0000:17:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count"
    cable = "mlx5_core 0000:17:00.0: Port module event[error]: module 0, Cable error, Bus stuck"
    reports = nights(
        probe(WELL, pci=[NIC], said=[line], said_at=86_000.0),
        probe(WELL, pci=[NIC], said=[cable]), probe(WELL, pci=[NIC], said=[line, cable]),
        probe(WELL, pci=[NIC]),
    )  # fmt: skip
    assert [{s: v[0] for s, v in bad(r).items()} for r in reports] == [
        {}, {"n1/pcie/mlx5_0": "warning"}, {"n1/pcie/mlx5_0": "critical"},
        {"n1/pcie/mlx5_0": "critical"},
    ]  # fmt: skip
    assert "reseat or replace it" in bad(reports[1])["n1/pcie/mlx5_0"][1]
    (first,) = nights(probe(WELL, pci=[NIC], said=[line], said_at=89_000.0))
    assert {s: v[0] for s, v in bad(first).items()} == {"n1/pcie/mlx5_0": "critical"}
    early = "infiniband mlx5_0: a fault of the future, status 7"
    (first,) = nights(probe(WELL, pci=[NIC], said=[early]))
    assert {s: v[0] for s, v in bad(first).items()} == {"n1/pcie/mlx5_0": "warning"}


def test_a_bond_that_lost_a_slave() -> None:
    """The bond is up still."""
    alone = replace(BOND, slaves=("eth1",))
    reports = nights(probe(WELL, nets=[BOND]), probe(WELL, nets=[alone]), probe(WELL, nets=[alone]))
    assert list(bad(reports[2])) == ["n1/bond0/eth2"]


def test_a_node_that_says_nothing_is_unknown() -> None:
    """And one without InfiniBand has none to read."""
    (report,) = nights({"n1": Unreachable("no route"), "n2": probe(WELL)})
    assert of(report, "n1").status is Status.UNKNOWN
    assert (report.coverage.meant, report.coverage.seen) == (2, 1)
    none = probe(infiniband=Unread(kind="missing", why="no driver"), nets=[ETH])
    assert of(nights(none)[0], "n1").status is Status.OK


def test_this_machine() -> None:
    """By the same script."""
    report = NetworkCheck().run(context())
    assert report.findings[-1].summary.endswith("links up")


def test_a_link_that_is_gone_after_it_was_told_is_not_well_again() -> None:
    """Its driver was unloaded: the alert goes on, in the words of what is so now."""
    slow = replace(WELL, rate="200 Gb/sec (4X HDR)")
    for before in (slow, DOWN):
        *_, told, gone, still = nights(
            probe(WELL), probe(before), probe(before), probe(), probe(), settle=Duration(1)
        )
        assert list(bad(told)) == list(bad(gone)) == list(bad(still)) == ["n1/mlx5_0/1"]
        assert "is not there any more" in bad(gone)["n1/mlx5_0/1"][1]


def test_a_link_that_is_not_seen_any_more_is_not_well() -> None:
    """It was told as down; then the driver hangs: nothing is said of it, and it is mended only when
    it was seen up."""
    blind = replace(probe(DOWN), infiniband=Unread(kind="hung", why="x"))
    reports = nights(probe(WELL), probe(DOWN), probe(DOWN), blind, probe(WELL))
    assert bad(reports[2]).keys() == {"n1/mlx5_0/1"}
    assert [f.subject for f in reports[3].findings] == ["n1"]
    assert of(reports[4], "n1/mlx5_0/1").summary == "well again"


def test_in_its_first_week_it_wakes_nobody() -> None:
    """What it would have told can be looked at; what is still bad after the week is told then."""
    looks = [probe(port) for port in (WELL, DOWN, DOWN, DOWN)]
    *_, last = nights(*looks, trial=Duration(7 * 86400))
    assert bad(last) == {}
    assert "on trial for another 6d" in of(last, "n1/mlx5_0/1").summary
    assert "critical: link is down" in of(last, "n1/mlx5_0/1").summary
    *_, last = nights(*looks, trial=Duration(180))
    assert "n1/mlx5_0/1" in bad(last)


def nvlink(**counters: int) -> NodeProbe:
    return probe(WELL, nvlink={3: {n.replace("_", " "): v for n, v in counters.items()}})


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ([{"Replay_Errors": 0}, {"Replay_Errors": 2}, {"Replay_Errors": 3}], "Replay Errors +1"),
        ([{"Recovery_Errors": 9}, {"Recovery_Errors": 10}, {"Recovery_Errors": 11}], "+1 in 1m"),
        ([{"CRC_Errors": 0}, {"CRC_Errors": 7000}, {"CRC_Errors": 14000}], "CRC Errors +7000"),
        ([{"CRC_Errors": 0}, {"CRC_Errors": 5000}, {"CRC_Errors": 10000}], ""),
        ([{"Malformed_packet_Errors": n} for n in (0, 1, 2)], "Malformed packet Errors +1"),
        ([{"Link_recovery_failed_events": n} for n in (4, 5, 6)], "Link recovery failed events +1"),
        ([{"Link_recovery_failed_events": 4}] * 3, ""),
        ([{"Tx_discards": n} for n in (0, 900, 1800)], ""),
        ([{"Replay_Errors": 0}, {"Replay_Errors": 2}, {"Replay_Errors": 2}], ""),
        ([{"Replay_Errors": 9}, {"Replay_Errors": 1}, {"Replay_Errors": 2}], ""),
        ([{"Replay_Errors": 2**63}, {"Replay_Errors": 0}, {"Replay_Errors": 0}], ""),
        ([{"Rx_Errors": 0}, {"Rx_Errors": 5}, {"Rx_Errors": 9}], ""),
    ],
)
def test_errors_of_nvlink(counts: list[dict[str, int]], told: str) -> None:
    """By DCGM's limits, at two looks in a row; a reset or a wrap is no error."""
    found = bad(nights(*(nvlink(**one) for one in counts))[-1])
    assert list(found) == (["n1/nvlink/gpu3"] if told else [])
    if told:
        assert found["n1/nvlink/gpu3"][0] == "warning"
        assert told in found["n1/nvlink/gpu3"][1]


def gpus(*linked: bool) -> NodeProbe:
    """Whose NVLinks tell a counter, and whose are all inactive."""
    told = {n: {"Replay Errors": 0} if one else {} for n, one in enumerate(linked)}
    return probe(WELL, nvlink=told)


def test_nvlinks_that_are_all_inactive() -> None:
    """Of one GPU of eight at the first look already; of a GPU that had them it is critical. Where
    half of the GPUs have no bridge, or none has links, nothing is wrong."""
    first, *_ = nights(gpus(*[True] * 7, False))
    assert bad(first) == {
        "n1/nvlink/gpu7": (
            "warning",
            "link is down (all links are inactive); most other GPUs of this node have theirs",
        )
    }
    *_, last = nights(gpus(True, True), *[gpus(True, False)] * 4)
    assert bad(last)["n1/nvlink/gpu1"][0] == "critical"
    for node in (gpus(True, True, False, False), gpus(*[False] * 8)):
        assert bad(nights(*[node] * 4)[-1]) == {}


@pytest.mark.parametrize(("count", "status"), [(MAX_LINKS, "ok"), (MAX_LINKS + 1, "unknown")])
def test_a_node_with_more_links_than_are_looked_at_is_unknown(count: int, status: str) -> None:
    """The last one may be the one that is down."""
    ports = [replace(WELL, device=f"mlx5_{n}") for n in range(count)]
    found = of(nights(probe(*ports))[-1], "n1")
    assert found.status == status
    assert (status == "unknown") == ("1 links beyond the 256 of a node" in found.summary)


def test_sixteen_ports_are_judged_one_by_one() -> None:
    """One of them is down."""
    ports = [replace(WELL, device=f"mlx5_{n}") for n in range(16)]
    ill = [*ports[:11], replace(ports[11], state="DOWN"), *ports[12:]]
    *_, last = nights(probe(*ports), *[probe(*ill)] * 3)
    assert list(bad(last)) == ["n1/mlx5_11/1"]
    assert of(last, "n1").values == {"links": 16, "links_up": 15}


@pytest.mark.parametrize(
    ("kind", "status"),
    [("missing", "ok"), ("failed", "ok"), ("hung", "unknown"), ("late", "unknown")],
)
def test_gpus_whose_nvlinks_are_not_told(kind: Any, status: str) -> None:
    """None to tell of, or a tool that hangs; none of it is a link that is gone."""
    silent = probe(WELL, nvlink=Unread(kind=kind, why="x"))
    *_, last = nights(nvlink(Replay_Errors=0), silent, silent, silent)
    assert of(last, "n1").status.value == status
    assert bad(last) == {}
