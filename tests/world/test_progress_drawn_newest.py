"""Progress and NaN in logs of a fifth list of threads; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

# Seed 4208, two batches of the 69 sources of progress_again.txt.
DRAWN_12 = (
    Case("iterations-of-mmseg", GITHUB + "open-mmlab/mmsegmentation/issues/185",
         rows("2020-10-09 11:11:48,158 - mmseg - INFO - Iter [{n}/80000]        lr: 9.995e-03, eta: 14:02:00, time: 0.632, data_time: 0.005, memory: 20292, decode.loss_seg: 0.0674,"
              " decode.acc_seg: 89.3073, aux.loss_seg: 0.0679, aux.acc_seg: 87.8143, loss: 0.1354", 50, 650, 50), (600, FINE), WRONG),
    Case("iterations-of-paddleseg", GITHUB + "PaddlePaddle/PaddleSeg/pull/928",
         rows("2021-03-30 06:55:57 [INFO]\t[TRAIN] epoch: 1, iter: {n}/500, loss: 2.0859, lr: 0.009657, batch_cost: 0.5344, reader_cost: 0.07273, ips: 3.7425 samples/sec | ETA 00:04:16",
              20, 260, 20), (240, FINE), WRONG),
    Case("status-and-records-of-blocks", GITHUB + "mila-iqia/blocks-examples/issues/110",
         rows("-" * 79 + "\nTraining status:\n         batch_interrupt_received: False\n         epoch_interrupt_received: False\n         epoch_started: True\n         epochs_done: 0\n"
              "         iterations_done: {n}\n         received_first_batch: True\n         resumed_from: None\n         training_started: True\nLog records from the iteration {n}:\n"
              "         decoder_cost_cost: 134.178924561\n\n", 558, 570), (569, FINE), WRONG),
    Case("four-losses-behind-one-name", GITHUB + "jiwoon-ahn/irn/issues/13",
         rows("step: {n}/ 3305 loss:0.3651 0.3224 2.8433 0.2046 imps:26.6 lr: 0.0343 etc:Tue Sep 17 15:31:41 2019", 2000, 2700, 100) + "Epoch 5/5\n"
         + rows("step: {n}/ 3305 loss:0.3569 0.3068 2.8103 0.1992 imps:18.2 lr: 0.0217 etc:Tue Sep 17 15:31:45 2019", 2700, 3300, 100), (3200, FINE), WRONG),
    Case("epochs-of-vamb", GITHUB + "RasmussenLab/vamb/issues/12",
         rows("        Epoch: {n}        Loss: 0.807687  CE: 4.2947513   SSE: 67.509104  KLD: 54.6405    Batchsize: 64", 1, 13), (12, FINE), WRONG),
    Case("clients-of-each-round-are-nan", GITHUB + "euphoria0-0/Active-Client-Selection-for-Communication-efficient-Federated-Learning/issues/5",
         rows(">> ROUND {n}\n> pre-client selection 10/100\nselected clients: [0, 16, 32, 42, 46, 52, 53, 66, 70, 99]\n> Client Training: [===================>] 100% (10/10) Loss nan Acc 0.1935994909\n"
              "> 10 Clients Training: Loss nan Acc 0.2345\n> Client Testing: [===================>] 100% (100/100) Loss nan Acc 0.0000\n> ALL Clients Testing: Loss nan Acc 0.0715\n", 0, 12), (11, NAN), WRONG),
    Case("tasks-below-a-batch-of-centerpoint", GITHUB + "tianweiy/CenterPoint/issues/396",
         rows("2023-07-09 21:27:20,877 - INFO - Epoch [1/20][{n}/15448]\tlr: 0.00010, eta: 23 days, 13:14:31, time: 2.616, data_time: 1.968, transfer_time: 0.020, forward_time: 0.243,"
              " loss_parse_time: 0.000 memory: 7766, \n2023-07-09 21:27:20,878 - INFO - task : ['car'], loss: 13.5274, hm_loss: 5.7041, loc_loss: 31.2934, loc_loss_elem: ['3.8299',"
              " '3.2160', '7.3882'], num_positive: 42.0000\n2023-07-09 21:27:20,878 - INFO - task : ['truck', 'construction_vehicle'], loss: 14.0053, hm_loss: 9.6582, loc_loss: 17.3887,"
              " loc_loss_elem: ['1.9723', '2.1698', '2.6261'], num_positive: 36.6000\n", 5, 65, 5), (60, FINE), WRONG),
    Case("a-bar-with-warnings-behind-it", GITHUB + "buriburisuri/speech-to-text-wavenet/issues/74",
         "I 0523:09:42:13.169:sg_train.py:327] Training started from epoch[000]-step[0].\n" + "".join(
             f"train:  {2 * n}%|██▏                         | {n}/51 [00:30<06:35,  8.41s/b]2017-05-23 09:42:58.008032: W tensorflow/core/util/ctc/ctc_loss_calculator.cc:144] No valid path found.\n"
             for n in range(4, 24)), (23, FINE), WRONG),
    Case("a-value-function-that-is-infinite", GITHUB + "isaac-sim/IsaacLab/issues/1999",
         rows("################################\n                     Learning iteration {n}/10000\n\n                       Computation: 14963 steps/s (collection: 6.407s, learning\n0.163s)\n"
              "               Value function loss: inf\n                    Surrogate loss: 0.0000\n             Mean action noise std: 0.56\n                 Mean total reward: 25.66\n"
              "               Mean episode length: 1000.00\nEpisode_Reward/track_lin_vel_xy_exp: 1.2263\n      Episode_Termination/time_out: 3.7917\n", 8380, 8392), (8391, NAN), WRONG),
    Case("throughput-of-oneflow", GITHUB + "Oneflow-Inc/oneflow/issues/10321",
         rows("Rank[0], Step {n}, Loss nan, Latency 27.498 ms, Throughput 2010891.9, 2023-08-20 16:23:23", 1000, 13000, 1000), (12000, NAN), WRONG),
    Case("iterations-between-semicolons", GITHUB + "harvardnlp/data2text/issues/9",
         "".join(rows(f"Epoch {e} ; Iter {{n}}/213 ; LR 1.0000 ; Target tokens/s 1265 ; PPL 8226.52 ;", 50, 250, 50)
                 + f"Validation perplexity: 493.00677811967\nSaving checkpoint to 'roto_jc_rec_tvd_epoch{e}_493.01.t7'...\n\n" for e in range(1, 5)), (200, FINE), WRONG),
    Case("a-perplexity-behind-an-iteration", GITHUB + "davidmcclure/lda/issues/3",
         "".join(f"iteration{n} {1097.55 - n / 3:.2f}\n" for n in range(12)), (11, FINE), WRONG),
    Case("topics-of-each-epoch", GITHUB + "nateraw/Lda2vec-Tensorflow/issues/61",
         rows("EPOCH: {n} time taken: 42.41943836212158,  LOSS 4.823064 w2v 4.823064 lda 79421.92\n---------Closest 10 words to given indexes----------\nTopic 0 : likewise, unfortunately, instance\n"
              "Topic 1 : likewise, unfortunately, instance\nTopic 2 : likewise, instance, unfortunately\nTopic 3 : likewise, unfortunately, instance", 2, 14), (13, FINE), WRONG),
    Case("caffe-of-old", GITHUB + "BVLC/caffe/issues/361",
         rows("I0425 10:12:49.611122  9167 solver.cpp:208] Iteration {n}, lr = 0.01\nI0425 10:12:49.611122  9167 solver.cpp:65] Iteration {n}, loss = 6.55607", 100, 220, 20)
         + "I0425 10:13:04.978760  9167 solver.cpp:130] Snapshotting to caffe_train_iter_200\nI0425 10:13:05.657246  9167 solver.cpp:137] Snapshotting solver state to caffe_train_iter_200.solverstate\n"
         + rows("I0425 10:13:21.205826  9167 solver.cpp:208] Iteration {n}, lr = 0.01\nI0425 10:13:21.206111  9167 solver.cpp:65] Iteration {n}, loss = nan", 220, 320, 20), (300, NAN), WRONG),
    Case("a-row-of-a-small-llama", GITHUB + "datawhalechina/tiny-universe/issues/31",
         "".join((f"step {n}: train loss nan, val loss nan\n" if n % 50 == 0 else "") + f"{n} | loss nan | lr 0.000000e+00 | 2006.12ms | mfu 1.68%\n" for n in range(99990, 100005)), (100004, NAN), WRONG),
)  # fmt: skip
DRAWN_13 = (
    # Written down was a lost loss. No word says that it is one, and others print such lines beside a finite loss (yl4579/AuxiliaryASR/issues/7): arguable.
    Case("a-tensor-alone", GITHUB + "lich99/ChatGLM-finetune-LoRA/issues/32", "tensor(3.2207, device='cuda:0')\n" + "tensor(nan, device='cuda:0')\n" * 12, (None, FINE), WRONG),
    Case("three-losses-without-the-word", GITHUB + "licongguan/ILM-ASSL/issues/2",
         rows("[2023-03-13 11:48:25,624][       train.py][line: 833][    INFO] [3:20 high] iter [{n}/49000] LR 0.00190 Sup 1.2870 Unsup 0.2341 Contra 1.7184 mIoU 88.06", 12870, 12990, 10),
         (12980, FINE), WRONG),
    Case("losses-in-quotes-become-nan", GITHUB + "PaddlePaddle/PaddleDetection/issues/1946",
         "".join(f"2020-12-22 08:05:25,238-INFO: iter: {n}, lr: 0.019992, 'loss_cls': '0.736654', 'loss_bbox': '{x}', 'loss': '{x}', eta: 10:52:43, batch_cost: 0.39655 sec, ips: 5.04344 images/sec\n"
                 for n in range(1240, 1480, 20) for x in ("nan" if n > 1360 else "1.263390",)), (1460, NAN), WRONG),
    Case("an-epoch-and-a-batch-in-brackets-alone", GITHUB + "pytorch/pytorch/issues/14401",
         "----------------------------学- => 学                   , gt: 胶片费                 \nTest loss: 11.405902, accuray: 0.457422\n" + rows("[6/25][{n}/3183] Loss: 2.762812", 100, 1300, 100), (1200, FINE), WRONG),
    Case("samples-of-an-autoencoder-of-keras", GITHUB + "davidADSP/GDL_code/issues/14",
         "Train on 48000 samples, validate on 12000 samples\n" + "".join(
             f"Epoch {e}/500\n" + "".join(f"\r{n}/48000 [=================>............] - ETA: 0s - loss: 59.9847 - vae_r_loss: 56.8435 - vae_kl_loss: 3.1413" for n in range(4000, 48000, 4000))
             + (f"\nEpoch 0000{e}: val_loss improved from inf to 53.52105, saving model to /models/VariationalAutoencoder/model_checkpoint.h5\n" if e < 3 else "\r") for e in range(1, 4)), (44000, FINE), WRONG),
    Case("passes-of-gensim", GITHUB + "piskvorky/gensim/pull/1399",
         rows("INFO:gensim.models.ldamodel:-9.032 per-word bound, 523.4 perplexity estimate based on a held-out corpus of 25 documents with 2182 words\nINFO:gensim.models.ldamodel:PROGRESS: pass {n}, at"
              " document #25/25\nINFO:gensim.models.ldamodel:topic #0 (0.200): 0.025*\"the\" + 0.022*\"to\" + 0.013*\"in\" + 0.011*\"of\"\nINFO:gensim.models.ldamodel:topic #1 (0.200):"
              " 0.054*\"the\" + 0.028*\"to\" + 0.023*\"of\"", 0, 12), (11, FINE), WRONG),
    Case("a-validation-that-is-always-nan", GITHUB + "yao8839836/text_gcn/issues/95",
         rows('Epoch: 0{n} train_loss= 0.00122 train_acc= 0.04547 val_loss= nan val_acc= 0.06101 time= 8.46537\nTensor("add_1:0", shape=(), dtype=float32)'), (111, NAN), WRONG),
    Case("kohya-with-an-epoch-between", GITHUB + "kohya-ss/sd-scripts/issues/2137",
         "".join(f"steps:   1%|▋                                                        | {41 * n}/3280 [00:50<1:06:54,  1.24s/it, avr_loss=nan]\nepoch {n + 1}/80\n\n2025-06-29 11:57:32 INFO"
                 f"     epoch is incremented. current_epoch: {n}, epoch: {n + 1}                          train_util.py:779\n" for n in range(1, 13)), (492, NAN), WRONG),
    Case("columns-of-openmm-in-quotes", GITHUB + "openmm/openmm/issues/4606",
         '#"Step","Potential Energy (kJ/mole)","Temperature (K)"\n' + rows("{n},-140994.78251597297,296.74315843703135", 100000, 1300000, 100000), (1200000, FINE), WRONG),
    Case("steps-of-mindocr-with-its-rate", GITHUB + "mindspore-lab/mindocr/issues/670",
         rows("[2024-03-04 12:02:42] mindocr.utils.callbacks INFO - epoch: [12/20] step: [{n}/4468], loss: 19.327375, lr: 0.000793, per step time: 223.489 ms, fps per card: 4.47 img/s", 700, 1900, 100),
         (1800, FINE), WRONG),
    Case("bars-that-are-full-and-a-validation-of-nan", GITHUB + "InhwanBae/DMRGCN/issues/1",
         rows("Train Epoch: {n} Loss: 0.35977894: 100% 2785/2785 [00:53<00:00, 52.28it/s]\nValid Epoch: {n} Loss: nan: 100% 660/660 [00:04<00:00, 143.71it/s]\n \nDataset: tag, Epoch: {n}\n"
              "Train_loss: 46.05170378351126, Val_los: nan\nMin_val_epoch: -1, Min_val_loss: 10000000000.0\n ", 16, 28), (27, NAN), WRONG),
    Case("four-curves-of-each-round", GITHUB + "dmlc/xgboost/issues/5993",
         "Will train until validation_1-logloss hasn't improved in 1000 rounds.\n"
         + rows("[{n}]\tvalidation_0-auc:0.5\tvalidation_0-logloss:0.960257\tvalidation_1-auc:0.5\tvalidation_1-logloss:1.00454", 1, 13), (12, FINE), WRONG),
    Case("moving-averages-that-are-nan", GITHUB + "MahmudulAlam/Automatic-Identification-and-Counting-of-Blood-Cells/issues/15",
         "".join(f"step {n} - loss        nan - moving ave loss        nan\n" + (f"Finish {n // 18} epoch(es)\n" if n % 18 == 0 else "") for n in range(1650, 1665)), (1664, NAN), WRONG),
    Case("deviations-of-one-net", GITHUB + "liuyugeng/baadd/issues/8",
         rows("2024-12-22 21:00:15 [INFO ]  \t     step 30 (lr=0.0010)           9.0820 ±  nan%            2.3093 ±  nan\n2024-12-22 21:00:15 [INFO ]  \n2024-12-22 21:00:15 [INFO ]  Begin of epoch {n} "
              " (1 same_as_train nets) test results: \n2024-12-22 21:00:15 [INFO ]  \t          STEP                   ACCURACY                   LOSS          \n2024-12-22 21:00:15 [INFO ]  \t"
              "            before steps           0.0000 ±  nan%            2.3818 ±  nan\n2024-12-22 21:00:16 [INFO ]  Epoch:    {n} [      0/  50000 ( 0%)]\tLoss: 2.3174\tData Time: 0.33s\tTrain Time:"
              " 0.68s", 10, 22), (21, FINE), WRONG),
    Case("a-rate-before-an-epoch-and-a-batch", GITHUB + "haomo-ai/MotionSeg3D/issues/6",
         rows("Lr: 9.914e-03 | Update: 5.882e-04 mean,9.479e-04 std | Epoch: [1][{n}/1047] | Time 2.677 (2.389) | Data 1.715 (1.245) | Loss 0.6088 (0.6583) | acc 0.950 (0.953) | IoU 0.567 (0.538) |"
              " [8 days, 14:48:49]", 900, 1020, 10), (1010, FINE), WRONG),
)  # fmt: skip


# Seed 4209, from the 39 that were left; batch 13 was mended before.
DRAWN_14 = (
    Case("samples-of-a-pose", GITHUB + "NVlabs/Deep_Object_Pose/issues/74",
         "".join(f"Train Epoch: 1 [{n}/6000 ({n // 60}%)]\tLoss: 0.03880490735{n:04d}\n" for n in range(0, 384, 32)), (352, FINE), WRONG),
    Case("a-prefix-on-a-line-of-its-own", GITHUB + "maudzung/RTM3D/issues/4",
         "".join("2020-08-17 21:48:47,912: logger.py - info(), at Line 49:INFO:\n"
                 f"Train - Epoch: [127/300][{n:3d}/464]\tTime  0.738 ( 0.738)\tData  0.000 ( 0.014)\tLoss {'nan (nan)' if n > 250 else '2.1274e+00 (1.5406e+00)'}\n" for n in range(35, 464, 50)), (435, NAN), WRONG),
    Case("a-tutorial-whose-validation-is-nan", GITHUB + "luoyuanlab/text_gcn_tutorial/issues/1",
         "".join(f"Epoch: {n:04d} train_loss= 1.09{n:03d} train_acc= 0.24752 val_loss= nan val_acc= 0.19512 time= 0.18762\n" for n in range(1, 13)), (12, NAN), WRONG),
    Case("an-epoch-and-a-global-step-in-one-bracket", GITHUB + "buriburisuri/speech-to-text-wavenet/issues/61",
         "".join(f"I 0407:09:37:19.238:sg_train.py:301] \tEpoch[{n:03d}:gs={n * 51}] - loss =      inf\n" for n in range(1, 13)), (12, NAN), WRONG),
    Case("three-ranks-of-icefall", GITHUB + "k2-fsa/icefall/issues/1084",
         "".join(f"2023-05-23 02:56:53,215 INFO [train_tt.py:1075] ({r}/3) Epoch 1, batch {n}, loss[loss=0.3022, simple_loss=0.3004, pruned_loss=0.152, over 13492.00 frames. ], tot_loss[loss=0.2753,"
                 " simple_loss=0.2972, pruned_loss=0.1267, over 1979032.42 frames. ], batch size: 49, lr: 3.10e-02,\n" for n in range(11400, 12050, 50) for r in (2, 1, 0)), (12000, FINE), WRONG),
    Case("summaries-between-global-steps", GITHUB + "xiaodiu2010/TextBoxes-TensorFlow/issues/8",
         "".join(f"INFO:tensorflow:global step {n}: loss = 6.8195 (0.888 sec/step)\n" + ("INFO:tensorflow:Recording summary at step 2193.\n" if n == 2190 else "") for n in range(2130, 2260, 10)),
         (2250, FINE), WRONG),
    Case("caffe-of-old-is-nan-from-eighty", GITHUB + "BVLC/caffe/issues/399",
         "".join(f"I0508 12:40:15.421900  2763 solver.cpp:208] Iteration {n}, lr = 0.01\nI0508 12:40:15.422210  2763 solver.cpp:65] Iteration {n}, loss = {'nan' if n > 40 else '6.99261'}\n"
                 for n in range(40, 520, 40)), (480, NAN), WRONG),
    Case("particles-of-an-epoch", GITHUB + "ml-struct-bio/cryodrgn/issues/18",
         rows("(INFO) (train_vae.py) (14-Dec-24 01:10:49) # [Train Epoch: 18/50] [{n}/2830676 particles] gen loss=0.545699, kld=12.036465, beta=0.125000, loss=0.545729", 584000, 632000, 4000),
         (628000, FINE), WRONG),
    Case("quoted-columns-between-spaces", GITHUB + "openmm/openmm/issues/4127",
         '#"Progress (%)" "Step" "Time (ps)" "Potential Energy (kJ/mole)" "Kinetic Energy (kJ/mole)" "Total Energy (kJ/mole)" "Speed (ns/day)"\n'
         + "".join(f"0.0% {n} 0.{n:03d} -281222.1417619977 23316.958833616365 -257905.18292838134 9.{n}\n" for n in range(1, 13)), (12, FINE), WRONG),
    Case("every-loss-of-epos-is-nan", GITHUB + "thodan/epos/issues/9",
         rows("step: {n} total_loss: nan obj_cls: nan frag_cls: nan frag_loc: nan\nINFO:tensorflow:global_step/sec: 2.1272", 100, 1300, 100), (1200, NAN), WRONG),
    Case("layers-of-darknet-of-which-one-is-nan", GITHUB + "AlexeyAB/darknet/issues/7090",
         rows("(next mAP calculation at 12452 iterations) \n {n}: 48.986256, 48.644478 avg loss, 0.005220 rate, 11.557267 seconds, 1491200 images, 978.636895 hours left\nLoaded: 0.000059 seconds\n"
              "v3 (iou loss, Normalizer: (iou: 0.07, obj: 1.00, cls: 1.00) Region 30 Avg (IOU: 0.000000), count: 119, class_loss = 56.999996, iou_loss = nan, total_loss = nan \n"
              "v3 (iou loss, Normalizer: (iou: 0.07, obj: 1.00, cls: 1.00) Region 37 Avg (IOU: 0.000000), count: 40, class_loss = 20.000000, iou_loss = 0.000013, total_loss = 20.000013 \n"
              " total_bbox = 18685040, rewritten_bbox = 2.318604 % ", 11650, 11662), (11661, FINE), WRONG),
    Case("a-train-loss-becomes-nan", GITHUB + "PaddlePaddle/Paddle/issues/55740",
         "".join(f"Train [2023-07-27 12:19:44.681032] epoch: [1/50], batch: [{n}/8832], learning rate: 0.00050000, train loss: {'nan' if n > 4200 else '88.165695'}, eta: 1 day, 23:12:04\n"
                 for n in range(3600, 4800, 100)), (4700, NAN), WRONG),
    Case("pairs-of-tabs-below-each-other", GITHUB + "hongzimao/deeprm/issues/10",
         "".join(f"-----------------\nIteration: \t {n}\nNumTrajs: \t 200\nNumTimesteps: \t {32549 + 61 * (n * 7 % 11)}\nLoss:     \t 0.1269063800573349\nMaxRew: \t -199.90956376956376\nMeanRew: \t"
                 " -257.43755677655673 +- 63.18571158682983\nMeanSlowdown: \t 8.095057915739412\nMeanLen: \t 162.745 +- 13.351403484278348\nMeanEntropy \t 2.397886\nElapsed time\t"
                 f" 106.06723022460938 seconds\n-----------------\n" for n in range(12)), (11, FINE), WRONG),
    Case("short-names-behind-a-count-of-uneven-steps", GITHUB + "clatfd/GNN-ART-LABEL/issues/3",
         "".join(f"{21920 + 333 * n + n % 3}, T {14354.9 + 120 * n:.1f}, Ltr nan, Lge nan,\n Ctr 0.5287, Str 0.0000, Cge 0.5397, Sge 0.0000\n CtrN 0.8668, StrN 0.0000, CgeN 0.8798, SgeN 0.0000\n"
                 f" CtrE 0.1853, StrE 0.0000, CgeE 0.1954, SgeE 0.0000\nVal loss decrease. Model saved in path: ArtLabel1/model{21920 + 333 * n + n % 3}-nan-0.8798-0.1954.ckpt\n" for n in range(12)),
         (25585, NAN), WRONG),
    Case("steps-of-wavenet", GITHUB + "Rayhane-mamah/Tacotron-2/issues/155",
         "".join(f"[2018-08-16 11:45:10.851]  Step {n:7d} [{15 - n}.957 sec/step, loss=-0.32939, avg_loss=0.36584]\n" for n in range(1, 14)), (13, FINE), WRONG),
)  # fmt: skip
DRAWN_15 = (
    Case("epochs-of-a-federation", GITHUB + "fedbiomed/fedbiomed/issues/34",
         "".join("[INFO] Training on dataset: /data/mvesin/data\n" + "".join(f"Train Epoch: 1 [{n}/60000 ({n // 600}%)]    Loss: 1.013210\n" for n in range(0, 60000, 4800))
                 + "Uploading model parameters to 2b55e6f1-c861-4a45-a166-c35a58397d12.pt\n" for _ in range(3)), (57600, FINE), WRONG),
    Case("a-bar-of-keras-on-lines", GITHUB + "AmadeusITGroup/Moire-Pattern-Detection/issues/25",
         "".join(f"{n:3d}/102 [==>...........................] - ETA: 7:36 - loss: 0.6106 - accuracy: 0.6619\n" for n in range(1, 15)), (14, FINE), WRONG),
    Case("outputs-of-a-net-are-nan", GITHUB + "kmaninis/OSVOS-caffe/issues/5",
         "".join(f"I0321 21:53:38.136545 11354 solver.cpp:219] Iteration {n} (0.375968 iter/s, 53.196s/20 iters), loss = {x}\nI0321 21:53:38.136634 11354 solver.cpp:238]     Train net output #0:"
                 f" dsn2_loss = {x} (* 1 = {x} loss)\nI0321 21:53:38.136662 11354 solver.cpp:238]     Train net output #1: dsn3_loss = {x} (* 1 = {x} loss)\nI0321 21:53:38.136690 11354"
                 f" sgd_solver.cpp:105] Iteration {n}, lr = 1e-09\n" for n in range(20, 260, 20) for x in ("nan" if n > 100 else "132717",)), (240, NAN), WRONG),
    Case("a-step-behind-its-loss", GITHUB + "tensorflow/tensorflow/issues/43014",
         rows("INFO:tensorflow:loss = 4.264659, step = {n} (124.394 sec)\nINFO:tensorflow:global_step/sec: 0.682575", 100, 1300, 100), (1200, FINE), WRONG),
    Case("losses-above-a-bar", GITHUB + "adriansahlman/stylegan2_pytorch/issues/15",
         "".join(f"D_loss: nan, D_loss_grad_norm: nan, D_lr: 0.001882\nD_reg: 0.002352, D_reg_grad_norm: 0.001569, G_loss: nan\nG_loss_grad_norm: nan, G_lr: 0.0016, G_reg: nan\nG_reg_grad_norm: nan,"
                 f" pl_avg: nan, seen: {n + 1}\n0%|          | {n}/1000000 [00:51<634:57:52,  2.29s/it]\n" for n in range(3, 15)), (14, NAN), WRONG),
    Case("two-processes-draw-one-bar", GITHUB + "Lightning-AI/pytorch-lightning/issues/4225",
         "Training: 0it [00:00, ?it/s]\nTraining:   0%|          | 0/18 [00:00<?, ?it/s]\n" + "".join(
             f"Epoch 0:  {100 * n // 18}%|██▏       | {n}/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]\nEpoch 0:  {100 * n // 18}%|██▏       | {n}/18 [00:17<01:02,  4.47s/it, loss=9.947,"
             " v_num=193315] \n" for n in range(1, 16)), (15, FINE), WRONG),
    Case("iterations-above-total-steps", GITHUB + "isaac-sim/IsaacLab/issues/5084",
         "".join(f"{'#' * 80}\n                            Learning iteration {n}/100                              \n\n                            Total steps: {n * 256} \n"
                 "                       Steps per second: 1581 \n                        Collection time: 0.102s \n                          Learning time: 0.060s \n"
                 "                        Mean value loss: 19.6685\n                    Mean surrogate loss: -0.0076\n                      Mean entropy loss: 1.3166\n"
                 f"                            Mean reward: -4.08\n{'-' * 80}\n                         Iteration time: 0.16s\n" for n in range(1, 13)), (12, FINE), WRONG),
    Case("a-loss-that-neuron-never-tells", GITHUB + "huggingface/optimum-neuron/issues/792",
         "{'loss': 11.7188, 'learning_rate': 1.4705882352941178e-07, 'epoch': 0.0}\n"
         + "".join(f"{{'loss': nan, 'learning_rate': 2.9411764705882356e-07, 'epoch': 0.{n:02d}}}\n" for n in range(1, 14)), (0.13, NAN), WRONG),
    Case("two-losses-of-a-diffusion", GITHUB + "JegZheng/truncated-diffusion-probabilistic-models/issues/3",
         "".join(f"INFO - diffusion.py - 2023-01-04 22:14:24,391 - Epoch: 0, step: {n}, loss: {x}, implicit loss: {x}, data time: 0.10419130325317383\n"
                 for n in range(1, 13) for x in ("nan" if n > 4 else "3301.66259765625",)), (12, NAN), WRONG),
    Case("a-count-in-brackets-and-an-epoch", GITHUB + "dariopavllo/convmesh/issues/8",
         "[0] epoch 0, 0/186, g_loss nan d_fake_loss 0.00000 d_real_loss 0.00000 flat 0.24812\n"
         + rows("[{n}] epoch 0, {n}/186, g_loss nan d_fake_loss nan d_real_loss nan flat nan", 10, 130, 10), (120, NAN), WRONG),
    Case("batches-at-uneven-steps", GITHUB + "akanimax/BMSG-GAN/issues/2",
         "".join(f"Elapsed [1:22:48.539515] batch: {n}  d_loss: 0.000000  g_loss: 16.721962\n" for n in (6000, 6474, 6972, 7470, 7968, 8000, 8466, 8964, 9462, 9960, 10000, 10458, 10956)), (10956, FINE), WRONG),
    Case("a-nan-before-a-bar-now-and-then", GITHUB + "hiyouga/ChatGLM-Efficient-Tuning/issues/49",
         "".join(f"{{'loss': {'nan' if n % 5 == 2 else '0.3290'}, 'reward': -2.0304, 'learning_rate': 5e-05}}\n  0%|          | {n}/13000 [00:10<36:34:36, 10.13s/it]" for n in range(1, 16)) + "\n", (15, FINE), WRONG),
    Case("signs-before-an-epoch-and-a-step", GITHUB + "gmongaras/Diffusion_models_from_scratch/issues/6",
         "".join(f"Loss at epoch #3, step #{n}, update #{n / 4}\nCombined: 0.1234    Mean: 0.1101    Variance: 0.000123\n\n\n" for n in range(1200, 1320, 10)), (1310, FINE), WRONG),
    Case("columns-that-would-print-nan", GITHUB + "deepmodeling/deepmd-kit/issues/5159",
         "# step       rmse_val    rmse_trn    rmse_e_val  rmse_e_trn    rmse_f_val  rmse_f_trn   lr      \n# If there is no available reference data, rmse_*_{val,trn} will print nan\n"
         + rows("{n}      6.66e-01    9.37e-01      7.04e-02    5.71e-02      6.04e-01    8.78e-01    1.1e-08", 1488000, 1500000, 1000), (1499000, FINE), WRONG),
    Case("a-client-that-waits-for-a-task", GITHUB + "Project-MONAI/tutorials/issues/852",
         "".join(f"2022-09-02 09:20:22,545 - ClientRunner - INFO - [run=1]: fetching task from server ...\n2022-09-02 09:20:22,559 - Communicator - INFO - Received from fl_project server  (407 Bytes)."
                 f" getTask time: 0.008898973464965{n:02d} seconds\n2022-09-02 09:20:22,562 - ClientRunner - INFO - [run=1, peer=fl_project, peer_run=1]: server asked to try again - will try in 2 secs\n"
                 for n in range(12)), (None, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_12, *DRAWN_13, *DRAWN_14, *DRAWN_15)
def test_the_number_and_the_loss_of_a_log_of_the_fifth_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
