"""Tests how the contents of a registry are read over its REST API, even while other clients change
the registry."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.schemas.client import RegistryRefused, administration
from skidway.schemas.dump import registry as dumped
from skidway.schemas.dump.contents import Contents
from skidway.schemas.dump.restoring import steps
from support import registry_http
from support.registry_http import InProcess, Registry, record, reference

PAGE = 3


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Returns a registry with ten subjects of one version each. A dump reads the list of versions
    in pages of three versions."""
    monkeypatch.setattr(administration, "PAGE_SCHEMAS", PAGE)
    made = Registry()
    for each in "abcdefghij":
        made.register(each, record(each))
    return made


def test_what_is_deleted_while_pages_are_read_moves_nothing_past_us(registry: Registry) -> None:
    """If a subject is deleted while a dump reads the list of versions page by page, later versions
    move to earlier pages. Even then, the dump skips no live subject, and marks no live subject as
    deleted."""
    transport = InProcess(registry)
    gone = iter("ab")

    def delete_one(target: str) -> None:
        if "deleted=false" in target and f"offset={PAGE - 1}" in target:
            for each in gone:
                registry.good("DELETE", f"/subjects/{each}")
                return

    transport.meanwhile = delete_one
    found = dumped.read(registry_http.administration(transport))
    deleted = {each.subject for each in found.versions.values() if each.deleted}
    assert deleted == {"a", "b"}
    assert found.subjects() == list("abcdefghij")


def test_a_registry_that_never_stands_still_is_refused(registry: Registry) -> None:
    """If versions are deleted again and again while a client lists them page by page, the client
    ends with an error after a limited number of attempts."""
    transport = InProcess(registry)

    def change(target: str) -> None:
        if f"offset={PAGE - 1}" in target:
            live = registry.good("GET", "/subjects")
            registry.good("DELETE", f"/subjects/{live[0]}")

    transport.meanwhile = change
    with pytest.raises(RegistryRefused, match="change faster"):
        registry_http.administration(transport).all_versions()


@pytest.mark.parametrize("count", [PAGE, PAGE + 1])
def test_a_registry_without_pages_is_read_once(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """If a registry always returns its whole list of versions instead of pages, the client lists
    each version once. It sends at most two requests, even if the list is exactly as long as one
    page."""
    client = registry_http.administration(InProcess(registry))
    everything = client.all_versions()[:count]
    asked: list[str] = []

    def without_pages(method: str, target: str, read: Any) -> Any:
        asked.append(target)
        return everything

    monkeypatch.setattr(client._requests, "json", without_pages)
    assert client.all_versions() == everything
    assert len(asked) <= 2


def test_a_mode_above_all_is_not_that_of_each_subject(registry: Registry) -> None:
    """If the global mode is READONLY_OVERRIDE, a registry reports this mode for every subject, but
    a dump has it only as the global mode. If the dump also had it as the mode of each subject, a
    registry that is filled from the dump would keep it for each subject."""
    registry.good("PUT", "/mode", {"mode": "READONLY_OVERRIDE"})
    found = dumped.read(registry_http.administration(InProcess(registry)))
    assert found.modes == {None: "READONLY_OVERRIDE"}


PART = record("Part", user="string", action="string")
OTHER = record("Part", action="string", user="string")
WHOLE = record("Whole", part="Part")


def restored(wanted: Contents, into: Registry) -> None:
    """Restores a dump into the registry. Asserts that a second restore would change nothing."""
    client = registry_http.administration(InProcess(into))
    there = dumped.read(client)
    dumped.carry_out(client, steps(wanted, there), there)
    assert not steps(wanted, dumped.read(client))


def referring() -> Registry:
    """Returns a registry in which the schema of the subject `whole` (id 2) references a version of
    the subject `part`. Both subjects are soft-deleted."""
    made = Registry()
    made.register("part", PART)
    made.register("whole", WHOLE, reference("Part", "part"))
    made.good("DELETE", "/subjects/whole")
    made.good("DELETE", "/subjects/part")
    return made


def make_again(registry: Registry) -> None:
    """Deletes `part` permanently, registers another schema as its version 1, and registers in
    `whole` the same text as before, which now references this version."""
    registry.good("DELETE", "/subjects/part?permanent=true")
    registry.register("part", OTHER)
    registry.register("whole", WHOLE, reference("Part", "part"))


def move_on(registry: Registry) -> None:
    """Registers the schema of `part` again, which becomes version 2, and registers in `whole` the
    same text as before with a reference to version 2."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, reference("Part", "part", 2))


@pytest.mark.parametrize("change", [make_again, move_on])
def test_a_dump_keeps_what_the_references_of_a_deleted_version_meant(change: Any) -> None:
    """After a restore, a schema id means the same as in the dumped registry. This is so even if a
    version that the id's schema references was permanently deleted, or has another schema now. The
    dump can also be restored into the dumped registry itself."""
    old, new = referring(), Registry()
    change(old)
    wanted = dumped.read(registry_http.administration(InProcess(old)))
    restored(wanted, new)
    for schema_id in {each.id for each in wanted.versions.values()}:
        path = f"/schemas/ids/{schema_id}?format=resolved"
        assert new.good("GET", path) == old.good("GET", path)
    restored(wanted, old)


def test_a_dump_from_before_a_reference_was_lost_still_fits() -> None:
    """A dump may contain a reference of a deleted version to another deleted version. It can be
    restored into the same registry even after the referenced schema got another version number."""
    registry = referring()
    wanted = dumped.read(registry_http.administration(InProcess(registry)))
    assert wanted.versions["whole", 1].references
    move_on(registry)
    restored(wanted, registry)
