"""The schema registry: Confluent's REST API on a log in ZooKeeper.

A schema's id stands in every record for ever, so the registry has one rule above all: an id means
one schema, whatever crashes. A log that every registry sees in the same order keeps this rule:

    /skidway/schemas/log/0000000001   {"change": "VERSION", "subject": "t-value", "version": 1,
    /skidway/schemas/log/0000000002    "id": 1, "schema": "...", "writer": "...", "time": ...}
    ...

Every change is one node that is created once and never altered: creating number n+1 is ZooKeeper's
compare-and-set. Any number of registries may write at once. Each decides on the state after entry
n, tries to create n+1, and if another one was first (the node exists), reads that entry and
decides again. A deletion is an entry, too. A registry that lost ZooKeeper's answer recognises its
own entry by the mark in the node. A log that was set back under a running registry (a restored
backup), or that has a gap, takes no more entries.

Reads are answered from memory, which follows the log by a watch on the next number. While ZooKeeper
is away, reads go on, and so does the registration of a schema that its subject already has; other
writes answer 503. A read that finds nothing asks ZooKeeper once for newer entries before it answers
404. While ZooKeeper is away, it answers 503: another registry may have given out that id, and a
client takes a 404 as final.

Ids come from the log alone: the next one is the highest plus one, so they have gaps only where an
import (mode IMPORT) brought ids of another registry; an id that had a schema never gets another.
A reference is stored with the id that it meant when it was made, so every schema stays readable,
whatever is deleted.

Reading order: `refusals` (every error, with its codes), `kept` (a schema under its id), `modes`,
`changes` (the log's entries), `parsed` (a cache of schemas as types), `state` (what the log means;
pure), `decisions/` (may this be done, and which entry does it; pure), `answering` (what answers
requests), `zookeeper_log` (the log) and `store` (the state that follows it), `rest/` (HTTP),
`passwords` and `authentication` (who may use the registry), `listeners` and `server` (sockets, TLS,
and what a connection may take), `settings`, `program`.

Not here: JSON Schema and Protobuf, contexts other than the default one, metadata and rules of
schemas, associations (every client accepts the 404).
"""
