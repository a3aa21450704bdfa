"""Mutants of the rules by which the broker coordinates consumer groups. They concern generations,
members and committed offsets."""

from mutants.mutant import Mutant

_GROUP = "tests/unit/broker/groups/test_group.py"
_WINDOW = "tests/unit/broker/groups/test_join_window.py"
_COORDINATOR = "tests/unit/broker/groups/test_coordinator.py"
_JOB_QUEUE = "tests/unit/broker/groups/test_job_queue.py"
_CACHE = "tests/unit/broker/groups/test_cache.py"
_SESSION = "tests/unit/broker/coordination/test_session.py"
_RETENTION = "tests/unit/broker/groups/test_retention.py"

MUTANTS: tuple[Mutant, ...] = (
    # These mutants break the rules that say how long the broker keeps committed offsets. If a
    # topic's config retention.hold names a group, the broker waits longer before it deletes
    # segments that this group has not read. So it also keeps the group's offsets longer.
    Mutant(
        "the offsets of a group that holds a topic back go with the others",
        "broker/groups/retention.py",
        "now_ms - committed.time_ms >= max(retention_ms, holds.get(partition.topic, 0))",
        "now_ms - committed.time_ms >= retention_ms",
        (f"{_RETENTION}::test_what_holds_a_topic_back_is_kept_as_long_as_it_may",),
    ),
    Mutant(
        "an offset that was committed lately goes with its group",
        "broker/groups/retention.py",
        "now_ms - committed.time_ms >= max(",
        "now_ms - record.empty_since_ms >= max(",
        (f"{_RETENTION}::test_time_runs_from_the_last_member_and_the_last_commit",),
    ),
    Mutant(
        "registrations in ZooKeeper since the last look do not start a group's time again",
        "broker/groups/retention.py",
        "not record.empty_since_ms or record.ids_version != looked.ids_version:",
        "not record.empty_since_ms:",
        (f"{_RETENTION}::test_a_group_that_was_never_seen_empty_is_marked_first",),
    ),
    # These mutants concern generations, zombie members and static members.
    Mutant(
        "a commit of an older generation is taken",
        "broker/groups/group.py",
        "if error is None and generation != self.generation:",
        "if error is None and generation > self.generation:",
        (f"{_GROUP}::test_zombies_are_refused",),
    ),
    Mutant(
        "a generation is not looked at when its members commit",
        "broker/groups/group.py",
        """        error = self._refusal(member_id, instance_id, generation)
        if error is not None:
            return error
        self._renew(now, self.roster.members[member_id])
        # Until""",
        """        error = self.roster.refusal(member_id, instance_id)
        if error is not None:
            return error
        self._renew(now, self.roster.members[member_id])
        # Until""",
        (f"{_GROUP}::test_zombies_are_refused",),
    ),
    Mutant(
        "a generation commits before its assignment is stored",
        "broker/groups/group.py",
        "return None if self._is_assigned else ErrorCode.REBALANCE_IN_PROGRESS",
        "return None",
        (f"{_GROUP}::test_a_generation_that_was_never_assigned_commits_nothing",),
    ),
    Mutant(
        "a new generation takes over that the one before was assigned",
        "broker/groups/group.py",
        """        self._is_assigned = False
        self.protocol = choose""",
        """        self.protocol = choose""",
        (f"{_GROUP}::test_commits_around_a_rebalance",),
    ),
    Mutant(
        "a simple consumer commits while the group has members",
        "broker/groups/group.py",
        "if generation < 0 and self.state is GroupState.EMPTY:",
        "if generation < 0 and not member_id:",
        (f"{_GROUP}::test_zombies_are_refused",),
    ),
    Mutant(
        "an assignment is told before it is stored",
        "broker/groups/group.py",
        """        self._storing = self._store()

    def _remove""",
        """        self._storing = self._store()
        self.stored(now, self._storing, None)

    def _remove""",
        (f"{_GROUP}::test_an_assignment_is_told_when_it_is_stored",),
    ),
    Mutant(
        "a static member that comes back is answered before its new id is stored",
        "broker/groups/group.py",
        "            self._held[self._store()] = (token, answer)\n",
        "            self._store()\n            self._answer(token, answer)\n",
        (f"{_GROUP}::test_a_static_member_comes_back_into_its_place",),
    ),
    Mutant(
        "a static member that is away in a rebalance loses its place at once",
        "broker/groups/group.py",
        "            if member.join is None and member.instance_id is None:\n",
        "            if member.join is None:\n",
        (f"{_GROUP}::test_a_static_member_away_keeps_its_place_in_a_rebalance",),
    ),
    Mutant(
        "an id that was given out is good for ever",
        "broker/groups/group.py",
        "given.items() if until <= now",
        "given.items() if until <= now - self._limits.session_timeout_max_s",
        (f"{_GROUP}::test_a_new_member_comes_back_with_the_id_that_it_is_given",),
    ),
    Mutant(
        "a generation begins without those who were given an id",
        "broker/groups/roster.py",
        "return not self.given and all(",
        "return all(",
        (f"{_GROUP}::test_who_was_given_an_id_is_waited_for",),
    ),
    Mutant(
        "the member that a crash may have replaced is a zombie",
        "broker/groups/roster.py",
        "unsure = current in self.unheard",
        "unsure = member_id in self.unheard",
        (f"{_GROUP}::test_a_member_replaced_before_a_crash_is_not_taken_for_a_zombie",),
    ),
    Mutant(
        "restored members have no time to be heard of",
        "broker/groups/group.py",
        """            self.roster.restore(record.members, record.leader, record.protocol_type)
            for member in self.roster:
                self._renew(now, member)
""",
        """            self.roster.restore(record.members, record.leader, record.protocol_type)
""",
        (f"{_GROUP}::test_a_restored_group_goes_on",),
    ),
    Mutant(
        "who waits for the answer of a join is out after a session timeout",
        "broker/groups/member.py",
        "return self.sync is not None or (self.join is not None and not self.is_new)",
        "return self.sync is not None",
        (f"{_GROUP}::test_who_waits_to_join_is_not_silent",),
    ),
    Mutant(
        "the protocol is what the first member likes best",
        "broker/groups/member.py",
        "return min(votes, key=lambda name: (-votes[name], name), default=None)",
        "return next(iter(votes), None)",
        (f"{_GROUP}::test_the_protocol_is_what_most_like_best_of_what_all_can",),
    ),
    Mutant(
        "nobody looks when an id that was given out is over",
        "broker/groups/group.py",
        "found = list(self.roster.given.values())\n",
        "found: list[float] = []\n",
        (f"{_GROUP}::test_the_timer_is_set_for_whatever_ends_first",),
    ),
    Mutant(
        "members that join and never sync are waited for without end",
        "broker/groups/group.py",
        """        if self._unsynced:
            found.append(self._sync_by)
        return min""",
        """        return min""",
        (f"{_GROUP}::test_the_timer_is_set_for_whatever_ends_first",),
    ),
    # These mutants concern how long a rebalance waits for members.
    Mutant(
        "who came once prolongs the delay again and again",
        "broker/groups/join_window.py",
        """        wait_s = min(self._delay_s, self._left_s)
        self._newcomers = False
""",
        """        wait_s = min(self._delay_s, self._left_s)
""",
        (f"{_WINDOW}::test_who_came_prolongs_the_delay_once",),
    ),
    Mutant(
        "the delay is prolonged beyond what the most patient member asks for",
        "broker/groups/join_window.py",
        "self._left_s = max(timeout_s - wait_s, 0.0)",
        "self._left_s = timeout_s",
        (f"{_WINDOW}::test_a_group_that_was_empty_waits_as_long_as_members_come",),
    ),
    # These mutants concern committed offsets.
    Mutant(
        "a commit is answered before ZooKeeper has it",
        "broker/groups/job_queue.py",
        "        gathered.committing.append(done)\n",
        "        done(None)\n",
        (f"{_JOB_QUEUE}::test_commits_of_many_groups_are_one_job",),
    ),
    Mutant(
        "the oldest of several commits of a partition is written",
        "broker/groups/job_queue.py",
        "            gathered.commits[group, partition] = offset\n",
        "            gathered.commits.setdefault((group, partition), offset)\n",
        (f"{_JOB_QUEUE}::test_the_newest_offset_of_a_partition_wins",),
    ),
    Mutant(
        "a commit that waits is written for the topic that was made again",
        "broker/groups/job_queue.py",
        "if self._topic_id(key[1].topic) == each.topic_id",
        "if self._topic_id(key[1].topic) is not None",
        (f"{_JOB_QUEUE}::test_offsets_of_a_topic_made_again_meanwhile_are_dropped",),
    ),
    Mutant(
        "a commit is of the topic that has the name when its group is read",
        "broker/groups/offsets.py",
        "            self._store(group_id, of_topics, reply)\n",
        "            self._store(group_id, self._of_topics(offsets), reply)\n",
        (f"{_COORDINATOR}::test_a_commit_is_of_the_topic_that_had_the_name_when_it_came",),
    ),
    Mutant(
        "the cache gives a topic that was made again the offsets of the one before",
        "broker/groups/cache.py",
        "if current[partition.topic] == each.topic_id",
        "if current[partition.topic] is not None",
        (f"{_CACHE}::test_a_topic_made_again_begins_without_offsets",),
    ),
    Mutant(
        "the cache takes the offsets of a commit for all of a group's",
        "broker/groups/cache.py",
        """        known = self._groups.get(group)
        if known is None:
            return
        self._bytes -=""",
        """        known = self._groups.setdefault(group, {})
        self._bytes -=""",
        (f"{_CACHE}::test_only_what_was_read_whole_is_known",),
    ),
    Mutant(
        "the cache keeps what it had of a group whose commit may have come through",
        "broker/groups/offsets.py",
        "self._groups.cache.drop(group_id)",
        "pass",
        (f"{_COORDINATOR}::test_what_a_commit_without_answer_came_to_is_read",),
    ),
    Mutant(
        "the offsets of a group without members are remembered",
        "broker/groups/offsets.py",
        "if hosted is not None and hosted.group.state is not GroupState.EMPTY:",
        "if hosted is not None:",
        (f"{_COORDINATOR}::test_offsets_of_a_group_without_members_are_read_each_time",),
    ),
    # These mutants break the rule that only one broker at a time coordinates a group.
    Mutant(
        "every broker coordinates groups",
        "broker/groups/hosting.py",
        "        elif not self.is_coordinator():\n            then(ErrorCode.NOT_COORDINATOR)\n",
        "",
        (f"{_COORDINATOR}::test_another_broker_s_groups_are_left_to_it",),
    ),
    Mutant(
        "a broker that lost the groups hosts one that it was reading",
        "broker/groups/hosting.py",
        "        elif not self.is_coordinator():\n"
        "            outcome = ErrorCode.NOT_COORDINATOR\n",
        "",
        (f"{_COORDINATOR}::test_another_broker_s_groups_are_left_to_it",),
    ),
    Mutant(
        "a former coordinator keeps its members",
        "broker/groups/hosting.py",
        "        if not self.is_coordinator():\n            self.hand_over()\n",
        "        if not self.hosted:\n            self.hand_over()\n",
        (f"{_COORDINATOR}::test_a_former_coordinator_sends_the_members_away",),
    ),
    Mutant(
        "a former coordinator stores generations",
        "broker/groups/hosting.py",
        "        return not self._stopping and self.is_coordinator()\n",
        "        return not self._stopping\n",
        (f"{_COORDINATOR}::test_a_former_coordinator_stores_nothing",),
    ),
    Mutant(
        "every broker deletes old offsets",
        "broker/groups/retention.py",
        "        if not self._looking and self._groups.is_coordinator():\n",
        "        if not self._looking:\n",
        (f"{_RETENTION}::test_only_the_coordinator_deletes_offsets",),
    ),
    Mutant(
        "a controller that is cut off goes on coordinating",
        "broker/groups/coordinator.py",
        "            return NO_LEADER if found == broker_id and is_cut_off() else found\n",
        "            return found\n",
        (f"{_COORDINATOR}::test_a_controller_that_is_cut_off_coordinates_nothing",),
    ),
    Mutant(
        "work of a lost session is done in the next one",
        "broker/coordination/session.py",
        "            if self._sessions is None or self._sessions == sessions:\n",
        "            if sessions >= 0:\n",
        (f"{_SESSION}::test_a_lost_session_is_in_doubt_at_once_and_its_jobs_are_not_done",),
    ),
    Mutant(
        "a connection that is back ends the doubt before the catalog is read",
        "broker/coordination/session.py",
        "        if interruptions == self._interruptions and self.is_connected:\n",
        "        if interruptions or self.is_connected:\n",
        (f"{_SESSION}::test_a_broker_doubts_before_zookeeper_may_have_ended_its_session",),
    ),
    Mutant(
        "a look for old offsets goes on after the coordinator changed",
        "broker/groups/retention.py",
        "        while self._left and groups.is_coordinator():\n",
        "        while self._left:\n",
        (f"{_RETENTION}::test_a_look_ends_when_another_broker_coordinates_the_groups",),
    ),
)
