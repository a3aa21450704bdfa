"""Decides whether a request is allowed, and which change it makes. Pure: takes a state and a
request, returns a decision.

Each function returns the answer for the client, and the change to the log that makes the answer
true; the change is None if the answer is true already. A refusal is raised. If another registry
writes an entry first, the store runs the decision again on the newer state. The rules are those of
Confluent's `KafkaSchemaRegistry` (register, deleteSchemaVersion, deleteSubject, setMode).

- `decision` the result of all decisions, and the checks of a subject's name and mode that all
  decisions share
- `submission` the schema that a client sent, with the schemas that it references
- `comparison` whether a schema is compatible with the subject's earlier schemas
- `registration`  new versions, imported ones, and lookups
- `deletion`    soft and permanent, of versions and subjects
- `configuration`  levels and modes
"""

from skidway.schemas.registry.decisions.decision import Decision

__all__ = ["Decision"]
