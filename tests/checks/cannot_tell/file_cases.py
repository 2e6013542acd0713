"""Kinds that read files and folders, run a plugin, or ask a quota tool."""

import re
from datetime import datetime, timezone
from typing import Any

import msgspec
from msgspec import structs, to_builtins

from sentinel.alerting.observations import RunOutcome
from sentinel.chain.folder import ChainFolder
from sentinel.chain.model import Chain
from sentinel.chain.script_book import CronBook
from sentinel.chain.script_history import ScriptRecord, SubmittedRun
from sentinel.checks.chain import ChainCheck
from sentinel.checks.clean.check import CleanCheck, Memory
from sentinel.checks.cron import CronCheck
from sentinel.checks.diag import DiagCheck
from sentinel.checks.du.check import DuCheck, TreeBounds
from sentinel.checks.exec import ExecCheck
from sentinel.checks.quota.check import QuotaCheck
from sentinel.clock import SystemClock
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share, Size
from sentinel.proc.mounts import read_mounts
from tests.checks.cannot_tell.slurm_cases import job, nodes, queue, slurm
from tests.checks.cannot_tell.world import (
    EMPTY,
    ERROR,
    MIDDLE,
    RECORD,
    Case,
    World,
)
from tests.checks.quota import test_tools as said
from tests.lab.gpus import Failure, dcgmi_json


