"""What a demo has found out, and whether everything agrees.

The verdict covers two things. The *bytes* are those that were in the tailed files at the cut-off.
The *buckets* are the audit's time buckets that ended at or before `DemoOutcome.until_ms`. This
moment is late enough that these buckets contain the records of all these bytes. Programs go on
writing, and the agent goes on reading. So accounts and reports also have newer bytes and buckets,
but these change no verdict and hide no missing byte.

This module does no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skidway.demo.kills import Kill
from skidway.demo.site import DATACENTER
from skidway.demo.sources import FileKey, FileSize
from skidway.demo.tiers import Tiers
from skidway.demo.writer import Tally

REJECTED_SUFFIX = ".rejected"
DONE = ("acknowledged", "rejected", "filtered")
UNDONE = ("lost", "uncertain")


@dataclass(slots=True)
class Content:
    """One content of a file. A truncation ends a content and begins the next one. ids: the
    content's file ids. position: the position up to which the agent has said, under the newest of
    these ids, what happened to every byte. is_former: whether the file no longer had this content
    at the cut-off."""

    position: int = 0
    ids: list[int] = field(default_factory=list)
    is_former: bool = False


@dataclass(slots=True)
class Account:
    """What the agent did with the bytes of one file: the number of bytes for each fate (see `DONE`
    and `UNDONE`). `read_again` is the number of lost and uncertain bytes that the agent read again
    under a later id, with another fate.

    The agent may have several ids for one file. An id that begins at position 0 begins a new
    content; other ids continue the previous content. The bytes before the position at which the
    first id begins got their fates under ids that the agent has forgotten. An id may begin before
    the end of the previous id: if the source of a file is removed and comes back, the agent
    declares the unread bytes lost, and then reads them under a new id.
    """

    fates: Counter[str] = field(default_factory=Counter)
    contents: list[Content] = field(default_factory=list)
    read_again: int = 0

    def add(self, row: Mapping[str, Any], *, is_former: bool) -> None:
        """Adds one row (one file id) of `skidway agent state show`. Rows come in the order in which
        the ids began. is_former: whether the file no longer had this content at the cut-off."""
        fates = fates_of(row)
        if not self.contents or not row["begin"]:
            self.contents.append(Content())
        content = self.contents[-1]
        twice = max(content.position - row["begin"], 0)
        self.read_again += min(twice, fates.total(), self.undone)
        self.fates.update(fates)
        content.position = row["begin"] + fates.total()
        content.ids.append(row["file"])
        content.is_former = is_former

    @property
    def position(self) -> int:
        """The position up to which the agent has said what happened to every byte. If a file was
        truncated after the cut-off, the highest position in one of its contents counts.
        """
        return max((x.position for x in self.contents if not x.is_former), default=0)

    def former_ids(self, length_bytes: int) -> set[int]:
        """Returns the ids of the contents that a file of this length no longer has."""
        contents = self.contents
        newest = contents[-1:] if contents and contents[-1].position <= length_bytes else []
        return {file for content in contents if content not in newest for file in content.ids}

    @property
    def undone(self) -> int:
        """The number of lost and uncertain bytes that were not read again."""
        return sum(self.fates[fate] for fate in UNDONE) - self.read_again


@dataclass(frozen=True, slots=True)
class Unread:
    """Why the agent cannot read a path, and the topic of the path's source."""

    topic: str
    reason: str


