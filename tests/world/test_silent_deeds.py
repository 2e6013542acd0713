"""What keeps silent: silences as people type them, and whether this alert is kept back; written down before the program ran.

One alert: a GPU of gpu-07 in the partitions prod and debug of cluster lab, critical, of ann's job llm-7b.
"""

from __future__ import annotations

import pytest

from sentinel.alerting.matchers import matches_alert, parse_matchers
from sentinel.alerting.settings import Match
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START

LABELS = {"node": "gpu-07", "partition": "prod,debug", "user": "ann", "job": "llm-7b", "rack": "r1"}
ALERT = Alert(
    key=Key("lab", "gpus", "GPU-1f"),
    id="1",
    kind="gpu",
    status=Status.CRITICAL,
    severity=Status.CRITICAL,
    summary="",
    since=START,
    last=START,
    labels=LABELS,
)
HIDES = (
    "node=gpu-07", 'node="gpu-07"', "node=gpu-[01-16]", "node=gpu-[07,09]", "node=gpu-06,gpu-07", "node=gpu-*", "node=gpu-0?",
    "node=~gpu-.*", "node=~gpu-0[0-9]", "node!=gpu-08", "node!~cpu.*", 'node!=""', "node=gpu-07,kind=gpu", "node=gpu-07, severity=critical",
    "{node=\"gpu-07\", kind=\"gpu\"}", "kind=gpu", "kind=~gpu|fs", "check=gpus", "cluster=lab", "subject=GPU-1f", "subject=GPU-*",
    "partition=prod", "partition=debug", "partition=~prod|big", "partition!=big", "user=ann", "user!=bob", "job=llm-*", "job=llm-7b",
    "rack=r1", "rack=~r[0-9]", "severity=critical", "severity!=warning", "kind=gpu,user=ann,partition=prod", 'gone=""',
)  # fmt: skip
TELLS = (
    "node=gpu-7", "node=gpu-070", "node=gpu-[08-16]", "node=gpu-[1-16]", "node=gpu", "node=gpu-0", "node=~gpu", "node=~07", "node=GPU-07",
    "node=gpu-06,gpu-08", "node!=gpu-07", "node!=gpu-[01-16]", "node!~gpu-.*", 'node=""', "node=gpu-07,kind=fs", "node=gpu-07,severity=warning",
    "kind=gp", "kind=gpus", "kind=~gp", "check=gpu", "cluster=lab2", "cluster=la", "subject=GPU-1", "subject=gpu-1f", "subject=~GPU",
    "partition=pro", "partition=prod2", "partition!=debug", "partition=~prod.*debug", "partition!~d.*", "user=an", "user=anna", "user!=ann",
    "job=llm", "job=llm-7", "rack=r", "rack=r11", "severity=warning", "severity!=critical", "gone=x", 'user=""',
)  # fmt: skip
# `==` was written down as equality. It is refused, with what to write; that is arguable.
REFUSED = (
    "node==gpu-07",
    "", "{}", ",", "gpu-07", "node", "node=", "=gpu-07", "node=gpu-[16-01]", "node=gpu-[!0]", 'node="gpu-07', "node=~gpu-(", "partition=prod,debug",
    "subject=gpu-[01-16]", "node=gpu-[01-16]*", "node=gpu-07 kind=gpu", "*",
)  # fmt: skip


def hides(text: str) -> bool | None:
    return matches_alert(Match(matchers=[text]), ALERT)


@pytest.mark.parametrize("text", HIDES)
def test_a_silence_that_means_this_alert(text: str) -> None:
    assert parse_matchers(text)
    assert hides(text) is True


@pytest.mark.parametrize("text", TELLS)
def test_a_silence_that_means_another_alert(text: str) -> None:
    assert parse_matchers(text)
    assert hides(text) is False


@pytest.mark.parametrize("text", REFUSED)
def test_a_silence_that_means_nothing_is_refused_and_hides_nothing(text: str) -> None:
    with pytest.raises(Invalid):
        parse_matchers(text)
    assert hides(text) is not True
