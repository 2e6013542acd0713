"""Chains and cron directories on a real cluster, by the command line."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from sentinel.chain.install import link_script
from sentinel.chain.mend import SubmitLink
from sentinel.chain.queue import ChainQueue
from sentinel.chain.script_book import CronBook, read_book, write_book
from sentinel.slurm.client import SlurmClient
from tests.chain import faults
from tests.chain.faults import World
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until


@pytest.fixture
def world(fresh: Lab, tmp_path: Path) -> World:
    """A user without a chain yet."""
    return World(fresh, tmp_path, every=3600, seed=1)


def status(world: World) -> "dict[str, object]":
    done = world.sentinel("cron", "status", "--json")
    facts: dict[str, object] = json.loads(done.stdout)
    return facts


def test_a_chain_is_begun_shown_and_taken_away(world: World) -> None:
    """Begun twice it is still one; --print changes nothing; remove leaves nothing behind."""
    shown = world.sentinel("cron", "install", "--print")
    assert "cron link --dir" in shown.stdout
    assert "sbatch --parsable --job-name=sentinel-" in shown.stdout
    assert not world.waiting()
    assert not Path(world.place.folder).exists()
    world.install()
    world.install()
    assert len(world.waiting()) == 3
    assert status(world)["well"] is True
    ticked = json.loads(world.sentinel("tick", "--json").stdout)
    assert {c["check"]: c["status"] for c in ticked["checks"]}["chain"] == "ok"
    items = {i["name"]: i for i in json.loads(world.sentinel("doctor", "--json").stdout)}
    assert items["chain"]["status"] == "ok"
    removed = world.sentinel("cron", "remove")
    assert removed.returncode == 0
    assert not world.waiting()
    assert not Path(world.place.folder).exists()
    assert world.sentinel("cron", "status").returncode == 66


def test_ensure_mends_and_may_be_called_by_anybody_at_any_time(world: World) -> None:
    """Cancelled, held, all gone: it says what it does, and nothing when there is nothing to do."""
    world.install()
    first, second, _third = sorted(world.waiting(), key=int)
    world.lab.run(["scancel", first])
    world.lab.run(["scontrol", "hold", second])
    assert status(world)["well"] is False
    said = world.sentinel("cron", "ensure").stderr
    assert f"released {second}" in said
    assert "submitted" in said
    assert world.sentinel("cron", "ensure").stderr == ""
    assert (len(world.waiting()), status(world)["well"]) == (3, True)
    world.lab.run(["scancel", *world.waiting()])
    world.two_at_once()
    assert len(world.waiting()) == 3


@pytest.mark.long
def test_a_chain_survives_what_befalls_it(fresh: Lab, tmp_path: Path) -> None:
    """Every slot is run once or its absence is explained, and never are two ticks at work.

    The long form, thirty minutes of all faults: `python -m tests.chain.faults`.
    """
    world = World(fresh, tmp_path, every=5, seed=4)
    world.install()
    for fault in (world.scancel_one, world.hold, world.no_sbatch):
        time.sleep(11)
        world.befall(fault)
    wait_until(
        lambda: faults.verdict(world, time.time()).alive,
        lambda: world.sentinel("cron", "status").stdout,
        40,
    )
    found = faults.verdict(world, time.time())
    assert (found.repeated, found.overlapping, found.failures) == (0, 0, [])
    assert found.ran >= 3
    world.sentinel("cron", "remove")


@pytest.mark.long
def test_a_requeued_link_runs_with_its_next_turn(fresh: Lab, tmp_path: Path) -> None:
    """Slurm would let it wait for two minutes; the next link moves it, and none runs twice."""
    world = World(fresh, tmp_path, every=5, seed=1)
    world.install()
    job = world.wait_for_work(20)
    world.lab.run(["scontrol", "requeue", job])
    requeued = time.time()
    wait_until(
        lambda: any(e.job == job and e.at > requeued + 5 for e in world.place.read_journal()),
        lambda: world.sentinel("cron", "status").stdout,
        60,
    )
    found = faults.verdict(world, time.time())
    assert (found.repeated, found.overlapping) == (0, 0)
    world.sentinel("cron", "remove")


@pytest.mark.long
def test_a_state_that_is_removed_ends_the_chain(fresh: Lab, tmp_path: Path) -> None:
    """Under a link that works on since nothing can be submitted: it ends well, and nothing of it
    comes back, neither the folder nor a job."""
    world = World(fresh, tmp_path, every=5, seed=1)
    world.install()
    (world.home / "no-sbatch").touch()
    job = world.wait_for_work(20)
    wait_until(lambda: world.place.read_journal(), "its first pass", 20)
    shutil.rmtree(world.home / "state")
    world.lab.wait_state(job, "COMPLETED", 40)
    (world.home / "no-sbatch").unlink()
    idle(world)
    assert not Path(world.place.folder).exists()


def test_status_says_when_a_chain_has_ended(world: World) -> None:
    """All waiting links cancelled: nothing inside begins it again, and that is told."""
    world.install()
    world.lab.run(["scancel", *world.waiting()])
    done = world.sentinel("cron", "status")
    assert done.returncode == 1
    assert "PROBLEM: the chain has ended" in done.stdout
    assert "nothing runs until: sentinel cron ensure" in done.stdout
    world.sentinel("cron", "ensure")
    assert status(world)["well"] is True


def test_a_chain_outlives_its_sentinel(world: World) -> None:
    """A broken installation: the script of the link submits the next one by itself, once."""
    world.install()
    script = Path(world.place.script_path)
    script.write_text(script.read_text().replace("-m sentinel", "-m sentinel_is_away"))
    world.lab.run(["scancel", *world.waiting()])
    name = f"{world.place.read_chain().name}-a"
    argv = ["sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", "--time=10"]
    for _ in range(2):
        job = world.lab.run([*argv, str(script)], env=world.env).stdout.strip()
        world.lab.wait_state(job, "FAILED", 40)
        assert len(world.waiting()) == 1
    script.write_text(script.read_text().replace("sentinel_is_away", "sentinel"))
    assert world.sentinel("cron", "ensure").returncode == 0
    assert len(world.waiting()) == 3


@pytest.mark.long
def test_a_chain_outlives_its_file_system(fresh: Lab, tmp_path: Path) -> None:
    """While it is away Slurm could not open a link's output there, and would start none; then they
    submit each other without sentinel, and when it is back they make passes again."""
    world = World(fresh, tmp_path, every=5, seed=1)
    world.install()
    chain = replace(
        world.place.read_chain(), mount=str(tmp_path / "bin")
    )  # where nothing is mounted
    submission = ChainQueue(chain, world.place, SlurmClient()).submission_argv(
        SubmitLink(chain.strand_names[0], 0)
    )
    world.place.install_files(chain, link_script(chain, world.place, submission))
    wait_until(lambda: world.place.read_journal(), "its first pass", 30)
    (tmp_path / "state").rename(tmp_path / "away")
    (tmp_path / "state").touch()  # nobody can write there
    time.sleep(25)
    assert world.waiting()
    (tmp_path / "state").unlink()
    (tmp_path / "away").rename(tmp_path / "state")
    back = time.time()
    wait_until(
        lambda: any(e.what == "ran" and e.at > back for e in world.place.read_journal()),
        lambda: world.sentinel("cron", "status").stdout,
        40,
    )
    world.sentinel("cron", "remove")
    idle(world)


def test_a_relay_outlives_its_sentinel(world: World) -> None:
    """A broken installation: its script submits the next one, as a link's does."""
    world.install("--mode", "relay")
    script = Path(world.place.script_path)
    script.write_text(script.read_text().replace("-m sentinel", "-m sentinel_is_away"))
    world.lab.cancel_all()  # a runner that scancel ends hands over first, and cancels one too many
    name = f"{world.place.read_chain().name}-a"
    argv = ["sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", "--time=10"]
    job = world.lab.run([*argv, str(script)], env=world.env).stdout.strip()
    world.lab.wait_state(job, "FAILED", 40)
    assert len(world.waiting()) == 1


