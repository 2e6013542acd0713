"""Slurm as all checks of a pass see it: what is asked, how often, and what a failure means."""

import time

import pytest

from sentinel.core.clock import SECOND
from sentinel.core.cluster import Controller, may_have_processes
from sentinel.core.errors import CannotAsk, CannotTell
from sentinel.core.settings import SlurmSettings
from sentinel.slurm.client import SlurmClient
from sentinel.slurm.connect import connect_slurm
from sentinel.slurm.controllers import ControllerProbe
from sentinel.slurm.snapshot import SlurmSnapshot
from sentinel.testing import ManualClock
from tests.slurm.answers import NONCE, PLAIN_JOB, listed, row
from tests.slurm.stand_ins import StandIns
from tests.slurm.test_control import CONFIG
from tests.slurm.test_ends import MARK, booked, remembered

ALICE_ID = "uid=1000(alice) gid=1000(alice)\n"
ROOT_ID = "uid=0(root) gid=0(root)\n"
NODES = "NodeName=n1 Arch=x86_64 State=IDLE ThreadsPerCore=1 \n"
UP = "Slurmctld(primary) at ctl1 is UP\n"


def unmarked(answer: bytes) -> bytes:
    """An answer whose nonce the stand-in puts in."""
    return answer.replace(MARK.encode(), b"@").replace(NONCE.encode(), b"@")  # sacct's is longer


class World:
    """A healthy cluster of stand-ins, asked by alice, who has no rights."""

    def __init__(self, stand_ins: StandIns) -> None:
        self.stand_ins, self.clock = stand_ins, ManualClock()
        self.client = SlurmClient(environ=stand_ins.env, limit=10)
        stand_ins.says("id", ALICE_ID)
        stand_ins.says("squeue", unmarked(listed(row())))
        self.scontrol(config=CONFIG)

    def scontrol(self, *, config: str = CONFIG, nodes: str = NODES, ping: str = UP) -> None:
        """One program for three questions."""
        answers = {"show config": config, "show node": nodes, "ping": ping}
        cases = "".join(f"*'{q}'*) cat <<'E'\n{a}E\n;;\n" for q, a in answers.items())
        log = f'echo "$0 $*" >> {self.stand_ins._log}'
        self.stand_ins.script("scontrol", f'#!/bin/sh\n{log}\ncase "$*" in\n{cases}esac\n')

    def snapshot(self, *users: str, everybody: bool = False) -> SlurmSnapshot:
        asked = None if everybody else users
        return SlurmSnapshot(self.client, self.clock, users=asked, max_age=30.0)

    @property
    def requests(self) -> dict[str, int]:
        return {name: count.requests for name, count in self.client.counts.items()}


@pytest.fixture
def world(stand_ins: StandIns) -> World:
    return World(stand_ins)


def test_declared_racks_stand_in_place_of_slurms_topology(world: World) -> None:
    """Slurm is not even asked for it, whatever it would say."""
    racks = {"r1": "n[1-4]", "r2": "n[5-8]"}
    asked = SlurmSnapshot(world.client, world.clock, users=[], max_age=30.0, racks=racks)
    assert asked.topology() == racks
    assert world.requests == {}
    assert connect_slurm(SlurmSettings(racks=racks), [], 30.0, world.clock).topology() == racks


def test_a_pass_asks_once_whatever_the_number_of_checks(world: World) -> None:
    """One squeue and one scontrol for a hundred checks; the next pass asks again."""
    slurm = world.snapshot("alice")
    for _ in range(100):
        assert slurm.jobs() == (PLAIN_JOB,)
        assert [node.name for node in slurm.nodes()] == ["n1"]
    assert world.requests == {"id": 1, "squeue": 1, "scontrol": 1}
    world.clock.advance(30)
    slurm.jobs()
    assert world.requests == {"id": 1, "squeue": 2, "scontrol": 1}


def test_only_the_watched_users_are_asked_for(world: World) -> None:
    """-u with all of them in one call, sorted."""
    world.snapshot("carol", "alice").jobs()
    [asked] = world.stand_ins.told("squeue")
    assert asked == "-a -u alice,carol"


