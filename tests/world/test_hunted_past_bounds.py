"""Disks, checkpoints, GPUs and delivery, hunted by somebody who had read the code when every bound had become an answer.

The answers were written down before the program ran."""

from __future__ import annotations

import json
import pickle
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from sentinel.checks.filesystems import observation
from sentinel.checks.filesystems.limits import parse_usage
from sentinel.checks.filesystems.probe import PathAnswer
from sentinel.checks.filesystems.verdict import (
    PathState,
    VerdictSettings,
    path_finding,
)
from sentinel.checks.fs.nodes import _node_path_finding
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.gpu.signals import drains, find_drains
from sentinel.checks.quota.tools import command
from sentinel.clean.program import remove_names
from sentinel.clean.rules import RetentionRules
from sentinel.clean.tree import CheckpointRoot
from sentinel.core import mounts
from sentinel.core.cluster import Node
from sentinel.core.gpu_ledger import GpuEvent
from sentinel.core.lemon_policy import DEFAULT_POLICY
from sentinel.core.model import Status
from sentinel.gpu import xid
from sentinel.gpu.lemon_score import outages
from sentinel.nodes.probe import Disk, NodeIdentity, NodeMount, NodeProbe
from sentinel.testing import FixedSlurm, context
from tests.checks.gpu.world import World
from tests.lab.gpus import moved
from tests.world import gpu_answers as gpus
from tests.world.case import Case, each
from tests.world.delivery_answers import mailed, outcome
from tests.world.gpu_answers import advice
from tests.world.test_disks_drawn import CRIT, WARN, quotas, told
from tests.world.test_hunted_by_rules import (
    DEVICE,
    DISK,
    LOST,
    RESUME,
    START,
    W,
    cleaned,
    newest,
    save,
    taken,
)

DAY = 86_400
CVMFS = "https://github.com/cvmfs/cvmfs, cvmfs/cvmfs.cc cvmfs_statfs(): its blocks are those of its cache"
CVMFS_ROW = "36 25 0:41 / /cvmfs/software.eessi.io ro,nosuid,nodev,relatime - fuse cvmfs2 ro,user_id=0,group_id=0,allow_other"
FLATCAR_ROW = "36 25 254:0 / /usr ro,seclabel,relatime - ext4 /dev/mapper/usr ro,block_validity"
AUTOFS_ROW = (
    "36 25 0:41 / /data rw,relatime - autofs /etc/auto.direct rw,fd=6,pgrp=811,timeout=300,direct"
)


def path_status(row: str, stat: str = "", error: str = "", writable: tuple[str, ...] = ()) -> str:
    """The status of a path on that mount, by what stat(1) prints of it."""
    table = mounts.parse_mount_table(row.encode())
    [mount] = table.list_mounts_of_types({row.split(" - ")[1].split()[0]})
    usage = parse_usage(stat) if stat else None
    answer = PathAnswer(usage=usage, error=error, real="" if error else mount.point)
    rules = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
    sight = observation._observe_path(mount.point, answer, table, context(FixedSlurm()), 100)
    return path_finding(sight, PathState(writable=writable), rules).status.value