def chain(world: World) -> RunOutcome:
    """No pass for a day; the links are in the queue."""
    slurm(world)
    place = ChainFolder(str(world.home / "chain"))
    begun = Chain(
        name="s", every=600, command=("sentinel",), revision="r", installed=int(world.now) - 90_000
    )
    place.install_files(begun, "")
    links = [
        job(b"PENDING", id=b"%d" % n, job=b"%d" % n, array=b"%d" % n, name=name.encode())
        for n, name in enumerate(begun.strand_names, 1)
    ]
    world.says("squeue", queue(*links), when="%o", newer=queue(*links), record="§.\n")
    slots = [int(world.now - ago) // 600 * 600 for ago in (88_800, 87_600, 87_000)]
    lines = "".join(f'{{"slot":{slot},"what":"ran","at":{slot + 5},"job":"7"}}\n' for slot in slots)
    folder = world.home / "chain"
    world.file(folder / "links.jsonl", lines, newer='{"slot":"next","what":"skipped","at":"now"}\n')
    whole = (folder / "chain.json").read_text()
    world.file(folder / "chain.json", whole, newer=whole.replace('"every": 600', '"every": "10m"'))
    return world.look("chain", ChainCheck(dir=FilePath(place.folder)))


def cron(world: World) -> RunOutcome:
    """A script failed, and no pass came for a day."""
    run = SubmittedRun(slot=int(world.now), job="7", at=world.now, log="", state="FAILED", code=1)
    book = CronBook(
        at=world.now - 86_400,
        records={"cron.daily/x": ScriptRecord(handled=world.now, runs=(run,))},
    )
    text = msgspec.json.format(msgspec.json.encode(book)).decode() + "\n"
    world.file(world.home / ".sentinel" / "cron.json", text, newer=text.replace('"at":', '"when":'))
    return world.look("cron", CronCheck(base=FilePath(str(world.home))))


def diag(world: World) -> RunOutcome:
    """The last diagnostic of a node failed."""
    moment = datetime.fromtimestamp(world.now - 600, tz=timezone.utc)
    name = f"dcgmi-r2-n1-{moment:%Y%m%dT%H%M%SZ}.json"
    if world.target == "output":
        world.target = name
    failed = dcgmi_json("4", [Failure(gpu=0)])
    world.file(
        world.home / name, failed, newer=failed.replace('"tests"', '"checks"').replace('"4.', '"9.')
    )
    rc = world.home / f"{name}.rc"
    world.file(rc, "226\n", newer="226 (see log)\n")
    return world.look("diag", DiagCheck(archive=FilePath(str(world.home))), one_shot=True)


def diag_queue(world: World) -> RunOutcome:
    """A run that failed is in the memory; Slurm is asked for more nodes to test."""
    slurm(world)
    world.says("scontrol", nodes("IDLE", "DOWN"), when="show node", newer=nodes("IDLE", "ASLEEP"))
    world.says("squeue", queue(), when="%o", newer=queue(job(b"HIBERNATING")), record="§.\n")
    at = int(world.now * 1e6) - 60_000_000
    world.memory = {
        "last": {"n1": {"node": "n1", "level": 2, "at": at, "outcome": "fail", "why": "memory", "file": ""}},
        "runs": [], "looked": at,
    }  # fmt: skip
    return world.look("diag", DiagCheck(archive=FilePath(str(world.home))))


def clean(world: World) -> RunOutcome:
    """This host's clock was set forward by months since the last look: what is old is not known."""
    root = world.tree(world.home / "logs", *(f"run{n}.log" for n in range(1, 6)), age=9e5)
    now = SystemClock().now()
    world.memory = to_builtins(Memory(at=structs.replace(now, wall=now.wall - 10**13)))
    check = CleanCheck(
        root=FilePath(str(root)),
        match=re.compile(r"run(\d+)\.log"),
        older_than=Duration(60),
        remove=True,
    )
    return world.look("clean", check)


def du(world: World) -> RunOutcome:
    tree = world.tree(world.home / "tree", "a/1", "a/2", "b/3")
    size = Size(5000)  # more than the folder itself has, less than a file
    check = DuCheck(paths=[FilePath(str(tree))], size=size, crit=TreeBounds(used=Share(90)))
    return world.look("du", check)


def plugin(world: World) -> RunOutcome:
    world.says(
        "check_it", "CRITICAL: it burns\nat the back\n", newer="CATASTROPHE: it burns\n", code=2
    )
    return world.look("exec", ExecCheck(command=[str(world.bin / "check_it")]))


WORD = "exit code 0 is a plugin's word that all is well, whatever it prints (Nagios plugin API)"
NOTHING_IN_IT = "an empty folder holds less than its size, whatever emptied it"
HEADER = "     Filesystem  {}   quota   limit   grace   files   quota   limit   grace\n"
LINUX = "Disk quotas for user alice (uid 1000):\n" + HEADER.format("blocks")
LFS = "Disk quotas for usr alice (uid 1000):\n" + HEADER.format("kbytes")
REPQUOTA = """\
User,BlockStatus,FileStatus,BlockUsed,BlockSoftLimit,BlockHardLimit,BlockGrace,FileUsed,FileSoftLimit,FileHardLimit,FileGrace
bob,ok,ok,20,0,0,0,2,0,0,0
alice,hard,ok,200,100,200,1700000000,5,4,10,1700000060
"""
XFS = """\
#0                   0          0          0     00 [--------]          3          0          0     00 [--------]
#7               40960      10240      40960     00 [-none-]          100         50        200     00 [-none-]
"""
GPFS = """\
mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:fid:filesetname:
mmlsquota::0:1:::gpfs01:USR:1234:alice:2097152:1048576:2097152:1024:expired:4000:0:500000:10:none:e:on:off:::
"""
BEEGFS = "name,id,size,hard,files,hard\nalice,1000,2097152,2097152,120,unlimited\n"
BEEGFS_8 = (
    '{"name": "alice", "id": 1000, "type": "user", "space": "2097152/2097152", "inode": "1/∞"}\n'
)
ZFS = "userused@alice\t100\nuserquota@alice\t100\nuserobjused@alice\t5\nuserobjquota@alice\t-\n"
QGROUPS = """\
Qgroupid    Referenced    Exclusive  Max referenced  Max exclusive   Path
--------    ----------    ---------  --------------  -------------   ----
0/5              16384        16384            none           none   <toplevel>
0/256         20971520     20971520        20971520           none   proj
"""


def quota(
    tool: Any, program: str, out: str, of: str = "user:alice", when: str = "", newer: str = ""
) -> Any:
    """Alice, or what it is, has reached the limit."""

    def look(world: World) -> RunOutcome:
        mount = read_mounts().find_mount(str(world.home))
        assert mount is not None
        new = newer or re.sub(r"\d{3,}", "MANY", out)
        if program == "zfs":
            world.says("zfs", "defaultuserquota\t0\ndefaultuserobjquota\t0\n", newer="")
        world.says(
            program,
            out.replace("HERE", mount.point),
            when=when,
            newer=new.replace("HERE", mount.point),
        )
        if program == "getfattr":
            for name, value in (("max_files", 0), ("dir.rbytes", 100), ("dir.rentries", 5)):
                full = f"ceph.quota.{name}" if "max" in name else f"ceph.{name}"
                world.says(program, f'{full}="{value}"\n', when=full, newer="")
        check = QuotaCheck(paths=[FilePath(str(world.home))], tool=tool, quotas=[of])
        return world.look("quota", check)

    return look


def lfs_df(world: World) -> RunOutcome:
    """A target of Lustre at 95%; alice is far from her limits."""
    world.says("lfs", LFS + "     /sc 5 4194304 6291456 - 5 0 1000000 -\n", newer="")
    world.says("lfs", said.LFS_DF, when="df", newer="targets: 4\n")
    world.says("lfs", said.LFS_DF_I, when="df -i", newer="targets: 4\n")
    check = QuotaCheck(paths=[FilePath(str(world.home))], tool="lustre", quotas=["user:alice"])
    return world.look("quota", check)


def beegfs_df(world: World) -> RunOutcome:
    """A target of BeeGFS is in its emergency pool."""
    world.says("beegfs-ctl", "name,id,size,hard,files,hard\nalice,1000,5,2097152,1,9\n", newer="")
    world.says("beegfs-df", said.BEEGFS_DF, newer="TARGETS 4\n")
    check = QuotaCheck(paths=[FilePath(str(world.home))], tool="beegfs", quotas=["user:alice"])
    return world.look("quota", check)


def site(world: World) -> RunOutcome:
    """The site's own tool."""
    text = '[{"name": "b", "used_bytes": 1},\n{"name": "a", "used_bytes": 10, "limit_bytes": 10}]\n'
    world.says("site", text, newer='{"version": 2, "quotas": []}\n')
    check = QuotaCheck(paths=[FilePath(str(world.home))], command=[str(world.bin / "site")])
    return world.look("quota", check)


FULL = "a limit is reached"
QUOTAS = [
    ("quota", quota("quota", "quota", LINUX + "          HERE 4194304* 1048576 4194304 1700086400    1000       0    2000       0\n")),
    ("repquota", quota("repquota", "repquota", REPQUOTA)),
    ("xfs_quota", quota("xfs", "xfs_quota", XFS, "project:7")),
    ("lfs quota", quota("lustre", "lfs", LFS + "     HERE 6291456* 4194304 6291456 none  120000 0 1000000 -\n", when="quota")),
    ("mmlsquota", quota("gpfs", "mmlsquota", GPFS)),
    ("beegfs-ctl", quota("beegfs", "beegfs-ctl", BEEGFS)),
    ("beegfs quota", quota("beegfs", "beegfs", BEEGFS_8, "user:1000", when="quota")),
    ("getfattr ceph.quota.max_bytes", quota("ceph", "getfattr", 'ceph.quota.max_bytes="100"\n', "directory", when="ceph.quota.max_bytes")),
    ("zfs userused", quota("zfs", "zfs", ZFS, when="userused")),
    ("btrfs", quota("btrfs", "btrfs", QGROUPS, "qgroup:0/256")),
    ("site", site),
    ("lfs df", lfs_df),
    ("beegfs-df", beegfs_df),
]  # fmt: skip

CASES = [
    *(Case(kind="quota", source=0, asked=asked, truth=FULL, look=look) for asked, look in QUOTAS),
    Case(kind="chain", source=0, asked="links.jsonl", truth="no pass for a day", look=chain),
    Case(kind="chain", source=0, asked="chain.json", truth="no pass for a day", look=chain),
    Case(kind="cron", source=0, asked="cron.json", truth="no pass for a day", look=cron),
    Case(kind="diag", source=0, asked="output", truth="a GPU failed its test", look=diag),
    Case(kind="diag", source=0, asked="scontrol show node", truth="a GPU failed its test", look=diag_queue),
    Case(kind="diag", source=0, asked="squeue %o", truth="a GPU failed its test", look=diag_queue),
    Case(kind="clean", source=0, asked="folder", truth="the clock was set forward", look=clean),
    Case(kind="du", source=0, asked="folder", truth="more than its size", look=du, believed={EMPTY: NOTHING_IN_IT}),
    Case(kind="exec", source=0, asked="check_it", truth="the plugin says CRITICAL", look=plugin, believed=dict.fromkeys((EMPTY, MIDDLE, RECORD, ERROR), WORD)),
]  # fmt: skip
