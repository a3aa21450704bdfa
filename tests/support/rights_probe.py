"""Asks a secured cluster for everything that needs a right, and returns what it answers. What is
asked is in tests/data/rights/requests.yml; what Apache Kafka answers is in kafka.yml beside it,
which `PYTHONPATH=tests python -m support.rights_probe` writes.

Each request is sent by a principal of its own, who has exactly the rights of its case, about a
topic and a group of its own: once with both there, and once with both missing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import yaml

from skidway.broker.api.registry import SERVED
from skidway.kafka.acls.acl import (
    ANY_NAME,
    CLUSTER_NAME,
    Acl,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.client import Client, NewTopic
from skidway.kafka.client.acls import create_acls
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import ApiKey
from skidway.kafka.protocol.messages import NO_ID
from skidway.kafka.protocol.metadata import (
    OPERATIONS_UNKNOWN,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from skidway.kafka.types import TopicPartition
from skidway.security.contexts import TlsFiles
from support.batches import batch
from support.login_probe import logins
from support.messages import REQUESTS, RESPONSES, built
from support.processes import eventually
from support.raw_client import RawClient, TlsClient
from support.secured_cluster import SecuredCluster, port_of
from support.secured_kafka import SecuredKafka

FOLDER: Final = Path(__file__).parents[1] / "data/rights"
OF_KAFKA: Final = FOLDER / "kafka.yml"
OTHER: Final = "other"
"""A topic in which each group has offsets, too, and which nobody may see."""
LAST_USER: Final = "last"
LAST: Final = Acl(
    ResourcePattern(ResourceType.TOPIC, OTHER),
    f"User:{LAST_USER}",
    ANY_NAME,
    Operation.DESCRIBE,
    Permission.ALLOW,
)
"""The last rule that is made: when it counts, all do."""
NAMES: Final = frozenset({"name", "topic", "group_id", "user"})
NUMBERS: Final = frozenset({"num_partitions", "replication_factor"})
LATER: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name
HEAD: Final = "# What Apache Kafka 4.4 answers; written by tests/support/rights_probe.py.\n"


@dataclass(frozen=True)
class Case:
    """A request, the rights of who sends it, and whether its topic and group exist."""

    number: int
    what: str
    rights: str
    exists: bool | None
    fields: Mapping[str, Any]
    version: int | None

    def __str__(self) -> str:
        state = {True: ", there", False: ", missing", None: ""}[self.exists]
        return f"{self.what}{state}, with {self.rights or 'nothing'}"

    @property
    def user(self) -> str:
        return f"user-{self.number}"

    @property
    def topic(self) -> str:
        return f"topic-{self.number}"

    @property
    def group(self) -> str:
        return f"group-{self.number}"

    @cached_property
    def api(self) -> ApiKey:
        word = self.what.replace(",", " ").split()[0]
        return next(key for key, cls in REQUESTS.items() if cls.__name__ == f"{word}Request")

    def acls(self) -> Iterator[Acl]:
        """Yields the rules that give the rights."""
        for right in self.rights.split(" + ") if self.rights else ():
            operation, kind = right.split()
            name = {"topic": self.topic, "group": self.group, "cluster": CLUSTER_NAME}[kind]
            resource = ResourcePattern(ResourceType[kind.upper()], name)
            principal, allow = f"User:{self.user}", Permission.ALLOW
            yield Acl(resource, principal, ANY_NAME, Operation[operation], allow)


def cases() -> list[Case]:
    """Returns all cases."""
    found: list[Case] = []
    for each in yaml.safe_load((FOLDER / "requests.yml").read_text()):
        words = f"{each['fields']} {each['rights']}".replace("topics", "")
        is_about_one = re.search("TOPIC|GROUP|ID|topic|group", words)
        for exists in (True, False) if is_about_one else (None,):
            for rights in ("", *each["rights"]):
                made = (each["what"], rights, exists, each["fields"], each.get("version"))
                found.append(Case(len(found), *made))
    return found


def table(cluster: SecuredCluster) -> dict[str, str]:
    """Returns the answer to each request, by the case."""
    all_cases = cases()
    ids = _prepare(cluster, all_cases)
    return {str(each): _answer(cluster, each, ids) for each in all_cases}


def _prepare(cluster: SecuredCluster, all_cases: list[Case]) -> Mapping[str, str]:
    """Makes topics, groups and rules. Returns the ids of the topics, by name, and of the broker."""
    there = [each for each in all_cases if each.exists]
    names = [OTHER, *(each.topic for each in there)]
    with Client(cluster.plain) as admin:
        assert not any(admin.create_topics([NewTopic(each, 1, 1) for each in names]).values())
        eventually(lambda: admin.metadata(names))
        for each in there:
            both = (TopicPartition(each.topic, 0), TopicPartition(OTHER, 0))
            admin.commit_offsets(each.group, dict.fromkeys(both, 1))
        rules = [acl for each in all_cases for acl in each.acls()]
        assert not any(create_acls(admin, [*rules, LAST]).values())
    with client_of(cluster, LAST_USER) as client:
        eventually(lambda: not _metadata(client, [OTHER]).topics[0].error_code)
    with RawClient(port_of(cluster.plain)) as plain:
        found = _metadata(plain, names)
    ids = {each.name or "": str(each.topic_id) for each in found.topics}
    return {**ids, "BROKER": str(found.brokers[0].node_id)}


def _metadata(client: RawClient, names: Sequence[str]) -> MetadataResponse:
    topics = tuple(MetadataRequestTopic(name=each) for each in names)
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = client.ask(request, 11, MetadataResponse)
    assert isinstance(answer, MetadataResponse)
    return answer


def client_of(cluster: SecuredCluster, user: str) -> TlsClient:
    """Returns a client that is this user by its certificate."""
    pair, authority = cluster.authority.sign(user), cluster.authority.certificate
    files = TlsFiles(pair.certificate, pair.key, authority)
    return TlsClient(port_of(cluster.mutual), files)


def _answer(cluster: SecuredCluster, case: Case, ids: Mapping[str, str]) -> str:
    known = {
        "TOPIC": case.topic,
        "GROUP": case.group,
        "ID": ids.get(case.topic, str(uuid4())),
        "BROKER": ids["BROKER"],
        "BATCH": batch().hex(),
    }
    request = built(REQUESTS[case.api], _put(case.fields, known))
    version = case.version or SERVED[case.api].versions.highest
    names = {known[word]: word for word in ("TOPIC", "GROUP")}
    with client_of(cluster, case.user) as client:

        def told() -> str:
            return tell(client.ask(request, version, RESPONSES[case.api]), names) or "nothing"

        return str(eventually(lambda: None if LATER in (found := told()) else found))


def _put(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _put(each, known) for name, each in value.items()}
    if isinstance(value, list):
        return [_put(each, known) for each in value]
    return known.get(value, value) if isinstance(value, str) else value


def tell(answer: object, names: Mapping[str, str]) -> str:
    """Returns the codes, names, authorized operations and what else a right decides in an answer.
    names: what to call the names of the case; all others are one."""
    told = []
    for field in fields(answer):  # type: ignore[arg-type]
        value = getattr(answer, field.name)
        if field.name == "error_code":
            told.insert(0, ErrorCode(value).name)
        elif field.name in NAMES:
            told.append(names.get(str(value), "another") if value else "no name")
        elif field.name == "topic_id":
            told += ["id"] if value != NO_ID else []
        elif field.name.endswith("authorized_operations"):
            told += [f"operations {_operations(value)}"] if value != OPERATIONS_UNKNOWN else []
        elif field.name in NUMBERS:
            told.append(f"{field.name} {value}")
        elif field.name == "topic_config_error_code":
            told += [f"{field.name} {ErrorCode(value).name}"] if value else []
        elif field.name == "configs":
            told.append("configs" if value else "no configs")
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            inner = dict.fromkeys(tell(each, names) for each in value)
            told += [f"{field.name} [{'; '.join(inner)}]"] if any(inner) else []
    return " ".join(told)


def _operations(bits: int) -> str:
    names = [each.name for each in Operation if each > Operation.ALL and bits >> each & 1]
    return ",".join(names) or "none"


def main() -> None:
    """Writes what Apache Kafka answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        SecuredKafka(Path(folder), reauthentication_ms=3_600_000).running() as kafka,
    ):
        found = {**table(kafka), **logins(kafka)}
    text = yaml.safe_dump(found, sort_keys=False, width=10_000)
    OF_KAFKA.write_text(HEAD + text)


if __name__ == "__main__":
    main()