def test_a_job_is_overdue_when_slurm_has_had_its_time_to_end_it(world: World) -> None:
    """COMPLETING within KillWait is saving (NVIDIA/deepops#1318). An end that nobody dates, and a
    slurmctld that does not say how long it takes, leave the job its processes."""
    world.stand_ins.says("id", ROOT_ID)
    world.scontrol(config=f"KillWait = 600 sec\n{CONFIG}")
    now = world.clock.now().wall // SECOND
    ends = {"1": now - 620, "2": now - 640, "3": None, "4": now + 5}
    world.stand_ins.says(
        "squeue",
        unmarked(
            listed(
                *(
                    row(id=i.encode(), job=i.encode(), state=b"COMPLETING", nodes=b"n1",
                        ends=b"N/A" if at is None else str(at).encode())
                    for i, at in ends.items()
                ),
                row(id=b"5", job=b"5", state=b"RUNNING", nodes=b"n1", ends=str(now - 9000).encode()),
            )
        ),
    )  # fmt: skip
    jobs = world.snapshot(everybody=True).jobs()
    assert [job.job_id for job in jobs if job.overdue] == ["2"]
    assert [job.job_id for job in jobs if not may_have_processes(job)] == ["2"]
    world.scontrol(config="")
    assert not any(job.overdue for job in world.snapshot(everybody=True).jobs())


def test_nobody_watched_is_no_question(world: World) -> None:
    """A configuration without job checks costs Slurm nothing."""
    assert world.snapshot().jobs() == ()
    assert world.requests == {}


def test_an_administrator_asks_for_everybody(world: World) -> None:
    """root needs no question about rights; no -u then."""
    world.stand_ins.says("id", ROOT_ID)
    assert world.snapshot(everybody=True).jobs() == (PLAIN_JOB,)
    assert "-u" not in world.stand_ins.told("squeue")[0].split()
    assert world.requests == {"id": 1, "squeue": 1}


def test_everybody_without_rights_is_cannot_tell(world: World) -> None:
    """The whole queue is not asked for as an ordinary user."""
    with pytest.raises(CannotTell, match="administrator's rights in Slurm, and alice has none"):
        world.snapshot(everybody=True).jobs()
    assert "squeue" not in world.requests


def test_hidden_jobs_are_cannot_tell(world: World) -> None:
    """PrivateData=jobs would make an empty list with exit code 0 of a full queue."""
    world.scontrol(config=CONFIG.replace("= none", "= jobs,usage"))
    with pytest.raises(CannotTell, match="PrivateData=jobs hides the jobs of bob from alice"):
        world.snapshot("alice", "bob").jobs()
    assert world.snapshot("alice").jobs() == (PLAIN_JOB,)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("22.05.8", {}),
        ("25.05.4", {}),
        ("25.11.0", {"sDTDM8106N2P00": "12"}),
        ("26.05.3", {"sDTDM8106N2P00": "12"}),
        ("", {}),
    ],
)
def test_sluids_are_asked_of_those_who_have_them(
    world: World, version: str, found: dict[str, str]
) -> None:
    """An older squeue would call the question an error."""
    world.scontrol(
        config=CONFIG.replace("SLURM_VERSION           = 22.05.8", f"SLURM_VERSION = {version}")
    )
    world.stand_ins.says("squeue", "JOBID  SLUID\n12   sDTDM8106N2P00\n")
    snapshot = world.snapshot("alice")
    assert [snapshot.sluids() for _ in range(3)] == [found] * 3
    assert world.requests.get("squeue", 0) == (1 if found else 0)


def test_rights_are_asked_for_once_an_hour(world: World) -> None:
    """slurm.conf does not change by the minute."""
    slurm = world.snapshot("alice", "bob")
    for _ in range(59):
        slurm.jobs()
        world.clock.advance(60)
    assert world.requests == {"id": 1, "scontrol": 1, "squeue": 59}
    world.clock.advance(60)
    slurm.jobs()
    assert world.requests == {"id": 2, "scontrol": 2, "squeue": 60}


def test_a_failing_squeue_is_not_an_empty_queue(world: World) -> None:
    """It is said again without asking while the pause lasts, and healed by the next success."""
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.clock.advance(30)
    world.stand_ins.says("squeue", err="slurm_load_jobs error: Zero Bytes\n", code=1)
    for _ in range(100):
        with pytest.raises(CannotTell, match="squeue: slurm_load_jobs error: Zero Bytes"):
            slurm.jobs()
    assert world.requests["squeue"] == 2
    world.stand_ins.says("squeue", unmarked(listed(row())))
    world.clock.advance(5)
    assert slurm.jobs() == (PLAIN_JOB,)


