"""Slurm's commands are started in a neutral environment, bounded, and believed when they end well."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sentinel.core.errors import CannotTell
from sentinel.slurm.client import (
    ELSEWHERE,
    LOCAL_ENVIRONMENT,
    SETTINGS,
    SlurmClient,
    build_argv,
    neutral_environment,
)
from sentinel.slurm.ends import squeue_columns
from sentinel.slurm.queue import squeue_format
from sentinel.slurm.words import make_nonce
from tests.lab.fuse import Fuse
from tests.lab.waiting import HANG_LIMIT_S, wait_until
from tests.slurm.stand_ins import StandIns

SWITCHES = {
    "SQUEUE_FORMAT": "%i",
    "SQUEUE_STATES": "RUNNING",
    "SINFO_FORMAT": "%N",
    "SCONTROL_ALL": "1",
    "SACCT_FORMAT": "jobid",
    "SLURM_CLUSTERS": "other",
    "SLURM_JOB_ID": "5",
    "SLURM_TIME_FORMAT": "relative",
    "SLURM_BITSTR_LEN": "64",
    "SBATCH_PARTITION": "x",
    "SRUN_DEBUG": "3",
}
NEEDED = {
    "SLURM_CONF": "/etc/slurm.conf",
    "SLURM_CONF_SERVER": "ctl1",
    "SLURM_JWT": "token",
    "SLURM_SACK_SOCKET": "/run/sack",
    "PATH": "/bin",
    "HOME": "/root",
}

REMARKS = [
    'squeue: error: The option "FastSchedule" is defunct, see man slurm.conf.',
    "squeue: error: PriorityWeight values too high, job priority value may overflow",
    "squeue: error: Ignoring ControlMachine since SlurmctldHost is set.",
    "squeue: error: Both AllowAccounts and DenyAccounts are defined, DenyAccounts will be ignored",
    "squeue: error: DefMemPerCPU ignored, since it's mutually exclusive with DefMemPerNode",
    "NOTICE: this login node is rebooted on Monday",
    "Warning: Permanently added 'login1' (ED25519) to the list of known hosts.",
]


def test_switches_of_other_tools_are_taken_out() -> None:
    """What tells the way to slurmctld stays, what changes an answer goes; times are epochs."""
    local = dict.fromkeys(("SQUEUE_LOCAL", "SCONTROL_LOCAL", "SACCT_LOCAL", "SINFO_LOCAL"), "1")
    ours = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "LC_ALL": "C", **local}
    assert neutral_environment(SWITCHES | NEEDED | {"LC_ALL": "tr_TR.UTF-8"}) == NEEDED | ours


def test_a_cluster_with_a_conf_of_its_own_is_asked_by_that_alone() -> None:
    """What says how to reach the one at hand is left out; through a prefix the path travels."""
    around = {
        "SLURM_CONF": "/a",
        "SLURM_CONF_SERVER": "a:6817",
        "SLURM_JWT": "token",
        "PATH": "/bin",
    }
    assert neutral_environment(around, "/b") == {"PATH": "/bin", "SLURM_CONF": "/b", **SETTINGS}
    assert "SLURM_CONF=/b" in build_argv(["squeue"], ["ssh", "login2"], "/b")


def test_without_a_prefix_the_command_is_itself() -> None:
    """The environment is given to the process, not written into its arguments."""
    assert build_argv(["squeue", "-h"], []) == ["squeue", "-h"]


def test_through_a_prefix_the_environment_travels() -> None:
    """env(1) unsets and sets on the other side; its arguments are not quoted for no shell."""
    argv = build_argv(["squeue", "-o", "%i x"], ["nsenter", "-t", "1"])
    assert argv[:4] == ["nsenter", "-t", "1", "/usr/bin/env"]
    assert argv[-3 - len(SETTINGS) :] == [
        "SLURM_TIME_FORMAT=%s",
        "SLURM_BITSTR_LEN=0",
        "LC_ALL=C",
        *(f"{name}=1" for name in LOCAL_ENVIRONMENT),
        "squeue",
        "-o",
        "%i x",
    ]
    assert argv[argv.index("SQUEUE_STATES") - 1] == "-u"


@pytest.mark.parametrize(
    "prefix", [["ssh", "login1"], ["sudo", "-u", "x", "/usr/bin/ssh", "-q", "l"]]
)
def test_through_ssh_arguments_survive_the_shell_there(prefix: list[str]) -> None:
    """ssh joins its arguments with blanks for a shell: what that shell makes of them is ours."""
    hostile = ["squeue", "-o", "%i;touch x|$HOME 'a' \"b\" \\ `id`", "-u", "DOM\\jane doe"]
    there = " ".join(build_argv(hostile, prefix)[len(prefix) :])
    assert shlex.split(there)[-5:] == hostile
    shown = there.replace("squeue", "printf '%s\\n'", 1)
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == hostile[1:]


def test_all_variables_that_slurms_pages_document_are_unset_elsewhere() -> None:
    """The list is complete for the manual of this machine, where it has one."""
    page = subprocess.run(
        "zcat -f /usr/share/man/man1/squeue.1* /usr/share/man/man1/scontrol.1* "
        "/usr/share/man/man1/sacct.1* /usr/share/man/man1/sinfo.1* /usr/share/man/man1/scancel.1* "
        "2>/dev/null | sed 's/\\\\//g' "
        "| grep -oE '\\b(SQUEUE|SCONTROL|SACCT|SINFO|SCANCEL)_[A-Z0-9_]+'",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(page.stdout.split()) <= set(ELSEWHERE)


def test_output_of_a_clean_run_is_the_answer(stand_ins: StandIns) -> None:
    """stdout, byte for byte."""
    stand_ins.says("squeue", b"a\xff\n")
    assert SlurmClient(environ=stand_ins.env).ask_slurm("squeue", "-h") == b"a\xff\n"
    assert stand_ins.told("squeue") == ["-h"]


@pytest.mark.parametrize(
    ("err", "code", "said"),
    [
        ("squeue: error: Invalid user: x\n", 0, "squeue: error: Invalid user: x"),
        ("slurm_load_jobs error: down\n", 1, "squeue: slurm_load_jobs error: down"),
        ("", 1, "squeue: exit code 1 without a word"),
        ("slurm_load_jobs error: Zero Bytes\n", 0, "slurm_load_jobs error: Zero Bytes"),
    ],
)
def test_a_run_that_is_not_clean_is_cannot_tell(
    stand_ins: StandIns, err: str, code: int, said: str
) -> None:
    """Where Slurm says that it left something out, and where the exit code says so."""
    stand_ins.says("squeue", b"1 RUNNING\n", err=err, code=code)
    client = SlurmClient(environ=stand_ins.env)
    with pytest.raises(CannotTell, match=said):
        client.ask_slurm("squeue")
    assert (client.counts["squeue"].requests, client.counts["squeue"].failures) == (1, 1)


@pytest.mark.parametrize("said", REMARKS)
def test_a_remark_beside_an_answer_spoils_nothing(stand_ins: StandIns, said: str) -> None:
    """Slurm's about its configuration, a site's wrapper's, ssh's: kept, for `doctor` to show."""
    stand_ins.says("squeue", b"1 RUNNING\n", err=f"{said}\n")
    client = SlurmClient(environ=stand_ins.env)
    assert client.ask_slurm("squeue") == b"1 RUNNING\n"
    assert client.remarks == {"squeue": [said]}
    stand_ins.says("squeue", b"1 RUNNING\n")
    client.ask_slurm("squeue")
    assert client.remarks == {"squeue": []}


def test_a_command_that_a_signal_ended_is_cannot_tell(stand_ins: StandIns) -> None:
    """The kernel's out-of-memory killer leaves no text behind."""
    stand_ins.script("squeue", "#!/bin/sh\necho 15\nkill -9 $$\n")
    with pytest.raises(CannotTell, match="squeue: ended by signal 9"):
        SlurmClient(environ=stand_ins.env).ask_slurm("squeue")


