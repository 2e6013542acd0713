#!/usr/bin/env python3
"""Runs on nodes, fed to `python3`: one test, one line of verdict per node.

Standard library only, Python 3.6 or newer; torch where the node has it. Arguments: mark, test,
name and address of the first node, port, GPUs expected, path, then the user's command.
Before it `SECRET` is set, which no argument tells: everybody who reaches a node can connect to it.
As a batch job it is given a path as its mark: there it leaves the text, and the code at last in
PATH.rc (0 pass, 1 fail, 2 missing).
Verdicts: pass, fail, or missing where the node lacks what the test needs.
"""

import datetime
import hmac
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

MEGABYTE = 1 << 20
PATIENCE = 30.0
MAX_LINKS = 200


class Missing(Exception):
    """The node lacks what the test needs."""


class Failed(Exception):
    """The test was made and the node did not pass."""


def cuda(args: "Args") -> str:
    shown = nvidia_smi()
    if shown < args.gpus:
        raise Failed(f"nvidia-smi shows {shown} of {args.gpus} GPUs")
    torch = import_torch(f"; nvidia-smi shows {shown} GPUs")
    count = torch.cuda.device_count()
    if count < max(1, args.gpus):
        raise Failed(f"CUDA sees {count} of {args.gpus} GPUs")
    for gpu in range(count):
        one = torch.ones(512, 512, device=f"cuda:{gpu}")
        if float((one @ one).sum()) != 512.0**3:
            raise Failed(f"GPU {gpu} computes wrongly")
    return f"CUDA computes on {count} GPUs"


def gpu_memory(args: "Args") -> str:
    torch = import_torch()
    total = 0
    for gpu in range(need_gpus(torch)):
        free = torch.cuda.mem_get_info(gpu)[0]
        block = torch.empty(int(free * 0.9), dtype=torch.uint8, device=f"cuda:{gpu}")
        block.fill_(0xA5)
        if int((block != 0xA5).sum()):
            raise Failed(f"GPU {gpu} does not keep what is written")
        total += block.numel()
        del block
        torch.cuda.empty_cache()
    return "%.0f GB of GPU memory keep what is written" % (total / 1e9)


def barrier(args: "Args") -> str:
    torch = import_torch()
    gpus = torch.cuda.device_count()
    backend = "nccl" if gpus else "gloo"
    torch.distributed.init_process_group(
        backend,
        init_method=f"tcp://{args.address}:{args.port}",
        rank=args.rank,
        world_size=args.size,
        timeout=datetime.timedelta(seconds=PATIENCE),
    )
    number = torch.ones(1, device="cuda:0" if gpus else "cpu")
    torch.distributed.all_reduce(number)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    if int(number) != args.size:
        raise Failed(f"all_reduce of {args.size} nodes gave {int(number)}")
    return f"{backend} all_reduce and barrier over {args.size} nodes"


def network(args: "Args") -> str:
    if args.size < 2:
        raise Missing("needs a second node")
    data = os.urandom(MEGABYTE) * 16
    link = listen(args) if args.rank == 0 else connect(args)
    with link:
        link.settimeout(PATIENCE)
        began = time.time()
        if args.rank == 0:
            link.sendall(data + sign(data))
            same = link.recv(4) == b"same"
        else:
            link.sendall(sign(b"second node"))
            got = receive(link, len(data) + 32)
            same = hmac.compare_digest(sign(got[:-32]), got[-32:])
            link.sendall(b"same" if same else b"else")
    if not same:
        raise Failed("what arrived is not what was sent")
    seconds = max(time.time() - began, 1e-6)
    return "16 MiB between the nodes, %.0f MB/s" % (len(data) / 1e6 / seconds)


def file_system(args: "Args") -> str:
    # The name is random and the file is new. Others may also write there, and a link of theirs
    # could lead root to any file.
    fd, name = tempfile.mkstemp(prefix=f".sentinel-test-{socket.gethostname()}-", dir=args.path)
    data = os.urandom(MEGABYTE)
    try:
        with open(fd, "w+b") as file:
            for _ in range(16):
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            same = all(file.read(MEGABYTE) == data for _ in range(16))
    finally:
        os.unlink(name)
    if not same:
        raise Failed(f"{args.path} does not give back what was written")
    return f"16 MiB written to {args.path} and read back"


