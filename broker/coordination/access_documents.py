"""The nodes in ZooKeeper that say who may log in, and who may do what. Paths and contents are those
of Apache Kafka up to 3.9, so its tools can read and write them.

    /kafka-acl/Topic/NAME                          the rules for one resource, or for all (NAME *)
    /kafka-acl-extended/prefixed/Topic/PREFIX      the rules for all whose names begin so
    /config/users/NAME                             the credentials of a user, by mechanism

A name may be any text; characters that are not allowed in a node's name are percent-encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from skidway import log
from skidway.broker.coordination.documents import DocumentRefused
from skidway.kafka.acls.acl import (
    ANY_NAME,
    ANY_USER,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
)
from skidway.kafka.acls.acl import ResourceType as Type
from skidway.kafka.acls.validation import refusal
from skidway.security import scram_credential
from skidway.security.sasl import SCRAM
from skidway.security.scram_credential import CredentialInvalid, ScramCredential

USERS: Final = "/config/users"
ROOTS: Final[Mapping[PatternType, str]] = {
    PatternType.LITERAL: "/kafka-acl",
    PatternType.PREFIXED: "/kafka-acl-extended/prefixed",
}
TYPES: Final[Mapping[Type, str]] = {
    Type.TOPIC: "Topic",
    Type.GROUP: "Group",
    Type.CLUSTER: "Cluster",
    Type.TRANSACTIONAL_ID: "TransactionalId",
    Type.DELEGATION_TOKEN: "DelegationToken",
    Type.USER: "User",
}
NODE_BYTES_MAX: Final = 1_000_000
"""ZooKeeper refuses a larger node. It has room for 8,000 rules."""
_log = log.get(__name__)
_ALLOWED: Final = " !\"#$&'()*+,-.:;<=>?@[\\]^_`{|}~"


def encode_name(name: str) -> str:
    """Returns the name of the node for a resource or a user."""
    found = quote(name, safe=_ALLOWED)
    return found.replace(".", "%2E") if found in (".", "..") else found


def decode_name(name: str) -> str:
    """Returns the name of the resource or user whose node is called `name`."""
    return unquote(name)


def acl_path(resource: ResourcePattern) -> str:
    """Returns the path of the node with the rules of a resource pattern."""
    return f"{ROOTS[resource.pattern]}/{TYPES[resource.type]}/{encode_name(resource.name)}"


def user_path(name: str) -> str:
    """Returns the path of a user's node."""
    return f"{USERS}/{encode_name(name)}"


def acls(content: Iterable[Acl]) -> bytes:
    """Returns the content of the node for the rules of one resource pattern."""
    rules = [
        {
            "principal": each.principal,
            "permissionType": _word(each.permission),
            "operation": _word(each.operation),
            "host": each.host,
        }
        for each in content
    ]
    return json.dumps({"version": 1, "acls": rules}, separators=(",", ":")).encode()


def read_acls(path: str, resource: ResourcePattern, data: bytes) -> list[Acl]:
    """Returns the rules in a node. One that cannot be read closes its resource to all but super
    users, until the rule that stands for it is deleted."""
    try:
        return [_acl(resource, each) for each in json.loads(data)["acls"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        _log.error("rules_refused", path=path, reason=repr(error))
        return [Acl(resource, ANY_USER, ANY_NAME, Operation.ALL, Permission.DENY)]


def read_user(path: str, configs: Mapping[str, str]) -> dict[str, ScramCredential]:
    """Returns a user's credentials, by mechanism, from the settings in its node."""
    try:
        return {
            each: scram_credential.parse(each, configs[each]) for each in SCRAM if each in configs
        }
    except CredentialInvalid as error:
        raise DocumentRefused(f"ZooKeeper's node {path} holds no credential: {error}") from error


def _acl(resource: ResourcePattern, fields: Mapping[str, Any]) -> Acl:
    acl = Acl(
        resource,
        str(fields["principal"]),
        str(fields["host"]),
        Operation[_constant(fields["operation"])],
        Permission[_constant(fields["permissionType"])],
    )
    if why := refusal(acl):
        raise ValueError(why)
    return acl


def _word(constant: Operation | Permission) -> str:
    """Returns DESCRIBE_CONFIGS as DescribeConfigs."""
    return "".join(each.capitalize() for each in constant.name.split("_"))


def _constant(word: str) -> str:
    """Returns DescribeConfigs as DESCRIBE_CONFIGS."""
    return "".join(f"_{x}" if x.isupper() else x for x in str(word)).lstrip("_").upper()
