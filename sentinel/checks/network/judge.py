"""Judges a link: state, rate and width by its own past and its peers, counters by their rates.
Pure.

Only known faults are critical; everything else is a warning with its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sentinel.core.model import Status
from sentinel.core.values import Rate, duration_text, since_text

LinkProblem = tuple[Status, str]

MINUTE, HOUR = 60.0, 3600.0
HOLD_S = HOUR
"""How many seconds after its last rise a problem of a counter is reported. Errors come in
bursts."""

BAD_LOOKS = 2
"""A counter is reported after this number of consecutive runs above its limit."""

MAX_RATES_PER_S: Mapping[str, float] = {
    "symbol_error": 10,
    "port_rcv_errors": 10,
    "rx_crc_errors": 10,
    "local_ack_timeout_err": 1,
    "roce_slow_restart": 10,
    "port_xmit_discards": 100,
    "link_error_recovery": 5 / MINUTE,
    "local_link_integrity_errors": 0,
    "excessive_buffer_overrun_errors": 0,
    "rnr_nak_retry_err": 0,
    "CRC Errors": 100,
    "Replay Errors": 0,
    "Recovery Errors": 0,
    "Malformed packet Errors": 0,
    "Buffer overrun Errors": 0,
    "Local link integrity Errors": 0,
    "Rx remote Errors": 0,
    "Rx General Errors": 0,
    "Rx Errors": 10,
    "Symbol Errors": 10,
    "Effective Errors": 10,
    "Tx discards": 100,
    "Link recovery failed events": 0,
    "Link recovery successful events": 5 / MINUTE,
    "aer nonfatal": 0,
    "aer fatal": 0,
}
"""Most a second that a link at work may show: NVSentinel's link counter thresholds
(docs.nvidia.com/nvsentinel, NIC health monitor, link counter detection). Links of HDR and newer make
symbol errors all the time, so a count alone says nothing. A CRC error is a port_rcv_error of Ethernet;
AER's nonfatal and fatal errors lose a transaction each (PCI Express, section 6.2).

