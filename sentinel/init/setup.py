"""The plan of `sentinel init`, told before anything is done, and its execution."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain import install, proofs
from sentinel.chain.folder import ChainFolder
from sentinel.clock import SystemClock
from sentinel.config.places import ENVIRONMENT, SERVICE, new_config_path
from sentinel.config.settings import Settings
from sentinel.config.starter import make_folder, starter_text, write_new
from sentinel.core.errors import CannotTell, Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.core.time_text import format_clock
from sentinel.init import callers, channel_setup, first_look, proof, record, rehearsal
from sentinel.init.callers import CallerPlan, CallerRequest
from sentinel.init.channel_setup import ChannelDraft
from sentinel.init.record import InitRecord
from sentinel.init.survey import RunningTraining, SurveyResult, survey_host
from sentinel.slurm.client import SlurmClient
from sentinel.wiring import app
from sentinel.wiring.lazy import LazySlurm

SERVICE_STATE_DIR = "/var/lib/sentinel"
SLURM_TIMEOUT_S = 20.0
"""Time limit for one command of Slurm."""

ProgressPrinter = Callable[[str], None]


class SetupFailed(SentinelError):
    """The plan cannot be carried out. Everything was undone."""

    exit_code = 73


class InitOptions(Struct, frozen=True, kw_only=True):
    """The options. Empty ones are determined automatically."""

    file: str
    user: str
    job: str = ""
    mail: str = ""
    webhook: str = ""
    smtp: str = ""
    by: str = ""


class InitPlan(Struct, frozen=True, kw_only=True):
    """All that will be done, and nothing that was."""

    file: str
    text: str
    found: SurveyResult
    told: ChannelDraft | None
    way: CallerPlan
    wanted: CallerRequest

    def render_plan_lines(self) -> Iterator[str]:
        """The plan as lines, for the question to the user."""
        yield from _describe_survey(self.found)
        yield ""
        yield "sentinel init will"
        yield f"  write    {visible(self.file)} (mode 0600), and its state in {visible(self.wanted.state)}"
        yield f"  install  {self.way.words}"
        if self.way.jobs:
            yield (
                f"  submit   {self.way.jobs} small job{'s' * (self.way.jobs != 1)}, which wait in the "
                f"queue at any time; about {self.way.core_hours:.1f} core-hours a day"
            )
        else:
            yield "  submit   no job"
        if self.told:
            yield f"  send     one test message now, later alerts: {visible(self.told.words)}"
        else:
            yield f"  send     nothing: alerts go into {visible(self.wanted.state)}/{record.ALERT_BOOK_FILE} (or name --mail, --webhook)"
        yield "It switches on nothing that changes your cluster. Take it all away: sentinel init --undo"
        for other in self.way.others:
            yield f"  (not {visible(shortened(other, 200))})"


def choose_config_path(config: str) -> str:
    """The file that is written."""
    wanted = config or os.environ.get(ENVIRONMENT, "")
    return os.path.abspath(wanted) if wanted else new_config_path(os.environ)


def plan_setup(wishes: InitOptions, progress: ProgressPrinter) -> InitPlan:
    """Examine the host and make a plan, without changing anything. Raises a SentinelError if an
    option cannot be fulfilled."""
    told = _choose_channel(wishes, progress)
    progress("looking at Slurm, your jobs, their logs and file systems")
    service = wishes.file == SERVICE
    found = survey_host(wishes.user, job=wishes.job, service=service, waiting=progress)
    state = SERVICE_STATE_DIR if service else app.get_state_location(Settings())
    channels = {told.name: told.block} if told else _make_local_channels(state)
    found = replace(found, here=replace(found.here, channels=channels))
    wanted = CallerRequest(
        config=wishes.file,
        folder=os.path.join(state, "chain"),
        state=state,
        options=_choose_sbatch_options(found),
    )
    progress("looking for what can call sentinel on time")
    way = callers.find_caller(wanted, SlurmClient(limit=SLURM_TIMEOUT_S), wishes.by)
    text = starter_text(found.here, user=wishes.user)
    return InitPlan(file=wishes.file, text=text, found=found, told=told, way=way, wanted=wanted)


def carry_out_plan(plan: InitPlan, progress: ProgressPrinter) -> Iterator[str]:
    """Send, write, install, rehearse and prove. Returns lines that say what was done. Raises a
    SentinelError, after undoing everything."""
    if plan.told:
        progress("sending the test message")
        yield f"test message: {channel_setup.send_test_message(plan.told)}"
        yield f"  see that it arrives at {visible(plan.told.receiver)}; if not: sentinel init --undo"
    needed = [plan.wanted.state, os.path.dirname(plan.file)]
    needed += [install.user_unit_dir()] if plan.way.by == "systemd" else []
    made = InitRecord(
        config=plan.file,
        digest=record.hash_text(plan.text),
        folders=tuple(
            dict.fromkeys(f for folder in needed for f in record.list_missing_folders(folder))
        ),
        state=plan.wanted.state,
        by=plan.way.by,
        chain=plan.wanted.folder,
    )
    client = SlurmClient(limit=SLURM_TIMEOUT_S)
    try:
        record.write_record(made)
        make_folder(os.path.dirname(plan.file))
        write_new(plan.file, plan.text)
        yield f"{visible(plan.file)}: written"
        _store_first_look(plan)
        yield from callers.install_caller(plan.way, plan.wanted, client)
        yield from _announce_delivery_proof(plan)
    except (OSError, SentinelError) as error:
        taken = "; ".join(record.undo_record(made, remove_state=record.has_made_state(made)))
        where = getattr(error, "filename", None) or ""
        why = getattr(error, "strerror", None) or error
        raise SetupFailed(
            f"{visible(where)}{': ' if where else ''}{why}; taken back: {taken}"
        ) from error
    yield from _rehearse_and_prove(plan, progress)


def _store_first_look(plan: InitPlan) -> None:
    """A service looks at once, and its state is its own user's; any other first pass is minutes away."""
    if plan.way.by != "service" and plan.found.seen:
        settings = app.load_settings(plan.file)
        first_look.remember_jobs(settings, LazySlurm(settings, settings.checks, SystemClock()))


