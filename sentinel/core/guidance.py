"""What people need beside the facts of an alert: how urgent it is, and the first step."""

from msgspec import Struct

from sentinel.core.text import shortened, visible


class Guidance(Struct, frozen=True, omit_defaults=True):
    """Three sentences about a trouble, and a word; what is not known is empty.

    impact: What happens if nobody acts, and until when, as far as that is known from what was seen.
    todo: The first step of somebody who may do it.
    ask: What somebody without rights asks an administrator for. It goes on after "please", and
        names the node and the trouble: "reboot n1: a GPU has fallen off the bus (Xid 79)".
    headline: What has happened to the subject, in capitals: DIED, HANGS, FULL. Subjects of mails
        begin with it instead of the severity.
    """

    impact: str = ""
    todo: str = ""
    ask: str = ""
    headline: str = ""

    def list_steps(self, place: str = "") -> tuple[str, ...]:
        """What to do, and the line that somebody without rights forwards; `place`: which cluster."""
        line = f"{place}: please {self.ask}" if place else f"Please {self.ask}"
        ask = f'No rights? Ask your administrator: "{line}"' if self.ask else ""
        return tuple(filter(None, (self.todo, ask)))

    def list_lines(self) -> tuple[str, ...]:
        """All of it, a line each."""
        impact = f"If nobody acts: {self.impact}" if self.impact else ""
        return tuple(filter(None, (impact, *self.list_steps())))


NO_GUIDANCE = Guidance()

OWNER_TEST = '[ "$(id -un)" = '
"""The beginning of a line that acts for one user alone."""
ADMINISTRATOR = ""
"""The owner of a command that acts on the cluster. It names no file of a user."""


class ActingCommand(Struct, frozen=True, kw_only=True):
    """A command of a message that changes something, in the name of `owner`. If anybody else pastes
    it, it does nothing: root runs nothing of a user's by it, and writes to no file that a user has
    named.

    A command as text is refused (TypeError): its words are given one by one, and quoted here.
    """

    owner: str  # A user name, or ADMINISTRATOR.
    argv: tuple[str, ...]
    folder: str = ""  # Where it is run. Empty: anywhere.
    script_of: str = ""  # The job whose script Slurm gives back. It goes into a new private file.
    then: tuple[str, ...] = ()  # Another command, run if the first one was successful.
    note: str = ""  # A remark behind it.

    def __post_init__(self) -> None:
        words = (self.argv, self.then)
        if not all(isinstance(w, tuple) and all(isinstance(one, str) for one in w) for w in words):
            raise TypeError("the words of a command are a tuple of strings")

    def render(self, before: str = "") -> str:
        """The line for a shell. `before` is put before each program, as `env SLURM_CONF=… `."""
        from shlex import quote  # few alerts have such a command

        steps = [f"{OWNER_TEST}{quote(self.owner)} ]"] if self.owner else []
        steps += [f"cd {quote(self.folder)}"] if self.folder else []
        words = before + " ".join(map(quote, self.argv))
        if self.script_of:
            # Not a name in a user's folder, where a link may wait. `-` is standard output.
            steps += [
                "script=$(mktemp)",
                f'{before}scontrol write batch_script {quote(self.script_of)} - >"$script"',
            ]
            words += ' "$script"'
        then = [before + " ".join(map(quote, self.then))] if self.then else []
        line = " && ".join([*steps, words, *then]) + (f"  # {self.note}" if self.note else "")
        return line if line.isprintable() else _leave_out(self.argv[0])


