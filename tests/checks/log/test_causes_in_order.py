"""Which of several errors in one log is told, and which words of it."""

import pytest

from sentinel.checks.job.output import find_error_line
from sentinel.checks.log.ranking import find_first_cause
from sentinel.checks.log.troubles import TroubleFinder

FRAMES = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 51, in <module>\n    main()\n'
)
OTHER = "[rank{0}]:[E ProcessGroupNCCL.cpp:563] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12) ran for 600123 milliseconds.\n"
COMPILED = (
    "icoFoam.H:64:6: error: no match for 'operator[]'\n   64 |     F[icell][0] = 0;\n"
    + 90 * ("UListI.H:9:1: note: candidate: 'T& UList<T>::operator[](label)'\n")
)
MAKE = "make: *** [rules:35: icoFoam.o] Error 1\n"


def steps(first: int, last: int) -> str:
    """Some steps of a training."""
    return "".join(f"step {n} | loss 2.{n} | lr 1e-4\n" for n in range(first, last))


def first_cause(text: str) -> str:
    """The error that the log check tells first. Empty without one."""
    found = [one for _, one in TroubleFinder({}, []).find_troubles(text)]
    at = find_first_cause([one.kind for one in found])
    return "" if at is None else found[at].line


@pytest.mark.parametrize(
    ("between", "last", "told"),
    [
        pytest.param(25, "KeyError: 'labels'", "KeyError: 'labels'", id="the program went on"),
        pytest.param(3, "KeyError: 'labels'", "ImportError: no apex", id="others print a little more"),
        pytest.param(
            25, "FileNotFoundError: [Errno 2] No such file or directory: 'out.npy'", "ImportError: no apex", id="the first one's output is missing"
        ),
    ],
)  # fmt: skip
def test_an_exception_that_its_program_survived_comes_after_the_next(
    between: int, last: str, told: str
) -> None:
    """An optional library, a sample that cannot be read: the traceback is printed, and the program goes on."""
    lines = "".join(f"building layer {n} of the model\n" for n in range(between))
    assert first_cause(f"{FRAMES}ImportError: no apex\n{lines}{FRAMES}{last}\n") == told


def test_another_rank_s_exception_is_never_a_survived_one() -> None:
    """Ranks with marks print on after one of them died."""
    lines = "".join(f"building layer {n} of the model\n" for n in range(50))
    one, two = (
        "".join(f"[rank{n}]: {line}\n" for line in f"{FRAMES}{said}".splitlines())
        for n, said in ((3, "AssertionError: length 0"), (4, "ValueError: gone"))
    )
    assert first_cause(one + lines + two) == "[rank3]: AssertionError: length 0"


@pytest.mark.parametrize("more", [0, 1, 3])
def test_other_ranks_make_a_few_steps_after_the_cause(more: int) -> None:
    """Behind the last step there is only that others waited."""
    text = f"{steps(0, 9)}{FRAMES}AssertionError: length 0\n{steps(9, 9 + more)}" + OTHER.format(0)
    assert find_error_line(text) == "AssertionError: length 0"


