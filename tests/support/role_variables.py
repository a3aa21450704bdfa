"""Renders the variables of a role of Skidway's Ansible collection as Ansible would render them for
a host, but without Ansible.

Ansible renders a variable with jinja2 and native types when the variable is read. This module
renders the expressions of our roles in the same way. It implements only the Ansible filters that
these expressions use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import yaml
from jinja2.nativetypes import NativeEnvironment
from jinja2.runtime import Context, missing

from deploy import variables
from deploy.ansible.plugins.filter.fleet import FILTERS


class RoleVariables:
    """All variables that a role can read on one host.

    `role` is the role's name. `given` contains variables of the inventory, which override the
    role's defaults. `hosts` contains the variables of all hosts by name, for Ansible's `hostvars`.
    `groups` contains the names of the hosts of each group.
    """

    def __init__(
        self,
        role: str,
        given: Mapping[str, Any],
        hosts: Mapping[str, Mapping[str, Any]],
        groups: Mapping[str, list[str]],
    ) -> None:
        path = variables.COLLECTION / "roles" / role / "vars" / "main.yml"
        self._raw = {
            **variables.defaults("common"),
            **variables.defaults(role),
            **given,
            **yaml.safe_load(path.read_text()),
            "hostvars": hosts,
            "groups": groups,
        }
        self._jinja = NativeEnvironment()
        self._jinja.context_class = _context(self)
        self._jinja.filters |= {f"skidway.fleet.{each.__name__}": each for each in FILTERS}
        self._jinja.filters |= {"combine": _combine, "dirname": os.path.dirname}
        self._jinja.filters |= {"extract": lambda key, container: container[key]}
        self._jinja.filters |= {"dict2items": _items}
        self._jinja.tests["match"] = lambda text, pattern: bool(re.match(pattern, text))

    def __getitem__(self, name: str) -> Any:
        return self._rendered(self._raw[name])

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    def _rendered(self, value: Any) -> Any:
        if isinstance(value, str) and "{{" in value:
            return self._jinja.from_string(value.strip()).render()
        if isinstance(value, Mapping):
            return {key: self._rendered(each) for key, each in value.items()}
        return [self._rendered(each) for each in value] if isinstance(value, list) else value


def _context(found: RoleVariables) -> type[Context]:
    class ReadWhenAsked(Context):
        def resolve_or_missing(self, key: str) -> Any:
            own = super().resolve_or_missing(key)
            return found[key] if own is missing and key in found else own

    return ReadWhenAsked


def _items(mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in mapping.items()]


def _combine(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {**one, **other}