def in_fstab(folder: Path, options: str) -> str:
    """The status of a directory that a line of fstab with these options has for a mount point."""
    from tests.checks.quota.test_further import look

    point, table = folder / "scratch", folder / "fstab"
    point.mkdir()
    table.write_text(f"server:/x {point} nfs {options} 0 2\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observation, "FSTAB", str(table))
        return str(look(point).findings[0].status.value)


def on_a_node(options: str, was: bool = False) -> str:
    """The status of a half-full mount of CernVM-FS on a node."""
    mount = NodeMount(
        point="/cvmfs/x", type="fuse", device="0:41", options=frozenset(options.split(","))
    )
    disk = Disk(total=1000, free=500, available=500, inodes=0, inodes_free=0, type="fuseblk")
    probe = NodeProbe(
        identity=NodeIdentity(hostname="n1", kernel="6", boot="b", uptime=1.0, time=0, uid=0),
        disks={"/cvmfs/x": disk},
        mounts=(mount,),
    )
    rules = VerdictSettings(warn=WARN, crit=CRIT, mounted=None, read_only=Status.CRITICAL)
    return _node_path_finding("n1", probe, "/cvmfs/x", was, rules).status.value


DISKS = (
    Case("meant-to-be-mounted-but-not-at-boot", "mount(8), nofail; cloud-init's default of mount_default_fields is defaults,nofail", lambda p: in_fstab(p, "defaults,nofail,_netdev"), "critical", DISK),
    Case("a-read-only-mount-of-a-full-server", "https://github.com/libfuse/sshfs", lambda _: path_status(
        CVMFS_ROW.replace("fuse cvmfs2", "fuse.sshfs me@far:/data"), "1 1000 0 0 90000 90000 fuseblk"), "critical", DISK),
    Case("a-cache-that-is-full-by-nature", CVMFS, lambda _: path_status(CVMFS_ROW, "1 1000 20 20 90000 0 fuseblk"), "ok", DISK),
    Case("an-image-of-ext4", "https://www.flatcar.org/docs/latest, disk layout: USR-A is read-only by dm-verity", lambda _: path_status(FLATCAR_ROW, "4096 1000 30 30 100 50 ext2/ext3"), "ok", DISK),
    # First written down as ok; docs/fs.md says why any read-only mount of a node is told, so it is arguable.
    Case("read-only-on-nodes-by-nature", CVMFS, lambda _: on_a_node("ro,nosuid"), "critical", DISK),
    Case("the-automounter-fails", "Linux, fs/namei.c follow_automount(): MAXSYMLINKS, ELOOP", lambda _: path_status(AUTOFS_ROW, error="Too many levels of symbolic links"), "critical", DISK),
    # First written down as critical; docs/quota.md says numbers, and a text is told, so it is arguable.
    Case("numbers-in-quotes", "Qumulo Core, REST /v1/files/quotas/status/: 64-bit numbers are strings", lambda _: told(lambda: quotas(command.from_json('{"name": "ann", "used_bytes": "98", "limit_bytes": "100"}'))), "cannot tell", DISK),
)  # fmt: skip


def named(number: int) -> str:
    return str(UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))


