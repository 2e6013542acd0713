"""The file as a whole: every error at its line with its remedy, all of them at once."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.alerting.settings import Match, Route
from sentinel.config.foreign import BrokenCheck
from sentinel.config.loader import load_config
from sentinel.config.problems import ConfigError
from sentinel.config.registry import KindRegistry
from sentinel.config.review import OWN
from sentinel.config.settings import Settings
from sentinel.core.settings import (
    ChannelCommon,
    ChannelConfig,
    CheckCommon,
    CheckConfig,
    SlurmSettings,
)
from sentinel.core.values import Duration, Share, Size
from sentinel.engine.housekeeping import SELF_CHECK_NAME

from .conftest import Errors, Loader
from .kinds import CHANNELS, CHECKS, Disk, Limits, Mail, Screen, Watch

FULL = """\
cluster: h100
state: $WORK/state
timezone: Europe/Berlin
slurm: {timeout: 5s, command_prefix: [ssh, login1]}
x-mine: &base {kind: disk, every: 5m}
checks:
  scratch:
    <<: *base
    for: 10m
    keep_firing_for: 1m
    timeout: 3s
    severity: warning
    blind_after: 5
    labels: {team: llm}
    runbook: call
    paths: [/scratch, ~/x]
    warn: {used: 80%, full_in: 3d}
    crit: {free: 2TiB}
  log: {kind: watch, cron: "*/5 * * * *", path: /log, stale_after: auto, progress: 'it (\\d+)'}
channels:
  mail: {kind: mail, to: [a@b], port: 587, fallback: tty, per_hour: 20}
  tty: {kind: screen}
routes:
  - {match: {severity: critical, check: [scratch, "l*"]}, to: [mail], repeat: 4h, continue: true}
  - {to: [tty]}
