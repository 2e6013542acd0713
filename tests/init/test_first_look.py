"""A job that init saw and that died before the first pass."""

from pathlib import Path

from sentinel.clock import SystemClock
from sentinel.config.loader import load_config
from sentinel.core.clock import SECOND, shift_instant
from sentinel.core.cluster import Submission
from sentinel.engine.pipeline import SET_UP_KEY
from sentinel.init.first_look import remember_jobs
from sentinel.testing import FixedSlurm, context, job
from sentinel.wiring import app
from sentinel.wiring.app import CHANNELS, CHECKS
from tests.kinds import looks


def test_its_message_has_its_log_and_its_command(tmp_path: Path) -> None:
    """By then Slurm has forgotten it, and there is no accounting."""
    file = tmp_path / "sentinel.yaml"
    file.write_text(
        f"state: {tmp_path}/state\n"
        "channels: {terminal: {kind: console}}\n"
        "checks:\n  train: {kind: job, name: train, users: [alice]}\n"
    )
    settings = load_config(str(file), CHECKS, CHANNELS).settings
    now = SystemClock().now()
    how = Submission(
        id="10", name="train", user="alice", workdir="/w", command="/w/train.sh", stdout="/w/%j.out"
    )
    running = job("10", started=now.wall // SECOND - 600, submitted=now.wall // SECOND - 900)
    remember_jobs(settings, FixedSlurm(jobs=[running], submissions={"10": how}))
    store, _ = app.open_state(settings, SystemClock())
    memory = store.read_memory("train")
    assert list(store.read_memory(SET_UP_KEY)) == ["train"]  # what ran, for the first message
    store.close()
    later = shift_instant(now, 900)
    (check,) = settings.checks
    report = check.plugin.run(context(FixedSlurm(jobs=[]), later, memory=memory))
    (finding,) = report.findings
    assert "job 10 is gone" in finding.summary
    assert finding.values["path"] == "/w/10.out"
    assert "tail -c 5000 /w/10.out | cat -v" in looks(finding)
    lines = [one.render() for one in finding.acts]
    assert any("sbatch" in line and "/w/train.sh" in line for line in lines), lines
