"""Whatever a check does, its run ends in time and in an answer."""

import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sentinel.checks.gpu import recorder
from sentinel.core.due import get_interval_s
from sentinel.core.errors import CannotTell
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, Guidance, look
from sentinel.core.letters import Letter
from sentinel.core.model import Finding, Report, Sample, Status
from sentinel.core.ports import Context
from sentinel.core.settings import CheckCommon, CheckConfig, FilePath
from sentinel.core.values import Duration, Size
from sentinel.engine.runner import MAX_DETAILS_CHARS, CheckRunner, make_outcome
from sentinel.plugin import Check
from sentinel.testing import ALL_SEEN, context
from tests.kinds import PlainCheck


class Says(Check, frozen=True):
    """A check that reports one status."""

    status: Status = Status.CRITICAL
    subject: str = "/scratch"

    def run(self, ctx: Context) -> Report:
        return Report(
            coverage=ALL_SEEN,
            findings=(Finding(subject=self.subject, status=self.status, summary="so"),),
        )


class Blind(Check, frozen=True):
    """A check whose source does not answer."""

    says: tuple[str, str] = ("squeue: \x1b[31mno answer", "")

    def run(self, ctx: Context) -> Report:
        raise CannotTell(*self.says)


class Broken(Check, frozen=True):
    """A check with a bug."""

    def run(self, ctx: Context) -> Report:
        return Report(coverage=ALL_SEEN, findings=(1 / 0,))  # type: ignore[arg-type]


class Hangs(PlainCheck):
    """A check that waits until it is let go; counts how often it was started."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.started = 0

    def run(self, ctx: Context) -> Report:
        self.started += 1
        self.let_go.wait(60)
        return Report(coverage=ALL_SEEN, findings=())


def config(plugin: object, **common: object) -> CheckConfig:
    return CheckConfig(name="disks", common=CheckCommon(kind="fs", **common), plugin=plugin)  # type: ignore[arg-type]


def found(**changed: Any) -> Finding:
    return Finding(**{"subject": "x", "status": Status.OK, "summary": "so", **changed})


def test_a_good_run_says_that_the_check_sees() -> None:
    """So that an alert about its blindness can end."""
    outcome = CheckRunner().run(config(Says(Status.OK)), context())
    assert (outcome.itself.subject, outcome.itself.status) == ("", Status.OK)
    assert [f.subject for f in outcome.findings] == ["/scratch"]


def test_a_blind_run_has_no_report() -> None:
    """And its reason is inert text."""
    outcome = CheckRunner().run(config(Blind()), context())
    assert outcome.report is None
    assert (outcome.itself.status, outcome.itself.summary) == (
        Status.UNKNOWN,
        "squeue: \\x1b[31mno answer",
    )


def test_whose_words_they_are_stands_below() -> None:
    """First a line for a person, then what the other side said; one line where both have to go."""
    outcome = CheckRunner().run(config(Blind(("nobody answers", "slurm: \x1b[31mno"))), context())
    shown = outcome.itself
    assert (shown.summary, shown.details) == ("nobody answers", "slurm: \\x1b[31mno")


def test_a_bug_in_a_kind_is_an_unknown_not_a_crash() -> None:
    """Named with the kind, so that its author can be told."""
    outcome = CheckRunner().run(config(Broken()), context())
    assert outcome.itself.summary.startswith(f"internal error of kind fs ({__file__}, line ")
    assert "): ZeroDivisionError" in outcome.itself.summary


def test_a_kind_that_does_not_say_how_much_it_saw_is_told_where_and_how() -> None:
    """Others' kinds of before know nothing of coverage: their author reads file, line, remedy."""

    class Older(Check, frozen=True):
        def run(self, ctx: Context) -> Report:
            return Report(findings=(found(),))  # type: ignore[call-arg]

    outcome = CheckRunner().run(config(Older()), context())
    assert outcome.report is None
    assert outcome.itself.status is Status.UNKNOWN
    line = Older.run.__code__.co_firstlineno + 1
    assert f"give the Report in {__file__}, line {line} a coverage" in outcome.itself.summary
    assert "docs/plugins.md" in outcome.itself.summary


