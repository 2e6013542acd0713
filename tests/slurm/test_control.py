"""slurmctld's own answers: ping, configuration, version."""

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm.control import munge_probe_argv, read_config, read_ping

BANNER = """\
*****************************************
** RESTORE SLURMCTLD DAEMON TO SERVICE **
*****************************************
"""

CONFIG = """\
Configuration data as of 1790000000
AccountingStorageType   = accounting_storage/none
ClusterName             = h100
PrivateData             = none
SlurmUser               = slurm(64030)
SlurmctldHost[0]        = ctl1(10.0.0.1)
SlurmctldHost[1]        = ctl2
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 22.05.8

Cgroup Support Configuration:
ClusterName             = not this one

Slurmctld(primary) at ctl1 is UP
Slurmctld(backup) at ctl2 is UP
"""


@pytest.mark.parametrize(
    ("host", "port", "listens"),
    [
        ("ctl1(10.0.0.1)", "6817", "10.0.0.1:6817"),
        ("ctl1", "6817-6820", "ctl1:6817"),
        ("ctl1(fd00::1)", "6817", "[fd00::1]:6817"),
        ("ctl1(10.0.0.1)", "", ""),
        ("@evil/x(a b)", "6817", ""),
    ],
)
def test_where_the_primary_listens(host: str, port: str, listens: str) -> None:
    """As it stands in a URL; nothing of what could lead elsewhere."""
    text = CONFIG.replace("ctl1(10.0.0.1)", host) + f"SlurmctldPort           = {port}\n"
    assert read_config(text.encode()).listens == listens


# As scontrol prints them from 20.11 to 26.05 (src/api/config_info.c); EpilogTimeout since 24.11.
@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ((), 60),
        (("KillWait = 600 sec",), 630),
        (("KillWait = 0 sec", "Epilog = (null)", "PrologEpilogTimeout = 300"), 30),
        (("KillWait = 30 sec", "Epilog = /etc/e.sh", "PrologEpilogTimeout = 300"), 360),
        (("KillWait = 30 sec", "Epilog[0] = /etc/e.sh", "EpilogTimeout = 120 sec"), 180),
        (("Epilog = /etc/e.sh", "PrologEpilogTimeout = 65534"), 660),
        (("EpilogSlurmctld = /etc/e.sh", "PrologEpilogTimeout = 300"), 60),
    ],
)
def test_how_long_a_job_may_take_to_end(lines: tuple[str, ...], seconds: int) -> None:
    """KillWait from SIGTERM to SIGKILL, then the epilog of the nodes, if there is one."""
    assert read_config("\n".join([*lines, CONFIG]).encode()).end_timeout == seconds


@pytest.mark.parametrize(
    ("info", "socket"),
    [
        ("socket=/run/m.sock", ["--socket=/run/m.sock"]),
        ("ttl=60,socket=/run/m.sock,x=1", ["--socket=/run/m.sock"]),
        ("othersocket=/x", []),
        ("(null)", []),
    ],
)
def test_munge_is_asked_where_slurm_asks_it(info: str, socket: list[str]) -> None:
    """slurm.conf(5), AuthInfo; munge's own place where nothing is said or known."""
    config = read_config(f"AuthInfo                = {info}\n{CONFIG}".encode())
    assert list(munge_probe_argv(config))[3:] == socket
    assert munge_probe_argv(None)[0] == "munge"
    assert len(munge_probe_argv(None)) == 3


@pytest.mark.parametrize(
    ("printed", "controllers"),
    [
        ("Slurmctld(primary) at ctl1 is UP\n", [("ctl1", True)]),
        ("Slurmctld(primary) at ctl1 is DOWN\n", [("ctl1", False)]),
        ("Slurmctld(primary) at ctl1 is DOWN\n" + BANNER, [("ctl1", False)]),
        (
            "Slurmctld(primary) at ctl1 is UP\nSlurmctld(backup) at ctl2 is DOWN\n" + BANNER,
            [("ctl1", True), ("ctl2", False)],
        ),
        (
            "Slurmctld(primary) at a is DOWN\nSlurmctld(backup1) at b is UP\n"
            "Slurmctld(backup2) at c is DOWN\n" + BANNER,
            [("a", False), ("b", True), ("c", False)],
        ),
    ],
)
def test_ping_names_each_controller(printed: str, controllers: list[tuple[str, bool]]) -> None:
    """One backup is `backup`, several are numbered; root gets a banner; 20.11 to 26.05 alike."""
    assert read_ping(printed.encode()) == tuple(controllers)


@pytest.mark.parametrize(
    "printed",
    ["", BANNER, "Slurmctld(primary) at ctl1 is FINE\n", "Slurmctld(backup) at b is UP\n"],
)
def test_a_ping_without_a_controller_is_cannot_tell(printed: str) -> None:
    """Silence is not UP and not DOWN."""
    with pytest.raises(CannotTell, match="names no slurmctld"):
        read_ping(printed.encode())


def test_the_configuration_of_slurmctld() -> None:
    """Cluster, version, SlurmUser without its uid, hosts without addresses."""
    config = read_config(CONFIG.encode())
    assert (config.cluster, config.version, config.slurm_user) == ("h100", "22.05.8", "slurm")
    assert config.controllers == ("ctl1", "ctl2")
    assert (config.private, config.accounting) == (frozenset(), False)


@pytest.mark.parametrize(
    ("value", "private"),
    [
        ("none", set()),
        ("(null)", set()),
        ("jobs", {"jobs"}),
        ("accounts,jobs,usage", {"accounts", "jobs", "usage"}),
    ],
)
def test_private_data_is_a_set_of_words(value: str, private: set[str]) -> None:
    """`none` is no word."""
    printed = CONFIG.replace("= none", f"= {value}")
    assert read_config(printed.encode()).private == private


@pytest.mark.parametrize(
    ("value", "accounting"),
    [
        ("accounting_storage/none", False),
        ("(null)", False),
        ("accounting_storage/slurmdbd", True),
    ],
)
def test_accounting_is_slurmdbd(value: str, accounting: bool) -> None:
    """sacct and sacctmgr have nobody to ask otherwise."""
    printed = CONFIG.replace("accounting_storage/none", value)
    assert read_config(printed.encode()).accounting is accounting


@pytest.mark.parametrize("key", ["ClusterName", "SlurmUser", "SLURM_VERSION"])
def test_a_configuration_without_its_main_words_is_cannot_tell(key: str) -> None:
    """An answer that was cut is not taken for a cluster without PrivateData."""
    printed = "\n".join(line for line in CONFIG.splitlines() if not line.startswith(key))
    with pytest.raises(CannotTell, match=f"says nothing of {key}"):
        read_config(printed.encode())
