"""Who a client is: its principal, from the name in its certificate by Kafka's rules
(`ssl.principal.mapping.rules`).

    RULE:pattern/replacement/    the name's first match counts; the pattern matches the whole name
    RULE:pattern/replacement/L   ... in lower case; /U in upper case
    DEFAULT                      the name itself

Rules are separated by commas. `\\/` in a rule stands for a slash. A name has the order of RFC 2253:
`CN=web1,OU=agents,O=example`.
"""

from __future__ import annotations

import re
from typing import Final

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, SkidwayError

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a client that has shown no certificate."""

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))?"
    r"\s*(?:,|$)"
)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)")


class NoRule(SkidwayError):
    """No rule applies to the name of a client."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """pattern: None for DEFAULT. case: L, U, or nothing."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        groups = (name, *found.groups(""))

        def referred(reference: re.Match[str]) -> str:
            literal, number = reference.groups()
            if literal is not None:
                return str(literal)
            # as in Kafka, a number without a group stands for itself
            return groups[int(number)] if int(number) < len(groups) else reference[0]

        text = _REFERENCE.sub(referred, self.replacement)
        return {"L": text.lower, "U": text.upper}.get(self.case, text.__str__)()


class PrincipalRules:
    """The rules of `ssl.principal.mapping.rules`."""

    def __init__(self, text: str) -> None:
        """Raises ConfigurationRefused."""
        self._rules: list[_Rule] = []
        at, text = 0, text.strip()
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None:
                raise ConfigurationRefused(
                    f"ssl.principal.mapping.rules: {text[at:]!r} does not begin with a rule"
                )
            at = found.end()
            if found["default"]:
                self._rules.append(_Rule())
            elif found["pattern"] is not None:
                self._rules.append(_rule(found["pattern"], found["replacement"], found["case"]))

    def principal(self, name: str) -> str:
        """Returns the principal of a client by the name in its certificate. Raises NoRule."""
        for rule in self._rules:
            found = rule.apply(name)
            if found is not None:
                return f"User:{found}"
        raise NoRule(f"no rule of ssl.principal.mapping.rules applies to {name}")


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        return _Rule(re.compile(pattern), replacement, case)
    except re.error as error:
        raise ConfigurationRefused(
            f"ssl.principal.mapping.rules: {pattern!r} is no regular expression: {error}"
        ) from error
