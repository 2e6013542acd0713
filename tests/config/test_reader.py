"""YAML as text: what is read, what is refused, and that nothing runs away."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.config.loader import SECTIONS
from sentinel.config.nodes import ConfigNode, ListNode, ScalarNode, line_at, resolve_scalar
from sentinel.config.problems import ConfigError, ProblemCollector, dotted_path
from sentinel.config.reader import read_yaml

from .conftest import Errors, Loader


def data(node: ConfigNode) -> object:
    """The plain value of a node."""
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, ListNode):
        return [data(item) for item in node.items]
    return {key: data(entry.value) for key, entry in node.entries.items()}


def parsed(text: str) -> object:
    """The plain value of a document without errors."""
    collector = ProblemCollector("f")
    node = read_yaml(text.encode(), collector)
    collector.raise_if_errors()
    return data(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12", 12),
        ("-3", -3),
        ("+4", 4),
        ("0123", 123),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("01:00:00", "01:00:00"),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        (".", "."),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("inf", "inf"),
        ("2001-01-01", "2001-01-01"),
        ("=", "="),
        ("9" * 400, int("9" * 400)),
        ("9" * 5000, float("inf")),
    ],
)
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    """No base 60, no yes and no, no dates, no underscores: those are text."""
    assert resolve_scalar(text) == value
    assert type(resolve_scalar(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("---\n", {}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: '12'", {"a": "12"}),
        ("a: !!str 12", {"a": "12"}),
        ("1: a", {"1": "a"}),
        ("on: push", {"on": "push"}),
        ("a: [x, {y: z}]", {"a": ["x", {"y": "z"}]}),
        ("a: &x {p: 1}\nb: *x", {"a": {"p": 1}, "b": {"p": 1}}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}),
        (
            "a: [&x {p: 1}, &y {p: 2, q: 2}]\nb: {q: 9, <<: [*x, *y]}",
            {"a": [{"p": 1}, {"p": 2, "q": 2}], "b": {"p": 1, "q": 9}},
        ),
        ("a: {'<<': 3}", {"a": {"<<": 3}}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ],
)
def test_documents_anchors_and_merge_keys_are_read(text: str, value: object) -> None:
    """The table's own keys win over merged ones, earlier merged ones over later."""
    assert parsed(text) == value


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: 1\nb: \xe9", "2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("a: 1".encode("utf-16"), "1: the file is UTF-16; save it as UTF-8"),
        (b"a: 1\n\n# \x07", "3: control character U+0007 is not allowed in YAML"),
        (b"a: \x00", "1: control character U+0000 is not allowed in YAML"),
        (b"a:\n\t- b", "2: a tab stands where YAML wants spaces; indent with spaces"),
        (b"a:\n  \tb: 1\n", "2: a tab stands where YAML wants spaces; indent with spaces"),
        (b"--- {}\n--- {}", "2: a second document begins; one file holds one configuration"),
        (b"a: *b", "1: there is no &b above that *b means"),
        (b"a: 1\nb: &x [*x]", "2: *x stands inside &x itself"),
        (b"a: &x 1\nb: &x 2", "2: &x is there twice; give one of them another name"),
        (b"a: &x\n  b: &x 2", "2: &x is there twice; give one of them another name"),
        (b"a: ! x", "1: the tag ! has no meaning here; write the bare value"),
        (b"a: !secret x", "1: the tag !secret has no meaning here; write the bare value"),
        (b"a: !!int 3", "1: the tag !!int has no meaning here; write the bare value"),
        (b"a: !!python/name:os.system x", "1: the tag !!python/name:os.system has no meaning here"),
        (b"? [a]\n: b", "1: a key is a list or a mapping; a single word is needed"),
        (b"a: {<<: 3}", "1: << needs an alias of a mapping, or a list of such"),
        (b"a: " + b"[" * 100_000, "1: nested deeper than 50 levels"),
        (b"a: " + b"{a: " * 100_000, "1: nested deeper than 50 levels"),
        (BOMB.encode(), "5: more than 100000 values, aliases included"),
        (b"a: 'x", "1: this is not YAML: while scanning a quoted scalar: found unexpected end"),
        (b"a: [1,\nb: 2", "2: this is not YAML: while parsing a flow sequence"),
        (b"- a", "1: the file must be a mapping, not a list"),
        (b"hello", "1: the file must be a mapping, not text 'hello'"),
    ],
)
def test_what_cannot_be_read_is_one_error_with_its_line(
    errors: Errors, text: bytes, message: str
) -> None:
    """Each tells what to do; none is a traceback, none takes the process along."""
    (line,) = errors(text)
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("a: 1\nb: {node: gpu-[01-16]}", 'within { } put a host list in quotes: "gpu-[01-16]"'),
        ("a: 1\nb: c: d", "put a text that holds ': ' in quotes"),
        ("a: 1\nb: %x-%j.out", "put a text that begins with such a character in quotes"),
        ("a: 1\nb: @me", "put a text that begins with such a character in quotes"),
    ],
)
def test_a_text_that_needs_quotes_is_told_so(errors: Errors, text: str, remedy: str) -> None:
    """The two errors of YAML that people make when they write patterns and messages."""
    (line,) = errors(text)
    assert line.startswith("2: this is not YAML: ")
    assert line.endswith(f"; {remedy}")


