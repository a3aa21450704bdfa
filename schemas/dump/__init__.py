"""Writes the contents of a registry to a file or a topic, and restores a registry from such a file
or topic. Both have the record format of Confluent's `_schemas` topic.

Each line of the file is one record, `{"key": {...}, "value": {...}}`. The package can also read the
records from the output of kafka-console-consumer for a `_schemas` topic (key, tab, value), or from
the topic itself. So an operator can copy a registry's contents between Skidway's registry and
Confluent's, with ids, versions, soft deletions, references, levels and modes. The record formats
are those of the package `storage` in Confluent's schema-registry 8.

Modules without I/O:

- `records`: turns lines into records, and records into lines
- `contents`: the state that the records describe
- `meaning`: what the references of versions mean
- `restoring`: the steps that bring a registry to the state of a dump, or the reasons why a restore
  is refused

Modules with I/O:

- `registry`: reads a registry's contents, and carries out the steps of a restore in mode IMPORT
- `topic`: reads and writes the records of the topic
"""
