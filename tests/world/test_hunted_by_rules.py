"""Disks, checkpoints, GPUs and delivery, hunted by somebody who had read the code when rules had taken the place of lists.

The answers were written down before the program ran."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sentinel.channels.email import Email
from sentinel.checks.checkpoint import CheckpointCheck
from sentinel.checks.gpu import GpuCheck
from sentinel.checks.quota.tools import command, trees
from sentinel.clean.rules import RetentionRules
from sentinel.core.cluster import Node
from sentinel.core.settings import FilePath
from sentinel.gpu import xid
from sentinel.gpu.advice import worst
from sentinel.testing import FixedSlurm, context
from tests.channels.contract import send
from tests.channels.samples import notification
from tests.channels.web import Web, answers
from tests.checks.gpu.world import World
from tests.lab.smtp import SmtpServer
from tests.world import gpu_answers as gpus
from tests.world.case import Case, each
from tests.world.delivery_answers import KINDS, mailed, outcome
from tests.world.gpu_answers import advice, page
from tests.world.test_checkpoints import clean
from tests.world.test_disks_drawn import quotas, refused, told
from tests.world.test_network import bad_sensors

START = 1_700_000_000
BROWN = "https://docs.ccv.brown.edu/oscar/managing-files/resolving-quota-issues/understanding-disk-quotas"
ETH = "https://scicomp.ethz.ch/wiki/Unified_quota_wrapper"
DISK = "Jobs die because nothing can be written, or somebody is woken for a disk that is well."
RESUME = "Weeks of training that cannot be resumed, or a disk that fills up."
DEVICE = "A job runs on a broken device, or somebody is woken for one that is well."
LOST = "A message that nobody gets counts as sent, or waits where it need not."


def rows(pattern: str, text: str) -> object:
    return told(lambda: quotas(command.from_text(text, re.compile(pattern))))


DISKS = (
    Case("a-parent-s-quota-is-full", "zfsprops(7), `available`: limited by any quota above",
         lambda _: quotas(trees.read_zfs_quota("used\t100\navailable\t0\nquota\t1000\nrefquota\t0\nreferenced\t100\n", "dataset", "tank/a")), {"tank/a": "critical"}, DISK),
    Case("one-of-two-file-systems", BROWN,
         lambda _: rows(r"^(?P<name>\S+)\s+/oscar/home\s+\S+\s+(?P<percent>\d+)\s",
                        "Name       Path                 Used(G)    (%) Used   SLIMIT(G)  H-LIMIT(G) Used_Inodes     SLIMIT     HLIMIT     Usage_State  Grace_Period\n"
                        "ann        /oscar/home          23.29      18         100        125        188001          2000000    3000000    OK           None\n"
                        "ann        /oscar/scratch       0.00       0          512        10240      2               4000000    16000000   OK           None\n"),
         {"ann": "ok"}, DISK),
    Case("a-signal-came-between", "statfs(2), EINTR", lambda _: refused("Interrupted system call"), "unknown", DISK),
    Case("a-number-that-does-not-fit", "statfs(2), EOVERFLOW", lambda _: refused("Value too large for defined data type"), "unknown", DISK),
    Case("a-group-with-a-blank", "zfsprops(7), groupquota@; a group of Active Directory, sssd(8)",
         lambda _: told(lambda: quotas(trees.read_zfs_quota("groupused@domain users\t980\ngroupquota@domain users\t1000\ngroupobjused@domain users\t1\ngroupobjquota@domain users\t0\n",
                                                            "group", "domain users"))), {"domain users": "critical"}, DISK),
    Case("kilobytes-by-a-small-letter", ETH, lambda _: rows(r"^\|\s(?P<name>\S+)\s+\|\sspace\s+\|\s+(?P<used>\S+ \w+)\s+\|\s+(?P<soft>\S+ \w+)\s+\|\s+(?P<limit>\S+ \w+)\s+\|",
         "| /cluster/home/ann  | space  |  512.00 kB |  17.18 GB |  21.47 GB |\n| /cluster/work/x    | space  |  21.30 GB |  17.18 GB |  21.47 GB |\n"),
         {"/cluster/home/ann": "ok", "/cluster/work/x": "critical"}, DISK),
)  # fmt: skip


def save(root: Path, at: int, files: Mapping[str, bytes]) -> None:
    """Write these files, all of that time."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        for one in (path, *path.parents):
            if one != root and root in one.parents:
                os.utime(one, (START + at,) * 2)