def test_a_command_that_never_ends_is_ended(stand_ins: StandIns) -> None:
    """It and its children are gone when the call returns, which is soon after the limit."""
    stand_ins.script("squeue", "#!/bin/sh\nsleep 987654 & sleep 987654\n")
    client = SlurmClient(environ=stand_ins.env, limit=0.3)
    began = time.monotonic()
    with pytest.raises(CannotTell, match="squeue: no answer within 300ms, it was ended"):
        client.ask_slurm("squeue")
    assert time.monotonic() - began < 10
    left = subprocess.run(["pgrep", "-f", "^sleep 987654$"], capture_output=True, check=False)
    assert left.stdout == b""
    assert client.counts["squeue"].failures == 1


def test_a_command_that_nothing_ends_is_not_piled_upon(stand_ins: StandIns, fuse: Fuse) -> None:
    """One process in state D for all questions, until the file system lets go of it."""
    stand_ins.script("squeue", f"#!/bin/sh\nexec cat {fuse.point}/data\n")
    stand_ins.says("scontrol", "fine\n")
    client = SlurmClient(environ=stand_ins.env, limit=HANG_LIMIT_S)
    fuse.hold("open")
    with pytest.raises(CannotTell, match="squeue: no answer within 3s"):
        client.ask_slurm("squeue")
    for name in ("squeue", "scontrol"):
        with pytest.raises(
            CannotTell, match=rf"{name}: not asked, an earlier question hangs: process \d+"
        ):
            client.ask_slurm(name)
    assert {name: count.requests for name, count in client.counts.items()} == {"squeue": 1}
    fuse.release()
    wait_until(lambda: not fails(client), "the stuck process is gone", 20.0)


