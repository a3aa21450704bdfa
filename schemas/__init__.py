"""Schemas: what a record's bytes mean, and the registry that remembers it.

Reading order:

- `avro_schema` (a strict parser: text -> values), `canonical` (the text it is kept under)
- `wire` (5 bytes before every datum), `single_object` (our own audit messages, no registry needed)
- `codec`: Arrow columns <-> Avro datums; `datum` and `strict`: one datum, read and checked;
  `bounds`: what a datum may claim
- `client`: asks a registry (ours or Confluent's); `second_opinion`: what Apache's library says
- `compatibility`: may this schema follow that one? `advice`: what to do where it may not;
  `differences`: two schemas side by side
- `inference`: proposes a schema for a log that has none
- `dump`: a whole registry as a file, in the records of Confluent's `_schemas` topic; `sightings`:
  which ids the newest records of topics hold; `topic_reading`: how both read
- `registry`: the registry service itself, on ZooKeeper; `cli`: its commands; `commands`: those on
  schemas; `consuming`: those that print records by their schemas

`rejected.avsc` is a registered schema like any other; `audit.avsc`, `announcement.avsc`,
`decision.avsc` and `recount.avsc` are for single-object messages. A released version of these is
copied to `history/` before it changes, so that old messages stay readable.
"""