class LookingCommand(Struct, frozen=True):
    """A command of a message that only looks. `look` makes it, and nothing else: text is refused by
    the type."""

    line: str  # For a shell; a comment, if what would be quoted cannot be pasted.
    filters: str = ""  # What reads its output, on the host of whoever pastes it, as ` | cat -v`.

    def render(self, before: str = "") -> str:
        """The line for a shell. `before` is put before the program, as `env SLURM_CONF=… `."""
        return self.line if self.line[:1] == "#" else f"{before}{self.line}{self.filters}"

    def on_node(self, node: str) -> "LookingCommand":
        """The same, run on a node by ssh (empty: here); its output is filtered here."""
        if not node or self.line[:1] == "#":
            return self
        from shlex import join, quote  # few looks have a bad node

        there = self.line if join(self.line.split(" ")) == self.line else quote(self.line)
        asks = self.line.startswith("sudo ")  # for a password, maybe
        way = look("ssh -t {}", node) if asks else look("ssh {}", node)
        return way if way.line[:1] == "#" else LookingCommand(f"{way.line} {there}", self.filters)


def look(text: str, *values: str) -> LookingCommand:
    """The command `text`, with each value as one word in the place of its `{}`; a test demands that
    `text` is a literal. A value that begins with `-` would be an option, and one that does not print
    would be another name: a comment says that such a command is left out."""
    line, pipe, filters = text.partition(" | ")
    if not values:
        return LookingCommand(line, pipe + filters)
    if any(one[:1] == "-" or not one.isprintable() for one in values):
        return LookingCommand(_leave_out(text.partition(" ")[0]))
    from shlex import quote  # few looks are bad

    words = [quote(one) for one in values]
    count = line.count("{}")
    return LookingCommand(line.format(*words[:count]), pipe + filters.format(*words[count:]))


def show_end(log: str, own: bool) -> LookingCommand:
    """What shows the end of a log. `own`: it belongs to the reader."""
    return look("tail -n 50 {}", log) if own else look("tail -c 5000 {} | cat -v", log)


def read_plain_command(text: str) -> LookingCommand | None:
    """The command of a plugin that gives text. None if a shell would do more with it than run it."""
    from shlex import join  # kinds of sentinel give no text

    return LookingCommand(text) if text and join(text.split(" ")) == text else None


def _leave_out(program: str) -> str:
    return f"# {program} is left out: a name in it begins with - or does not print"


def name_config(command: str, config: str) -> str:
    """The command. One of sentinel's own, also behind `env NAME=… `, names the configuration `config`,
    unless that is empty or a remark says that it is meant for another host."""
    before, own, _ = command.partition("sentinel ")
    if not config or not own or "  #" in command or (before and before[:4] != "env "):
        return command
    from shlex import quote  # most messages need it not

    return f"{command} -c {quote(visible(config))}"


UNSEEN_IMPACT = (
    "Whether something is wrong there is not known; trouble stays unnoticed until this check can see"
    " again."
)
"""The impact of what could not be seen."""


def avoid_node(node: str, *, hangs: bool = True) -> str:
    """The first step of users about a node that does harm to jobs; `hangs`: those there may hang."""
    if not hangs:
        return f"Submit jobs with `sbatch --exclude={node}`."
    return (
        f"If your job on {node} hangs: cancel it (`scancel JOB`), and submit it again with"
        f" `sbatch --exclude={node}`. Use --exclude for new jobs too."
    )


DRAIN_STEP = "drain the node (below: a preview; leave out --dry-run to drain)"


def drain_node(then: str = "") -> str:
    """The step of administrators about a node that must take no new jobs; `list_drain_commands` has
    its commands. `then`: what to do once no job is left there."""
    after = f" When `squeue` shows no job there (cancel one that hangs), {then}." if then else ""
    return f"Administrators: {DRAIN_STEP}.{after}"


def list_drain_commands(node: str, reason: str, *, is_bad: bool) -> tuple[LookingCommand, ...]:
    """What shows the jobs of a node, and the preview of a drain; none where nothing bad was seen: a
    node is not drained because nobody could look at it."""
    if not is_bad:
        return ()
    drain = look(
        "sentinel nodes drain {} --reason {} --dry-run", node, shortened(visible(reason), 120)
    )
    return look("squeue -w {} | cat -v", node), drain
