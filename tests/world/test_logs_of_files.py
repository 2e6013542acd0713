"""Log files of public repositories of two further lists; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause, assert_number_and_loss, bar
from tests.world.test_causes_drawn import COST, FRAME, GITHUB
from tests.world.test_progress_drawn import FINE, WRONG, rows

KERAS_ROW = "\x1b[1m{n}/{last}\x1b[0m \x1b[32m========\x1b[0m\x1b[37m============\x1b[0m \x1b[1m21s\x1b[0m 1s/step - accuracy: 0.9383 - loss: 0.3036\r\n"

# Seed 4271, the first fifteen of the 77 of progress_seventh_files.txt that are there and are the log of a training.
DRAWN_23 = (
    Case("a-step-of-thirteen-thousand", GITHUB + "985sway/Image-Captioning",
         "".join(f"Epoch [{e}/5], Step [{n}/12942], Loss: 1.9409, Perplexity: 6.9647\n" for e in (1, 2) for n in range(1, 5753, 7)), (5748, FINE), WRONG),
    Case("every-fifth-batch-behind-its-epoch", GITHUB + "Akik-Forazi/IGRIS-coX_S_T",
         "2025-04-16 17:49:46.085201 - === IGRIS-coX TRAINING INITIATED ===\n" + rows("2025-04-16 18:14:16.227185 - [Epoch 1] Batch {n}/3125 | Loss: 0.4354", 1, 522, 5), (521, FINE), WRONG),
    Case("keras-on-windows", GITHUB + "192210154/ocularsurfaceai",
         "\ufefftf_env\\Scripts\\python.exe \n: 2026-03-08 \n12:50:05.597517: I tensorf\nlow/core/util/port.cc:153]\n oneDNN custom operations \nare on. You may see \n" + "".join(
             f"Epoch {e}/15\n" + "".join(KERAS_ROW.format(n=n, last=35) for n in range(1, 36 if e < 3 else 19)) for e in (1, 2, 3)), (18, FINE), WRONG),
    Case("losses-of-three-networks", GITHUB + "AAAAAiden/IAE-implementation",
         rows("Epoch {n}/1000 - Loss Discriminator: 0.697959840297699, Loss Encoder: -88.2718276977539, Loss Decoder: 0.0077041746117174625", 1, 55), (54, FINE), WRONG),
    Case("stages-of-a-pipeline", GITHUB + "Akash-338/Strawhats-Defect-Detection",
         "".join(f"2026-08-05 1{k}:05:31,049 [INFO] Starting training pipeline...\n2026-08-05 1{k}:05:31,049 [INFO] STAGE 3/7: Aluminum YOLO v2 (3k-subset, 100ep)\n2026-08-05 1{k}:05:31,049 [INFO] Estimated time: ~300 minutes\n"
                 f"2026-08-05 1{k}:57:19,971 [INFO]   Stage 4 (Morphology Fusion): PASS\n2026-08-05 1{k}:57:19,972 [INFO] Results: 1/1 stages passed\n2026-08-05 1{k}:57:19,972 [INFO] Total time: 212.3 minutes (3.5 hours)\n" for k in range(1, 7)),
         (None, FINE), WRONG),
    Case("forty-epochs-of-keras", GITHUB + "AntoineDW/cat-or-dog-keras",
         "Found 20000 images belonging to 2 classes.\n" + "".join(f"Epoch {n}/40\n313/313 [==============================] - 331s 1s/step - loss: 0.3354 - acc: 0.8527 - val_loss: 0.3777 - val_acc: 0.8288\n" for n in range(1, 41)),
         (40, FINE), WRONG),
    Case("a-download-and-then-an-exception", GITHUB + "Ahanaf124/Multi-Modal-Deepfake-Detection-System",
         "Device: cpu\n[OK] Environment setup complete!\n" + "\r  0%|          | 0.00/18.6M [00:00<?, ?B/s]" + "".join(f"\r {n}%|########  | {n / 5:.1f}M/18.6M [00:02<00:00, 13.8MB/s]" for n in range(1, 93, 7)) + "\r100%|##########| 18.6M/18.6M [00:02<00:00, 7.27MB/s]\n" + FRAME
         + "ValueError: `tiktoken` is required to read a `tiktoken` file. Install it with `pip install tiktoken`.\n", (None, FINE), WRONG),
    Case("three-epochs-of-slow-samples", GITHUB + "JunyiJ/PostTraining-LLM-Small",
         "".join(f"\n=== Epoch {e}/3 ===\n" + "".join(f"[timing] sample processed in {150 + n * 37 % 300}.74s\n" for n in range(49)) + f"[step {50 * e}] avg_loss=-0.0001 acc=0.5933\n[eval] 11+123=? -> 11+123=?\n[timing] sample processed in 166.09s\n"
                 f"Saved checkpoint to /w/checkpoints/lora_epoch{e}_step{50 * e}.pt\n==end-of-epoch {e}==\n" for e in (1, 2, 3)), (3, FINE), WRONG),
    Case("trainings-of-one-sentence-each", GITHUB + "Alouakhalid/Thoth_AI",
         "".join(f'[2026-05-14 23:{n:02d}:44] TRAINED | Text: "The sun is" | Tokens: {5 + 37 * n % 90} | Chunks: 1 | Epochs: 30 | Avg Loss: {4 - n / 20:.4f}\n' for n in range(10, 50)), (None, FINE), WRONG),
    Case("ten-rows-before-predictions", GITHUB + "1807676448/Water_2",
         "日志系统已启动，所有输出将保存至 training_log.txt\n开始训练模型...\n" + rows("Epoch [{n}/1000], Loss: 0.0043", 100, 1001, 100) + "".join(f"真实: [{n}.88, 1.5579] | 预测: [{n}.13, 1.4417]\n" for n in (11, 33, 27, 34, 36, 25))
         + "预测结果: COD=12.90, UV254=0.3142\n训练完成。请运行 use_model.py 进行独立预测。\n", (1000, FINE), WRONG),
    Case("one-warning-alone", GITHUB + "2025-ITEC0401/TS-CVA",
         "/e/torch/nn/modules/transformer.py:282: UserWarning: enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer.norm_first was True\n  warnings.warn(f\"enable_nested_tensor is True\")\n",
         (None, FINE), WRONG),
    Case("samples-that-are-loaded", GITHUB + "AnwarBujangHuat/TMAI",
         "".join(f"2026-01-13 20:4{n}:40,233 - INFO - Loading {name} samples from dataset/{name}...\n2026-01-13 20:4{n}:42,502 - INFO - Loaded {1861 + 100 * n} {name} samples\n" for n, name in enumerate(("heytm", "unknown", "noise", "silence")))
         + "2026-01-13 20:43:27,410 - INFO - \n💡 Next steps:\n" + rows("2026-01-13 20:43:27,410 - INFO -   {n}. Review test results in JSON files", 1, 5), (None, FINE), WRONG),
    Case("ten-epochs-and-a-test", GITHUB + "Arman-Shaikh58/Machine_Learning", rows("Epoch {n}/10 - Loss: 0.1869, Val Acc: 93.75%", 1, 11) + "Test Accuracy: 81.25%\n", (10, FINE), WRONG),
    Case("nine-batches-of-each-epoch", GITHUB + "Aryan22nov/minor_proj",
         "\ufeffvenv\\Scripts\\python : WARNING: All log messages before absl::InitializeLog()\n" + "".join(f"Epoch {e}/50\n" + "".join(KERAS_ROW.format(n=n, last=9) for n in range(1, 10)) for e in range(1, 17))
         + "Epoch 16: ReduceLROnPlateau reducing learning rate to 0.0001250000059371814.\nEpoch 16: early stopping\nRestoring model weights from the end of the best epoch: 1.\n" + FRAME + "ZeroDivisionError: float division by zero\n",
         # Written down was 16, the epoch. Bars of Windows are read now, and the batch of some seconds tells as soon: arguable.
         (9, FINE), WRONG),
    Case("a-summary-of-layers-behind-epochs", GITHUB + "Aimery1990/badminton",
         "".join(f"Epoch {n}/50\n\r1/5 [=====>........................] - ETA: 0s - loss: 0.3354\r5/5 [==============================] - 0s 9ms/step - loss: 0.3354 - val_loss: 0.3777\n" for n in range(1, 51))
         + rows("Epoch {n}/40 | Train Loss=0.0114, Val Loss=0.0172 | Train Acc=1.0000, Val Acc=0.9831", 1, 31) + "Total params: 73,284\nTrainable params: 73,284\nNon-trainable params: 0\nTotal mult-adds (M): 0.04\n\n========== Training Complete ==========\n\n"
         "\nProcess finished with exit code 0\n", (30, FINE), WRONG),
)  # fmt: skip

MAKE = "libtool: warning: relinking 'lib/libmpifort.la'\n"

# Met while the code was changed, in files of repositories that other batches had drawn; not counted.
MET = (
    Case("an-epoch-s-first-batch-in-a-second-run", GITHUB + "BamLubi/Paddle-SIGN",
         "".join(f"2022-04-12 22:1{k}:18,932 - INFO - load model epoch {n}\n2022-04-12 22:1{k}:19,808 - INFO - epoch: {n}, batch_id: 0, AUC: 0.941981,ACC: 0.893779, avg_reader_cost: 0.00031 sec\n"
                 f"2022-04-12 22:1{k}:27,019 - INFO - epoch: {n} done, AUC: 0.942212,ACC: 0.893770, epoch time: 68.09 s\n" for k, last in ((1, 3), (2, 19)) for n in range(last)), (18, FINE), WRONG),
    Case("a-step-called-n", GITHUB + "kelsokitowski/SSTsafe", "".join(f" step n= {n:12d}  (t-t30)*bf=Nt=  0.100288{n}       bf =   1.0000000000000000       Pr=   1000.0000000000000     \n" for n in range(800, 3000, 200)), (2800, FINE), WRONG),
    Case("a-percentage-behind-steps", GITHUB + "mckfarm/snakemake_16S", "".join(f"Finished job {9 - n}.\n{n} of 12 steps ({8 * n}%) done\n" for n in range(1, 9)), (8, FINE), WRONG),
)  # fmt: skip
MET_CAUSES = (
    Case("a-slip-in-a-start-up-file", GITHUB + "bi-altgg/AFAI_vs_Haldane", "/home/a/.bashrc: line 13: s: command not found\nStarting job run1\nLauncher: Task 1 done. Exiting.\nLauncher: Done. Job exited without errors\nJob run1 complete\n", "", COST),
    Case("a-script-lacks-a-command", "a control, not a start-up file", "/w/run.sh: line 13: s: command not found\n", "command not found", COST),
    Case("a-script-lacks-a-command-and-goes-on", GITHUB + "seenry/mpi_profile", "./configure: line 14546: PAC_GET_SPECIAL_SYSTEM_INFO: command not found\n" + 90 * MAKE, "", COST),
    Case("an-allocator-at-the-end", GITHUB + "YuJiang01/n2nnmn", "I tensorflow/core/common_runtime/gpu/pool_allocator.cc:247] PoolAllocator: After 3724198 get requests, put_count=3724199 evicted_count=7000 and unsatisfied allocation rate=0.002\n", "", COST),
    Case("a-board-that-is-asked-badly", GITHUB + "17314796423/WS_DAN_SAC", "TensorBoard 2.2.0 at http://0.0.0.0:6006/ (Press CTRL+C to quit)\n10.0.0.1 - - [28/Nov/2020 03:04:05] code 400, message Bad request syntax ('GET')\n", "", COST),
)  # fmt: skip

FILE_OF_GEM = "Current file:     /scratch/a/GEM-parallel-coupling/gem_main.F90\n        function: grid1\n        line:     1699\nThis file was compiled: -ta=tesla:cc70\n"

# Seed 4272, the first fifteen of the 74 of causes_error_files.txt that are there and hold anything.
DRAWN_26 = (
    Case("two-jobs-are-cancelled", GITHUB + "Adronz/AI-baseline",
         "A.L.E: Arcade Learning Environment (version 0.8.1+53f58b7)\n[Powered by Stella]\n/w/atari_training.py:56: UserWarning: To copy construct from a tensor, it is recommended to use sourceTensor.clone().detach()\n"
         "  obs = torch.tensor(obs, dtype=torch.float32).permute(0, 3, 1, 2).to(device)\nslurmstepd: error: *** JOB 402694 ON gpu0037 CANCELLED AT 2024-11-15T22:22:25 ***\nslurmstepd: error: *** JOB 402690 ON gpu0037"
         " CANCELLED AT 2024-11-15T22:22:25 ***\n", "cancelled", COST),
    Case("fewer-processes-than-nodes", GITHUB + "buddhi1/TSP_Parallel",
         4 * "srun: Warning: can't run 2 processes on 8 nodes, setting nnodes to 2\n" + "slurmstepd: error: *** JOB 7441604 ON cder03 CANCELLED AT 2020-12-04T20:53:16 DUE TO TIME LIMIT ***\nslurmstepd: error: *** STEP 7441604.4 ON cder03"
         " CANCELLED AT 2020-12-04T20:53:16 DUE TO TIME LIMIT ***\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nsrun: got SIGCONT\nsrun: forcing job termination\nsrun: error: cder05: task 2: Terminated\n",
         "time limit", COST),
    Case("a-compiler-of-ptx-is-not-there", GITHUB + "Einstein-G/Denoising",
         "Warning: will use at least 188232 MB of memory.\n\n" + bar("", 92, 0, 30, 92) + "\n2020-08-18 11:18:59.770287: W tensorflow/stream_executor/cuda/redzone_allocator.cc:312] Not found: ./bin/ptxas not found\nRelying on driver to perform"
         " ptx compilation. This message will be only logged once.\n\nslurmstepd: error: *** JOB 56580271 ON pgpu03 CANCELLED AT 2020-08-20T10:43:31 DUE TO TIME LIMIT ***\n", "time limit", COST),
    Case("a-kernel-below-the-recommended", GITHUB + "lucyZihanZ/DPO_training",
         "../dpo.py:93: FutureWarning: `tokenizer` is deprecated and removed starting from version 0.16.0 for `DPOTrainer.__init__`. Use `processing_class` instead.\n  trainer = DPOTrainer(\nDetected kernel version 4.18.0, which is below"
         " the recommended minimum of 5.5.0; this can cause the process to hang. It is recommended to upgrade the kernel to the minimum version or higher.\n" + bar("", 100, *range(0, 101, 10)).replace("\r", "\n") + "\n", "", COST),
    Case("a-first-line-without-its-sign", GITHUB + "mysec000/deepocr", "./train.sh: 1: !/bin/sh: not found\nKilled\n", "host out of memory", COST),
    Case("thirty-trials", GITHUB + "gz2214/Text2Trade",
         "[I 2023-12-02 18:41:15,412] A new study created in memory with name: no-name-5023dafd-52d8-4e10-a917-c3fd267a8c15\n" + "".join(
             f"[I 2023-12-02 18:48:{n},423] Trial {n} finished with value: 0.6403228973348936 and parameters: {{'lookback': 40, 'lr': 9.99e-05, 'dropout_rate': 0.38}}. Best is trial 7 with value: 0.6216.\n" for n in range(10, 30)), "", COST),
    Case("large-values-of-tensors", GITHUB + "andyj10224/dlpno_ccsdt_q",
         "\x1b[38;2;255;255;255m\x1b[48;2;255;000;000mLarge value DETECTED!\x1b[0m\nName: K_vvvk\n    Type: In Core Tensor\n    Data Type: double\n\n" + "".join(
             f"    ({n},  0- 4):     19.93856466  1575.93370629  4173.20752306   153.46920911  -117.34958130 \n    ({n}, 15-18):  11807.36763322    27.53889643   -53.08547968 -31956.28952466 \n    \n" for n in range(10, 70)), "", COST),
    Case("a-file-of-an-accelerator", GITHUB + "cqhcolorado/test-case-cori-gpu-acc",
         4 * FILE_OF_GEM + "srun: error: cgpu01: tasks 1,3: Exited with exit code 1\nsrun: Terminating job step 2001941.1\nslurmstepd: error: *** STEP 2001941.1 ON cgpu01 CANCELLED AT 2021-06-15T10:05:43 ***\n"
         "srun: error: cgpu01: tasks 0,2,4-7: Exited with exit code 1\n", "rank died", COST),
    Case("threads-of-openmp", GITHUB + "LukeSurl/amf_regional",
         "OMP: Error #34: System unable to allocate necessary resources for OMP thread:\nOMP: System error #11: Resource temporarily unavailable\nOMP: Hint: Try decreasing the value of OMP_NUM_THREADS.\nforrtl: error (76): Abort trap signal\n"
         "Image              PC                Routine            Line        Source             \nlibc.so.6          0000003189632625  Unknown               Unknown  Unknown\n" + "".join(
             f"libiomp5.so        00007F787351{n:04X}  Unknown               Unknown  Unknown\n" for n in range(4096, 4100)) + "amf.run            0000000000403869  Unknown               Unknown  Unknown\n", "resources", COST),
    Case("a-recipe-for-deadlocks", GITHUB + "kerimoglutolga/openclip-mixtera",
         "2025-01-23 22:30:42.061 | INFO     | __main__:main:46 - Starting server, serving from directory /scratch/a/mixtera_server\n/usr/lib/python3.10/multiprocessing/popen_fork.py:66: RuntimeWarning: Using fork() can cause Polars to deadlock"
         " in the child process.\nIn addition, using fork() with Python in general is a recipe for mysterious\ndeadlocks and crashes.\n\nThe most likely reason you are seeing this error is because you are using the\nmultiprocessing module on"
         " Linux, which uses fork() by default. This will be\nfixed in Python 3.14. Until then, you want to use the \"spawn\" context instead.\n\nSee https://docs.pola.rs/user-guide/misc/multiprocessing/ for details.\n\n  self.pid = os.fork()\n",
         "", COST),
    Case("reports-of-a-profiler", GITHUB + "cqhcolorado/test-case-cori-gpu-omp-06212021",
         8 * "Collecting data...\n" + 8 * "Processing events...\n" + "".join(f'Exporting 1000 events: [{n}%]\n/tmp/nsys-report-1cab-e486.sqlite\nReport file moved to "/scratch/a/report{n}.qdrep"\nReport file moved to "/scratch/a/report{n}.sqlite"\n\n' for n in range(11, 17)),
         "", COST),
    Case("warnings-of-a-compiler-and-a-time", GITHUB + "vikasvijigiri/spin-1-2-TFIM-in-H2SQ-square-lattice-model",
         "/w/IT_QMC_H2SQ/ITobservables.cpp: In member function ‘void ITobservables::observables(ITlattice***, ITupdates&)’:\n/w/main.cpp:173:67: warning: ‘t1’ may be used uninitialized in this function [-Wmaybe-uninitialized]\n"
         "   std::cout << \"Total time taken by the process is about \" << (t2 - t1) / 60 << \" minutes approx\" << std::endl;\n" + 67 * " " + "^\n\nreal\t13m28.846s\nuser\t295m41.340s\nsys\t0m21.909s\n", "", COST),
    Case("a-letter-that-windows-lacks", GITHUB + "pythonchan8888/GBM",
         "C:\\w\\gbm.py:181: FutureWarning: The behavior of DataFrame concatenation with empty or all-NA entries is deprecated.\n  test_matches_df['ev_synth_away_ah'] = ev_away_ah_list\nTraceback (most recent call last):\n  File \"C:\\w\\gbm.py\","
         " line 3712, in <module>\n    \n  File \"C:\\Python312\\Lib\\encodings\\cp1252.py\", line 19, in encode\n    return codecs.charmap_encode(input,self.errors,encoding_table)[0]\n           ^^^^^^^^^^^^^^^^^^^^^^^^\n"
         "UnicodeEncodeError: 'charmap' codec can't encode character '\\u0148' in position 1659: character maps to <undefined>\n", "UnicodeEncodeError", COST),
    Case("an-allocation-that-a-process-dies-of", GITHUB + "glocalsaint/hpcnlp",
         "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n[hpb0205:09049] *** Process received signal ***\n[hpb0205:09049] Signal: Aborted (6)\n[hpb0205:09049] Signal code:  (-6)\n" + "".join(
             f"[hpb0205:09049] [ {n}] /shared/apps/gcc/4.9.3/lib64/libstdc++.so.6(+0x5d9{n}6)[0x2ab0ae01e996]\n" for n in range(10)) + "[hpb0205:09049] *** End of error message ***\n", "host out of memory", COST),
    Case("a-server-for-development", GITHUB + "itsharisudhan/adversarial-attack",
         "WARNING: This is a development server. Do not use it in a production deployment. Use a production WSGI server instead.\n * Running on all addresses (0.0.0.0)\n * Running on http://127.0.0.1:5000\nPress CTRL+C to quit\n", "", COST),
)  # fmt: skip

CSV_HEAD = "Episode,Interval_Solves,Cumulative_Solves,Success_Rate,Avg_Solve_Length,Alpha,Gamma,Epsilon,Steps_Per_Episode,Interval_Time\n"
LAND = "[2024-03-06 1{k}:59:41] - Land Cover Semantic Segmentation Train Logs - {{train.py:{line}}} - {level} - {said}\n"

# The next fifteen of the 77 that the program had not met, and that a training began.
DRAWN_24 = (
    Case("one-epoch-and-its-validation-on-windows", GITHUB + "AryanSh33/Models-Deepfake-Hybrids",
         "\ufeff[DATA] Dataset DeepDetect-2025: 90407 images\n  Epoch 01/10  |  LR: 1.20e-05\n" + "".join(f"\r  Train:  {n // 28}%|####      | {n}/2703 [11:53<00:00,  4.24it/s, loss=0.3117]" for n in (*range(0, 2703, 9), 2703)) + "\n"
         + "".join(f"\r  Val  :  {n // 4}%|####      | {n}/338 [01:53<00:00,  8.08it/s]" + ("\n[INFO] Device: cuda\n" if n % 40 == 0 else "") for n in (*range(0, 338, 5), 338)) + "\n" + FRAME
         + "UnicodeEncodeError: 'charmap' codec can't encode character '\\u2192' in \nposition 30: character maps to <undefined>\n",
         (2703, FINE), WRONG),
    Case("minutes-behind-a-step", GITHUB + "3ZadeSSG/Automatic-Image-Captioning",
         "".join(f"Epoch [2/2], Step [{n}/12942], Loss: 2.0109, Perplexity: 7.4704, Time (mins): {n * 0.0119:.3f}\n" for n in range(1, 12943, 9)), (12934, FINE), WRONG),
    Case("every-hundredth-step-of-sixteen-epochs", GITHUB + "AndreiMoraru123/ContextCollector",
         "".join(f"Epoch [{e}/100], Step [{n}/26898], Loss: 2.4399 \n" for e in (14, 15, 16) for n in range(100, 26900 if e < 16 else 4100, 100)), (4000, FINE), WRONG),
    Case("a-screen-below-its-batches", GITHUB + "96966/Transformer-Pytorch",
         "".join("".join(f"Epoch:  {e} | Batch: {n:5d}/ 1330 | LR: 2.18e-04 |Loss: 4.3712 | Time: 382.5s\n" for n in range(10, 1330, 10)) + f"Epoch {e} 完成 | 训练损失: 4.3711 | 验证损失: 5.9969 | 时间: 385.5s\n" for e in (28, 29, 30))
         + 5 * "root@autodl-container-b23f4d8ce8:~/Transformer-Pytorch# tmux capture-pane -p -S -500000 > training_log.txt\n", (1320, FINE), WRONG),
    Case("paths-of-a-model-in-spanish", GITHUB + "HordonezB/MGEHOB_20240127",
         "2024-02-18 09:34:08,494 - DEBUG - Ruta del archivo de entrada para entrenamiento: d:\\a\\in.csv\n2024-02-18 09:34:08,494 - DEBUG - Ruta del archivo de salida del modelo entrenado: d:\\a\\m.pkl\n", (None, FINE), WRONG),
    Case("settings-of-steps-alone", GITHUB + "1eftone/EstraNet", "TRAIN_STEPS=400000\nWARMUP_STEPS=2000\nITERATIONS=5000\n\nTRAIN_STEPS=500000\nWARMUP_STEPS=5000\nITERATIONS=5000\nSAVE_STEPS=10000\nPOOL_SIZE=4\nD_KERNEL_MAP=512\nBETA_HAT_2=225\n",
         (None, FINE), WRONG),
    Case("epoch-runners-that-begin-again", GITHUB + "Kaushik200030/Image-Segmentation-Pytorch-Metal",
         "".join(LAND.format(k=k, line=85, level="INFO", said="Divided images into patches successfully!") + LAND.format(k=k, line=140, level="INFO", said="Built the model successfully!")
                 + (LAND.format(k=k, line=214, level="ERROR", said="Failed to initialize epoch runners!") if k < 4 else LAND.format(k=k, line=215, level="INFO", said="Initialized epoch runners!")) for k in range(9)), (None, FINE), WRONG),
    Case("epochs-and-losses-below-their-names", GITHUB + "Abhinav0710rajput/Normalising_Flows_RE", "Epoch\tLoss\n" + "".join(f"{n}\t{7 + n * 37 % 90}.44\n" for n in range(50)), (49, FINE), WRONG),
    Case("a-pipeline-of-one-model", GITHUB + "7poo/my-pfio", "Training model (Pipeline)...\nSaved student_credit_model.pkl\nGenerating latest state for all students...\nSaved latest_student_state.pkl\nDONE\n", (None, FINE), WRONG),
    Case("episodes-of-billions-in-a-table", GITHUB + "Amckins/AdvDataAnalyitics_Project",
         CSV_HEAD + "".join(f"{n}00000,{35413 + n % 9000},{3158420 + 40000 * (n - 27000)},0.3541,23.37,0.100,0.990,{0.4852 - n % 9 / 100:.4f},32,48.60\n" for n in range(27000, 27653)), (2765200000, FINE), WRONG),
    Case("four-networks-one-after-another", GITHUB + "Allegra42/ki-keras-belgian-traffic-sign",
         "".join(f"###################################  CNN{k}  #########################################\n" + "".join(
             f"Epoch {e}/50\n" + "".join(f"{n}/285 [======>.......................] - ETA: 0s - loss: 0.2933 - acc: 0.9039\r" for n in range(4, 285, 4))
             + "285/285 [==============================] - 6s 22ms/step - loss: 0.2936 - acc: 0.9037 - val_loss: 0.2526\n" for e in range(47, 51))
             + 'Model: "sequential"\nTotal params: 99,661\nTrainable params: 99,661\nNon-trainable params: 0\n' + "_" * 65 + "\n" for k in (1, 2, 3, 4)), (285, FINE), WRONG),
    Case("two-hundred-time-steps-are-loaded", GITHUB + "22NM1A1235/traffic-prediction", "Loading training data from CSVs...\nLoaded 200 timesteps\nTraining with 1891 sensors (Bengaluru + Andhra Pradesh)\n" + FRAME
         + "UnicodeEncodeError: 'charmap' codec can't encode character '\\u2713' in \nposition 0: character maps to <undefined>\n", (None, FINE), WRONG),
    Case("accuracies-below-each-epoch", GITHUB + "120205690/LLMSystems-Minitorch-Framework",
         rows("Epoch {n}, loss 0.3271372318267822, train accuracy: 80.44%\nValidation accuracy: 65.00%\nBest Valid accuracy: 77.00%", 1, 251), (250, FINE), WRONG),
    Case("a-batch-beyond-its-total", GITHUB + "AarZheng/watermilfoil-classifier",
         "".join(f"  Batch {n}/28 | Loss: 0.{7215 - 37 * n} | Acc: 0.7812 | F1: 0.4386\n" for n in range(1, 28)) + "  Batch 173/28 | Loss: 6.9289 | Acc: 0.2000 | F1: 0.1667\n", (173, FINE), WRONG),
    Case("an-epoch-told-three-times", GITHUB + "AIHHU/PaddleCIFAR10",
         "aistudio@jupyter-722476:~$ python main.py\n" + "".join(3 * f"epoch: {n},  loss is: 0.258656407892704, acc is: 0.9146197110414505\n" + "Now continue training……\nNew model has been saved!\n" for n in range(8)), (7, FINE), WRONG),
)  # fmt: skip

DTU = "Loaded dependency [python3/3.8.11]: gcc/10.3.0-binutils-2.36.1\nLoaded module: python3/3.8.11\n\nLoading python3/3.8.11\n  Loading requirement: gcc/10.3.0-binutils-2.36.1\nLoaded module: cuda/11.3\n"
LMOD = 'Lmod has detected the following error: The following module(s) are unknown:\n"{name}"\n\nPlease check the spelling or version number. Also try "module spider ..."\n  $ module --ignore-cache load "{name}"\n\nAlso make sure that all modulefiles written in TCL start with the string\n#%Module\n\n\n\n'

# Seed 4273, the first fifteen of the 94 of causes_more_errors.txt that are there and hold anything.
DRAWN_27 = (
    Case("an-argument-of-yaml", GITHUB + "NilsBochow/lama_reconstruction",
         'Traceback (most recent call last):\n  File "/e/dask/config.py", line 168, in collect_yaml\n    data = yaml.load(f.read()) or {}\nTypeError: load() missing 1 required positional argument: \'Loader\'\n', "load() missing 1", COST),
    Case("iterations-without-a-total", GITHUB + "hevra01/readout_guidance", "".join(f"\rReadout Guidance Loss N/A: : {n}it [01:40,  2.38it/s]" for n in range(60, 101)) + "\n", "", COST),
    Case("conda-was-not-initialised-and-all-is-well", GITHUB + "Joshua-Elms/E2S_tp06_bug_MWE",
         "\nCondaError: Run 'conda init' before 'conda deactivate'\n\n" + 40 * bar("Running inference: ", 2, 0, 1, 2).replace("]\r", "]\x1b[A\n") + "\n", "", COST),
    Case("four-runs-in-one-file", GITHUB + "oliversvane/Classification-With-Laplace-Approximation",
         "".join(DTU + FRAME + end for end in ("RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same\n",
                                               "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n", "NameError: name 'labels_oneh' is not defined\n")), "labels_oneh", COST),
    Case("two-modules-that-nobody-knows", GITHUB + "firoozye/trans4mom", LMOD.format(name="python/3.10") + LMOD.format(name="cuda/11.8"), "program that did not start", COST),
    Case("columns-before-the-memory-is-full", GITHUB + "MSSRPRAD/Cuffless-Blood-Pressure",
         "  print(subset.columns)\nslurmstepd: error: Detected 1 oom_kill event in StepId=87754.0. Some of the step tasks have been OOM Killed.\nsrun: error: gpunode4: task 0: Out Of Memory\n", "host out of memory", COST),
    Case("a-table-that-is-killed", GITHUB + "peibols/Moliere",
         "/var/spool/slurmd/job16945615/slurm_script: line 10: 3422032 Killed                  ./table_test\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=16945615.batch. Some of your processes may have been killed by the cgroup"
         " out-of-memory handler.\n", "host out of memory", COST),
    Case("cancelled-by-a-signal", GITHUB + "richardhcli/transkun-fork-aim-vip", "[2026-03-30T14:19:32.402] error: *** JOB 10491425 ON gilbreth-k008 CANCELLED AT 2026-03-30T14:19:32 DUE to SIGNAL Terminated ***\n", "cancelled", COST),
    Case("what-a-processor-can-do", GITHUB + "CMWENLIU/CNN-text-multi-class-classification",
         "nohup: ignoring input\n2018-01-29 17:47:52.814248: I tensorflow/core/platform/cpu_feature_guard.cc:137] Your CPU supports instructions that this TensorFlow binary was not compiled to use: SSE4.1 SSE4.2 AVX AVX2 FMA\n", "", COST),
    Case("libraries-that-are-linked-again", GITHUB + "seenry/mpi_profile",
         20 * "libtool: warning: relinking 'lib/libmpifort.la'\nicpx: warning: argument unused during compilation: '-pthread' [-Wunused-command-line-argument]\n", "", COST),
    Case("a-test-job-is-finished", GITHUB + "ititiu20201/medical-chatbot", rows("INFO:__main__:Epoch {n} - Train loss: 0.1312", 1, 11) + "INFO:__main__:Training completed successfully!\nTest job\nJob finished\n", "", COST),
    Case("fifty-slow-steps", GITHUB + "RenatoEsposito1999/A-CLIP-based-Approach-to-Text-to-Image-Retrieval-in-Marine-Monitoring", bar("", 50, *range(51), rate="51.43s/it").replace("\r", "\n") + "\n", "", COST),
    Case("weights-that-are-not-loaded", GITHUB + "bahulkark/kerasyolo3",
         "".join(f"/e/keras/engine/topology.py:3462: UserWarning: Skipping loading of weights for layer batch_normalization_{n} due to mismatch in shape ((512,) vs (256,)).\n  weight_values[i].shape))\n" for n in range(20, 52)), "", COST),
    Case("a-dimension-that-is-implicit", GITHUB + "qingYzhang/AaD_SFDA",
         "  warnings.warn(_create_warning_msg(\n" + 9 * "/w/tar_adaptation.py:158: UserWarning: Implicit dimension choice for softmax has been deprecated. Change the call to include dim=X as an argument.\n  softmax_out = nn.Softmax()(outputs)\n", "", COST),
    Case("an-array-of-289-gib", GITHUB + "sydneyleggio/astrometry-toy-model",
         FRAME + "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 289. GiB for an array with shape (38748, 1000, 1000) and data type float64\n", "host out of memory", COST),
)  # fmt: skip


@each(*MET, *DRAWN_23, *DRAWN_24)
def test_the_number_and_the_loss_of_a_file_of_the_seventh_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)


@each(*MET_CAUSES, *DRAWN_26, *DRAWN_27)
def test_the_cause_in_a_file_of_errors(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
