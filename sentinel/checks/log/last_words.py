"""Checks whether a log ends with words about an error. Pure.

No list contains all errors. But a program that gives up says so at the end, in one of few forms: a
log level, the error text of a system call, the name of an exception, or an exit code other than 0.
"""

import errno
import os
import re
import signal

from sentinel.slurm.step_messages import HOUSEKEEPING_ERROR_REGEX

MAX_LINES, MAX_CHARS, MAX_LINE_CHARS = 60, 6000, 500
"""How much of the end of a text is searched."""

_ERRNO_REGEX = "|".join(sorted({re.escape(os.strerror(code)) for code in errno.errorcode}))

_ERRNO_PATTERN = re.compile(r"\[Errno \d|(?i:" + _ERRNO_REGEX + ")")

_OVER_SIGNALS = (signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
                 signal.SIGURG, signal.SIGWINCH, signal.SIGIO)  # fmt: skip
"""Signals that by default do not end a program: signal(7)."""

_SIGNAL_REGEX = "|".join(
    sorted(
        {
            re.escape(signal.strsignal(one) or "")
            for one in signal.Signals
            if one not in _OVER_SIGNALS
        }
    )
)

_NAMED_FORMS = (
    # a log level: `2026-01-02 - root - ERROR - …`, `[error] …`, `train.py: error: …`, `E0102
    # 03:04:05`
    re.compile(
        r"^[^\n\"'{]{0,120}?(?<![\w.-])(?<!\b0 )(?<!\bno )(?:(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC)(?![\w=/'\"]|: ?0\b)|(?:[Ff]atal(?: error)?|[Ee]rror|ERR|[Ee]xception|panic)(?: #\d{1,5})?"
        r"(?: {0,9}[\]|>)]|:(?! ?(?:[\d.-]+(?: |$)|(?i:(?:none|null|false|no)\b[\s,;}]*$)))))[ :|>\])~-]{0,8}[^\s:|>\])~-]"
    ),
    re.compile(r"(?i)^[^\n]{0,400}(?:\"(?:[\w.]{0,12}level|levelname|severity|lvl)\" ?: ?\"|\b(?:level|lvl|severity)=\"?)(?:error|fatal|critical|panic|alert|emerg)"),
    re.compile(r"^[^\n]{0,60}(?:(?<![A-Z0-9])[EF]\d{3,4} [\d:.]{8,18} |: [EF] (?: *\d{1,9} )?\S{1,200}:\d+\] )"),
    # the name of an exception without its frames
    re.compile(r"^[^\n]{0,120}?(?<![\w/])(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)(?:: |\(['\"]|:?\s*$| in \w)"),
)  # fmt: skip
"""A level or the name of an exception says that the line is an error."""

_EXIT_FORM = re.compile(
    r"(?i)^[^\n]{0,300}(?:\bexit(?:ed|s|ing)?(?: with)?(?: a)?(?: non-?zero)?(?: exit)?(?: status code| status| code| exit ?code)?[ :=(]{1,4}-?[1-9]\d{0,2}\b"
    r"|\bcode=(?:killed|dumped)\b|\bcode=exited[,/] ?status=[1-9]|non-zero exit (?:status|code)|exit(?:[ _]?code|[ _]status)['\"]?[ :=]{1,4}-?[1-9]\d{0,2}\b)"
)
"""An exit code that a shell, a launcher or systemd prints."""

