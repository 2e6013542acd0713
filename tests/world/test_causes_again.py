"""Causes in logs of a third list of threads, drawn and hunted; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, ELASTIC, FRAME, GITHUB, STEPS, of_rank

COMPOSER = "ERROR:composer.cli.launcher:"
DEATH = "torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down workers\n"
THC = "/pytorch/aten/src/THC/THCTensorScatterGather.cu:130: void THCudaTensor_scatterKernel(TensorInfo<Real, IndexType>): block: [0,0,0], thread: [{n},0,0] "
MMDET = (
    "2019-04-28 14:47:29,417 - INFO - Epoch [4][{n}/7330]\tlr: 0.02000, eta: 12:17:21, time: 0.667, data_time: 0.046, memory: 3955, loss_rpn_cls: 0.0432,"
    " loss: 0.7719\n"
)

# Seed 4216, from 83 threads whose forms no test had.
DRAWN_9 = (
    Case("a-lock-that-a-panic-poisoned", GITHUB + "fenghuayumo/DIVSHOT/issues/15",
         "Training crashed with panic: called `Result::unwrap()` on an `Err` value: \"poisoned lock: another task failed inside\"\n", "poisoned lock", COST),
    Case("a-rank-of-composer-on-the-bus", GITHUB + "mosaicml/llm-foundry/issues/258",
         "Building eval loader...\nBuilding trainer...\n" + COMPOSER + "Rank 2 crashed with exit code -7.\nWaiting up to 30 seconds for all training processes to"
         " terminate. Press Ctrl-C to exit immediately.\n", "bus error of rank 2", COST),
    Case("a-module-that-fire-runs", GITHUB + "axolotl-ai-cloud/axolotl/issues/1599",
         "**** Axolotl Dependency Versions *****\n  accelerate: 0.28.0         \n        peft: 0.10.0         \n****************************************\n"
         'Traceback (most recent call last):\n  File "/usr/lib/python3.10/runpy.py", line 196, in _run_module_as_main\n    return _run_code(code, main_globals, None,\n'
         '  File "/w/fire/core.py", line 143, in Fire\n    component_trace = _Fire(component, args, parsed_flag_args, context, name)\n'
         "TypeError: check_example_labels() got an unexpected keyword argument 'text_only'\n", "TypeError: check_example_labels()", COST),
    Case("a-folder-of-the-job-s-container", GITHUB + "ArjunaCluster/ArjunaUsers/issues/123",
         "slurmstepd: error: container_p_join: open failed /scratch/119383/.active: No such file or directory\nslurmstepd: error: container_g_join failed: 119383\n",
         "container_p_join", COST),
    Case("an-index-out-of-range-in-an-epoch", GITHUB + "open-mmlab/mmdetection/issues/554",
         "".join(MMDET.replace("{n}", str(n)) for n in range(1800, 2450, 50))
         + "".join(THC.replace("{n}", str(n)) + "Assertion `linearIndex < size && linearIndex >= -size` failed.\n" for n in range(32, 64)),
         "Assertion `linearIndex < size", COST),
    Case("an-evaluation-that-is-packed", GITHUB + "modelscope/ms-swift/issues/6236",
         FRAME.replace("trainer.fit()", "inputs = to_device(template.data_collator(batched_inputs), self.model.device)") + "KeyError: 'length'\n",
         "KeyError: 'length'", COST),
    Case("carets-under-a-subscript", GITHUB + "modelscope/ms-swift/issues/5567",
         STEPS + of_rank(0, FRAME.replace("trainer.fit()", "if self._logs['image']:\n       ~~~~~~~~~~^^^^^^^^^") + "KeyError: 'image'\n"),
         "of rank 0 ([rank0]: KeyError: 'image')", COST),
    Case("a-bucket-that-is-not-reached", GITHUB + "tensorflow/tensorflow/issues/38261",
         "INFO:tensorflow:Saving checkpoints for 1200 into gs://b/model.ckpt.\n" + FRAME
         + "tensorflow.python.framework.errors_impl.InternalError: : Unable to connect to endpoint\n\t [[node save/SaveV2_1 (defined at"
         " usr/local/lib/python2.7/dist-packages/tensorflow_estimator/python/estimator/keras.py:334) ]]\n\nErrors may have originated from an input operation.\n",
         "Unable to connect to endpoint", COST),
    Case("a-communicator-that-is-still-held", GITHUB + "huggingface/trl/issues/3408",
         "INFO 05-02 23:36:34 [utils.py:1055] Found nccl from library libnccl.so.2\nINFO 05-02 23:36:34 [pynccl.py:69] vLLM is using nccl==2.21.5\nNCCL error:"
         " unhandled system error (run with NCCL_DEBUG=INFO for details)\n", "NCCL error", COST),
    Case("a-signal-to-torchrun", GITHUB + "hpcaitech/ColossalAI/issues/4353",
         "[07/31/23 02:53:39] INFO     colossalai - colossalai - INFO: ***** Running      \n                             training *****                     \n"
         "WARNING:torch.distributed.elastic.agent.server.api:Received 15 death signal, shutting down workers\n"
         "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812 closing signal SIGTERM\n" + FRAME
         + "torch.distributed.elastic.multiprocessing.api.SignalException: Process 800 got signal: 15\n", "signal to the launcher", COST),
    Case("a-dataset-without-messages", GITHUB + "modelscope/ms-swift/issues/6595",
         of_rank(3, FRAME) + of_rank(3, "KeyError: 'messages'\n"), "KeyError: 'messages'", COST),
    Case("a-trainer-whose-inference-died", GITHUB + "PrimeIntellect-ai/prime-rl/issues/1360",
         "[default0]:12:13:46    INFO Starting training step 0\n[default0]:12:13:46    INFO Waiting for training batch to arrive\nW1130 12:13:49.388000 124326 "
         + DEATH + "W1130 12:13:49.389000 124326 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 124533 closing signal SIGTERM\n",
         "signal to the launcher", COST),
    Case("three-programs-say-the-same", GITHUB + "axolotl-ai-cloud/axolotl/issues/2847",
         FRAME + "AssertionError\n" + FRAME.replace("trainer.fit()", "simple_launcher(args)")
         + "subprocess.CalledProcessError: Command '['/v/bin/python', '-m', 'axolotl.cli.train', '/c/main.yml']' returned non-zero exit status 1.\n"
         "[2025-06-30 12:49:32,482] [ERROR] [axolotl.cli.main.train:184] [PID:22098] [RANK:0] Failed to train/fine-tune config '/c/main.yml': Command '['accelerate',"
         " 'launch', '-m', 'axolotl.cli.train', '/c/main.yml']' returned non-zero exit status 1.\n", "AssertionError", COST),
    Case("two-files-of-one-name-in-a-tar", GITHUB + "ray-project/ray/pull/48643",
         FRAME + "ray.exceptions.RayTaskError(ValueError): ray::ReadWebDataset() (pid=99, ip=10.0.0.7)\n"
         '  File "/w/webdataset_datasource.py", line 120, in _group_by_keys\n    raise ValueError(\nValueError: fx001.jpg: duplicate file name in tar file jpg'
         " dict_keys(['__key__', 'jpg', 'json'])\n", "duplicate file name in tar file", COST),
    Case("an-input-above-one", GITHUB + "open-mmlab/mmdetection/issues/7151",
         "".join(f"/pytorch/aten/src/ATen/native/cuda/Loss.cu:115: operator(): block: [134,0,0], thread: [{n},0,0] Assertion `input_val >= zero && input_val <= one`"
                 " failed.\n" for n in range(32, 64)) + FRAME + "RuntimeError: CUDA error: device-side assert triggered\n",
         "Assertion `input_val >= zero", COST),
)  # fmt: skip
DRAWN_10 = (
    Case("an-old-check-of-thc", GITHUB + "open-mmlab/mmdetection/pull/820",
         THC.replace("{n}", "95") + "Assertion `indexValue >= 0 && indexValue < tensor.sizes[dim]` failed.\nTHCudaCheck FAIL"
         " file=/opt/conda/conda-bld/pytorch_1556653114079/work/aten/src/THC/THCReduceAll.cuh line=327 error=59 : device-side assert triggered\n" + FRAME
         + "RuntimeError: cuda runtime error (59) : device-side assert triggered at /w/THCReduceAll.cuh:327\n", "Assertion `indexValue >= 0", COST),
    Case("nan-in-what-is-measured", GITHUB + "luost26/diffusion-point-cloud/issues/36",
         "[lgan_mmd-CD] nan\n[lgan_cov-CD] 0.24250001\n[lgan_mmd_smp-CD] nan\n" + FRAME + "ValueError: Input contains NaN, infinity or a value too large for"
         " dtype('float32').\n", "ValueError: Input contains NaN", COST),
    Case("a-global-rank-of-composer", GITHUB + "mosaicml/llm-foundry/issues/1501",
         "2024-08-30 11:06:12,928: rank0[208865][MainThread]: INFO: composer.trainer.trainer: Run name: llm\n" + COMPOSER
         + "Global rank 0 (PID 208865) exited with code -11\n", "segmentation fault of rank 0", COST),
    Case("a-fault-below-a-bar", GITHUB + "milesial/Pytorch-UNet/issues/193",
         "".join(f"\rEpoch 1/5:  11%|█         | {n}/90 [00:01<00:08,  8.95img/s, loss (batch)=0.0278]" for n in range(2, 12)) + "\nsegmentation fault (core dumped)\n",
         "segmentation fault", COST),
    Case("a-panic-on-the-way-of-another", GITHUB + "lshqqytiger/ZLUDA/issues/28",
         STEPS + "thread '<unnamed>' panicked at zluda_rtc\\src\\lib.rs:34:16:\n[ZLUDA] HIPRTC failed: 11\nnote: run with `RUST_BACKTRACE=1` environment variable to"
         " display a backtrace\nthread '<unnamed>' panicked at library\\panic_unwind\\src\\seh.rs:260:8:\nRust panics cannot be copied\nstack backtrace:\n   0:"
         "     0x7ff83202601a - nvrtcGetLoweredName\n", "HIPRTC failed: 11", COST),
    Case("a-key-of-a-worker-s-sample", GITHUB + "mlfoundations/open_clip/issues/935",
         FRAME + "KeyError: Caught KeyError in DataLoader worker process 3.\nOriginal Traceback (most recent call last):\n"
         '  File "./src/training/data.py", line 281, in group_by_keys_nothrow\n    fname, value = filesample["fname"], filesample["data"]\nKeyError: \'fname\'\n',
         "KeyError: 'fname'", COST),
    Case("a-writer-s-thread-that-stops-the-training", GITHUB + "lanpa/tensorboardX/issues/606",
         STEPS + 'Exception in thread Thread-65:\nTraceback (most recent call last):\n  File "/d/urllib3/connectionpool.py", line 677, in urlopen\n    chunked=chunked,\n'
         "http.client.RemoteDisconnected: Remote end closed connection without response\n\nDuring handling of the above exception, another exception occurred:\n\n"
         'Traceback (most recent call last):\n  File "/d/requests/adapters.py", line 449, in send\n    timeout=timeout\n'
         "urllib3.exceptions.ProtocolError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))\n",
         "Remote end closed connection", COST),
    Case("a-step-of-the-chat-is-killed", GITHUB + "deepspeedai/DeepSpeed/issues/3261",
         "[2023-04-16 08:08:00,497] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 364004\n[2023-04-16 08:08:01,554] [ERROR]"
         " [launch.py:434:sigkill_handler] ['/v/bin/python', '-u', 'main.py', '--local_rank=1'] exits with return code = -9\n"
         'Traceback (most recent call last):\n  File "/w/train.py", line 210, in <module>\n    main(args)\n  File "/w/train.py", line 175, in launch_cmd\n'
         "    raise RuntimeError('\\n\\n'.join((\nRuntimeError: Step 2 exited with non-zero status 247\n", "rank died", COST),
    Case("a-command-that-died-of-a-signal", GITHUB + "ShivamShrirao/diffusers/issues/112",
         'Traceback (most recent call last):\n  File "/v/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n  File "/v/accelerate/commands/launch.py", line 540,'
         " in simple_launcher\n    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)\nsubprocess.CalledProcessError: Command"
         " '['/v/bin/python', 'train_dreambooth.py']' died with <Signals.SIGSEGV: 11>.\n", "segmentation fault", COST),
    Case("a-server-that-is-asked-too-often", GITHUB + "huggingface/trl/issues/3622",
         STEPS + of_rank(0, FRAME + "requests.exceptions.ConnectionError: ('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))\n"),
         "Remote end closed connection", COST),
    Case("trackers-of-resources-below-a-rank", GITHUB + "mosaicml/examples/issues/292",
         "2023-04-24 16:03:12,379: rank0[1003409][MainThread]: DEBUG: composer.utils.dist: Initializing torch.dist: global_rank=0\n" + COMPOSER
         + "Rank 1 crashed with exit code 1.\nWaiting up to 30 seconds for all training processes to terminate. Press Ctrl-C to exit immediately.\n"
         + "/e/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: There appear to be 6 leaked shared_memory objects to clean up at shutdown\n"
         "  warnings.warn('resource_tracker: There appear to be %d '\n"
         + "/e/multiprocessing/resource_tracker.py:237: UserWarning: resource_tracker: '/af0626_barrier': [Errno 2] No such file or directory: '/af0626_barrier'\n"
         "  warnings.warn('resource_tracker: %r: %s' % (name, e))\n" * 2, "ank 1", COST),
    Case("a-fault-without-a-space", GITHUB + "lmb-freiburg/demon/issues/32",
         "nothing to restore. no checkpoint found.\ntrain evolution \"0_flow1\" ...\nstart iteration 0\n2017-12-19 22:36:48.508170: I"
         " tensorflow/stream_executor/dso_loader.cc:139] successfully opened CUDA library libcupti.so.8.0 locally\nSegmentation fault(core dumped)\n",
         "segmentation fault", COST),
    Case("a-token-that-is-not-in-a-list", GITHUB + "modelscope/ms-swift/issues/6157",
         of_rank(0, FRAME + "ValueError: 151655 is not in list\n"), "ValueError: 151655 is not in list", COST),
    Case("memory-of-a-gpu-that-cannot-be-corrected", GITHUB + "pytorch/pytorch/issues/63174",
         STEPS + FRAME + "RuntimeError: transform: failed to synchronize: cudaErrorECCUncorrectable: uncorrectable ECC error encountered\nterminate called after"
         " throwing an instance of 'c10::Error'\n  what():  CUDA error: uncorrectable ECC error encountered\nException raised from create_event_internal at"
         " /opt/conda/conda-bld/pytorch_1616554793803/work/c10/cuda/CUDACachingAllocator.cpp:733 (most recent call first):\n", "GPU memory error", COST),
    Case("submitit-is-preempted", GITHUB + "facebookincubator/submitit/pull/1701",
         STEPS + "submitit WARNING (2022-07-12 04:18:45,706) - Bypassing signal SIGTERM\nsubmitit INFO (2022-07-12 04:18:45,881) - Job has not timed out. Ran 1 minutes"
         " out of requested 20 minutes.\nsubmitit WARNING (2022-07-12 04:18:45,881) - Caught signal SIGHUP on learnfair0293: this job is preempted.\nsubmitit INFO"
         " (2022-07-12 04:18:45,912) - Requeued job 60601445 (3 remaining timeouts)\nsubmitit INFO (2022-07-12 04:18:45,913) - Exiting gracefully after"
         " preemption/timeout.\n", "preempt", COST),
)  # fmt: skip

# Seed 4217, from the 53 that were left.
DRAWN_11 = (
    Case("a-command-that-was-killed", GITHUB + "bmaltais/kohya_ss/issues/1398",
         'Traceback (most recent call last):\n  File "/v/accelerate/commands/launch.py", line 623, in simple_launcher\n    raise subprocess.CalledProcessError('
         "returncode=process.returncode, cmd=cmd)\nsubprocess.CalledProcessError: Command '['/usr/bin/python3', './sdxl_train_network.py']' died with"
         " <Signals.SIGKILL: 9>.\n", "rank died", COST),
    Case("a-loop-that-xtuner-builds", GITHUB + "InternLM/xtuner/issues/719",
         of_rank(0, FRAME.replace("trainer.fit()", "obj = obj_cls(**args)  # type: ignore")
                 + "ValueError: num_samples should be a positive integer value, but got num_samples=0\n"), "num_samples=0", COST),
    Case("a-job-of-kaldi-that-nobody-needs", GITHUB + "CoEDL/elpis/issues/98",
         "LOG (arpa2fst[5.3.118~1-6d32a]:Read():arpa-file-parser.cc:149) Reading 1-grams: section.\nrun.pl: job failed, log is in"
         " exp/mono/log/analyze_alignments.log\ntree-info exp/mono/tree \nfstminimizeencoded \nfstpushspecial \nfstdeterminizestar --use-log=true \n"
         "fstcomposecontext --context-size=1 --central-position=0 data/lang/tmp/LG.fst \n", "", COST),
    Case("a-compiler-that-talks-beside-a-bar", GITHUB + "marin-community/levanter/issues/584",
         "".join(f"train:   0%|          | {n}/100000 [00:46<644:59:38, 23.22s/it, loss=11.2]I0515 20:03:26.569367  443369 flash_attention.cc:1872] number of"
                 " matches: 0\n34.16.214.62: I0515 20:03:26.571009  353969 memory_space_assignment_util.cc:241] Sliced prefetch options: go/debugonly\n"
                 for n in range(2, 9)), "", COST),
    Case("a-loader-of-videos-is-killed", GITHUB + "hpcaitech/Open-Sora/issues/173",
         STEPS + FRAME + "RuntimeError: DataLoader worker (pid 3979007) is killed by signal: Killed. \n", "host out of memory", COST),
    Case("a-worker-leaves-behind-the-end", GITHUB + "verl-project/verl/issues/1299",
         "".join(f"(TaskRunner pid=3) step:{n} - actor/pg_loss:0.2 - timing_s/step:9.1\n" for n in range(90, 106))
         + "(TaskRunner pid=3) \"Final validation metrics: {'val-core/openai/gsm8k/reward/mean@1': 0.51}\"\n(TaskRunner pid=3) \rTraining Progress: 100%|██████████|"
         " 105/105 [41:12<00:00, 23.5s/it]\n(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem,"
         " check the logs for the dead worker.\n", "", COST),
    Case("a-crash-below-a-tracker-s-question", GITHUB + "mosaicml/diffusion/issues/140",
         "[2024-05-07 09:39:45,572][composer.trainer.trainer][INFO] - Run name: 1715045985-burrowing-goshawk\nwandb: (1) Create a W&B account\nwandb: (2) Use an existing"
         " W&B account\n" + COMPOSER + "Rank 0 crashed with exit code -11.\n", "segmentation fault of rank 0", COST),
    Case("a-traceback-behind-a-bar", GITHUB + "modelscope/ms-swift/issues/368",
         "".join(f"\rTrain:   1%|▊         | {n}/42940 [50:59<107:29:15,  9.08s/it]" for n in range(330, 345))
         + 'Traceback (most recent call last):\n  File "finetune.py", line 19, in <module>\n    output = sft_main(sft_args)\nKeyError: \'input_ids\'\n',
         "KeyError: 'input_ids'", COST),
    Case("no-file-for-the-error", GITHUB + "ai4d-iasc/trixie/issues/87",
         "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 20327) of binary: /g/main.py\n"
         "ERROR:torch.distributed.elastic.multiprocessing.errors.error_handler:no error file defined for parent, to copy child error file"
         " (/tmp/torchelastic_dj__qkuc/none_q4s99/attempt_0/0/error.json)\n" + ELASTIC, "of local rank 0", COST),
    Case("a-panic-within-a-panic", GITHUB + "modelfoxdotdev/modelfox/issues/98",
         "✅ Computing test stats. 27s\n🏁 Computing baseline metrics. 212389 / 230150 92% 0s 15ms elapsed 0ms remaining\nthread panicked while panicking. aborting.\n\n"
         'Thread 1 "tangram" received signal SIGILL, Illegal instruction.\n\n#0  std::panicking::rust_panic_with_hook () at library/std/src/panicking.rs:621\n',
         "panick", COST),
    Case("a-sample-without-a-picture", GITHUB + "mlfoundations/open_clip/pull/179",
         FRAME + "ValueError: Caught ValueError in DataLoader worker process 7.\nOriginal Traceback (most recent call last):\n"
         '  File "/e/webdataset/filters.py", line 117, in getfirst\n    raise ValueError(f"didn\'t find {keys} in {list(a.keys())}")\n'
         "ValueError: didn't find ['jpg', 'png'] in ['__key__', '__url__', 'json', 'txt']\n", "didn't find ['jpg', 'png']", COST),
    Case("an-actor-that-died-while-it-woke", GITHUB + "verl-project/verl/issues/2987",
         "".join(f"(TaskRunner pid=892962) {line}\n" for line in (
             "Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): ray::AsyncSglangServer.wake_up() (pid=913710, ip=100.96.31.18)",
             '  File "/w/async_sglang_server.py", line 71, in wake_up', "    ray.get(futures)",
             "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "\tclass_name: WorkerDict", "\tpid: 909447")),
         "rank died", COST),
    Case("a-root-cause-of-the-fifth-rank", GITHUB + "huggingface/accelerate/issues/1519",
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 60 + "\ntrain_enc_dec.py FAILED\n" + "-" * 60
         + "\nFailures:\n  <NO_OTHER_FAILURES>\n" + "-" * 60 + "\nRoot Cause (first observed failure):\n[0]:\n  time      : 2023-06-03_22:45:01\n  host      :"
         " gpu187.cluster.local\n  rank      : 4 (local_rank: 0)\n  exitcode  : 1 (pid: 19401)\n  error_file: <N/A>\n  traceback : To enable traceback see:"
         " https://pytorch.org/docs/stable/elastic/errors.html\n" + "=" * 60 + "\n", "of rank 4 on gpu187.cluster.local", COST),
    Case("a-store-that-hangs-up", GITHUB + "ARCC-RACE/deepracer-for-dummies/issues/23",
         "Checkpoint> Saving in path=['./checkpoint/14_Step-10846.ckpt']\n" '{"simapp_exception": {"version": "1.0", "date": "2019-08-04 04:38:10.384121", "function":'
         ' "training_worker", "message": "An error occured while training: Connection was closed before we received a valid response from endpoint URL:'
         ' \\"http://minio:9000/bucket\\".. Job failed!.", "exceptionType": "training_worker.exceptions", "eventType": "system_error", "errorCode": "503"}}\n' + FRAME
         + "botocore.exceptions.ConnectionClosedError: Connection was closed before we received a valid response from endpoint URL: \"http://minio:9000/bucket\".\n",
         "Connection was closed", COST),
    Case("a-service-of-compose-before-each-line", GITHUB + "aws-deepracer-community/deepracer-core/issues/91",
         "".join(f"algo-1-cf199_1  | {line}\n" for line in (
             "Checkpoint> Saving in path=['./checkpoint/0_Step-0.ckpt']", *FRAME.splitlines(),
             "boto3.exceptions.S3UploadFailedError: Failed to upload /opt/ml/code/checkpoint/0_Step-0.ckpt.data-00000-of-00001 to bucket/model: An error occurred"
             " (XMinioStorageFull) when calling the UploadPart operation")), "Failed to upload", COST),
)  # fmt: skip

HUNTED_4 = (
    Case("a-pointer-that-tcmalloc-does-not-know", "gperftools 2.15, src/tcmalloc.cc",
         STEPS + "src/tcmalloc.cc:333] Attempt to free invalid pointer 0x7f2c44000b20 \n", "Attempt to free invalid pointer", COST),
    Case("two-runtimes-of-openmp", "LLVM 19, openmp/runtime/src/i18n/en_US.txt",
         STEPS + "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\nOMP: Hint This means that multiple copies of the OpenMP runtime have"
         " been linked into the program.\n", "OMP: Error #15", COST),
    Case("ssh-is-closed-by-the-other-host", "OpenSSH 9.8, clientloop.c", STEPS + "Connection to gpu-7 closed by remote host.\n", "ssh to another node on gpu-7", COST),
    Case("an-allocation-that-is-taken-back", "Slurm 24.05, src/salloc/salloc.c",
         STEPS + "salloc: Job allocation 4711 has been revoked.\n", "cancelled", COST),
    Case("a-warning-signal-that-nobody-catches", "bash 5, jobs.c, and Slurm's --signal=USR1",
         STEPS + "/var/spool/slurmd/job4711/slurm_script: line 12:  9912 User defined signal 1   python train.py\n", "User defined signal 1", COST),
    Case("experts-that-wait-for-each-other", "deepseek-ai/DeepEP 1.2, csrc/kernels/internode.cu",
         STEPS + "DeepEP dispatch NVL receiver timeout, channel: 3, RDMA: 1, nvl: 2, src RDMA lane: 0, dst NVL: 5, meta: 0, 0, 0, 0\n", "DeepEP", COST),
    Case("a-library-that-tensorflow-does-without", "TensorFlow 2.9, stream_executor/platform/default/dso_loader.cc",
         "2026-01-02 03:04:05.678901: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror:"
         " libcudnn.so.8: cannot open shared object file: No such file or directory\n", "", COST),
    Case("a-line-of-json-that-is-cut", "datasets 3.2, packaged_modules/json/json.py",
         FRAME + "pyarrow.lib.ArrowInvalid: JSON parse error: Missing a closing quotation mark in string. in row 3\n\nThe above exception was the direct cause of the"
         " following exception:\n\n" + FRAME + "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset\n",
         "pyarrow.lib.ArrowInvalid: JSON parse error", COST),
    Case("an-extension-that-does-not-link", "PyTorch 2.5, torch/utils/cpp_extension.py",
         "FAILED: fused_adam.so \nc++ fused_adam_frontend.o -shared -lcudart -o fused_adam.so\n/usr/bin/ld: cannot find -lcudart: No such file or directory\ncollect2:"
         " error: ld returned 1 exit status\nninja: build stopped: subcommand failed.\n", "cannot find -lcudart", COST),
    Case("faulthandler-tells-where", "CPython 3.12, Python/pylifecycle.c with faulthandler",
         STEPS + "Fatal Python error: Segmentation fault\n\nThread 0x00007f2b (most recent call first):\n  File \"/w/data.py\", line 12 in read\n", "segmentation fault",
         COST),
    Case("an-error-that-is-a-measure", "PyTorch's own tutorial, quickstart_tutorial.py",
         "Epoch 5\n-------------------------------\nloss: 1.063  [ 6464/60000]\nTest Error: \n Accuracy: 64.6%, Avg loss: 1.075466 \n\nDone!\n", "", COST),
    Case("a-rank-without-a-heartbeat", "NVIDIA/nvidia-resiliency-ext 0.4, fault_tolerance/rank_monitor_server.py",
         STEPS + "[2026-01-02 03:04:05,678] [WARNING] [RankMonitorServer:3@gpu-7] Did not get subsequent heartbeat. Waited 600.00 seconds.\n"
         "[2026-01-02 03:04:06,001] [WARNING] [RankMonitorServer:3@gpu-7] Rank 3 will be terminated.\n", "heartbeat", COST),
    Case("a-container-of-paddle", "PaddlePaddle 2.6, distributed/launch/controllers/controller.py",
         "LAUNCH INFO 2026-01-02 03:04:05,678 Pod failed\nLAUNCH ERROR 2026-01-02 03:04:05,679 Container failed !!!\nContainer rank 0 status failed cmd ['/v/bin/python',"
         " '-u', 'train.py'] code 1 log log/workerlog.0\n", "Container failed", COST),
    Case("what-a-worker-of-nnu-net-said", "batchgenerators 0.25, dataloading/nondet_multi_threaded_augmenter.py",
         "Exception in background worker 7:\n [Errno 5] Input/output error: '/data/case_17.npy'\n" + FRAME
         + "RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print statements above for the actual error message\n",
         # Written down was the text of the error. It is told as a trouble of the file system, with the text below: arguable.
         "file system", COST),
    Case("a-collective-of-another-size", "NCCL 2.21, src/transport/net_socket.cc",
         STEPS + "gpu-7:81:120 [0] transport/net_socket.cc:531 NCCL WARN NET/Socket : peer 10.0.0.7<40712> message truncated : receiving 1048576 bytes instead of 65536."
         " If you believe your socket network is in healthy state, there may be a mismatch in collective sizes or environment settings\n", "NCCL", COST),
)  # fmt: skip


CONTROLS = (
    Case("a-limit-that-is-printed", "the control of what did not come in time", STEPS + "INFO barrier timeout: 600 s, connection timeout=30\n", "", COST),
    Case("a-request-that-is-repeated", "the control of what did not come in time", STEPS + "request timed out, retrying (2 of 5)\n", "", COST),
    Case("a-rank-that-ends-well", "composer/cli/launcher.py: the control of a rank that crashed", STEPS + "Rank 1 exited with code 0\n", "", COST),
    Case("an-exception-of-one-s-own-about-an-exit", "the control of a launcher's exception: it is told where nothing else is",
         STEPS + FRAME + "RuntimeError: converter exited with non-zero status 3\n", "converter exited with non-zero status 3", COST),
    Case("a-word-between-others", "the control of a signal's words", STEPS + "Quit smoking\nInterrupt handlers are set\n", "", COST),
)  # fmt: skip


@each(*DRAWN_9, *DRAWN_10, *DRAWN_11, *HUNTED_4, *CONTROLS)
def test_the_cause_in_a_log_of_the_third_list(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
