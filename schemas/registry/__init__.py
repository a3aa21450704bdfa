"""The schema registry: Confluent's REST API on a log in ZooKeeper.

Every record carries its schema's id for ever, so one rule comes before all others: an id means one
schema, whatever crashes. A log that every registry sees in the same order keeps this rule:

    /skidway/schemas/log/0000000001   {"change": "VERSION", "subject": "t-value", "version": 1,
    /skidway/schemas/log/0000000002    "id": 1, "schema": "...", "writer": "...", "time": ...}
    ...

Every change is one node that is created once and never altered. ZooKeeper creates node n+1 only if
no such node exists, so creating it is a compare-and-set. Any number of registries may write at
once. A registry makes its decision on the state after entry n, and tries to create entry n+1. If
the node exists already, another registry created it first. Then the registry that came second reads
that entry and decides again. A deletion is an entry, too. A registry that lost ZooKeeper's answer
recognises its own entry by a mark that it put into the node. If the log is set back while a
registry runs (a restored backup), or if the log has a gap, the registry writes no more entries.

Reads are answered from memory, which follows the log by a watch on the node of the next number.
While ZooKeeper is unreachable, the registry still answers reads. It also still answers a
registration if the subject already has the schema; it answers all other writes with 503. If a read
finds nothing, the registry asks ZooKeeper once for newer entries before it answers 404. While
ZooKeeper is unreachable, the registry answers 503 instead of 404: another registry may have written
what the client asks for, and a client takes a 404 as final.

Ids come from the log alone. The next id is the highest plus one, so there are gaps only where an
import (mode IMPORT) brought ids of another registry. An id that had a schema never gets another
schema. A reference is stored with the id of the schema that the reference meant when the reference
was made, so every schema stays readable, whatever is deleted.

Reading order: `refusals` (every error, with its codes), `kept` (a schema under its id), `modes`,
`changes` (the log's entries), `parsed` (a cache of schemas as types), `state` (the state after the
log's entries; pure), `decisions/` (whether a request is allowed, and which entry it writes; pure),
`answering` (the interface that answers requests), `zookeeper_log` (the log) and `store` (the state
that follows the log), `rest/` (HTTP), `passwords` and `authentication` (who may use the registry),
`listeners` and `server` (sockets, TLS, and the limits of a connection), `settings`, `program`.

Not here: JSON Schema and Protobuf, contexts other than the default one, metadata and rules of
schemas, associations (a request for associations gets a 404, which every client accepts).
"""
