"""What hands type without a look at the manual: groups alone, words without their group, all checks."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.cli import expand_words, main
from tests.init.test_init import Hook
from tests.lab.fuse import Fuse
from tests.slurm.answers import PLAIN_JOB

Say = Callable[[str], tuple[int, str]]

CONFIG = """\
state: {folder}/state
cluster: lab
checks:
  root: {{kind: fs, paths: [{folder}], warn: {{used: 100%}}, crit: {{used: 100%}}}}
  bad: {{kind: exec, command: [sh, -c, "echo broken; exit 2"]}}
channels: {{book: {{kind: file, path: {folder}/book}}}}
"""
DESK = '{kind: webhook, url: "URL"}'


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """What a command line prints, and its exit code; an alert of the check `bad` fires."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(CONFIG.format(folder=tmp_path))
    monkeypatch.setenv("SENTINEL_CONFIG", str(file))
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str]:
        try:
            code = main(line.split())
        except SystemExit as error:
            code = int(error.code or 0)
        shown = capsys.readouterr()
        return code, "\n".join(
            text for text in (shown.out + shown.err).splitlines() if "configuration: " not in text
        )

    call("tick")
    return call


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("alerts", "alerts list"),
        ("nodes --json", "nodes list --json"),
        ("gpus -c x.yaml", "gpus list -c x.yaml"),
        ("diag", "diag list"),
        ("cron", "cron status"),
        ("nodes list n1", "nodes list n1"),
        ("nodes --help", "nodes --help"),
        ("silences", "alerts silences"),
        ("unsilence bad", "alerts unsilence bad"),
        ("ack bad --note x", "alerts ack bad --note x"),
        ("silence bad --for 2h", "alerts silence bad --for 2h"),
        ("breaker status", "nodes breaker status"),
        ("status", "status"),
        ("", ""),
    ],
)
def test_words_that_are_left_out_are_meant(line: str, meant: str) -> None:
    assert expand_words(line.split()) == meant.split()


def test_a_silence_is_listed_and_ended_by_the_name_of_its_check(say: Say) -> None:
    """All that are about it; one about all nodes is none of them."""
    assert say("silences") == (0, "no silences")
    for what in ("bad", "bad", "node=n*"):
        assert say(f"silence {what} --for 2h")[0] == 0
    rows = json.loads(say("silences --json")[1])
    assert [row["match"] for row in rows] == ["check=bad", "check=bad", "node=n*"]
    code, text = say("unsilence bad")
    assert (code, text.count(rows[0]["silence"]), "ended" in text) == (0, 1, True)
    assert [r["match"] for r in json.loads(say("silences --json")[1])] == ["node=n*"]
    assert "no silence 'bad' is in force" in say("unsilence bad")[1]


def test_a_quiet_tick_prints_nothing(say: Say) -> None:
    """As cron wants it; without the option each check has a line."""
    assert say("tick --all --quiet") == (0, "")
    assert "CRITICAL bad: broken" in say("tick --all")[1]


def test_all_checks_at_once(say: Say) -> None:
    code, text = say("check --all")
    assert code == 2
    assert [line.split()[:2] for line in text.splitlines()] == [
        ["OK", "root:"],
        ["CRITICAL", "bad:"],
    ]
    code, text = say("check --all --nagios")
    assert (code, text.splitlines()[0]) == (2, "SENTINEL CRITICAL - 1 of 2 checks: bad")
    code, text = say("check --all --json")
    assert [row["status"] for row in json.loads(text)] == ["ok", "critical"]
    assert say("check --all root") == (
        64,
        "sentinel: --all runs every configured check; leave out root",
    )


def test_thresholds_of_other_plugins_are_answered_with_ours(say: Say) -> None:
    """-c is the file here: 10% is no name of one."""
    code, text = say("check fs -w 20% -c 10% --nagios")
    assert code == 3
    assert "sentinel check fs --path / --warn free=20% --crit free=10%" in text


def test_a_kind_without_what_it_needs_says_what_and_where_all_is_told(say: Say) -> None:
    assert say("check du") == (
        64,
        "sentinel: --path: is missing; expected a list: Absolute paths of the trees.\n"
        "usage: sentinel check du --path PATH\n"
        "all options: sentinel check du --help",
    )
    assert say("check clean --root /scratch")[1].endswith(
        "usage: sentinel check clean --root ROOT --match MATCH --older-than OLDER_THAN\n"
        "all options: sentinel check clean --help"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("check log", "a log check needs --path, or --job whose output is watched"),
        (
            "check service",
            "name what must live: --process like munged, or --unit like sssd.service",
        ),
        (
            "check job",
            "a job check needs --name (exact), --match (regex), a size (--min-gpus, --min-nodes) or --user",
        ),
    ],
)
def test_what_a_kind_needs_is_named_as_it_is_typed(say: Say, line: str, said: str) -> None:
    """The same sentence names the setting where a file is wrong."""
    code, text = say(line)
    assert (code, text[: len("sentinel: ") + len(said)]) == (64, f"sentinel: {said}")
    assert text.endswith(f"\nall options: sentinel {line} --help")


