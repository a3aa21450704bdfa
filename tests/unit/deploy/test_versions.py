"""Tests which wheels are copied to a host, and which installed versions stay on the host."""

from __future__ import annotations

import pytest

from deploy.ansible.plugins.plugin_utils import versions

WHEELS = ["/w/skidway-0.2.0-py3-none-any.whl", "/w/PyYAML-6.0.3-cp311-x.whl", "/w/pip-26.3-x.whl"]
REQUIREMENTS = (
    "# what an agent needs\nskidway==0.2.0 --hash=sha256:aa\npyyaml==6.0.3 \\\n  --hash=sha256:bb\n"
)


def test_only_the_wheels_that_are_missing_are_carried() -> None:
    """Wheels that are on the host already, because another program needed them, are not copied
    again. The wheel of pip itself is always copied."""
    assert versions.wheels_for(REQUIREMENTS, [*WHEELS, "/w/numpy-2-x.whl"]) == sorted(WHEELS)
    there = ["pyyaml==6.0.3 --hash=sha256:bb\n"]
    assert versions.wheels_for(REQUIREMENTS, WHEELS, there) == [WHEELS[2], WHEELS[0]]


def test_a_wheel_that_is_not_there_is_named() -> None:
    """An incomplete folder of wheels is refused before anything is copied; the error names the
    missing requirement."""
    with pytest.raises(ValueError, match=r"pyyaml==6\.0\.3"):
        versions.wheels_for(REQUIREMENTS, WHEELS[::2])


def test_other_content_under_the_same_version_is_refused() -> None:
    """If a wheel has the same version as an installed wheel but other content, the new wheel is
    refused. Otherwise pip would consider the new wheel already installed, and the old code would
    stay."""
    with pytest.raises(ValueError, match=r"skidway==0\.2\.0 .* new version"):
        versions.wheels_for(REQUIREMENTS, WHEELS, ["skidway==0.2.0 --hash=sha256:cc\n"])


MANIFEST = {"version": "1.0", "python": "3.11", "implementation": "CPython", "platform": "linux-x"}


@pytest.mark.parametrize(
    ("found", "good"),
    [
        ("3.11 CPython linux-x\n", True),
        ("3.13 CPython linux-x", False),
        ("3.11 PyPy linux-x", False),
        ("3.11 CPython linux-aarch64", False),
    ],
)
def test_wheels_for_another_python_are_refused(found: str, good: bool) -> None:
    """Wheels for another version or implementation of Python, or for another platform, are refused
    before anything is changed. pip would refuse them, too, but would only say that it finds no
    wheel."""
    said = versions.python_problem(found, MANIFEST, "/usr/bin/python3")
    assert (said == "") is good
    assert good or f"/usr/bin/python3 here is {found}" in said


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("0.9.0", "0.10.0", True),
        ("1.0rc1", "1.0", True),
        ("1.0+hotfix", "1.0", False),
        (0.2, "0.2.0", False),
        ("0.2.0", "0.1.9", False),
        ("0.1.0", "", False),
    ],
)
def test_going_back_is_told_by_the_numbers(version: object, than: str, older: bool) -> None:
    """To find out whether a change of the version is a downgrade, the roles compare versions as
    numbers, not as texts (0.9 is older than 0.10). On a host without an installed version, no
    version is a downgrade."""
    assert versions.is_older(version, than) is older


def test_versions_in_use_stay_and_the_newest_of_the_others() -> None:
    """Versions in use stay installed. If they are fewer than the number of versions to keep, the
    newest of the unused versions stay, too, so that an operator can roll back by hand without
    copying wheels. All other unused versions are deleted."""
    there = [{"path": f"/opt/skidway/{v}", "mtime": v} for v in ("1", "2", "3", "4")]
    assert versions.superfluous(there, ["../4", "../4"], 2) == [
        "/opt/skidway/2",
        "/opt/skidway/1",
    ]
    assert versions.superfluous(there, ["../4", "../1"], 1) == [
        "/opt/skidway/3",
        "/opt/skidway/2",
    ]


@pytest.mark.parametrize("name", ["0.1.0", "0.2.0.dev3", "9.8.7rc1", "1.0+site.2"])
def test_only_what_is_named_as_a_version_is_removed(name: str) -> None:
    """When old versions are deleted, only directories whose names are versions are deleted, and no
    other files beside them."""
    others = [{"path": f"/opt/skidway/{n}", "mtime": 1} for n in ("jdk-21", "backup", "1.0.old")]
    version = {"path": f"/opt/skidway/{name}", "mtime": 0}
    assert versions.superfluous([*others, version], ["../2.0"], 1) == [version["path"]]
