"""`sentinel add`: the file's text with an entry more, and nothing else changed."""

import os
import stat
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sentinel.config.edit import (
    EditByHand,
    insert_entry,
    insert_item,
    remove_entry,
    remove_item,
    replace_file,
)

BLOCK = {"kind": "job", "name": "$(rm -rf /); llm 10b", "users": ["bob"], "queued": 1}

ODD = [
    "",
    "# only a comment",
    "---\n",
    "---\n# nothing yet\n...\n",
    "\ufeffchecks:\n  a: {kind: fs}\n",
    "checks:\n",
    "checks:   # none yet\n\nchannels: {t: {kind: console}}\n",
    "checks: null\n",
    "checks: {}   # none\n",
    "checks: {a: {kind: fs}, }\n",
    "checks: {a: {kind: fs}   # a\n  # b\n}\n",
    "{checks: {a: {kind: fs}}}\n",
    "{channels: {t: {kind: console}}, # last\n}",
    "checks:\n  a:\n    kind: fs   # no end of line",
    "checks:\n  a: {kind: fs}\n\n  # b:\n  #   kind: job\nchannels:\n  t: {kind: console}\n",
    "checks:\r\n  a:\r\n    kind: fs\r\n# end\r\n",
    "checks:\t# a tab\n  a:\tx\t# another\nchannels:\tnull\n",
    "checks:\n      a:\n       kind: fs\n",
    "x-a: &a {kind: fs}\nchecks: &all\n  one: *a\n  two:\n    <<: *a\n    every: 1m\n",
    "checks:\n  a:\n    kind: exec\n    command: |\n      one\n      two\n",
    "checks:\n  a:\n    kind: exec\n    note: |+\n      one\n\n\nchannels: {}\n",
    "checks:\n  a:\n    kind: exec\n    note: >-\n      one",
    "checks:\n  a:\n    kind: fs\n    paths:\n    - /a   # a\n    - /b\n  # below\n",
    "checks:\n  a:\n    kind: fs\n    paths: [/a,\n      /b]   # b\n...\n",
    '"checks":\n  "a": {"kind": "fs"}\n',
    "# head\nchannels:\n  t: {kind: console}   # t\n\n# tail\n",
    "? checks\n: a: {kind: fs}\n",
    "checks:\n  {a: {kind: fs}}\n",
    "checks:\n  a:\n    {kind: fs,\n  every: 1m}\n",
]


def meant(text: str) -> object:
    """By the parser that reads configurations: PyYAML's other one takes fewer tabs."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}


def stays(before: str, after: str) -> bool:
    """Whether the new text is the old one with one piece put in (or one word replaced by a list)."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return before[head : len(before) - tail].strip() in ("", "null", "~")


@pytest.mark.parametrize("text", ODD)
def test_a_file_with_odd_places_gets_its_entry_and_keeps_every_byte(text: str) -> None:
    """Read again it is the old file and the addition; twice works too."""
    after = insert_entry(text, "checks", "new", BLOCK)
    old = meant(text)
    assert isinstance(old, dict)
    assert meant(after) == {**old, "checks": {**(old.get("checks") or {}), "new": BLOCK}}
    assert stays(text, after)
    assert text.count("\r") == 0 or "\n" not in after.replace("\r\n", "")
    again = insert_entry(after, "channels", "mail", {"kind": "email"})
    assert stays(after, again)


@pytest.mark.parametrize(
    "text",
    [
        "x-c: &c {a: {kind: fs}}\nchecks: *c\n",
        "checks:\n  new: {kind: fs}\n",
        "checks: [a]\n",
        "checks: &none\nx-d: *none\n",
    ],
)
def test_where_more_would_change_it_says_what_to_write(text: str) -> None:
    """An alias means another place too; a name that is taken stays what it is."""
    with pytest.raises(EditByHand, match=r"write it by hand: \{new: "):
        insert_entry(text, "checks", "new", BLOCK)


