"""`python -m tests.torture --minutes N --seed S`: 0 when no harm was done, 1 when some was."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.lab import machine, needs
from tests.service.clock import why_no_clock
from tests.torture.events import Events
from tests.torture.oracle import KINDS, Harm, Oracle
from tests.torture.planted import PLANTED, planted
from tests.torture.world import World

PATIENCE = 90.0
"""Seconds in which all has to be right again once all faults are over: retries wait for a minute."""
PEACE = 10.0
"""Seconds of calm in which sentinel may do what it likes, right or wrong, before anybody looks."""
AMBUSH = 15.0
"""Seconds for which an administrator lies in wait at a node, where nothing holds sentinel up."""


UNHEARD = 6
"""With it a message that is lost is found within minutes whatever the seed: else a refusal and a drain
that lasts seldom meet in one round."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(PLANTED), help="a bug that it has to find")
    args = parser.parse_args()
    if missing := needs.why_no_lab() or why_no_clock():
        print(f"cannot start: {missing}", file=sys.stderr)
        return 69
    machine.own_mounts()
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        package = planted(args.plant, folder / "package") if args.plant else None
        with World(folder / "world", package).up() as world:
            harm = tortured(
                world,
                args.seed,
                args.minutes * 60,
                stop=bool(args.plant),
                unheard=UNHEARD if args.plant == "lost" else 0,
            )
    again = f"python -m tests.torture --seed {args.seed} --minutes {args.minutes:g}"
    print(f"replay: {again}{f' --plant {args.plant}' if args.plant else ''}")
    return int(bool(harm))


def tortured(
    world: World, seed: int, seconds: float, *, stop: bool = False, unheard: int = 0
) -> list[Harm]:
    """Rounds of faults, each followed by calm; what harm was seen. `stop`: at the first. `unheard`: the
    weight of drains whose message is refused at first, beside one for each fault."""
    chance = random.Random(seed)
    oracle = Oracle(world)
    events = Events(world, oracle, chance, unheard=unheard)
    told, harm, done = time.monotonic(), list[Harm](), Counter[str]()
    world.run()
    world.wait_until_it_looks()
    rounds = 0
    while time.monotonic() - told < seconds and not (stop and harm):
        rounds += 1
        disturbed = rounds % 2 == 0
        for _ in range(chance.randint(3, 8)):
            what = events.befall(disturbed=disturbed)
            done[what.split()[0]] += 1
            print(f"{time.monotonic() - told:7.1f}  {what}", flush=True)
            time.sleep(chance.random() * 3)
            if not disturbed:
                events.await_ambush(AMBUSH)
            harm += _new(oracle.lasting(), harm)
        events.calm()
        time.sleep(PEACE)
        harm += _new(_in_calm(oracle), harm)
        events.release()
    if harm:
        print("sentinel's own words:", *world.said(), sep="\n    ")
    counts = Counter(h.kind for h in harm)
    print(f"seed {seed}: {rounds} rounds, {sum(done.values())} events {dict(done)}")
    print(f"{events.between} times an administrator came between two commands of sentinel")
    print("; ".join(f"{counts[kind]} {kind}" for kind in KINDS))
    return harm


def _in_calm(oracle: Oracle) -> list[Harm]:
    """What is still wrong when all faults have been over for a while."""
    deadline = time.monotonic() + PATIENCE
    while (wrong := [*oracle.now(), *oracle.lasting()]) and time.monotonic() < deadline:
        time.sleep(0.5)
    return wrong


def _new(found: Iterable[Harm], known: list[Harm]) -> list[Harm]:
    fresh = [h for h in found if h not in known]
    for one in fresh:
        print(f"HARM  {one.kind}: {one.text}", flush=True)
    return fresh


if __name__ == "__main__":
    sys.exit(main())
