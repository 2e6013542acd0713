"""Logs of trainings, each as a whole, of a later list: 25 that the seed 20261129 drew from the queries in `sources/training_logs_again.txt`.

Of each query the first thread counted that tells an answer and that no test had. The answers were written down before the program ran.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.test_causes_drawn import FRAME
from tests.world.test_progress_drawn import GITHUB, NAN, rows
from tests.world.test_training_logs_drawn import COST, EITHER, Told, assert_told

FULL = 20 * "█"
FAILED = "------------------------------------------------------------\n"
ROOT = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2025-06-18_04:34:33\n  host      : n1\n  rank      : {r} (local_rank: {r})\n  exitcode  : 1 (pid: 113422)\n"
    "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
    + 60 * "="
    + "\n"
)
ELASTIC = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    + 60 * "="
    + "\n{p} FAILED\n"
    + FAILED
    + "Failures:\n  <NO_OTHER_FAILURES>\n"
    + FAILED
    + ROOT
)
LAUNCH = (
    'Traceback (most recent call last):\n  File "/opt/a/bin/accelerate-launch", line 8, in <module>\n    sys.exit(main())\n  File "/opt/a/accelerate/commands/launch.py", line 672, in multi_gpu_launcher\n'
    '    distrib_run.run(args)\n  File "/opt/a/torch/distributed/launcher/api.py", line 270, in launch_agent\n    raise ChildFailedError(\n'
)
RAY = "(RayWorkerWrapper pid=392789) ERROR 03-13 16:32:15 worker_base.py:574] "


def prefixed(prefix: str, text: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


def nnunet(n: int) -> str:
    return (
        f"2023-11-06 20:02:10.332139: Epoch {n}\n2023-11-06 20:02:10.353243: Current learning rate: 0.009{n}\n2023-11-06 20:08:18.229651: train_loss -0.40{n}\n2023-11-06 20:08:18.313545: val_loss -0.42{n}\n"
        "2023-11-06 20:08:18.330387: Pseudo dice [0.7853, 0.6851]\n2023-11-06 20:08:18.349251: Epoch time: 367.94 s\n2023-11-06 20:08:20.002308:\n"
    )


def paddle(p: int, b: int) -> str:
    if b < 500 and p == 0:
        return f"Pass {p}, batch {b}, loss [9.210789  9.209968  9.2115755 9.210512  9.211608  9.2112    9.208872                     \n 9.21356  ]\n"
    return f"Pass {p}, batch {b}, loss [     nan 9.211133      nan      nan      nan      nan 9.210888      nan]\n"


def llama(e: int) -> str:
    bars = "".join(
        f"\rTraining Epoch: {e}/150, step {n - 1}/64 completed (loss: 0.19040994346141815): {100 * n // 64:3d}%|{FULL}| {n}/64 [04:02<00:00,  3.78s/it]"
        for n in range(1, 65)
    )
    ev = "".join(
        f"\revaluating Epoch: {n // 2:3d}%|{FULL}| {n}/200 [01:53<00:00,  1.77it/s]"
        for n in range(20, 201, 20)
    )
    return (
        bars
        + "\nMax CUDA memory allocated was 1 GB\nMax CUDA memory reserved was 1 GB\nPeak active CUDA memory was 1 GB\nCuda Malloc retires : 0\nCPU Total Peak Memory consumed during the train (max): 14 GB\n"
        + ev
        + f"\n eval_ppl=tensor(nan, device='cuda:0') eval_epoch_loss=tensor(nan, device='cuda:0')\nEpoch {e}: train_perplexity=nan, train_epoch_loss=nan, epoch time 242.3404811769724s\n"
    )


INFO = "                    INFO     colossalai - colossalai - INFO: "


def colossal(e: int) -> str:
    return (
        f"\r[Epoch {e} / Train]:   0%|          | 0/1 [00:00<?, ?it/s]\r[Epoch {e} / Train]: 100%|██████████| 1/1 [00:00<00:00,  2.05it/s, loss=10{e}, lr=0.00015, throughput=8.2047 sample_per_sec, 7.6092 Tflops]\n"
        "                    INFO     colossalai - colossalai - INFO:\n                             /home/a/anaconda3/envs/mlsys/lib/python3.9/site\n                             -packages/colossalai/trainer/hooks/_log_hook.py:97\n"
        f"                             after_train_epoch\n{INFO}[Epoch {e} / Train]:\n                             Loss = 10{e}.16 | LR = 0.00012 | Throughput = 0\n"
        "                    INFO     colossalai - colossalai - INFO:\n                             /home/a/anaconda3/envs/mlsys/lib/python3.9/site\n                             -packages/colossalai/utils/memory.py:91\n"
        f"                             report_memory_usage\n{INFO}[Epoch {e} / Train]:\n                             GPU: allocated 544.23 MB, max allocated 1228.89 MB,\n                             cached: 1620.0 MB, max cached: 1620.0 MB\n"
    )


def learn(e: int, upto: int = 7) -> str:
    return "".join(
        f"Epoch {e}, Iteration {n}, Time(s) 0.08{n}0, Loss 0.8{n}335\n" for n in range(upto)
    ) + (
        "E0717 17:30:22.467953   589 notification.cc:194] RpcNotification:Failed\treq_type:GetNodes\tstatus:Out of range:No more nodes exist.\n"
        "E0717 17:30:22.468039   589 distribute_runner.h:125] Rpc failed:Out of range:No more nodes exist.name:GetNodes\n"
        if upto == 7
        else ""
    )


YOLO = (
    "                 from  n    params  module                                  arguments                     \n"
    + "".join(
        f"{n:3d}                -1  {1 + n % 4}  {n + 1}115520  models.common.Conv                      [{80 * n}, {160 * n}, 3, 2]               \n"
        for n in range(12)
    )
)


def swift(n: int) -> str:
    x = "NaN" if n > 1 else "-8.75"
    return (
        f'{{"loss": {0.0 if n > 1 else 0.86816406}, "grad_norm": 1.0, "learning_rate": 0.0001, "memory(GiB)": 36.7, "train_speed(iter/s)": 0.198544, "rewards/chosen": {x}, "rewards/rejected": {x},'
        f' "rewards/accuracies": 0.0, "rewards/margins": {x}, "logps/chosen": {x}, "logps/rejected": {x}, "logits/chosen": {x}, "logits/rejected": {x}, "nll_loss": {x}, "epoch": {n / 1250:.4f},'
        f' "global_step/max_steps": "{n}/3750", "percentage": "{n / 37.5:.2f}%", "elapsed_time": "{3 * n}s", "remaining_time": "3h 11m 11s"}}\n'
    )


WRAPPED = (
    "[E ProcessGroupNCCL.cpp:488] Some NCCL operations have failed or timed out.\n Due to the asynchronous nature of CUDA kernels, subsequent GPU operations \nmight run on corrupted/incomplete data.                                    \n"
    "[E ProcessGroupNCCL.cpp:494] To avoid data inconsistency, we are taking the\n entire process down.                \n[E ProcessGroupNCCL.cpp:915] [Rank 1] NCCL watchdog thread terminated with \n"
    "exception: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(\nSeqNum=778778, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000\n) ran for 1800413 milliseconds before timing out.                          \n"
    "terminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank 1] NCCL watchdog thread terminated with exception: [Rank 1\n] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=778778, OpT\n"
    "ype=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800413 \nmilliseconds before timing out.   \n"
)
ACTOR = "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.\n"
WORKER = "DataLoader worker (pid(s) 3999530) exited unexpectedly"

DRAWN = (
    # Written down was the line of the worker, and 60. Arguable: the training had come to its end, and an earlier case says that nothing is wrong then.
    Case("a-worker-at-the-end-of-a-training", GITHUB + "verl-project/verl/issues/1986",
         "".join(f"\r(TaskRunner pid=12) Training Progress: {100 * n // 60:3d}%|{FULL}| {n}/60 [10:03:47<10:14, 614.03s/it]" for n in range(1, 61))
         + "\n(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffffffffffffffffa8df3c\n"
         "1bbc276f698d90910201000000 Worker ID: 9d833d182fc6bb9c0643f127a46bd27ea6af23e4bc8d9218a510b93b Node ID: 5c5eb7520e42bfae86e76d31123010bf0a6fb2de02454ec8207794ea Worker IP address: 10.0.0.47\n"
         " Worker port: 38191 Worker PID: 870287 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly by a signal. SystemExit is raised (sys.exit is called). Exit code: 1. \nThe process receives a SIGTERM. \n",
         Told((60, None)), COST),
    Case("a-message-torn-by-its-source-line", GITHUB + "facebookresearch/fairseq/issues/1215",
         'Traceback (most recent call last):\n  File "/home/a/fairseq/fairseq/optim/fp16_optimizer.py", line 189, in clip_grad_norm\n    ).format(self.args. scale reached (0.0001). Your loss is probably exploding. Try lowering the learning rate,'
         " using gradient clipping or increasing the batch size.min_loss_scale))\nFloatingPointError: Minimum loss.\n", Told((None,), EITHER, ("Minimum loss",)), COST),
    Case("a-launcher-s-table-and-its-own-line", GITHUB + "axolotl-ai-cloud/axolotl/issues/2791",
         LAUNCH + ELASTIC.format(p="axolotl.cli.train", r=1) + "[2025-06-18 04:34:34,298] [ERROR] [axolotl.cli.main.train:182] [PID:113411] [RANK:0] Failed to train/fine-tune config 'a.yml': Command '['accelerate', 'launch', '-m',"
         " 'axolotl.cli.train', 'a.yml']' returned non-zero exit status 1.\n", Told((None,), shown=("axolotl.cli.train FAILED", "ChildFailedError", "exitcode", "non-zero exit status 1", "rank 1")), COST),
    Case("an-exception-within-a-traceback-s-line", GITHUB + "mozilla/TTS/issues/668",
         'Traceback (most recent call last):\n  File "TTS/TTS/bin/train_tacotron.py", line 721, in <module>\n    main(args)RuntimeError:  [!] NaN loss with decoder_loss.\n\n  File "TTS/TTS/bin/train_tacotron.py", line 623, in main\n'
         '    scaler_st)\n  File "/content/TTS/TTS/tts/layers/losses.py", line 398, in forward\n    raise RuntimeError(f" [!] NaN loss with {key}.")\n ! Run is kept in /home/a/work/hakka-ddc\n',
         Told((None,), EITHER, ("NaN loss with decoder_loss",)), COST),
    Case("a-worker-of-vllm-that-has-no-gpu", GITHUB + "OpenRLHF/OpenRLHF/issues/866",
         prefixed(RAY, "Error executing method 'init_worker'. This might cause deadlock in distributed execution.\nTraceback (most recent call last):\n  File \"/opt/a/vllm/worker/worker_base.py\", line 566, in execute_method\n"
         "    return run_method(target, method, args, kwargs)\n  File \"<frozen importlib._bootstrap>\", line 1050, in _gcd_import\n"
         'RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at "../aten/src/ATen/cuda/CUDAContext.cpp":49, please report a bug to PyTorch. device=1, num_gpus=1\n'), Told((None,), shown=("INTERNAL ASSERT FAILED",)), COST),
    Case("a-launcher-s-table-behind-stderr", GITHUB + "huggingface/accelerate/issues/1473",
         prefixed("stderr: ", LAUNCH + ELASTIC.format(p="/opt/a/accelerate/test_utils/scripts/test_script.py", r=0)), Told((None,), shown=("test_script.py FAILED", "ChildFailedError", "exitcode", "rank 0")), COST),
    Case("a-loss-of-eight-devices-some-of-them-nan", GITHUB + "PaddlePaddle/Paddle/issues/11659",
         "".join("".join(paddle(p, b) for b in range(0, 600, 100)) + f"Pass {p} end, spent: 50.600633, speed: 831.372996\nPass {p}, test samples: 42, test avg ppl: nan\n" for p in range(4)), Told((500, 3), (NAN,)), COST),
    Case("killed-behind-a-bar-of-arrows", GITHUB + "open-mmlab/mmsegmentation/issues/308",
         rows("2020-12-18 19:36:37,584 - mmseg - INFO - Iter [{n}/40000]\tlr: 9.755e-03, eta: 4:23:27, time: 0.402, data_time: 0.003, memory: 19873, decode.loss_seg: 0.1186, decode.acc_seg: 81.4285, loss: 0.1652", 3000, 4050, 50)
         + "2020-12-18 19:56:07,472 - mmseg - INFO - Saving checkpoint at 4000 iterations\n" + "".join(f"\r[{'>' * (n // 100):38s}] {n}/3849, 4.0 task/s, elapsed: 799s, ETA:   157s" for n in range(1, 3218, 8)) + "已杀死\n",
         Told((4000, 3217), shown=("已杀死",)), COST),
    Case("epochs-that-are-nan-of-steps-that-are-not", GITHUB + "meta-llama/llama-cookbook/issues/300", "".join(map(llama, range(1, 9))), Told((8, 64, 63), (NAN,)), COST),
    Case("columns-without-reference-data", GITHUB + "deepmodeling/deepmd-kit/issues/4554",
         "#  step      rmse_val    rmse_trn   rmse_lc_val rmse_lc_trn   rmse_gl_val rmse_gl_trn         lr\n# If there is no available reference data, rmse_*_{val,trn} will print nan\n"
         + "".join(f"{n:7d}      {3.99 - n / 400:.2e}    {3 - n / 500:.2e}           nan         nan      {9.18 - n / 300:.2e}         nan    1.0e-02\n" for n in range(0, 1300, 100)), Told((1200,)), COST),
    Case("a-log-that-rich-wrapped", GITHUB + "hpcaitech/ColossalAI/issues/1400", "".join(map(colossal, range(1, 10))), Told((9, 1)), COST),
    Case("a-file-that-cannot-be-read-in-six-workers", GITHUB + "MIC-DKFZ/nnUNet/issues/1784",
         "".join(map(nnunet, range(12, 30))) + "2023-11-06 20:08:20.077517: Epoch 30\n2023-11-06 20:08:20.123707: Current learning rate: 0.00973\nException in background worker 6:\nException in background worker 4:\n"
         "Exception in background worker 5:\n [Errno 5] Input/output error: '/media/a/nnUNet_preprocessed/Dataset002/L0550_RCA.pkl'\n [Errno 5] Input/output error: '/media/a/nnUNet_preprocessed/Dataset002/FA2766.pkl'\n"
         'Traceback (most recent call last):\n  File "/opt/a/bin/nnUNetv2_train", line 8, in <module>\n    sys.exit(run_training_entry())\n  File "/opt/a/batchgenerators/nondet_multi_threaded_augmenter.py", line 181, in __get_next_item\n'
         '    raise RuntimeError("One or more background workers are no longer alive. Exiting. Please check the print "\nRuntimeError: One or more background workers are no longer alive. Exiting. Please check the print statements above for the'
         " actual error message\n", Told((30, 29), shown=("Input/output error",)), COST),
    Case("an-error-of-kaldi-and-its-stack", GITHUB + "kaldi-asr/kaldi/issues/3110",
         "ERROR (nnet-train-simple[5.5.243~1-8cafd]:ReorthogonalizeXt1():nnet-precondition-online.cc:222) Cholesky out of expected range, reorthogonalizing with Gram-Schmidt\n\n[ Stack-Trace: ]\n"
         "kaldi::MessageLogger::LogMessage() const\nkaldi::MessageLogger::LogAndThrow::operator=(kaldi::MessageLogger const&)\nkaldi::nnet2::OnlinePreconditioner::ReorthogonalizeXt1(kaldi::VectorBase<float> const&, float)\nmain\n"
         "__libc_start_main\n_start\n\n", Told((None,), shown=("Cholesky out of expected range",)), COST),
    Case("no-more-nodes-at-the-end-of-each-epoch", GITHUB + "alibaba/graph-learn/issues/67", "".join(map(learn, range(30, 39))) + learn(39, 4), Told((39, 3)), COST),
    Case("layers-with-numbers-and-an-assertion", GITHUB + "ultralytics/yolov5/issues/7535",
         YOLO + "\n     Epoch   gpu_mem       box       obj       cls    labels  img_size\n\r  0%|          | 0/202 [00:01<?, ?it/s]\n" + FRAME
         + "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call,so the stacktrace below might be incorrect.\n", Told((None, 0), shown=("device-side assert triggered",)), COST),
    Case("a-loss-of-zero-beside-what-is-nan", GITHUB + "modelscope/ms-swift/issues/5418", swift(1) + "".join(map(swift, range(5, 65, 5))), Told((60,), (NAN,)), COST),
    Case("tasks-that-exit-after-an-nccl-error", GITHUB + "facebookresearch/ParlAI/issues/3084",
         FRAME + "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/../c10d/NCCLUtils.hpp:82, invalid argument, NCCL version 2.4.8\nsrun: error: n0: tasks 2-7: Exited with exit code 1\nsrun: error: n1: tasks 8-13,15: Exited with exit code 1\n"
         "srun: error: n1: task 14: Exited with exit code 1\n", Told((None,), shown=("NCCL error", "invalid argument")), COST),
    Case("two-bars-of-each-step", GITHUB + "VideoVerses/VideoTuna/issues/46",
         "".join(f"Average Epoch time: 231.10 seconds\nAverage Peak memory 68550.57MiB\n\nEpoch 0:   {100 * n // 217}%|▏         | {n}/217 [13:05<15:33:34,  0.00it/s, v_num=0, train_loss=0.187]\n"
                 f"Epoch 0:   {100 * n // 217}%|▏         | {n}/217 [13:05<15:33:34,  0.00it/s, v_num=0, train_loss=0.118]\n" for n in range(3, 15)), Told((14, 0)), COST),
    Case("a-preparation-that-failed-before-a-training", GITHUB + "rhasspy/piper/issues/558",
         '/content/piper/src/python\nTraceback (most recent call last):\n  File "/usr/lib/python3.10/runpy.py", line 196, in _run_module_as_main\n    return _run_code(code, main_globals, None,\n'
         '  File "/content/piper/src/python/piper_train/preprocess.py", line 423, in ljspeech_dataset\n    assert len(row) >= 2, "Not enough columns"\nAssertionError: Not enough columns\n'
         "DEBUG:piper_train:Namespace(dataset_dir='/content/a/Test', checkpoint_epochs=5, quality='high', resume_from_single_speaker_checkpoint=None, logger=True, num_nodes=1, max_epochs=6000, track_grad_norm=-1)\n",
         Told((None,), shown=("Not enough columns",)), COST),
    Case("a-trial-that-failed", GITHUB + "optuna/optuna/issues/5024",
         "[W 2023-11-21 13:45:48,635] Trial 0 failed with parameters: {'learning_rate': 0.009733867742024538, 'n_layers': 1} because of the following error: RuntimeError('" + WORKER + "').\n"
         'Traceback (most recent call last):\n  File "/opt/a/torch/utils/data/dataloader.py", line 1132, in _try_get_data\n    data = self._data_queue.get(timeout=timeout)\n  File "/opt/a/torch/utils/data/_utils/signal_handling.py",'
         " line 66, in handler\n    _error_if_any_worker_fails()\nRuntimeError: DataLoader worker (pid 3999530) is killed by signal: Aborted. \n\nThe above exception was the direct cause of the following exception:\n\n" + FRAME
         + f"RuntimeError: {WORKER}\n[W 2023-11-21 13:45:48,640] Trial 0 failed with value None.\n", Told((None, 0), shown=("killed by signal: Aborted", "exited unexpectedly")), COST),
    Case("an-actor-that-dies-again-while-recovering", GITHUB + "ray-project/ray/issues/9293",
         FRAME + ACTOR + "\nDuring handling of the above exception, another exception occurred:\n\n" + FRAME + ACTOR, Told((None,), shown=("actor died unexpectedly",)), COST),
    Case("not-an-error-before-an-error", GITHUB + "unslothai/unsloth/issues/1899",
         "Starting training...\n==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1\n   \\\\   /|    Num examples = 9,999 | Num Epochs = 2 | Total steps = 5,000\nO^O/ \\_/ \\    Batch size per device = 4 | Gradient"
         " accumulation steps = 1\n\\        /    Data Parallel GPUs = 1 | Total batch size (4 x 1 x 1) = 4\n \"-____-\"     Trainable parameters = 57,016,320/6,852,203,520 (0.83% trained)\n  0%|          | 0/5000 [00:00<?, ?it/s]"
         "'NoneType' object is not subscriptable\nUnsloth: Not an error, but MistralForCausalLM does not accept `num_items_in_batch`.\nUsing gradient accumulation will be very slightly less accurate.\n" + FRAME
         + "ValueError: The model did not return a loss from the inputs, only the following keys: logits. For reference, the inputs it received are input_ids,attention_mask,labels.\n",
         Told((None, 0), shown=("did not return a loss",)), COST),
    Case("every-step-is-skipped", GITHUB + "espnet/espnet/issues/4559",
         "[f3d8bac11bcb] 2022-08-08 08:47:09,516 (trainer:275) INFO: 1/50epoch started\n[f3d8bac11bcb] 2022-08-08 08:47:10,257 (trainer:537) WARNING: summary_writer.add_graph() is failed for the model. The graph can't be added for"
         " tensorboard.\n" + "".join(f"[f3d8bac11bcb] 2022-08-08 08:47:{n},459 (trainer:647) WARNING: The grad norm is nan. Skipping updating the model.\n" for n in range(11, 59)), Told((None, 1), (NAN,)), COST),
    Case("a-watchdog-that-a-terminal-wrapped", GITHUB + "HKUDS/GraphGPT/issues/44", WRAPPED,
         Told((None,), shown=("Watchdog caught", "NCCL timeout", "Some NCCL operations have failed or timed out")), COST),
    Case("memory-of-one-rank-and-four-in-a-table", GITHUB + "pytorch/pytorch/issues/123070",
         FRAME + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 76.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 66.38 MiB is free.\n" + LAUNCH
         + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + 60 * "=" + "\n/project/a/train.py FAILED\n" + FAILED + "Failures:\n"
         + "".join(f"[{r}]:\n  time      : 2024-04-01_05:16:50\n  host      : n1\n  rank      : {r} (local_rank: {r})\n  exitcode  : 1 (pid: 62020{r})\n  error_file: <N/A>\n" for r in (1, 2, 3)) + FAILED + ROOT.format(r=0),
         Told((None,), shown=("CUDA out of memory",)), COST),
)  # fmt: skip


@each(*DRAWN)
def test_a_log_that_was_drawn_again(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_told(case, tmp_path, record_property)