"""


def test_every_key_of_the_file_reaches_the_settings(loaded: Loader) -> None:
    """One file with everything in it, against the settings written out."""
    found = loaded(FULL, {"WORK": "/work/me", "HOME": "/home/me"})
    common = CheckCommon(
        kind="disk",
        every=Duration(300),
        for_=Duration(600),
        keep_firing_for=Duration(60),
        timeout=Duration(3),
        severity="warning",
        blind_after=5,
        labels={"team": "llm"},
        runbook="call",
    )
    scratch = Disk(
        paths=["/scratch", "/home/me/x"],
        warn=Limits(used=Share(80), full_in=Duration(259_200)),
        crit=Limits(free=Size(2 * 2**40)),
    )
    log = Watch(path="/log", stale_after="auto", progress=re.compile(r"it (\d+)"))
    assert found.warnings == ()
    assert found.settings == Settings(
        path=found.settings.path,
        cluster="h100",
        state="/work/me/state",
        timezone="Europe/Berlin",
        slurm=SlurmSettings(timeout=Duration(5), command_prefix=["ssh", "login1"]),
        checks=(
            CheckConfig(name="scratch", common=common, plugin=scratch),
            CheckConfig(
                name="log", common=CheckCommon(kind="watch", cron="*/5 * * * *"), plugin=log
            ),
        ),
        channels=(
            ChannelConfig(
                name="mail",
                kind="mail",
                plugin=Mail(to=["a@b"], port=587),
                common=ChannelCommon(kind="mail", fallback="tty", per_hour=20),
            ),
            ChannelConfig(
                name="tty", kind="screen", plugin=Screen(), common=ChannelCommon(kind="screen")
            ),
        ),
        routes=(
            Route(
                to=["mail"],
                match=Match(severity="critical", check=["scratch", "l*"]),
                repeat=Duration(14_400),
                continue_=True,
            ),
            Route(to=["tty"]),
        ),
    )


def in_check(text: str) -> str:
    """The settings of a disk check, its first key in line 4."""
    return f"checks:\n  a:\n    kind: disk\n{text}"


def in_watch(text: str) -> str:
    """The settings of a watch check, its first key in line 5."""
    return f"checks:\n  a:\n    kind: watch\n    path: /x\n{text}"


KNOWN = ", ".join(sorted(key for key in Settings.__struct_fields__ if key != "path"))

BAD = [
    # the top level
    ("chekcs: {}", "1: chekcs: unknown key (did you mean 'checks'?)"),
    ("web: {listen: 9650}", "1: web.listen: expected text, got the number 9650; ..."),
    ("web: {listen: localhost}", "1: web.listen: write it like 127.0.0.1:9650"),
    (
        "web: {listen: '[::1]:9650', user_header: X-Remote-User}",
        "1: web.token: is missing: the proxy that names the user proves itself with it",
    ),
    (
        "web: {listen: '[::1]:9650', administrators: [ann]}",
        "1: web.user_header: is missing: the header in which the proxy names the user",
    ),
    (
        "web: {listen: '[::1]:9650', url: https://x.example.org}",
        "1: web.secret: is missing: links in messages need both url and secret",
    ),
    (
        "web:\n  listen: 127.0.0.1:9650\n  url: https://x\n  secret: short",
        "4: web.secret: needs 16 characters or more, e.g. of: openssl rand -hex 32",
    ),
    (
        "heartbeat: {every: 5m}",
        "1: heartbeat.url: needs `url`, or `file` and `peer` on shared storage",
    ),
    ("standby: {}", f"1: standby: unknown key; this version knows: {KNOWN}"),
    ("cluster: 12", '1: cluster: expected text, got the number 12; write "12" in quotes'),
    ("cluster: true", '1: cluster: expected text, got true; write "true" in quotes'),
    ("cluster: [a]", "1: cluster: expected text, got a list"),
    ("state: $NOPE/x", "1: state: $NOPE is not set; set it, or write $$ for a dollar sign"),
    (
        "timezone: Europe/Berln",
        "1: timezone: there is no time zone 'Europe/Berln' (did you mean 'Europe/Berlin'?)",
    ),
    ("timezone: Europe", "1: timezone: there is no time zone 'Europe' (did you mean 'Europe/..."),
    ("timezone: /etc/passwd", "1: timezone: there is no time zone '/etc/passwd'..."),
    (
        "timezone: qqq",
        "1: timezone: there is no time zone 'qqq'; write it like Europe/Berlin or UTC",
    ),
    ("slurm: 5", "1: slurm: expected a mapping, got the number 5; its keys: ..."),
    ("slurm: {timout: 5s}", "1: slurm.timout: unknown key (did you mean 'timeout'?)"),
    (
        "slurm:\n  command_prefix: ssh login1",
        "2: slurm.command_prefix: expected a list, got text 'ssh login1'; write [ssh, login1], "
        'or ["ssh login1"] if it is one item',
    ),
    (
        "slurm:\n  command_prefix: 5",
        '2: slurm.command_prefix[0]: expected text, got the number 5; write "5" in quotes',
    ),
    ("slurm:\n  command_prefix: ''", "2: slurm.command_prefix: expected a list, got text ''"),
    (
        "slurm:\n  racks:\n    r1: n[1-4]\n    r2: n4",
        "4: slurm.racks.r2: n4 is in r1 too",
    ),
    ("slurm: {racks: {r1: 'n['}}", "1: slurm.racks.r1: ..."),
    ("checks: [a]", "1: checks: expected a mapping of names, got a list"),
    ("routes: {}", "1: routes: expected a list, got a mapping"),
    # names and kinds
    (
        "checks:\n  sentinel: {kind: disk}",
        "2: checks.sentinel: this is what sentinel says about itself; take another name",
    ),
    ("checks:\n  a:", "2: checks.a: expected a mapping with the key 'kind', got nothing"),
    (
        "checks:\n  -x: {kind: disk}",
        "2: checks.-x: a name must not be empty, begin with '-', or hold control characters "
        "or outer blanks",
    ),
    (
        'checks:\n  "a\\nb": {kind: disk}',
        "2: checks.\"a\\nb\": a name must not be empty, begin with '-', or hold control "
        "characters or outer blanks",
    ),
    (
        "checks:\n  a:\n    every: 5m",
        "2: checks.a.kind: is missing; expected one of disk, watch",
    ),
    (
        "checks:\n  a:\n    kind: [disk]",
        "3: checks.a.kind: got a list; expected one of disk, watch",
    ),
    (
        "checks:\n  a:\n    kind: dsk",
        "3: checks.a.kind: there is no kind 'dsk' (did you mean 'disk'?)",
    ),
    (
        "checks:\n  a: {kind: mail}",
        "2: checks.a.kind: there is no kind 'mail'; known: disk, watch",
    ),
    (
        "channels:\n  a: {to: [b]}",
        "2: channels.a.kind: is missing; expected one of mail, screen",
    ),
    (
        "channels:\n  a: {kind: screem}",
        "2: channels.a.kind: there is no kind 'screem' (did you mean 'screen'?)",
    ),
    # keys
    (in_check("    evry: 5m"), "4: checks.a.evry: unknown key (did you mean 'every'?)"),
    (in_check("    Path: [/x]"), "4: checks.a.Path: unknown key (did you mean 'paths'?)"),
    (
        in_check("    keep-firing-for: 5m"),
        "4: checks.a.keep-firing-for: unknown key (did you mean 'keep_firing_for'?)",
    ),
    (in_check("    FOR: 5m"), "4: checks.a.FOR: unknown key (did you mean 'for'?)"),
    (
        in_check("    warn: {fre: 5TB}"),
        "4: checks.a.warn.fre: unknown key (did you mean 'free'?)",
    ),
    (
        in_check("    warn: {zzz: 5TB}"),
        "4: checks.a.warn.zzz: unknown key; known: free, full_in, used",
    ),
    (
        "channels:\n  a: {kind: mail}",
        "2: channels.a.to: is missing; expected a list",
    ),
    # values
    (
        in_check("    every: 90"),
        "4: checks.a.every: '90' is no duration; write it like 90s, 15m, 2h or 3d",
    ),
    (in_check("    every: true"), "4: checks.a.every: expected a duration like 15m, got true"),
    (
        in_check("    keep_firing_for:"),
        "4: checks.a.keep_firing_for: it has no value; expected a duration like 15m",
    ),
    (in_check("    every: 999ms"), "4: checks.a.every: 999ms is too often; at least 1s"),
    (in_check("    timeout: 0s"), "4: checks.a.timeout: a run needs some time; write it like 10s"),
    (
        in_check("    every: 5m\n    cron: 0 * * * *"),
        "5: checks.a.cron: a check runs by 'every' or by 'cron'; remove one of them",
    ),
    (
        in_check("    cron: 0 * * *"),
        "4: checks.a.cron: '0 * * *' is no crontab schedule: five fields are needed "
        "(minute hour day-of-month month day-of-week), or @hourly, @daily, @weekly, @monthly",
    ),
    (
        in_check("    severity: warn"),
        "4: checks.a.severity: 'warn' is not one of warning, critical (did you mean 'warning'?)",
    ),
    (
        in_check("    severity: red"),
        "4: checks.a.severity: expected warning or critical, got text 'red'",
    ),
    (in_check("    blind_after: 0"), "4: checks.a.blind_after: expected at least 1 run, got 0"),
    (
        in_check("    labels: {rack: 7}"),
        '4: checks.a.labels.rack: expected text, got the number 7; write "7" in quotes',
    ),
    (
        in_check("    hidden: yes"),
        "4: checks.a.hidden: expected true or false, got text 'yes'; "
        "in YAML 1.2 that is text, write true",
    ),
    (
        in_check("    hidden: Off"),
        "4: checks.a.hidden: expected true or false, got text 'Off'; "
        "in YAML 1.2 that is text, write false",
    ),
    (
        in_check("    hidden: 'true'"),
        "4: checks.a.hidden: expected true or false, got text 'true'; remove the quotes",
    ),
    (
        in_watch("    factor: '2'"),
        "5: checks.a.factor: expected a number, got text '2'; remove the quotes",
    ),
    (in_check("    hidden: '1'"), "4: checks.a.hidden: expected true or false, got text '1'"),
    (in_watch("    factor: 'true'"), "5: checks.a.factor: expected a number, got text 'true'"),
    (in_check("    hidden: 1"), "4: checks.a.hidden: expected true or false, got the number 1"),
    (
        in_check("    paths: 5"),
        '4: checks.a.paths[0]: expected a path, got the number 5; write "5" in quotes',
    ),
    (
        in_check("    paths:\n      - /a\n      - 5"),
        '6: checks.a.paths[1]: expected a path, got the number 5; write "5" in quotes',
    ),
    (
        in_check("    paths: [~]"),
        "4: checks.a.paths[0]: it has no value; expected a path; "
        'a bare ~ is YAML for nothing, write "~"',
    ),
    (in_check("    paths: ['']"), "4: checks.a.paths[0]: the path is empty"),
    (in_check('    paths: ["a\\0b"]'), "4: checks.a.paths[0]: the path holds a NUL byte"),
    (
        in_check("    warn: 85%"),
        "4: checks.a.warn: expected a mapping, got text '85%'; its keys: used...",
    ),
    (
        in_check("    warn:\n      used: 85"),
        "5: checks.a.warn.used: '85' is no share; write it like 85%",
    ),
    (
        in_check("    warn: {free: 40}"),
        "4: checks.a.warn.free: '40' is no size; write it like 500GB, 40TB or 2TiB",
    ),
    (
        in_check("    crit: {used: 80%}\n    warn: {used: 81%}"),
        "5: checks.a.warn.used: warn must be below crit",
    ),
    (
        in_check("    crit: {used: 80%}"),
        "2: checks.a.warn.used: warn must be below crit",
    ),
    (
        in_watch("    stale_after: autp"),
        "5: checks.a.stale_after: expected a duration like 15m or auto, got text 'autp' "
        "(did you mean 'auto'?)",
    ),
    (
        in_watch("    progress: '('"),
        "5: checks.a.progress: '(' is no regular expression: "
        "missing ), unterminated subpattern at position 0",
    ),
    (
        in_watch("    lines: 1.5"),
        "5: checks.a.lines: expected a whole number at least 1 and at most 1000, got...",
    ),
    (
        in_watch("    lines: 0"),
        "5: checks.a.lines: expected a whole number at least 1 and at most 1000, got...",
    ),
    (
        in_watch("    lines: 1001"),
        "5: checks.a.lines: expected a whole number at least 1 and at most 1000, got...",
    ),
    (in_watch("    factor: .nan"), "5: checks.a.factor: expected a finite number, got .nan"),
    (in_watch("    factor: 1e999"), "5: checks.a.factor: expected a finite number, got 1e999"),
    (
        in_watch(f"    factor: {'9' * 400}"),
        f"5: checks.a.factor: expected a number, got the number {'9' * 59}…",
    ),
    (in_watch("    pair: []"), "5: checks.a.pair: expected a list of length >= 1"),
    (
        in_watch("    phases: {x: {used: 3}}"),
        "5: checks.a.phases.x.used: '3' is no share; write it like 85%",
    ),
    (
        in_watch("    match: 7"),
        '5: checks.a.match: expected text, got the number 7; write "7" in quotes',
    ),
    (in_watch("    match: [[a]]"), "5: checks.a.match[0]: expected text, got a list"),
    # between sections
    (
        "channels:\n  ops: {kind: screen}\nroutes:\n  - to: [opps]",
        "4: routes[0].to[0]: there is no channel 'opps' (did you mean 'ops'?)",
    ),
    (
        "channels:\n  ops: {kind: screen}\nroutes:\n  - to: [ops,\n         mail]",
        "5: routes[0].to[1]: there is no channel 'mail'; there are: ops",
    ),
    ("routes:\n  - to: []", "2: routes[0].to: name at least one channel"),
    ("routes:\n  - repeat: 4h", "2: routes[0].to: is missing; expected a list"),
    ("routes: [5]", "1: routes[0]: expected a mapping, got the number 5; its keys: ..."),
    (
        "channels: {a: {kind: screen}}\nroutes:\n  - match: {severity: crit}\n    to: [a]",
        "3: routes[0].match.severity: 'crit' is no severity (did you mean 'critical'?)",
    ),
    (
        "channels: {a: {kind: screen}}\nroutes:\n  - match: {status: [ok, 'x*']}\n    to: [a]",
        "3: routes[0].match.status[1]: 'x*' is no status; known: critical, ok, unknown, warning",
    ),
    (
        "channels: {a: {kind: screen}}\nroutes:\n  - match: {kind: dsk}\n    to: [a]",
        "3: routes[0].match.kind: there is no kind 'dsk' (did you mean 'disk'?)",
    ),
    (
        "inhibit:\n  - when: {node: 'gpu-[16-01]'}\n    mute: {}",
        "2: inhibit[0].when.node: 'gpu-[16-01]' is no list of nodes: the range 16-01 runs "
        "backwards; for a pattern write node=~REGEX",
    ),
    (
        "inhibit:\n  - when: {subject: ['a', 'gpu-[01-16]']}\n    mute: {}",
        "2: inhibit[0].when.subject[1]: 'gpu-[01-16]': brackets stand for one character here, not "
        "for numbers; write node=gpu-[01-16] for nodes, or subject=~ and a regular expression",
    ),
    (
        "inhibit:\n  - when: {labels: {rack: '=~a('}}\n    mute: {}",
        "2: inhibit[0].when.labels.rack: 'a(' is no regular expression: missing ), unterminated "
        "subpattern at position 1",
    ),
    (
        "inhibit:\n  - when: {matchers: ['node=n[1-2]', 'severity=~crit']}\n    mute: {}",
        "2: inhibit[0].when.matchers[1]: '=~crit' is no severity; known: critical, ok, unknown, "
        "warning",
    ),
    (
        "inhibit:\n  - when: {matchers: [node]}\n    mute: {}",
        "2: inhibit[0].when.matchers[0]: 'node' is no matcher such as node=gpu-[01-16] or "
        "check!=scratch (=, !=, =~ and !~)",
    ),
    (
        "channels: {a: {kind: screen}}\nroutes:\n  - match: {chek: a}\n    to: [a]",
        "3: routes[0].match.chek: unknown key (did you mean 'check'?)",
    ),
    (
        "channels: {a: {kind: screen}}\nroutes:\n  - to: [a]\n    escalate: {after: 5m, to: [b]}",
        "4: routes[0].escalate.to[0]: there is no channel 'b'; there are: a",
    ),
    (
        "inhibit:\n  - when: {kind: disc}\n    mute: {severity: [crit]}",
        "2: inhibit[0].when.kind: there is no kind 'disc' (did you mean 'disk'?)",
    ),
    (
        "inhibit:\n  - when: {kind: disk}\n    mute: {severity: [crit]}",
        "3: inhibit[0].mute.severity[0]: 'crit' is no severity (did you mean 'critical'?)",
    ),
    (
        "silences:\n  - from: 2026-12-24T18:00\n    until: tomorrow",
        "3: silences[0].until: 'tomorrow' is no moment; write it like 2026-12-24T18:00",
    ),
    (
        "silences:\n  - from: 2026-12-24T18:00\n    until: 2026-12-24",
        "3: silences[0].until: ends before it begins",
    ),
    (
        "silences:\n  - from: 2026-12-24\n    until: 2026-12-24",
        "3: silences[0].until: ends before it begins",
    ),
    (
        "silences:\n  - for: 2h\n    cron: 0 0 1 *",
        "3: silences[0].cron: '0 0 1 *' is no crontab schedule...",
    ),
    (
        "silences:\n  - until: 2026-12-24T18:00",
        "2: silences[0]: needs `from` and `until`, or `cron` and `for`: a silence always ends",
    ),
    (
        "checks:\n  a: {kind: watch, path: /x}\n  b:\n    kind: disk\n  c: {path: /x, kind: watch}",
        "2: checks.a.path: the check 'c' watches this file already",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[m for _, m in BAD])
def test_a_fault_is_told_at_its_line_with_the_remedy(
    errors: Errors, text: str, message: str
) -> None:
    """The first line of the errors is exactly this one; three dots stand for any rest."""
    first, wanted = errors(text)[0], message.removesuffix("...")
    assert first == wanted if wanted == message else first.startswith(wanted)


def test_all_errors_come_at_once_in_the_order_of_the_file(errors: Errors) -> None:
    """One fault hides no other: not within a check, not within the routes."""
    text = """\