def experiments(root: Path) -> str:
    """Two experiments of Determined in one storage folder; the older one has ended."""
    ids = [named(n) for n in range(1, 13)]
    for n, one in enumerate(ids):
        save(
            root,
            100 * n,
            {f"{one}/state_dict.pth": W, f"{one}/metadata.json": b'{"steps_completed": %d}' % n},
        )
    return cleaned(root, r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", *ids[4:6], *ids[-2:])


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The file as `chattr +i` leaves it. Skips where the file system knows no such thing."""
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("the file system knows no immutable files")
    yield
    subprocess.run(["chattr", "-i", *path.parent.parent.rglob("model.pt")], check=True)


def an_immutable_file(root: Path) -> str:
    save(root, 2, {"step_2/a.pt": W, "step_2/model.pt": W})
    rules = RetentionRules(r"step_(\d+)")
    with locked(root / "step_2" / "model.pt"):
        for n in (1, *range(3, 9)):
            save(root, n, {f"step_{n}/a.pt": W, f"step_{n}/model.pt": W})
        folder = CheckpointRoot(str(root))
        told = remove_names(folder, rules, [f"step_{n}" for n in (1, 2, 3, 4)])
        kept = [sorted(path.name for path in one.iterdir()) for one in root.glob("step_[1-4]")]
        return f"{kept}, {len(told['errors'])} told"  # type: ignore[arg-type]


def a_base_of_a_named_adapter(root: Path) -> str:
    for n in range(100, 900, 100):
        save(root, n, {f"checkpoint-{n}/model.safetensors": W, f"checkpoint-{n}/optimizer.pt": W})
    config = json.dumps(
        {"base_model_name_or_path": "/data/run/checkpoint-500", "peft_type": "LORA"}
    ).encode()
    for n in range(900, 1500, 100):
        below = f"checkpoint-{n}/policy"
        save(
            root,
            n,
            {f"{below}/adapter_model.safetensors": W[:900], f"{below}/adapter_config.json": config},
        )
    return cleaned(root, r"checkpoint-(\d+)", "checkpoint-500", "checkpoint-1400")


def of_dcp(lost: str = "", metadata: str = ".metadata") -> Callable[[Path], str]:
    def make(root: Path) -> str:
        files = {f"__{rank}_0.distcp": W for rank in range(4)}
        written = {metadata: pickle.dumps({"storage_data": list(files)})}
        save(
            root,
            1,
            {f"step-1/{name}": data for name, data in (files | written).items() if name != lost},
        )
        return newest(root, r"step-(\d+)")

    return make


def single(**files: bytes) -> Callable[[Path], str]:
    """What `checkpoint` calls the newest, where one lies there that holds these files."""

    def make(root: Path) -> str:
        save(root, 1, {f"step-1/{name}": data for name, data in files.items()})
        return newest(root, r"step-(\d+)")

    return make


def shards(count: int, *, without: int = 0) -> dict[str, bytes]:
    names = [f"model-{n:05d}-of-{count:05d}.safetensors" for n in range(1, count + 1)]
    index = json.dumps({"weight_map": {f"w{n}": name for n, name in enumerate(names)}}).encode()
    return {name: W for n, name in enumerate(names, 1) if n != without} | {
        "model.safetensors.index.json": index
    }


STALE = {"model-00004-of-00004.safetensors": W}
DCP = "https://github.com/pytorch/pytorch, torch/distributed/checkpoint/filesystem.py"
CHECKPOINTS = (
    Case("names-that-say-no-training", "https://docs.determined.ai, shared_fs: a folder named by a UUID for each checkpoint of all experiments", experiments, "right", RESUME),
    Case("a-file-that-is-immutable", "ioctl_iflags(2), FS_IMMUTABLE_FL; chattr(1)", an_immutable_file, "[['a.pt', 'model.pt']], 1 told", RESUME),
    Case("the-base-of-a-named-adapter", "https://github.com/huggingface/peft, src/peft/peft_model.py save_pretrained(): a folder for each adapter but the default", a_base_of_a_named_adapter, "right", RESUME),
    Case("the-metadata-names-it", f"{DCP}, _StorageInfo.relative_path", of_dcp("__3_0.distcp"), "", RESUME),
    Case("killed-before-the-rename", f"{DCP}, finish(): .metadata.tmp, then a rename", of_dcp(metadata=".metadata.tmp"), "", RESUME),
    Case("an-empty-optimizer", "https://github.com/PaddlePaddle/PaddleSeg, paddleseg/core/train.py: paddle.save", single(**{"model.pdparams": W, "model.pdopt": b""}), "", RESUME),
    Case("a-shard-of-an-older-save", "https://github.com/huggingface/transformers, modeling_utils.py save_pretrained(): Clean the folder from a previous save", single(**shards(3), **STALE), "step-1", RESUME),
)  # fmt: skip


def out_of_service(*looks: tuple[int, str]) -> int:
    """How many outages these looks at a node show: seconds, and the reason of its drain; empty: in service."""
    seen, events = dict[str, tuple[int, str, str]](), dict[str, GpuEvent]()
    for at, text in looks:
        flags = frozenset({"DRAIN"} if text else ())
        node = Node(
            name="n1",
            state="IDLE",
            flags=flags,
            reason=text,
            reason_time=START + at,
            reason_user="root",
        )
        seen = find_drains([node], seen)
        events |= {event.id: event for event in drains(seen)}
    return len(outages([(e.id, e.what, e.at) for e in events.values()], DEFAULT_POLICY))


def renumbered() -> dict[str, str]:
    """What is bad when all GPUs of a node sit at other addresses after a start."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.look()
    here.nodes["n1"].reboot()
    here.nodes["n1"].gpus = list(moved(here.nodes["n1"].gpus))
    here.look()
    return {s: f.status.value for s, f in here.bad().items()}


RMA = ((0, "RMA 4711"), (2 * DAY, "RMA 4711: part ordered"), (4 * DAY, "RMA 4711: part is there"))
ASAP = tuple((week * DAY, ("Reboot ASAP", "")[week % 7 > 0]) for week in range(15))
GPUS = (
    Case("may-not-be-asked-for-one", "nvml.h, nvmlDeviceGetHandleByIndex_v2(): NVML_ERROR_NO_PERMISSION", lambda _: gpus.statuses("Unable to determine the device handle for GPU0000:3B:00.0: Insufficient Permissions"), {"node": "unknown"}, DEVICE),
    Case("lost-from-the-bus", "Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_device.c amdgpu_device_health_check()", lambda _: advice("amdgpu 0000:c1:00.0: amdgpu: device lost from bus!"), "reboot the node", DEVICE),
    Case("torn-away-in-use", "https://github.com/NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c nv_pci_remove_helper()",
         lambda _: [(e.bus, e.advice.hardware) for e in xid.read(["NVRM: Attempting to remove device 0000:3b:00.0 with non-zero usage count!"], [4]).events], [("00000000:3B:00.0", True)], DEVICE),
    Case("a-ticket-that-goes-on", "slurmctld, node_mgr.c update_node(): reason_time is that of the last change", lambda _: out_of_service(*RMA), 1, DEVICE),
    Case("a-start-that-was-asked-for", "slurmctld, proc_req.c _slurm_rpc_reboot_nodes(): Reboot ASAP", lambda _: out_of_service(*ASAP), 0, DEVICE),
    Case("all-at-other-addresses", "PCI buses are numbered at each start, pci(5)", lambda _: renumbered(), {}, DEVICE),
)  # fmt: skip


def heartbeat(status: int, body: str) -> str:
    return outcome("heartbeat", status, body)


DELIVERY = (
    Case("an-error-within-a-list", "https://developer.vonage.com/en/api/sms: each message has its own status", lambda _: taken("webhook", '{"message-count":"1","messages":[{"status":"4","error-text":"Bad Credentials"}]}'), "doubt", LOST),
    Case("an-error-in-plain-text", "Clickatell HTTP API: ERR: number, text", lambda _: taken("webhook", "ERR: 105, INVALID DESTINATION ADDRESS"), "doubt", LOST),
    Case("a-check-that-was-made", "https://healthchecks.io/docs/http_api/, ?create=1: 201 Created", lambda _: heartbeat(201, "Created"), "taken", LOST),
    # It was `never`, which is tried again each hour while other channels get it at once: arguable at first try.
    Case("enough-for-today", "https://support.google.com/a/answer/3726730: 550 5.4.5", lambda p: mailed(p, data="550 5.4.5 Daily user sending limit exceeded. For more information on Gmail sending limits go to x"), "later", LOST),
    Case("a-row-that-was-refused", "ServiceNow, Import Set API: 201 with a status of each row", lambda _: taken("webhook", '{"import_set":"ISET1","staging_table":"u_x","result":[{"transform_map":"x","table":"incident","status":"error","error_message":"No transform"}]}', 201), "doubt", LOST),
)  # fmt: skip


@each(*DISKS, *CHECKPOINTS, *GPUS, *DELIVERY)
def test_a_form_that_was_hunted_past_the_bounds(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


def two_runs(names: Callable[[int, int], str], *kept: str) -> Callable[[Path], str]:
    """Two runs of six steps in one folder, one after the other: what has to stay of them."""

    def make(root: Path) -> str:
        for run in (0, 1):
            for n in range(1, 7):
                save(root, 1000 * run + n, {names(run, n): W})
        old = tuple(names(1, n) for n in (1, 2))
        return cleaned(root, r"(?:[0-9a-f]+[-_])?(?:step_)?(\d+)\.pt", *kept, gone=old)

    return make


IDS = ("9f86d081884c7d659a2feaa0c55ad015", "60303ae22b998861bce3b28f33eec1be")
BOTH = tuple(f"{one}-step_{n}.pt" for one in IDS for n in (5, 6))
NFS_ROW = "36 25 0:41 / /apps ro,relatime - nfs4 srv:/apps ro,vers=4.2"
FULL = "4096 1000 30 30 100 50 ext2/ext3"
EMPTY = {"__4_0.distcp": b""}
WHOLE = {f"__{rank}_0.distcp": W for rank in range(4)}
NAMES = {".metadata": pickle.dumps(list(WHOLE))}
AGAIN = ((0, "RMA 4711"), (2 * DAY, ""), (5 * DAY, "RMA 4712"))
UPDATES = ((0, "firmware update"), (7 * DAY, ""), (8 * DAY, "Kill task failed"))

SIBLINGS = (
    ("ids-of-mlflow", two_runs(lambda run, n: f"{IDS[run]}-step_{n}.pt", *BOTH), "right"),
    ("starts-by-the-clock", two_runs(lambda run, n: f"{20261128100000 + run * 5 + n}.pt", "20261128100011.pt"), "right"),
    ("a-rank-without-items", single(**WHOLE, **EMPTY, **NAMES), "step-1"),
    ("a-draft-beside-its-end", single(**WHOLE, **NAMES, **{".metadata.tmp": b"x"}), "step-1"),
    ("a-draft-in-a-cache", single(**shards(3), **{".cache/huggingface/download/x.incomplete": b"x"}), "step-1"),
    ("an-optimizer-s-draft", single(**{"model.safetensors": W, "optimizer.bin.tmp": W}), ""),
    ("a-named-shard-is-empty", single(**shards(3) | {"model-00002-of-00003.safetensors": b""}), ""),
    ("a-named-shard-is-lost", single(**shards(3, without=2), **STALE), ""),
    ("all-of-paddle", single(**{"model.pdparams": W, "model.pdopt": W}), "step-1"),
    ("not-mounted-by-itself", lambda p: in_fstab(p, "noauto,nofail"), "ok"),
    ("an-image-that-was-none", lambda _: path_status(FLATCAR_ROW, FULL, writable=("mount", "superblock")), "critical"),
    ("full-on-its-server", lambda _: path_status(NFS_ROW, FULL), "critical"),
    ("a-squashfs", lambda _: path_status("36 25 7:1 / /img ro - squashfs /dev/loop1 ro", "131072 100 0 0 50 0 squashfs"), "ok"),
    ("a-loop-on-a-disk", lambda _: path_status(FLATCAR_ROW, error="Too many levels of symbolic links"), "unknown"),
    ("does-not-answer", lambda _: gpus.statuses("Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error"), {"node": "critical"}),
    ("no-power-for-an-amd", lambda _: advice("amdgpu 0000:c1:00.0: Unable to change power state from D3cold to D0, device inaccessible"), "reboot the node"),
    ("taken-out-when-idle", lambda _: advice("NVRM: Attempting to remove device 0000:3b:00.0 with care"), gpus.MILD),
    ("out-twice", lambda _: out_of_service(*AGAIN), 2),
    ("planned-then-broken", lambda _: out_of_service(*UPDATES), 1),
    ("vonage-took-it", lambda _: taken("webhook", '{"message-count":"1","messages":[{"status":"0","message-id":"A"}]}'), "taken"),
    ("clickatell-took-it", lambda _: taken("webhook", "ID: 5a1f0e"), "taken"),
    ("a-count-of-errors", lambda _: taken("webhook", "errors: 0, sent: 1"), "doubt"),
    ("failed-without-a-number", lambda _: taken("webhook", "FAILED - no credit"), "doubt"),
    ("a-row-was-made", lambda _: taken("webhook", '{"result":[{"table":"incident","status":"inserted"}]}', 201), "taken"),
    ("a-list-of-errors", lambda _: taken("webhook", '[{"error":"no such device"}]'), "doubt"),
    ("no-error-in-a-list", lambda _: taken("webhook", '[{"error":null,"id":7}]'), "taken"),
    ("no-such-user", lambda p: mailed(p, data="550 5.1.1 no such user"), "never"),
    ("too-large", lambda p: mailed(p, data="552 5.3.4 message size exceeds"), "never"),
    ("denied-by-exchange", lambda p: mailed(p, data="550 5.4.1 Recipient address rejected: Access denied"), "never"),
    ("healthchecks-knows-it-not", lambda _: heartbeat(200, "OK (not found)"), "later"),
)  # fmt: skip


@pytest.mark.parametrize(("ask", "right"), [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS])  # fmt: skip
def test_a_sibling_of_them(ask: Callable[[Path], object], right: object, tmp_path: Path) -> None:
    """Written with the mends: others of the same kind, and what is well beside them."""
    assert ask(tmp_path) == right
