"""Doctor on what runs in place of cron: whether its passes share a second place for the state."""

from pathlib import Path

import pytest

from sentinel.chain import proofs
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain, ChainMode
from sentinel.chain.timers import CronTable
from sentinel.core.model import Status
from sentinel.doctor import DoctorItem, cron
from sentinel.slurm.client import SlurmClient
from tests.chain.test_timers import put_crontab
from tests.lab.fuse import Fuse

SILENT = SlurmClient(prefix=["false"])


def second_place(folder: Path, spare: str = "", mode: ChainMode = "chain") -> list[DoctorItem]:
    place = ChainFolder(str(folder / "chain"))
    place.install_files(Chain(name="s", every=600, command=("sentinel",), mode=mode), "")
    return [i for i in cron.check_chain(place.folder, SILENT, spare) if i.name == "spare state"]


@pytest.mark.parametrize("where", ["none", "on this host"])
def test_hosts_of_a_chain_share_none(tmp_path: Path, where: str) -> None:
    """The next pass may run elsewhere, and knows nothing of what this one told."""
    (item,) = second_place(tmp_path, "" if where == "none" else str(tmp_path))
    assert item.status is Status.WARNING
    assert "up to an hour late, and repeated every hour" in item.text
    assert (str(tmp_path) in item.text) == (where != "none")
    assert "`spare_state:`" in item.remedy


def test_hosts_of_a_chain_share_one(tmp_path: Path, fuse: Fuse) -> None:
    """A file system that is not known to be this host's alone; where none is there, it is said."""
    (item,) = second_place(tmp_path, str(fuse.point))
    assert (item.status, item.text) == (Status.OK, f"{fuse.point}, which hosts may share")
    item = cron._check_spare_state(str(fuse.point), f"{fuse.point}/state/chain")
    assert (item.status, "fails with the state" in item.text) == (Status.WARNING, True)
    (item,) = second_place(tmp_path / "more", str(tmp_path / "missing" / "spare"))
    assert item.status is Status.WARNING


@pytest.mark.parametrize("mode", ["systemd", "crontab"])
def test_passes_on_one_host_need_none(tmp_path: Path, mode: ChainMode) -> None:
    """What they keep for themselves the next one finds."""
    assert second_place(tmp_path, mode=mode) == []


def test_messages_that_do_not_leave_are_no_broken_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cron ensure` would mend nothing; `deliver` sends them."""
    put_crontab(tmp_path, monkeypatch)
    place = ChainFolder(str(tmp_path / "chain"))
    chain = Chain(name="s", every=600, command=("sentinel",), mode="crontab")
    place.install_files(chain, "")
    table = CronTable("crontab", chain, place)
    table.install_entry()
    channels = {"mail": "digest"}
    proofs.prove_channels(place, channels, lambda _: (False, "refused"), where="n1")
    (item,) = cron.check_chain(place.folder, SILENT)
    assert (item.status, item.remedy) == (Status.CRITICAL, cron.NO_WAY_OUT)
    table.remove_entry()
    (item,) = cron.check_chain(place.folder, SILENT)
    assert (item.status, item.remedy) == (Status.CRITICAL, "sentinel cron ensure")


def test_nothing_is_installed(tmp_path: Path) -> None:
    """Nothing is said."""
    assert list(cron.check_chain(str(tmp_path / "chain"), SILENT)) == []