def test_a_failing_squeue_does_not_blind_the_checks_of_nodes(world: World) -> None:
    """Each question has its own answer."""
    world.stand_ins.says("squeue", err="squeue: error: Invalid user: alice\n")
    slurm = world.snapshot("alice")
    with pytest.raises(CannotTell, match="Invalid user"):
        slurm.jobs()
    assert len(slurm.nodes()) == 1


def test_an_answer_of_another_call_is_not_believed(world: World) -> None:
    """A row that was recorded earlier, and is now somebody's job name, has the old nonce."""
    world.stand_ins.says("squeue", listed(row()))
    with pytest.raises(CannotTell, match="not in the form asked for"):
        world.snapshot("alice").jobs()


def test_the_controller_is_asked_each_time(world: World) -> None:
    """Its answer is about now; the cluster's name comes with it, asked once an hour."""
    slurm = world.snapshot()
    for _ in range(3):
        told = slurm.controller()
    assert (told.primary, told.primary_up, told.cluster, told.version) == (
        "ctl1",
        True,
        "h100",
        "22.05.8",
    )
    assert told.latency > 0
    assert world.requests == {"scontrol": 4}


def test_a_controller_that_is_down_is_an_answer(world: World) -> None:
    """Not CannotTell: ping exists to say so. Why, which ping does not say, is asked once."""
    world.scontrol(ping="Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup) at b is DOWN\n")
    told = world.snapshot().controller()
    assert told == Controller(
        primary="ctl1", primary_up=False, backups=(("b", False),), latency=told.latency
    )
    assert world.requests == {"scontrol": 2}


DOWN = 'case "$*" in *ping*) echo "Slurmctld(primary) at ctl1 is DOWN";; *) {};; esac\n'


def test_a_controller_of_another_version_is_not_down(world: World) -> None:
    """What scontrol 22.05.8 says of slurmctld 26.05.3, which answers to its own commands."""
    said = "echo 'slurm_load_ctl_conf error: Insane message length' >&2; exit 1"
    world.stand_ins.script("scontrol", f"#!/bin/sh\n{DOWN.format(said)}")
    with pytest.raises(CannotAsk, match="are of another version than slurmctld: PATH or") as error:
        world.snapshot().controller()
    assert str(error.value).endswith("slurm_load_ctl_conf error: Insane message length")


def test_why_a_controller_is_down_is_not_waited_for(world: World) -> None:
    """A dead one is tried for MessageTimeout; one that breaks off is heard at once."""
    world.stand_ins.script("scontrol", f"#!/bin/sh\n{DOWN.format('exec sleep 60')}")
    began = time.monotonic()
    assert world.snapshot().controller().trouble == ""
    assert time.monotonic() - began < 20
    said = "echo 'slurm_load_ctl_conf error:Zero Bytes were transmitted or received' >&2; exit 1"
    world.stand_ins.script("scontrol", f"#!/bin/sh\n{DOWN.format(said)}")
    told = world.snapshot().controller()
    assert not told.primary_up
    assert "or it is of an older version than Slurm's commands here" in told.trouble


HTTP = CONFIG.replace("22.05.8", "25.11.0") + "SlurmctldPort = 6817-6820\n"


@pytest.mark.parametrize(
    ("config", "answers", "trouble", "asked"),
    [
        (HTTP, {"readyz": "204"}, "slurmctld itself says that it is ready for", 1),
        (HTTP, {"readyz": "500", "livez": "204"}, "that it lives, and not that it is ready", 2),
        (HTTP, {"readyz": "500", "livez": "500"}, "", 2),
        (HTTP, {"readyz": "200", "livez": "404"}, "", 2),
        (HTTP, {}, "", 1),
        (HTTP.replace("25.11.0", "25.05.9"), {"readyz": "204"}, "", 0),
        (HTTP.replace("6817-6820", "N/A"), {"readyz": "204"}, "", 0),
    ],
)
def test_a_slurmctld_that_does_not_answer_scontrol_is_asked_itself(
    world: World, config: str, answers: dict[str, str], trouble: str, asked: int
) -> None:
    """By HTTP, which Slurm has since 25.11: only 204 says something, and no answer says nothing."""
    cases = "".join(f"*/{path}) printf {code}; exit 0;; " for path, code in answers.items())
    log = f'echo "$0 $*" >> {world.stand_ins._log}'
    world.stand_ins.script("curl", f'#!/bin/sh\n{log}\ncase "$*" in {cases} esac\nexit 7\n')
    world.scontrol(config=config)
    slurm = ControllerProbe(world.client, world.clock, readyz="http")
    assert slurm.ask_controllers().trouble == ""
    assert world.stand_ins.told("curl") == []
    world.scontrol(config=config, ping=UP.replace("UP", "DOWN"))
    told = slurm.ask_controllers()
    assert not told.primary_up
    assert trouble in told.trouble
    assert bool(trouble) == bool(told.trouble)
    urls = [line.split()[-1] for line in world.stand_ins.told("curl")]
    assert urls == [f"http://10.0.0.1:6817/{path}" for path in ("readyz", "livez")][:asked]