def test_a_repeated_key_is_an_error_that_names_the_first(errors: Errors) -> None:
    """At any depth, and together with every other error."""
    text = "state: /a\nslurm:\n  timeout: 20s\n  timeout:\n    5s\nstate: /b\nx: 1\n"
    assert errors(text) == [
        "4: slurm.timeout: key repeated; first in line 3",
        "6: state: key repeated; first in line 1",
        "7: x: unknown key; this version knows: " + ", ".join(sorted(SECTIONS)),
    ]


def test_a_key_may_come_again_in_another_mapping(loaded: Loader) -> None:
    """Only the same mapping makes it a repetition."""
    loaded("checks: {a: {kind: disk}, b: {kind: disk}}")


def test_a_large_honest_file_is_read(loaded: Loader) -> None:
    """A thousand checks that share an anchor stay below the bound on values."""
    base = "checks:\n  c0: &c {kind: disk, paths: [/scratch], warn: {used: 80%}}\n"
    text = base + "".join(f"  c{i}: {{<<: *c, every: 5m}}\n" for i in range(1, 1000))
    assert len(loaded(text).settings.checks) == 1000


def survives(text: bytes) -> None:
    """Read it, or be refused by ConfigError; anything else fails the test."""
    collector = ProblemCollector("f")
    with suppress(ConfigError):
        read_yaml(text, collector)
        collector.raise_if_errors()


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail_otherwise(text: bytes) -> None:
    """Any bytes at all."""
    survives(text)


@given(st.text(alphabet="abx:-?{}[]&*!|>'\"%@`#,~<0 \n\t", max_size=60))
def test_no_punctuation_makes_the_reader_fail_otherwise(text: str) -> None:
    """YAML's own characters in any order."""
    survives(text.encode())


TEXT = b"""\
a:
  b:
    - x
    - y: 1
      z: 2
c: 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("a",), 1),
        (("a", "b"), 2),
        (("a", "b", 0), 3),
        (("a", "b", 1, "z"), 5),
        (("a", "b", 2), 2),
        (("a", "b", "no"), 2),
        (("a", "no", "b"), 1),
        (("c",), 6),
        (("c", "d"), 6),
        (("d",), 1),
    ],
)
def test_a_path_has_the_line_of_the_deepest_part_that_exists(
    path: tuple[str | int, ...], line: int
) -> None:
    """A plugin may name a key that stands at its default, or an item that is not there."""
    assert line_at(read_yaml(TEXT, ProblemCollector("f")), path) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("a", "b_c", 0, "d-e"), "a.b_c[0].d-e"),
        (("checks", "a.b", "c d"), 'checks."a.b"."c d"'),
        (("checks", ""), 'checks.""'),
    ],
)
def test_a_path_is_written_so_that_each_step_can_be_told(
    path: tuple[str | int, ...], text: str
) -> None:
    """A name with a dot in it is one name."""
    assert dotted_path(path) == text
