"""Evidence: what all messages together say, kept in SQLite and read for any window of buckets.

hearing          where and when each message was taken, and the clocks of the senders
rereading        which agents may have read the same bytes, and while they could
overlaps         which agents spoke by turns: machines that are called alike
evidence         sums, seals, losses and gaps as values, without I/O
ledger           the fold of all messages, in SQLite
ledger_tables    its tables
ledger_rows      one message into its rows
ledger_evidence  evidence out of the ledger's tables
collection       the audit topics of a cluster into a ledger
"""
