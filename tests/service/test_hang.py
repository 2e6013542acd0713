"""A training of eight ranks on the lab hangs: its page and its mail say at which step and who."""

import re
import socket
import sys
from pathlib import Path

import pytest

from sentinel.status.plot import HIGH
from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.lab.waiting import wait_until
from tests.nodes.nodes import Nodes
from tests.service.watch import Watch
from tests.web.browser import Visitor, browser
from tests.web.stage import TOKEN

TRAINING = """\
import os, socket, sys, time

rank, ranks, place = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), sys.argv[1]
peers = []


def all_reduce():
    if rank:
        peers[0].send(b"x")
        peers[0].recv(1)
    else:
        for peer in peers:
            peer.recv(1)
        for peer in peers:
            peer.send(b"x")


def load_batch():
    while rank == 5 and os.path.exists(f"{place}/hang"):
        time.sleep(1000)


def train():
    if rank:
        while not peers:
            try:
                peers.append(socket.create_connection((sys.argv[2], 29500)))
            except OSError:
                time.sleep(0.2)
    else:
        server = socket.create_server(("", 29500))
        peers.extend(server.accept()[0] for _ in range(ranks - 1))
    for step in range(10**9):
        load_batch()
        time.sleep(0.2)
        all_reduce()
        if rank == 0:
            print(f"iter {step}: loss {9 / (1 + step / 20) + 2:.4f}, time 200.00ms, mfu 1.20%", flush=True)


train()
"""
CONFIG = """\
remote: {{ssh_options: "-F {ssh} -o UserKnownHostsFile={known}"}}
web: {{listen: "127.0.0.1:{port}", token: {token}}}
checks:
  progress: {{kind: log, every: 3s, job: llm-10b, trial: 0s}}
channels:
  mail: {{kind: email, host: localhost, port: {smtp}, security: none, from: s@example.org, to: [ops@example.org]}}
"""


@pytest.mark.nightly
def test_a_hang_is_on_its_page_and_in_its_mail(
    fresh: Lab, night: Watch, smtp: SmtpServer, tmp_path: Path
) -> None:
    """Rank 5 stays in its data loader while seven others wait in the collective."""
    nodes, program = Nodes(fresh, tmp_path), fresh.work / "train.py"
    program.write_text(TRAINING)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    known = {"ssh": nodes.config, "known": nodes.known, "token": TOKEN}
    night.configure(CONFIG, port=port, smtp=smtp.port, **known)
    words = f"{sys.executable} -I -S -u {program} {tmp_path} {fresh.nodes[0].address}"
    job = fresh.sbatch(f"exec srun -O -n8 {words}", name="llm-10b", nodes=4)
    log = fresh.work / f"slurm-{job}.out"
    night.run()
    wait_until(lambda: log.exists() and "iter 150:" in log.read_text(), "its steps", 90)
    (tmp_path / "hang").touch()
    [mail] = smtp.wait(1, 120)
    step = log.read_text().splitlines()[-1].split()[1].rstrip(":")
    told = f"at iter {step}: rank 5 on node-2 is not in the all_reduce in which 7 others wait"
    assert re.search(rf": hung since \S+ at iter {step} …$", str(mail.message["subject"]))
    parts = {part.get_content_type(): part for part in mail.message.walk()}
    assert told in " ".join(parts["text/plain"].get_content().split())
    drawn = parts["image/png"].get_content()
    assert int.from_bytes(drawn[20:24], "big") > 1.5 * 3 * HIGH, "step, speed and loss"

    with browser() as made:
        v = Visitor(made)
        v.page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
        v.page.goto(f"http://127.0.0.1:{port}/jobs/one?check=progress&subject=llm-10b")
        v.page.wait_for_selector("#chart canvas")
        titles = v.page.locator("#chart h3").all_inner_texts()
        assert titles == ["Step", "Steps a minute", "Loss"]
        happened = v.page.locator("section", has=v.page.locator("h2", has_text="What happened"))
        [row] = happened.locator("tbody tr").all_inner_texts()
        assert "hang" in row
        assert told in row
        asked = v.page.locator("#chart").get_attribute("data-src")
        course = v.page.request.get(f"http://127.0.0.1:{port}{asked}").json()
        assert v.faults == []
    [mark] = [one for one in course["marks"] if one["kind"] == "hang"]
    assert abs(mark["at"] - log.stat().st_mtime) < 10, "it begins with the last step"
    assert [line["name"] for line in course["lines"]] == ["progress", "speed", "loss"]
    assert course["lines"][1]["y"][-1] == 0
