"""Makes decisions about the deletion of versions and subjects. A version must be soft-deleted
before it can be deleted permanently. A version cannot be deleted as long as the schema of a live
version references it."""

from __future__ import annotations

from collections.abc import Iterable

from skidway.schemas.registry.changes import VersionsDeleted
from skidway.schemas.registry.decisions.decision import Decision, check_writable
from skidway.schemas.registry.refusals import (
    reference_exists,
    subject_not_deleted,
    subject_was_deleted,
    version_not_deleted,
    version_was_deleted,
)
from skidway.schemas.registry.state import RegistryState, Version


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Decision:
    """Returns the decision to soft-delete every live version of the subject, or, with `permanent`,
    to delete every version permanently. The answer for the client is the list of the versions'
    numbers."""
    check_writable(state, subject)
    every = state.versions(subject, deleted=True)
    live = [each for each in every if not each.deleted]
    if not permanent and not live:
        raise subject_was_deleted(subject)
    gone = every if permanent else live
    _check_unreferenced(state, subject, gone)
    if permanent and live:
        raise subject_not_deleted(subject)
    versions = tuple(each.version for each in gone)
    return Decision([*versions], VersionsDeleted(subject, versions, permanent))


def delete_version(
    state: RegistryState, subject: str, version: int | None, *, permanent: bool
) -> Decision:
    """Returns the decision to delete one version. If `version` is None, this is the latest version.
    The answer for the client is the version's number."""
    check_writable(state, subject)
    found = state.version(subject, version, deleted=version is not None)
    _check_unreferenced(state, subject, [found])
    if permanent and not found.deleted:
        raise version_not_deleted(subject, found.version)
    if not permanent and found.deleted:
        raise version_was_deleted(subject, found.version)
    return Decision(found.version, VersionsDeleted(subject, (found.version,), permanent))


def _check_unreferenced(state: RegistryState, subject: str, versions: Iterable[Version]) -> None:
    for each in versions:
        if state.referenced_by(subject, each.version):
            raise reference_exists(subject, each.version)