@pytest.mark.long
def test_a_relay_hands_over(world: World) -> None:
    """The next runner waits beside the running one, and takes over when it ends."""
    world.install("--mode", "relay")
    wait_until(
        lambda: "of job" in _leader(world), lambda: world.sentinel("cron", "status").stdout, 20
    )
    first = _leader(world).partition("of job ")[2].split()[0]
    wait_until(lambda: world.waiting(), "a successor", 20)
    (second,) = world.waiting()
    world.lab.run(["scontrol", "update", f"jobid={second}", "starttime=now"])
    wait_until(lambda: len(world.at_work()) == 2, "both", 20)
    time.sleep(3)
    assert f"of job {first} " in _leader(world)
    world.lab.run(["scancel", "--batch", "--signal=TERM", first])
    wait_until(lambda: f"of job {second} " in _leader(world), lambda: _leader(world), 30)
    assert world.sentinel("cron", "remove").returncode == 0


@pytest.mark.long
def test_a_relay_looks_after_its_successor(fresh: Lab, tmp_path: Path) -> None:
    """It may be cancelled, or sbatch have failed: at the end of the runner all would be over."""
    world = World(fresh, tmp_path, every=5, seed=1)
    world.install("--mode", "relay")
    wait_until(
        lambda: "of job" in _leader(world), lambda: world.sentinel("cron", "status").stdout, 20
    )
    wait_until(lambda: world.waiting(), "a successor", 20)
    (first,) = world.waiting()
    world.lab.run(["scancel", first])
    wait_until(lambda: world.waiting() not in ([], [first]), "another", 30)
    assert world.sentinel("cron", "remove").returncode == 0
    idle(world)


