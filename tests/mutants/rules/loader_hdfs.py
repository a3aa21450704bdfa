"""Mutants of the rules by which the loader reads and writes files on HDFS."""

from mutants.mutant import Mutant

FAILURES = "tests/unit/audit/output/test_hdfs_failures.py::test_each_failure_is_one_sentence"
WRITER = "tests/unit/loader/test_hdfs_writer.py::"

MUTANTS = (
    Mutant(
        "a file that only dead DataNodes have is taken for a damaged one",
        "audit/output/hdfs_failures.py",
        '    "All DataNodes failed": _Reason("no DataNode that has it answers", True),\n',
        '    "All DataNodes failed": _Reason("no DataNode that has it answers", False),\n',
        (FAILURES,),
    ),
    Mutant(
        "Java's stack is a part of the sentence",
        "audit/output/hdfs_failures.py",
        '        message = refusal[2].partition(r"\\n")[0]\n',
        "        message = refusal[2]\n",
        (FAILURES,),
    ),
    Mutant(
        "a dead DataNode that the NameNode chooses ends the load",
        "loader/store/hdfs_writer.py",
        "        for attempt in range(BEGINNINGS_MAX):\n",
        "        for attempt in range(BEGINNINGS_MAX - 1, BEGINNINGS_MAX):\n",
        (WRITER + "test_a_file_begins_again_where_its_data_node_does_not_answer",),
    ),
    Mutant(
        "a file that begins again begins with an old part",
        "loader/store/hdfs_writer.py",
        "                    self._file = self._created()\n",
        "                    pass\n",
        (WRITER + "test_a_file_begins_again_where_its_data_node_does_not_answer",),
    ),
    Mutant(
        "a NameNode that is away for a moment ends the load",
        "loader/store/hdfs_writer.py",
        "                    time.sleep(CREATION_PAUSE_S)\n",
        "                    raise\n",
        (WRITER + "test_a_file_begins_again_after_the_name_node_was_away_for_a_moment",),
    ),
    Mutant(
        "a load waits for a dead DataNode for longer and longer",
        "loader/store/hdfs_writer.py",
        "                    within_s = min(SYNC_S * 2 ** (syncs // SYNCS_ALIKE), LARGE_SYNC_S)\n",
        "                    within_s = SYNC_S * 2**syncs\n",
        (WRITER + "test_how_long_a_writer_waits_for_syncs_is_bounded",),
    ),
    Mutant(
        "a load waits for ever for a dead DataNode",
        "loader/store/hdfs_writer.py",
        "    thread.join(within_s)\n",
        "    thread.join()\n",
        (WRITER + "test_a_file_begins_again_where_its_sync_does_not_return",),
    ),
)
