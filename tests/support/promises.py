"""Lists the promises of docs/delivery.md that tests check. Each promise has a name. A test that
checks a promise is marked with the promise's name.

    @promise("4 watermark")
    def test_the_watermark_moves_by_flushing_alone() -> None:

A name begins with the number or the word of the promise's section in docs/delivery.md (see
SECTIONS). If a test is marked with a name that is not in the list PROMISES, the test run ends at
once. The module support.promises_page makes docs/promises.md from this list and the marks.
"""

from __future__ import annotations

import pytest

SECTIONS = {
    "1": "Names of things",
    "2": "The agent sends the same thing again",
    "3": "The producer keeps order",
    "4": "The broker shows only what stays",
    "5": "The loader counts to one",
    "6": "The audit sums what it can prove",
    "clocks": "Clocks",
    "all": "All of it",
}
"""The headings of the sections of docs/delivery.md. Each key is the number or the word with which
the names of the section's promises begin."""

PROMISES = {
    "1 agent id": "An agent's state is bound to its machine; ids are below 2^63.",
    "1 file id": "A file id names one sequence of bytes; a rename keeps it.",
    "1 generations": "The agent reads a generation at which it never looked, or declares it.",
    "1 same file": "Inode, time of birth and bytes decide whether a file is the same one, another "
    "one, or unknown.",
    "1 links": "The agent finds and watches a linked file, and its generations, where that file "
    "really lies.",
    "1 link leads elsewhere": "Where a link leads elsewhere, the agent reads what it led to in "
    "between.",
    "1 copies": "The agent compares a copy of a log before it reads the copy.",
    "1 compression": "The agent reads a compressed generation at the positions of the plain file.",
    "1 not opened": "The agent remembers a file that it could not open.",
    "1 deleted at rest": "A file that was deleted at rest has lost nothing; one look declares one "
    "loss.",
    "1 announcement": "The agent announces a file before its first record, repeats that daily, and "
    "closes the file after the checkpoint.",
    "1 start at the end": "With `start_at: end`, only what was there at the first look is skipped.",
    "1 old files": "A file that is too old is counted, and read whole when it changes; one that "
    "changed after the last look is never too old.",
    "1 still written": "A log that a program still writes to is read on after it was deleted or "
    "hidden.",
    "1 closed early": "A file that was closed early and then deleted unread is declared.",
    "1 two agents": "The audit takes a file that two agents announced for one that may be doubled.",
    "1 adopted copy": "An agent that adopts an older copy of its state takes no line for another.",
    "1 topic made again": "A topic that is made again is another topic.",
    "1 restored state": "A program notices that its state was restored.",
    "2 re-send": "The agent sends the same bytes when it sends something again.",
    "2 intent": "An intent is durable before its bytes are sent.",
    "2 new settings": "New settings begin behind the last intent.",
    "2 framing": "Framing has no memory across an intent's end.",
    "2 byte order": "The first two bytes of a UTF-16 file decide its byte order, for good.",
    "2 nul bytes": "A run of NUL bytes is set apart by itself; the line behind it is delivered.",
    "2 filled hole": "A line that is written in place of NUL bytes is never lost in silence.",
    "2 read back": "The agent sets nothing apart that it may have sent before it has read the "
    "partitions back.",
    "2 refused record": "A record that the broker refuses is lost only where no attempt arrived.",
    "2 found or sent": "The agent acknowledges what it finds on the brokers, and sends the rest "
    "once.",
    "2 filtered": "A rule leaves out the same records whenever it is applied; they are counted "
    "once, by rule.",
    "2 labels": "A record that is sent again has the labels of its pod that it had first.",
    "2 floor": "No record of a pending intent lies below the floor of its partition.",
    "2 another program": "A program is another one where it makes other records.",
    "2 set apart": "The agent sets apart, by name, what it can neither replay nor find.",
    "2 partition": "The partition of a record is a pure function of file, key or position.",
    "2 checkpoint": "The checkpoint moves in one transaction with its deltas, and passes over no "
    "byte.",
    "2 another cluster": "The agent refuses another cluster or topic id while something is "
    "unacknowledged.",
    "2 topic made again": "A topic that is made again while the agent runs takes nothing that was "
    "for the old one.",
    "2 over-long line": "An over-long line goes to `.rejected` with its full length.",
    "2 encoding": "The agent rejects a line that is not UTF-8 whole, or replaces and marks what is "
    "no character; when it sends the line again it does the same.",
    "2 silent topic": "A topic that brokers do not acknowledge leaves room for the other topics.",
    "2 corrupt state": "A corrupt state stops the agent.",
    "2 ledger": "The ledger of a file adds up to its bytes.",
    "2 replay": "A rejected line is replayed once, under a new origin, and keeps its first one.",
    "3 order": "The producer keeps order under retries, refusals and crashes: it has one batch in "
    "flight until the broker knows it, then five.",
    "3 producer ids": "A producer id is never used twice.",
    "4 watermark": "The high watermark is the least flushed offset.",
    "4 flush": "The broker flushes at once when somebody waits.",
    "4 failed fsync": "A failed fsync takes the directory offline.",
    "4 duplicate": "A batch is a duplicate only if it has the same CRC.",
    "4 append time": "The broker rolls and expires segments, and forgets producers, by append "
    "time.",
    "4 recovery": "Recovery cuts nothing that was flushed, and flushes all that it believes.",
    "4 readers": "Named readers hold segments back, up to a cap; past it the gap is named.",
    "4 Apache Kafka": "On Apache Kafka nothing may expire by event time.",
    "4 times ahead": "The agent replaces event times that are more than an hour ahead.",
    "4 batch below": "A mirror compares the batch below before it goes on.",
    "4 gap": "A mirror writes a gap down before it copies anything behind it.",
    "4 readers compare": "Loader and counters compare the batch below, too.",
    "4 reason of a gap": "A counter says whether the mirror named what is missing.",
    "4 compacted batch": "The loader's range ends, by name, at a batch that was compacted.",
    "5 gaps": "Mirrors and operators alone name the gaps that a load passes over.",
    "5 silent leader": "A leader that does not answer keeps back its own partitions only.",
    "5 several loads": "A run makes several loads, and may be killed between them.",
    "5 marks": "By the marks a reader drops repeats, and rejects a record that begins below a mark "
    "and ends above it.",
    "5 slices": "Slices in parallel give the rows of one walk in order.",
    "5 closed files": "Marks and names of a closed file are dropped only when no repeat of its "
    "records can come.",
    "5 buckets": "A bucket whose delta was forgotten is never taken for complete.",
    "5 manifest": "One manifest commits a load, with two loaders, crashes and unclear outcomes.",
    "5 staging": "The names of staged files are durable before the manifest; a start looks at the "
    "newest load and at what is staged.",
    "5 removed": "A load that rewrites files removes the old ones; no row and no count changes.",
    "5 checkpoint": "Old manifests are folded into a checkpoint; a late loader or reader does not "
    "take a folded number.",
    "5 reload": "A reload replaces the files of an hour by the same records, or changes nothing.",
    "5 success file": "An hour has the file _SUCCESS only while its rows are those for which the "
    "audit said that the hour is complete.",
    "5 columns": "Files get the columns of a new schema before its first row, if they need them.",
    "5 race": "Of two loads at once the loser ends well once all is loaded, and fails with work "
    "left.",
    "5 real loader": "The real loader loads each record once when it is killed, when it is raced, "
    "and into HDFS.",
    "5 host and path": "Host and path of a row come from announcements, and are never null.",
    "5 query": "A query of a topic gives each record of its range, and does not pass over missing "
    "records in silence.",
    "5 stream": "A stream of a topic gives each record once to a sink that keeps each batch once, "
    "however often it is killed.",
    "6 numbers": "Deltas have numbers without holes, and are committed with the progress they "
    "stand for.",
    "6 full disk": "A full disk loses no count and no message.",
    "6 bucket size": "Buckets have one size, and every time has a bucket.",
    "6 missing tier": "The audit is told which tiers a topic does not have, and never guesses it "
    "from silence.",
    "6 expected hosts": "A bucket waits until each of the newest agents of every expected host has "
    "sealed; the roster says which hosts these are.",
    "6 gate": "Seals behind its bucket and equal counts prove a host since a moment, and nothing "
    "else does.",
    "6 seal of a topic made again": "A seal of a topic that was made again is also one of the "
    "topic before; a last word on the topic before is none on the new one.",
    "6 audit topic made again": "An audit topic that was made again is read from its beginning.",
    "6 damaged audit topic": "A damaged batch of an audit topic stops only its partition, by name.",
    "6 checksum": "A loss and a double do not cancel.",
    "6 complete": "A bucket is never falsely complete, and is complete in the end.",
    "6 pruning": "Only old buckets that are complete or accepted are deleted, and a deleted bucket"
    " is never complete.",
    "6 rebuilt store": "While the audit's store is rebuilt, nothing is complete, whatever the part"
    " of the evidence says that was read.",
    "6 collectors": "Collectors that read in other orders say the same in the end.",
    "6 epochs": "A higher epoch of a counter replaces the lower ones; an agent's new epoch adds.",
    "6 epoch of an output": "An output's epoch is above all that were heard, and never from a "
    "clock; one that is heard behind a higher one is never passed over.",
    "6 topic without a source": "The agent goes on sealing a topic that has no source any more.",
    "6 seal": "A seal vouches only for what is acknowledged and in deltas, with the W of before "
    "its look.",
    "6 unreadable": "An unreadable file holds the seal back by name; so does a directory in which "
    "nobody may look, and a file system that is not mounted yet.",
    "6 source without files": "While a source has never matched a file, nobody calls its topic "
    "complete.",
    "6 filtered": "What agents left out stands by rule beside every verdict, and needs to arrive "
    "nowhere.",
    "6 repeats and rejects": "Repeats are no fault, and rejects count as arrived.",
    "6 last word": "An agent says its last word at rest only, and takes it back; the audit heeds "
    "that of hosts for which nobody waits.",
    "6 doublings": "Lines that two agents may have delivered are in doubt until seals bound "
    "them, and no longer.",
    "6 moment of a seal": "A seal vouches for nothing behind the moment at which it was taken.",
    "6 newer version": "The audit never passes over what a newer version said.",
    "6 losses": "The agent declares a loss once; an open-ended one belongs to a range of buckets, "
    "and to no other.",
    "6 acceptance": "What is accepted stays what it is, holds back nothing, and covers nothing "
    "that comes later.",
    "6 complete before a time": "A topic is complete before a time only if nothing of that time "
    "can be missing without the audit knowing.",
    "6 retired place": "A retired place is compared, holds back nothing that another one has, and "
    "proves nothing by being silent.",
    "6 telling a loss": "The audit tells a loss at once, by host, path and file id.",
    "6 lateness": "The agent says how late lines come, and how far ahead their times may be; of "
    "its bounds and the audit's the larger holds.",
    "6 without origin": "Records without origin are audited from the broker on.",
    "6 audit topic": "A mirror always follows `_skidway_audit`.",
    "6 recount": "A recount names files that no manifest names, that are there twice, gone or "
    "damaged, and nothing that a loader is just doing.",
    "6 two ways": "The sums and the recount come to the same verdict.",
    "6 signed": "If signatures are required, a message counts only for what its sender may say; "
    "what nobody has proven changes no verdict, and is named.",
    "clocks seal": "A seal by a clock that is ahead vouches for no more than when the collector "
    "took it; by one that is behind, buckets wait.",
    "clocks reading": "A line without a time that can be believed has the time of reading, which "
    "is in the intent: its bucket is the same in all tiers.",
    "clocks reach of a loss": "After a clock was set back a loss reaches up to what it said "
    "before, until a seal that is noted later.",
    "clocks rest": "After a clock was set a file is at rest since then only.",
    "clocks generations": "An agent whose clock was set back passes over no generation.",
    "clocks announcement": "An agent announces a file again every day, by its own clock.",
    "clocks producer": "The producer keeps order when its clock is wrong.",
    "clocks broker": "A broker whose clock and log disagree deletes and forgets nothing.",
    "clocks counter": "A counter whose clock is ahead is heard no later than when the collector "
    "took that.",
    "clocks expiry": "A wrong clock makes no bucket falsely complete when the store is rebuilt "
    "from an expired topic.",
    "clocks wait": "The wait for an announcement begins once; records that waited too long go to "
    "the loader's rejects.",
    "clocks due": "A report by a clock that is behind is not good; by one that is ahead no bucket "
    "is over too early.",
    "clocks silence": "A host that died with its clock ahead is silent; one that reports is not "
    "silent by a clock of ours that is ahead.",
    "clocks newest agent": "Offsets tell which agent of a host is the newest; where they cannot, "
    "the audit waits for all.",
    "clocks between epochs": "What lay between two epochs of an agent is unknown up to when the "
    "collector took the new one's first seal.",
    "clocks host": "A host is called what its message of the greatest number says.",
    "clocks replaced agent": "What a replaced agent had unread was written before the next one "
    "began.",
    "clocks doublings": "A clock that was set back between two agents hides no doubled line that "
    "has a time of its own.",
    "clocks gate": "A wrong clock never proves a host wrongly.",
    "clocks measured": "The audit names a wrong clock, and takes neither a backlog nor a rebuild "
    "for one.",
    "all programs": "No line is lost or doubled when real programs meet faults.",
}
"""Maps the name of each promise to a sentence that states the promise. The promises are in the
order of the sections."""


def promise(*names: str) -> pytest.MarkDecorator:
    """Marks a test that checks these promises. Raises LookupError if a name is not in PROMISES, or
    if no name is given."""
    unknown = [name for name in names if name not in PROMISES]
    if unknown or not names:
        raise LookupError(f"no such promise in support/promises.py: {unknown}")
    return pytest.mark.promise(*names)
