"""Logs of trainings, each as a whole: its progress, its loss, whether there is trouble, and the line shown first.

Two batches of 25, drawn by the seeds 20261129 and 20261130 from the list in `sources/training_logs.txt`, which was written before, and 23 more that
the second seed left. The answers were written down before the program ran. A source whose form a test had already, or that tells no answer, gave its
place to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import of_whole_log
from tests.world.test_causes_drawn import FRAME
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, rows

COST = "A number of something else is watched, a dead loss is not told, or somebody reads the wrong line at night."
EITHER = (FINE, NAN)
"""The loss is NaN where the program ends: it may be told as a lost one, or as the exception alone."""


@dataclass(frozen=True)
class Told:
    """What a careful operator would say of a log."""

    numbers: tuple[float | None, ...]
    """Any of these is its progress: the innermost count, or one that contains it. None: it has none."""
    loss: tuple[Status, ...] = (FINE,)
    shown: tuple[str, ...] = ()
    """One of these stands in the line that is shown first; empty where nothing is wrong."""


WATCHDOG = "[Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={s}, OpType={o}, Timeout(ms)=1800000) ran for 180{r}457 milliseconds before timing out."
DOWN = (
    "[E ProcessGroupNCCL.cpp:456] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on"
    " corrupted/incomplete data.\n[E ProcessGroupNCCL.cpp:461] To avoid data inconsistency, we are taking the entire process down.\n"
)
BOX = "╭" + 31 * "─" + " Traceback (most recent call last) " + 32 * "─" + "╮\n"
BOX_END = "╰" + 98 * "─" + "╯\n"


def watchdog(line: int, rank: int, number: int, operation: str) -> str:
    """What one rank says of a collective that took too long."""
    return (
        f"[E ProcessGroupNCCL.cpp:{line}] " + WATCHDOG.format(r=rank, s=number, o=operation) + "\n"
    )


def trials(status: str, iteration: int, seconds: float, steps: int, reward: str) -> str:
    """The table that Ray Tune prints again and again."""
    frame = "+-------------------------------+----------+---------------------+--------+------------------+--------+----------+\n"
    return (
        f"== Status ==\nMemory usage on this node: 15.1/62.7 GiB\nUsing FIFO scheduling algorithm.\nNumber of trials: 1 (1 {status})\n" + frame
        + "| Trial name                    | status   | loc                 |   iter |   total time (s) |     ts |   reward |\n"
        + frame.replace("+", "|")
        + f"| PPO_EnergyPlusEnv_9f072_00000 | {status:8s} | 192.168.1.20:579218 |    {iteration:3d} |          {seconds:7.3f} | {steps} | {reward} |\n" + frame + "\n"
    )  # fmt: skip


LOC = (
    "ValueError: Expected parameter loc (Tensor of shape (1, 50)) of distribution Normal(loc: torch.Size([1, 50]), scale: torch.Size([1, 50])) to satisfy the constraint Real(), but"
    " found invalid values:\ntensor([[nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan,\n         nan, nan, nan]], device='cuda:3')\n"
)
OVERFLOW = "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "

FIRST = (
    Case("memory-beyond-the-limit", GITHUB + "coqui-ai/STT/issues/2238",
         rows("Epoch 0 |   Training | Elapsed Time: 0:00:15 | Steps: {n} | Loss: 24.580695", 71, 95, 2)
         + "slurmstepd: error: Job 7518 exceeded memory limit (626359956 > 512000000), being killed\nslurmstepd: error: Exceeded job memory limit\n"
         "slurmstepd: error: *** JOB 7518 ON node1 CANCELLED AT 2022-06-10T17:11:35 ***\n" + rows("Epoch 0 |   Training | Elapsed Time: 0:00:15 | Steps: {n} | Loss: 24.186966", 95, 97, 2),
         Told((95,), shown=("exceeded memory limit",)), COST),
    Case("a-scale-that-swings", GITHUB + "bobo0810/LearnDeepSpeed/issues/1",
         "".join(f"[2024-11-04 11:{m}:2{s},602] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scal                                 e: 8192, "
                 f"{words}\n" for m in range(41, 57, 2) for s, words in ((7, "but hysteresis is 2. Reducing hysteresis to 1"), (9, "reducing to 4096"))), Told((None,)), COST),
    Case("padded-dictionaries", GITHUB + "hiyouga/LlamaFactory/issues/739",
         "".join(f"{{'loss': 3.{4715 - 31 * n}, 'learning_rate': 0.00019{171 - 3 * n}02552157872, 'epoch': {0.65 + n / 75:.2f}}}{115 * ' '}\n" for n in range(24)), Told((0.96,)), COST),
    Case("fifty-losses-and-a-timeout", GITHUB + "Peterande/D-FINE/issues/118",
         rows("Epoch: [0]  [ {n}/50108]  eta: 1 day, 20:54:44  lr: 0.000000  loss: 63.1246 (63.1246)  loss_bbox: 1.3422 (1.3422)  loss_bbox_aux_0: 1.4365 (1.4365)  loss_bbox_dn_pre: 0.8235 (0.8235)"
              "  loss_ddf_aux_4: 0.0000 (0.0000)  loss_fgl_dn_1: 0.8262 (0.8262)  time: 3.2270  data: 1.2201  max mem: 61021", 1000, 2600, 100)
         + "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5125, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1807734 milliseconds before timing out.\n",
         Told((2500, 0), shown=("Watchdog caught",)), COST),
    Case("a-rank-that-raises-behind-the-watchdog", GITHUB + "InternLM/InternLM/issues/290",
         watchdog(821, 0, 316, "ALLREDUCE") + watchdog(821, 3, 316, "ALLREDUCE") + DOWN + "terminate called after throwing an instance of 'std::runtime_error'\n  what():  "
         + WATCHDOG.format(r=0, s=316, o="ALLREDUCE") + "\n2023-09-07 09:14:40,098 ERROR train.py:308 in <module> -- Raise exception from f363ff97a009 with rank id: 3\n" + FRAME
         + "RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: " + WATCHDOG.format(r=3, s=316, o="ALLREDUCE") + "\n",
         Told((None,), shown=("Watchdog caught",)), COST),
    Case("a-launcher-that-was-terminated", GITHUB + "axolotl-ai-cloud/axolotl/issues/779",
         "".join(f"{{'loss': 1.2015, 'learning_rate': 0.0001999{3832 - n}553916283, 'epoch': 0.05}}       \n\r  1%|▍                                   | {n}/22292 [03:40<4:26:46,  1.38it/s]"
                 for n in range(250, 273))
         + FRAME + "subprocess.CalledProcessError: Command '['/home/d/miniconda3/envs/axo3/bin/python3', '-m', 'axolotl.cli.train', 'examples/openllama-3b/lora.yml']' died with <Signals.SIGTERM: 15>.\n",
         Told((272, 0.05), shown=("SIGTERM",)), COST),
    Case("epochs-that-repeat", GITHUB + "DAMO-NLP-SG/VideoLLaMA2/issues/157",
         "".join(f"{{'loss': {1.5214 - n / 20:.4f}, 'grad_norm': {82.93941089686794 - n}, 'learning_rate': {1.4285714285714286 * (n + 1)}e-06, 'epoch': {(n + 1) / 147:.2f}}}\n" for n in range(14)),
         Told((0.1,)), COST),
    Case("a-rank-that-was-killed", GITHUB + "xiaomi-research/time-r1/issues/9",
         "E0813 06:19:49.809000 161210 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 161617) of binary: /mnt/m/envs/timer1/bin/python3.11\n"
         'Traceback (most recent call last):\n  File "/mnt/m/envs/timer1/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n             ^^^^^^\n'
         '  File "/mnt/m/envs/timer1/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 269, in launch_agent\n    raise ChildFailedError(\n'
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n", Told((None,), shown=("exitcode: -9",)), COST),
    Case("a-tensor-that-has-no-place", GITHUB + "tensorflow/tensorflow/issues/17669",
         rows("INFO:tensorflow:global step {n}: loss = 10.7188 (0.446 sec/step)", 60, 81)
         + "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.framework.errors_impl.ResourceExhaustedError'>, OOM when allocating tensor with shape[1,5095,3729,3]\n"
         '\t [[Node: Preprocessor/map/while/ResizeImage/resize_images/ResizeBilinear = ResizeBilinear[T=DT_FLOAT, align_corners=false, _device="/job:localhost/replica:0/task:0/device:CPU:0"](a, b)]]\n'
         + FRAME + "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[1,5095,3729,3]\n", Told((80,), shown=("OOM when allocating tensor",)), COST),
    Case("ratios-before-the-loss", GITHUB + "mlzxy/devit/issues/67",
         rows("[10/19 00:47:49 d2.utils.events]:  eta: 2 days, 10:27:29  iter: {n}  cls_acc: 0.3652  fg_cls_acc: 0.1614  false_neg_ratio: 0.4153  total_loss: 13.95  region_bce_loss_0: 0.8207"
              "  rg_giou_loss_2: 0.6177  focal_loss_0: 1.811  bbox_loss: 1.59  time: 2.4277  data_time: 0.0084  lr: 3.3568e-07  max_mem: 13446M", 59, 360, 20), Told((359,)), COST),
    # Wrong, and stays: the line above the traceback announces it, and is told first.
    Case("a-trial-whose-actor-died", GITHUB + "ray-project/ray/issues/11239",
         "".join(trials("RUNNING", n, 2.8 * n, 1024 * n, "-55148.4") for n in range(559, 571))
         + "2020-11-19 09:12:41,220\tERROR trial_runner.py:567 -- Trial PPO_EnergyPlusEnv_9f072_00000: Error processing event.\n" + FRAME
         + "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.\n" + trials("ERROR", 570, 1596.1, 583680, "-55148.4"),
         Told((570, 583680), shown=("Error processing event",)), COST),
    Case("logits-that-are-nan", GITHUB + "IDSIA/hhmarl_2D/issues/15",
         "WARNING:tensorboardX.x2num:NaN or Inf found in input tensor.\n"
         "ValueError: Expected parameter logits (Tensor of shape (280, 13)) of distribution Categorical(logits: torch.Size([280, 13])) to satisfy the constraint IndependentConstraint(Real(), 1), but"
         " found invalid values:\ntensor([[nan, nan, nan,  ..., nan, nan, nan],\n        [nan, nan, nan,  ..., nan, nan, nan]], grad_fn=<SubBackward0>)\n\nIn tower 0 on device cpu\n",
         Told((None,), EITHER, ("Expected parameter logits",)), COST),
    Case("bonds-that-break-before-a-crash", GITHUB + "plumed/plumed2/issues/192",
         "".join(f"\nStep {n}, time {n / 500:.3f} (ps)  LINCS WARNING in simulation 3\nrelative constraint deviation after LINCS:\nrms 0.164806, max 8.641613 (between atoms 2782 and 2784)\n"
                 "bonds that rotated more than 30 degrees:\n atom 1 atom 2  angle  previous, current, constraint length\n   2782   2783   90.0    0.2983   0.8532      0.1000\n"
                 "Wrote pdb files with previous and current coordinates\n" for n in range(160, 171))
         + "\n\nReceived the TERM signal, stopping at the next NS step\n\n" + 74 * "-" + "\nmpirun noticed that process rank 3 with PID 1881 on node n12 exited on signal 11 (Segmentation fault).\n" + 74 * "-" + "\n",
         Told((170, None), shown=("signal 11", "segmentation fault")), COST),
    Case("a-shell-tells-a-crash", GITHUB + "dptech-corp/Uni-GBSA/issues/44",
         "01/18/2024 21:29:59 PM - INFO - Build protein topology.\n01/18/2024 21:30:00 PM - INFO - Build ligand topology: 1ceb_ligand\n"
         "01/18/2024 21:30:04 PM - INFO - Running energy minimization: 1ceb_ligand\nsh: line 1: 19327 Segmentation fault      gmx mdrun -v -deffnm minim -nt 1 -ntmpi 1 >> gromacs.log 2>&1\n"
         "gmx mdrun -v -deffnm minim -nt 1 -ntmpi 1 \nGenerating 1-4 interactions: fudge = 0.5\nNumber of degrees of freedom in T-Coupling group rest is 4479.00\n\nThere were 2 NOTEs\n"
         "\nBack Off! I just backed up minim.tpr to ./#minim.tpr.1#\n", Told((None,), shown=("Segmentation fault", "segmentation fault")), COST),
    Case("a-scatter-that-took-too-long", GITHUB + "NVIDIA/nccl/issues/1111",
         "".join(watchdog(481, rank, 1559, "_REDUCE_SCATTER_BASE, NumelIn=3121908768, NumelOut=32519883") for rank in (65, 66, 64, 67)) + DOWN, Told((None,), shown=("Watchdog caught",)), COST),
    Case("a-learner-thread", GITHUB + "ray-project/ray/issues/36801",
         'Exception in thread Thread-9:\nTraceback (most recent call last):\n  File "C:\\Users\\U\\envs\\test_env\\lib\\site-packages\\ray\\rllib\\core\\learner\\learner.py", line 1095, in \n_update\n'
         "    loss = self.compute_loss(fwd_out=fwd_out, batch=tensorbatch)\n"
         '  File "C:\\Users\\U\\envs\\test_env\\lib\\site-packages\\ray\\rllib\\models\\torch\\torch_distributions.py", line \n189, in __init__\n    super().__init__(loc=loc, scale=scale)\n' + LOC
         + FRAME + "RuntimeError: The learner thread died while training!\n", Told((None,), EITHER, ("Expected parameter loc",)), COST),
    # Arguable: a lost loss was written. The mean of the last batches is infinite for ever, and each batch is finite.
    Case("a-mean-that-is-infinite", GITHUB + "k2-fsa/icefall/issues/569",
         "".join(f"2022-10-23 14:53:29,352 INFO [train.py:907] ({rank}/8) Epoch 3, batch {n}, loss[loss=0.2266, simple_loss=0.245, pruned_loss=0.1042, over 493.00 frames. utt_duration=220.1 frames,"
                 f" utt_pad_proportion=0.3638, over 9.00 utterances.], tot_loss[loss={x}, simple_loss=0.2714, pruned_loss={x}, over 177822.05 frames. utt_duration=396.7 frames,"
                 " utt_pad_proportion=0.3776, over 1800.00 utterances.], batch size: 9, lr: 3.41e-04\n"
                 for n in range(114350, 116400, 50) for rank in (0, 6, 4) for x in ("inf" if n > 115350 else "0.2179",)), Told((116350, 3)), COST),
    Case("a-fatal-error-in-a-frame", GITHUB + "abeebyekeen/CHAPERONg/issues/5",
         55 * "-" + "\nProgram:     gmx mdrun, version 2024.1\nSource file: src/gromacs/pulling/pull.cpp (line 525)\n\nFatal error:\nDistance between pull groups 1 and 2 (6.707361 nm) is larger than 0.49 times\n"
         "the box size (6.707185).\n\nFor more information and tips for troubleshooting, please check the GROMACS\nwebsite at https://manual.gromacs.org/current/user-guide/run-time-errors.html\n"
         + 55 * "-" + "\n", Told((None,), shown=("Distance between pull groups",)), COST),
    Case("a-dictionary-behind-the-exception", GITHUB + "prannaykaul/lvc/issues/20",
         FRAME + "FloatingPointError: Loss became infinite or NaN at iteration=1029!\nloss_dict = {'loss_box_reg_stage0': tensor(nan, device='cuda:0', grad_fn=<MeanBackward0>), 'loss_box_reg_stage1':"
         " tensor(nan, device='cuda:0', grad_fn=<MeanBackward0>), 'data_time': 0.007915766909718513}\n", Told((None, 1029), EITHER, ("Loss became infinite or NaN", "NaN loss")), COST),
    Case("a-validation-behind-dead-losses", GITHUB + "jbwang1997/CrossKD/issues/15",
         rows("2024/11/09 16:41:24 - mmengine - INFO - Epoch(train)  [2][{n}/21046]  lr: 1.0000e-02  eta: 3:25:06  time: 0.1811  data_time: 0.0020  memory: 2389  loss: nan  loss_cls: nan  loss_bbox: nan"
              "  loss_dfl: nan", 20000, 21050, 50)
         + "".join(f"2024/11/09 16:46:55 - mmengine - INFO - Epoch(val)  [2][ {n}/21046]    eta: 0:19:06  time: 0.0638  data_time: 0.0020  memory: 797  \n" for n in range(3100, 3650, 50)),
         Told((21000, 2), (NAN,)), COST),
    Case("an-exception-before-the-watchdogs", GITHUB + "CarperAI/trlx/issues/319",
         BOX + "│ /root/ppo.py:197 in <module>" + 70 * " " + "│\n" + BOX_END + "RuntimeError: Invalid mt19937 state\n" + DOWN + "terminate called after throwing an instance of 'std::runtime_error'\n  what():  "
         + WATCHDOG.format(r=2, s=696, o="BROADCAST") + "\n" + watchdog(821, 1, 697, "ALLREDUCE"), Told((None,), shown=("Invalid mt19937 state",)), COST),
    Case("bars-glued-to-skipped-steps", GITHUB + "dredwardhyde/gpt-neo-fine-tuning-example/issues/7",
         "".join(f"  0%|                                      | {n}/63645 [00:19<37:53:00,  2.14s/it][2021-06-08 12:02:45,001] [INFO] [stage3.py:2323:_overflow_clean_up] [deepscale] {OVERFLOW}{2.0**(33 - n)},"
                 f" reducing to {2.0**(32 - n)}\n" + (f"[2021-06-08 12:02:45,002] [INFO] [timer.py:157:stop] 0/{n + 1}, SamplesPerSec=1.8825260836384787\n" if n % 10 == 9 else "") for n in range(9, 25)),
         Told((24,)), COST),
    Case("a-policy-whose-mean-is-nan", GITHUB + "DLR-RM/stable-baselines3/issues/1401", LOC, Told((None,), EITHER, ("Expected parameter loc",)), COST),
    Case("a-table-of-one-trial", GITHUB + "airboxlab/rllib-energyplus/issues/1", "".join(trials("RUNNING", n, 2.85 * n, 1024 * n, "-55148.4") for n in range(100, 119)), Told((118, 120832)), COST),
    Case("long-dashes-between-the-fields", GITHUB + "yamatokataoka/reinforcement-learning-replications/pull/7",
         rows("2020-10-10 08:34:38,000 — rl_replicas.vpg.vpg — WARNING — The trajectory cut off at 16 steps on the current episode\n2020-10-10 08:34:38,692 — rl_replicas.vpg.vpg — INFO — Loss of the current"
              " policy:         -0.0452 \n2020-10-10 08:34:38,693 — rl_replicas.vpg.vpg — INFO — Loss of the current value function: 101     \n2020-10-10 08:34:38,694 — rl_replicas.vpg.vpg — INFO — Epoch:"
              " {n}\n2020-10-10 08:34:38,694 — rl_replicas.vpg.vpg — INFO — Average Episode Return: 35.3    \n2020-10-10 08:34:38,695 — rl_replicas.vpg.vpg — INFO — Maximum Episode Return: 102     ", 4, 26),
         Told((25,)), COST),
)  # fmt: skip


HUBERT = "[7cc1303a881b:0/8] 2022-02-21 11:4{m}:05,031 (trainer:617) WARNING: The grad norm is nan. Skipping updating the model.\n"
MD = "relative constraint deviation after LINCS:\nrms 0.856589, max 32.602646 (between atoms 3684 and 3685)\nbonds that rotated more than 30 degrees:\n atom 1 atom 2  angle  previous, current, constraint length\n   3678   3679   90.0    0.1090   2.3710      0.1090\n"

SECOND = (
    Case("a-scale-that-is-too-small", GITHUB + "k2-fsa/icefall/issues/1463",
         "".join(f"2024-01-14 01:03:0{n},826 WARNING [train.py:1057] ({r}/4) Grad scale is small: 1.2924697071141057e-26\n2024-01-14 01:03:0{n},826 INFO [checkpoint.py:75] ({r}/4) Saving checkpoint to"
                 f" zipformer/exp-causal/2500/bad-model-{r}.pt\n" for n, r in ((0, 2), (1, 0)))
         + 'Traceback (most recent call last):\n  File "/mnt/local/ASR/./zipformer/train.py", line 1446, in <module>\n    main()\n'
         '  File "/mnt/envs/k2-gpu/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 197, in start_processes\n    while not context.join():\n              ^^^^^^^^^^^^^^^^^^\n'
         "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 2 terminated with the following error:\n" + FRAME
         + "RuntimeError: grad_scale is too small, exiting: 1.2924697071141057e-26\n", Told((None,), shown=("grad_scale is too small",)), COST),
    Case("a-start-with-a-library-that-is-missing", GITHUB + "mindspore-lab/mindyolo/issues/441",
         "2025-04-15 13:43:27,110 [INFO] Load dataset cache from [/home/h/coco128/labels/train2017.cache.npy] success.\n"
         "Scanning '/home/h/coco128/labels/train2017.cache.npy' images and labels... 124 found, 2 missing, 0 empty, 0 corrupted: 100%|█| 126/126 [00:0\n"
         "2025-04-15 13:43:27,117 [INFO] Dataloader num parallel workers: [1]\n2025-04-15 13:43:27,416 [INFO]   (0): YoloxSwitchTrain in mindyolo/utils/callback.py\n2025-04-15 13:43:27,416 [INFO]\n"
         "2025-04-15 13:43:27,422 [WARNING] log interval should be less than total steps of one epoch, but got 100 > 7, set log_interval as steps_per_epoch 7\n"
         "2025-04-15 13:43:27,422 [WARNING] The first epoch will be compiled for the graph, which may take a long time; You can come back later :).\n"
         "[WARNING] package not installed, albumentations load failed\n", Told((None,)), COST),
    Case("a-time-of-the-end-glued-to-a-note", GITHUB + "luancarvalhomartins/PyAutoFEP/issues/107",
         "".join((f"\nstep {n // 100 * 100}, will finish Thu Aug  3 17:36:16 2023" if n % 5 == 0 else "") + f"\nStep {n}, time {n / 500:.3f} (ps)  LINCS WARNING in simulation 1\n{MD}Wrote pdb files with"
                 " previous and current coordinates\n" for n in range(12430, 12454)), Told((12453, 12400)), COST),
    Case("an-epoch-whose-loss-was-nan", GITHUB + "BGU-CS-VIL/DeepDPM/issues/51",
         "\rEpoch 0: 100%|███████████| 547/547 [00:00<00:00, 661.71it/s, loss=nan, v_num=]Initializing clusters params using Kmeans...\n"
         + "".join(f"\rEpoch {n}: 100%|██████████████████| 547/547 [00:19<00:00, 27.60it/s, loss=0, v_num=]" for n in range(1, 45)) + "\n", Told((547, 44)), COST),
    Case("a-source-file-before-the-error", GITHUB + "HITS-MBM/gromacs-fda/issues/4",
         55 * "-" + "\nProgram mdrun_pf2, VERSION 4.5.3\nSource code file: constr.c, line: 176\n\nFatal error:\nToo many LINCS warnings (1009)\n"
         "If you know what you are doing you can adjust the lincs warning threshold in your mdp file\nor set the environment variable GMX_MAXCONSTRWARN to -1,\nbut normally it is better to fix the problem\n"
         "For more information and tips for troubleshooting, please check the GROMACS\nwebsite at http://www.gromacs.org/Documentation/Errors\n" + 55 * "-" + "\n",
         Told((None,), shown=("Too many LINCS warnings",)), COST),
    Case("killed-behind-a-bar-that-loads", GITHUB + "XLabs-AI/x-flux/issues/94",
         "Loading checkpoint shards: 100%|██████████████████████████████████████| 2/2 [00:00<00:00,  2.84it/s]\nInit model\nInit model\nLoading checkpoint\nLoading checkpoint\nInit AE\nInit AE\n"
         "W0902 00:42:50.212000 133343758611968 torch/distributed/elastic/multiprocessing/api.py:858] Sending process 3788 closing signal SIGTERM\n"
         "E0902 00:42:54.953000 133343758611968 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: -9) local_rank: 0 (pid: 3787) of binary: /mnt/m/envs/x-flux/bin/python\n"
         'Traceback (most recent call last):\n  File "/mnt/m/envs/x-flux/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n'
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", Told((None,), shown=("exitcode: -9",)), COST),
    Case("advice-about-memory-at-a-start", GITHUB + "huggingface/lerobot/issues/1234",
         "INFO 2025-06-09 11:25:47 ts/train.py:117 Logs will be saved locally.\nINFO 2025-06-09 11:25:47 ts/train.py:127 Creating dataset\n"
         "Resolving data files: 100%|███████████████████████████████████| 56/56 [00:00<00:00, 555274.29it/s]\nINFO 2025-06-09 11:25:49 ts/train.py:138 Creating policy\n"
         "Loading  HuggingFaceTB/SmolVLM2-500M-Video-Instruct weights ...\nINFO 2025-06-09 11:25:53 modeling.py:991 We will use 90% of the memory on device 0 for storing the model, and 10% for the buffer to"
         " avoid OOM. You can set `max_memory` in to a higher value to use more memory (at your own risk).\nReducing the number of VLM layers to 16 ...\n", Told((None,)), COST),
    Case("losses-that-are-not-correct", GITHUB + "espnet/espnet/issues/186",
         "".join(f"2018-05-23 13:05:{s},{ms} ({where}) WARNING: {words}\n" for s, ms, where, words in (
             ("04", 260, "e2e_asr_attctc:88", "loss (=250000064.000000) is not correct"), ("12", 361, "e2e_asr_attctc:88", "loss (=1500000000.000000) is not correct"),
             ("13", 682, "asr_chainer:132", "grad norm is nan. Do not update model."), ("14", 925, "e2e_asr_attctc:88", "loss (=250000048.000000) is not correct"),
             ("29", 965, "e2e_asr_attctc:88", "loss (=250000096.000000) is not correct"), ("46", 163, "e2e_asr_attctc:88", "loss (=250000080.000000) is not correct"))), Told((None,)), COST),
    Case("an-allocator-full-of-stars", GITHUB + "tensorflow/tensor2tensor/issues/413",
         "2017-11-13 10:31:59.957961: I tensorflow/core/common_runtime/bfc_allocator.cc:685] Stats: \nLimit:                 16213540864\nInUse:                 16213498368\nNumAllocs:                    8869\n\n"
         f"2017-11-13 10:31:59.958296: W tensorflow/core/common_runtime/bfc_allocator.cc:277] {100 * '*'}\n"
         "2017-11-13 10:31:59.958338: W tensorflow/core/framework/op_kernel.cc:1192] Resource exhausted: OOM when allocating tensor with shape[15,8,183,183]\n" + FRAME
         + "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[15,8,183,183]\n", Told((None,), shown=("OOM when allocating tensor", "memory")), COST),
    Case("the-smallest-scale-is-reached", GITHUB + "facebookresearch/fairseq/issues/1529",
         "".join(f"| epoch {n:03d} | loss 3.976 | nll_loss 2.204 | ppl 4.61 | wps 279460 | ups 3 | wpb 110529.673 | bsz 3780.211 | num_updates {327 * n + 9} | lr 0.000330319 | gnorm 0.635 | clip 0.000 | oom 0.000"
                 f" | loss_scale 0.000 | wall 4043 | train_wall 3606\n| epoch {n:03d} | valid on 'valid' subset | loss 9.329 | nll_loss 8.088 | ppl 272.04 | num_updates {327 * n + 9} | best_loss 9.11817\n"
                 f"| saved checkpoint ./checkpoints/LDC_zh-en_32k_fp16/checkpoint{n}.pt (epoch {n} @ {327 * n + 9} updates) (writing took 7.2686069011688 seconds)\n" for n in range(12, 29))
         + "| WARNING: overflow detected, setting loss scale to: 0.0001220703125\n" + FRAME
         + "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.\n",
         Told((28, 9165), shown=("Minimum loss scale reached", "loss scale")), COST),
    Case("prompts-between-actors", GITHUB + "OpenRLHF/OpenRLHF/issues/949",
         "".join(f"\rProcessed prompts:  {100 * n // 32}%|█████████▍| {n}/32 [07:00<02:12, 66.17s/it, est. speed input: 30.97 toks/s, output: 224.72 toks/s]\n(LLMRayActor pid=188555, ip=10.81.10.78) "
                 for n in range(20, 33))
         + "\n" + "".join(f"(ActorModelRayActor pid=118633, ip=10.81.10.44) node44:118633:121364 [0] NCCL INFO Channel {n}/0 : 3[3] -> 4[4] via P2P/IPC\n" for n in range(11, 16))
         + "(ActorModelRayActor pid=118633, ip=10.81.10.44) [rank3]:[E507 02:11:17.996319560 ProcessGroupNCCL.cpp:616] " + WATCHDOG.format(r=3, s=335, o="ALLREDUCE") + "\n",
         Told((None,), shown=("Watchdog caught", "NCCL timeout")), COST),
    Case("a-traceback-glued-to-the-first-bar", GITHUB + "aqlaboratory/openfold/issues/481",
         f"Epoch 0:   0%|{140 * ' '}| 0/20 [00:00<?, ?it/s]" + FRAME
         + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 34.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 15.19 MiB is free. Process 9 has 79.08 GiB memory in use.\n",
         Told((None, 0), shown=("CUDA out of memory",)), COST),
    Case("a-trace-glued-to-a-time", GITHUB + "pytorch/xla/issues/1178",
         "".join(f"Iter: {n}, Batch: [{n}/10546], Batch_loss: 2.4670, Speed: 0.00 steps/s, Time: {4 * n}m46.5s2019-10-16 11:19:47.824603: I torch_xla/csrc/tensor.cpp:973] Waiting on device barrier for device TPU:0 ...\n"
                 "2019-10-16 11:19:47.824631: I torch_xla/csrc/tensor.cpp:976] Waiting on device barrier for device TPU:0 done!\n"
                 "2019-10-16 11:19:47.824644: I torch_xla/csrc/tensor.cpp:1233] Syncing graph hash 13494090906209985209 on device 'TPU:0'\n" for n in range(3, 19)), Told((18,)), COST),
    Case("a-gradient-that-overflowed-once", GITHUB + "deepspeedai/DeepSpeed/issues/2069",
         2 * "[2022-07-05 16:30:22,874] [INFO] [fused_optimizer.py:382:_update_scale]\nGrad overflow on iteration 13\n"
         + 3 * "[2022-07-05 16:30:22,874] [INFO] [fused_optimizer.py:383:_update_scale] Reducing dynamic loss scale from 524288.0 to 262144.0\n"
         + "[2022-07-05 16:30:22,874] [INFO] [logging.py:69:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss scale: 524288.0, reducing to 262144.0\n"
         + "".join(f" {100 * n // 1601}%|{n // 60 * '█'}▌{(1601 - n) // 60 * ' '}| {n}/1601 [00:49<00:29, 20.57it/s][2022-07-05 16:30:27,753] [INFO] [timer.py:193:stop] 0/{n + 1},"
                   " SamplesPerSec=1418.7156532263152, MemAllocated=1.66GB, MaxMemAllocated=2.92GB\n" for n in range(99, 1500, 100)), Told((1499, 1500)), COST),
    # Wrong, and stays: a few of six thousand steps are skipped. Below it every step is, in the same words.
    Case("a-few-gradients-that-are-skipped", GITHUB + "espnet/espnet/issues/4095",
         "".join(f"[7cc1303a881b:0/8] 2022-02-21 11:40:05,031 (trainer:679) INFO: 1epoch:train:{n}-{n + 6104}batch: iter_time=1.299e-04, forward_time=0.113, loss_ctc=86.964, loss_att=58.959, acc=0.212, loss=66.878,"
                 " backward_time=0.125, optim_step_time=0.053, optim0_lr0=0.001, train_time=0.408\n" + HUBERT.format(m=2) + HUBERT.format(m=4)
                 + "[7cc1303a881b:0/8] 2022-02-21 11:44:54,398 (ctc:74) WARNING: 1/2 samples got nan grad. These were ignored for CTC loss.\n" + HUBERT.format(m=5)
                 for n in range(6106, 36632, 6105)), Told((1, 36631, 42735), (NAN,)), COST),
    # Arguable: the last line was to be shown. That no step of the epoch was one is told as a lost loss.
    Case("an-epoch-without-one-valid-step", GITHUB + "espnet/espnet/issues/3630",
         30 * "(trainer:582) WARNING: The grad norm is nan. Skipping updating the model.\n(ctc:71) WARNING: 5/42 samples got nan grad. These were ignored for CTC loss.\n"
         + "(ctc:66) WARNING: All samples in this mini-batch got nan grad. Returning nan value instead of CTC loss\n" + 30 * "(trainer:582) WARNING: The grad norm is nan. Skipping updating the model.\n"
         + "(trainer:404) WARNING: The gradients at all steps are invalid in this epoch. Something seems wrong. This training was stopped at 2epoch\n",
         Told((None, 2), (NAN,)), COST),
    Case("somebody-died-in-a-thread", GITHUB + "MIC-DKFZ/nnUNet/issues/938",
         rows("2022-02-11 09:55:41.065511: \nepoch:  {n}\n2022-02-11 09:57:45.812597: train loss : -0.7268\n2022-02-11 09:57:55.649310: validation loss: -0.7379\n"
              "2022-02-11 09:57:55.650088: Average global foreground Dice: [0.8885]\n2022-02-11 09:57:55.650669: (interpret this as an estimate for the Dice of the different classes. This is not exact.)", 2, 17)
         + "/home/l/nnUNet/nnunet/training/network_training/nnUNetTrainerV2.py:254: FutureWarning: Non-finite norm encountered in torch.nn.utils.clip_grad_norm_; continuing anyway. Note that the default behavior"
         " will change in a future release to error out if a non-finite total norm is encountered.\n  torch.nn.utils.clip_grad_norm_(self.network.parameters(), 12)\nException in thread Thread-4:\n" + FRAME
         + "RuntimeError: Abort event was set. So someone died and we should end this madness. \nIMPORTANT: This is not the actual error message! Look further up to see what caused the error.\n",
         Told((16,), shown=("Abort event was set",)), COST),
    # Arguable: no step changes the model any more, and the loss itself is finite.
    Case("every-gradient-is-skipped", GITHUB + "espnet/espnet/issues/3170",
         "".join(12 * "[user] 2021-04-23 19:22:52,420 (trainer:581) WARNING: The grad norm is nan. Skipping updating the model.\n"
                 + f"[user] 2021-04-23 19:22:56,245 (trainer:636) INFO: 2epoch:train:{n}-{n + 631}batch: iter_time=3.163e-04, forward_time=0.110, loss=65.129, loss_att=124.079, loss_ctc=144.685, acc=0.065,"
                 " backward_time=0.086, optim0_lr0=1.485e-05, train_time=0.624\n" for n in range(633, 12010, 632)), Told((2, 12009, 12640), (NAN,)), COST),
    # Arguable: no number was written, and a bar at 0 is one.
    Case("a-checkpoint-at-the-end-of-nothing", GITHUB + "sjtuplayer/anomalydiffusion/issues/110",
         "Sanity Checking: 0it [00:00, ?it/s]/home/a/site-packages/pytorch_lightning/trainer/connectors/data_connector.py:495: PossibleUserWarning: Your `val_dataloader`'s sampler has shuffling enabled, it is"
         " strongly recommended that you turn shuffling off for val/test/predict dataloaders.\n  rank_zero_warn(\n"
         "huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...\nTo disable this warning, you can either:\n"
         "        - Avoid using `tokenizers` before the fork if possible\n        - Explicitly set the environment variable TOKENIZERS_PARALLELISM=(true | false)\nSummoning checkpoint.\n",
         Told((None, 0)), COST),
    Case("a-traceback-of-a-notebook", GITHUB + "IndicoDataSolutions/finetune/issues/339",
         "INFO:finetune:Saving tensorboard output to /tmp/Finetunece1xntyk\n"
         + "".join(f"\rValidation:  {n}%|████▊     | {n}/100 [00:00<00:00, 122.95it/s]" for n in (0, 48, 64, 80, 96)) + "\n"
         + "".join(f"\rEpoch 1/5:   1%|          | {n}/10224 [00:00<00:30, 333.20it/s]" for n in (0, 28, 93, 172)) + "\n" + 75 * "-" + "\n"
         "ResourceExhaustedError                    Traceback (most recent call last)\n~/.local/lib/python3.5/site-packages/tensorflow/python/client/session.py in _do_call(self, fn, *args)\n"
         "   1333     try:\n-> 1334       return fn(*args)\n   1335     except errors.OpError as e:\n\nResourceExhaustedError: OOM when allocating tensor with shape[32,512,768] and type float on"
         " /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n", Told((172, 1), shown=("OOM when allocating tensor", "memory")), COST),
    Case("steps-that-descend", GITHUB + "Tsjerk/Backward/issues/13",
         "This run will generate roughly 2 Mb of data\n\nThere were 2 NOTEs\n\nThere were 2 WARNINGs\n\nGROMACS reminds you: \"Given enough eyeballs, all bugs are shallow.\" (Linus Torvalds)\n\n"
         "Reading file 1-EM.tpr, VERSION 2023 (single precision)\n1 GPU selected for this run.\nUsing 1 MPI thread\n\nSteepest Descents:\n   Tolerance (Fmax)   =  1.00000e+01\n   Number of steps    =          500\n"
         + "".join(f"Step={n:5d}, Dmax= 1.0e-01 nm, Epot=  {8.8915 - n / 9:.5f}e+07 Fmax= 9.04316e+08, atom= {9084 + n * 7 % 50}\n" for n in range(41)), Told((40,)), COST),
    Case("an-announcement-before-the-exception", GITHUB + "facebookresearch/detectron2/issues/838",
         "ERROR [02/10 22:55:41 d2.engine.train_loop]: Exception during training:\n" + FRAME
         + "FloatingPointError: Loss became infinite or NaN at iteration=2137!\nloss_dict = {'loss_cls': tensor(nan, device='cuda:0', grad_fn=<NllLossBackward>), 'loss_mask': tensor(1265158.6250, device='cuda:0',\n"
         "       grad_fn=<BinaryCrossEntropyWithLogitsBackward>)}\n", Told((None, 2137), EITHER, ("Loss became infinite or NaN", "NaN loss")), COST),
    Case("bars-of-a-preparation", GITHUB + "ACEsuit/mace-jax/issues/8",
         "node7 2024-08-07 13:15:32.896 INFO: Using random 20.8% of training set for validation\nnode7 2024-08-07 13:15:33.253 INFO: Total number of configurations: train=951, valid=249, test=1800\n"
         "100%|█████████████████████████████████████████| 951/951 [00:00<00:00, 15684.05it/s]\n100%|█████████████████████████████████████████| 249/249 [00:00<00:00, 15888.97it/s]\n"
         "node7 2024-08-07 13:15:33.455 INFO: z_table= AtomicNumberTable: (1, 6, 8)\nnode7 2024-08-07 13:15:33.468 INFO: Do not normalize the radial basis (avg_r_min=None)\n"
         "node7 2024-08-07 13:15:33.473 INFO: Computed average Atomic Energies using least squares: {1: 0.0, 6: 0.0, 8: 0.0}\n", Told((None, 249)), COST),
    # Either a lost loss or an error that says it: one of the two has to be told.
    Case("only-a-sentence-for-nan", GITHUB + "aqlaboratory/openfold/issues/50", 40 * "WARNING:root:loss is NaN. Returning 0 loss...\n", Told((None,), (NAN,)), COST),
    Case("a-billion-steps", GITHUB + "Martini-Force-Field-Initiative/Martini-Force-Field-Initiative.github.io/issues/104",
         f"\nStep 1125669188, time 2.25134e+07 (ps)  LINCS WARNING\n{MD}Wrote pdb files with previous and current coordinates\n", Told((None, 1125669188)), COST),
)  # fmt: skip


STEPS = (
    "{t} | INFO | train_inner | epoch 003: {n:6d} / 356 loss=9.44, nll_loss=8.44, ppl=347.28, wps=30690.8, ups=0.07, wpb=427295, bsz=14390.4, num_updates={m}, lr=0.000175, gnorm=156.036,"
    " loss_scale=0, train_wall=1281, wall=9877\n"
)
THIRD = (
    # Either a lost loss, or nothing beside the bar's finite loss: examples are skipped, and the loss is the bar's mean.
    Case("examples-that-are-skipped", GITHUB + "aqlaboratory/openfold/issues/19",
         "".join(f"\rEpoch 0:  30%|██████████████████████████████                                        | {n}/2733 [2:23:33<5:39:36, 10.61s/it, loss=4.{n}, v_num=28]" for n in range(780, 813))
         + "".join(f"NaN {n}.0\nWARNING:root:distogram loss is NaN. Skipping...\nWARNING:root:fape loss is NaN. Skipping...\nWARNING:root:lddt loss is NaN. Skipping...\n" for n in range(6832, 6882)),
         Told((812, 0), (NAN,)), COST),
    Case("a-start-with-warnings", GITHUB + "huggingface/transformers/pull/4946",
         "06/12/2020 10:05:38 - INFO - transformers.trainer_tf -   ***** Running training *****\n06/12/2020 10:05:38 - INFO - transformers.trainer_tf -     Num examples = 3668\n"
         "06/12/2020 10:05:38 - INFO - transformers.trainer_tf -     Num Epochs = 3\n06/12/2020 10:05:38 - INFO - transformers.trainer_tf -     Total optimization steps = 29\n"
         "WARNING:tensorflow:From /home/j/trainer_tf.py:355: StrategyBase.experimental_run_v2 (from tensorflow.python.distribute.distribute_lib) is deprecated and will be removed in a future version.\n"
         "Instructions for updating:\nrenamed to `run`\n", Told((None,)), COST),
    Case("a-bar-at-its-start", GITHUB + "ultralytics/ultralytics/issues/6803",
         "val: New cache created: D:\\yolov8\\mydata\\labels\\test.cache\noptimizer: AdamW(lr=0.001, momentum=0.9) with parameter groups 61 weight(decay=0.0), 72 weight(decay=0.0005), 75 bias(decay=0.0)\n"
         "Image sizes 640 train, 640 val\nUsing 1 dataloader workers\nStarting training for 50 epochs...\n\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
         "  0%|          | 0/3280 [00:00<?, ?it/s]\n", Told((None, 0)), COST),
    Case("days-to-go-behind-a-mask", GITHUB + "PaddlePaddle/PaddleX/issues/2884",
         rows("[02/04 22:46:24] ppdet.engine.callbacks INFO: Epoch: [0] [{n}/7312] learning_rate: 0.000029 loss: 4.504654 loss_cls: 1.374781 loss_iou: 0.142509 loss_mask: 0.949291 loss_l1: 0.369396 eta:"
              " 67 days, 10:28:48 batch_cost: 0.1664 data_cost: 0.0034 ips: 96.1758 images/s, max_mem_reserved: 42653 MB", 2070, 2091), Told((2090, 0)), COST),
    Case("a-loss-that-only-the-last-rank-knows", GITHUB + "pytorch/torchtitan/issues/1232",
         rows("[rank0]:[titan] 2025-05-28 21:14:39,054 - root - INFO - step:  {n}  loss: -1.0000  memory: 42.78GiB(54.06%)  tps: 8  tflops: 1.81  mfu: 0.58%", 1, 10), Told((9,)), COST),
    Case("measures-of-a-thousand-labels", GITHUB + "MIC-DKFZ/nnUNet/issues/2530",
         rows("2024-10-01 11:53:49.864200:  \n2024-10-01 11:53:49.870199: Epoch {n} \n2024-10-01 11:53:49.874199: Current learning rate: 0.00883 \n2024-10-01 12:02:42.333360: train_loss -0.6154 \n"
              "2024-10-01 12:02:42.339360: val_loss 0.2496 \n2024-10-01 12:02:42.346358: Pseudo dice [0.4798, 0.0984, 0.0, nan, 0.0, nan, 0.0, nan] \n2024-10-01 12:02:42.346358: Epoch time: 532.47 s ", 110, 130),
         Told((129,)), COST),
    Case("a-return-written-as-octal", GITHUB + "aws-samples/sagemaker-distributed-training-workshop/issues/6",
         "".join(f"[1,mpirank:0,algo-1]<stdout>:#015Epoch {n}:  50% 1/2 [00:00<00:00,  6.54it/s, loss=2.{29 - n}, v_num=0]\n[1,mpirank:0,algo-1]<stdout>:\n[1,mpirank:0,algo-1]<stdout>:#015Validation DataLoader 0: 100%"
                 f" 1/1 [00:00<00:00, 1113.73it/s]#033[A\n[1,mpirank:0,algo-1]<stdout>:#015Epoch {n}: 100% 2/2 [00:00<00:00, 12.10it/s, loss=2.{29 - n}, v_num=0, val_acc=0.166]\n" for n in range(12)),
         Told((11, 2)), COST),
    # Wrong, and stays: two counts have the name `iter`, and the one that begins anew stands first.
    Case("four-counts-between-bars", GITHUB + "microsoft/LMOps/issues/130",
         "".join(f"train | data_epochs  0/10 | inner iter:   {n % 8}/  8 | ppo epoch:  {n // 8 % 4}/ 4 | global iter:     {n}/  5000| tot_loss: 2.3541 | rl_loss: -0.0{n}07 | pt_loss: 2.3948 | reward: 0.0000 | lr:"
                 " 2.5000e-07 | scale: 128.00 | time: 1.874 | step time: 0.000\n" + ("[2023-12-21 16:35:29,011] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] " + OVERFLOW + "128, reducing to 64\n" if n == 24 else "")
                 for n in range(10, 36)), Told((None,)), COST),
    Case("slices-of-an-epoch", GITHUB + "modelscope/FunASR/issues/2006",
         "".join(f"[2024-08-12 23:04:07,255][root][INFO] - train, rank: {r}, epoch: 0/500, data_slice: 0/5, step_in_slice: {n}/81081, step_in_epoch: {n}, total step: {n}, (loss_avg_rank: 0.886), (loss_avg_slice:"
                 " 0.669), (lr: 5.729e-04), [('loss_att', 0.768), ('acc', 0.678), ('loss', 0.886)], {'data_load': '0.000', 'total_time': '0.673'}, GPU, memory: usage: 1.165 GB, peak: 64.227 GB\n"
                 for n in range(32000, 32950, 50) for r in (9, 15, 12)) + "[rank9]:[E812 23:34:11.996319560 ProcessGroupNCCL.cpp:607] " + WATCHDOG.format(r=9, s=335, o="ALLREDUCE") + "\n",
         Told((32900,), shown=("Watchdog caught", "NCCL timeout")), COST),
    Case("rates-that-swing", GITHUB + "PaddlePaddle/Paddle/issues/12641",
         "I0812 02:23:55.719275 535 Util.cpp:166] commandline: --use_gpu=True --trainer_count=1 \nI0812 02:23:57.501731 535 GradientMachine.cpp:94] Initing parameters..\n"
         "I0812 02:23:57.756395 535 GradientMachine.cpp:101] Init parameters done.\n"
         + 12 * "I0812 02:24:15.668220 535 LearningRateScheduler.cpp:147] learning_rate changes to 3.90625e-07\nI0812 02:24:15.668267 535 LearningRateScheduler.cpp:147] learning_rate changes to 3.90625e-08\n",
         Told((None,)), COST),
    Case("somebody-pressed-a-key", GITHUB + "axolotl-ai-cloud/axolotl/issues/1563",
         "[2024-04-23 21:39:51,276] [INFO] [axolotl.train.log:61] [PID:1486799] [RANK:0] Starting trainer...\n\n\n^C[2024-04-23 22:04:33,011] torch.distributed.elastic.agent.server.api: [WARNING] Received"
         " Signals.SIGINT death signal, shutting down workers\n"
         + "".join(f"[2024-04-23 22:04:33,012] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process 148{n} closing signal SIGINT\n" for n in range(6799, 6803)),
         Told((None,), shown=("SIGINT",)), COST),
    Case("a-deviation-that-is-nan-too", GITHUB + "dmlc/xgboost/issues/90",
         "".join(f"[{n}]\tcv-test-logloss:{'nan+nan' if n > 170 else '0.044242+0.000575'}\tcv-train-logloss:{'nan+nan' if n > 170 else '0.043290+0.000668'}\n" for n in range(100, 260, 10)), Told((250,), (NAN,)), COST),
    Case("a-box-around-a-traceback", GITHUB + "nerfstudio-project/nerfstudio/issues/3787",
         BOX + "│ /usr/local/bin/ns-train:8 in <module>                                                            │\n│                                                                                                  │\n"
         "│   7 │   sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])                         │\n│ ❱ 8 │   sys.exit(entrypoint())                                                                   │\n"
         + BOX_END + "ValueError: math domain error\n", Told((None,), shown=("math domain error",)), COST),
    Case("nans-found-by-a-logger", GITHUB + "facebookresearch/fairchem/issues/1568",
         "".join(f"\rTrain Epoch 0:   {100 * n // 528}%|▏                                                         | {n}/528 [00:15<2:15:46, 15.46s/it]" + 2 * "\nWARNING:root:Found nans while computing loss" + "\n" for n in range(1, 25)),
         Told((24, 0), (NAN,)), COST),
    Case("a-rollout-beside-a-watchdog", GITHUB + "CarperAI/trlx/issues/373",
         "".join(f"\r[rollout {n} / 16]:  94%|█████████▍| {n}/16 [00:27<00:01,  1.81s/it]" for n in range(1, 16)) + watchdog(737, 2, 2059, "ALLREDUCE")
         + BOX + "│ /root/trlx_ppo_bloom_new.py:197 in <module>      " + 49 * " " + "│\n" + BOX_END + "RuntimeError: NCCL communicator was aborted on rank 2.  Original reason for failure was: "
         + WATCHDOG.format(r=2, s=2059, o="ALLREDUCE") + "\n", Told((None, 15), shown=("Watchdog caught", "NCCL timeout")), COST),
    Case("an-odd-exit-status", GITHUB + "kohya-ss/sd-scripts/issues/1902",
         "12:20:09-104034 INFO     Start training LoRA Flux1 ...\n12:20:09-109000 INFO     Validating C:/ai/Kohya/dataset/logs existence and writability... SUCCESS\n"
         "12:20:09-138002 INFO     Max train steps: 1200\n12:20:09-140001 INFO     stop_text_encoder_training = 0\n" + FRAME
         + "subprocess.CalledProcessError: Command '['C:/ai/Kohya/venv/Scripts/python.exe', 'C:/ai/Kohya/sd-scripts/flux_train_network.py', '--config_file', 'x.toml']' returned non-zero exit status 3221225477.\n",
         Told((None,), shown=("non-zero exit status 3221225477", "CalledProcessError")), COST),
    Case("requeueing-is-announced", GITHUB + "aqlaboratory/openfold/issues/473",
         "93.2 M    Trainable params\n0         Non-trainable params\n372.895   Total estimated model params size (MB)\nSLURM auto-requeueing enabled. Setting signal handlers.\n"
         "/opt/a/pytorch_lightning/core/module.py:518: You called `self.log('train/distogram', ..., logger=True)` but have no logger configured. You can enable one by doing `Trainer(logger=ALogger(...))`\n"
         + FRAME + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 76.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 66.38 MiB is free.\n", Told((None,), shown=("CUDA out of memory",)), COST),
    Case("objects-of-many-lines", GITHUB + "allenai/procthor-rl/issues/5",
         "".join(f'{{\n  "train-misc/pipeline_stage": 0,\n  "train-metrics/reward": 0.371{n}47,\n  "train-onpolicy-losses/ppo_loss/ppo_total": 0.376{n}8851,\n  "train-onpolicy-losses/ppo_loss/action":'
                 f' -0.0100{n}48,\n  "train-onpolicy-misc/rollout_epochs": 4,\n  "training_step": {8000 * n + 1104},\n  "_timestamp": {1714026764 + 200 * n},\n  "_step": {n}\n}}\n' for n in range(8)),
         Told((57104, 7)), COST),
    Case("a-loss-that-is-minus-nan", GITHUB + "dmlc/xgboost/issues/213",
         "".join(f"[{n}]\ttrain-logloss:{'-nan' if n > 43 else '0.331579'}\ttrain-auc:0.87{n}38\tvalid-logloss:0.33{400 - n}\tvalid-auc:0.87{3 * n}\nboosting round {n + 1}, {n + 48} sec elapsed\n" for n in range(30, 57)),
         Told((56, 57), (NAN,)), COST),
    Case("a-rank-before-the-epoch", GITHUB + "PaddlePaddle/PaddleSpeech/issues/675",
         "".join(f"[INFO 2021/06/19 16:01:34 model.py:61] Train: Rank: 0, epoch: 1, step: {n}, batch : {n - 3751}/1876, lr: 0.00000000, data time: 0.000s, train time: 3.019s, batch size: 64, train_loss: 16.{n}\n"
                 for n in range(5300, 5317)), Told((5316, 1565)), COST),
    Case("objects-counted-by-twenties", GITHUB + "PaddlePaddle/Paddle/issues/34297",
         rows("[07/21 14:43:00] ppdet.engine INFO: Epoch: [0] [ {n}/200] learning_rate: 0.000025 loss_xy: 7.020596 loss_wh: 23.817680 loss_obj: 947.480469 loss_cls: 35.948715 loss: 1037.630493 eta: 10 days,"
              " 19:39:33 batch_cost: 6.6231 data_cost: 6.0753 ips: 4.8315 images/s", 0, 200, 20), Told((180, 0)), COST),
    # A scale that is 1 and cannot become less: nothing is learned.
    Case("a-scale-that-cannot-shrink", GITHUB + "huggingface/transformers/issues/14531",
         "".join(f"  0%|▋                                                                    | {n}/24128 [00:40<2:40:10,  2.50it/s][2021-11-27 00:36:55,194] [INFO] [stage2.py:1628:step] [deepscale] {OVERFLOW}1, reducing to 1\n"
                 for n in range(60, 102)), Told((101,), (NAN,)), COST),
    Case("scales-below-a-thousandth", GITHUB + "facebookresearch/fairseq/issues/1895",
         "".join(STEPS.format(t="2020-03-23 11:39:44", n=n, m=695 + n) for n in range(5, 105, 5))
         + "".join(f"2020-03-23 11:41:18 | INFO | fairseq.trainer | NOTE: overflow detected, setting loss scale to: {2.0**-n}\n" for n in (11, 12, 13)) + FRAME
         + "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate, using gradient clipping or increasing the batch size.\n",
         Told((100, 795), shown=("Minimum loss scale reached", "loss scale")), COST),
)  # fmt: skip


def assert_told(case: Case, folder: Path, record: Callable[[str, object], None]) -> None:
    """What is told of a log is what a careful operator would say."""
    answer, right = of_whole_log(folder, case.form), case.right
    record("answer", (answer.number, str(answer.loss), answer.cause, answer.details))
    record("right", str(right))
    assert answer.number in right.numbers
    assert answer.loss in right.loss
    first = answer.cause + answer.details.partition("\n")[0]
    assert any(words in first for words in right.shown) if right.shown else not first


@each(*FIRST, *SECOND, *THIRD)
def test_a_log_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_told(case, tmp_path, record_property)
