"""Counts and logs what happens in the agent. The other modules report each event to this module by
calling a function that is named after the event.

This module logs no entry for a single record or batch, because the agent's own log may be one of
the files that the agent tails. The label `topic` of metrics and entries is always the data topic,
even for rejected lines, which go to `<topic>.rejected`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import Counter, Gauge, Histogram

from skidway import log
from skidway.agent.batches.press import Pressed
from skidway.agent.batches.rejections import Untold
from skidway.agent.values.labels import Unlabelled, Unreadable
from skidway.agent.values.set_apart import SetApart, Unseen
from skidway.agent.values.source_files import RefusedFile
from skidway.audit.topic.messages import Certainty
from skidway.cli.moments import shown

NAMES_MAX = 5
"""A log entry names at most this many partitions."""

_log = log.get(__name__)

_RECORDS = Counter("skidway_agent_records_total", "Records made of lines, rejects not among them.")
_REJECTED_LINES = Counter(
    "skidway_agent_rejected_lines_total", "Lines for <topic>.rejected.", ["topic", "reason"]
)
_REJECTED_BYTES = Counter(
    "skidway_agent_rejected_bytes_total", "Their bytes in the files.", ["topic", "reason"]
)
_FILTERED_RECORDS = Counter(
    "skidway_agent_filtered_records_total",
    "Records that a rule of shape left out.",
    ["topic", "rule"],
)
_FILTERED_BYTES = Counter(
    "skidway_agent_filtered_bytes_total", "Their bytes in the files.", ["topic", "rule"]
)
_REPLACED = Counter(
    "skidway_agent_replaced_lines_total",
    "Lines delivered with U+FFFD in place of what is not UTF-8 (on_error: replace).",
    ["topic"],
)
_UNREAD_TIMES = Counter(
    "skidway_agent_unread_times_total",
    "Records without a time that could be read; they got the time of reading.",
    ["topic"],
)
_PIECES = Counter(
    "skidway_agent_record_pieces_total",
    "Records that are only a part of what the source's multiline settings call a record.",
    ["topic"],
)
_UNBELIEVED = Counter(
    "skidway_agent_unbelieved_times_total",
    "Records whose own time was over an hour ahead, or before 1970; they got the time of reading.",
)
_COLOURED = Counter(
    "skidway_agent_coloured_lines_total",
    "Lines from which codes for terminals were taken (colours: strip).",
    ["topic"],
)
_FIELDLESS = Counter(
    "skidway_agent_fieldless_members_total",
    "Members or keys of lines that are left out, because the schema has no field for them.",
    ["topic"],
)
_BATCHES = Counter("skidway_agent_acknowledged_batches_total", "Batches acknowledged.")
_SETTLED = Counter("skidway_agent_settled_bytes_total", "Bytes of files passed by the checkpoint.")
_SKIPPED = Counter(
    "skidway_agent_skipped_bytes_total",
    "Bytes that were there when the agent first looked, and are skipped (start_at: end).",
    ["topic"],
)
_IGNORED = Gauge(
    "skidway_agent_ignored_files", "Files that are not read (ignore.older.ms).", ["topic"]
)
_IGNORED_BYTES = Gauge(
    "skidway_agent_ignored_bytes",
    "Their bytes; those of compressed files that were not opened count as none.",
    ["topic"],
)
_UNLABELLED = Counter(
    "skidway_agent_unlabelled_files_total",
    "Files read without labels, because the file of the setting labels does not name their pod.",
    ["topic"],
)
_LABELS_UNREADABLE = Gauge(
    "skidway_agent_unreadable_label_files", "Files of the setting labels that cannot be read."
)
_SET_APART_RANGES = Counter(
    "skidway_agent_set_apart_ranges_total", "Ranges lost or uncertain.", ["topic", "certainty"]
)
_SET_APART_BYTES = Counter(
    "skidway_agent_set_apart_bytes_total",
    "Their bytes; of a range whose end nobody saw, as many as were seen.",
    ["topic", "certainty"],
)
_SET_APART_LINES = Counter(
    "skidway_agent_set_apart_lines_total",
    "Lines of such ranges, where known: records that a broker refused.",
    ["topic", "certainty"],
)
_PENDING = Gauge(
    "skidway_agent_pending_bytes",
    "Bytes of files that brokers have not acknowledged, and that are not set apart.",
)
_FILES = Gauge("skidway_agent_open_file_ids", "File ids that may still be read.")
_UNREADABLE = Gauge(
    "skidway_agent_unreadable_paths", "Paths that cannot be read; they hold seals back."
)
_FILELESS = Gauge(
    "skidway_agent_sources_without_files",
    "Sources that match no file now, although their files should be there (optional is not set).",
    ["topic"],
)
_COMMIT = Histogram(
    "skidway_agent_commit_seconds",
    "How long a transaction of the state took.",
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)
_REFUSED_FILES = Gauge(
    "skidway_agent_refused_sources_files", "Files of sources.dir that the agent refuses."
)
_CONFIGURATION = Gauge(
    "skidway_agent_configuration_differs_since_seconds",
    "Unix time since when the files of the configuration say something else than what runs; 0 if"
    " they say the same.",
)
_RELOADS = Counter(
    "skidway_agent_reloads_total", "Reloads of the configuration: taken, refused.", ["outcome"]
)
_FULL = Counter("skidway_agent_state_full_total", "Transactions for which the disk had no room.")


def press_failed(topic: str, error: Exception) -> None:
    """A press could not make records of a topic's lines, so that the topic waits."""
    _log.error("press_failed", exc=error, topic=topic)


