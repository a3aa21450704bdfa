"""Evidence is the content of all audit messages together. The ledger stores it in SQLite, and
readers get it for any window of buckets.

hearing          where and when each message was read, and the clocks of the senders
rereading        which agents may have read the same bytes, and during which time
overlaps         which agents with one host name were alive at the same time
tallies          what each sender counted of each agent in a bucket: as values, and as columns
evidence         tallies, seals, losses and gaps as values, without I/O
ledger           stores all messages in SQLite
ledger_tables    the ledger's tables
pending_rows     the rows of one transaction, added up before they are written
number_rows      the digests of numbered messages
tally_rows       adds the counts of one transaction to the tallies of their buckets
seal_rows        writes seals
ledger_rows      turns one message into rows of the ledger
ledger_seals     reads the seals that a judgement can use
ledger_evidence  reads evidence from the ledger's tables
collection       reads the audit topics of a cluster into a ledger
"""
