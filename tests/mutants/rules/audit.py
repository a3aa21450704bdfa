"""Counters, the collector and the verdict."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a counter's progress is durable before the deltas that stand for it",
        "audit/counter_state.py",
        """            self._save_progress(progress)
            database.executemany(
                "INSERT OR""",
        """            self._save_progress(progress)
            database.execute("COMMIT")
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR""",
        (
            "tests/unit/audit/test_counter_state.py::"
            "test_a_commit_is_there_whole_or_not_at_all_wherever_the_program_ends",
        ),
    ),
    Mutant(
        "a heartbeat overtakes the messages that it counts as said",
        "audit/publisher.py",
        "if self._producer.pending_count or not self._publisher.is_idle:",
        "if self._producer.pending_count:",
        (
            "tests/unit/audit/test_publisher.py::"
            "test_a_heartbeat_waits_until_everything_that_it_counts_as_said_is_published",
        ),
    ),
)