def cleaned(root: Path, match: str, *wanted: str, gone: tuple[str, ...] = ()) -> str:
    """What of the wanted entries a removal took, and what of the old ones it left; `right` if neither."""
    clean(root, RetentionRules(match))
    taken, left = (
        [n for n in wanted if not (root / n).exists()],
        [n for n in gone if (root / n).exists()],
    )
    return f"took {taken}, left {left}" if taken or left else "right"


def newest(root: Path, match: str) -> str:
    """The entry that `checkpoint` calls the newest complete one; empty if none is."""
    check = CheckpointCheck(path=FilePath(root), match=re.compile(match))
    (finding,) = check.run(context(FixedSlurm(), one_shot=True)).findings
    said = re.search(r"newest:? (\S+), complete", finding.summary)
    return said[1] if said else ""


W = b"w" * 40_000


def two_rates(root: Path) -> str:
    for n in range(150, 400, 100):
        save(root, n, {f"lr0.01_{n}.pt": W})
    for n in range(100, 1100, 100):
        save(root, 1000 + n, {f"lr0.001_{n}.pt": W})
    return cleaned(
        root,
        r"lr[\d.]+_(\d+)\.pt",
        "lr0.01_350.pt",
        "lr0.01_250.pt",
        "lr0.001_1000.pt",
        "lr0.001_900.pt",
    )


