"""Every command as a stranger types it: into a terminal, a pipe, a script, a plugin runner."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NoReturn

import pytest

from tests.channels.web import Web, answers
from tests.lab.smtp import SmtpServer
from tests.service.screen import Screen
from tests.service.watch import Watch

CONFIG = """\
checks:
  LAMP
  disk-with-a-name-of-some-length: {{kind: fs, paths: [/], warn: {{free: 1000PB}}}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""
COMMANDS = [
    ("run",), ("tick",), ("check",), ("status",), ("doctor",), ("plugins",), ("explain",),
    ("alerts",), ("alerts", "list"), ("alerts", "history"), ("alerts", "show"),
    ("alerts", "ack"), ("alerts", "silence"), ("alerts", "unsilence"),
    ("notify",), ("notify", "test"),
    ("config",), ("config", "init"), ("config", "check"), ("config", "show"), ("config", "schema"),
]  # fmt: skip
LOOKS = [
    ("status",),
    ("alerts", "list"),
    ("alerts", "history"),
    ("check", "lamp"),
    ("check", "disk-with-a-name-of-some-length"),
    ("doctor",),
    ("config", "check"),
]
ESCAPE = "\x1b"
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """After one pass: two alerts fire. One for all who only look, and start no service."""
    return after_one_pass(Watch(tmp_path_factory.mktemp("told"), no_service, None))


def after_one_pass(watch: Watch) -> Watch:
    watch.lamp(2)
    watch.configure(CONFIG)
    assert watch.say("tick").returncode == 0
    assert len(watch.book) == 2
    return watch


def no_service(*words: object, env: object = None) -> NoReturn:
    raise AssertionError("a test with a service wants a `watch` of its own")


@pytest.mark.parametrize("command", [(), *COMMANDS], ids=" ".join)
def test_help_is_there_for_every_command(watch: Watch, command: Sequence[str]) -> None:
    """Exit 0, on stdout, within 80 columns."""
    done = watch.say_bare(*command, "--help", COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(" ".join(("usage: sentinel", *command)))
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_help_names_every_command(watch: Watch) -> None:
    """What is not in the help does not exist for a stranger."""
    words = watch.say_bare("--help").stdout.split()
    assert {command[0] for command in COMMANDS} <= set(words)


@pytest.mark.parametrize("kind", ["exec", "fs", "job", "log", "memory", "slurm"])
def test_each_kind_tells_its_options(watch: Watch, kind: str) -> None:
    """`sentinel check KIND --help` needs neither a configuration nor what the kind looks at."""
    done = watch.say_bare("check", kind, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"sentinel check {kind}: ")
    assert "--" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("status",), ("alerts", "list"), ("alerts", "history"), ("check", "lamp"),
        ("tick", "--all"), ("doctor",), ("explain", "ALERT"), ("alerts", "show", "ALERT"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_json_is_one_document_and_nothing_else(told: Watch, command: Sequence[str]) -> None:
    """A script needs no more than `json.load`."""
    alert = told.book[0]["key"]
    done = told.say(*(alert if word == "ALERT" else word for word in command), "--json")
    assert json.loads(done.stdout)


def test_the_json_of_a_check_has_the_documented_form(told: Watch) -> None:
    """Names that scripts rely on."""
    answer = json.loads(told.say("check", "lamp", "--json").stdout)
    finding = answer["findings"][0]
    assert list(answer) == [
        "check",
        "kind",
        "status",
        "summary",
        "duration_s",
        "coverage",
        "findings",
    ]
    assert {"subject", "status", "summary", "values"} <= set(finding)
    assert (answer["check"], answer["kind"], answer["status"]) == ("lamp", "exec", "critical")


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (["fs", "--path", "/", "--warn", "free=1MB"], 0, "OK"),
        (["fs", "--path", "/", "--warn", "free=1000PB"], 1, "WARNING"),
        (["fs", "--path", "/", "--crit", "free=1000PB"], 2, "CRITICAL"),
        (["exec", "--command", "/bin/sh", "--command=-c", "--command", "exit 3"], 3, "UNKNOWN"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"], ["--nagios"]])
def test_the_exit_code_of_a_check_is_its_status(
    watch: Watch, options: list[str], code: int, word: str, form: list[str]
) -> None:
    """0 ok, 1 warning, 2 critical, 3 unknown, in every form; the word is in the first line or
    in `status`."""
    done = watch.say_bare("check", *options, *form)
    assert (done.returncode, done.stderr) == (code, "")
    if form == ["--json"]:
        assert json.loads(done.stdout)["status"] == word.lower()
    else:
        assert word in done.stdout.splitlines()[0]


def test_a_nagios_line_has_text_and_performance_data(watch: Watch) -> None:
    """`KIND STATUS - text | 'label'=value[unit][;warn[;crit]] …`."""
    done = watch.say_bare("check", "fs", "--path", "/", "--nagios")
    line = done.stdout.splitlines()[0]
    assert re.match(r"FS OK - .+ \| ('[^']+'=[\d.e+-]+[%Bs]?(;[\d.e+-]*){0,2}\s?)+$", line)
    assert re.search(r"'used_percent'=[\d.]+%;85;95\b", line)


def test_a_check_sends_nothing_and_leaves_nothing(watch: Watch) -> None:
    """No message, no state, no file: it may be run by anybody at any time."""
    watch.lamp(2)
    watch.configure(CONFIG)
    before = sorted(watch.folder.rglob("*"))
    assert watch.say("check", "lamp").returncode == 2
    assert sorted(watch.folder.rglob("*")) == before


WAITING = re.compile(r"^… \d+s: .*$", re.MULTILINE)
"""What a command says on a terminal from two seconds on, where the machine is slow."""


PASTED = "→ "
"""How a remedy of `doctor` begins: a command that is wrapped cannot be pasted."""


@pytest.mark.parametrize("command", LOOKS, ids=" ".join)
def test_colour_is_for_terminals_that_want_it_and_all_fits_80_columns(
    told: Watch, command: Sequence[str]
) -> None:
    """Tables fold. Colour on a terminal, not with NO_COLOR, not on a dumb one, not in a pipe."""
    with screen(told, *command) as glass:
        glass.wait()
    assert "…" not in WAITING.sub("", glass.text)
    if command == ("config", "check"):
        return  # a line of it is a path; it needs no colour
    lines = SGR.sub("", glass.text).splitlines()
    assert max(len(line) for line in lines if not line.startswith(PASTED)) <= 80
    with screen(told, *command, NO_COLOR="1") as plain:
        plain.wait()
    with screen(told, *command, TERM="dumb") as dumb:
        dumb.wait()
    assert ESCAPE in glass.text
    assert not re.search(r"\x1b\[[0-9;]*[349][0-7]m", plain.text)
    assert ESCAPE not in dumb.text
    done = told.say(*command)
    assert ESCAPE not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [*LOOKS, ("config", "schema")], ids=" ".join)
def test_a_reader_that_leaves_is_no_error(told: Watch, command: Sequence[str]) -> None:
    """`| head -1`: no word on stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    done = into(told, command, writer)
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.parametrize("command", LOOKS, ids=" ".join)
def test_without_standard_streams_the_answer_is_the_exit_code(
    told: Watch, command: Sequence[str]
) -> None:
    """Under cron and daemons all three may be closed; no file takes their numbers."""
    usual = told.say(*command).returncode
    argv = [sys.executable, "-m", "sentinel", *command, "-c", str(told.config)]
    script = f'exec "$@" <&- >&- 2>{told.folder}/err'
    done = subprocess.run(["sh", "-c", script, "sh", *argv], env=told.env, timeout=60, check=False)
    assert done.returncode == usual
    assert (told.folder / "err").read_text() == ""


def test_a_tick_without_standard_streams_harms_no_state(told: Watch) -> None:
    """A database that was opened as descriptor 1 would be printed into."""
    argv = [sys.executable, "-m", "sentinel", "tick", "--all", "-c", str(told.config)]
    script = 'exec "$@" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", script, "sh", *argv], env=told.env, timeout=60, check=True)
    assert len(told.status()["alerts"]) == 2
    assert len(told.book) == 2


@pytest.mark.parametrize(("command", "code"), [(("check", "lamp"), 3), (("status",), 70)])
def test_output_that_cannot_be_written_is_told(
    told: Watch, command: Sequence[str], code: int
) -> None:
    """A full disk behind `>` is no answer of a check, and no traceback."""
    full = os.open("/dev/full", os.O_WRONLY)
    done = into(told, command, full)
    os.close(full)
    assert done.returncode == code
    assert done.stderr == "sentinel: the output cannot be written: No space left on device\n"


def test_before_the_first_run_the_commands_say_so(watch: Watch) -> None:
    """Nothing has happened yet is an answer, not an error."""
    watch.configure(CONFIG)
    assert "has not run yet" in watch.say("status").stdout
    assert watch.say("alerts", "list").stdout == "no alerts\n"
    assert watch.say("alerts", "history").stdout == "no message was sent yet\n"
    assert watch.book == []


@pytest.mark.long
def test_an_alert_is_explained_by_its_id_its_beginning_or_a_messages_key(told: Watch) -> None:
    """Whatever a person has at hand: the list or a mail."""
    (line,) = told.told(check="lamp")
    alert = line["key"].rpartition("-")[0]
    for word in (alert, alert[:4], line["key"]):
        assert json.loads(told.say("explain", word, "--json").stdout)["alert"] == alert
    text = told.say("explain", alert).stdout
    assert "firing critical: lamp" in text
    assert "told book (firing)" in text


@pytest.mark.long
@pytest.mark.parametrize(("code", "strict"), [(0, 1), (2, 2), (3, 3)])
def test_a_tick_is_ok_unless_it_is_strict(watch: Watch, code: int, strict: int) -> None:
    """A timer that fails whenever an alert fires would be one more alert; `--strict` asks for it."""
    watch.lamp(code)
    watch.configure(CONFIG)
    assert watch.say("tick").returncode == 0
    assert watch.say("tick", "--all", "--strict").returncode == strict


@pytest.mark.long
def test_a_tick_runs_what_is_due_and_says_what_it_saw(watch: Watch) -> None:
    """One line a check; the second tick at once has only the one of every second to do."""
    told = after_one_pass(watch)
    told.config.write_text(told.config.read_text().replace("every: 1s", "every: 1h"))
    assert told.say("tick").stdout == ""
    lines = told.say("tick", "--all").stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == ["CRITICAL", "WARNING"]


def test_init_writes_a_file_that_is_good_as_it_stands(watch: Watch) -> None:
    """And never over one that is there."""
    assert watch.say_bare("config", "init", watch.config).returncode == 0
    assert watch.say("config", "check").returncode == 0
    before = watch.config.read_text()
    again = watch.say_bare("config", "init", watch.config)
    assert again.returncode == 73
    assert "sentinel.yaml" in again.stderr
    assert watch.config.read_text() == before
    assert watch.say("tick", "--all").returncode == 0


def test_a_test_message_tells_what_the_server_answered(watch: Watch, smtp: SmtpServer) -> None:
    """A line for each channel; 1 when one of them fails, and which."""
    watch.configure(
        """\
        channels:
          oncall: {{kind: email, to: [o@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
          book: {{kind: file, path: {folder}/none/book.jsonl}}
        """,
        port=smtp.port,
    )
    good = watch.say("notify", "test", "oncall")
    assert (good.returncode, good.stdout.splitlines()[0][:11]) == (0, "oncall: ok:")
    assert smtp.mails[0].message["Subject"].startswith("TEST lab")
    both = watch.say("notify", "test")
    assert both.returncode == 1
    assert [line.split(":")[0] for line in both.stdout.splitlines()] == ["oncall", "book"]
    assert "book: FAILED" in both.stdout
    none = watch.say("notify", "test", "nobody")
    assert none.returncode == 64
    assert "channels: oncall, book" in none.stderr


def test_a_test_message_in_doubt_fails_and_shows_the_answer(watch: Watch) -> None:
    """Nobody knows whether a chat took it that answers so; `expect` settles it."""
    chat = """\
        channels:
          chat: {{kind: mattermost, url: "http://localhost:{port}/hooks/x"{more}}}
        """
    with Web(answers(200, "queued for later")) as server:
        watch.configure(chat, port=server.port, more="")
        doubt = watch.say("notify", "test")
        watch.configure(chat, port=server.port, more=", expect: [{body: queued}]")
        sure = watch.say("notify", "test")
    assert doubt.returncode == 1
    assert doubt.stdout.startswith("chat: IN DOUBT: its answer (200 text/plain: queued for later)")
    assert (sure.returncode, sure.stdout[:9]) == (0, "chat: ok:")


def test_without_a_file_the_service_says_what_it_watches(watch: Watch) -> None:
    """This machine's disks, the terminal, where the state is; and that there is no Slurm."""
    watch.env.pop("SLURM_CONF", None)
    service = watch.start_bare("run")
    service.wait_for(lambda: "sentinel config init" in service.err, "the welcome")
    assert "no configuration file: watching this machine's disks" in service.err
    assert f"state in {watch.folder}/" in service.err
    assert service.terminate() == 0


def test_secrets_are_not_shown(watch: Watch) -> None:
    """`config show` is pasted into tickets."""
    watch.configure(
        "channels: {{hook: {{kind: webhook, url: {{env: HOOK}}}}, m: {{kind: email, to: [a@b.org], "
        "from: a@b.org, host: h, username: u, password: pass-phrase}}}}\n"
    )
    done = watch.say("config", "show", HOOK="https://hooks.example.org/T0/secret-path")
    assert done.returncode == 0, done.stderr
    assert "secret-path" not in done.stdout
    assert "pass-phrase" not in done.stdout


def screen(watch: Watch, *command: str, **changes: str) -> Screen:
    words = [*command, "-c", str(watch.config)]
    return Screen(words, watch.env, str(watch.folder), 80, **changes)


def into(watch: Watch, command: Sequence[str], stdout: int) -> subprocess.CompletedProcess[str]:
    """The command with its output into that descriptor."""
    where = [] if "schema" in command else ["-c", str(watch.config)]
    return subprocess.run(
        [sys.executable, "-m", "sentinel", *command, *where],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=watch.env,
        cwd=watch.folder,
        timeout=60,
        check=False,
    )
