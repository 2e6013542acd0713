"""A hundred and twenty nodes drained in one minute: sentinel must not give them all back."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.scale import ScaleLab
from tests.lab.service import Service
from tests.lab.smtp import SmtpServer
from tests.service.watch import Watch

pytestmark = pytest.mark.lab

CONFIG = """\
remote: {{timeout: 20s, connect_timeout: 2s, fanout: 32}}
checks:
  drained: {{kind: drained, every: 1s, timeout: 60s, undrain: true}}
guard: {{breaker: {breaker}}}
channels:
  mail: {{kind: email, to: [oncall@example.org], from: sentinel@example.org, host: 127.0.0.1,
          port: {port}, security: none}}
"""
ALL = "n[00000-00119]"  # of 100 or fewer, a tenth of the partition would be the cap that holds

# Stands in for ssh, as no such nodes exist: each answers what probe.sh prints on a clean one.
SSH = r"""#!/bin/sh
for word; do node=$command command=$word; done
read -r mark
while read -r line; do case $line in mark=*) inner=${line#mark=}; break ;; esac; done
printf '\n%s begin\n' "$mark"
printf '\n%s begin\n' "$mark" >&2
cat <<PROBE
$inner begin 1
$inner identity ok 6
 $node
 6.1.0
 6ba7b810-9dad-11d1-80b4-00c04fd430c8
 1000.00 2000.00
 1800000000
 0
$inner processes ok 1
       1       0       0 S Sat Nov 21 00:58:03 2026 init
$inner commands ok 1
       1 root             /sbin/init
$inner blocked ok 0
$inner steps ok 3
 saw daemons
 saw cgroups
 saw environments
$inner gpu_processes ok 0
$inner gpus ok 4
 <nvidia_smi_log>
 <gpu id="0"/><gpu id="1"/><gpu id="2"/><gpu id="3"/>
 <gpu id="4"/><gpu id="5"/><gpu id="6"/><gpu id="7"/>
 </nvidia_smi_log>
$inner kernel ok 2
 kmsg
 6,1,1000,-;Linux version 6.1.0
$inner end
PROBE
printf '\n%s end 0\n' "$mark"
"""


@pytest.fixture
def many() -> Iterator[ScaleLab]:
    """A controller of its own for each: it stops to hear from nodes that are not there."""
    with ScaleLab(nodes=120) as lab:
        yield lab


@pytest.fixture
def watch(
    tmp_path: Path, service: Callable[..., Service], many: ScaleLab, smtp: SmtpServer
) -> Watch:
    """One sentinel that has seen all nodes idle, and can reach them."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ssh").write_text(SSH)
    (tmp_path / "bin/ssh").chmod(0o755)
    many.run(["scontrol", "update", f"nodename={ALL}", "state=idle"])
    return Watch(tmp_path, service, {**many.env, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})


def drained(lab: ScaleLab) -> int:
    states = lab.ask(["sinfo", "-h", "-N", "-o", "%T"]).split()
    return sum(state.startswith("drain") for state in states)


def drain_all(lab: ScaleLab, watch: Watch) -> None:
    """A pass over the idle nodes first, so that sentinel sees them leave."""
    assert watch.say("tick", "--all").returncode == 0
    lab.ask(["scontrol", "update", f"nodename={ALL}", "state=drain", "reason=Kill task failed"])
    assert drained(lab) == 120


@pytest.mark.long
def test_the_breaker_opens_and_one_message_tells_it(
    many: ScaleLab, watch: Watch, smtp: SmtpServer
) -> None:
    """All are proven clean, and none is given back: a person has to look at what drained them."""
    watch.configure(CONFIG, port=smtp.port, breaker="{}")
    drain_all(many, watch)
    assert watch.say("tick", "--all").returncode == 0
    assert drained(many) == 120
    [mail] = smtp.mails
    assert "120 of 120 nodes left service within 10m" in mail.message.as_string()
    watch.say("tick", "--all")
    watch.say("tick", "--all")
    assert drained(many) == 120
    assert len(smtp.mails) == 2  # and one for all nodes that are still drained
    stops = json.loads(watch.say("nodes", "breaker", "status", "--json").stdout)
    assert "120 of 120 nodes left service" in stops["breaker"]["why"]


@pytest.mark.long
def test_the_caps_hold_where_the_breaker_does_not(
    many: ScaleLab, watch: Watch, smtp: SmtpServer
) -> None:
    """Ten an hour by default, however often sentinel looks, and the others say why not."""
    watch.configure(CONFIG, port=smtp.port, breaker="{nodes: 1000, share: 100%}")
    drain_all(many, watch)
    waiting: list[object] = []
    for _ in range(5):
        assert watch.say("tick", "--all").returncode == 0
        assert drained(many) >= 110
        alerts = json.loads(watch.say("alerts", "list", "--json").stdout)
        waiting = [a for a in alerts if "10 within the last hour, at most 10" in a["summary"]]
        if len(waiting) == 110:  # a busy machine may not have asked all of them in one pass
            break
    assert len(waiting) == 110, sorted({a["summary"][-200:] for a in alerts})[:5]
    assert drained(many) == 110
