"""Where and as whom a recommended command is run."""

import json

import pytest

from sentinel.core.command_places import (
    SETUP_PLACE,
    comment_places,
    group_by_place,
    tell_owner_place,
)
from sentinel.core.guidance import name_config
from tests.checks.test_golden import GOLDEN

PLACES = [
    ("df -h /x", "on login1, as yourself"),
    ("mount /x", "on login1, as root"),
    ("umount -l /x && mount /x", "on login1, as root"),
    ("tail -c 5000 /x/train.log | cat -v", "on login1; as alice, or as root"),
    ("grep -F /x /proc/mounts | cat -v", "on login1, as yourself"),
    ("journalctl -n 50 _COMM=x", "on login1, as root"),
    ("chmod g-w /x", "on login1, as the owner of the file"),
    ("scontrol show job 7 | cat -v", "on login1, as yourself"),
    ("env SLURM_CONF=/b/slurm.conf squeue", "on login1, as yourself"),
    ("scontrol release 7", "on login1, as alice or an administrator"),
    ("scontrol update nodename=n1 state=resume", "on login1, as root"),
    ("cd /x && sbatch train.sh", "on login1, as alice"),
    ("sentinel gpus show GPU-1", SETUP_PLACE),
    ("sentinel check test", "on login1, as the user who runs sentinel"),
    (
        "ssh n1 nvidia-smi -L",
        "on a login node; as root, or as yourself while a job of yours runs on n1",
    ),
    (
        "ssh n1 'grep -F /x /proc/mounts'",
        "on a login node; as root, or as yourself while a job of yours runs on n1",
    ),
    ("ssh -t n1 sudo ipmitool sdr", "on a login node; as root, or as yourself with sudo there"),
    ("ssh n1 dmesg -T", "on a login node, as root"),
    ("/usr/bin/ssh n1 dmesg -T", "on a login node, as root"),
    ("ssh -o BatchMode=yes west squeue", ""),
    ("ssh c1 systemctl status slurmctld", "on a login node, as root"),
    ("ssh head2 scontrol show node n1", "on a login node, as yourself"),
    ("/opt/site/look --all", ""),
]


@pytest.mark.parametrize(("command", "place"), PLACES)
def test_each_command_has_its_place(command: str, place: str) -> None:
    """What a plugin recommends has none: nothing is known of it."""
    assert group_by_place([command], "login1", "alice") == ((place, (command,)),)


def test_what_is_not_known_is_said_in_general() -> None:
    """Without a host any login node does, and without a user the owner is named as such."""
    assert group_by_place(["df -h /x"])[0][0] == "on a login node, as yourself"
    assert group_by_place(["scontrol release 7"])[0][0].startswith("on a login node, as the owner")


def test_what_not_everybody_may_read_says_so() -> None:
    """Whose file it is, is not always known: du in a home fails, or counts only a part."""
    assert group_by_place(["du -xh -d 1 /home/alice | sort -h"], "login1")[0][0] == (
        "on login1; as root, or as yourself where you may read it"
    )


def test_the_place_of_sentinel_is_named_where_it_is_known() -> None:
    """A check is run where it ran, as the same user."""
    commands = ("sentinel check test", "env A=b sentinel nodes list", "df /x")
    assert group_by_place(commands, "n7", setup="on login1, as ops") == (
        ("on n7, as ops", ("sentinel check test", "df /x")),
        ("on login1, as ops", ("env A=b sentinel nodes list",)),
    )


def test_nodes_are_not_mixed_with_the_host_from_which_they_are_reached() -> None:
    """What root does on one node is no reason to be root elsewhere."""
    groups = group_by_place(["squeue", "ssh n1 dmesg", "ssh n2 ps"])
    assert [place.partition("login node")[2] for place, _ in groups] == [
        ", as yourself",
        ", as root",
        "; as root, or as yourself while a job of yours runs on n2",
    ]


def test_one_place_keeps_its_order_and_takes_the_strongest_rights() -> None:
    """`df` after `mount` shows whether that helped; ssh between them is apart."""
    commands = ("ls /x", "mount /x", "ssh n1 ps", "df /x")
    assert group_by_place(commands, "login1") == (
        ("on login1, as root", ("ls /x", "mount /x", "df /x")),
        (
            "on a login node; as root, or as yourself while a job of yours runs on n1",
            ("ssh n1 ps",),
        ),
    )


