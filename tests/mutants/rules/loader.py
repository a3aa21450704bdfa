"""The loader: plan, decode, write, commit."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a new output begins with epoch 1, whatever was heard of it",
        "loader/topic_load.py",
        "newest.epoch if newest else parts.feed.next_epoch(producer)",
        "newest.epoch if newest else 1",
        (
            "tests/unit/loader/test_epochs.py::"
            "test_an_output_that_was_removed_is_never_complete_with_less",
        ),
    ),
    Mutant(
        "a compacted batch is loaded as if nothing were missing",
        "loader/slices.py",
        "if not header.is_control and header.count != header.last_offset_delta + 1:",
        "if False:",
        ("tests/unit/loader/test_slices.py::test_a_compacted_batch_ends_the_range_by_name",),
    ),
    Mutant(
        "names of staged files are not synced before the manifest",
        "loader/commit.py",
        "    yield Sync((manifest.staging,))\n",
        "",
        ("tests/unit/loader/test_commit.py",),
    ),
)