_FORMS = (
    _EXIT_FORM,
    # the error of a system call
    re.compile(r"^[^\n]{1,300}[:(] ?(?i:" + _ERRNO_REGEX + r")(?: \((?:os error )?\d{1,3}\))?\)?[.!]?\s*$"),
    # a signal that a shell prints, in other languages as well, also behind a bar of mmcv that is not at its end
    re.compile(r"^[^\n]{0,300}\d/\d[^\n]{0,80}\bETA: {1,6}[1-9]\d{0,6}s[^\W\d]{2,40}$"),
    re.compile(r"^[^\n]{1,200}: (?:Zeile|ligne|línea|linea|linha|regel|строка|行|줄) ?\d{1,7}: +\d{1,9} [^\W\d]"),
    re.compile(r"^[^\n]{1,200}: line \d{1,7}: +\d{1,9} (?:" + _SIGNAL_REGEX + r")(?: {2,}| *\(core dumped\)| *$)"),
    re.compile(r"^\S{1,60}: \*\*\* [^\n]{1,200}|^\S{0,20}timeout: sending signal \w"),
    # a level of one letter (onnxruntime, TensorRT), a place in a script (Perl, Ruby, Lua), a header
    re.compile(r"^[^\n]{0,60}\[[EF](?:\]|:\w)|^[^\n]{1,300} at \S{1,200} line \d{1,7}\.\s*$|^\S{1,200}\.rb:\d{1,7}:in |^\S{0,60}lua\w{0,3}: \S|^ {0,9}Error in [a-z]"),
    # a shell that cannot parse its script, or stops because of `set -u`
    re.compile(r"^[^\n]{1,200}: (?:line )?\d{1,7}: [^\n]{0,200}(?:[Ss]yntax error|unexpected EOF|unbound variable|parameter (?:null or )?not set|[Bb]ad substitution|ambiguous redirect)"),
    re.compile(r"(?i)\b(?:job|process|task|worker|rank|pe)s?\b[^\n]{0,60}\b(?:killed|died|crashed|exit signal [a-z])"),
    re.compile(r"^(?:" + _SIGNAL_REGEX + r")(?: \(core dumped\))?(?: {2,}\S|\s*$)"),
    # a timeout
    re.compile(r"(?i)\btimed out\b|\b(?:receiver|sender|waiting|barrier|heartbeat|connection|request|response|peer) timeout\b(?! ?[=:(]? ?\d)"),
    re.compile(r"(?i)^[^\n]{0,200}\b(?:assert\w{0,20}|check)\b ?[(:`'][^\n]{1,300}\bfailed\b|^[^\n]{0,200}\b[A-Z_]{0,20}ASSERT(?:_\w{1,20})?\("),
)  # fmt: skip
_RECOVERY_PATTERN = re.compile(
    r"(?i)\bfall(?:ing|s|en)?[ -]?back|\bignor(?:ed|es|ing)\b|\b(?:could|will|can) (?:be )?ignored?\b|\bskip(?:s|ped|ping)\b|\bcontinu(?!ous)|\bretr(?:y|ies|ied)\b(?! exceeded)|\bretrying|\bdefaulting|\bdropp(?:ed|ing)\b|\bfrom scratch\b|\bassum(?:ed|ing)\b|\brestarting\b"
    r"|[,;.(] {0,2}(?:so |now )?(?:using|disabling|reducing|resetting) |\b(?:using|used|tried|trying)\b[^\n]{0,80}\binstead\b|\bwarn(?:ing)?\b"
    r"|Unhandled error \(suppress|Unable to register|computation_placer|cuInit|NUMA node|TensorRT|deprecated|\b0 errors?\b|no errors?\b|without errors?\b"
    r"|"
    + HOUSEKEEPING_ERROR_REGEX
    + r"|\[W |(?-i:(?<![A-Z0-9])[WIVD]\d{4} \d\d:)|Warning: |not an? (?:failure|error)\b|srun: (?:Job step aborted|Terminating|Force)|Traceback \(|code -15\b|(?:closing|via|sending|sent|send) (?:signal )?(?:Signals\.)?SIGTERM|Termination signal|<Signals\.SIGTERM|at some point|already completing|tasks? [\d,-]{1,40}: Exited with exit code [01]\b|\[[WIV]\d{3,4} |(?:\d: [IWVD]|^[IVD]) (?: *\d{1,9} )?\S{1,200}:\d{1,6}\] "
    r"|\b(?:Failed|Missing|Unexpected|Invalid|Unknown|Unsupported|Errors?)(?: \w{1,30}){0,3} ?[:=] ?(?:\d|\[\]|\{\}|none\b|/)"
)
"""Errors that a program says it recovers from, and lines with a level below error. TensorFlow prints at
each start that plugins are registered already."""
_LEVEL_PATTERN = re.compile(
    r"(?<![=\w])(?:INFO|DEBUG|NOTICE|TRACE)\b|\[(?i:info|debug|notice|trace)\]"
)
"""A level below error. Only the exit code of another process counts on such a line, and a text that begins with a level
of its own: `[INFO ] ERROR: could not parse`."""
_LEVEL_WITHIN_PATTERN = re.compile(
    r"(?:INFO|DEBUG|NOTICE|TRACE|info|debug|notice|trace)[\]\s|:>-]{1,9}(?:ERROR|FATAL|CRITICAL) ?[:!] ?(?!0\b|none\b|None\b)\S"
)
_ADVICE_PATTERN = re.compile(
    r"(?i)\binstead\b|\bignore\b|\bskip\b|\bby default|\bthe default|\bdisabl|(?<!was )(?<!were )\busing \w|\bwill (?:use|not)|\boptional"
)
"""Words of a program that goes on in another way, and as well of one that says how to mend an error. They
count as the former only where neither a level nor the name of an exception says that it is an error."""
_FINAL_PATTERN = re.compile(
    r"(?i)\bgiving up\b|\b(?:can(?:no|'|\s?no)?t|unable to|not|impossible to) continue\b|\bnot (?:retry|ignor)"
    r"|\b(?:max\w*|all|no more|after \d+) (?:\w+ )?retries\b"
)
"""A program says that it does not recover."""