def _announce_delivery_proof(plan: InitPlan) -> Iterator[str]:
    """When it will be known whether messages leave from where passes run. A timer of this host runs
    where the test message was sent: that is proven."""
    chain = plan.way.chain
    if chain is None or not plan.told:
        return
    place = ChainFolder(plan.wanted.folder)
    if chain.mode in ("systemd", "crontab"):
        channels = proofs.channels_to_prove(app.load_settings(plan.file))
        proofs.prove_channels(
            place, channels, lambda _: (True, "sent by init"), where=proofs.kind_of_host({})
        )
        return
    first = format_clock(chain.slot_at(time.time()) + chain.every, app.get_time_zone(Settings()))
    yield (
        f"another test message comes from the first job, after {first}: it shows that messages leave "
        f"from there too. See it with: {chain.command_line('status')}"
    )


class UndoPlan(Struct, frozen=True, kw_only=True):
    """What will be taken away, and nothing that was."""

    made: InitRecord
    purge: bool

    def render_undo_lines(self) -> Iterator[str]:
        """What would be undone, as lines for the question to the user."""
        made = self.made
        yield "sentinel init --undo will"
        if made.by != "none":
            yield f"  {_CALLER_TEXTS.get(made.by, f'stop     {made.by}')}"
        yield f"  remove   {visible(made.config)}{record.describe_config_fate(made)}"
        if not record.has_made_state(made):
            yield f"  keep     {visible(made.state)}, which was there before"
        elif self.purge:
            yield f"  remove   {visible(made.state)}, with the record of alerts"
        else:
            yield f"  keep     the record of alerts in {visible(made.state)} (--purge removes it too)"


_CALLER_TEXTS = {
    "service": f"stop     {callers.SERVICE_UNIT}, and disable it",
    "systemd": "stop     sentinel's timer in your own systemd, and disable it",
    "crontab": "remove   sentinel's lines from your crontab; your other lines stay",
    "scrontab": "remove   sentinel's lines from your scrontab; your other lines stay",
    "chain": "cancel   the Slurm jobs that call sentinel; your other jobs go on",
}


def plan_undo(config: str = "", *, purge: bool = False) -> UndoPlan:
    """What an undo would do; changes nothing. `config`: the file that init has to have written, where
    one is named. Raises NotInitialized."""
    made = _read_init_record()
    if config and config != made.config:
        raise record.NotInitialized(
            f"nothing to undo for {visible(config)}: init has written {visible(made.config)}"
        )
    return UndoPlan(made=made, purge=purge)


def undo_setup(plan: UndoPlan) -> Iterator[str]:
    """The opposite of `carry_out_plan`, by what was written down. Raises StoreBusy while a pass still writes
    the record that is to be removed; what calls sentinel is stopped by then, and all else stays."""
    made, remove_state = plan.made, plan.purge and record.has_made_state(plan.made)
    yield from callers.remove_caller(made.by, made.chain, SlurmClient(limit=SLURM_TIMEOUT_S))
    if remove_state:
        record.require_idle_state(made.state)
    yield from record.undo_record(made, remove_state=remove_state)


def record_own_edit(path: str, before: str, after: str) -> None:
    """`sentinel add` changed the file that init had written: for an undo it is still init's own."""
    try:
        made = _read_init_record()
    except record.NotInitialized:
        return
    if made.config == os.path.abspath(path) and made.digest == record.hash_text(before):
        record.write_record(replace(made, digest=record.hash_text(after)))


