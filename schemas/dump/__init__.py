"""A registry as a file, and back, in the record format of Confluent's `_schemas` topic.

A line is one record, `{"key": {...}, "value": {...}}`; the output of kafka-console-consumer for
that topic (key, tab, value) can be read as well, and so can the topic itself. So a dump moves
between registries of both kinds, and keeps ids, versions, soft deletions, references, levels and
modes. Source of the record formats: Confluent's schema-registry 8, package `storage`.

Pure modules: `records` (lines <-> records), `contents` (the state that the records describe),
`restoring` (which steps bring a registry to the state of a dump, or why none may be taken). Modules
with I/O: `registry` (reads a registry's contents, and carries out the steps in mode IMPORT),
`topic` (reads and writes the topic's records).
"""
