"""A pass where there is no way out, and its messages sent from elsewhere."""

import pytest

from tests.service.watch import Watch

CONFIG = """
checks:
  LAMP
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


@pytest.mark.long
def test_what_a_pass_leaves_is_sent_by_deliver(watch: Watch) -> None:
    """Once, in order; and it looks at nothing itself."""
    watch.configure(CONFIG)
    watch.lamp(2)
    assert watch.say("tick", "--no-deliver").returncode == 0
    assert watch.book == []
    assert [row["channel"] for row in watch.status()["unsent"]] == ["book"]
    watch.lamp(0)
    assert watch.say("deliver").returncode == 0
    assert [line["reason"] for line in watch.book] == ["firing"]
    assert watch.say("deliver").returncode == 0
    assert len(watch.book) == 1


def test_what_cannot_be_sent_stays_and_is_told(watch: Watch) -> None:
    """Exit 75: try again later."""
    watch.configure(CONFIG.replace("{folder}/book", "{folder}/none/book"))
    watch.lamp(2)
    watch.say("tick", "--no-deliver")
    done = watch.say("deliver")
    assert (done.returncode, "not delivered yet" in done.stderr) == (75, True)
    (watch.folder / "none").mkdir()


def test_without_a_chain_it_says_how_to_begin(watch: Watch) -> None:
    """EX_NOINPUT of sysexits(3), in one line."""
    watch.configure(CONFIG)
    done = watch.say("cron", "status")
    assert (done.returncode, "begin with: sentinel cron install" in done.stderr) == (66, True)