def pressed(topic: str, result: Pressed) -> None:
    """A press made records of a topic's lines, and batches of these records."""
    _RECORDS.inc(result.records)
    lines, sizes = Tally[str](), Tally[str]()
    for line in result.rejected:
        lines[line.reason] += 1
        sizes[line.reason] += line.length
    for reason, count in lines.items():
        _REJECTED_LINES.labels(topic, reason).inc(count)
        _REJECTED_BYTES.labels(topic, reason).inc(sizes[reason])
    if result.filtered is not None:
        for rule, (count, size) in result.filtered.by_rule.items():
            _FILTERED_RECORDS.labels(topic, rule).inc(count)
            _FILTERED_BYTES.labels(topic, rule).inc(size)
    for counter, count in (
        (_REPLACED, result.replaced),
        (_COLOURED, result.coloured),
        (_UNREAD_TIMES, result.unread_times),
        (_PIECES, result.pieces),
        (_FIELDLESS, sum(result.fieldless.values())),
    ):
        if count:
            counter.labels(topic).inc(count)
    if result.unbelieved_times:
        _UNBELIEVED.inc(result.unbelieved_times)


def lines_rejected(what: Untold) -> None:
    """Lines of a topic were rejected, and no log entry has counted them yet. Logs an entry that
    gives the number of their files, and the path and position of the first of these lines.
    """
    _log.warning(
        "lines_rejected",
        topic=what.topic,
        lines=what.count,
        reasons=what.reasons,
        files=what.files,
        path=what.path,
        position=what.position,
    )


def acknowledged(batches: int) -> None:
    """Brokers have acknowledged this number of batches."""
    _BATCHES.inc(batches)


def settled(count: int) -> None:
    """The checkpoint has moved past `count` bytes."""
    _SETTLED.inc(count)


def set_apart(range_: SetApart, lines: int | None = None) -> None:
    """A byte range was declared lost or uncertain. lines: how many lines the range has; None if the
    number is unknown.
    """
    labels = range_.tracked.birth.topic, range_.certainty.value.lower()
    _SET_APART_RANGES.labels(*labels).inc()
    _SET_APART_BYTES.labels(*labels).inc(_bytes_known(range_))
    if lines is not None:
        _SET_APART_LINES.labels(*labels).inc(lines)
    write = _log.error if range_.certainty is Certainty.LOST else _log.warning
    write(
        "bytes_set_apart",
        certainty=range_.certainty.value.lower(),
        path=range_.tracked.birth.path,
        file=range_.tracked.file,
        first=range_.first,
        end=range_.end,
        reason=range_.reason,
    )


def _bytes_known(range_: SetApart) -> int:
    """Returns how many bytes a range has, as far as this is known. For a range without an end,
    returns the number of the file's bytes that the agent has seen and never read.
    """
    if range_.end is None:
        return range_.tracked.lost_unread
    return range_.end - range_.first


def unseen(what: Unseen) -> None:
    """Files at a path, or bytes that were truncated there, were left unread, or may have been left
    unread. The number of their bytes is unknown."""
    _SET_APART_RANGES.labels(what.topic, Certainty.LOST.value.lower()).inc()
    _log.error("generations_unseen", topic=what.topic, path=what.path, reason=what.reason)


def committed(seconds: float) -> None:
    """A transaction of the state is durable. seconds: how long the commit took."""
    _COMMIT.observe(seconds)


def state_full(reason: str) -> None:
    """The disk with the state's database is full. While it is full, the agent reads no log
    files."""
    _FULL.inc()
    _log.error("state_full", reason=reason)


def state_has_room() -> None:
    """A transaction succeeded after the disk with the state's database had been full."""
    _log.info("state_has_room")


def brokers_silent(partitions: Sequence[str], reasons: Sequence[str]) -> None:
    """Logs that the leaders of these partitions acknowledge no batches or, if no partitions are
    given, that all leaders acknowledge batches again. reasons: why there is no connection to them.
    """
    if partitions:
        shown, why = list(partitions[:NAMES_MAX]), list(reasons[:NAMES_MAX])
        _log.error("brokers_silent", partitions=len(partitions), first=shown, reasons=why)
    else:
        _log.info("brokers_answer_again")


