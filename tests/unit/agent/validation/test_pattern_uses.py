import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway.cli import main


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with logs."""
    for name in ("debug.log", "top.log", "a/debug.log", "a/deep.log", "b/deep.log"):
        path = tmp_path / "x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n")
    return tmp_path / "x"


def command(verb: str, tree: Path, *sources: dict[str, Any]) -> list[str]:
    document = {
        "bootstrap.servers": "127.0.0.1:1",
        "schema.registry.url": "http://127.0.0.1:1",
        "state.dir": str(tree.parent / "state"),
        "sources": [{"topic": f"t{number}", **each} for number, each in enumerate(sources)],
    }
    path = tree.parent / "agent.yml"
    path.write_text(yaml.safe_dump(document))
    return ["agent", verb, "--config", str(path)]


def test_each_pattern_of_both_lists_says_what_it_takes(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`validate` says for each pattern of `paths` and `exclude` how many files it takes. A pattern
    that does nothing gets a mark with the reason, and the status is 0; with `--strict`, it is 1."""
    source = {
        "paths": [f"{tree}/**/*.log", f"{tree}/a", f"{tree}/none/*", f"{tree}/top.log"],
        "exclude": [f"{tree}/**/debug.log", f"{tree}/a", f"{tree}/{{top,b}}.log", f"{tree}/*.gz"],
    }
    run = command("validate", tree, source)
    assert main(run) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:9] == [
        "t0: 2 files; all of 2 records fit",
        f"  paths {tree}/**/*.log takes 2 files",
        f"  exclude {tree}/**/debug.log leaves out 2 files",
        f"  exclude {tree}/{{top,b}}.log leaves out 1 file",
        f"  ! paths {tree}/a takes no file: {tree}/a is a directory; {tree}/a/** means the files"
        " below it",
        f"  ! paths {tree}/none/* takes no file",
        f"  ! paths {tree}/top.log takes no file: exclude leaves out all 1 that it matches",
        f"  ! exclude {tree}/a leaves out no file: {tree}/a is a directory; {tree}/a/** means the"
        " files below it",
        f"  ! exclude {tree}/*.gz leaves out no file",
    ]
    assert main([*run, "--strict"]) == 1
    assert "look at the lines with ! of t0" in capsys.readouterr().err


def test_marks_are_in_the_document(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--json`, `validate` lists the counts of all patterns and the marks of each source. It
    also does so if it tries no line."""
    run = command("validate", tree, {"paths": [f"{tree}/*.log"], "exclude": [f"{tree}/a/*"]})
    assert main([*run, "--json", "--lines", "0"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["sources"]
    assert [(each["setting"], each["files"]) for each in found["patterns"]] == [
        ("paths", 2), ("exclude", 0)
    ]  # fmt: skip
    assert found["marks"] == [f"exclude {tree}/a/* leaves out no file"]


def test_what_is_no_log_is_marked(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A FIFO, and a path that cannot be read, are marked. Nothing is marked in a source whose
    files may be missing."""
    os.mkfifo(tree / "pipe.log")
    (tree / "closed").symlink_to("x" * 300)
    missing = {"paths": [f"{tree}/none"], "exclude": [f"{tree}/*.gz"], "optional": True}
    run = command("validate", tree, {"paths": [f"{tree}/*.log", f"{tree}/closed/*"]}, missing)
    assert main(run) == 0
    said = capsys.readouterr().out
    assert f"  ! cannot read {tree}/closed: File name too long\n" in said
    assert f"  ! {tree}/pipe.log is a FIFO, and is not read\n" in said
    assert "  ! " not in said.split("t1: ")[1]


@pytest.mark.parametrize("more", [[], [{"paths": ["/nowhere/*"]}]])
def test_a_file_that_is_excluded_is_called_so(
    tree: Path, capsys: pytest.CaptureFixture[str], more: list[dict[str, Any]]
) -> None:
    """`agent test FILE` says if the source leaves the file out, and by which pattern."""
    source = {"paths": [f"{tree}/**/*.log"], "exclude": [f"{tree}/*.gz", f"{tree}/a/**"]}
    run = [*command("test", tree, source, *more), "--topic", "t0"]
    assert main([*run, str(tree / "a" / "deep.log")]) == 0
    said = capsys.readouterr().out
    assert f"t0 does not read this file: exclude {tree}/a/** matches it.\n" in said
    assert main([*run, str(tree / "top.log")]) == 0
    assert "does not read" not in capsys.readouterr().out
    assert main([*run, str(tree.parent / "agent.yml")]) == 0
    assert "does not read this file: no pattern of paths" in capsys.readouterr().out


def test_an_excluded_file_has_no_source(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If several sources exist and none reads FILE, `agent test` names the pattern that leaves FILE
    out."""
    source = {"paths": [f"{tree}/**"], "exclude": [f"{tree}/a/*"]}
    run = command("test", tree, source, {"paths": ["/nowhere/*"]})
    assert main([*run, str(tree / "a" / "deep.log")]) == 78
    said = capsys.readouterr().err
    assert f"no source reads {tree}/a/deep.log" in said
    assert f"exclude {tree}/a/* matches it" in said


def test_a_machine_without_an_id_is_marked(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`validate` says if the machine has no machine id, because the agent's state is bound to
    it."""
    monkeypatch.setattr("skidway.machine_id.PATHS", ())
    assert main(command("validate", tree, {"paths": [f"{tree}/*.log"]})) == 0
    assert "  ! this machine has no machine id" in capsys.readouterr().out
