"""A registry as a file, and back: in the records of Confluent's `_schemas` topic.

A line is one record, `{"key": {...}, "value": {...}}`; what kafka-console-consumer prints of that
topic (key, tab, value) is read as well, and so is the topic itself. So a dump moves between
registries of both kinds, and ids, versions, soft deletions, references, levels and modes stay what
they are. Source of the record formats: Confluent's schema-registry 8, package `storage`.

Pure first: `records` (lines <-> records), `contents` (what the records amount to), `restoring`
(which steps lead from what a registry has to what a dump says, or why none may). Then I/O:
`registry` (contents of a registry; steps carried out, in mode IMPORT), `topic` (its records).
"""
