"""Decides whether a request to the registry is allowed, and which change it makes. All functions
are pure: they return a decision that depends only on their arguments (a state and a request).

A decision contains the answer for the client, and the change that must be in the log before the
client gets the answer. The change is None if nothing has to change. If the request is not allowed,
the function raises a `Refusal`. If another registry process writes the next log entry first, the
store calls the function again with the newer state. The rules are those of Confluent's
`KafkaSchemaRegistry` (register, deleteSchemaVersion, deleteSubject, setMode).

- `decision`: the result of all decisions, and the checks of a subject's name and mode that several
  decisions share
- `submission`: the schema that a client sent, with the schemas that it references
- `comparison`: whether a schema is compatible with the subject's earlier schemas
- `registration`: new versions, imported versions, and lookups
- `deletion`: soft and permanent deletion of versions and subjects
- `configuration`: compatibility levels and modes
"""

from skidway.schemas.registry.decisions.decision import Decision

__all__ = ["Decision"]