ODD: list[tuple[object, str]] = [
    (None, "`run` has to return a Report, and returned None"),
    ([found()], "`run` has to return a Report, and returned [Finding("),
    (Report(coverage=ALL_SEEN, findings=None), "`$.findings`"),  # type: ignore[arg-type]
    (Report(coverage=ALL_SEEN, findings=(found(summary=5),)), "`$.findings[0].summary`"),
    (Report(coverage=ALL_SEEN, findings=(found(status="bad"),)), "`$.findings[0].status`"),
    (
        Report(coverage=ALL_SEEN, findings=(found(labels={"node": 1}),)),
        "`$.findings[0].labels[...]`",
    ),
    (Report(coverage=ALL_SEEN, findings=(found(commands="ls"),)), "`$.findings[0].commands`"),
    (
        Report(coverage=ALL_SEEN, findings=(), memory={"last": object()}),
        "of type object cannot be stored",
    ),
    (
        Report(coverage=ALL_SEEN, findings=(), samples=(Sample("a", "b", 10**400),)),
        "`$.samples[0].value`",
    ),
]


@pytest.mark.parametrize(("told", "why"), ODD)
def test_a_report_that_could_not_be_stored_and_read_again_is_a_bug_of_its_kind(
    told: object, why: str
) -> None:
    """Met at once, and only by the check whose it is."""

    class Odd(Check, frozen=True):
        def run(self, ctx: Context) -> Any:
            return told

    outcome = CheckRunner().run(config(Odd()), context())
    assert outcome.report is None
    assert outcome.itself.summary.startswith(f"internal error of kind fs ({__file__}): ")
    # msgspec 0.19 raises SystemError for a number that no float holds.
    assert why in outcome.itself.summary or "SystemError" in outcome.itself.summary


def test_a_kind_that_ends_the_program_ends_its_run() -> None:
    """The words say so; "did not end in time" would send a person to the wrong place."""

    class Exits(Check, frozen=True):
        def run(self, ctx: Context) -> Report:
            sys.exit(3)

    outcome = CheckRunner().run(config(Exits()), context())
    assert outcome.itself.summary.endswith("): SystemExit(3)")


def test_an_unknown_subject_makes_the_run_blind_in_part() -> None:
    """The others still count, and the word about the check names the unseen one."""
    outcome = CheckRunner().run(config(Says(Status.UNKNOWN)), context())
    assert outcome.report is not None
    assert (outcome.itself.status, outcome.itself.summary) == (Status.UNKNOWN, "/scratch: so")


def test_a_hanging_check_is_abandoned_once_and_not_piled_upon() -> None:
    """The second run starts nothing; after the first has ended, checks run again."""
    runner, plugin = CheckRunner(), Hangs()
    check = config(plugin)
    first = runner.run(check, context(limit=-1.9))
    second = runner.run(check, context(limit=-1.9))
    assert "did not end within" in first.itself.summary
    assert "an earlier run hangs" in second.itself.summary
    assert plugin.started == 1
    plugin.let_go.set()
    deadline = time.monotonic() + 10
    while runner.run(check, context()).itself.status is not Status.OK:
        assert time.monotonic() < deadline
    assert plugin.started == 2


def test_a_check_that_was_configured_anew_does_not_wait_for_its_former_self() -> None:
    """The path that hangs was taken out of the file, which was reloaded."""
    runner, plugin = CheckRunner(), Hangs()
    runner.run(config(plugin), context(limit=-1.9))
    assert runner.run(config(Says(Status.OK)), context()).itself.status is Status.OK
    plugin.let_go.set()


def test_what_a_finding_says_has_an_end(tmp_path: Path) -> None:
    """nvidia-smi dmon's table is a job's file: 20,000 rows of as many GPUs were 4 MB in one message. A short
    one is told whole."""
    rows = "".join(f"{number} 1\n" for number in range(20_000))
    for text, last in ((rows, "…"), ("3 1\n", "samples")):
        (tmp_path / "dmon.log").write_text(f"#gpu sm\n{text}")
        (told,) = recorder.look([f"{tmp_path}/dmon.log"], recorder.Busy(), 10)
        report = Report(coverage=ALL_SEEN, findings=(told,))
        (finding,) = make_outcome(config(Says()), report, "", 0.0).findings
        assert len(finding.details) <= MAX_DETAILS_CHARS
        assert finding.details.endswith(last)


