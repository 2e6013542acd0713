"""Makes completion scripts for shells and a man page from the parsers."""

import argparse
from collections.abc import Iterator
from typing import Any

from sentinel import __version__
from sentinel.cli import _build_parser
from sentinel.cli.command_tree import ListedCommand, iterate_commands

SHELL_NAMES = ("bash", "zsh", "fish")


def register(commands: Any) -> None:
    """Add the parsers."""
    completion = commands.add_parser(
        "completion",
        help="a script that lets your shell complete commands and options",
        description="Prints the script. For bash: sentinel completion bash "
        ">~/.local/share/bash-completion/completions/sentinel. For zsh: sentinel completion zsh "
        ">DIR/_sentinel, where DIR is in $fpath. For fish: sentinel completion fish "
        ">~/.config/fish/completions/sentinel.fish.",
    )
    completion.add_argument("shell", choices=SHELL_NAMES, help="the shell that you use")
    completion.set_defaults(call=call_completion)
    man = commands.add_parser(
        "man",
        help="the manual page",
        description="Prints the manual page. Read it with: sentinel man | man -l -. Install it with: "
        "sentinel man >~/.local/share/man/man1/sentinel.1",
    )
    man.set_defaults(call=call_man)


def call_completion(args: argparse.Namespace) -> int:
    """Print the completion script for that shell."""
    print(
        {
            "bash": _render_bash_completion,
            "zsh": _render_zsh_completion,
            "fish": _render_fish_completion,
        }[args.shell]([*iterate_commands(_build_full_parser())]),
        end="",
    )
    return 0


def call_man(_args: argparse.Namespace) -> int:
    """Print the man page, in roff for man(7)."""
    print("\n".join(_render_man_page([*iterate_commands(_build_full_parser())], __version__)))
    return 0


def _build_full_parser() -> Any:
    return _build_parser([])


_BASH_TEMPLATE = """\
# bash completion for sentinel; made by `sentinel completion bash`
_sentinel() {
    local word path="" next
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path $word" in
%s
        esac
    done
    case "$path" in
%s
    esac
    COMPREPLY=($(compgen -W "$next" -- "${COMP_WORDS[COMP_CWORD]}"))
    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o filenames -F _sentinel sentinel
"""


def _render_bash_completion(found: list[ListedCommand]) -> str:
    deeper = "\n".join(
        f'        "{"".join(f" {word}" for word in c.words)}") path="$path $word" ;;'
        for c in found
        if c.words
    )
    after = "\n".join(
        f'    "{"".join(f" {word}" for word in c.words)}") next="{" ".join((*c.below, *c.options))}" ;;'
        for c in found
    )
    return _BASH_TEMPLATE % (deeper, after)


def _render_zsh_completion(found: list[ListedCommand]) -> str:
    """A script for zsh, which can read bash completions (zshcompsys(1), bashcompinit)."""
    head = "#compdef sentinel\nautoload -U +X bashcompinit && bashcompinit\n"
    return head + _render_bash_completion(found)


def _render_fish_completion(found: list[ListedCommand]) -> str:
    lines = ["# fish completion for sentinel; made by `sentinel completion fish`"]
    for c in found:
        beneath = {*c.below}
        seen = [f"__fish_seen_subcommand_from {word}" for word in c.words]
        unless = [f"not __fish_seen_subcommand_from {' '.join(sorted(beneath))}"] if beneath else []
        when = f"-n {_quote_for_fish('; and '.join((*seen, *unless)))}" if seen or unless else ""
        for word, text in c.below.items():
            lines.append(f"complete -c sentinel -f {when} -a {word} -d {_quote_for_fish(text)}")
        for option, text in c.options.items():
            sort = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"complete -c sentinel {when} {sort} -d {_quote_for_fish(text)}")
    return "\n".join(lines) + "\n"


def _quote_for_fish(text: str) -> str:
    """A word of fish, whose single quotes know \\\\ and \\'."""
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _render_man_page(found: list[ListedCommand], version: str) -> Iterator[str]:
    """Lines of the man page; https://man7.org/linux/man-pages/man7/man-pages.7.html has the order
    of its sections."""
    yield f'.TH SENTINEL 1 "" "sentinel {version}" "User Commands"'
    yield ".SH NAME\nsentinel \\- watchdog for Slurm clusters that train large models"
    yield f".SH SYNOPSIS\n.B sentinel\n{_escape_roff(found[0].usage.removeprefix('sentinel'))}"
    yield f".SH DESCRIPTION\n{_escape_roff(found[0].text)}"
    yield ".SH COMMANDS"
    for c in found[1:]:
        yield f".SS {_escape_roff('sentinel ' + ' '.join(c.words))}"
        yield f"{_escape_roff(c.text)}\n.PP\n.nf\n{_escape_roff(c.usage)}\n.fi"
        for option, text in c.options.items():
            if option not in ("-h", "--help") and text:
                yield f".TP\n.B {_escape_roff(option)}\n{_escape_roff(text)}"
    yield (
        ".SH EXIT STATUS\nOf\n.B sentinel check:\n0 ok, 1 warning, 2 critical, 3 unknown. A wrong call "
        "is 64, a missing or wrong configuration 78."
    )
    yield ".SH FILES\n.I ~/.config/sentinel/sentinel.yaml\n.br\n.I /etc/sentinel/sentinel.yaml"


def _escape_roff(text: str) -> str:
    """Text in which roff sees no request and no escape."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    line = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in line)
    return f"\\&{line}" if line[:1] in (".", "'") else line
