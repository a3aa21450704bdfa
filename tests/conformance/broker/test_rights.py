"""What our broker answers to clients without and with rights is what Apache Kafka answers, but for
the differences in tests/data/rights/differences.yml, which have reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from support.login_probe import logins
from support.rights_probe import FOLDER, OF_KAFKA, table
from support.secured_broker import SecuredBroker
from support.secured_kafka import SecuredKafka


def recorded() -> dict[str, str]:
    return dict(yaml.safe_load(OF_KAFKA.read_text()))


def expected() -> dict[str, str]:
    kafka = recorded()
    for each in yaml.safe_load((FOLDER / "differences.yml").read_text()):
        for case, answer in each["answers"].items():
            assert kafka[case] != answer, f"no difference any more: {case}"
            kafka[case] = answer
    return kafka


def wrong(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [
        f"{case}: {answer}, not {wanted.get(case)}"
        for case, answer in found.items()
        if answer != wanted.get(case)
    ]


def test_denied_and_allowed_as_by_kafka(tmp_path: Path, zookeeper: str) -> None:
    """Each API answers each operation, denied and allowed with exactly the right that it needs, as
    Apache Kafka does, about what exists and what does not; and so it answers the requests of a
    login in and out of order on each kind of listener."""
    with SecuredBroker(tmp_path, zookeeper).running() as ours:
        found = {**table(ours), **logins(ours)}
    wanted = expected()
    assert wrong(found, wanted) == []
    assert found.keys() == wanted.keys()


@pytest.mark.java
@pytest.mark.foreign
def test_kafka_answers_what_is_recorded(tmp_path: Path) -> None:
    """Apache Kafka still answers what the other test compares with."""
    with SecuredKafka(tmp_path, reauthentication_ms=3_600_000).running() as kafka:
        found = {**table(kafka), **logins(kafka)}
    assert wrong(found, recorded()) == []


def test_nothing_without_a_right_depends_on_what_exists() -> None:
    """No answer to a client without any right, of Kafka or of ours, says whether a topic or a group
    exists; but Kafka says it of ids, which nobody can guess."""
    told = expected()
    for case, answer in told.items():
        if ", there, with nothing" in case and "by id" not in case:
            assert told[case.replace(", there,", ", missing,")] == answer, case
