"""`sentinel report`: what people and programs read of the ledger of runs."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel import cli
from sentinel.cli import report
from sentinel.cli.report_past import PAST_HINTS
from sentinel.clock import SystemClock
from sentinel.core.model import Batch
from sentinel.core.run_ledger import LedgerRow
from sentinel.report.documents import list_csv_rows
from sentinel.report.gpu_time import CLASSES
from sentinel.report.run_account import RunAccount, account_run
from sentinel.report.run_report import RunReport
from sentinel.report.text_lines import render_report, render_sentence
from sentinel.wiring.app import UsageError
from tests.report.ledger_rows import EPOCH, at, held, saved, span, steps
from tests.store.nouns import alert

LIFE = (
    held(0, 170, "1", cause="software", submitted=-5),
    span("startup", 0, 10, "1"),
    steps(10, 160, 0, 150, "1"),
    span("crashed", 160, 170, "1"),
    saved(110, 100),
    held(180, 290, "2", submitted=-4, cause="gpu"),
    span("startup", 180, 190, "2"),
    steps(190, 290, 100, 200, "2"),
    saved(250, 160),
)
"""It dies after a checkpoint, redoes 50 steps, and dies again."""

GOLDEN = """\
Run llm held 37.3 GPU-hours. 57% of them went into the model, and another 14%
into steps that no checkpoint holds yet. The largest part of the rest: steps
lost and redone (18% of all its GPU-hours).
  steps in the model              ███████████░░░░░░░░░   57%       21.3 GPU-h
  steps since the last checkpoint ███░░░░░░░░░░░░░░░░░   14%        5.3 GPU-h
  steps lost and redone           ████░░░░░░░░░░░░░░░░   18%        6.7 GPU-h
  start-up                        █░░░░░░░░░░░░░░░░░░░    7%        2.7 GPU-h
  crashed, GPUs still held        █░░░░░░░░░░░░░░░░░░░    4%        1.3 GPU-h
  goodput 57%, ETTR 55%
  besides: 10m without a job
  interruptions: 2 (software 1, GPU 1)
    170 min       9.3 GPU-h  software, went on by itself
    290 min       0.0 GPU-h  GPU
"""


def minutes_text(moment: int) -> str:
    return f"{moment // 60_000_000 - EPOCH // 60} min"


def account_runs(
    rows: Sequence[LedgerRow], wanted: str, since: int, until: int
) -> list[RunAccount]:
    return [one.account for one in report.report_named_runs(rows, wanted, since, until)]


def render_account(
    account: RunAccount, format_time: Callable[[int], str], *, bars: bool = True
) -> Iterator[str]:
    """Without the period before and without what would have saved."""
    return render_report(RunReport(account=account), format_time, bars=bars)


def test_an_end_after_which_a_person_submitted_says_so() -> None:
    """An hour later, and its steps go on."""
    later = (
        held(0, 100, "1", cause="gpu"),
        held(160, 300, "2", submitted=155),
        steps(170, 290, 0, 120, "2"),
    )
    (account,) = account_runs(later, "", at(-10), at(400))
    assert "GPU, started again by a person" in "\n".join(render_account(account, minutes_text))


def test_what_a_person_reads() -> None:
    """A sentence, then a line for each part; all fit into 80 columns."""
    (account,) = account_runs(LIFE, "", at(-10), at(400))
    lines = list(render_account(account, minutes_text))
    assert "\n".join(lines) + "\n" == GOLDEN
    assert max(map(len, lines)) <= 80


def test_without_checkpoints_the_sentence_says_what_to_add() -> None:
    """Not a share of nothing."""
    rows = (held(0, 60), steps(0, 60, 0, 60))
    (account,) = account_runs(rows, "llm", at(-10), at(400))
    assert next(iter(render_account(account, minutes_text, bars=False))) == (
        "Run llm held 8.0 GPU-hours. How much of that went into the model is not known: no complete "
        "checkpoint of it has been seen. If the configuration has no check with `kind: checkpoint` and this run "
        "as its `job`, add one; if it has, that check has seen none yet (is its path right?)."
    )


def test_what_a_later_start_shows_is_told_as_what_the_log_shows() -> None:
    """No checkpoint is known, but a second job went on from step 60."""
    rows = (held(0, 60), steps(0, 60, 0, 60), held(60, 120, "2"), steps(60, 120, 60, 120, "2"))
    (account,) = account_runs(rows, "llm", at(-10), at(400))
    sentence = next(iter(render_account(account, minutes_text, bars=False)))
    assert sentence.startswith(
        "Run llm held 16.0 GPU-hours. As far as its log shows, 50% of them went into the model; the true share is "
        "not known: no complete checkpoint"
    )


def test_a_name_that_nothing_has_is_an_error() -> None:
    """Which names there are is said; a pattern names several."""
    assert len(account_runs(LIFE, "l*", at(-10), at(400))) == 1
    with pytest.raises(UsageError, match="there are: llm"):
        account_runs(LIFE, "lm", at(-10), at(400))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration whose state has the ledger of a run of the last hours."""
    from sentinel.store.opening import open_store

    path = tmp_path / "sentinel.yaml"
    path.write_text(f"state: {tmp_path}/state\n")
    now = SystemClock().now()
    shift = now.wall - at(300)

    def moved(row: LedgerRow) -> LedgerRow:
        from msgspec.structs import replace

        return replace(row, began=row.began + shift, ended=row.ended + shift)

    store = open_store(str(tmp_path / "state"), now).store
    store.take_lead("test", now)
    store.commit(Batch(at=now, ledger=tuple(map(moved, LIFE)), alerts=(alert("x"),)))
    store.close()
    return path


