"""What the words of a match mean; the operators and quotes compared with the real Alertmanager."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import force_setattr, replace

from sentinel.alerting.matchers import (
    escape_literal,
    is_matcher,
    is_wide,
    matches_alert,
    parse_matchers,
    parse_word,
)
from sentinel.alerting.routing import matching_routes
from sentinel.alerting.settings import Match, Route
from sentinel.core.errors import Invalid
from sentinel.core.model import Alert, Key, Status
from sentinel.testing import START

ALERT = Alert(
    key=Key("lab", "gpus", "GPU-1"),
    id="1",
    kind="gpu",
    status=Status.CRITICAL,
    summary="",
    since=START,
    last=START,
)


def labelled(**labels: str) -> Alert:
    return replace(ALERT, labels=labels)


@pytest.mark.parametrize(
    ("want", "fitting", "others"),
    [
        ("gpu-[01-16]", ["gpu-01", "gpu-07", "gpu-16"], ["gpu-0", "gpu-1", "gpu-17", ""]),
        ("node1[8-12]", ["node18", "node110"], ["node50", "node1", "node8"]),
        ("gpu-1,gpu-[3-4]", ["gpu-1", "gpu-4"], ["gpu-2", "gpu-1,gpu-[3-4]"]),
        (["gpu-1", "n[1-2]"], ["gpu-1", "n2"], ["n3"]),
        ("gpu-*", ["gpu-1", "gpu-"], ["gpu", "n1"]),
        ("gpu-?", ["gpu-1"], ["gpu-12", ""]),
        ('"gpu-1"', ["gpu-1"], ['"gpu-1"', "gpu-2"]),
        ('"gpu-[1-2]"', ["gpu-1"], ["gpu-3", "gpu-[1-2]"]),
        ("=gpu-1", ["gpu-1"], ["gpu-2"]),
        ("!=gpu-1", ["gpu-2", ""], ["gpu-1"]),
        ("!=gpu-[01-16]", ["gpu-17", "gpu-1", ""], ["gpu-07"]),
        ("=~gpu-.*", ["gpu-1"], ["xgpu-1", "gpu", ""]),
        ('=~"gpu-(1|2)"', ["gpu-1", "gpu-2"], ["gpu-11", "xgpu-1"]),
        ("!~gpu-.*", ["n1", ""], ["gpu-1"]),
        ('""', [""], ["gpu-1"]),
        ('!=""', ["gpu-1"], [""]),
        (["gpu-*", "!=gpu-7"], ["gpu-1"], ["gpu-7", "n1"]),
        (["!=gpu-1", "!=gpu-2"], ["gpu-3", ""], ["gpu-1", "gpu-2"]),
        ([], [], ["gpu-1", ""]),
    ],
)
def test_which_nodes_a_word_means(
    want: str | list[str], fitting: list[str], others: list[str]
) -> None:
    """Host lists are host lists, and an alert without a node has an empty one."""
    found = [
        name for name in [*fitting, *others] if matches_alert(Match(node=want), labelled(node=name))
    ]
    assert found == fitting


@pytest.mark.parametrize(
    ("key", "want", "fitting", "others"),
    [
        ("subject", "/data/*", ["/data/a"], ["/scratch"]),
        ("subject", "disk-[12]", ["disk-1"], ["disk-3", "disk-[12]"]),
        ("subject", '"a*b"', ["a*b"], ["axb"]),
        ("subject", '!="a,b"', ["a"], ["a,b"]),
        ("subject", "=~/data/[a-z]+", ["/data/a"], ["/data/1", "x/data/a"]),
        ("subject", '"say \\"hi\\"\\\\"', ['say "hi"\\'], ["say hi"]),
    ],
)
def test_other_keys_take_wildcards_and_quotes_take_them_away(
    key: str, want: str, fitting: list[str], others: list[str]
) -> None:
    """`*`, `?` and classes of characters, as before."""

    def fits(text: str) -> bool:
        return matches_alert(Match(**{key: want}), replace(ALERT, key=Key("lab", "gpus", text)))

    assert [text for text in [*fitting, *others] if fits(text)] == fitting


@pytest.mark.parametrize("text", ['"', "a\\nb", "=~.*", "!=x", "a*[b]?", "\n", "ü", "", "a,b=c"])
def test_a_literal_word_fits_its_text_and_no_other(text: str) -> None:
    """Whatever a check calls its subject, a silence of one alert is of that alert."""
    assert parse_word("subject", escape_literal(text)).hits(text)
    assert not parse_word("subject", escape_literal(text)).negated
    assert not parse_word("subject", escape_literal(text)).hits(f"{text}x")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("node", "gpu-[!0]", "is no list of nodes"),
        (
            "node",
            "gpu-[01-16]*",
            "write node=~ and a regular expression|for a pattern write node=~",
        ),
        ("node", "gpu-[16-01]", "runs backwards"),
        ("node", "", 'node="" means those without one'),
        ("node", '"gpu-*"', "'\\*' is in no node name"),
        ("node", '"gpu-1', "closing quote is missing"),
        ("node", '"', "closing quote is missing"),
        ("node", 'gpu"1', "write node="),
        ("node", "=~gpu-(", "is no regular expression: missing \\)"),
        ("node", "=~[[:alpha:]]+", "write \\[0-9\\]"),
        ("node", "=~[[a]]", "is no regular expression: Possible nested set"),
        ("node", "=~" + "a" * 1001, "longer than 1000"),
        ("subject", "gpu-[01-16]", "write node=gpu-\\[01-16\\] for nodes, or subject=~"),
        ("check", "disk-[8-12]", "or check=~"),
        ("rack", "r[1,3]", "or rack=~"),
        ("partition", "prod,debug", "no partition has a comma; write partition=~prod\\|debug"),
        ("partition", '"prod,debug"', "no partition has a comma"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(
    name: str, text: str, says: str
) -> None:
    """And where it stands in a state nevertheless it fits nothing: no alert is kept back by it."""
    with pytest.raises(Invalid, match=says):
        parse_word(name, text)
    assert not matches_alert(Match(labels={name: text}), labelled(**{name: text, "node": "gpu-1"}))
    assert not matches_alert(Match(matchers=[f"{name}{text}"]), labelled(**{name: text}))


@pytest.mark.parametrize(
    ("want", "fits"),
    [
        ("prod", True),
        ("debug", True),
        ("pro*", True),
        ("=~prod|big", True),
        (["big", "debug"], True),
        ('"prod"', True),
        ("pro", False),
        ("=~prod.*debug", False),
        ("!=prod", False),
        ("!=debug", False),
        ("!=big", True),
        ("!~d.*", False),
        ("!~b.*", True),
        ('""', False),
        (["prod", "!=debug"], False),
    ],
)
def test_a_list_of_partitions_is_hit_by_any_of_them(want: str | list[str], fits: bool) -> None:
    """A drained node has all of its partitions; != means none of them. In matchers as well."""
    alert = labelled(partition="prod,debug")
    assert matches_alert(Match(partition=want), alert) is fits
    assert matches_alert(Match(labels={"partition": want}), alert) is fits
    if isinstance(want, str):
        text = want if want.startswith(("!", "=")) else f"={want}"
        assert matches_alert(Match(matchers=[f"partition{text}"]), alert) is fits


@pytest.mark.parametrize(
    "text", ["", ",", "{}", "{,}", "node", "{node=a", 'node="a" b', "=a", "a=b,,c=d", "a b=c"]
)
def test_what_is_no_matcher_is_refused(text: str) -> None:
    """Also what is empty: it would be about everything."""
    with pytest.raises(Invalid):
        parse_matchers(text)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("node=a", True),
        ("{node=a}", True),
        (" {", True),
        ("node", False),
        ("", False),
        ("=a", False),
    ],
)
def test_what_begins_like_a_matcher(text: str, begins: bool) -> None:
    """A name and an operator, in braces or without: what does not is a word of another kind."""
    assert is_matcher(text) is begins


def test_braces_may_stand_around_matchers() -> None:
    """However short; one alone is a slip that is named."""
    assert [(m.name, m.word) for m in parse_matchers(" {a=b} ")] == [("a", "=b")]
    for text in ("{", "{a=b"):
        with pytest.raises(Invalid, match="the closing brace is missing"):
            parse_matchers(text)


def test_a_host_list_with_commas_is_one_matcher() -> None:
    """As is a regular expression with one; a name and an operator begin the next."""
    found = parse_matchers("node=gpu[1,3],gpu7, check=~a{1,2}, severity!=warning")
    assert [(m.name, m.word) for m in found] == [
        ("node", "=gpu[1,3],gpu7"),
        ("check", "=~a{1,2}"),
        ("severity", "!=warning"),
    ]


def test_what_is_refused_is_quoted_shortly_and_the_longest_pattern_is_taken() -> None:
    """1000 characters are no slip."""
    assert parse_word("user", "=~" + "a" * 1000).hits("a" * 1000)
    with pytest.raises(Invalid) as refused:
        parse_matchers("a" * 1000)
    assert str(refused.value).startswith(repr("a" * 59 + "…"))


def test_two_million_nodes_in_a_match_are_refused() -> None:
    """In one line."""
    with pytest.raises(Invalid, match="stands for more than 100000 nodes"):
        parse_word("node", ",".join(f"n{n}" for n in range(2_000_000)))


SAME_AS_ALERTMANAGER = [
    "foo=bar",
    "foo!=bar",
    "foo=~bar",
    "foo=~ba.*",
    "foo!~ba.*",
    'foo="bar"',
    'foo!="bar"',
    'foo=~"ba."',
    'foo!~".*r"',
    'foo=""',
    'foo!=""',
    'foo=~".*"',
    'foo=~".+"',
    'foo!~".+"',
    "foo=~a|bar",
    'foo="bar,baz"',
    'foo="ba.r"',
    'foo=~"ba[,r]"',
    '{foo="bar", x!="yy"}',
    "foo=bar,x!~y+",
    '{ foo = "bar" , x != "yy", }',
    'x="say \\"hi\\""',
    'x="a\\\\b"',
    'x="a\\nb"',
    "foo=~(?i)BAR",
    "foo=~bar$",
    "foo=~^bar",
    "foo==bar",
    'x=~"y{2}"',
    'x=~"\\\\d+"',
    "x=~\\d+",
    "missing=~x?",
    'missing!="a"',
    "foo!=bar,foo!=baz",
    "foo=~b.*,foo=~.*r",
]
LABELS: list[Mapping[str, str]] = [
    {},
    {"foo": "bar"},
    {"foo": "baz", "x": "yy"},
    {"foo": "bar", "x": "yy"},
    {"foo": "xbar"},
    {"foo": "bar,baz"},
    {"foo": "=bar", "x": "12"},
    {"foo": "BAR", "x": 'say "hi"'},
    {"x": "a\\b"},
    {"foo": "ba,"},
]


@pytest.mark.skipif(
    not shutil.which("amtool"), reason="Debian's prometheus-alertmanager is missing"
)
def test_the_operators_mean_what_they_mean_in_alertmanager(tmp_path: Path) -> None:
    """Each matcher over each set of labels; `amtool config routes test` says which fit."""
    names = [f"r{number}" for number in range(len(SAME_AS_ALERTMANAGER))]
    routes = [
        {"matchers": [text], "receiver": name, "continue": True}
        for text, name in zip(SAME_AS_ALERTMANAGER, names, strict=True)
    ]
    config = tmp_path / "alertmanager.yml"
    receivers = [{"name": name} for name in ("none", *names)]
    config.write_text(
        json.dumps({"route": {"receiver": "none", "routes": routes}, "receivers": receivers})
    )
    for labels in LABELS:
        theirs = _amtool(config, labels)
        ours = [
            name
            for text, name in zip(SAME_AS_ALERTMANAGER, names, strict=True)
            if matches_alert(Match(matchers=[text]), labelled(**labels))
        ]
        assert (labels, ours or ["none"]) == (labels, theirs)


def _amtool(config: Path, labels: Mapping[str, str]) -> list[str]:
    words = [f"{name}={json.dumps(text)}" for name, text in labels.items()]
    done = subprocess.run(
        ["amtool", "config", "routes", "test", f"--config.file={config}", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.strip().split(",")


def test_of_a_pattern_without_an_end_nobody_can_tell_whether_it_fits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither it nor its opposite, unless another key does not fit. It is said once."""
    alert = labelled(user="a" * 100 + "c")
    for want in ("=~(a|aa)+b?(a|aa)+", "!~(a|aa)+b?(a|aa)+"):
        assert matches_alert(Match(user=want), alert) is None
        assert matches_alert(Match(user=want), alert) is None
        assert matches_alert(Match(user=want, check="other"), alert) is False
    assert "found no end" in caplog.text


