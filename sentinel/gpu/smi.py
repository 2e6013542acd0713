"""`nvidia-smi -q -x` (formats v10 to v13) and `nvidia-smi -q` into an Inventory. Pure.

The element names are those of NVIDIA's own DTDs (nvsmi_device_v10.dtd to v13) as drivers from 418
to 610 print them; where a generation renamed one, every name is looked for.

`nvidia-smi -q`, as XML or as indented text, into one small tree. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from msgspec import Struct

from sentinel.core.text import shortened, visible
from sentinel.gpu.bus import bus_id
from sentinel.gpu.errors import Unreadable
from sentinel.gpu.model import Ecc, Gpu, Inventory, Occupant, RemappedRows, RetiredPages
from sentinel.gpu.quantities import complaint, number, size, told, whole, yes

DEEPEST = 32
MOST = 500_000
"""Elements: 16 GPUs have some 15,000 of them."""


class Tree(Struct):
    """A name with text or with children, in order; names may repeat."""

    name: str
    text: str = ""
    mark: str = ""
    children: list[Tree] = []

    def at(self, path: str) -> str:
        """The text below `a/b/c`, stripped; empty where there is none."""
        found = self.find(path)
        return found.text.strip() if found else ""

    def find(self, path: str) -> Tree | None:
        """The first node below `a/b/c`."""
        found: Tree | None = self
        for name in path.split("/"):
            found = next((c for c in found.children if c.name == name), None) if found else None
        return found

    def all(self, name: str) -> list[Tree]:
        """The children of that name."""
        return [child for child in self.children if child.name == name]


def from_xml(text: str) -> tuple[Tree, str]:
    """The root and the version its DTD names (`v12`); raises Unreadable.

    Entities are refused: a node's output must not grow, or reach for files, when it is read.
    """
    reader = _Reader()
    try:
        reader.parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise Unreadable(f"nvidia-smi -q -x is no whole XML: {error}") from error
    if reader.root is None:
        raise Unreadable("nvidia-smi -q -x is an XML document without an element")
    return reader.root, reader.version


class _Reader:
    def __init__(self) -> None:
        self.root: Tree | None = None
        self.version = ""
        self._open: list[Tree] = []
        self._count = 0
        self.parser = expat.ParserCreate("UTF-8")  # whatever the document claims
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = _refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data

    def _doctype(self, name: str, system: str | None, public: str | None, inner: bool) -> None:
        found = re.search(r"_(v[0-9]{1,3})\.dtd$", system or "")
        self.version = found[1] if found else ""

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= DEEPEST or self._count > MOST:
            raise Unreadable("nvidia-smi -q -x is far larger or deeper than any GPU makes it")
        node = Tree(name, mark=attributes.get("id", ""), children=[])
        if self._open:
            self._open[-1].children.append(node)
        elif self.root is None:
            self.root = node
        self._open.append(node)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data


def _refuse(*_: object) -> None:
    raise Unreadable("nvidia-smi -q -x declares an entity: that is not nvidia-smi")


_LINE = re.compile(r"( *)(\S[^:]*?)(?: *: ?(.*))?")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_SAME = {
    "gpu_uuid": "uuid",
    "serial_number": "serial",
    "gpu_current_temp": "gpu_temp",
    "memory_current_temp": "memory_temp",
    "gpu": "gpu_util",
}
"""Where the text calls something else than the XML does."""


def from_text(text: str) -> Tree:
    """The tree of `nvidia-smi -q`: names as in XML where they are the same; raises Unreadable."""
    root = Tree("nvidia_smi_log", children=[])
    stack: list[tuple[int, Tree]] = [(-1, root)]
    for at, line in enumerate(text.splitlines()):
        if at > MOST:
            raise Unreadable("nvidia-smi -q prints more lines than any GPU makes")
        _take(line.expandtabs(), stack, root)
    if not root.all("gpu"):
        shown = visible(shortened(text.strip().partition("\n")[0], 80))
        raise Unreadable(f"no output of nvidia-smi -q: {shown or 'nothing'}")
    return root


def _take(line: str, stack: list[tuple[int, Tree]], root: Tree) -> None:
    if gpu := _GPU.fullmatch(line.strip()):
        stack[1:] = [(0, Tree("gpu", mark=gpu[1], children=[]))]
        root.children.append(stack[-1][1])
        return
    match = _LINE.fullmatch(line.rstrip())
    if not match:
        return
    indent = len(match[1])
    while len(stack) > 1 and stack[-1][0] >= indent:
        stack.pop()
    node = Tree(_name(match[2]), text=match[3] or "", children=[])
    if len(stack) <= DEEPEST:
        stack[-1][1].children.append(node)
        stack.append((indent, node))


def _name(title: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    return _SAME.get(name, name)


LONGEST = 32 * 2**20
BANKS = ("max", "high", "partial", "low", "none")


def parse(text: str) -> Inventory:
    """Raises Unreadable, and nothing else, for whatever is not one whole output."""
    if len(text) > LONGEST:
        raise Unreadable("nvidia-smi -q prints more than 32 MB")
    start = text.find("<?xml")
    start = text.find("<nvidia_smi_log") if start < 0 else start
    if start >= 0:
        root, form = from_xml(text[start:])
        if root.name != "nvidia_smi_log":
            raise Unreadable(f"no output of nvidia-smi but a <{visible(shortened(root.name, 40))}>")
        return _inventory(root, form or "xml")
    return _inventory(from_text(text), "text")


def _inventory(root: Tree, form: str) -> Inventory:
    gpus = tuple(_gpu(node) for node in root.all("gpu"))
    return Inventory(
        gpus=gpus,
        driver=told(_first(root, "kmd_version", "driver_version")),
        cuda=told(_first(root, "cuda_umd_version", "cuda_version")),
        form=form,
        attached=whole(root.at("attached_gpus")),
    )


def _gpu(node: Tree) -> Gpu:
    power = _power(node)
    return Gpu(
        uuid=told(node.at("uuid")),
        bus=bus_id(node.mark) or bus_id(node.at("pci/pci_bus_id")),
        serial=_serial(node.at("serial")),
        index=whole(node.at("minor_number")),
        model=told(node.at("product_name")),
        memory_used=size(node.at("fb_memory_usage/used")),
        temperature=number(node.at("temperature/gpu_temp")),
        memory_temperature=number(node.at("temperature/memory_temp")),
        power=number(_first(power, "instant_power_draw", "power_draw", "instantaneous_power_draw")),
        utilization=number(node.at("utilization/gpu_util")),
        pcie_rx=_rate(_first(node, "pci/rx_util", "pci/rx_throughput")),
        ecc=_ecc(node.find("ecc_errors/volatile")),
        ecc_life=_ecc(node.find("ecc_errors/aggregate")),
        sram_threshold=yes(node.at("ecc_errors/aggregate/sram_threshold_exceeded")),
        remapped=_remapped(node.find("remapped_rows")),
        retired=_retired(node.find("retired_pages")),
        throttled=tuple(_throttled(node)),
        mig=yes(_first(node, "mig_mode/current_mig", "mig_mode/current")),
        recovery=_recovery(node),
        fabric=_fabric(node),
        processes=tuple(_processes(node)),
        troubles=tuple(dict.fromkeys(_troubles(node))),
        untold=() if node.at("temperature/gpu_temp") else ("temperature",),
    )


def _first(node: Tree, *paths: str) -> str:
    return next((text for path in paths if (text := node.at(path))), "")


def _serial(text: str) -> str:
    """Empty where it is hidden: redacted ones are all zeros."""
    serial = told(text)
    return serial if serial.strip("0") else ""


def _power(node: Tree) -> Tree:
    return node.find("gpu_power_readings") or node.find("power_readings") or Tree("none")


def _rate(text: str) -> float | None:
    """Bytes a second of `4000 KB/s`."""
    found = size(text.removesuffix("/s"))
    return None if found is None else float(found)


def _ecc(node: Tree | None) -> Ecc:
    if node is None:
        return Ecc()
    parts = [
        whole(node.at(name)) for name in ("sram_uncorrectable_parity", "sram_uncorrectable_sec_ded")
    ]
    parts += [whole(node.at("sram_uncorrectable_secded"))]
    split = [part for part in parts if part is not None]
    return Ecc(
        sram_uncorrected=sum(split) if split else whole(node.at("sram_uncorrectable")),
        dram_uncorrected=whole(_first(node, "dram_uncorrectable", "double_bit/total")),
    )


def _remapped(node: Tree | None) -> RemappedRows | None:
    if node is None or not node.children:
        return None
    banks = node.find("row_remapper_histogram") or node.find("bank_remap_availability_histogram")
    counts = {
        name: _banks(_first(banks, f"row_remapper_histogram_{name}", name)) if banks else None
        for name in BANKS
    }
    return RemappedRows(
        corrected=whole(_first(node, "remapped_row_corr", "correctable_error")),
        uncorrected=whole(_first(node, "remapped_row_unc", "uncorrectable_error")),
        pending=yes(_first(node, "remapped_row_pending", "pending")),
        failed=yes(_first(node, "remapped_row_failure", "remapping_failure_occurred")),
        banks={name: count for name, count in counts.items() if count is not None},
    )


def _banks(text: str) -> int | None:
    return whole(text.partition(" bank")[0])


def _retired(node: Tree | None) -> RetiredPages | None:
    if node is None:
        return None
    found = RetiredPages(
        single_bit=whole(
            _first(node, "multiple_single_bit_retirement/retired_count", "single_bit_ecc")
        ),
        double_bit=whole(_first(node, "double_bit_retirement/retired_count", "double_bit_ecc")),
        pending=yes(
            _first(node, "pending_retirement", "pending_blacklist", "pending_page_blacklist")
        ),
    )
    return None if found == RetiredPages() else found


def _throttled(node: Tree) -> Iterator[str]:
    """Reasons that are active, by the names NVML gives them."""
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for child in (node.find(group) or Tree("none")).children:
            if child.text.strip() == "Active":
                yield child.name.removeprefix("clocks_event_reason_").removeprefix(
                    "clocks_throttle_reason_"
                )


def _recovery(node: Tree) -> str:
    """What NVIDIA says it needs: since R565 one field, before that two."""
    said = node.at("gpu_recovery_action")
    if said:
        return "None" if said == "None" else told(said)
    if yes(node.at("gpu_reset_status/reset_required")):
        return "Reset"
    return "Drain and Reset" if yes(node.at("gpu_reset_status/drain_and_reset_recommended")) else ""


def _fabric(node: Tree) -> str:
    """nvmlGpuFabricInfo_t: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html."""
    state, result = told(node.at("fabric/state")), told(node.at("fabric/status"))
    if state == "Completed":
        return f"{state}: {result}" if result not in ("", "Success") else ""
    return state


def _processes(node: Tree) -> Iterator[Occupant]:
    for child in (node.find("processes") or Tree("none")).all("process_info"):
        pid = whole(child.at("pid"))
        if pid is not None:
            yield Occupant(
                pid=pid,
                name=child.at("process_name"),
                kind=child.at("type"),
                memory=size(child.at("used_memory")),
            )


def _troubles(node: Tree) -> Iterator[str]:
    """Fields in which the driver complains; process names are users' text and left out."""
    for child in node.children:
        if child.name in ("processes", "accounted_processes"):
            continue
        said = complaint(child.text)
        if said and said.lower() not in ("insufficient permissions", "not found"):
            yield f"{visible(shortened(child.name, 60))}: {said}"
        yield from _troubles(child)
