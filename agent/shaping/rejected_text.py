"""Decides which part of a rejected line may be sent to `<topic>.rejected`.

A rejected line has no fields to which the rules of `shape` could be applied. But private texts in
the line, such as card numbers, must not be sent. So the rules have this effect on the whole text of
the line:

* All rules `mask FIELD for` and `mask FIELD matching` are applied to the whole text, whichever
  field they name.
* The text is withheld (not sent at all) if a rule hashes or removes a field, because nobody knows
  where in the text the field is. The text is also withheld if the pattern of a rule `mask` has an
  anchor (such as `^` or `$`), because the anchor has another meaning in the whole text than in a
  field.
* Codes for terminals are taken out before the masks are applied. The text is withheld if it has
  other codes than those of a few short numbers, such as colours, because they may have any text.
* The text is withheld if masks find something in a text of it that would be a field, which they do
  not find in the whole text.
* The text is withheld if the masks may overlook something that they would see in a field: if they
  find more in the text without its escapes, if the text has NUL characters (as in UTF-16 that was
  read as UTF-8), or if the line is not in the encoding of its source. The text is also withheld if
  the masks make it too long (`growth`).
* If only the head (the first bytes) of a line is known, the last HEAD_BYTES_LEFT_OUT bytes of the
  head are left out. The whole head is withheld if a private text may be longer than these bytes, or
  if a pattern may need text after the head.

The detail of a reject (a sentence about the error) may quote a value of the line, so it is treated
in the same way as the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import product
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.shaping import rules as r
from skidway.agent.shaping.growth import is_too_long
from skidway.agent.shaping.masks import mask_kinds, mask_matching
from skidway.agent.shaping.rules import Rule
from skidway.agent.shaping.unescaped import Escaping
from skidway.agent.values.terminals import plain_text

WITHHELD: Final = b"[withheld]"
"""The agent sends this in place of a rejected line whose text is withheld."""

WITHHELD_DETAIL: Final = "withheld, because the rules of shape hash, remove or mask fields"

HEAD_BYTES_LEFT_OUT: Final = 4_096
"""If only the head (the first bytes) of a line is known, the head may end inside a private text. No
mask recognizes the first part of such a text. So this many bytes at the end of the head are not
sent.
"""

_OUTSIDE_TOKENS = re.compile(r"[^\w.%+'@=/-]")
"""Matches the characters that no token, key or address can contain, so a token, key or address ends
before such a character."""

_ANCHOR = re.compile(r"(?<!\\)(?:\\\\)*(?:\\[AzbB]|\$|(?<!\[)\^)")


ESCAPED_MAX: Final = 3
"""Escapes are taken out of a text at most so many times, one after the other."""

_SHORT_CODES = re.compile("\x1b\\[(?:[0-9]{1,3}(?:[;:][0-9]{1,3})*)?[A-Za-z]")

_CODES = r"[\x00-\x08\x0b-\x1f\x7f-\x{9f}]"
"""Matches every text that has codes for terminals."""


class RejectedText:
    """Applies a source's rules to its rejected lines. encoding: the encoding of the lines. A masked
    line is sent in this encoding too, so that all rejects of a source have one encoding. escapings:
    how lines of any format may escape characters.
    """

    def __init__(
        self, rules: Sequence[Rule], encoding: str, escapings: Collection[Escaping]
    ) -> None:
        self._encoding = encoding
        self._steps = {each.step for each in escapings}
        self._may_hide = "|".join((_CODES, *(each.sign for each in escapings)))
        self._kinds = {kind for rule in rules if isinstance(rule, r.Mask) for kind in rule.kinds}
        self._patterns = [rule.pattern for rule in rules if isinstance(rule, r.MaskMatching)]
        self.is_withheld = any(isinstance(rule, r.Hash | r.Remove) for rule in rules) or any(
            _ANCHOR.search(pattern) for pattern in self._patterns
        )
        self.is_whole = not (self.is_withheld or self._kinds or self._patterns)

    def line(self, line: bytes, *, is_head: bool = False, groups: Sequence[str] = ()) -> bytes:
        """Returns the part of a line that may be sent. is_head: whether more bytes of the line
        follow. groups: texts in the line that would be fields: a mask may see in a field what it
        does not see beside other letters."""
        if self.is_whole:
            return line
        if self.is_withheld:
            return WITHHELD
        if is_head:
            if self._may_cut(line):
                return WITHHELD
            line = line[: max(len(line) - HEAD_BYTES_LEFT_OUT, 0)]
        raw = line.decode(self._encoding, "replace")
        text = plain_text(raw)
        try:
            masked = self._masked(text)
            if "\0" in text or _has_long_codes(raw) or self._hides(text):
                return WITHHELD
            if any(each in masked and self._masked(each) != each for each in groups):
                return WITHHELD
        except _Grown:
            return WITHHELD
        return line if masked == text else self._encoded(masked)

    def members(self, texts: pa.StringArray) -> pa.StringArray:
        """Returns what may be sent of the values of members that fill no field. As such values can
        be in every line, a value that has anything that might hide a private text is withheld
        without a look at what it hides."""
        if self.is_withheld:
            return pa.repeat(WITHHELD.decode(), len(texts))
        masked = mask_kinds(texts, self._kinds)
        for pattern in self._patterns:
            masked = mask_matching(masked, pattern)
        hides = pc.match_substring_regex(texts, self._may_hide).to_pylist()
        pairs = zip(texts.to_pylist(), masked.to_pylist(), hides, strict=True)
        made = [
            WITHHELD.decode() if hidden or is_too_long(new, old) else new
            for old, new, hidden in pairs
        ]
        return pa.array(made, pa.string())

    def detail(self, detail: str) -> str:
        """Returns the text that may be sent in place of a reject's detail (a sentence about the
        error)."""
        if self.is_whole:
            return detail
        if self.is_withheld:
            return WITHHELD_DETAIL
        try:
            masked = self._masked(detail)
            return WITHHELD_DETAIL if self._hides(detail) else masked
        except _Grown:
            return WITHHELD_DETAIL

    def unreadable(self, line: bytes) -> bytes:
        """Returns what may be sent of a line that is not in the encoding of its source: the whole
        line if no rule hides anything, otherwise WITHHELD, because masks cannot read such a line.
        """
        return line if self.is_whole else WITHHELD

    def _may_cut(self, head: bytes) -> bool:
        """Only the head (the first bytes) of a very long line is sent, and the head's last bytes
        are left out. Returns whether this may cut a private text in two: then the text's first part
        would be sent, because no mask recognizes this part. This is possible if a rule has a
        pattern, because the pattern may match a text of any length. It is also possible if the end
        of the head has no character that ends a token, such as a blank or a quote.
        """
        if self._patterns:
            return True
        end = head[-HEAD_BYTES_LEFT_OUT:].decode(self._encoding, "replace")
        return _OUTSIDE_TOKENS.search(end.replace("\ufffd", "")) is None

    def _hides(self, text: str) -> bool:
        """Whether the escapes of `text`, or codes that they hide, hide a private text from the
        masks. Escapes may be escaped, by the rules of another format."""
        texts = {text: self._masked(text)}
        for _ in range(ESCAPED_MAX):
            further: dict[str, str] = {}
            for (before, masked), step in product(texts.items(), self._steps):
                raw = step(before)
                if raw == before:
                    continue
                plain = plain_text(raw)
                found = self._masked(plain)
                if found not in (plain, plain_text(step(masked))) or _has_long_codes(raw):
                    return True
                further[plain] = found
            texts = further
        return False

    def _encoded(self, masked: str) -> bytes:
        """Returns a masked text in the encoding of the lines. If this encoding cannot represent a
        character of the text (such as U+FFFD, which stands for undecodable bytes), the whole text
        is withheld.
        """
        try:
            line = masked.encode(self._encoding)
        except UnicodeEncodeError:
            return WITHHELD
        return line if line.decode(self._encoding, "replace") == masked else WITHHELD

    def _masked(self, text: str) -> str:
        safe = text.encode("utf-8", "replace").decode()  # Arrow has no unpaired surrogates
        masked = str(mask_kinds(pa.array([safe], pa.string()), self._kinds)[0].as_py())
        for pattern in self._patterns:
            masked = str(mask_matching(pa.array([masked], pa.string()), pattern)[0].as_py())
            if is_too_long(masked, safe):
                raise _Grown
        return text if masked == safe else masked


def _has_long_codes(text: str) -> bool:
    """Whether a text has codes for terminals that may have a private text, such as the address of a
    link: others than those of a few short numbers, such as colours."""
    rest = _SHORT_CODES.sub("", text)
    return plain_text(rest) != rest


class _Grown(Exception):
    """Raised if masks have made a text too long (see `growth`), so that the text is withheld."""
