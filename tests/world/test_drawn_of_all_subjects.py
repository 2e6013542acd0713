"""One batch over all ten subjects, drawn by seed 20261129 from the lists in `sources/`; the answers were committed
before the program ran.

A source that no test had named was drawn; where the store of public texts did not have it, where a test had its form
already, or where it has none for these checks, its place went to the next of the draw. Where a list names one file many
times (a driver, a program, a project's tests), the form is one of that file that no test had.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.checks.quota.tools import gpfs, linux
from sentinel.slurm.ends import read_sacct, sacct_columns
from sentinel.slurm.job_states import state_meaning
from tests.world.case import Case, each
from tests.world.checkpoint_forms import Form, ranks
from tests.world.delivery_answers import outcome
from tests.world.gpu_answers import MILD, advice
from tests.world.logs import assert_cause, assert_number_and_loss, bar
from tests.world.slurm_answers import GITHUB, MARK, booked, field, returns, seconds, works
from tests.world.test_checkpoints import NEWEST, SITUATIONS
from tests.world.test_checkpoints_drawn import RIGHT, find_newest, tell_harm
from tests.world.test_disks_drawn import MMLSQUOTA, quotas
from tests.world.test_network_drawn import board, counted, lines
from tests.world.test_progress_eighth_files import FINE, FRAME

COST = "Somebody is woken for what is well, or nobody for what is not."
GPUD = GITHUB + "leptonai/gpud/tree/main/components/accelerator/nvidia/xid"
BNXT = "https://git.kernel.org/torvalds/linux drivers/net/ethernet/broadcom/bnxt/bnxt.c"


def element(form: str, raw: str, state: str) -> list[tuple[str, str, bool]]:
    """An element of an array in sacct: its id of one's own, its state, and whether that is a death."""
    columns = sacct_columns(())
    told = {"JobIDRaw": raw, "JobID": form, "State": state, "ExitCode": "0:0", "NodeList": "n1"}
    row = "".join(told.get(name, "Unknown") + MARK for name in (*columns, "JobIDRaw")) + "\n"
    runs = read_sacct(row.encode(), MARK, columns)
    return [(run.job_id, run.state, state_meaning(run.state).is_death) for run in runs]


