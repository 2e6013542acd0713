"""Asks whether each slurmctld answers, and what cluster it leads. Needs no more of Slurm's code, so
that a pass whose checks ask nothing else loads no more."""

from __future__ import annotations

from msgspec.structs import replace

from sentinel.core.cluster import Controller
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.ports import Clock
from sentinel.core.settings import ClusterSettings, SlurmSettings
from sentinel.core.values import duration_text
from sentinel.slurm import control
from sentinel.slurm.answer import CachedAnswer
from sentinel.slurm.client import AskTimedOut, SlurmClient
from sentinel.slurm.complaints import (
    MISFIT,
    complaint_meaning,
    describe_failure,
    describe_stderr,
    failure_error,
    word_complaint,
)

SETTLED_S = 3600.0  # seconds for which the configuration and rights are cached
MUNGE_LIMIT = 3.0  # a healthy munged answers in milliseconds
WHY_DOWN = 2.0
"""Seconds to find out why ping says DOWN. A refusal comes at once; a dead host is tried for
MessageTimeout."""


class ControllerProbe:
    """Asks about the slurmctlds and their configuration, through `client`.

    `readyz`: http or https, to ask slurmctld itself if it does not answer scontrol. Its methods may
    be called from any thread.
    """

    def __init__(self, client: SlurmClient, clock: Clock, *, readyz: str = "") -> None:
        self.client, self._readyz = client, readyz
        wait = 4 * client.limit  # as long as the first list of jobs may take
        self.config = CachedAnswer(self.ask_config, clock, max_age=SETTLED_S, patience=wait)

    def ask_controllers(self) -> Controller:
        """Whether each slurmctld answers now, and how fast; never cached."""
        try:
            seen = self._ask_ping()
        except AskTimedOut as silence:
            if itself := self._ask_http_status():
                raise AskTimedOut(f"{silence}; {itself}") from None
            raise
        if seen.primary_up or not (itself := self._ask_http_status()):
            return seen
        return replace(seen, trouble="; ".join(filter(None, [seen.trouble, itself])))

    def ask_config(self) -> control.SlurmConfig:
        """What sentinel needs of the running slurm.conf; never cached."""
        return control.read_config(self.client.ask_slurm(*control.CONFIG))

    def _ask_http_status(self) -> str:
        """What slurmctld says about itself by HTTP, which needs neither munge nor a client of the
        same version; empty if it says nothing."""
        config = self.config.last_answer
        if not (self._readyz and config and config.listens):
            return ""
        if (
            control.parse_release(config.version) < control.FIRST_HTTP
        ):  # an older slurmctld would read HTTP as a broken RPC
            return ""
        for path, words in control.HEALTH:
            question = control.http_probe_argv(self._readyz, config.listens, path)
            try:
                done = self.client.run_command(*question, limit=control.HTTP_LIMIT + 1)
            except CannotTell:
                return ""
            if done.code or done.out == b"204":
                return "" if done.code else words
        return ""

    def _ask_ping(self) -> Controller:
        try:
            done = self.client.run_command(*control.PING)
        except AskTimedOut as error:
            return self._munge_controller(error)
        trouble = describe_stderr(done.err)
        try:
            (primary, up), *backups = control.read_ping(done.out)
        except CannotTell:
            if trouble:
                raise failure_error("scontrol", trouble, done.code) from None
            raise
        answers = up or any(answers for _, answers in backups)
        config = self._config_if_answering(answers)
        if not answers and not trouble:
            trouble = self._why_down()
        return Controller(
            primary=primary,
            primary_up=up,
            backups=tuple(backups),
            latency=done.seconds,
            cluster=config.cluster if config else "",
            version=config.version if config else "",
            trouble=trouble,
        )

    def _why_down(self) -> str:
        """The error that a question meets when ping, which gives no reason, says DOWN. Empty if
        that takes long, as with a dead host. Raises CannotAsk if slurmctld answers and has another
        version."""
        try:
            said = describe_stderr(self.client.run_command(*control.CONFIG, limit=WHY_DOWN).err)
        except CannotTell:
            return ""
        if complaint_meaning(said) == MISFIT:
            raise CannotAsk(MISFIT, describe_failure("scontrol", said, 1))
        return word_complaint(said) if said else ""

    def _munge_controller(self, silence: AskTimedOut) -> Controller:
        """The answer if munge is the reason for the silence; else raises `silence`. A munged that
        hangs makes scontrol wait for minutes without a message."""
        config = self.config.last_answer
        try:
            self.client.run_command(*control.munge_probe_argv(config), limit=MUNGE_LIMIT)
        except AskTimedOut:
            said = f"munge: no answer within {duration_text(MUNGE_LIMIT)}, munged hangs"
            primary = config.controllers[0] if config and config.controllers else ""
            return Controller(primary=primary, primary_up=False, trouble=said)
        except CannotTell:
            pass  # this host has no munge, so munge is not at fault
        raise silence

    def _config_if_answering(self, answering: bool) -> control.SlurmConfig | None:
        try:
            return self.config.get_answer() if answering else None
        except CannotTell:
            return None


def connect_controllers(settings: SlurmSettings | ClusterSettings, clock: Clock) -> ControllerProbe:
    """The probe of these settings. Slurm is not asked yet."""
    conf = settings.conf if isinstance(settings, ClusterSettings) else ""
    client = SlurmClient(limit=settings.timeout, prefix=settings.command_prefix, conf=conf)
    return ControllerProbe(client, clock, readyz=settings.readyz)
