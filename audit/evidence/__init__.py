"""Evidence is the content of all audit messages together. The ledger stores it in SQLite. Readers
ask for the evidence about a window (a range of time in which buckets start). A *tally* is the sum
of what one sender counted for one (source topic, agent, bucket). A *digest* is a short hash of a
message; a message that has the number of an earlier message but another digest is a *clone* (the
sender's state was copied or restored). A *block* has 64 successive numbers. *Packed* values are
encoded in few bytes. Old blocks without a missing number are *settled*: the ledger deletes the
digests of their messages, and stores only the number up to which it has deleted digests.

hearing          where and when each message was read, and the clocks of the senders
rereading        *rereadings*: which agents may have read the same bytes, and during which time
overlaps         which agents with one host name were alive at the same time
tallies          the tallies of a bucket: as values, and as columns
agent_numbers    small numbers for agents
guarded          guards bytes in the store with a CRC
number_bases     base numbers: the number of an agent's delta is stored as its difference from a
                 base
tally_packing    encodes the tallies of a bucket in few bytes
counted_until    up to when counters say that they have counted the records of each topic
refused          messages that the ledger did not take, or took without a proof
evidence         tallies, seals, losses and gaps as values, without I/O
loss_buckets     the buckets that declared losses name and in which nothing was counted
ledger           stores all messages in SQLite
ledger_tables    the ledger's tables
pending_rows     the rows of one transaction, added up before they are written
sender_columns   what the messages of one transaction show about their senders, without I/O
sender_rows      writes into the ledger what sender_columns computes
number_rows      stores the digests of numbered messages, and settles old ones
tally_rows       adds the counts of one transaction to the tallies of their buckets
seal_blocks      encodes a block of seals of one agent in few bytes
seal_rows        writes seals
statuses         what programs have told about themselves, decoded when it is needed
ledger_changes   notices in which buckets a connection changed the counts
admission        decides which messages the ledger takes
ledger_rows      turns one message into rows of the ledger
pruning          deletes old buckets and seals that no verdict needs
ledger_seals     reads the seals that a judgement needs
ledger_evidence  reads evidence from the ledger's tables
line_evidence    files, losses and filtered records of single agents, for commands about lines
announced        keeps, from one step of judging to the next, what the ledger knows about agents and
                 files
blocked          the partitions of audit topics that cannot be read at present, without I/O
collection       reads the audit topics of a cluster into a ledger
"""
