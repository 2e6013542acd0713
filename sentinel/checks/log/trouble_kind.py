"""One row of the table of known errors."""

import re
from collections.abc import Iterator

from msgspec import Struct

MAX_CHARS_AFTER = 1500
"""How many characters after the text are searched for a table that names the rank or host at fault.
"""


class TroubleKind(Struct, frozen=True):
    """One row.

    name: What it is called in messages.
    pattern: The text that shows it. If it has a group `said`, people are shown the text from there
        on.
    words: Each such text contains one of these. Searching for them takes a hundredth of the time.
    source: The program that prints it, and its source files.
    names: A pattern on and after that text whose groups `rank` and `host` say whose fault it is, if
        the line comes from somebody else.
    echo: Whether it is a consequence of another error. That one is told first.
    parting: Whether it is usual at the end of a training.
    root: Whether no other error causes it. It is told before all others, although consequences of
        it may be printed earlier, such as those of ranks that lose the one that was killed.
    own_words: Whether its own text is told too, because the name does not say what to do.
    general: Whether errors of any program have this form. A known error on the same line says more.
    """

    name: str
    pattern: str
    words: tuple[str, ...]
    source: str
    names: str = ""
    echo: bool = False
    parting: bool = False
    root: bool = False
    own_words: bool = False
    general: bool = False

    @property
    def says_where(self) -> bool:
        """Whether the pattern has the group `said`. Then people are shown the line from there on."""
        return "(?P<said>" in self.pattern

    def find_matches(self, text: str) -> "Iterator[tuple[int, TroubleKind]]":
        """The positions at which it is found."""
        if any(word in text for word in self.words):
            for match in re.finditer(self.pattern, text):
                said = match.start("said") if "said" in match.re.groupindex else -1
                yield (said if said >= 0 else match.start()), self


SRUN_REGEX = r"srun: error: [\w.-]+: tasks? [\d,-]+: "

SRUN_ORIGIN_REGEX = r"srun: error: (?P<host>[\w.-]+): tasks? (?P<rank>\d+)"

DIED_REGEX_TEMPLATE = r"|failed \(exitcode: -{0}\)|(?:crashed|exited) with (?:exit )?code -{0}\b|return code = -{0}\b|\b(?:on|with|by|from|[Cc]aught) signal:? {0}\b|\bSignal:? {0} \("

DIED_WORDS = ("failed (exitcode", "code -", "return code", "ignal 7", "ignal 11", "ignal: ")

DIED_ORIGIN_REGEX = r"|failed \(exitcode: -?\d+\) local_rank: (?P<local>\d+)|\b[Rr]ank (?P<rank6>\d+) (?:\(PID \d+\) )?(?:exited|crashed) with|process rank (?P<rank7>\d+) with PID \d+ on\s{1,3}node (?P<host7>[\w.-]+)"

LAUNCHERS_SOURCE = "the launchers of PyTorch (torch/distributed/elastic), DeepSpeed, and composer/cli/launcher.py of mosaicml/composer"


KILLED_KIND = "killed, perhaps host out of memory"
"""A process that got SIGKILL, as a shell tells it: the kernel sends it for want of memory, and who ends the
others after an error does too."""

NOT_STARTED_KIND = "program that did not start"
"""Such an error may also end a traceback, as SyntaxError does. Then it counts as an exception."""

TRACEBACK, EXCEPTION = "Python traceback", "Python exception"
"""A traceback, and one whose exception is none of the known errors. The latter counts as a cause,
not as an echo."""

NETWORK_EXCEPTION_KIND = "Python exception of a connection or another process"
"""An exception that may be caused by the end of another process."""

LAST_WORDS_KIND = "last words"
"""The last words of a log, if they say in any form that something went wrong."""

UNKNOWN_KIND = "unknown error"
"""A line that is new at the end, and says in any form that something went wrong."""

NEW_LINE_KIND = "new line"
"""Another line that is new at the end. It is shown, and never told as the cause."""

NCCL_CALL_KIND = "NCCL call that failed"
"""What NCCL says at its level for errors, with a code that it passes on."""

NEW_KINDS = (UNKNOWN_KIND, NEW_LINE_KIND)
"""Lines that are shown because they were new at the end. They decide nothing."""