_END_PATTERN = re.compile(
    r"(?i)\b(?:killed|died|dead|abnormal(?:ly)?|crash(?:ed|es|ing)?|abort(?:ed|ing|s)?|panic(?:ked|s)?|segfault(?:ed)?|core dumped|interrupt(?:ed|ion)|preempt(?:ed|ion)|evicted|cancell?ed|revoked|exploded|diverged"
    r"|disconnected|unresponsive|not respond(?:ing|ed)?|hung|deadlock(?:ed)?|bail(?:ed|ing)(?: out)?|gave up|giving up|halted|terminated (?!successfully|normally|gracefully|cleanly)|closed by"
    r"|(?:begin|print|dump)(?:ing)?(?: a| the)? (?:stack|back) ?trace|exiting (?:due|because|on)|stopped: no|stopping (?:due|because|training)|stopped (?:due|because|early by)|(?<!forwarding )signal \d{1,2}|unhealthy|expired|time(?:d[ -]?|-)out|oom)\b|(?-i:\bSIG(?!CHLD|CONT|STOP|WINCH)[A-Z]{2,5}[12]?\b)"
)
"""Words for the end of a process, a job or a connection."""

_REASON_PATTERN = re.compile(
    r"(?i)\b(?:unable|could ?n(?:ot|'t)|can ?not|can't|fail(?:s|ed|ure|ing)?|was not able to|refus(?:es|ed|ing)|denied|reject(?:s|ed)|fatal|"
    r"mismatch(?:ed|es)?|invalid|illegal|malformed|corrupt(?:ed|ion)?|broken|insufficient|incompatible|inconsistent|incorrect|unsupported|unknown|unrecogni[sz]ed|unexpected(?:ly)?|unavailable|unreachable"
    r"|undefined|unbound|uninitiali[sz]ed|unresolved|unsatisfied|exhausted|violat(?:ed|es|ion)|conflict(?:s|ing)?|no such|nonexistent|exceed(?:s|ed|ing)?|overflow(?:ed|s)?|something went wrong|low on (?:resources?|memory|disk|space)|not found|too (?:many|few|large|big|small|short|old|new|high|low))\b"
    r"|\b(?:does not|doesn't|did not|didn't) (?:exist|match|fit|contain|have|converge|complete|finish|support|respond|work|start)\b"
    r"|\b(?:is|are|was|were|has|have)(?: not|n't) (?:been )?(?:found|set|defined|available|supported|installed|allowed|permitted"
    r"|readable|writable|valid|compatible|equal|divisible|finite|recoverable|accessible|reachable|converged|callable|a |an )"
    r"|\bnot (?:enough|permitted|recoverable|allowed|supported|in \w+ format)\b|\bout of (?:bounds|range|memory|space|disk|sync)\b|\bno (?:more )?space\b|\bno (?:\w+ ){1,3}(?:found|available|detected|given|specified|left|exists?)\b"
    r"|\balready (?:in use|exists?|running|initiali[sz]ed|locked|bound|open)\b|\bexpected\b[^\n]{1,80}\b(?:got|found|received|but)\b|\b(?:is|are) required\b|\brequires? (?!grad)\w"
    r"|\bbad (?:argument|magic|file|address|value|input|option|format|interpreter)|\battempt to \w|\bmust (?:be|have|not|match)\b|^[^\n]{0,80}\bMissing \w"
    r"|\b[A-Z]\w{2,40}(?:Error|Exception)\b|\berrors?[:!](?=\s{0,3}\S)|\berror\s*$|(?-i:^\W{0,9}ERROR\b)"
)
"""Why something could not be done, in plain words."""
_PROGRESS_PATTERN = re.compile(
    r"(?i)\b(?:0+ ?(?:failed|failures?|errors?)|\d+ ?(?:errors?|failures?)\b(?=[,;.)]|\s*$)|\d+ ?(?:passed|%))|(?:fail\w{0,12}|errors?)\b ?[=:(]{1,2} ?(?:[\d.-]|none|null|false)|\btruncat|\bpadd?ing\b|not initialized from|\bpassed\b|\bok\b"
)
"""Counts, measures, and what tokenizers and model loaders print at a healthy start."""

