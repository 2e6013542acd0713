"""A training of four ranks that goes wrong, or seems to, once a file is there.

python program.py CASE FOLDER; RANK and WORLD_SIZE as torchrun sets them.
"""

import os
import pdb
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

CASE, FOLDER = sys.argv[1], sys.argv[2]
RANK = int(os.environ["RANK"])
ODD = 2
LONG = 150.0
"""Seconds that the harmless cases take."""


def note(text):
    with open(f"{FOLDER}/log", "a") as log:
        log.write(text + "\n")


def forever():
    time.sleep(100_000)


class Starving(torch.utils.data.Dataset):
    """Gives what it is asked for, until it does not."""

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        if RANK == ODD and CASE == "loader" and os.path.exists(f"{FOLDER}/go"):
            forever()
        return torch.ones(8)


def die():
    """A worker that was forked keeps the sockets open: nobody is told that the rank is gone."""
    if os.fork() == 0:
        forever()
    os.kill(os.getpid(), signal.SIGKILL)


def raise_alone():
    """The exception is shown only after threads have ended, and one does not."""
    threading.Thread(target=forever).start()
    raise RuntimeError("only here")


def spin():
    while True:
        pass


def open_file():
    with open(f"{FOLDER}/mount/data") as file:
        file.read()


def save(model):
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        torch.save(model, f"{FOLDER}/checkpoint")


def evaluate(model):
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        for _ in range(50):
            model = torch.tanh(model @ model)
        dist.all_reduce(model)


def compute(step):
    """A step whose time is the processor's, and when it ended."""
    model = torch.ones(256, 256)
    for _ in range(60):
        model = torch.tanh(model @ model)
    dist.all_reduce(model)
    if RANK == 0:
        note(f"iteration {step} ended at {time.time():.5f}")


@torch.library.custom_op("hangs::inside", mutates_args=())
def inside(x: torch.Tensor) -> torch.Tensor:
    """What a step does within a layer: an operator of its own, so that it is compiled with the layer."""
    if RANK == ODD and os.path.exists(f"{FOLDER}/go"):
        forever()
    return x.clone()


inside.register_fake(torch.empty_like)
inside.register_autograd(lambda context, gradient: gradient)


class Layers(torch.nn.Module):
    """As those of large models: compiled, and computed anew for their gradients."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x):
        return checkpoint(lambda x: inside(torch.tanh(self.layer(x))), x, use_reentrant=False)


def compile_model():
    time.sleep(LONG)


ALONE = {"die": die, "sleep": forever, "spin": spin, "raise": raise_alone, "file": open_file, "debugger": pdb.set_trace}  # fmt: skip


def odd(step, model):
    """What happens once the file is there."""
    if RANK == ODD and CASE in ALONE:
        ALONE[CASE]()
    elif RANK == ODD and CASE == "slow":
        time.sleep(3)
    elif RANK == ODD and CASE == "mismatch":
        dist.broadcast(torch.ones(4), 0)
    elif RANK == 0 and CASE == "checkpoint" and not os.path.exists(f"{FOLDER}/done"):
        save(torch.ones(4_000_000))
        open(f"{FOLDER}/done", "w").close()
    elif CASE == "evaluation" and not os.path.exists(f"{FOLDER}/done{RANK}"):
        evaluate(model)
        open(f"{FOLDER}/done{RANK}", "w").close()


def train():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.ones(128, 128)
    batches = iter(torch.utils.data.DataLoader(Starving(), num_workers=CASE == "loader"))
    if RANK == 0 and CASE == "compilation":
        compile_model()
    if CASE == "layer":
        layers = DistributedDataParallel(torch.compile(Layers(), backend="aot_eager"))
    for step in range(10**9):
        next(batches)
        if CASE == "busy":
            compute(step)
            continue
        time.sleep(0.2)
        if CASE == "layer":
            layers(torch.ones(2, 8)).sum().backward()
        elif os.path.exists(f"{FOLDER}/go"):
            odd(step, model)
        dist.all_reduce(model)
        if RANK == 0:
            note(f"iteration {step}")


train()
