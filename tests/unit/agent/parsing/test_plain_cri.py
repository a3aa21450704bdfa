"""If all lines of a CRI log have the usual form, the agent splits them without RE2. The result must
be the same as with RE2."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.agent.parsing.containers import unwrap
from skidway.agent.parsing.runtimes import CRI

REFERENCE = re.compile(
    rb"([0-9T:.Z+-]+) (stdout|stderr) ([PF])[^\t\n\f\r ]*(?: (.*))?", re.DOTALL
)  # [^\t\n\f\r ] is RE2's \S; Python's \S also excludes \v
TIME = b"2026-11-20T08:15:01.669794202Z"
PLAIN = st.builds(
    lambda time, stream, tag, text: b" ".join([time, stream, tag, text]),
    st.sampled_from([TIME, b"2026-11-20T08:15:01+02:00", b"1"]),
    st.sampled_from([b"stdout", b"stderr"]),
    st.sampled_from([b"F", b"P", b"F:x", b"P:y", b"F\xff"]),
    st.sampled_from([b"", b"text", b"two words", b" \t", b"a\nb", b"\xff\xfe", b"x" * 300]),
)
ODD = st.builds(
    lambda parts: b"".join(parts),
    st.lists(
        st.sampled_from(
            [TIME, b" ", b"  ", b"\t", b"stdout", b"stderr", b"std", b"F", b"P", b"X", b"t", b"\r"]
        ),
        max_size=8,
    ),
)


@given(st.lists(PLAIN, max_size=6), st.lists(st.one_of(PLAIN, ODD), max_size=3))
@example([TIME + b" stdout F"], [])
@example([TIME + b" stdout F a", TIME + b"x stdout F b"], [])
@example([TIME + b" stdout Q a"], [])
@example([TIME + b" stdin F a"], [])
def test_lines_are_taken_apart_as_by_re2(plain: list[bytes], others: list[bytes]) -> None:
    """Whatever the lines of a CRI log contain, the agent finds the same time, stream, tag and text
    in each line as the regular expression for CRI lines."""
    lines = plain + others
    found = unwrap(CRI, pa.array(lines, pa.binary()))
    expected = [REFERENCE.fullmatch(line) for line in lines]
    assert found.is_good.tolist() == [match is not None for match in expected]
    for at, match in enumerate(expected):
        if match is not None:
            time, stream, tag, text = match.groups()
            assert found.times[at].as_py() == time
            assert found.streams[at].as_py() == stream
            assert found.texts[at].as_py() == (text or b"")
            assert bool(found.is_part[at]) == (tag == b"P")