def test_a_ping_that_says_nothing_is_cannot_tell(world: World) -> None:
    """scontrol without a configuration prints its error, and no controller."""
    world.stand_ins.says("scontrol", err="scontrol: fatal: no configuration\n", code=1)
    with pytest.raises(CannotTell, match="scontrol: fatal: no configuration"):
        world.snapshot().controller()


def test_an_end_is_asked_for_once(world: World) -> None:
    """A job that is over stays over."""
    world.stand_ins.says("squeue", unmarked(remembered()))
    slurm = world.snapshot("alice")
    for _ in range(10):
        end = slurm.job_end("15")
    assert end is not None
    assert (end.state, end.exit_code, world.requests) == ("FAILED", 3, {"squeue": 1})


def test_an_id_that_is_in_the_queue_again_has_another_end(world: World) -> None:
    """Requeued after its end, or given anew: what was remembered was the end of the run before."""
    world.stand_ins.says("squeue", unmarked(remembered()))
    slurm = world.snapshot("alice")
    first = slurm.job_end(PLAIN_JOB.job_id)
    world.stand_ins.says("squeue", unmarked(listed(row())))
    assert slurm.jobs() == (PLAIN_JOB,)
    world.stand_ins.says("squeue", unmarked(remembered(state=b"COMPLETED", exit=b"0:0")))
    second = slurm.job_end(PLAIN_JOB.job_id)
    assert first is not None
    assert second is not None
    assert (first.state, second.state) == ("FAILED", "COMPLETED")


def test_a_job_that_lives_is_asked_for_again(world: World) -> None:
    """Its state may be another one now."""
    world.stand_ins.says("squeue", unmarked(remembered(state=b"RUNNING")))
    slurm = world.snapshot("alice")
    slurm.job_end("15")
    world.stand_ins.says("squeue", unmarked(remembered(state=b"TIMEOUT")))
    end = slurm.job_end("15")
    assert end is not None
    assert end.state == "TIMEOUT"


FORGOTTEN = "slurm_load_jobs error: Invalid job id specified\n"
ACCOUNTING = CONFIG.replace("accounting_storage/none", "accounting_storage/slurmdbd")


def test_a_job_that_nothing_remembers_is_none(world: World) -> None:
    """slurmctld forgot it and there is no accounting: that is an answer too."""
    world.stand_ins.says("squeue", err=FORGOTTEN, code=1)
    assert world.snapshot("alice").job_end("15") is None


def test_what_slurmctld_forgot_accounting_knows(world: World) -> None:
    """-D: the run that a failed node ended is listed only so. The uid becomes a name."""
    world.scontrol(config=ACCOUNTING)
    world.stand_ins.says("squeue", err=FORGOTTEN, code=1)
    world.stand_ins.says("sacct", unmarked(booked()))
    world.stand_ins.says("id", "bob\n")
    end = world.snapshot("alice").job_end("15")
    assert end is not None
    assert (end.state, end.cancelled_by, end.source) == ("CANCELLED", "bob", "sacct")
    help_call, asked = world.stand_ins.told("sacct")
    assert help_call == "--helpformat"
    assert asked.startswith("-n -p -X -D --delimiter=x")
    assert " -o JobIDRaw,JobID,State,ExitCode,Start,End,NodeList,Reason,JobName," in asked
    assert asked.endswith(" -j 15")


