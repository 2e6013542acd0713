"""Both ways of the Nagios plugin API: Debian's plugins run here, `--nagios` runs under theirs.

https://nagios-plugins.org/doc/guidelines.html
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import needs
from tests.service.watch import Done, Watch

PLUGINS = Path("/usr/lib/nagios/plugins")
SENTINEL = str(Path(sys.executable).with_name("sentinel"))

# Guidelines, "Performance data": 'label'=value[UOM];[warn];[crit];[min];[max], a quote in a label
# is doubled, values are of the class [-0-9.], units are among these.
LABEL = r"(?:'(?P<quoted>(?:[^'=]|'')+)'|(?P<bare>[^\s'=]+))"
VALUE = r"(?P<value>-?\d+(?:\.\d+)?)(?P<unit>s|us|ms|%|B|KB|MB|TB|c|)"
DATUM = re.compile(rf"{LABEL}={VALUE}(?:;[-0-9.:~@]*){{0,4}}")
FIRST = re.compile(r"(?P<text>[^|\n]+?)(?: \| (?P<data>[^|\n]+))?")


@pytest.fixture(autouse=True)
def _plugins() -> None:
    if not PLUGINS.is_dir():
        missing = f"{PLUGINS} is missing: Debian's package monitoring-plugins-basic"
        needs.skip(missing)


CHECKS = """\
checks:
  load: {{kind: exec, command: [{plugins}/check_load, -w, "900", -c, "999"]}}
  disk: {{kind: exec, command: [{plugins}/check_disk, -w, 0%, -c, 0%, -p, /]}}
  full: {{kind: exec, command: [{plugins}/check_disk, -w, 100%, -c, 100%, -p, /]}}
  users: {{kind: exec, command: [{plugins}/check_users, -w, "999", -c, "999"]}}
  procs: {{kind: exec, command: [{plugins}/check_procs, -c, "1:", -C, no-such-program]}}
  wrong: {{kind: exec, command: [{plugins}/check_disk], blind_after: 1}}
  dummy: {{kind: exec, command: [{plugins}/check_dummy, "1", so so]}}
channels:
  book: {{kind: file, path: {folder}/book.jsonl}}
"""


@pytest.mark.parametrize(
    ("name", "code", "summary", "numbers"),
    [
        ("load", 0, "LOAD OK - ", {"load1", "load5", "load15"}),
        ("disk", 0, "DISK OK - free space: / ", {"/"}),
        ("full", 2, "DISK CRITICAL - free space: / ", {"/"}),
        ("users", 0, "USERS OK - ", {"users"}),
        ("procs", 2, "PROCS CRITICAL: 0 processes with command name", {"procs"}),
        ("wrong", 3, "check_disk: Could not parse arguments", set()),
        ("dummy", 1, "WARNING: so so", set()),
    ],
)
def test_a_plugin_of_debian_is_a_check(
    watch: Watch, name: str, code: int, summary: str, numbers: set[str]
) -> None:
    """Exit code, text and numbers are the plugin's own."""
    watch.configure(CHECKS, plugins=PLUGINS)
    done = watch.say("check", name, "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["subject"]) == (code, name)
    assert finding["summary"].startswith(summary)
    assert set(finding["values"]) == numbers


def test_plugins_of_debian_raise_alerts(watch: Watch) -> None:
    """In one pass, each under the name of its check; what a plugin cannot tell is blindness."""
    watch.configure(CHECKS, plugins=PLUGINS)
    assert watch.say("tick", "--all").returncode == 0
    assert {line["check"]: (line["subject"], line["status"]) for line in watch.book} == {
        "full": ("full", "critical"),
        "procs": ("procs", "critical"),
        "wrong": ("", "unknown"),
        "dummy": ("dummy", "warning"),
    }


LOOKS = {
    "ok": ["fs", "--path", "/", "--warn", "used=100%", "--warn", "inodes_used=100%"],
    "warning": ["fs", "--path", "/", "--warn", "free=9EB"],
    "critical": ["fs", "--path", "/", "--crit", "free=9EB"],
    "unknown": ["fs", "--path", "/etc/passwd"],
    "several": ["fs", "--path", "/", "--path", "/no|such", "--path", "{folder}/it's a=b|c"],
    "memory": ["memory"],
    "numbers": ["exec", "--command", "echo", "--command", "a | big=84003291136 x=1e9 s=0.000001s"],
    "a wrong call": ["fs", "--no-such-option"],
    "a wrong value": ["fs", "--warn", "used=95%", "--crit", "used=85%"],
    "no such kind": ["no-such-kind"],
}


@pytest.mark.parametrize("look", LOOKS)
def test_an_answer_is_in_the_form_of_the_guidelines(watch: Watch, look: str) -> None:
    """One line of text, `|`, performance data by the letter; then lines without data."""
    (watch.folder / "it's a=b|c").mkdir()
    words = [word.format(folder=watch.folder) for word in LOOKS[look]]
    done = watch.say_bare("check", *words, "--nagios")
    first, *more = done.stdout.rstrip("\n").split("\n")
    parts = FIRST.fullmatch(first)
    assert parts, first
    assert ("OK", "WARNING", "CRITICAL", "UNKNOWN")[done.returncode] in parts["text"]
    assert not any("|" in line for line in more)
    for datum in data(parts["data"] or ""):
        assert DATUM.fullmatch(datum), datum
    assert all(line.isprintable() for line in (first, *more))


@pytest.mark.parametrize(
    ("words", "code"), [(["disk"], 0), (["--all"], 0), (["fs"], 0), (["disc"], 3)]
)
def test_nothing_stands_beside_the_answer(watch: Watch, words: list[str], code: int) -> None:
    """Icinga 2 joins stderr to it, in front (lib/base/process.cpp, seen with 2.13.6): a warning about the
    file was what people saw. Without --nagios it is printed."""
    watch.configure("checks:\n  disk: {{kind: fs, paths: [/], warn: {{used: 100%}}}}\n")
    done = watch.say("check", *words, "--nagios")
    assert (done.returncode, done.stderr) == (code, "")
    assert ("UNKNOWN - " if code else " OK - ") in done.stdout.partition("\n")[0]
    assert "nobody is told" in watch.say("check", "disk").stderr


def test_numbers_have_their_units(watch: Watch) -> None:
    """Bytes, percent and seconds are marked; each subject's own where there are several."""
    text = watch.say_bare("check", "fs", "--path", "/", "--nagios").stdout
    units = {m["quoted"]: m["unit"] for m in DATUM.finditer(text)}
    assert {"used_percent": "%", "free_bytes": "B", "inodes_free": ""}.items() <= units.items()
    text = watch.say_bare("check", "fs", "--path", "/", "--path", "/dev", "--nagios").stdout
    labels = [m["quoted"] for m in DATUM.finditer(text)]
    assert {"/ used_percent", "/dev used_percent"} <= set(labels)
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("look", "code", "negated", "text"),
    [
        ("ok", 0, 2, "FS CRITICAL - /: "),
        ("warning", 1, 1, "FS WARNING - /: "),
        ("critical", 2, 0, "FS OK - /: "),
        ("unknown", 3, 3, "FS UNKNOWN - /etc/passwd: is not a directory"),
        ("a wrong call", 3, 3, "UNKNOWN - "),
    ],
)
def test_debians_negate_runs_sentinel_as_a_plugin(
    watch: Watch, look: str, code: int, negated: int, text: str
) -> None:
    """It reads exit code and text: ok and critical change places in both."""
    command = [SENTINEL, "check", *LOOKS[look], "--nagios"]
    assert run(watch, command).returncode == code
    done = run(watch, [str(PLUGINS / "negate"), "-s", *command])
    assert done.returncode == negated
    assert done.stdout.startswith(text)


