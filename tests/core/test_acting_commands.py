"""A line of a message that acts is safe to paste, by whoever reads it: root pastes each, and looks."""

import os
import pwd
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.checks.log.resume_commands import list_resume_commands
from sentinel.core.cluster import Submission
from sentinel.core.command_places import group_by_place
from sentinel.core.guidance import ADMINISTRATOR, ActingCommand, quote_command
from sentinel.core.model import Finding, Status
from sentinel.slurm.submission import resubmit_command
from sentinel.testing import job
from sentinel.trust import TrustFault
from tests.slurm.test_submission import resubmit_shell

OWNER = pwd.getpwnam("nobody")
STAND_IN = (
    '#!/bin/sh\n{{ echo "{name} $*"; cat; }} >>{told} 2>/dev/null </dev/null\necho "#!/bin/sh"\n'
)


class Desk:
    """A hostile user's folder, and Slurm's commands, which write down that they were run."""

    def __init__(self, folder: Path) -> None:
        self.home, self.tools, self.told = folder / "of user", folder / "tools", folder / "told"
        self.victim = folder / "of-root"
        self.home.mkdir()
        self.tools.mkdir()
        self.victim.write_text("of root\n")
        self.told.touch()
        self.told.chmod(0o666)
        for name in ("sbatch", "scontrol", "scancel"):
            (self.tools / name).write_text(STAND_IN.format(name=name, told=self.told))
            (self.tools / name).chmod(0o755)
            self._lay(name, f"#!/bin/sh\necho hostile {name} >>{self.told}\n")
        (self.tools / "ssh").write_text('#!/bin/sh\n[ "$1" = west ] && shift && exec sh -c "$*"\n')
        (self.tools / "ssh").chmod(0o755)
        self._lay("run.sh", f"#!/bin/sh\necho hostile script >>{self.told}\n")
        for name in ("again-7.sh", "script", "-"):
            (self.home / name).symlink_to(self.victim)
        os.chown(self.home, OWNER.pw_uid, OWNER.pw_gid)

    def _lay(self, name: str, text: str) -> None:
        (self.home / name).write_text(text)
        (self.home / name).chmod(0o755)

    def paste(self, line: str, user: int) -> list[str]:
        """What ran when that user has pasted the line into a shell, in the hostile folder."""
        self.told.write_text("")
        env = {"PATH": f"{self.tools}:/usr/bin:/bin", "TMPDIR": "/tmp"}
        subprocess.run(
            ["sh", "-c", line], env=env, user=user, cwd=self.home, capture_output=True, check=False
        )
        return self.told.read_text().splitlines()

    def submission(self, **more: Any) -> Submission:
        whole = {"id": "7", "name": "x", "workdir": str(self.home), "options": ("--nodes=1",)}
        return Submission(**{**whole, "user": OWNER.pw_name, "command": "run.sh", **more})


@pytest.fixture
def desk() -> Iterator[Desk]:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield Desk(folder)
    rmtree(folder)


def lines_of_a_user(desk: Desk, before: str = "") -> list[str]:
    """All that act in a user's name: submitted again, by a path, of Slurm's text, with what is not
    known; excluded, ended, told to save."""
    how = desk.submission(command=f"{desk.home}/run.sh")
    mine = job(id="7", job_id="7", array_id="7", user=OWNER.pw_name)
    waits = job(id="8", job_id="8", array_id="8", user=OWNER.pw_name, state="PENDING", nodes="")
    signal = ActingCommand(owner=OWNER.pw_name, argv=("scancel", "--signal=USR1", "7"))
    again = [
        resubmit_command(how),
        resubmit_command(desk.submission(command="")),
        resubmit_command(desk.submission(bare=True, command=f"{desk.home}/run.sh")),
        *list_resume_commands(mine, "node-0", how, ()),
        *list_resume_commands(mine, "node-0", how, (waits,)),
        signal,
    ]
    return [replace(one, before=before).render() for one in again if one]


@pytest.mark.root
@pytest.mark.parametrize("before", ["", "ssh west ", "/usr/bin/ssh west env SLURM_CONF=/c "])
def test_pasted_by_root_nothing_of_a_user_runs(desk: Desk, before: str) -> None:
    """Neither script nor Slurm's command; the user's own shell does what the line says. That of
    another cluster too: it reads all of the line once more."""
    lines = lines_of_a_user(desk, before.replace("/usr/bin", str(desk.tools)))
    assert len(lines) == 8
    assert all(("env SLURM_CONF=/c s" in line) is ("/c" in before) for line in lines)
    for line in lines:
        assert desk.paste(line, 0) == [], line
        ran = desk.paste(line, OWNER.pw_uid)
        assert ran, line
        assert not any("hostile" in one for one in ran)
    assert desk.victim.read_text() == "of root\n"


