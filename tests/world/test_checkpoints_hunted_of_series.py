"""`clean` by the rule that only what is like the newer ones may go: hunted in public layouts.

The answers were written down before the program ran."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.world.case import Case, each
from tests.world.test_hunted_by_rules import RESUME, W, cleaned, save

HALF = W[:20_000]


def numbered(form: str, numbers: Iterable[int]) -> list[str]:
    return [form.format(n) for n in numbers]


def write(root: Path, numbers: Iterable[int], *files: str, data: bytes = W) -> None:
    """These files of each step, the older steps at earlier times."""
    for n in numbers:
        save(root, n, {file.format(n=n): data for file in files})


def hundreds(last: int, first: int = 1) -> range:
    return range(100 * first, 100 * last + 1, 100)


def universal(root: Path) -> str:
    write(root, hundreds(20), "checkpoint-{n}/model.safetensors", "checkpoint-{n}/optimizer.pt")
    made = (400, 800, 1000, 1200, 1400, 1500)
    write(root, made, "checkpoint-{n}-universal/zero/w/fp32.pt")
    stays = [*numbered("checkpoint-{}-universal", made), *numbered("checkpoint-{}", made)]
    return cleaned(root, r"checkpoint-(\d+)(?:-universal)?", *stays, *numbered("checkpoint-{}", hundreds(20, 17)),
                   gone=("checkpoint-100", "checkpoint-500"))  # fmt: skip


def the_last_is_the_model_alone(root: Path) -> str:
    write(root, (0,), "step-{n}/__0_0.distcp", data=HALF)
    save(root, 0, {"step-0/.metadata": b"m" * 90})
    for n in range(500, 10_000, 500):
        save(root, n, {f"step-{n}/__{r}_0.distcp": W for r in range(4)} | {f"step-{n}/.metadata": b"m" * 400})  # fmt: skip
    save(root, 10_000, {"step-10000/__0_0.distcp": HALF, "step-10000/.metadata": b"m" * 90})
    return cleaned(root, r"step-(\d+)", "step-10000", "step-9500", "step-9000", gone=("step-500", "step-1000"))  # fmt: skip


def unsharded(root: Path) -> str:
    write(root, range(1000, 20_001, 1000), *(f"step{{n}}/model/rank{r}.pt" for r in range(4)))
    made = range(1000, 5001, 1000)
    write(root, made, *(f"step{{n}}-unsharded/{name}.pt" for name in ("model", "optim", "train")))
    (root / "latest").symlink_to("step20000")
    return cleaned(root, r"step(\d+)(?:-unsharded)?", *numbered("step{}-unsharded", made), "step17000",
                   gone=("step6000", "step7000"))  # fmt: skip


def branches(root: Path) -> str:
    write(root, range(1000, 10_001, 1000), "stage1-step{n}/model.pt")
    for one in (1, 2, 3):
        write(root, range(1000, 6001, 1000), f"stage2-ingredient{one}-step{{n}}/model.pt")
    stays = [f"stage2-ingredient{one}-step{n}000" for one in (1, 2, 3) for n in (5, 6)]
    return cleaned(root, r"stage\d-(?:ingredient\d-)?step(\d+)", *stays, "stage1-step9000", "stage1-step10000")  # fmt: skip


def averages(root: Path) -> str:
    write(root, range(1, 21), "checkpoint{n}.pt")
    write(root, (5, 10), "checkpoint_avg{n}.pt", data=HALF)
    save(root, 21, {"checkpoint_best.pt": W, "checkpoint_last.pt": W})
    return cleaned(root, r"checkpoint_?(?:avg)?(\d+)\.pt", "checkpoint_avg5.pt", "checkpoint_avg10.pt", "checkpoint_best.pt",
                   "checkpoint17.pt", gone=("checkpoint1.pt", "checkpoint2.pt"))  # fmt: skip


def best_and_latest(root: Path) -> str:
    write(root, range(1, 41), "{n}epoch.pth")
    save(root, 41, {"valid.acc.ave_10best.pth": W})
    (root / "valid.acc.best.pth").symlink_to("12epoch.pth")
    (root / "latest.pth").symlink_to("40epoch.pth")
    return cleaned(root, r"(\d+)epoch\.pth", "12epoch.pth", "37epoch.pth", "valid.acc.ave_10best.pth",
                   gone=("1epoch.pth", "2epoch.pth"))  # fmt: skip


def adapters(root: Path) -> None:
    write(root, hundreds(20), "checkpoint-{n}/adapter_model.safetensors")


def named_above(root: Path) -> str:
    (root / "out").mkdir()
    adapters(root / "out")
    (root / "stage2.yml").write_text("base_model: x/y\nlora_model_dir: ./out/checkpoint-300\n")
    return cleaned(root / "out", r"checkpoint-(\d+)", "checkpoint-300", "checkpoint-1700", gone=("checkpoint-100", "checkpoint-200"))  # fmt: skip


def a_soup(root: Path) -> str:
    (root / "out").mkdir()
    adapters(root / "out")
    five = numbered("checkpoint-{}", range(200, 1001, 200))
    models = "".join(f"  - model: out/{one}\n    parameters:\n      weight: 1.0\n" for one in five)
    (root / "soup.yml").write_text(f"models:\n{models}merge_method: linear\ndtype: bfloat16\n")
    return cleaned(root / "out", r"checkpoint-(\d+)", *five, gone=("checkpoint-100", "checkpoint-300"))  # fmt: skip


def merged(root: Path) -> str:
    files = (".metadata", "__0_0.distcp", "common.pt")
    write(root, range(1000, 20_001, 1000), *(f"iter_{{n:07d}}/{file}" for file in files))
    write(root, range(5000, 10_000, 1000), *(f"iter_{{n:07d}}_merged/{file}" for file in files))
    stays = numbered("iter_{:07d}_merged", range(5000, 10_000, 1000))
    return cleaned(root, r"iter_(\d+)(?:_merged)?", *stays, "iter_0017000", gone=("iter_0001000",))


def rare_states(root: Path) -> str:
    snapshots = ("network-snapshot-{n:07d}-0.050.pkl", "network-snapshot-{n:07d}-0.100.pkl")
    write(root, range(1000, 20_001, 1000), *snapshots)
    write(root, range(5000, 20_001, 5000), "training-state-{n:07d}.pt")
    return cleaned(root, r"(?:network-snapshot|training-state)-(\d+)(?:-0\.\d+)?\.(?:pkl|pt)",
                   "training-state-0015000.pt", "training-state-0020000.pt", "network-snapshot-0017000-0.050.pkl")  # fmt: skip


def adapters_of_another_base(root: Path) -> str:
    write(root, hundreds(8), "checkpoint-{n}/model.safetensors", "checkpoint-{n}/optimizer.pt")
    for n in hundreds(20, 9):
        save(root, n, {f"checkpoint-{n}/adapter_model.safetensors": W[:900],
                       f"checkpoint-{n}/adapter_config.json": b'{"base_model_name_or_path": "org/base"}'})  # fmt: skip
    return cleaned(root, r"checkpoint-(\d+)", *numbered("checkpoint-{}", (700, 800, *hundreds(20, 17))))  # fmt: skip


def without_optimizer(root: Path) -> str:
    write(root, range(1000, 20_001, 1000), "iter_{n:07d}/mp_rank_00/model_rng.pt")
    write(root, range(1000, 10_001, 1000), "iter_{n:07d}/mp_rank_00/distrib_optim.pt", data=W * 2)
    return cleaned(root, r"iter_(\d+)", *numbered("iter_{:07d}", (9000, 10_000, 19_000, 20_000)),
                   gone=("iter_0001000", "iter_0011000"))  # fmt: skip


def in_flight(root: Path) -> str:
    shards = [f"checkpoint-{{n}}/pytorch_model_fsdp_0/__{r}_0.distcp" for r in range(4)]
    write(root, hundreds(11), *shards, "checkpoint-{n}/pytorch_model_fsdp_0/.metadata", "checkpoint-{n}/scheduler.pt")  # fmt: skip
    write(root, (1200,), *shards[:2])
    return cleaned(root, r"checkpoint-(\d+)", *numbered("checkpoint-{}", hundreds(12, 10)), gone=("checkpoint-100",))  # fmt: skip


def a_rank_is_missing(root: Path) -> str:
    for n in range(1, 13):
        write(root, (n,), *(f"step_{{n}}/rank_{r}.pt" for r in range(4) if n < 8 or r != 3))
    return cleaned(root, r"step_(\d+)", "step_6", "step_7", "step_12", gone=("step_1",))


def protected(root: Path) -> str:
    write(root, range(1, 21), "epoch_{n}.pt")
    kept = numbered("epoch_{}.pt", (3, 5, 6, 7, 9))
    for name in kept:
        os.chmod(root / name, 0o444)
    return cleaned(root, r"epoch_(\d+)\.pt", *kept, "epoch_17.pt", gone=("epoch_1.pt", "epoch_10.pt"))  # fmt: skip


def named_by_a_script(root: Path) -> str:
    write(root, range(1000, 20_001, 1000), *(f"ep0-ba{{n}}/__{r}_0.distcp" for r in range(4)), "ep0-ba{n}/.metadata")  # fmt: skip
    five = numbered("ep0-ba{}", range(2000, 10_001, 2000))
    (root / "eval_all.sh").write_text(
        f"#!/bin/sh\nfor c in {' '.join(five)}; do\n  eval $c\ndone\n"
    )
    return cleaned(root, r"ep\d+-ba(\d+)", *five, "ep0-ba17000", gone=("ep0-ba1000", "ep0-ba3000"))


CASES = (
    Case("universal-beside-old-ones", "https://github.com/modelscope/ms-swift/issues/3989; DeepSpeed, ds_to_universal.py", universal, "right", RESUME),
    Case("the-last-is-the-model-alone", "https://github.com/pytorch/torchtitan/blob/v0.2.0/docs/checkpoint.md: last_save_model_only, seed checkpoint", the_last_is_the_model_alone, "right", RESUME),
    Case("unsharded-exports", "https://github.com/allenai/OLMo, scripts/storage_cleaner.py unshard", unsharded, "right", RESUME),
    Case("ingredients-of-a-soup", "https://github.com/allenai/OLMo, README: stage2-ingredient1-step…", branches, "right", RESUME),
    Case("averages-beside-epochs", "https://github.com/facebookresearch/fairseq, scripts/average_checkpoints.py", averages, "right", RESUME),
    Case("links-to-the-best", "https://github.com/espnet/espnet/issues/3268", best_and_latest, "right", RESUME),
    Case("named-by-the-next-stage", "https://github.com/axolotl-ai-cloud/axolotl/issues/1887: lora_model_dir", named_above, "right", RESUME),
    Case("a-soup-of-five", "https://github.com/allenai/open-instruct/issues/463: mergekit, linear", a_soup, "right", RESUME),
    Case("merges-of-a-window", "https://github.com/NVIDIA/Megatron-LM/pull/5114", merged, "right", RESUME),
    Case("states-that-are-rare", "https://github.com/NVlabs/edm2, training/training_loop.py", rare_states, "right", RESUME),
    Case("adapters-of-another-base", "https://github.com/huggingface/peft, src/peft/config.py", adapters_of_another_base, "right", RESUME),
    Case("no-optimizer-since-a-restart", "https://github.com/modelscope/ms-swift, examples/train/megatron/pretrain.sh: no_save_optim", without_optimizer, "right", RESUME),
    Case("an-fsdp-save-in-flight", "https://github.com/huggingface/accelerate, src/accelerate/utils/fsdp_utils.py", in_flight, "right", RESUME),
    Case("a-rank-that-is-missing-five-times", "a node's disk that is full, as in nvidia-resiliency-ext", a_rank_is_missing, "right", RESUME),
    Case("protected-by-hand", "chmod(1): a-w", protected, "right", RESUME),
    Case("named-by-a-script", "https://github.com/mosaicml/llm-foundry, scripts/eval", named_by_a_script, "right", RESUME),
)  # fmt: skip


@each(*CASES)
def test_a_layout_that_was_hunted(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root = tmp_path / "run" / "ckpt"
    root.mkdir(parents=True)
    answer = case.form(root)
    record_property("answer", str(answer))
    record_property("right", str(case.right))
    assert answer == case.right
