"""Two registries that share one log get requests in any order, with lost answers, races and
restarts. Both registries answer as a model of the registry does.

After every step, the shared log leads to the versions, ids and modes that the model has. Whatever
happens, each id belongs to only one schema, and every registry that reads the log reaches the same
state. A new schema gets the id after the highest id; only an imported schema keeps its own id."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skidway.schemas.compatibility import Level
from skidway.schemas.registry.decisions import (
    Decision,
    configuration,
    deletion,
    registration,
    submission,
)
from skidway.schemas.registry.refusals import Refusal
from skidway.schemas.registry.state import RegistryState
from skidway.schemas.registry.store import Store
from support.clock import ManualClock
from support.registry_log import MemoryLog, SharedLog
from support.registry_model import ALL, Model, Refused, Row, Schema, Uses

NODES = st.integers(0, 1)
SUBJECTS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(0, 2)
VERSIONS = st.integers(1, 4)
IDS = st.integers(1, 6)
FAULTS = st.sampled_from(["", "", "", "before", "after", "twice"])
MODES = st.sampled_from(
    ["READWRITE"] * 4 + ["IMPORT"] * 3 + ["FORWARD", "READONLY", "READONLY_OVERRIDE"]
)

Decide = Callable[[RegistryState], Decision]
Expected = Callable[[Model], Any]


class Registries(RuleBasedStateMachine):
    """The test's state machine: the stores of two registries that share one log, and the model."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = SharedLog()
        self.model = Model()
        self.meaning: dict[int, str] = {}
        self.nodes = [self.made(), self.made()]

    def made(self) -> tuple[MemoryLog, Store]:
        entries = MemoryLog(self.shared)
        return entries, Store(entries, ManualClock(), Level.NONE)

    @rule(node=NODES, subject=SUBJECTS, number=NUMBERS, fault=FAULTS)
    def register(self, node: int, subject: str, number: int, fault: str) -> None:
        self.write(node, registering(subject, asked(number)), on_register(subject, number), fault)

    @rule(node=NODES, subject=SUBJECTS, part=SUBJECTS, fault=FAULTS)
    def register_with_reference(self, node: int, subject: str, part: str, fault: str) -> None:
        uses = self.uses(part)
        if uses is not None:
            decide = registering(subject, asked(uses, self.model))
            self.write(node, decide, on_register(subject, uses), fault)

    @rule(
        node=NODES, subject=SUBJECTS, number=NUMBERS, schema_id=IDS, version=VERSIONS, fault=FAULTS
    )
    def bring(
        self, node: int, subject: str, number: int, schema_id: int, version: int, fault: str
    ) -> None:
        decide = registering(subject, asked(number, id=schema_id, version=version))
        expected = on_import(subject, number, schema_id, version)
        self.write(node, decide, expected, fault)

    @rule(node=NODES, subject=SUBJECTS, part=SUBJECTS, schema_id=IDS, version=VERSIONS)
    def bring_with_reference(
        self, node: int, subject: str, part: str, schema_id: int, version: int
    ) -> None:
        uses = self.uses(part)
        if uses is not None:
            decide = registering(subject, asked(uses, self.model, id=schema_id, version=version))
            self.write(node, decide, on_import(subject, uses, schema_id, version))

    @rule(node=NODES, subject=SUBJECTS, permanent=st.booleans(), fault=FAULTS)
    def delete_subject(self, node: int, subject: str, permanent: bool, fault: str) -> None:
        self.write(
            node,
            lambda state: deletion.delete_subject(state, subject, permanent=permanent),
            lambda model: model.delete_subject(subject, permanent),
            fault,
        )

    @rule(node=NODES, subject=SUBJECTS, version=VERSIONS, permanent=st.booleans())
    def delete_version(self, node: int, subject: str, version: int, permanent: bool) -> None:
        self.write(
            node,
            lambda state: deletion.delete_version(state, subject, version, permanent=permanent),
            lambda model: model.delete_version(subject, version, permanent),
        )

    @rule(node=NODES, subject=st.one_of(st.just(ALL), SUBJECTS), mode=MODES, force=st.booleans())
    def set_mode(self, node: int, subject: str, mode: str, force: bool) -> None:
        wanted, body = None if subject == ALL else subject, {"mode": mode}
        self.write(
            node,
            lambda state: configuration.set_mode(state, wanted, body, force=force),
            lambda model: model.set_mode(subject, mode, force),
        )

    @rule(node=NODES, subject=st.one_of(st.just(ALL), SUBJECTS))
    def reset_mode(self, node: int, subject: str) -> None:
        wanted = None if subject == ALL else subject
        self.write(
            node,
            lambda state: configuration.reset_mode(state, wanted, recursive=False),
            lambda model: model.reset_mode(subject),
        )

    @rule(node=NODES, subjects=st.tuples(SUBJECTS, SUBJECTS), numbers=st.tuples(NUMBERS, NUMBERS))
    def race(self, node: int, subjects: tuple[str, str], numbers: tuple[int, int]) -> None:
        """Lets both registries register a schema. The other registry writes at a critical moment:
        the registry `node` has decided about its request, but has not yet written its own entry to
        the log."""
        (mine, theirs), (number, other) = subjects, numbers
        entries, _ = self.nodes[node]
        entries.meanwhile.append(
            lambda: self.write(
                1 - node, registering(theirs, asked(other)), on_register(theirs, other)
            )
        )
        self.write(node, registering(mine, asked(number)), on_register(mine, number))
        entries.meanwhile.clear()

    @rule(node=NODES)
    def restart(self, node: int) -> None:
        self.nodes[node] = self.made()

    @rule(node=NODES, behind=st.integers(1, 3))
    def lag(self, node: int, behind: int) -> None:
        """Lets the registry's ZooKeeper server lag behind ZooKeeper's leader: the server lacks up
        to `behind` of the log's newest entries.
        """
        entries, store = self.nodes[node]
        entries.visible = max(store.entries, len(self.shared.contents) - behind)

    @invariant()
    def the_log_gives_what_the_model_says(self) -> None:
        _, fresh = self.made()
        assert fresh.read(summary) == self.model.summary()

    @invariant()
    def ids_have_one_schema_and_no_gaps(self) -> None:
        highest = 0
        for content in self.shared.contents:
            entry = json.loads(content)
            if "schema" in entry:
                text = json.dumps([entry["schema"], entry.get("references")])
                assert self.meaning.setdefault(entry["id"], text) == text
                assert entry["change"] == "IMPORT" or entry["id"] == highest + 1
                highest = max(highest, entry["id"])

    def teardown(self) -> None:
        for entries, store in self.nodes:
            entries.lose = []
            store.write(lambda _state: Decision(None, None))  # makes the store read the log
            assert store.read(summary) == self.model.summary()

    def uses(self, target: str) -> Uses | None:
        """Looks for versions of the subject `target` whose schemas refer to no other schema.
        Returns a reference to the newest such version, or None if there is none."""
        rows = self.model.rows.get(target, {})
        plain = [n for n, row in rows.items() if isinstance(self.model.schemas[row.id], int)]
        return Uses(target, max(plain), rows[max(plain)].id) if plain else None

    def write(self, node: int, decide: Decide, expected: Expected, fault: str = "") -> None:
        entries, store = self.nodes[node]
        entries.lose = [fault] if fault else []
        before = len(self.shared.contents)
        answer = answered(store, decide)
        entries.lose = []
        if answer == 503:  # ZooKeeper has not answered; it may still have stored the write
            assert fault in ("before", "after")
            if len(self.shared.contents) > before:
                predicted(expected, self.model)
        else:
            assert answer == predicted(expected, self.model)


