"""Progress and NaN in logs of a fourth list of threads; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

# Seed 4206, two batches of the 62 sources of progress_later.txt.
DRAWN_8 = (
    Case("steps-of-each-episode", GITHUB + "vwxyzjn/cleanrl/issues/11",
         "".join(f"global_step={3400 + 17 * n + n % 3}, episode_reward={15 + n * 7 % 11}.527101137763129\n" for n in range(12)), (3589, FINE), WRONG),
    Case("two-iterations-an-epoch-of-ignite", GITHUB + "Project-MONAI/MONAILabel/pull/1333",
         rows("[2023-04-08 05:22:18.133][ INFO](ignite.engine.engine.SupervisedTrainer) - Epoch: {n}/50, Iter: 1/2 -- train_loss: 1.1866 \n[2023-04-08"
              " 05:22:18.370][ INFO](ignite.engine.engine.SupervisedTrainer) - Epoch: {n}/50, Iter: 2/2 -- train_loss: 1.2475 \n[2023-04-08 05:22:18.374][ INFO]"
              "(ignite.engine.engine.SupervisedEvaluator) - Engine run resuming from iteration 0, epoch 33 until 34 epochs\n[2023-04-08 05:22:18.374][ INFO]"
              "(ignite.engine.engine.SupervisedTrainer) - Epoch[{n}] Metrics -- train_left lung_mean_dice: 0.0167 train_mean_dice: 0.2695 ", 33, 45), (44, FINE), WRONG),
    Case("a-step-told-twice-by-mindyolo", GITHUB + "mindspore-lab/mindyolo/issues/370",
         rows("2024-10-18 10:01:24,917 [INFO] Epoch 1/500, Step {n}/1516, imgsize (640, 640), loss: 10.0633, lbox: 4.7554, lcls: 3.2820, dfl: 2.0259, cur_lr:"
              " 0.09455804526805878\n2024-10-18 10:01:24,919 [INFO] Epoch 1/500, Step {n}/1516, step time: 97.44 ms", 240, 360, 10), (350, FINE), WRONG),
    Case("a-depth-loss-behind-two-bars", GITHUB + "vinvino02/GLPDepth/issues/13",
         "".join(f"Epoch: {n:03d} - 025\n [============================ 6057/6057 404ms | Tot: 40m47s | Rem: 9h31m | Depth Loss: {'nan (nan)' if n > 10 else '0.1365 (0.0447)'}\n"
                 f" [=========== 654/654 =========>]  Step: 052ms | Tot: 35s649ms | Rem: 08m34s\n\n{'=' * 100}\n        d1         d2         d3    abs_rel     sq_rel       rmse\n"
                 f"    0.6693     0.9548     0.9930     0.2220     0.1427     0.5392\n{'=' * 100}\n\n" for n in range(8, 20)), (19, NAN), WRONG),
    Case("a-bar-with-debug-lines-behind-it", GITHUB + "huggingface/finetrainers/issues/135",
         "".join(f"\rTraining steps:  10%|██████▌    | {n}/20 [04:11<36:54, 123.04s/it, loss=nan, lr=4e-7]12/24/2024 16:51:49 - DEBUG - accelerate.tracking -"
                 f" Successfully logged to WandB\n12/24/2024 16:51:49 - DEBUG - finetrainers - Starting step {n + 1}\n" for n in range(1, 13)), (12, NAN), WRONG),
    Case("an-epoch-and-a-step-in-brackets", GITHUB + "mindspore-lab/mindocr/issues/77",
         rows("2023-02-17 11:43:14,405:INFO:epoch: [1/10] step: [{n}/85], lr: 0.001000, loss: 1.487435, per step time: 3096.616 ms, fps: 16.54 img/s", 20, 80, 5),
         (75, FINE), WRONG),
    Case("losses-of-spacy-that-count-nothing", GITHUB + "explosion/spaCy/issues/3087",
         "LOSS      P       R       F\n" + "".join(f"{184 - n}.500 0.505   1.000   0.671\n" for n in range(20)), (None, FINE), WRONG),
    Case("trees-that-are-pruned-between-rounds", GITHUB + "dmlc/xgboost/issues/1439",
         rows("[15:28:18] src/tree/updater_prune.cc:74: tree pruning end, 1 roots, 36 extra nodes, 0 pruned nodes, max_depth=7\n[{n}]     validset-0-auc:0.555615", 0, 12),
         (11, FINE), WRONG),
    Case("a-pipe-that-is-nan-from-the-first", GITHUB + "tdrussell/diffusion-pipe/issues/254",
         rows("[2025-05-06 07:37:52,491] [INFO] [logging.py:107:log_dist] [Rank 0] step={n}, skipped=0, lr=[3.9800000000000004e-07], mom=[0.0]\n"
              "steps: {n} loss: nan iter time (s): 8.695 samples/sec: 0.115", 1, 13), (12, NAN), WRONG),
    Case("iterations-of-kaldi-s-chain", GITHUB + "kaldi-asr/kaldi/pull/3868",
         rows("2020-01-28 19:15:25,749 [steps/nnet3/chain/train.py:529 - train - INFO ] Iter: {n}/78   Jobs: 3   Epoch: 0.03/6.0 (0.5% complete)   lr: 0.000741",
              20, 32), (31, FINE), WRONG),
    Case("epochs-that-have-ended-and-thousands-of-steps", GITHUB + "CorentinJ/Real-Time-Voice-Cloning/issues/126",
         "".join(f"{{| Epoch: {n} (1158/1158) | Loss: 3.6903 | 1.4 steps/s | Step: {n * 1158 // 1000}k | }}\n" for n in range(65, 78)), (77, FINE), WRONG),
    Case("two-curves-of-each-round", GITHUB + "dmlc/xgboost/issues/1226", rows("[{n}] train-auc:0.719168  eval-auc:0.710064", 0, 12), (11, FINE), WRONG),
    Case("eight-devices-tell-each-step", GITHUB + "pytorch/xla/pull/4112",
         "".join(f"| Training Device=xla:0/{d} Epoch=1 Step={n} Loss=0.01571 Rate=798.11 GlobalRate=981.24 Time=21:35:09\n" for n in range(20, 260, 20) for d in (6, 7, 1, 0, 3)),
         (240, FINE), WRONG),
    Case("a-table-of-turi", GITHUB + "apple/turicreate/issues/2771",
         "+--------------+--------------+--------------+\n| Iteration    | Loss         | Elapsed Time |\n+--------------+--------------+--------------+\n"
         + "".join(f"| {n:<12} | 5.40372      | {n}.22s        |\n" for n in range(1, 14)), (13, FINE), WRONG),
    Case("iterations-with-commas-of-basicsr", GITHUB + "XPixelGroup/BasicSR/issues/269",
         "".join(f"2020-08-15 15:51:08,890 INFO: [My_ES..][epoch:208, iter:  20,{n}, lr:(1.000e-04,)] [eta: 1 day, 18:12:08, time (data): 0.375 (0.002)] l_g_pix: 3.8449e-04"
                 " l_g_percep: 6.5796e-01 l_g_gan: 1.6233e-02 l_d_real: 5.6346e-02 \n" for n in range(100, 1000, 100)), (20900, FINE), WRONG),
)  # fmt: skip
DRAWN_9 = (
    Case("a-loss-within-its-data", GITHUB + "caikit/caikit-nlp/pull/208",
         rows('{"name": "loss", "data": {"epoch": 0.01, "step": {n}, "value": 3.9274, "timestamp": "2023-09-26T19:25:18.737364"}}', 1, 13), (12, FINE), WRONG),
    Case("regions-without-an-object", GITHUB + "vicwer/rebar_detect/issues/2",
         "".join(f"Region {r} Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0.4{n}, .5R: -nan, .75R: -nan,  count: 0\n" for n in range(12) for r in (82, 94, 106)),
         (None, FINE), WRONG),
    Case("averages-of-each-epoch", GITHUB + "giannisnik/cnn-graph-classification/issues/3",
         rows("Epoch: [{n}] Avg accuracy 0.762; Average Loss 0.451; Avg Time x Batch 0.007\n * Average accuracy 0.700; Average Loss 0.727", 88, 100), (99, FINE), WRONG),
    Case("samples-before-an-iteration", GITHUB + "longyunf/radiant/issues/9",
         "".join(f"Train Epoch: 4 [{n}/141886 (35%)]     Loss: 0.326567\ngrad_norm: 4.0071 iteration: {n // 8 + 53208}\nloss_radarClass:0.134  loss_radarOffset:0.135"
                 "  loss_radarDepthOffset:0.057  loss:0.327  \n" for n in range(49920, 50400, 40)), (50360, FINE), WRONG),
    Case("batches-that-are-skipped-for-their-loss", GITHUB + "Paper99/SRFBN_CVPR19/issues/2",
         "".join(f"Epoch: [9/1000]:  91%|████████▌  | {n}/493 [01:04<00:06,  7.13it/s, Batch Loss: 101.4834][Warning] Skip this batch! (Loss: 108.13626098632812)\n"
                 for n in range(447, 459)), (458, FINE), WRONG),
    Case("many-short-names-behind-an-epoch", GITHUB + "HRLTY/TP-GAN/issues/3",
         rows(".......... Epo[ 0][  {n}/ 771][t33.60] d_l:0.0000 fstol:12138 cg32:0 cg64:0 cg128:0 el:761 er:1181 no:936 mo:1168 g_l:13926 gL1:8829(sym:229)"
              " gL2:2095(sym:4770) gL3:545(sym:1256) gadv:0.0000 dv_l:0.00 iden:11.9658, tv:14429 \n", 12, 132, 10), (122, FINE), WRONG),
    Case("a-table-with-tabs-of-chainerrl", GITHUB + "chainer/chainerrl/pull/126",
         "steps\tepisodes\telapsed\tmean\tmedian\tstdev\tmax\tmin\taverage_v\taverage_loss_policy\taverage_loss_value_func\taverage_loss_entropy\n"
         + "".join(f"{n}\t{n // 200}\t{n / 250}\t-1576.9\t-1729.3\t409.3\t-775.6\t-1888.4\t-2.8\t0.7159\t0.4091\t-1.3003\n" for n in range(10000, 130000, 10000)),
         (120000, FINE), WRONG),
    Case("times-that-nobody-named", GITHUB + "GOMC-WSU/py-MCMD/issues/41",
         "".join(f"{'*' * 49}\n\nTIME_STATS_DATA:        {n}               9.541171                0.881118                0.01111         10.433399\n\n{'*' * 49}\n"
                 for n in range(3, 15)), (None, FINE), WRONG),
    Case("every-five-hundredth-round", GITHUB + "dmlc/xgboost/issues/2777", rows("[{n}]\teval-logloss:0.41906\ttrain-logloss:0.160439", 500, 6500, 500),
         (6000, FINE), WRONG),
    Case("steps-of-paddlehub", GITHUB + "PaddlePaddle/PaddleFormers/issues/823",
         rows("[2020-08-16 12:50:06,106] [   TRAIN] - step {n} / 231: loss=0.82945 f1=0.37425 [step/sec: 4.88]", 20, 140, 10), (130, FINE), WRONG),
    Case("epochs-that-are-trained-and-evaluated", GITHUB + "OliverHxh/SkeletonGCL/issues/4",
         rows("[ Sun Oct 29 17:00:09 2023 ] Training epoch: {n}\n[ Sun Oct 29 17:00:28 2023 ] \tMean training loss: 0.7648. Mean graph loss: 0.0000.  Mean training acc:"
              " 72.82%.\n[ Sun Oct 29 17:00:28 2023 ] \tTime consumption: [Data]15%, [Network]85%\n[ Sun Oct 29 17:00:28 2023 ] Eval epoch: {n}\n[ Sun Oct 29 17:00:34"
              " 2023 ] \tMean test loss of 8 batches: 0.5971676260232925.\n[ Sun Oct 29 17:00:34 2023 ] \tTop1: 77.16%", 14, 26), (25, FINE), WRONG),
    Case("a-nan-loss-now-and-then", GITHUB + "SeanNaren/deepspeech.pytorch/issues/485",
         "".join(("WARNING: received a nan loss, setting loss value to 0\n" if n % 4 == 0 else "")
                 + f"Epoch: [21][{n}/1930]  Time 0.690 (0.986)      Data 0.004 (0.009)      Loss 2.5681 (10.9521)      \n" for n in range(1388, 1401)), (1400, FINE), WRONG),
    Case("many-losses-of-keras-in-one-line", GITHUB + "IBM/graph2tac/pull/104",
         "".join(f"\r     {n}/Unknown - 13s 23ms/step - loss: 923.4225 - definition_embedding_loss: 1.8437 - global_arguments_logits_loss: 0.0000e+00 -"
                 " local_arguments_logits_loss: 0.9309 - tactic_logits_loss: 0.6602 - global_arguments_logits_accuracy: 0.0000e" for n in range(39, 75, 3)) + "\r", (72, FINE), WRONG),
    Case("steps-of-gazes-that-are-nan", GITHUB + "ishtos/mpII-face-gaze/issues/3",
         rows("[2019/06/24 16:19:53 __main__ INFO] - Epoch 1 Step {n}/1500 Loss nan (nan) AngleError nan (nan)", 100, 1000, 100), (900, NAN), WRONG),
    Case("json-of-epochs-of-fairseq", GITHUB + "facebookresearch/fairseq/issues/233",
         "".join(f'{{"epoch": {n}, "loss": "3.097", "nll_loss": "1.328", "ppl": "2.51", "wps": 1667443, "ups": "2.7", "wpb": 617156, "bsz": 16626, "num_updates": {n * 2150 - 1},'
                 ' "lr": 0.00019096019143386865, "gnorm": "0.194", "clip": "100%", "oom": 0.02612141621239465, "loss_scale": "4.000", "wall": 20721}\n'
                 f'{{"epoch": {n}, "valid_loss": 3.1106161256777836, "valid_nll_loss": 1.319883019809227, "valid_ppl": "2.49"}}\n' for n in range(18, 30)), (62349, FINE), WRONG),
)  # fmt: skip


# Seed 4207, from the 32 that were left.
DRAWN_10 = (
    Case("a-discriminator-that-is-nan", GITHUB + "zhysora/PSGan-Family/issues/10",
         rows("progress  epoch 50  step {n}  image/sec 35.7  remaining 0m\ndiscrim_loss nan\ngen_loss_GAN 1.16629475e-36\ngen_loss_L1 380.16928", 2, 2402, 200), (2202, NAN), WRONG),
    Case("an-iteration-of-rllib-and-its-counts", GITHUB + "ray-project/ray/issues/34918",
         "".join(f"Training finished iter {n} at 2023-03-29 09:08:13 (running for 00:03:11.52)\nagent_timesteps_total: {n * 29900}\nconnector_metrics: {{}}\ncounters:\n"
                 f"  num_agent_steps_sampled: {n * 29900}\n  num_agent_steps_trained: {n * 29900 - 500}\nepisode_len_mean: 1721.88\nepisodes_this_iter: 67\n"
                 "info:\n  learner:\n    default_policy:\n      learner_stats:\n        cur_lr: 0.0005\n        entropy: 1.0906739234924316\n\n" for n in range(13, 25)),
         (24, FINE), WRONG),
    Case("iterations-of-baidu-s-speech", GITHUB + "baidu-research/ba-dls-deepspeech/issues/28",
         "".join("".join(f"2017-08-14 17:51:46,978 INFO    (__main__) Epoch: {e}, Iteration: {n}, Loss: 81.86383819580078\n" for n in range(0, 60, 10))
                 + "2017-08-14 18:08:03,423 INFO    (data_generator) Iters: 6\n2017-08-14 18:08:27,113 INFO    (utils) Checkpointing model to: ./model/\n2017-08-14 18:08:27,578"
                 " INFO    (data_generator) Iters: 54\n" for e in range(5, 9)), (50, FINE), WRONG),
    Case("completed-steps-of-maxtext", GITHUB + "AI-Hypercomputer/maxtext/pull/2232",
         rows("completed step: {n}, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 196608, loss: 10.374", 9, 21), (20, FINE), WRONG),
    Case("batches-between-an-epoch-and-a-loss", GITHUB + "Project-MONAI/research-contributions/issues/306",
         "".join("".join(f"Epoch {e}/300 {n}/1000 loss: 0.2830 time 1.49s\n" for n in range(0, 1000, 200))
                 + f"Final training  {e}/299 loss: 0.2942 time 1477.11s\n0 Tue Sep 19 21:26:20 2023 Epoch: {e + 1}\n" for e in range(31, 37)), (800, FINE), WRONG),
    Case("minibatches-from-and-to", GITHUB + "kaldi-asr/kaldi/issues/134",
         "".join(f"LOG (nnet3-train:PrintStatsForThisPhase():nnet-training.cc:121) Average objective function for 'output' for minibatches {n}-{n + 9} is -35.0044 over"
                 " 19538 frames.\n" for n in range(40, 160, 10)), (159, FINE), WRONG),
    Case("columns-that-are-explained-above", GITHUB + "i-pi/i-pi-archive/issues/15",
         "# column   1     --> step : The current simulation time step.\n# column   2     --> time{picosecond} : The elapsed simulation time.\n"
         "# column   3     --> conserved : The value of the conserved energy quantity per bead.\n# column   4     --> temperature{kelvin} : The current temperature.\n"
         + "".join(f"    {n / 10 ** (n > 9):.8f}e+{'01' if n > 9 else '00'}     1.00000000e-03    -5.67801581e+01     2.49544268e+02\n" for n in range(12)), (11, FINE), WRONG),
    Case("every-tenth-epoch-with-its-time", GITHUB + "MouseLand/cellpose/issues/450",
         "".join(f"2022-02-18 09:17:43,068 [INFO] Epoch {n}, Time {n * 1204.4:.1f}s, Loss 0.4592, LR 0.2000\n" for n in range(20, 140, 10)), (130, FINE), WRONG),
    Case("an-epoch-with-an-approximate-score", GITHUB + "pyg-team/pytorch_geometric/pull/9386",
         "".join(f"Epoch {n:02d}, Loss: 1.4{n:03d}, Approx. Train: 0.5612 Time: 41.0{n:03d}s\n" for n in range(1, 13)), (12, FINE), WRONG),
    Case("an-epoch-and-a-loss-below-it", GITHUB + "apoorvnandan/speech-recognition-primer/issues/2",
         "".join(f"called epoch end, epoch num:  {n - 1}\nEpoch    :  {n}\nLOSS     :  {'nan' if n > 8 else '20.572273'}\n\n" for n in range(1, 13)), (12, NAN), WRONG),
    Case("darknet-with-regions-of-nan", GITHUB + "AlexeyAB/darknet/issues/849",
         rows("Region 16 Avg IOU: -nan, Class: -nan, Obj: -nan, No Obj: 0.000048, .5R: -nan, .75R: -nan,  count: 0\nRegion 23 Avg IOU: 0.532580, Class: 0.750525, Obj: 0.001756,"
              " No Obj: 0.000057, .5R: 1.000000, .75R: 0.000000,  count: 1\n\n {n}: 0.000056, 0.050859 avg, 0.000650 rate, 1.185358 seconds, 57472 images\nLoaded: 0.000045 seconds",
              890, 902), (901, FINE), WRONG),
    Case("a-table-of-spacy-with-tabs", GITHUB + "explosion/spaCy/issues/2185",
         "Itn.\tP.Loss\tN.Loss\tUAS\tNER P.\tNER R.\tNER F.\tTag %\tToken %\n" + rows("{n}\t0.000\t4.310\t0.000\t5.882\t40.000\t10.256\t100.000\t100.000", 0, 12), (11, FINE), WRONG),
    Case("a-bar-of-wav2vec", GITHUB + "facebookresearch/fairseq/issues/1955",
         "".join(f"\r| epoch 004:  92%|█████████▏| {n}/88743 [10:51:46<53:53,  2.09it/s, loss=5.72711e-14, wps=8.90638e+19, ups=2.11, bsz=5.26836e+06, num_updates={n + 266011},"
                 " lr=0.00020708, gnorm=0, clip=0, loss_scale=4, train_wall=47, wall=166952]" for n in range(81989, 82001)) + "\r", (82000, FINE), WRONG),
    Case("a-loss-of-training-that-diverges", GITHUB + "awslabs/keys_values/issues/44",
         "".join(f"Epoch 0 | iter {n:2d} step {n:2d} | loss train: {'nan' if n > 20 else '1.727'}, val: n/a | iter time: 7.555 s (step)\n" for n in range(1, 29)), (28, NAN), WRONG),
    Case("passes-and-iterations-of-kaldi", GITHUB + "kaldi-asr/kaldi/pull/1880",
         rows("2017-09-08 03:18:41,217 [steps/libs/nnet3/train/chain_objf/acoustic_model.py:243 - train_one_iteration - INFO ] Training neural net (pass {n})\n2017-09-08 03:18:41,237"
              " [steps/libs/nnet3/train/chain_objf/acoustic_model.py:301 - train_one_iteration - INFO ] On iteration {n}, learning rate is 0.0017154569002.", 219, 231), (230, FINE), WRONG),
)  # fmt: skip
DRAWN_11 = (
    Case("two-losses-that-become-nan", GITHUB + "golbin/TensorFlow-Tutorials/issues/42",
         "".join(f"Epoch: 0{n} D loss: {'nan' if n > 563 else '-0.3683'} G loss: {'nan' if n > 563 else '-2.914'}\n" for n in range(556, 572)), (571, NAN), WRONG),
    Case("frames-saved-at-steps-of-tinker", GITHUB + "TinkerTools/tinker-gpu/issues/238",
         "".join(f" Instantaneous Values for Frame Saved at     {n * 5000} Dynamics Steps\n\n Current Time               {n * 10}.00000000 Picosecond\n Current Potential      -173120.84820761"
                 f" Kcal/mole\n Lattice Lengths           92.91500092     88.48100281    100.64199829\n Frame Number                     {n}\n Coordinate File             a.arc\n\n"
                 for n in range(10, 22)),
         # Written down was 105000, the steps at which they were saved, and counts as wrong: saved things are no training, the frames tell as soon.
         (21, FINE), WRONG),
    Case("an-iteration-told-before-and-after", GITHUB + "scikit-learn/scikit-learn/pull/12807",
         rows("[LightGBM] [Info] Iteration:{n}, valid_1 auc : 0.777173\n[LightGBM] [Info] 7.309321 seconds elapsed, finished iteration {n}", 1, 13), (12, FINE), WRONG),
    Case("four-processes-write-into-one-line", GITHUB + "facebookresearch/fairseq/issues/503",
         "".join(f"| epoch 001:   0%| | {n}/10127 [00:02<3:21:57,  1.20s/it, loss=13.988, nll_loss=13.986, ppl=16222.38, wps=34, ups=0.1, wpb=68, bsz=5, num_updates={n}, lr=3.4995e-07,"
                 " gnorm=10.996, clip=0%, oom=0, wall=33, trai" for n in range(2, 14) for _ in range(4)) + "\n", (13, FINE), WRONG),
    Case("nanochat-with-its-total", GITHUB + "karpathy/nanochat/pull/242",
         rows("step 00{n}/05000 (2.20%) | loss: 3.121231 | grad_norm: 0.51233 | lrm: 1.00 | dt: 812.12ms | tok/sec: 641,234 | mfu: 45.10 | total time: 1.20m"), (111, FINE), WRONG),
    Case("prime-s-steps", GITHUB + "PrimeIntellect-ai/prime-rl/pull/20",
         rows("03:22:14 [INFO] [TRAIN] [Rank 0] step: {n}, loss: 0.4310, tokens_per_second: 76477.73, mfu: 337.59", 289, 301), (300, FINE), WRONG),
    Case("a-tagger-that-counts-nothing", GITHUB + "jeusgao/spaCy-new-language-test-Chinese/issues/1", "{'tagger': 0.0}\n" * 24, (None, FINE), WRONG),
    Case("a-table-of-spacy-with-spaces-in-its-names", GITHUB + "explosion/spaCy/issues/3166",
         "Itn.  Dep Loss  NER Loss  UAS     NER P.  NER R.  NER F.  Tag %   Token %  CPU WPS  GPU WPS\n"
         + "".join(f"{n:<5} 0.000     0.000     0.000   5.882   40.000  10.256  100.000 100.000  349.7    0.0\n" for n in range(12)), (11, FINE), WRONG),
    Case("losses-in-a-dict-alone", GITHUB + "explosion/spaCy/issues/2048", "".join(f"{{u'ner': {117 / n}}}\n" for n in range(1, 24)), (None, FINE), WRONG),
    Case("caffe-behind-digits", GITHUB + "NVIDIA/DIGITS/issues/1108",
         rows("I0413 06:41:54.831908 22206 solver.cpp:242] Iteration {n} (0.267815 iter/s, 149.357s/40 iter), loss = -6.43825e-20\nI0413 06:41:54.831998 22206 solver.cpp:261]     Train net"
              " output #0: loss_bbox = 0 (* 2 = 0 loss)\nI0413 06:41:54.832020 22206 sgd_solver.cpp:106] Iteration {n}, lr = 0.001", 520, 1000, 40), (960, FINE), WRONG),
    Case("an-epoch-that-ends-with-a-full-stop", GITHUB + "LingxiaoShawn/PairNorm/issues/1",
         rows("Epoch {n}: train loss 2.023 train acc: 0.157, val loss: 1.963 val acc 0.156.", 0, 13), (12, FINE), WRONG),
    Case("four-ranks-of-scepter", GITHUB + "modelscope/scepter/issues/48",
         "".join("scepter [INFO] 2024-10-06 20:19:51,817 [File: log.py Function: _print_iter_log at line 71]  Stage [train] iter: "
                 f"[{n}/500], data_time: 1.0{r}02(1.0402), time: 1.4696(1.4696), loss: 0.0978(0.0978), nvidia-smi: 9885.4000(9885.4000), pg0_lr: 0.000100, scale: 65536.000000,"
                 f" [35secs 2.00%(29mins 1{r}secs)]\n" for n in range(10, 130, 10) for r in range(4)), (120, FINE), WRONG),
    Case("iterations-between-saved-models", GITHUB + "deepfakes/faceswap/issues/775",
         rows("06/26/2019 07:32:18 INFO     saved models\n06/26/2019 07:32:18 INFO     iterations: {n} \n06/26/2019 07:32:18 INFO     loss: {'a': 0.007832647301256657, 'b':"
              " 0.02996937371790409}", 29107, 30307, 100), (30207, FINE), WRONG),
    Case("fairseq-with-a-validation", GITHUB + "facebookresearch/fairseq/issues/940",
         "".join(f"| epoch 001:    {n} / 1891 loss=11.521, nll_loss=10.881, ppl=1886.05, wps=52922, ups=0.5, wpb=104928, bsz=5325, num_updates={n - 5}, lr=8.90889e-05, gnorm=1.543, clip=0%,"
                 " oom=0, loss_scale=2.000, wall=882, train_wall=756\n" + ("| epoch 001 | valid on 'valid' subset | valid_loss 8.11425 | valid_nll_loss 6.8834 | valid_ppl 118.06 |"
                 " num_updates 600\n" if n == 600 else "") for n in range(450, 1050, 50)),
         # Written down was 1000, the batch of the epoch. The updates beside it tell as soon: arguable.
         (995, FINE), WRONG),
    Case("kohya-s-average-is-nan", GITHUB + "kohya-ss/sd-scripts/issues/1464",
         "  num epochs / epoch数: 16\n  total optimization steps / 学習ステップ数: 1600\nepoch 1/16\n                    INFO     epoch is incremented. current_epoch: 0, epoch: 1                          train_util.py:668\n"
         + "".join(f"\rsteps:   1%|▏         | {n}/1600 [00:20<1:40:07,  3.94s/it, avr_loss=nan]" for n in range(1, 14)) + "\r", (13, NAN), WRONG),
)  # fmt: skip


@each(*DRAWN_8, *DRAWN_9, *DRAWN_10, *DRAWN_11)
def test_the_number_and_the_loss_of_a_log_of_the_fourth_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
