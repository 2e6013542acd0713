"""Two looks at a job of eight ranks: what stood, what moved, who is odd."""

from typing import Any

import pytest
from msgspec.structs import replace

from sentinel.stacks.parse import JobProcess, StackFrame, StacksDump
from sentinel.stacks.parse.model import ProcessUsage
from sentinel.stacks.parse.other_witnesses import ras_facts, recorder_facts
from sentinel.stacks.parse.ras import OddProcess
from sentinel.stacks.parse.standstill import find_standstill
from sentinel.stacks.parse.two_looks import is_partial_look, stack_facts
from sentinel.stacks.parse.verdict import ProgressNumber, TrainingState, join_facts
from sentinel.stacks.parse.verdict_words import describe_verdict
from tests.stacks.parse.making import ODD, REST, dump, step
from tests.stacks.parse.recorded import away, read, waiting


def of(function: str, file: str, line: int = 9) -> StackFrame:
    """Of a library."""
    return StackFrame(function, file, line, f"/x/site-packages/{file}")


LONG = ProgressNumber(quiet=400, usual=10)
SAVE = (StackFrame("_save", "torch/serialization.py", 9, "/x/torch/serialization.py"), *ODD[1:])
DEBUG = (StackFrame("readline", "pdb.py", 9, "/usr/lib/python3.11/pdb.py"), *ODD)
EVAL = (REST[0], StackFrame("evaluate", "train.py", 30, "/w/train.py"))
QUALIFIED = (REST[0], of("Trainer.evaluate", "transformers/trainer.py"))
BACKWARD = of("_engine_run_backward", "torch/autograd/graph.py")
COMPILES = (
    of("InstructionTranslatorBase.run", "torch/_dynamo/symbolic_convert.py"),
    of("_TorchDynamoContext.__call__.<locals>.compile_wrapper", "torch/_dynamo/eval_frame.py"),
)
LOWERS = (of("compile_fx_backward", "torch/_inductor/compile_fx.py"), BACKWARD)
STEPS = {
    "compiled": (
        of("DisableContext.__call__.<locals>._fn", "torch/_dynamo/eval_frame.py"),
        of("_TorchDynamoContext.__call__.<locals>.compile_wrapper", "torch/_dynamo/eval_frame.py"),
        of("OptimizedModule.__call__", "torch/_dynamo/eval_frame.py"),
    ),
    "recomputed": (
        of("CheckpointFunction.forward", "torch/utils/checkpoint.py"),
        of("checkpoint", "torch/utils/checkpoint.py"),
        of("_disable_dynamo.<locals>.inner", "torch/_compile.py"),
    ),
    "Megatron-LM": (
        of("checkpoint", "megatron/core/tensor_parallel/random.py"),
        of(
            "TransformerBlock._checkpointed_forward.<locals>.checkpoint_handler",
            "megatron/core/x.py",
        ),
        of("TransformerBlock._checkpointed_forward", "megatron/core/transformer/x.py"),
    ),
    "Transformer Engine": (
        of("checkpoint", "transformer_engine/pytorch/distributed.py"),
        of("te_checkpoint", "megatron/core/extensions/transformer_engine.py"),
    ),
    "Megatron-LM, before": (of("checkpoint", "megatron/mpu/random.py"),),
    "compiled ahead of time": (
        of("Runner.call", "torchinductor/qn/cqnnmunixtpvo55gafpcznyi7uxqw2c7b4suokrqhp.py"),
        of("CompiledFxGraph.__call__", "torch/_inductor/output_code.py"),
        of(
            "_compiled_forward",
            "torch/_functorch/_aot_autograd/subclass_codegen.py:codegen(compiled_function_forward)",
        ),
        of(
            "_AOTDispatchAutogradFunctionFactory.build.<locals>.CompiledFunction.forward",
            "torch/_functorch/_aot_autograd/runtime_wrappers.py",
        ),
        of("aot_module_simplified.<locals>.forward", "torch/_functorch/aot_autograd.py"),
    ),
    "DeepSpeed": (of("checkpoint", "deepspeed/runtime/activation_checkpointing/checkpointing.py"),),
    "Transformers": (of("_gradient_checkpointing_func", "transformers/modeling_utils.py"),),
}
"""Frames that are around every step of a training, some of them of py-spy 0.4.3 on torch 2.13."""
LINE = (StackFrame("load_batch", "train.py", 6, "/w/train.py"), ODD[1])
OTHER = (StackFrame("broadcast", "torch/distributed/c10d.py", 7, REST[0].path), REST[1])
BACK = (BACKWARD, REST[1])


