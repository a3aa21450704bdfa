"""Avro schemas, which say what the bytes of a record mean, and the registry that stores the
schemas.

Reading order:

- `avro_schema` (a strict parser: text -> values), `canonical` (the text in which the registry
  stores a schema)
- `wire` (the 5 bytes that Confluent's format puts before every datum), `single_object` (the
  encoding of Skidway's audit messages, which needs no registry)
- `codec`: Arrow columns <-> Avro datums; `datum` and `strict` read and check a single datum;
  `bounds`: limits on the memory that a datum can make its reader allocate
- `client`: the client of a registry (ours or Confluent's)
- `compatibility`: whether a schema is compatible with earlier ones; `logical_types`: which logical
  types of a schema readers ignore; `advice`: what changed, edits that make a schema compatible, and
  what readers make of it
- `inference`: proposes a schema for log lines for which there is no schema yet
- `dump`: a whole registry as a file, in the records of Confluent's `_schemas` topic;
  `topic_reading`: reads ranges of topics
- `registry`: the registry service, on ZooKeeper; `cli`: the commands `skidway registry ...` and
  `skidway schemas ...`; `commands`: the subcommands of `skidway schemas`; `consuming`: the commands
  that decode records with their schemas and print them

`rejected.avsc` is a registered schema like any other. The schemas `audit.avsc`,
`announcement.avsc`, `decision.avsc` and `recount.avsc` are for single-object messages.
"""