def answered(store: Store, decide: Decide) -> Any:
    """Returns the store's answer to a write: an id, the deleted versions, or the error code of a
    refusal. Returns None if the answer only repeats the request."""
    try:
        answer = store.write(decide)
    except Refusal as refusal:
        return refusal.error_code
    return None if isinstance(answer, dict) else getattr(answer, "id", answer)


def predicted(expected: Expected, model: Model) -> Any:
    """Calls `expected`, which makes a request to the model. Returns the model's answer, or the
    error code if the model refuses the request."""
    try:
        return expected(model)
    except Refused as refused:
        return refused.code


def asked(
    schema: Schema, model: Model | None = None, **more: Any
) -> Callable[[RegistryState], submission.Submitted]:
    """Returns a function that takes a state of the registry. The function returns how a registry
    in this state understands a request whose body contains `schema`.
    """
    body: dict[str, Any] = {"schema": text_of(schema, model), **more}
    if isinstance(schema, Uses):
        reference = {"name": "Part", "subject": schema.subject, "version": schema.version}
        body["references"] = [reference]
    return lambda state: submission.submit(state, submission.asked(body))


def text_of(schema: Schema, model: Model | None) -> str:
    if isinstance(schema, Uses):
        assert model is not None
        part = f"R{model.schemas[schema.id]}"
        return json.dumps(
            {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": part}]}
        )
    return json.dumps({"type": "record", "name": f"R{schema}", "fields": []})


def registering(subject: str, read: Callable[[RegistryState], submission.Submitted]) -> Decide:
    return lambda state: registration.register(state, subject, read(state))


def on_register(subject: str, schema: Schema) -> Expected:
    return lambda model: model.register(subject, schema)


def on_import(subject: str, schema: Schema, schema_id: int, version: int) -> Expected:
    return lambda model: model.put(subject, schema, schema_id, version)


def summary(state: RegistryState) -> Any:
    rows = {
        name: {n: Row(each.id, each.deleted) for n, each in subject.versions.items()}
        for name, subject in state.subjects.items()
    }
    kept = {n: state.kept(n) for n in range(1, state.last_id + 1)}
    schemas: dict[int, Schema] = {}
    for number, each in kept.items():
        if each is not None:
            used = [Uses(r.subject, r.version, r.id) for r in each.references]
            name = json.loads(each.text)["name"]
            schemas[number] = used[0] if used else int(name[1:])
    modes = {name or ALL: mode.value for name, mode in state.modes.items()}
    return rows, schemas, modes


TestRegistries = Registries.TestCase
TestRegistries.settings = settings(stateful_step_count=40)


def test_of_two_ids_of_a_schema_the_one_written_last_is_answered() -> None:
    """If a schema with two ids is registered again, the registry answers with the id that was
    written last, as Confluent's registry does."""
    for first, second in (((2, 3), (3, 2)), ((3, 2), (2, 3))):
        registries = Registries()
        registries.register(0, "a", 0, "")
        registries.set_mode(0, "a", "IMPORT", force=True)
        for version, schema_id in (first, second):
            registries.bring_with_reference(0, "a", "a", schema_id, version)
        registries.register_with_reference(1, "a", "a", "")
        registries.set_mode(1, "b", "READWRITE", force=False)
        registries.register_with_reference(1, "b", "a", "")
        holds(registries)
        rows, _, _ = registries.model.summary()
        assert rows["b"] == {1: Row(second[1])}


def test_a_deleted_version_that_is_referenced_stays_when_its_schema_returns() -> None:
    """If a schema is registered again, the registry normally removes the schema's deleted version.
    If other schemas reference this version, the registry keeps it, because readers look up a
    referenced version by its subject and version number."""
    registries = Registries()
    registries.register(0, "a", 0, "")
    registries.delete_subject(0, "a", permanent=False, fault="")
    registries.set_mode(0, "b", "IMPORT", force=False)
    registries.bring_with_reference(0, "b", "a", 2, 1)
    registries.register(0, "a", 0, "")
    holds(registries)
    rows, _, _ = registries.model.summary()
    assert rows["a"] == {1: Row(1, deleted=True), 2: Row(1)}


def test_an_imported_schema_that_references_its_own_version_is_not_deleted() -> None:
    """If an imported schema references its own version, the registry refuses to delete this version
    with error code 42206, as Confluent's registry does. A reference contains a subject and a
    version, not a schema. So the refusal is right even if the version had a different schema when
    the reference was made."""
    registries = Registries()
    registries.register(0, "a", 0, "")
    registries.delete_subject(0, "a", permanent=False, fault="")
    registries.set_mode(0, "a", "IMPORT", force=False)
    registries.bring_with_reference(0, "a", "a", 2, 1)
    registries.delete_subject(0, "a", permanent=False, fault="")
    holds(registries)
    rows, _, _ = registries.model.summary()
    assert rows["a"] == {1: Row(2)}


def holds(registries: Registries) -> None:
    """Runs the checks that the state machine runs after every step and at its end."""
    registries.the_log_gives_what_the_model_says()
    registries.ids_have_one_schema_and_no_gaps()
    registries.teardown()