def fails(client: SlurmClient) -> bool:
    try:
        return client.ask_slurm("scontrol") != b"fine\n"
    except CannotTell:
        return True


def test_output_beyond_all_measure_is_cannot_tell(stand_ins: StandIns) -> None:
    """A command that runs wild fills no memory; its text says which one it was."""
    stand_ins.script("squeue", "#!/bin/sh\nexec yes\n")
    client = SlurmClient(environ=stand_ins.env, max_output=1 << 20)
    with pytest.raises(CannotTell, match=r"squeue: squeue printed more than 1\.05 MB"):
        client.ask_slurm("squeue")
    assert client.counts["squeue"].failures == 1


def test_no_slurm_on_this_machine_is_said_so() -> None:
    """The text names the remedy: install the client commands or set PATH."""
    with pytest.raises(CannotTell, match=r"not installed or not in PATH \(cannot start squeue"):
        SlurmClient(environ={"PATH": "/nowhere"}).ask_slurm("squeue")


def test_no_slurm_behind_a_prefix_is_said_so(stand_ins: StandIns) -> None:
    """There the other host lacks it; the text says which way was taken."""
    client = SlurmClient(environ=stand_ins.env, prefix=["env", "PATH=/nowhere"])
    with pytest.raises(CannotTell, match="squeue cannot be run through env PATH=/nowhere"):
        client.ask_slurm("squeue")


def test_a_prefix_that_does_not_exist_is_said_so() -> None:
    """A word in command_prefix that is no command is named."""
    with pytest.raises(CannotTell, match="cannot be run through no-such-ssh login1"):
        SlurmClient(prefix=["no-such-ssh", "login1"]).ask_slurm("squeue")


def test_what_the_command_sees_through_a_prefix(stand_ins: StandIns) -> None:
    """The other side's own switches are gone, and sentinel's are there."""
    stand_ins.script("squeue", "#!/bin/sh\nenv | grep -E '^(SQUEUE|SLURM|LC_)' | sort\n")
    client = SlurmClient(
        environ=stand_ins.env, prefix=["env", "SQUEUE_STATES=R", "SLURM_CLUSTERS=x"]
    )
    ours = b"LC_ALL=C\nSLURM_BITSTR_LEN=0\nSLURM_TIME_FORMAT=%s\nSQUEUE_LOCAL=1\n"
    assert client.ask_slurm("squeue") == ours


TOLD_FORMAT = """\
#!/bin/sh
me=$$ before=
while [ "$me" -gt 1 ] && [ "$me" != {pid} ]; do
    tr '\\0' ' ' <"/proc/$me/cmdline" >>{folder}/words
    me=$(cut -d' ' -f4 "/proc/$me/stat")
done
echo "$SQUEUE_FORMAT,$SQUEUE_FORMAT2,$*"
"""
PASSING = ["env", "NAME=x"]
SILENT = ["sh", "-c", 'exec "$@" </dev/null', "prefix"]


@pytest.mark.parametrize("prefix", [[], PASSING])
def test_a_format_is_in_no_argument(stand_ins: StandIns, tmp_path: Path, prefix: list[str]) -> None:
    """Everybody may read arguments: who knew the marks in time could write them into a comment."""
    stand_ins.script("squeue", TOLD_FORMAT.format(pid=os.getpid(), folder=tmp_path))
    client = SlurmClient(environ=stand_ins.env, prefix=prefix)
    mark = make_nonce()
    assert client.ask_slurm("squeue", "-a", "-o", squeue_format(mark), "-w", "n1") == (
        f"{squeue_format(mark)},,-a -w n1\n".encode()
    )
    columns = squeue_columns(mark)
    assert client.ask_slurm("squeue", "-O", columns, "-h") == f",{columns},-h\n".encode()
    words = (tmp_path / "words").read_text()
    assert words.count("squeue") >= 2
    assert mark not in words


