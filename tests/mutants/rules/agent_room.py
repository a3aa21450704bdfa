"""Mutants of the rule that other topics have room even if the brokers acknowledge no records of one
topic."""

from mutants.mutant import Mutant

HELD_BACK = "tests/unit/agent/loop/test_held_back.py::"
ROOM = "tests/unit/agent/values/test_room.py::"

MUTANTS = (
    Mutant(
        "a topic that is not acknowledged takes all of buffer.memory",
        "agent/values/room.py",
        "        return self._held[topic] < self._free\n",
        "        return self._free > 0\n",
        (
            f"{HELD_BACK}test_a_topic_that_is_not_acknowledged_stops_no_other_topic",
            f"{ROOM}test_what_a_turn_takes_counts_at_once",
        ),
    ),
    Mutant(
        "what a turn has taken counts only when its batches are made",
        "agent/values/room.py",
        "        self._free -= size\n",
        "",
        (f"{ROOM}test_what_a_turn_takes_counts_at_once",),
    ),
    Mutant(
        "a batch that came back counts no more",
        "agent/delivery/outbound.py",
        """        for parcel in again:
            self._held[parcel.topic] += parcel.encoded.size_bytes
""",
        "",
        (
            "tests/unit/agent/delivery/test_outbound.py::"
            "test_the_bytes_of_a_topic_are_counted_until_brokers_have_answered",
        ),
    ),
    Mutant(
        "the files of a topic without room keep the loop busy",
        "agent/files/reading.py",
        """                self._held_back.setdefault(topic, {})[tracked.file] = tracked
""",
        """                later.append(tracked)
""",
        (f"{HELD_BACK}test_a_held_back_file_does_not_keep_the_loop_busy",),
    ),
    Mutant(
        "files that were held back are never read again",
        "agent/loop/loop.py",
        "        self.reader.go_on(room)\n",
        "",
        (f"{HELD_BACK}test_a_topic_that_is_not_acknowledged_stops_no_other_topic",),
    ),
    Mutant(
        "the intents of a topic that is not acknowledged fill buffer.memory after a restart",
        "agent/delivery/replay.py",
        "            if room.has(topic):\n",
        "            if topic or room:\n",
        (f"{HELD_BACK}test_after_a_restart_its_intents_stop_no_other_topic",),
    ),
    Mutant(
        "intents of a file that could not be opened come after those that were held back",
        "agent/delivery/replay.py",
        "self._held_back.get(self._topic(intent), self._waiting).appendleft(intent)",
        "self._waiting.appendleft(intent)",
        (f"{HELD_BACK}test_intents_of_an_unreadable_file_and_of_a_full_topic_stay_in_order",),
    ),
    Mutant(
        "intents of a file that could not be opened come last",
        "agent/delivery/replay.py",
        "self._held_back.get(self._topic(intent), self._waiting).appendleft(intent)",
        "self._waiting.append(intent)",
        (f"{HELD_BACK}test_intents_of_an_unreadable_file_and_of_a_full_topic_stay_in_order",),
    ),
    Mutant(
        "missing records are sent though their topic has no room",
        "agent/delivery/inquiry.py",
        """            if not room.has(self._topic(asked)):
                stuck.add(file)
""",
        "",
        (f"{HELD_BACK}test_what_is_sent_after_a_search_leaves_room_too",),
    ),
    Mutant(
        "the search of a topic without room delays the next search",
        "agent/delivery/inquiry.py",
        "            is_stuck = each.intent.file in stuck or not room.has(self._topic(each))\n",
        "            is_stuck = True\n",
        (f"{HELD_BACK}test_what_is_sent_after_a_search_leaves_room_too",),
    ),
    Mutant(
        "/health does not say what is held back",
        "agent/program.py",
        "        detail |= self._held_back() if troubles else {}\n",
        "",
        (
            "tests/unit/agent/test_health.py::test_a_topic_that_is_held_back_is_named",
            "tests/unit/agent/test_health.py::test_a_full_buffer_is_named",
        ),
    ),
)
