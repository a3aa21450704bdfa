"""`skidway completion bash|zsh`: prints a script that lets the shell complete `skidway` commands.

    source <(skidway completion bash)        # in ~/.bashrc, or into a file of bash-completion
    source <(skidway completion zsh)         # in ~/.zshrc, after compinit

The script lists the nouns, verbs and options of the installed Skidway, so the shell starts no
program to complete a word. If the packages of a noun are not installed, the script does not list
the noun's verbs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

GROUP: Final = "skidway.commands"
GLOBAL: Final = ("--help", "--version")

BASH: Final = """\
_skidway() {
  local word path="" words=""
  local -i at
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="${COMP_WORDS[at]}"
    case "$path $word" in
      %(paths)s) path="$path $word" ;;
    esac
  done
  case "$path" in
%(cases)s
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _skidway skidway
"""

ZSH: Final = "autoload -U +X bashcompinit && bashcompinit\n" + BASH

SHELLS: Final = {"bash": BASH, "zsh": ZSH}


def register(subparsers: Any) -> None:
    """Adds the command `skidway completion`."""
    words = "print the completion script for a shell: source <(skidway completion bash)"
    parser = subparsers.add_parser(
        "completion",
        help=words,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=sorted(SHELLS))
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    print(script(args.shell, list(entry_points(group=GROUP))), end="")
    return 0


def script(shell: str, nouns: list[EntryPoint]) -> str:
    """Returns the script that lets the shell complete the commands of these nouns."""
    words: dict[str, list[str]] = {"": [*sorted(point.name for point in nouns), *GLOBAL]}
    for point in sorted(nouns, key=lambda each: each.name):
        words.update(_words_of(point))
    paths = "|".join(f'"{path}"' for path in words if path)
    cases = "\n".join(f'    "{path}") words="{" ".join(each)}" ;;' for path, each in words.items())
    return SHELLS[shell] % {"paths": paths, "cases": cases}


def _words_of(point: EntryPoint) -> Iterator[tuple[str, list[str]]]:
    subparsers = argparse.ArgumentParser().add_subparsers()
    try:
        point.load()(subparsers)
    except ModuleNotFoundError:
        return iter([(f" {point.name}", [])])
    return _walk(f" {point.name}", subparsers.choices[point.name])


def _walk(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """Yields the command of `parser` and then all its subcommands, together with the words that may
    follow each command."""
    words: list[str] = []
    below: list[tuple[str, argparse.ArgumentParser]] = []
    for action in parser._actions:  # argparse has no public list of actions
        if isinstance(action, argparse._SubParsersAction):
            below += action.choices.items()
            words += action.choices
        elif action.help is not argparse.SUPPRESS:
            words += [each for each in action.option_strings if each.startswith("--")]
            words += [] if action.option_strings else list(map(str, action.choices or ()))
    yield path, words
    for name, each in below:
        yield from _walk(f"{path} {name}", each)
