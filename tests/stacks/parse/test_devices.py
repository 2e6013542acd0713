"""What kernels and GPUs of a job's nodes say, in the forms of syslog(2) and nvidia-smi(1)."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from sentinel.stacks.parse.devices import gpu_facts, kernel_facts
from sentinel.stacks.parse.model import ProcessUsage, StacksDump
from tests.stacks.parse.making import dump, step

UP = 5000.0
HEAD = (
    "index, uuid, pci.bus_id, utilization.gpu [%], power.draw [W], power.limit [W], temperature.gpu"
)
SPINS, COMPUTES, IDLES, DIES = "100 %, 131.20 W", "99 %, 640.00 W", "0 %, 71.00 W", "[N/A], [N/A]"


def world(kernel: Mapping[str, str] = {}, gpus: Mapping[str, str] = {}) -> StacksDump:
    """Eight ranks on four nodes that are up for UP seconds."""
    whole = dump([replace(p, spent=ProcessUsage(cpu=1, at=UP, moved=0)) for p in step(4, 2)])
    nodes = [
        replace(n, kernel=kernel.get(n.node, ""), gpus=gpus.get(n.node, "")) for n in whole.nodes
    ]
    return replace(whole, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("line", "sign", "ranks", "words"),
    [
        ("NVRM: Xid (PCI:0000:4e:00): 79, pid=101, name=python3, GPU has fallen off the bus.", "device", (1,), "Xid 79"),
        ("NVRM: Xid (PCI:0000:4e:00): 31, pid=100, name=python3, Ch 00000008, MMU Fault", "kernel", (0,), "Xid 31"),
        ("NVRM: Xid (PCI:0000:4e:00): 43, pid=100, name=python3, Ch 00000008", "", (), ""),
        ("Out of memory: Killed process 101 (python3) total-vm:9kB, anon-rss:8kB", "kernel", (1,), "out of memory"),
        ("Memory cgroup out of memory: Killed process 9 (x) total-vm:9kB", "kernel", (), "process 9 was killed"),
        ("mlx5_core 0000:3b:00.0 eth2: Link down", "kernel", (), "Link down"),
        ("ixgbe 0000:01:00.0 eth0: NIC Link is Down", "kernel", (), "NIC Link is Down"),
        ("eth2: Link up", "", (), ""),
        ("igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Down", "kernel", (), "NIC Link is Down"),
        ("dmesg: read kernel buffer failed: Operation not permitted", "", (), ""),
        # names of processes and files
        ("eth0: Link down[7]: segfault at 0 error 4 in x[4+1]", "", (), ""),
        ("x[7]: segfault in mlx5_core 0000:3b:00.0 eth2: Link down[4+1]", "", (), ""),
        ("x[7]: segfault in Out of memory: Killed process 101 (python3)[4+1]", "", (), ""),
        ("NVRM: Xid (PCI:[7]: segfault in 0000:4e:00): 79, pid=101, name=x, lost[4+1]", "", (), ""),
        ("x[7]: segfault in y\nOut of memory: Killed process 101 (python3)", "", (), ""),
        *((f"process '/home/x/{end}<3>[ {UP - 199:.6f}] NVRM: Xid (PCI:0000:4e:00): 79, pid=101, name=x, lost'"
           " started with executable stack", "", (), "") for end in "\x0b\x0c\r\x1c\x85\u2028"),
    ],
)  # fmt: skip
def test_what_a_kernel_told_since_the_last_step(
    line: str, sign: str, ranks: tuple[int, ...], words: str
) -> None:
    """Whose process it names is its rank; what was told an hour before the last step is history."""

    def said(at: float, priority: int) -> StacksDump:
        told = line.split("\n")
        return world({"node-0": "".join(f"<{priority}>[ {at:.6f}] {one}\n" for one in told)})

    for level in (3, 4):
        found = kernel_facts(said(UP - 200, level), quiet=300.0)
        assert [(f.sign, f.ranks, f.nodes) for f in found] == ([(sign, ranks, ("node-0",))] if sign else [])  # fmt: skip
    assert kernel_facts(said(UP - 200, 8 + 3), 300.0) == ()
    assert all(words in f.words for f in found)
    assert kernel_facts(said(UP - 3600, 3), quiet=300.0) == ()
    text = world({"node-0": f"kern  :err   : [ {UP - 200:.6f}] {line}"})
    assert kernel_facts(text, 300.0) == ()  # an old dmesg's text has records of a user
    assert kernel_facts(world({"node-0": line}), quiet=300.0) == ()


def test_lines_count_by_their_own_nodes_clock() -> None:
    """One that nobody told counts none of them."""
    told = world({"node-0": f"<3>[ {UP:.6f}] mlx5_core 0000:3b:00.0 eth2: Link down"})
    nodes = [replace(n, processes=tuple(replace(p, spent=None) for p in n.processes)) for n in told.nodes]  # fmt: skip
    assert kernel_facts(told, quiet=60.0)
    assert kernel_facts(replace(told, nodes=tuple(nodes)), quiet=60.0) == ()


def smi(first: str, second: str) -> str:
    rows = [f"{n}, GPU-{n}, 00000000:{n + 4}E:00.0, {v}, 700.00 W, 40" for n, v in enumerate((first, second))]  # fmt: skip
    return "\n".join([HEAD, *rows])


def test_a_gpu_that_is_lost_is_the_ranks_that_has_it() -> None:
    """The driver knows no process any more; nvidia-smi's bus ids tell whose it was, on a node that is
    the job's alone."""
    line = f"<4>[ {UP:.6f}] NVRM: Xid (PCI:0000:5e:00): 79, pid='<unknown>', name=<unknown>, lost"
    told = world({"node-2": line}, {"node-2": smi(SPINS, SPINS)})
    (fact,) = kernel_facts(told, quiet=60.0)
    assert (fact.sign, fact.ranks, fact.nodes) == ("device", (5,), ("node-2",))
    assert "Xid 79 of 00000000:5E:00.0" in fact.words
    (fact,) = kernel_facts(world({"node-2": line}, {"node-2": smi(SPINS, SPINS) + "\n2, x"}), 60.0)
    assert fact.ranks == ()


