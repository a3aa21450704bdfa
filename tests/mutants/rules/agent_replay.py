"""Mutants of the rules by which `skidway agent replay` sends rejected lines again."""

from mutants.mutant import Mutant

COMMAND = "tests/unit/agent/commands/test_replaying.py::"
ROUND = "tests/unit/agent/test_replay_round.py::"
PARSER = "tests/unit/agent/parsing/test_replayed.py::"

MUTANTS = (
    Mutant(
        "a rejected line is replayed by each call",
        "agent/commands/replaying.py",
        """[each for each in envelopes if each.key not in known[topic]]""",
        """[each for each in envelopes if each.line not in known[topic]]""",
        (f"{COMMAND}test_a_rejected_line_is_replayed_once",),
    ),
    Mutant(
        "a file of replayed lines has its name before it is whole",
        "agent/commands/replaying.py",
        """        write_atomically(directory / name, data)
""",
        """        (directory / name).write_bytes(data)
        write_atomically(directory / name, data)
""",
        (f"{COMMAND}test_a_killed_call_has_replayed_nothing_or_all",),
    ),
    Mutant(
        "a line that was cut is replayed as if it were whole",
        "agent/commands/replaying.py",
        """    if json.loads(text).get("is_cut"):
""",
        """    if json.loads(text).get("is_whole"):
""",
        (f"{COMMAND}test_lines_that_cannot_be_replayed_are_named",),
    ),
    Mutant(
        "a line that is rejected again forgets where it was rejected first",
        "agent/batches/press.py",
        """            original=envelope.original,
""",
        """            original=envelope.key,
""",
        (f"{PARSER}test_a_repaired_line_that_is_rejected_again_keeps_its_first_origin",),
    ),
    Mutant(
        "the lines of a repaired record become records",
        "agent/batches/parsers.py",
        """    if recipe.is_replay:
        return LineFramer()""",
        """    if recipe.is_replay and recipe.multiline is None:
        return LineFramer()""",
        (f"{PARSER}test_records_of_several_lines_stay_whole",),
    ),
    Mutant(
        "a big-endian line is replayed in the other byte order",
        "agent/parsing/byte_order.py",
        """    if not text.startswith(_MARKS[own]):
""",
        """    if text.startswith(b"?"):
""",
        (f"{ROUND}test_an_exported_line_becomes_the_row_of_its_text",),
    ),
    Mutant(
        "the record of a UTF-16 line does not say its byte order",
        "agent/parsing/byte_order.py",
        """    return mark_of(encoding) + text if encoding in WIDE else text
""",
        """    return text
""",
        (f"{ROUND}test_an_exported_line_becomes_the_row_of_its_text",),
    ),
    Mutant(
        "an edited line is UTF-8 in every source",
        "agent/parsing/replayed.py",
        """        if not self.is_text:
""",
        """        if self.line is not None:
""",
        (f"{ROUND}test_an_edited_line_is_text",),
    ),
    Mutant(
        "a masked line is UTF-8 in every source",
        "agent/shaping/rejected_text.py",
        """            line = masked.encode(self._encoding)
""",
        """            return masked.encode()
""",
        (f"{ROUND}test_an_exported_line_becomes_the_row_of_its_text",),
    ),
    Mutant(
        "NUL bytes in place of a line are replayed as an empty line",
        "schemas/consuming/rejected_lines.py",
        """ or document["reason"] == NUL_BYTES:
""",
        """:
""",
        (f"{ROUND}test_what_is_no_whole_line_is_not_replayed",),
    ),
    Mutant(
        "a line that was cut by a byte looks whole",
        "agent/batches/rejected.py",
        """max(min(limit, line.length - ENDS_MAX - 1), 0)]
""",
        """limit]
""",
        (f"{ROUND}test_a_line_that_does_not_fit_looks_cut",),
    ),
)
