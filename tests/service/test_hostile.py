"""What users of the cluster write reaches people, and obeys nobody."""

import json
import re
from html.parser import HTMLParser

import pytest

from tests.lab.cluster import Lab
from tests.lab.smtp import Mail, SmtpServer
from tests.service.screen import Screen
from tests.service.watch import Watch

COLOUR, TITLE, CLEAR = "\x1b[38;5;199m", "\x1b]0;owned\x07", "\x1b[2J"
EVIL = f"[red]{COLOUR}{TITLE}{CLEAR}<b>bold</b>\r\nBcc: evil@example.org\r\n\r\n\u202eleft"
"""Markup of rich, colour, title and erasure of a terminal, HTML, a header, writing backwards."""
SHOWN = r"[red]\x1b[38;5;199m\x1b]0;owned"
"""How its beginning is read; tables fold the rest."""
OBEYED = ("\x1b[38;5;199m", "\x1b]", "\x1b[2J", "\x07", "\u202e")
"""What a terminal would obey and nothing of sentinel's own prints."""

SGR = re.compile(r"\x1b\[[0-9;]*m")

CONFIG = """\
checks:
  training: {{kind: job, every: 1s, for: 0s, name: {name}}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
  screen: {{kind: console}}
  oncall: {{kind: email, to: [ops@example.org], from: s@example.org, host: localhost, port: {port}, security: none}}
"""


@pytest.mark.parametrize(
    "name",
    [
        "evil\n1 1 1 N/A 1 N/A N/A node-0|root;root;main;RUNNING;None;1:00;1;(null)|flagship|(null)|/;sh.",
        "evil\n999|root|RUNNING|flagship",
        "evil\nflagship",
        "flagship\n",
        "flagship ",
        "evil%j%i\tflagship\x1f",
    ],
)
def test_a_forged_row_changes_nothing_but_its_own(night: Watch, fresh: Lab, name: str) -> None:
    """With and without that job in the queue the same is said about all the others. Of the name `train`
    Slurm may still remember a job of another test, and forget it in between."""
    other = fresh.sbatch("exec sleep 300", name="other")
    fresh.wait_state(other, "RUNNING")
    before = {what: verdict(night, what) for what in ("flagship", "other")}
    job = fresh.sbatch("exec sleep 300", name=name)
    fresh.wait_state(job, "RUNNING")
    assert {what: verdict(night, what) for what in ("flagship", "other")} == before
    assert (before["flagship"][0], before["other"][0], verdict(night, name)[0]) == (2, 0, 0)


@pytest.mark.long
def test_hostile_text_is_inert_wherever_it_comes_out(
    night: Watch, fresh: Lab, smtp: SmtpServer
) -> None:
    """A job's name and its output on the terminal of the service and of each command, in the
    mail's headers, text and HTML, and in the book."""
    night.configure(CONFIG, name=json.dumps(EVIL), port=smtp.port)
    (fresh.work / "evil").write_text(EVIL, newline="")
    job = fresh.sbatch("cat evil; sleep 4; exit 3", name=EVIL)
    fresh.wait_state(job, "RUNNING")
    with screen(night, "run", "-c", night.config) as service:
        (mail,) = smtp.wait(1)
        service.wait_for("sentinel explain")
        (told,) = (line for line in night.book if line["check"] == "training")
        for words in (
            ["check", "job", "--name", EVIL],
            ["check", "training"],
            ["status"],
            ["alerts", "list"],
            ["alerts", "history"],
            ["explain", told["key"]],
        ):
            assert_inert(shown(night, *words))
    assert_inert(service.text)
    assert_inert_mail(mail)
    assert "exit code 3" in told["summary"]


@pytest.mark.parametrize("words", [["--path", EVIL], ["--warn", EVIL], [f"--{EVIL}", "x"], [EVIL]])
def test_a_hostile_command_line_is_inert_in_its_own_complaint(
    watch: Watch, words: list[str]
) -> None:
    """A name that somebody pastes from a queue does not command the terminal."""
    with screen(watch, "check", "fs", *words) as glass:
        assert glass.wait() != 0
    assert_inert(glass.text)


def test_a_hostile_configuration_is_inert_in_its_own_complaint(watch: Watch) -> None:
    """Keys, values and names of kinds, with the place where they stand."""
    watch.configure(
        "checks:\n  x: {kind}\n  {key}: 5\n", kind=json.dumps({"kind": EVIL}), key=json.dumps(EVIL)
    )
    with screen(watch, "config", "check", "-c", watch.config) as glass:
        assert glass.wait() == 2
    assert_inert(glass.text)


def verdict(night: Watch, name: str) -> tuple[int, str]:
    done = night.say_bare("check", "job", "--name", name, "--json")
    answer = json.loads(done.stdout)
    moving = r" for [^,]*| [0-9]+[smhd]( [0-9]+[smhd])? ago| at [0-9]{2}:[0-9]{2} \w+"
    return done.returncode, re.sub(moving, "", answer["summary"])


def screen(watch: Watch, *words: object) -> Screen:
    """So wide that no table folds the text."""
    return Screen(words, watch.env, str(watch.folder), columns=1000)


def shown(night: Watch, *words: str) -> str:
    with screen(night, *words, *([] if words[-1] == EVIL else ["-c", str(night.config)])) as glass:
        glass.wait()
    return glass.text


def assert_inert(text: str) -> None:
    """It is there to be read, and nothing in it is there to be obeyed."""
    assert SHOWN in text, text
    for what in OBEYED:
        assert what not in text, text
    bare = SGR.sub("", text).replace("\r\n", "\n")
    assert "\x1b" not in bare, text
    assert "\r" not in bare, text


def assert_inert_mail(mail: Mail) -> None:
    assert mail.recipients == ["ops@example.org"]
    assert mail.message["Bcc"] is None
    head = mail.raw.partition(b"\r\n\r\n")[0]
    assert b"\x1b" not in head
    assert not re.search(rb"^Bcc", head, re.MULTILINE)
    assert SHOWN in mail.message["Subject"]
    plain, html = (mail.message.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert html is not None
    assert_inert(plain.get_content())
    page = Page()
    page.feed(html.get_content())
    assert_inert("".join(page.text))
    assert "b" not in page.tags


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)
