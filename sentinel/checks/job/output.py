"""Where the job that is gone wrote its output, and what of its end people are shown."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sentinel.checks.job.memory import GoneJob, SeenJob
from sentinel.core.cluster import Job
from sentinel.slurm.filename_patterns import job_output_path

if TYPE_CHECKING:
    from sentinel.checks.log.recognition import LogRecognition

MIN_FOLLOWER_LINES = 5
"""Lines of one kind, from which on they are followers: one rank fails, and thousands say so."""

_NUMBER_PATTERN = re.compile(r"0x[0-9a-fA-F]+|\d+")
_TROUBLE_PATTERN = re.compile(
    r"(?i)error|exception|traceback|fatal|abort|killed|fail|signal|oom|out of memory"
)
_HARMLESS_PATTERN = re.compile(
    r"(?<=\w)Warning: |\bWARN(?:ING)?\b|slurmstepd: error: couldn't chdir"
)
_CAUSE_PATTERN = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b|\bCUDA error|Segmentation fault|Bus error|"
    r"oom[-_ ]kill|Out of memory|^Killed|slurmstepd: error|\bXid\b|[Nn]o space left"
)
_STEP_PATTERN = re.compile(
    r"(?i)(?<![\w/-])(?<!optimization )(?<!nan )(?<!skipped )(?<!number of )(?<!@ )"
    r"((?:global[_ ])?(?:step|iteration|iter|batch)s?)\b['\"]?[ =:#(\[]{1,8}"
    r"(\d+(?:,\d{3})*)(?![\d%]|\.\w+ (?:ON|exceeded) |\.\d*[1-9]|(?:\.\d+)?e[+-]?\d)"
    r"|(?m:^ *|\]:? *|(?<=\]) +|(Epoch) \d+: *|Steps: *)\d{1,3}%\|[^|\n]{0,200}\| *(\d+)/\d+ \[[^\]\n]{0,300}\]?"
)
"""Or a bar that is a training's own. Not a step of Slurm (`STEP 4711.0 ON node-3 CANCELLED`), no number of
steps that are to come or went wrong (`number of nan iterations: 0`), none that is rounded
(`global_step=3.2e+4`), and no measure (`ms/batch 4.5`)."""

_STOPPED_PATTERN = re.compile(r"(?<![\w-])(?<!early )stopping: \S", re.I)
"""What a training prints that a `sentinel.training.Guard` stops (docs/training.md): it exits with 0, and
has not finished. Early stopping is an end that the trainer wants."""


SAME, LONGEST = 100, 1000
"""Characters by which two lines are the same, and of one that are looked at."""

_BAR_END_PATTERN = re.compile(r"\A[^\[\]\n]{0,900}\]")
"""A bar ends no line: whoever speaks next does so behind it."""


def condense_lines(lines: Sequence[str]) -> list[str]:
    """Without followers. Of many lines that differ in nothing but numbers: of a trouble the first one
    and how many more there were, of anything else the last ones."""
    kinds: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        kinds.setdefault(_NUMBER_PATTERN.sub("0", line), []).append(at)
    kept: dict[int, str] = {}
    for places in kinds.values():
        kept |= {at: lines[at] for at in places[-MIN_FOLLOWER_LINES:]}
        first = places[0]
        if len(places) > MIN_FOLLOWER_LINES and _TROUBLE_PATTERN.search(lines[first]):
            for at in places[-MIN_FOLLOWER_LINES:]:
                del kept[at]
            kept[first] = f"{lines[first]}   (and {len(places) - 1} more like it)"
    return [kept[at] for at in sorted(kept)]


def make_excerpt(lines: Sequence[str], most: int) -> str:
    """The end of them, and what it came from where that is further up: the last step, and the cause. Of
    a large job the last lines are what the launchers say, a screen or two after both."""
    kept = condense_lines(lines)
    shown, text = kept[-most:], "\n".join(kept)
    steps = _locate_steps(text)[-1:]
    step = [text[:at].rpartition("\n")[2] + text[at:].partition("\n")[0] for at, _, _ in steps]
    why = filter(None, [find_error_line(text)])
    above = [one for one in [*step, *why] if not any(one in line for line in shown)]
    return "\n".join([*above, "…", *shown[len(above) + 1 :]] if above else shown)


def find_error_line(text: str) -> str:
    """The line by which the others followed, after the last step; empty where none names an error."""
    steps = _locate_steps(text)
    rest = text[steps[-1][1] :] if steps else ""
    return _select_error_line(_BAR_END_PATTERN.sub("", rest, 1)) or _select_error_line(text)


def _select_error_line(text: str) -> str:
    """What nothing else brings about, else what is named first, else an echo."""
    try:
        from sentinel.checks.log.known_troubles import EXCEPTION
        from sentinel.checks.log.losses import find_lost_line
        from sentinel.checks.log.ranking import CAUSE, find_first_cause, rank_trouble
        from sentinel.checks.log.troubles import HANDLED_PATTERN, TroubleFinder, is_setting
    except ModuleNotFoundError:  # the kind `log` was taken out
        return next((line.strip() for line in text.splitlines() if _CAUSE_PATTERN.search(line)), "")
    found = TroubleFinder({}, []).find_troubles(text)
    told = [(at, trouble.kind, trouble.line) for at, trouble in found]
    known = {trouble.line[:SAME] for _, trouble in found}
    lines = ((one, _CAUSE_PATTERN.search(one[0])) for one in re.finditer("[^\n]+", text))
    named = (
        (one.start(), EXCEPTION, one[0].strip())
        for one, word in lines
        if word
        and not (_HARMLESS_PATTERN.search(one[0]) or HANDLED_PATTERN.search(one[0][:LONGEST]))
        and not is_setting(text, one.start() + word.start())
        and one[0].strip()[:SAME] not in known
    )
    causes = sorted([*told, *islice(named, 1)], key=lambda one: one[0])
    first = find_first_cause([kind for _, kind, _ in causes])
    echo = first is None or rank_trouble(causes[first][1]) > CAUSE
    lost = find_lost_line(text) if echo else ""
    return lost or ("" if first is None else causes[first][2])


def is_clean(text: str) -> bool:
    """Whether these lines tell progress, and neither an error nor that it was stopped early; after
    the last step no word of trouble either, such as of a launcher."""
    steps = _locate_steps(text)
    if not steps or _STOPPED_PATTERN.search(text) or find_error_line(text):
        return False
    after = text[steps[-1][1] :].splitlines()[1:]  # the line of the step counts skipped ones, too
    return not any(
        _TROUBLE_PATTERN.search(line) and not _HARMLESS_PATTERN.search(line) for line in after
    )


def find_last_step(text: str) -> str:
    """The last step that the lines tell, such as `iteration 79400`; empty where they tell none."""
    return next((told for _, _, told in _locate_steps(text)[-1:]), "")


def _locate_steps(text: str) -> list[tuple[int, int, str]]:
    """From where to where a step is told, and which: by the lines of the trainer, where that is known."""
    known = _recognise_trainer(text)
    if known and known.number and known.first_trainer not in ("", "tqdm"):
        own = re.finditer(known.number.pattern, text, re.M)
        return [(one.start(1), one.end(), f"{known.number.name} {one[1]}") for one in own]
    found = []
    for one in _STEP_PATTERN.finditer(text):
        name, number, epoch, count = one.groups()
        told = f"{name.lower()} {number}" if name else f"{'batch' if epoch else 'step'} {count}"
        found.append((one.start(1) if name else one.start(4), one.end(), told))
    return found


def _recognise_trainer(text: str) -> "LogRecognition | None":
    try:
        from sentinel.checks.log.recognition import recognise_log
    except ModuleNotFoundError:  # the kind `log` was taken out
        return None
    return recognise_log(text)


def get_stdout_path(gone: GoneJob) -> str:
    """The absolute path of its standard output, or "" where it is not known."""
    how = gone.how or gone.seen.how
    told = (gone.end.stdout if gone.end else "") or (how.stdout if how else "")
    return job_output_path(told, _make_job(gone.seen)) if told else ""


def _make_job(seen: SeenJob) -> Job:
    """What a file name can depend on; the rest is not remembered, and no symbol stands for it."""
    known = {f: getattr(seen, f) for f in Job.__struct_fields__ if f in SeenJob.__struct_fields__}
    gone: dict[str, Any] = dict.fromkeys(("submitted", "ends", "time_limit"))
    return Job(**known, **gone, node_count=0, dependency="")
