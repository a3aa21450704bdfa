"""Mutants of the rules by which a running agent takes changed settings."""

from mutants.mutant import Mutant

LOOP = "tests/unit/agent/loop/test_reload.py::"
RELOADER = "tests/unit/agent/reloading/test_reloader.py::"

MUTANTS = (
    Mutant(
        "a relative path of a schema begins at the current directory",
        "agent/configuration.py",
        "    folder = Path.cwd() if file is None else file.absolute().parent\n",
        "    folder = Path.cwd()\n",
        (
            "tests/unit/agent/test_formats.py::"
            "test_relative_paths_begin_at_the_file_that_names_them",
        ),
    ),
    Mutant(
        "a SIGHUP that comes early is lost",
        "agent/program.py",
        "    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})\n",
        "",
        (
            "tests/unit/agent/reloading/test_reloader.py::"
            "test_a_hangup_that_comes_early_is_a_request",
        ),
    ),
    Mutant(
        "files keep the number of their source when sources change their order",
        "agent/files/tracking.py",
        """            tracked.source = source_of(tracked, self.sources)
            tracked.long_line = None""",
        """            tracked.long_line = None""",
        (f"{LOOP}test_the_unread_bytes_of_a_removed_source_are_declared",),
    ),
    Mutant(
        "rotated files keep the number of their source when another source goes",
        "agent/files/rotations.py",
        """                name: member._replace(source=index)
                for name, member in place.members.items()
                if (index""",
        """                name: member._replace(source=member.source)
                for name, member in place.members.items()
                if (index""",
        (f"{LOOP}test_rotated_files_keep_their_source_when_another_source_goes",),
    ),
    Mutant(
        "a reload does not forget the rejected lines of the sources that it removes",
        "agent/loop/loop.py",
        "take_topics(each.data.topic for each in destinations)",
        "take_topics(self._topics.names)",
        (f"{LOOP}test_a_removed_source_is_no_longer_reported",),
    ),
    Mutant(
        "lines of a removed source that are still sent make the agent report its topic",
        "agent/batches/rejections.py",
        "in sorted(self._topics.keys() & self._present):",
        "in sorted(self._topics.keys()):",
        (
            "tests/unit/agent/batches/test_rejections.py::"
            "test_a_topic_without_a_source_is_no_longer_named",
        ),
    ),
    Mutant(
        "the agent never forgets the rejected lines of a topic that no source has any more",
        "agent/batches/rejections.py",
        "            elif topic not in self._present:\n                del self._topics[topic]\n",
        "",
        (
            "tests/unit/agent/batches/test_rejections.py::"
            "test_topics_without_a_source_are_forgotten",
        ),
    ),
    Mutant(
        "a reload forgets the topics that only the old settings name",
        "agent/loop/loop.py",
        """        self._topics.keep_former(self._sealed)
""",
        "",
        (f"{LOOP}test_a_removed_source_that_is_read_to_its_end_is_closed",),
    ),
    Mutant(
        "what was promised before a reload loses its recipe",
        "agent/loop/loop.py",
        """        self._first = changes
        self.update(destinations)
""",
        """        changes.forget_intents(range(1000))
        self._first = changes
        self.update(destinations)
""",
        (f"{LOOP}test_a_promise_that_is_on_its_way_is_kept_as_it_was_made",),
    ),
    Mutant(
        "a new topic has no floor",
        "agent/loop/loop.py",
        """        self._progress.take_floors(ends, changes)
""",
        "",
        (f"{LOOP}test_the_floor_of_a_new_topic_is_its_present_end",),
    ),
    Mutant(
        "a reload takes a topic that was made again",
        "agent/loop/loop.py",
        """        if made_again := self._topics.made_again(destinations):
            return""",
        """        if (made_again := self._topics.made_again(destinations)) and not destinations:
            return""",
        (f"{LOOP}test_what_prevents_a_reload_is_said",),
    ),
    Mutant(
        "any setting may change while the agent runs",
        "agent/reloading/difference.py",
        """if not _is_reloadable(key)]""",
        """if not key]""",
        (f"{RELOADER}test_settings_that_need_a_restart_are_named",),
    ),
    Mutant(
        "a request that comes during a preparation is answered by it",
        "agent/reloading/reloader.py",
        """        answering, self._answering = self._answering, []
""",
        """        answering, self._answering = [*self._answering, *self._waiting], []
""",
        (f"{RELOADER}test_a_request_during_a_preparation_gets_another",),
    ),
    Mutant(
        "refused settings run",
        "agent/reloading/reloader.py",
        """        self._standing.refused(refusal.reason)
""",
        """        self._standing.refused(refusal.reason)
        self.settings = self.configuration.read()
""",
        (f"{RELOADER}test_a_refused_reload_changes_nothing",),
    ),
)
