"""A look by hand at this machine's GPUs tells of its network cards too."""

from sentinel.checks.gpu.cards import RECENT_S, findings
from sentinel.core.model import Status
from sentinel.nodes.probe import Cursor, KernelLine, KernelLog, NodeIdentity, NodeProbe, Unread

UP = 90_000.0
IDENTITY = NodeIdentity(hostname="n1", kernel="6.8", boot="b", uptime=UP, time=0, uid=0)
FATAL = "mlx5_core 0000:5e:00.0: poll_health:967:(pid 0): Fatal error 3 detected"
QUEUE = "efa 0000:1e:00.0 rdmap30s0: Admin queue is closed"
CALM = "mlx5_core 0000:5e:00.0 ens1: Link up"


def probe(*texts: str, ago: float = 60.0) -> NodeProbe:
    """The kernel's log of a node that said this so many seconds ago."""
    lines = tuple(KernelLine(at=UP - ago, level=3, text=text) for text in texts)
    cursor = Cursor(boot="b", source="kmsg", position=1)
    return NodeProbe(
        identity=IDENTITY, kernel=KernelLog(source="kmsg", lines=lines, cursor=cursor, lost=0)
    )


def test_a_card_whose_driver_tells_of_trouble_is_named() -> None:
    """Each card once, with the worst of what was said of it."""
    found = list(findings("n1", probe(FATAL, QUEUE, FATAL)))
    assert [(f.subject, f.status) for f in found] == [
        ("n1:0000:5e:00.0", Status.CRITICAL),
        ("n1:0000:1e:00.0", Status.WARNING),
    ]
    assert "Fatal error 3" in found[0].summary


def test_many_lines_of_one_card_are_counted() -> None:
    lines = [f"efa 0000:1e:00.0 rdmap30s0: Reading register timed out. {n}" for n in range(9)]
    [found] = findings("n1", probe(*lines))
    assert found.summary.endswith("; 7 more")


def test_what_is_old_or_well_or_was_not_read_is_no_finding() -> None:
    """Controls: an hour ago, a link that came up, and a log that is closed to this user."""
    assert list(findings("n1", probe(FATAL, ago=RECENT_S + 60))) == []
    assert list(findings("n1", probe(CALM))) == []
    closed = NodeProbe(identity=IDENTITY, kernel=Unread(kind="denied", why="no"))
    assert list(findings("n1", closed)) == []
