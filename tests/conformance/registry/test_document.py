"""The examples of docs/registry.md work in the order of the page, and the page's tables match the
code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from skidway.agent.settings import AgentSettings
from skidway.loader.settings import LoaderSettings
from skidway.schemas.commands.connection import ConnectionSettings
from skidway.schemas.registry.settings import RegistrySettings
from skidway.settings import documented
from support.processes import running
from support.registry import Registry

PAGE = (Path(__file__).parents[3] / "docs/registry.md").read_text()
EXAMPLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
END = "\x01"
"""The test prints this character after each command to separate the outputs."""
PROGRESS = re.compile(r"^(restored|subjects read)  .*\n", re.MULTILINE)
"""Matches progress lines. A command prints these lines only if it runs for a long time, as it may
on a slow machine."""


@pytest.fixture
def second(zookeeper: str, tmp_path: Path) -> Iterator[Registry]:
    """The second registry in the examples of docs/registry.md, which give it the port 8082."""
    made = Registry(f"{zookeeper}-second", tmp_path)
    with running(made.program, made.ready):
        yield made


def test_the_examples_of_the_page_run(registry: Registry, second: Registry, tmp_path: Path) -> None:
    """Each command in docs/registry.md prints the text that the page shows below the command. In
    this text, `...` stands for any lines."""
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{shim(registry, tmp_path)}:{os.environ['PATH']}"}
    ports = {"127.0.0.1:8081": registry.port, "127.0.0.1:8082": second.port}
    assert len(EXAMPLES) > 8
    for example in EXAMPLES:
        commands = list(parsed(example))
        script = "exec 2>&1\n" + "".join(f"{text}\nprintf '{END}'\n" for text, _ in commands)
        for address, port in ports.items():
            script = script.replace(address, f"127.0.0.1:{port}")
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, env=environment, capture_output=True,
            text=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        outputs = done.stdout.split(END)
        for (text, expected), output in zip(commands, outputs, strict=False):
            assert is_as_said(output, expected), f"$ {text}\n{output}"
        assert len(outputs) == len(commands) + 1


def shim(registry: Registry, folder: Path) -> Path:
    """Creates a directory with a `skidway` command that uses the test's registry by default.
    Returns the directory."""
    directory = folder / "bin"
    directory.mkdir()
    program = directory / "skidway"
    python = shlex.quote(sys.executable)
    program.write_text(
        "#!/bin/bash\n"
        f'[[ "$1" == schemas && "$2" != infer && " $* " != *" --registry "* ]] &&'
        f' set -- "$@" --registry {registry.url}\n'
        f'exec {python} -m skidway.cli "$@"\n'
    )
    program.chmod(0o755)
    return directory


def parsed(example: str) -> Iterator[tuple[str, str]]:
    """Yields each command of an example with its expected output. A line that begins with `> `
    continues a command."""
    command, output = "", ""
    for line in example.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], ""
        elif line.startswith("> "):
            command += "\n" + line[2:]
        else:
            output += line + "\n"
    yield command, output


def is_as_said(output: str, expected: str) -> bool:
    """Returns whether the output is as expected. In `expected`, a line `...` stands for any number
    of lines."""
    pieces = [re.escape(line) for line in expected.strip().splitlines()]
    pattern = r"\n".join(".*" if piece == re.escape("...") else piece for piece in pieces)
    return re.fullmatch(pattern, PROGRESS.sub("", output).strip(), re.DOTALL) is not None


def test_every_setting_is_there() -> None:
    """The table of settings in docs/registry.md lists every setting in the order of the code, each
    with its default and an explanation."""
    body = PAGE.partition("<!-- settings -->\n")[2].partition("<!-- /settings -->")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in body.splitlines()[2:]]
    expected = [(each.key, shown(each.default)) for each in documented(RegistrySettings)]
    assert [(key.strip("`"), default.strip("`")) for key, default, _ in rows] == expected
    assert all(words for *_, words in rows)


def shown(default: object) -> str:
    if default is None:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return ", ".join(default) if isinstance(default, list) else str(default)


def test_configurations_have_known_keys() -> None:
    """docs/registry.md has two YAML examples. Every key in the first is a setting of the registry.
    Every key in the second is a setting of the programs that ask the registry, for example of the
    agent."""
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    known = [{each.key for each in documented(c)} for c in (RegistrySettings, ConnectionSettings)]
    assert len(examples) == 2
    for example, keys in zip(examples, known, strict=True):
        assert set(yaml.safe_load(example)) <= keys
    for program in (AgentSettings, LoaderSettings):
        assert set(yaml.safe_load(examples[1])) <= {each.key for each in documented(program)}