@pytest.mark.root
def test_a_script_that_slurm_gives_back_goes_into_a_new_private_file(desk: Desk) -> None:
    """Never a name in the user's folder, where a link may wait."""
    before = set(desk.home.iterdir())
    fetched, submitted = desk.paste(resubmit_shell(desk.submission(command="")), OWNER.pw_uid)
    assert fetched == "scontrol write batch_script 7 -"
    path = Path(submitted.split()[-1])
    try:
        assert submitted == f"sbatch --nodes=1 {path}"
        assert (path.parent, path.stat().st_mode & 0o777) == (Path("/tmp"), 0o600)
        assert (path.stat().st_uid, path.read_text()) == (OWNER.pw_uid, "#!/bin/sh\n")
    finally:
        path.unlink()
    assert set(desk.home.iterdir()) == before


@pytest.mark.root
def test_no_name_of_a_user_ends_the_test_of_who_pastes(desk: Desk) -> None:
    """Whatever accounting calls a user."""
    for owner in ("a ] || scancel 1 #", "$(scancel 1)", "x' || scancel 1 '", "a\n scancel 1"):
        assert desk.paste(ActingCommand(owner=owner, argv=("scancel", "7")).render(), 0) == []


@pytest.mark.root
@pytest.mark.parametrize("before", ["", "ssh west "])
def test_no_path_of_a_user_is_read_as_more_than_a_word(desk: Desk, before: str) -> None:
    """A folder, a script's name and what it is given; a name that does not print makes no line, and
    then nothing is left that only ends the job."""
    for name in ("a'; scancel 1; '", "$(scancel 1)", "`scancel 1`", 'x" && scancel 1 "', "-rf"):
        folder = desk.home / name
        folder.mkdir()
        how = desk.submission(workdir=str(folder), command=f"{folder}/run.sh", options=(name,))
        again = resubmit_command(how)
        assert again
        line = replace(again, before=before).render()
        assert desk.paste(line, 0) == []
        ran = desk.paste(line, OWNER.pw_uid)
        programs = [one.split()[0] for one in ran if not one.startswith("#")]
        assert programs in (["sbatch"], ["scontrol", "sbatch"]), name
    mine = job(id="7", job_id="7", array_id="7", user=OWNER.pw_name)
    odd = desk.submission(workdir="/a\nscancel 1")
    assert resubmit_command(odd) is None
    assert list_resume_commands(mine, "node-0", odd, ()) == ()
    odd_path = ActingCommand(owner=ADMINISTRATOR, argv=("chmod", "g-w", "/a\nscancel 1"))
    left = replace(odd_path, before=before).render()
    assert left == "# chmod is left out: a name in it begins with - or does not print"
    assert desk.paste(left, 0) == []
    assert quote_command("n1\nscancel 1") == left.replace("chmod", "a command")


@pytest.mark.root
def test_what_takes_a_right_away_names_one_file(desk: Desk) -> None:
    """Whatever somebody who may write there has called it. Root reads this line."""
    for name in ("x; scancel 1", "$(scancel 1).py", "a b"):
        mend = TrustFault(f"/plugins/{name}", "may be written by everybody", "scontrol go-w").mend
        assert desk.paste(mend, 0) == [f"scontrol go-w /plugins/{name}"]
    assert TrustFault("/x", "may be written by its group", "chmod g-w").text == (
        "/x may be written by its group (chmod g-w /x)"
    )


@pytest.mark.root
def test_a_command_of_an_administrator_runs(desk: Desk) -> None:
    """It names no file of a user."""
    argv = ("scontrol", "update", "NodeName=n1", "Reason=a $(b)")
    line = ActingCommand(owner=ADMINISTRATOR, argv=argv, note="for an administrator").render()
    assert desk.paste(line, 0) == ["scontrol update NodeName=n1 Reason=a $(b)"]


@pytest.mark.parametrize("argv", ["scancel 7", ["scancel", "7"], ("scancel", 7)])
def test_a_command_as_text_is_refused(argv: Any) -> None:
    """Its words would be of whoever wrote the text."""
    with pytest.raises(TypeError):
        ActingCommand(owner="alice", argv=argv)
    with pytest.raises(TypeError):
        Finding(subject="x", status=Status.OK, summary="", acts=argv)


def test_the_place_says_as_whom() -> None:
    """The owner of the line, whoever owns the alert."""
    line = ActingCommand(owner="alice", argv=("scancel", "7")).render()
    assert group_by_place([line], user="bob") == (("on a login node, as alice", (line,)),)


def test_each_program_asks_the_cluster_that_is_meant() -> None:
    """What is put before the line would reach the test of the user alone."""
    command = ActingCommand(owner="alice", argv=("sbatch", "-N1"), folder="/w", script_of="7")
    line = replace(command, before="env SLURM_CONF=/c ").render()
    assert line == (
        '[ "$(id -un)" = alice ] && cd /w && script=$(mktemp) && env SLURM_CONF=/c scontrol write'
        ' batch_script 7 - >"$script" && env SLURM_CONF=/c sbatch -N1 "$script"'
    )
    assert (
        replace(command, before="ssh west env SLURM_CONF=/c ").render()
        == f"ssh west {shlex.quote(line)}"
    )
    assert (
        replace(command, before="kubectl exec pod -- ").render().count("&& kubectl exec pod -- s")
        == 2
    )
    there = quote_command("scancel", "7")
    assert (there, group_by_place([f"ssh west {shlex.quote(line)}"])[0][0]) == (
        "scancel 7",
        "on a login node, as alice",
    )