def test_an_exception_of_long_ago_does_not_explain_a_timeout() -> None:
    """The control: the training has made many steps since."""
    text = f"{steps(0, 9)}{FRAMES}AssertionError: length 0\n{steps(9, 40)}" + OTHER.format(0)
    assert "Watchdog caught" in find_error_line(text)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        # torch/nn/modules/module.py
        ("RuntimeError: Error(s) in loading state_dict for GPT:\n\tMissing key(s) in state_dict: \"a\".\n", "for GPT: Missing key(s)"),
        # pydantic_core, src/errors/validation_exception.rs
        ("pydantic_core._pydantic_core.ValidationError: 1 validation error for Config\nlearning_rate\n  Field required [type=missing]\n", "Config learning_rate: Field required"),
        # tensorflow/python/eager/execute.py
        ("tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error:\n\nDetected at node 'a/Cast' defined at (most recent call last):\n    File \"t.py\", line 1, in <module>\n      fit(x)\nNode: 'a/Cast'\n"
         "Cast string to float is not supported\n", "error: Cast string"),
        # torch/_dynamo/exc.py
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: Found Tesla P100\n", "raised: RuntimeError: Found Tesla P100"),
        # tensorflow/core/framework, an error of several executors
        ("tensorflow.python.framework.errors_impl.NotFoundError: 2 root error(s) found.\n  (0) Not found:  a.jpg; No such file or directory\n", "found. (0) Not found:"),
        # jax/_src/traceback_util.py
        (f"jax.errors.SimplifiedTraceback: For simplicity, JAX has removed its internal frames.\n\nThe above exception was the direct cause of the following exception:\n\n{FRAMES}ValueError: 30 % 4\n", "ValueError: 30 % 4"),
        # controls: what has said all, and what has nothing below it
        ("KeyError: 'labels'\nwandb: Run history\n", "KeyError: 'labels'"),
        ("my.errors.Broken:\n", "my.errors.Broken:"),
    ],
)  # fmt: skip
def test_an_exception_is_told_with_the_words_that_its_first_line_announces(
    said: str, told: str
) -> None:
    """`Graph execution error:` alone helps nobody."""
    line = first_cause(FRAMES + said)
    assert told in line
    assert "wandb" not in line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (COMPILED + MAKE, "icoFoam.H:64:6: error: no match for 'operator[]'"),
        ("a.o: In function `main':\na.cpp:(.text+0x12): undefined reference to `f()'\ncollect2: error: ld returned 1 exit status\n" + MAKE, "a.cpp:(.text+0x12): undefined reference to `f()'"),
        # controls: a probe that a compiler refused, and a build that tells no error of a compiler
        ("a.c:1:10: fatal error: libaio.h: No such file or directory\ncompilation terminated.\n" + steps(0, 30), ""),
        (MAKE, MAKE.strip()),
    ],
)  # fmt: skip
def test_what_a_compiler_said_is_told_in_place_of_the_end_of_a_build(text: str, told: str) -> None:
    """GCC explains one error over hundreds of lines."""
    assert first_cause(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # the exception, not the code that raises it, and the last of a chain that was handled
        (
            f"{FRAMES}urllib.error.HTTPError: HTTP Error 302: Found\n\nDuring handling of the above exception, another exception occurred:\n\n{FRAMES}    raise HTTPError(url, code)\nurllib.error.HTTPError: HTTP Error 403: Forbidden\n",
            "urllib.error.HTTPError: HTTP Error 403: Forbidden",
        ),
        (
            f"{FRAMES}    raise CalledProcessError(returncode=1, cmd=cmd)\nsubprocess.CalledProcessError: Command 'a' returned non-zero exit status 1.\n",
            "subprocess.CalledProcessError: Command 'a' returned non-zero exit status 1.",
        ),
        # what a worker said, not that it was caught
        (f"{FRAMES}KeyError: Caught KeyError in DataLoader worker process 3.\nOriginal {FRAMES}KeyError: 'fname'\n", "KeyError: 'fname'"),
        # a shell that goes on, below which Slurm says why it ended
        (
            "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\nslurmstepd: error: *** JOB 4711 ON node-3 CANCELLED AT 2021-08-23T10:00:58 DUE TO TIME LIMIT ***\n",
            "slurmstepd: error: *** JOB 4711 ON node-3 CANCELLED AT 2021-08-23T10:00:58 DUE TO TIME LIMIT ***",
        ),
        # what its program survived
        (f"Exception ignored in: <function Iter.__del__ at 0x7f>\n{FRAMES}AssertionError: can only test a child process\n" + steps(0, 9), ""),
        ("wandb: Network error (HTTPError), entering retry loop.\n" + steps(0, 9), ""),
        # controls: the end begins within a traceback, and a name that is all there is
        ("    main()\nKeyError: 'labels'\nsrun: error: node-3: task 3: Exited with exit code 1\n", "KeyError: 'labels'"),
        ("[rank2]: KeyError: 'x'\n" + OTHER.format(0), "[rank2]: KeyError: 'x'"),
    ],
)  # fmt: skip
def test_the_name_of_an_exception_alone_counts_where_no_error_is_known(
    text: str, told: str
) -> None:
    """The end of a job's output is judged by the same rules as a log."""
    assert find_error_line(text) == told


