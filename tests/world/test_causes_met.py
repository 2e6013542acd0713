"""Causes in logs that were met outside; the answers were written before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause

GITHUB = "https://github.com/"
COST = "Somebody repairs an echo at night, or looks for an error that there is not."
STEPS = "".join(f"step {n} loss 1.9\n" for n in range(10, 20))
FRAME = 'Traceback (most recent call last):\n  File "/w/train.py", line 215, in run\n    trainer.fit()\n'
STUCK = (
    "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued"
    " collectives. This typically indicates a NCCL/CUDA API (e.g., CudaEventDestroy) hang blocking the watchdog\n"
)
TIMED_OUT = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120049, OpType=_ALLGATHER_BASE,"
    " NumelIn=16384000, NumelOut=131072000, Timeout(ms)=1800000) ran for 1800065 milliseconds before timing out.\n"
)

MET = (
    Case(
        "a-watchdog-after-the-end", GITHUB + "modelscope/ms-swift/issues/7992",
        STEPS + "{'train_runtime': 4011.2, 'train_samples_per_second': 1.1, 'epoch': 1.0}\n"
        "18:11:06.680 [rank4]:[E205 18:11:06.375750231 ProcessGroupNCCL.cpp:1870] [PG ID 12 PG GUID 99(EXPERT) Rank 4] "
        + STUCK,
        "", COST,
    ),
    Case(
        "a-watchdog-behind-a-bar", GITHUB + "pytorch/pytorch/issues/118369",
        "Epoch 0:   6%|██       | 32040/500150 [6:28:43<94:39:17,  1.37it/s, loss=2.6, v_num=95nc,"
        " reduced_train_loss=2.590, global_step=3.2e+4, consumed_samples=2.56e+7][E ProcessGroupNCCL.cpp:458]"
        " [Rank 7] " + TIMED_OUT,
        "NCCL timeout of rank 7", COST,
    ),
    Case(
        "lines-that-a-platform-numbers", GITHUB + "hiyouga/LlamaFactory/issues/8261",
        STEPS + "[1830] [rank3]:[W602 11:18:52.489301002 ProcessGroupNCCL.cpp:2111] [PG ID 1 PG GUID 1 Rank 3] timed out"
        " after waiting for 60000ms flight recorder dumps to finish.\n[1831] [rank4]:[E602 11:18:52.531176265"
        " ProcessGroupNCCL.cpp:684] [Rank 4] Some NCCL operations have failed or timed out. Due to the asynchronous"
        " nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n[1833] [rank4]:"
        "[E602 11:18:52.536602063 ProcessGroupNCCL.cpp:1896] [PG ID 1 PG GUID 1 Rank 4] Process group watchdog thread"
        " terminated with exception: [Rank 4] " + TIMED_OUT,
        "NCCL timeout of rank 4", COST,
    ),
    Case(
        "three-processes-say-what-at-once", GITHUB + "huggingface/open-r1/issues/620",
        STEPS + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():    what():    what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread"
        " terminated with exception: [Rank 2] " + TIMED_OUT,
        "NCCL timeout of rank 2", COST,
    ),
    Case(
        "an-actor-that-died-within-a-task", GITHUB + "NovaSky-AI/SkyRL/issues/24",
        STEPS + FRAME + "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=53223, ip=10.0.0.208,"
        ' actor_id=ec1c53170f, repr=<main.TaskRunner object at 0x7f2d>)\n  File "/w/main_ppo.py", line 215, in run\n'
        "    trainer.fit()\nray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        "\tclass_name: WorkerDict\n\tpid: 20174\nThe actor is dead because its worker process has died. Worker exit"
        " type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2.\n",
        "rank died", COST,
    ),
    Case(
        "ucx-cannot-connect", GITHUB + "NVIDIA/deepops/issues/1199",
        "[1657786922.147458] [mlperf1:1207478:0]            sock.c:260  UCX  ERROR   connect(fd=41,"
        " dest_addr=172.17.0.1:45031) failed: Connection refused\n[mlperf1:1207478] pml_ucx.c:419  Error:"
        " ucp_ep_create(proc=0) failed: Destination is unreachable\n" + FRAME.replace("trainer.fit", "MPI.Isend")
        + "mpi4py.MPI.Exception: MPI_ERR_OTHER: known error not in list\n",
        "on mlperf1", COST,
    ),
    Case(
        "pmix-waits-for-nodes", GITHUB + "NVIDIA/deepops/issues/1179",
        "pyxis: importing docker image ...\nslurmstepd: error:  mpi/pmix_v3: pmixp_coll_ring_reset_if_to: adas-1 [0]:"
        " pmixp_coll_ring.c:742: 0x14ce0c02cb20: collective timeout seq=0\nslurmstepd: error:  mpi/pmix_v3:"
        " pmixp_coll_log: adas-1 [0]: pmixp_coll.c:281: Dumping collective state\n",
        "MPI", COST,
    ),
    Case(
        "mpi-does-not-start", GITHUB + "openucx/ucx/issues/10522",
        "[1741292755.638058] [udc-1:711629:0]         address.c:1733 UCX  ERROR failed to allocate address list\n"
        "[udc-1:711629] pml_ucx.c:431  Error: ucp_ep_create(proc=509) failed: Out of memory\n"
        "It looks like MPI_INIT failed for some reason; your parallel process is\nlikely to abort.\n",
        "on udc-1", COST,
    ),
    Case(
        "an-estimator-diverged", GITHUB + "tensorflow/tensor2tensor/issues/1074",
        "INFO:tensorflow:step = 0, loss = 9.76205\nERROR:tensorflow:Model diverged with loss = NaN.\n" + FRAME
        + "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.\n",
        "NaN loss", COST,
    ),
    Case(
        "no-smaller-loss-scale", GITHUB + "ymcui/Chinese-LLaMA-Alpaca/issues/534",
        " 12%|█▏        | 328/2724 [12:09:49<88:24:05, 132.82s/it]\n" + FRAME
        + "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n",
        "loss scale", COST,
    ),
    Case(
        "a-panic-of-rust", GITHUB + "paiml/aprender/pull/2459",
        "Epoch 25: loss=NaN\nEpoch 50: loss=NaN\nthread 'main' panicked at ch10_training.rs:72:\n"
        "Training must reduce loss: NaN < 270.3525\n",
        "panic", COST,
    ),
    Case(
        "a-check-of-cusolver", GITHUB + "NVlabs/stylegan2-ada/issues/7",
        STEPS + "2020-10-21 10:11:12.131415: F tensorflow/core/kernels/cuda_solvers.cc:94] Check failed:"
        " cusolverDnCreate(&cusolver_dn_handle) == CUSOLVER_STATUS_SUCCESS Failed to create cuSolverDN instance.\n",
        "fatal check", COST,
    ),
    Case(
        "a-loss-scale-that-is-found", GITHUB + "deepspeedai/DeepSpeed/issues/931",
        STEPS + "[2023-04-28 06:51:29,903] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping"
        " step. Attempted loss scale: 65536, but hysteresis is 2. Reducing hysteresis to 1\n[2023-04-28 06:51:30,648]"
        " [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale:"
        " 65536, reducing to 32768\n",
        "", COST,
    ),
    Case(
        "stuck-in-the-file-before-the-timeout-that-was-sooner", GITHUB + "snowflakedb/ArcticTraining/issues/219",
        STEPS + "[rank7]:[E626 05:14:36.393067540 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank 7] "
        + STUCK + "[rank2]:[E626 05:06:30.929096625 ProcessGroupNCCL.cpp:632] [Rank 2] " + TIMED_OUT,
        "NCCL timeout of rank 2", COST,
    ),
    Case(
        "ucx-only-tells-what-it-does", GITHUB + "NVIDIA/pyxis/issues/140",
        STEPS + "[1716594409.541417] [gpu1:1581053:0]      ucp_worker.c:1783 UCX  INFO    ep_cfg[4]: tag(tcp/ib0)\n"
        "[1716594409.541426] [gpu1:1581047:0]          tcp_ep.c:259  UCX  DEBUG   tcp_ep 0x564a97356ff0: created on"
        " iface 0x564a96eaa120, fd -1\n[1716594409.541430] [gpu1:1581047:0]          tcp_cm.c:96   UCX  DEBUG   tcp_ep"
        " 0x564a97356ff0: CLOSED -> CONNECTING for the [172.17.0.1:59765]<->[172.17.0.1:47133]:0 connection [-:-]\n",
        "", COST,
    ),
)  # fmt: skip

HEARTBEAT = (
    "2022-11-15 16:03:15.140058: E external/org_tensorflow/tensorflow/core/distributed_runtime/coordination/"
    "coordination_service.cc:954] /job:jax_worker/replica:0/task:37 has been set to ERROR in coordination service:"
    " UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout. This indicates that the remote task has"
    " failed, got preempted, or crashed unexpectedly.\n"
)
SERVER = "(APIServer pid=1) ERROR 05-12 01:48:42 [api_router.py:72] "

MET_LATER = (
    Case(
        "a-task-of-jax-that-is-silent", GITHUB + "EleutherAI/architecture-objective/issues/26",
        "".join(f"I1115 16:00:39.451247 1406 trainer.py:501] Training: step {n}\n" for n in range(190, 199)) + HEARTBEAT,
        "JAX coordination of rank 37", COST,
    ),
    Case(
        "accelerators-of-a-tpu", GITHUB + "marin-community/marin/issues/1534",
        STEPS + "(train_lm_task pid=39298, ip=10.130.0.55) E0827 23:43:41.200122   39475 synchronous_driver.cc:820]"
        " [/dev/accel0 tpu1013:pe1:0] !!!! FATAL ERROR !!!! for [/dev/accel0 tpu1013:pe1:0] , fatal_error: true\n",
        "TPU on 10.130.0.55", COST,
    ),
    Case(
        "a-stamp-of-the-platform-before-each-rank", GITHUB + "ai2cm/ace/issues/851",
        "2026-02-18T10:28:25.497Z 2026-02-18 10:28:25,496 - root - INFO - Saving latest checkpoint\n"
        "2026-02-18T10:48:25.681Z [rank7]:[E218 10:48:25.033625188 ProcessGroupNCCL.cpp:632] [Rank 7] " + TIMED_OUT,
        "NCCL timeout of rank 7", COST,
    ),
    Case(
        "a-timeout-behind-lama-s-bar", GITHUB + "advimman/lama/issues/324",
        "Epoch 0:  95%|█████▊    | 8692/9188 [30:57<01:45,  4.68it/s, loss=11.5, v_num=0][rank1]:[E"
        " ProcessGroupNCCL.cpp:563] [Rank 1] " + TIMED_OUT,
        "NCCL timeout of rank 1", COST,
    ),
    Case(
        "an-engine-names-another-s-trace", GITHUB + "vllm-project/vllm/issues/42362",
        STEPS + SERVER + "Traceback (most recent call last):\n" + SERVER + '  File "/w/serving.py", line 251, in create\n'
        + SERVER + "    raise self.engine_client.dead_error\n" + SERVER + "vllm.v1.engine.exceptions.EngineDeadError:"
        " EngineCore encountered an issue. See stack trace (above) for the root cause.\n",
        "EngineDeadError", COST,
    ),
    Case(
        "the-engine-s-own-trace-below-its-client-s", GITHUB + "LMCache/LMCache/issues/2306",
        STEPS + SERVER + "Traceback (most recent call last):\n" + SERVER + '  File "/w/client.py", line 883, in get\n'
        + SERVER + "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace\n"
        + "".join(f"(EngineCore_DP0 pid=697344) {line}\n" for line in [*FRAME.splitlines(),
            "ValueError: vllm model for vllm-instance not found."]),
        "ValueError: vllm model for vllm-instance not found.", COST,
    ),
    Case(
        "a-core-that-died", GITHUB + "vllm-project/vllm/issues/32468",
        STEPS + "ERROR 01-16 17:16:49 [core_client.py:605] Engine core proc EngineCore_DP0 died unexpectedly, shutting"
        " down client.\n",
        "rank died", COST,
    ),
    Case(
        "a-kernel-that-does-not-fit-is-left-out", GITHUB + "pytorch/pytorch/pull/181198",
        STEPS + "ERROR:torch._inductor.select_algorithm:Exception No valid triton configs. OutOfMemoryError: out of"
        " resource: triton_mm Required: 262144 Hardware limit:232448 Reducing block sizes or `num_stages` may help. for"
        " benchmark choice TritonTemplateCaller(/tmp/torchinductor/re/cred.py, ACC_TYPE='tl.float32')\n",
        "", COST,
    ),
    Case(
        "its-traceback-is-left-out-too", GITHUB + "pytorch/pytorch/pull/181198",
        STEPS + "ERROR:torch._inductor.select_algorithm:Exception No valid triton configs. for benchmark choice Triton()\n"
        'Traceback (most recent call last):\n  File "/w/site-packages/torch/_inductor/select_algorithm.py", line 4397,'
        " in precompile\n    choice.precompile()\ntriton.runtime.errors.OutOfResources: out of resource: shared memory\n",
        "", COST,
    ),
    Case(
        "a-dynamo-that-cannot-compile", GITHUB + "pytorch/pytorch/issues/98186",
        STEPS + 'Traceback (most recent call last):\n  File "/w/site-packages/torch/_inductor/triton_ops/autotune.py",'
        ' line 83, in _precompile_config\n    triton.compile(\n  File "/w/site-packages/triton/compiler.py", line 942, in'
        " build_triton_ir\n    raise CompilationError(fn.src, node) from e\ntriton.compiler.CompilationError: at 11:25:\n",
        "triton.compiler.CompilationError", COST,
    ),
    Case(
        "wandb-tries-again", GITHUB + "wandb/wandb/issues/2039",
        STEPS + "wandb: Network error (ReadTimeout), entering retry loop.\n", "", COST,
    ),
    Case(
        "a-thread-of-wandb-dies-and-the-training-goes-on", GITHUB + "wandb/wandb/issues/1526",
        "".join(f"gen_sine - {n}/1024 (10m 5s)      | loss = 0.000     | ll = -0.127\n" for n in range(9))
        + "Exception in thread Thread-5:\n"
        'Traceback (most recent call last):\n  File "/e/lib/python3.8/threading.py", line 932, in _bootstrap_inner\n'
        '    self.run()\n  File "/e/lib/python3.8/site-packages/wandb/sdk/internal/file_stream.py", line 255, in _send\n'
        "    self._handle_response(\nConnectionError: (MaxRetryError(\"HTTPSConnectionPool\"))\n"
        + "".join(f"gen_sine - {n}/1024 (10m 5s)      | loss = 0.000     | ll = -0.127\n" for n in range(9, 20)),
        "", COST,
    ),
    Case(
        "a-table-of-rich-around-a-traceback", GITHUB + "vladmandic/sdnext/issues/4355",
        STEPS + "╭──────────────── Traceback (most recent call last) ────────────────╮\n"
        "│ /w/modules/devices.py:397 in test_triton                          │\n"
        "│ ❱ 397 │   test_triton_func(torch.randn(32))                       │\n"
        "╰───────────────────────────────────────────────────────────────────╯\n"
        "InductorError: RuntimeError: Failed to find C compiler\n",
        "InductorError: RuntimeError: Failed to find C compiler", COST,
    ),
    Case(
        "a-shutdown-of-lame-workers", GITHUB + "megagonlabs/t5-japanese/issues/1",
        "".join(f"INFO:tensorflow:loss = 1.109375, step = {n} (45.410 sec)\n" for n in range(488000, 488600, 100))
        + "INFO:tensorflow:ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0/device:CPU:0)\n",
        "TPU", COST,
    ),
    Case(
        "absl-s-stack-after-a-fatal-check", GITHUB + "pytorch/xla/issues/7138",
        STEPS + "F0521 10:11:12.131415    1234 pjrt_computation_client.cc:525] Non-OK-status: status status: UNKNOWN: TPU"
        " initialization failed: Failed to connect\n*** Check failure stack trace: ***\n"
        "    @     0x7f0118f6a5d9  absl::lts_20230802::log_internal::LogMessageFatal::~LogMessageFatal()\n",
        "fatal check", COST,
    ),
)  # fmt: skip


@each(*MET, *MET_LATER)
def test_the_cause_in_a_log_that_was_met_outside(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
