"""Mutants of how the agent finds records in the bytes of files: byte order, byte order marks and
runs of NUL bytes."""

from mutants.mutant import Mutant

WIDE = "tests/unit/agent/parsing/test_wide_framing.py::"
HOLES = "tests/unit/agent/parsing/test_holes.py::"
UTF_16 = "tests/unit/agent/test_utf16.py::"
NUL_RUNS = "tests/unit/agent/test_nul_runs.py::"

MUTANTS = (
    Mutant(
        "the code units of all ranges begin with the first range",
        "agent/parsing/framing.py",
        """            units = self._units(data, begin, end)
            line_ends""",
        """            units = self._units(data, begin // 2 * 2 if self.unit > 1 else begin, end)
            line_ends""",
        (WIDE + "test_ranges_are_framed_together_as_each_by_itself",),
    ),
    Mutant(
        "a line feed counts although its bytes belong to two characters",
        "agent/parsing/framing.py",
        """        while (at := data.rfind(self._lf, 0, end)) >= 0 and at % self.unit:
""",
        """        while (at := data.rfind(self._lf, 0, end)) >= 0 and at % 1:
""",
        (WIDE + "test_however_the_bytes_arrive_the_lines_are_the_same",),
    ),
    Mutant(
        "the byte order is that of the source, not of the file",
        "agent/files/sources.py",
        "        return self.big_endian if self.big_endian is not None and is_big_endian else usual\n",
        "        return usual\n",
        (UTF_16 + "test_utf16_lines_are_delivered_however_they_are_written",),
    ),
    Mutant(
        "the byte order is decided before the mark is written",
        "agent/files/sources.py",
        "            if len(head) == 2:  # otherwise the mark may still be written\n",
        "            if head:\n",
        (UTF_16 + "test_half_a_mark_decides_nothing",),
    ),
    Mutant(
        "a byte order mark is taken off every range",
        "agent/batches/press.py",
        "for i, reading in enumerate(self.readings) if not reading.intent.first]",
        "for i, reading in enumerate(self.readings)]",
        (
            UTF_16 + "test_a_mark_in_the_middle_of_a_file_stays_in_the_text",
            UTF_16 + "test_a_utf8_mark_is_no_part_of_the_first_line",
        ),
    ),
    Mutant(
        "NUL bytes at the beginning of a line belong to the line",
        "agent/parsing/framing.py",
        "    is_hole = begins_line | ((end - first) * unit >= HOLE_BYTES)\n",
        "    is_hole = (end - first) * unit >= HOLE_BYTES\n",
        (HOLES + "test_holes_are_those_of_a_simple_program",),
    ),
    Mutant(
        "a hole counts as whole although more NUL bytes may follow",
        "agent/parsing/framing.py",
        "        is_over = end[-1] < len(units)  # no more NULs can belong to the hole\n",
        "        is_over = True\n",
        (HOLES + "test_what_follows_never_changes_a_hole",),
    ),
    Mutant(
        "a large hole takes the line behind it along",
        "agent/files/reading.py",
        """    if not is_hole:
        return lines.end_inside(piece)
""",
        """    if lines.unit:
        return lines.end_inside(piece)
""",
        (NUL_RUNS + "test_a_large_hole_is_one_rejected_range",),
    ),
    Mutant(
        "a hole may be a part of a record of several lines",
        "agent/parsing/multiline.py",
        "            joints.begins | hole | np.append(False, hole[:-1]),\n",
        "            joints.begins,\n",
        (HOLES + "test_a_hole_joins_no_record",),
    ),
)
