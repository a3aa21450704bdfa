"""Tests the registry's modes, the changes that each mode permits, and the import of schemas with
the ids of another registry."""

from __future__ import annotations

import pytest

from support.registry_http import Registry, record, reference

A, AB, AC = record(a=None), record(a=None, b=0), record(a=None, c=None)


def set_mode(registry: Registry, mode: str, subject: str = "", query: str = "") -> None:
    path = f"/mode/{subject}".rstrip("/") + query
    assert registry.good("PUT", path, {"mode": mode}) == {"mode": mode.upper()}


def test_modes_are_set_for_all_and_for_one(registry: Registry) -> None:
    """A subject's own mode overrides the global mode. A DELETE request removes a mode and returns
    the removed mode."""
    assert registry.good("GET", "/mode") == {"mode": "READWRITE"}
    assert registry.refused("GET", "/mode/s") == (404, 40409)
    assert registry.good("GET", "/mode/s?defaultToGlobal=true") == {"mode": "READWRITE"}
    set_mode(registry, "readonly")
    set_mode(registry, "READWRITE", "s")
    assert registry.good("GET", "/mode") == {"mode": "READONLY"}
    assert registry.good("GET", "/mode/s") == {"mode": "READWRITE"}
    assert registry.good("GET", "/mode/t?defaultToGlobal=true") == {"mode": "READONLY"}
    assert registry.register("s", A) == 1
    assert registry.refused("POST", "/subjects/t/versions", {"schema": A}) == (422, 42205)
    assert registry.good("DELETE", "/mode/s") == {"mode": "READWRITE"}
    assert registry.refused("DELETE", "/mode/s") == (404, 40401)
    assert registry.good("DELETE", "/mode") == {"mode": "READONLY"}
    assert registry.good("GET", "/mode") == {"mode": "READWRITE"}


@pytest.mark.parametrize("mode", ["SOME", None, 7, ""])
def test_what_is_no_mode_is_42204(registry: Registry, mode: object) -> None:
    """An invalid mode gets the error code 42204."""
    assert registry.refused("PUT", "/mode", {"mode": mode}) == (422, 42204)


def test_read_only_means_everything(registry: Registry) -> None:
    """In the mode READONLY, the registry refuses new schemas, deletions and changes of
    compatibility levels. Existing schemas can still be read, and a serializer that registers an
    existing schema still gets its id."""
    registry.register("s", A)
    registry.register("gone", A)
    registry.good("DELETE", "/subjects/gone")
    set_mode(registry, "READONLY")
    refused = (422, 42205)
    assert registry.refused("POST", "/subjects/s/versions", {"schema": AB}) == refused
    assert registry.refused("DELETE", "/subjects/s") == refused
    assert registry.refused("DELETE", "/subjects/s/versions/1") == refused
    assert registry.refused("DELETE", "/subjects/gone?permanent=true") == refused
    assert registry.refused("PUT", "/config/s", {"compatibility": "NONE"}) == refused
    assert registry.refused("PUT", "/config", {"compatibility": "NONE"}) == refused
    assert registry.register("s", A) == 1
    assert registry.good("POST", "/subjects/s", {"schema": A})["id"] == 1
    message = registry.ask("DELETE", "/subjects/s")[1]["message"]
    assert message == "Subject s is in read-only mode"


def test_read_only_override_beats_the_subjects_own_mode(registry: Registry) -> None:
    """The global mode READONLY_OVERRIDE overrides each subject's own mode, until the global mode is
    removed."""
    set_mode(registry, "READWRITE", "s")
    set_mode(registry, "READONLY_OVERRIDE")
    assert registry.good("GET", "/mode/s") == {"mode": "READONLY_OVERRIDE"}
    assert registry.refused("POST", "/subjects/s/versions", {"schema": A}) == (422, 42205)
    registry.good("DELETE", "/mode")
    assert registry.good("GET", "/mode/s") == {"mode": "READWRITE"}


def test_deleting_the_mode_of_all_with_those_of_the_subjects(registry: Registry) -> None:
    """A request to delete the global mode with recursive=true also removes the subjects' own
    modes."""
    set_mode(registry, "READONLY", "s")
    set_mode(registry, "READONLY", "t")
    assert registry.good("DELETE", "/mode?recursive=true") == {"mode": "READWRITE"}
    for subject in ("s", "t"):
        assert registry.refused("GET", f"/mode/{subject}") == (404, 40409)


