"""Mutants of the commands that tell what happened to a single line, and of those that compare lines
with records."""

from mutants.mutant import Mutant

_TRACE = "tests/unit/audit/tracing/test_trace.py::"
_FIND = "tests/unit/audit/tracing/test_find.py::"
_COMPARE = "tests/unit/audit/comparison/test_matching.py::"

MUTANTS = (
    Mutant(
        "a tier that was not looked at counts as a tier that has the line",
        "audit/tracing/fates.py",
        "return bool(fates) and all(x.state in HAS_IT for x in fates if x.tier != HOST)",
        "return bool(fates) and first_without(fates) is None",
        (f"{_TRACE}test_a_tier_that_was_not_looked_at_is_no_proof",),
    ),
    Mutant(
        "a record at the same offset of a mirror is taken for the line's record unseen",
        "audit/tracing/trace.py",
        "if found.origin != record.origin or (found.origin and not is_at(found.origin, point)):",
        "if found.offset != record.offset:",
        (f"{_TRACE}test_a_line_that_a_tier_lacks",),
    ),
    Mutant(
        "records older than their file's announcement are not looked for",
        "audit/tracing/trace.py",
        "    for ranges in (later, earlier):\n",
        "    for ranges in (later,):\n",
        (f"{_TRACE}test_a_line_before_the_announcement_is_found_too",),
    ),
    Mutant(
        "a producer id of one topic says whose batches of another topic are skipped",
        "audit/tracing/log_search.py",
        "producer = (topic, header.producer_id)",
        'producer = ("", header.producer_id)',
        (f"{_FIND}test_a_producer_id_belongs_to_one_topic_of_the_search",),
    ),
    Mutant(
        "batches without producer id are skipped as their first one was",
        "audit/tracing/log_search.py",
        "        if header.producer_id != NO_PRODUCER_ID:\n            self._agents",
        "        if header.producer_id >= NO_PRODUCER_ID:\n            self._agents",
        (f"{_FIND}test_batches_without_producer_id_are_always_looked_at",),
    ),
    Mutant(
        "a line of the file from before the time span is called missing",
        "audit/tracing/find.py",
        "        old = self._older(cluster, earlier, search, set(points) - matched.keys())\n",
        "        old = set[Point]()\n",
        (f"{_FIND}test_lines_before_the_time_span_are_left_out",),
    ),
    Mutant(
        "a search notes any number of lines",
        "audit/tracing/find.py",
        "        if len(self._known) >= HITS_MAX:\n",
        "        if len(self._known) >= 1 << 62:\n",
        (f"{_FIND}test_a_text_of_too_many_lines_is_refused",),
    ),
    Mutant(
        "a byte past a declared loss counts as lost",
        "audit/evidence/line_evidence.py",
        "(self.end is None or position < self.end)",
        "(self.end is None or position <= self.end)",
        (f"{_TRACE}test_a_line_that_was_declared_lost",),
    ),
    Mutant(
        "the rest of a rotated file is called not shipped yet for ever",
        "audit/comparison/matching.py",
        "        fates[last:] = _NUMBERS[Fate.MISSING if is_passed else Fate.NOT_YET]\n",
        "        fates[last:] = _NUMBERS[Fate.NOT_YET]\n",
        (f"{_COMPARE}test_the_rest_of_a_rotated_file_is_missing",),
    ),
    Mutant(
        "lines whose records were not read are called missing",
        "audit/comparison/matching.py",
        "    before = Fate.MISSING if is_whole else Fate.NOT_COMPARED\n",
        "    before = Fate.MISSING\n",
        (f"{_COMPARE}test_lines_before_the_records_that_were_read_are_not_compared",),
    ),
    Mutant(
        "one record stands for all equal lines",
        "audit/comparison/matching.py",
        "line = next((each for each in fitting if not self.counts[each]), fitting[0])",
        "line = fitting[0]",
        (f"{_COMPARE}test_equal_lines_are_counted",),
    ),
    Mutant(
        "a record of another file with the same text and offset stands for a line",
        "audit/comparison/matching.py",
        "if path is None or any(may_have_been(each, path) for each in self.files):",
        "if True:",
        (f"{_COMPARE}test_records_of_others_are_left_out",),
    ),
    Mutant(
        "a changed line is called missing",
        "audit/comparison/matching.py",
        "    join.changes()\n",
        "",
        (f"{_COMPARE}test_a_changed_line_is_neither_missing_nor_unknown",),
    ),
    Mutant(
        "files of which nothing was shipped are good",
        "audit/comparison/reports.py",
        "    return compared > 0 and not any(",
        "    return compared >= 0 and not any(",
        (f"{_COMPARE}test_records_of_others_are_left_out",),
    ),
)
