from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.cli import acl_file
from skidway.cli.acl_file import CLUSTER, is_of_a_file, plan
from skidway.errors import ConfigurationRefused
from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

SHOP = ResourcePattern(ResourceType.TOPIC, "shop")


def read(folder: Path, text: str) -> frozenset[Acl]:
    path = folder / "rules.yml"
    path.write_text(text)
    return acl_file.read(path)


def test_an_entry_stands_for_each_operation_resource_and_host(tmp_path: Path) -> None:
    """An entry becomes a rule for each of its operations, resources and hosts. Lists may be written
    as in all configurations."""
    found = read(
        tmp_path,
        """
acls:
- principal: User:CN=web1,OU=agents
  allow: [READ, WRITE]
  topics: [shop]
  topic.prefixes: [dc1.]
  hosts: 10.0.0.7, 10.1.0.0/16
""",
    )
    dc1 = ResourcePattern(ResourceType.TOPIC, "dc1.", PatternType.PREFIXED)
    assert found == {
        Acl(resource, "User:CN=web1,OU=agents", host, operation, Permission.ALLOW)
        for resource in (SHOP, dc1)
        for host in ("10.0.0.7", "10.1.0.0/16")
        for operation in (Operation.READ, Operation.WRITE)
    }


def test_every_kind_of_resource_has_its_key(tmp_path: Path) -> None:
    """Groups, transactional ids and the cluster have keys of their own. Without `hosts`, a rule
    counts everywhere."""
    found = read(
        tmp_path,
        """
acls:
- {principal: "User:*", deny: [DESCRIBE], groups: ["*"], group.prefixes: [g], cluster: true,
   transactional.ids: [t], transactional.id.prefixes: [t]}
""",
    )
    assert {acl.resource for acl in found} == {
        ResourcePattern(ResourceType.GROUP, "*"),
        ResourcePattern(ResourceType.GROUP, "g", PatternType.PREFIXED),
        ResourcePattern(ResourceType.TRANSACTIONAL_ID, "t"),
        ResourcePattern(ResourceType.TRANSACTIONAL_ID, "t", PatternType.PREFIXED),
        CLUSTER,
    }
    assert {(acl.principal, acl.host, acl.permission) for acl in found} == {
        ("User:*", "*", Permission.DENY)
    }


def test_the_file_of_the_document_is_taken(tmp_path: Path) -> None:
    """`skidway acls apply` takes the file that docs/security.md shows."""
    document = (Path(__file__).parents[4] / "docs/security.md").read_text()
    _, _, text = document.partition("```yaml\nacls:")
    found = read(tmp_path, f"acls:{text.partition('```')[0]}")
    assert {acl.permission for acl in found} == {Permission.ALLOW}
    assert {"User:agent", "User:application"} <= {acl.principal for acl in found}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "rules.yml: the key 'acls' is missing"),
        ("acls: []", "line 1: acls must be at least 1 entry, not 0"),
        ("acls: [", "this is not YAML"),
        ("acls: 7", "line 1: acls must be a list"),
        ("rules: []", "line 1: unknown key 'rules'; the nearest known one is 'acls'"),
        ("acls:\n- shop", "line 2: acls[0] must be a section with keys such as principal"),
        ("acls:\n- allow: [READ]\n  topics: [a]", "line 2: the key 'acls[0].principal' is missing"),
        ("acls:\n- principal: ada\n  allow: READ\n  topics: a", "'ada' is not User:NAME"),
        ("acls:\n- principal: 'User:'\n  allow: READ\n  topics: a", "'User:' is not User:NAME"),
        ("acls:\n- principal: User:a\n  topics: a", "line 2: an entry has operations in either"),
        ("acls:\n- {principal: User:a, allow: READ, deny: READ, topics: a}", "either allow or de"),
        ("acls:\n- {principal: User:a, allow: READ}", "line 2: an entry names no topics, groups"),
        ("acls:\n- principal: User:a\n  allow:\n  - REED", "line 4: acls[0].allow[0] must be one"),
        ("acls:\n- principal: User:a\n  alow: READ", "line 3: unknown key 'acls[0].alow'"),
        ("acls:\n- {principal: User:a, allow: WRITE, groups: g}", "WRITE does not exist for a GR"),
        (
            "acls:\n- {principal: User:a, allow: READ, cluster: true}",
            "READ does not exist for",
        ),
        ("acls:\n- {principal: User:a, allow: READ, cluster: maybe}", "must be true or false"),
        ("acls:\n- {principal: User:a, allow: READ, topics: dc1.*}", "no topic has the name 'dc1"),
        ("acls:\n- {principal: User:a, allow: READ, topic.prefixes: '*'}", "without * as a prefix"),
        ("acls:\n- {principal: User:a, allow: READ, topics: ['']}", "name of a resource is empty"),
        ("acls:\n- {principal: User:a, allow: READ, topics: *}", "this is not YAML"),
        ("acls:\n- {principal: User:a, allow: READ, topics: a, hosts: web1}", "the host 'web1' is"),
        (
            "acls:\n- {principal: User:a, allow: READ, topics: a, hosts: []}",
            "acls[0].hosts must",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_file_and_place(
    tmp_path: Path, text: str, words: str
) -> None:
    """A file with a mistake is refused as a whole. One sentence names the file, the line of the
    entry or of the value, and the mistake."""
    with pytest.raises(ConfigurationRefused) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/rules.yml")
    assert words in said
    assert "\n" not in said
    assert caught.value.exit_code == 78


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """If there is no such file, the sentence names it."""
    with pytest.raises(ConfigurationRefused, match=r"nowhere\.yml: no such file or directory"):
        acl_file.read(tmp_path / "nowhere.yml")


acls = st.builds(
    Acl,
    st.builds(
        ResourcePattern,
        st.sampled_from([x for x in ResourceType if x is not ResourceType.ANY]),
        st.sampled_from(["*", "a", "kafka-cluster"]),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.sampled_from(["User:a", "User:*", "Group:a"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([Operation.READ, Operation.ALL]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


@given(st.frozensets(acls), st.frozensets(acls.filter(is_of_a_file)))
def test_a_plan_leads_to_the_file(current: frozenset[Acl], wanted: frozenset[Acl]) -> None:
    """After the plan's changes the cluster has the rules of the file, and of the others only those
    that no file can have. At no time does it lack a rule that it had before and has afterwards.
    A second plan changes nothing."""
    to_add, to_remove = plan(current, wanted)
    during = current | set(to_add)
    after = during - set(to_remove)
    assert after == wanted | {acl for acl in current if not is_of_a_file(acl)}
    assert during >= current & after
    assert not set(to_add) & current
    assert set(to_remove) <= current
    assert plan(after, wanted) == ([], [])


@given(st.lists(acls, unique=True))
def test_a_plan_has_one_order(rules: list[Acl]) -> None:
    """The order of the rules does not depend on that of the cluster's answer."""
    assert plan([], rules) == plan([], rules[::-1])
