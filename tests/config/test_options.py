"""The settings of a kind from the command line."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec import Struct

from sentinel.config.options import kind_options, settings_from_options
from sentinel.config.problems import ConfigError
from sentinel.core.settings import FilePath
from sentinel.core.values import Duration, Share, Size

from .kinds import Disk, Done, Limits, Mail, Watch


@pytest.mark.parametrize(
    ("kind", "options", "settings"),
    [
        (Disk, {}, Disk()),
        (Disk, {"path": ["/a"]}, Disk(paths=["/a"])),
        (Disk, {"--path": ["/a", "/b"]}, Disk(paths=["/a", "/b"])),
        (Disk, {"paths": ["/a"], "path": ["/b"]}, Disk(paths=["/a", "/b"])),
        (
            Disk,
            {"warn": ["used=80%", "free=40TB"], "crit": ["full-in=3d"]},
            Disk(
                warn=Limits(used=Share(80), free=Size(40 * 10**12)),
                crit=Limits(full_in=Duration(259_200)),
            ),
        ),
        (Disk, {"hidden": [""]}, Disk(hidden=True)),
        (Disk, {"hidden": ["true"]}, Disk(hidden=True)),
        (Disk, {"hidden": ["false"]}, Disk(hidden=False)),
        (Disk, {"": ["/a", "/b"], "path": ["/c"]}, Disk(paths=["/a", "/b", "/c"])),
        (Watch, {"": ["/x"]}, Watch(path="/x")),
        (Watch, {"path": ["/x"], "lines": ["5"]}, Watch(path="/x", lines=5)),
        (Watch, {"path": ["/x"], "factor": ["2"]}, Watch(path="/x", factor=2.0)),
        (
            Watch,
            {"path": ["/x"], "stale-after": ["5m"]},
            Watch(path="/x", stale_after=Duration(300)),
        ),
        (Watch, {"path": ["/x"], "stale_after": ["auto"]}, Watch(path="/x", stale_after="auto")),
        (Watch, {"path": ["/x"], "user": ["123", "true"]}, Watch(path="/x", users=["123", "true"])),
        (Watch, {"path": ["/x"], "match": ["null"]}, Watch(path="/x", match=["null"])),
        (Watch, {"path": ["/123"]}, Watch(path="/123")),
        (Watch, {"path": ["/x"], "pair": ["1", "2"]}, Watch(path="/x", pair=(1, 2))),
        (
            Watch,
            {"path": ["/x"], "phases": ["a.used=3%", "a.free=1TB", "b.used=4%"]},
            Watch(
                path="/x",
                phases={
                    "a": Limits(used=Share(3), free=Size(10**12)),
                    "b": Limits(used=Share(4)),
                },
            ),
        ),
        (
            Mail,
            {"to": ["a@b"], "done": ["file=/x", "words=5"]},
            Mail(to=["a@b"], done=Done(file=FilePath("/x"), words=["5"])),
        ),
        (Mail, {"to": ["a@b"], "done": ["yes"]}, Mail(to=["a@b"], done="yes")),
        (
            Mail,
            {"to": ["a@b"], "headers": ["X=1", "Y=a=b"]},
            Mail(to=["a@b"], headers={"X": "1", "Y": "a=b"}),
        ),
    ],
)
def test_options_make_the_settings_that_a_file_would(
    kind: type, options: Mapping[str, Sequence[str]], settings: Struct
) -> None:
    """Numbers stay text where text is expected, and become numbers where one is."""
    assert settings_from_options(kind, options) == settings


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Disk, {"pth": ["/x"]}, "--pth: there is no such option (did you mean --path?)"),
        (
            Disk,
            {"qqq": ["/x"]},
            "--qqq: there is no such option; known: --path, --warn, --crit, --hidden",
        ),
        (Disk, {"warn": ["used=85"]}, "--warn used: '85' is no share; write it like 85%"),
        (Disk, {"warn": ["usd=85%"]}, "--warn usd: unknown key (did you mean 'used'?)"),
        (Disk, {"warn": ["85%"]}, "--warn: expected KEY=VALUE, got '85%'"),
        (Disk, {"warn": ["used=1%", "used=2%"]}, "--warn: used is given more than once"),
        (Disk, {"warn": ["used=99%"]}, "--warn used: warn must be below crit"),
        (Disk, {"hidden": ["maybe"]}, "--hidden: expected true or false, got text 'maybe'"),
        (
            Disk,
            {"hidden": ["true", "true"]},
            "--hidden: given more than once; expected true or false",
        ),
        (Disk, {"path": ["$NOPE_AT_ALL"]}, "--path: $NOPE_AT_ALL is not set; set it, or write $$"),
        (Disk, {"paths": ["$NOPE_AT_ALL"]}, "--paths: $NOPE_AT_ALL is not set"),
        (Disk, {"": ["$NOPE_AT_ALL"]}, "--path: $NOPE_AT_ALL is not set"),
        (
            Mail,
            {"": ["llm"], "to": ["a@b"]},
            "unexpected argument 'llm': a value needs its option; known: --to",
        ),
        (Watch, {}, "--path: is missing; expected a path"),
        (Watch, {"path": ["/a", "/b"]}, "--path: given more than once; expected a path"),
        (Watch, {"path": ["/x"], "lines": ["x"]}, "--lines: expected a whole number at least 1"),
        (Watch, {"path": ["/x"], "lines": [""]}, "--lines: expected a whole number at least 1"),
        (
            Watch,
            {"path": ["/x"], "stale-after": ["20"]},
            "--stale-after: expected a duration like 15m or auto, got the number 20",
        ),
        (Watch, {"path": ["/x"], "phases": ["a=1", "a.used=3%"]}, "--phases: a is given both as"),
    ],
)
def test_an_error_names_the_option(
    kind: type, options: Mapping[str, Sequence[str]], message: str
) -> None:
    """In the spelling of the command line, without file or line, and with a usage exit code."""
    with pytest.raises(ConfigError) as caught:
        settings_from_options(kind, options)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == 64


def test_all_errors_of_a_call_come_at_once() -> None:
    """As those of a file do."""
    with pytest.raises(ConfigError) as caught:
        settings_from_options(Disk, {"warn": ["used=x"], "hidden": ["x"]})
    assert [p.path for p in caught.value.problems] == ["--hidden", "--warn used"]


def test_each_setting_is_an_option_with_a_line_of_help() -> None:
    """Lists under their singular; whether they repeat; what holds without them."""
    assert kind_options(Disk) == [
        ("path", "a path", True),
        ("warn", "KEY=VALUE with free, full_in, used", True),
        ("crit", "KEY=VALUE with free, full_in, used", True),
        ("hidden", "true or false", False),
    ]
    watch = {option: (text, repeats) for option, text, repeats in kind_options(Watch)}
    assert watch["path"] == ("a path; required", False)
    assert watch["stale-after"] == ("a duration like 15m or auto; default 20m", False)
    assert watch["lines"] == ("a whole number at least 1 and at most 1000; default 10", False)
    assert watch["user"] == ("text", True)
    assert watch["phases"] == ("KEY=VALUE", True)


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("paths", "path"),
        ("queries", "query"),
        ("batches", "batch"),
        ("boxes", "box"),
        ("class", "class"),
        ("to", "to"),
    ],
)
def test_a_list_has_a_singular_option(plural: str, singular: str) -> None:
    """As English has it, and the plural works as well."""
    from msgspec import defstruct

    kind = defstruct("Kind", [(plural, list[str], [])])
    assert kind_options(kind)[0][0] == singular
    assert settings_from_options(kind, {singular: ["a"]}) == settings_from_options(
        kind, {plural: ["a"]}
    )