@pytest.mark.parametrize(
    ("shown", "config", "booked_at", "found"),
    [
        (10, CONFIG, None, ["15"]),  # slurmctld has it
        (-900, CONFIG, None, None),  # it may have forgotten a newer one, and nobody else knows
        (-900, f"MinJobAge = 300 sec\n{CONFIG}", None, []),  # it would still know it
        (-900, ACCOUNTING, 20, ["15"]),
        (-900, ACCOUNTING, -900, []),
    ],
)
def test_a_submission_is_looked_for_in_slurmctld_and_then_in_accounting(
    world: World, shown: int, config: str, booked_at: int | None, found: list[str] | None
) -> None:
    """By its name and its time. None: neither can say."""
    since = world.clock.now().wall / SECOND
    told = {"submitted": str(int(since) + shown).encode()}
    header = b"JOBID" + NONCE.encode() + b".\n"
    world.stand_ins.says("squeue", unmarked(header + remembered(**told)))
    world.scontrol(config=config)
    if booked_at is not None:
        at = str(int(since) + booked_at).encode()
        world.stand_ins.says("sacct", unmarked(booked(submitted=at)))
    world.clock.advance(200)
    assert world.snapshot("alice").submitted_since("train", since, "14") == found


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ({"15": -5, "16": -1, "17": 9}, ["17"]),
        ({"15": -5, "16": -1}, []),  # the one before it died within the minute, too
        ({"15": 9, "16": -1}, ["15"]),  # the ids began anew
        ({"15": -1, "16": -1}, ["15"]),  # the same second: nobody can tell
        ({"15": -5}, ["15"]),  # the dead one is forgotten
        ({"16": -1}, []),
    ],
)
def test_what_was_submitted_before_the_dead_job_is_no_answer_to_its_death(
    world: World, shown: dict[str, int], found: list[str]
) -> None:
    """Both times are of Slurm's own clock. Job 16 died."""
    since = int(world.clock.now().wall / SECOND)
    header = b"JOBID" + NONCE.encode() + b".\n"
    rows = [
        remembered(
            **dict.fromkeys(("job", "form", "array"), n.encode()), submitted=b"%d" % (since + s)
        )
        for n, s in shown.items()
    ]
    world.stand_ins.says("squeue", unmarked(b"".join([header, *rows])))
    world.scontrol(config=f"MinJobAge = 300 sec\n{CONFIG}")
    assert world.snapshot("alice").submitted_since("train", since, "16") == found


# What each sacct prints for a job that a shell ended with 137: src/sacct/print.c, PRINT_EXITCODE.
@pytest.mark.parametrize(
    ("slurmctld", "sacct", "printed", "codes"),
    [
        ("24.05.8", "", b"9:0", (9, 137)),
        ("24.05.8", "", b"1:0", (1, None)),  # an error of its own: 129 would be a lost terminal
        ("24.05.8", "", b"2:0", (2, None)),
        ("24.05.8", "", b"0:9", (0, None)),  # a signal is one
        ("24.05.8", "", b"64:0", (64, None)),
        ("25.11.0", "25.11.0", b"9:0", (9, None)),
        ("25.11.0", "25.11.0", b"137:0", (137, None)),
        ("26.05.1", "25.05.2", b"11:0", (11, 139)),  # an older client on this host
    ],
)
def test_an_exit_code_is_read_as_its_sacct_prints_it(
    world: World, slurmctld: str, sacct: str, printed: bytes, codes: tuple[int, int | None]
) -> None:
    """Before 25.11 it prints codes above 127 less 128."""
    world.scontrol(config=ACCOUNTING.replace("22.05.8", slurmctld))
    world.stand_ins.says("squeue", err=FORGOTTEN, code=1)
    said = unmarked(booked(state=b"FAILED", exit=printed))
    world.stand_ins.says("sacct", said, release=sacct)
    end = world.snapshot("alice").job_end("15")
    assert end is not None
    assert (end.exit_code, end.or_exit_code) == codes
    assert ("--version" in world.stand_ins.told("sacct")) is bool(sacct)


def test_a_sacct_that_tells_no_version_may_be_an_old_one(world: World) -> None:
    """A job that was killed is not taken for one that ended with 9, and submitted again."""
    world.scontrol(config=ACCOUNTING.replace("22.05.8", "25.11.0"))
    world.stand_ins.says("squeue", err=FORGOTTEN, code=1)
    world.stand_ins.says("sacct", unmarked(booked(state=b"FAILED", exit=b"9:0")))
    sacct = world.stand_ins.path("sacct")
    shy = '#!/bin/sh\n[ "$1" = --version ] && { echo "sacct: error: cannot load" >&2; exit 1; }\n'
    sacct.write_text(shy + sacct.read_text().partition("\n")[2])
    end = world.snapshot("alice").job_end("15")
    assert end is not None
    assert (end.exit_code, end.or_exit_code) == (9, 137)


