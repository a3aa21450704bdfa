"""Reads from `_skidway_audit` the messages that the loader needs: announcements of files, closures
of files, agents' seals, and the loader's own messages.

The loader reads the audit topic of the cluster that it loads from, and the mirrored audit topics of
the source clusters. The newest manifest of each loaded topic has a position for each partition of
each audit topic; the next load of the topic needs only later messages. The loader stores the
announcements in the loaded topic's table `names`, next to the table `marks`. One feed (an object
that collects the messages) serves all topics of a run, so it begins at the lowest position of all
these topics. Therefore the feed notes where it read each announcement, and a topic's tables get
only the announcements after the topic's own position. Otherwise the names of closed files, which
the loader has already dropped from the tables, would come back.

Some audit messages say which records a counter could not read. The loader does not skip these
records, because the mirrored topic that it loads may still have them. The loader skips missing
offsets (a gap) only if the loaded topic's config `mirror.gaps` lists the gap
(`skidway.kafka.gaps`), or if an operator has accepted the gap.

Each audit message of an output (a directory into which a loader writes) has an epoch, a number that
the output chooses when it begins. The audit's collector refuses an epoch that is lower than an
epoch that it already knows. So a new output chooses an epoch that is one higher than the highest
epoch of all messages that were published under the output's name. Sometimes the loader cannot read
the whole audit topic, because the first messages have expired, or because a message has an unknown
schema. Then the loader chooses an epoch higher than the number of messages that the audit topic
ever had. This epoch is higher than the epoch of every message that the loader missed. The reason is
this: when an output chooses an epoch, the epoch is at most one higher than the number of messages
at that time. The output then publishes a message with this epoch. From then on, the number of
messages is not lower than the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from skidway.audit.counts.marks import FileKey
from skidway.audit.signing.signer import Signer
from skidway.audit.topic import head, topic
from skidway.audit.topic.head import head_of, sort_of
from skidway.audit.topic.messages import (
    TOPIC,
    Announcement,
    Delta,
    Message,
    MessageRefused,
    Seal,
    Tier,
    decode,
)
from skidway.audit.topic.notes import is_note
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.endings import Endings, Place
from skidway.loader.state.closures import Heard
from skidway.loader.state.tables import Location
from skidway.rare_lines import RareLines

REJECTED_SUFFIX: Final = ".rejected"
NOWHERE: Final = Place("", 0)
"""The place of a message that was not read from a topic."""

FILES_KEPT_MAX: Final = 100_000
"""A feed that serves many runs keeps the announcements of about this many files. If the feed has
more files when a run begins, and the run needs only the newer messages, the feed forgets all
messages to save memory. Then it reads only the messages that the run needs. No announcement is
lost, because the tables of the committed loads have the files.
"""

_unreadable = RareLines("audit_message_unreadable")


@dataclass(slots=True)
class Feed:
    """The messages that the loader has read from the audit topics. A feed may serve many runs.

    positions, since and begins have the keys `topic/partition/topic id`. positions: the next offset
    to read. since: the offsets from which `begin` made the feed read (0 for a partition that is not
    in `since`). begins: the offsets at which the feed began; it has fetched every message from
    these offsets up to the positions. unread: true if there is a message that the feed could not
    decode. Any output may have written this message, so the feed may not know the highest epoch of
    an output. places: where the first announcement of each file was read. numbers: for each output
    (by its name) and each of its epochs, the highest number of a message.
    """

    locations: dict[tuple[str, str], dict[FileKey, Location]] = field(default_factory=dict)
    places: dict[FileKey, Place] = field(default_factory=dict)
    endings: Endings = field(default_factory=Endings)
    numbers: dict[str, dict[int, int]] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    unread: bool = False

    def begin(self, wanted: Mapping[str, int]) -> None:
        """Begins a run that needs every message from the positions `wanted` on. If `wanted` has no
        position for a partition, the run needs the partition's messages from offset 0 on. If the
        feed began to read some partition at a higher offset than the run needs, the feed forgets
        everything and begins again at the positions `wanted`. The feed also begins again to save
        memory (see `FILES_KEPT_MAX`). In all other cases, it keeps the messages that it has read.
        """
        ahead = [wanted.get(key, 0) - self.since.get(key, 0) for key in self.positions]
        reaches_back = min(ahead, default=-1) >= 0
        files = sum(map(len, self.locations.values()))
        if not reaches_back or (files > FILES_KEPT_MAX and max(ahead) > 0):
            self.since = dict(wanted)
            self._forget()

    def expect(self, keys: Iterable[str]) -> None:
        """Forgets everything if a topic in `keys` was deleted and created again after the feed had
        read it. Messages of the old topic do not apply to the new topic. keys:
        `topic/partition/topic id` of the partitions that exist now.
        """
        places = {key.rpartition("/")[0] for key in self.begins}
        if any(x not in self.begins and x.rpartition("/")[0] in places for x in keys):
            self._forget()

    def locations_of(self, source: Source) -> dict[FileKey, Location]:
        """Returns the announced files that may have lines in the topic `source`, with the location
        (host and path) of each file.
        """
        found: dict[FileKey, Location] = {}
        for name in _topics_of(source):
            found |= self.locations.get(name, {})
        return found

    def new_locations(
        self, source: Source, positions: Mapping[str, int]
    ) -> dict[FileKey, Location]:
        """Returns the same as `locations_of`, but leaves out files that were announced before
        `positions`, the offsets up to which the caller has already read the audit topics.
        """
        known = self.locations_of(source)
        return {key: at for key, at in known.items() if self.places[key].is_new(positions)}

    def closed(self, source: Source, positions: Mapping[str, int]) -> dict[FileKey, int]:
        """Returns the closed files that may have lines in the topic `source`, each with the time at
        which its agent closed it. Leaves out files whose closing was announced before `positions`,
        the offsets up to which the caller has already read the audit topics."""
        return self.endings.closed(_topics_of(source), positions)

    def seals(self, source: Source, positions: Mapping[str, int]) -> dict[int, Heard]:
        """Returns, for each agent, its newest seal of a topic. Leaves out seals before `positions`,
        the offsets up to which the caller has already read the audit topics.
        """
        return self.endings.seals(source, _topics_of(source), positions)

    def number(self, producer: str, epoch: int) -> int:
        """Returns the highest number of the messages that an output has sent in `epoch`, as far as
        this feed has read them. Returns 0 if the feed has read no such message. producer: the name
        of the output.
        """
        return self.numbers.get(producer, {}).get(epoch, 0)

    def newest(self, producer: str) -> tuple[int, int]:
        """Returns epoch and number of an output's newest message, among the messages that were
        read. Both are 0 if there is no such message.
        """
        epoch = max(self.numbers.get(producer, ()), default=0)
        return epoch, self.number(producer, epoch)

    def next_epoch(self, producer: str) -> int:
        """Returns the epoch that an output must use if it begins anew. It is higher than every
        epoch in which the output may have published messages.
        """
        return 1 + max(self.newest(producer)[0], self._epochs_unheard())

    def _epochs_unheard(self) -> int:
        """Returns an upper bound for the epochs of the messages that the feed has not read; 0 if
        the feed has read all messages.
        """
        own = {key: end for key, end in self.positions.items() if key.startswith(f"{TOPIC}/")}
        if not self.unread and all(self.begins.get(key) == 0 for key in own):
            return 0
        return sum(own.values())

    def heard(self, begins: Mapping[str, int], ends: Mapping[str, int]) -> None:
        """Notes the ranges, from `begins` to `ends`, in which every message was read. If a range
        begins at a higher offset than the previous range ended, the feed has missed the messages
        between the two ranges. In that case, this method sets `self.begins` to the beginning of the
        new range."""
        for key in ends:
            begin = begins.get(key, ends[key])
            if key not in self.begins or begin > self.positions.get(key, 0):
                self.begins[key] = begin
        self.positions = dict(ends)

    def _forget(self) -> None:
        self.locations, self.places, self.endings = {}, {}, Endings()
        self.numbers, self.begins = {}, {}
        self.positions, self.unread = dict(self.since), False

    def take(self, message: Message, place: Place = NOWHERE) -> None:
        """Stores a message. If there are two announcements of one file, keeps the first
        announcement."""
        if isinstance(message, Announcement | Seal):
            self.endings.take(message, place)
        if isinstance(message, Announcement):
            source, key = message.source, (message.agent, message.file)
            known = self.locations.setdefault((source.cluster, source.topic), {})
            known.setdefault(key, (message.host, message.path))
            self.places.setdefault(key, place)
        elif isinstance(message, Delta | Seal) and message.sender.tier is Tier.HDFS:
            self.take_number(message.sender.producer, message.sender.epoch, message.number)

    def take_number(self, producer: str, epoch: int, number: int) -> None:
        """Stores the number of an output's message, if it is higher than the stored number of its
        epoch."""
        numbers = self.numbers.setdefault(producer, {})
        numbers[epoch] = max(number, numbers.get(epoch, 0))


def audit_topics(sources: Iterable[Source], cluster: str, existing: Iterable[str]) -> list[str]:
    """Returns the existing audit topics that the loader must read. sources: for each loaded topic
    that is a mirror, the topic that it mirrors; for any other loaded topic, the topic itself.
    """
    clusters = {source.cluster for source in sources} - {cluster}
    wanted = {TOPIC, *(f"{each}.{TOPIC}" for each in clusters)}
    return sorted(wanted.intersection(existing))


def read_on(
    client: Client,
    topics: Iterable[str],
    feed: Feed,
    clock: Clock,
    signer: Signer | None = None,
) -> None:
    """Reads every message from the feed's positions up to the present high watermarks. If the feed
    has no position for a partition, this function reads from the log start. If an audit topic was
    deleted and created again, reads it from its start. Such a topic has a new id, or a log that
    ends before the feed's position. signer: of an output's own messages, only those that it has
    signed count; None if the loader has no key. Raises KeyRefused if it has no usable key."""
    names = sorted(topics)
    # This request for the ids comes before the request for the bounds. If a topic is deleted and
    # created again between the two requests, the feed stores its position under the old id, so the
    # next run reads the new topic from its start.
    ids = client.metadata(names).topics if names else {}
    found = topic.bounds(client, names)
    keys = {tp: _key(tp, ids[tp.topic].topic_id) for tp in found}
    feed.expect(keys.values())
    ranges = {}
    for tp, (first, end) in found.items():
        position = feed.positions.get(keys[tp], 0)
        ranges[tp] = (max(position, first) if position <= end else first, end)
    for record in topic.read(client, Fetcher(client), ranges, clock):
        _take(feed, record, Place(keys[record.tp], record.offset), signer)
    # This second request returns the present log start offsets. Messages below them have expired,
    # perhaps before the loader read them.
    left = topic.bounds(client, names)
    begins = {keys[tp]: max(begin, left[tp][0]) for tp, (begin, _) in ranges.items() if tp in left}
    feed.heard(begins, {keys[tp]: end for tp, (_, end) in ranges.items()})


def _key(tp: TopicPartition, topic_id: UUID | None) -> str:
    return f"{tp.topic}/{tp.partition}/{'' if topic_id is None else topic_id.hex}"


def _take(feed: Feed, record: topic.Record, place: Place, signer: Signer | None) -> None:
    """Passes a message to the feed. Decodes only messages that the feed needs, because most
    messages are agents' deltas, which the feed does not need.
    """
    value = record.value
    if is_note(value):
        return
    try:
        match sort_of(value):
            case None | (head.SEAL, Tier.AGENT):
                feed.take(decode(value), place)
            case (head.DELTA | head.SEAL, Tier.HDFS):
                if signer is None or signer.is_own(value, record.signature):
                    own = head_of(value)
                    feed.take_number(own.producer, own.epoch, own.number)
    except MessageRefused as error:
        feed.unread = True
        at = {"topic": record.tp.topic, "offset": record.offset}
        _unreadable.tell(record.tp, **at, reason=str(error))


def _topics_of(source: Source) -> list[tuple[str, str]]:
    """Returns the pairs (cluster, topic) under which agents announce the files whose lines may be
    in the topic `source`. If `source` is `app.rejected`, the result has the topics `app.rejected`
    and `app`, because lines of a file of `app` may be rejected. If `source` is `app`, the result
    has only `app`."""
    base = source.topic.removesuffix(REJECTED_SUFFIX)
    return [(source.cluster, name) for name in dict.fromkeys((base, source.topic))]
