"""Addresses of a PostgreSQL state: what they mean, and the names that are made of them."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from sentinel.core.errors import StoreError
from sentinel.store.opening import open_store
from sentinel.store.postgres import PostgresBackend
from sentinel.store.spare_journals import make_spare_journals
from sentinel.store.url import DatabaseUrl
from tests.store.nouns import at

AS_BEFORE: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "urls.json").read_text(encoding="utf-8")
)
"""What sentinel at commit d826494 (SQLAlchemy 2.1.9) made of each: `named`, of which the name of a
journal is a digest; `place`, for messages; `connect`, the parameters of libpq."""


@pytest.mark.parametrize("url", AS_BEFORE)
def test_an_address_is_rendered_and_taken_as_before(url: str) -> None:
    """An upgrade during an outage finds its journal again, and its server."""
    before, parsed = AS_BEFORE[url], DatabaseUrl.parse_url(url)
    without_lease = {name: v for name, v in parsed.query.items() if name != "lease"}
    arguments = replace(parsed, query=without_lease).get_connection_arguments()
    assert (parsed.render_url(), parsed.render_place(), arguments) == (
        before["named"],
        before["place"],
        before["connect"],
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://user@host:5432/database", "journal-243a7d2ec862"),
        ("postgres://u:p%40ss@h/db?lease=10s&options=-csearch_path%3Ds", "journal-96b7b4699c72"),
    ],
)
def test_the_journal_of_an_outage_keeps_its_name(url: str, name: str, tmp_path: Path) -> None:
    """As the program at commit d826494 named it; it does not change with the password."""
    for address in (url, url.replace("p%40ss", "other")):
        rendered = DatabaseUrl.parse_url(address).render_url()
        spare = make_spare_journals(rendered, str(tmp_path), beside=None, patience=0)
        assert spare._elsewhere[0].journal.path == str(tmp_path / name)
        assert name == "journal-" + blake2b(rendered.encode(), digest_size=6).hexdigest()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://[::1",
        "postgresql://u@h:/db",
        "postgresql://u@h:x/db",
        "postgresql://u@h1:1,h2:2/db",
        "postgresql://u@/db?host=h1,h2&port=1,2,3",
        "postgresql://u@/db?port=1,2",
        "postgresql://u@/db?host=h1:1&host=h2:x",
        "postgresql://u@h/db?host=h1&host=h2&port=1&port=2",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """With an example of one; nothing of a password is in it."""
    with pytest.raises(StoreError, match="state: not a URL like postgresql://user@host:5432/da"):
        open_store(url, at())


@pytest.mark.parametrize("password", ["p@ss/w:rd", "100%", "ü ß", "a+b c", "#?&=", "'\"\\", "%40"])
def test_a_password_may_have_any_character(password: str) -> None:
    """Percent-encoded, as in every URL; it is never shown."""
    backend = PostgresBackend(f"postgresql://user:{quote(password, safe='')}@host/db")
    assert backend._arguments["password"] == password
    assert backend.place == "postgresql://user:***@host/db"
