"""Tests the rules for principals with the cases of Kafka's SslPrincipalMapperTest."""

from __future__ import annotations

import pytest

from skidway.errors import ConfigurationRefused
from skidway.security.principals import NoRule, PrincipalRules

ALL = ", ".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        (ALL, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (ALL, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (ALL, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (ALL, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (ALL, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (
            r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT",
            r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz",
            r"Tkac\, Adam",
        ),
        ("DEFAULT", "CN=a", "CN=a"),
        (",,RULE:CN=(.*)/$1@$4/,,,DEFAULT,,", "CN=a", "a@$4"),
        ("  RULE:([A-Z]*)/$1/L   ,RULE:([a-z]+)/x$1/,   DEFAULT  ", "ab", "xab"),
        (r"RULE:CN=a\/b/x\/\$1/", "CN=a/b", "x/$1"),
        ("RULE:,RULE:,/,RULE:,/U, DEFAULT", "x", "x"),
    ],
)
def test_principals_are_kafkas(rules: str, name: str, principal: str) -> None:
    """The first rule that matches the whole name makes the principal, as in Kafka."""
    assert PrincipalRules(rules).principal(name) == f"User:{principal}"


@pytest.mark.parametrize(
    "rules",
    [
        "default", "DEFAUL", "DEFAULT/L", "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:(/x/",
    ],
)  # fmt: skip
def test_what_is_no_rule_is_refused(rules: str) -> None:
    """A text that is not made of rules is refused, and the error names the setting."""
    with pytest.raises(ConfigurationRefused, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalRules(rules)


@pytest.mark.parametrize("rules", ["RULE:CN=x/y/", "", " , "])
def test_a_name_without_a_rule_has_no_principal(rules: str) -> None:
    """If no rule applies, there is no principal."""
    with pytest.raises(NoRule, match="CN=a"):
        PrincipalRules(rules).principal("CN=a")
