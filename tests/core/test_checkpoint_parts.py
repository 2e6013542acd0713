"""Parts that are numbered along several axes: each set that is whole, and the same with one file less.

nanotron: https://github.com/huggingface/nanotron/blob/main/src/nanotron/serialize/utils.py; ranks' shards:
https://github.com/pytorch/pytorch/blob/main/torch/distributed/checkpoint/hf_storage.py; neuronx:
https://awsdocs-neuron.readthedocs-hosted.com, neuronx_distributed.trainer.checkpoint.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from sentinel.core.checkpoint_parts import find_missing_part

TWO = (0, 1)
NANOTRON = [
    *(
        f"model/decoder/{layer}/{module}/w_pp-rank-{layer // 2}-of-2_tp-rank-{tp}-of-2.safetensors"
        for layer, module, tp in product(range(4), ("attn", "mlp"), TWO)
    ),
    *(f"model/embedding/w_pp-rank-0-of-2_tp-rank-{tp}-of-2.safetensors" for tp in TWO),
    *(f"optimizer/o_pp-{p}-of-2_dp-{d}-of-2_tp-{t}-of-2.pt" for p, d, t in product(TWO, TWO, TWO)),
    "lr_scheduler/lr_scheduler_pp-0-of-2_dp-0-of-2_tp-0-of-2.pt",
]
EXPERTS = [f"optimizer/o_pp-0-of-1_dp-{n}-of-4_tp-0-of-1_exp-{n}-of-4.pt" for n in range(4)]
RANK_SHARDS = [
    f"model/shard-0000{rank}-model-0000{file}-of-00004.safetensors"
    for rank, file in [*product((1, 2), (1, 2)), *product((3, 4), (3, 4))]
]
NODES = [f"node{rank % 2}/zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(8)]
TWO_MODELS = [f"{m}/model-0000{n}-of-00002.bin" for m, n in product(("actor", "critic"), (1, 2))]
TENSOR_FOLDERS = [f"tp{t}/model-{n}-of-3.bin" for t, n in product(TWO, (1, 2, 3))]
NEURONX = [f"dp_rank_00_tp_rank_0{t}_pp_rank_0{p}.pt" for t, p in product(range(3), TWO)]
EXPERT_FILES = [
    f"layer_{n}_expert_{e}_mp_rank_00_model_states.pt" for n, e in product(range(4), range(8))
]
MEGATRON = [f"mp_rank_0{tp}_00{pp}/model_optim_rng.pt" for tp, pp in product(range(3), range(4))]
INTERN = [f"optimizer_tp{tp}_pp{pp}_zo0.pt" for tp, pp in product(range(12), range(3))]


@pytest.mark.parametrize(
    ("whole", "lost", "says"),
    [
        (NANOTRON, "optimizer/o_pp-1-of-2_dp-1-of-2_tp-1-of-2.pt", "part 1 of 2"),
        (
            NANOTRON,
            "model/decoder/3/mlp/w_pp-rank-1-of-2_tp-rank-0-of-2.safetensors",
            "part 0 of 2",
        ),
        (EXPERTS, EXPERTS[2], "part 2 of 4"),
        (TWO_MODELS, TWO_MODELS[3], "part 2 of 2"),
        (TENSOR_FOLDERS, TENSOR_FOLDERS[4], "part 2 of 3"),
        (NODES, NODES[3], "rank 3"),
        (NEURONX, NEURONX[2], "rank 1"),
        (EXPERT_FILES, EXPERT_FILES[13], EXPERT_FILES[13]),
        (MEGATRON, MEGATRON[5], "rank 1"),
        (INTERN, INTERN[28], INTERN[28]),
    ],
)
def test_a_set_is_whole_over_all_folders(whole: list[str], lost: str, says: str) -> None:
    assert find_missing_part(whole) == ""
    told = find_missing_part(path for path in whole if path != lost)
    assert told.split()[0] == says.split()[0]
    assert told


def test_the_files_of_a_stage_are_in_the_folders_of_its_ranks() -> None:
    assert find_missing_part(RANK_SHARDS) == ""
    assert find_missing_part(p for p in RANK_SHARDS if "model-00004" not in p) == "part 4 of 4"


@pytest.mark.parametrize(
    "paths",
    [
        ["a-2-of-3.pt", "a-3-of-3.pt"],
        ["rank_0/w.pt", "rank_2/w.pt"],
        ["step_1-rank0.pt", "step_1-rank2.pt"],
    ],
)
def test_a_part_that_no_folder_has_is_missing(paths: list[str]) -> None:
    assert "1" in find_missing_part(paths)


def test_ranks_of_the_second_node_are_all_of_them() -> None:
    assert find_missing_part(f"ckpt_rank{rank}.pt" for rank in range(8, 16)) == ""


@pytest.mark.parametrize(
    "paths",
    [
        # Chunks of an array that hold only zeros; files of torch DCP; runs of a sweep; a stage's own layers; plots.
        [f"params.w/c/{n}/{m}" for n, m in product(range(4), range(4)) if (n, m) != (2, 1)],
        [f"__{n}_{m}.distcp" for n, m in product(range(4), range(4)) if (n, m) != (2, 1)],
        [f"run{n}_batch{m}.pt" for n, m in product(range(4), range(4)) if (n, m) != (2, 1)],
        [f"layer{n}_stage{n // 4}.pt" for n in range(8)],
        [f"rank_{n}/model_{m}.pt" for n, m in product(range(4), range(4)) if (n, m) != (1, 3)],
        [
            f"mp_rank_0{n}_00{m}/optim.pt"
            for n, m in product(range(10, 12), range(4))
            if (n, m) != (11, 3)
        ],
        [f"plot_{n}_{m}.png" for n, m in product(range(4), range(4)) if (n, m) != (2, 1)],
        [
            f"expert{n}_rank{m}.pt"
            for n, m in [*product(range(4), (0,)), *product(range(4, 8), (1,))]
        ],
    ],
)
def test_what_is_no_full_grid_has_no_hole(paths: list[str]) -> None:
    assert find_missing_part(paths) == ""


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A quarter of a GiB more than this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("paths", "says"),
    [
        # Whoever names a file chooses the count: 2 GiB were not enough for these indices.
        ([f"model-0000{n}-of-99999999999.safetensors" for n in (1, 2)], "part 3 of 99999999999"),
        ([f"model-0000{n}-of-{'9' * 200}.bin" for n in (0, 2)], f"part 1 of {'9' * 200}"),
        ([f"zero_rank{n}.pt" for n in (0, 1, "9" * 200)], "rank 2"),
        # The parts of one whole lie in two files' names each: none is missing.
        ([f"x{n}-{n % 2 + 1}-of-2.bin" for n in range(20_000)], ""),
        # Ranks of each file are those that all others lack: none has a gap of its own.
        ([f"x{n % 5000}_rank{n}.pt" for n in range(20_000)], ""),
        # A folder lies deep below others, each of which has a rank.
        ([f"{'rank1/' * 680}x{n}.pt" for n in range(400)], ""),
        # A path of more than 500 characters, once not compared.
        ([f"{'rank1/' * 680}rank{n}.pt" for n in (0, 1, 3)], "rank 2"),
        ([f"{'a' * 250}/{'b' * 250}/w-{n}-of-3.pt" for n in (1, 3)], "part 2 of 3"),
        ([f"{'rank1/' * 10}rank{n}.pt" for n in (0, 1, 3)], "rank 2"),
    ],
)
def test_names_that_promise_or_spread_without_end_are_read_at_once(
    paths: list[str], says: str
) -> None:
    """In memory for the names alone: the child that the limit would end ends by itself."""
    assert find_missing_part(paths) == says
    assert find_missing_part(NODES) == ""  # beside them: ranks that are spread over two nodes


@pytest.mark.parametrize("lost", [None, 777])
def test_a_rank_of_the_largest_clusters_is_missed(lost: int | None) -> None:
    """10,000 nodes of eight ranks, which lie side by side or in turns. Once more ranks than 20,000 were not
    compared."""
    ranks = [rank for rank in range(80_000) if rank != lost]
    said = "" if lost is None else f"rank {lost}"
    assert find_missing_part(f"node-{rank // 8}/rank_{rank}.pt" for rank in ranks) == said
    assert find_missing_part(f"node-{rank % 10_000}/rank_{rank}.pt" for rank in ranks) == said


def test_a_rank_is_missed_only_beside_files_of_the_same_ranks() -> None:
    """Of five ranks each has two files, of which one has none of the fourth; nodes hold ranks in turns."""
    files = [f"{name}_rank{rank}.pt" for name in ("model", "optim") for rank in range(5)]
    assert find_missing_part(files) == ""
    assert find_missing_part(one for one in files if one != "model_rank3.pt") == "rank 3"
    turns = [f"node{rank % 3}/{name}_rank{rank}.pt" for name in "mo" for rank in range(9)]
    assert find_missing_part(turns) == ""
    assert find_missing_part(one for one in turns if "rank4" not in one) == "rank 4"
