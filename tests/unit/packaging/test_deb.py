"""Python versions are converted to versions of Debian packages."""

from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest

from deploy.packaging.deb import debian_version

RISING = [
    "1.3.0.dev4", "1.3.0a1.dev1", "1.3.0a1", "1.3.0b2", "1.3.0rc1.dev3", "1.3.0rc1", "1.3.0rc2",
    "1.3.0", "1.3.0.post1", "1.3.1.dev1", "1.3.1", "1.10.0",
]  # fmt: skip


def test_a_plain_version_stays_as_it_is() -> None:
    """A version without a suffix is also the version of the Debian package. Only the suffixes of
    pre-releases and development versions are written differently."""
    assert debian_version("1.3.0") == "1.3.0"
    assert debian_version("1.3.0rc1.dev3") == "1.3.0~rc1~~dev3"
    assert debian_version("1.3.0+site.7") == "1.3.0+site.7"


@pytest.mark.foreign
def test_dpkg_orders_versions_as_pip_does() -> None:
    """dpkg orders versions as pip does, so a version that is an upgrade for pip is an upgrade for
    dpkg."""
    for lower, higher in pairwise(RISING):
        compared = [
            "dpkg",
            "--compare-versions",
            debian_version(lower),
            "lt",
            debian_version(higher),
        ]
        assert subprocess.run(compared, check=False).returncode == 0, (lower, higher)
