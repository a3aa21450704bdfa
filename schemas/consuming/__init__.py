"""Prints records of topics for people: `skidway consume` and `skidway rejected`.

Reading order: asking (the registry's address and credentials), values (decodes Avro values by their
schema ids), consume, rejected.

A value that begins with a schema id is decoded. Any other value is printed as it is. A value that
cannot be decoded is also printed as it is, and a sentence on standard error says why. Programs that
move data do not use this package.
"""