_TRAILING_PATTERN = re.compile(
    r"[\s\W_]*$|\s|#\d|[A-Z][A-Za-z ]{2,40}: ?0?\s*$|goroutine \d|\w[\w./*()]{1,100}\([^()\n]{0,80}\)$|\S{1,60} {2,}[0-9A-F]{16} |stack traceback|Traceback:|Calls: |Image {4,}|\S{1,300}\.py:\d{1,6}: \w{1,40}Warning: |\*\*\*|@ |at |\[\s?\d{1,3}\] |[-=*+~^_.╰─]{3,}|Set the environment|[^\n]{0,300}(?:\[0x[0-9a-f]{4,16}\]|\+0x[0-9a-f]{1,12}\)?)\s*$|(?:[\w<>~*&,() ]{1,200}::){1,20}[\w~<>=*+-]{1,200}\([^\n]{0,300}\)(?: const)?$|(?:main|clone|start_thread|_\w{2,40})$|[^\n]{0,120}NCCL INFO [\w/.]{1,60}:\d{1,5} -> |(?:Current thread|Thread 0x\w{1,20})?[^\n]{0,20}\(most recent call first\)|[\w ]{0,20}Stack \(most recent|$"
)
"""Lines that may stand below the error: lines of a trace, a function's name, a ruler, Python's warnings at its end, or
empty lines. A heading without words, or with a zero, says nothing."""

_MARK_PATTERN = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ][\d:.,Z+-]{8,20} )?(?:\d{1,3}(?:\.\d{1,3}){3}:? )?(?:\[[^\]\n]{1,40}\]:? ?|\([^()\n]{1,60}\) ?|\d{1,5}: ?|[\w.-]{1,40}: )?"
)
"""Marks of times, hosts and ranks. What follows them may be a line of a trace."""

_GOODBYE_PATTERN = re.compile(
    r"(?i)^(?:[^\n]{0,60}(?:\] |\) |: |\| |- ))?\W{0,9}(?:(?:good)?bye|done|end|exit(?:ing|ed)?|quit(?:ting)?|shut(?:ting)? ?down|clean(?:ing|ed)|clos(?:ing|ed)|stopp(?:ing|ed)|tear(?:ing)? ?down|releas(?:ing|ed)|remov(?:ing|ed)"
    r"|terminating|waiting for|elapsed|total (?:wall |elapsed )?time|wall[ -]?clock|(?:real|user|sys)\t|job (?:ended|finished|id|end)|end(?:ed)? (?:time|at|of)|finish(?:ed|ing)? (?:at|on|time)|duration|time (?:taken|used|elapsed)|see |for more|please |hint|try |usage)\b"
    r"|^wandb: |^[\w ]{0,40}\blogs?(?: file)?(?: is)?(?: at| in)?: ?\S|^[\w ]{1,30}: +(?:\d\d[:-]|\d{4}-|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )|^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} "
)
"""What a program or a script prints while it ends: thanks, times, advice, the summary of a tracker."""

_TRACKER_PATTERN = re.compile(
    r"\s{0,9}(?:wandb: |COMET [A-Z]+: |swanlab: |\[neptune\] )|\S{1,60} - - \["
)
"""Lines of what only tracks a training, which goes on without it, and of a web server about who asked. Where it
does not, an exception says so."""

