"""The schema registry: Confluent's REST API on a log in ZooKeeper.

A schema's id stands in every record for ever, so the registry has one rule above all: an id means
one schema, whatever crashes. It is kept by a log that everybody sees in the same order:

    /skidway/schemas/log/0000000001   {"change": "VERSION", "subject": "t-value", "version": 1,
    /skidway/schemas/log/0000000002    "id": 1, "schema": "...", "writer": "...", "time": ...}
    ...

Every change is one node that is created once and never altered: creating number n+1 is ZooKeeper's
compare-and-set. Any number of registries may write at once. Each decides on the state after entry
n, tries to create n+1, and if another one was first (the node exists), reads that entry and
decides again. Ids are counted from the log, so they have no gaps and none is used twice; a
deletion is an entry, too. Whoever lost ZooKeeper's answer finds its own mark in the node. A log
that was set back under a running registry (a restored backup) or has a gap takes no more entries.

Reads are answered from memory, which follows the log by a watch on the number that comes next;
they go on while ZooKeeper is away, and so does the registration of a schema that its subject has
already; other writes answer 503 then. A read that finds nothing asks ZooKeeper once for what is
newer before it says so, and while ZooKeeper is away answers 503: another registry may have given
that id, and a client believes a 404 for good.

Ids come from the log alone: the next one is the highest plus one, so they have gaps only where an
import (mode IMPORT) brought ids of another registry; an id that had a schema never gets another.
A reference is kept with the id that it meant, so every schema can be read whatever is deleted.

Reading order: `refusals` (what can be answered, with codes), `kept` (a schema under its id),
`modes`, `changes` (entries), `parsed` (schemas as types, remembered), `state` (what the log means;
pure), `decisions/` (may this be done, and which entry does it; pure), `answering`, `zookeeper_log`
and `store` (the log there, the state here), `rest/` (HTTP), `passwords` and `authentication` (who
may come), `listeners` and `server` (sockets, TLS, and what a connection may take), `settings`,
`program`.

Not here: JSON Schema and Protobuf, contexts other than the default one, metadata and rules of
schemas, associations (every client takes their 404).
"""
