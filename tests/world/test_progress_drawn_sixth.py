"""Progress and NaN in logs of a sixth list of threads; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_number_and_loss
from tests.world.test_progress_drawn import FINE, GITHUB, NAN, WRONG, rows

# Seed 4210, two batches of the 61 sources of progress_sixth.txt.
DRAWN_16 = (
    Case("a-bar-of-epochs", GITHUB + "Accenture/AmpliGraph/issues/192",
         "".join(f"\rAverage Loss: 122.950927:  {10 * n}%|█         | {n}/10 [00:21<03:15, 21.75s/epoch]" for n in range(9)) + "\r", (8, FINE), WRONG),
    Case("time-steps-of-a-fire", GITHUB + "firemodels/fds/issues/724",
         "".join(f" Time Step: {n},    Simulation Time:   {1759.46 + n / 10000:.2f} s\n" for n in range(606000, 607200, 100)), (607100, FINE), WRONG),
    Case("a-test-loss-every-fifth-epoch", GITHUB + "broadinstitute/CellBender/issues/335",
         "".join(f"cellbender:remove-background: [epoch {n:03d}]  average training loss: 3804.2374\n"
                 + (f"cellbender:remove-background: [epoch {n:03d}] average test loss: 3743.2818\n" if n % 5 == 0 else "") for n in range(42, 57)), (56, FINE), WRONG),
    Case("generations-with-pairs-in-brackets", GITHUB + "manuel-calzolari/sklearn-genetic/issues/4",
         "Selecting features with genetic algorithm.\ngen\tnevals\tavg                        \tstd                    \tmin                        \tmax                        \n"
         + "".join(f"{n:<3}\t{50 if n == 0 else 24 + n * 7 % 15:<6}\t[  0.62561904 225.48      ]\t[0.08697638 8.84135736]\t[  0.52441945 207.        ]\t[  0.80103929 249.        ]\n"
                   for n in range(12)), (11, FINE), WRONG),
    Case("accuracies-below-an-epoch", GITHUB + "LeeJunHyun/Image_Segmentation/issues/45",
         rows("Epoch [{n}/100], Loss: 175.5711, \n[Training] Acc: 0.9611, SE: 0.9026, SP: 0.9763, PC: 0.8965, F1: 0.8827, JS: 0.8076, DC: 0.8827\n[Validation] Acc: 0.8671, SE: 0.4905, SP: 0.9912, PC:"
              " 0.7205, F1: 0.5126, JS: 0.4334, DC: 0.5126", 26, 38), (37, FINE), WRONG),
    Case("a-batch-glued-to-its-epoch", GITHUB + "MichalBusta/E2E-MLT/issues/53",
         "".join(f"epoch {n // 5000}[{n}], loss: {'nan' if n > 4000 else '55.214'}, lr: 0.00010 \n" for n in range(0, 9000, 500)), (8500, NAN), WRONG),
    Case("zeros-before-a-step", GITHUB + "autonomousvision/unimatch/issues/50",
         "".join(f"step: {n:06d}     epe: {3200 / n:.3f}\n" for n in range(100, 2100, 100)), (2000, FINE), WRONG),
    Case("an-iteration-behind-its-samples", GITHUB + "MuggleWang/CosFace_pytorch/issues/14",
         "".join(f"2019-09-13 01:17:48 Train Epoch: 28 [{51200 * n}/491542 ({10 * n}%)]{25920 + 100 * n}, Loss: 3.872343, Elapsed time: 154.7083s(100 iters) Margin: 0.4000, Scale: 30.00\n"
                 for n in range(1, 10)), (460800, FINE), WRONG),
    Case("a-bar-whose-epoch-grows", GITHUB + "haniffalab/skin_fibroblast_atlas/issues/2",
         "\rTraining:   0%|          | 0/30 [00:00<?, ?it/s]" + "".join(
             f"\rEpoch {n}/30:   {100 * (n - 1) // 30}%|▎         | {n - 1}/30 [02:34<1:14:52, 154.90s/it, v_num=1, train_loss=1.65e+3]\rEpoch {n}/30:   {100 * n // 30}%|▎         | {n}/30 [02:34<1:14:52,"
             " 154.90s/it, v_num=1, train_loss=1.55e+3]" for n in range(1, 13)) + "\r", (12, FINE), WRONG),
    Case("losses-below-zero", GITHUB + "novioleo/FOTS/issues/18",
         "".join(f"Train Epoch: 3 [{n}/856 ({100 * n // 856}%)] Loss: -4.654196 Detection Loss: 0.016792 Recognition Loss:-4.670988\n" for n in range(400, 624, 16)), (608, FINE), WRONG),
    Case("a-contraction-that-is-not-yet-there", GITHUB + "chebfun/chebfun/issues/1425",
         "Iter.   || du ||   Contraction    stepsize   len(du)   len(u)\n--------------------------------------------------------------\n"
         + "".join(f" {n:02d}     8.68e-01     {'     NaN' if n == 1 else '1.17e-01'}      1.0000      32        32 \n" for n in range(1, 13)), (12, FINE), WRONG),
    Case("an-accuracy-in-quotes", GITHUB + "PaddlePaddle/PaddleOCR/issues/913",
         rows("2020-10-11 04:29:30,253-INFO: epoch: 38, iter: {n}, lr: 0.000001, 'acc': 0.0, 'loss': 50.366486, time: 0.068", 727, 740), (739, FINE), WRONG),
    Case("lists-of-losses-below-a-heading", GITHUB + "lululxvi/deepxde/issues/2073",
         "Step      Train loss                                                      Test loss                                                       Test metric             \n"
         + "".join(f"{n:<9d} [8.35e-04, 5.71e-05, 3.41e-05, 6.15e-05, 2.46e-05, 5.24e-05]    [4.65e-04, 7.48e-03, 6.26e-04, 1.20e-02, 4.55e-01, 5.24e-05]    [1.06e-02, 3.72e-02]    \n"
                   for n in range(8000, 10400, 200)), (10200, FINE), WRONG),
    Case("two-lines-of-each-epoch-and-one-of-its-validation", GITHUB + "BiaPyX/BiaPy/pull/90",
         rows("[10:33:32.725791] Epoch: [{n}]  [0/9]  eta: 0:03:48  loss: 0.3311 (0.3311)  PSNR: 13.2657 (13.2657)  MSE: 3065.5750 (3065.5750)  lr: 0.000100  iter-time: 25.3701\n[10:35:45.087504] Epoch:"
              " [{n}]  [8/9]  eta: 0:00:17  loss: 0.0938 (0.1454)  PSNR: 17.2665 (17.2866)  MSE: 924.8184 (1294.8872)  lr: 0.000100  iter-time: 17.5255\n[10:35:45.141351] Epoch: [{n}] Total time: 0:02:37"
              " (17.5319 s / it)\n[10:35:48.548803] Epoch: [{n}]  [0/1]  eta: 0:00:03  loss: 0.0732 (0.0732)  PSNR: 19.6569 (19.6569)  MSE: 523.7881 (523.7881)  iter-time: 3.4044\n[10:35:48.627309] Val loss"
              " improved from inf to 0.07315590232610703, saving model to /home/a/best.pth", 1, 13),
         (12, FINE), WRONG),
    Case("three-counts-behind-an-iteration", GITHUB + "tesseract-ocr/tesstrain/issues/106",
         "".join(f"At iteration {6000 + 83 * n}/{7000 + 100 * n}/{7040 + 100 * n}, Mean rms=7.015%, delta=21.517%, char train=122.218%, word train=96.4%, skip ratio=0.5%,  New worst char error ="
                 " 122.218 wrote checkpoint.\n" for n in range(12)), (6913, FINE), WRONG),
)  # fmt: skip
DRAWN_17 = (
    Case("validations-that-become-nan", GITHUB + "clovaai/deep-text-recognition-benchmark/issues/132",
         "".join(f"[{n}/5000000] valid loss: {'nan accuracy: 0.001' if n > 74000 else '1.01961 accuracy: 47.740'}, norm_ED: 60783.96\n" for n in range(60000, 84000, 2000)), (82000, NAN), WRONG),
    Case("an-epoch-and-a-batch-without-a-sign", GITHUB + "zhongyy/Face-Transformer/issues/2",
         rows("Epoch 1 Batch {n}\tSpeed: 212.87 samples/s\tTraining Loss 33.7908 (33.8089)\tTraining Prec@1 0.000 (0.000)", 17600, 17720, 10), (17710, FINE), WRONG),
    Case("a-loss-that-its-line-names-once", GITHUB + "funcwj/uPIT-for-speech-separation/issues/5",
         rows("2020-02-15 00:00:31,026 [dataset.py:303 - INFO ] Processed 5000 utterances in total\n2020-02-15 00:00:31,027 [trainer.py:150 - INFO ] Loss(time/mini-batch) - Epoch  {n}: train ="
              " nan(1581.14s/2500) | dev = nan(152.82s/625)", 1, 13),
         (12, NAN), WRONG),
    Case("a-loss-that-is-always-zero", GITHUB + "PaddlePaddle/PaddleOCR/issues/3707",
         rows("[2021/08/18 00:18:43] root INFO: epoch: [1/1000], iter: {n}, lr: 0.001000, loss: 0.000000, acc: 0.000000, norm_edit_dis: 0.000180, reader_cost: 8.21959 s, batch_cost: 8.51831 s, samples:"
              " 1280, ips: 16.52910", 10, 130, 10), (120, FINE), WRONG),
    Case("rates-and-saved-steps-alone", GITHUB + "google-research/bert/issues/694",
         "".join((f"INFO:tensorflow:Saving checkpoints for {n * 100} into /home/a/learn/model.ckpt.\n" if n % 10 == 0 else "")
                 + f"INFO:tensorflow:global_step/sec: 0.007918{n}\nINFO:tensorflow:examples/sec: 0.1900{n}\n" for n in range(10, 70)), (None, FINE), WRONG),
    Case("rollouts-between-the-steps-of-a-bar", GITHUB + "CarperAI/trlx/issues/297",
         "".join(f"[losses/total_loss: 0.53 | losses/policy_loss: -0.15 | losses/value_loss: 3.41]:  54%|███████▉     | {n}/6400 [14:30:53<3:14:06,  3.96s/it][RANK 0] Collecting rollouts\n"
                 "[rollout 128 / 128]: 100%|██████████████| 128/128 [05:04<00:00,  2.38s/it]\n" for n in range(2048, 3712, 128)), (3584, FINE), WRONG),
    Case("iterations-of-each-time-step", GITHUB + "feelpp/feelpp/pull/825",
         "".join("=" * 85 + f"\n current time : 0.01{t}00\n" + "=" * 85 + "\n" + rows("[Aitken] iteration : {n} theta=9.80000e-01 residualNorm : 9.18943e-07", 1, 17)
                 + "[fsi.FSI] finish fsi solve in 5.49195e+00\n\n" for t in range(4)), (16, FINE), WRONG),
    Case("a-table-of-lua-that-counts-nothing", GITHUB + "nagadomi/waifu2x/issues/356",
         "".join(f"learning rate: 6.5909583485014e-05\n{{\n   loss: 0.000141859{n}\n   MSE: 0.00027230762299661\n   PSNR: 35.889340583873\n}}\n" for n in range(12)), (None, FINE), WRONG),
    Case("many-lines-of-paddleocr", GITHUB + "PaddlePaddle/PaddleOCR/issues/3074",
         rows("[2021/06/30 10:48:18] root INFO: epoch: [1/500], iter: {n}, lr: 0.001000, loss: 29.476135, acc: 0.066406, norm_edit_dis: 0.463056, reader_cost: 7.58683 s, batch_cost: 9.89736 s, samples:"
              " 5120, ips: 51.73096", 200, 320, 10), (310, FINE), WRONG),
    Case("entropies-that-become-nan", GITHUB + "open-mmlab/OpenUnReID/issues/52",
         "************************* Finished updating pseudo label *************************n\n" + "".join(
             f"Epoch: [64][{n:3d}/400]\tTime 0.412 (0.432)\tAcc@1 70.31% (52.41%)\tcross_entropy {x} ({x})\tsoft_entropy {x} ({x})\tsoftmax_triplet {x} ({x})\tsoft_softmax_triplet {x} ({x})\n"
             for n in range(0, 130, 10) for x in ("nan" if n > 60 else "4.323",)), (120, NAN), WRONG),
    Case("a-bar-behind-each-line", GITHUB + "NVIDIA/DeepLearningExamples/issues/1107",
         "".join(f"DLL 2022-04-05 05:14:11.900077 - Training Epoch: 0 Training Iteration: {n - 49}  step_loss : 0.28898781538009644  learning_rate : 1.9017172086225794e-05          "
                 f"                Iteration:  87%|███████████████▍        | {n}/2771 [05:05<00:46,  8.00it/s]\n" for n in range(1800, 2500, 50)), (2450, FINE), WRONG),
    Case("steps-that-are-completed", GITHUB + "CliMA/ClimaAtmos.jl/pull/2777",
         rows('┌ Info: Progress\n│   simulation_time = "2 weeks, 3 days"\n│   n_steps_completed = {n}\n│   wall_time_per_step = "107 milliseconds, 803 microseconds"\n│   wall_time_total = "5 minutes,'
              ' 10 seconds"\n│   percent_complete = "88.9%"\n│   sypd = 15.249\n│   date_now = 2024-03-20T12:00:21.232\n└   estimated_finish_date = 2024-03-20T12:00:55.621', 1, 2817, 256), (2561, FINE), WRONG),
    Case("residuals-that-become-nan", GITHUB + "locuslab/qpth/issues/35",
         "".join(f"iter: {n}, pri_resid: {x}, dual_resid: {x}, mu: {x}\n" for n in range(16) for x in ("nan" if n > 8 else "2.00879e+01",)),
         (15, NAN), WRONG),
    Case("names-within-names", GITHUB + "andrewowens/multisensory/issues/39",
         rows("Iteration {n}, lr = 1e-04, total:gen: 0.169 gen:reg: 0.002 diff-fg: 0.080 phase-fg: 0.004 diff-bg: 0.080 phase-bg: 0.004 total:discrim: 0.000 discrim:reg: 0.000, time: 1.241", 13140, 13260, 10),
         (13250, FINE), WRONG),
    Case("a-count-on-four-lines", GITHUB + "awslabs/dgl-ke/issues/136",
         rows("[proc 0][Train]({n}/40000) average pos_loss: 0.9731047201752663\n[proc 0][Train]({n}/40000) average neg_loss: 0.8851320103555917\n[proc 0][Train]({n}/40000) average loss: 0.9291183650195599\n"
              "[proc 0][Train]({n}/40000) average regularization: 3.712290239400318e-05\n[proc 0][Train] 1000 steps take 11.759 seconds\n[proc 0]sample: 1.389, forward: 4.386, backward: 1.811, update: 4.162",
              1000, 13000, 1000), (12000, FINE), WRONG),
)  # fmt: skip


@each(*DRAWN_16, *DRAWN_17)
def test_the_number_and_the_loss_of_a_log_of_the_sixth_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_number_and_loss(case, tmp_path, record_property)