@pytest.mark.parametrize(
    ("to", "after"),
    [
        ("a@b.de", "[a@b.de, c@d.de]"),
        ('"A <a@b.de>"  # me', '["A <a@b.de>", c@d.de]  # me'),
        ("[a@b.de]", "[a@b.de, c@d.de]"),
        ("[a@b.de,]", "[a@b.de,c@d.de]"),
        (
            "\n    - a@b.de   # me\n    # nobody",
            "\n    - a@b.de   # me\n    - c@d.de\n    # nobody",
        ),
    ],
)
def test_an_address_joins_the_others(to: str, after: str) -> None:
    """In the style in which they stand."""
    text = f"channels:\n  mail:\n    kind: email\n    to: {to}\n    host: h\n"
    found = insert_item(text, ("channels", "mail", "to"), "c@d.de")
    assert found == text.replace(to, after)


def test_an_address_does_not_join_a_list_that_others_share() -> None:
    text = "x-p: &p [a@b.de]\nchannels:\n  mail: {kind: email, to: *p}\n"
    with pytest.raises(EditByHand, match="write it by hand"):
        insert_item(text, ("channels", "mail", "to"), "c@d.de")


WORDS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=12)
BLOCKS = st.dictionaries(WORDS, st.one_of(WORDS, st.integers(), st.lists(WORDS, max_size=3)))
COMMENTS = st.sampled_from(["", " # c", "\t# 'c: [", "   #"])
GAPS = st.sampled_from(["", "\n", "# {c}: |\n", "  # - c\n"])


@st.composite
def files(draw: st.DrawFn) -> str:
    """Sections in any order, styles mixed, comments and anchors between them."""
    parts = []
    for section in draw(st.permutations(["checks", "channels", "x-own"])):
        style = draw(st.sampled_from(["none", "null", "flow", "block", "deep", "anchor"]))
        c, gap = draw(COMMENTS), draw(GAPS)
        one = {
            "none": "",
            "null": f"{section}:{c}\n",
            "flow": f"{section}: {{a: {{b: 1}},{c}\n  d: {{e: [f, g]}}{c}\n }}\n",
            "block": f"{section}:{c}\n  a: {{b: 1}}{c}\n{gap}  d:{c}\n    e: >\n     f\n     g\n",
            "deep": f"{section}:\n   a:{c}\n{gap}      b:\n      - 1{c}\n      - 2\n",
            "anchor": f"{section}: &{section}{c}\n  a: &a{section}\n    b: 1\n  c: *a{section}{c}\n",
        }[style]
        parts.append(one + gap)
    text = draw(st.sampled_from(["", "---\n", "# head\n"])) + "".join(parts)
    text = text.rstrip("\n") if draw(st.booleans()) else text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@settings(max_examples=120, deadline=None)
@given(files(), st.sampled_from(["checks", "channels"]), WORDS, BLOCKS)
@example("checks:\r\n", "checks", "a", {})
def test_old_file_plus_addition(
    text: str, section: str, name: str, block: dict[str, object]
) -> None:
    """Of any file and any entry, or it is refused and nothing is changed."""
    old = meant(text)
    assert isinstance(old, dict)
    try:
        after = insert_entry(text, section, name, block)
    except EditByHand:
        assert name in (old.get(section) or {})
        return
    assert meant(after) == {**old, section: {**(old.get(section) or {}), name: block}}
    assert stays(text, after)


@pytest.mark.parametrize("text", ODD)
def test_what_was_added_is_taken_out_again(text: str) -> None:
    """The file means what it meant; where there was nothing an empty section may stay."""
    added = insert_entry(text, "checks", "new", BLOCK)
    after, old = meant(remove_entry(added, "checks", "new")), meant(text)
    assert isinstance(old, dict)
    assert after == {**old, "checks": old.get("checks") or {}}


