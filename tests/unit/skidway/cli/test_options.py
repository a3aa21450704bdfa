from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pytest

from skidway.cli.options import add_config_options, add_timeout_option, load_settings
from skidway.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    size: int = setting("size", 1, help="A size.")


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser("skidway x run")
    add_config_options(parser, Settings)
    return parser.parse_args(argv)


def test_config_and_set_reach_the_settings(tmp_path: Path) -> None:
    """The option --config gives the settings file. Each option --set overrides the file, and the
    last --set of a key is used."""
    path = tmp_path / "x.yml"
    path.write_text("size: 2")
    assert load_settings(Settings, parse("--config", str(path)), "x").size == 2
    args = parse("--config", str(path), "--set", "size=3", "--set", "size=4")
    assert load_settings(Settings, args, "x").size == 4


@pytest.mark.parametrize("text", ["nan", "soon"])
def test_a_timeout_is_a_number(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A timeout must be a number. The value nan is refused, because a wait of nan seconds would
    never end."""
    parser = argparse.ArgumentParser()
    add_timeout_option(parser, "How long.")
    assert parser.parse_args(["--timeout", "1.5"]).timeout_s == 1.5
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--timeout", text])
    assert ended.value.code == 2
    assert f"'{text}'" in capsys.readouterr().err


def test_example_is_printed_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """With --example a program prints a settings file that lists every key, and ends with status
    0."""
    with pytest.raises(SystemExit) as ended:
        parse("--example")
    assert ended.value.code == 0
    assert "# A size. (integer)\n# size: 1\n" in capsys.readouterr().out
