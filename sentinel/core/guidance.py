"""What people need beside the facts of an alert: how urgent it is, and the first step."""

from msgspec import Struct
from msgspec.structs import replace

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

    def for_cluster(self, before: str) -> "Guidance":
        """The same, whose commands of Slurm ask the cluster to which `before` leads: a job or node of
        the same name here is another one."""
        import re  # few alerts are of another cluster

        todo, ask = (
            re.sub(
                r"`(s(?:acct|batch|cancel|control|info|queue)\b[^`]*)`",
                lambda found: f"`{LookingCommand(found[1]).for_cluster(before).render()}`",
                text,
            )
            for text in (self.todo, self.ask)
        )
        return replace(self, todo=todo, ask=ask)

    def list_lines(self) -> tuple[str, ...]:
        """All of it, a line each."""
        impact = f"If nobody acts: {self.impact}" if self.impact else ""
        return tuple(filter(None, (impact, *self.list_steps())))


NO_GUIDANCE = Guidance()

OWNER_TEST = '[ "$(id -un)" = '
"""The beginning of a line that acts for one user alone."""
REMOTE_SHELLS = frozenset({"ssh", "rsh"})
"""They give their arguments, joined by blanks, to a shell on the other host."""
ASK_CLUSTER = ("sentinel nodes", "sentinel stacks")
"""The commands of sentinel that ask Slurm, and only that of the cluster at hand."""
ELSEWHERE = "# by a sentinel of that cluster: "
"""Before what the sentinel at hand would do to a node or job of the same name here."""
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
    before: str = ""  # Asks another cluster: `env SLURM_CONF=… ` or, for all of it, `ssh west `.

    def __post_init__(self) -> None:
        if not all(
            isinstance(words, tuple) and all(isinstance(one, str) for one in words)
            for words in (self.argv, self.then)
        ):
            raise TypeError("the words of a command are a tuple of strings")

    def render(self) -> str:
        """The line for a shell."""
        from shlex import quote  # few alerts have such a command

        if self.before and self.argv[0] == "sentinel":
            return f"{ELSEWHERE}{replace(self, before='').render()}"
        way, before = _split_way(self.before)
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
        line = _give_shell(way, " && ".join([*steps, words, *then]))
        line += f"  # {self.note}" if self.note else ""
        return line if line.isprintable() else _leave_out(self.argv[0])


class LookingCommand(Struct, frozen=True):
    """A command of a message that only looks. `look` makes it, and nothing else: text is refused by
    the type."""

    line: str  # For a shell; a comment, if what would be quoted cannot be pasted.
    filters: str = ""  # What reads its output, on the host of whoever pastes it, as ` | cat -v`.

    def render(self) -> str:
        """The line for a shell."""
        return self.line if self.line[:1] == "#" else f"{self.line}{self.filters}"

    def for_cluster(self, before: str) -> "LookingCommand":
        """The same for the cluster to which `before` leads, as `ssh west env SLURM_CONF=… `."""
        if self.line.startswith(ASK_CLUSTER):
            return LookingCommand(f"{ELSEWHERE}{self.line}")
        if self.line.startswith(("#", "sentinel ")):
            return self
        way, before = _split_way(before)
        return LookingCommand(_give_shell(way, before + self.line), self.filters)

    def on_node(self, node: str) -> "LookingCommand":
        """The same, run on a node by ssh (empty: here); its output is filtered here."""
        if not node or self.line[:1] == "#":
            return self
        # -t: sudo may ask for a password.
        way = (look("ssh -t {}", node) if self.line[:5] == "sudo " else look("ssh {}", node)).line
        there = way if way[:1] == "#" else _give_shell(f"{way} ", self.line)
        return LookingCommand(there, self.filters)


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


def read_plain_command(given: LookingCommand | str) -> LookingCommand | None:
    """The command of a plugin, which may be text. None if a shell would do more than run its words."""
    from shlex import join  # kinds of sentinel give no text

    if isinstance(given, LookingCommand):
        return given
    return LookingCommand(given) if given and join(given.split(" ")) == given else None


def quote_command(*argv: str) -> str:
    """A command, or one word of it, within a sentence."""
    return ActingCommand(owner=ADMINISTRATOR, argv=argv).render()


def _split_way(before: str) -> tuple[str, str]:
    """What leads to a shell on another host, if it does, and what is put before a program there."""
    way, env, conf = before.partition("env SLURM_CONF=")
    is_here = REMOTE_SHELLS.isdisjoint(word.rpartition("/")[2] for word in way.split())
    return ("", before) if is_here else (way, f"{env}{conf}")


def _give_shell(way: str, line: str) -> str:
    """The line for the shell to which `way` leads: one word, unless each word of it is plain."""
    from shlex import join, quote  # few looks have a bad node

    return f"{way}{line if not way or join(line.split(' ')) == line else quote(line)}"


def _leave_out(program: str) -> str:
    # Not every shell takes a comment from its user: no other text stands in it.
    return f"# {program if program.replace('-', '').isalnum() else 'a command'} is left out: a name in it begins with - or does not print"


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
    leave = quote_command("sbatch", f"--exclude={node}")
    return (
        f"Submit jobs with `{leave}`."
        if not hangs
        else f"If your job on {node} hangs: cancel it (`scancel JOB`), and submit it again with"
        f" `{leave}`. Use --exclude for new jobs too."
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
    why = shortened(visible(reason), 120)
    drain = look("sentinel nodes drain {} --reason {} --dry-run", node, why)
    return (look("squeue -w {} | cat -v", node), drain) if is_bad else ()