def a_full_target(root: Path) -> str:
    for n in range(100, 1100, 100):
        cut = W[: len(W) // 3] if n > 500 else W
        save(root, n, {f"step_{n}/rank_{r}.pt": cut if r == 9 else W for r in range(16)})
    return cleaned(root, r"step_(\d+)", "step_500", "step_400")


def hashed(root: Path) -> str:
    for n in range(100, 1100, 100):
        save(
            root,
            n,
            {
                f"{n}/default/ocdbt.process_0/d/{n * 0x9E3779B97F4A7C15 + r:032x}"[:-1] + "a": W
                for r in range(4)
            }
            | {f"{n}/default/manifest.ocdbt": b"m" * 100, f"{n}/default/_METADATA": b"{}"},
        )
    return cleaned(root, r"(\d+)", "1000", "900", gone=("100", "200", "300"))


def a_base(root: Path) -> str:
    for n in range(100, 900, 100):
        save(root, n, {f"checkpoint-{n}/model.safetensors": W, f"checkpoint-{n}/optimizer.pt": W})
    config = json.dumps(
        {"base_model_name_or_path": "/data/run/checkpoint-500", "peft_type": "LORA"}
    ).encode()
    for n in range(900, 1500, 100):
        save(
            root,
            n,
            {
                f"checkpoint-{n}/adapter_model.safetensors": W[:900],
                f"checkpoint-{n}/adapter_config.json": config,
            },
        )
    return cleaned(root, r"checkpoint-(\d+)", "checkpoint-500", "checkpoint-1400")


def without_the_last_rank(root: Path) -> str:
    for n in (1, 2):
        save(
            root,
            n,
            {
                f"global_step_{n}/actor/{what}_world_size_8_rank_{r}.pt": W
                for what in ("model", "optim")
                for r in range(8 if n == 1 else 7)
            },
        )
    return newest(root, r"global_step_(\d+)")


def without_an_expert(root: Path) -> str:
    for n in (10, 20):
        save(
            root,
            n,
            {f"global_step{n}/mp_rank_00_model_states.pt": W}
            | {
                f"global_step{n}/layer_{layer}_expert_{e}_mp_rank_00_model_states.pt": W
                for layer in range(4)
                for e in range(8)
                if (n, layer, e) != (20, 2, 5)
            },
        )
    return newest(root, r"global_step(\d+)")


VERL = "https://github.com/volcengine/verl, verl/utils/checkpoint/fsdp_checkpoint_manager.py"
CHECKPOINTS = (
    Case("two-rates-in-one-folder", "a sweep by a hand-written loop, whose name holds the rate", two_rates, "right", RESUME),
    Case("one-target-is-full", "lfs-df(1): the files of a rank lie on one OST", a_full_target, "right", RESUME),
    Case("names-are-sums", "https://google.github.io/tensorstore/kvstore/ocdbt, as Orbax and levanter write it", hashed, "right", RESUME),
    Case("adapters-need-their-base", "https://github.com/huggingface/peft, src/peft/config.py (adapter_config.json)", a_base, "right", RESUME),
    Case("the-last-rank-of-eight", VERL, without_the_last_rank, "global_step_1", RESUME),
    Case("an-expert-of-a-layer", "https://github.com/deepspeedai/DeepSpeed, deepspeed/runtime/engine.py, _get_expert_ckpt_name()", without_an_expert, "global_step10", RESUME),
)  # fmt: skip


def mute(word: str = "Timeout", *names: str) -> str:
    """A page whose first GPU tells that word for temperature, use and clocks."""
    text = page()
    for name in names or ("gpu_temp", "gpu_util", "sm_clock"):
        text = re.sub(rf"<{name}>[^<]*<", f"<{name}>{word}<", text, count=1)
    return text


def warned(line: str) -> bool:
    """Whether a line at the level of a warning is told of the device."""
    return worst([event.advice for event in xid.read([line], [4]).events]).hardware


def slices(gres: str, divided: str = "Enabled") -> dict[str, str]:
    """What is bad on a node of eight GPUs, for which Slurm has that many."""
    here = World(GpuCheck(nodes="n1"), ("n1",))
    here.listed["n1"] = Node(name="n1", state="IDLE", gres=gres)
    here.nodes["n1"].smi = page(("<current_mig>Disabled<", f"<current_mig>{divided}<"), count=-1)
    here.look()
    return {s: f.status.value for s, f in here.bad().items()}


GPUS = (
    Case("a-device-that-runs-out-of-time", "nvml.h, NVML_ERROR_TIMEOUT and nvmlErrorString()", lambda _: gpus.statuses(mute()), {0: "critical"}, DEVICE),
    Case("no-power-state-by-an-older-kernel", "Linux 5.14, drivers/pci/pci.c pci_raw_set_power_state()",
         lambda _: advice("nvidia 0000:18:00.0: can't change power state from D3cold to D0 (config space inaccessible)"), "reboot the node", DEVICE),
    Case("compute-does-not-take-it", "Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c kgd2kfd_device_init()",
         lambda _: advice("kfd kfd: amdgpu: device 1002:74a1 NOT added due to errors"), "drain the node and diagnose", DEVICE),
    Case("bad-by-its-own-word", "Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_ras_eeprom.c amdgpu_ras_eeprom_check_err_threshold()",
         lambda _: warned("amdgpu 0000:c1:00.0: amdgpu: This GPU is in BAD status."), True, DEVICE),
    Case("a-bay-without-a-supply", "ipmitool 1.8.19; a board that asserts presence and power of each of four bays",
         lambda _: bad_sensors("".join(f"PSU{n}_PRSNT       | {n}0h | ok  | 10.{n} | State {a}\nPSU{n}_PWR_GOOD    | {n}1h | ok  | 10.{n} | State {a}\n"
                                      for n, a in enumerate(("Asserted", "Asserted", "Deasserted", "Deasserted"), 1))), {}, DEVICE),
    Case("slices-by-a-name-of-one-s-own", "gres.conf(5), Type: an arbitrary string", lambda _: slices("gpu:a100-20gb:16"), {}, DEVICE),
)  # fmt: skip


def taken(kind: str, body: str, status: int = 200) -> str:
    """The same as `outcome`, with `doubt` where a good answer does not say that the message was taken."""
    with Web(answers(status, body)) as server:
        try:
            return "doubt" if send(KINDS[kind](server.url), notification()).doubt else "taken"
        except Exception as error:  # what is refused is not sent either
            return "not taken" if type(error).__name__ == "ChannelError" else repr(error)


def mail_taken(folder: Path, answer: str) -> str:
    """Whether a mail counts as taken for sure, by the server's answer to its content."""
    with SmtpServer(folder) as server:
        server.refuse_data(answer)
        mail = Email(
            to=["ann@example.org"],
            from_="me@example.org",
            host="localhost",
            port=server.port,
            security="none",
        )
        return "doubt" if send(mail, notification()).doubt else "taken"


DELIVERY = (
    Case("feishu-has-no-such-word", "https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot",
         lambda _: taken("webhook", '{"code":19024,"data":{},"msg":"Key Words Not Found"}') != "taken", True, LOST),
    Case("a-function-that-failed", "https://docs.aws.amazon.com/apigateway/latest/developerguide/handle-errors-in-lambda-integration.html",
         lambda _: taken("webhook", '{"errorMessage":"2026-11-28T22:00:00Z 1 Task timed out after 3.00 seconds"}') != "taken", True, LOST),
    Case("taken-and-thrown-away", "amavisd-new 2.13, D_DISCARD: RFC 3463 X.7 in a success", lambda p: mail_taken(p, "250 2.7.0 Ok, discarded, id=07554-01 - spam"), "doubt", LOST),
    Case("too-many-by-an-older-word", "RFC 5321 4.5.3.1.10: clients should take this 552 for temporary", lambda p: mailed(p, rcpt="552 Too many recipients"), "later", LOST),
    # First written down as later. `never` is tried again too, each hour, and other channels get it at once: arguable.
    Case("the-network-wants-a-login", "RFC 8952; RFC 9110 15.4.3: 302 is temporary", lambda _: outcome("webhook", 302, "", Location="https://portal.example.org/login"), "never", LOST),
    # The same.
    Case("a-workspace-moves", "https://docs.slack.dev/reference/methods/chat.postMessage (team_added_to_org)", lambda _: outcome("slack bot", 200, '{"ok":false,"error":"team_added_to_org"}'), "never", LOST),
)  # fmt: skip


@each(*DISKS, *CHECKPOINTS, *GPUS, *DELIVERY)
def test_a_form_that_was_hunted_when_rules_stood(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


GONE, HURT = "reboot the node", "drain the node and diagnose"
ATOMICS = "kfd kfd: amdgpu: skipped device 1002:7300, PCI rejects atomics 730<0"
OPERATED = "amdgpu 0000:c1:00.0: amdgpu: But GPU can be operated due to bad_page_threshold = -1."
BAYS = "{0}3_PRESENT     | 30h | ok  | 10.3 | State {1}\n{0}3_DC_OK       | 31h | ok  | 10.3 | State Deasserted\n{0}1_DC_OK       | 11h | ok  | 10.1 | State Asserted\n"
TYPES = "ann  user   5G  10G\nann  group  9.9G  10G\n"

SIBLINGS = (
    ("words-of-another-error", lambda: gpus.statuses(mute("Driver Not Loaded")), {0: "critical"}),
    ("one-value-alone", lambda: gpus.statuses(mute("Timeout", "gpu_temp")), {0: "warning"}),
    ("no-such-value", lambda: gpus.statuses(mute("N/A")), {}),
    ("another-state-of-power", lambda: advice("nvidia 0000:18:00.0: can't change power state from D3hot to D0 (config space inaccessible)"), GONE),
    ("a-program-of-that-name", lambda: advice("nvidia 0000:18: can't change power state from D3hot to D0 (config space inaccessible)"), gpus.MILD),
    ("compute-of-an-older-kernel", lambda: advice("kfd kfd: device 1002:740c NOT added due to errors"), HURT),
    ("compute-in-new-words", lambda: advice("kfd kfd: amdgpu: Failed to resume IOMMU for device 1002:15d8"), "ask the vendor's support"),
    ("compute-is-not-for-it", lambda: warned(ATOMICS) or worst([e.advice for e in xid.read([ATOMICS], [6]).events]).hardware, False),
    ("bad-but-goes-on", lambda: warned(OPERATED), False),
    ("bad-of-an-older-kernel", lambda: advice("amdgpu 0000:c1:00.0: This GPU is in BAD status."), HURT),
    ("an-empty-bay", lambda: bad_sensors(BAYS.format("PS", "Deasserted")), {}),
    ("a-supply-without-power", lambda: bad_sensors(BAYS.format("PS", "Asserted")), {"PS3_DC_OK": "warning"}),
    ("slices-of-two-types", lambda: slices("gpu:small:14,gpu:large:2"), {}),
    ("too-few-that-are-whole", lambda: slices("gpu:a100:16", "Disabled"), {"n1": "critical"}),
    ("the-pool-is-full", lambda: quotas(trees.read_zfs_quota("used\t500\navailable\t20\nquota\t0\nrefquota\t9000\nreferenced\t300\n", "dataset", "t")), {"t": "critical"}),
    ("room-in-all", lambda: quotas(trees.read_zfs_quota("used\t500\navailable\t400\nquota\t900\nrefquota\t0\nreferenced\t300\n", "dataset", "t")), {"t": "ok"}),
    ("one-of-two-kinds", lambda: rows(r"^(?P<name>\w+)\s+user\s+(?P<used>\S+)\s+(?P<limit>\S+)", TYPES), {"ann": "ok"}),
    ("a-number-that-is-none", lambda: rows(r"^(?P<name>\w+)\s+user\s+(?P<used>\d\S*)\s+(?P<limit>\S+)", "ann  user   5G  10G\nbob  user  n/a  10G\n"), {"ann": "ok", "bob": "unknown"}),
    ("a-state-behind-the-numbers", lambda: rows(r"^(?P<name>\w+)\s+(?P<used>\d\S*)\s+(?P<limit>\S+)\s+fine", "ann  5G  10G  fine\nbob  11G  10G  over\n"), {"ann": "ok", "bob": "unknown"}),
)  # fmt: skip


@pytest.mark.parametrize(("ask", "right"), [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS])  # fmt: skip
def test_a_sibling_of_them(ask: Callable[[], object], right: object) -> None:
    """Written with the mends: others of the same kind, and what is well beside them."""
    assert ask() == right
