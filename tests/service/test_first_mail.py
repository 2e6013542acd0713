"""From a fresh account by `sentinel init` alone to the mail about a training that died."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.accounts import User
from tests.lab.client import Done
from tests.lab.cluster import Lab
from tests.lab.cron import NONE, cron
from tests.lab.smtp import Mail, SmtpServer
from tests.lab.waiting import wait_until
from tests.stacks.training import as_user

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]

TWO_MINUTES = 120.0
TRAINING = """\
#!/bin/sh
for i in 98 99 100; do echo "iteration $i/ 500000 | lm loss: 2.1E+00"; done
until [ -e {go} ]; do sleep 0.2; done
{ending}
"""
PROGRAM = """\
#!/bin/sh
exec {setpriv} --inh-caps=+dac_read_search --ambient-caps=+dac_read_search \\
    {python} -I -c 'import sys; sys.argv[0] = "{program}"; from sentinel.cli import main; sys.exit(main())' "$@"
"""


class Newcomer:
    """An ordinary user of the lab with a fresh account, and the command `sentinel` as everybody's,
    from cron and on nodes too; a mail server that the nodes reach."""

    def __init__(self, lab: Lab, smtp: SmtpServer) -> None:
        self.lab, self.smtp = lab, smtp
        self.user: User = lab.user("newcomer")
        self.go = lab.work / "go"
        self._program = self._installed(lab.folder)

    def _installed(self, folder: Path) -> str:
        """Wherever this Python lies, they may read it, and nothing else that is not theirs."""
        setpriv, program = folder / "setpriv", folder / "sentinel"
        if not program.exists():
            self.lab.ask(["cp", "/usr/bin/setpriv", str(setpriv)])
            self.lab.ask(["setcap", "cap_dac_read_search+ep", str(setpriv)])
            text = PROGRAM.format(setpriv=setpriv, python=sys.executable, program=program)
            program.write_text(text)
            program.chmod(0o755)
        return str(program)

    def sentinel(self, *words: str, within: tuple[str, ...] = ()) -> Done:
        """As they type it."""
        argv = [*within, *as_user(self.user, [self._program, *words])]
        home = {"HOME": str(self.user.home), "USER": self.user.name, "PATH": "/usr/bin:/bin"}
        return self.lab.run(argv, limit=120, env=home)

    def trains(self, ending: str = "exit 3") -> str:
        """Their training, which ends like that once `go` is there."""
        script = self.lab.work / "train.sh"
        script.write_text(TRAINING.format(go=shlex.quote(str(self.go)), ending=ending))
        words = ["sbatch", "--parsable", "--job-name=llm-10b", "--nodes=2", str(script)]
        job = self.lab.ask(words, user=self.user).strip()
        self.lab.wait_state(job, "RUNNING")
        return job

    def init(self, *more: str, within: tuple[str, ...] = ()) -> str:
        """`sentinel init --yes --mail`, and nothing else; what it says."""
        mail = ("--mail", "me@example.org", "--smtp", f"{self.smtp.host}:{self.smtp.port}")
        done = self.sentinel("init", "--yes", *mail, *more, within=within)
        assert done.returncode == 0, done
        assert len(self.smtp.wait(1)) == 1  # the test message
        return done.stdout

    def watches(self) -> bool:
        """Whether a pass of whatever calls sentinel has seen it run."""
        said = self.sentinel("explain", "llm-10b").stdout
        return "last run" in said and "running: job" in said

    def wait_mail(self, limit: float) -> str:
        """The text of the mail about its death, which comes within so many seconds."""

        def about_it() -> list[Mail]:
            return [m for m in self.smtp.mails if "llm-10b" in str(m.message["Subject"])]

        wait_until(lambda: bool(about_it()), "a mail about the death", limit)
        [mail] = about_it()
        body = mail.message.get_body(("plain",))
        assert body is not None
        return str(body.get_content())


@pytest.fixture
def newcomer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Newcomer]:
    """On the lab that the test asks for by `lab_of`."""
    lab = request.getfixturevalue(getattr(request, "param", "fresh"))
    with SmtpServer(tmp_path, host=str(lab.subnet[1])) as smtp:
        one = Newcomer(lab, smtp)
        yield one
    shutil.rmtree(one.user.home)


@pytest.mark.parametrize("ending", ["exit 3", "kill -9 $$"])
def test_within_two_minutes_by_what_looks_each_minute(
    newcomer: Newcomer, tmp_path: Path, ending: str
) -> None:
    """A line in the user's crontab, which a real cron reads: a look a minute, a second one half a
    minute after the death."""
    newcomer.trains(ending)
    with cron(tmp_path) as within:
        assert "a line in your crontab" in newcomer.init(within=tuple(within))
        wait_until(newcomer.watches, "a first pass", 180)
        newcomer.go.touch()
        text = newcomer.wait_mail(TWO_MINUTES)
    assert "FAILED with exit code 3" in text if ending == "exit 3" else "SIGKILL" in text


@pytest.mark.parametrize("newcomer", ["fresh_accounting"], indirect=True)
def test_cancelled_by_somebody_else(newcomer: Newcomer, tmp_path: Path) -> None:
    """Accounting says whose scancel it was; `--signal=KILL` is to Slurm one like any other."""
    job = newcomer.trains()
    with cron(tmp_path) as within:
        newcomer.init(within=tuple(within))
        wait_until(newcomer.watches, "a first pass", 180)
        newcomer.lab.scancel(job, signal="KILL")
        assert "was cancelled by root" in newcomer.wait_mail(TWO_MINUTES)


def test_within_one_pass_of_a_chain(newcomer: Newcomer) -> None:
    """Of real jobs of the user; init's own pace is a pass in ten minutes, here one in half a minute.
    Slurm forgets the job before the mail is written, as it does between passes of ten minutes: what
    was asked while it ran is in the mail all the same."""
    newcomer.lab.configure(MinJobAge=2)
    newcomer.trains()
    assert "a chain of small Slurm jobs" in newcomer.init(within=NONE)
    assert newcomer.sentinel("cron", "install", "--every", "30s").returncode == 0
    wait_until(newcomer.watches, "a first pass", 180)
    newcomer.go.touch()
    text = newcomer.wait_mail(30 + TWO_MINUTES)
    tests = [m for m in newcomer.smtp.mails if str(m.message["Subject"]).startswith("TEST")]
    assert len(tests) == 2  # init's, and one from a node
    assert "from sentinel on node-" in str(tests[1].message["Subject"])
    assert "iteration 100/ 500000" in text
    assert "sbatch --job-name=llm-10b --partition=main --nodes=2" in text
    assert newcomer.sentinel("init", "--undo", "--yes", "--purge").returncode == 0