CRC, replay and recovery errors are what `nvidia-smi nvlink -e` names to NVLink 4: CRC errors "only matter
at rates of 100+ per second", each replay and recovery counts. Those after them are its names for NVLink 5
(Blackwell; all are 0 on a healthy B300 with driver 595), each with the limit of the InfiniBand counter of
that meaning (dcgm_gpu_hardware_limits.h and MonitorNVLink4Fields of github.com/NVIDIA/DCGM)."""

LINK_LOSS_COUNTERS: Mapping[str, int] = {"link_downed": 1, "carrier_changes": 2}
"""Counters of lost links, and by how much one loss and return raises each
(sysfs-class-infiniband, sysfs-class-net)."""

PEERS, MOST = 4, 0.75
"""The usual state of a link is known if at least this number of nodes have a link of that name, and
this share of them agrees."""

FORGOTTEN_AFTER_S = 7 * 24 * HOUR
"""How many seconds after it went missing a link is forgotten. It was taken out then."""


class NetworkLink(Struct, frozen=True, kw_only=True):
    """A port, interface, NVLink or PCIe link at this look. A PCIe link has no state itself, so it
    counts as up."""

    name: str  # Name of the link.
    up: bool = True  # Whether it works.
    state: str = ""  # Its state in the kernel's words.
    rate: float | None = None  # Gb/s, for PCIe GT/s; None if it is not known
    lanes: int | None = None  # its width; None if it is not known
    counters: Mapping[str, int] = {}  # Every counter by its name.


class LinkPast(Struct, kw_only=True, omit_defaults=True):
    """The stored facts about a link. Times are in epoch seconds."""

    at: float = 0  # When it was last seen.
    boot: str = ""  # Id of the boot then.
    up: bool = False  # whether it was ever seen up
    rate: float = 0  # the highest rate seen
    lanes: int = 0  # the greatest width seen
    down: float = 0  # since when it is down; 0 if it is not
    gone: float = 0  # since when it is missing; 0 if it is not
    flaps: list[float] = []  # when it was lost
    counters: dict[str, int] = {}  # Counters at that time.
    over: dict[str, int] = {}
    told: dict[str, tuple[float, str]] = {}


def find_usual_links(nodes: Iterable[Iterable[NetworkLink]]) -> Mapping[str, NetworkLink]:
    """By the name of a link: the rate, width and state that most nodes with such a link have."""
    seen: dict[str, list[NetworkLink]] = {}
    for links in nodes:
        for link in links:
            seen.setdefault(link.name, []).append(link)
    return {
        name: _make_usual_link(name, links) for name, links in seen.items() if len(links) >= PEERS
    }


def find_usual_nvlink(links: Iterable[NetworkLink]) -> NetworkLink | None:
    """The NVLinks that most GPUs of one node have. All NVLinks of one GPU may be inactive from its
    first look on, whatever other nodes have."""
    ones = [link for link in links if link.name.startswith("nvlink/")]
    if len(ones) < PEERS:
        return None
    return replace(
        _make_usual_link("nvlink", ones), state="most other GPUs of this node have theirs"
    )


def _make_usual_link(name: str, links: list[NetworkLink]) -> NetworkLink:
    most = MOST * len(links)

    def find_usual_value(values: Iterable[float | None]) -> float | None:
        value, count = Counter(values).most_common(1)[0]
        return value if count >= most else None

    lanes = find_usual_value(link.lanes for link in links)
    return NetworkLink(
        name=name,
        up=sum(link.up for link in links) >= most,
        rate=find_usual_value(link.rate for link in links),
        lanes=int(lanes) if lanes else None,
    )


def judge_link(
    link: NetworkLink,
    past: LinkPast,
    custom: NetworkLink | None,
    now: float,
    boot: str,
    settle: float,
    flaps: Rate,
) -> tuple[list[LinkProblem], str, LinkPast]:
    """The problems of a link, a note about it, and what is remembered of it. `settle`: seconds that
    a link may be down before it is reported."""
    kept = LinkPast(
        at=now,
        boot=boot,
        up=past.up or link.up,
        rate=max(past.rate, link.rate or 0),
        lanes=max(past.lanes, link.lanes or 0),
        counters={
            n: v
            for n, v in link.counters.items()
            if n in MAX_RATES_PER_S or n in LINK_LOSS_COUNTERS
        },
    )
    kept.flaps = [f for f in past.flaps if now - f < flaps.window]
    kept.flaps += _list_counted_losses(link, past, now, boot)
    kept.over, kept.told = _judge_counters(link, past, now, boot)
    problems: list[LinkProblem] = []
    note = ""
    if not link.up:
        kept.down = past.down or now
        told = _judge_down_link(link, past, custom, kept.down, now, settle)
        problems += told
        if past.up and not told:
            note = f"{_describe_down_state(link)} for {duration_text(now - kept.down)}; told after {duration_text(settle)}"
    else:
        problems += _find_slow_problems(link, past, custom)
        problems += ((Status.WARNING, text) for _, text in kept.told.values())
    if len(kept.flaps) >= flaps.times:
        problems.append((Status.WARNING, f"lost its link {len(kept.flaps)} times ({flaps})"))
    elif kept.flaps and link.up:
        ago = duration_text(now - kept.flaps[-1])
        note = f"lost its link {ago} ago, settled"
    return problems, note, kept


def judge_missing_link(
    past: LinkPast, now: float, *, told: bool
) -> tuple[LinkProblem | None, LinkPast | None]:
    """The problem of a link that is missing, and what is remembered of it (None: it is forgotten).

    It is reported from the second look on; at once if it was down before or is reported already
    (`told`), because a missing link is not a repaired one."""
    past.gone = past.gone or now
    if now - past.gone > FORGOTTEN_AFTER_S or not past.up:
        return None, None
    if now == past.gone and not (told or past.down):
        return None, past
    return (Status.CRITICAL, f"is not there any more, {since_text(past.gone, now)}"), past


def _describe_down_state(link: NetworkLink) -> str:
    return f"down ({link.state})" if link.state else "down"


def _judge_down_link(
    link: NetworkLink,
    past: LinkPast,
    custom: NetworkLink | None,
    down: float,
    now: float,
    settle: float,
) -> list[LinkProblem]:
    if past.up:
        text = f"link is {_describe_down_state(link)} {since_text(down, now)}"
        return [(Status.CRITICAL, text)] if past.down and now - down >= settle else []
    if custom is not None and custom.up:
        others = custom.state or "on most other nodes it is up"
        return [(Status.WARNING, f"link is {_describe_down_state(link)}; {others}")]
    return []  # it was never up, neither here nor on other nodes, so it is not in use


def _find_slow_problems(
    link: NetworkLink, past: LinkPast, custom: NetworkLink | None
) -> Iterator[LinkProblem]:
    """Rate and width compared with the link's own best, else with those of most nodes."""
    unit = " GT/s" if link.name.startswith("pcie/") else " Gb/s"
    for is_now, best, usual, of in (
        (link.lanes, past.lanes, custom and custom.lanes, " lane" if link.lanes == 1 else " lanes"),
        (link.rate, past.rate, custom and custom.rate, unit),
    ):
        if is_now is None:
            continue
        if is_now < best:
            yield Status.WARNING, f"runs with {is_now:g}{of}; it had {best:g}"
        elif usual and is_now < usual:
            yield Status.WARNING, f"runs with {is_now:g}{of}; most other nodes have {usual:g}"
        else:
            continue
        return


def _iterate_rises(link: NetworkLink, past: LinkPast, boot: str) -> Iterator[tuple[str, int]]:
    """Counters that have risen, and by how much. After a boot, a reset or a wrap a counter begins
    anew, and nothing is known."""
    if past.boot == boot:
        for name, value in link.counters.items():
            before = past.counters.get(name)
            if before is not None and value > before:
                yield name, value - before


def _list_counted_losses(link: NetworkLink, past: LinkPast, now: float, boot: str) -> list[float]:
    """A time for each loss of the link that only the counters saw, including that of a link which
    is down now."""
    rises = dict(_iterate_rises(link, past, boot))
    lost = max((rises.get(name, 0) // per for name, per in LINK_LOSS_COUNTERS.items()), default=0)
    return [now] * min(lost, 100)


def _judge_counters(
    link: NetworkLink, past: LinkPast, now: float, boot: str
) -> tuple[dict[str, int], dict[str, tuple[float, str]]]:
    over: dict[str, int] = {}
    told = {n: t for n, t in past.told.items() if now - t[0] < HOLD_S}
    seconds = now - past.at
    for name, rise in _iterate_rises(link, past, boot):
        if name not in MAX_RATES_PER_S or seconds <= 0 or rise / seconds <= MAX_RATES_PER_S[name]:
            continue
        over[name] = past.over.get(name, 0) + 1
        if over[name] >= BAD_LOOKS or name in told:
            told[name] = now, f"{name} +{rise} in {duration_text(seconds)}"
    return over, told