def test_a_prefix_that_passes_no_input_gets_the_format_as_an_argument(stand_ins: StandIns) -> None:
    """As `docker exec` does without -i. It is found out once."""
    stand_ins.script("squeue", '#!/bin/sh\necho "$SQUEUE_FORMAT,$*"\n')
    client = SlurmClient(environ=stand_ins.env, prefix=SILENT)
    for _ in range(2):
        assert client.ask_slurm("squeue", "-h", "-o", "%i x") == b",-h -o %i x\n"
    assert client.counts["squeue"].requests == 2


LOSES_ENVIRONMENT = """\
#!/bin/sh
# As sudo and caches of squeue do: the environment is lost, a failure is told in their own words.
echo asked >>{folder}/asked
case "$*" in
    *"-o "*) echo "JOBID x.$*" ;;
    *) {default} ;;
esac
"""


@pytest.mark.parametrize(
    "default", ["echo 'JOBID PARTITION NAME'", "echo 'Traceback: no format' >&2; exit 1"]
)
def test_a_wrapper_that_loses_the_environment_gets_the_format_as_an_argument(
    stand_ins: StandIns, tmp_path: Path, default: str
) -> None:
    """The wrapper worked before the format was hidden. It is found out once."""
    stand_ins.script("squeue", LOSES_ENVIRONMENT.format(folder=tmp_path, default=default))
    client = SlurmClient(environ=stand_ins.env)
    for _ in range(2):
        assert client.ask_slurm("squeue", "-o", "%ix.") == b"JOBID x.-o %ix.\n"
    assert (tmp_path / "asked").read_text().count("asked") == 3


def test_an_error_of_squeue_itself_is_not_asked_about_twice(
    stand_ins: StandIns, tmp_path: Path
) -> None:
    """slurmctld is ill already."""
    error = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    stand_ins.script(
        "squeue", f"#!/bin/sh\necho asked >>{tmp_path}/asked\necho '{error}' >&2\nexit 1\n"
    )
    with pytest.raises(CannotTell, match="Unable to contact"):
        SlurmClient(environ=stand_ins.env).ask_slurm("squeue", "-o", "%ix.")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_prefix_that_fails_is_not_asked_twice(stand_ins: StandIns, tmp_path: Path) -> None:
    """A login node that is down costs each pass one wait, not two."""
    error = "ssh: connect to host login1: No route to host"
    ssh = stand_ins.script(
        "ssh", f"#!/bin/sh\necho asked >>{tmp_path}/asked\necho '{error}' >&2\nexit 255\n"
    )
    client = SlurmClient(environ=stand_ins.env, prefix=[str(ssh), "login1"])
    with pytest.raises(CannotTell, match="No route to host"):
        client.ask_slurm("squeue", "-o", "%ix.")
    assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize("said", ["", "9001 x.", "\n"])
def test_an_answer_in_the_form_asked_for_is_asked_for_once(
    stand_ins: StandIns, tmp_path: Path, said: str
) -> None:
    """An empty list too."""
    stand_ins.script("squeue", f"#!/bin/sh\necho asked >>{tmp_path}/asked\nprintf '{said}'\n")
    SlurmClient(environ=stand_ins.env).ask_slurm("squeue", "-h", "-o", "%ix.")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_options_of_other_commands_stay(stand_ins: StandIns) -> None:
    """`scontrol -o` is another option."""
    stand_ins.says("scontrol", "fine")
    SlurmClient(environ=stand_ins.env).ask_slurm("scontrol", "-o", "-a", "show", "node")
    assert stand_ins.told("scontrol") == ["-o -a show node"]


LARGE = """
import resource, sys
from sentinel.core.errors import CannotTell
from sentinel.slurm import queue
from sentinel.slurm.client import SlurmClient

def peak():
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmHWM")).split()[1])

before = peak()
try:
    queue.read_queue(SlurmClient(limit=60).ask_slurm("squeue"), "m")
except CannotTell as error:
    print(peak() - before, error)
"""


@pytest.mark.parametrize("start", ["JOBID m.\\n", "JOBID"], ids=["one row", "no header"])
def test_a_large_answer_is_held_once(stand_ins: StandIns, start: str) -> None:
    """64 MiB that are no list of jobs: read and refused in little more memory than that."""
    stand_ins.script("squeue", f"#!/bin/sh\nprintf '{start}'; head -c {64 << 20} /dev/zero")
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        env={**os.environ, **stand_ins.env},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    kilobytes, said = done.stdout.split(maxsplit=1)
    assert "squeue's answer is not in the form asked for" in said
    assert 64 << 10 < int(kilobytes) < 80 << 10
