"""Answers of nodes to a probe, in the form probe.sh prints them."""

from tests.lab.gpus import gpus_of, nvidia_smi

IDENTITY = [
    "n1",
    "6.1.0",
    "daf8f080-aeed-4f6a-a5ba-3c5d802ffd16",
    "4971.77 39012.20",
    "1795227654",
    "0",
]
GPUS = nvidia_smi(gpus_of(1))
FALLEN = "3,3734,3987203252,-;NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."
MEMINFO = "MemTotal: 1000000 kB\nMemFree: 1000 kB\nMemAvailable: 1000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nOomKills: 2\n"


def section(name: str, text: str, state: str = "ok") -> str:
    lines = text.splitlines()
    return f"MARK {name} {state} {len(lines)} \n" + "".join(f" {line}\n" for line in lines)


def probe(*pairs: str) -> str:
    """A whole answer: name and text of each section in turn; a node's identity comes first."""
    told = [section(name, text) for name, text in zip(pairs[::2], pairs[1::2], strict=True)]
    first = section("identity", "\n".join(IDENTITY))
    return "".join(["MARK begin 1\n", first, *told, "MARK end\n"])