routs: []
checks:
  a: {kind: disk, evry: 5m, every: 90, warn: {used: 85, free: lots}}
  b: {kind: dsk, for: 5}
channels:
  m: {kind: mail}
routes:
  - {to: [x], match: {severity: red}}
  - {to: m}
  - {to: [y]}
"""
    assert errors(text) == [
        "1: routs: unknown key (did you mean 'routes'?)",
        "3: checks.a.every: '90' is no duration; write it like 90s, 15m, 2h or 3d",
        "3: checks.a.evry: unknown key (did you mean 'every'?)",
        "3: checks.a.warn.free: 'lots' is no size; write it like 500GB, 40TB or 2TiB",
        "3: checks.a.warn.used: '85' is no share; write it like 85%",
        "4: checks.b.for: '5' is no duration; write it like 90s, 15m, 2h or 3d",
        "4: checks.b.kind: there is no kind 'dsk' (did you mean 'disk'?)",
        "6: channels.m.to: is missing; expected a list",
        "8: routes[0].match.severity: 'red' is no severity; known: critical, ok, unknown, warning",
        "8: routes[0].to[0]: there is no channel 'x'; there are: m",
        "10: routes[2].to[0]: there is no channel 'y'; there are: m",
    ]


def test_a_kind_whose_file_is_gone_or_cut_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service starts without it, and it says why; the check of the file has it as an error."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "cut_kind.py").write_text("import (\n")
    kinds = KindRegistry(
        {
            "disk": "tests.config.kinds:Disk",
            "gone": "sentinel.no_such:Kind",
            "cut": "cut_kind:Kind",
        },
        "",
    )
    path = tmp_path / "s.yaml"
    path.write_text("checks: {a: {kind: disk}, b: {kind: gone, x: 1}, c: {kind: cut}}\n")
    a, b, c = load_config(str(path), kinds, CHANNELS).settings.checks
    assert isinstance(a.plugin, Disk)
    assert isinstance(b.plugin, BrokenCheck)
    assert "sentinel.no_such was taken out" in b.plugin.why
    assert isinstance(c.plugin, BrokenCheck)
    assert "install sentinel again" in c.plugin.why
    path.write_text("checks: {b: {kind: gone}}\n")
    with pytest.raises(ConfigError):
        load_config(str(path), kinds, CHANNELS, strict=True)


def test_an_error_object_has_the_parts_apart(tmp_path: Path) -> None:
    """For those who show problems otherwise than as lines."""
    path = tmp_path / "s.yaml"
    path.write_text("\nroutes: 5")
    with pytest.raises(ConfigError) as caught:
        load_config(str(path), CHECKS, CHANNELS)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.path) == (str(path), 2, "routes")
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("target", ["missing", ".", "fifo", "large", "\0"])
def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path, target: str) -> None:
    """Missing, a directory, a FIFO that nobody writes to, too large: told, never waited for."""
    import os

    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    path = f"{tmp_path}/{target}"
    with pytest.raises(ConfigError) as caught:
        load_config(path, CHECKS, CHANNELS)
    reasons = {
        "missing": "No such file or directory",
        ".": "it is a directory",
        "fifo": "it is no regular file",
        "large": "it is larger than 4096 KiB",
        "\0": "its name holds a NUL byte",
    }
    shown = path.replace("\0", "\\x00")
    assert str(caught.value) == f"{shown}: the file cannot be read: {reasons[target]}"


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        (
            "",
            [
                "1: channels: no channel: nobody is told",
                "1: checks: no check: nothing is watched",
            ],
        ),
        (
            "checks: {a: {kind: disk}}\nchannels:\n",
            ["2: channels: no channel: nobody is told"],
        ),
        (
            "checks: {a: {kind: disk}}\n"
            "channels:\n  x: {kind: screen}\n  y: {kind: screen}\n"
            "routes:\n  - {to: [x], continue: true}\n  - {to: [x]}\n  - {to: [x]}\n",
            [
                "4: channels.y: no route leads to this channel",
                "8: routes[2]: never reached: routes[1] takes every alert",
            ],
        ),
        (
            "checks: {a: {kind: disk}}\nchannels: {x: {kind: screen}, y: {kind: screen}}\n"
            "routes: [{to: [x], escalate: {after: 5m, to: [y]}}]\n",
            [],
        ),
        (
            "checks: {disks: {kind: disk}}\nchannels: {x: {kind: screen}}\n"
            "routes:\n  - {match: {check: disk}, to: [x]}\n  - {match: {check: 'd*'}, to: [x]}\n",
            ["4: routes[0].match.check: there is no check 'disk' (did you mean 'disks'?)"],
        ),
        (
            "checks: {disks: {kind: disk}}\nchannels: {x: {kind: screen}}\n"
            "silences:\n  - {from: 2020-12-24T18:00, until: 2020-12-27T08:00}\n",
            ["4: silences[0].until: lies in the past: this window silences nothing"],
        ),
    ],
)
def test_what_works_but_is_hardly_meant_is_a_warning(
    loaded: Loader, text: str, warnings: list[str]
) -> None:
    """It is loaded all the same."""
    found = [str(w).partition("sentinel.yaml:")[2] for w in loaded(text).warnings]
    assert found == warnings


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        (in_check("    paths: /scratch"), "paths", ["/scratch"]),
        (in_check("    paths: /my scratch"), "paths", ["/my scratch"]),
        (in_watch("    users: bob"), "users", ["bob"]),
        (in_watch("    pair: 5"), "pair", (5,)),
        (in_watch("    match: bob"), "match", "bob"),
    ],
)
def test_a_value_where_a_list_is_wanted_is_a_list_of_one(
    loaded: Loader, text: str, key: str, value: object
) -> None:
    """As on the command line; where a value may stand by itself it does."""
    assert getattr(loaded(text).settings.checks[0].plugin, key) == value


def test_a_pattern_that_may_find_no_end_knows_its_line(loaded: Loader, tmp_path: Path) -> None:
    """For the message of a search that was given up; a harmless one is left to `re`."""
    text = in_watch("    progress: '(a|aa)+ (\\d+)$'")
    pattern = loaded(text).settings.checks[0].plugin.progress
    assert (pattern.pattern, pattern.where) == (
        r"(a|aa)+ (\d+)$",
        f"{tmp_path}/sentinel.yaml:5: checks.a.progress",
    )


@pytest.mark.parametrize("state", ["postgresql://u@h/$db", "~/s", "$WORK/s", "/a$$b"])
def test_state_is_a_url_or_a_path_with_variables(loaded: Loader, state: str) -> None:
    """A URL is left alone: its password may hold any character."""
    expected = {
        "postgresql://u@h/$db": "postgresql://u@h/$db",
        "~/s": "/home/me/s",
        "$WORK/s": "/work/me/s",
        "/a$$b": "/a$b",
    }
    env = {"HOME": "/home/me", "WORK": "/work/me"}
    assert loaded(f"state: {state}", env).settings.state == expected[state]


WORDS = st.sampled_from(
    [
        "kind",
        "disk",
        "watch",
        "mail",
        "screen",
        "every",
        "cron",
        "for",
        "paths",
        "path",
        "warn",
        "crit",
        "used",
        "free",
        "to",
        "match",
        "severity",
        "checks",
        "channels",
        "routes",
        "state",
        "slurm",
        "timeout",
        "timezone",
        "5m",
        "85%",
        "40TB",
        "true",
        "yes",
        "null",
        "0",
        "-1",
        "1.5",
        "~",
        "$X",
        "a",
        "b",
        "env",
        "file",
        "credential",
        "critical",
        "continue",
        "labels",
        "x-y",
        "<<",
        "stale_after",
        "auto",
        "progress",
        "(",
        ".nan",
    ]
)
TREES = st.recursive(
    WORDS | st.text(max_size=5) | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(TREES, st.sampled_from(["", "checks", "channels", "routes", "slurm"]))
def test_no_document_makes_the_loader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, tree: object, section: str
) -> None:
    """Any tree of words the loader knows, anywhere: loaded, or refused by ConfigError."""
    import json

    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    named = {"x": tree} if section in ("checks", "channels") else tree
    path.write_text(json.dumps({section: named} if section else tree))
    with suppress(ConfigError):
        load_config(str(path), CHECKS, CHANNELS, env={})


@given(st.dictionaries(st.sampled_from(sorted(Watch.__struct_fields__)), TREES, max_size=5))
def test_no_settings_of_a_kind_make_the_loader_fail_otherwise(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, object]
) -> None:
    """Every type a setting may have against any value."""
    import json

    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_text(json.dumps({"checks": {"a": {"kind": "watch", **settings}}}))
    with suppress(ConfigError):
        load_config(str(path), CHECKS, CHANNELS, env={})


@pytest.mark.parametrize(
    ("fallback", "words"),
    [
        ("tyt", "there is no channel 'tyt' (did you mean 'tty'?)"),
        ("mail", "a channel cannot stand in for itself"),
        ("a", "fallbacks go round in a circle: mail, a, b, mail"),
    ],
)
def test_a_fallback_is_another_channel(errors: Errors, fallback: str, words: str) -> None:
    """Told when the file is read, not when the mail server is down: what two refuse would go to
    and fro between them for ever."""
    text = f"""\