def test_what_only_the_owner_may_do_is_offered_to_nobody_else() -> None:
    """A log that root may read too stands above the line that submits the job, in any order."""
    lines = ("tail /x/train.log | cat -v", "cd /x && sbatch train.sbatch")
    for commands in (lines, lines[::-1]):
        assert group_by_place(commands, "login1", "alice") == (("on login1, as alice", commands),)


@pytest.mark.parametrize(
    "setup", ["on login1, as alice", tell_owner_place("on login1, as ops", "alice")]
)
def test_an_owner_gets_what_an_owner_can_do_and_whom_to_ask(setup: str) -> None:
    """Nothing is offered "as root" to who is not; what only root may do has a heading of its own, also
    between others, and the commands of somebody else's sentinel say whose they are."""
    commands = (
        "tail /x",
        "scontrol update nodename=n1 state=drain",
        "ssh n1 ps",
        "du /x",
        "squeue",
    )
    on_node = ("on a login node, as yourself while a job of yours runs on n1", ("ssh n1 ps",))
    drain = ("scontrol update nodename=n1 state=drain",)
    groups = group_by_place((*commands, "sentinel nodes list"), "login1", "alice", setup)
    assert groups == (
        ("on login1, as alice", ("tail /x", "du /x", "squeue")),
        ("ask an administrator: on login1, as root", drain),
        on_node,
        (setup, ("sentinel nodes list",)),
    )
    assert ("ask whoever runs sentinel" in setup) is (setup != "on login1, as alice")


def test_root_and_who_is_not_the_owner_get_the_commands_of_root() -> None:
    """The healthy control: an administrator's message, and root's own job."""
    for user, setup in (("alice", "on login1, as ops"), ("root", "on login1, as root")):
        groups = group_by_place(["journalctl -n 5", "df /x"], "n1", user, setup)
        assert groups == (("on n1, as root", ("journalctl -n 5", "df /x")),)
    assert tell_owner_place("on login1, as alice", "alice") == "on login1, as alice"
    assert tell_owner_place("", "alice") == f"ask whoever runs sentinel: {SETUP_PLACE}"


def test_the_commands_of_sentinel_are_last() -> None:
    """Those that show the history follow them, and their place is said once."""
    groups = group_by_place(("sentinel gpus show x", "ssh n1 ps", "sentinel nodes list"))
    assert [len(commands) for _, commands in groups] == [1, 2]
    assert groups[-1][0] == SETUP_PLACE


def test_a_name_from_elsewhere_never_leaves_the_comment() -> None:
    """What is pasted with its comments runs the commands alone."""
    lines = "\n".join(comment_places(group_by_place(["df /x"], "h\ntouch /owned", "u\nid"), "$ "))
    assert [line[0] for line in lines.split("\n")] == ["#", "$"]


def test_every_golden_command_has_a_place() -> None:
    """A new command of a kind is sorted in, too."""
    commands = {
        command
        for messages in json.loads(GOLDEN.read_text()).values()
        for one in messages
        for command in one["json"].get("commands", ())
    }
    assert len(commands) > 40
    assert [c for c in sorted(commands) for place, _ in group_by_place([c]) if not place] == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sentinel explain 01J9", "sentinel explain 01J9 -c '/a b/s.yaml'"),
        (
            "env SLURM_CONF=/b/slurm.conf sentinel nodes probe n1",
            "env SLURM_CONF=/b/slurm.conf sentinel nodes probe n1 -c '/a b/s.yaml'",
        ),
        (
            "sentinel status  # on the host named there",
            "sentinel status  # on the host named there",
        ),
        ("squeue -j 7", "squeue -j 7"),
        ("cat /x/sentinel train.log", "cat /x/sentinel train.log"),
    ],
)
def test_a_command_of_sentinel_names_the_file_that_it_would_not_find(
    command: str, told: str
) -> None:
    assert name_config(command, "/a b/s.yaml") == told
    assert name_config(command, "") == command