def at(
    process: JobProcess, look: int, cores: float = 0.0, moved: int = 0, **more: Any
) -> JobProcess:
    frames = more.pop("frames", None)
    if frames is not None and process.main_thread:
        more["threads"] = (replace(process.main_thread, frames=frames),)
    spent = ProcessUsage(cpu=100 + look * 15 * cores, at=1000 + 15.0 * look, moved=look * moved)
    return replace(process, spent=spent, **more)


def looks(
    odd: int | None = None, *kinds: dict[str, Any], cores: float = 0.0, **rest: Any
) -> list[StacksDump]:
    """Both, with the odd rank as `kinds` say: one for both looks, or one for each."""
    both = kinds * 2 if len(kinds) == 1 else kinds
    found = []
    for look in (0, 1):
        ranks = [at(p, look, cores, **rest) for p in step(4, 2)]
        if odd is not None:
            ranks[odd] = at(step(4, 2)[odd], look, **both[look])
        found.append(dump(ranks))
    return found


@pytest.mark.parametrize(
    ("odd", "sign", "kind"),
    [
        (({"frames": ODD},), "stands", TrainingState.HUNG),
        (({"frames": ODD, "cores": 1.0},), "spins", TrainingState.HUNG),
        (({"frames": ODD, "cores": 0.1},), "", TrainingState.UNDECIDED),
        (({"frames": ODD, "cores": 0.1, "state": "R"},), "spins", TrainingState.HUNG),
        (({"frames": ODD, "cores": 1.0}, {"frames": LINE, "cores": 1.0}), "spins", TrainingState.HUNG),
        (({"frames": ODD}, {"frames": LINE}), "works", TrainingState.SLOW),
        (({"frames": ODD}, {"frames": ODD[1:]}), "works", TrainingState.SLOW),
        (({"frames": ODD}, {"frames": REST}), "works", TrainingState.SLOW),
        (({"frames": SAVE},), "phase", TrainingState.PHASE),
        (({"frames": QUALIFIED},), "phase", TrainingState.PHASE),
        (({"frames": COMPILES},), "phase", TrainingState.PHASE),
        (({"frames": LOWERS[:1]},), "phase", TrainingState.PHASE),
        (({"frames": ODD, "moved": 2**30},), "transfers", TrainingState.PHASE),
        (({"frames": DEBUG},), "debugged", TrainingState.PHASE),
        (({"frames": (), "state": "t"},), "debugged", TrainingState.PHASE),
        (({"frames": (), "state": "T"},), "stopped", TrainingState.HUNG),
        (({"frames": (), "state": "T"}, {"frames": ODD}), "works", TrainingState.SLOW),
        (({"frames": (), "state": "D"},), "uninterruptible", TrainingState.HUNG),
        (({"frames": (), "state": "D", "doing": "reading", "path": "/s/x"},), "blocked", TrainingState.FILES),
        (({"frames": (), "state": "D", "moved": 2**30},), "transfers", TrainingState.PHASE),
        (({"frames": ODD, "doing": "reading", "path": "/s/x"},), "blocked", TrainingState.FILES),
        (({"frames": ODD, "doing": "reading", "path": "/s/x", "cores": 1.0},), "spins", TrainingState.HUNG),
        (({"frames": ODD, "doing": "reading", "path": "/s/x", "moved": 2**19},), "stands", TrainingState.HUNG),
        (({"frames": ODD, "doing": "reading", "path": "/dev/pts/1"},), "stands", TrainingState.HUNG),
        (({"frames": BACK, "cores": 1.0}, {"frames": (*BACK, *ODD), "cores": 1.0}), "works", TrainingState.SLOW),
    ],
)  # fmt: skip
def test_an_odd_rank_is_told_by_what_it_does(
    odd: tuple[dict[str, Any], ...], sign: str, kind: TrainingState
) -> None:
    """And named, with how many wait for it."""
    seen = stack_facts(*looks(5, *odd))
    assert [f.sign for f in seen] == ([sign] if sign else [])
    found = join_facts(seen, LONG)
    assert found.kind is kind
    if sign and kind in (TrainingState.HUNG, TrainingState.FILES, TrainingState.SLOW):
        assert (found.ranks, found.nodes) == ((5,), ("node-2",))
        assert (found.collective, found.waiting) == ("all_reduce", 7)


