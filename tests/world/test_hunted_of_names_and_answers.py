"""Disks, `clean`, GPUs and delivery, hunted once more by somebody who had just read the code.

The answers were committed before the program ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.quota.tools import command, gpfs, trees
from tests.lab.gpus import gpus_of, nvidia_smi
from tests.world import gpu_answers as gpus
from tests.world.case import Case, each
from tests.world.delivery_answers import mailed, outcome
from tests.world.gpu_answers import advice, page
from tests.world.test_disks_drawn import MMLSQUOTA, disk, quotas, refused, told
from tests.world.test_hunted_by_rules import (
    DEVICE,
    DISK,
    LOST,
    RESUME,
    W,
    cleaned,
    save,
    taken,
)
from tests.world.test_hunted_past_bounds import path_status

PEFT = "https://github.com/huggingface/peft"


def adapters(name: str, text: Callable[[str], str]) -> Callable[[Path], str]:
    """Eight whole models, and six adapters of the fifth: a file of that name says so."""

    def make(root: Path) -> str:
        for n in range(100, 900, 100):
            save(root, n, {f"step-{n}/model.pth": W, f"step-{n}/optimizer.pt": W})
        base = text("/data/run/step-500").encode()
        for n in range(900, 1500, 100):
            save(root, n, {f"step-{n}/lora.pth": W[:900], f"step-{n}/{name}": base})
        return cleaned(root, r"step-(\d+)", "step-500", "step-1400", gone=("step-200",))

    return make


def of_lit_gpt(base: str) -> str:
    return f"checkpoint_dir: {base}\nout_dir: /data/run\nlora_r: 8\nlora_alpha: 16\n"


def of_adalora(base: str) -> str:
    ranks = {f"model.layers.{n}.self_attn.q_proj.lora_E": [True] * 12 for n in range(64)}
    return json.dumps(
        {"base_model_name_or_path": base, "peft_type": "ADALORA", "rank_pattern": ranks}
    )


def an_adapter_of_an_adapter(root: Path) -> str:
    def adapter(n: int, base: int) -> dict[str, bytes]:
        config = json.dumps({"base_model_name_or_path": f"/data/run/step-{base}"}).encode()
        return {f"step-{n}/adapter_model.pth": W[:900], f"step-{n}/adapter_config.json": config}

    for n in range(100, 700, 100):
        save(root, n, {f"step-{n}/model.pth": W})
    for n in range(700, 1300, 100):  # an adapter of 300
        save(root, n, adapter(n, 300))
    for n in range(1300, 1900, 100):  # an adapter of 800
        save(root, n, adapter(n, 800))
    return cleaned(root, r"step-(\d+)", "step-1800", "step-800", "step-300")


def two_days(root: Path) -> str:
    for n in (150, 250, 350):
        save(root, n, {f"2026-11-27_{n}.pt": W})
    for n in range(100, 1100, 100):
        save(root, 1000 + n, {f"2026-11-28_{n}.pt": W})
    return cleaned(root, r"[\d-]+_(\d+)\.pt", "2026-11-27_350.pt", "2026-11-27_250.pt",
                   "2026-11-28_1000.pt", gone=("2026-11-28_100.pt",))  # fmt: skip


def one_of_each_rate(root: Path) -> str:
    rates = ("1e-3", "3e-3", "1e-4", "3e-4", "1e-5", "3e-5", "1e-6", "3e-6")
    names = [f"lr{rate}_step{100 * n}.pt" for n, rate in enumerate(rates, 1)]
    for n, name in enumerate(names, 1):
        save(root, n, {name: W})
    return cleaned(root, r"lr[\de.-]+_step(\d+)\.pt", *names)


def in_text(*parts: str) -> Callable[[Path], str]:
    """Steps as texts. The four newest were cut by a full disk."""

    def make(root: Path) -> str:
        for n in range(1, 11):
            save(root, n, {part.format(n=n): W[: 9000 if n > 6 else None] for part in parts})
        whole = (parts[0].partition("/")[0].format(n=n) for n in (5, 6))
        return cleaned(root, r"(?:vectors|gradsq)?[._]?(\d+)(?:\.txt)?", *whole)

    return make


def one_cut_of_unlike_shards(root: Path) -> str:
    """Stages of a pipeline: each file is a little larger than the one before."""
    for n in range(1, 11):
        sizes = [30_000 + 1000 * r for r in range(30)]
        sizes[29] = 31_000 if n > 6 else sizes[29]
        save(root, n, {f"step_{n}/stage_{r}.pt": b"w" * one for r, one in enumerate(sizes)})
    return cleaned(root, r"step_(\d+)", "step_5", "step_6")


CLEAN = (
    Case("a-base-in-yaml", "https://github.com/Lightning-AI/litgpt, litgpt/finetune/lora.py: hyperparameters.yaml, checkpoint_dir", adapters("hyperparameters.yaml", of_lit_gpt), "right", RESUME),
    Case("a-base-in-a-long-description", f"{PEFT}, src/peft/tuners/adalora/config.py: rank_pattern has a list for each matrix", adapters("adapter_config.json", of_adalora), "right", RESUME),
    Case("an-adapter-of-an-adapter", "https://github.com/huggingface/transformers, utils/peft_utils.py find_adapter_config_file(): a base may be an adapter", an_adapter_of_an_adapter, "right", RESUME),
    Case("trainings-by-their-day", "https://hydra.cc/docs/configure_hydra/workdir/: ${now:%Y-%m-%d}", two_days, "right", RESUME),
    Case("a-sweep-with-one-step-each", "a sweep by a hand-written loop that keeps the last step of each rate", one_of_each_rate, "right", RESUME),
    Case("vectors-in-text", "https://github.com/stanfordnlp/GloVe, src/glove.c save_params(): -checkpoint-every, -binary 0, -save-gradsq", in_text("vectors.{n:03d}.txt", "gradsq.{n:03d}.txt"), "right", RESUME),
    Case("a-folder-of-texts", "https://github.com/leela-zero/leela-zero, training/tf/tfprocess.py: weights are a text", in_text("{n:03d}/weights.txt", "{n:03d}/meta.json"), "right", RESUME),
    Case("one-cut-of-unlike-shards", "lfs-df(1): one OST is full; a pipeline's stages are not alike", one_cut_of_unlike_shards, "right", RESUME),
)  # fmt: skip

COMPOSEFS = "36 25 0:30 / / ro,relatime - overlay composefs ro,lowerdir+=/run/ostree/.private/cfsroot-lower,datadir+=/sysroot/ostree/repo/objects,redirect_dir=on,metacopy=on"
DISKS = (
    Case("a-root-of-composefs", "https://github.com/composefs/composefs/issues/420: stat -f of it", lambda _: path_status(COMPOSEFS, "4096 5297 0 0 18446744073709551615 -125126 overlayfs"), "ok", DISK),
    Case("a-sum-is-wrong", "errno(3), EBADMSG; Linux, fs/xfs/xfs_linux.h: EFSBADCRC", lambda _: refused("Bad message"), "critical", DISK),
    # First written down as ok; what reports no size is unknown on purpose, and told, so it is arguable.
    Case("a-tmpfs-without-a-limit", "tmpfs(5), size=0", lambda _: disk("4096 0 0 0 0 0 tmpfs"), "unknown", DISK),
    Case("grace-in-words-of-gpfs", "https://www.ibm.com/docs/en/storage-scale, mmlsquota: 6 days, 23 hours, expired",
         lambda _: told(lambda: quotas(gpfs.read_gpfs_quota(MMLSQUOTA + "mmlsquota::0:1:::fs1:USR:5001:ann:98:90:200:0:expired:1:0:0:0:none:e:on:off:0:root:\n"))), {"ann": "critical"}, DISK),
    Case("a-subvolume-that-is-going", "btrfs-progs 6.9, cmds/qgroup.c: <stale> in the column Path",
         lambda _: told(lambda: quotas(trees.read_btrfs_quota("Qgroupid    Referenced    Exclusive Max referenced Max exclusive   Path\n--------    ----------    --------- -------------- -------------   ----\n0/257                0            0           none          none   <stale>\n0/258               98           98            100          none   ann\n"))), {"0/257": "ok", "0/258": "critical"}, DISK),
    Case("twice-as-much-as-allowed", "docs/quota.md: a site's own JSON", lambda _: told(lambda: quotas(command.from_json('{"name": "a", "used_bytes": 200, "limit_bytes": 100}'))), {"a": "critical"}, DISK),
)  # fmt: skip


GPUS = (
    Case("a-driver-that-dropped-it", "https://github.com/NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv.c: not supported by the driver release",
         lambda _: advice("NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330)", "NVRM: installed in this system is not supported by the", "NVRM: NVIDIA 470.82.01 driver release.", "nvidia: probe of 0000:3b:00.0 failed with error -1"), "drain the node and diagnose", DEVICE),
    Case("in-the-wrong-place", "nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION", lambda _: gpus.statuses(page(("<status>Success</status>", "<status>Success</status><health><incorrect_configuration>Invalid Location</incorrect_configuration></health>"))), {0: "warning"}, DEVICE),
    Case("no-answer-from-the-library", "nvml.h, NVML_ERROR_GPU_NOT_FOUND; nvidia-smi of a container whose devices cgroup is gone", lambda _: gpus.statuses("Failed to initialize NVML: Unknown Error"), {"node": "unknown"}, DEVICE),
    Case("five-of-eight-by-a-lost-switch", "nvidia-smi of a node on which three do not answer", lambda _: gpus.statuses(nvidia_smi(gpus_of(0)[:5]).replace("<attached_gpus>5<", "<attached_gpus>8<")), {"node": "critical"}, DEVICE),
)  # fmt: skip

INFOBIP = '{"messages":[{"to":"4912","status":{"groupId":5,"groupName":"REJECTED","id":12,"name":"REJECTED_NOT_ENOUGH_CREDITS","description":"Not enough credits"}}]}'
VONAGE = '<?xml version="1.0" encoding="UTF-8"?>\n<mt-submission-response><messages count="1"><message><status>4</status><errorText>Bad Credentials</errorText></message></messages></mt-submission-response>'
DELIVERY = (
    Case("rejected-for-want-of-money", "https://www.infobip.com/docs/essentials/api-essentials/response-status-and-error-codes", lambda _: taken("webhook", INFOBIP), "doubt", LOST),
    Case("an-error-in-xml", "https://developer.vonage.com/en/api/sms: the format xml", lambda _: taken("webhook", VONAGE), "doubt", LOST),
    Case("forbidden-for-a-minute", "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", lambda _: outcome("webhook", 403, '{"message":"You have exceeded a secondary rate limit"}', **{"Retry-After": "60"}), "later (60 s)", LOST),
    Case("a-status-within", "a gateway that answers 200 and the service's own status as JSON (RFC 9457, status)", lambda _: taken("webhook", '{"type":"about:blank","title":"Service Unavailable","status":503}'), "doubt", LOST),
    Case("a-snitch", "https://deadmanssnitch.com/docs: 202 Accepted", lambda _: outcome("heartbeat", 202, "Got it, thanks!"), "taken", LOST),
    # First written down as later. `never` is tried again each hour, and other channels get it at once: arguable.
    Case("a-day-s-recipients", "https://learn.microsoft.com/en-us/exchange/mail-flow-best-practices/non-delivery-reports-in-exchange-online (5.1.90)", lambda p: mailed(p, data="550 5.1.90 Your message can't be sent because you've reached your daily limit for message recipients"), "never", LOST),
)  # fmt: skip


@each(*CLEAN, *DISKS, *GPUS, *DELIVERY)
def test_a_form_that_was_hunted_of_names_and_answers(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = case.form(tmp_path)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


def by_a_clock(root: Path) -> str:
    """One training whose steps have a time in place of a number, as Ray's have."""
    names = [f"checkpoint_2026-11-{27 + n // 12}_{n % 12:02d}-00-00" for n in range(24)]
    for n, name in enumerate(names):
        save(root, n, {f"{name}/model.pt": W})
    return cleaned(root, r"checkpoint_[\d_-]+", *names[-2:], gone=(names[0], names[11], names[12]))


