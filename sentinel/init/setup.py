"""The plan of `sentinel init`, told before anything is done, and its execution."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from sentinel.chain import install, proofs
from sentinel.chain.folder import Place
from sentinel.config.places import ENVIRONMENT, SERVICE, new
from sentinel.config.settings import Settings
from sentinel.config.starter import make_folder, starter, write_new
from sentinel.core.errors import CannotTell, Invalid, SentinelError
from sentinel.core.text import shortened, visible
from sentinel.core.when import clock_text
from sentinel.init import record, tell, ways
from sentinel.init.record import Record
from sentinel.init.survey import Found, Seen, survey
from sentinel.init.tell import Told
from sentinel.init.ways import Wanted, Way
from sentinel.slurm.client import Client
from sentinel.wiring import app

SERVICE_STATE = "/var/lib/sentinel"
SECONDS = 20.0
"""For one command of Slurm."""

Progress = Callable[[str], None]


class CannotBegin(SentinelError):
    """The plan cannot be carried out; what was done of it was taken back."""

    exit_code = 73


class Wishes(Struct, frozen=True, kw_only=True):
    """What was asked for; empty: found out."""

    file: str
    user: str
    job: str = ""
    mail: str = ""
    webhook: str = ""
    smtp: str = ""
    by: str = ""


class Plan(Struct, frozen=True, kw_only=True):
    """All that will be done, and nothing that was."""

    file: str
    text: str
    found: Found
    told: Told | None
    way: Way
    wanted: Wanted

    def lines(self) -> Iterator[str]:
        """For the person who is asked."""
        yield from _seen(self.found)
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
            yield f"  send     nothing: alerts go into {visible(self.wanted.state)}/{record.BOOK} (or name --mail, --webhook)"
        yield "It switches on nothing that changes your cluster. Take it all away: sentinel init --undo"
        for other in self.way.others:
            yield f"  (not {visible(shortened(other, 200))})"


def place(config: str) -> str:
    """The file that is written."""
    wanted = config or os.environ.get(ENVIRONMENT, "")
    return os.path.abspath(wanted) if wanted else new(os.environ)


def plan(wishes: Wishes, progress: Progress) -> Plan:
    """Look, and decide; changes nothing. Raises a SentinelError where what was asked for cannot be."""
    told = _told(wishes, progress)
    progress("looking at Slurm, your jobs, their logs and file systems")
    service = wishes.file == SERVICE
    found = survey(wishes.user, job=wishes.job, service=service)
    state = SERVICE_STATE if service else app.state_of(Settings())
    channels = {told.name: told.block} if told else _nobody(state)
    found = replace(found, here=replace(found.here, channels=channels))
    wanted = Wanted(
        config=wishes.file,
        folder=os.path.join(state, "chain"),
        state=state,
        options=_options(found),
    )
    progress("looking for what can call sentinel on time")
    way = ways.find(wanted, Client(limit=SECONDS), wishes.by)
    text = starter(found.here, user=wishes.user)
    return Plan(file=wishes.file, text=text, found=found, told=told, way=way, wanted=wanted)


def carry_out(plan: Plan, progress: Progress) -> Iterator[str]:
    """Send, write, install, rehearse, prove; what was done, in lines. Raises a SentinelError, and
    leaves nothing of what was begun."""
    if plan.told:
        progress("sending the test message")
        yield f"test message: {tell.test(plan.told)}"
    needed = [plan.wanted.state, os.path.dirname(plan.file)]
    needed += [install.units()] if plan.way.by == "systemd" else []
    made = Record(
        config=plan.file,
        digest=record.digest(plan.text),
        folders=tuple(dict.fromkeys(f for folder in needed for f in record.missing(folder))),
        state=plan.wanted.state,
        by=plan.way.by,
        chain=plan.wanted.folder,
    )
    client = Client(limit=SECONDS)
    try:
        record.write(made)
        make_folder(os.path.dirname(plan.file))
        write_new(plan.file, plan.text)
        yield f"{visible(plan.file)}: written"
        _remember_jobs(plan)
        yield from ways.begin(plan.way, plan.wanted, client)
        yield from _proof_to_come(plan)
    except (OSError, SentinelError) as error:
        taken = "; ".join(record.undo(made, remove_state=record.owns_state(made)))
        where = getattr(error, "filename", None) or ""
        why = getattr(error, "strerror", None) or error
        raise CannotBegin(
            f"{visible(where)}{': ' if where else ''}{why}; taken back: {taken}"
        ) from error
    yield from _after(plan, progress)


def _remember_jobs(plan: Plan) -> None:
    """A service looks at once, and its state is its own user's; any other first pass is minutes away."""
    from sentinel.clock import SystemClock
    from sentinel.init import first_look
    from sentinel.wiring.lazy import LazySlurm

    if plan.way.by != "service" and plan.found.seen:
        settings = app.load_settings(plan.file)
        first_look.remember_jobs(settings, LazySlurm(settings, settings.checks, SystemClock()))


