"""Records of topics for people: `skidway consume` and `skidway rejected`.

Reading order: asking (which registry, and as whom), values (Avro values by their schema ids),
consume, rejected.

A value that begins with a schema id is decoded. Any other value is printed as it is. So is a value
that cannot be decoded; one sentence on standard error says why. Nothing here is for programs that
move data.
"""