def test_a_route_whose_pattern_finds_no_end_is_taken_and_so_are_those_after_it() -> None:
    """Nobody who is meant is left out."""
    alert, want = labelled(user="a" * 100 + "c"), "=~(a|aa)+b?(a|aa)+c?d"
    routes = [Route(to=["evil"], match=Match(user=want)), Route(to=["all"]), Route(to=["late"])]
    assert [route.to for _, route in matching_routes(alert, routes)] == [["evil"], ["all"]]


UNREADABLE = Match()
force_setattr(UNREADABLE, "matchers", ["of a newer sentinel"])


@pytest.mark.parametrize(
    ("match", "wide"),
    [
        (Match(), True),
        (Match(check="a"), False),
        (Match(check="*"), True),
        (Match(matchers=["node!=gpu-1"]), True),
        (Match(matchers=["node=gpu-1"]), False),
        (Match(matchers=["node!=gpu-1, check=a"]), False),
        (Match(labels={"node": "gpu-1"}), False),
        (Match(check="*", matchers=["node=gpu-1"]), False),
        (Match(check="a", matchers=["node!=gpu-1"]), False),
        (UNREADABLE, True),
    ],
)
def test_what_fits_an_alert_without_labels_is_wide(match: Match, wide: bool) -> None:
    """One word that needs a text makes it narrow, wherever it stands."""
    assert is_wide(match) is wide
