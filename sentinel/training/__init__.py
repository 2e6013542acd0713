"""What a training loop asks: must I stop, shall I save? Standard library only.

    guard = Guard(kill_switch="/scratch/run/STOP", save_switch="/scratch/run/SAVE", heartbeat="/scratch/run/beat")
    if guard.should_stop():
        sys.exit(0)
    for step in range(start, steps):
        train(step)
        guard.beat(step)
        if guard.should_save() or guard.should_stop():
            with guard.saving():
                save(step)
        if guard.stopping:
            break

Nothing here raises because of what it looks at: a training must not die of its guard. What
could not be looked at is in `troubles`.
"""

from sentinel.training.guard import Guard, Reason
from sentinel.training.looks import end_of_allocation, memory_used

__all__ = ["Guard", "Reason", "end_of_allocation", "memory_used"]
