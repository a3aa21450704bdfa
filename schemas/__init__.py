"""Schemas: what a record's bytes mean, and the registry that remembers it.

Reading order:

- `avro_schema` (a strict parser: text -> values), `canonical` (the text under which a schema is
  kept)
- `wire` (5 bytes before every datum), `single_object` (our own audit messages, no registry needed)
- `codec`: Arrow columns <-> Avro datums; `datum` and `strict`: one datum, read and checked;
  `bounds`: what a datum may claim
- `client`: asks a registry (ours or Confluent's); `second_opinion`: what Apache's library says
- `compatibility`: may this schema follow that one? `advice`: what to do where it may not;
  `differences`: two schemas side by side
- `inference`: proposes a schema for a log that has none
- `dump`: a whole registry as a file, in the records of Confluent's `_schemas` topic; `sightings`:
  which ids the newest records of topics hold; `topic_reading`: how both read topics
- `registry`: the registry service, on ZooKeeper; `cli`: the nouns `registry` and `schemas`;
  `commands`: the verbs of `skidway schemas`; `consuming`: the commands that print records by their
  schemas

`rejected.avsc` is a registered schema like any other; `audit.avsc`, `announcement.avsc`,
`decision.avsc` and `recount.avsc` are for single-object messages. Before one of these changes, its
released version is copied to `history/`, so that old messages stay readable.
"""
