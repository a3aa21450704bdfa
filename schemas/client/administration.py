"""Sends the requests of operators to a registry: list all versions, delete, import, and set levels
of compatibility and modes."""

from __future__ import annotations

from typing import Any, Final

from skidway.schemas.client.answers import Registered, number, registered, submission
from skidway.schemas.client.registry_client import RegistryClient, quoted, versions_of
from skidway.schemas.client.transport import LEVEL_UNSET, MODE_UNSET, RegistryRefused

PAGE_SCHEMAS: Final = 200
"""The client requests the list of all versions in pages of at most this many versions. So an answer
has at most `ANSWER_BYTES_MAX` bytes if the schemas have at most 80 kB on average."""
LOOKS_MAX: Final = 5
"""The client tries at most this many times to list all versions. An attempt fails if a version is
deleted meanwhile."""


class RegistryAdministration(RegistryClient):
    """Extends `RegistryClient` by the requests that change a registry, or copy a whole registry.

    The answers to these requests are not cached. If the subject is None, a method reads or changes
    the global setting, which applies to all subjects without a setting of their own.
    """

    def all_versions(self, *, latest_only: bool = False, deleted: bool = False) -> list[Registered]:
        """Returns every version of every subject, or with `latest_only`, only the newest version of
        each subject. With `deleted`, also returns soft-deleted versions. Requests the versions page
        by page.

        Raises `RegistryRefused` if versions were deleted during each of `LOOKS_MAX` listings.
        """
        flags = f"latestOnly={_flag(latest_only)}&deleted={_flag(deleted)}"
        for _ in range(LOOKS_MAX):
            found = self._pages(f"/schemas?{flags}")
            if found is not None:
                return found
        raise RegistryRefused(
            409, 0, "The registry's versions change faster than they can be listed; try again."
        )

    def _pages(self, target: str) -> list[Registered] | None:
        """Returns the versions of all pages. Each page must begin with the last version of the
        previous page. If a page begins with another version, a version was deleted between the two
        requests, so the listing may lack versions. In this case returns None."""
        found: list[Registered] = []
        while True:
            offset = max(len(found) - 1, 0)
            page = self._requests.json(
                "GET", f"{target}&offset={offset}&limit={PAGE_SCHEMAS}", _page
            )
            if found and page == found:  # this registry has no paging: each page is the whole list
                return found
            if found and page[:1] != found[-1:]:
                return None
            found += page[1:] if found else page
            if len(page) != PAGE_SCHEMAS:
                return found

    def types(self) -> list[str]:
        """Returns the schema types that the registry accepts, such as AVRO."""
        return self._requests.json("GET", "/schemas/types", lambda found: list(map(str, found)))

    def highest_id(self, schema_id: int) -> int | None:
        """Returns the highest id that the registry ever assigned, or None if the registry does not
        report it. `schema_id` can be any existing id; it is needed only because the request must
        contain one."""
        target = f"/schemas/ids/{schema_id}?fetchMaxId=true"
        return self._requests.json("GET", target, lambda found: _whole(found.get("maxId")))

    def users(self, schema_id: int, *, deleted: bool = False) -> list[tuple[str, int]]:
        """Returns the subject and the number of each version whose schema has this id."""
        return self._requests.json(
            "GET",
            f"/schemas/ids/{schema_id}/versions?deleted={_flag(deleted)}",
            lambda found: [(str(each["subject"]), number(each["version"])) for each in found],
        )

    def referenced_by(self, subject: str, version: int) -> list[int]:
        """Returns the ids of the schemas that reference this version of the subject."""
        target = f"{versions_of(subject)}/{version}/referencedby"
        return self._requests.json("GET", target, lambda found: list(map(int, found)))

    def import_version(self, version: Registered) -> int:
        """Registers a version under the id and version number in `version`, and returns the id. The
        registry must be in mode IMPORT."""
        body = submission(version.schema, version.references, version.schema_type)
        body |= {**version.extra, "id": version.id, "version": version.version}
        return self._requests.json(
            "POST", versions_of(version.subject), lambda found: number(found["id"]), body
        )

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Soft-deletes a subject. With `permanent`, deletes permanently a subject that is already
        soft-deleted. Returns the numbers of the deleted versions."""
        target = f"/subjects/{quoted(subject)}{_permanent(permanent)}"
        return self._requests.json("DELETE", target, lambda found: list(map(int, found)))

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """Soft-deletes one version. With `permanent`, deletes permanently a version that is already
        soft-deleted. Returns the version's number."""
        target = f"{versions_of(subject)}/{version}{_permanent(permanent)}"
        return self._requests.json("DELETE", target, int)

    def level(self, subject: str | None) -> dict[str, Any] | None:
        """Returns the configuration of the subject, with the compatibility level under the key
        `compatibilityLevel`. Returns None if the subject has no configuration of its own."""
        return self._unless(LEVEL_UNSET, f"/config{_of(subject)}")

    def set_level(self, subject: str | None, configuration: dict[str, Any]) -> None:
        """Sets the configuration of the subject. In `configuration`, the compatibility level has
        the key `compatibility`. (The method `level` returns it under the key
        `compatibilityLevel`.)"""
        self._requests.json("PUT", f"/config{_of(subject)}", dict, configuration)

    def reset_level(self, subject: str | None) -> None:
        """Removes the subject's compatibility level, so that the global level applies. If the
        subject is None, removes the global level, so that the registry's default applies."""
        self._requests.json("DELETE", f"/config{_of(subject)}", dict)

    def mode(self, subject: str | None) -> str | None:
        """Returns the mode of the subject, or None if the subject has no mode of its own."""
        found = self._unless(MODE_UNSET, f"/mode{_of(subject)}")
        return None if found is None else str(found["mode"])

    def set_mode(self, subject: str | None, mode: str, *, force: bool = False) -> None:
        """Sets the mode of the subject. With `force`, sets the mode IMPORT or FORWARD even if there
        are schemas already."""
        target = f"/mode{_of(subject)}{'?force=true' if force else ''}"
        self._requests.json("PUT", target, dict, {"mode": mode})

    def reset_mode(self, subject: str | None) -> None:
        """Removes the subject's mode, so that the global mode applies. If the subject is None,
        removes the global mode, so that READWRITE applies."""
        self._requests.json("DELETE", f"/mode{_of(subject)}", dict)

    def _unless(self, code: int, target: str) -> dict[str, Any] | None:
        try:
            return self._requests.json("GET", target, dict[str, Any])
        except RegistryRefused as refused:
            if refused.error_code == code:
                return None
            raise


def _page(found: Any) -> list[Registered]:
    return [registered(each) for each in found]


def _whole(value: Any) -> int | None:
    return None if value is None else number(value)


def _of(subject: str | None) -> str:
    return "" if subject is None else f"/{quoted(subject)}"


def _flag(wanted: bool) -> str:
    return "true" if wanted else "false"


def _permanent(wanted: bool) -> str:
    return "?permanent=true" if wanted else ""
