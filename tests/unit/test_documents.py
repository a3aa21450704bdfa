"""Documents and the docstrings of packages name only tests, files and commands that exist."""

from __future__ import annotations

import argparse
import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from skidway.kafka.protocol import ApiKey
from support.documents import anchors

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMMANDS: dict[str, str] = PROJECT["entry-points"]["skidway.commands"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]

TOP = ["skidway", "schemas", "audit", "agent", "broker", "loader", "bench"]
PACKAGES = sorted(init.parent for top in TOP for init in (ROOT / top).rglob("__init__.py"))

SELF_EXPLAINING = {
    "broker/api": {key.name.lower() for key in ApiKey},
    "skidway/cli": {home.partition(":")[0].rpartition(".")[2] for home in COMMANDS.values()},
}
"""For each package, the modules that the package's docstring need not list, because the docstring
says "one module per API" or "per noun"."""

LISTED = re.compile(r"^(?:    )?([a-z_]+/?(?:, [a-z_]+/?)*)  +\S")
"""Matches a line that lists modules in a package's docstring: the line has names, then at least two
spaces, then words."""

NO_PROGRAM = {"build", "demo", "deploy", "dev", "mutants", "wheels"}
"""The extras in pyproject.toml whose packages no production host needs."""

MODULES = {"backports.zstd": "backports", "pyyaml": "yaml"}
NOT_IMPORTED = {"pandas"}
"""Packages that Skidway does not import, because only another dependency needs them.
docs/dependencies.md names that dependency."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def names_in(path: Path) -> set[str]:
    return set(re.findall(r"^ *def (\w+)", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    ("page", "least"), [("promises.md", 60), ("broker.md", 50), ("operations.md", 50)]
)
def test_every_test_that_the_rules_name_exists(page: str, least: int) -> None:
    """Three pages (promises, broker, operations) name the tests that check each rule or fault. Each
    test that these pages name exists."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / page).read_text())
    assert len(named) > least
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (ROOT / file).exists() or name not in names_in(ROOT / file)
    ]
    assert not missing


def test_every_rule_that_needs_real_programs_has_a_quick_test() -> None:
    """`make test` runs at least one test for each rule of docs/delivery.md. `make test` runs all
    unit and model tests. So if a rule has only tests on real programs, at least one of these tests
    is marked as quick."""
    rows = [
        re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        for line in (ROOT / "docs/promises.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    by_programs = [
        tests
        for tests in rows
        if tests and not any(file.startswith(("tests/unit", "tests/model")) for file, _ in tests)
    ]
    assert len(by_programs) > 5
    without = [tests for tests in by_programs if not any(is_quick(*test) for test in tests)]
    assert not without


def is_quick(file: str, name: str) -> bool:
    """Returns whether `make test` runs the test `name`. Some tests run a list of stories, which are
    end-to-end tests of faults (see support.trials). `make test` runs such a test if at least one of
    its stories is quick."""
    tree = parsed(ROOT / file)
    marks = [
        ast.unparse(mark)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
        if node.name == name or "STORIES" in ast.unparse(mark)
    ]
    return any("pytest.mark.quick" in mark or "is_quick=True" in mark for mark in marks)


def test_every_metric_of_the_audit_is_explained() -> None:
    """docs/audit.md lists every metric of the audit (`skidway_audit_...`), and none that does not
    exist."""
    named = re.compile(r"skidway_audit_\w+")
    sources = (ROOT / "audit").rglob("*.py")
    known = {name for path in sources for name in named.findall(path.read_text())}
    assert known == set(named.findall((ROOT / "docs/audit.md").read_text()))


def test_every_failure_of_the_guide_names_what_shows_it() -> None:
    """For each failure docs/operations.md says what an operator sees, what the operator must do,
    and which test shows the failure."""
    guide = (ROOT / "docs/operations.md").read_text()
    section = guide.partition("\n## Failures\n")[2].partition("\n## ")[0]
    failures = re.split(r"^### ", section, flags=re.MULTILINE)
    assert len(failures) > 20
    for failure in failures[1:]:
        for part in ("**Seen:**", "**Do", "**Tested by:** `tests/"):
            assert part in failure, f"{part} in {failure.splitlines()[0]}"


def test_links_between_documents_lead_somewhere() -> None:
    """Each link to a file of the repository leads to a file that exists, and each link to a heading
    leads to a heading that exists."""
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text())
        if "://" not in link and not leads_somewhere(page, link)
    ]
    assert not dead


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not heading or heading in anchors(target))