XML = "<reply><code>0</code><errorText>none</errorText></reply>"
TWO_IN_XML = "<reply><part><code>4</code></part><part><code>0</code></part></reply>"
SIBLINGS = (
    ("no-base-is-named", adapters("notes.yaml", lambda _: "lr: 0.1\n"), "took ['step-500'], left []"),
    ("a-clock-for-a-number", by_a_clock, "right"),
    ("an-overlay-that-was-written", lambda _: path_status(COMPOSEFS, "4096 5297 0 0 5 5 overlayfs", writable=("mount", "superblock")), "critical"),
    ("an-error-before-a-good-message-in-xml", lambda _: taken("webhook", TWO_IN_XML), "doubt"),
    ("xml-without-an-error", lambda _: taken("webhook", XML), "doubt"),
    ("a-status-of-success", lambda _: taken("webhook", '{"status":1,"request":"647d2300"}'), "taken"),
    ("forbidden-for-good", lambda _: outcome("webhook", 403, "no"), "never"),
)  # fmt: skip


@pytest.mark.parametrize(("ask", "right"), [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS])  # fmt: skip
def test_a_control_beside_them(
    ask: Callable[[Path], object], right: object, tmp_path: Path
) -> None:
    """Written with the mends: what is well beside them."""
    assert ask(tmp_path) == right
