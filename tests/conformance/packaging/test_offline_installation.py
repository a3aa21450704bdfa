"""Skidway can be installed on a host that has no internet access and no pip. The files that `make
wheels` creates are sufficient, because they include a wheel of the stock pip."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.packages import VERSION, install, run, wheels_of
from support.peers import ROOT

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

AGENT = """
bootstrap.servers: 127.0.0.1:9092
schema.registry.url: http://127.0.0.1:8081
state.dir: {state}
sources:
  - topic: app
    paths: [/var/log/app.log]
"""


def test_an_agent_is_installed_offline_and_runs(tmp_path: Path) -> None:
    """The file agent.txt lists the agent's requirements with their hashes. With this file the agent
    can be installed offline, without PySpark. The installed program prints the right version and
    accepts a configuration."""
    venv = tmp_path / "venv"
    install(["agent"], wheels_of(VERSION), venv)
    skidway = str(venv / "bin" / "skidway")
    assert run([skidway, "--version"]) == f"skidway {VERSION}\n"
    config = tmp_path / "agent.yml"
    config.write_text(AGENT.format(state=tmp_path / "state"))
    said = run([skidway, "agent", "validate", "--config", str(config)], cwd=tmp_path)
    assert "\nthe configuration is good, but look at the lines with ! of " in said
    installed = {each.name for each in venv.glob("lib/python*/site-packages/*")}
    assert "skidway" in installed
    assert "pyspark" not in installed


@pytest.mark.parametrize(
    ("extra", "pages", "works"),
    [
        ("columns", ["client.md"], "import skidway.producer, skidway.consumer"),
        (
            "loader",
            ["spark.md", "loader.md"],
            "import skidway.loader.spark.session; skidway.register",
        ),
        ("agent", ["kubernetes.md"], "import skidway.agent.program"),
    ],
)
def test_the_commands_of_pages_install_what_the_pages_need(
    extra: str, pages: list[str], works: str, tmp_path: Path
) -> None:
    """Pages install Skidway from the directory of wheels with pip and without any index. This works
    with the pip of a new virtual environment, and what the pages use can then be imported."""
    for page in pages:
        text = (ROOT / "docs" / page).read_text()
        assert re.search(rf"pip install --no-index --find-links \S+ 'skidway\[{extra}\]'", text)
    run([sys.executable, "-m", "venv", str(tmp_path)])
    python = str(tmp_path / "bin" / "python")
    source = ["--no-index", "--find-links", str(wheels_of(VERSION))]
    run([python, "-m", "pip", "install", "--quiet", *source, f"skidway[{extra}]"])
    run([python, "-c", works], cwd=tmp_path)


def test_programs_of_one_host_share_an_environment(tmp_path: Path) -> None:
    """The requirements of several programs can be installed into one environment without a
    conflict."""
    venv = tmp_path / "venv"
    install(["broker", "registry", "audit"], wheels_of(VERSION), venv)
    skidway = str(venv / "bin" / "skidway")
    for noun in ("broker", "registry", "audit"):
        assert "run" in run([skidway, noun, "--help"])
    asked = [skidway, "agent", "validate", "--set", "state.dir=x"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_the_manifest_names_the_files_of_each_program() -> None:
    """Every file in wheels.json exists, and is pinned in its program's list of requirements."""
    folder = wheels_of(VERSION)
    manifest = json.loads((folder / "wheels.json").read_text())
    assert manifest["version"] == VERSION
    assert (folder / manifest["pip"]).is_file()
    for program, files in manifest["programs"].items():
        pinned = (folder / f"{program}.txt").read_text().splitlines()[1:]
        assert [line.partition("==")[0] for line in pinned] == [
            name.partition("-")[0].replace("_", "-") for name in files
        ]
        assert all((folder / name).is_file() for name in files)


def test_a_changed_file_is_not_installed(tmp_path: Path) -> None:
    """pip refuses a wheel that was changed after the build, because the wheel's hash differs from
    the hash in the list of requirements."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for file in wheels_of(VERSION).iterdir():
        if not file.name.startswith("pyspark"):
            (folder / file.name).write_bytes(file.read_bytes())
    (own,) = folder.glob("skidway-*.whl")
    with own.open("ab") as opened:
        opened.write(b"\0")
    with pytest.raises(AssertionError, match="DO NOT MATCH THE HASHES"):
        install(["broker"], folder, tmp_path / "venv")


def test_equal_sources_make_equal_wheels() -> None:
    """Two builds of our wheel from the same sources have the same bytes, so the hashes that hosts
    already have stay valid."""
    from deploy.packaging import own_wheel

    first = wheels_of(VERSION) / f"skidway-{VERSION}-py3-none-any.whl"
    again = own_wheel.build(VERSION, first.parents[1] / "again")
    assert again.read_bytes() == first.read_bytes()
    again.unlink()
    again.parent.rmdir()