channels:
  mail: {{kind: mail, to: [a@b], fallback: {fallback}}}
  tty: {{kind: screen}}
  a: {{kind: screen, fallback: b}}
  b: {{kind: screen, fallback: {"mail" if fallback == "a" else "tty"}}}
  c: {{kind: screen, fallback: a}}
"""
    assert errors(text) == [f"2: channels.mail.fallback: {words}"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "channels:\n  tty: {kind: screen, per_hour: -1}",
            "2: channels.tty.per_hour: at least 1 message, or 0 for no cap",
        ),
        (
            "channels: {tty: {kind: screen}}\nroutes:\n  - to: [tty]\n    repeat: 0s",
            "4: routes[0].repeat: 0s is too often: each pass would send it again; at least 1m",
        ),
    ],
)
def test_a_number_that_silences_or_floods_is_refused(errors: Errors, text: str, error: str) -> None:
    """Nobody means it so."""
    assert errors(text) == [error]


def test_what_sentinel_says_about_itself_has_routes_too(loaded: Loader) -> None:
    """By the name of that check, or by its kind, which are the same word."""
    text = """\
checks: {a: {kind: disk}}
channels: {tty: {kind: screen}}
routes:
  - {match: {check: sentinel}, to: [tty]}
  - {match: {kind: sentinel}, to: [tty]}
