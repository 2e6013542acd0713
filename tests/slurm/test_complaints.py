"""What stands on stderr: what spoils an answer, and what it means to a person."""

import pytest

from sentinel.slurm.complaints import (
    complaint_meaning,
    describe_failure,
    describe_stderr,
    failure_error,
    find_left_out,
)

DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


@pytest.mark.parametrize(
    ("err", "said"),
    [
        (b"", ""),
        (b"\n", ""),
        (b"squeue: warning: something new\n", "squeue: warning: something new"),
        (b"a\nb\n", "a; b"),
        (b"\x1b[31mred\n", "\\x1b[31mred"),
        (b"\xff\n", "\\xff"),
        (b"squeue: error: PriorityWeight\n" * 99 + DOWN.encode(), DOWN),
    ],
)
def test_a_complaint_is_one_line_that_no_terminal_obeys(err: bytes, said: str) -> None:
    """What is known comes first: remarks in front of it may fill the line."""
    assert describe_stderr(err).startswith(said)


@pytest.mark.parametrize(
    "err",
    [
        b"squeue: error: Invalid user: ghost\n",
        b"squeue: error: Invalid job format specification: %x\n",
        b"squeue: Error reading job information from cluster b: Connection refused\n",
        b"scontrol: Error reading node information from cluster b: Connection refused\n",
        b"squeue: warning: harmless\nslurm_load_jobs error: Zero Bytes\n",
    ],
)
def test_an_answer_that_leaves_something_out_is_known_by_its_words(err: bytes) -> None:
    """Exit code 0, and yet not all that was asked for."""
    assert find_left_out(err)


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (DOWN, "slurmctld cannot be reached"),
        (
            "slurm_load_jobs error: Socket timed out on send/recv operation",
            "did not answer in time",
        ),
        ("slurm_load_node error: Slurm backup controller in standby mode", "is a backup"),
        ("slurm_load_jobs error: Protocol authentication error", "cannot prove who asks"),
        ("squeue: error: Munge encode failed: Failed to access socket", "cannot prove who asks"),
        ("squeue: fatal: Could not establish a configuration source", "find no slurm.conf"),
        ("squeue: error: Invalid user: ghost", "there is no user ghost"),
        (
            "sacct: error: slurm_persist_conn_open: Something happened with the receiving/"
            "processing of the persistent connection init message to db:6819",
            "slurmdbd, Slurm's accounting, does not answer",
        ),
        ("sudo: a password is required", "sudo wants a password"),
        ("slurm_load_jobs error: Insane message length", "of another version than slurmctld"),
        ("slurm_load_jobs error: Zero Bytes were transmitted or received", "of an older version"),
        # What says "refused" or "timed out" need not be slurmctld.
        ("sacct: error: Problem talking to the database: Connection refused", "slurmdbd"),
        ("sacct: error: Sending PersistInit msg: Connection refused", "slurmdbd"),
        (
            "sacct: error: _open_persist_conn: failed to open persistent connection to "
            "host:books:6819: Connection refused",
            "slurmdbd",
        ),
        ("Slurm accounting storage is disabled", "no accounting here"),
        ("ssh: connect to host login1 port 22: Connection refused", "ssh does not reach"),
        ("ssh: connect to host login1 port 22: Connection timed out", "ssh does not reach"),
        ("ssh: Could not resolve hostname l1: Name or service not known", "ssh does not reach"),
        ("squeue: error: _conn: poll timeout: Connection timed out", "cannot be reached"),
        (
            'squeue: error: slurm_set_addr: Unable to resolve "ctl"; slurm_load_jobs error: '
            "Unable to contact slurm controller (connect failure)",
            "does not know the host",
        ),
        (
            "squeue: fatal: Unable to process configuration file; squeue: error: Parsing error at "
            "unrecognized key: TaskX",
            "do not understand the slurm.conf",
        ),
        ("squeue: error: Parsing error at unrecognized key: TaskX; " + DOWN, "cannot be reached"),
        ("squeue: error: cannot stat file /etc/slurm/slurm.conf", "find no slurm.conf"),
        ("squeue: error: Couldn't find the specified plugin name for auth/munge", "lack a plugin"),
        ("squeue: error: Invalid Protocol Version 10496 from uid=-1", "of another version than"),
        ("squeue: error: a thing that no version said so far", ""),
    ],
)
def test_a_failure_says_first_what_it_means(said: str, plain: str) -> None:
    """One line for a person; Slurm's own words stand below, and nothing of them is lost."""
    error = failure_error("squeue", said, 1)
    assert plain in complaint_meaning(said)
    assert plain in error.message
    assert said in (error.words if plain else error.message)
    assert str(error).endswith(said)


@pytest.mark.parametrize(
    ("wrong", "code", "text"),
    [
        ("scontrol: error: no", 1, "scontrol: error: no"),
        ("slurm_load_node error: no", 1, "scontrol: slurm_load_node error: no"),
        ("", 3, "scontrol: exit code 3 without a word"),
        ("", -9, "scontrol: ended by signal 9"),
    ],
)
def test_a_failure_names_its_command_once(wrong: str, code: int, text: str) -> None:
    """Most complaints open with it."""
    assert describe_failure("scontrol", wrong, code) == text
