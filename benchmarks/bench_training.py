"""What a training loop pays for its guard: seconds a call, beside an empty function call.

python benchmarks/bench_training.py
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sentinel.training import Guard, memory_used

CALLS = 200_000
LIMIT = 5e-6
"""Seconds that a call may take while nothing is due."""


def nothing() -> None:
    """What a call costs that does nothing."""


def seconds(call: Callable[[], object], calls: int = CALLS) -> float:
    """One call, the best of five rounds: what else the machine does only adds."""
    rounds = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - began) / calls)
    return min(rounds)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        guard = Guard(
            kill_switch=str(place / "STOP"),
            save_switch=str(place / "SAVE"),
            heartbeat=str(place / "beat"),
            gpu_free=lambda: 10**10,
            ends=time.time() + 1e6,
            every=3600.0,
        )
        guard.should_stop(), guard.should_save()
        guard.beat(0)
        base = seconds(nothing)
        costs = {
            "should_stop()": seconds(guard.should_stop),
            "should_save()": seconds(guard.should_save),
            "beat(step)": seconds(lambda: guard.beat(1)) - base,
        }
        eager = Guard(kill_switch=str(place / "STOP"), every=0.0, ends=time.time() + 1e6)
        look = seconds(eager.should_stop, 300)
        guard.close()
        eager.close()
    print(f"an empty call          {base * 1e9:8.0f} ns")
    for name, cost in costs.items():
        print(f"{name:<22} {cost * 1e9:8.0f} ns   {cost / base:5.1f} times an empty call")
    print(f"a look at everything   {look * 1e6:8.0f} us   (one every 5 s by default)")
    print(f"  of it memory         {seconds(memory_used, 300) * 1e6:8.0f} us")
    worst = max(costs.values())
    print(
        f"limit {LIMIT * 1e6:.0f} us: {'kept' if worst < LIMIT else 'MISSED'}, {LIMIT / worst:.0f} times below"
    )
    return int(worst >= LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
