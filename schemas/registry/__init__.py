"""The schema registry: Confluent's REST API on a log in ZooKeeper.

Every record permanently contains the id of its schema. So the most important rule is that an id
never means two schemas, whichever process crashes. A log, which every registry reads in the same
order, guarantees this rule:

    /skidway/schemas/log/0000000001   {"change": "VERSION", "subject": "t-value", "version": 1,
                                       "id": 1, "schema": "...", "writer": "...", "time": ...}
    /skidway/schemas/log/0000000002   ...

Every change is one node in ZooKeeper. This node is created once and never altered. ZooKeeper
creates node n+1 only if no such node exists, so the creation is a compare-and-set. Any number of
registry processes may write at once. A registry decides about a request by the state after entry n,
and tries to create entry n+1. If the node already exists, another registry has created it first. In
this case, the registry reads that entry and decides again. A deletion is an entry, too. If
ZooKeeper's answer is lost, a registry recognises its own entry by the unique id `writer` in the
node. If somebody restores an older backup of the log while a registry runs, or if the log has a
gap, the registry writes no more entries.

The registry keeps the state after the newest entry in memory, and answers reads from memory if
memory has the answer. It has a ZooKeeper watch on the node with the next number, so it notices and
reads new entries. While ZooKeeper is unreachable, the registry still answers reads from memory, and
requests to register a schema that the subject already has. It answers all other writes with 503. If
a read finds nothing in memory, the registry asks ZooKeeper once for newer entries before it answers
404. While ZooKeeper is unreachable, the registry answers 503 instead of 404. The reason is that
clients treat a 404 as final, but another registry may already have written what the client asks
for.

Ids depend only on the log. The next id is the highest id plus one, so there are gaps only where an
import (mode IMPORT) added ids of another registry. An id that had a schema never gets another
schema. The registry stores each reference together with the id of the referenced schema. So every
schema stays readable, even if the versions that it references are deleted.

Reading order:

- `refusals`: every error, with its status and code
- `kept`: a stored schema with its id
- `modes`: the modes of a subject, which say what may be changed in it
- `changes`: the entries of the log
- `parsed`: a cache of parsed schemas
- `state`: the state after the log's entries; does no I/O
- `decisions/`: whether a request is allowed, and which entry it writes; does no I/O
- `answering`: the interface of the objects that answer requests
- `zookeeper_log`: the log in ZooKeeper
- `store`: keeps the state up to date with the log
- `rest/`: the REST API
- `passwords` and `authentication`: who may use the registry
- `settings` and `program`: the registry as a process

The registry supports neither JSON Schema nor Protobuf. It has no contexts except the default
context, no metadata or rules of schemas, and no associations. (A request for associations gets a
404, which every client accepts.)
"""