HIDDEN = """
import sys
from sentinel.chain.model import Chain
from sentinel.chain.folder import ChainFolder
from sentinel.chain.queue import ChainQueue
from sentinel.slurm.client import SlurmClient

place, chain = ChainFolder(sys.argv[1]), Chain(name="s", every=600, command=("x",), revision="r")
place.install_files(chain, "#!/bin/sh\\n")
for _ in range(2):
    print(ChainQueue(chain, place, SlurmClient()).mend_chain())
"""


def test_a_chain_in_a_hidden_partition_is_one_chain(fresh: Lab) -> None:
    """squeue shows an ordinary user none of it unless asked for all: links would be without end."""
    fresh.ask(["scontrol", "update", "partitionname=main", "hidden=yes"])
    try:
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        done = fresh.run([*nobody, sys.executable, "-c", HIDDEN, str(fresh.work / "chain")])
        assert sorted(fresh.ask(["squeue", "-h", "-o", "%j"]).split()) == ["s-a", "s-b", "s-c"], (
            done
        )
    finally:
        fresh.ask(["scontrol", "update", "partitionname=main", "hidden=no"])


def _leader(world: World) -> str:
    done = world.sentinel("status", "--json")
    return str(json.loads(done.stdout)["leader"]) if done.returncode == 0 else ""


def test_a_limit_above_the_partitions_is_told_at_once(world: World) -> None:
    """Slurm itself would let it wait for ever; nothing is installed. Unasked, it is kept to."""
    world.lab.run(["scontrol", "update", "partitionname=main", "maxtime=30"])
    done = world.sentinel("cron", "install", "--time", "2h")
    assert done.returncode == 64
    assert "--time 2h is more than partition main allows (30m)" in done.stderr
    assert not Path(world.place.folder).exists()
    world.install()
    world.lab.run(["scontrol", "update", "partitionname=main", "maxtime=infinite"])
    assert world.place.read_chain().time_limit == 1800


