"""The agent's one SQLite database: which process may open it, what it contains, and how it changes.

    tables      what is stored where
    database    opens or refuses the database, reads it, and commits one transaction in each turn
    changes     what one transaction writes, gathered before the transaction begins
    renewal     new file ids, after an operator has adopted an older copy of a state

The database uses WAL with synchronous=FULL, so a commit that has returned survives a power loss.
The agent makes a new database under another name, and renames it only when it is complete. So if
the agent finds an empty or incomplete database, something has damaged it: an interrupted first
start cannot leave such a database. The agent refuses such a database with an error message, and
never replaces it by a new one. Rows of files, labels and intents decide what the agent reads or
sends again. These rows contain a checksum, because SQLite may notice a damaged page, but does not
notice a changed value.

A full disk does not damage the database. If a transaction fails because the disk is full, the agent
rolls the transaction back, keeps the transaction's changes in memory, and tries again. Until the
transaction succeeds, the agent reads no file, and does not send the records of the transaction's
intents.
"""