"""
    assert loaded(text).warnings == ()
    assert SELF_CHECK_NAME == OWN


def test_checks_ask_one_of_several_clusters(loaded: Loader) -> None:
    """By its name, which their alerts bear; what people are told to type asks it too."""
    settings = loaded(
        "clusters: {east: {conf: /etc/slurm/east.conf}, west: {command_prefix: [ssh, w1]},\n"
        "  north: {command_prefix: [ssh, n1], conf: /n.conf}}\n"
        "checks: {a: {kind: disk, paths: [/], cluster: east}, b: {kind: disk, paths: [/]}}\n"
    ).settings
    assert settings.checks[0].common.cluster == "east"
    assert [one.before for one in settings.checks] == ["SLURM_CONF=/etc/slurm/east.conf ", ""]
    assert [cluster.command_start for cluster in settings.clusters.values()] == [
        "SLURM_CONF=/etc/slurm/east.conf ",
        "ssh w1 ",
        "ssh n1 env SLURM_CONF=/n.conf ",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "clusters: {east: {conf: /e}}\nchecks: {a: {kind: disk, paths: [/], cluster: eats}}",
            "2: checks.a.cluster: there is no cluster 'eats' (did you mean 'east'?)",
        ),
        (
            "checks: {a: {kind: disk, paths: [/], cluster: east}}",
            "1: checks.a.cluster: there is no cluster 'east'; name it in `clusters`",
        ),
        ("clusters: {east: {timeout: 5s}}", "1: clusters.east: needs `conf`, its slurm.conf"),
        ("clusters: {east: {conf: slurm.conf}}", "1: clusters.east.conf: write it from / on"),
        (
            "cluster: east\nclusters: {east: {conf: /e}}",
            "1: cluster: this is the name of another cluster in `clusters`",
        ),
    ],
)
def test_clusters_that_cannot_be_meant(errors: Errors, text: str, error: str) -> None:
    """A check that asked the wrong cluster would say nothing of the right one."""
    assert [line[: len(error)] for line in errors(text)] == [error]
