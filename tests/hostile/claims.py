"""What an ordinary user passes off as somebody else's: processes, programs, results, servers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import psycopg
from msgspec.structs import replace

from sentinel.actions.clean_up import read_clean_up_script
from sentinel.chain.script_book import CronBook, read_book, write_book
from sentinel.checks.log import ask
from tests.hostile.stage import SECRET, Outcome, Stage
from tests.lab.accounts import User
from tests.lab.cgroups import Cgroups, cgroup_tree
from tests.lab.postgres import Postgres
from tests.lab.waiting import wait_until
from tests.store.false_server import ASK_MD5, ASK_PASSWORD, WELCOME, listen_at, listening
from tests.store.other_roles import HERS, make_roles, url_of
from tests.store.test_server_proof import is_given, steal

TASK = "step_0/user/task_0"
SCOPES = (
    "../mine.service/s.slice/slurmstepd.scope/job_{job}/" + TASK,
    "../mine.service/slurm/uid_{uid}/job_{job}/step_0/task_0",
    "../user.slice/user-{uid}.slice/user@{uid}.service/slurmstepd.scope/job_{job}/" + TASK,
)
"""Where a user's own systemd, or a service that is delegated to a user, has folders of any name."""
LOGINS = ("sshd", "sshd-session", "login", "sshd: mallory [priv]", "/usr/sbin/sshd")
PROGRAMS = 8
SWAP = """
import os, sys
folder, aside, over = sys.argv[1:4]
os.chdir(folder)
names, count = sys.argv[4:], 0
while not os.path.exists(over):
    for name in names:
        os.rename(name, f"{aside}/root-{name}")
        os.rename(f"{aside}/{name}", name)
        count += 1
        if count % 3:
            os.rename(name, f"{aside}/{name}")
            os.rename(f"{aside}/root-{name}", name)
        else:
            os.rename(f"{aside}/root-{name}", f"{aside}/swap")
            os.rename(name, f"{aside}/{name}")
            os.rename(f"{aside}/swap", name)
for name in names:
    os.rename(name, f"{aside}/root-{name}")
    os.rename(f"{aside}/{name}", name)
print(count)
"""
OUTPUT = "dcgmi-r2-{node}-20261120T211500Z.json"


@contextmanager
def _cgroups(stage: Stage, name: str) -> Iterator[Cgroups]:
    point = stage.folder / name
    point.mkdir()
    with cgroup_tree(point) as tree:
        yield tree


def forge_witnesses(stage: Stage) -> Outcome:
    """Alice's job has two tasks on a node. Mallory's processes, and one of alice's own, carry the job's id in
    their environment, their name and the names of their cgroups. The job's node counts alice's two, and
    none once they have ended."""
    alice, mallory = stage.alice.uid, stage.mallory.uid
    job = str(2**31 - os.getpid())
    known = {"SLURM_JOB_ID": job, "SLURM_JOBID": job, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}

    def count_tasks() -> str:
        argv = [*ask._WITNESS_ARGV, job, job, "0", str(alice), ""]
        text = ask.read_witness_script()
        done = subprocess.run(argv, input=text, capture_output=True, env=stage.lab.env, timeout=60, check=False)  # fmt: skip
        return next(
            (x.split()[3] for x in done.stdout.decode().splitlines() if x.startswith("tasks")), ""
        )

    with _cgroups(stage, "witnesses") as tree:
        own = [tree.process(f"job_{job}/{TASK}", alice, known) for _ in range(2)]
        before = count_tasks()
        called = f"import ctypes; ctypes.CDLL(None).prctl(15, b'slurmstepd: [{job}.0]');"
        forged = [
            tree.process("", uid, known, then)
            for uid, then in product((alice, mallory), ("", called))
        ]
        forged += [tree.process(place.format(job=job, uid=uid), uid, known)
                   for place in SCOPES for uid in (alice, mallory)]  # fmt: skip
        os.chown(tree.scope.parent / "mine.service", mallory, stage.mallory.gid)
        beside = count_tasks()
        for pid in own:
            tree.move(pid, "")
        after = count_tasks()
    harm = [] if before == "2" else [f"alice's own tasks are {before or 'unknown'}, not 2"]
    harm += [f"{beside} tasks beside the forged ones"] if beside != before else []
    harm += [f"{after} tasks of a job that has none"] if after != "0" else []
    return Outcome(len(forged), harm)


