"""The way to nodes that the settings name: ssh, srun, or this host itself."""

from sentinel.core.node_answers import Remote
from sentinel.nodes.reach import Reach, Way
from sentinel.nodes.settings import RemoteSettings
from sentinel.nodes.srun import Srun
from sentinel.nodes.ssh import Ssh


def connect(settings: RemoteSettings, *, job: str = "") -> Remote:
    """The way to nodes that the settings name; nothing is started yet. `job`: srun steps are
    started within this job."""
    return Reach(_way(settings, job), fanout=settings.fanout, patience=settings.timeout)


def _way(settings: RemoteSettings, job: str) -> Way:
    if settings.via == "srun":
        return Srun(settings, job)
    if settings.via == "local":
        from sentinel.nodes.local import Local  # loads socket

        return Local()
    return Ssh(settings)
