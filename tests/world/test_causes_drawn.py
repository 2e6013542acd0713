"""Causes in logs of threads that a seed drew from a list; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause

GITHUB = "https://github.com/"
COST = "Somebody repairs an echo at night, or looks for an error that there is not."
STEPS = "".join(f"step {n} loss 1.9\n" for n in range(10, 20))
FRAME = 'Traceback (most recent call last):\n  File "/w/train.py", line 215, in run\n    trainer.fit()\n'
ELASTIC = (
    'Traceback (most recent call last):\n  File "/e/bin/torchrun", line 8, in <module>\n    sys.exit(main())\n'
    '  File "/e/lib/python3.10/site-packages/torch/distributed/launcher/api.py", line 263, in launch_agent\n'
    "    raise ChildFailedError(\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    + "=" * 60
    + "\n"
)


def of_rank(rank: int, text: str) -> str:
    """Each line behind the mark that torchrun and PyTorch put there."""
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


# Seed 4211, from 63 threads that no test names.
DRAWN_1 = (
    Case(
        "an-autotuner-ends-the-process", GITHUB + "google-deepmind/mujoco_playground/issues/113",
        "0: reward=317.351\n2025-04-23 20:35:34.618070: F external/xla/xla/service/gpu/autotuning/gemm_fusion_autotuner.cc:"
        "1099] Non-OK-status: executable.status()\nStatus: INTERNAL: ptxas exited with non-zero error code 139, output:  -"
        " Failure occurred when compiling fusion gemm_fusion_dot.33\n",
        "fatal check", COST,
    ),
    Case(
        "weights-that-were-not-loaded-whole", GITHUB + "BolinLai/GLC/issues/4",
        "-- Process 0 terminated with the following error:\n" + FRAME.replace("trainer.fit", "torch.load")
        + '  File "/e/lib/python3.11/site-packages/torch/serialization.py", line 447, in __init__\n'
        "    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))\n"
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n",
        "checkpoint file", COST,
    ),
    Case(
        "the-training-before-still-holds-the-npu", GITHUB + "hiyouga/LlamaFactory/issues/3839",
        FRAME.replace("trainer.fit()", "dist.barrier()")
        + "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n"
        "[ERROR] 2024-05-21-11:57:54 (PID:927000, Device:3, RankID:3) ERR02200 DIST call hccl api failed.\n"
        "EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process. Reason: Maybe the last training process is"
        " running.\n        Solution: Wait for 10s after killing the last training process and try again.\n"
        "        TraceBack (most recent call last):\n        tsd client wait response fail, device response code[1]. unknown"
        " device error.[FUNC:WaitRsp][FILE:process_mode_manager.cpp][LINE:290]\n",
        "Gaudi or Ascend", COST,
    ),
    Case(
        "a-fault-of-an-amd-gpu-before-the-abort", GITHUB + "ROCm/tensorflow-upstream/issues/534",
        STEPS + "Memory access fault by GPU node-1 (Agent handle: 0x2657390) on address 0x7f5c42600000. Reason: Page not"
        " present or supervisor privilege.\nSIGABRT: abort called\nStack trace (9 frames):\n"
        "/lib64/libpthread.so.0(+0x13bb0)[0x7f5d45121bb0]\n/lib64/libc.so.6(gsignal+0xa3)[0x7f5d44e23013]\n",
        "ROCm error", COST,
    ),
    Case(
        "jax-workers-leave-in-order", GITHUB + "pytorch/xla/issues/6771",
        STEPS + "".join(f"I0000 00:00:1711301822.46293{n}  98115{n} coordination_service_agent.cc:472] Coordination agent has"
                        " initiated Shutdown().\n" for n in range(4))
        + "I0000 00:00:1711301822.557900  981991 coordination_service.cc:1195] Shutdown barrier in coordination service has"
        " passed.\n" + "".join("I0000 00:00:1711301822.558010  981991 coordination_service.cc:686] /job:jax_worker/replica:0/"
                               f"task:{n} has disconnected from coordination service.\n" for n in range(4)),
        "", COST,
    ),
    Case(
        "torchrun-names-who-was-killed", GITHUB + "lzhxmu/CPPO/issues/6",
        STEPS + ELASTIC + "src/open_r1/grpo_gsm.py FAILED\n" + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60
        + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n  host      : gpu-worker-7\n"
        "  rank      : 0 (local_rank: 0)\n  exitcode  : -9 (pid: 14750)\n  error_file: <N/A>\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 14750\n" + "=" * 60 + "\n",
        "of rank 0 on gpu-worker-7", COST,
    ),
    Case(
        "a-broken-pipe-to-a-peer", GITHUB + "hiyouga/LlamaFactory/issues/6849",
        STEPS + "worker-0:4288:4521 [1] misc/socket.cc:30 NCCL WARN socketProgressOpt: Call to recv from 10.119.24.53<49901>"
        " failed : Broken pipe\nworker-0:4288:4521 [1] NCCL INFO misc/socket.cc:47 -> 6\n"
        "worker-0:4288:4521 [1] NCCL INFO proxy.cc:878 -> 6 [Progress Thread]\n"
        "[rank5]:[E207 19:37:09.983540349 ProcessGroupNCCL.cpp:681] [Rank 5] Some NCCL operations have failed or timed out."
        " Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"
        "[rank5]:[E207 19:37:09.983600771 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group"
        " watchdog thread terminated with exception: NCCL error: remote process exited or there was a network error, NCCL"
        " version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting"
        " prematurely.\nLast error:\nsocketProgressOpt: Call to recv from 10.119.24.53<49901> failed : Broken pipe\n",
        "NCCL connection on worker-0, peer 10.119.24.53", COST,
    ),
    Case(
        "jax-waits-for-seven-tasks", GITHUB + "ayaka14732/llama-2-jax/issues/20",
        FRAME.replace("trainer.fit", "jax.distributed.initialize")
        + "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect. Timed"
        " out task names:\n/job:jax_worker/replica:0/task:1\n/job:jax_worker/replica:0/task:6\n"
        "/job:jax_worker/replica:0/task:3\n\nAdditional GRPC error information from remote target"
        " unknown_target_for_coordination_leader while calling /tensorflow.CoordinationService/Barrier:\n",
        "JAX coordination", COST,
    ),
    Case(
        "elastic-says-which-local-rank-was-killed", GITHUB + "lmzpai/roboMamba/issues/10",
        STEPS + "E0325 20:57:27.620000 2606 site-packages/torch/distributed/elastic/multiprocessing/api.py:869] failed"
        " (exitcode: -9) local_rank: 5 (pid: 2630) of binary: /e/bin/python\n" + ELASTIC
        + "test.py FAILED\n" + "-" * 53 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 53 + "\n",
        "of local rank 5", COST,
    ),
    Case(
        "a-peer-of-an-npu-sends-nothing", GITHUB + "vllm-project/vllm-ascend/issues/486",
        STEPS + of_rank(1, FRAME.replace("trainer.fit()", "group.allreduce([tensor], opts)")
                        + "RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS function error:"
                        " HcclAllreduce, error code is 6\n[ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1)"
                        " ERR01100 OPS call acl api failed.\nEI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting"
                        " socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for"
                        " the rank being stuck\n"),
        "of rank 1", COST,
    ),
    Case(
        "a-rank-dies-behind-the-end-of-the-bar", GITHUB + "pytorch/pytorch/issues/91278",
        "".join(f"\r 99%|██████████| {n}/2209 [38:5{n - 2200}<00:04,  1.06s/it]" for n in range(2200, 2209))
        + "\r100%|██████████| 2209/2209 [39:03<00:00,  1.06s/it]WARNING:torch.distributed.elastic.multiprocessing.api:Sending"
        " process 4041 closing signal SIGTERM\nWARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4042"
        " closing signal SIGTERM\nERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -6) local_rank: 2"
        " (pid: 4043) of binary: /e/bin/python\n" + ELASTIC,
        "of local rank 2", COST,
    ),
    Case(
        "killed-at-the-same-place-again", GITHUB + "OpenBMB/MiniCPM-V/issues/770",
        "".join(f"\r 40%|████      | {n}/2000 [38:51<58:04,  1.76s/it]" for n in range(790, 801)) + "\n"
        "E0121 12:01:02.000000 1270 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: -9) local_rank: 0"
        " (pid: 1322) of binary: /e/bin/python\n" + ELASTIC,
        "of local rank 0", COST,
    ),
    Case(
        "paths-of-windows", GITHUB + "NVlabs/stylegan3/issues/193",
        STEPS + 'Traceback (most recent call last):\n  File "train.py", line 288, in <module>\n    main()\n'
        '  File "C:\\Users\\ann\\anaconda3\\envs\\e\\lib\\site-packages\\click\\core.py", line 1128, in __call__\n'
        "    return self.main(*args, **kwargs)\nRuntimeError: derivative for aten::grid_sampler_2d_backward is not implemented\n",
        "RuntimeError: derivative for aten::grid_sampler_2d_backward", COST,
    ),
    Case(
        "carets-below-each-frame", GITHUB + "vllm-project/vllm-ascend/issues/3162",
        STEPS + of_rank(3, 'Traceback (most recent call last):\n  File "/w/swift/llm/train/sft.py", line 179, in run\n'
                        "    return self.train(trainer)\n           ^^^^^^^^^^^^^^^^^^^\n"
                        "RuntimeError: create_config:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:148 HCCL function error:"
                        " hcclCommInitRootInfoConfig(numRanks, &rootInfo, rank, config, &(comm->hcclComm_)), error code is 7\n"
                        "[ERROR] 2025-09-24-10:13:01 (PID:7226, Device:3, RankID:3) ERR02200 DIST call hccl api failed.\n"),
        "of rank 3", COST,
    ),
    Case(
        "a-barrier-while-the-data-are-read", GITHUB + "hiyouga/LlamaFactory/issues/8306",
        of_rank(8, 'Traceback (most recent call last):\n  File "/w/llamafactory/data/loader.py", line 303, in get_dataset\n'
                '    with training_args.main_process_first(desc="load dataset"):\n'
                '  File "/usr/local/python3.10/lib/python3.10/contextlib.py", line 142, in __exit__\n    next(self.gen)\n'
                "RuntimeError: [5] HCCL error in: build/CMakeFiles/torch_npu.dir/compiler_depend.ts:64\n"
                "[ERROR] 2025-06-06-09:02:37 (PID:7226, Device:0, RankID:8) ERR02200 DIST call hccl api failed.\n"),
        "of rank 8", COST,
    ),
)  # fmt: skip


ELASTIC_ERROR = "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: "
SESSION = (
    " : Check failed: session->session()->Run(session_work->feed_inputs, session_work->outputs_handles, &outputs) =="
    " ::tensorflow::Status::OK() (Aborted: Session ab7644a8c1cef902 is not found. vs. OK)\n"
)
WORKER_DIED = (
    "RuntimeError: DataLoader worker (pid 346942) is killed by signal: Segmentation fault. \n"
)

# Seed 4212, from the 48 that were left.
DRAWN_2 = (
    Case(
        "a-rank-is-killed-while-weights-are-read", GITHUB + "hpcaitech/ColossalAI/issues/3514",
        "                             environment is initialized, data parallel size: 4, \n"
        "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812914 closing signal SIGTERM\n"
        + ELASTIC_ERROR + "-9) local_rank: 3 (pid: 812917) of binary: /e/bin/python\n" + ELASTIC,
        "of local rank 3", COST,
    ),
    Case(
        "an-assertion-below-a-table", GITHUB + "nerfstudio-project/nerfstudio/issues/2528",
        "".join(f"{n} (0.47%)         21.996 ms            10 m, 56 s           31.26 M\n" for n in range(140, 200, 10))
        + 'Traceback (most recent call last):\n  File "/w/models/gaussian_splatting.py", line 475, in get_outputs\n'
        '    assert camera.shape[0] == 1, "Only one camera at a time"\nAssertionError: Only one camera at a time\n',
        "AssertionError: Only one camera at a time", COST,
    ),
    Case(
        "bash-says-that-it-was-killed", GITHUB + "jade-hpc-gpu/jade-hpc-gpu.github.io/issues/136",
        STEPS + "/var/spool/slurm/job474687/slurm_script: line 31:  6521 Killed                  singularity exec --nv"
        " ../singularity/pytorch.sif python -u -W ignore ./train.py\n",
        "host out of memory", COST,
    ),
    Case(
        "a-collective-behind-a-bar-and-its-echoes", GITHUB + "lsdefine/simple_GRPO/issues/46",
        "1021/100000 [45:39<51:20:53,  1.87s/it][rank2]:[E723 01:58:45.510486595 ProcessGroupNCCL.cpp:632] [Rank 2] Watchdog"
        " caught collective operation timeout: WorkNCCL(SeqNum=45390, OpType=ALLREDUCE, NumelIn=544997376, NumelOut=544997376,"
        " Timeout(ms)=600000) ran for 600061 milliseconds before timing out." + " " * 80 + "[rank2]:[E723 01:58:45.511299168"
        " ProcessGroupNCCL.cpp:2268] [PG ID 1 PG GUID 1 Rank 2]  failure detected by watchdog at work sequence id: 45390 PG"
        " status: last enqueued work: 45403, last completed work: 45389\n[rank2]:[E723 01:58:45.511334660"
        " ProcessGroupNCCL.cpp:670] Stack trace of the failed collective not found, potentially because FlightRecorder is"
        " disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.\n",
        "NCCL timeout of rank 2", COST,
    ),
    Case(
        "the-batch-script-is-not-there", GITHUB + "ArjunaCluster/ArjunaUsers/issues/21",
        "slurmstepd: error: execve(): /tmp/slurmd/job2997814/slurm_script: No such file or directory\n",
        "step launch", COST,
    ),
    Case(
        "a-tpu-s-session-is-gone", GITHUB + "pytorch/xla/issues/3122",
        STEPS + FRAME.replace("trainer.fit()", "xm.mark_step()")
        + "RuntimeError: tensorflow/compiler/xla/xla_client/xrt_computation_client.cc:415" + SESSION
        + 'Traceback (most recent call last):\n  File "/w/spawn.py", line 112, in join\n    raise ProcessExitedException(\n'
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGABRT\n",
        "xrt_computation_client", COST,
    ),
    Case(
        "xla-s-all-reduce-is-used-wrongly", GITHUB + "j-towns/vdvae-jax/issues/2",
        STEPS + FRAME + "RuntimeError: Internal: external/org_tensorflow/tensorflow/compiler/xla/service/gpu/"
        "nccl_all_reduce_thunk.cc:162: NCCL operation ncclAllReduce(send_buffer, recv_buffer, buffer.element_count, datatype,"
        " reduce_op, comm, *cu_stream) failed: invalid usage: while running replica 0 and partition 0 of a replicated"
        " computation (other replicas may have failed as well).\n",
        "NCCL", COST,
    ),
    Case(
        "an-exception-of-one-tpu", GITHUB + "pytorch/xla/issues/2641",
        STEPS + "2020-11-22 07:04:51.668334: E   10362 tensorflow/compiler/xla/xla_client/xla_util.cc:76]   %transpose.21567 ="
        " f32[50265,1024]{0,1} transpose(f32[1024,50265]{1,0} %dot.21566), dimensions={1,0}\n"
        "Exception in device=TPU:5: Aborted: Session f2e012c73a7016d0 is not found.\n"
        "terminate called after throwing an instance of 'std::runtime_error'\n  what(): "
        " tensorflow/compiler/xla/xla_client/xrt_computation_client.cc:1110" + SESSION,
        "TPU", COST,
    ),
    Case(
        "a-loader-s-worker-dies", GITHUB + "MhLiao/DB/issues/94",
        STEPS + FRAME.replace("trainer.fit()", "_error_if_any_worker_fails()") + WORKER_DIED, "segmentation fault", COST,
    ),
    Case(
        "a-rank-aborts", GITHUB + "Vision-CAIR/MiniGPT-4/issues/237",
        STEPS + ELASTIC_ERROR + "-6) local_rank: 0 (pid: 16) of binary: /opt/conda/bin/python\n" + ELASTIC,
        "of local rank 0", COST,
    ),
    Case(
        "a-loader-dies-below-lines-of-a-logger-that-are-no-errors", GITHUB + "ybarancan/STSU/issues/6",
        "  Done reverse indexing in 3.6 seconds.\nERROR:root:N LINES IN boston-seaport 2846\nERROR:root:MODEL FREEZE\n"
        "ERROR:root:LOADED MY CHECKPOINT\n\n=== Beginning epoch 128 of 200 ===\nERROR: Unexpected segmentation fault"
        " encountered in worker.\n" + FRAME.replace("trainer.fit()", "self._poll(timeout)") + WORKER_DIED,
        "segmentation fault", COST,
    ),
    Case(
        "all-on-one-line", GITHUB + "tatsu-lab/stanford_alpaca/issues/207",
        STEPS + "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out. Due to the asynchronous nature of"
        " CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data. [E ProcessGroupNCCL.cpp:460] To avoid"
        " data inconsistency, we are taking the entire process down. terminate called after throwing an instance of"
        " 'std::runtime_error' what(): NCCL error: remote process exited or there was a network error, NCCL version 2.14.3"
        " ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely. Last error:"
        " NET/IB : Got completion from peer 11.214.147.122<39138> with error 12, opcode 0, len 0, vendor err 129\n",
        "peer 11.214.147.122", COST,
    ),
    Case(
        "a-chain-of-exceptions-of-a-loader", GITHUB + "hpcaitech/Open-Sora/issues/370",
        STEPS + FRAME.replace("trainer.fit()", "_error_if_any_worker_fails()") + WORKER_DIED
        + "\nThe above exception was the direct cause of the following exception:\n\n" + FRAME
        + "RuntimeError: DataLoader worker (pid(s) 1871778) exited unexpectedly\n",
        "segmentation fault", COST,
    ),
    Case(
        "a-check-of-the-tpu-s-driver", GITHUB + "pytorch/xla/issues/1016",
        STEPS + "2019-09-08 19:00:58.593154: E tensorflow/compiler/xla/xla_client/tf_logging.cc:11] Check failed:"
        " session->session()->Run( feed_inputs, {}, {cached_node.operations[0]}, &outputs) == ::tensorflow::Status::OK()"
        " (Unavailable: From /job:tpu_worker/replica:0/task:0:\nDriver not open. vs. OK)\n*** Begin stack trace ***\n"
        "        tensorflow::CurrentStackTrace[abi:cxx11]()\n        xla::XrtComputationClient::ReleaseHandles()\n",
        "check", COST,
    ),
    Case(
        "a-tracker-s-training-crashed", GITHUB + "chenxin-dlut/SUTrack/issues/15",
        "".join(f"[train: 17, {n} / 1000] FPS: 252.8 (389.1)  ,  Loss/total: 1.08691  ,  IoU: 0.75680\n" for n in range(50, 650, 50))
        + "ERROR: Unexpected segmentation fault encountered in worker.\nTraining crashed at epoch 17\nTraceback for the error!\n"
        + FRAME + WORKER_DIED + "\nRestarting training from last epoch ...\nFinished training!\n",
        "segmentation fault", COST,
    ),
)  # fmt: skip

LAST = {"KeyError": "KeyError: 337", "train": "KeyError: 'train'"}
ACTOR_DIED = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n\tclass_name: create_colocated_worker_cls"
    ".<locals>.WorkerDict\n\tactor_id: d9cc4672\n\tpid: 20174\n\tip: 10.164.37.106\nThe actor is dead because its worker process has"
    " died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file."
    " There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop"
    " --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected errors.\n"
)
BUS = "DataLoader worker (pid 11011) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory."
BUS_2 = BUS + " Please try to raise your shared memory limit.\n"
UNEXPECTED_BUS = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"

# Seed 4213, from 62 threads that were listed when the table of causes had been read.
DRAWN_3 = (
    Case("a-barrier-at-the-end", GITHUB + "vwxyzjn/cleanrl/pull/338",
         STEPS + "Error in atexit._run_exitfuncs:\nTraceback (most recent call last):\n  File \"/v/jax/_src/distributed.py\", line 87, in"
         " shutdown\n    self.client.shutdown()\njaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Deadline Exceeded\n",
         "JAX", COST),
    Case("a-warning-of-a-missing-key", GITHUB + "mlfoundations/dclm/issues/62",
         "".join(f"step {n} loss 1.9\nWARNING:root:Missing key in filesample: {{'url': 'a.tar'}}\n" for n in range(10, 20)), "", COST),
    Case("the-owner-s-node-crashed", GITHUB + "hiyouga/EasyR1/issues/324",
         STEPS + FRAME + ACTOR_DIED.replace("Worker unexpectedly exits with a connection error code 2. End of file.", "Owner's node has crashed."),
         "died", COST),
    Case("tensorrt-and-an-illegal-access", GITHUB + "Hale423/CenterPoint/issues/13",
         "[06/19/2022-21:22:49] [E] [TRT] 1: [convolutionRunner.cpp::executeConv::465] Error Code 1: Cudnn (CUDNN_STATUS_MAPPING_ERROR)\n"
         "[06/19/2022-21:22:49] [F] [TRT] [resources.cpp::~ScopedCudaEvent::438] Error Code 1: Cuda Runtime (an illegal memory access was encountered)\n"
         "Segmentation fault (core dumped)\n", "CUDA error", COST),
    Case("a-system-error-of-nccl", GITHUB + "NVIDIA/nccl/issues/207",
         "gpu2:46654:47152 [0] misc/ibvwrap.cu:258 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n" + FRAME
         + "RuntimeError: NCCL error in: /torch/lib/c10d/ProcessGroupNCCL.cpp:260, unhandled system error\n", "NCCL connection", COST),
    Case("a-bus-error-of-a-loader", GITHUB + "pytorch/pytorch/issues/108861", STEPS + FRAME + "RuntimeError: " + BUS_2, "shared memory", COST),
    Case("srun-in-a-job-that-ended", GITHUB + "ArjunaCluster/ArjunaUsers/issues/100",
         "srun: error: Unable to confirm allocation for job 60564: Unable to contact slurm controller (connect failure)\nsrun: Check"
         " SLURM_JOB_ID environment variable. Expired or invalid job 60564\n", "Unable to confirm allocation", COST),
    Case("no-space-before-the-bus-error", GITHUB + "NVIDIA/Megatron-LM/issues/878",
         STEPS + FRAME + "OSError: [Errno 28] No space left on device\n" + FRAME + "RuntimeError: " + BUS_2, "disk", COST),
    Case("a-row-that-is-not-there", GITHUB + "huggingface/transformers/issues/14759",
         FRAME + '  File "/v/pandas/core/indexes/base.py", line 3363, in get_loc\n    raise KeyError(key) from err\n' + LAST["KeyError"] + "\n",
         "KeyError: 337", COST),
    Case("the-time-is-up", GITHUB + "Computational-Plant-Science/plantit/issues/198",
         STEPS + "slurmstepd: error: *** JOB 4191701 ON c5-1 CANCELLED AT 2021-08-17T15:09:00 DUE TO TIME LIMIT ***\n", "time limit", COST),
    Case("no-split-of-that-name", GITHUB + "huggingface/diffusers/issues/9858", FRAME + LAST["train"] + "\n", "KeyError: 'train'", COST),
    Case("ray-s-agent-is-not-there", GITHUB + "OpenRLHF/OpenRLHF/issues/1236",
         FRAME + "RuntimeError: Request failed with status code 500: No available agent to submit job, please try again later..\n",
         "No available agent", COST),
    Case("cudnn-and-an-illegal-access", GITHUB + "pytorch/pytorch/issues/51382",
         STEPS + FRAME + "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR\nterminate called after throwing an instance of 'c10::Error'\n"
         "  what():  CUDA error: an illegal memory access was encountered\n", "CUDA error", COST),
    Case("a-backward-that-gave-nan", GITHUB + "kenziyuliu/MS-G3D/issues/36",
         FRAME + "RuntimeError: Function 'LogSoftmaxBackward' returned nan values in its 0th output.\n", "NaN loss", COST),
    Case("a-fault-without-a-trace", GITHUB + "oandrienko/fast-semantic-segmentation/issues/16", STEPS + "Segmentation fault (core dumped)\n",
         "segmentation fault", COST),
)  # fmt: skip
DRAWN_4 = (
    Case("a-box-around-the-traceback", GITHUB + "salesforce/xgen/issues/13",
         STEPS + "╭─────────────── Traceback (most recent call last) ────────────────╮\n│ /mnt/d/openllama/finetune.py:211 in <module>       "
         "              │\n│   208 │   data_collator=DataCollator(tokenizer)                      │\n│ ❱ 211 trainer.train()              "
         "                              │\n╰──────────────────────────────────────────────────────────────────╯\nKeyError: 'input_ids'\n",
         "KeyError: 'input_ids'", COST),
    Case("the-same-batch-each-time", GITHUB + "tensorflow/tensorflow/issues/59461",
         "".join(f"{n}/7472 [====>.........] - ETA: 10s - loss: 0.3121\r" for n in range(7390, 7402)) + "\nSegmentation fault (core dumped)\n",
         "segmentation fault", COST),
    Case("a-debugger-sees-the-fault", GITHUB + "pytorch/pytorch/issues/6449",
         STEPS + 'Thread 1 "python" received signal SIGSEGV, Segmentation fault.\n0x00007fffe958f5ca in ?? () from /usr/lib/libcuda.so.1\n'
         "#2  0x00007fffe95ecd83 in cuEventDestroy_v2 () from /usr/lib/libcuda.so.1\n", "segmentation fault", COST),
    Case("a-step-s-time-is-up", GITHUB + "ZettaAI/zetta_utils/issues/671",
         STEPS + "srun: Job step aborted: Waiting up to 47 seconds for job step to finish.\nslurmstepd: error: *** JOB 494583 ON n1 CANCELLED AT"
         " 2024-04-20T09:09:37 DUE TO TIME LIMIT ***\nslurmstepd: error: *** STEP 494583.0 ON n1 CANCELLED AT 2024-04-20T09:09:37 DUE TO TIME"
         " LIMIT ***\n", "time limit", COST),
    Case("another-loader-s-bus-error", GITHUB + "hkchengrex/STCN/issues/132", STEPS + "RuntimeError: " + BUS_2, "shared memory", COST),
    Case("bus-errors-before-the-exception", GITHUB + "NVlabs/Deep_Object_Pose/issues/297",
         "ready to train!\n" + UNEXPECTED_BUS * 2 + FRAME + "RuntimeError: " + BUS_2, "shared memory", COST),
    Case("a-bar-stops-in-the-middle", GITHUB + "Henry1iu/TNT-Trajectory-Prediction/issues/33",
         "".join(f"\r[Info: Device_0: train_Ep_11: loss: 4.38811e+02; avg_loss: 4.53619e+02]:  {2 * n}%|██        | {n}/56 [00:02<00:08,  5.02it/s]"
                 for n in range(1, 12)) + "Segmentation fault (core dumped)\n", "segmentation fault", COST),
    Case("a-broadcast-that-timed-out", GITHUB + "Lightning-AI/pytorch-lightning/issues/20434",
         "babel-0-31:2324239:2324522 [3] NCCL INFO TUNER/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such"
         " file or directory : when loading libnccl-tuner.so\n[rank3]:[E1119 13:21:12.512781555 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught"
         " collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800000"
         " milliseconds before timing out.\n", "NCCL timeout of rank 3", COST),
    Case("four-bus-errors", GITHUB + "tengshaofeng/ResidualAttentionNetwork-pytorch/issues/2",
         UNEXPECTED_BUS * 3 + 'Traceback (most recent call last):\n  File "train_pre.py", line 52, in <module>\n    for i, (images, labels) in'
         ' enumerate(train_loader):\n  File "/usr/lib/python3.5/multiprocessing/connection.py", line 379, in _recv\n    chunk = read(handle,'
         " remaining)\nConnectionResetError: [Errno 104] Connection reset by peer\n", "shared memory", COST),
    Case("no-path-of-the-tokenizer", GITHUB + "flagos-ai/FlagScale/issues/1295",
         '[default2]:[rank2]: Traceback (most recent call last):\n[default2]:[rank2]:   File "/w/train_gpt.py", line 216, in provider\n'
         '[default2]:[rank2]:     assert tokenizer_path, "Tokenizer path must be specified."\n[default2]:[rank2]:            ^^^^^^^^^^^^^^\n'
         "[default2]:[rank2]: AssertionError: Tokenizer path must be specified.\n", "AssertionError: Tokenizer path must be specified", COST),
    Case("horovod-s-marks", GITHUB + "horovod/horovod/issues/2255",
         "".join(f"[1,0]<stdout>:Train Epoch: 1 [{n}/60000 ({n // 600}%)]\tLoss: 0.449658\n" for n in range(52480, 59840, 640))
         + "[1,0]<stderr>:" + UNEXPECTED_BUS + "[1,0]<stderr>:Traceback (most recent call last):\n[1,0]<stderr>:RuntimeError: DataLoader worker"
         " (pid(s) 372) exited unexpectedly\n", "shared memory", COST),
    Case("a-key-of-an-iterator", GITHUB + "huggingface/transformers/issues/9630",
         'Traceback (most recent call last):\n  File "train.py", line 69, in <module>\n    trainer.train()\n  File "/v/torch/utils/data/_utils/fetch.py",'
         " line 44, in <listcomp>\n    data = [self.dataset[idx] for idx in possibly_batched_index]\nKeyError: 2\n", "KeyError: 2", COST),
    Case("an-actor-died", GITHUB + "Simple-Efficient/RL-Factory/issues/8",
         STEPS + "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=18948, ip=10.164.37.106)\n  File \"/w/main_ppo.py\", line"
         " 215, in run\n    trainer.fit()\n" + ACTOR_DIED, "died", COST),
    Case("a-node-aborts-a-connection", GITHUB + "TaiMingLu/Della-Manual/issues/2",
         "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/main.py\", line 203, in <module>\n[rank0]:     trainer.fit(model)\n"
         "[rank0]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2251, unhandled system"
         " error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n[rank0]: ncclSystemError: System call (e.g. socket, malloc) or external"
         " library call failed or device error. \n[rank0]: Last error:\n[rank0]: socketStartConnect: Connect to 172.17.0.1<45677> failed : Software"
         " caused connection abort\n", "peer 172.17.0.1", COST),
    Case("a-connection-refused", GITHUB + "pytorch/pytorch/issues/38702",
         "tj1-13:941227:943077 [0] NCCL INFO Call to connect returned Connection refused, retrying\n" * 3
         + "\ntj1-13:941227:943077 [0] include/socket.h:390 NCCL WARN Connect to 10.38.10.112<21724> failed : Connection refused\n" + FRAME
         + "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/ProcessGroupNCCL.cpp:410, unhandled system error, NCCL version 2.4.8\n",
         "peer 10.38.10.112", COST),
)  # fmt: skip


@each(*DRAWN_1, *DRAWN_2, *DRAWN_3, *DRAWN_4)
def test_the_cause_in_a_log_that_was_drawn(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