def test_documents_wrap_at_120_characters() -> None:
    """Lines of documents have at most 120 characters. Only tables, code, and lines without a space
    to break at may be longer."""
    long = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for line in text.splitlines():
            if (
                len(line) > 120
                and not line.startswith("    ")
                and not line.lstrip().startswith("|")
                and " " in line[40:120]
            ):
                long.append(f"{page.name}: {line[:60]}")
    assert not long


def test_an_operator_reads_a_version_in_one_sitting() -> None:
    """The changelog has on average at most 80 lines for each version."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    versions = sum(line.startswith("## ") for line in lines)
    assert len(lines) <= 80 * versions


def test_no_document_asks_a_package_index_for_skidway() -> None:
    """No package index has Skidway, so anybody could publish a package of this name. Commands that
    install Skidway take it from a directory of wheels only."""
    pages = [*PAGES, *(ROOT / "deploy").rglob("*.md")]
    lines = [line for page in pages for line in page.read_text().splitlines()]
    asked = [line for line in lines if re.search(r"pip3? install\b.*\bskidway\b", line)]
    assert asked
    assert [line for line in asked if "--no-index --find-links" not in line] == []


def test_files_that_documents_name_exist() -> None:
    """If a document has a path in backticks that begins with a folder of the repository, the path
    exists. (Words in capitals stand for something else, as in the identities of senders.)"""
    dead = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in re.findall(
            rf"`((?:{'|'.join([*TOP, 'tests', 'docs'])})/(?![A-Z])[\w./-]*[\w/])", page.read_text()
        )
        if not (ROOT / path).exists()
    ]
    assert not dead


def test_files_of_the_reading_order_exist() -> None:
    """Every file and folder in the reading order of docs/architecture.md exists. If the page names
    a file without a folder, the file's folder is the one in the path that the page names just
    before."""
    order = (ROOT / "docs/architecture.md").read_text().partition("## Reading order\n")[2]
    items = re.findall(r"^\d+\. (.*)$", order, re.MULTILINE)
    assert len(items) > 9
    dead = [name for item in items for name in unknown_in(item)]
    assert not dead


def unknown_in(item: str) -> Iterator[str]:
    before = ROOT
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", item):
        found = [base / name for base in (ROOT, before, before.parent) if (base / name).exists()]
        if found:
            before = found[0] if (ROOT / name).exists() else before
        else:
            yield name


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_package_names_its_modules(package: Path) -> None:
    """A package's docstring names all modules and subpackages of the package, and lists no module
    that does not exist."""
    page = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {each.stem for each in package.glob("*.py") if not each.stem.startswith("__")}
    modules |= {each.parent.name for each in package.glob("*/__init__.py")}
    known = SELF_EXPLAINING.get(str(package.relative_to(ROOT)), set())
    assert not modules - known - set(re.findall(r"\b[a-z][a-z0-9_]*", page))
    for listed in lists_in(page):
        if 2 * len(listed & modules) > len(listed):  # a list that names mostly modules
            assert not listed - modules


def lists_in(page: str) -> Iterator[set[str]]:
    listed: set[str] = set()
    for line in [*page.splitlines(), ""]:
        match = LISTED.match(line)
        if match:
            listed |= set(match[1].replace("/", "").split(", "))
        elif listed:
            yield listed
            listed = set()


def test_commands_in_documents_exist() -> None:
    """Each command `skidway NOUN VERB --option` that a page shows exists."""
    parser = argparse.ArgumentParser()
    nouns = parser.add_subparsers()
    for home in COMMANDS.values():
        module, _, register = home.partition(":")
        getattr(import_module(module), register)(nouns)
    wrong = [
        f"{page.relative_to(ROOT)}: {command}"
        for page in [*PAGES, ROOT / "CHANGELOG.md"]
        for command in re.findall(r"(?:^    |`)skidway ([a-z][^`\n#]*)", page.read_text(), re.M)
        if not knows(nouns, command)
    ]
    assert not wrong


def knows(nouns: Any, command: str) -> bool:
    """Returns whether a command's noun (first word), verb (second word) and options all exist.
    `list|describe` stands for two verbs."""
    noun, *words = command.split()
    if noun not in nouns.choices:
        return False
    parsers = [nouns.choices[noun]]
    for word in words:
        verbs = next((a for a in parsers[0]._actions if a.choices and not a.option_strings), None)
        if word.startswith("-"):
            break
        if verbs is None or not isinstance(verbs.choices, dict):
            break
        if not all(each in verbs.choices for each in word.split("|")):
            return False
        parsers = [verbs.choices[each] for each in word.split("|")]
    options = [word.strip("[]") for word in words if word.strip("[]").startswith("--")]
    return all(option in each._option_string_actions for each in parsers for option in options)


def requirements(extra: str | None) -> set[str]:
    """Returns the packages that an extra requires. If no extra is given, returns the packages that
    the project always requires. Skidway's own extras are left out."""
    given = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return {re.split(r"[<>=\[]", each)[0] for each in given} - {"skidway"}