def test_accounting_says_who_cancelled_a_job_slurmctld_remembers(world: World) -> None:
    """Only there is it written down."""
    world.scontrol(config=ACCOUNTING)
    world.stand_ins.says("squeue", unmarked(remembered(state=b"CANCELLED", exit=b"0")))
    world.stand_ins.says("sacct", unmarked(booked(state=b"CANCELLED by 1")))
    world.stand_ins.says("id", err="id: '1': no such user\n", code=1)
    end = world.snapshot("alice").job_end("15")
    assert end is not None
    assert (end.cancelled_by, end.stdout, end.source) == ("1", "/work/slurm-15.out", "squeue")


def test_accounting_that_lags_behind_is_not_mixed_in(world: World) -> None:
    """What it says of the run before is not told of this one."""
    world.scontrol(config=ACCOUNTING)
    world.stand_ins.says("squeue", unmarked(remembered(state=b"NODE_FAIL", exit=b"0")))
    world.stand_ins.says("sacct", unmarked(booked(state=b"CANCELLED by 1000")))
    end = world.snapshot("alice").job_end("15")
    assert end is not None
    assert (end.state, end.cancelled_by) == ("NODE_FAIL", "")


def test_a_broken_accounting_does_not_hide_what_slurmctld_says(world: World) -> None:
    """Half of the story is told; for a job only accounting could know, it is cannot tell."""
    world.scontrol(config=ACCOUNTING)
    world.stand_ins.says("sacct", err="sacct: error: slurmdbd: Connection refused\n", code=1)
    world.stand_ins.says("squeue", unmarked(remembered(state=b"CANCELLED", exit=b"0")))
    slurm = world.snapshot("alice")
    end = slurm.job_end("15")
    assert end is not None
    assert (end.state, end.cancelled_by) == ("CANCELLED", "")
    world.stand_ins.says("squeue", err=FORGOTTEN, code=1)
    with pytest.raises(CannotTell, match="Connection refused"):
        slurm.job_end("16")


def test_many_dead_jobs_do_not_hammer_a_dead_slurmctld(world: World) -> None:
    """The first failure speaks for all jobs until its pause is over."""
    world.stand_ins.says("squeue", err="slurm_load_jobs error: Unable to contact\n", code=1)
    slurm = world.snapshot("alice")
    for job in range(50):
        with pytest.raises(CannotTell, match="Unable to contact"):
            slurm.job_end(str(job))
    assert world.requests == {"squeue": 1}


def test_connect_asks_nothing(stand_ins: StandIns) -> None:
    """A service may start while Slurm is down; settings become limit and prefix."""
    settings = SlurmSettings(command_prefix=["env", "X=1"])
    slurm = connect_slurm(settings, frozenset({"alice"}), 30.0, ManualClock())
    assert (slurm.client.limit, slurm.client.counts) == (20.0, {})


def again(*records: bytes) -> bytes:
    """The answer to the second look: a header, then these."""
    header = remembered(job=b"JOBID", form=b"X", state=b"STATE")
    return unmarked(b"".join((header, *records)))


def test_a_second_look_is_one_question_for_all_that_ask(world: World) -> None:
    """In one pass; and it is taken after the list that it checks."""
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue", again(remembered(), remembered(job=b"16", form=b"16")))
    world.clock.advance(10)
    for ids in ({"15"}, {"16"}, {"15", "16"}):
        past = slurm.past(ids, {"train"}, 60)
        assert [(run.job_id, run.state, run.name, run.user) for run in past.runs] == [
            ("15", "FAILED", "train", "alice"),
            ("16", "FAILED", "train", "alice"),
        ]
    assert world.requests["squeue"] == 2
    assert " -t all " in world.stand_ins.told("squeue")[1]
    assert world.stand_ins.told("squeue")[1].endswith(" -u alice")
    world.clock.advance(21)  # the list is too old now, the second look would not be
    world.stand_ins.says("squeue", unmarked(listed(row())))
    slurm.jobs()
    world.stand_ins.says("squeue", again())
    assert slurm.past({"15"}, (), 60).runs == ()


def test_a_second_look_that_shows_nothing_at_all_is_cannot_tell(world: World) -> None:
    """Not even a header."""
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue")
    with pytest.raises(CannotTell, match="not even its header"):
        slurm.past({"15"}, (), 60)


