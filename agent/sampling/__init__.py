"""Chooses ranges of delivered files at random, makes their records a second time, and reports to
the audit what these records must contain.

draw     which ranges are chosen: a pure function of agent id, period and range
sampler  keeps the chosen ranges in the state, and publishes at most one of them in a turn

If all tiers have equal counts, the brokers and the output have a record of each line. But equal
counts do not prove that the record has the line's content. As long as the file exists, the agent
can prove this, too: it reads a range again, makes the records with the same recipe and the same
time of reading, and publishes a checksum of each record's content. (If a range has too many records
for one message, a random part of the range is taken.) `skidway audit sample` compares the checksums
with the rows in the output and the records in the topics.

In each period (a day by default), a fixed number of ranges is chosen, however much the host writes.
A range is the byte range of one intent. When the checkpoint passes an intent, the agent computes a
hash of agent id, period, file id and first byte. This random-looking number is the intent's "lot".
The table `drawn` keeps the intents with the lowest lots. The transaction in which the checkpoint
passes an intent also changes this table. So each range of the period has the same chance, the agent
need not know in advance how many ranges there will be, and a crash changes nothing. When the period
has ended, each turn makes the records of one chosen range. One transaction puts the message into
the outbox and removes the range from the table. So if the agent is killed at any moment, the
message is neither lost nor doubled.

Some records cannot be made again: the file was deleted, its bytes have changed, or another version
of the program would make other records. The agent reports such a range as gone. The audit does not
count such a range as a difference.
"""
