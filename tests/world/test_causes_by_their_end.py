"""Causes in logs of threads that a seed drew from a list by the words for an end; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, GITHUB

XLA_POD = "2021-06-11 00:34:32 10.164.0.13 [3] "
RAYLET = "(raylet) [2025-10-31 17:08:05,{n} E 24507 24507] (raylet) worker_pool.cc:586: Some workers of the worker process(2615{n}) have not registered within the timeout."
ELASTIC_ROW = (
    "  time      : 2024-06-20_06:08:13\n  host      : ip-172-31-32-247.ec2.internal\n  rank      : {n} (local_rank: {n})\n  exitcode  : 1 (pid: 6604{n})\n"
    "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
)

# Seed 4220, from 63 threads that were listed when the words for an end had been written.
DRAWN_15 = (
    Case("a-weather-model-that-stops-without-a-word", GITHUB + "wrf-model/WRF/issues/1769",
         "d03 2018-05-25_00:00:00  Input data is acceptable to use: wrflowinp_d03\nd03 2018-05-25_00:00:00 Input data processed for aux input   4 for domain   3\n"
         " Tile Strategy is not specified. Assuming 1D-Y\nWRF TILE   1 IS      1 IE     21 JS      1 JE      9\nWRF NUMBER OF TILES =   1\n", "", COST),
    Case("a-connection-of-one-node-is-aborted", GITHUB + "RVC-Boss/GPT-SoVITS/issues/2593",
         "[rank0]:[W831 16:10:20.914206846 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. On normal program"
         " exit, the application should call destroy_process_group (function operator())\n"
         'Traceback (most recent call last):\n  File "/w/s2_train.py", line 684, in <module>\n    main()\n  File "/e/torch/multiprocessing/spawn.py", line 203, in join\n'
         "    raise ProcessRaisedException(msg, error_index, failed_process.pid)\ntorch.multiprocessing.spawn.ProcessRaisedException:\n\n-- Process 0 terminated with the following"
         " error:\n" + FRAME + "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:268, unhandled system error (run with"
         " NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\nLast error:\n"
         "socketStartConnect: Connect to 198.18.0.1<44225> failed : Software caused connection abort\n", "peer 198.18.0.1", COST),
    Case("an-old-checkpoint-that-another-rank-removes", GITHUB + "databrickslabs/dolly/issues/5",
         "".join(f"{{'loss': 1.3{n}, 'learning_rate': 1e-06, 'epoch': 0.{n}}}\n" for n in range(90, 99))
         + "Training completed. Do not forget to share your model on huggingface.co/models =)\n"
         "{'train_runtime': 16393.4453, 'train_samples_per_second': 3.111, 'train_steps_per_second': 0.097, 'train_loss': 1.3751295118439602, 'epoch': 1.0}\n"
         "Deleting older checkpoint [/w/local_output_dir_0325/checkpoint-1400] due to args.save_total_limit\n2023-03-26 11:05:19 ERROR [__main__] main failed\n"
         'Traceback (most recent call last):\n  File "/w/training/trainer.py", line 207, in train\n    trainer.train()\n  File "/e/transformers/trainer.py", line 1920, in'
         " _inner_training_loop\n    shutil.rmtree(checkpoint)\nFileNotFoundError: [Errno 2] No such file or directory: 'rng_state_1.pth'\n", "FileNotFoundError", COST),
    Case("an-error-of-ecc", GITHUB + "lm-sys/FastChat/issues/1906",
         "CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
         "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n"
         + "".join(f"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 47947{n} closing signal SIGTERM\n" for n in range(4)), "GPU memory error", COST),
    Case("a-worker-of-rllib-violates-access", GITHUB + "ray-project/ray/issues/24955",
         "(DQNTrainer pid=12200) 2022-06-10 14:14:38,704\tWARNING trainer.py:546 -- Worker crashed during call to `step_attempt()`. To try to continue training without failed"
         " worker(s), set `ignore_worker_failures=True`.\n(RolloutWorker pid=19976) Windows fatal exception: access violation\n(RolloutWorker pid=19976) \n"
         "(RolloutWorker pid=19976) Stack (most recent call first):\n(RolloutWorker pid=19976)   File \"D:\\e\\ray\\worker.py\", line 451 in main_loop\n"
         "(RolloutWorker pid=19976)   File \"D:\\e\\ray\\workers\\default_worker.py\", line 238 in <module>\n", "access violation", COST),
    Case("training-by-samples-that-is-begun-again", GITHUB + "deepspeedai/Megatron-DeepSpeed/pull/2",
         FRAME + "AssertionError: only backward compatiblity support for iteration-based training\n", "only backward compatiblity support", COST),
    Case("a-stage-that-is-killed", GITHUB + "espnet/espnet/issues/1667",
         "stage 4: Network Training\nbash: line 1:  6508 Killed                  ( asr_train.py --config conf/train_mtlalpha1.0.yaml --ngpu 0 --backend pytorch ) 2>>"
         " exp/train_nodev/train.log >> exp/train_nodev/train.log\nrun.pl: job failed, log is in exp/train_nodev/train.log\nrun.sh done.\n", "host out of memory", COST),
    Case("a-test-of-nccl-does-not-connect", GITHUB + "NVIDIA/nccl-tests/issues/166",
         "ubuntu:39964:40075 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 10.0.0.2<45763> failed : Software caused connection abort\n"
         + "".join(f"ubuntu:39964:40075 [0] NCCL INFO transport/net_socket.cc:{n} -> 2\n" for n in (336, 592, 1306))
         + "\nubuntu:39964:40075 [0] proxy.cc:1519 NCCL WARN [Proxy Service 0] Failed to execute operation Connect from rank 0, retcode 2\n"
         "ubuntu:39964:40044 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node1<57557>\n"
         "ubuntu: Test NCCL failure common.cu:958 'internal error - please report this issue to the NCCL developers / '\n .. ubuntu pid 39964: Test failure common.cu:842\n",
         "peer 10.0.0.2", COST),
    Case("a-rank-faults-below-torchrun", GITHUB + "NVlabs/nvdiffrecmc/issues/21",
         "".join(f"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 552{n} closing signal SIGTERM\n" for n in (7, 9))
         + "".join(f"WARNING:torch.distributed.elastic.multiprocessing.api:Unable to shutdown process 552{n} via 15, forcefully exitting via 9\n" for n in (7, 9))
         + "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 1 (pid: 5528) of binary: /opt/conda/bin/python3.8\n"
         "INFO:torch.distributed.elastic.agent.server.api:Local worker group finished (FAILED). Waiting 300 seconds for other agents to finish\n"
         "INFO:torch.distributed.elastic.agent.server.api:Done waiting for other agents. Elapsed: 0.0007698535919189453 seconds\n", "segmentation fault of local rank 1", COST),
    Case("workers-that-do-not-register", GITHUB + "RLinf/RLinf/issues/227",
         "".join(RAYLET.replace("{n}", str(n)) + " The process is dead, probably it crashed during start.\n" for n in range(490, 496)), "have not registered within", COST),
    Case("features-that-are-not-made", GITHUB + "espnet/espnet/issues/505",
         "stage 0: Data preparation\nstage 1: Feature Generation\nsteps/make_fbank_pitch.sh --cmd run.pl --mem 2G --nj 8 --write_utt2num_frames true data/test exp/make_fbank/test"
         " fbank\nutils/validate_data_dir.sh: Successfully validated data-directory data/test\nsteps/make_fbank_pitch.sh: [info]: no segments file exists: assuming wav.scp indexed by"
         " utterance.\nrun.pl: 8 / 8 failed, log is in exp/make_fbank/test/make_fbank_pitch_test.*.log\n", "8 / 8 failed", COST),
    Case("a-compiler-of-neuron-below-torchrun", GITHUB + "huggingface/optimum-neuron/issues/638",
         "[14]:\n" + ELASTIC_ROW.replace("{n}", "28") + "[15]:\n" + ELASTIC_ROW.replace("{n}", "30") + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n"
         + ELASTIC_ROW.replace("{n}", "1") + "=" * 60 + "\n2024-06-20 06:08:19.000682:  65821  ERROR ||NEURON_PARALLEL_COMPILE||: There was an error in the training script.\n",
         "rank 1 on ip-172-31-32-247.ec2.internal", COST),
    Case("a-pod-that-is-ended-in-a-rendezvous", GITHUB + "Lightning-AI/pytorch-lightning/issues/7912",
         XLA_POD + "*** SIGTERM received by PID 10357 (TID 10357) on cpu 12 from PID 9001; stack trace: ***\n" + XLA_POD + "PC: @     0x7f240b01f5ce  (unknown)  (unknown)\n"
         + "".join(f"{XLA_POD}    @     0x7f2382eacb4{n}       1072  xla::service::MeshClient::Rendezvous()\n" for n in range(6))
         + XLA_POD + "E0611 00:34:32.758413   10401 coredump_hook.cc:250] RAW: Remote crash gathering disabled for SIGTERM.\n", "SIGTERM", COST),
    Case("samples-of-the-last-epoch", GITHUB + "deepspeedai/DeepSpeedExamples/issues/621",
         'Traceback (most recent call last):\n  File "/w/megatron/data/gpt_dataset.py", line 330, in _build_index_mappings\n    assert last_epoch_num_samples <'
         " (num_samples_per_epoch + 1), \\\nAssertionError: last epoch number of samples exceeded max value.\n", "last epoch number of samples exceeded", COST),
    Case("cublas-of-bitsandbytes", GITHUB + "bigcode-project/starcoder/issues/64",
         "cuBLAS API failed with status 15\nA: torch.Size([2048, 6144]), B: torch.Size([6400, 6144]), C: (2048, 6400); (lda, ldb, ldc): (c_int(65536), c_int(204800), c_int(65536));"
         " (m, n, k): (c_int(2048), c_int(6400), c_int(6144))\nerror detectedTraceback (most recent call last):\n  File \"/w/finetune_h100.py\", line 366, in <module>\n"
         '    main(args)\n  File "/e/bitsandbytes/functional.py", line 1698, in igemmlt\n    raise Exception(\'cublasLt ran into an error!\')\nException: cublasLt ran into an error!\n',
         "cublasLt ran into an error", COST),
)  # fmt: skip

# The second fifteen of the 63.
DRAWN_16 = (
    Case("a-gather-between-two-computers", GITHUB + "firemodels/fds/issues/1624",
         "".join(f"Time Step:   {n},    Simulation Time:    17{n % 10}.85 s\n" for n in range(5691, 5701)) + "Fatal error in MPI_Allgatherv: Other MPI error, error stack:\n"
         "MPI_Allgatherv(1025)......................: MPI_Allgatherv(sbuf=086EFB90, scount=1, MPI_DOUBLE_PRECISION, rbuf=086EFB90, MPI_COMM_WORLD) failed\n"
         "MPIR_Allgatherv(222)......................:\nMPIC_Sendrecv(126)........................:\nMPIC_Wait(270)............................:\n"
         "MPIDI_CH3i_Progress_wait(215).............: an error occurred while handling an event returned by MPIDU_Sock_Wait()\n", "Fatal error in MPI_Allgatherv", COST),
    Case("a-training-of-keywords-is-killed", GITHUB + "modelscope/kws-training-suite/issues/10",
         "".join(f"2024-05-10 00:00:0{n % 10},203 - modelscope - INFO - Epoch: 0001/0005, batch: 00{n}/0300, loss: 0.6884\n" for n in range(24, 31)) + "Killed\n",
         "host out of memory", COST),
    Case("trials-that-did-not-complete", GITHUB + "edbeeching/godot_rl_agents/issues/53",
         " pid=12416) 2023-01-21 14:27:54,836     WARNING trainer.py:975 -- Worker crashed during call to `step_attempt()`. To try to continue training without the failed worker, set"
         ' `ignore_worker_failures=True`.\nTraceback (most recent call last):\n  File "C:\\e\\lib\\runpy.py", line 197, in _run_module_as_main\n    return _run_code(code, main_globals,'
         ' None,\n  File "C:\\e\\ray\\tune\\tune.py", line 633, in run\n    raise TuneError("Trials did not complete", incomplete_trials)\n'
         "ray.tune.error.TuneError: ('Trials did not complete', [PPO_godot_cbdfc_00000])\n", "Trials did not complete", COST),
    Case("snow-that-is-too-warm", GITHUB + "ufs-community/ufs-weather-model/issues/2494",
         "zeroing coupling accumulated fields at kdt=        12527\n" * 2 + "PASS: fcstRUN phase 2, n_atmsteps =            12526 time is         0.326497\n"
         "  (zap_snow_temperature)zap_snow_temperature: temperature out of bounds!\n  (zap_snow_temperature)k:           1\n  (zap_snow_temperature)zTsn:  4.636445953738447E-003\n"
         "  (zap_snow_temperature)Tmax:  9.797644457066566E-006\n ncells=           5\n nlives=          12\n nthresh=   18.0000000000000\n\n"
         "Assertion failed in file ../../src/mpid/ch4/src/intel/ch4_shm_coll.c at line 2263: comm->shm_numa_layout[my_numa_node].base_addr\n"
         + "".join(f"/opt/intel-oneapi-mpi/lib/libmpi.so.12(MPL_backtrace_show+0x2{n}) [0x2b50027c0bf{n}]\n" for n in range(8)), "Assertion failed in file", COST),
    Case("a-buffer-that-is-assigned-twice", GITHUB + "deepspeedai/Megatron-DeepSpeed/issues/196",
         " iteration        1/     100 | consumed samples:           18 | elapsed time per iteration (ms): 22089.1 | lm loss: 1.461212E+01 | loss scale: 1.0 |\n" + FRAME
         + "AssertionError: param 730 already assigned swap buffer id 45\n", "param 730 already assigned", COST),
    Case("a-descriptor-of-nccl-s-socket", GITHUB + "NVIDIA/nccl/issues/1382",
         "gpu-1:275204:275662 [6] NCCL INFO Using network Socket\n\ngpu-1:275204:275981 [8] misc/socket.cc:471 NCCL WARN socketTryAccept: Accept failed: Bad file descriptor\n"
         + "".join(f"gpu-1:275204:275981 [8] NCCL INFO misc/socket.cc:{n} -> 2\n" for n in (585, 726)) + "gpu-1:275204:275981 [8] NCCL INFO proxy.cc:1458 -> 2\n", "NCCL", COST),
    Case("bytes-that-were-not-transmitted", GITHUB + "gafusion/gacode/issues/449",
         "srun: error: Unable to create step for job 4711: Zero Bytes were transmitted or received\n", "Zero Bytes were transmitted", COST),
    Case("a-store-that-only-tells-what-it-reads", GITHUB + "KellerJordan/modded-nanogpt/issues/15",
         "[I1107 01:20:06.503069695 debug.cpp:49] [c10d] The debug level is set to DETAIL.\nI1107 01:20:06.697000 7974 torch/distributed/run.py:897] Rendezvous info:\n"
         "I1107 01:20:06.697000 7974 torch/distributed/run.py:897] --rdzv-backend=c10d --rdzv-endpoint=localhost:0\n"
         "[I1107 01:20:27.770733060 TCPStoreLibUvBackend.cpp:119] [c10d - debug] Read callback failed. code:-4095 name:EOF desc:end of file\n", "", COST),
    Case("hydra-that-says-no-more", GITHUB + "facebookresearch/map-anything/issues/89",
         "".join(f"[2025-10-31 05:07:0{n},550][__main__][INFO] - Epoch: [7]  [ {n}00/2916]  eta: 0:54:53  lr: 0.000072  loss: 1.3 time: 1.3483  max mem: 137223\n" for n in range(1, 7))
         + "[2025-10-31 05:07:11,062][__main__][ERROR] - Error executing job with overrides: ['machine=hpc_train', 'dataset=scannetpp_518_many_ar_48ipg_8g',"
         " 'train_params.epochs=100']\n", "Error executing job with overrides", COST),
    Case("a-pod-that-exited", GITHUB + "kubeflow/trainer/issues/2008",
         'time="2024-02-21T09:30:56Z" level=info msg="PyTorchJob=pytorch-simple, ReplicaType=Worker expected=1, running=1, succeeded=0, failed=0, Replicas=1"\n'
         "1.708507856644096e+09\tDEBUG\tevents\tError pod pytorch-simple-worker-0 container pytorch exitCode: 1 terminated message: \n"
         "1.7085078566441019e+09\tDEBUG\tevents\tPod: kubeflow.pytorch-simple-worker-0 exited with code 1\n", "pytorch-simple-worker-0", COST),
    Case("a-checkpoint-of-mixtral", GITHUB + "InternLM/xtuner/issues/315",
         '  File "/e/torch/distributed/launcher/api.py", line 264, in launch_agent\n    raise ChildFailedError(\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n'
         + "=" * 60 + "\n/e/xtuner/tools/train.py FAILED\n" + "-" * 60 + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n"
         + ELASTIC_ROW.replace("{n}", "3") + "=" * 60 + "\n", "rank 3 on ip-172-31-32-247.ec2.internal", COST),
    Case("a-gradient-that-is-no-number", GITHUB + "deepspeedai/Megatron-DeepSpeed/issues/203",
         " tensor_recv_next: tensor([[[        inf,         inf,         inf,  ...,  4.1954e+36,\n                 -inf,        -inf]],\n\n"
         "        [[ 2.3865e-08,  2.1770e-08, -1.1700e-08,  ...,  5.7742e-08]]], device='cuda:0', dtype=torch.bfloat16,\n       requires_grad=True)\n"
         " iteration       10/     100 | consumed samples:           10 | elapsed time per iteration (ms): 2208.9 | learning rate: 3.000E-04 | global batch size:     1 | lm loss:"
         " 1.461212E+01 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |\n", "", COST),
    Case("two-remote-nodes", GITHUB + "NVIDIA/nccl/issues/697",
         "".join(f"dgxa100:1050:1315 [0] NCCL INFO Channel {n:02d}/0 : 0[90000] -> 1[1000] [send] via NET/Socket/{n}\n" for n in range(3, 9))
         + "dgxa100:1050:1316 [0] NCCL INFO include/net.h:25 -> 2\ndgxa100:1050:1316 [0] NCCL INFO transport/net.cc:515 -> 2\n" + FRAME
         + "RuntimeError: NCCL error in: /opt/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:957, unhandled system error, NCCL version 2.10.3\n"
         "ncclSystemError: System call (socket, malloc, munmap, etc) failed.\n", "NCCL error", COST),
    Case("a-credential-of-a-step", GITHUB + "c3nl-neuraldynamics/c3nl_cluster/issues/61",
         "srun: error: Task launch for 1443722.0 failed on node compute-0-1: Job credential expired\nsrun: error: Application launch failed: Job credential expired\n"
         "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n", "step launch on compute-0-1", COST),
    Case("a-segmentation-that-stops-without-a-word", GITHUB + "CSAILVision/semantic-segmentation-pytorch/issues/133",
         "".join(f"Epoch: [1][45{n}/5000], Time: 2.27, Data: 0.01, lr_encoder: 0.019349, lr_decoder: 0.019349, Accuracy: 62.36, Loss: 2.131847\n" for n in range(17, 25)), "", COST),
)  # fmt: skip

# Seed 4231, from 64 threads that were listed after those were mended.
DRAWN_17 = (
    Case("lines-that-a-viewer-numbers", GITHUB + "A4Bio/PiFold/issues/12",
         "[231838] Traceback (most recent call last):\n[231839]   File \"main.py\", line 115, in <module>\n[231840]     scheduler.step()\n[231842]   File"
         ' "/e/torch/optim/lr_scheduler.py", line 1571, in get_lr\n[231843]     raise ValueError("Tried to step {} times. The specified number of total steps is {}"\n'
         "[231844] ValueError: Tried to step 100002 times. The specified number of total steps is 100000\n", "Tried to step 100002 times", COST),
    Case("gradients-of-mbart", GITHUB + "facebookresearch/fairseq/issues/2120",
         '  File "/e/bin/fairseq-train", line 33, in <module>\n    sys.exit(load_entry_point(\'fairseq\', \'console_scripts\', \'fairseq-train\')())\n  File'
         ' "/e/fairseq_cli/train.py", line 208, in train\n    log_output = trainer.train_step(samples)\n  File "/e/fairseq/trainer.py", line 592, in train_step\n'
         '    raise FloatingPointError("gradients are Nan/Inf")\nFloatingPointError: gradients are Nan/Inf\n', "gradients are Nan/Inf", COST),
    Case("a-trial-of-neurocard", GITHUB + "neurocard/neurocard/issues/4",
         'Traceback (most recent call last):\n  File "run.py", line 1029, in <module>\n    tune.run_experiments(\n  File "/e/ray/tune/tune.py", line 333, in run\n'
         '    raise TuneError("Trials did not complete", errored_trials)\nray.tune.error.TuneError: (\'Trials did not complete\', [NeuroCard_44b5b_00000])\n',
         "Trials did not complete", COST),
    Case("a-shard-of-adamw", GITHUB + "huggingface/trl/issues/3375",
         "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/trl/scripts/sft.py\", line 123, in main\n[rank3]:     trainer.train()\n[rank3]:   File"
         ' "/e/torch/optim/adamw.py", line 220, in step\n[rank3]:     adamw(\n[rank3]: RuntimeError: The size of tensor a (0) must match the size of tensor b (64) at'
         " non-singleton dimension 0\n", "RuntimeError: The size of tensor a", COST),
    Case("a-fault-of-an-mi210", GITHUB + "ROCm/legacy-rocm-build/issues/5238",
         "Memory access fault by GPU node-2 (Agent handle: 0x63155be5d980) on address (nil). Reason: Unknown.\nAborted (core dumped)\n", "ROCm error", COST),
    Case("a-schedule-that-is-over", GITHUB + "vLAR-group/GrowSP/issues/11",
         "computing pseduo labels...\nTraceback (most recent call last):\n  File \"train_Custom.py\", line 308, in <module>\n    main(args, logger)\n  File"
         ' "/e/torch/optim/lr_scheduler.py", line 1571, in get_lr\n    raise ValueError("Tried to step {} times. The specified number of total steps is {}"\n'
         "ValueError: Tried to step 60002 times. The specified number of total steps is 60000\n", "Tried to step 60002 times", COST),
    Case("a-handle-of-a-server-that-is-gone", GITHUB + "openai/universe/issues/112",
         "I tensorflow/core/distributed_runtime/master_session.cc:993] Start master session 28ab4c2385610d79 with config:\ndevice_filters: \"/job:ps\"\n"
         'device_filters: "/job:worker/task:2/cpu:0"\n' + FRAME.replace("trainer.fit()", "sess.run(fetches)")
         + "tensorflow.python.framework.errors_impl.AbortedError: Graph handle is not found: 0000000000000001. Possibly, this worker just restarted.\n",
         "Graph handle is not found", COST),
    Case("tensors-on-two-devices-in-a-step", GITHUB + "huggingface/transformers/pull/34645",
         FRAME + "RuntimeError: Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be CPU and float32/64 notwithstanding\n",
         "Tensors of the same index", COST),
    Case("a-bus-error-below-julia", GITHUB + "JuliaParallel/ClusterManagers.jl/issues/48",
         "srun: error: magi75: tasks 0-9: Bus error\nError launching Slurm job:\nERROR (unhandled task failure): BoundsError: attempt to access 1-element"
         " Array{SubString{String},1} at index [2]\n in #8 at /home/ann/.julia/v0.5/ClusterManagers/src/slurm.jl:59 [inlined]\n", "bus error", COST),
    Case("a-trace-that-is-cut", GITHUB + "gjy3035/PCC-Net/issues/12",
         'Traceback (most recent call last):\n  File "train_lr.py", line 234, in <module>\n    main()\n  File "train_lr.py", line 82, in train\n    for i, data in'
         ' enumerate(train_loader, 0):\n  File "/e/torch/utils/data/dataloader.py", line 345, in __next__\n    data = self._next_data()\n', "traceback", COST),
    Case("tensors-on-two-devices", GITHUB + "hiyouga/LlamaFactory/issues/7641",
         "[rank3]: RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:3!\n",
         "Expected all tensors to be on the same device", COST),
    Case("a-detector-that-stops-without-a-word", GITHUB + "open-mmlab/mmdetection/issues/392",
         "loading annotations into memory...\nloading annotations into memory...\nDone (t=10.67s)\ncreating index...\nDone (t=10.68s)\ncreating index...\nindex created!\n"
         "index created!\n2019-03-11 17:06:01,201 - INFO - Start running, host: ann@node-dev115, work_dir: /w/work_dirs/faster_rcnn_r101_fpn_1x\n"
         "2019-03-11 17:06:01,201 - INFO - workflow: [('train', 1)], max: 12 epochs\n", "", COST),
    Case("ranks-that-abort-one-after-another", GITHUB + "pmodels/mpich/issues/270",
         "application called MPI_Abort(MPI_COMM_WORLD, 0) - process 1\n" + "".join(
             f"application called MPI_Abort(MPI_COMM_WORLD, 0) - process {n}[cli_{n}]: aborting\njob                   :\napplication called MPI_Abort(MPI_COMM_WORLD, 0) - process {n}\n"
             for n in (3, 7, 2, 6, 5, 4)), "MPI_Abort", COST),
    Case("a-symbol-of-cublas", GITHUB + "aqlaboratory/openfold/issues/226",
         FRAME.replace("trainer.fit()", "import torch") + "OSError: /opt/conda/lib/python3.9/site-packages/torch/lib/../../../../libcublas.so.11: symbol cublasLtGetStatusString version"
         " libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference\n", "libcublas.so.11: symbol", COST),
    Case("warnings-of-an-old-type", GITHUB + "open-mmlab/mmdetection/issues/7488",
         "".join(f"2022-03-21 10:0{n},128 - mmdet - INFO - Epoch [1][{n}0/700]\tlr: 2.500e-03, eta: 0:05:37, time: 0.402, memory: 3889, loss: 2.1\n" for n in range(1, 9))
         + "/tmp/ipykernel_3063/3895221999.py:58: DeprecationWarning: `np.long` is a deprecated alias for `np.compat.long`. To silence this warning, use `np.compat.long` by itself.\n"
         "Deprecated in NumPy 1.20; for more details and guidance: https://numpy.org/devdocs/release/1.20.0-notes.html#deprecations\n  labels=np.array(gt_labels,"
         " dtype=np.long),\n", "", COST),
)  # fmt: skip

# The second fifteen of the 64.
DRAWN_18 = (
    Case("matrices-of-dynasim", GITHUB + "DynaSim/DynaSim/issues/181",
         "To get started, type one of these: helpwin, helpdesk, or demo.\nFor product information, visit www.mathworks.com.\n\n \n\nSimIDs =\n\n     1\n\n"
         "Error: Matrix dimensions must agree.\n\t in updateStudy (line 51)\n\t in sim_job1 (line 11)\nfinished\n", "Matrix dimensions must agree", COST),
    Case("a-convolution-of-miopen", GITHUB + "ROCm/MIOpen/issues/125",
         "MIOpenDriver: conv -n 32 -c 64 -H 1 -W 256 -k 32 -y 1 -x 384 -p 0 -q 128 -u 1 -v 64 -l 1 -j 1 -m conv -g 1 -F 1 -t 1\n"
         "Memory access fault by GPU node-1 (Agent handle: 0x20f0010) on address 0x7f228a9ff000. Reason: Page not present or supervisor privilege.\nAborted (core dumped)\n",
         "ROCm error", COST),
    Case("a-rule-that-just-begins", GITHUB + "snakemake/snakemake-executor-plugin-slurm/issues/246",
         "host: g-h-1-8-07\nBuilding DAG of jobs...\nUsing shell: /usr/bin/bash\nProvided remote nodes: 1\nSelect jobs to execute...\nExecute 1 jobs...\n\n[Sat Mar 22 05:57:01 2025]\n"
         "rule herro_all_gpu:\n    input: BJ/ONT/BJ.all.ONT.fastq, BJ/ONT/BJ.all.ONT.overlaps.paf\n    output: BJ/ONT/BJ.all.ONT.corrected.fasta\n    jobid: 0\n"
         "    reason: Forced execution\n    wildcards: sample=BJ\n    threads: 32\n    resources: mem_mb=384000, mem_mib=366211, disk_mb=772244, gpu=2, cpus_per_gpu=16\n", "", COST),
    Case("a-parameter-server-begins-again", GITHUB + "tensorflow/tensorflow/issues/7767",
         "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.framework.errors_impl.UnavailableError'>, {\"created\":\"@1487751897.191020037\",\"description\":"
         '"EOF","file":"external/grpc/src/core/lib/iomgr/tcp_posix.c","file_line":235,"grpc_status":14}\nW tensorflow/core/framework/op_kernel.cc:993] Unavailable:'
         ' {"created":"@1487751897.191020037","description":"EOF","file":"external/grpc/src/core/lib/iomgr/tcp_posix.c","file_line":235,"grpc_status":14}\n'
         '         [[Node: Assign_1_S295 = _Recv[_start_time=0, client_terminated=false, tensor_name="edge_30_Assign_1", tensor_type=DT_INT64]()]]\n', "Unavailable", COST),
    Case("an-evaluation-that-is-over", GITHUB + "open-mmlab/mmdetection/issues/3959",
         "".join(f"2020-10-19 22:0{n},760 - mmdet - INFO - Epoch [1][4{n}50/4502]   lr: 0.00353, eta: 1 day, 1:25:27, time: 0.878, memory: 6930, s0.loss_cls: 0.4002, loss: 2.6642\n"
                 for n in range(6)) + "[>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>] 458/458, 0.5 task/s, elapsed: 952s, ETA:     0s15\n", "", COST),
    Case("alignments-that-are-left-out", GITHUB + "aqlaboratory/openfold/issues/313",
         "".join(f"WARNING:root:Failed to run alignments for 6ka{c}_A. Skipping...\n" for c in "lmnopq"), "", COST),
    Case("a-small-gpt-on-amd", GITHUB + "pytorch/pytorch/issues/95808",
         "Overriding config with config/train_shakespeare_char.py:\n# don't print too too often\nlog_interval = 10\nalways_save_checkpoint = False\n"
         "Overriding: compile = False\ntokens per iteration will be: 16,384\nnumber of parameters: 10.65M\nstep 0: train loss 4.2874, val loss 4.2823\n"
         "Memory access fault by GPU node-4 (Agent handle: 0x8a9dd50) on address 0x7f4cf87ff000. Reason: Unknown.\nAborted\n", "ROCm error", COST),
    Case("a-long-command-of-modernmt", GITHUB + "modernmt/modernmt/issues/562",
         "(3/4) Generating binary archives SKIPPED\n(4/4) Training neural model\n    (1/2) Train neural network...                                \nERROR Unexpected exception: Command"
         " 'fairseq-train /home/ann/data_generated --save-dir /home/ann/nn_model --task mmt_translation --no-progress-bar --dataset-impl mmap --clip-norm 0.0 --keep-last-epochs 10'"
         " failed with exit code 1\n", "Unexpected exception: Command 'fairseq-train", COST),
    Case("devices-that-are-busy", GITHUB + "broadinstitute/CellBender/issues/127",
         "cellbender:remove-background: Trimming dataset for inference.\ncellbender:remove-background: Including 19694 genes that have nonzero counts.\n" + FRAME
         + "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\nCUDA kernel errors might be asynchronously reported at some other API call.\n",
         "CUDA error", COST),
    Case("more-processors-than-residues", GITHUB + "radical-cybertools/radical.pilot/issues/621",
         " Must have more residues than processors!\n" * 15, "Must have more residues than processors", COST),
    Case("cp2k-aborts", GITHUB + "open-mpi/ompi/issues/12503",
         "-" * 74 + "\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\nNOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n"
         "You may or may not see output from other processes, depending on\nexactly when Open MPI kills them.\n" + "-" * 74 + "\n", "MPI_ABORT", COST),
    Case("a-type-that-the-half-of-the-steps-meets", GITHUB + "huggingface/transformers/issues/34702",
         "".join(f"\r 49%|████▉     | {n}/351 [22:17<23:47,  7.98s/it]" for n in range(165, 173)) + FRAME
         + "RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16\n", "expected dtype float for `end`", COST),
    Case("a-template-that-is-not-there", GITHUB + "aqlaboratory/openfold/issues/55",
         "*******************5IZB_A*******************\nTraceback (most recent call last):\n  File \"run_pretrained_openfold.py\", line 253, in <module>\n    main(args)\n  File"
         ' "/w/openfold/data/templates.py", line 827, in _process_single_hit\n    with open(cif_path, "r") as cif_file:\nFileNotFoundError: [Errno 2] No such file or directory:'
         " '/public/alphafold2_database/mmcif/mmcif_files/4zai.cif'\n", "FileNotFoundError", COST),
    Case("a-chain-of-jobs-that-are-run-again", GITHUB + "hillerlab/make_lastz_chains/issues/48",
         "executor >  local (628)\n[33/b87af4] process > execute_jobs (620) [ 25%] 621 of 2414\n\nexecutor >  local (629)\n[a0/766938] process > execute_jobs (605) [ 25%] 622 of 2415,"
         " failed: 1, retri...\n[a0/766938] NOTE: Process `execute_jobs (605)` terminated with an error exit status (1) -- Execution is retried (1)\n\nexecutor >  local (630)\n"
         "[37/c0e27f] process > execute_jobs (622) [ 25%] 623 of 2416, failed: 2, retri...\n[5f/02fc3c] NOTE: Process `execute_jobs (606)` terminated with an error exit status (1) --"
         " Execution is retried (1)\n", "", COST),
    Case("a-shard-without-storage", GITHUB + "facebookresearch/fairscale/issues/920",
         'Traceback (most recent call last):\n  File "xi_train.py", line 363, in <module>\n    mp.spawn(\n  File "/e/torch/multiprocessing/spawn.py", line 150, in join\n'
         "    raise ProcessRaisedException(msg, error_index, failed_process.pid)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 3 terminated with the following"
         ' error:\nTraceback (most recent call last):\n  File "/e/torch/multiprocessing/spawn.py", line 59, in _wrap\n    fn(i, *args)\n  File "/w/xi_train.py", line 255, in train\n'
         "    loss_dict['total_loss'].backward()\nRuntimeError: setStorage: sizes [512, 80], strides [80, 1], storage offset 0, and itemsize 4 requiring a storage size of 163840 are out"
         " of bounds for storage of size 0\n\n", "RuntimeError: setStorage", COST),
)  # fmt: skip

# The third and the fourth fifteen of the 64.
DRAWN_19 = (
    Case("a-partition-that-there-is-not", GITHUB + "Deep-MI/FastSurfer/issues/580",
         "# discard the exit code of run_fastsurfer (exit with success), so following\nexit 0\n--- end of script ---\nsbatch: error: invalid partition specified:  gpu\n"
         "sbatch: error: Batch job submission failed: Invalid partition name specified\n", "Invalid partition name specified", COST),
    Case("a-second-epoch-of-lightning", GITHUB + "fairy-stockfish/variant-nnue-pytorch/issues/39",
         "Epoch 1:   0%|▏         | 1/1283 [00:00<00:08, 155.67it/s, loss=0.0168, v_num=7]\nTraceback (most recent call last):" + " " * 60
         + '\n  File "/e/pytorch_lightning/trainer/call.py", line 38, in _call_and_handle_interrupt' + " " * 40 + "\n    return trainer_fn(*args, **kwargs)" + " " * 40
         + "\nRuntimeError: Trying to resize storage that is not resizable" + " " * 40 + "\n", "Trying to resize storage", COST),
    Case("the-sixteenth-process-aborts", GITHUB + "ddarriba/modeltest/issues/36",
         "application called MPI_Abort(MPI_COMM_WORLD, -1) - process 16\n", "of rank 16", COST),
    Case("a-workflow-that-says-only-its-name", GITHUB + "photon-mosaic/photon-mosaic-pipeline/issues/108",
         "INFO:snakemake.workflow:SLURM execution enabled\nNo validation issues detected.\nINFO:snakemake.workflow:Found 2 TIFF file(s)\n"
         "WorkflowError:\nAt least one job did not complete successfully.\n", "WorkflowError", COST),
    Case("a-shape-of-a-worker-s-array", GITHUB + "cherise215/atria_segmentation_2018/issues/4",
         "No checkpoint found at 'models/atria_mt_model.pkl'\n/e/torch/optim/lr_scheduler.py:134: UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.\n"
         '  "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate", UserWarning)\n' + FRAME + "ValueError: Caught ValueError in DataLoader worker process 0.\n"
         "Original Traceback (most recent call last):\n  File \"/e/torch/utils/data/_utils/worker.py\", line 287, in _worker_loop\n    data = fetcher.fetch(index)\n"
         "ValueError: could not broadcast input array from shape (81,576) into shape (80,576)\n", "could not broadcast input array", COST),
    Case("parameters-that-are-loaded", GITHUB + "aqlaboratory/openfold/issues/266",
         "INFO:/home/ann/openfold/openfold/utils/script_utils.py:Loaded OpenFold parameters at openfold/resources/openfold_params/finetuning_ptm_2.pt...\n", "", COST),
    Case("an-overload-that-is-deprecated", GITHUB + "ekosman/AnomalyDetectionCVPR2018-Pytorch/issues/73",
         "2021-03-05 11:48:00,130 Training for 3 epochs\n/w/network/anomaly_detector_model.py:36: UserWarning: This overload of nonzero is deprecated:\n\tnonzero()\n"
         "Consider using one of the following signatures instead:\n\tnonzero(*, bool as_tuple) (Triggered internally at  /pytorch/torch/csrc/utils/python_arg_parser.cpp:882.)\n"
         "  normal_vids_indices = (y_true == 0).nonzero().flatten()\n2021-03-05 11:48:02,943 Epoch 0/3      Iteration 0/1    loss: 1.0325759649276733    Time: 2.812 seconds/iteration\n"
         "2021-03-05 11:48:02,943 Save the model after epoch 0\n2021-03-05 11:48:02,961 \n" + "=" * 57 + "\n", "", COST),
    Case("a-step-that-was-cancelled", GITHUB + "tensorflow/tensorflow/issues/18268",
         "".join(f"INFO:tensorflow:global step {n}: loss: 0.8154 (15.70 sec/step)\n" for n in range(481, 492)) + "INFO:tensorflow:Error reported to Coordinator: <class"
         " 'tensorflow.python.framework.errors_impl.CancelledError'>, Step was cancelled by an explicit call to `Session::Close()`.\n" + FRAME
         + "tensorflow.python.framework.errors_impl.CancelledError: Step was cancelled by an explicit call to `Session::Close()`.\n", "Step was cancelled", COST),
    Case("a-server-that-was-not-started", GITHUB + "tensorflow/tensorflow/issues/17736",
         "2018-03-15 19:59:32.315443: I tensorflow/core/distributed_runtime/rpc/grpc_server_lib.cc:324] Started server with target: grpc://localhost:37060\nVariables initialized ...\n"
         "WARNING:tensorflow:From ./demo.py:75: __init__ (from tensorflow.python.training.supervisor) is deprecated and will be removed in a future version.\n" + FRAME
         + "tensorflow.python.framework.errors_impl.UnavailableError: OS Error\n", "UnavailableError: OS Error", COST),
    Case("a-translation-that-stops-without-a-word", GITHUB + "facebookresearch/fairseq/issues/2401",
         "".join(f"2020-08-01 01:36:18 | INFO | fairseq.distributed_utils | initialized host statnlp-super as rank {n}\n" for n in range(4))
         + "2020-08-01 01:36:21 | INFO | fairseq_cli.train | Namespace(activation_dropout=0.0, activation_fn='relu', adam_betas='(0.9, 0.999)', all_gather_list_size=16384)\n", "", COST),
    Case("a-bar-below-its-error", GITHUB + "YunYang1994/tensorflow-yolov3/issues/367",
         "ValueError: could not convert string to float: \ntrain loss: 1955.33:  50%|█████     | 2/4 [00:18<00:18,  9.34s/it]\n\nProcess finished with exit code 1\n",
         "could not convert string to float", COST),
    Case("statistics-of-a-worker", GITHUB + "secretflow/secretflow/issues/149",
         "[2022-10-11 11:23:57,274 I 48450 48450] core_worker_process.cc:120: Constructing CoreWorkerProcess. pid: 48450\n[2022-10-11 11:23:57,383 I 48450 48490] core_worker.cc:494:"
         " Event stats:\n\n\nGlobal stats: 16 total (11 active)\nQueueing time: mean = 194.006 us, max = 1.110 ms, min = 198.231 us, total = 3.104 ms\nEvent stats:\n"
         "        PeriodicalRunner.RunFnPeriodically - 7 total (2 active, 1 running), CPU time: mean = 52.534 us, total = 367.740 us\n"
         "        UNKNOWN - 3 total (3 active), CPU time: mean = 0.000 s, total = 0.000 s\n", "", COST),
    Case("ray-when-it-was-young", GITHUB + "ray-project/ray/issues/1481",
         "A worker died or was killed while executing a task.\n\n  You can inspect errors by running\n\n      ray.error_info()\n\n  If this driver is hanging, start a new one with\n\n"
         '      ray.init(redis_address="10.98.246.67:6379")\n', "rank died", COST),
    Case("a-worker-of-julia", GITHUB + "astroautomata/PySR/issues/1109",
         "ERROR: LoadError: On worker 2:\nUndefVarError: `test_function` not defined in `Main`\nStacktrace:\n  [1] #remotecall_fetch#109\n    @"
         " ~/.julia/juliaup/julia-1.12.3/share/julia/stdlib/v1.12/Distributed/src/remotecall.jl:465\n  [2] remotecall_fetch\n    @"
         " ~/.julia/juliaup/julia-1.12.3/share/julia/stdlib/v1.12/Distributed/src/remotecall.jl:454\n", "worker 2", COST),
    Case("a-group-of-the-second-node", GITHUB + "ByteDance-Seed/Bagel/issues/295",
         '[rank15]: Traceback (most recent call last):\n[rank15]:   File "/w/train/pretrain_unified_navit.py", line 565, in main\n[rank15]:     ema_model = fsdp_ema_setup(ema_model,'
         " fsdp_config)\n[rank15]:                 ^^^^^^^^^^^^^^^^^^^^^^^^\n[rank15]:   File \"/e/torch/distributed/fsdp/_init_utils.py\", line 127, in _init_process_group_state\n"
         "[rank15]:     state = _dim_group_infos[0]\n[rank15]: IndexError: list index out of range\n", "of rank 15 ([rank15]: IndexError: list index out of range", COST),
)  # fmt: skip
DRAWN_20 = (
    Case("a-mistral-is-killed-behind-a-bar", GITHUB + "hiyouga/LlamaFactory/issues/1827",
         "[INFO|trainer.py:1768] 2023-12-13 14:41:51,193 >>   Total optimization steps = 6\n[INFO|trainer.py:1769] 2023-12-13 14:41:51,193 >>   Number of trainable parameters ="
         " 7,241,732,096\n  0%|          | 0/6 [00:00<?, ?it/s]Killed\n", "host out of memory", COST),
    Case("rules-that-failed-one-after-another", GITHUB + "harvardinformatics/snparcher/issues/252",
         "".join(f"[Wed May 14 15:31:10 2025]\nError in rule bwa_map:\n    message: None\n    jobid: {n}\n    input: results/data/genome/a.fna\n    log: logs/bwa_mem/a.txt (check log"
                 " file(s) for error details)\n    shell:\n\tbwa mem -M -t 16 results/data/genome/a.fna\n        (command exited with non-zero exit code)\n" for n in (540, 296)),
         "Error in rule bwa_map", COST),
    Case("a-file-of-julia-s-cluster", GITHUB + "JuliaParallel/ClusterManagers.jl/issues/140",
         "ERROR: LoadError: TaskFailedException:\nIOError: unlink: no such file or directory (ENOENT)\nStacktrace:\n [1] uv_error at ./libuv.jl:97 [inlined]\n"
         " [2] unlink(::String) at ./file.jl:885\n", "TaskFailedException", COST),
    Case("a-table-without-rows", GITHUB + "bme-chatbots/dialogue-generation/issues/22",
         "epoch    train_loss    train_acc    train_ppl    valid_loss    valid_acc    valid_ppl\n-------  ------------  -----------  -----------  ------------  -----------\n"
         + "Traceback (most recent call last):" + " " * 60 + '\n  File "/w/src/train.py", line 760, in main\n    for values in valid_metrics\n'
         "ValueError: not enough values to unpack (expected 3, got 0)\n", "not enough values to unpack", COST),
    Case("a-workflow-that-looks-above", GITHUB + "jonahcullen/wags/issues/38",
         "[Fri Oct 13 12:26:03 2023]\nFinished job 86.\n3 of 170 steps (2%) done\nExiting because a job execution failed. Look above for error message\n"
         "Complete log: .snakemake/log/2023-10-13T113007.174231.snakemake.log\n", "a job execution failed", COST),
    Case("a-gradient-of-dpo", GITHUB + "huggingface/trl/pull/2539",
         'Traceback (most recent call last):\n  File "/w/dpo/example.py", line 159, in <module>\n    main(script_args, training_args, model_args)\n  File'
         ' "/e/torch/autograd/__init__.py", line 251, in backward\n    Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass\n'
         "RuntimeError: Function MulBackward0 returned an invalid gradient at index 0 - got [64] but expected shape compatible with [0]\n",
         "Function MulBackward0 returned an invalid gradient", COST),
    Case("a-slip-in-a-cell", GITHUB + "aqlaboratory/openfold/issues/162",
         '  File "<ipython-input-6-ac125295258f>", line 43\n    if(weight_set == "AlphaFold")\n                                 ^\nSyntaxError: invalid syntax\n',
         "SyntaxError: invalid syntax", COST),
    Case("a-worker-dies-behind-its-work", GITHUB + "ray-project/ray/issues/31828",
         "(RayTrainWorker pid=1942, ip=100.97.252.234) 17-Jan-23 17:21:19 [Worker:0] [INFO] Returning from train func!!\n2023-01-17 17:21:35,472\tWARNING worker.py:1829 -- A worker"
         " died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker.\n"
         "2023-01-17 17:21:35,509\tERROR trial_runner.py:980 -- Trial TorchTrainer_b13e7_00000: Error processing event.\n", "rank died", COST),
    Case("matlab-ends-well-below-pbs", GITHUB + "automaticanalysis/automaticanalysis/issues/126",
         "Warning: Function mkdir has the same name as a MATLAB builtin. We suggest you\nrename the function to avoid a potential name conflict. \n \n2017-08-30 11:13:56 | About to"
         " exit MATLAB normally\n2017-08-30 11:13:56 | About to exit with code: 0\n" + "-" * 62 + "\nBegin PBS Epilogue Wed Aug 30 11:14:01 CDT 2017 1504109641\n"
         "Job ID:\t\t\t3268574.mgt2.cluster\nJob Name:\t\tJob26.1\nLimits:       \tmem=1000mb,neednodes=1:ppn=1,nodes=1:ppn=1\n", "", COST),
    Case("a-session-that-is-made-again", GITHUB + "tensorflow/tensorflow/issues/27562",
         "INFO:tensorflow:An error was raised while a session was being created. This may be due to a preemption of a connected worker or parameter server. A new session will be"
         " created. If this error occurs repeatedly, try increasing the number of parameter servers assigned to the job. Error: OS Error\nINFO:tensorflow:Graph was finalized.\n",
         "", COST),
    Case("mpi-is-finished-twice", GITHUB + "huilinye/OpenFSI/issues/4",
         "*** The MPI_Finalize() function was called after MPI_FINALIZE was invoked.\n*** This is disallowed by the MPI standard.\n*** Your MPI job will now abort.\n"
         "[(null):193940] Local abort after MPI_FINALIZE completed successfully; not able to aggregate error messages, and not able to guarantee that all other processes were"
         " killed!\n", "MPI_Finalize() function was called after", COST),
    Case("a-test-of-gromacs", GITHUB + "UCL-ARC/rcps-buildscripts/issues/467",
         "Testing nbnxn_vsite . . . gmx_mpi_cuda grompp -f nbnxn_vsite/grompp.mdp -c nbnxn_vsite/conf  >grompp.out 2>grompp.err\n\nAbnormal return value for 'mpirun -np 6 -wdir"
         " nbnxn_vsite gmx_mpi_cuda mdrun        -notunepme >mdrun.out 2>&1' was -1\nFAILED. Check mdrun.out, md.log file(s) in nbnxn_vsite for nbnxn_vsite\n",
         "Abnormal return value", COST),
    Case("a-batch-that-stalls", GITHUB + "DynaSim/DynaSim/issues/300",
         "ui_command =  matlab -nodisplay -singleCompThread -r\nm_command =  sim_job3\ncwd =  /w/batchdirs/study_d171206\nHOSTNAME =  scc-hb1.scc.bu.edu\nJOB_NAME =  2913964\n", "",
         COST),
    Case("a-critical-message-and-the-script-goes-on", GITHUB + "prehensilecode/alphafold_singularity/issues/26",
         "SLURM_GPUS_ON_NODE=4\nSLURM_JOB_GPUS=0,1,2,3\nCRITICAL:absl:No. of GPUs requested is > 1: 4\n" + "".join(
             f"I0228 09:32:23.92302{n} 23456247859008 run_singularity.py:137] Binding /w/uniref9{n} -> /mnt/uniref9{n}_database_path\n" for n in range(6)), "", COST),
    Case("ranks-of-palace-abort", GITHUB + "sqdlab/SQDMetal/issues/24",
         "".join("-" * 74 + f"\nMPI_ABORT was invoked on rank {n} in communicator MPI_COMM_WORLD\n  Proc: [[25898,0],{n}]\n  Errorcode: 1\n\nNOTE: invoking MPI_ABORT causes Open MPI to"
                 " kill all MPI processes.\nYou may or may not see output from other processes, depending on\nexactly when Open MPI kills them.\n" + "-" * 74 + "\n" for n in (7, 6, 2)),
         "of rank 7", COST),
)  # fmt: skip


@each(*DRAWN_15, *DRAWN_16, *DRAWN_17, *DRAWN_18, *DRAWN_19, *DRAWN_20)
def test_the_cause_in_a_log_that_was_drawn_by_its_end(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