_BUILD_END_PATTERN = re.compile(
    r"^(?:[\w./-]{0,60}g?make(?:\[\d{1,3}\])?: \*\*\* |ninja: build stopped|error: command [^\n]{1,300} failed|scons: building terminated)"
)
"""What a tool that builds programs says when a compiler has failed: make, ninja, setuptools, SCons."""
_COMPILER_PATTERN = re.compile(
    r"(?m)^(?!make)(?P<said>[^\s:][^:\n]{0,300}(?::\d{1,7}){1,2}: (?:fatal )?error: \S|[^\s:(][^:(\n]{0,300}\(\d{1,7}\): (?:catastrophic )?error\b[^\n:]{0,20}: \S|[^\n]{0,200}undefined reference to |[^\n]{0,200}cannot find -l)"
)
"""The error of a compiler or a linker: GCC, Clang, gfortran; nvcc and Intel's."""
MAX_BUILD_CHARS = 2**17
"""How much text before the end of a build is searched for its first error, since each may be explained over many lines."""

MIN_REPEATED, MIN_LINES_BETWEEN, MAX_REPEATED_CHARS = 5, 20, 2**16
"""How often a line stands in the text, with how many other lines in between, and in how much of it, if its program
goes on after it. A program that tries again a few times prints less between two tries."""

MAX_LINES_AFTER = 3
"""How many other lines may follow the error, because a program may print a few lines at its exit.
"""


_CONSEQUENCE_PATTERN = re.compile(
    r"^(?:\t|\s\s)(?! *[*|!])|(?<![\w/.])(?:[a-z_]\w{0,40}\.){0,8}(?:ChildFailedError|CalledProcessError|Ray\w{0,20}Error|Actor\w{0,20}Error|Process\w{1,20}Exception|RemoteTraceback)\b|\braise \w"
)
"""Lines of tracebacks, and exceptions that only repeat the end of another process. One space alone
begins every line that Fortran writes."""

_REFERENCE_PATTERN = re.compile(
    r"(?i)\bsee (?:the )?(?:above|log|stack)|:\s*$|\bclosing signal |\bkilling subprocess "
)
"""A reference to the lines that say it, an announcement of the next one, or a launcher that ends the others
(torchrun, DeepSpeed)."""

_TABLE_PATTERN = re.compile(
    r"^(?:\[[^\]\n]{1,40}\]:? ?)?\s{0,8}(?:time|host|rank|exitcode|error_file|traceback) {0,12}: "
)
"""Rows of the table by which torchrun tells which ranks failed: the known errors say it."""


_TOLD_PATTERN = re.compile(
    r"(?i)\b(?:errors?|exception|fail(?:s|ed|ure)?|fatal|killed|died|abort(?:ed)?|non-?zero|exit(?:ed)?(?: with)? (?:code|status)|timed out|cannot|can't|unable|denied)\b|no such|not found"
)
_PATH_PATTERN = re.compile(
    r"(?<![\w'\"=:/.])/(?:[\w.@+-]{1,60}/){2,12}(?=[\w.@+-]{1,60}/[\w.@+-]{1,60}/[\w.@+-]{1,60})"
)
"""The folders of a long path, of which a long line shows only the last three names."""
_EXCEPTION_NAME_PATTERN = re.compile(
    r"(?:[A-Za-z_]\w{0,40}\.){0,6}[A-Z]\w{0,40}(?:Error|Exception): "
)
MAX_CHARS_BEFORE, SHOWN_BEFORE = 90, 40
"""From how far on the words of a line stand too far behind, and how many characters before them are shown."""


def cut_last_words(line: str) -> str:
    """A long line from a little before the words that say what went wrong, if they stand far behind its beginning."""
    line = _PATH_PATTERN.sub("…/", line) if len(line) > MAX_CHARS_BEFORE else line
    name = _EXCEPTION_NAME_PATTERN.match(line)
    head = name[0] if name else ""
    told = _TOLD_PATTERN.search(line, len(head))
    if told is None or told.start() <= MAX_CHARS_BEFORE:
        return line
    start = line.rfind(" ", 0, told.start() - SHOWN_BEFORE) + 1  # no word is cut
    return f"{head}…{line[max(len(head), start) :]}"


