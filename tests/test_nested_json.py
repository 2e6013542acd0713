"""Braces within braces, 100,000 deep, which the parsers of JSON follow until Python stops them: whoever
sent them has sent no answer, and nothing else fails."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel.chain.folder import ChainFolder
from sentinel.chain.proofs import read_proofs
from sentinel.chain.script_book import BadCronBook, read_book
from sentinel.channels.http_request import HttpAnswer
from sentinel.checks.quota.tools import beegfs, command
from sentinel.checks.quota.tools.quota import UnexpectedQuotaOutput
from sentinel.core.section_lines import StrangeLine
from sentinel.nodes.probe.kernel import log_of_json

NESTED = '{"a":' * 100_000


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda: command.from_json(NESTED), UnexpectedQuotaOutput),
        (lambda: beegfs.read_beegfs_usage(NESTED, "user", 1000), UnexpectedQuotaOutput),
        (lambda: beegfs.read_beegfs_list(NESTED), UnexpectedQuotaOutput),
        (lambda: log_of_json(NESTED, "boot", None), StrangeLine),
    ],
)
def test_what_a_tool_nests_without_an_end_is_no_answer(
    read: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        read()


def test_what_a_service_nests_without_an_end_holds_no_fields() -> None:
    assert HttpAnswer(status=200, said="", body=NESTED.encode()).json_fields == {}


def test_what_a_file_of_a_chain_nests_without_an_end_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "proofs.json").write_text(NESTED)
    assert read_proofs(ChainFolder(str(tmp_path))) == ()


def test_what_a_cron_book_nests_without_an_end_is_told(tmp_path: Path) -> None:
    book = tmp_path / ".sentinel" / "cron.json"
    book.parent.mkdir()
    book.write_text(NESTED)
    with pytest.raises(BadCronBook):
        read_book(str(tmp_path))
