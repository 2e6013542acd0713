"""What a link is compared with: the usual link of its peers, and its own counters."""

import pytest

from sentinel.checks.network.judge import LinkPast, NetworkLink, _iterate_rises, find_usual_links


@pytest.mark.parametrize(("fast", "usual"), [(2, None), (3, 16), (4, 16)])
def test_three_of_four_nodes_say_what_is_usual(fast: int, usual: int | None) -> None:
    """Half of them do not."""
    lanes = [16] * fast + [8] * (4 - fast)
    links = [[NetworkLink(name="pci/0", lanes=count)] for count in lanes]
    assert find_usual_links(links)["pci/0"].lanes == usual
    assert find_usual_links(links[:3]) == {}


@pytest.mark.parametrize(
    ("before", "boot", "rises"),
    [
        ({"symbol_error": 5}, "b1", [("symbol_error", 2)]),
        ({"symbol_error": 7}, "b1", []),
        ({"symbol_error": 9}, "b1", []),
        ({"symbol_error": 5}, "b2", []),
        ({"port_rcv_errors": 5}, "b1", []),
    ],
)
def test_a_counter_rises_within_a_boot_alone(
    before: dict[str, int], boot: str, rises: list[tuple[str, int]]
) -> None:
    """One that a newer driver has besides, or that began anew, has not risen."""
    link = NetworkLink(name="mlx5_0/1", counters={"symbol_error": 7})
    assert [*_iterate_rises(link, LinkPast(boot=boot, counters=before), "b1")] == rises
