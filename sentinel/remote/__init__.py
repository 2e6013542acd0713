"""Commands on nodes: by ssh, by srun, or on this host itself."""

from sentinel.core.remote import Remote
from sentinel.core.remote_settings import RemoteSettings
from sentinel.remote.reach import Reach, Way

__all__ = ["Reach", "RemoteSettings", "connect"]


def connect(settings: RemoteSettings, *, job: str = "") -> Remote:
    """The way the settings name; nothing is started yet. `job`: srun steps go into that job."""
    return Reach(_way(settings, job), fanout=settings.fanout, patience=settings.timeout)


def _way(settings: RemoteSettings, job: str) -> Way:
    if settings.via == "srun":
        from sentinel.remote.srun import Srun

        return Srun(settings, job)
    if settings.via == "local":
        from sentinel.remote.local import Local

        return Local()
    from sentinel.remote.ssh import Ssh

    return Ssh(settings)