def test_a_slow_slurmctld_is_not_asked_a_second_time(stand_ins: StandIns) -> None:
    """A quarter of the limit is slow."""
    world = World(stand_ins)
    world.client = SlurmClient(environ=stand_ins.env, limit=2)
    answer = stand_ins._folder / "squeue.out"
    script = (stand_ins._folder / "squeue").read_text()
    stand_ins.script("squeue", script.replace("#!/bin/sh\n", "#!/bin/sh\nsleep 0.6\n", 1))
    assert answer.exists()
    slurm = world.snapshot("alice")
    slurm.jobs()
    with pytest.raises(CannotTell, match="is not asked a second time"):
        slurm.past({"15"}, (), 60)
    assert world.requests["squeue"] == 1


def test_when_slurmctld_started_is_asked_where_it_knows_nothing_of_a_job(world: World) -> None:
    """The configuration of an hour ago does not say it."""
    world.scontrol(config=CONFIG + "BOOT_TIME               = 1790000000\nNEXT_JOB_ID = 7\n")
    slurm = world.snapshot("alice")
    slurm.jobs()
    slurm.config()
    world.stand_ins.says("squeue", again())
    world.scontrol(config=CONFIG + "BOOT_TIME               = 1790009999\nNEXT_JOB_ID = 1\n")
    past = slurm.past({"15"}, (), 60)
    assert (past.booted, past.next_id) == (1790009999, 1)


def test_accounting_is_asked_by_id_and_by_name_for_what_slurmctld_does_not_have(
    world: World,
) -> None:
    """Once for each of the two; a name that Slurm would take for several, or for the last one, is not
    asked for."""
    world.scontrol(config=ACCOUNTING)
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue", again(remembered()))
    world.stand_ins.says("sacct", unmarked(booked(job=b"16", form=b"16", name=b"a\n|b")))
    world.stand_ins.says("id", "bob\n")
    past = slurm.past({"15", "16"}, {"train", "other", "x,y", '"x"', "'y'"}, 60)
    assert {(run.job_id, run.name, run.cancelled_by) for run in past.runs} == {
        ("15", "train", ""),
        ("16", "a\n|b", "bob"),
    }
    by_id, by_name = world.stand_ins.told("sacct")[1:]
    assert by_id.endswith(" --jobs=16")
    assert by_name.endswith(" --name=other -S now-60seconds -E now+1hour -u alice")


def test_gpus_are_never_of_an_older_question_than_the_jobs(world: World) -> None:
    """A job without GPUs in the answer has ended, then: it did not begin since."""
    jobs, slurm = unmarked(listed(row())), world.snapshot("alice")
    world.stand_ins.says("squeue", "")
    slurm.gpus()
    world.clock.advance(20)
    world.stand_ins.says("squeue", jobs)
    assert slurm.jobs() == (PLAIN_JOB,)
    world.stand_ins.says("squeue", "")
    slurm.gpus()
    assert world.requests["squeue"] == 3


def test_accounting_is_asked_for_all_that_failed_where_slurmctld_forgets_sooner(
    world: World,
) -> None:
    """MinJobAge is 300 seconds here: a window that slurmctld remembers is not asked of sacct."""
    world.scontrol(config=ACCOUNTING + "MinJobAge               = 300 sec\n")
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue", again())
    world.stand_ins.says("sacct", unmarked(booked()))
    world.stand_ins.says("id", "bob\n")
    assert slurm.past((), (), 60, failed_within=300).runs == ()
    (run,) = slurm.past((), (), 60, failed_within=301).runs
    assert (run.node_count, run.gpus) == (2, None)  # it may not count GPUs
    (asked,) = world.stand_ins.told("sacct")[1:]
    when = "-S now-301seconds -E now+1hour"
    assert asked.endswith(f" --state=BF,CA,DL,F,NF,OOM,TO {when} -u alice")


def _asked_names(world: World) -> list[set[str]]:
    """The names of each question about names so far."""
    words = [word for line in world.stand_ins.told("sacct") for word in line.split()]
    lists = [word.removeprefix("--name=") for word in words if word.startswith("--name=")]
    assert all(len(one) < 2**16 for one in lists)
    return [set(one.split(",")) for one in lists]


def _watched(world: World) -> SlurmSnapshot:
    world.scontrol(config=ACCOUNTING + "MinJobAge               = 300 sec\n")
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue", again())
    world.stand_ins.says("sacct", unmarked(booked()))
    world.stand_ins.says("id", "bob\n")
    return slurm