def test_numbers_for_nagios_have_their_limits(say: Say) -> None:
    """https://nagios-plugins.org/doc/guidelines.html#AEN200: 'label'=value[UOM];[warn];[crit]."""
    first = say("check root --nagios")[1]
    assert "%;100;100 'free_bytes'=" in first
    assert "warn_percent" not in first


def test_what_is_watched_is_not_added_again(say: Say, tmp_path: Path) -> None:
    """Twice the same is once, and another directory is added."""
    file = tmp_path / "sentinel.yaml"
    before = file.read_text()
    assert say(f"add disk {tmp_path}") == (
        0,
        f"{tmp_path} is watched by the check root already; the file is as it was",
    )
    assert file.read_text() == before
    assert say("add disk /usr")[0] == 0
    once = file.read_text()
    assert once != before
    assert "already" in say("add disk /usr")[1]
    assert file.read_text() == once


def test_an_id_is_looked_up_and_a_pattern_is_meant(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`add job 4711` watches the job of that number by its name; `swe*` all whose names begin so."""
    rows = [replace(PLAIN_JOB, id="4711", job_id="4711", name="llama-8b", user="ann")]
    monkeypatch.setattr(
        "sentinel.cli.add.job_rows", lambda _client, word: rows if word == "4711" else []
    )
    file = tmp_path / "sentinel.yaml"
    code, text = say("add job 4711")
    assert (code, "job 4711 is llama-8b of ann" in text) == (0, True)
    assert "    name: llama-8b\n    users: [ann]\n" in file.read_text()
    assert say("add job 4711")[1].endswith("already; the file is as it was")
    code, text = say("add job 4712")
    assert (code, "Slurm knows no job 4712" in text) == (64, True)
    assert say("add job swe-?*")[0] == 0
    assert file.read_text().count('match: "swe-..*"') == 2
    for twice in ("swe-?*", "swe-12"):
        assert "is watched by the check swe already" in say(f"add job {twice}")[1]
    before = file.read_text()
    assert say("add job swe")[0] == 0
    assert file.read_text() != before


def test_what_was_added_is_removed_by_the_word_that_added_it(say: Say, tmp_path: Path) -> None:
    """A job with its log, a path, an address; what is not there is answered with what is."""
    file = tmp_path / "sentinel.yaml"
    before = file.read_text()
    assert say("add job llama-8b")[0] == 0
    code, text = say("remove llama-8b")
    assert (code, text.count(": removed checks.llama-8b")) == (0, 2)
    assert file.read_text() == before
    for word, thing in (("swe*", "job swe*"), ("/usr", "disk /usr")):
        assert say(f"add {thing}")[0] == 0
        assert say(f"remove {word}")[0] == 0
        assert file.read_text() == before
    code, text = say("remove rot")
    assert (code, "is called 'rot' (did you mean 'root'?)" in text) == (64, True)
    code, text = say("remove book")
    assert (code, "no channel is left: nobody is told" in text) == (0, True)
    assert "channels: {}" in file.read_text()


def test_a_channel_that_routes_name_is_not_removed(say: Say, tmp_path: Path) -> None:
    """The file would have an error: it is named, with its line, and nothing is changed."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(file.read_text() + "routes: [{to: [book]}]\n")
    before = file.read_text()
    code, text = say("remove book")
    assert (code, "(as it would be):" in text) == (78, True)
    assert "routes[0].to[0]: there is no channel 'book'" in text
    assert file.read_text() == before


def test_one_of_several_addresses_or_paths_is_removed(say: Say, tmp_path: Path) -> None:
    """The others stay; with the last one the channel goes."""
    file = tmp_path / "sentinel.yaml"
    mail = "  mail: {kind: email, to: [a@b.de, c@d.de], from: a@b.de, host: h}\n"
    file.write_text(
        file.read_text().replace("channels: {book:", f"channels:\n{mail}  book: {{book:")
    )
    file.write_text(
        file.read_text().replace("{book: {kind: file", "{kind: file").replace("book}}", "book}")
    )
    assert "removed c@d.de from channels.mail.to" in say("remove c@d.de")[1]
    assert "to: [a@b.de]" in file.read_text()
    assert "already" in say("add mail a@b.de")[1]
    assert "removed channels.mail" in say("remove a@b.de")[1]


def test_a_webhook_is_added_once_and_only_if_it_answers_as_one(say: Say, tmp_path: Path) -> None:
    """What answers 200 to everything with a page is a front page or a login."""
    file, before = tmp_path / "sentinel.yaml", (tmp_path / "sentinel.yaml").read_text()
    with Hook(200, b"<!DOCTYPE html><title>Welcome</title>") as hook:
        code, text = say(f"add webhook {hook.url}")
        assert (code, "answered with a web page, as a login or a front page does" in text) == (
            69,
            True,
        )
    assert file.read_text() == before
    with Hook(200) as hook:
        assert say(f"add webhook {hook.url}")[0] == 0
        assert "already; the file is as it was" in say(f"add webhook {hook.url}")[1]
        assert len(hook.heard) == 1
        assert "removed channels.webhook" in say(f"remove {hook.url}")[1]
    assert say("add webhook example.org/x") == (
        64,
        "sentinel: example.org/x is no address of a webhook; one begins with https:// or http://",
    )


def test_a_webhook_that_answers_a_pass_with_a_page_is_told_elsewhere(
    say: Say, tmp_path: Path
) -> None:
    """A service that moved, or the login of a network, answers 200 to everything. What was sent
    there is not sent again, since it may have arrived; that nobody may read it is told once."""
    file, book = tmp_path / "sentinel.yaml", tmp_path / "book"
    with Hook(200, b"<!DOCTYPE html><title>Sign in</title>") as hook:
        desk = f"desk: {DESK}".replace("URL", hook.url)
        file.write_text(file.read_text().replace("channels: {", f"channels: {{{desk}, "))
        for _ in range(3):
            say("tick --all")
    told = [json.loads(line) for line in book.read_text().splitlines()]
    (one,) = [t for t in told if t["subject"] == "channel desk"]
    assert (one["reason"], one["severity"]) == ("firing", "warning")
    assert "probably does not deliver: it answered with a web page" in one["summary"]
    assert "it answered with a web page" in " ".join(say("explain bad")[1].split())
    keys = [json.loads(body)["key"] for body in hook.heard]
    assert len(keys) == len(set(keys)) > 0


def test_a_webhook_that_answers_a_pass_shortly_is_no_trouble(say: Say, tmp_path: Path) -> None:
    """The healthy one; the doubt ends with its first plain answer."""
    file, book = tmp_path / "sentinel.yaml", tmp_path / "book"
    with Hook(200, b"ok") as hook:
        desk = f"desk: {DESK}".replace("URL", hook.url)
        file.write_text(file.read_text().replace("channels: {", f"channels: {{{desk}, "))
        say("tick --all")
        assert len(hook.heard) > 0
    assert "channel desk" not in book.read_text()


def test_a_look_by_hand_says_where_the_service_said_something_else(
    say: Say, tmp_path: Path
) -> None:
    """It knows the looks before, one look does not; machines read the look alone."""
    assert "this is one look" not in say("check bad")[1]
    file = tmp_path / "sentinel.yaml"
    file.write_text(file.read_text().replace("echo broken; exit 2", "echo well"))
    code, text = say("check bad")
    assert code == 0
    assert "sentinel: this is one look; the pass of " in text
    assert "said critical: broken (sentinel explain bad -c " in text
    for form in ("--json", "--nagios"):
        assert "one look" not in say(f"check bad {form}")[1]


def test_a_look_by_hand_says_that_nobody_was_told_yet(say: Say, tmp_path: Path) -> None:
    """What is wrong for both, and waits in the service, is no message that got lost."""
    file = tmp_path / "sentinel.yaml"
    late = 'kind: exec, for: 1h, command: [sh, -c, "echo late; exit 2"]'
    file.write_text(file.read_text().replace("channels:", f"  late: {{{late}}}\nchannels:"))
    say("tick")
    assert "has told nobody yet: late (sentinel explain late -c " in say("check late")[1]
    assert "told nobody" not in say("check bad")[1]


@pytest.mark.timeout(60)
@pytest.mark.long
def test_a_look_by_hand_does_not_wait_for_the_disk_of_the_state(
    say: Say, tmp_path: Path, as_root: None
) -> None:
    """Nagios asks too, whatever the state is on."""
    with Fuse(tmp_path / "state") as fuse:
        fuse.hold("lookup", "getattr", "open", "statfs", "opendir")
        found = say("check bad --nagios")[0]
        fuse.release()
    assert found == 2
