"""`um completion SHELL`: print a completion script, made from the command line's own description."""

from __future__ import annotations

import argparse
from typing import Any

from um_cffi.binding.options import OPTIONS
from um_cffi.commands import _common

BASH = """# bash completion of um: eval "$(um completion bash)"
_um() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words
    if [ "$word" = "=" ]; then
        COMPREPLY=($(um completion option "$previous=" | sed 's/^[^=]*=//')); return
    elif [ "$previous" = "=" ]; then
        COMPREPLY=($(um completion option "${{COMP_WORDS[COMP_CWORD-2]}}=$word" | sed 's/^[^=]*=//')); return
    fi
    case $previous in
        -o|--option) compopt -o nospace; COMPREPLY=($(um completion option "$word")); return ;;
{choices}
        -c|--config|--definition) COMPREPLY=($(compgen -f -- "$word")); return ;;
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
_um_option() {{
    compadd -S '' -- $(um completion option "$PREFIX")
}}
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
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
{cases}
    esac
}}
if [[ $funcstack[1] == _um ]]; then  # the file _um, at its first use
    _um "$@"
else
    (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit; }}
    compdef _um um
fi
"""

Described = tuple[list[str], str, bool, list[str]]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("completion", help="print a completion script for a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "fish", "option"), help="option: what the scripts ask")
    parser.add_argument("word", nargs="?", default="", help="with option: the beginning of NAME=VALUE")
    parser.set_defaults(run=run)


def _commands() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    from um_cffi.commands import parser

    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            return {name: (helps.get(name, ""), sub) for name, sub in action.choices.items()}
    return {}


def _options(parser: argparse.ArgumentParser) -> list[Described]:
    """Names, help text, whether a value follows, and which these are if they are listed, of each option."""
    return [
        (
            list(action.option_strings),
            (action.help or "").replace("%%", "%"),
            action.nargs != 0,
            list(map(str, action.choices or ())),
        )
        for action in parser._actions
        if action.option_strings
    ]


def _words(name: str, parser: argparse.ArgumentParser) -> list[str]:
    words = [option for names, _, _, _ in _options(parser) for option in names]
    return words + (["bash", "zsh", "fish"] if name == "completion" else [])


def bash() -> str:
    """The script for bash."""
    cases = [f'            {name}) words="{" ".join(_words(name, sub))}" ;;' for name, (_, sub) in _commands().items()]
    choices = [
        f"        {'|'.join(action.option_strings)})"
        f' COMPREPLY=($(compgen -W "{" ".join(map(str, action.choices or ()))}" -- "$word")); return ;;'
        for action in _with_choices()
    ]
    return BASH.format(commands=" ".join(_commands()), cases="\n".join(cases), choices="\n".join(choices))


def _with_choices() -> list[argparse.Action]:
    """The options of all commands that take one of some words; each once."""
    actions = [action for _, sub in _commands().values() for action in sub._actions]
    found = {tuple(action.option_strings): action for action in actions if action.option_strings and action.choices}
    return list(found.values())


def option_words(word: str) -> list[str]:
    """What a beginning of [SCOPE.]NAME=VALUE may become: names with `=`, or values of enumerations and switches."""
    name, equals, value = word.partition("=")
    scope, dot, rest = name.partition(".")
    scopes = [scope] if dot else list(_common.SCOPES)
    options = [option for each in scopes for option in OPTIONS.get(each, {})]
    start = f"{scope}." if dot else ""
    if not equals:
        names = {f"{start}{option}=" for option in options if option.startswith(rest if dot else name)}
        return sorted(names | ({f"{each}." for each in _common.SCOPES if each.startswith(name)} if not dot else set()))
    found = next((OPTIONS[each][rest or name] for each in scopes if (rest or name) in OPTIONS.get(each, {})), None)
    if found is None:
        return []
    values = ("0", "1") if found.kind == "SWITCH" else found.values if found.kind == "ENUM" else (found.default,)
    return [f"{name}={each}" for each in values if each.startswith(value)]


def zsh() -> str:
    """The script for zsh."""
    commands = [f"        '{name}:{help_text}'" for name, (help_text, _) in _commands().items()]
    cases = []
    for name, (_, sub) in _commands().items():
        rest = "':shell:(bash zsh fish)'" if name == "completion" else "'*:file:_files'"
        cases.append(f"        {name}) _arguments -s {rest} {' '.join(map(_zsh_option, _options(sub)))} ;;")
    return ZSH.format(commands="\n".join(commands), cases="\n".join(cases))


def _zsh_option(option: Described) -> str:
    names, help_text, value, choices = option
    described = help_text.replace("'", "").replace("[", "(").replace("]", ")").replace(":", ";")
    after = ""
    if value:
        what = "_um_option" if "--option" in names else f"({' '.join(choices)})" if choices else "_files"
        after = f":value:{what}"
    return " ".join(f"'{name}[{described}]{after}'" for name in names)


def fish() -> str:
    """The script for fish."""
    lines = ["# fish completion of um: um completion fish | source"]
    for name, (help_text, sub) in _commands().items():
        lines.append(f"complete -c um -n __fish_use_subcommand -f -a {name} -d '{help_text}'")
        for names, text, value, choices in _options(sub):
            flags = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in names)
            described = text.replace("'", "")
            needs = f" -x -a '{' '.join(choices)}'" if choices else " -r" if value else ""
            if "--option" in names:
                needs = " -x -a '(um completion option (commandline -ct))'"
            lines.append(f"complete -c um -n '__fish_seen_subcommand_from {name}' {flags}{needs} -d '{described}'")
    lines.append("complete -c um -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'")
    return "\n".join(lines) + "\n"


def run(arguments: argparse.Namespace) -> int:
    """Print the script, or the words that it asks for."""
    if arguments.shell == "option":
        print("\n".join(option_words(arguments.word)))
        return 0
    print({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](), end="")
    return 0
