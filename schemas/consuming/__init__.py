"""Prints records of topics for people: `skidway consume` and `skidway rejected`.

The reading order is: `asking` (finds the registry's address and credentials), `values` (decodes
Avro values by their schema ids), `consume`, `rejected_lines` (reads rejected lines),
`rejected_examples` (shows one rejected line as a short text), `rejected`.

The commands decode a value that begins with a schema id, and print any other value unchanged. If a
value with a schema id cannot be decoded, the commands print it unchanged, and a sentence on
standard error says why. Agents, mirror and loader do not use this package.
"""