def test_an_import_brings_ids_and_versions(registry: Registry) -> None:
    """An imported schema keeps its id and version number, and is not checked for compatibility.
    Later schemas get ids above the highest imported id."""
    set_mode(registry, "IMPORT")
    assert registry.register("s", A, id=7, version=3) == 7
    assert registry.register("s", AC, id=5, version=4) == 5
    assert registry.register("s", record(z="string"), id=9) == 9
    assert registry.good("GET", "/subjects/s/versions") == [3, 4, 5]
    assert registry.good("GET", "/subjects/s/versions/3")["id"] == 7
    set_mode(registry, "READWRITE")
    assert registry.register("t", AB) == 10
    assert registry.register("t", A) == 7


def test_an_import_in_any_order(registry: Registry) -> None:
    """Versions may be imported in any order. Answers list them in ascending order, and the version
    with the highest number is the latest."""
    set_mode(registry, "IMPORT", "s")
    for schema_id, version in ((3, 3), (1, 1), (2, 2)):
        registry.register("s", record(**{f"f{version}": 0}), id=schema_id, version=version)
    assert registry.good("GET", "/subjects/s/versions") == [1, 2, 3]
    assert registry.good("GET", "/subjects/s/versions/latest")["id"] == 3
    registry.good("DELETE", "/mode/s")
    registry.good("PUT", "/config/s", {"compatibility": "NONE"})
    registry.register("s", record(new=None))
    assert registry.good("GET", "/subjects/s/versions") == [1, 2, 3, 4]


def test_an_import_is_repeated_without_harm(registry: Registry) -> None:
    """If a version is imported again, nothing changes. So a restore that was interrupted can begin
    again."""
    set_mode(registry, "IMPORT")
    for _ in range(2):
        assert registry.register("s", A, id=7, version=3) == 7
    assert len(registry.log.shared.contents) == 2
    assert registry.good("GET", "/subjects/s/versions") == [3]


def test_an_id_never_gets_a_second_schema(registry: Registry) -> None:
    """An id never gets a second schema, even if the mode IMPORT is forced, or if the id's first
    schema was deleted."""
    registry.register("s", A)
    set_mode(registry, "IMPORT", query="?force=true")
    body = {"schema": AB, "id": 1, "version": 2}
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42205)
    registry.good("DELETE", "/subjects/s")
    registry.good("DELETE", "/subjects/s?permanent=true")
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42205)
    assert registry.register("s", A, id=1, version=2) == 1


def test_an_import_does_not_replace_a_live_version(registry: Registry) -> None:
    """An import does not replace a live version. But an import may use the number of a deleted
    version."""
    set_mode(registry, "IMPORT")
    registry.register("s", A, id=1, version=1)
    body = {"schema": AB, "id": 2, "version": 1}
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42205)
    registry.good("DELETE", "/subjects/s/versions/1")
    assert registry.register("s", AB, id=2, version=1) == 2


def test_a_schema_of_the_subject_under_another_id_is_42207(registry: Registry) -> None:
    """If a subject already has a schema under one id, an import of this schema under another id
    gets the error code 42207."""
    set_mode(registry, "IMPORT")
    registry.register("s", A, id=1)
    status, document = registry.ask("POST", "/subjects/s/versions", {"schema": A, "id": 2})
    assert (status, document["error_code"]) == (422, 42207)


def test_one_schema_may_come_with_two_ids(registry: Registry) -> None:
    """A schema may be imported with two ids, for example after two registries were merged. If this
    schema is then registered under a new subject, it gets the id that was imported last."""
    set_mode(registry, "IMPORT")
    registry.register("s", A, id=4, version=1)
    registry.register("t", A, id=2, version=1)
    for schema_id in (2, 4):
        assert registry.good("GET", f"/schemas/ids/{schema_id}")["schema"]
    set_mode(registry, "READWRITE")
    assert registry.register("s", A) == 4
    assert registry.register("t", A) == 2
    assert registry.register("u", A) == 2


def test_an_import_with_references(registry: Registry) -> None:
    """An imported schema may reference versions that are deleted in this registry. After that, an
    import can no longer replace these versions."""
    set_mode(registry, "IMPORT")
    registry.register("part", record("Part", a=None), id=3, version=2)
    registry.good("DELETE", "/subjects/part")
    whole = record("Whole", part="Part")
    assert registry.register("whole", whole, reference("Part", "part", 2), id=8, version=1) == 8
    other = {"schema": record("Part", b=None), "id": 9, "version": 2}  # would replace version 2
    assert registry.refused("POST", "/subjects/part/versions", other) == (422, 42206)


