"""Prints records of topics for people: `skidway consume` and `skidway rejected`.

Reading order: asking (the registry's address and credentials), values (decodes Avro values by their
schema ids), consume, rejected.

A value that begins with a schema id is decoded. Any other value is printed unchanged. If a value
cannot be decoded, it is also printed unchanged, and a sentence on standard error says why. Agents,
mirror and loader do not use this package.
"""