SIMPLE = (
    # Jobs and the queue
    Case("an-element-under-two-ids", GITHUB + "snakemake/snakemake/pull/2036", lambda: element("1043074_91", "1043166", "COMPLETED"), [("1043166", "COMPLETED", False)], COST),
    Case("hours-and-minutes-are-minutes", GITHUB + "openforcefield/openff-evaluator/pull/419", lambda: (seconds("24:00"), seconds("24:00:00")), (1440, 86400), COST),
    Case("completed-in-the-books", GITHUB + "gc3pie/gc3pie/issues/656", lambda: booked("COMPLETED", "0:0"), "COMPLETED 0 None - no death", COST),
    # Nodes and drain reasons
    Case("drained-in-a-reservation", GITHUB + "SckyzO/slurm_exporter/issues/142", lambda: (works("DRAIN+RESERVED"), works("IDLE+DRAIN+RESERVED"), works("IDLE+RESERVED")), (False, False, True), COST),
    # Arguable: (False, True) was written, since a person ran the check. Whoever gives that prefix to `undrain` has chosen it, whoever signs.
    Case("a-health-check-run-by-a-person", GITHUB + "NVIDIA/deepops/pull/660",
         lambda: (returns("NHC: Check check_nv_gpu_count 2 returned 1", "vagrant", "NHC:"), returns("NHC: Check check_nv_gpu_count 2 returned 1", "vagrant")), (True, False), COST),
    Case("down-and-silent", GITHUB + "elasticluster/elasticluster/issues/272", lambda: (works("DOWN*"), returns("Not responding", "slurm")), (False, False), COST),
    # GPUs and diagnostics
    Case("a-netir-without-a-unit", GPUD, lambda: advice("NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"), "reset the GPU", COST),
    Case("a-source-is-tracked", GPUD, lambda: advice("NVRM: Xid (PCI:0008:01:00): 145, pid=11436, name=cache_mgr_main, RLW_SRC_TRACK Nonfatal XC1 i0 Link 03 (0x040868e2 0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)"), MILD, COST),
    # Network and sensors
    Case("two-cards-stand-still", GITHUB + "csrutil/OpenWrt-NIC-Drivers/issues/11",
         lambda: lines("r8125 0000:22:04.0 eth4: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5010 ms", "r8125 0000:22:04.0 eth4: rtl_rxtx_empty_cond == 0 (loop: 42, delay: 100).",
                       "r8125 0000:22:01.0 eth1: NETDEV WATCHDOG: CPU: 0: transmit queue 0 timed out 5010 ms", "r8125 0000:22:01.0 eth1: rtl_rxtx_empty_cond == 0 (loop: 42, delay: 100)."),
         {"0000:22:04.0": "warning", "0000:22:01.0": "warning"}, COST),
    Case("a-chip-is-too-hot", BNXT,
         lambda: (lines("bnxt_en 0000:3b:00.0 ens1f0np0: Chip temperature has gone above the critical thermal threshold!", "bnxt_en 0000:3b:00.0 ens1f0np0: Temperature (In Celsius), Current: 108, threshold: 105", level=4),
                  lines("bnxt_en 0000:3b:00.0 ens1f0np0: Chip temperature has gone below the critical thermal threshold!", "bnxt_en 0000:3b:00.0 ens1f0np0: Temperature (In Celsius), Current: 101, threshold: 105", level=4)),
         ({"0000:3b:00.0": "warning"}, {}), COST),
    # Disks and quotas
    # Arguable: "warning" was written for 23 hours. A quota with less than a day of grace is critical (docs/quota.md), so another row has two days now.
    Case("grace-of-xfs-runs-out", "https://git.kernel.org/xfs/xfsprogs-dev quota/util.c, time_to_string()",
         lambda: quotas(linux.read_xfs_quota("alice         120        100        200     00 [0 days]          3          0          0     00 [--------]\n"
                                             "bob           120        100        200     00 [23:10:02]          3          0          0     00 [--------]\n"
                                             "carl          120        100        200     00 [2 days]          3          0          0     00 [--------]\n", "user")),
         {"alice": "critical", "bob": "critical", "carl": "warning"}, COST),
    Case("a-person-in-two-filesets", GITHUB + "treydock/gpfs_exporter/blob/master/collectors/mmrepquota_test.go",
         lambda: quotas(gpfs.read_gpfs_quota(MMLSQUOTA + "".join(f"mmlsquota::0:1:::home:USR:408:PZS1003:{used}:2147483648:2147483648:0:none:6286:2000000:2000000:0:none:e:on:off::{fileset}:\n"
                                                                 for fileset, used in (("foo", 341467872), ("bar", 2147483648))))),
         {"PZS1003@foo": "ok", "PZS1003@bar": "critical"}, COST),
    # Delivery
    Case("google-chat-knows-no-room", "https://developers.google.com/workspace/chat/api/reference/rest", lambda: outcome("webhook", 404, '{"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND"}}'), "never", COST),
    Case("mattermost-knows-no-hook", "https://developers.mattermost.com/integrate/webhooks/incoming/",
         lambda: outcome("mattermost", 400, '{"id":"web.incoming_webhook.invalid.app_error","message":"Invalid webhook.","detailed_error":"","status_code":400}'), "never", COST),
    # Cron, chains and time
    Case("times-of-pachyderm", GITHUB + "pachyderm/pachyderm/pull/8083",
         lambda: [field(text, "minutes") for text in ("never", "2022-08-18T00:00:00Z", "@every 3m", "@hourly")], ["refused", "refused", "refused", (0,)], COST),
    Case("days-that-are-listed", GITHUB + "systemd-cron/systemd-cron/issues/57", lambda: (field("10 7   * * 2,3,4,5,6,7", "weekdays"), field("10 7   * * 2-7", "weekdays")), 2 * ((0, 2, 3, 4, 5, 6),), COST),
)  # fmt: skip