def pending_from(ask: Callable[[], int]) -> None:
    """Sets the function that returns the pending bytes. Each scrape of the metrics calls this
    function on the thread that answers the scrape.
    """
    _PENDING.set_function(ask)


def sizes(files: int, unreadable: int) -> None:
    """A look has ended: `files` file ids are open, and `unreadable` paths cannot be read."""
    _FILES.set(files)
    _UNREADABLE.set(unreadable)


def file_began(path: str, file: int, begin: int, predecessor: int | None) -> None:
    """A file got a file id. begin: the position in the file at which the file id begins.
    predecessor: the file's earlier file id."""
    _log.info("file_began", path=path, file=file, begin=begin, predecessor=predecessor)


def bytes_skipped(topic: str, count: int) -> None:
    """A new file id begins after the first `count` bytes of its file. The agent skips these
    bytes."""
    if count:
        _SKIPPED.labels(topic).inc(count)


def files_ignored(topic: str, files: int, size: int, path: str) -> None:
    """The number of a topic's files that are too old to be read has changed since the last look.
    size: the bytes of all these files. path: the path of one of them; empty if there are none.
    """
    _IGNORED.labels(topic).set(files)
    _IGNORED_BYTES.labels(topic).set(size)
    _log.info("files_ignored", topic=topic, files=files, bytes=size, path=path)


def file_closed(path: str, file: int, length: int) -> None:
    """A file id is closed: all its bytes are accounted for, and the audit knows the file's final
    length."""
    _log.info("file_closed", path=path, file=file, length=length)


def labels_news(news: Sequence[Unlabelled | Unreadable], unreadable: int) -> None:
    """Logs one entry for each piece of news. An entry says one of three things: a log has no
    labels, because no file with labels names its pod; a file with labels cannot be read; or such a
    file can be read again. unreadable: how many of the files that contain labels cannot be read
    now.
    """
    for each in news:
        if isinstance(each, Unlabelled):
            _UNLABELLED.labels(each.topic).inc()
            _log.warning("labels_missing", topic=each.topic, path=each.path, location=each.location)
        elif each.reason is None:
            _log.info("labels_readable_again", location=each.location)
        else:
            _log.warning("labels_unreadable", location=each.location, reason=each.reason)
    _LABELS_UNREADABLE.set(unreadable)


def unreadable(topic: str, path: str, reason: str, *, is_passing: bool) -> None:
    """A path cannot be read. Until it can be read, the agent does not seal the path's topic.
    is_passing: whether the path can probably be read soon.
    """
    say = _log.info if is_passing else _log.error
    say("unreadable", topic=topic, path=path, reason=reason)


def not_read(topic: str, path: str, reason: str) -> None:
    """A path is not read, and holds no seal, for example a FIFO."""
    _log.warning("not_read", topic=topic, path=path, reason=reason)


def source_without_files(topic: str, paths: Sequence[str], since_ms: int | None) -> None:
    """A source matches no file. since_ms: since when none has ever matched it; None if a file
    matched it before."""
    since = {} if since_ms is None else {"since": shown(since_ms)}
    _log.warning("source_without_files", topic=topic, paths=list(paths), **since)


def sources_without_files(topics: Iterable[str], fileless: Iterable[str]) -> None:
    """A look has ended. topics: the topics of all sources. fileless: the topic of each source that
    matches no file."""
    count = Tally(fileless)
    for topic in topics:
        _FILELESS.labels(topic).set(count[topic])


def seal_held_back(topic: str, path: str, reason: str) -> None:
    """A topic's seal has waited for long, because bytes of this file are not accounted for yet."""
    _log.warning("seal_held_back", topic=topic, path=path, reason=reason)


def no_sources(reason: str) -> None:
    """Logs that the agent runs, but has nothing to read."""
    _log.warning("no_sources", reason=reason)


def configuration_differs(since_ms: int | None) -> None:
    """Sets the metric that says since when (ms) the configuration files have differed from the
    settings in use. since_ms: None if they do not differ.
    """
    _CONFIGURATION.set(0 if since_ms is None else since_ms / 1000)


def sources_files_refused(files: Sequence[RefusedFile], news: Sequence[RefusedFile]) -> None:
    """The agent found which files of `sources.dir` it refuses. news: those that are new, or refused
    for another reason than before."""
    _REFUSED_FILES.set(len(files))
    for each in news:
        _log.error("sources_file_refused", file=each.path, reason=each.reason, instead=each.instead)


def reloaded(changes: Sequence[str]) -> None:
    """Counts and logs that the agent has read its configuration files again, and uses the changed
    settings."""
    _RELOADS.labels("taken").inc()
    _log.info("settings_reloaded", changes=list(changes))


def reload_refused(reason: str) -> None:
    """The agent refused the changed settings in its configuration files, and continues with its old
    settings."""
    _RELOADS.labels("refused").inc()
    _log.error("reload_refused", reason=reason)