def test_severity_is_a_cap() -> None:
    """critical becomes warning; warning, ok and unknown stay."""
    for seen, told in [
        (Status.CRITICAL, Status.WARNING),
        (Status.WARNING, Status.WARNING),
        (Status.OK, Status.OK),
        (Status.UNKNOWN, Status.UNKNOWN),
    ]:
        outcome = CheckRunner().run(config(Says(seen), severity="warning"), context())
        assert outcome.findings[0].status is told


def test_configured_labels_and_a_subject_are_added() -> None:
    """The empty subject belongs to the check itself, so a kind cannot claim it."""
    outcome = CheckRunner().run(config(Says(subject=""), labels={"team": "six"}), context())
    assert outcome.findings[0].subject == "disks"
    assert outcome.findings[0].labels == {"team": "six"}


def test_interval_and_limit_come_from_the_file_then_the_kind_then_the_default() -> None:
    """In this order; zero is a value."""

    class Own(Says, frozen=True):
        EVERY = 300.0
        TIMEOUT = 5.0

    assert (get_interval_s(config(Says())), config(Says()).timeout_s) == (60.0, 30.0)
    assert (get_interval_s(config(Own())), config(Own()).timeout_s) == (300.0, 5.0)
    file = config(Own(), every=Duration(7), timeout=Duration(3))
    assert (get_interval_s(file), file.timeout_s) == (7.0, 3.0)


def test_what_leaves_a_run_is_plain_data() -> None:
    """A FilePath from the settings as subject, value or memory must not reach the store, nor any
    other type of ours."""

    class Paths(Check, frozen=True):
        def run(self, ctx: Context) -> Report:
            path = FilePath("/scratch")
            size, age = Size.parse("1TB"), Duration(90.0)
            values = {"mount": path, "limit": size, "age": age}
            found = Finding(subject=path, status=Status.OK, summary="", values=values)
            samples = (Sample(path, "x", size), Sample(path, "y", age))
            return Report(
                coverage=ALL_SEEN, findings=(found,), samples=samples, memory={path: [{"p": path}]}
            )

    report = CheckRunner().run(config(Paths()), context()).report
    assert report is not None
    assert report.memory is not None
    texts = [report.findings[0].subject, report.findings[0].values["mount"]]
    texts += [report.samples[0].subject, *report.memory, report.memory["/scratch"][0]["p"]]
    assert {type(t) for t in texts} == {str}
    assert {type(v) for v in report.findings[0].values.values()} == {str, int, float}
    assert {type(s.value) for s in report.samples} == {float}


@pytest.mark.parametrize("before", ["", "ssh west "])
def test_all_commands_of_another_cluster_ask_that_one(before: str) -> None:
    """Those that look and act, those within sentences, those to one user, and those about the check
    itself: a job of the same number here is somebody else's."""
    end = ActingCommand(owner=ADMINISTRATOR, argv=("scancel", "7"))
    found = Finding(
        subject="llm",
        status=Status.UNKNOWN,
        summary="so",
        commands=(look("scontrol show job {} | cat -v", "7"),),
        acts=(end,),
        guidance=Guidance(todo="End it: `scancel 7`"),
    )
    wish = Letter(
        id="a", user="u", subject="llm", severity="ok", summary="so", commands=(look("squeue"),)
    )
    check = CheckConfig(name="x", common=CheckCommon(kind="x"), plugin=Says(), before=before)
    report = Report(coverage=ALL_SEEN, findings=(found,), letters=(wish,))
    done = make_outcome(check, report, "", 0.0)
    assert done.report is not None
    (told,), (letter,) = done.report.findings, done.report.letters
    for one in (told, done.itself):
        assert [c.render() for c in one.commands] == [f"{before}scontrol show job 7 | cat -v"]
        assert one.guidance.todo == f"End it: `{before}scancel 7`"
    assert [c.render() for c in (*told.acts, *letter.commands)] == [
        f"{before}scancel 7",
        f"{before}squeue",
    ]