def test_import_only_where_nothing_lives_unless_forced(registry: Registry) -> None:
    """If a subject has live versions, the registry accepts the mode IMPORT for this subject, and
    for all subjects, only with force=true."""
    registry.register("s", A)
    for path in ("/mode", "/mode/s"):
        status, document = registry.ask("PUT", path, {"mode": "IMPORT"})
        assert (status, document["error_code"]) == (422, 42205)
        assert document["message"] == "Cannot import since found existing subjects"
    set_mode(registry, "IMPORT", "other")
    set_mode(registry, "IMPORT", "s", "?force=true")
    registry.good("DELETE", "/mode/s")
    registry.good("DELETE", "/subjects/s")
    set_mode(registry, "IMPORT")
    set_mode(registry, "IMPORT", "s")


@pytest.mark.parametrize("mode", ["IMPORT", "FORWARD"])
def test_while_importing_nobody_registers_without_an_id(registry: Registry, mode: str) -> None:
    """In the modes IMPORT and FORWARD, new schemas without an id are refused, because they could
    take an id that the import needs."""
    set_mode(registry, mode)
    assert registry.refused("POST", "/subjects/s/versions", {"schema": A}) == (422, 42205)
    assert registry.register("s", A, id=1) == 1
    assert registry.register("s", A) == 1


def test_ids_and_versions_of_the_clients_own(registry: Registry) -> None:
    """In the mode READWRITE a client may not choose an id. If a client gives a version number, it
    must be the number of the subject's next version. An id or version of null, 0 or -1 counts as
    not given."""
    body = {"schema": A, "id": 77}
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42205)
    assert registry.register("s", A, id=-1, version=0) == 1
    assert registry.register("s", AB, id=None, version=2) == 2
    body = {"schema": record(a=None, d=0), "version": 7}
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42201)
    for wrong in ({"id": "7"}, {"id": 2**31}, {"version": True}):
        body = {"schema": A, **wrong}
        assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42201)


def test_level_and_mode_stay_until_the_last_version_goes_for_ever(registry: Registry) -> None:
    """A subject's own compatibility level and mode stay until its last version is deleted
    permanently, as in Confluent's registry since 8.1."""
    registry.register("s", A)
    registry.register("s", AB)
    registry.good("PUT", "/config/s", {"compatibility": "FULL"})
    set_mode(registry, "READWRITE", "s")
    for path in ("/subjects/s/versions/1", "/subjects/s", "/subjects/s/versions/1?permanent=true"):
        registry.good("DELETE", path)
        assert registry.good("GET", "/config/s") == {"compatibilityLevel": "FULL"}
        assert registry.good("GET", "/mode/s") == {"mode": "READWRITE"}
    registry.good("DELETE", "/subjects/s?permanent=true")
    assert registry.refused("GET", "/config/s") == (404, 40408)
    assert registry.refused("GET", "/mode/s") == (404, 40409)


def test_configuration_that_is_not_here_is_refused(registry: Registry) -> None:
    """Unsupported configuration, such as an alias or a group, is refused. If such configuration
    were ignored, the registry would accept schemas that the configuration should keep out."""
    for more in ({"alias": "t"}, {"compatibilityGroup": "g"}, {"normalize": True}):
        body = {"compatibility": "FULL", **more}
        assert registry.refused("PUT", "/config/s", body) == (422, 42205)
    body = {"compatibility": "FULL", "alias": None, "normalize": False}
    assert registry.good("PUT", "/config/s", body) == {"compatibility": "FULL"}


def test_modes_survive_a_restart(registry: Registry) -> None:
    """The registry's modes survive a restart, because they are stored in the registry's log in
    ZooKeeper."""
    set_mode(registry, "IMPORT")
    registry.register("s", A, id=7, version=3)
    set_mode(registry, "READONLY", "s")
    again = Registry(registry.log.shared)
    assert again.good("GET", "/mode") == {"mode": "IMPORT"}
    assert again.good("GET", "/mode/s") == {"mode": "READONLY"}
    assert again.good("GET", "/subjects/s/versions") == [3]
