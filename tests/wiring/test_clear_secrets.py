"""Secrets that go to another host without TLS that is verified: told, by host and port alone."""

from pathlib import Path

import pytest

from sentinel.config.loader import load_config
from sentinel.wiring.app import CHANNELS, CHECKS
from sentinel.wiring.trust_review import find_clear_addresses

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")

CLEAR = {
    "token in the query": "kind: webhook, url: 'http://h.example.org:8080/alert?token=abc'",
    "user and password": "kind: webhook, url: 'http://u:pw@h.example.org:8080/'",
    "token as user": "kind: webhook, url: 'http://token@h.example.org:8080/'",
    "header": "kind: webhook, url: 'http://h.example.org:8080/', headers: {Authorization: Bearer x}",
    "scheme in capitals": "kind: webhook, url: 'HTTP://h.example.org:8080/a?k=v'",
    "loopback in the name only": "kind: webhook, url: 'http://127.0.0.1@h.example.org:8080/?a=b'",
    "webhook of a chat": "kind: mattermost, url: 'http://h.example.org:8080/hooks/xxx0yyy1zzz2'",
    "token beside": "kind: ntfy, url: 'http://h.example.org:8080/topic', token: tk_abcdef",
    "bot": "kind: telegram, api: 'http://h.example.org:8080', token: '123:abc', chat: 1",
    "API": "kind: opsgenie, api: 'http://h.example.org:8080', api_key: abcdef",
    "pager": "kind: pagerduty, url: 'http://h.example.org:8080/v2', routing_key: abcdef",
    "user of an Alertmanager": "kind: alertmanager, urls: ['http://u:pw@h.example.org:8080']",
    "Apprise": "kind: apprise, url: 'json://u:pw@h.example.org:8080/'",
    "Apprise, unverified": "kind: apprise, url: 'jsons://u:pw@h.example.org:8080/?verify=no'",
}
KEPT = {
    "https": "kind: webhook, url: 'https://h.example.org/alert?token=abc'",
    "this host": "kind: webhook, url: 'http://localhost:8080/alert?token=abc'",
    "this host, by number": "kind: webhook, url: 'http://[::1]:8080/', headers: {X-Key: abc}",
    "no secret": "kind: webhook, url: 'http://h.example.org/api/v1/cluster-alerts'",
    "Alertmanager": "kind: alertmanager, urls: ['http://am1:9093', 'http://am2:9093']",
    "usual addresses": "kind: pagerduty, routing_key: abcdef, api_token: abcdef",
    "relay on this host": "kind: email, to: [a@example.org], from: b@example.org, host: 127.0.0.2,"
    " security: none, username: u, password: pw",
    "Apprise with TLS": "kind: apprise, url: 'jsons://u:pw@h.example.org/'",
    "Apprise, a service of the net": "kind: apprise, url: 'mailto://u:pw@gmail.com'",
    "Apprise without a secret": "kind: apprise, url: 'json://h.example.org/alerts'",
    "Apprise without a host": "kind: apprise, url: 'ntfy://Topic-42-Topic'",
}


def find_places(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "sentinel.yaml"
    file.write_text(f"channels: {{one: {{{text}}}}}\n")
    (channel,) = load_config(str(file), CHECKS, CHANNELS, env={}).settings.channels
    return [*find_clear_addresses(channel.plugin)]


@pytest.mark.parametrize("text", CLEAR.values(), ids=CLEAR.keys())
def test_a_secret_in_clear_is_found(text: str, tmp_path: Path) -> None:
    if "apprise" in text:
        pytest.importorskip("apprise")
    assert find_places(text, tmp_path) == ["h.example.org:8080"]


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_what_goes_to_the_right_one_is_not_spoken_of(text: str, tmp_path: Path) -> None:
    if "apprise" in text:
        pytest.importorskip("apprise")
    assert find_places(text, tmp_path) == []