@pytest.mark.parametrize(
    ("all_", "kind"),
    [
        ({"frames": REST}, TrainingState.HUNG),
        ({"frames": REST, "cores": 1.0}, TrainingState.UNDECIDED),
        ({"frames": EVAL}, TrainingState.PHASE),
        ({"frames": ODD, "cores": 1.0}, TrainingState.UNDECIDED),
        ({"frames": ()}, TrainingState.UNDECIDED),
    ],
)
def test_where_all_do_the_same_only_idle_ranks_hang(
    all_: dict[str, Any], kind: TrainingState
) -> None:
    """Ranks that spin in a collective may be well: no CPU tells that of a GPU."""
    found = join_facts(stack_facts(*looks(**all_)), LONG)
    assert (found.kind, found.ranks) == (kind, ())


@pytest.mark.parametrize("around", STEPS.values(), ids=STEPS)
def test_what_is_around_every_step_is_no_phase(around: tuple[StackFrame, ...]) -> None:
    """A model that was compiled before, activations that are computed anew: a hang there is one."""
    stood = join_facts(
        stack_facts(*looks(5, {"frames": (*ODD, *around)}, frames=(*REST, *around))), LONG
    )
    assert (stood.kind, stood.ranks, stood.collective) == (TrainingState.HUNG, (5,), "all_reduce")
    assert join_facts(stack_facts(*looks(frames=(*REST, *around))), LONG).kind is TrainingState.HUNG
    saves = (of("Trainer.save", "trainer.py"), *around)
    assert (
        join_facts(stack_facts(*looks(5, {"frames": saves}, frames=(*REST, *around))), LONG).kind
        is TrainingState.PHASE
    )


@pytest.mark.parametrize(
    "name",
    [
        "estimate_loss",  # nanoGPT's train.py
        "LightningModule.validation_step",
        "run_eval",
        "val_epoch",
        "Model.valid_step",
        "test",  # pytorch/examples
        "Trainer.evaluation_loop",
        "Trainer.prediction_step.<locals>.predict",
        "log_validation",  # diffusers
        "GenerationMixin.generate",
        "save_file",
        "HfApi.upload_folder",
        "prediction_loop",
        "ddim_sampling",
        "compile_model",
        "save_checkpoint_fn",
        "save_layer_checkpoints",
        "restore_checkpoint_fn",
        "checkpoint_handler",  # PyTorch-Ignite's users
        "activation_checkpointing_llm/train.py:evaluate",
        "site-packages/torch/_inductor/runtime/benchmarking.py:TritonBenchmarker.benchmark_gpu",
        "site-packages/torch/_inductor/runtime/triton_heuristics.py:CachingAutotuner.precompile",
        "site-packages/triton/runtime/autotuner.py:Autotuner._bench",
    ],
)
def test_one_rank_that_evaluates_or_saves_is_no_hang(name: str) -> None:
    """However busy it is in one line, while the others wait for it."""
    assert _busy_in(name) is TrainingState.PHASE


