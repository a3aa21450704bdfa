"""Makes rules from the text of `shape`.

    rule        drop CONDITION [as NAME]
                keep CONDITION [as NAME]
                sample N/M [where CONDITION] [as NAME]
                mask FIELD|* for KIND, ...
                mask FIELD|* matching TEXT
                hash FIELD, ...
                rename FIELD to FIELD
                remove FIELD, ...
    CONDITION   comparisons with and, or, not and parentheses; `not` binds closest, then `and`
    comparison  FIELD = != < <= > >= VALUE,  FIELD matches|contains|starts with|ends with TEXT,
                FIELD in (VALUE, ...),  FIELD is [not] null

Every error message shows the line and the column of the error. The grammar does not check whether
the fields exist; the module `checking` does this.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from math import isfinite
from typing import Final

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.kinds import KINDS
from skidway.agent.shaping.rules import Condition, Field, Literal, Place, Rule
from skidway.agent.shaping.words import (
    END,
    LABEL,
    NAME,
    NUMBER,
    QUOTED_NAME,
    SIGN,
    TEXT,
    Word,
    refusal,
    words_of,
)

RULES_MAX: Final = 200
DEPTH_MAX: Final = 50
"""How deep conditions may be nested. Deeper nesting is probably a mistake, and would need a deep
stack.
"""

SAMPLE_MAX: Final = 1_000_000_000
DIGITS_MAX: Final = 40


@lru_cache(maxsize=64)
def parse(text: str) -> tuple[Rule, ...]:
    """Returns the rules of a text, in order. Raises ShapeRefused if a line is no rule, if two rules
    have the same name, or if there are too many rules."""
    lines = text.split("\n")
    rules: list[Rule] = []
    names: dict[str, int] = {}
    for number in range(1, len(lines) + 1):
        words = words_of(lines, number)
        if words[0].kind == END:
            continue
        if len(rules) == RULES_MAX:
            raise refusal(lines, words[0].place, f"a source has at most {RULES_MAX} rules")
        line = _Line(lines, words)
        rule = line.rule()
        if isinstance(rule, r.Drop | r.Keep | r.Sample):
            if rule.name in names:
                raise line.refusal(
                    line.name_place,
                    f"line {names[rule.name]} has a rule with the same name, {rule.name!r}; "
                    "give this rule another one with `as`",
                )
            names[rule.name] = number
        rules.append(rule)
    return tuple(rules)


class _Line:
    """Reads the words of one line, from left to right."""

    def __init__(self, lines: list[str], words: list[Word]) -> None:
        self._lines, self._words = lines, words
        self._at = 0
        self._depth = 0
        self.name_place = words[0].place

    def refusal(self, place: Place, reason: str) -> Exception:
        return refusal(self._lines, place, reason)

    def rule(self) -> Rule:
        verb = self._words[0]
        read = {
            r.DROP: self._drop, r.KEEP: self._keep, r.SAMPLE: self._sample, r.MASK: self._mask,
            r.HASH: self._hash, r.RENAME: self._rename, r.REMOVE: self._remove,
        }.get(verb.text if verb.kind == NAME else "")  # fmt: skip
        if read is None:
            raise self.refusal(verb.place, f"a rule begins with {_list(r.VERBS, 'or')}")
        self._at = 1
        rule = read()
        rest = self._word
        if rest.kind != END:
            if rest.text == "as":
                raise self.refusal(rest.place, "only drop, keep and sample have names")
            raise self.refusal(rest.place, f"the rule has ended before {_shown(rest)}")
        return rule

    # --- rules --------------------------------------------------------------------------------

    def _drop(self) -> Rule:
        where = self._condition()
        return r.Drop(where, self._name(where, r.DROP))

    def _keep(self) -> Rule:
        where = self._condition()
        return r.Keep(where, self._name(where, r.KEEP))

    def _sample(self) -> Rule:
        place = self._word.place
        kept = self._whole_number()
        self._take(SIGN, "/", "a share such as 1/100")
        of = self._whole_number()
        if not 0 < kept <= of <= SAMPLE_MAX:
            raise self.refusal(
                place,
                f"a share has at least 1 above the line, and below it no less and at most "
                f"{SAMPLE_MAX}; to leave out all records, use drop",
            )
        where = None
        if self._is_name("where"):
            self._at += 1
            where = self._condition()
        return r.Sample(kept, of, where, self._name(where, f"{r.SAMPLE} {kept}/{of}"))

    def _mask(self) -> Rule:
        if self._is_sign("*"):
            field = Field(r.ALL_FIELDS, self._word.place)
            self._at += 1
        else:
            field = self._field()
        if self._is_name("matching"):
            self._at += 1
            place = self._word.place
            return r.MaskMatching(field, self._text("matching"), place)
        self._keyword("for", "`for` and kinds such as cards, or `matching` and a text")
        kinds = [self._kind()]
        while self._is_sign(","):
            self._at += 1
            kinds.append(self._kind())
        return r.Mask(field, tuple(dict.fromkeys(kinds)))

    def _kind(self) -> str:
        word = self._word
        if word.kind != NAME or word.text not in KINDS:
            near = get_close_matches(word.text, KINDS, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            said = f"mask knows {_list(tuple(KINDS), 'and')}, but not {_shown(word)}{meant}"
            raise self.refusal(word.place, said)
        self._at += 1
        return word.text

    def _hash(self) -> Rule:
        return r.Hash(self._fields())

    def _remove(self) -> Rule:
        return r.Remove(self._fields())

    def _rename(self) -> Rule:
        field = self._field()
        self._keyword("to", "`to` and the new name")
        return r.Rename(field, self._field())

    def _name(self, where: Condition | None, verb: str) -> str:
        if not self._is_name("as"):
            return r.default_name(where, verb)
        self._at += 1
        word = self._word
        self.name_place = word.place
        if word.kind not in (LABEL, TEXT) or not word.text:
            raise self.refusal(word.place, "a name such as debug is missing after `as`")
        self._at += 1
        if len(word.text) > r.NAME_CHARACTERS_MAX:
            said = f"a name has at most {r.NAME_CHARACTERS_MAX} characters"
            raise self.refusal(word.place, said)
        return word.text

    # --- conditions ---------------------------------------------------------------------------

    def _condition(self) -> Condition:
        parts = [self._conjunction()]
        while self._is_name("or"):
            self._at += 1
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else r.AnyOf(tuple(parts))

    def _conjunction(self) -> Condition:
        parts = [self._negation()]
        while self._is_name("and"):
            self._at += 1
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else r.AllOf(tuple(parts))

    def _negation(self) -> Condition:
        word = self._word
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self.refusal(word.place, f"more than {DEPTH_MAX} conditions inside one another")
        found: Condition
        if self._is_name("not"):
            self._at += 1
            found = r.Not(self._negation())
        elif self._is_sign("("):
            self._at += 1
            found = self._condition()
            self._take(SIGN, ")", "a closing parenthesis")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        field = self._field()
        word = self._word
        if word.kind == SIGN and word.text in r.ORDERS:
            self._at += 1
            place = self._word.place
            return r.Comparison(field, word.text, self._value(), place)
        if word.kind == NAME and word.text in (r.MATCHES, r.CONTAINS):
            self._at += 1
            place = self._word.place
            return r.Comparison(field, word.text, self._text(word.text), place)
        if word.kind == NAME and word.text in ("starts", "ends"):
            self._at += 1
            self._keyword("with", "`with`")
            place = self._word.place
            how = f"{word.text} with"
            return r.Comparison(field, how, self._text(how), place)
        if self._is_name("in"):
            self._at += 1
            return self._membership(field)
        if self._is_name("is"):
            self._at += 1
            return self._null(field)
        comparisons = _list((*r.ORDERS, *r.SEARCHES, "in", "is null"), "or")
        raise self.refusal(word.place, f"{comparisons} must follow the field {field.name}")

    def _membership(self, field: Field) -> Condition:
        self._take(SIGN, "(", "values in parentheses")
        place = self._word.place
        values = [self._value()]
        while self._is_sign(","):
            self._at += 1
            values.append(self._value())
        self._take(SIGN, ")", "a comma or a closing parenthesis")
        return r.Membership(field, tuple(values), place)

    def _null(self, field: Field) -> Condition:
        is_not = self._is_name("not")
        self._at += is_not
        self._keyword("null", "`null`")
        return r.Not(r.IsNull(field)) if is_not else r.IsNull(field)

    # --- words --------------------------------------------------------------------------------

    @property
    def _word(self) -> Word:
        return self._words[self._at]

    def _is_name(self, text: str) -> bool:
        return self._word.kind == NAME and self._word.text == text

    def _is_sign(self, text: str) -> bool:
        return self._word.kind == SIGN and self._word.text == text

    def _take(self, kind: str, text: str, wanted: str) -> None:
        word = self._word
        if (word.kind, word.text) != (kind, text):
            raise self.refusal(word.place, f"{wanted} is missing before {_shown(word)}")
        self._at += 1

    def _keyword(self, text: str, wanted: str) -> None:
        self._take(NAME, text, wanted)

    def _fields(self) -> tuple[Field, ...]:
        fields = [self._field()]
        while self._is_sign(","):
            self._at += 1
            fields.append(self._field())
        return tuple(fields)

    def _field(self) -> Field:
        word = self._word
        if word.kind == QUOTED_NAME or (word.kind == NAME and word.text not in r.KEYWORDS):
            self._at += 1
            return Field(word.text, word.place)
        if word.kind == NAME:
            said = f"{word.text} is a word of the rules; the field of that name is `{word.text}`"
            raise self.refusal(word.place, said)
        raise self.refusal(word.place, f"a field's name is missing before {_shown(word)}")

    def _text(self, before: str) -> str:
        word = self._word
        if word.kind != TEXT:
            reason = f'a text, such as "/pay", must follow {before}, and not {_shown(word)}'
            raise self.refusal(word.place, reason)
        self._at += 1
        return word.text

    def _value(self) -> Literal:
        word = self._word
        self._at += 1
        if word.kind == TEXT:
            return word.text
        if word.kind == NUMBER:
            return self._number(word)
        if word.kind == NAME and word.text in ("true", "false"):
            return word.text == "true"
        if word.kind == NAME and word.text == "null":
            raise self.refusal(word.place, "no comparison with null is ever true; use `is null`")
        reason = f'a text such as "DEBUG", a number, true or false is missing before {_shown(word)}'
        raise self.refusal(word.place, reason)

    def _number(self, word: Word) -> Literal:
        if len(word.text) > DIGITS_MAX or not isfinite(float(word.text)):
            raise self.refusal(word.place, "no field has numbers as large or as long as this one")
        return int(word.text) if word.text.lstrip("-").isdigit() else float(word.text)

    def _whole_number(self) -> int:
        word = self._word
        if word.kind != NUMBER or not word.text.isdigit() or len(word.text) > DIGITS_MAX:
            raise self.refusal(word.place, "a share such as 1/100 is missing")
        self._at += 1
        return int(word.text)


def _shown(word: Word) -> str:
    return "the end of the line" if word.kind == END else repr(word.text)


def _list(words: tuple[str, ...], last: str) -> str:
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
