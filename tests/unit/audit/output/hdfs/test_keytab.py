"""Tests how a keytab is read."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.output.hdfs import keytab
from skidway.errors import ConfigurationRefused

NAMES = st.text("abc-./äß", min_size=1, max_size=9).filter(lambda text: "/" not in text)


def entry(realm: str, parts: list[str], key: bytes) -> bytes:
    """Returns an entry as MIT's documentation describes it."""
    texts = [text.encode() for text in (realm, *parts)]
    body = struct.pack(">H", len(parts))
    body += b"".join(struct.pack(">H", len(each)) + each for each in texts)
    body += struct.pack(">IIBHH", 1, 1_700_000_000, 3, 18, len(key)) + key
    return struct.pack(">i", len(body)) + body


@given(
    st.lists(
        st.tuples(
            NAMES, st.lists(NAMES, min_size=1, max_size=3), st.binary(min_size=1, max_size=32)
        ),
        max_size=4,
    ),
    st.integers(0, 50),
)
def test_the_principals_of_a_keytab(keys: list[tuple[str, list[str], bytes]], hole: int) -> None:
    """A keytab has the principals of its entries; a deleted entry has none."""
    deleted = struct.pack(">i", -hole) + bytes(hole)
    data = b"\x05\x02" + deleted.join(entry(*each) for each in keys)
    expected = [f"{'/'.join(parts)}@{realm}" for realm, parts, _ in keys]
    assert keytab.principals(data) == expected


@given(st.binary(max_size=200))
def test_any_other_file_is_refused(data: bytes) -> None:
    """Whatever a file has in it, it is a keytab or refused."""
    for text in (data, b"\x05\x02" + data):
        try:
            keytab.principals(text)
        except (ValueError, struct.error):
            continue


@pytest.mark.parametrize("principal", ["loader", "loader@A.B", "etl/h1@A.B"])
def test_a_principal_with_a_key_is_found(tmp_path: Path, principal: str) -> None:
    """A principal is found with its realm and without."""
    file = tmp_path / "keytab"
    file.write_bytes(
        b"\x05\x02" + entry("A.B", ["loader"], b"k") + entry("A.B", ["etl", "h1"], b"k")
    )
    keytab.check(file, principal)
    with pytest.raises(ConfigurationRefused, match=r"no key of other, only of etl/h1@A.B, loader"):
        keytab.check(file, "other")


@pytest.mark.parametrize("end", range(3, 50))
def test_a_keytab_that_was_cut_is_refused(tmp_path: Path, end: int) -> None:
    """Wherever a keytab was cut, the error says that it is damaged, and not that there is no
    ticket."""
    whole = b"\x05\x02" + entry("A.B", ["loader"], b"0123456789abcdef")
    file = tmp_path / "keytab"
    file.write_bytes(whole[:end])
    with pytest.raises(ConfigurationRefused, match="is no keytab, or damaged"):
        keytab.check(file, "loader")


def test_an_error_names_few_principals(tmp_path: Path) -> None:
    """An error names the first principals of a large keytab, and no control character."""
    file = tmp_path / "keytab"
    file.write_bytes(b"\x05\x02" + b"".join(entry("A", [f"{n}\n"], b"k") for n in range(9)))
    with pytest.raises(ConfigurationRefused, match=r"only of 0\\n@A, .*4\\n@A and 4 others$"):
        keytab.check(file, "loader")