LIBRARY = (
    "auto: dlopen failed - libmode.so: cannot open shared object file: No such file or directory\n"
)
DUMP = "".join(f"    ctr: {n},\n" for n in range(8))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (5 * (LIBRARY + DUMP) + LIBRARY, ""),
        # controls: it is said once, and it is said at each of some tries
        (5 * DUMP + LIBRARY, LIBRARY.strip()),
        (5 * (LIBRARY + "next try in 5 s\n") + LIBRARY, LIBRARY.strip()),
    ],
)
def test_what_a_program_said_all_the_time_is_not_its_last_word(text: str, told: str) -> None:
    """It went on after each of them."""
    assert first_cause(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slurmstepd: error: Unable to move pid 47694 to init root cgroup (null)\n", ""),
        ("slurmstepd: error: couldn't chdir to `/w': No such file or directory: going to /tmp instead\n", ""),
        # newer releases write a time in place of its name, and a step of several nodes the name with the node's
        ("[2026-06-30T23:35:54] error: couldn't chdir to `/dev/shm/x': No such file or directory: going to /tmp instead\n", ""),
        ("[2026-06-30T23:35:54.204] error: Unable to move pid 75556 to init root cgroup (null)\n", ""),
        ("slurmstepd-phoenix-07: error: couldn't chdir to `/w': No such file or directory: going to /tmp instead\n", ""),
        # the process that it was to signal has ended already
        ("[2026-07-13T18:42:35.262] error: _handle_signal_container: failed signal 15 pid 129187 StepId=51.batch No such process\n", ""),
        ("slurmstepd: error: _handle_signal_container: failed signal 9 pid 4711 StepId=7.0 No such process\n", ""),
        # controls: a program's own words, and the limit of memory that the same daemon tells
        ("kill_workers: failed to signal rank 3: No such process\n", "No such process"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.\n", "oom-kill event"),
        ("[2025-12-17T01:57:03.485] error: Detected 9 oom_kill events in StepId=7.batch. Some of the step tasks have been OOM Killed.\n", "oom_kill events"),
        ("[2025-11-26T23:41:09.626] error: execve(): bash: No such file or directory\n", "error: execve(): bash"),
        ("slurmstepd-n7: error: execve(): bash: No such file or directory\n", "error: execve(): bash"),
    ],
)  # fmt: skip
def test_what_slurmstepd_says_of_its_own_work_ends_no_job(text: str, told: str) -> None:
    """Neither the log check nor the end of a job tells it."""
    assert told in first_cause(text)
    assert told in find_error_line(text)
    assert bool(told) == bool(find_error_line(text)) == bool(first_cause(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2022-06-23 14:56:26,989 [INFO ]  ERROR: parsing 4rc7.pdb\n", "ERROR: parsing 4rc7.pdb"),
        ("2022-06-23 14:56:26,989 [INFO ]  ERROR: 0\n", ""),
        ("2022-06-23 14:56:26,989 [INFO ]  errors are counted\n", ""),
        ("The command failed to execute:\ncat: can't decode byte 0xf6\nError code: 0\nOut: \n", "cat: can't decode byte 0xf6"),
        ("  *** begin stack trace ***\n" + "".join(f"{n}    ./server(+0x22693d) [0x55d2d126693d]\n" for n in range(9)), "begin stack trace"),
        ("`Trainer.fit` stopped: No training batches.\n", "No training batches"),
        ("`Trainer.fit` stopped: `max_epochs=10` reached.\n", ""),
        ("Set TORCH_SHOW_CPP_STACKTRACES=1 to see a stack trace\nstep 1\n", ""),
    ],
)  # fmt: skip
def test_more_forms_of_last_words(text: str, told: str) -> None:
    """An error told as information, a heading without words below the cause, a trace without a reason."""
    assert told in first_cause(text)
    assert bool(told) == bool(first_cause(text))


@pytest.mark.parametrize(
    ("command", "told"),
    [("vmstat 60 > vmstat.txt", []), ("python train.py 2>&1 | tee log", ["Killed"])],
)
def test_who_was_killed_is_known_where_the_rows_stood_in_an_earlier_look(
    command: str, told: list[str]
) -> None:
    """bash, print_cmd.c: a process that writes elsewhere did not write the rows of this log."""
    rows = "".join(f"step {n} loss 2.{n}\n" for n in range(9))
    line = f"/w/job.sh: line 12: 90817 Killed                  {command}\n"
    found = TroubleFinder({}, []).find_end(line, earlier=rows)
    assert [word for _, one in found for word in told if word in one.line] == told
    assert bool(found) == bool(told)