def test_no_slurm_at_all(world: World) -> None:
    """One line that says so."""
    world.env["PATH"] = "/nonexistent"
    done = world.sentinel("cron", "install")
    assert done.returncode == 69
    assert done.stderr.count("\n") == 1
    assert "Slurm's client commands are not installed or not in PATH" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "1s"), "--every must be 5s or longer"),
        (("--every", "soon"), "'soon' is no duration"),
        (("--strands", "4"), "--strands is 1 to 3"),
        (("--mode", "relay", "--time", "5m"), "--time must be longer"),
        (("--mode", "crontab", "--every", "7m"), "crontabs know only parts of an hour"),
    ],
)
def test_wishes_that_cannot_be(world: World, words: tuple[str, ...], said: str) -> None:
    """A usage error in one line."""
    done = world.sentinel("cron", "install", *words)
    assert (done.returncode >= 64, done.stderr.count("\n")) == (True, 1)
    assert said in done.stderr


# Directories of scripts

CRON_CONFIG = """\
cluster: chained
state: {home}/state
checks:
  scripts: {{kind: cron, base: {home}/cron, logs: {{count: 2}}}}
channels:
  book: {{kind: file, path: {home}/book.jsonl}}
"""


class Base:
    """A cron directory whose scripts were last looked at two hours ago."""

    def __init__(self, world: World) -> None:
        self.world, self.path = world, world.home / "cron"
        self.config = world.home / "sentinel.yaml"
        (self.path / "cron.hourly").mkdir(parents=True)
        self.config.write_text(CRON_CONFIG.format(home=world.home))

    def script(self, name: str, text: str, mode: int = 0o755) -> Path:
        path = self.path / "cron.hourly" / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def run(self) -> str:
        """A pass as if every script had last been looked at an hour ago."""
        done = self.world.sentinel("cron", "run")
        return done.stdout + done.stderr

    def hours_pass(self) -> None:
        known = read_book(str(self.path))
        then = time.time() - 3600
        records = {k: replace(r, handled=then) for k, r in known.records.items()}
        write_book(str(self.path), CronBook(at=then, records=records, refused=known.refused))

    def finding(self, name: str) -> dict[str, str]:
        done = self.world.sentinel("check", "scripts", "--json")
        rows = {f["subject"]: f for f in json.loads(done.stdout)["findings"]}
        found: dict[str, str] = rows[f"cron.hourly/{name}" if name != "schedule" else name]
        return found


@pytest.fixture
def base(world: World) -> Base:
    return Base(world)


def idle(world: World) -> None:
    wait_until(lambda: not world.queued(), "an empty queue", 20)


def test_scripts_run_when_due_and_their_ends_are_told(base: Base) -> None:
    """First looked at, they wait for their next slot; then each runs once for it."""
    base.script("good.slurm", "#!/bin/sh\n#SBATCH --time=1\necho well\n", 0o644)
    base.script("bad", "#!/bin/sh\necho the disk is on fire\nexit 3\n")
    base.script("true", "")
    (base.path / "cron.hourly/true").unlink()
    (base.path / "cron.hourly/program").symlink_to("/bin/true")
    base.script("README", "no script", 0o644)
    assert base.run() == ""
    base.hours_pass()
    said = base.run()
    assert said.count("submitted as job") == 3
    assert base.run() == ""
    idle(base.world)
    base.run()
    assert base.finding("good.slurm")["status"] == "ok"
    assert base.finding("program")["status"] == "ok"
    bad = base.finding("bad")
    assert (bad["status"], "exit code 3" in bad["summary"]) == ("warning", True)
    assert base.finding("schedule")["status"] == "ok"
    logs = list((base.path / "log/cron.hourly/bad").iterdir())
    assert [log.read_text() for log in logs] == ["the disk is on fire\n"]


def test_a_run_that_is_not_over_is_not_run_beside(base: Base) -> None:
    """`overlap=skip` is the rule where a script says nothing."""
    base.script("slow.slurm", "#!/bin/sh\nsleep 60\n")
    base.run()
    base.hours_pass()
    assert "submitted" in base.run()
    base.hours_pass()
    assert base.run() == ""
    assert len(base.world.queued()) == 1