def test_every_run_time_dependency_has_its_reason() -> None:
    """docs/dependencies.md lists each package that pyproject.toml requires at run time, with the
    extras that require it, and no other package."""
    extras = [each for each in PROJECT["optional-dependencies"] if each not in NO_PROGRAM]
    expected = {(package, "all") for package in requirements(None)}
    expected |= {(package, extra) for extra in extras for package in requirements(extra)}
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|", (ROOT / "docs/dependencies.md").read_text(), re.M
    )
    said = {
        (package.lower(), extra)
        for packages, where, *_ in rows[1:]
        for package in packages.split(", ")
        for extra in where.split(", ")
    }
    assert said == expected


def test_every_run_time_dependency_is_used() -> None:
    """Skidway imports each package that pyproject.toml requires at run time, or checks whether it
    is installed."""
    packages = [each for each in TOP if each != "bench"]
    sources = "\n".join(f.read_text() for top in packages for f in (ROOT / top).rglob("*.py"))
    extras = [each for each in PROJECT["optional-dependencies"] if each not in NO_PROGRAM]
    wanted = requirements(None).union(*(requirements(each) for each in extras)) - NOT_IMPORTED
    unused = [
        package
        for package in wanted
        for module in [MODULES.get(package, package.replace("-", "_"))]
        if not re.search(rf'^\s*(?:import|from) {module}\b|find_spec\("{module}"\)', sources, re.M)
    ]
    assert not unused


@pytest.mark.parametrize(
    ("module", "where", "does"),
    [
        ("watchdog", "agent/files/watching.py", "tells the agent of changed files"),
        ("avro", "schemas/advice/advice.py", "reads every schema that somebody registers"),
        ("kazoo", "skidway/coordination/client.py", "is how every program reaches ZooKeeper"),
        ("pyspark", "loader/spark/session.py", "plans and distributes every load"),
        ("yaml", "skidway/settings/document.py", "reads every configuration"),
    ],
)
def test_the_chosen_packages_are_used_at_run_time(module: str, where: str, does: str) -> None:
    """The project was required to use five packages: watchdog, avro, kazoo, pyspark and PyYAML.
    Each of them is imported in the module that needs it."""
    imported = re.search(rf"^\s*(?:import|from) {module}\b", (ROOT / where).read_text(), re.M)
    assert imported, f"{module} {does}"