def find_last_words(text: str, stop: int | None = None) -> tuple[int, int] | None:
    """Beginning and end of the first error line among the last lines before `stop`. If no line has
    the form of an error, the last line counts if it says so in plain words. None if the log ends
    otherwise."""
    found: tuple[int, int] | None = None
    plain: tuple[int, int] | None = None
    stop = len(text) if stop is None else stop
    built = False
    end, after = len(text[max(0, stop - MAX_CHARS) : stop].rstrip()) + max(0, stop - MAX_CHARS), 0
    for _ in range(MAX_LINES):
        if end <= max(0, stop - MAX_CHARS) or after > MAX_LINES_AFTER:
            break
        begin = text.rfind("\n", 0, end) + 1
        said = text.rfind("\r", begin, max(begin, end - 1)) + 1 or begin
        line = text[said:end]
        below = found or plain
        built = built or _BUILD_END_PATTERN.match(line) is not None
        if _TABLE_PATTERN.match(line) or (stop < len(text) and _CONSEQUENCE_PATTERN.search(line)):
            pass
        elif is_error_line(line):
            found = (said, end)
            after = 0
        elif line.endswith("╮") or (below and below[0] == end + 1 and line.rstrip().endswith(":")):
            pass  # it announces the line below
        elif after == 0 and is_plain_error_line(line):
            found, plain = (said, end) if found else None, (said, end)
        elif not is_trailing_line(line):
            after += 1
        end = begin - 1
    told = found or plain
    if told and _was_survived(
        text[max(0, told[0] - MAX_REPEATED_CHARS) : stop], text[slice(*told)]
    ):
        return None
    return (_find_compiler_error(text, told[1]) if built and told else None) or told


def _find_compiler_error(text: str, end: int) -> tuple[int, int] | None:
    """The first error of a compiler before the end of a build that failed."""
    first = _COMPILER_PATTERN.search(text, max(0, end - MAX_BUILD_CHARS), end)
    return (first.start(), text.find("\n", first.start())) if first else None


def _was_survived(text: str, line: str) -> bool:
    """Whether the program went on each time that it said this: much else stands between these lines."""
    if text.count(line) < MIN_REPEATED:
        return False
    lines = text[text.find(line) : text.rfind(line)].splitlines()
    return sum(line not in one for one in lines) >= MIN_LINES_BETWEEN


def is_system_error_line(line: str) -> bool:
    """Whether the line has the text of an error of a system call."""
    return _ERRNO_PATTERN.search(line) is not None


def is_carrier_line(line: str) -> bool:
    """Whether the line only tells that another one, or another process, says what went wrong."""
    return any(
        one.search(line) for one in (_TABLE_PATTERN, _CONSEQUENCE_PATTERN, _REFERENCE_PATTERN)
    )


def is_trailing_line(line: str) -> bool:
    """Whether such a line may stand below an error, with or without marks before it."""
    mark = _MARK_PATTERN.match(line)
    return bool(
        _TRAILING_PATTERN.match(line)
        or _GOODBYE_PATTERN.match(line)
        or (mark and _TRAILING_PATTERN.match(line, mark.end()))
    )


def is_error_line(line: str) -> bool:
    """Whether the line says in a form of its own that something went wrong, and not that the
    program recovered."""
    line = line[:MAX_LINE_CHARS]
    final = _FINAL_PATTERN.search(line)
    if _TRACKER_PATTERN.match(line) or (_RECOVERY_PATTERN.search(line) and not final):
        return False
    if _LEVEL_PATTERN.search(line):
        return any(form.search(line) for form in (_EXIT_FORM, _LEVEL_WITHIN_PATTERN))
    if any(form.search(line) for form in _NAMED_FORMS):
        return True
    advice = _ADVICE_PATTERN.search(line) and not final
    return not advice and any(form.search(line) for form in _FORMS)


def is_plain_error_line(line: str) -> bool:
    """Whether a sentence of any program says that something ended or could not be done."""
    line = line[:MAX_LINE_CHARS]
    if any(
        one.search(line)
        for one in (
            _TRACKER_PATTERN,
            _RECOVERY_PATTERN,
            _LEVEL_PATTERN,
            _PROGRESS_PATTERN,
            _CONSEQUENCE_PATTERN,
        )
    ):
        return False
    if _END_PATTERN.search(line):
        return True
    return not _ADVICE_PATTERN.search(line) and _REASON_PATTERN.search(line) is not None
