"""What a step lacks beside the others: each fault with the healthy step that looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel.core.checkpoint_series import (
    count_series,
    find_missing_beside,
    find_missing_in_order,
    find_saved_series,
    find_series,
)

MEGATRON_LOCAL = "iter_{n:07d}_{r}_local.pt"


def told(names: Callable[[int], list[str]], steps: int = 6) -> str:
    """What is said of the last step."""
    return find_missing_in_order([find_series(names(n)) for n in range(1, steps + 1)])[-1]


def ranks(form: str, usual: range, last: list[int]) -> Callable[[int], list[str]]:
    return lambda n: [form.format(n=n * 1000, r=r) for r in (last if n == 6 else usual)]


@pytest.mark.parametrize(
    ("form", "usual", "last", "lacks"),
    [
        (MEGATRON_LOCAL, range(4), [0, 2, 3], True),
        (MEGATRON_LOCAL, range(4), [1, 2, 3], True),
        (MEGATRON_LOCAL, range(4), [0, 1, 2], True),
        (MEGATRON_LOCAL, range(64), [*range(40), *range(44, 64)], True),
        (MEGATRON_LOCAL, range(8, 16), [8, 9, 11, 12, 13, 14, 15], True),
        ("state_{n:08d}_{r:05d}.bin", range(2), [1], True),
        # Fewer nodes after a restart; the ranks of one node; two trainings; places in one.
        (MEGATRON_LOCAL, range(8), [0, 1, 2, 3], False),
        (MEGATRON_LOCAL, range(8, 16), [*range(8, 16)], False),
        ("model_seed{r}_{n}.pt", range(3), [0, 2], False),
        ("step_{n}/__{r}_0.distcp", range(8), [0, 2, 4, 6], False),
        ("step_{n}/model-{r:05d}-of-00008.safetensors", range(1, 9), [1, 2, 3], False),
        ("step_{n}/plot_{r}.png", range(4), [0, 1, 3], False),
    ],
)
def test_a_rank_by_its_digits_alone(form: str, usual: range, last: list[int], lacks: bool) -> None:
    assert bool(told(ranks(form, usual, last))) is lacks


def test_steps_of_an_epoch_are_no_parts_of_it() -> None:
    """`match` captured the epoch: each has three saves, the last epoch has two so far."""
    epochs = lambda n: [f"epoch={n}-step={n * 3000 + i * 1000}.ckpt" for i in range(3 - n // 6)]  # noqa: E731
    assert told(epochs) == ""


def test_a_grid_of_two_numbers_has_a_hole() -> None:
    def grid(n: int) -> list[str]:
        return [f"w_{n}_{tp}_{pp}.pt" for tp in (0, 1) for pp in (0, 1) if (n, tp, pp) != (6, 0, 1)]

    assert told(grid) == "it has fewer files than the others: 3 of 4 w_#_#_#.pt"


def test_the_rates_of_two_averages_are_the_same_in_each_step() -> None:
    """improved-diffusion with --ema_rate 0.999,0.9999; two learning rates are two trainings."""
    rates = lambda n: [f"ema_{r}_{n}.pt" for r in ("0.999", "0.9999")][: 2 - n // 6]  # noqa: E731
    assert told(rates) == "it has fewer files than the others: 1 of 2 ema_#.#_#.pt"
    assert told(lambda n: [name.replace("ema_", "lr") for name in rates(n)]) == ""


FILES = [("model.ckpt", 4_000_000, 100.0), ("metadata.json", 80, 101.0)]


def test_a_small_file_that_all_others_have() -> None:
    others = [count_series(find_saved_series(FILES))] * 3
    alone = find_saved_series(FILES[:1])
    assert find_missing_beside(alone, others) == "it has no metadata.json, and the others have 1"
    assert find_missing_beside(find_saved_series(FILES), others) == ""
    assert find_missing_beside(alone, others[:1]) == ""


def test_what_an_evaluation_lays_into_a_step_later_is_not_missed() -> None:
    later = [*FILES, ("eval.json", 90, 400.0)]
    others = [count_series(find_saved_series(later))] * 3
    assert find_missing_beside(find_saved_series(FILES), others) == ""


def test_a_form_that_two_steps_have_is_that_of_a_newer_trainer() -> None:
    old, new = find_series(["a.pt", "args.json"]), find_series(["a.pt"])
    assert (
        find_missing_in_order([old, old, old, new, new])[3:]
        == ["it has no args.json, and the others have 1"] * 2
    )
    assert find_missing_in_order([old, old, old, new, new, new]) == [""] * 6


def test_files_of_very_many_forms_are_counted() -> None:
    """A file for each parameter, as of Megatron's zarr form; once such steps were not compared."""
    words = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(300)]
    whole = [(f"{word}/w.npy", 4000, 100.0) for word in words]
    others = [count_series(find_saved_series(whole))] * 3
    assert others[0] == {"*": 300}
    lost = find_missing_beside(find_saved_series(whole[1:]), others)
    assert lost == "it has fewer files than the others: 299 of 300 *"
    assert find_missing_beside(find_saved_series(whole), others) == ""
    # Another trainer's form says nothing about these.
    assert find_missing_beside(find_saved_series(whole[:9]), others) == ""
