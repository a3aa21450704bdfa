from __future__ import annotations

import subprocess
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from skidway.cli import commands, completion

ABSENT = EntryPoint("absent", "a_module_that_is_not_there:register", commands.GROUP)


@pytest.fixture(scope="module")
def text() -> str:
    return completion.script("bash", [*entry_points(group=commands.GROUP), ABSENT])


def completed(script: str, folder: Path, *words: str) -> list[str]:
    """Returns the completions that bash offers for the last word of `words`."""
    path = folder / "skidway.bash"
    quoted = " ".join(f"'{word}'" for word in ("skidway", *words))
    path.write_text(
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _skidway\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", str(path)], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_nouns_verbs_and_options_are_completed(text: str, tmp_path: Path) -> None:
    """bash completes a command's first word (noun), second word (verb) and options, each according
    to the words before it. Options between noun and verb make no difference."""
    assert completed(text, tmp_path, "top") == ["topics"]
    assert set(completed(text, tmp_path, "agent", "state", "")) >= {"show", "adopt", "give-up"}
    assert completed(text, tmp_path, "agent", "--config", "x.yml", "validate", "--li") == [
        "--lines"
    ]
    assert completed(text, tmp_path, "completion", "z") == ["zsh"]
    assert "absent" in completed(text, tmp_path, "")
    assert completed(text, tmp_path, "absent", "") == []


def test_zsh_takes_the_same_words() -> None:
    """The completion script for zsh first loads zsh's support for bash completions. The rest of the
    script is the same as the script for bash."""
    nouns = list(entry_points(group=commands.GROUP))
    first, _, rest = completion.script("zsh", nouns).partition("\n")
    assert first == "autoload -U +X bashcompinit && bashcompinit"
    assert rest == completion.script("bash", nouns)
