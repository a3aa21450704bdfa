from __future__ import annotations

import pytest

from skidway.broker.topics.alteration import Change, ChangeRefused, ConfigRefused, altered, replaced
from skidway.kafka.protocol.incremental_alter_configs import ConfigOperation

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
MIRRORED = {"mirror.source.topic": "logs", "retention.ms": "5"}


def test_some_settings_change_and_the_others_stay() -> None:
    """A change sets or deletes a setting, or adds elements to a list or removes them from it. The
    other settings stay. It is no error to delete a setting that is not set."""
    known = {"retention.ms": "5", "retention.hold": "a, b", "segment.ms": "7"}
    changes = [
        Change("retention.ms", SET, "6"),
        Change("segment.ms", DELETE, None),
        Change("flush.ms", DELETE, None),
        Change("retention.hold", APPEND, "c,a"),
    ]
    found = altered(known, changes, {})
    assert found == {"retention.ms": "6", "retention.hold": "a,b,c"}
    found = altered(found, [Change("retention.hold", SUBTRACT, "a,x")], {})
    assert found["retention.hold"] == "b,c"
    assert known["segment.ms"] == "7"


def test_a_list_that_is_not_set_begins_with_the_inherited_one() -> None:
    """If a topic inherits a list setting from the broker, and a change appends elements, the topic
    gets the inherited list and those elements that the list does not contain."""
    found = altered({}, [Change("retention.hold", APPEND, "b,a")], {"retention.hold": "a"})
    assert found == {"retention.hold": "a,b"}


@pytest.mark.parametrize(
    "change",
    [
        Change("no.such.setting", SET, "1"),
        Change("no.such.setting", DELETE, None),
        Change("retention.ms", SET, "soon"),
        Change("retention.ms", APPEND, "1"),
        Change("cleanup.policy", APPEND, "compact"),
        Change("retention.hold", SET, "a/b"),
        Change("mirror.source.topic", SET, "other"),
        Change("mirror.source.topic", DELETE, None),
    ],
)
def test_what_a_topic_cannot_have_is_refused(change: Change) -> None:
    """A change is refused if the setting is unknown, if its new value is wrong, or if only a mirror
    may write the setting. Appending an element is refused if the setting is not a list. The error
    names the setting."""
    with pytest.raises(ConfigRefused, match=change.name.replace(".", r"\.")):
        altered(MIRRORED, [change], {})


@pytest.mark.parametrize(
    "changes",
    [
        [Change("retention.ms", SET, None)],
        [Change("retention.ms", 9, "1")],
        [Change("retention.ms", SET, "1"), Change("retention.ms", DELETE, None)],
    ],
)
def test_what_makes_no_sense_is_refused(changes: list[Change]) -> None:
    """A change is refused if it has no value or an unknown operation. Two changes of one setting
    are refused as well."""
    with pytest.raises(ChangeRefused):
        altered({}, changes, {})


def test_replacing_keeps_what_a_mirror_wrote() -> None:
    """When all settings of a topic are replaced, the settings that a mirror wrote are kept. Some of
    these settings name the mirror's source. Without them the topic would no longer be a mirror."""
    assert replaced(MIRRORED, [("segment.ms", "7")]) == {
        "mirror.source.topic": "logs",
        "segment.ms": "7",
    }
    shown = [("mirror.source.topic", "logs"), ("mirror.gaps", "")]
    assert replaced(MIRRORED, shown) == {"mirror.source.topic": "logs"}
    with pytest.raises(ConfigRefused):
        replaced(MIRRORED, [("mirror.source.topic", "other")])


@pytest.mark.parametrize("name", ["retention.ms", "cleanup.policy", "no.such.setting"])
def test_replacing_by_nothing_is_no_default(name: str) -> None:
    """An empty value of a setting that cannot be empty is refused, and not replaced by the
    default."""
    with pytest.raises(ConfigRefused):
        replaced({"retention.ms": "-1"}, [(name, "")])
    assert replaced({}, [("leader.replication.throttled.replicas", "")]) == {}


def test_settings_of_another_version_stay() -> None:
    """Settings that are unknown to this version of the broker stay as they are, and do not prevent
    changes of other settings."""
    found = altered({"of.the.future": "1"}, [Change("segment.ms", SET, "7")], {})
    assert found == {"of.the.future": "1", "segment.ms": "7"}


def test_a_value_that_could_not_be_described_again_is_refused() -> None:
    """A value is refused if it is too long for an answer to DescribeConfigs. This also holds for a
    list that becomes too long when a client appends an element."""
    groups = ",".join(f"group-{number}" for number in range(2_000))
    found = altered({}, [Change("retention.hold", SET, groups)], {})
    more = ",".join(f"another-{number}" for number in range(2_000))
    with pytest.raises(ConfigRefused, match="longer than"):
        altered(found, [Change("retention.hold", APPEND, more)], {})
