"""May this be done, and which change does it? Pure: a state and a request in, a decision out.

Each function returns the answer for the client and the change that makes it true; a change of None
means that it is true already. A refusal is raised. Whenever another registry was first, the store
runs the decision again on the newer state. The rules are those of Confluent's `KafkaSchemaRegistry`
(register, deleteSchemaVersion, deleteSubject, setMode).

- `decision`    what all of them give, and what they all ask of a subject's name and mode
- `submission`  what a client sent: a schema, with what it references
- `comparison`  may it follow the subject's earlier ones?
- `registration`  new versions, imported ones, and lookups
- `deletion`    soft and permanent, of versions and subjects
- `configuration`  levels and modes
"""

from skidway.schemas.registry.decisions.decision import Decision

__all__ = ["Decision"]