SEL = "ipmitool 1.8.19, lib/ipmi_sel.c and include/ipmitool/ipmi_sel.h"
SYSFS = "Linux, Documentation/ABI/stable/sysfs-class-infiniband"
# The next of the same draw, for the two subjects that were worst. By then some of their code had been read.
NETWORK = (
    Case("degraded-from-worse", SEL, lambda: board("Fan Redundancy   | 75h | ok  |  7.1 | Redundancy Degraded from Non-Redundant"), {"Fan Redundancy": "warning"}, COST),
    Case("sufficient-from-insufficient", SEL, lambda: board("PS Redundancy    | 77h | ok  |  7.1 | Non-Redundant: Sufficient from Insufficient"), {"PS Redundancy": "warning"}, COST),
    Case("performance-lags", SEL, lambda: (board("NVMe Perf        | 5Ah | ok  | 26.1 | Performance Lags"), board("NVMe Perf        | 5Ah | ok  | 26.1 | Performance Met")), ({"NVMe Perf": "warning"}, {}), COST),
    Case("an-install-error", SEL, lambda: (board("Riser 1          | 5Bh | ok  | 16.1 | Install Error"), board("Riser 1          | 5Bh | ok  | 16.1 | Transition to Power Save")), ({"Riser 1": "warning"}, {}), COST),
    Case("a-cable-that-is-shorted", "https://git.kernel.org/torvalds/linux drivers/net/ethernet/mellanox/mlx5/core/events.c",
         lambda: (lines("mlx5_core 0000:5e:00.0: port_module:258:(pid 0): Port module event[error]: module 1, Cable error, Bad or shorted cable/module"),
                  lines("mlx5_core 0000:5e:00.0: port_module:263:(pid 0): Port module event: module 1, Cable unplugged", level=6)), ({"0000:5e:00.0": "warning"}, {}), COST),
    Case("buffers-overrun-twice", SYSFS, lambda: counted("excessive_buffer_overrun_errors", 3, 9), ["warning"], COST),
    Case("management-packets-dropped", SYSFS, lambda: counted("VL15_dropped", 3, 9), [], COST),
)  # fmt: skip
MORE_FOLDERS = (
    Form("protenix", "bytedance/Protenix, runner/train.py", ("{n}.pt", "{n}_ema_0.999.pt"), r"(\d+)(?:_ema_0\.999)?\.pt"),
    Form("gaussian-splatting", "graphdeco-inria/gaussian-splatting, train.py", ("chkpnt{n}.pth",), r"chkpnt(\d+)\.pth", beside=("input.ply", "cfg_args")),
    Form("consistency-models", "openai/consistency_models, cm/train_util.py", ("model{n:06d}.pt", "ema_0.9999_{n:06d}.pt", "opt{n:06d}.pt", "target_model{n:06d}.pt"),
         r"(?:target_model|model|opt|ema_0\.9999_)(\d+)\.pt", beside=("progress.csv", "log.txt")),
    Form("dinov2", "facebookresearch/dinov2, dinov2/fsdp/__init__.py", ranks("model_{n:07d}.rank_{r}.pth"), r"model_(\d+)\.rank_\d+\.pth", "", "last_checkpoint.rank_0", "model_{n:07d}.rank_0.pth"),
    Form("finetrainers", "a-r-r-o-w/finetrainers, finetrainers/parallel/ptd.py", ("finetrainers_step_{n}/.metadata", *ranks("finetrainers_step_{n}/__{r}_0.distcp")), r"finetrainers_step_(\d+)", ".metadata"),
    Form("fastai", "fastai/fastai, fastai/callback/tracker.py, SaveModelCallback(every_epoch=True)", ("model_{n}.pth",), r"model_(\d+)\.pth"),
    Form("caffe", "BVLC/caffe, src/caffe/solver.cpp, Snapshot()", ("lenet_iter_{n}.caffemodel", "lenet_iter_{n}.solverstate"), r"lenet_iter_(\d+)\.(?:caffemodel|solverstate)"),
)  # fmt: skip