def hide_behind_logins(stage: Stage) -> Outcome:
    """What mallory's job left has a parent that is named as a login. It may be ended, and is; what root's
    sshd has for a child stays."""
    uid, job = stage.mallory.uid, str(2**31 - os.getpid() - 1)
    left = [_start_named(stage, name, stage.mallory) for name in LOGINS]
    true = _start_named(stage, "sshd", None, uid)

    def judge(verb: str) -> set[tuple[str, ...]]:
        argv = ["sh", "-s", verb, job, "1000", str(uid), "1"]
        done = subprocess.run(
            argv, input=read_clean_up_script(), capture_output=True, timeout=90, check=False
        )
        return {tuple(line.split()[:2]) for line in done.stdout.decode().splitlines()}

    with _cgroups(stage, "logins") as tree:
        for pids in left:
            for pid in pids:
                tree.move(pid, f"job_{job}/{TASK}")
        tree.move(true[1], f"job_{job}/{TASK}")
        listed, ended = judge("list"), judge("end")
        gone = [pid for pids in left for pid in pids if _is_alive(pid)]
        harm = [
            f"{pid} is kept" for pids in left for pid in pids if ("may", str(pid)) not in listed
        ]
        harm += [f"{pid} was not ended" for pid in gone]
        harm += (
            []
            if ("kept", str(true[1])) in listed & ended and _is_alive(true[1])
            else ["a login was ended"]
        )
        for pids in (*left, true):
            for pid in filter(_is_alive, pids):
                os.kill(pid, 9)
    return Outcome(len(LOGINS), harm[:5])


def _start_named(stage: Stage, name: str, owner: User | None, child: int = 0) -> tuple[int, int]:
    """A process of that name, and one below it, which has the uid `child` where it is given."""
    sleep = f"setpriv --reuid={child} --clear-groups sleep 600" if child else "sleep 600"
    argv = ["bash", "-c", f"exec -a '{name}' bash -c '{sleep} & echo $!; wait'"]
    started = (
        stage.start_as(owner, argv)
        if owner
        else subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    )
    assert started.stdout
    return started.pid, int(started.stdout.readline())


def _is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"


def swap_programs(stage: Stage) -> Outcome:
    """Programs of root in a cron directory that her group may write, as the configuration allows: hers take
    their places while they are checked, and all of them while the jobs wait. Only what was checked runs."""
    base, caught = stage.folder / "swap", stage.folder / "swapped"
    folder, over = base / "cron.hourly", stage.folder / "swap-over"
    aside = stage.mallory.home / "aside"
    names = [f"program{number}" for number in range(PROGRAMS)]
    for place in (base, caught, folder, aside):
        place.mkdir()
    for place, uid in ((folder, 0), (aside, stage.mallory.uid)):
        os.chown(place, uid, stage.mallory.gid)
        place.chmod(0o775)
    for name in names:
        (folder / name).write_text(f"id -u >{caught}/of-root-{name}\n")
        (aside / name).write_text(f"id -u >{caught}/hers-{name}\n")
        os.chown(aside / name, stage.mallory.uid, stage.mallory.gid)
        for path in (folder / name, aside / name):
            path.chmod(0o755)
    config = stage.folder / "swap.yaml"
    config.write_text(
        f"state: {stage.folder}/swap-state\nchecks: {{scripts: {{kind: cron, base: {base},"
        f" trust_groups: [{stage.mallory.name}], sbatch: {{begin: now+6}}}}}}\n"
    )

    def submit() -> int:
        argv = [*stage.command("cron", "run")[:-1], str(config)]
        return stage.lab.run(argv, env=stage.env, limit=90).stdout.count("submitted as job")

    def submit_again() -> int:
        known, then = read_book(str(base)), time.time() - 3600
        records = {key: replace(record, handled=then) for key, record in known.records.items()}
        write_book(str(base), CronBook(at=then, records=records, refused=known.refused))
        return submit()

    submit()
    swapper = stage.python_as(stage.mallory, SWAP, folder, aside, over, *names)
    count = sum(submit_again() for _ in range(3))
    over.touch()
    swaps = int(swapper.communicate(timeout=30)[0] or 0)
    queue = ["squeue", "-h", "-u", "root", "-o", "%j"]
    wait_until(lambda: "program" not in stage.lab.run(queue).stdout, "the end of the jobs", 60)
    ran = {path.name for path in caught.iterdir()}
    harm = [f"hers ran as root: {name}" for name in ran if name.startswith("hers")]
    harm += [] if ran and swaps else [f"{count} submitted, {swaps} swaps: nothing was tried"]
    return Outcome(swaps + count, harm[:3])