def test_debians_urlize_finds_where_the_data_begin(watch: Watch) -> None:
    """It wraps the text in a link, and leaves the performance data alone."""
    command = [SENTINEL, "check", *LOOKS["ok"], "--nagios"]
    done = run(watch, [str(PLUGINS / "urlize"), "http://example.org/", *command])
    assert done.returncode == 0
    assert re.match(r'<A href="http://example\.org/">FS OK - /: [^|]*</A> \| ', done.stdout)
    assert "'used_percent'=" in done.stdout.partition("</A> |")[2]


def test_sentinel_reads_itself_as_a_plugin(watch: Watch) -> None:
    """Nothing is lost on the way: status, text and numbers."""
    here = json.loads(watch.say_bare("check", *LOOKS["critical"], "--json").stdout)["findings"][0]
    watch.configure(
        "checks:\n  self: {{kind: exec, command: {command}}}\n",
        command=json.dumps([SENTINEL, "check", *LOOKS["critical"], "--nagios"]),
    )
    done = watch.say("check", "self", "--json")
    (there,) = json.loads(done.stdout)["findings"]
    numbers = {k: v for k, v in here["values"].items() if isinstance(v, float | int)}
    del numbers["read_only"]
    numbers.pop("critical_percent")  # it stands behind `used_percent`, as Nagios has it
    assert (done.returncode, there["status"]) == (2, "critical")
    assert there["summary"].startswith("FS CRITICAL - /: ")
    assert set(there["values"]) == set(numbers)
    assert there["values"]["size_bytes"] == numbers["size_bytes"]


def test_great_and_small_numbers_stay_what_they_are(watch: Watch) -> None:
    """Without exponents, which plugin runners do not read."""
    text = watch.say_bare("check", *LOOKS["numbers"], "--nagios").stdout
    numbers = {m["quoted"]: m["value"] for m in DATUM.finditer(text)}
    assert numbers == {"big": "84003291136", "x": "1000000000", "s": "0.000001"}


def data(text: str) -> list[str]:
    """Performance data apart: blanks within quotes do not separate."""
    return re.findall(r"(?:'(?:[^']|'')*'|[^\s'])+", text)


def run(watch: Watch, argv: list[str]) -> Done:
    return subprocess.run(
        argv, capture_output=True, text=True, env=watch.env, timeout=60, check=False
    )
