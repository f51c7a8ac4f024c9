"""`um completion SHELL`: print a completion script, made from the command line's own description."""

from __future__ import annotations

import argparse
from typing import Any

BASH = """# bash completion of um: eval "$(um completion bash)"
_um() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words
    case $previous in
        -c|--config) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} --help --version"
    else
        case ${{COMP_WORDS[1]}} in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _um um
"""

ZSH = """#compdef um
# zsh completion of um: eval "$(um completion zsh)", or save as _um in a folder of $fpath
_um() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe 'command' commands
        return
    fi
    case $words[2] in
{cases}
    esac
}}
compdef _um um
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("completion", help="print a completion script for a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def _commands() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    from um_cffi.commands import parser

    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            return {name: (helps.get(name, ""), sub) for name, sub in action.choices.items()}
    return {}


def _options(parser: argparse.ArgumentParser) -> list[tuple[list[str], str, bool]]:
    """Names, help text and whether a value follows, of each option."""
    return [
        (list(action.option_strings), (action.help or "").replace("%%", "%"), action.nargs != 0)
        for action in parser._actions
        if action.option_strings
    ]


def _words(name: str, parser: argparse.ArgumentParser) -> list[str]:
    words = [option for names, _, _ in _options(parser) for option in names]
    return words + (["bash", "zsh", "fish"] if name == "completion" else [])


def bash() -> str:
    """The script for bash."""
    cases = [f'            {name}) words="{" ".join(_words(name, sub))}" ;;' for name, (_, sub) in _commands().items()]
    return BASH.format(commands=" ".join(_commands()), cases="\n".join(cases))


def zsh() -> str:
    """The script for zsh."""
    commands = [f"        '{name}:{help_text}'" for name, (help_text, _) in _commands().items()]
    cases = []
    for name, (_, sub) in _commands().items():
        cases.append(f"        {name}) _arguments '*:file:_files' {' '.join(map(_zsh_option, _options(sub)))} ;;")
    return ZSH.format(commands="\n".join(commands), cases="\n".join(cases))


def _zsh_option(option: tuple[list[str], str, bool]) -> str:
    names, help_text, value = option
    described = help_text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ";")
    return " ".join(f"'{name}[{described}]{':value:_files' if value else ''}'" for name in names)


def fish() -> str:
    """The script for fish."""
    lines = ["# fish completion of um: um completion fish | source"]
    for name, (help_text, sub) in _commands().items():
        lines.append(f"complete -c um -n __fish_use_subcommand -f -a {name} -d '{help_text}'")
        for names, text, value in _options(sub):
            flags = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in names)
            described = text.replace("'", "")
            needs = " -r" if value else ""
            lines.append(f"complete -c um -n '__fish_seen_subcommand_from {name}' {flags}{needs} -d '{described}'")
    lines.append("complete -c um -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'")
    return "\n".join(lines) + "\n"


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](), end="")
    return 0
