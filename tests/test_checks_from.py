"""Checks in files of a directory: used like any other, and what is wrong with one costs no other."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sentinel.config import foreign
from sentinel.config.problems import ConfigError
from sentinel.config.registry import BrokenKind, KindRegistry
from sentinel.plugin import Channel, Check, Receipt
from sentinel.trust import SiteTrust, UntrustedFile, get_site_trust
from sentinel.wiring.app import ACTIONS, CHANNELS, CHECKS, load_settings_from

GOOD = '''\
from sentinel.plugin import Check, Context, Coverage, Duration, Finding, Report, Status


class Age(Check, frozen=True):
    """How old a thing is."""

    thing: str
    warn: Duration = Duration(60)

    def run(self, ctx: Context) -> Report:
        found = Finding(subject=self.thing, status=Status.WARNING, summary=f"over {self.warn}")
        return Report(findings=(found,), coverage=Coverage(of="things", meant=1))
'''


class Site:
    """A directory of checks and a configuration that looks in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.checks = root, root / "checks"
        self.checks.mkdir()
        self.write("age", GOOD)
        self.file = root / "sentinel.yaml"
        self.configure("{ages: {kind: age, thing: ark}}")

    def write(self, kind: str, text: str) -> Path:
        path = self.checks / f"{kind}.py"
        path.write_text(text)
        return path

    def configure(self, checks: str, more: str = "") -> None:
        self.file.write_text(
            f"cluster: lab\nstate: {self.root}/state\nchecks_from: checks\n{more}"
            f"checks: {checks}\nchannels: {{out: {{kind: file, path: {self.root}/out}}}}\n"
        )

    def __call__(self, *argv: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HOME": str(self.root), "SENTINEL_CONFIG": str(self.file)}
        command = [sys.executable, "-m", "sentinel", *argv]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)

    def told(self) -> dict[str, Any]:
        """By check, what a pass over all of them says."""
        done = self("tick", "--all", "--json", "-c", str(self.file))
        assert done.returncode == 0, done.stderr
        return {row["check"]: row for row in json.loads(done.stdout)["checks"]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_file_is_a_kind(site: Site) -> None:
    """With options, by its name in the configuration, in the schema and in the list of kinds."""
    done = site("check", "age", "--thing", "ark", "--warn", "2h")
    assert (done.returncode, "over 2h" in done.stdout) == (1, True), done.stderr
    assert site.told()["ages"]["status"] == "warning"
    rows = {r["kind"]: r for r in json.loads(site("plugins", "--json").stdout)}
    assert rows["age"]["from"] == str(site.checks / "age.py")
    assert "thing" in site("config", "schema").stdout
    assert "--thing" in site("check", "age", "--help").stdout
    lost = site("check", "aeg", "--thing", "ark")
    assert (lost.returncode, "`checks_from`: -c FILE" in lost.stderr) == (64, True)
    wrong = site("check", "age", "--thin", "ark")
    assert (wrong.returncode, "did you mean" in wrong.stderr) == (64, True)


BAD = {
    "raises": ("1 / 0\n", "line 1: ZeroDivisionError"),
    "exits": ("import sys\nsys.exit(3)\n", "line 2: SystemExit"),
    "unreadable": ("class :\n", "line 1: SyntaxError"),
    "empty": ("", "here: none"),
    "typed": (GOOD.replace("thing: str", "thing: complex"), "'thing': the type complex"),
    "unnamed": (GOOD.replace("thing: str", "thing: 'Nowhere'"), "Nowhere"),
    "taken": (GOOD.replace("thing", "labels"), "'labels' is a key that every check has"),
    "runless": (GOOD.replace("def run", "def runs"), "it has no `run`"),
    "numbers": (
        GOOD.replace("    thing:", "    METRICS = ('age',)\n    thing:"),
        "a tuple of Metric",
    ),
    "asked": (
        GOOD.replace("    thing:", "    SOURCES = ('sacct')\n    thing:"),
        "one alone has a comma",
    ),
    "known": (GOOD.replace("    thing:", "    RUNBOOK = 3\n    thing:"), "`RUNBOOK` is 3"),
    "shown": (GOOD.replace("    thing:", "    PANEL = 'disk'\n    thing:"), "one of jobs, disks"),
    "never": (GOOD.replace("    thing:", "    EVERY = float('inf')\n    thing:"), "`EVERY` is inf"),
    "hectic": (GOOD.replace("    thing:", "    TIMEOUT = 1e-9\n    thing:"), "from 1 s to a year"),
    "often": (
        GOOD.replace("    thing: str", "    EVERY = '5m'\n    thing: str"),
        "`EVERY` is '5m'",
    ),
}


def test_what_is_wrong_with_one_is_named_and_the_rest_runs(site: Site) -> None:
    """Each check of such a kind is unknown, with file and reason; `config check` refuses it."""
    paths = {name: site.write(name, text) for name, (text, _) in BAD.items()}
    odd = "".join(f", {name}: {{kind: {name}, thing: x}}" for name in BAD)
    site.configure(f"{{ages: {{kind: age, thing: ark}}{odd}}}")
    told, checked = site.told(), site("config", "check")
    assert told["ages"]["status"] == "warning"
    assert checked.returncode == 2
    for name, (_, why) in BAD.items():
        assert told[name]["status"] == "unknown"
        assert str(paths[name]) in told[name]["summary"]
        assert why in told[name]["summary"]
        [line] = [x for x in checked.stdout.splitlines() if f":4: checks.{name}.kind" in x]
        assert why in line


ZERO = "\n        return 1 / 0\n\n    "
HOOKS = {
    "built": "def __post_init__(self):" + ZERO,
    "jobs_of": "def jobs_of(self):" + ZERO,
    "grants": "def grants(self):" + ZERO,
    "may_ask": "@property\n    def may_ask(self):" + ZERO,
    "looks_into_nodes": "@property\n    def looks_into_nodes(self):" + ZERO,
    "unused": "def unused(self):\n        yield 1 / 0\n\n    ",
    "watched_logs": "def watched_logs(self):" + ZERO,
    "controller_log": "def controller_log(self):\n        return None\n\n    ",
}


def test_a_hook_that_raises_costs_its_own_check_and_no_other(site: Site) -> None:
    """Each is asked while the file is read, or for all checks together (whose jobs to ask for)."""
    for name, hook in HOOKS.items():
        site.write(name, GOOD.replace("    def run", f"    {hook}def run"))
    odd = "".join(f", {name}: {{kind: {name}, thing: x}}" for name in HOOKS)
    site.configure(f"{{ages: {{kind: age, thing: ark}}{odd}}}")
    told, checked = site.told(), site("config", "check")
    assert (told["ages"]["status"], checked.returncode) == ("warning", 2)
    for name in HOOKS:
        why = "gives None" if name == "controller_log" else "ZeroDivisionError"
        assert (told[name]["status"], why in told[name]["summary"]) == ("unknown", True), name
        assert f"{name}.py does not work: " in told[name]["summary"]
        assert f"checks.{name}.kind: kind '{name}'" in checked.stdout


def test_conflicts_that_cannot_be_asked_are_a_warning(site: Site) -> None:
    """It may raise beside certain checks only, so the check itself is still worth its run."""
    site.write("age", GOOD.replace("    def run", f"    def conflicts(self, others):{ZERO}def run"))
    done = site("config", "check")
    why = f"checks.ages: its `conflicts` could not be asked: {site.checks}/age.py: line 11: Zero"
    assert (done.returncode, why in done.stderr) == (0, True)
    assert site.told()["ages"]["status"] == "warning"


def test_a_run_that_fails_names_the_file_and_the_rest_runs(site: Site) -> None:
    """A line of its own code where one raised; else what it returned."""
    head = GOOD[: GOOD.index("        found =")]
    ways = {
        "raising": (f"{head}        1 / 0\n", "raising.py, line 11): ZeroDivisionError"),
        "silent": (f"{head}        return None\n", "silent.py): TypeError('`run` has to return a"),
        "signed": (GOOD.replace("self, ctx: Context", "self"), "signed.py): TypeError"),
        "awaited": (GOOD.replace("def run", "async def run"), "awaited.py): TypeError('`run` has"),
    }
    for name, (text, _) in ways.items():
        site.write(name, text)
    site.write("pulsing", f"{GOOD}\n    def pulse(self, report, now):\n        return 7\n")
    odd = "".join(f", {name}: {{kind: {name}, thing: x}}" for name in (*ways, "pulsing"))
    site.configure(f"{{ages: {{kind: age, thing: ark}}{odd}}}")
    told = site.told()
    assert (told["ages"]["status"], told["pulsing"]["status"]) == ("warning", "warning")
    for name, (_, why) in ways.items():
        assert (told[name]["status"], why in told[name]["summary"]) == ("unknown", True), told[name]


def test_a_metric_whose_name_is_taken_is_named(site: Site) -> None:
    """It is left out of the metrics, for two series of one name must have the same labels."""
    metric = "    METRICS = (Metric('a', '{}', 'A.', '', '{}'),)\n\n    def run"
    for kind, name, label in (("one", "things", "x"), ("two", "things", "y"), ("own", "jobs", "x")):
        text = GOOD.replace("import Check", "import Metric, Check")
        site.write(kind, text.replace("    def run", metric.format(name, label)))
    site.configure("{a: {kind: one, thing: x}, b: {kind: two, thing: x}, c: {kind: own, thing: x}}")
    done = site("config", "check")
    assert done.returncode == 0
    taken = "b.kind: its metric sentinel_things is not exported: that of check 'a' has the labels check, x"
    assert taken in done.stderr
    assert "c.kind: its metric sentinel_jobs is not exported: sentinel has one" in done.stderr
    assert "a.kind" not in done.stderr


def test_a_declared_metric_that_no_finding_has_is_said(site: Site) -> None:
    """Its series would never be there, and nobody would see why; what findings have is no note."""
    text = GOOD.replace("import Check", "import Metric, Check").replace(
        "    def run",
        "    METRICS = (Metric('{}', 'age_seconds', 'Age.', 'seconds'),)\n\n    def run",
    )
    text = text.replace('self.warn}")', "self.warn}\", values={'age_s': 7})")
    site.write("wrong", text.replace("'{}'", "'age'"))
    site.write("right", text.replace("'{}'", "'age_s'"))
    done = site("check", "wrong", "--thing", "ark")
    assert "METRICS: no finding has the value `age` (did you mean 'age_s'?)" in done.stderr
    assert done.returncode == 1
    for argv in (("right",), ("wrong", "--nagios"), ("wrong", "--json")):
        assert "METRICS" not in site("check", argv[0], "--thing", "ark", *argv[1:]).stderr


def test_two_of_one_name_are_both_named(site: Site) -> None:
    """Neither is used: nobody could say which one it would be."""
    second = site.root / "more"
    second.mkdir()
    (second / "age.py").write_text(GOOD)
    site.configure("{ages: {kind: age, thing: ark}, root: {kind: fs, paths: [/]}}")
    site.file.write_text(site.file.read_text().replace("from: checks", "from: [checks, more]"))
    told = site.told()
    assert told["root"]["status"] != "unknown"
    assert f"{site.checks}/age.py and in {second}/age.py" in told["ages"]["summary"]


def test_two_packages_with_one_name_are_both_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the distribution and the file of each."""
    for number in (1, 2):
        (tmp_path / f"pack{number}.py").write_text("1 / 0\n")
        about = tmp_path / f"pack{number}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: pack{number}\nVersion: 1.0\n"
        )
        (about / "entry_points.txt").write_text(f"[sentinel.checks]\nage = pack{number}:Age\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenKind) as caught:
        KindRegistry({}, "sentinel.checks").load_kind("age")
    for number in (1, 2):
        assert f"pack{number} 1.0 ({tmp_path}/pack{number}.py)" in str(caught.value)


def test_a_kind_of_sentinel_cannot_be_taken_over(site: Site) -> None:
    """The file is named; its code is not run."""
    path = site.write("fs", "1 / 0\n")
    done = site("config", "check")
    assert done.returncode == 0
    assert f"checks_from: {path}: 'fs' is a kind of sentinel's own" in done.stderr
    rows = [r for r in json.loads(site("plugins", "--json").stdout) if r["kind"] == "fs"]
    assert [r["from"] for r in rows] == ["sentinel", str(path)]


@pytest.mark.parametrize("which", ["checks", "checks/age.py"])
def test_what_others_could_change_is_not_run(site: Site, which: str) -> None:
    """A file, and a directory that others may put files in; the remedy is told."""
    path = site.root / which
    path.chmod(path.stat().st_mode | 0o022)
    site.write("age", "open('ran', 'w')\n")
    registry = KindRegistry({}, "sentinel.test.none")
    registry.add_folders([str(site.checks)])
    with pytest.raises(UntrustedFile, match=f"{path} may be written by everybody.*chmod g?o-w"):
        registry.load_kind("age")


@pytest.mark.root
@pytest.mark.parametrize("named", [False, True])
def test_a_group_that_the_file_names_may_write_plugins(site: Site, named: bool) -> None:
    """It is known before the first kind is loaded, and forgotten where a file is refused."""
    os.chown(site.checks, -1, 100)
    site.checks.chmod(0o775)
    site.configure("{ages: {kind: age, thing: ark}}", "trust_groups: [users]\n" * named)
    assert site.told()["ages"]["status"] == ("warning" if named else "unknown")


@pytest.mark.root
def test_whom_a_refused_file_names_is_not_trusted(site: Site) -> None:
    """Then the one that was in use before goes on, and what it trusts."""
    site.configure("{ages: {kind: age, thing: ark}}", "trust_groups: [users]\n")
    load_settings_from(str(site.file))
    known = get_site_trust()
    assert known.gids == {100}
    site.configure("{ages: {kind: age}}", "trust_groups: [daemon]\n")
    with pytest.raises(ConfigError):
        load_settings_from(str(site.file))
    assert get_site_trust() == known
    site.configure("{ages: {kind: age, thing: ark}}")
    load_settings_from(str(site.file))
    assert get_site_trust() == SiteTrust()


def test_a_file_that_changed_is_read_again(site: Site) -> None:
    """And one that did not is the same class, so that a reload changes nothing."""
    registry = KindRegistry({}, "sentinel.test.none")
    registry.add_folders([str(site.checks)])
    first = registry.load_kind("age")
    assert registry.load_kind("age") is first
    site.write("age", GOOD.replace("How old", "How new"))
    assert registry.load_kind("age").__doc__ == "How new a thing is."
    site.write("age", "1 / 0")
    with pytest.raises(BrokenKind, match=r"age\.py does not load"):
        registry.load_kind("age")


def test_a_directory_that_is_not_there_is_an_error(site: Site) -> None:
    """At file and line: a slip in the path would leave its checks out without a word."""
    site.file.write_text(site.file.read_text().replace("from: checks", "from: check"))
    done = site("config", "check")
    assert done.returncode == 2
    assert f"{site.file}:3: checks_from[0]: {site.root}/check: No such file" in done.stdout


def test_every_kind_of_sentinel_is_fit() -> None:
    for registry in (CHECKS, CHANNELS, ACTIONS):
        for name in registry.kind_names():
            foreign.judge_class(registry.load_kind(name), registry.base)


def test_a_method_in_place_of_a_property_is_named() -> None:
    """A method would always be true, whatever it returns."""

    class Loud(Channel, frozen=True):
        def personal(self) -> bool:  # type: ignore[override]
            return False

        async def send(self, notifications: object) -> Receipt:
            return Receipt()

    with pytest.raises(foreign.UnfitKind, match="`personal` gives <bound method"):
        foreign.try_plugin(Loud(), Channel)
    with pytest.raises(foreign.UnfitKind, match=r"base class sentinel\.plugin\.Check"):
        foreign.judge_class(Loud, Check)