@pytest.mark.parametrize(
    "name",
    [
        "decode_sample",
        "Retest.step",
        "invalidate",
        "latest_batch",
        "train_val",
        "Trainer.train_and_test",
        "Recipe.Trainer.train_val",
        "fit_predict",
        "UNet.predict_noise",
        "Batch.is_valid",
        "importance_sampling",
        "upload_batch",
        "_compiled_forward",
        "AOTDispatchAutograd.post_compile.<locals>.CompiledFunction.forward",  # torch 2.9
        "make_evaluate.<locals>.loss",
        "site-packages/torch/_inductor/runtime/triton_heuristics.py:CachingAutotuner.run",
        "site-packages/timm/models/_manipulate.py:checkpoint_seq",
    ],
)
def test_what_only_sounds_like_a_long_phase_is_a_step(name: str) -> None:
    """A hang in it has to be told."""
    assert _busy_in(name) is TrainingState.HUNG


def _busy_in(name: str) -> TrainingState:
    """What is told of a rank that is in one line of this function, while the others wait for it."""
    file, _, function = f"w/train.py:{name}".rpartition(":")
    path = "/" + file.removeprefix("w/train.py:")
    busy = StackFrame(function, path.rpartition("/")[2], 40, path)
    return join_facts(stack_facts(*looks(5, {"frames": (busy, ODD[1]), "cores": 1.0})), LONG).kind


@pytest.mark.parametrize(
    "waits",
    [
        (of("all_reduce.<locals>.<listcomp>", "torch/distributed/distributed_c10d.py"),),
        (of("ProcessGroupWrapper.all_reduce", "torch/distributed/distributed_c10d.py"),),
        (StackFrame("Group.all_reduce", "comm.py", 3, "/w/comm.py"),),
    ],
)
def test_qualified_names_are_collectives_too(waits: tuple[StackFrame, ...]) -> None:
    """As py-spy tells them from Python 3.11 on."""
    found = join_facts(stack_facts(*looks(5, {"frames": ODD}, frames=(*waits, REST[1]))), LONG)
    assert (found.kind, found.ranks, found.collective) == (TrainingState.HUNG, (5,), "all_reduce")


def test_a_rank_that_waits_for_its_data_loader_waits_for_no_rank() -> None:
    """A pipe is received from, too: without a class before it on Python 3.10, with it later."""
    for name in ("_recv", "Connection._recv"):
        pipe = StackFrame(
            name, "connection.py", 9, "/usr/lib/python3.11/multiprocessing/connection.py"
        )
        found = join_facts(stack_facts(*looks(5, {"frames": (pipe, *ODD)})), LONG)
        assert (found.kind, found.ranks) == (TrainingState.HUNG, (5,))


def test_the_same_look_twice_proves_nothing() -> None:
    """One that came late is the one before it: nothing had time to move."""
    for odd in (
        {"frames": ODD},
        {"frames": (), "state": "D"},
        {"doing": "reading", "path": "/s/x"},
    ):
        _, second = looks(5, odd)
        assert not join_facts(stack_facts(second, second), LONG).is_sure


def test_what_only_one_look_has_is_looked_at_once_more() -> None:
    """A rank that could not be read, counters that lack, a node that was silent, no time between. Not
    what nobody can read, nor who has gone."""
    first, second = looks(5, {"frames": ODD})
    assert not is_partial_look(first, second)
    assert is_partial_look(first, first)
    for lacks in ({"threads": ()}, {"spent": None}):
        was, now = (
            dump(
                [replace(p, **lacks) if p.task == 5 else p for n in one.nodes for p in n.processes]
            )
            for one in (first, second)
        )
        assert is_partial_look(first, now)
        assert is_partial_look(was, second)
        assert not is_partial_look(was, now)
    silent = dump([p for n in second.nodes[1:] for p in n.processes], missed={"node-0": "no route"})
    assert is_partial_look(first, silent)
    gone = dump([p for n in second.nodes[1:] for p in n.processes])
    assert not is_partial_look(first, gone)