ROW = (
    "{{'loss': 1.30{n}1258, 'grad_norm': 0.53559101, 'learning_rate': 0.0001, 'token_acc': 0.6541558, 'epoch': 0.0, 'global_step/max_steps': '{n}/58114',"
    " 'percentage': '0.17%', 'elapsed_time': '19m 2s', 'remaining_time': '7d 15h 58m 34s', 'memory(GiB)': 30.82, 'train_speed(s/it)': 11.416459}}\n"
)  # fmt: skip


def minimind(n: int, loss: str) -> str:
    return f"Epoch:[0/20]({n}/41914) loss:{loss} lr:0.0001997 epoch_Time:46.0min:\n"


PROGRESS = (
    Case("rows-behind-the-bar-of-swift", GITHUB + "Lvyizhuo/AIDoctor",
         "nohup: 忽略输入\n[INFO:swift] args: TrainArguments(\nlogging_first_step=True,\nlogging_nan_inf_filter=True,\nmax_epochs=None,\nmax_steps=-1,\nsave_steps=500.0,\nwarmup_steps=0,\n)\n"
         + bar("Loading checkpoint shards: ", 2, 0, 1, 2, 2) + "\n[INFO:swift] max_length: 2048\n" + bar("Map: ", 464898, *range(0, 464898, 2000), 464898, rate="13844.63 examples/s") + "\n"
         + bar("Train: ", 58114, *(count for n in range(1, 181) for count in ((n, n, n) if n % 10 == 0 else (n,))), rate="11.41s/it")
         + "[INFO:swift] last_model_checkpoint: None\n[INFO:swift] best_model_checkpoint: None\n" + "".join(ROW.format(n=n) for n in (1, *range(10, 181, 10)))
         + FRAME + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.46 GiB. GPU 0 has a total capacity of 31.74 GiB of which 6.90 GiB is free.\n"
         "Train:   0%|          | 180/58114 [34:14<183:39:40, 11.41s/it]\n", (180, FINE), COST),
    Case("each-row-three-times-of-two-ranks", GITHUB + "tclh123/minimind",
         "2025-01-28 13:08:29,248 __main__ INFO Run with args: Namespace(out_dir='out', epochs=20, batch_size=64, log_interval=100, save_interval=1000)\n"
         + "".join(f"2025-01-28 14:0{n // 8000}:40,335 __main__ INFO " + minimind(n, "2.519") + minimind(n, "2.519") + f"2025-01-28 14:0{n // 8000}:40,335 __main__ INFO " + minimind(n, "2.502")
                   + ("2025-01-28 14:03:52,104 __main__ INFO Save checkpoint to out/pretrain_512.pth\n2025-01-28 14:03:52,216 __main__ INFO Model train..\n" if n % 1000 == 0 else "") for n in range(0, 23901, 100)),
         (23900, FINE), COST),
    Case("iterations-between-dashes", GITHUB + "JagadeeshAI/backFlush",
         "Device: cuda\nLoading model with LoRA...\nTrainable: 11,272,192 / 1,247,086,592 (0.9039%)\n\n" + 60 * "=" + "\nInitial Model Evaluation\n" + 60 * "=" + "\nInitial: Clean=100.0% | ASR=0.0% | Combined=100.0\n\n"
         + "GAME-BASED ADAPTIVE TRAINING - 10 TRIGGERS\nTarget Combined Score: 180.0 (ASR + Clean)\n\n"
         + "".join(f"--- Iteration {n}/100 ---\nTraining: {2 + n % 6} trigger steps, {8 + n % 13} normal steps\n" + (f"Training Acc: Trigger=9{n % 10}.0%, Normal=9{n % 9}.5%\nEvaluation: ASR={n % 90}.0%, Clean={100 - n % 40}.4% → Combined=14{n % 10}.4\n"
                   "⚠️ Clean critical, boosting normal steps to 20, LR to 5.0e-05\nSample trigger breakdown:\n  'of': 1x:0%(OK) 2x:0%(OK) 3x:20%(OK) 4x:60%(BAD) 5x:60%(BAD) 6x:40%(BAD)\n\n" if n < 85 else "") for n in range(1, 86)),
         (85, FINE), COST),
)  # fmt: skip