def test_old_logs_go(base: Base) -> None:
    """All but the newest of each script."""
    folder = base.path / "log/cron.hourly/x"
    folder.mkdir(parents=True)
    for day in range(1, 6):
        (folder / f"2026-11-0{day}T0000-{day}.log").write_text("")
    base.run()
    assert sorted(p.name for p in folder.iterdir()) == [
        "2026-11-04T0000-4.log",
        "2026-11-05T0000-5.log",
    ]


def test_what_strangers_could_have_written_is_refused(base: Base) -> None:
    """World-writable, another's, a link to another's file; each says why, the others run."""
    theirs = base.world.home / "theirs"
    theirs.write_text("#!/bin/sh\n")
    theirs.chmod(0o755)
    os.chown(theirs, 12345, 12345)
    (base.path / "cron.hourly/link.slurm").symlink_to(theirs)
    base.script("open.slurm", "#!/bin/sh\n", 0o777)
    os.chown(base.script("other.slurm", "#!/bin/sh\n"), 12345, 12345)
    base.script("never.slurm", '#!/bin/sh\n#SENTINEL schedule="0 0 30 2 *"\n')
    base.script("mine.slurm", "#!/bin/sh\n")
    base.run()
    base.hours_pass()
    said = base.run()
    assert "mine.slurm: submitted" in said
    for name, why in (
        ("link.slurm", "belongs to uid 12345, whom `trust` does not name"),
        ("open.slurm", "everybody may write to it"),
        ("other.slurm", "belongs to uid 12345"),
        ("never.slurm", "never comes"),
    ):
        assert f"{name}: refused: " in said
        assert why in base.finding(name)["summary"]


def test_a_base_that_everybody_may_write_is_run_by_nobody(base: Base) -> None:
    """Whoever can add a script could be anybody."""
    base.path.chmod(0o777)
    done = base.world.sentinel("cron", "run")
    assert done.returncode == 66
    assert "everybody may write to it (chmod go-w); nothing of it is run" in done.stderr


def test_sbatch_that_fails_for_a_while_delays_a_script(base: Base) -> None:
    """The slot stays due, is told, and is submitted by a later pass."""
    base.script("mine.slurm", "#!/bin/sh\n")
    base.run()
    base.hours_pass()
    flag = base.world.home / "no-sbatch"
    flag.touch()
    assert "not submitted: sbatch: " in base.run()
    assert "not submitted" in base.finding("mine.slurm")["summary"]
    flag.unlink()
    assert "submitted as job" in base.run()


def test_a_relay_that_refuses_compute_nodes_is_named_and_mail_leaves_from_here(
    world: World, fresh: Lab, tmp_path: Path
) -> None:
    """The first job's test message is refused: `cron status` says where and why, once; what waits is
    sent by `sentinel deliver` on this host, which the relay knows."""
    here = str(fresh.subnet[1])
    with SmtpServer(tmp_path, host=here) as relay:
        relay.welcome_only(here)
        (world.home / "sentinel.yaml").write_text(
            f"cluster: lab\nstate: {world.home}/state\n"
            "checks: {bad: {kind: exec, command: [/bin/sh, -c, 'echo broken; exit 2']}}\n"
            "channels: {mail: {kind: email, to: [a@example.org], from: a@example.org, "
            f"host: '{here}', port: {relay.port}, security: none}}}}\n"
        )
        assert world.sentinel("notify", "test").returncode == 0
        world.install()
        link = ["cron", "link", "--dir", world.place.folder]
        argv = ["srun", "-N1", "-w", "node-1", sys.executable, "-m", "sentinel", *link]
        fresh.run(argv, env=world.env, limit=120)
        said = world.sentinel("cron", "status").stdout
        assert "mail: no message leaves node-1 (partition main): " in said
        assert "relay access denied" in said
        assert "alerts wait until you run on a login node: sentinel deliver" in said
        assert len(relay.mails) == 1
        assert world.sentinel("deliver").returncode == 0
        assert any("broken" in mail.message["Subject"] for mail in relay.mails)