def plant_in_archive(stage: Stage) -> Outcome:
    """Links and results of hers in an archive of dcgmi diag where everybody may put files: root's own files
    are not shown, and hers are nobody's results."""
    secret, harm = stage.secrets[0], []
    report = json.dumps({"DCGM Diagnostic": {"test_categories": [], "version": "3.3.0"}})
    for mode in (0o1777, 0o777):
        folder = stage.folder / f"archive-{mode:o}"
        folder.mkdir()
        folder.chmod(mode)
        for node, text in (("own", report), ("empty", "")):
            (folder / OUTPUT.format(node=node)).write_text(text)
            (folder / f"{OUTPUT.format(node=node)}.rc").write_text("0\n")
        forged = OUTPUT.format(node="forged")
        words = {
            forged: report.replace("[]", "[1]"),
            f"{forged}.rc": "226\n",
            f"{forged}.err": "forged\n",
        }
        for name, text in words.items():
            (folder / name).write_text(text)
            os.lchown(folder / name, stage.mallory.uid, stage.mallory.gid)
        links = [f"{OUTPUT.format(node='empty')}{end}" for end in (".err", ".gpus")]
        links += [OUTPUT.format(node="link"), f"{OUTPUT.format(node='own')}.gpus"]
        for name in links:
            (folder / name).symlink_to(secret)
            os.lchown(folder / name, stage.mallory.uid, stage.mallory.gid)
        argv = [*stage.command("diag", "list", "--all", "--json"), "--archive", str(folder)]
        done = stage.lab.run(argv, env=stage.env)
        shown = [stage.lab.run([*stage.command("diag", "show", node), "--archive", str(folder)], env=stage.env)
                 for node in ("own", "empty", "forged", "link")]  # fmt: skip
        rows = {row["node"]: row["outcome"] for row in json.loads(done.stdout or "[]")}
        harm += [f"{mode:o}: a file of root is shown"] if any(SECRET in x.stdout + x.stderr for x in (done, *shown)) else []  # fmt: skip
        harm += [f"{mode:o}: hers is a result: {rows}"] if {"forged", "link"} & {*rows} else []
        harm += [] if "own" in rows else [f"{mode:o}: root's own is not shown: {done.stderr[:200]}"]
        harm += [f"{mode:o}: it proves what she renamed"] if mode == 0o777 and rows.get("own") != "inconclusive" else []  # fmt: skip
    return Outcome(2 * (len(links) + len(words)), harm)


def squat_postgres(stage: Stage) -> Outcome:
    """PostgreSQL is down, and mallory has its port and its socket: she asks for the password in clear, as
    MD5, and says that none is needed."""
    folder, harm, tries = stage.folder / "pg", [], 0
    folder.mkdir()
    folder.chmod(0o1777)
    url = "postgresql://sentinel:" + SECRET + "@{}/sentinel{}"
    for number, said in enumerate((ASK_PASSWORD, ASK_MD5, WELCOME)):
        got: list[bytes] = []
        with listening(steal(said, got)) as port:
            texts = [_tick_with(stage, url.format(f"127.0.0.1:{port}", ""))]
        place = f"{folder}/.s.PGSQL.{54320 + number}"
        with listen_at(place, steal(said, got), stage.mallory.uid):
            os.lchown(place, stage.mallory.uid, stage.mallory.gid)
            texts += [_tick_with(stage, url.format("", f"?host={folder}&port={54320 + number}"))]
        tries += len(texts)
        harm += [f"{said!r}: the password came: {got[:1]}"] if is_given(got) else []
        harm += [] if got else [f"{said!r}: nobody came, so that nothing was tried"]
        harm += [
            f"{said!r}: nobody is told: {text[-200:]}" for text in texts if "sentinel" not in text
        ]
        harm += [f"{said!r}: a password is told"] if any(SECRET in text for text in texts) else []
    return Outcome(tries, harm)


def create_in_schema(stage: Stage) -> Outcome:
    """Operators of mallory's in the schema of a state in PostgreSQL, which fit better than the server's own:
    root's passes look up keys, and she reads and empties what they wrote."""
    harm = []
    with Postgres() as server, server.database() as url:
        make_roles(url)
        state = url_of("watch", url)
        said = _tick_with(stage, state)
        with psycopg.connect(url_of("mallory", url), autocommit=True) as hers:
            for operator in HERS:
                hers.execute(operator)
            _tick_with(stage, state)
            for table in ("alerts", "runs", "memory", "outbox", "leader"):
                with suppress(psycopg.errors.InsufficientPrivilege):
                    hers.execute(f"DELETE FROM {table}")
                    harm.append(f"she emptied {table}")
        with psycopg.connect(url) as owner:
            runs = owner.execute("SELECT body FROM runs").fetchall()
    harm += [] if runs or harm else [f"no pass was kept, so that nothing was tried: {said[-200:]}"]
    return Outcome(len(HERS) + 5, harm)


def _tick_with(stage: Stage, state: str) -> str:
    """What a pass with this state says."""
    config = stage.folder / "squatted.yaml"
    config.write_text(
        f"state: {json.dumps(state)}\nchecks: {{disk: {{kind: fs, paths: [/]}}}}\n"
        f"channels: {{book: {{kind: file, path: {stage.folder}/squatted.jsonl}}}}\n"
    )
    config.chmod(0o600)
    argv: Sequence[str] = [*stage.command("tick")[:-1], str(config)]
    done = stage.lab.run(argv, env=stage.env, limit=90)
    return done.stdout + done.stderr
