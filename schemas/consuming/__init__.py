"""Records of topics for people: `skidway consume` and `skidway rejected`.

Reading order: asking (which registry, and as whom), values (Avro values by their schema ids),
consume, rejected.

A value that begins with a schema id is decoded; any other is printed as it is, and so is one that
cannot be decoded, with one sentence on standard error. Nothing here is for programs that move data.
"""
