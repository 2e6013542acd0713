"""Print the table, or with --write put it into docs/cannot-tell.md, or with --json each answer with
its words; exit 1 where an ok is wrong."""

import sys

import msgspec

from tests.checks.cannot_tell.table import CASES, PAGE, made, page, wrong


def main(words: list[str]) -> int:
    rows = made()
    if "--json" in words:
        print(msgspec.json.encode(rows).decode())
    elif "--long" in words:
        for row in rows:
            print(
                " | ".join(
                    (CASES[row.case].kind, CASES[row.case].asked, row.fault, row.answer, row.said)
                )
            )
    elif "--write" in words:
        PAGE.write_text(page(rows))
    else:
        print(page(rows), end="")
    for line in wrong(rows):
        print(line, file=sys.stderr)
    return bool(wrong(rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
