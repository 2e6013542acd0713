"""What a line of a log costs whose writer wants it to be dear: words of the built-in patterns, and
fillings behind or between them, against a plain text of the same length.

    python -m benchmarks redos [KIB] [EVERY]     # EVERY: of the words only each so-manieth
"""

import sys
import time
from collections.abc import Callable

from benchmarks.measure import machine, row
from sentinel.checks.job.output import MAX_END_CHARS, summarize_end
from sentinel.checks.job.view_files import LINES as EXCERPT_LINES
from sentinel.checks.job.view_files import WIDTH
from sentinel.checks.log.known_troubles import TROUBLE_KINDS
from sentinel.checks.log.recognition import recognise_log
from sentinel.checks.log.scan import _END_WORDS, _PHASE_WORDS, LogPatterns, merge_phases, scan_text
from sentinel.checks.log.trainers import TRAINERS
from sentinel.checks.log.troubles import TroubleFinder
from sentinel.core.logtext import decode_log

GOAL = 5.0
"""Times a plain text of the same length."""
FILLINGS = ("", " ", "\n", "a", "0", ".", "\t", "(", "[", "{", "'", ":", "-", "/", ", ", "1.", "a.",
            "a-", '"', "=", "Error: ", '  File "a", line 1\n')  # fmt: skip
LINES = ("a  loss\n", "a | loss |\n", "step,train_loss\n", "NaN loss \n", "loss=nan\n", "loss=1\n",
         "loss=nan\nloss=1\n", "Traceback (most recent call last): retrying with\n",
         "Exception ignored in: x\nTraceback (most recent call last):\n",
         "During handling of the above exception, another exception occurred:\n\n"
         "Traceback (most recent call last):\n", "overflow loss scale: 1\n", "a=CUDA error\n")  # fmt: skip
"""Lines of which each begins something that goes on below it, or is found and counted."""
PLAIN = "INFO worker 3 started fine on host node-3 in 3.2 s, loss 2.31\n"


def log_parsers() -> dict[str, Callable[[str], object]]:
    """Who reads a log's text."""
    patterns = LogPatterns(
        numbers={}, phases=merge_phases({}), loss=None, finder=TroubleFinder({}, [])
    )
    return {
        "scan": lambda text: scan_text(text, patterns),
        "recognise": recognise_log,
        "excerpt (128 KiB)": lambda text: summarize_end(
            text[-MAX_END_CHARS:], EXCERPT_LINES, WIDTH
        ),
    }


def list_words() -> list[str]:
    """Of which one is in whatever a pattern finds."""
    known = {word for kind in TROUBLE_KINDS for word in kind.words} | {*_PHASE_WORDS, *_END_WORDS}
    known |= {word for row in TRAINERS for word in row.words}
    return sorted(known | {"loss", "= Step ", "NaN loss ", "iteration ", "Traceback ", "100%|"})


def main() -> None:
    """The dearest texts of each parser."""
    size = (int(sys.argv[1]) if sys.argv[1:] else 64) << 10
    every = int(sys.argv[2]) if sys.argv[2:] else 1
    print(machine())
    chosen = list_words()[::every]
    texts = [
        (repr(text[:24]), decode_log(text[:size].encode()))
        for word in chosen
        for filling in FILLINGS
        for text in ((word + filling) * (size // len(word + filling)), word + filling * size)
    ]
    texts += [(repr(line), decode_log((line * (size // len(line))).encode())) for line in LINES]
    for name, parse in log_parsers().items():
        plain = min(_seconds(parse, (PLAIN * (size // len(PLAIN)))) for _ in range(5))
        found = sorted(((_seconds(parse, t) / plain, shown) for shown, t in texts), reverse=True)
        above = sum(ratio > GOAL for ratio, _ in found)
        row(f"{name}: dearest of {len(found):,} texts", f"{found[0][0]:.1f} x plain", found[0][1])
        row(f"{name}: above {GOAL:.0f} x plain", f"{above}", f"plain: {plain * 1e3:.1f} ms")


def _seconds(parse: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    parse(text)
    return time.thread_time() - began


if __name__ == "__main__":
    main()
