"""Progress and NaN in logs of threads that a seed drew from a list; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentinel.core.model import Status
from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss

GITHUB = "https://github.com/"
WRONG = (
    "A number of something else is watched, or none; a dead loss is not told, or a healthy one is."
)
NAN, FINE = Status.CRITICAL, Status.OK


def rows(form: str, first: int = 100, last: int = 112, step: int = 1) -> str:
    """One line, or several, for each number; `{m}` is the number after it."""
    return "".join(
        form.replace("{n}", str(n)).replace("{m}", str(n + step)) + "\n"
        for n in range(first, last, step)
    )


NNUNET = (
    "2024-04-26 09:41:40.302549: \n2024-04-26 09:41:40.307418: Epoch {n} \n2024-04-26 09:41:40.311464: Current learning"
    " rate: 0.00999 \n2024-04-26 09:43:54.932336: train_loss TRAIN \n2024-04-26 09:43:54.939337: val_loss VAL \n"
    "2024-04-26 09:43:54.943336: Pseudo dice DICE \n2024-04-26 09:43:54.947495: Epoch time: 134.63 s \n"
    "2024-04-26 09:43:54.949496: Yayy! New best EMA pseudo Dice: 0.0005 "
)


def nnunet(train: str, val: str, dice: str) -> str:
    """Epochs as nnU-Net v2 prints them."""
    return rows(NNUNET.replace("TRAIN", train).replace("VAL", val).replace("DICE", dice), 0, 9)


# Seed 4201, from 31 of 66 threads whose forms no test had.
DRAWN_1 = (
    Case(
        "mst-s-epochs-behind-an-arrow", GITHUB + "caiyuanhao1998/MST/issues/7",
        rows("2022-07-20 17:24:00,364 - INFO: ===> Epoch {n} Complete: Avg. Loss: 0.014234 time: 662.37\n"
             "2022-07-20 17:24:00,803 - INFO: ===> Epoch {n}: testing psnr = 34.40, ssim = 0.938, time: 0.02", 162, 174),
        (173, FINE), WRONG,
    ),
    Case(
        "caffe-s-nets-with-many-outputs", GITHUB + "libornovax/master_thesis_code/issues/50",
        rows("I1109 10:34:34.280992  9709 solver.cpp:219] Iteration {n} (0.170469 iter/s, 58.6617s/10 iters), loss = 0.0140\n"
             "I1109 10:34:34.281066  9709 solver.cpp:238]     Train net output #0: loss_x16 = 0.00191 (* 1 = 0.00191 loss)\n"
             "I1109 10:34:34.281071  9709 solver.cpp:238]     Train net output #1: loss_x2 = 0.00421 (* 1 = 0.00421 loss)\n"
             "I1109 10:34:34.281081  9709 sgd_solver.cpp:105] Iteration {n}, lr = 7.8125e-07", 360, 480, 10),
        (470, FINE), WRONG,
    ),
    Case(
        "dicts-with-an-epoch-and-no-bar", GITHUB + "tatsu-lab/stanford_alpaca/issues/243",
        "".join(f"{{'loss': 1.2{n}07, 'learning_rate': 6.31578947368421e-06, 'epoch': 0.{n:02d}}}" + " " * 40 + "\n"
                for n in range(20, 40)),
        (0.39, FINE), WRONG,
    ),
    Case(
        "nnunet-learns", GITHUB + "MIC-DKFZ/nnUNet/issues/2140", nnunet("0.4043", "0.3847", "[0.0, 0.1611, 0.0]"),
        (8, FINE), WRONG,
    ),
    Case(
        "megatron-bert-s-first-two-lines", GITHUB + "NVIDIA/nccl/issues/743",
        "> finished creating BERT datasets ...\n[after dataloaders are built] datetime: 2022-10-31 08:35:51 \n"
        "done with setup ...\ntime (ms) | model-and-optimizer-setup: 294.00 | train/valid/test-data-iterators-setup: 3654.81\n"
        "training ...\n[before the start of training step] datetime: 2022-10-31 08:35:51 \n iteration       10/ 1000000 |"
        " consumed samples:           40 | elapsed time per iteration (ms): 356.2 | learning rate: 0.000E+00 | global batch"
        " size:     4 | loss scale: 8388608.0 | number of skipped iterations:  10 | number of nan iterations:   0 |\n"
        "time (ms) | forward-compute: 193.77 | backward-compute: 73.02 | optimizer: 63.01 | batch-generator: 25.27\n"
        " iteration       20/ 1000000 | consumed samples:           80 | elapsed time per iteration (ms): 140.6 | learning"
        " rate: 2.020E-08 | global batch size:     4 | lm loss: 1.005022E+01 | sop loss: 8.174902E-01 | loss scale: 32768.0 |"
        " grad norm: 217.199 | number of skipped iterations:   8 | number of nan iterations:   0 |\n",
        (20, FINE), WRONG,
    ),
    Case(
        "nnunet-is-dead-from-the-first-epoch", GITHUB + "MIC-DKFZ/nnUNet/issues/2357",
        nnunet("nan", "nan", "[nan, 0.0, 0.0]"), (8, NAN), WRONG,
    ),
    Case(
        "many-losses-in-folders", GITHUB + "ZYang2077/DAOcc/issues/25",
        rows("2025-08-12 11:58:43,317 - mmdet3d - INFO - Epoch [1][{n}/30895]\tlr: 9.067e-05, eta: 4 days, 7:31:41, time:"
             " 1.943, data_time: 0.080, memory: 13148, loss/object/heatmap/task0: 0.1005, loss/object/bbox/task0: 0.0075,"
             " loss/object/heatmap/task1: 1.0549, loss/occ/loss_occ: 0.6077, loss: 8.6429, grad_norm: 76.5591", 60, 93),
        (92, FINE), WRONG,
    ),
    Case(
        "nnunet-s-classes-without-a-pixel", GITHUB + "MIC-DKFZ/nnUNet/issues/1594",
        nnunet("0.2669", "0.0517", "[0.0, nan, nan, nan, nan, 0.0]"), (8, FINE), WRONG,
    ),
    Case(
        "nanogpt-at-its-plainest", GITHUB + "karpathy/nanoGPT/issues/110",
        rows("iter {n}: loss 4.0863, time 561.94ms", 1631, 1642), (1641, FINE), WRONG,
    ),
    Case(
        "nerfstudio-s-table", GITHUB + "maturk/dn-splatter/issues/110",
        rows("Step (% Done)       Train Iter (time)    ETA (time)           Train Rays / Sec                     latfacto.py:604\n"
             + "-" * 83 + "                      latfacto.py:554\n"
             "{n} (81.78%)       43.140 ms            39 s, 300.687 ms     14.86 M                                "
             "latfacto.py:566", 4090, 4500, 20),
        (4490, FINE), WRONG,
    ),
    Case(
        "icefall-s-first-recipe", GITHUB + "k2-fsa/icefall/pull/16",
        "2021-08-22 15:18:20,423 INFO [train.py:461] {'exp_dir': PosixPath('tdnn/exp'), 'lr': 0.001, 'start_epoch': 0,"
        " 'num_epochs': 50, 'best_train_loss': inf, 'best_valid_loss': inf, 'best_train_epoch': -1, 'batch_idx_train': 0}\n"
        + rows("2021-08-22 15:18:23,102 INFO [train.py:422] Epoch 0, batch {n}, batch avg loss 1.0789, total avg loss: 1.0789,"
               " batch size: 4", 0, 110, 10),
        (100, FINE), WRONG,
    ),
    Case(
        "stoix-counts-nothing", GITHUB + "EdanToledo/Stoix/issues/128",
        "".join(f"ACTOR - Steps per second: 2{n}.900 | Episode length mean: 1.000 | Episode return mean: -0.0{n}\n"
                f"TRAINER - Actor loss: 0.00{n} | Entropy: 0.637 | Value loss: 0.008\n"
                f"EVALUATOR - Steps per second: 346.9{n} | Episode length mean: 1.000\n" for n in (3, 1, 4, 1, 5, 9, 2, 6)),
        (None, FINE), WRONG,
    ),
    Case(
        "swift-s-bar-with-a-line-behind-it", GITHUB + "modelscope/ms-swift/issues/4366",
        "\n".join(f"Train:  33%|███▎      | {n}/9297 [7:04:32<12:19:18,  7.16s/it]" for n in range(3080, 3099))
        + "\nTrain:  33%|███▎      | 3099/9297 [7:04:32<12:19:18,  7.16s/it][INFO:swift] last_model_checkpoint:"
        " /out/v0/checkpoint-3000\n[INFO:swift] best_model_checkpoint: /out/v0/checkpoint-2800\n",
        (3099, FINE), WRONG,
    ),
    Case(
        "mmengine-in-its-new-form", GITHUB + "open-mmlab/mmdetection/issues/11893",
        rows("08/03 22:09:24 - mmengine - INFO - Epoch(train)  [1][ {n}/2931]  lr: 2.0000e-02  eta: 0:39:15  time: 0.0578"
             "  data_time: 0.0017  memory: 2389  loss: nan  loss_rpn_cls: nan  loss_rpn_bbox: nan  loss_cls: nan  acc: 0.0000"
             "  loss_bbox: nan", 100, 900, 50),
        (850, NAN), WRONG,
    ),
    Case(
        "nnunet-is-dead-and-says-yay", GITHUB + "MIC-DKFZ/nnUNet/issues/1612", nnunet("nan", "nan", "[0.0, 0.0]"),
        (8, NAN), WRONG,
    ),
)  # fmt: skip


# Seed 4202, from the 40 of 93 threads that were left and whose forms no test had.
DRAWN_2 = (
    Case(
        "a-bar-per-epoch-then-the-epoch", GITHUB + "ROCm/legacy-rocm-build/issues/4554",
        "".join("".join(f"\rTraining steps: {100 * k // 151:3d}%|{'█' * (k // 20)}| {k}/151 [00:0{k // 31}<00:01, 30.28it/s]"
                        for k in (0, 50, 100, 148, 151)) + f"\nEpoch [{n}/2000], Accuracy: 0.00%\n" for n in range(1, 12)),
        # Written down was 11, the epochs. The batches of an epoch of seconds tell as soon: arguable.
        (151, FINE), WRONG,
    ),
    Case(
        "a-timeout-behind-simple-grpo-s-bar", GITHUB + "lsdefine/simple_GRPO/issues/46",
        "".join(f"\r  1%|          | {n}/100000 [45:3{n - 1012}<51:20:53,  1.87s/it]" for n in range(1012, 1021))
        + "\r  1%|          | 1021/100000 [45:39<51:20:53,  1.87s/it][rank2]:[E723 01:58:45.510486595 ProcessGroupNCCL.cpp:632]"
        " [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=45390, OpType=ALLREDUCE, NumelIn=544997376,"
        " NumelOut=544997376, Timeout(ms)=600000) ran for 600061 milliseconds before timing out.\n",
        (1021, FINE), WRONG,
    ),
    Case(
        "splats-with-evaluations-between", GITHUB + "graphdeco-inria/gaussian-splatting/issues/17",
        "Reading camera 1130/1130 [11/07 13:56:39]\nLoading Training Cameras [11/07 13:56:39]\n"
        + "".join(f"\rTraining progress:  23%|█████▌        | {n}/30000 [01:45<04:24, 86.86it/s, Loss=0.2195082]"
                  for n in range(6900, 7010, 10))
        + "\n[ITER 7000] Evaluating train: L1 0.2186211347579956 PSNR 12.067031860351562 [11/07 13:58:39]\n\n"
        "[ITER 7000] Saving Gaussians [11/07 13:58:39]\n"
        + "".join(f"\rTraining progress:  24%|█████▌        | {n}/30000 [01:49<04:20, 86.86it/s, Loss=0.2308751]"
                  for n in range(7010, 7310, 10)) + "\n",
        (7300, FINE), WRONG,
    ),
    Case(
        "steps-of-an-epoch-with-their-time", GITHUB + "openvinotoolkit/nncf/pull/448",
        rows("INFO:nncf:Step: {n}/1250 Time: 0.412", 100, 1300, 100), (1200, FINE), WRONG,
    ),
    Case(
        "rllib-s-json-with-rewards-that-are-nan", GITHUB + "ray-project/ray/issues/21246",
        "".join('{"episode_reward_max": NaN, "episode_reward_min": NaN, "episode_reward_mean": NaN, "episode_len_mean": NaN,'
                f' "episodes_this_iter": 0, "num_healthy_workers": 0, "timesteps_total": {n * 4000}, "timesteps_this_iter": 0,'
                f' "agent_timesteps_total": {n * 4000}, "info": {{"learner": {{"default_policy": {{"learner_stats": {{"cur_kl_coeff":'
                ' 0.2, "total_loss": 227.45, "policy_loss": -0.036, "vf_loss": 227.48, "kl": 0.027}}}}}, "training_iteration":'
                f' {n}}}\n' for n in range(1, 13)),
        # Written down was timesteps_total, 48000. training_iteration stands on the same lines: arguable.
        (12, FINE), WRONG,
    ),
    Case(
        "detectron-s-json-over-several-lines", GITHUB + "facebookresearch/Detectron/issues/247",
        rows('json_stats: {"accuracy_cls": 0.923639, "eta": "1 day, 13:30:44", "iter": {n}, "loss": 0.562384, "loss_bbox":'
             ' 0.107754, "loss_cls": 0.243266, "lr": 0.010000, "mb_qsize": 64, "mem": 6407, "time": 0.562685}', 119000, 120000, 20),
        (119980, FINE), WRONG,
    ),
    Case(
        "centernet-in-stages", GITHUB + "facebookresearch/detectron2/issues/2958",
        rows("[04/23 13:57:21 d2.utils.events]:  eta: 1:50:22  iter: {n}  total_loss: 3.413  loss_cls_stage0: 0.5035"
             "  loss_box_reg_stage0: 0.2947  loss_centernet_loc: 0.5064  loss_centernet_agn_neg: 0.0102  time: 0.6865"
             "  data_time: 0.0073  lr: 0.0071982  max_mem: 14728M", 359, 620, 20),
        (619, FINE), WRONG,
    ),
    Case(
        "llama-cpp-finetunes", GITHUB + "ggml-org/llama.cpp/issues/7611",
        rows("train_opt_callback: iter=    {n} sample={m}/5608 sched=0.700000 loss=4.948237 dt=00:04:59 eta=03:29:33"
             " |----------------->", 60, 80), (79, FINE), WRONG,
    ),
    Case(
        "rllib-s-result-as-yaml", GITHUB + "ray-project/ray/pull/27093",
        "".join(f"Result for PPO_CartPole-v0_120b5_00000:\n  agent_timesteps_total: {n * 4000}\n  counters:\n"
                f"    num_agent_steps_sampled: {n * 4000}\n    num_agent_steps_trained: {n * 4000}\n  custom_metrics: {{}}\n"
                f"  date: 2022-07-27_15-41-0{n % 10}\n  done: false\n  episode_len_mean: 22.57\n  episodes_this_iter: 175\n"
                "  info:\n    learner:\n      default_policy:\n        learner_stats:\n          kl: 0.0278\n"
                "          policy_loss: -0.0349\n          total_loss: 8.862\n          vf_loss: 8.892\n"
                f"  iterations_since_restore: {n}\n  timesteps_total: {n * 4000}\n  training_iteration: {n}\n\n"
                for n in range(1, 13)),
        # Written down was timesteps_total, 48000. training_iteration stands on the same lines: arguable.
        (12, FINE), WRONG,
    ),
    Case(
        "paddlenlp-s-dict-with-its-step", GITHUB + "PaddlePaddle/PaddleNLP/pull/1761",
        "".join(f"{{'loss': 0.1{n}56, 'learning_rate': 4.5e-05, 'global_step': {n * 10}, 'epoch': {n / 7:.2f}}}" + " " * 60 + "\n"
                for n in range(10, 21))
        + "\r 33%|███████████▋        | 200/600 [01:11<01:58,  3.37it/s][2022-03-25 16:41:50,060] [    INFO] - ***** Running"
        " Evaluation *****\n[2022-03-25 16:41:50,060] [    INFO] -   Num examples = 1200\n",
        (200, FINE), WRONG,
    ),
    Case(
        "darkflow-s-moving-average", GITHUB + "thtrieu/darkflow/issues/470",
        "Finish 1 epoch(es)\n" + rows("step {n} - loss 105.28966522216797 - moving ave loss 105.25459302175182", 186, 205)
        + "Checkpoint at step 192\n", (204, FINE), WRONG,
    ),
    Case(
        "slim-s-global-step", GITHUB + "magenta/magenta/issues/853",
        rows("INFO:tensorflow:global step {n}: loss = nan (1.11 sec/step)\nINFO:tensorflow:global_step/sec: 0.9", 500, 520),
        (519, NAN), WRONG,
    ),
    Case(
        "a-tracker-s-batches", GITHUB + "chenxin-dlut/SUTrack/issues/15",
        rows("[train: 17, {n} / 1000] FPS: 252.8 (389.1)  ,  Loss/total: 1.08691  ,  Loss/giou: 0.26345  ,  Loss/l1: 0.02519"
             "  ,  IoU: 0.75680", 50, 650, 50), (600, FINE), WRONG,
    ),
    Case(
        "two-lines-of-litgpt-a-step", GITHUB + "Lightning-AI/litgpt/issues/689",
        "".join(f"iter {2 * n} step {n}: loss 10.8259, iter time: 197.87ms\niter {2 * n + 1} step {n + 1}: loss 10.8259, iter"
                " time: 214.40ms (optimizer.step)\n" for n in range(38, 50)),
        (99, FINE), WRONG,
    ),
    Case(
        "a-cascade-s-stages", GITHUB + "open-mmlab/mmdetection/issues/3446",
        rows("2020-08-01 00:27:30,524 - mmdet - INFO - Epoch [2][{n}/1749]\tlr: 2.000e-02, eta: 1:16:27, time: 1.940, data_time:"
             " 0.004, memory: 5280, loss_rpn_cls: nan, loss_rpn_bbox: nan, s0.loss_cls: nan, s0.acc: 94.4193, loss: nan,"
             " grad_norm: nan", 1050, 1700, 50), (1650, NAN), WRONG,
    ),
)  # fmt: skip

GRPO = (
    "{'loss': LOSS, 'grad_norm': 0.0865, 'learning_rate': 6.9e-06, 'completion_length': 232.8, 'rewards/format_reward': 1.0, 'reward': 1.7,"
    " 'reward_std': 0.57, 'kl': 0.0005, 'epoch': 0.{n}}"
)
MMDET = (
    "2021-08-18 19:36:00,257 - mmdet - INFO - Epoch [1][{n}/5808]\tlr: 1.000e-02, eta: 5:02:49, time: 0.784, data_time: 0.085, memory: 8104,"
    " loss_rpn_cls: 0.4233, loss_rpn_bbox: 0.1337, loss_cls: 0.8811, acc: 91.4893, loss_bbox: BOX, loss: LOSS"
)

# Seed 4203, from 31 of 62 threads whose forms no test had. Five bars were put again with the return that ends one: until it
# comes, the program is right to read the one before.
DRAWN_3 = (
    Case("titan-s-steps", GITHUB + "pytorch/torchtitan/pull/3393",
         rows("[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: {n}  loss:  3.24405  grad_norm:  0.8319  memory:  9.46GiB(64.99%)"
              "  tps: 7,282  tflops: 0.52  mfu: 0.17%", 14, 26), (25, FINE), WRONG),
    Case("a-loss-that-is-zero-by-right", GITHUB + "huggingface/trl/issues/3452", rows(GRPO.replace("LOSS", "0.0"), 31, 47, 2), (0.45, FINE), WRONG),
    Case("losses-of-vertices", GITHUB + "theEricMa/DiffSpeaker/issues/11",
         rows("2024-07-22 18:56:45,895 Epoch {n}: Train_vertice_recon 3.705e-07   Train_vertice_reconv 2.486e-08   Train_lip_recon 1.2e-07", 8993, 9005),
         (9004, FINE), WRONG),
    Case("a-bar-of-lightning", GITHUB + "official-stockfish/nnue-pytorch/issues/83",
         "".join(f"\rEpoch 1:  39%|███▉      | {n}/12331 [05:59<09:15, 13.47it/s, loss=0.0136, v_num=1]\r" for n in range(4846, 4866)),
         (4865, FINE), WRONG),
    Case("two-losses-of-a-voice-are-nan", GITHUB + "RVC-Project/Retrieval-based-Voice-Conversion-WebUI/issues/507",
         "".join(f"INFO:kobo:Train Epoch: {n} [1%]\nINFO:kobo:[{200 * n - 200}, 9.99875e-05]\nINFO:kobo:loss_disc=nan, loss_gen=nan, loss_fm=nan,"
                 f"loss_mel=21.974, loss_kl=1.270\nINFO:kobo:====> Epoch: {n} [2023-06-11 10:25:02] | (1:32:56.852602)\n" for n in range(2, 14)),
         (13, NAN), WRONG),
    Case("a-bar-with-its-loss-before-it", GITHUB + "Henry1iu/TNT-Trajectory-Prediction/issues/33",
         "".join(f"\r[Info: Device_0: train_Ep_11: loss: 4.38811e+02; avg_loss: 4.53619e+02]:  {2 * n}%|██        | {n}/56 [00:02<00:08,  5.02it/s]\r"
                 for n in range(1, 12)), (11, FINE), WRONG),
    Case("megatron-of-epfl", GITHUB + "epfLLM/Megatron-LLM/issues/11",
         rows(" iteration      {n}/  250000 | consumed samples:       124928 | elapsed time per iteration (ms): 86545.2 | learning rate: 9.150E-06 |"
              " global batch size:  1024 | lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations:   0 | number of nan"
              " iterations:   0 |", 122, 134), (133, FINE), WRONG),
    Case("bionemo-s-iterations", GITHUB + "NVIDIA-BioNeMo/bionemo-recipes/pull/740",
         rows("Training epoch 0, iteration {n}/149 | lr: 3e-05 | consumed_samples: {m} | global_batch_size: 1 | global_step: {n} | reduced_train_loss:"
              " 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106", 120, 132), (131, FINE), WRONG),
    Case("samples-behind-horovod-s-marks", GITHUB + "horovod/horovod/issues/2255",
         "".join(f"[1,0]<stdout>:Train Epoch: 1 [{n}/60000 ({n // 600}%)]\tLoss: 0.449658\n" for n in range(52480, 59840, 640)), (59520, FINE), WRONG),
    Case("a-cascade-with-masks", GITHUB + "open-mmlab/mmdetection/issues/2785",
         rows("2020-05-21 04:01:33,217 - mmdet - INFO - Epoch [1][{n}/678]\tlr: 0.00020, eta: 1 day, 16:44:26, time: 1.413, data_time: 0.116, memory: 9581,"
              " loss_rpn_cls: 0.6978, s0.loss_cls: 0.4852, s0.acc: 92.1875, s2.loss_bbox: 0.0000, s2.loss_mask: 0.1381, loss: 3.0130", 19, 32),
         (31, FINE), WRONG),
    Case("one-iteration-that-is-nan", GITHUB + "open-mmlab/mmdetection/issues/5911",
         "".join(MMDET.replace("{n}", str(n)).replace("BOX", "nan" if n == 150 else "0.2141").replace("LOSS", "nan" if n == 150 else "1.6522") + "\n"
                 for n in range(50, 700, 50)), (650, FINE), WRONG),
    Case("global-steps-beside-steps", GITHUB + "hpcaitech/FastFold/pull/138",
         rows("[01/15/23 18:11:55] INFO     colossalai - colossalai - INFO: train.py:230 main\n                    INFO     colossalai - colossalai - INFO:"
              " Training, Epoch: 2, Step: 7{n}, Global_Step: 2{n}, Loss: distogram=4.159 fape=1.682\n                             lddt=3.912"
              " violation=404.925 unscaled_loss=10.176 loss=162.822 lddt_ca=0.010", 10, 30), (229, FINE), WRONG),
    Case("iterations-that-become-nan", GITHUB + "open-mmlab/mmdetection/issues/2739",
         rows(MMDET.replace("BOX", "nan").replace("LOSS", "nan"), 400, 1000, 50), (950, NAN), WRONG),
    Case("one-gradient-that-is-nan", GITHUB + "zai-org/GLM-4/issues/174",
         "".join(f"{{'loss': 0.0618, 'grad_norm': {'nan' if n == 38 else '0.589'}, 'learning_rate': 0.000265, 'epoch': 5.{n}}}                     \n"
                 for n in range(20, 40, 2)), (5.38, FINE), WRONG),
    Case("everything-becomes-nan", GITHUB + "TensorSpeech/TensorFlowTTS/issues/125",
         rows("2020-07-10 09:12:11,123 (base_trainer:140) INFO: (Step: {n}) train_stop_token_loss = nan.\n2020-07-10 09:12:11,124 (base_trainer:140) INFO:"
              " (Step: {n}) train_mel_loss_before = nan.", 53200, 55600, 200), (55400, NAN), WRONG),
)  # fmt: skip
DRAWN_4 = (
    Case("gradients-are-nan-and-the-loss-is-zero", GITHUB + "hiyouga/LlamaFactory/issues/5660",
         "".join(f"{{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 9.99e-05, 'epoch': 0.{n:02d}}}\n" for n in range(1, 30)), (0.29, NAN), WRONG),
    Case("keras-in-one-line", GITHUB + "tensorflow/tensorflow/issues/59461",
         "Epoch 3/10\n" + "".join(f"{n}/7472 [====>.........................] - ETA: 10s - loss: 0.3121 - accuracy: 0.91\r" for n in range(7390, 7403)),
         (7402, FINE), WRONG),
    Case("batches-behind-an-epoch", GITHUB + "LTH14/mar/issues/69",
         rows("[11:41:33.534863] Epoch: [8]  [ {n}/2293]  eta: 1:52:52  lr: 0.000004  loss: 0.2606 (0.2654)  time: 3.0808  data: 0.0002  max mem: 32637",
              200, 480, 20), (460, FINE), WRONG),
    Case("mlx-s-iterations", GITHUB + "ml-explore/mlx-examples/pull/1233",
         rows("Iter {n}: Train loss 0.000, Total rewards mean 0.003, Learning Rate 1.000e-05, It/sec 0.095, Tokens/sec 38.031, Peak mem 12.1 GB", 1, 14),
         (13, FINE), WRONG),
    Case("a-loss-that-begins-at-zero", GITHUB + "huggingface/open-r1/issues/239", rows(GRPO.replace("LOSS", "0.0"), 10, 30), (0.29, FINE), WRONG),
    Case("neox-with-samples-first", GITHUB + "EleutherAI/gpt-neox/issues/947",
         rows(" samples/sec: 1.702 | iteration        {n}/   55000 | elapsed time per iteration (ms): 18806.7 | learning rate: 1.212E-09 | approx flops per"
              " GPU: 5.7TFLOPS | lm_loss: 2.275809E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n[2023-05-22 21:15:09,288]"
              " [INFO] [logging.py:96:log_dist] [Rank 0] step={m}, skipped=0, lr=[2.4e-09], mom=[[0.9, 0.95]]\ntime (ms) | forward: 6617.48 | backward:"
              " 10201.60", 1, 14), (13, FINE), WRONG),
    Case("rewards-that-fall", GITHUB + "huggingface/open-r1/issues/255", rows(GRPO.replace("LOSS", "0.0045"), 10, 30), (0.29, FINE), WRONG),
    Case("a-scale-that-is-halved", GITHUB + "NVIDIA/DeepLearningExamples/issues/543",
         "".join(f"DLL 2020-05-28 08:5{n}:10.235230 - PARAMETER loss_scale : {2.0 ** (19 - n)} \n" for n in range(8)), (None, FINE), WRONG),
    Case("a-step-in-thousands", GITHUB + "CorentinJ/Real-Time-Voice-Cloning/issues/797",
         "".join(f"\r{{| Epoch: 1 ({n}/1180) | Loss: nan | 2.3 steps/s | Step: 0k | }}\r" for n in range(960, 990)), (989, NAN), WRONG),
    Case("a-bar-that-knows-the-step-too", GITHUB + "NVIDIA/NeMo-Framework-Launcher/issues/55",
         "".join(f"\rEpoch 0:   1%|          | {n}/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.1, v_num=, reduced_train_loss=3.090, global_step={n - 1}.0,"
                 " consumed_samples=1.63e+6]\r" for n in range(780, 796)), (795, FINE), WRONG),
    Case("nanogpt-is-nan", GITHUB + "karpathy/nanoGPT/issues/136", rows("iter {n}: loss nan, time 123.45ms, mfu 12.30%", 2000, 2120, 10), (2110, NAN), WRONG),
    Case("fcos-s-iterations", GITHUB + "tianzhi0549/FCOS/issues/6",
         rows("2019-04-20 17:25:55,002 maskrcnn_benchmark.trainer INFO: eta: 8:00:58  iter: {n}  loss: 5.9007 (5.6273)  loss_cls: 0.0000 (0.6047)  loss_reg:"
              " 4.3461 (4.3368)  time: 0.2908 (0.2888)  lr: 0.003333  max mem: 2082", 60, 320, 20), (300, FINE), WRONG),
    Case("it-stops-itself-for-nan", GITHUB + "facebookresearch/detectron2/issues/214",
         rows("[11/01 19:16:15 d2.utils.events]: eta: 4:52:26  iter: {n}  total_loss: 1.750  loss_cls: 1.248  loss_box_reg: 0.503  time: 0.1960  data_time:"
              " 0.0033  lr: 0.000200  max_mem: 2996M", 19, 280, 20), (279, FINE), WRONG),
    Case("epochs-with-a-part", GITHUB + "jcjohnson/torch-rnn/pull/73", rows("Epoch 1.00 / 50, i = {n} / 17800, loss = 3.075188", 1, 14), (13, FINE), WRONG),
    Case("a-bar-of-minutes", GITHUB + "pytorch/xla/pull/7204",
         "".join(f"\r {11 * n}%|██▏       | {n}/9 [04:35<18:49, 161.33s/it]\r" for n in range(1, 6)), (5, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4)
def test_the_number_and_the_loss_of_a_log_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
