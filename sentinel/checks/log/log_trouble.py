"""One line of a log that says that something has gone wrong."""

from msgspec import Struct

from sentinel.checks.log.line_origin import LineOrigin


class LogTrouble(Struct, frozen=True, kw_only=True):
    """One line with an error."""

    kind: str  # The name of the error.
    line: str  # the line, shortened and without control characters
    host: str = ""  # Node that the line names.
    rank: str = ""  # Rank that the line names.
    peer: str = ""  # an address in the line
    path: str = ""  # The log that contains it.

    @property
    def origin_text(self) -> str:
        """For example `rank 17 on node-3`. Empty if it is not known."""
        return LineOrigin(host=self.host, rank=self.rank).shown_text