CAUSES = (
    Case("a-download-in-percent-alone", GITHUB + "eliasls/tdt17-task4-football-2025", "".join(f"{n / 12.7:.1f}%" for n in range(1, 1271)) + "\n", "", COST),
    Case("a-warning-three-hundred-times", GITHUB + "binchengecon/TwoCapital",
         340 * "No artists with labels found to put in legend.  Note that artists whose label start with an underscore are ignored when legend() is called with no argument.\n", "", COST),
    # Arguable: "oom_kill" was written, and the check told it in its own words.
    Case("killed-for-its-memory-behind-a-stamp", GITHUB + "UriNeri/biofaster", "[2025-12-17T01:57:03.485] error: Detected 9 oom_kill events in StepId=20160847.batch. Some of the step tasks have been OOM Killed.\n", "host out of memory", COST),
)  # fmt: skip

# Of allennlp all five situations were wrong at first: the metrics of an epoch kept its step, and nothing said so. Their names
# have its number, so they may be a part of it, and the check says now what to write (`tests/clean/test_hints.py`).
FOLDERS = (
    Form("basicsr", "XPixelGroup/BasicSR, basicsr/models/base_model.py", ("net_g_{n}.pth", "net_d_{n}.pth"), r"net_[gd]_(\d+)\.pth", beside=("net_g_latest.pth", "net_d_latest.pth")),
    Form("fish-speech", "fishaudio/fish-speech, fish_speech/configs/base.yaml", ("step_{n:09d}.ckpt",), r"step_(\d+)\.ckpt"),
    Form("allennlp", "allenai/allennlp, allennlp/training/checkpointer.py", ("model_state_e{n}_b0.th", "training_state_e{n}_b0.th"), r"(?:model|training)_state_e(\d+)_b\d+\.th",
         beside=("best.th",)),
)  # fmt: skip


@each(*SIMPLE, *NETWORK)
def test_a_form_that_was_drawn(case: Case, record_property: Callable[[str, object], None]) -> None:
    answer = case.form()
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right


@each(*PROGRESS)
def test_the_number_and_the_loss_of_a_log_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)


@each(*CAUSES)
def test_the_cause_in_a_log_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)


@pytest.mark.parametrize(
    "form", [*FOLDERS, *MORE_FOLDERS], ids=[form.name for form in [*FOLDERS, *MORE_FOLDERS]]
)
def test_a_folder_that_was_drawn(
    form: Form, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """`clean` in five situations, and what `checkpoint` calls the newest."""
    told = []
    for number, make in enumerate(SITUATIONS):
        root = tmp_path / str(number) / "ckpt"
        root.mkdir(parents=True)
        told.append(f"{make.__name__.replace('_', ' ')}: {tell_harm(root, form, make)}")
    root = tmp_path / "newest" / "ckpt"
    root.mkdir(parents=True)
    newest = find_newest(root, form, SITUATIONS[-1])
    answer = f"{', '.join(told)}; newest complete: {NEWEST if str(NEWEST) in newest else newest}"
    record_property("answer", answer)
    record_property("right", RIGHT)
    assert answer == RIGHT