def test_what_programs_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the names of the interface, and its parts add up; CSV has the same numbers."""
    assert cli.main(["report", "--json", "-c", str(file)]) == 0
    document = json.loads(capsys.readouterr().out)
    (run,) = document["runs"]
    hours = run["gpu_hours"]
    assert set(hours) == {"held", *CLASSES}
    assert sum(hours[name] for name in CLASSES) == pytest.approx(hours["held"])
    assert run["goodput"] == pytest.approx(hours["useful"] / hours["held"], abs=1e-5)
    assert {"queued", "not_submitted", "maintenance"} <= set(run["calendar_hours"])
    assert {"at", "cause", "nodes", "lost_gpu_hours", "ended_by"} <= set(run["interruptions"][0])
    assert cli.main(["report", "llm", "--csv", "-c", str(file)]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["run"], float(row["useful"])) == ("llm", hours["useful"])
    assert int(row["interruptions"]) == len(run["interruptions"])


def test_the_period_before_and_what_would_have_saved(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the last 2 hours and 40 minutes; the job before them is in the period before."""
    assert cli.main(["report", "--json", "--since", "160m", "-c", str(file)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["before"]["gpu_hours"]["held"] == pytest.approx(140 * 8 / 60, abs=0.1)
    assert set(run["before"]) == {"since", "until", "goodput", "gpu_hours"}
    assert run["grew_most"] == "crashed"
    (saving,) = run["savings"]
    assert set(saving) == {"kind", "text", "gpu_hours", "evidence"}
    assert (saving["kind"], saving["evidence"]["ends"]) == ("next_job", 1)
    assert saving["gpu_hours"] == pytest.approx(10 * 8 / 60)
    assert cli.main(["report", "--since", "160m", "-c", str(file)]) == 0
    told = capsys.readouterr().out
    assert "the period before: goodput 71%, 18.7 GPU-hours; grew most: crashed" in told
    assert "would have saved most:\n    a next job in the queue" in told
    assert cli.main(["report", "--json", "-c", str(file)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["before"], run["grew_most"]) == (None, None)


def test_links_where_the_address_of_the_page_is_known(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each incident that is shown has the address of its hour; without `web.url` none has."""
    assert cli.main(["report", "--json", "-c", str(file)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [one["url"] for one in run["interruptions"]] == ["", ""]
    secret = "0123456789abcdef"
    web = f"web: {{listen: '127.0.0.1:9650', url: 'https://s.example/', secret: {secret}}}\n"
    file.write_text(file.read_text() + web)
    assert cli.main(["report", "--json", "-c", str(file)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    addresses = [one["url"] for one in run["interruptions"]]
    start = "https://s.example/jobs/one?subject=llm&at="
    assert all(one.startswith(start) and one.endswith("&span=3600") for one in addresses)
    assert cli.main(["report", "-c", str(file)]) == 0
    told = capsys.readouterr().out
    assert all(f"      {one}\n" in told for one in addresses)


def test_only_the_time_that_was_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last hour and a half: 80 minutes of the second job."""
    assert cli.main(["report", "--json", "--since", "90m", "-c", str(file)]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["gpu_hours"]["held"] == pytest.approx(80 * 8 / 60, abs=0.01)


def test_a_pipe_gets_rows_without_bars(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names as in the JSON, between tabs; nothing is an error where nothing ran."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert cli.main(["report", "-c", str(file)]) == 0
    told = capsys.readouterr().out
    assert "useful\t21.3\t57%" in told.splitlines()
    assert "█" not in told
    assert cli.main(["report", "--since", "1s", "-c", str(file)]) == 0
    assert capsys.readouterr().out.startswith("no training held anything in the last 1s")
    assert cli.main(["report", "--since", "long", "-c", str(file)]) == 64


def test_the_help_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """What it tells, and every option."""
    with pytest.raises(SystemExit):
        cli.main(["report", "--help"])
    told = capsys.readouterr().out
    assert all(word in told for word in ("RUN", "--since", "--json", "--csv", "default: 7d"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [("=1+1", "'=1+1"), ("@llm", "'@llm"), ("a\x1b[2Jb", "a\\x1b[2Jb"), ("llm", "llm")],
)
def test_a_name_of_a_user_is_text_in_the_table(name: str, shown: str) -> None:
    """A spreadsheet takes no name for a formula, and a terminal obeys none."""
    rows = [replace(row, run=name) for row in (held(0, 10), steps(0, 10, 0, 100))]
    _, (_, run, *_) = list_csv_rows(account_runs(rows, "", at(-10), at(20)))
    assert run == shown


@pytest.mark.parametrize(
    ("rows", "sentence", "hours"),
    [
        ([held(0, 60, gpus=0), steps(0, 60, 0, 60)], "held no GPUs, according to Slurm.", ""),
        ([span("queued", 0, 60, "")], "held no GPUs, according to Slurm.", "0.0"),
        ([held(0, 60), span("startup", 0, 60), saved(0, 0)], "its log has not been seen to advance.", "8.0"),
        ([held(0, 60), steps(0, 60, 0, 60)], "no complete checkpoint of it has been seen.", "8.0"),
        (
            [held(0, 60), steps(0, 6, 0, 6), span("blind", 6, 60), saved(6, 6)],
            "10% of them went into the model. What the other 90% went into is not known: sentinel was not running, or the log of the run was silent.",
            "8.0",
        ),
        (
            [held(0, 60), steps(0, 36, 0, 36), span("hung", 36, 60), saved(36, 36)],
            "60% of them went into the model. The other 40%: hung.",
            "8.0",
        ),
        (
            [held(0, 60), steps(0, 36, 0, 36), span("hung", 36, 54), span("startup", 54, 60), saved(36, 36)],
            "60% of them went into the model. The largest part of the rest: hung (30% of all its GPU-hours).",
            "8.0",
        ),
        (
            [held(0, 60), steps(0, 60, 1, 61), saved(0, 0)],
            "None of them went into the model yet: 100% went into steps that no checkpoint holds.",
            "8.0",
        ),
    ],
)  # fmt: skip
def test_the_sentence_and_the_table_claim_nothing_that_is_not_known(
    rows: list[LedgerRow], sentence: str, hours: str
) -> None:
    """A check may be there and have seen nothing yet. Hours are empty in the table if the job ran, and
    nobody tells on how many GPUs."""
    account = account_run("llm", rows, at(0), at(60))
    assert sentence in render_sentence(account)
    head, cells = list_csv_rows([account])
    assert len(head) == len(cells)
    assert cells[head.index("held")] == hours


def test_of_past_logs_nobody_says_that_sentinel_was_not_running() -> None:
    """Of `--from`, where it never ran."""
    rows = [held(0, 60), steps(0, 6, 0, 6), span("blind", 6, 60), saved(6, 6)]
    told = render_sentence(account_run("llm", rows, at(0), at(60)), PAST_HINTS)
    assert told.endswith("is not known: the files that --from names tell nothing of it.")


def test_no_part_is_shown_as_nothing_or_as_all() -> None:
    """A second of a hang in a year is less than a percent, and the rest is not all of it."""
    rows = (
        held(0, 10_000), steps(0, 10_000, 0, 100), span("hung", 5, 5.5), saved(10_000, 100),
    )  # fmt: skip
    (account,) = account_runs(rows, "llm", at(-10), at(20_000))
    told = "\n".join(render_account(account, minutes_text))
    assert "<1%" in told
    assert ">99%" in told


def test_the_example_of_the_page_is_what_is_printed() -> None:
    """With the period before, which lost less, and what would have saved most."""
    later = [
        replace(
            row,
            first_step=None if row.first_step is None else row.first_step + 500,
            last_step=None if row.last_step is None else row.last_step + 500,
        )
        for row in LIFE
    ]
    before = [
        held(-300, 0, "0", cause="time_limit"),
        span("startup", -300, -290, "0"),
        steps(-290, 0, 210, 500, "0"),
        saved(0, 500),
    ]
    (one,) = report.report_named_runs([*before, *later], "", at(0), at(300))
    assert one.before is not None
    lines = list(
        render_report(one, lambda moment: f"at {9 + (moment - at(0)) // 3_600_000_000:02}:50 UTC")
    )
    page = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
    assert "```\n" + "\n".join(lines) + "\n```\n" in page
