"""Mutants of the mirror. They concern gaps, the topics that the mirror follows, the positions that
the mirror commits at the source, and the check that the mirror's log continues the source's log."""

from mutants.mutant import Mutant

_FOLLOWER = "tests/unit/broker/mirror/test_follower.py"
_SOURCE = "tests/unit/broker/mirror/test_source.py"
_PROGRESS = "tests/unit/broker/mirror/test_progress.py"
_SELECTION = "tests/unit/broker/mirror/test_selection.py"

MUTANTS: tuple[Mutant, ...] = (
    # Before a mirror continues, it must compare its last batch with the source's batch at the same
    # offset. These mutants break this rule.
    Mutant(
        "the batch below is compared by its offsets alone",
        "broker/mirror/follower.py",
        "            if Below.of(found) != self._below:\n",
        "            if Below.of(found)[:2] != self._below[:2]:\n",
        (f"{_FOLLOWER}::test_another_crc_below_stops_the_partition",),
    ),
    Mutant(
        "the batch below is compared by its CRC, and not by its leader epoch",
        "broker/mirror/follower.py",
        "            if Below.of(found) != self._below:\n",
        "            if found.crc != self._below.crc:\n",
        (f"{_FOLLOWER}::test_another_epoch_below_stops_the_partition",),
    ),
    Mutant(
        "a mirror seeks its end, and not the batch below it",
        "broker/mirror/follower.py",
        "            return self._below.last_offset\n        return self.log_end",
        "            return self._below.last_offset + 1\n        return self.log_end",
        (f"{_FOLLOWER}::test_the_batch_below_is_compared_and_not_copied_again",),
    ),
    Mutant(
        "a mirror goes on behind a source that has diverged",
        "broker/mirror/follower.py",
        "        self.phase, self.reason = Phase.STOPPED, reason\n",
        "        self.phase, self.reason, self._below = Phase.CHECKING, reason, None\n",
        (f"{_FOLLOWER}::test_another_crc_below_stops_the_partition",),
    ),
    Mutant(
        "an interruption starts a mirror again that was stopped",
        "broker/mirror/follower.py",
        "        if self.phase is not Phase.STOPPED:\n            self.phase, self._source",
        "        if self.phase is not Phase.CHECKING:\n            self.phase, self._source",
        (f"{_FOLLOWER}::test_a_stopped_partition_stays_stopped",),
    ),
    Mutant(
        "what comes on another connection is taken for what follows",
        "broker/mirror/source.py",
        "elif each.follower.phase is Phase.FOLLOWING and not fetched.unbroken:",
        "elif each.follower.phase is Phase.NAMING and not fetched.unbroken:",
        (f"{_SOURCE}::test_what_came_just_before_the_connection_ended_is_followed_by_a_check",),
    ),
    Mutant(
        "a source that ends below the mirror is waited for",
        "broker/mirror/follower.py",
        "        if self.log_end > high_watermark:\n",
        "        if self.log_end > high_watermark and log_start > high_watermark:\n",
        (f"{_FOLLOWER}::test_a_source_that_ends_below_us_has_lost_something",),
    ),
    Mutant(
        "a leader epoch that goes back is copied",
        "broker/mirror/follower.py",
        "            if header.base_offset != end or header.leader_epoch < epoch:\n",
        "            if header.base_offset != end:\n",
        (f"{_FOLLOWER}::test_an_epoch_that_goes_back_stops_the_partition",),
    ),
    Mutant(
        "the next append takes it that the log ends where the last one left it",
        "broker/mirror/source.py",
        "            elif refusal or each.was_taken_back:\n",
        "            elif refusal:\n",
        (f"{_SOURCE}::test_a_write_that_is_taken_back_is_fetched_again",),
    ),
    # These mutants break the rule that the mirror records a gap before it copies any batch after
    # the gap.
    Mutant(
        "offsets that are missing between two batches are passed over",
        "broker/mirror/follower.py",
        "            if header.base_offset != end or header.leader_epoch < epoch:\n",
        "            if header.base_offset < end or header.leader_epoch < epoch:\n",
        (f"{_FOLLOWER}::test_offsets_expired_in_the_source_are_named_before_anything_is_copied",),
    ),
    Mutant(
        "what lies behind a gap is fetched while the gap is being written down",
        "broker/mirror/source.py",
        "            self._local.name_gap(topic, gap, named)\n",
        """            named(None)
            self._local.name_gap(topic, gap, lambda _error: None)
""",
        (f"{_SOURCE}::test_a_gap_is_named_before_anything_behind_it_is_copied",),
    ),
    Mutant(
        "a gap that could not be written down is passed over",
        "broker/mirror/source.py",
        "            if error is None:\n                _log.error(",
        "            if not isinstance(error, TooManyGaps):\n                _log.error(",
        (
            f"{_SOURCE}::test_a_gap_whose_naming_was_cut_short_is_named_once",
            _SOURCE,
        ),
    ),
    Mutant(
        "behind a hole nothing is compared any more",
        "broker/mirror/follower.py",
        "        if self._has_expired:\n            self._below = None\n",
        "        self._below = None\n",
        (f"{_FOLLOWER}::test_what_lies_below_a_hole_is_compared_again_behind_it",),
    ),
    Mutant(
        "the source's log start is taken for the end of the gap, though it lies inside a batch",
        "broker/mirror/follower.py",
        """            self._source_start = log_start
            return LookAgain()""",
        """            return self._name_gap(log_start, EXPIRED)""",
        (f"{_FOLLOWER}::test_a_log_start_inside_a_batch_makes_the_gap_smaller",),
    ),
    Mutant(
        "gaps that do not meet cover what lies between them",
        "skidway/kafka/gaps.py",
        "        if gap.first > first:\n            break\n",
        "        if gap.first >= end:\n            break\n",
        (f"{_SELECTION}::test_offsets_are_named_if_gaps_cover_all_of_them",),
    ),
    # These mutants concern the topics that the mirror follows.
    Mutant(
        "a topic that was made again in the source is gone on with",
        "broker/mirror/rounds.py",
        "    elif _differ(here.configs.get(SOURCE_TOPIC_ID), _id(topic)):\n",
        "    elif not _id(topic) and here.configs.get(SOURCE_TOPIC_ID):\n",
        (f"{_SOURCE}::test_a_topic_made_again_stops_by_name_and_nothing_is_mixed",),
    ),
    Mutant(
        "another cluster under the same address is followed",
        "broker/mirror/rounds.py",
        "return bool(known) and bool(told) and known != told",
        "return bool(known) and not told",
        (f"{_SOURCE}::test_another_cluster_under_the_same_address_is_not_followed",),
    ),
    Mutant(
        "a mirror in the source is mirrored again",
        "broker/mirror/rounds.py",
        "elif not is_mirror and topic.partitions and name not in busy:",
        "elif topic.partitions and name not in busy:",
        (f"{_SOURCE}::test_mirrors_are_not_mirrored",),
    ),
    Mutant(
        "batches are appended without a look at their CRC",
        "broker/mirror/source.py",
        "            check(batch, 0, header)\n",
        "",
        (f"{_SOURCE}::test_a_batch_damaged_on_the_way_is_never_appended",),
    ),
    Mutant(
        "what came in the same turn is taken, though another place was sought",
        "broker/mirror/source.py",
        "        if each is None or fetched.tp in self._moved:\n",
        "        if each is None:\n",
        (f"{_SOURCE}::test_what_came_in_one_turn_behind_a_seek_is_not_taken",),
    ),
    Mutant(
        "bounds are believed that were asked for before an interruption",
        "broker/mirror/source.py",
        "return not self._is_current(each) or each.attempt != attempt\n",
        "return not self._is_current(each)\n",
        (f"{_SOURCE}::test_bounds_that_come_after_an_interruption_decide_nothing",),
    ),
    # These mutants concern the positions that the mirror reports to its source.
    Mutant(
        "the source is told what was copied, before it is on disk",
        "broker/mirror/source.py",
        "            tp: each.replica.offset\n",
        "            tp: each.follower.log_end\n",
        (f"{_PROGRESS}::test_the_source_is_told_what_is_on_disk_here",),
    ),
    Mutant(
        "a partition that is stopped goes on to tell how far it is",
        "broker/mirror/source.py",
        "            if each.follower.phase is Phase.FOLLOWING and each.replica.offset\n",
        "            if each.replica.offset\n",
        (f"{_PROGRESS}::test_a_partition_that_is_stopped_tells_nothing",),
    ),
    # These mutants concern topics that the mirror leaves out because of their names. The mirror
    # must report such a topic, unless the topic is itself the mirror of another topic.
    Mutant(
        "an ordinary topic with the name of a mirror is left out without a word",
        "broker/mirror/rounds.py",
        "    for name, reason in sorted(mistakable.items()):\n",
        "    for name, reason in ():\n",
        (f"{_SOURCE}::test_an_ordinary_topic_with_the_name_of_a_mirror_is_named",),
    ),
    Mutant(
        "a mirror of our own topic is reported as left out",
        "broker/mirror/rounds.py",
        "    elif not is_mirror:\n        made.left_out[topic.name] = reason\n",
        "    else:\n        made.left_out[topic.name] = reason\n",
        (f"{_SOURCE}::test_an_ordinary_topic_with_the_name_of_a_mirror_is_named",),
    ),
)