@dataclass(slots=True)
class DemoOutcome:
    """The results that the summary prints. `files` has the sizes at the cut-off. `accounts` has the
    agent's accounts of all files. `first_keys` has the key under which each file id was first seen:
    if a file is compressed, its id gets the key of the compressed file. `former_ids` has the ids of
    contents that were truncated before the cut-off. `undone` has the number of lost and uncertain
    bytes of all file ids. `written` has the writer's own counts of lines, torn lines and
    bytes, by topic. `has_given` says whether the user named files with --logs. `unread` has the
    paths that the agent cannot read, each with the topic and the reason."""

    has_given: bool = False
    files: list[FileSize] = field(default_factory=list)
    accounts: dict[FileKey, Account] = field(default_factory=dict)
    first_keys: dict[int, FileKey] = field(default_factory=dict)
    former_ids: set[int] = field(default_factory=set)
    undone: Counter[str] = field(default_factory=Counter)
    until_ms: int = 0
    report: dict[str, Any] = field(default_factory=dict)
    recount: dict[str, Any] = field(default_factory=dict)
    recount_agrees: bool = False
    written: dict[str, Tally] = field(default_factory=dict)
    unread: Mapping[str, Unread] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    tiers: Tiers = field(default_factory=Tiers)

    @property
    def is_settled(self) -> bool:
        """Whether the agent has said what happened to every byte up to the cut-off, but for the
        files that it cannot read."""
        return all(str(file.path) in self.unread for file in self.unsettled)

    @property
    def unsettled(self) -> dict[FileSize, int]:
        """For each tailed file, the number of bytes up to the cut-off for which the agent has not
        accounted yet. Leaves out files for which this number is 0."""
        missing = {file: file.size_bytes - self._account(file).position for file in self.files}
        return {file: count for file, count in missing.items() if count > 0}

    @property
    def tally(self) -> dict[str, int]:
        """The number of bytes for each fate (such as acknowledged or lost), in the files that were
        tailed in this run."""
        tailed = [self._account(file) for file in self.files]
        return {fate: sum(each.fates[fate] for each in tailed) for fate in (*DONE, *UNDONE)}

    @property
    def read_again(self) -> int:
        """How many of the lost and uncertain bytes in `tally` were read again, so that these bytes
        are in `tally` twice."""
        return sum(self._account(file).read_again for file in self.files)

    @property
    def undone_elsewhere(self) -> int:
        """The number of lost and uncertain bytes in other files than those of this run."""
        tally = self.tally
        return max(self.undone.total() - sum(tally[fate] for fate in UNDONE), 0)

    @property
    def newer_bytes(self) -> int:
        """The number of bytes after the cut-off for which the agent has already accounted."""
        return sum(max(self._account(x).position - x.size_bytes, 0) for x in self.files)

    @property
    def unaccounted(self) -> dict[FileSize, int]:
        """For each tailed file, how many bytes up to the cut-off are not known to be acknowledged,
        rejected or filtered. Leaves out files for which this number is 0. Nobody knows whether a
        lost or uncertain byte was before the cut-off, so each of them counts.
        """
        unsettled = self.unsettled
        missing = {file: unsettled.get(file, 0) + self._account(file).undone for file in self.files}
        return {file: count for file, count in missing.items() if count}

    @property
    def judged(self) -> list[Mapping[str, Any]]:
        """The buckets of the audit's report that ended at or before `until_ms`."""
        buckets = self.report.get("buckets", ())
        return [x for x in buckets if x["bucket"] + x["bucket_ms"] <= self.until_ms]

    @property
    def short(self) -> list[Mapping[str, Any]]:
        """The judged buckets that are neither complete nor accepted by a person."""
        return [x for x in self.judged if x["verdict"] != "complete" and not x["accepted"]]

    @property
    def accepted(self) -> list[Mapping[str, Any]]:
        """The judged buckets that are not complete, and that a person has accepted."""
        return [x for x in self.judged if x["accepted"]]

    @property
    def counts_balance(self) -> bool:
        """Whether there is at least one judged bucket, and all judged buckets are complete or
        accepted. The exit status of `skidway audit report` counts accepted buckets as good, too."""
        return bool(self.judged) and not self.short

    @property
    def has_loss(self) -> bool:
        """Whether the audit calls a judged bucket lost, and nobody has accepted this. No load makes
        such a bucket complete."""
        return any(x["verdict"] == "lost" for x in self.short)

    @property
    def is_short_of_held(self) -> bool:
        """Whether all judged buckets are good, but for those of topics in `held`."""
        held = self.held
        return bool(self.judged) and all(sent_topic(x["topic"]) in held for x in self.short)

    @property
    def held(self) -> set[str]:
        """The topics that the agent does not seal, because it cannot read a path of theirs."""
        return {each.topic for each in self.unread.values()}

    @property
    def agents_rejects(self) -> Counter[str]:
        """How many records of each topic the agent rejected, in the judged buckets."""
        found: Counter[str] = Counter()
        for bucket in self.judged:
            for place in bucket["places"]:
                if bucket["topic"].endswith(REJECTED_SUFFIX) and place["tier"] == "agent":
                    found[sent_topic(bucket["topic"])] += place.get("count", 0)
        return found

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows that the recount found for each topic. In the offline cluster, topics
        have names with the prefix `dc1.`. The keys are the names without this prefix.
        """
        return {
            each["topic"].removeprefix(f"{DATACENTER}."): each["rows"]
            for each in self.recount.get("topics", ())
        }

    @property
    def miscounted(self) -> dict[str, int]:
        """The number of rows minus the number of lines that the writer wrote, for each topic in
        which these numbers do not match."""
        rows = self.rows
        found = {}
        for topic, tally in self.written.items():
            surplus = rows.get(topic, 0) - tally.lines
            if not 0 <= surplus <= tally.torn:  # a torn line (cut off by a kill) may be a row, too
                found[topic] = surplus
        return found

    @property
    def is_complete(self) -> bool:
        """Whether the audit says so (all judged buckets are complete or accepted), the recount
        agrees, and every line of the writer is a row. Of bytes that the agent cannot read, the
        audit may know no bucket, so there may be none. Lost bytes are for the audit to judge, which
        knows what a person has accepted. What the kills hit is told, and judged by nobody.
        """
        return (
            self.counts_balance
            and self.recount_agrees
            and not self.miscounted
            and not self.unsettled
        )

    def note(self, files: list[FileSize]) -> None:
        """Stores the sizes of all files at the cut-off. The caller must have passed the accounts
        from just before the cut-off to `take_ledger`."""
        self.files = files
        for file in files:
            self.former_ids |= self._account(file).former_ids(file.length_bytes)

    def take_ledger(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the accounts. rows: the files of `skidway agent state show`."""
        self.accounts, self.undone = {}, Counter()
        for row in rows:
            key = (row["device"], row["inode"], row["born_ns"])
            for each in {key, self.first_keys.setdefault(row["file"], key)}:
                account = self.accounts.setdefault(each, Account())
                account.add(row, is_former=row["file"] in self.former_ids)
            self.undone.update({fate: row[fate] for fate in UNDONE})

    def _account(self, file: FileSize) -> Account:
        return self.accounts.get(file.key) or Account()


def sent_topic(topic: str) -> str:
    """Returns the topic whose lines were rejected, for a topic of rejects; else the topic."""
    return topic.removesuffix(REJECTED_SUFFIX)


def fates_of(row: Mapping[str, Any]) -> Counter[str]:
    """Returns the number of bytes for each fate (such as acknowledged or lost) in a row of `skidway
    agent state show`."""
    return Counter({fate: row[fate] for fate in (*DONE, *UNDONE)})