def test_a_rank_alone_in_another_collective_is_the_culprit() -> None:
    """Nobody of its own group is with it. In a pipeline several places at once are right, of two ranks
    either may be wrong, and while one computes nothing is known."""
    found = join_facts(stack_facts(*looks(5, {"frames": OTHER})), LONG)
    assert (found.kind, found.ranks, found.nodes) == (TrainingState.HUNG, (5,), ("node-2",))
    assert describe_verdict(found) == (
        "hung: rank 5 on node-2 is not in the all_reduce in which 7 others wait"
        " (it is alone in the broadcast)"
    )
    stage = replace(OTHER[0], function="recv")
    found = join_facts(stack_facts(*looks(5, {"frames": (stage, REST[1])})), LONG)
    assert (found.kind, found.ranks) == (TrainingState.HUNG, ())
    assert found.evidence[0].words == "7 ranks are in the all_reduce; elsewhere: rank 5 in the recv"
    pair = [at(p, 0, frames=OTHER if p.task == 1 else REST) for p in step(1, 2)]
    later = [at(p, 1, frames=OTHER if p.task == 1 else REST) for p in step(1, 2)]
    assert join_facts(stack_facts(dump(pair), dump(later)), LONG).ranks == ()
    assert (
        join_facts(stack_facts(*looks(5, {"frames": OTHER, "cores": 1.0})), LONG).kind
        is TrainingState.UNDECIDED
    )


def test_who_is_gone_is_named_and_who_was_not_reached_is_not() -> None:
    """Slurm's layout of the step says who should be there."""
    first, second = looks()
    less = [p for n in second.nodes for p in n.processes if p.env["SLURM_PROCID"] != "5"]
    found = join_facts(stack_facts(first, dump(less)), LONG)
    assert (found.kind, found.ranks, found.nodes, found.waiting) == (
        TrainingState.HUNG,
        (5,),
        ("node-2",),
        7,
    )
    late = [p for n in first.nodes for p in n.processes if p.node != "node-2"]
    assert not stack_facts(dump(late, missed={"node-2": "no route"}), second)
    away_ = [p for p in less if p.node != "node-2"]
    assert "gone" not in {
        f.sign for f in stack_facts(first, dump(away_, missed={"node-2": "no route"}))
    }


def test_a_worker_that_waits_for_a_file_is_the_reason() -> None:
    """The rank stands in its loader; what it waits for is told."""
    both = looks(5, {"frames": ODD})
    for look, one in enumerate(both):
        child = replace(at(step(4, 2)[5], look, doing="reading", path="/data/x"), pid=900)
        child = replace(child, parent=105, task=None)
        nodes = [
            replace(n, processes=(*n.processes, child)) if n.node == "node-2" else n
            for n in one.nodes
        ]
        both[look] = replace(one, nodes=tuple(nodes))
    found = join_facts(stack_facts(*both), LONG)
    assert (found.kind, found.ranks) == (TrainingState.FILES, (5,))
    assert found.evidence[0].words == "its worker 900 is reading /data/x"


def test_10000_ranks_of_which_30_do_not_answer() -> None:
    """One node of 30 that is silent accuses nobody, and the odd one is found."""

    def world(look: int) -> list[JobProcess]:
        return [at(p, look, frames=ODD) if p.pid == 7000 else at(p, look) for p in step(1000, 10)]

    silent = {f"node-{n}": "no route" for n in (1, 2, 3)}
    kept = [dump([p for p in world(k) if p.node not in silent], missed=silent) for k in (0, 1)]
    found = join_facts(stack_facts(*kept), LONG)
    assert (found.kind, found.ranks, found.waiting) == (TrainingState.HUNG, (6900,), 9969)


def test_what_recorder_and_ras_say_becomes_facts() -> None:
    """RAS names processes; a number that two nodes have names nobody."""
    first, second = looks()
    recorded = recorder_facts(
        find_standstill(read({0: away(), 1: waiting(), 2: waiting(), 3: waiting()}))
    )
    assert [(f.sign, f.ranks, f.collective, f.waiting) for f in recorded] == [
        ("recorded", (0,), "all_reduce", 3)
    ]
    odd = OddProcess(
        communicator="c", pid=103, host="10.0.0.2", operation="AllReduce", launched=4, most=5
    )
    lost = OddProcess(communicator="", pid=77, host="10.0.0.9")
    seen = ras_facts([odd, lost], second)
    assert [(f.sign, f.ranks, f.nodes) for f in seen] == [
        ("behind", (3,), ("node-1",)),
        ("lost", (), ("10.0.0.9",)),
    ]
    assert stack_facts(first, second) != ()