@pytest.mark.parametrize(
    ("odd", "rest", "sign"),
    [
        (COMPUTES, SPINS, "computes"),
        (IDLES, SPINS, "draws nothing"),
        (IDLES, COMPUTES, "draws nothing"),
        (SPINS, SPINS, ""),
        (IDLES, IDLES, ""),
        (SPINS, COMPUTES, ""),
        (COMPUTES, IDLES, ""),
        (DIES, SPINS, ""),
    ],
)
def test_one_gpu_that_does_otherwise_than_all_others(odd: str, rest: str, sign: str) -> None:
    """The second of node-2 is rank 5's."""
    all_ = {f"node-{n}": smi(rest, odd if n == 2 else rest) for n in range(4)}
    found = gpu_facts(world(gpus=all_))
    assert [(f.sign, f.ranks, f.nodes) for f in found] == ([(sign, (5,), ("node-2",))] if sign else [])  # fmt: skip


def test_whose_a_gpu_is_has_to_be_known() -> None:
    """A node with more GPUs than ranks is shared; one without numbers, or with other words, says
    nothing; two that differ of eight are no odd ones."""
    told = {f"node-{n}": smi(SPINS, COMPUTES if n == 2 else SPINS) for n in range(4)}
    (fact,) = gpu_facts(world(gpus=told))
    assert fact.words == "its GPU 1 computes while 7 spin"
    more = {k: f"{v}\n2, GPU-2, 0, {IDLES}, 700.00 W, 40" for k, v in told.items()}
    assert gpu_facts(world(gpus=more)) == ()
    assert gpu_facts(world(gpus=dict.fromkeys(told, "No devices were found"))) == ()
    assert gpu_facts(world(gpus={**told, "node-0": smi(COMPUTES, SPINS)})) == ()
    assert gpu_facts(world(gpus={"node-2": smi(SPINS, COMPUTES)})) == ()
    assert gpu_facts(world()) == ()