def test_long_names_of_one_user_do_not_keep_accounting_from_being_asked(world: World) -> None:
    """Linux takes 128 KiB in one argument; all of these names have 195 KB. One piece after the
    other is asked, and what failed is asked as well."""
    slurm = _watched(world)
    names = {f"{number:03}{'n' * 997}" for number in range(195)}
    past = slurm.past({"15"}, names, 60, failed_within=301)
    assert ([run.job_id for run in past.runs], past.unasked) == (["15"], "")
    asked = _asked_names(world)
    assert len(asked) == 3
    assert set().union(*asked) == names
    assert "--state=" in world.stand_ins.told("sacct")[3]


def test_of_very_many_names_some_are_asked_now_and_the_rest_in_the_next_pass(world: World) -> None:
    """Slurmdbd is asked eight times at most; which names were not asked about is said."""
    slurm = _watched(world)
    names = {f"{number:03}{'n' * 997}" for number in range(700)}
    past = slurm.past({"15"}, names, 60)
    first = set().union(*_asked_names(world))
    assert (past.unasked, past.left_out) == (
        "too many jobs to ask accounting about at once",
        names - first,
    )
    assert (past.was_asked("15"), past.was_asked(max(names)), past.was_asked(min(names))) == (
        True,
        False,
        True,
    )
    assert len(world.stand_ins.told("sacct")) == 9  # which fields it has, too
    slurm.past({"15"}, names, 60, failed_within=301)
    assert set().union(*_asked_names(world)) == names


def test_very_many_names_of_one_user_keep_no_id_from_being_asked(world: World) -> None:
    """5,000 names of a kilobyte are 77 questions: the ids of others' jobs were asked one pass in ten. All
    names have their turn, too."""
    slurm = _watched(world)
    names = {f"{number:04}{'n' * 996}" for number in range(5_000)}
    asked = [slurm.past({"15", "16"}, names, 60) for _ in range(11)]
    assert [past.was_asked("15") for past in asked] == [True] * 11
    assert set().union(*_asked_names(world)) == names


def test_a_question_that_fails_leaves_out_only_its_own_jobs(world: World) -> None:
    """The others are answered, and accounting is asked again at once."""
    slurm = _watched(world)
    script = (world.stand_ins._folder / "sacct").read_text()
    refuses = 'case "$*" in *--name=*) echo "sacct: error: no" >&2; exit 1;; esac\n'
    world.stand_ins.script("sacct", script.replace("for word;", f"{refuses}for word;", 1))
    for _ in range(2):
        past = slurm.past({"15"}, {"train"}, 60)
        assert ([run.job_id for run in past.runs], past.left_out) == (["15"], {"train"})
        assert past.unasked == "sacct: error: no"
        assert (past.was_asked("15"), past.was_asked("train")) == (True, False)
    world.stand_ins.says("sacct", unmarked(booked()))
    assert slurm.past({"15"}, {"train"}, 60).was_asked("train")


def test_very_many_job_ids_are_asked_in_pieces_too(world: World) -> None:
    """Twenty thousand have 140 KB."""
    slurm = _watched(world)
    past = slurm.past({str(number) for number in range(1_000_000, 1_020_000)}, (), 60)
    assert ([run.job_id for run in past.runs], past.unasked) == (["15"], "")
    lists = [line.split("--jobs=")[1] for line in world.stand_ins.told("sacct")[1:]]
    assert sum(len(one.split(",")) for one in lists) == 20_000


def test_a_slow_slurmdbd_is_left_alone_for_a_while(world: World) -> None:
    """What it said is used; the next question waits, and what it might know is said to be missing."""
    world.client = SlurmClient(environ=world.stand_ins.env, limit=2)
    world.scontrol(config=ACCOUNTING)
    slurm = world.snapshot("alice")
    slurm.jobs()
    world.stand_ins.says("squeue", again())
    world.stand_ins.says("sacct", unmarked(booked()))
    script = (world.stand_ins._folder / "sacct").read_text()
    world.stand_ins.script("sacct", script.replace("#!/bin/sh\n", "#!/bin/sh\nsleep 0.6\n", 1))
    assert [run.job_id for run in slurm.past({"15"}, (), 60).runs] == ["15"]
    past = slurm.past({"17"}, (), 60)
    assert past.runs == ()
    assert "slurmdbd took" in past.unasked
    assert world.requests["sacct"] == 2  # which fields it has, and one question