def _proof_to_come(plan: Plan) -> Iterator[str]:
    """When it will be known whether messages leave from where passes run. A timer of this host runs
    where the test message was sent: that is proven."""
    chain = plan.way.chain
    if chain is None or not plan.told:
        return
    place = Place(plan.wanted.folder)
    if chain.mode in ("systemd", "crontab"):
        channels = proofs.channels_to_prove(app.load_settings(plan.file))
        proofs.prove(
            place, channels, lambda _: (True, "sent by init"), where=proofs.kind_of_host({})
        )
        return
    first = clock_text(chain.slot(time.time()) + chain.every, app.zone(Settings()))
    yield (
        f"another test message comes from the first job, after {first}: it shows that messages leave "
        f"from there too. See it with: {chain.call('status')}"
    )


class Undoing(Struct, frozen=True, kw_only=True):
    """What will be taken away, and nothing that was."""

    made: Record
    purge: bool

    def lines(self) -> Iterator[str]:
        """For the person who is asked."""
        made = self.made
        yield "sentinel init --undo will"
        if made.by != "none":
            yield f"  stop     {_CALLERS.get(made.by, made.by)}"
        yield f"  remove   {visible(made.config)}{record.why_kept(made)}"
        if not record.owns_state(made):
            yield f"  keep     {visible(made.state)}, which was there before"
        elif self.purge:
            yield f"  remove   {visible(made.state)}, with the record of alerts"
        else:
            yield f"  keep     the record of alerts in {visible(made.state)} (--purge removes it too)"


_CALLERS = {
    "service": f"{ways.UNIT}: stopped and disabled",
    "systemd": "the timer of your own systemd",
    "crontab": "the lines in your crontab",
    "scrontab": "the lines in your scrontab",
    "chain": "the chain of Slurm jobs: they are cancelled",
}


def undoing(config: str = "", *, purge: bool = False) -> Undoing:
    """What an undo would do; changes nothing. `config`: the file that init has to have written, where
    one is named. Raises NotMade."""
    made = _made()
    if config and config != made.config:
        raise record.NotMade(
            f"nothing to undo for {visible(config)}: init has written {visible(made.config)}"
        )
    return Undoing(made=made, purge=purge)


def undo(plan: Undoing) -> Iterator[str]:
    """The opposite of `carry_out`, by what was written down. Raises StoreBusy while a pass still writes
    the record that is to be removed; what calls sentinel is stopped by then, and all else stays."""
    made, remove_state = plan.made, plan.purge and record.owns_state(plan.made)
    yield from ways.end(made.by, made.chain, Client(limit=SECONDS))
    if remove_state:
        record.refuse_while_busy(made.state)
    yield from record.undo(made, remove_state=remove_state)


def note_own_edit(path: str, before: str, after: str) -> None:
    """`sentinel add` changed the file that init had written: for an undo it is still init's own."""
    try:
        made = _made()
    except record.NotMade:
        return
    if made.config == os.path.abspath(path) and made.digest == record.digest(before):
        record.write(replace(made, digest=record.digest(after)))


