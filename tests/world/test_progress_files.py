"""Progress and NaN in whole log files of public repositories; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss, bar
from tests.world.test_progress_drawn import FINE, GITHUB, WRONG, rows

SHADOW = "2025-11-19 11:34:{s} - ShadowDet - INFO - [batch {n}/152, epoch {e}/15]: loss_rmse:0.0447605 loss_inv:0.0058838 loss_var:0.0264025 loss_det:0.0366646\n"
TEXT_TRAINER = "2025-10-20 03:{s} - src.training.train - INFO - "

# Seed 4241, the first fifteen of the 96 repositories of progress_files.txt whose file is the log of a training.
DRAWN_18 = (
    Case("steps-in-brackets-above-their-measures", GITHUB + "AntonioLopardo/OLMo",
         "W1212 11:03:17.693000 9724 torch/distributed/run.py:803] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n" + rows(
             "2025-12-12 12:11:17.917\tquick-rain-fin-03:0\tolmo.train:979\tINFO\t[step={n}/15000,epoch=0]\n    optim/total_grad_norm=0.2775\n    train/CrossEntropyLoss=3.031\n    train/Perplexity=20.73\n"
             "    throughput/total_tokens=2,116,026,368\n    throughput/total_training_Gflops=19,220,480,301\n    throughput/device/tokens_per_second=67,759\n    throughput/device/batches_per_second=0.2585", 1000, 1011)
         + "W1212 12:11:31.725000 9724 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 9868 closing signal SIGTERM\n", (1010, FINE), WRONG),
    Case("a-training-whose-batches-all-fail", GITHUB + "Aaryansm11/CAPSTONE-100-ALTERNATE",
         "".join(f"2025-11-11 11:5{n}:50,143 - INFO - Loading 133,157 segments into RAM...\n2025-11-11 11:5{n}:50,143 - INFO - Starting conservative training for 25 epochs\n" + 2 *
                 f"2025-11-11 11:5{n}:55,187 - WARNING - Training batch error: full() received an invalid combination of arguments - got (tuple, str, device=torch.device, dtype=torch.dtype), but expected one of:\n"
                 for n in range(6)), (None, FINE), WRONG),
    Case("models-that-tell-no-steps", GITHUB + "18684031838/WBSID",
         "2025-04-11 10:03:01,258 - __main__ - INFO - Training random_forest model...\n" + "".join(
             f"2025-04-11 10:{m:02d}:01,300 - __main__ - INFO - Loaded {n}/31 batches\n" for m in range(3, 7) for n in (10, 20, 30))
         + "2025-04-11 10:39:46,797 - __main__ - INFO - Extracting features\n2025-04-11 10:39:47,390 - __main__ - INFO - Semantic features shape: (30919, 1024)\n"
         "2025-04-11 10:39:48,053 - __main__ - INFO - Training random_forest model\n", (None, FINE), WRONG),
    Case("a-run-that-only-its-tracker-tells", GITHUB + "Jay-LJH/LMAPF",
         "2024-12-16 19:04:12,622\tINFO worker.py:1807 -- Started a local Ray instance. View the dashboard at \x1b[1m\x1b[32mhttp://127.0.0.1:8265 \x1b[39m\x1b[22m\n"
         "wandb: Tracking run with wandb version 0.13.4\nwandb: Run data is saved locally in /home/a/LMAPF/wandb/run-20241216_190413-lafknar9\nwandb: Syncing run curious-dust-34\n", (None, FINE), WRONG),
    Case("an-evaluation-of-each-epoch-in-one-word-more", GITHUB + "Kabir5296/CSTA-CustomImplementation",
         "".join(f"Finetuning starting on: 10/02/2025, 0{run}:05:10\n\n\nINFO:root:{'-' * 50}\nINFO:root:total_blocks : 12\nINFO:root:total_params : 55990141\n" + rows(
             "INFO:root:Epoch {n} - Average Loss: 3.5832, Average Accuracy: 0.6881, Samples: 1013\nINFO:root:Evaluation Epoch {n} - Average Loss: 3.7247, Average Accuracy: 0.5213, Samples: 211", 0, last)
             for run, last in ((0, 9), (1, 14), (4, 24))), (23, FINE), WRONG),
    Case("a-bar-of-an-hour-around-a-bar", GITHUB + "DeerEyre/bert-qa",
         "nohup: ignoring input\ndevice =  cpu\n" + "".join(
             "".join(bar("Iteration: ", 498, n, rate="24.76s/it") + "\x1b[A args.device = 1 cpu\n" for n in range(400, 499, 7)) + bar("Epoch: ", 5, e, rate="12833.22s/it") + " args.device = 1 cpu\n" for e in (1, 2, 3)),
         (498, FINE), WRONG),
    Case("settings-of-a-run-that-has-not-begun", GITHUB + "DengYangyong/medical_entity_recognize",
         "".join(f"2020-05-27 08:0{n}:21,427 - logger.py - print_config - INFO - max_epoch      :\t50\n2020-05-27 08:0{n}:21,427 - logger.py - print_config - INFO - steps_check    :\t100\n"
                 f"2020-05-27 08:0{n}:29,427 - data_utils.py - char_mapping - INFO - Found 2615 unique words (4451527 in total)\n" for n in range(2, 9)), (None, FINE), WRONG),
    Case("losses-of-an-epoch-between-bars", GITHUB + "BVC2013/pytorchshit",
         rows("2025-06-22 20:22:{n},372 INFO: Epoch {n}: Train Loss 0.962032 | Val Loss 0.969226 | LR 1.25e-05", 10, 29)
         + "2025-06-22 20:23:06,138 INFO: [EARLY STOP] No improvement, stopping training.\n2025-06-22 20:23:07,323 INFO: [PLOT] Saved prediction vs. true plots for first 5 output channels.\n", (28, FINE), WRONG),
    Case("classifiers-one-after-another", GITHUB + "MuzahidulIslam1/Mental_Health_Project",
         "".join(f"2025-10-07 12:0{n}:22 | INFO     | train: Splitting data...\n" + "".join(
             f"2025-10-07 12:0{n}:25 | INFO     | train: {model} | accuracy = 0.8{k}6\n" for k, model in enumerate(("Logistic Regression", "Random Forest", "Gradient Boosting", "SVM", "KNN"))) for n in range(3)),
         (None, FINE), WRONG),
    Case("four-epochs-of-four-hundred", GITHUB + "Brown-Q/TODEAR",
         "2023-08-16 20:20:12 INFO     {'cuda': True, 'time_span': 24, 'batch_size': 512, 'num_ent': 7128, 'num_rel': 230}\n2023-08-16 20:20:20 INFO     Start Training......\n"
         + rows("2023-08-16 20:20:32 INFO     Epoch {n}/400 Loss: 0.0390627458691597, reward: 0.0961790457367897", 0, 4), (3, FINE), WRONG),
    Case("a-beginning-and-an-end-of-an-epoch", GITHUB + "Hongbo-huayra/NASM_Neural_Anisotropic_Surface_Meshing",
         "2024-11-04 18:25:37.117 | INFO     | __main__:<module>:30 - New Experiment\n2024-11-04 18:25:37.348 | INFO     | __main__:<module>:70 - \n==>Epoch 0, gpu = 2, lr = 0.01 ==>\n\n"
         "2024-11-04 18:29:42.940 | INFO     | __main__:<module>:133 - \n==>End of epoch 0, loss 3486.5028408169746 ==>\n2024-11-04 18:29:43.014 | INFO     | __main__:<module>:70 - \n"
         "==>Epoch 1, gpu = 2, lr = 0.01 ==>\n\n", (None, FINE), WRONG),
    Case("scores-of-a-test-between-batches", GITHUB + "IMU-Group/FGSD",
         "".join("".join(SHADOW.format(s=f"{n % 60:02d},073", n=n, e=e) for n in range(2 + 2 * (e % 5), 153, 10)) + "2025-11-19 11:34:22,249 - ShadowDet - INFO - Scores:\n" + "=" * 47
                 + "\n\tFSD_test.pos_err:1.6567766666412354\n\tFSD_test.acc:0.9857149720191956\n" + "=" * 47 + "\n" for e in (12, 13, 14, 15)) + "2025-11-19 11:35:38,491 - ShadowDet - INFO - Best BER: 1.5135 at epoch 11\n",
         (152, FINE), WRONG),
    Case("empty-lines-between-the-rows-of-a-file", GITHUB + "BananaLee/octa-mil-classifier",
         "epoch,accuracy,auc,f1_metric,loss,precision,recall,val_accuracy,val_auc,val_f1_metric,val_loss\n\n" + rows("{n},0.7098039388656616,0.7333511114120483,0.1328124850988388,0.5264906287193298,0.45945945382118225,"
         "0.23943662643432617,0.8095238208770752,0.5,0.0,2.0318219661712646\n", 0, 9), (8, FINE), WRONG),
    Case("every-twentieth-epoch", GITHUB + "A-SHOJAEI/adaptive-gating-network-for-heterogeneous-tabular-ensembles",
         "".join(f"2026-02-1{day} 15:03:03,125 - gating.models.model - INFO - Training base model {n}: X\n" for day in (0, 3) for n in range(4)) + "".join(
             f"2026-02-1{day} 15:03:03,125 - gating.models.model - INFO - Training gating network\n" + rows(
                 "2026-02-20 23:28:50,462 - gating.models.components - INFO - Epoch {n}/200: train_loss=0.5026, val_loss=0.4413, val_acc=0.8400", 20, last, 20)
             + f"2026-02-20 23:28:56,424 - gating.models.components - INFO - Early stopping at epoch {last - 11}\n2026-02-20 23:28:56,763 - gating.trainer - INFO - Checkpoint saved to checkpoints/best_model.pkl\n"
             for day, last in ((0, 180), (3, 140), (9, 100))), (80, FINE), WRONG),
    Case("two-trainings-at-first-in-one-log", GITHUB + "BlackPool25/AI-Detector-Text",
         "".join(TEXT_TRAINER.format(s=f"{n:02d}:43,395") + f"Step {100 * n + 100}, Loss: 0.0514\n" + TEXT_TRAINER.format(s=f"{n:02d}:44,395") + f"Step {100 * n}, Loss: 0.0515\n" for n in range(1, 5))
         + "".join(TEXT_TRAINER.format(s=f"{n % 60:02d}:50,000") + f"Step {100 * n}, Loss: 0.0497\n" for n in range(1, 154)) + TEXT_TRAINER.format(s="29:31,760") + "Epoch 5/5 - Train Loss: 0.0497, Train F1: 0.9999\n"
         + TEXT_TRAINER.format(s="34:48,160") + "Checkpoint saved: outputs/a/checkpoints/checkpoint_step_15310.safetensors\n" + TEXT_TRAINER.format(s="34:49,889")
         + "Removed old checkpoint: outputs/a/checkpoints/checkpoint_step_12248.safetensors\n", (15300, FINE), WRONG),
)  # fmt: skip

# The second fifteen of the 96.
DRAWN_19 = (
    Case("a-ruler-that-holds-its-epoch", GITHUB + "ManayPorwal-code/T2ICount-Enhancing-Cross-modal-Understanding-for-Zero-Shot-Counting",
         "04-06 21:48:08, content:r-0.3-5e-5-5e-5\n04-06 21:48:08, seed:-1\n04-06 21:48:08, crop_size:384\n" + "".join(
             f"04-07 11:22:59, {'-' * 50}Epoch:{n}/299{'-' * 50}\n" + (f"04-07 11:34:10, Epoch {n} Train, reg:0.1185, RRC_stage1:0.1262, RRC_stage2:0.0925, mae:6.11, mse:26.38, Cost: 670.1 sec \n"
             f"04-07 11:37:38, Epoch {n} Val, MAE: 15.67, MSE: 65.43 Cost 208.2 sec\n" if n < 105 else "") for n in range(93, 106)), (105, FINE), WRONG),
    Case("steps-with-an-epoch-now-and-then", GITHUB + "A-SHOJAEI/multi-objective-preference-diffusion-for-controlled-text-to-image",
         "".join(f"2026-02-13 15:47:57,350 - diffusion.training.trainer - INFO - Step {n}: loss=0.0013, diffusion=0.0001, preference=0.0118\n" + (
             f"2026-02-13 15:48:31,790 - diffusion.training.trainer - INFO - Epoch {n // 313}/50: train_loss=0.0011, val_loss=0.0011, lr=0.000001\n"
             f"2026-02-13 15:48:33,022 - diffusion.training.trainer - INFO - Checkpoint saved to checkpoints/checkpoint_epoch_{n // 313}.pt\n" if n % 300 > 200 else "") for n in range(13037, 15638, 100))
         + "2026-02-13 15:48:34,307 - __main__ - INFO - Training completed successfully!\n", (15637, FINE), WRONG),
    Case("a-prediction-behind-the-training", GITHUB + "Brokenwind/BertSimilarity",
         "nohup: ignoring input\n" + "".join(f"INFO:tensorflow:global_step/sec: 0.692354\nINFO:tensorflow:loss = 0.11258875, step = {n} (144.478 sec)\n" + (
             f"INFO:tensorflow:Saving checkpoints for {n + 69} into /home/a/tmp/result/model.ckpt.\n" if n % 400 == 100 else "") for n in range(4000, 5401, 100))
         + "INFO:tensorflow:Loss for final step: 0.0025181356.\nINFO:tensorflow:Writing example 0 of 32477\nINFO:tensorflow:*** Example ***\nINFO:tensorflow:guid: test-0\n"
         "INFO:tensorflow:Writing example 10000 of 32477\nINFO:tensorflow:Writing example 20000 of 32477\nINFO:tensorflow:Saving dict for global step 5468: eval_accuracy = 0.8500477, eval_loss = 0.7216634,"
         " global_step = 5468, loss = 0.7218847\nINFO:tensorflow:  global_step = 5468\nINFO:tensorflow:  loss = 0.7218847\n", (5400, FINE), WRONG),
    Case("epochs-without-an-improvement", GITHUB + "Al-Fahrezi/indog2p",
         "Training started on cpu...\n" + "".join(f"Epoch {n:02d} | Train Loss: 0.0102 | Val Loss: 0.0517 | Val PER: 0.0141 | Time: 5.7s\n  >> {'Model saved.' if n < 98 else f'No improvement ({n - 97} epochs).'}\n"
                                                 for n in range(1, 101)) + "Training selesai.\n", (100, FINE), WRONG),
    Case("an-episode-in-brackets", GITHUB + "Asist525/Real_learning", "".join(f"[EP {n}] len={44 + 31 * n % 300} R=-{958 - 7 * n % 300}.5 danger={n % 8} blocked=0\n" for n in range(1, 32)), (31, FINE), WRONG),
    Case("starts-and-nothing-else", GITHUB + "IDASooinKim/Feature-refinement-Classification-Head_JUCS_2026",
         "".join(f"[2026-01-21 22:5{n}:06] [INFO] Starting training...\n\n[2026-01-21 22:5{n}:06] [INFO] Start fitting model...\n\n" for n in range(8)), (None, FINE), WRONG),
    Case("a-file-of-keras-with-empty-lines", GITHUB + "1uf3n/Galaxy-Morphology-and-Simulation-Bias-Analysis-Research",
         "epoch,accuracy,loss,val_accuracy,val_loss\n\n" + rows("{n},1.0,0.0007473225705325603,0.734375,0.5844348669052124\n", 0, 10), (9, FINE), WRONG),
    Case("a-first-epoch-that-is-only-announced", GITHUB + "2A0K0A4/SPD",
         "".join(f"2026-03-30 22:5{n}:56,074 [INFO] Epochs     : 10\n2026-03-30 22:5{n}:56,074 [INFO] Batch size : 8  (grad_accum x4)\n2026-03-30 22:5{n}:56,606 [INFO] HTTP Request: HEAD"
                 " https://huggingface.co/openai/whisper-small/resolve/main/processor_config.json \"HTTP/1.1 404 Not Found\"\n" for n in (4, 5, 8, 9))
         + f"2026-03-30 23:00:09,330 [WARNING] DEBUG MODE: truncating loaders to first 5 batches each\n2026-03-30 23:00:09,332 [INFO] \n{'─' * 50}\n2026-03-30 23:00:09,332 [INFO] EPOCH 1/2\n"
         f"2026-03-30 23:00:09,332 [INFO] {'─' * 50}\n", (None, FINE), WRONG),
    Case("many-columns-with-empty-lines", GITHUB + "4hmetcakmak/BraTS2020CapstoneProject",
         "epoch,accuracy,dice_coef,loss,lr,mean_io_u_5,precision,val_accuracy,val_dice_coef,val_loss\n\n" + rows(
             "{n},0.990077018737793,0.4510401785373688,0.02580178715288639,1e-06,0.8222532272338867,0.9945014715194702,0.9884244799613953,0.4435175359249115,0.034485723823308945\n", 0, 24), (23, FINE), WRONG),
    Case("ten-epochs-of-keras", GITHUB + "AKBoles/Voice-Identification",
         "epoch,acc,loss,val_acc,val_loss\n\n" + rows("{n},1.0,0.0096984864720566707,1.0,0.13121709227561951\n", 0, 10), (9, FINE), WRONG),
    Case("a-tick-before-each-epoch", GITHUB + "AhmedElshiekh/zumar",
         " 123 | ...s(&[safetensors_path.clone()], candle_core::DType...\n     |                        ^^^^^^^^\n     |\nhelp: remove this redundant call\n\n   Epochs: 100\n   Samples: 300\n"
         "   📊 Layers: 60, Hidden: 1024, Vocab: 50257\n" + "".join(f"\n  ✅ Ep {n}: Loss 0.0000 | {203 * n}.7s\n" for n in range(1, 17)), (16, FINE), WRONG),
    Case("a-step-of-a-total-behind-an-epoch", GITHUB + "AlainOUYANG/LSTNet_PyTorch_Pollution",
         "2021-11-25 00:05:49.052091\n" + "".join(f"Epoch {e}/2, step {n}/542, loss = 0.0007\n" for e in (1, 2) for n in range(10, 542, 10)) + "RMSE 30.9601, MAPE 0.3924\n", (540, FINE), WRONG),
    Case("a-measure-glued-to-the-next", GITHUB + "BZX667/Hyper_CDR",
         "".join(f"INFO:__main__:Epoch: {n:04d} avg_loss_tgt: 31.020 origin_loss_tgt: 29.564 cluster_loss_tgt: 1.405 trans_loss_tgt: 0.051 pos_tgt: 4273.386 neg_tgt: 5305.980 time: 12.6041s\n" + (
             "INFO:__main__:0.0479ndcg_tgt:0.0576ndcg_tgt:0.0702ndcg_tgt:0.0903\nINFO:__main__:best_eval_tgt:[0.07443684552299121, 0.11204167721571028]\n" if n % 10 == 9 else "") for n in range(90, 126)), (125, FINE), WRONG),
    Case("an-f1-score-above-one", GITHUB + "BrandtKaufmann/CatClassifier",
         "epoch,F1_score,accuracy,loss,val_F1_score,val_accuracy,val_loss\n\n" + rows("{n},0.9025996327400208,0.9973753094673157,0.2605608403682709,1.0106405019760132,0.8473684191703796,0.739019513130188\n", 20, 48),
         (47, FINE), WRONG),
    Case("boxes-of-stable-baselines", GITHUB + "FlashDW/TrafficLightRL",
         "2025-11-10 11:51:47.990698: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on.\n" + "".join(
             f"{'-' * 40}\n| rollout/                |            |\n|    ep_rew_mean          | -6.36e+03  |\n| time/                   |            |\n|    fps                  | 671        |\n"
             f"|    iterations           | {n}       |\n|    time_elapsed         | {6 * n}      |\n|    total_timesteps      | {4192 * n}   |\n| train/                  |            |\n"
             f"|    loss                 | -0.0486    |\n|    n_updates            | {10 * n - 10}      |\n{'-' * 40}\n" for n in range(3560, 3580)) + "Training complete!\n", (15003168, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_18, *DRAWN_19)
def test_the_number_and_the_loss_of_a_log_file(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