@settings(max_examples=120, deadline=None)
@given(files(), st.sampled_from(["checks", "channels"]))
def test_of_any_file_each_entry_is_taken_out_or_nothing_is(text: str, section: str) -> None:
    """What is left of the text is the old text with letters less, none more."""
    old = meant(text)
    assert isinstance(old, dict)
    for name in old.get(section) or {}:
        try:
            after = remove_entry(text, section, name)
        except EditByHand:
            assert "anchor" in text or "&" in text  # the entry means another place too
            continue
        rest = {k: v for k, v in old[section].items() if k != name}
        assert meant(after) == {**old, section: rest}
        letters = iter(text)
        assert all(c in letters for c in (after if rest else after.replace(" {}", "")))


def test_the_comments_of_an_entry_go_with_it_and_others_stay() -> None:
    """A line of the person's own is never taken."""
    text = (
        "checks:\n  # ours\n  a: {kind: fs}   # a\n\n  # mine\n  # ours\n  b:\n    kind: fs\n"
        "    every: 1m\n\n  # c is next\n  c: {kind: fs}\n"
    )
    assert remove_entry(text, "checks", "b", ["# ours"]) == (
        "checks:\n  # ours\n  a: {kind: fs}   # a\n\n  # mine\n\n  # c is next\n  c: {kind: fs}\n"
    )
    assert remove_entry(text, "checks", "a", ["# ours"]).startswith("checks:\n\n  # mine\n")


@pytest.mark.parametrize(
    ("to", "after"),
    [
        ("[a@b.de, c@d.de]", "[a@b.de]"),
        ("[c@d.de, a@b.de]", "[a@b.de]"),
        ("[c@d.de, a@b.de, ]", "[a@b.de, ]"),
        ("\n    - a@b.de   # me\n    - c@d.de # it\n    # end", "\n    - a@b.de   # me\n    # end"),
    ],
)
def test_one_of_several_addresses_is_taken_out(to: str, after: str) -> None:
    text = f"channels:\n  mail:\n    kind: email\n    to: {to}\n    host: h\n"
    assert remove_item(text, ("channels", "mail", "to"), "c@d.de") == text.replace(to, after)


def test_an_address_is_not_taken_out_of_a_list_that_others_share() -> None:
    text = "x-p: &p [a@b.de, c@d.de]\nchannels:\n  mail: {kind: email, to: *p}\n"
    with pytest.raises(EditByHand, match="do it by hand"):
        remove_item(text, ("channels", "mail", "to"), "c@d.de")


def test_a_link_in_place_of_the_new_file_leads_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write the folder could put one there: its target gets neither owner nor mode."""
    file, victim = tmp_path / "sentinel.yaml", tmp_path / "victim"
    file.write_text("cluster: a\n")
    file.chmod(0o644)
    victim.write_text("secret")
    victim.chmod(0o600)
    make = tempfile.mkstemp

    def swap(**words: str) -> tuple[int, str]:
        number, name = make(**words)
        os.unlink(name)
        os.symlink(victim, name)
        return number, name

    monkeypatch.setattr(tempfile, "mkstemp", swap)
    replace_file(str(file), "cluster: b\n")
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("secret", 0o600)


def test_a_replaced_file_keeps_its_owner_and_mode(tmp_path: Path, as_root: None) -> None:
    file = tmp_path / "sentinel.yaml"
    file.write_text("cluster: a\n")
    file.chmod(0o640)
    os.chown(file, 0, 12)
    replace_file(str(file), "cluster: b\n")
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (0, 12, 0o640)
    assert file.read_text() == "cluster: b\n"


def test_a_configuration_that_is_replaced_gets_rights_and_no_powers(tmp_path: Path) -> None:
    """Who may write the folder could name a program of root's there, whose set-user-ID bit text of
    theirs must not inherit (chmod(2))."""
    file = tmp_path / "sentinel.yaml"
    file.write_text("cluster: a\n")
    file.chmod(0o4750)
    replace_file(str(file), "cluster: b\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
