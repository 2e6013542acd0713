"""From the death of a training to the mail about it, with nothing but the defaults."""

import pytest

from tests.lab.cluster import Lab
from tests.lab.smtp import SmtpServer
from tests.service.watch import Watch

CONFIG = """\
checks:
  training: {{kind: job, name: train}}
channels:
  mail: {{kind: email, to: [me@example.org], from: s@example.org, host: {smtp.host}, port: {smtp.port}, security: none}}
"""


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", ["exit 3", "kill -9 $$"])
def test_the_mail_is_there_within_two_minutes(
    fresh: Lab, night: Watch, smtp: SmtpServer, ending: str
) -> None:
    """By the service: a look a minute, a second one half a minute after the death."""
    go = fresh.work / "go"
    fresh.sbatch(f"until [ -e {go} ]; do sleep 0.2; done; {ending}", name="train", time="10")
    night.configure(CONFIG, smtp=smtp)
    service = night.run()
    service.wait_for(lambda: "running" in night.say("status").stdout, "a first look", 90)
    go.touch()
    smtp.wait(1, 120)