def command(args: "Args") -> str:
    try:
        done = subprocess.run(
            args.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise Missing(f"{args.command[0]}: {error.strerror}") from error
    last = done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if done.returncode:
        raise Failed(f"exit code {done.returncode}: {last}")
    return last or "exit code 0"


def import_torch(found: str = "") -> Any:
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise Missing(f"no torch in {sys.executable}{found}") from None
    return torch


def need_gpus(torch: Any) -> int:
    count = int(torch.cuda.device_count())
    if not count:
        raise Failed("CUDA sees no GPU")
    return count


def nvidia_smi() -> int:
    try:
        done = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, timeout=PATIENCE)
    except OSError:
        raise Missing("no nvidia-smi") from None
    except subprocess.TimeoutExpired:
        raise Failed("nvidia-smi does not answer") from None
    if done.returncode:
        raise Failed(f"nvidia-smi: exit code {done.returncode}")
    return sum(line.startswith(b"GPU ") for line in done.stdout.splitlines())


def sign(data: bytes) -> bytes:
    return hmac.new(globals().get("SECRET", "").encode(), data, "sha256").digest()


def listen(args: "Args") -> socket.socket:
    """The connection of the second node, whoever else connects before it."""
    said: dict[socket.socket, bytes] = {}
    server, end = socket.socket(), time.time() + PATIENCE
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(1.0)
    with server:
        server.bind(("", args.port))
        server.listen(MAX_LINKS)
        while time.time() < end:
            ready = select.select([server, *said], [], [], 1.0)[0]
            if server in ready:
                with suppress(OSError):
                    said[server.accept()[0]] = b""
            for link in [one for one in ready if one is not server]:
                got = hear(link, 32 - len(said[link]))
                said[link] += got
                if hmac.compare_digest(said[link], sign(b"second node")):
                    return link
                if not got or len(said[link]) == 32:
                    del said[link]
            if len(said) > MAX_LINKS:
                del said[next(iter(said))]
    raise Failed("the second node did not connect")


def hear(link: socket.socket, size: int) -> bytes:
    try:
        return link.recv(size)
    except OSError:
        return b""


def connect(args: "Args") -> socket.socket:
    end = time.time() + PATIENCE
    while True:
        try:
            return socket.create_connection((args.address, args.port), 5)
        except OSError as error:
            if time.time() > end:
                raise Failed(f"{args.address} cannot be reached: {error}") from error
            time.sleep(0.2)


def receive(link: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        part = link.recv(MEGABYTE)
        if not part:
            raise Failed("the connection broke off")
        got += part
    return bytes(got)


class Args:
    def __init__(self, words: "list[str]") -> None:
        self.mark, self.test, first, self.address, port, gpus, self.path = words[:7]
        self.port, self.gpus, self.command = int(port), int(gpus), words[7:]
        self.node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        self.rank = 0 if self.node == first else 1
        self.size = int(os.environ.get("SLURM_NTASKS", "1"))


TESTS = {
    "cuda": cuda,
    "gpu-memory": gpu_memory,
    "barrier": barrier,
    "network": network,
    "fs": file_system,
    "command": command,
}


CODES = {"pass": 0, "fail": 1, "missing": 2}


def leave(out: str, line: str, code: str) -> None:
    """New files only: where others may write too, a link must not lead root elsewhere."""
    os.makedirs(os.path.dirname(out), exist_ok=True)
    for path, text in ((out, line), (out + ".rc.part", code)):
        with open(path, "x") as file:
            file.write(text + "\n")
    os.rename(out + ".rc.part", out + ".rc")


def main() -> None:
    args = Args(sys.argv[1:])
    try:
        verdict, text = "pass", TESTS[args.test](args)
    except Missing as error:
        verdict, text = "missing", str(error)
    except Exception as error:
        verdict = "fail"
        text = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
    line = " ".join(text.split())[:300]
    if args.mark.startswith("/"):
        leave(args.mark, line, str(CODES[verdict]))
        return
    sys.stdout.write(f"{args.mark} {args.node} {verdict} {line}\n")


main()
