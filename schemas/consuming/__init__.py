"""Prints records of topics for people: `skidway consume` and `skidway rejected`.

The reading order is: `asking` (finds the registry's address and credentials), `values` (decodes
Avro values by their schema ids), `consume`, `rejected_lines` (reads rejected lines),
`rejected_examples` (shows one rejected line as a short text), `rejected`.

`skidway consume` decodes a value that begins with a schema id, and prints any other value
unchanged. If a value with a schema id cannot be decoded, the command prints it unchanged, and a
sentence on standard error says why. `skidway rejected` decodes rejected lines, and only counts the
records that it cannot decode. `skidway agent replay`, the collector and some commands of `skidway
audit` use modules of this package, too.
"""
