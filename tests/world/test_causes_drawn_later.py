"""More causes in logs of threads that a seed drew from a list; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, GITHUB, STEPS

XLA_UTIL = "2022-04-04 00:27:49.64238{n}: E tensorflow/compiler/xla/xla_client/xla_util.cc:88] "
HYDRA = "Error executing job with overrides: ['task=dexart_laptop', 'training.seed=0']\n"
BT = "".join(
    f"  [bt] ({n}) /v/lib/libxgboost.so(xgboost::tree::f(float)+0x3b{n}) [0x7f275d9a430{n}]\n"
    for n in range(5)
)
LOSS_ASSERT = (
    "/pytorch/aten/src/ATen/native/cuda/Loss.cu:115: operator(): block: [12{n},0,0], thread: [25,0,0] Assertion"
    " `input_val >= zero && input_val <= one` failed.\n"
)
RAY_TRACE = "(TorchTrainer pid=439, ip=10.212.157.221) "
SPARK_TRACE = "".join(
    f"\tat ml.dmlc.xgboost4j.scala.spark.XGBoost$.f{n}(XGBoost.scala:43{n})\n" for n in range(9)
)

# Seed 4214, from 71 threads that were listed when the finder of last words had been written.
DRAWN_5 = (
    Case("oom-in-an-old-step", GITHUB + "lanl/PyBNF/issues/118",
         STEPS + "slurmstepd: error: Detected 2 oom-kill event(s) in step 3756240.batch cgroup.\n", "host out of memory", COST),
    Case("killed-and-then-slurm-says-why", GITHUB + "ArjunaCluster/ArjunaUsers/issues/52",
         "".join(f"Epoch: [0][{n}/1736]\t Loss 0.5844 MAE 0.6568 RMSE 0.7644\n" for n in range(415, 512, 32))
         + "/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py --epochs 400\nslurmstepd: error: Detected 1"
         " oom-kill event(s) in StepId=191.batch cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.\n",
         "host out of memory", COST),
    Case("no-active-exception", GITHUB + "tensorflow/tensorflow/issues/55250",
         "".join(f"Epoch {n}/3\n100/100 [==============================] - 5s 52ms/step - loss: 0.3\n" for n in (1, 2, 3))
         + "terminate called without an active exception\nAborted (core dumped)\n", "terminate called without an active exception", COST),
    Case("xrt-does-not-implement-it", GITHUB + "pytorch/xla/issues/1965",
         STEPS + "".join(f"2020-05-04 09:05:40.71933{n}: E    1578 tensorflow/compiler/xla/xla_client/xla_util.cc:76] {line}\n" for n, line in enumerate((
             "", "StackTrace:", "*** Begin stack trace ***", "tensorflow::CurrentStackTrace[abi:cxx11]()", "*** End stack trace ***")))
         + FRAME + "RuntimeError: Unimplemented: From /job:tpu_worker/replica:0/task:0:\nno compilation found\n", "Unimplemented", COST),
    Case("a-crash-at-the-end-of-a-training", GITHUB + "ray-project/ray/issues/51527",
         "Training completed after 1 iterations at 2025-03-05 04:39:56. Total running time: 8min 51s\n" + RAY_TRACE
         + "*** SIGSEGV received at time=1741149596 on cpu 63 ***\n" + RAY_TRACE + "PC: @     0x7f60b5a3c7be  (unknown)  ray::gcs::AsyncAddTaskEventData()\n"
         + "".join(f"{RAY_TRACE}    @     0x7f60b6ee705{n}       1824  (unknown)\n" for n in range(6)), "segmentation fault on 10.212.157.221", COST),
    Case("an-exception-of-c-and-its-tracker", GITHUB + "apache/mxnet/issues/1326",
         "2016-01-21 14:28:45,146 Node[1] Epoch[9] Validation-accuracy=0.995593\nterminate called after throwing an instance of 'std::system_error'\n"
         "  what():  Operation not permitted\nAborted (core dumped)\nException in thread Thread-1:\nTraceback (most recent call last):\n"
         '  File "/usr/lib/python2.7/threading.py", line 810, in __bootstrap_inner\n    self.run()\nCalledProcessError: Command \'python train_mnist.py\''
         " returned non-zero exit status 134\n", "Operation not permitted", COST),
    Case("thousands-of-oom-kills", GITHUB + "NBISweden/Earth-Biogenome-Project-pilot/issues/81",
         "INFO:    Environment variable SINGULARITYENV_TMPDIR is set, but APPTAINERENV_TMPDIR is preferred\nslurmstepd: error: Detected 1959 oom_kill events"
         " in StepId=45226719.batch. Some of the step tasks have been OOM Killed.\n", "host out of memory", COST),
    Case("hydra-s-frames", GITHUB + "openai/mujoco-py/issues/808",
         HYDRA + 'Traceback (most recent call last):\n  File "train.py", line 506, in <module>\n    main()\n  File "/e/hydra/_internal/utils.py", line 216,'
         " in run_and_report\n    raise ex\n  File \"/e/mujoco_py/builder.py\", line 76, in load_cython_ext\n    mod = load()\n"
         "distutils.errors.CompileError: command 'gcc' failed with exit status 1\n", "CompileError", COST),
    Case("a-routine-of-cublas", GITHUB + "jax-ml/jax/issues/3518",
         "2020-06-22 21:17:03.780428: E external/org_tensorflow/tensorflow/stream_executor/cuda/cuda_blas.cc:426] failed to run cuBLAS routine:"
         " CUBLAS_STATUS_EXECUTION_FAILED\n2020-06-22 21:17:03.780492: E external/org_tensorflow/tensorflow/compiler/xla/pjrt/pjrt_client.cc:1484]"
         " Execution of replica 0 failed: Internal: Failed to launch CUDA kernel: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered\n"
         + FRAME + "RuntimeError: Internal: Unable to launch fft for thunk 0x55def2e06330 with type IFFT\n", "CUDA error", COST),
    Case("a-kernel-error-of-xgboost", GITHUB + "dmlc/xgboost/issues/4287",
         "[CV]  subsample=0.2, reg_lambda=4.5, score=0.707, total= 2.6min\n\nKernel error:\nIn: /workspace/src/common/span.h, \tline: 489\n\tT"
         " &xgboost::common::Span<T, Extent>::operator[](long) const\n\tExpecting: _idx >= 0 && _idx < size()\nterminate called after throwing an instance of"
         " 'thrust::system::system_error'\n  what():  function_attributes(): after cudaFuncGetAttributes: unspecified launch failure\nAborted (core dumped)\n",
         # Written down were the words of the failure, which stand below: their kind is told since all words of CUDA's errors are known.
         "CUDA error", COST),
    Case("the-end-of-a-pipe-while-saving", GITHUB + "NVIDIA-NeMo/Speech/issues/12446",
         "[NeMo I 2025-03-03 13:21:53 megatron_init:448] Rank 0 has context parallel group: [0]\n"
         + "".join(f"Training epoch 0, iteration {n}/99 | lr: 3e-05 | reduced_train_loss: 1.2 | global_step: {n}\n" for n in range(20))
         + '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/opt/megatron/core/dist_checkpointing/strategies/filesystem_async.py", line 213, in'
         " preload\n[rank0]:     results = q.get()\n[rank0]: EOFError\n", "EOFError", COST),
    Case("paddle-s-trace-of-c", GITHUB + "PaddlePaddle/Paddle/issues/48643",
         "".join(f"[12/02 06:08:35] ppdet.engine INFO: Epoch: [32] [{n}/4648] learning_rate: 0.000020 loss: 0.004324 eta: 20 days\n" for n in range(0, 90, 10))
         + "\n\n--------------------------------------\nC++ Traceback (most recent call last):\n--------------------------------------\n0   paddle::f()\n"
         "1   ncclGroupEnd()\n\n----------------------\nError Message Summary:\n----------------------\nFatalError: `Segmentation fault` is detected by the"
         " operating system.\n  [TimeInfo: *** Aborted at 1669946970 (unix time) try \"date -d @1669946970\" if you are using GNU date ***]\n",
         "segmentation fault", COST),
    Case("a-prolog-and-then-hydra", GITHUB + "mmcdermott/MEDS_EIC_AR/issues/79",
         "/etc/slurm/prolog.d/gpustats_helper.sh: line 5: /run/gpustat/0: Permission denied\n"
         'Traceback (most recent call last):\n  File "/v/bin/MEICAR_pretrain", line 10, in <module>\n    sys.exit(pretrain())\n             ^^^^^^^^^^\n'
         "hydra.errors.ConfigCompositionException: You must specify 'lightning_module', e.g, lightning_module=<OPTION>\n", "You must specify 'lightning_module'",
         COST),
    Case("memory-of-a-tpu-that-is-reserved", GITHUB + "pytorch/xla/issues/3470",
         STEPS + "".join(XLA_UTIL.replace("{n}", str(n)) + line + "\n" for n, line in enumerate((
             "  (1) RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory. That was not possible. There are 6.78G free, 0B reserved.",
             "\t [[{{node XRTExecute}}]]", "0 successful operations.", "0 derived errors ignored.")))
         + "Exception in device=TPU:4: RESOURCE_EXHAUSTED: From /job:localservice/replica:0/task:0:\n", "out of memory", COST),
    Case("a-device-s-assertion", GITHUB + "MhLiao/DB/issues/369",
         "".join(f"[INFO] step: {n}, epoch: 100, loss: 1.9, lr: 0.004\n" for n in range(10, 20)) + "".join(LOSS_ASSERT.replace("{n}", str(n)) for n in range(9)),
         "Assertion `input_val >= zero", COST),
)  # fmt: skip

BAR = "       5/10      2.11G      1.722      1.735       1.61         20        640:  30%|██▉       | {n}/1075 [00:56<02:08,  5.86it/s]"
DRAWN_6 = (
    Case("a-rule-that-is-run-again", GITHUB + "snakemake/snakemake-executor-plugin-slurm/pull/371",
         "slurmstepd: error: Detected 2 oom_kill events in StepId=4711.4. Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory\n"
         "[Wed Nov 12 11:40:17 2025]\nError in rule use_ram:\n    message: None\n    jobid: 0\n    shell:\n        head -c 12G    /dev/zero | tail\n"
         "        (command exited with non-zero exit code)\nTrying to restart job 0.\n", "host out of memory", COST),
    Case("mxnet-has-no-memory", GITHUB + "dmlc/MXNet.jl/issues/64",
         "INFO: Start training...\n[09:50:35] /d/dmlc-core/include/dmlc/././logging.h:241: [09:50:35] src/storage/./gpu_device_storage.h:39: Check failed: e =="
         " cudaSuccess || e == cudaErrorCudartUnloading CUDA: out of memory\nAn fatal error occurred in asynchronous engine operation. If you do not know what"
         " caused this error, you can try set environment variable\nterminate called after throwing an instance of 'dmlc::Error'\n  what():  [09:50:35]"
         " src/engine/./threaded_engine.h:295: Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading CUDA: out of memory\n",
         "CUDA out of memory", COST),
    Case("munge-is-not-there", GITHUB + "LilyDaytoy/OpenPVSG/issues/17",
         "+ srun -p super_priority --gres=gpu:1 python -u tools/train.py\n" + 'srun: error: If munged is up, restart with --num-threads=10\nsrun: error: Munge'
         ' encode failed: Failed to access "/var/run/munge/munge.socket.2": No such file or directory\nsrun: error: slurm_send_node_msg: auth_g_create:'
         " REQUEST_RESOURCE_ALLOCATION has authentication error\nsrun: error: Srun communication socket apparently being written to by something other than"
         " Slurm\n" * 2, "unge", COST),
    Case("a-credential-that-is-too-old", GITHUB + "ai4d-iasc/trixie/issues/58",
         "srun: error: Task launch for 36.0 failed on node cn131: Job credential expired\n", "step launch on cn131", COST),
    Case("look-further-up", GITHUB + "MIC-DKFZ/nnUNet/issues/363",
         "\nepoch:  3\ntrain loss : -0.5\n" + FRAME + "RuntimeError: MultiThreadedAugmenter.abort_event was set, something went wrong. Maybe one of your workers"
         " crashed. This is not the actual error message! Look further up your stdout to see what caused the error.\n", "MultiThreadedAugmenter", COST),
    Case("a-task-and-then-the-others", GITHUB + "DifferentiableUniverseInitiative/flowpm/issues/80",
         "+ srun --unbuffered --mpi=pmi2 python -u mesh_nbody_benchmark.py\nsrun: error: r10i0n8: task 3: Exited with exit code 255\nsrun: Terminating job step"
         " 1751099.0\nsrun: error: r10i0n8: tasks 0-2: Terminated\nsrun: Force Terminated job step 1751099.0\n", "of rank 3 on r10i0n8", COST),
    Case("a-task-out-of-memory", GITHUB + "nextflow-io/nextflow/issues/5932",
         "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have been OOM Killed.\nsrun: error: sdumont6156: task 0: Out"
         " Of Memory\n", "host out of memory", COST),
    Case("xla-s-lines-and-a-fault", GITHUB + "huggingface/transformers/issues/8355",
         STEPS + "2020-11-06 09:05:12.060270: E    1335 tensorflow/compiler/xla/xla_client/xla_util.cc:76] \t [[XRTExecute_G12]]\n2020-11-06 09:05:12.060282: E"
         "    1335 tensorflow/compiler/xla/xla_client/xla_util.cc:76] Hint: If you want to see a list of allocated tensors when OOM happens, add"
         " report_tensor_allocations_upon_oom to RunOptions for current allocation info.\nException in device=TPU:6: Resource exhausted: From"
         " /job:tpu_worker/replica:0/task:0:\n2 root error(s) found.\n  (0) Resource exhausted: Attempting to reserve 12.20G at the bottom of memory. That was"
         " not possible. There are 10.41G free.\nSegmentation fault (core dumped)\n", "out of memory", COST),
    Case("lightgbm-s-fatal", GITHUB + "lightgbm-org/LightGBM/issues/2797",
         "[LightGBM] [Info] Start training from score 0.668740\n[LightGBM] [Warning] No further splits with positive gain, best gain: -inf\n[LightGBM] [Fatal]"
         " Check failed: num_machines > 1 at /r/LightGBM/src/treelearner/serial_tree_learner.cpp, line 876 .\n\nterminate called after throwing an instance of"
         " 'std::runtime_error'\nterminate called after throwing an instance of 'std::runtime_error'\n  what():  Check failed: num_machines > 1 at"
         " /r/LightGBM/src/treelearner/serial_tree_learner.cpp, line 876 .\n", "num_machines > 1", COST),
    Case("a-stack-that-overflowed", GITHUB + "JuliaGPU/CUDA.jl/issues/2292",
         STEPS + "ERROR: StackOverflowError:\nStacktrace:\n  [1] throw_api_error(res::CUDA.cudaError_enum)\n    @ CUDA ~/.julia/packages/CUDA/libcuda.jl:27\n"
         "  [2] OutOfGPUMemoryError(sz::Int64, info::CUDA.MemoryInfo)\n    @ CUDA ~/.julia/packages/CUDA/src/pool.jl:16\n", "StackOverflowError", COST),
    Case("ray-s-structured-log", GITHUB + "ray-project/ray/pull/52223",
         '{"asctime": "2025-04-10 11:19:59,535", "levelname": "ERROR", "message": "Error in training function:\\nTraceback (most recent call last):\\n  File'
         ' \\"/tmp/repro.py\\", line 4, in f\\n    1/0\\nZeroDivisionError: division by zero\\n", "filename": "worker.py", "lineno": 148, "run_id":'
         ' "78ae3ffdd2a34b6ba4e748993b9254f1"}\n', "ZeroDivisionError: division by zero", COST),
    Case("a-job-of-spark-was-aborted", GITHUB + "dmlc/xgboost/issues/8194",
         "22/08/22 22:38:21 ERROR XGBoostSpark: the job was aborted due to \nml.dmlc.xgboost4j.java.XGBoostError: XGBoostModel training failed.\n" + SPARK_TRACE,
         "XGBoost", COST),
    Case("an-abort-before-mpi", GITHUB + "NVIDIA/NeMo-Aligner/issues/281",
         "[ip-10-0-5-67.ec2.internal:95415] Local abort before MPI_INIT completed completed successfully, but am not able to aggregate error messages, and not"
         " able to guarantee that all other processes were killed!\nError executing job with overrides: ['exp_manager.create_wandb_logger=False']\n" + FRAME
         + "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Failed to deserialize cuda engine\n", "Failed to deserialize cuda engine", COST),
    Case("an-assertion-behind-a-bar", GITHUB + "ultralytics/ultralytics/issues/4728",
         "".join("\r" + BAR.replace("{n}", str(n)) for n in range(310, 320)) + "C:/cb/pytorch_1000000000000/work\\c10/core/DynamicCast.h:78: block: [38,0,0],"
         " thread: [96,0,0] Assertion `false` failed.\n" + "".join("C:/cb/pytorch_1000000000000/work\\c10/core/DynamicCast.h:78: block: [38,0,0],"
         f" thread: [{n},0,0] Assertion `false` failed.\n" for n in range(97, 120)), "Assertion `false` failed", COST),
    Case("julia-and-an-illegal-access", GITHUB + "FluxML/Flux.jl/issues/2358",
         "ERROR: CUDA error: an illegal memory access was encountered (code 700, ERROR_ILLEGAL_ADDRESS)\nStacktrace:\n [1]"
         " throw_api_error(res::CUDA.cudaError_enum)\n   @ CUDA ~/.julia/packages/CUDA/YIj5X/lib/cudadrv/libcuda.jl:27\n", "CUDA error", COST),
)  # fmt: skip

NCCL_INFO = "n124:312247:326969 [0] NCCL INFO misc/socket.cc:829 -> 3\n"
OVERRIDES = "Error executing job with overrides: ['model.loss=SIGLIP', 'launcher=icb']\n"

# Seed 4215, from the 41 that were left.
DRAWN_7 = (
    Case("memory-of-a-smaller-tpu", GITHUB + "pytorch/xla/issues/2569",
         STEPS + "2020-10-22 02:48:58 10.128.0.33 [3]   (1) Resource exhausted: Attempting to allocate 180.59M. That was not possible. There are 142.58M free.;"
         " (0x3x0_HBM1)\n", "out of memory", COST),
    Case("a-target-that-hydra-does-not-find", GITHUB + "PinataFarms/FEARTracker/issues/4",
         "Error executing job with overrides: ['backend=1gpu']\nError locating target 'model_training.model.fear_net.FEARNet', see chained exception above.\nSet"
         " the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n", "Error", COST),
    Case("a-worker-of-ray-that-srun-began", GITHUB + "NVIDIA-NeMo/RL/pull/1022",
         "+ echo '[ERROR] Background srun '\\''ray-worker-1'\\'' died (pid=123456).'\n[ERROR] Background srun 'ray-worker-1' died (pid=123456). Could be a failure in"
         " startup or an issue with the node preventing the srun to start. Attempting to exit.\n+ touch /logdir/5336464-logs/ENDED\n+ exit 1\n",
         "Background srun", COST),
    Case("a-file-system-while-saving", GITHUB + "NVIDIA/NeMo-Aligner/issues/502",
         STEPS + FRAME + "OSError: [Errno 5] Input/output error\n\nThe above exception was the direct cause of the following exception:\n\n" + FRAME
         + "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([3])\n", "file system", COST),
    Case("a-timeout-between-lines-of-nccl", GITHUB + "PKU-YuanGroup/UniWorld/issues/46",
         "Steps:   0%|          | 1/500000 [12:44<14459:40:43, 104.11s/it, loss=0.36, lr=5e-6]" + NCCL_INFO * 5 + "n124:312249:326968 [2] NCCL INFO comm 0x12464df00"
         " rank 6 nranks 8 cudaDev 2 busId b000 - Abort COMPLETE\n[rank6]:[E624 04:14:29.224103812 ProcessGroupNCCL.cpp:684] [Rank 6] Some NCCL operations have"
         " failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
         "[rank6]:[E624 04:14:29.225547137 ProcessGroupNCCL.cpp:1896] [PG ID 1 PG GUID 1 Rank 6] Process group watchdog thread terminated with exception: [Rank 6]"
         " Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600017 milliseconds before timing"
         " out.\n", "NCCL timeout of rank 6", COST),
    Case("an-override-that-is-not-there", GITHUB + "facebookresearch/drqv2/issues/28",
         '  File "/e/hydra/_internal/defaults_list.py", line 168, in ensure_overrides_used\n    raise ConfigCompositionException(msg)\n'
         "hydra.errors.ConfigCompositionException: Could not override 'task'.\nDid you mean to override task@_global_?\nTo append to your default list use"
         " +task=quadruped_walk\n", "Could not override 'task'", COST),
    Case("a-program-for-a-tpu-that-is-too-large", GITHUB + "huggingface/transformers/pull/3702",
         "Exception in device=TPU:0: Resource exhausted: From /job:tpu_worker/replica:0/task:0:\nRan out of memory in memory space hbm. Used 21.90G of 16.00G hbm."
         " Exceeded hbm capacity by 5.90G.\n\t [[{{node XRTCompile}}]]\n0 successful operations.\n0 derived errors ignored.\n" + FRAME
         + "RuntimeError: Resource exhausted: From /job:tpu_worker/replica:0/task:0:\n", "out of memory", COST),
    Case("a-warning-of-nccl-about-cuda", GITHUB + "horovod/horovod/issues/1122",
         "[1,3]<stdout>:\n[1,3]<stdout>:mlc-cluster-22:7620:7639 [3] include/shm.h:42 NCCL WARN Cuda failure 'invalid argument'\n"
         "[1,3]<stdout>:mlc-cluster-22:7620:7639 [3] NCCL INFO transport/shm.cc:229 -> 1\n", "CUDA error of rank 3 on mlc-cluster-22", COST),
    Case("a-worker-of-ray-died", GITHUB + "ZhongxiaYan/mixed_autonomy_intersections/issues/8",
         "i 104 | ii 255 | n_veh_step_mean 14.1 | n_veh_step_sum 2.82e+04 | n_veh_unique 387\n2022-10-29 21:17:27,083 WARNING worker.py:1829 -- A worker died or was"
         " killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffff\n",
         "rank died", COST),
    Case("no-more-threads", GITHUB + "tesseract-ocr/tesseract/issues/3111",
         "At iteration 100/100/100, Mean rms=0.3%, delta=0.1%, char train=0.2%\nterminate called after throwing an instance of 'std::system_error'\n  what():"
         "  Resource temporarily unavailable\nAborted (core dumped)\n", "processes or threads", COST),
    Case("oom-behind-two-marks", GITHUB + "dstndstn/tractor/issues/126",
         "qdo-srun.py: srun#64: slurmstepd: error: Detected 1 oom_kill event in StepId=43622791.67. Some of the step tasks have been OOM Killed.\nqdo-srun.py:"
         " srun#64: Found OOM event for task 6627566 ; setting task state to Killed\n", "host out of memory", COST),
    Case("rich-and-hydra", GITHUB + "eric-mitchell/direct-preference-optimization/issues/14",
         "╭─────────────── Traceback (most recent call last) ────────────────╮\n│ /d/hydra/_internal/utils.py:220 in run_and_report                │\n│   219 │   try:"
         "                                                     │\n│ ❱ 220 │   │   return func()                                      │\n"
         "╰──────────────────────────────────────────────────────────────────╯\nRuntimeError: CUDA error: out of memory\n", "CUDA out of memory", COST),
    Case("one-task-and-the-others-killed", GITHUB + "facebookresearch/deit/issues/102",
         "srun: error: learnfair0824: task 5: Exited with exit code 1\nsrun: launch/slurm: _step_signal: Terminating StepId=43575862.0\nslurmstepd: error: *** STEP"
         " 43575862.0 ON learnfair0824 CANCELLED AT 2021-07-14T08:00:36 ***\nsrun: error: learnfair0824: tasks 3,7: Killed\nsrun: error: learnfair0833: task 8:"
         " Killed\nsrun: Force Terminated StepId=43575862.0\n", "of rank 5 on learnfair0824", COST),
    Case("rabit-ends-at-the-end", GITHUB + "dmlc/xgboost/issues/8003",
         "".join(f"[15:50:46] [{n}]\ttrain-rmse:0.00520{n}\n\n" for n in range(690, 700)) + "22/06/17 15:50:47 ERROR XGBoostSpark: the job was aborted due to\n"
         "ml.dmlc.xgboost4j.java.XGBoostError: XGBoostModel training failed.\n" + SPARK_TRACE, "XGBoost", COST),
    Case("cudnn-in-julia", GITHUB + "JuliaGPU/CUDA.jl/issues/714",
         STEPS + "ERROR: LoadError: CUDNNError: CUDNN_STATUS_EXECUTION_FAILED (code 8)\nStacktrace:\n [1] throw_api_error(res::CUDA.CUDNN.cudnnStatus_t)\n",
         # Written down was the status of cuDNN. It is told as a CUDA error, and the line stands in the details: arguable.
         "CUDA error", COST),
)  # fmt: skip
DRAWN_8 = (
    Case("a-branch-that-xla-cannot-read", GITHUB + "jax-ml/jax/issues/25002",
         "E1120 10:59:55.894873   35984 pjrt_stream_executor_client.cc:3067] Execution of replica 0 failed: INTERNAL: Failed to retrieve branch_index value on"
         " stream 0x5583cca477e0: CUDA error: Could not synchronize CUDA stream: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered.\n" + FRAME
         + "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA error: Could not synchronize CUDA stream\n", "CUDA error", COST),
    Case("an-error-of-c10", GITHUB + "MIC-DKFZ/nnUNet/issues/1963",
         "2024-02-18 12:00:00.000000: Epoch 312\nterminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: unspecified launch failure\n"
         "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
         "RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print statements above for the actual error message\n",
         "CUDA error", COST),
    Case("no-memory-on-two-nodes", GITHUB + "deepspeedai/DeepSpeed/issues/3126",
         "node1: terminate called after throwing an instance of 'std::bad_alloc'\nnode1:   what():  std::bad_alloc\nnode1: [2023-04-26 06:40:01,100] [INFO]"
         " [launch.py:428:sigkill_handler] Killing subprocess 4711\npdsh@node1: node1: ssh exited with exit code 250\n", "host out of memory", COST),
    Case("a-name-that-is-not-defined", GITHUB + "ray-project/ray/issues/23405",
         "".join(f"(TrainTrainable pid=96138) {line}\n" for line in ("2022-03-22 10:41:28,079\tERROR function_runner.py:281 -- Runner Thread raised error.",
             *FRAME.splitlines(), "NameError: name 'undefined_variable' is not defined")), "NameError: name 'undefined_variable' is not defined", COST),
    Case("a-sweep-of-hydra", GITHUB + "hydra-ecosystem/hydra/issues/2989",
         "[2024-11-18 21:25:24,018][HYDRA] \t#0 : model.litmodule.loss=SIGLIP launcher=icb\n" + OVERRIDES
         + 'Traceback (most recent call last):\n File "/p/./experiment.py", line 85, in <module>\n  main()\n File "/e/hydra/main.py", line 94, in decorated_main\n'
         "  _run_hydra(\nomegaconf.errors.InterpolationKeyError: Interpolation key 'x' not found\n    full_key: hydra.sweeper.x\n", "Interpolation key 'x' not found",
         COST),
    Case("a-folder-behind-a-bar", GITHUB + "Mikubill/naifu/issues/35",
         "Epoch 0:  16%|█▌        | 7395/45743 [13:13:43<68:36:00,  6.44s/it, train_loss: 0.084, avg_loss: 0.080][rank3]: Traceback (most recent call last):"
         "                                         \n"
         + '[rank3]:   File "/usr/lib/python3.10/os.py", line 225, in makedirs\n[rank3]:     mkdir(name, mode)\n[rank3]: OSError: [Errno 5] Input/output error:'
         " '/app/naifu555'\n[rank: 3] Child process with PID 170 terminated with code 1. Forcefully terminating all other processes to avoid zombies\n",
         "file system of rank 3", COST),
    Case("no-memory-for-words", GITHUB + "Determined22/zh-NER-TF/issues/98",
         "train data: 299\nterminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted\n", "host out of memory", COST),
    Case("an-autotuner-s-node", GITHUB + "deepspeedai/DeepSpeed/issues/4100",
         "  0%|          | 0/1 [00:00<?, ?it/s]neox-worker-1: Warning: Permanently added 'neox-worker-1,10.233.71.222' (ECDSA) to the list of known hosts.\n"
         "pdsh@neox-worker-0: neox-worker-1: ssh exited with exit code 1\n", "ssh to another node", COST),
    Case("triton-s-cache", GITHUB + "Lightricks/LTX-2/issues/115",
         STEPS + "terminate called after throwing an instance of 'std::runtime_error'\n  what():  expected ident but found 'eof' here:\n",
         "expected ident but found 'eof'", COST),
    Case("oom-of-a-worker-of-r", GITHUB + "wlandau/crew.cluster/issues/19",
         "slurmstepd: error: Detected 1 oom_kill event in StepId=12949601.batch. Some of the step tasks have been OOM Killed.\n", "host out of memory", COST),
    Case("a-position-that-is-not-expected", GITHUB + "NVIDIA/Megatron-LM/issues/314",
         "".join(f" iteration      {n}/  500000 | consumed samples:         4000 | lm loss: 6.456435E+00 | loss scale: 131072.0 |\n" for n in range(500, 610, 10))
         + "saving checkpoint at iteration     600 to ckpt/3b\n" + FRAME + "OSError: [Errno 28] No space left on device\n\nDuring handling of the above exception,"
         " another exception occurred:\n\n" + FRAME + "RuntimeError: [enforce fail at inline_container.cc:300] . unexpected pos 4996040960 vs 4996040856\n",
         "disk", COST),
    Case("cpus-that-no-node-has", GITHUB + "FNNDSC/pman/issues/200",
         "sbatch: error: CPU count per node can not be satisfied\nsbatch: error: Batch job submission failed: Requested node configuration is not available\n",
         "Requested node configuration is not available", COST),
    Case("memory-of-a-pjit", GITHUB + "Sea-Snell/JAXSeq/issues/2",
         FRAME + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 256.00M. That was not possible. There are 205.85M free.;"
         " (0x0x0_HBM0)\n", "out of memory", COST),
    Case("jax-and-an-illegal-address", GITHUB + "jax-ml/jax/issues/28710",
         FRAME + "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS\n", "CUDA error", COST),
    Case("memory-of-a-tpu-in-an-estimator", GITHUB + "tensorflow/tensor2tensor/issues/1382",
         "INFO:tensorflow:Error recorded from training_loop: Compilation failure: Ran out of memory in memory space hbm. Used 8.60G of 8.00G hbm. Exceeded hbm"
         " capacity by 617.60M.\n" + FRAME + "tensorflow.python.framework.errors_impl.InternalError: Compilation failure: Ran out of memory in memory space"
         " hbm.\n", "out of memory", COST),
)  # fmt: skip

HANGUP = (
    'Traceback (most recent call last):\n  File "/e/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n  File "/e/torch/distributed/elastic/multiprocessing/'
    'api.py", line 62, in _terminate_process_handler\n    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)\n'
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 2920830 got signal: 1\n"
)
CLOSING = (
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 2973583 closing signal SIGHUP\n"
    * 3
)

# Seed 4218, from 80 threads, most of them outside deep learning; they were listed when the last lines of any program had been mended.
DRAWN_12 = (
    Case("a-gpu-that-kokkos-cannot-fill", GITHUB + "E3SM-Project/E3SM/issues/8557",
         " 0:  atm : model time step 12\n 5:  Kokkos ERROR: HIP memory space failed to allocate\n", # Written down were these words, and so they were told at first; their kind is told now.
         "out of memory", COST),
    Case("a-terminal-that-hangs-up-behind-a-bar", GITHUB + "modelscope/ms-swift/issues/64",
         "".join(f"\r 16%|█▌        | {n}/25120 [3:02:17<16:33:47,  2.83s/it]" for n in range(4075, 4085))
         + "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\n" + CLOSING + HANGUP, "signal to the launcher", COST),
    Case("a-tracer-of-nextflow-is-ended", GITHUB + "nextflow-io/nextflow/issues/383",
         'lumpy: 4 samples\nTerminated              nxf_trace "$pid" .command.trace\n', "Terminated", COST),
    Case("a-terminal-that-hangs-up", GITHUB + "Facico/Chinese-Vicuna/issues/73",
         "".join(f"{{'loss': 0.88{n}, 'learning_rate': 0.00029, 'epoch': 0.{n}}}\n" for n in range(24, 31))
         + "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\n" + CLOSING + HANGUP, "signal to the launcher", COST),
    Case("a-gpu-of-one-rank-is-full", GITHUB + "fbpic/fbpic/pull/212",
         "".join(f"|###      | {n}/1000 , 0:00:47 left, 30 ms/step\n" for n in range(300, 309)) + "ERROR: GPU reached OUT_OF_MEMORY on MPI rank 11\n(Error occured in"
         " function add_buffers_gpu)\n" + "-" * 74 + "\nMPI_ABORT was invoked on rank 11 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n", "OUT_OF_MEMORY", COST),
    Case("a-worker-of-toil-gives-up", GITHUB + "ComparativeGenomicsToolkit/cactus/issues/82",
         "Z/l/jobEwEBlW    ERROR:toil.worker:Exiting the worker because of a failed job on host shas0260.local\nZ/l/jobEwEBlW    WARNING:toil.jobGraph:Due to failure we are"
         " reducing the remaining retry count of job 'logAssemblyStats' Z/l/jobEwEBlW with ID Z/l/jobEwEBlW to 0\nFound new failed successors:  of job: 'logAssemblyStats'"
         " Z/l/jobEwEBlW\nJob 'logAssemblyStats' Z/l/jobEwEBlW with ID Z/l/jobEwEBlW is completely failed\n", "Exiting the worker because of a failed job", COST),
    Case("somebody-interrupts-torchrun", GITHUB + "pytorch/xla/issues/8549",
         "W0117 10:14:46.171000 2686085 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGINT death signal, shutting down workers\n"
         "W0117 10:14:46.181000 2686085 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 2686151 closing signal SIGINT\n^CW0117 10:14:46.328000 2686085"
         " torch/distributed/elastic/multiprocessing/api.py:897] Sending process 2686151 closing signal SIGTERM\n^C" + HANGUP.replace("signal: 1", "signal: 2"),
         "signal to the launcher", COST),
    Case("an-environment-in-another-folder", GITHUB + "darshan315/flow_past_cylinder_by_DRL/issues/38",
         "/var/tmp/slurmd_spool/job1636351/slurm_script: line 8: /home/ann/venv/bin/activate: No such file or directory\n", "venv/bin/activate", COST),
    Case("a-toolbox-without-a-licence", GITHUB + "mathworks/matlab-proxy/issues/90",
         "Error using parpool (line 132)\nUnable to check out a license for the Parallel Computing Toolbox.\nMathWorks Licensing Error 4410\n\nA licensing error occurred while"
         " trying to use Parallel Computing Toolbox.\nInvalid security token. (Status code: Unauthorized)\n", "Unable to check out a license", COST),
    Case("an-arena-of-amrex", GITHUB + "AMReX-Codes/amrex/issues/3189",
         "Initializing CUDA...\nCUDA initialized with 1 device.\namrex::Abort::0::CUDA error 2 in file ../Src/Base/AMReX_Arena.cpp line 169: out of memory !!!\nSIGABRT\n",
         "out of memory", COST),
    Case("julia-before-1", GITHUB + "JuliaParallel/MPI.jl/issues/171",
         "\nsignal (11): Segmentation fault\nwhile loading /home/ann/mpi-hello.jl, in expression starting on line 2\nunknown function (ip: 0xffffffffffffffff)\n"
         + "".join(f"f{n} at /w/julia-0.5.0/src/gf.c:{n} [inlined]\n" for n in range(9)), "segmentation fault", COST),
    Case("a-fault-behind-the-end", GITHUB + "rgcgithub/regenie/issues/161",
         "List of blup files written to: [step1_pred.list]\n\nElapsed time : 37731.9s\nEnd time: Thu Aug  5 08:26:55 2021\n\n/cm/local/apps/slurm/var/spool/job4919729/"
         "slurm_script: line 31: 86298 Segmentation fault      (core dumped) regenie222 --step 1\n", "segmentation fault", COST),
    Case("vasp-refuses", GITHUB + "yuanyue-liu-group/CP-VASP/issues/4",
         "DAV:   1    -0.393959088538E+01   -0.39396E+01   -0.98521E+02   426   0.270E+02\n ERROR FEXCP: supplied Exchange-correletion table\n is too small, maximal index :"
         "        5678\n ---->  I REFUSE TO CONTINUE WITH THIS SICK JOB ... BYE!!! <----\n", "ERROR FEXCP: supplied", COST),
    Case("a-libc-that-is-too-old", GITHUB + "gadget-framework/gadget2/issues/18",
         "gadget: /lib64/libm.so.6: version `GLIBC_2.23' not found (required by gadget)\ngadget: /lib64/libc.so.6: version `GLIBC_2.14' not found (required by gadget)\n",
         "GLIBC_2.23' not found", COST),
    Case("an-import-of-a-newer-library", GITHUB + "mxfold/mxfold2/issues/6",
         FRAME.replace("trainer.fit()", "from . import interface") + "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found (required by"
         " /v/mxfold2/interface.cpython-38-x86_64-linux-gnu.so)\n", "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.20' not found", COST),
)  # fmt: skip


@each(*DRAWN_5, *DRAWN_6, *DRAWN_7, *DRAWN_8, *DRAWN_12)
def test_the_cause_in_a_log_that_was_drawn_later(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
