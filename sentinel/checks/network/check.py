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
"""As what a part is unread that a node need not have."""

MAX_LINKS = 256
"""Of one node; a node with more of them shows virtual ones."""


class NodeLinksPast(Struct, kw_only=True, omit_defaults=True):
    """What is kept of a node. `said`: what its drivers said last, by card, and when (epoch)."""

    links: dict[str, LinkPast] = {}
    said: dict[str, tuple[float, Status, str]] = {}
    cursor: Cursor | None = None


class Memory(Struct, kw_only=True, omit_defaults=True):
    """Of all nodes; `bad`: the subjects seen as bad by the last run; `trial`: that of the whole check."""

    nodes: dict[str, NodeLinksPast] = {}
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
        Metric("links_up", "network_links_up", "Of them those that are up.", "", "", ("node",)),
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

    def jobs_of(self) -> frozenset[str] | None:
        """No jobs are needed."""
        return frozenset()

    @property
    def looks_into_nodes(self) -> bool:
        """With `nodes`."""
        return bool(self.nodes)

    def run(self, ctx: Context) -> Report:
        """A finding for each node, and one for each link that is bad or was at the last run. Raises
        CannotTell where there is no way to nodes, or Slurm has to be asked and is blind."""
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
            before = past.links.get(link.name, LinkPast())
            custom = usual.get(link.name)
            if link.name.startswith("nvlink/"):
                custom = custom if custom and custom.up else siblings
                # a former version kept NVLinks without counters as up
                before = before if before.counters or before.down else replace(before, up=False)
            problems, note, kept = judge_link(
                link, before, custom, now, boot, self.settle, self.flaps
            )
            past.links[link.name] = kept
            problems += [(status, text) for _, status, text in said.pop(link.name, ())]
            up += link.up and kept.up
            if problems:
                yield _make_link_finding(node, link.name, problems)
            elif note:
                notes.append(f"{link.name} {note}")
        if _is_fully_read(probe):
            yield from self._judge_missing_links(node, there, past, now, told)
        for card, words in said.items():
            if not is_ignored_part(self.ignore, node, card):
                yield _make_link_finding(node, card, [(status, text) for _, status, text in words])
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
                del past.links[name]  # whether a GPU is there, the kind `gpu` tells
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


def list_links(probe: NodeProbe) -> list[NetworkLink]:
    """Ports, interfaces, NVLinks and PCIe links of a node, by what could be read."""
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
                    # A GPU at rest lowers the generation of its link, never its width.
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
) -> dict[str, list[tuple[float, Status, str]]]:
    """What drivers said, by the PCIe link of the card: the worst of the last while. A first look
    goes no further back than what was said stays told."""
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
    return {name: [said] for name, said in past.said.items()}


def _name_pcie_link(probe: NodeProbe, address: str) -> str:
    pci = probe.network.pci if isinstance(probe.network, Network) else ()
    name = next((p.name for p in pci if p.address == address and p.name), address)
    return f"pcie/{name}"


def _is_fully_read(probe: NodeProbe) -> bool:
    """Everything that was asked for was read; a node without InfiniBand has none to read, and
    nvidia-smi complains in words of its own where GPUs have no NVLink."""
    parts = {name: part for name, part in probe.unread_parts.items() if name in PROBE_SECTIONS}
    return all(part.kind in OPTIONAL_SECTIONS.get(name, ()) for name, part in parts.items())


def _make_link_finding(node: str, name: str, problems: list[LinkProblem]) -> Finding:
    status = get_worst_status(status for status, _ in problems)
    texts = [text for _, text in sorted(problems, key=lambda p: -p[0].rank)]
    device = name.rpartition("/")[2] if name.startswith("pcie/") else name.partition("/")[0]
    look_at = f"ibstat {device}" if "/" in name and not name.startswith("pcie/") else ""
    if name.startswith("pcie/"):
        look_at = "dmesg | tail -n 100"
    if name.startswith("nvlink/"):
        look_at = f"nvidia-smi nvlink -e -i {name.removeprefix('nvlink/gpu')}"
    return Finding(
        subject=f"{node}/{name}",
        status=status,
        summary=visible(shortened(f"{name}: {'; '.join(texts)}", 400)),
        details="Look at cable, transceiver and switch port; then reseat the card."
        if status is Status.CRITICAL
        else "",
        labels={"node": node},
        commands=(f"ssh {node} {look_at or f'ethtool {device}'}",),
    )


def _make_node_finding(
    node: str, probe: NodeProbe, up: int, meant: int, notes: Sequence[str], *, whole: bool
) -> Finding:
    parts = [f"{up} of {meant} links up", *notes[:3]]
    if isinstance(probe.nvlink, Unread) and probe.nvlink.kind == "failed":
        parts.append(f"nvlink not read: {probe.nvlink.why}")
    blind = [
        f"{n} not read ({p.kind}): {p.why}"
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
