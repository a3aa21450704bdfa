"""Draws ranges of files that were delivered, makes their records once more, and tells the audit
what every record must contain.

draw     which ranges are drawn: a pure function of agent id, period and range
sampler  keeps the drawn ranges in the state, and publishes one of them in a turn

Equal counts prove that the brokers and the output have a record of each line, but not that it has
the line's content. The agent can prove more, as long as it still has the file: it reads a range
again, makes the records with the same recipe and the same time of reading, and publishes a sum of
each record's content. `skidway audit sample` compares the sums with rows and records.

A period (a day by default) has a fixed number of draws, whatever the host writes. When the
checkpoint passes an intent, the intent gets a lot, which is a hash of agent id, period and place.
The intents with the least lots stay in the table `drawn`, in the transaction in which the
checkpoint passes them. So each range of the period has the same chance, nobody has to know how many
there will be, and a crash changes nothing. When the period has ended, each turn makes the records
of one drawn range, and puts the message into the outbox in the transaction that removes the range
from the table. So a message is neither lost nor doubled if the agent is killed in between.

What cannot be made again is told as gone, and is not a difference: the file was deleted, or its
bytes have changed, or another version of the program would make other records.
"""
