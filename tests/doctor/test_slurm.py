"""Doctor on Slurm: who answers, and how far it is looked."""

from itertools import islice

import pytest

from sentinel.core.cluster import Controller
from sentinel.core.errors import CannotTell
from sentinel.core.model import Status
from sentinel.core.settings import SlurmSettings
from sentinel.doctor.slurm import check_job_visibility, check_slurm, check_version
from sentinel.slurm.control import SlurmConfig, read_config
from sentinel.slurm.rights import QueueRights, SlurmUser

ASKED_ELSEWHERE = SlurmSettings(command_prefix=["ssh", "login1"])


class Snapshot:
    """A Slurm whose controllers answer so."""

    def __init__(self, *up: bool, release: str = "") -> None:
        self._up, self._release = up, release

    def controller(self) -> Controller:
        primary, *backups = self._up
        named = tuple((f"ctl{n}", answers) for n, answers in enumerate(backups, 2))
        return Controller(primary="ctl1\x1b[2J", primary_up=primary, backups=named, cluster="lab")

    def rights(self) -> QueueRights:
        """As of an Operator, who is no Administrator."""
        return QueueRights(SlurmUser(1000, "alice"), admin=True, private=True)

    def config(self) -> SlurmConfig:
        if not self._release:
            raise CannotTell("no answer")
        shown = f"ClusterName = lab\nSLURM_VERSION = {self._release}\nSlurmUser = slurm(1)\n"
        return read_config(shown.encode())


@pytest.mark.parametrize(
    ("up", "status", "says"),
    [
        ((True,), Status.OK, "ctl1\\x1b[2J answers in"),
        ((True, True), Status.OK, "answers in"),
        ((True, False), Status.WARNING, "backup down: ctl2"),
        ((False, True), Status.WARNING, "ctl2 answers in 0s, cluster lab; ctl1\\x1b[2J does not"),
        ((False, False), Status.CRITICAL, "ctl1\\x1b[2J does not answer"),
        ((False,), Status.CRITICAL, "does not answer"),
    ],
)
def test_sentinel_can_work_while_one_slurmctld_answers(
    up: tuple[bool, ...], status: Status, says: str
) -> None:
    """The primary or a backup; what follows is looked at then, and only then."""
    items = list(islice(check_slurm(Snapshot(*up), ASKED_ELSEWHERE), 2))  # type: ignore[arg-type]
    assert (items[0].status, says in items[0].text) == (status, True)
    assert bool(items[0].remedy) is (status is not Status.OK)
    assert [i.name for i in items[1:]] == ([] if status is Status.CRITICAL else ["Slurm version"])


@pytest.mark.parametrize(
    ("release", "status"),
    [
        ("20.02.7", Status.WARNING),
        ("20.11.0", Status.OK),
        ("22.05.8", Status.OK),
        ("25.11.0-0rc1", Status.OK),
        ("", Status.UNKNOWN),
    ],
)
def test_a_slurm_that_is_too_old_is_told(release: str, status: Status) -> None:
    """Nobody has tried it."""
    assert check_version(Snapshot(release=release)).status is status  # type: ignore[arg-type]


def test_who_sees_all_jobs_is_not_called_an_administrator() -> None:
    """An Operator and SlurmUser see them too (slurm.conf(5), PrivateData)."""
    item = check_job_visibility(Snapshot(True))  # type: ignore[arg-type]
    assert (item.status, item.text) == (Status.OK, "alice sees all jobs")
