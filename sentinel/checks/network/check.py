"""The `network` check: one probe of each node, its links judged one by one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from sentinel.checks.network.driver_lines import find_driver_errors
from sentinel.checks.network.judge import (
    HOLD_S,
    LinkPast,
    LinkProblem,
    NetworkLink,
    find_usual_links,
    find_usual_nvlink,
    judge_link,
    judge_missing_link,
)
from sentinel.checks.nodes_asked import (
    ALL,
    find_mended,
    is_ignored_part,
    judge_choice,
    look_at_nodes,
)
from sentinel.checks.trial import WEEK_S, SilentTrial
from sentinel.core.clock import SECOND
from sentinel.core.declared import Metric, Panel
from sentinel.core.guidance import (
    Guidance,
    LookingCommand,
    avoid_node,
    drain_node,
    list_drain_commands,
    look,
)
from sentinel.core.model import Finding, Report, Status, get_worst_status
from sentinel.core.stored_memory import decode_memory
from sentinel.core.text import shortened, visible
from sentinel.core.values import Duration, Rate
from sentinel.nodes.probe import Cursor, KernelLog, Network, NodeProbe, ProbeRequest, Unread
from sentinel.plugin import Check

if TYPE_CHECKING:
    from sentinel.core.ports import Context
    from sentinel.nodes.probe import Port, Section

PROBE_SECTIONS: tuple[Section, ...] = ("infiniband", "network", "nvlink", "kernel")
_RATE_PATTERN = re.compile(r"([0-9]+(?:\.[0-9]+)?) Gb/sec(?: \(([0-9]+)X)?")
OPTIONAL_SECTIONS = {"infiniband": ("missing",), "nvlink": ("missing", "failed")}
"""Reasons for which a section may be unread, since a node need not have such links."""

MAX_LINKS = 256
"""Links of one node at most; a node with more of them shows virtual ones."""


class NodeLinksPast(Struct, kw_only=True, omit_defaults=True):
    """What is kept of a node. `said`: what its drivers said last, by card, and when (epoch)."""

    links: dict[str, LinkPast] = {}  # What is stored about each link, by name.
    said: dict[str, tuple[float, Status, str]] = {}
    cursor: Cursor | None = None  # Where reading of the log stopped.


class Memory(Struct, kw_only=True, omit_defaults=True):
    """What is remembered of all nodes. `bad`: subjects that the last run saw as bad. `trial`: the
    trial of the whole check."""

    nodes: dict[str, NodeLinksPast] = {}  # What is stored about each node, by name.
    bad: list[str] = []
    trial: SilentTrial | None = None


class NetworkCheck(Check, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links that are down, gone, slow or full of errors: InfiniBand, RoCE, Ethernet, NVLink, PCIe.

    nodes: A host list like node-[0-3],gpu08, or `all` that do not sleep; unset, this machine.
    ignore: Links that are not told, as patterns: `mlx5_3/1`, `eth*`, or with the node, `gpu07/eth1`.
    settle: How long a link may be down before it is told: one that comes back has only flapped.
    flaps: A link lost so often is told, even while it is up.
    trial: How long it only counts and wakes nobody, from its first run on.
    """

    EVERY: ClassVar[float] = 60
    TIMEOUT: ClassVar[float] = 50
    METRICS = (
        Metric("links", "network_links", "Links that were ever seen up.", "", "", ("node",)),
        Metric("links_up", "network_links_up", "Of these, links that are up.", "", "", ("node",)),
    )
    PANEL: ClassVar[Panel] = "nodes"
    SOURCES = (
        "/sys/class/infiniband, /sys/class/net and the PCIe devices of this machine or of each node, "
        "`nvidia-smi nvlink -e` there, and its kernel's messages.",
    )
    RUNBOOK = "docs/network.md"

    nodes: str = ""
    ignore: list[str] = []
    settle: Duration = Duration(60)
    flaps: Rate = Rate("3 in 1h")
    trial: Duration = Duration(WEEK_S)

    def __post_init__(self) -> None:
        judge_choice(self.nodes, "")

    @property
    def looks_into_nodes(self) -> bool:
        """Whether the check looks at other nodes: if `nodes` is set."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """A finding for each node, and one for each link that is bad now or was at the last run.
        Raises CannotTell if there is no way to nodes, or if Slurm has to be asked and does not
        answer."""
        memory = decode_memory(ctx.memory, Memory) or Memory()
        trial = memory.trial or SilentTrial(began=None if ctx.one_shot or memory.nodes else ctx.now)
        memory.trial = replace(trial, lasts=float(self.trial))
        cursors = {n: past.cursor for n, past in memory.nodes.items() if past.cursor}
        wants = ProbeRequest(parts=PROBE_SECTIONS, cursors=cursors)
        asked, probes, findings = look_at_nodes(self.nodes, ctx, lambda _: wants)
        seen = {name: list_links(probe) for name, probe in probes.items()}
        usual = find_usual_links(seen.values())
        now = ctx.now.wall / SECOND
        for name, probe in probes.items():
            past = memory.nodes.setdefault(name, NodeLinksPast())
            findings += self._judge_node_links(
                name, probe, seen[name], usual, past, now, memory.bad
            )
        if not self.nodes or self.nodes == ALL:
            stay = {*probes, *(f.subject for f in findings)}
            memory.nodes = {n: p for n, p in memory.nodes.items() if n in stay}
        whole = [n for n, p in probes.items() if _is_fully_read(p)]
        well, memory.bad = find_mended(memory.bad, findings, whole)
        findings += well
        return Report(
            findings=tuple(memory.trial.silence_findings(findings, ctx.now)),
            coverage=asked.nodes_coverage(whole),
            memory={**to_builtins(memory), **asked.memory},
        )

    def _judge_node_links(
        self,
        node: str,
        probe: NodeProbe,
        seen: Sequence[NetworkLink],
        usual: Mapping[str, NetworkLink],
        past: NodeLinksPast,
        now: float,
        told: Collection[str],
    ) -> Iterator[Finding]:
        boot = probe.identity.boot if not isinstance(probe.identity, Unread) else ""
        said = _collect_driver_errors(probe, past, now)
        up = 0
        there = set()
        notes: list[str] = []
        siblings = find_usual_nvlink(seen)
        for link in seen[:MAX_LINKS]:
            if is_ignored_part(self.ignore, node, link.name):
                continue
            there.add(link.name)
            before, custom = _find_comparison(link.name, past.links, usual, siblings)
            problems, note, kept = judge_link(
                link, before, custom, now, boot, self.settle, self.flaps
            )
            past.links[link.name] = kept
            problems += [said.pop(link.name)] if link.name in said else []
            up += link.up and kept.up
            if problems:
                yield _make_link_finding(node, link.name, problems)
            elif note:
                notes.append(f"{link.name} {note}")
        if _is_fully_read(probe):
            yield from self._judge_missing_links(node, there, past, now, told)
        for card, problem in said.items():
            if not is_ignored_part(self.ignore, node, card):
                yield _make_link_finding(node, card, [problem])
        if (surplus := len(seen) - MAX_LINKS) > 0:
            notes.insert(0, f"{surplus} links beyond the {MAX_LINKS} of a node not looked at")
        whole = _is_fully_read(probe) and surplus <= 0
        yield _make_node_finding(
            node, probe, up, sum(p.up for p in past.links.values()), notes, whole=whole
        )

    def _judge_missing_links(
        self, node: str, there: set[str], past: NodeLinksPast, now: float, told: Collection[str]
    ) -> Iterator[Finding]:
        for name in [n for n in past.links if n not in there]:
            if name.startswith("nvlink/"):
                del past.links[name]  # the kind `gpu` reports missing GPUs
                continue
            problem, kept = (
                (None, None)
                if is_ignored_part(self.ignore, node, name)
                else judge_missing_link(past.links[name], now, told=f"{node}/{name}" in told)
            )
            if kept is None:
                del past.links[name]
            if problem:
                yield _make_link_finding(node, name, [problem])


def _find_comparison(
    name: str,
    past: Mapping[str, LinkPast],
    usual: Mapping[str, NetworkLink],
    siblings: NetworkLink | None,
) -> tuple[LinkPast, NetworkLink | None]:
    """What a link is compared with: what it was, and what is usual: of an NVLink on other nodes, or
    else on its own."""
    before, custom = past.get(name, LinkPast()), usual.get(name)
    if not name.startswith("nvlink/"):
        return before, custom
    if not (before.counters or before.down):
        before = replace(before, up=False)  # an earlier version stored these as up
    return before, custom if custom and custom.up else siblings


def list_links(probe: NodeProbe) -> list[NetworkLink]:
    """Ports, interfaces, NVLinks and PCIe links of a node, from the sections that could be read."""
    found = (
        [_make_port_link(port) for port in probe.infiniband]
        if isinstance(probe.infiniband, tuple)
        else []
    )
    if isinstance(probe.network, Network):
        for one in probe.network.interfaces:
            rate = one.speed / 1000 if one.speed else None
            found.append(
                NetworkLink(name=one.name, up=one.up, rate=rate, lanes=None, counters=one.counters)
            )
            found += [NetworkLink(name=f"{one.name}/{slave}") for slave in one.slaves]
        for pci in probe.network.pci:
            found.append(
                NetworkLink(
                    name=f"pcie/{pci.name or pci.address}",
                    # An idle GPU reduces the speed of its link, but never the width.
                    rate=None if pci.gpu else pci.speed,
                    lanes=pci.width,
                    counters={f"aer {n}": v for n, v in pci.errors.items()},
                )
            )
    if isinstance(probe.nvlink, Mapping):
        for gpu, counters in probe.nvlink.items():
            state = "" if counters else "all links are inactive"
            found.append(
                NetworkLink(
                    name=f"nvlink/gpu{gpu}", up=bool(counters), state=state, counters=counters
                )
            )
    return found


def _make_port_link(port: Port) -> NetworkLink:
    rate = _RATE_PATTERN.match(port.rate)
    return NetworkLink(
        name=f"{port.device}/{port.port}",
        up=port.state == "ACTIVE",
        state=", ".join(filter(None, [port.state, port.phys_state])),
        rate=float(rate[1]) if rate else None,
        lanes=int(rate[2]) if rate and rate[2] else None,
        counters=port.counters,
    )


def _collect_driver_errors(
    probe: NodeProbe, past: NodeLinksPast, now: float
) -> dict[str, LinkProblem]:
    """Errors that drivers logged, by the PCIe link of the card: the worst of the last HOLD_S
    seconds. A first look goes back no further than that."""
    if isinstance(probe.kernel, KernelLog):
        up = 0.0 if isinstance(probe.identity, Unread) else probe.identity.uptime
        since = -1.0 if past.cursor is not None else up - HOLD_S
        for card, status, text in find_driver_errors(k for k in probe.kernel.lines if k.at > since):
            name = _name_pcie_link(probe, card)
            known = past.said.get(name)
            if known is None or known[1].rank <= status.rank or now - known[0] >= HOLD_S:
                past.said[name] = now, status, text
        past.cursor = probe.kernel.cursor
    past.said = {n: s for n, s in past.said.items() if now - s[0] < HOLD_S}
    return {name: (status, text) for name, (_, status, text) in past.said.items()}


def _name_pcie_link(probe: NodeProbe, address: str) -> str:
    pci = probe.network.pci if isinstance(probe.network, Network) else ()
    name = next((p.name for p in pci if p.address == address and p.name), address)
    return f"pcie/{name}"


def _is_fully_read(probe: NodeProbe) -> bool:
    """Whether everything in question was read. A node without InfiniBand has nothing to read, and
    nvidia-smi has various complaints if GPUs have no NVLink."""
    parts = {name: part for name, part in probe.unread_parts.items() if name in PROBE_SECTIONS}
    return all(part.kind in OPTIONAL_SECTIONS.get(name, ()) for name, part in parts.items())


def _make_link_finding(node: str, name: str, problems: list[LinkProblem]) -> Finding:
    status = get_worst_status(status for status, _ in problems)
    texts = [text for _, text in sorted(problems, key=lambda p: -p[0].rank)]
    return Finding(
        subject=f"{node}/{name}",
        status=status,
        summary=visible(shortened("; ".join(texts), 400)),
        guidance=_guide_link(node, name, texts[0], status) if status.bad else Guidance(),
        labels={"node": node},
        commands=(
            _suggest_link_command(name).on_node(node),
            *list_drain_commands(node, f"{name}: {texts[0]}", is_bad=status.bad),
        ),
    )


def _suggest_link_command(name: str) -> LookingCommand:
    """What shows the link as it is now. Its files need no tool on the node: state, rate with the
    number of lanes, and counters of errors."""
    if name.startswith("pcie/"):
        return look("dmesg | tail -n 100")
    if name.startswith("nvlink/"):
        return look("nvidia-smi nvlink -e -i {}", name.removeprefix("nvlink/gpu"))
    device, _, port = name.partition("/")
    if port.isdecimal():
        return look(
            "cd {} && grep -s . *state rate counters/*",
            f"/sys/class/infiniband/{device}/ports/{port}",
        )
    return look("ethtool {}", port or device)


def _guide_link(node: str, name: str, text: str, status: Status) -> Guidance:
    slow = f"A job on {node} that uses this link is slow on all of its nodes."
    dead = f"A job on {node} that needs it hangs or fails as a whole; jobs that do not use {node} go on."
    return Guidance(
        impact=dead if status is Status.CRITICAL else slow,
        todo=f"{avoid_node(node, hangs=status is Status.CRITICAL)} {drain_node()} Then look at cable,"
        " transceiver, switch port and card.",
        ask=f"look at the network link {name} of {node}: {visible(shortened(text, 200))}",
    )


def _make_node_finding(
    node: str, probe: NodeProbe, up: int, meant: int, notes: Sequence[str], *, whole: bool
) -> Finding:
    parts = [f"{up} of {meant} links up", *notes[:3]]
    if isinstance(probe.nvlink, Unread) and probe.nvlink.kind == "failed":
        parts.append(f"nvlink not read: {probe.nvlink.why}")
    blind = [
        f"{n} not read ({p.kind_words}): {p.why}"
        for n, p in probe.unread_parts.items()
        if n in PROBE_SECTIONS
    ]
    return Finding(
        subject=node,
        status=Status.OK if whole else Status.UNKNOWN,
        summary=visible(
            shortened("; ".join(parts if _is_fully_read(probe) else [*blind, *parts]), 400)
        ),
        values={"links": meant, "links_up": up},
        labels={"node": node},
    )