def _read_init_record() -> InitRecord:
    """What init wrote down here; raises NotInitialized."""
    state = SERVICE_STATE_DIR if not os.geteuid() else app.get_state_location(Settings())
    try:
        return record.read_record(state)
    except record.NotInitialized:
        return record.read_record(app.get_state_location(Settings()))


def _choose_channel(wishes: InitOptions, progress: ProgressPrinter) -> ChannelDraft | None:
    try:
        if wishes.mail:
            progress("looking for a way to send mail")
            return channel_setup.make_mail_channel(wishes.mail, wishes.smtp)
        return channel_setup.make_webhook_channel(wishes.webhook) if wishes.webhook else None
    except Invalid as error:
        option = "--mail" if wishes.mail else "--webhook"
        raise app.UsageError(f"{option}: {error}") from error


def _make_local_channels(state: str) -> dict[str, dict[str, str]]:
    """The channels if no address is known yet: a file that people can read."""
    book = {"kind": "file", "path": os.path.join(state, record.ALERT_BOOK_FILE)}
    return {"terminal": {"kind": "console"}, "book": book}


def _choose_sbatch_options(found: SurveyResult) -> tuple[str, ...]:
    """The account by which the user's own job was taken, for sites that want one named."""
    account = next((seen.job.account for seen in found.seen if seen.job.account), "")
    return (f"--account={account}",) if account and account.isprintable() else ()


def _describe_survey(found: SurveyResult) -> Iterator[str]:
    here = found.here
    yield "What was found:"
    if here.slurm:
        yield f"  Slurm    cluster {visible(here.cluster or '?')}"
    for seen in found.seen:
        yield from _describe_training(seen)
    disks = ", ".join(map(visible, (*here.local, *here.shared)))
    yield f"  disks    {disks or 'none that a file system check would watch by itself'}"
    for line in found.trouble:
        yield f"  note     {visible(line)}"


def _describe_training(seen: RunningTraining) -> Iterator[str]:
    job = seen.job
    gpus = f", {seen.gpus} GPUs" if seen.gpus else ""
    yield f"  training {visible(job.name)}: job {job.id} on {visible(job.nodes)}{gpus}"
    if seen.log:
        yield f"           log {visible(seen.log)}"
    if seen.last:
        yield f"           its last line: {visible(shortened(seen.last, 120))}"
    yield f"           written by {visible(seen.trainer) or 'a trainer that was not recognised'}"
    yield f"           its progress: {visible(seen.number) or _describe_no_number(seen)}"
    folder = seen.training.checkpoints
    yield f"           checkpoints {visible(folder) if folder else 'not found'}"
    yield f"           when it has finished: {_describe_finish(seen)}"


def _describe_no_number(seen: RunningTraining) -> str:
    if seen.young:
        return "not known yet, its log has few lines: each pass looks for a number that advances"
    return "no number was recognised, so only growth counts"


def _describe_finish(seen: RunningTraining) -> str:
    """What the end of this training means as the file is written, and how to say more of it."""
    if seen.training.waits:
        return (
            "not by itself, as another job waits behind it (`queued: 1`); `done_when` in the file "
            "says what proves it"
        )
    return (
        "not known; exit code 0 with a clean output is told once. Say it in the file: `done_when`, or "
        "`queued: 1` where another job has to follow"
    )


def _rehearse_and_prove(plan: InitPlan, progress: ProgressPrinter) -> Iterator[str]:
    """The rehearsal and the proof, of the file as it was written."""
    settings = app.load_settings(plan.file)
    yield from _show_rehearsal(settings)
    yield ""
    by = "" if plan.way.by == "none" else plan.way.words
    yield from proof.prove_watching(settings, caller=by, progress=progress)


def _show_rehearsal(settings: Settings) -> Iterator[str]:
    slurm = LazySlurm(settings, settings.checks, SystemClock())
    ranked = sorted(settings.channels, key=lambda c: ("console", "file").count(c.kind))
    channels = [c.plugin for c in ranked if c.kind != "file"]
    for check in rehearsal.list_job_checks(settings)[:1]:
        try:
            cluster = settings.cluster or app.find_cluster_name(slurm)
            told = rehearsal.rehearse_death(check, slurm, cluster, app.get_time_zone(settings))
        except CannotTell:
            return
        if told is None:
            return
        yield ""
        yield f"This is the message that you will get when {visible(check.plugin.name)} dies:"
        for name, text in (
            rehearsal.render_message_parts(channels[0], told)
            if channels
            else [("text", told.summary)]
        ):
            whole = text if name == "text" else f"{name}: {text}"
            yield from (f"  | {visible(line)}" for line in whole.rstrip().splitlines())
