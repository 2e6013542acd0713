"""Causes in logs that somebody looked for who had just changed the words for an end; the answers were committed before the program ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.logs import assert_cause
from tests.world.test_causes_drawn import COST, FRAME, STEPS

HUNTED_5 = (
    Case("lightning-has-its-steps", "Lightning 2.5, trainer/connectors/logger_connector and CPython's finalizers",
         STEPS + "`Trainer.fit` stopped: `max_steps=20` reached.\nException ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\n" + FRAME
         + "AssertionError: can only test a child process\n", "", COST),
    Case("systemd-tells-of-the-oom-killer", "systemd 255, src/core/unit.c", STEPS + "train.service: A process of this unit has been killed by the OOM killer.\n", "OOM killer", COST),
    Case("a-node-low-on-a-resource", "Kubernetes 1.30, pkg/kubelet/eviction/helpers.go",
         STEPS + "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. Container main was using 30Gi, request is 0.\n", "low on resource", COST),
    Case("a-step-at-its-memory-limit", "Slurm 20.11, src/plugins/task/cgroup/task_cgroup_memory.c",
         STEPS + "slurmstepd: error: Step 4711.0 hit memory limit at least once during execution. This may or may not result in some failure.\n", "memory limit", COST),
    Case("a-callback-of-xla-failed", "XLA, xla/pjrt/pjrt_stream_executor_client.cc",
         STEPS + "E0102 03:04:05.678901    1234 pjrt_stream_executor_client.cc:3045] Execution of replica 0 failed: INTERNAL: CustomCall failed: CpuCallback error: KeyError: 7\n",
         "Execution of replica 0 failed", COST),
    Case("an-object-that-is-lost", "Ray 2.40, python/ray/exceptions.py",
         STEPS + FRAME + "ray.exceptions.ObjectLostError: Failed to retrieve object 00ffff. To see information about where this ObjectRef was created\n", "ObjectLostError", COST),
    Case("lustre-is-shut-down", "glibc, strerror(3), as bash prints it", STEPS + "bash: /lustre/ann/run.log: Cannot send after transport endpoint shutdown\n", "file system", COST),
    Case("a-model-that-is-cut", "llama.cpp, src/llama-model-loader.cpp",
         "llama_model_load: error loading model: tensor 'blk.9.ffn_up.weight' data is not within the file bounds, model is corrupted or incomplete\n"
         "llama_model_load_from_file_impl: failed to load model\n", "error loading model: tensor", COST),
    Case("paddle-s-gpu-is-full", "Paddle 2.6, paddle/phi/core/memory/allocation/cuda_allocator.cc",
         STEPS + FRAME + "SystemError: (Fatal) Operator conv2d raises an paddle::memory::allocation::BadAlloc exception.\nThe exception content is\n:ResourceExhaustedError: \n\n"
         "Out of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0, 31.1GB memory has been allocated.\n", "ut of memory", COST),
    Case("mindspore-s-device-is-full", "MindSpore 2.3, mindspore/ccsrc/runtime/graph_scheduler",
         STEPS + FRAME + "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/Conv2D-op7, alloc size: 1073741824B.\n", "memory isn't enough", COST),
    # Written down were the words of the line: its kind is told since this form is known.
    Case("a-loss-that-ends-it", "a training's own log", STEPS + "Loss is nan at step 412. Stopping.\n", "NaN loss", COST),
    Case("a-spot-instance-goes", "a script around the metadata of a cloud", STEPS + "2026-01-02 03:04:05 Received spot interruption notice, instance will terminate in 2 minutes\n",
         "spot interruption", COST),
    Case("what-a-model-does-not-support", "a training's own log", "Gradient checkpointing disabled: model does not support it\n", "", COST),
    Case("a-measure-named-error", "a training's own log", STEPS + "val error 0.0123 improved, saving best model\n", "", COST),
    Case("a-process-of-horovod", "Horovod 0.28, runner/gloo_run.py", STEPS + "[0]<stderr>:Process 0 exit with status code 1.\n", "exit with status code 1", COST),
)  # fmt: skip


@each(*HUNTED_5)
def test_the_cause_in_a_log_that_was_hunted_last(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert_cause(case, tmp_path, record_property)
