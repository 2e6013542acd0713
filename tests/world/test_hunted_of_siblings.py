"""Disks, `clean`, GPUs and delivery, hunted a fifth time by somebody who had just read the code.

The answers were written down before the program ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.gpu.judge import CRIT, WARN, problems
from sentinel.gpu import amd, xid
from tests.world.case import Case, each
from tests.world.gpu_answers import MILD, advice
from tests.world.test_disks_drawn import disk
from tests.world.test_hunted_by_rules import (
    DEVICE,
    DISK,
    LOST,
    RESUME,
    W,
    cleaned,
    rows,
    save,
    taken,
)

SHOWQUOTA = r"^(?P<name>\w+)\s+(?P<used>\S+)\s+(?P<limit>\S+)\s+\S+%\s+(?P<entries>\S+)\s+(?P<entries_limit>\S+)\s+\S+%"
LISTQUOTA = r"^(?P<name>\S+)\s+(?P<limit>\d+|no limit)\s+(?P<used>\d+)\s"
MFS = r"^User\s+(?P<name>\d+)\s+[+-]{2}\s+(?P<used>\d+)\s+(?P<soft>\d+)\s+(?P<limit>\d+)\s+(?P<entries>\d+)\s+\d+\s+(?P<entries_limit>\d+)"
DISKS = (
    Case("files-in-thousands", "https://docs.nersc.gov/filesystems/quotas: 243.23K of 1.00M files are 24.3%", lambda _: rows(SHOWQUOTA, "home 12.77GiB 40.00GiB 31.9% 958.00K 1.00M 95.8%\npscratch 1.20TiB 20.00TiB 6.0% 120.00K 10.00M 1.2%\n"), {"home": "critical", "pscratch": "ok"}, DISK),
    Case("a-mark-behind-a-share", "OpenAFS, fs_listquota(1)", lambda _: rows(LISTQUOTA, "Volume Name                    Quota       Used %Used   Partition\nuser.ann                      100000      96000   96%<<       85%    <<WARNING\nuser.bob                    no limit       1500    0%         85%\n"), {"user.ann": "critical", "user.bob": "ok"}, DISK),
    Case("a-bucket-of-half-the-numbers", "https://github.com/awslabs/mountpoint-s3, statfs()", lambda _: disk(f"4096 {(2**64 - 1) // 4096 // 2} {(2**64 - 1) // 4096 // 2} {(2**64 - 1) // 4096 // 2} {2**64 - 1} {2**64 - 1} fuseblk"), "ok", DISK),
    # First written down as critical and ok; a number with a fraction may be of any unit, so it is unknown, and told: arguable.
    Case("megabytes-without-a-unit", "Red Hat GFS2, gfs2_quota list", lambda _: rows(r"^user (?P<name>\w+): limit:(?P<limit>\S+)\s+warn:(?P<soft>\S+)\s+value:(?P<used>\S+)", "user ann: limit:100.0 warn:98.0 value:97.5\nuser bob: limit:0.0 warn:0.0 value:3.1\n"), "cannot tell", DISK),
    Case("a-table-of-lizardfs", "lizardfs-repquota(1)", lambda _: rows(MFS, "# User/Group ID/Inode; Bytes: current usage, soft limit, hard limit; Inodes: current usage, soft limit, hard limit;\nUser     1000 +-  980  900 1000  5  0  0\nUser     1001 --  980    0    0  5  0  0\n"), {"1000": "critical", "1001": "ok"}, DISK),
)  # fmt: skip


def kept_copies(root: Path) -> str:
    for n in range(100, 1300, 100):
        save(root, n, {f"{n}/__0_0.distcp": W, f"{n}/.metadata": b"m" * 90})
        if n % 200 == 0 and n < 1200:
            save(root, n, {f"{n}_keep/__0_0.distcp": W, f"{n}_keep/.metadata": b"m" * 90})
    kept = [f"{n}_keep" for n in range(200, 1200, 200)]
    return cleaned(root, r"(\d+)(?:_keep)?", *kept, "1200", gone=("100", "300"))


def models_in_text(root: Path) -> str:
    for n in range(1, 11):
        save(root, n, {f"checkpoint_{n:06d}/model.txt": W[: 9000 if n > 6 else None]})
    return cleaned(root, r"checkpoint_(\d+)", "checkpoint_000005", "checkpoint_000006")


def named_by_a_config(root: Path) -> str:
    for n in range(1, 11):
        save(root, n, {f"epoch_{n}.pth": W})
    text = b"max_epochs = 12\nload_from = 'work_dirs/run/epoch_3.pth'\nresume = True\n"
    save(root, 11, {"faster_rcnn_r50.py": text})
    return cleaned(root, r"epoch_(\d+)\.pth", "epoch_3.pth", "epoch_10.pth", gone=("epoch_1.pth",))


def increments(root: Path) -> str:
    """A full model at 100 and at 700, and increments between and behind."""
    names = {n: f"{'model' if n in (100, 700) else 'incr-model'}.ckpt-{n}" for n in range(100, 1600, 100)}  # fmt: skip
    for n, name in names.items():
        data = W * 20 if n in (100, 700) else W
        save(root, n, {f"{name}.data-00000-of-00001": data, f"{name}.index": b"i" * 500})
    needed = [f"{names[n]}.index" for n in range(700, 1600, 100)]
    return cleaned(root, r"(?:incr-)?model\.ckpt-(\d+)\..*", *needed)


def adapters_of_verl(root: Path) -> str:
    for n in range(100, 900, 100):
        save(root, n, {f"global_step_{n}/actor/huggingface/model.safetensors": W})
    base = json.dumps({"base_model_name_or_path": "/data/run/global_step_500/actor/huggingface"})
    for n in range(900, 1500, 100):
        folder = f"global_step_{n}/actor/lora_adapter"
        save(root, n, {f"{folder}/adapter_model.safetensors": W[:900], f"{folder}/adapter_config.json": base.encode()})  # fmt: skip
    return cleaned(root, r"global_step_(\d+)", "global_step_500", "global_step_1400", gone=("global_step_200",))  # fmt: skip


def in_a_header(root: Path) -> str:
    for n in range(100, 900, 100):
        save(root, n, {f"model-step{n:08d}.safetensors": W})
    header = json.dumps(
        {
            "__metadata__": {"ss_sd_model_name": "model-step00000500.safetensors"},
            "lora.weight": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]},
        }
    )
    file = len(header).to_bytes(8, "little") + header.encode() + W[:9000]
    for n in range(900, 1500, 100):
        save(root, n, {f"lora-step{n:08d}.safetensors": file})
    return cleaned(root, r"(?:model|lora)-step(\d+)\.safetensors", "model-step00000500.safetensors", gone=("model-step00000200.safetensors",))  # fmt: skip


CLEAN = (
    Case("copies-that-are-kept", "https://github.com/facebookresearch/dinov3, keep_checkpoint_copy()", kept_copies, "right", RESUME),
    Case("a-model-that-is-a-text", "https://github.com/ray-project/ray, ray.train.lightgbm: CHECKPOINT_NAME is model.txt", models_in_text, "right", RESUME),
    Case("named-by-a-config-in-python", "https://github.com/open-mmlab/mmengine, Runner.dump_config(), load_from", named_by_a_config, "right", RESUME),
    Case("a-series-of-increments", "https://github.com/DeepRec-AI/DeepRec, docs_zh/Incremental-Checkpoint.md", increments, "right", RESUME),
    Case("a-base-three-folders-deep", "https://github.com/volcengine/verl, actor/lora_adapter", adapters_of_verl, "right", RESUME),
    Case("a-base-in-a-header", "https://github.com/kohya-ss/sd-scripts, ss_sd_model_name", in_a_header, "right", RESUME),
)  # fmt: skip

UVM = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover."
LISTED = json.dumps([{"gpu": 0, "bdf": "0000:03:00.0", "uuid": "c4ff7480-0000-1000-8091-3e9f5a5a5a5a", "kfd_id": 29447, "node_id": 1, "partition_id": 0}])  # fmt: skip
MEASURED = json.dumps({"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 2, "unit": "%"}, "vcn_activity": ["N/A"] * 4}, "power": {"socket_power": {"value": 20, "unit": "W"}, "throttle_status": "UNTHROTTLED"}, "temperature": {"edge": {"value": 38, "unit": "C"}, "hotspot": {"value": 41, "unit": "C"}, "mem": {"value": 58, "unit": "C"}}, "ecc": {"total_correctable_count": 0, "total_uncorrectable_count": 0, "total_deferred_count": 0, "cache_correctable_count": "N/A"}, "throttle": {"prochot_violation_status": "N/A", "hbm_thermal_violation_activity": "N/A"}}]})  # fmt: skip
GPUS = (
    Case("only-a-boot-helps", "https://github.com/NVIDIA/open-gpu-kernel-modules, nvGpuOpsReportFatalError()", lambda _: advice(UVM), "reboot the node", DEVICE),
    Case("contained-and-to-be-reset", "https://github.com/NVIDIA/open-gpu-kernel-modules, RST and D-RST", lambda _: advice("NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', name=<unknown>, Contained: L2 Cache DRAM (0x4,0x1). physAddr: 0x000000103fa61fe0 RST: No, D-RST: Yes"), "reset the GPU", DEVICE),
    Case("uncontained-and-to-be-reset", "the same", lambda _: advice("NVRM: Xid (PCI:0000:3b:00): 95, pid='<unknown>', name=<unknown>, Uncontained: FBHUB (0x5,0x0). RST: Yes, D-RST: No"), "reset the GPU", DEVICE),
    Case("an-amd-that-is-well", "https://github.com/nathaninline/ajean/issues/39", lambda _: [*problems(amd.parse(LISTED, MEASURED).gpus[0], WARN, CRIT)], [], DEVICE),
    Case("the-end-of-a-failed-start", "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1151", lambda _: advice("NVRM: GPU 0000:09:00.0: rm_init_adapter failed, device minor number 0"), "drain the node and diagnose", DEVICE),
)  # fmt: skip

SMS_RU = '{"status":"ERROR","status_code":200,"status_text":"Неправильный api_id"}'
CLICKSEND = '{"http_code":200,"response_code":"SUCCESS","response_msg":"Messages queued for delivery.","data":{"total_price":0.28,"total_count":1,"queued_count":0,"messages":[{"direction":"out","to":"+61411111111","message_price":"0.0000","status":"INSUFFICIENT_CREDIT"}]}}'
SES = '{"BulkEmailEntryResults":[{"Status":"ACCOUNT_DAILY_QUOTA_EXCEEDED","MessageId":null}]}'
DELIVERY = (
    Case("an-error-with-code-200", "https://sms.ru/api/send", lambda _: taken("webhook", SMS_RU), "doubt", LOST),
    Case("a-message-without-credit", "https://developers.clicksend.com/docs/rest/v3", lambda _: taken("webhook", CLICKSEND), "doubt", LOST),
    Case("nobody-has-a-device", "https://pushover.net/api: info", lambda _: taken("webhook", '{"status":1,"request":"647d2300","info":"no active devices to send to"}'), "doubt", LOST),
    Case("a-login-in-plain-text", "SMSEagle, APIv1 send_sms", lambda _: taken("webhook", "Invalid login or password"), "doubt", LOST),
    Case("an-address-that-is-invalid", "Mandrill, messages/send: status", lambda _: taken("webhook", '[{"email":"a@b","status":"invalid","_id":"abc","reject_reason":null}]'), "doubt", LOST),
    Case("a-quota-in-a-status", "AWS SES v2, BulkEmailEntryResult", lambda _: taken("webhook", SES), "doubt", LOST),
    Case("a-thousand-is-well", "https://github.com/wxpusher/wxpusher-docs", lambda _: taken("webhook", '{"code":1000,"msg":"处理成功","data":[{"uid":null,"messageId":2,"code":1000,"status":"创建发送任务成功"}],"success":true}'), "doubt", LOST),
    Case("a-hundred-is-well", "Nextcloud, OCS v1", lambda _: taken("webhook", '{"ocs":{"meta":{"status":"ok","statuscode":100,"message":"OK"},"data":[]}}'), "taken", LOST),
)  # fmt: skip


@each(*DISKS, *CLEAN, *GPUS, *DELIVERY)
def test_a_form_that_was_hunted_of_siblings(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


def texts_that_are_whole(root: Path) -> str:
    for n in range(1, 11):
        save(root, n, {f"checkpoint_{n:06d}/model.txt": W})
    return cleaned(root, r"checkpoint_(\d+)", "checkpoint_000010", gone=("checkpoint_000001",))


def weights_in_text(root: Path) -> str:
    """A text that was cut beside a description that is whole."""
    for n in range(1, 11):
        text = W[: 9000 if n > 6 else None]
        save(root, n, {f"{n:03d}/weights.txt": text, f"{n:03d}/meta.json": b"m" * 300})
    return cleaned(root, r"(\d+)", "005", "006", gone=("001",))


def increments_of_old(root: Path) -> str:
    """Full models at 100, 300, 500, …: what two newer ones have made needless goes."""
    for n in range(100, 1600, 100):
        name = f"{'model' if n % 200 else 'incr'}-{n}.ckpt"
        save(root, n, {name: W * 20 if n % 200 else W})
    return cleaned(root, r"(?:model|incr)-(\d+)\.ckpt", "model-1300.ckpt", "incr-1400.ckpt", gone=("incr-200.ckpt",))  # fmt: skip


def restarted(root: Path) -> str:
    """The training was begun anew: its increments have lower numbers than two full models."""
    for n in (700, 1400):
        save(root, n, {f"model-{n}.ckpt": W * 20})
    for n in range(100, 1000, 100):
        save(root, 2000 + n, {f"model-{n}.ckpt": W * 20} if n == 100 else {f"incr-{n}.ckpt": W})
    return cleaned(root, r"(?:model|incr)-(\d+)\.ckpt", *(f"incr-{n}.ckpt" for n in range(200, 1000, 100)))  # fmt: skip


def of_a_run_called_keep(root: Path) -> str:
    for n in range(1, 11):
        save(root, n, {f"keep_{n}.pt": W})
    return cleaned(root, r"keep_(\d+)\.pt", "keep_10.pt", gone=("keep_1.pt",))


def a_script_beside(root: Path) -> str:
    for n in range(1, 11):
        save(root, n, {f"epoch_{n}.pth": W})
    save(root, 11, {"resume.sbatch": b"srun python train.py --resume /data/run/epoch_2.pth\n"})
    save(root, 11, {"all.py": b"\n".join(b"'epoch_%d.pth'" % n for n in range(1, 11))})
    return cleaned(root, r"epoch_(\d+)\.pth", "epoch_2.pth", gone=("epoch_1.pth", "epoch_3.pth"))


CONTAINED = "NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). RST: No, D-RST: No"
SMS_RU_WELL = '{"status":"OK","status_code":100,"sms":{"792":{"status":"OK","status_code":100,"sms_id":"1"}},"balance":4.1}'
SIBLINGS = (
    ("texts-that-are-whole", texts_that_are_whole, "right"),
    ("weights-in-text", weights_in_text, "right"),
    ("increments-of-old", increments_of_old, "right"),
    ("restarted", restarted, "right"),
    ("a-run-called-keep", of_a_run_called_keep, "right"),
    ("a-script-beside", a_script_beside, "right"),
    ("bytes-by-two-to-the-tenth", lambda _: rows(SHOWQUOTA, "home 960.00K 1.00M 93.8% 10 1.00M 0.0%\n"), {"home": "warning"}),
    ("contained-alone", lambda _: advice(CONTAINED), MILD),
    ("a-reset-that-a-name-asks-for", lambda _: advice("NVRM: Xid (PCI:0000:3b:00): 43, pid=7, name=a, RST: Yes, Ch 00000008"), MILD),
    ("a-boot-that-nobody-asks-for", lambda _: [*xid.read([UVM], [6]).events], []),
    ("sms-ru-is-well", lambda _: taken("webhook", SMS_RU_WELL), "taken"),
    ("one-of-sms-ru-is-not", lambda _: taken("webhook", SMS_RU_WELL.replace('"OK","status_code":100,"sms_id":"1"', '"ERROR","status_code":207')), "doubt"),
    ("a-result-in-words", lambda _: taken("webhook", '{"result":"Invalid login or password"}'), "doubt"),
    ("a-result-that-is-well", lambda _: taken("webhook", '{"result":"OK; ID=[297]"}'), "taken"),
    ("a-count-in-words", lambda _: taken("webhook", "1 sent, 0 failed, no errors"), "doubt"),
    ("the-alert-again", lambda _: taken("webhook", '{"id":25,"appid":5,"message":"job 5 failed: it is not running","title":"job failed"}'), "doubt"),
    ("a-word-for-no-error", lambda _: taken("webhook", '{"code":0,"message":"","data":{"pushid":"4","error":"SUCCESS","errno":0}}'), "taken"),
    ("a-thousand-that-nobody-calls-well", lambda _: taken("webhook", '{"code":1000,"msg":"?"}'), "doubt"),
    ("well-but-for-one", lambda _: taken("webhook", '{"success":true,"code":0,"results":[{"code":404}]}'), "doubt"),
)  # fmt: skip


@pytest.mark.parametrize(("ask", "right"), [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS])  # fmt: skip
def test_a_sibling_or_a_control(
    ask: Callable[[Path], object], right: object, tmp_path: Path
) -> None:
    """Written with the mends: others of the same kinds, and what is well beside them."""
    assert ask(tmp_path) == right