def _made() -> Record:
    """What init wrote down here; raises NotMade."""
    state = SERVICE_STATE if not os.geteuid() else app.state_of(Settings())
    try:
        return record.read(state)
    except record.NotMade:
        return record.read(app.state_of(Settings()))


def _told(wishes: Wishes, progress: Progress) -> Told | None:
    try:
        if wishes.mail:
            progress("looking for a way to send mail")
            return tell.by_mail(wishes.mail, wishes.smtp)
        return tell.by_webhook(wishes.webhook) if wishes.webhook else None
    except Invalid as error:
        raise app.BadCall(str(error)) from error


def _nobody(state: str) -> dict[str, dict[str, str]]:
    """Where no address is known yet: whoever looks finds what was told."""
    book = {"kind": "file", "path": os.path.join(state, record.BOOK)}
    return {"terminal": {"kind": "console"}, "book": book}


def _options(found: Found) -> tuple[str, ...]:
    """The account by which the user's own job was taken, for sites that want one named."""
    account = next((seen.job.account for seen in found.seen if seen.job.account), "")
    return (f"--account={account}",) if account and account.isprintable() else ()


def _seen(found: Found) -> Iterator[str]:
    here = found.here
    yield "What was found:"
    if here.slurm:
        yield f"  Slurm    cluster {visible(here.cluster or '?')}"
    for seen in found.seen:
        yield from _training(seen)
    disks = ", ".join(map(visible, (*here.local, *here.shared)))
    yield f"  disks    {disks or 'none that a file system check would watch by itself'}"
    for line in found.trouble:
        yield f"  note     {visible(line)}"


def _training(seen: Seen) -> Iterator[str]:
    job = seen.job
    gpus = f", {seen.gpus} GPUs" if seen.gpus else ""
    yield f"  training {visible(job.name)}: job {job.id} on {visible(job.nodes)}{gpus}"
    if seen.log:
        yield f"           log {visible(seen.log)}"
    if seen.last:
        yield f"           its last line: {visible(shortened(seen.last, 120))}"
    yield f"           written by {visible(seen.trainer) or 'a trainer that was not recognised'}"
    yield f"           its progress: {visible(seen.number) or 'no number was recognised, so only growth counts'}"
    folder = seen.training.checkpoints
    yield f"           checkpoints {visible(folder) if folder else 'not found'}"
    yield f"           when it has finished: {_finished(seen)}"


def _finished(seen: Seen) -> str:
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


def _after(plan: Plan, progress: Progress) -> Iterator[str]:
    """The rehearsal and the proof, of the file as it was written."""
    from sentinel.init import proof

    settings = app.load_settings(plan.file)
    yield from _rehearsed(settings)
    yield ""
    by = "" if plan.way.by == "none" else plan.way.words
    yield from proof.prove(settings, caller=by, progress=progress)


def _rehearsed(settings: Settings) -> Iterator[str]:
    from sentinel.clock import SystemClock
    from sentinel.init import rehearsal
    from sentinel.wiring.lazy import LazySlurm

    slurm = LazySlurm(settings, settings.checks, SystemClock())
    ranked = sorted(settings.channels, key=lambda c: ("console", "file").count(c.kind))
    channels = [c.plugin for c in ranked if c.kind != "file"]
    for check in rehearsal.trainings(settings)[:1]:
        try:
            cluster = settings.cluster or app.cluster_name(slurm)
            told = rehearsal.death(check, slurm, cluster, app.zone(settings))
        except CannotTell:
            return
        if told is None:
            return
        yield ""
        yield f"This is the message that you will get when {visible(check.plugin.name)} dies:"
        for name, text in (
            rehearsal.parts(channels[0], told) if channels else [("text", told.summary)]
        ):
            whole = text if name == "text" else f"{name}: {text}"
            yield from (f"  | {visible(line)}" for line in whole.rstrip().splitlines())
