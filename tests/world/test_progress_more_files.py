"""Progress and NaN in further whole log files of public repositories; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss, bar
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

HF_ROW = "{{'loss': '0.58{n}', 'grad_norm': '0.1416', 'learning_rate': '3.128e-07', 'entropy': '0.7025', 'num_tokens': '2.975e+06', 'mean_token_accuracy': '0.8701', 'epoch': '2.9{n}'}}\n"
LOGGED = "2025-06-14 23:02:{s},549 - INFO - "

# Seed 4242, the first fifteen of the 68 repositories of progress_more_files.txt whose file is the log of a training.
DRAWN_20 = (
    Case("lines-that-a-shell-of-windows-cut", GITHUB + "Azaan-5025/Fruit_Leaf_Disease_Detection",
         "\ufeffpython : 2026-02-21 \n12:25:56.109721: I tensorfl\now/core/util/port.cc:153] \noneDNN custom operations \nare on. You may see \nslightly different \nnumerical results\n" + 6 * (
             '  File "C:\\Users\\Ann \nLee\\anaconda3\\Lib\n\\site-packages\\keras\\_tf_ke\nras\\__init__.py", line 1, \nin <module>\n    from keras.api import x\n')
         + "ImportError: \nnumpy.core.multiarray \nfailed to import\n", (None, FINE), WRONG),
    Case("a-bar-without-a-word", GITHUB + "959959-lpd/RAG-END",
         "Loading Base Model: deepseek-ai/DeepSeek-R1-Distill-Llama-8B\n" + bar("Loading checkpoint shards: ", 2, 0, 1, 2) + "\n" + bar(" ", 13278, *range(4300, 4365), rate="3.23it/s"),
         # Written down was 4364, and counts as arguable: the last line has no end, and is read when it has one.
         (4363, FINE), WRONG),
    Case("epochs-and-an-object-without-words", GITHUB + "Copernicus-project/ETCI-2021-Competition-on-Flood-Detection",
         "start\n{0: 1000}\n<utils.sampler_utils.DistributedSamplerWrapper object at 0x0000024F8C7CE850>\n" + 2 * (rows("epoch: {n}", 1, 16) + "0.06734448033571243\nlosses: <utils.metric_utils.AvgMeter object"
                                                                                                                   " at 0x00000239BD769EE0>\n") + "finish\n", (15, FINE), WRONG),
    Case("an-evaluation-behind-the-last-step", GITHUB + "Ishihara-Masabumi/Llama_SFT",
         "=" * 60 + "\nLlama-3.2-3B-Instruct LoRA Fine-tuning\n" + "=" * 60 + "\n" + "".join(
             bar(" ", 1677, *range(20 * n, 20 * n + 20), rate="1.70s/it") + "\n" + HF_ROW.format(n=n) for n in range(72, 83)) + bar(" ", 1677, *range(1660, 1678), rate="1.69s/it") + "\n"
         + bar("", 280, *range(0, 281, 7), rate="9.40it/s").replace("]\r", "]\x1b[A\n") + "\n" + bar(" ", 1677, 1677, rate="1.53s/it")
         + "\n{'eval_loss': '0.7206', 'eval_runtime': '29.78', 'eval_steps_per_second': '9.403', 'epoch': '3'}\n{'train_runtime': '2918', 'train_steps_per_second': '0.575', 'train_loss': '0.7331', 'epoch': '3'}\n"
         "Training complete!\n", (1677, FINE), WRONG),
    Case("a-second-run-whose-validation-is-nan-again", GITHUB + "DaeZZang/OHG",
         "".join(f"Epoch:   {n} | T_Loss 12.06{k} | T_acc 0.067 | V_Loss   nan | V_acc.   nan | 🕒 7399.88{k}\n" for k, n in enumerate((1, 2, 3, 1))),
         # Written down was 1, and counts as wrong: four lines, and a total nowhere, are too few.
         (None, NAN), WRONG),
    Case("bars-above-each-epoch-s-losses", GITHUB + "DarshilDC05/CNN_BiLSTM_Hangman_AI",
         "Using device: cuda\n" + "".join(bar(f"{what} {n}/{last}: ", 900, 899, 900) + f"\n{what} {n} | Train Loss: 0.9583 | Val Loss: 0.9281 | Val Accuracy: 70.09%\n"
                                         for what, last in (("Epoch", 5), ("Fine-Tune Epoch", 3)) for n in range(1, last + 1)) + "\n72 in 194\n144 in 321\n206 in 450\n484 in 951\n728 in 2000\n",
         (3, FINE), WRONG),
    Case("losses-that-no-count-leads", GITHUB + "BADBADBADBOY/pgnet.pytorch",
         "total loss\tscore loss\tborder loss\tdirec loss\tctc loss\t\n" + "".join(f"1{n}.498544\t0.135853\t0.093050\t0.039490\t2.64{n}030\t\n" for n in (9, 3, 7, 5, 4, 8, 2, 6, 3, 5, 1, 7)), (None, FINE), WRONG),
    Case("bars-in-the-lines-of-a-logger", GITHUB + "CTMX-Zhen/pokemon_classification",
         LOGGED.format(s=10) + "Loaded dataset with shape: (6825, 180, 180, 3), Labels shape: (6825,)\n" + "".join(
             "".join(LOGGED.format(s=n % 60) + f"{100 * n // 171}%|#########4| {n}/171 [00:25<00:01, 6.54batch/s, accuracy=0.97, loss=0.125]\n" + LOGGED.format(s=n % 60) + "\x1b[A\n" for n in range(111, 172, 6))
             + LOGGED.format(s=44) + f"Epoch {e}: \n" + LOGGED.format(s=44) + "loss=0.1248, accuracy=0.9694, \n" + LOGGED.format(s=44) + "val_loss=5.7130, val_accuracy=0.3201\n" + LOGGED.format(s=44)
             + f"{10 * e}%|##########| {e}/10 [05:49<00:00, 34.99s/epoch, accuracy=0.969, loss=0.125]\n" for e in range(1, 11)) + LOGGED.format(s=50) + "Training completed. Saving model...\n", (10, FINE), WRONG),
    Case("a-library-that-is-not-there", GITHUB + "BestiVictory/AMAN",
         'Traceback (most recent call last):\n  File "sca_resnet_branch2b_3.py", line 12, in <module>\n    import theano\nImportError: No module named theano\n', (None, FINE), WRONG),
    Case("a-sweep-behind-thirty-epochs", GITHUB + "Adhityas1820/Static-delay-summation-network",
         "device: cuda\nvideos: 81 total  ->  72 train / 9 val\nwindows: 20729 train / 1628 val  (window=128)\n" + "".join(
             f"epoch  {n:2d}  train_loss 0.0895  val_loss 0.2107  cntMAE 36.{n}  P 0.329  R 0.768  F1 0.460  | grad L1 3.8e-01 L2 1.6e-01 L3 1.5e-01 \n" for n in range(1, 31))
         + "\nbest val timing-F1 (@thr 0.5): 0.635\n\nNMS-threshold sweep on val  (match tol=8f, min-dist=12f):\n  thr | count MAE | timing P/R/F1      | tp/fp/fn\n"
         + "".join(f"  0.{n:02d} |   {247 - 2 * n}.889  | 0.29/0.80/0.43 | {200 - n}/{479 - n}/{n}\n" for n in range(5, 95, 5)), (30, FINE), WRONG),
    Case("a-batch-of-every-ninety-nine", GITHUB + "AntonyParks/TesseractApexOCR",
         "Dataset: 17697 total | 15928 train | 1769 val\n" + "".join(f"  Epoch 1/3 | batch {n}/1991 | loss 1.8294\n" for n in (*range(99, 1991, 99), 1991)) + "Epoch 01/3 | loss=1.8262 | CER=0.7876\n"
         + bar("Writing model shards: ", 1, 0, 1) + "\nTraceback (most recent call last):\n  File \"C:\\w\\train.py\", line 51, in <module>\n    print(mark)\n"
         "UnicodeEncodeError: 'charmap' codec can't encode character '\\u2713' in position 2: character maps to <undefined>\n", (1991, FINE), WRONG),
    Case("an-accuracy-with-its-counts", GITHUB + "CloneNOX/Bi-LSTM-CN-Language-model",
         "".join(f"epoch {n:3d}\n\nloss: 0.857320\n\ntest accuracy: 83.84%, ({2067648 + 37 * n % 900}/2466111)\n\n" for n in range(230, 271)), (270, FINE), WRONG),
    Case("three-numbers-of-each-epoch", GITHUB + "David-Dingle/UniDL4BioPep_ASL_PyTorch",
         "".join(f"{n} 0.09900432250772913 {0.99 + n % 7 / 1000}\n" for n in range(400, 500)), (499, FINE), WRONG),
    Case("seconds-in-brackets-behind-an-epoch", GITHUB + "Dang-Tu-lang/Dino_augseg",
         "".join(f"Epoch {n}/100 | LR: 3.800000e-06 | Train Loss: 2.8484 | Val Loss: 1.2244 | mP=9.95% mR=15.56% mIoU=6.25% mDice=11.24% ← best IoU ← best loss\n" for n in (1, 2)) + "".join(
             f"Epoch {n}/100 [129.{n % 10}s] | LR: 1.066905e-06 | Train Loss: 0.8675 | Val Loss: 0.6106 | mP=56.78% mR=58.92% mIoU=46.68% mDice=56.65%{' ← best loss' if n % 9 == 0 else ''}\n" for n in range(1, 101))
         + "\n=== Final Val Metrics ===\n" + rows("  Class {n}: P=76.50%  R=82.18%  IoU=65.61%  Dice=79.24%", 1, 7) + "  Mean: P=52.88%  R=61.59%  mIoU=42.87%  mDice=54.50%\n", (100, FINE), WRONG),
    Case("bars-of-four-batches-below-a-fold", GITHUB + "IgorPietruszczak/spine-segformer-3d-class",
         "\n" + "=" * 60 + "\n  SpineSegFormer3D — Training Run\n" + "".join(bar(f"[fold_{fold}] {n}/200: ", 4, 0, 0, 1, 1, 2, 2, 3, 3, 4, rate="1.42s/it, loss=0.7998") + "\r" + " " * 80 + "\n"
                                                                            for fold in (2, 3, 4) for n in range(180, 201)) + "  Epoch 200 — mean Dice: 0.1234  |  HD95: 99.17 mm\n  Thoracic:\n"
         "  T1:0.000  T2:0.000  T3:0.084  T4:0.047\n  elapsed 25min  |  ETA ~0min\n  Fold done in 0.41h\n  -> fold 4: dice=0.1418  hd95=106.48\n", (4, FINE), WRONG),
)  # fmt: skip


YOLOX = "2021-09-03 20:47:{n},079 | INFO     | yolox.core.trainer:"
GAN = "(epoch: {e}, iters: {n}, time: 13.912, data: 0.066) G_GAN: 2.483 G_L1: 34.324 D_real: 0.100 D_fake: 0.113 \n"
STATS = 'json_stats: {{"RAM": "16.57/31.07G", "_type": "{what}", "dt": 1.11631, "epoch": "{n}/200", "eta": "0:04:29", "gpu_mem": "17.83G", {more}}}\n'
VALID = "\n- Valid | Epoch {e} | {n}/3 | 0.29 it/sec | Loss 0.1124 | Reco 0.1124 | Nsdr 9.118\n"

# The second fifteen of the 68.
DRAWN_21 = (
    Case("an-iteration-of-forty-seven", GITHUB + "Duke-Rodriguez-Rudolph/yolox-chepai",
         "".join(f"{YOLOX}before_epoch:188 - ---> start train epoch{e}\n\n" + "".join(
             f"{YOLOX}after_iter:246 - epoch: {e}/300, iter: {n}/47, mem: 1756Mb, iter_time: 0.092s, data_time: 0.000s, total_loss: 1.8, iou_loss: 1.1, l1_loss: 0.3, conf_loss: 0.4\n\n" for n in (10, 20, 30, 40))
             + f"{YOLOX}save_ckpt:318 - Save weights to ./YOLOX_outputs\n\n" for e in range(290, 301)).replace("{n}", "28.544") + "Average forward time: 23.43 ms, Average NMS time: 0.00 ms, Average inference time: 23.43 ms\n\n"
         + YOLOX.format(n=31) + "after_train:184 - Training of experiment is done and the best AP is 90.00\n", (40, FINE), WRONG),
    Case("two-hundred-folds", GITHUB + "JBNU-MacsLAB/2024-k-health",
         "".join(f"[VAL] LOOCV Fold {n}/200 | GDS: 0.{n}843, mIoU: 0.2117263823747635, score(GDS + mIoU): 0.561188742518425\n" for n in range(120, 201)) + "LOOCV Fold 115 got best score: 1.8514755964279175!\n",
         # Written down was 200, and counts as wrong: a line that is marked as one of a validation tells no training.
         (None, FINE), WRONG),
    Case("steps-between-answers", GITHUB + "BlackCatSpb/FCF",
         "19:49:55 | INFO     | Пункт 3 — Инструктивное дообучение\n" + "".join(f"20:0{n}:40 | INFO     | [SRG] step={n}00 confidence=1.000 avg=1.000 ethics=1.000\n"
                                                                               f"20:0{n}:40 | INFO     | [SRG] Ответ: user то такое история?assistantИстория это наука\n" for n in range(1, 6))
         + "20:18:42 | INFO     | [Save] Слепки сохранены: 19 шт.\n20:18:42 | INFO     | [Train] Завершено: max_steps\n20:18:42 | INFO     | [Train] Шагов: 500, токенов: 255,500, время: 1725с\n", (500, FINE), WRONG),
    Case("a-batch-without-a-total-behind-an-epoch-with-one", GITHUB + "Hellrogue/web_rec",
         "nohup: ignoring input\nUsing device: cuda\nLoading dataframe...\n" + "".join("".join(f"Epoch {e}/3, Batch {n}, Loss: 7.6363, Rec: 7.3284, CL: 3.0786\n" for n in range(0, 4501, 100))
                                                                                     + f"Epoch {e} Training Loss: 7.6343, LR: 0.000000\nEpoch {e} Validation Loss: 6.7451\nSaved best model.\n" for e in (1, 2, 3)),
         (4500, FINE), WRONG),
    Case("pipelines-of-extractors", GITHUB + "Agetooo/FlowerClassification",
         "".join(f"\n{'=' * 50}\nTraining pipeline for Extractor: {name}\n{'=' * 50}\nLoaded 11200 images.\nSampling training images for vocabulary fitting...\nFitting K-Means vocabulary with 500 clusters...\n"
                 f"Training RandomForest classifier...\nSaved RandomForest model to model_randomforest_{name}_opt.joblib\n" for name in ("SIFT", "ORB", "AKAZE")), (None, FINE), WRONG),
    Case("games-that-have-just-begun", GITHUB + "Go-Brainer/v0.3",
         "----------------------\nStarting from ./agents/q_agent_0.h5 at 2019-11-15 06:08:40.302492\nTotal games so far 0\nWon 231 / 480 games (0.481)\nTotal games so far 100\n", (None, FINE), WRONG),
    Case("losses-of-two-views", GITHUB + "ISChenawei/DMNIL",
         "===========building convnext===========\n" + "".join(
             f"Epoch: [{e}][{n}/400]\tTime 5.569 (5.806)\tData 0.000 (0.268)\tLoss 1.461 (1.754)\tLoss dro 0.048 (0.148)\tLoss sat 0.073 (0.117)\tcamera dro 0.000 (0.000)\n"
             "loss_dro_s,loss_sat_s 0.37608546018600464 0.19337621331214205\nloss_shared_s,loss_shared 0.0 0.0\ndro_sat_loss_s,sat_dro_loss_s 0.0 0.13843727111816406\n" for e in (22, 23) for n in range(10, 401, 10))
         + "Compute Scores:\nRecall@1: 90.3051 - Recall@5: 96.8828 - AP: 91.8149\ndro Clustering criterion: eps: 0.400\n==> Create pseudo labels for unlabeled Sat data\n", (400, FINE), WRONG),
    Case("a-program-that-is-not-there", GITHUB + "Aayushjshah/ALPR-Number-Plate-Recognition", "bash: ./darknet/darknet: No such file or directory\n", (None, FINE), WRONG),
    Case("models-one-after-another-whose-names-have-an-e", GITHUB + "HLSvois/DLNLP_2025",
         "".join("".join(f"Transformer_L{size}_e10 Epoch {n}: Loss = 2.{950 - 10 * n}\n" for n in range(1, last + 1)) + (
             f"Saved checkpoint to checkpoints/Transformer_L{size}_e10_epoch10.pt\n[Transformer_L{size}_e10] Temperature=0.7\n张无忌只道：“你还不是。”当下将那马长凳上击落。\n" if last == 10 else "")
             for size, last in ((1, 10), (2, 10), (4, 10), (6, 6))), (6, FINE), WRONG),
    Case("an-iteration-before-an-early-stop", GITHUB + "Dylan-Zhang7788/Yolo",
         "nohup: 忽略输入\nloading annotations\nthe train_dataset has 17117 images\n" + "".join(f"Epoch [{e}/100], Iter [{n}/1070] Loss: 1.2025, average_loss: 1.1433\n" for e in (55, 56, 57) for n in range(20, 1070, 20))
         + "EarlyStopping counter: 9 out of 8\n", (1060, FINE), WRONG),
    Case("options-above-few-iterations", GITHUB + "Crystalyyds/xray_cyclegan",
         "----------------- Options ---------------\n               batch_size: 1                             \n               print_freq: 20                            \t[default: 100]\n         save_latest_freq: 5000"
         "                          \n----------------- End -------------------\n" + "".join(GAN.format(e=1, n=n) for n in (20, 40, 60))
         + "saving the model at the end of epoch 1, iters 77\nEnd of epoch 1 / 2 \t Time Taken: 1101 sec\nlearning rate 0.0001000 -> 0.0000000\n" + GAN.format(e=2, n=3), (3, FINE), WRONG),
    Case("sessions-of-ten-episodes", GITHUB + "Ab-mahin/Multi-Agent-DQN-Coordinatio",
         "".join(f"\n{'=' * 60}\nTraining Session Started: 2026-02-03 15:3{k}:27\n{'=' * 60}\n\n" + "".join(
             f"Episode {n}/{last} | Deliveries: {400 + 37 * n} | Collisions: {n % 2} | Loss: 2{n}.8691 | ε: 0.000\n" for n in range(1, last + 1))
             + f"\n{'=' * 60}\nFINAL RESULTS (Online DQN Learning)\n{'=' * 60}\nTotal Deliveries: 3\nAvg steps per delivery: 8.33\n{'-' * 60}\nα (Alpha): 1.0000\n{'=' * 60}\n" for k, last in ((6, 10), (7, 1), (8, 10))),
         (10, FINE), WRONG),
    Case("an-epoch-of-a-total-in-quotes", GITHUB + "CarrotPeeler/WPI-Naturalistic-Driving-Action-Recognition-MQP",
         "".join(STATS.format(what="train_epoch", n=n, more='"loss": 0.83120, "lr": 0.00001, "top1_err": 14.31') + (STATS.format(what="val_epoch", n=n, more='"min_top1_err": 14.31535') if n % 10 == 0 else "")
                 for n in range(150, 201)), (200, FINE), WRONG),
    Case("keras-tells-each-epoch-in-two-lines", GITHUB + "ChenKen9869/BiLSTM-CRF-Word-segmentation",
         "2021-05-09 18:27:16.558632: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1720] Found device 0 with properties: \n" + "".join(
             f"Epoch {n}/100\n19/19 - 1{n % 3}s - loss: 0.0{465 - n} - accuracy: 0.9331\n" for n in range(40, 101)) + "\nProcess finished with exit code 0\n", (100, FINE), WRONG),
    Case("an-epoch-behind-a-lesser-than", GITHUB + "ChengChen2020/USRNet_pytorch",
         "Available devices: 1\nCurrent device: 0\nTrain Dataset size: 3550\nTrain Loader size: 73\n" + "".join(f"<epoch:{n}, lr:2.500e-05> loss: 3.{n}e-02 \n" + (
             f"<epoch:{n}, Average PSNR : 30.82dB\n\n" if n % 10 == 0 else "") for n in range(480, 551)), (550, FINE), WRONG),
)  # fmt: skip
# Eight that the 68 had left, and seven that the 96 of progress_files.txt had left.
DRAWN_22 = (
    Case("bars-without-their-blocks", GITHUB + "AdamHermes/MKGL-master",
         "E0000 00:00:1764926939.003861    4436 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n" + "".join(
             f"\r{n * 100 // 1330}% {n}/1330 [14:55<00:00,  1.80it/s]" + (f"\n{{'loss': 0.692, 'grad_norm': 0.0728, 'learning_rate': 0.0046, 'epoch': {n / 266:.2f}}}\n" if n % 10 == 0 else "") for n in range(1200, 1331))
         + "".join(f"\r{n * 100 // 31}% {n}/31 [00:08<00:00,  3.86it/s]" for n in range(3, 32, 4)) + "\n{'eval_loss': 0.6969060897827148, 'eval_mr': 1255.99, 'epoch': 5.0}\n\r100% 1330/1330 [14:55<00:00,  1.80it/s]\n"
         "{'train_runtime': 895.934, 'train_steps_per_second': 1.484, 'train_loss': 0.6904540298576641, 'epoch': 5.0}\n\r100% 1330/1330 [14:55<00:00,  1.48it/s]\n", (1330, FINE), WRONG),
    Case("a-step-below-its-time", GITHUB + "Andrei-C-916/Safety-Binary-Classifier",
         "2026-03-03 02:10:46,423 | Starting training\n" + "".join(f"2026-03-03 02:13:09,433 | \nepoch={1 + n // 1500} step={n} train_loss=0.1{n} val_loss=0.3097\n" + (
             f"2026-03-03 02:46:27,854 | \nepoch_end={n // 1500} train_loss=0.1189 val_loss=0.1253\n2026-03-03 02:46:28,543 | saved checkpoint_epoch_{n // 1500}.pt\n" if n % 1500 == 0 else "") for n in range(200, 4401, 200))
         + "2026-03-03 03:04:01,109 | \nepoch_end=3 train_loss=0.0814 val_loss=0.1692\n2026-03-03 03:04:01,807 | \ndone. best_val_loss=0.1131\n", (4400, FINE), WRONG),
    Case("training-and-validation-of-one-form", GITHUB + "ApiaoSamaa/audio_sep",
         "".join("\n- Training...\n" + "".join(f"\n- Train | Epoch {e} | {n}/573 | 1.30 it/sec | Loss 0.0952 | Reco 0.0920 | Grad 0.0893 | Penalty 318.7643\n" for n in ((143, 286, 429, 572) if e < 22 else (143, 286)))
                 + (f"\n- Train Summary | Epoch {e} | Loss=0.0964 | Reco=0.0932\n\n- Cross validation...\n" + 5 * (VALID.format(e=e, n=1) + VALID.format(e=e, n=2)) + f"\n- Valid Summary | Epoch {e} | Loss=0.1169"
                    " | Reco=0.1169 | Best=0.1169\n" if e < 22 else "") for e in range(12, 23)),
         # Written down was 286, the batch, and counts as wrong: the validation has the form of the training, and the epoch is told.
         (22, FINE), WRONG),
    Case("ranks-that-tell-only-their-first-batch", GITHUB + "FoxNickel/OmniAvatar",
         "".join(f"[Rank {n}] training_step -> batch_idx: 0, batch_size: 1\n[Rank {n}] batch[video] shape: torch.Size([1, 3, 25, 400, 640]), dtype: torch.float16, device: cuda:{n}\n"
                 f"[Rank {n}] batch[audio] shape: torch.Size([1, 13325]), dtype: torch.float16, device: cuda:{n}\n[Rank {n}] batch[T] shape: torch.Size([1]), dtype: torch.int64, device: cuda:{n}\n" for n in (2, 3, 0, 1)),
         (None, FINE), WRONG),
    Case("three-batches-of-each-epoch", GITHUB + "FrereAlidor/TP2_Sliding_Window",
         "Device : cpu\n\nBatch Size : 64\n\n" + "".join("".join(f"Epoch: {e}\tBatch: {n}\nRunning Loss: 0.5127\n\n" for n in (50, 100, 150)) + f"Epoch {e} Train Loss: 0.5148\nEpoch {e} Valid Loss: 0.3110\n\n" for e in range(1, 21))
         + "Training Complete. Time Taken: 332.3720\nTraining Accuracy: 48.7100\nTesting Accuracy: 48.8464\n", (150, FINE), WRONG),
    Case("an-e-glued-to-its-epoch", GITHUB + "2025DL-TEAM3/skeleton_hw",
         "Loading dataset...\ntrainable params: 5,898,240 || all params: 4,028,366,336 || trainable%: 0.1464\n" + "".join(
             "".join(f"[E{e}] step {n} loss 1.2561\n" for n in range(14000, 15000, 10)) + f"Epoch {e} avg-loss 0.5375\n" for e in (3, 4, 5)) + "Training completed!\n", (14990, FINE), WRONG),
    Case("a-first-iteration-of-each-epoch", GITHUB + "Alex8211101/UNetpp4HSI",
         "Total Epoch:300 Image_size:(256, 256) Training num:288  Validation num:72\n" + "".join(f"[val] epoch:{n - 1} miou:0.7{n % 10}\n[train] epoch:{n} iter:0/18 0.00% lr:0.000179 loss:0.401750 ETA:0.0min\n"
                                                                                               for n in range(95, 164)), (163, FINE), WRONG),
    Case("matrices-between-epochs", GITHUB + "GiveMeTheReason/gesture-navigation",
         "\n2023.01.18 11:01:08 | Training for 20 epochs started!\nTrain set length: 61\nTest set length: 21\n" + "".join(
             f"2023.01.19 06:25:21 [Epoch: {n:02d}] {what} acc: 0.9346 | loss: 3.7952\nconfusion_matrix_{what.lower()}=tensor([[ 1451,     3,   395],\n        [   11,  2164,   125],\n        [  578,   101, 10292]],"
             " dtype=torch.int32)\n" for n in range(1, 21) for what in ("Train", "Valid")) + "Training finished!\n", (20, FINE), WRONG),
    Case("neurotransmitters-behind-a-step", GITHUB + "269652/neuroslm",
         "\n" + "".join(f"step  {n} | loss 3.8858 | lm 5.2541 | ppl 191.3 | lr 2.46e-04 | 332 tok/s | mesoLG 0.59 | NT[DA=0.80 NE=0.70 5HT=0.95 ACh=0.75 eCB=0.28 Glu=0.50 GABA=0.57]\n\n" for n in range(2380, 3501, 10)),
         (3500, FINE), WRONG),
    Case("a-test-accuracy-of-each-epoch", GITHUB + "5697526/CIFAR-10-Network",
         "2025-06-04 17:36:55,374 - INFO - Using device: cpu\n2025-06-04 17:36:55,379 - INFO -   filter_config: large\n" + rows(
             "2025-06-04 19:22:35,001 - INFO - Epoch {n}/35, Train Loss: 0.5720, Test Acc: 85.20%", 1, 36) + "2025-06-04 19:22:35,001 - INFO - Best test accuracy: 85.38%\n", (35, FINE), WRONG),
    Case("two-batches-of-each-epoch", GITHUB + "Abhiswain97/Leaf_disease_detection",
         "Train on 58 samples, validate on 26 samples\n" + "".join(
             f"Epoch {n}/1000\n\n32/58 [===============>..............] - ETA: 0s - loss: 0.7632 - sparse_categorical_accuracy: 0.6562\n"
             "58/58 [==============================] - 0s 168us/step - loss: 0.7831 - sparse_categorical_accuracy: 0.6379 - val_loss: 1.9343 - val_sparse_categorical_accuracy: 0.3462\n" for n in range(960, 1001)), (1000, FINE), WRONG),
    Case("epochs-and-a-best-model-in-chinese", GITHUB + "GuoxiangJiang/Transformer-in-en-de-trans",
         "nohup: ignoring input\n加载数据集和分词器...\n" + "".join(f"Epoch {n}/100 - Train Loss: 1.1264, Val Loss: 1.3565\n" + ("  保存最佳模型 (val_loss=1.3565)\n" if n % 3 else "") for n in range(50, 101)), (100, FINE), WRONG),
    Case("cycles-of-a-game", GITHUB + "0GhOsTO/pokemonQLearning", "".join(f"after cycle={n} avg(utility)=311.7398512467{n} avg(num_wins)=0.{n % 6}\n" for n in range(500, 858)), (857, FINE), WRONG),
    Case("two-columns-below-their-names", GITHUB + "Jayant-Guru-Shrivastava/ERAV4-Session11-shakespeare-gpt2-124M",
         "step\tloss\n" + "".join(f"{n}\t0.{134991 - n}\n" for n in range(10, 4571, 10)), (4570, FINE), WRONG),
    Case("pipelines-that-start-again", GITHUB + "MachuEngine/object-detection-fasterrcnn",
         "2025-01-16 12:34:20,725 [INFO] Starting Faster R-CNN training pipeline\n2025-01-16 13:33:20,506 [INFO] Starting Faster R-CNN training pipeline\n2025-01-16 14:41:26,264 [INFO] Starting training epoch 1\n"
         "2025-01-16 14:43:00,486 [INFO] Starting Faster R-CNN training pipeline\n2025-01-16 14:45:38,490 [INFO] Starting training epoch 1\n", (None, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_20, *DRAWN_21, *DRAWN_22)
def test_the_number_and_the_loss_of_a_further_log_file(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
