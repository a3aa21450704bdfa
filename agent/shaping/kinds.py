"""What `mask` recognizes: cards, bank accounts, addresses, keys and tokens.

    cards    13 to 19 digits with a correct check digit (Luhn), in one piece, or in groups with one
             or two blanks or dashes between them, or with one dot or underscore
    ibans    international bank account numbers with correct check digits
    ssns     social security numbers of the USA: with dashes, or any value such as ssn=...
    emails   name@example.org
    keys     access keys of AWS and of other services, private keys in PEM and of PGP, values such
             as password=... and --password ..., and passwords in URLs
    tokens   headers Authorization and Cookie, values of Bearer, token=... and JSESSIONID=..., JSON
             web tokens, tokens of GitHub and of other services
    ips      addresses of IPv4 and IPv6

For each kind, RE2 finds the rows that may contain it. In these rows, RE2 also replaces emails, keys
and tokens. RE2 cannot verify the check digits of cards and ibans, and has no lookaround, which the
patterns of ips need. So Python functions replace cards, ibans and ips. No text makes the search
slow: RE2 takes linear time, and the functions look at each character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.shaping.addresses import mask_ips
from skidway.dataclass import dataclass

_BLANKS = r"(?:[\s\pZ]|%(?:25)*20)*"
# PHP writes [password] => ..., and in URLs = is %3D, or %253D in a URL in a URL
_BETWEEN = rf"{_BLANKS}(?:(?:\]{_BLANKS})?=>|->|:=|[=:]|%(?:25)*3[AaDd]){_BLANKS}"
_WRITTEN_QUOTE = (  # as nginx, .NET, HTML and URLs write quotes
    r"(?:\\+x2[27]|\\+u002[27]|&quot;|&#3[49];|%(?:25)*2[27])"
)
_QUOTE = rf"""(?:\\*["']|{_WRITTEN_QUOTE})"""
_IS = rf"(?:{_QUOTE}\]?)?{_BETWEEN}"
_OPENING = r"(?:\w+\()*[bru]?"  # Some("..."), u'...'
_PEM = r"-----? ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-----?"
_PEM_END = r"-----? ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-----?"
_WORD = r"(?:\b|_|\\x2[27]|\\u002[27]|%22)"  # before a name that is also a part of other words
_NAMES_OF_KEYS = (
    rf"pass(?:wor[dt]|wd|phrase|code)|{_WORD}otp\b|kennwort|secret|credentials?|{_WORD}cv[vc]2?"
    rf"|(?:{_WORD}pin|(?-i:[a-z](?:Pin|PIN)))(?:[ _-]?(?:code|number))?\b"
    r"|(?:api|access|secret|private|encryption)[ _-]?key"
)
_KEYS_OF_SERVICES = (  # of AWS, Google, Stripe and SendGrid
    r"(\b|_)(?:(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{30,}|GOCSPX-[\w-]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{20,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,})"
)
_TOKENS_OF_SERVICES = (  # of GitHub, GitLab, Slack, npm and Google
    r"(\b|_)(?:(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[\w-]{10,}|npm_[A-Za-z0-9]{30,}"
    r"|ya29\.[\w-]{20,})"
)
_SESSIONS = r"jsessionid(?:sso)?|phpsessid|asp\.net_sessionid|connect\.sid"
_NAMES_OF_SSNS = rf"{_WORD}ssn\b|social[ _-]?security(?:[ _-]?(?:number|no))?"
_YES_OR_NO = r": (?:yes|no)\)"
_URL_USER = r"""://[^\s/:@"'<>]*:"""


# A header ends with the line, or before a quote that belongs to the text around the header. A quote
# belongs to the header if a separator follows its pair, or if it is between braces.
_HEADER = (
    rf"(?i)((?:authorization|cookie)s?(?:{_BETWEEN}|{_QUOTE}{_BETWEEN}[\w-]+\s+))"
    r"""(?:\[[^\]\r\n]*|[^\s\pZ"'\\,}\[])"""
    r"""(?:[^"'\\\r\n=]|\\*"[^"\r\n]*"(?:[;,\s]|\z)|\\*'[^'\r\n]*'(?:[;,\s]|\z)|=\{[^\r\n]*\}|=)*"""
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """An RE2 pattern and its replacement. signs: characters; each text in which the pattern matches
    has one of them. If no text has one, the pattern is not searched. Empty if there are none."""

    regex: str
    replacement: str
    signs: str = ""


def _values(names: str, shown: str) -> tuple[Pattern, ...]:
    """Returns patterns for the values after one of the names, as in `password=...`, each with its
    replacement. Quotes around a value stay. The text that replaces a number after a quoted name
    gets the same quotes as the name, so JSON stays JSON.
    """
    name = rf"(?i)((?:{names})s?"
    quoted_name = rf"{name}({_QUOTE}){_BETWEEN})"
    is_value = rf"{name}{_IS}{_OPENING})"
    # A quote is part of the value if text follows it. Brackets and separators at the end are no
    # part of it (but `]` is, with which the text in place of a value ends). `Some(` in
    # `Some("[key]")` is no value.
    more = r"""(?:[^\s\pZ"'&]|["'][^\s\pZ"'&,;:>)}\[\]])*?"""
    end = (
        r"""([)},;]*(?:\z|[\s\pZ&]|["'](?:\z|[\s\pZ"'&,;:>)}\]]"""
        rf"""|\[(?:\z|[^{shown[1]}]))))"""
    )
    option = rf"""(?i)((?:\A|[^\w-])--?[\w.-]*(?:{names})[\w-]*"""
    escaped = r"""(?:[^"\\]|\\\\(?:\\["\\]|[^"\\])|\\[^"\\])*"""
    return (
        Pattern(rf'{option}(?:"\s*,\s*|[\s\pZ]+))"(?:[^"\\]|\\.)*("|\z)', rf'\1"{shown}\2', '"'),
        Pattern(rf"{option}(?:'\s*,\s*|[\s\pZ]+))'(?:[^'\\]|\\.)*('|\z)", rf"\1'{shown}\2", "'"),
        Pattern(rf"""{option}[\s\pZ]+)[^\s\pZ"'&|;<>\[-][^\s\pZ"'&]*""", rf"\1{shown}", "-"),
        Pattern(rf'{is_value}"(?:[^"\\]|\\.)*("|\z)', rf'\1"{shown}\2', '"'),
        Pattern(rf"{is_value}'(?:[^'\\]|\\.)*('|\z)", rf"\1'{shown}\2", "'"),
        Pattern(rf'{is_value}\\"{escaped}(\\"|\z)', rf'\1\\"{shown}\2', "\\"),
        Pattern(
            rf'{name}(?:\\*")?{_BETWEEN})(\\\\+")(?:[^"\\]|\\+[^"\\])*(\\*"|\z)',
            rf"\1\2{shown}\3",
            "\\",
        ),
        Pattern(
            rf"{name}(?:\\*[\"'])?{_BETWEEN})(\\+')(?:[^'\\]|\\+[^'\\])*(\\*'|\z)",
            rf"\1\2{shown}\3",
            "\\",
        ),
        Pattern(
            rf"(?s){is_value}({_WRITTEN_QUOTE})(?:\\+x5[Cc]\\+x2[27]|.)*?({_WRITTEN_QUOTE}|\z)",
            rf"\1\2{shown}\3",
            "\\&%",
        ),
        Pattern(
            rf"(?i)(<(?:(?:\w+:)?[\w-]*(?:{names})[\w-]*(?:\s[^<>]*[^<>/])?"
            rf"|[\w:]+\s[^<>]*(?:{names})[\w-]*[\"'](?:[^<>]*[^<>/])?)>(?:<!\[CDATA\[)?)"
            r"[^<]+?(\]\]>)?(<|\z)",
            rf"\1{shown}\2\3",
            "<",
        ),
        Pattern(rf"""(?i)((?:{names})[\w-]*["']\s+value\s*=\s*["'])[^"'<>]+""", rf"\1{shown}", "<"),
        Pattern(
            rf"(?is)(&lt;(?:\w+:)?[\w-]*(?:{names})[\w-]*(?:\s.*?)?&gt;).+?(&lt;|\z)",
            rf"\1{shown}\2",
            "&",
        ),
        Pattern(rf"{quoted_name}\[(?:\[\w+\]|[^\]])*(?:\]|\z)", rf"\1[\2{shown}\2]", "["),
        Pattern(
            rf"{quoted_name}(?:-?[0-9][0-9.eE+-]*|true|false|null)([\s,}}\]]|\z)",
            rf"\1\2{shown}\2\3",
        ),
        Pattern(rf"{quoted_name}[^\s\pZ\"'&\\{{\[]{more}{end}", rf"\1{shown}\3"),
        Pattern(rf"{name}{_BETWEEN})(?:[^\s\pZ\"'&\\]|\\+[^\"'\\\s&]){more}{end}", rf"\1{shown}\2"),
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of text to mask. shown: the text that replaces it. hint: an RE2 pattern that matches
    in every row that may contain such a text. patterns: what RE2 replaces.
    replace: a function that makes further replacements in one text in which the hint matches.
    """

    shown: str
    hint: str
    patterns: tuple[Pattern, ...] = ()
    replace: Callable[[str, str], str] | None = None

    def mask(self, texts: pa.StringArray) -> pa.StringArray:
        """Replaces the private texts of this kind by `shown`, wherever they are in `texts`. A null
        stays null."""
        found = pc.match_substring_regex(texts, self.hint).fill_null(False)
        if not pc.any(found).as_py():
            return texts
        some = texts.filter(found)
        characters = np.frombuffer(some.buffers()[2] or b"", np.uint8)
        for each in self.patterns:
            if not each.signs or any((characters == ord(sign)).any() for sign in each.signs):
                some = pc.replace_substring_regex(some, each.regex, each.replacement)
        if self.replace is not None:
            new = [self.replace(text, self.shown) for text in some.to_pylist()]
            some = pa.array(new, pa.string())
        return pc.replace_with_mask(texts, found, some)


_BLANK_OR_DASH = r"(?:[^\S\r\n]|-)"  # also between groups of one number, in any mixture

# --- cards ------------------------------------------------------------------------------------

CARD_DIGITS: Final = range(13, 20)
# A pattern that begins with characters is found faster than one that begins with a look back.
_DIGITS = re.compile(
    rf"[0-9](?<![\w.][0-9])(?<!_-[0-9])[0-9]*(?:{_BLANK_OR_DASH}{{1,2}}[0-9]+)*(?![\w]|\.[0-9])"
)
_GROUP = re.compile(r"[0-9]+")
_FIRST_GROUP = 4
_GROUP_DIGITS = range(2, 8)
_FIRST_DIGITS = "23456"  # the first digits that card numbers have


_CARD_LIKE = (
    r"(?:^|[^\w.])[2-6][0-9]{3}(?:[0-9]{9}|[\s\pZ-]{1,2}[0-9]{2})"
    r"|(?:^|[^A-Za-z0-9.])[2-6][0-9]{3}[._][0-9]{4,6}[._]"
)
_WITH_SIGNS = re.compile(  # versions and times have dots too, so only the groups of cards count
    r"[2-6](?<![A-Za-z0-9.][2-6])(?<![0-9]_[2-6])"
    r"[0-9]{3}([._])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|[0-9]{6}\1[0-9]{4,5})"
    r"(?![A-Za-z0-9]|[._][0-9])"
)


def is_card(digits: str) -> bool:
    """Whether `digits` have the length, the first digit and the check digit of a card's number."""
    if len(digits) not in CARD_DIGITS or digits[0] not in _FIRST_DIGITS:
        return False
    doubled = (int(each) * 2 for each in digits[-2::-2])
    total = sum(map(int, digits[::-2])) + sum(each - 9 * (each > 9) for each in doubled)
    return total % 10 == 0


def mask_cards(text: str, shown: str) -> str:
    """Puts `shown` in place of each card number in a text."""
    text = _DIGITS.sub(lambda found: _without_cards(found[0], shown), text)
    return _WITH_SIGNS.sub(
        lambda found: shown if is_card(found[0].replace(found[1], "")) else found[0], text
    )


def _without_cards(run: str, shown: str) -> str:
    """Puts `shown` in place of each card number in a run: groups of digits with one or two
    blanks or dashes between two groups.
    """
    groups = [(each.start(), each.end()) for each in _GROUP.finditer(run)]
    pieces, at, index = [], 0, 0
    while index < len(groups):
        end = _card_end(run, groups, index)
        if end is None:
            index += 1
            continue
        pieces += [run[at : groups[index][0]], shown]
        at = groups[end][1]
        index = end + 1
    return "".join([*pieces, run[at:]])


def _card_end(run: str, groups: list[tuple[int, int]], index: int) -> int | None:
    """Finds the longest card number that begins with the group at `index`, and returns the index of
    its last group. Returns None if no card number begins there.
    """
    first, end = groups[index]
    digits = run[first:end]
    found = index if is_card(digits) else None
    if len(digits) != _FIRST_GROUP or index + 1 == len(groups):
        return found
    for later in range(index + 1, len(groups)):
        begin, end = groups[later]
        digits += run[begin:end]
        if end - begin not in _GROUP_DIGITS:
            break
        if len(digits) >= CARD_DIGITS.stop:
            break
        if is_card(digits):
            found = later
    return found


# --- bank accounts ----------------------------------------------------------------------------

_IBAN_LENGTHS: Final[Mapping[str, int]] = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM", 28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA",
        30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_IBAN_HEAD = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}")
_BETWEEN_GROUPS = re.compile(rf"{_BLANK_OR_DASH}{{1,2}}(?=[A-Z0-9])")


def mask_ibans(text: str, shown: str) -> str:
    """Puts `shown` in place of each number of a bank account in a text."""
    pieces, at = [], 0
    for head in _IBAN_HEAD.finditer(text):
        end = None if head.start() < at else _iban_end(text, head.start())
        if end is not None:
            pieces += [text[at : head.start()], shown]
            at = end
    return "".join([*pieces, text[at:]])


def _iban_end(text: str, begin: int) -> int | None:
    """Returns where the account number that begins at a position ends; None if there is none."""
    length = _IBAN_LENGTHS.get(text[begin : begin + 2])
    if length is None:
        return None
    number, at = "", begin
    while len(number) < length and at < len(text):
        character = text[at]
        if character.isascii() and (character.isdigit() or character.isupper()):
            number += character
            at += 1
        elif between := _BETWEEN_GROUPS.match(text, at):
            at = between.end()
        else:
            return None
    if len(number) < length or text[at : at + 1].isalnum():
        return None
    numeric = "".join(str(int(each, 36)) for each in number[4:] + number[:4])
    return at if int(numeric) % 97 == 1 else None


# --- social security numbers ------------------------------------------------------------------

_SSN = re.compile(
    r"(?<![\w.-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-]|\.[0-9])"
)


def mask_ssns(text: str, shown: str) -> str:
    """Puts `shown` in place of each social security number in a text."""
    return _SSN.sub(shown, text)


KINDS: Final[Mapping[str, Kind]] = {
    "cards": Kind("[card]", _CARD_LIKE, replace=mask_cards),
    "ibans": Kind("[iban]", r"[A-Z]{2}[0-9]{2}[\s\pZ-]{0,2}[A-Z0-9]", replace=mask_ibans),
    "ssns": Kind(
        "[ssn]",
        rf"(?i){_NAMES_OF_SSNS}|[0-9]{{3}}-[0-9]{{2}}-[0-9]{{4}}",
        (
            Pattern(
                rf"(?i)((?:{_NAMES_OF_SSNS}){_IS})[0-9]{{3}}[ .-][0-9]{{2}}[ .-][0-9]{{4}}",
                r"\1[ssn]",
            ),
            *_values(_NAMES_OF_SSNS, "[ssn]"),
        ),
        mask_ssns,
    ),
    "keys": Kind(
        "[key]",
        rf"(?i){_NAMES_OF_KEYS}|pwd|PRIVATE KEY|{_URL_USER}|A[KRS]IA|AIza|GOCSPX|k_(?:live|test)_"
        r"|whsec_|(?-i:SG\.)",
        (
            Pattern(rf"(?s){_PEM}.*?(?:{_PEM_END}|\z)", "[key]"),
            Pattern(_KEYS_OF_SERVICES, r"\1[key]"),
            Pattern(rf"({_URL_USER})[^\s/\"'<>]+@", r"\1[key]@", "@"),
            # MySQL and MariaDB write whether a client used a password, which is no secret: the
            # first of these patterns hides that from the others, the last shows it again
            Pattern(rf"(?i)(using password)({_YES_OR_NO})", "\\1\x01\\2", "("),
            *_values(_NAMES_OF_KEYS, "[key]"),
            Pattern(rf"(?i)(using password)\x01({_YES_OR_NO})", r"\1\2"),
            Pattern(r"""(?i)((?:\A|\s)--?pwd\s+)[^\s"'&|;<>\[-]\S*""", r"\1[key]", "-"),
            Pattern(rf'(?i)(pwd{_IS})"(?:[^"\\]|\\.)*("|\z)', r'\1"[key]\2', '"'),
            Pattern(rf"(?i)(pwd{_IS})'(?:[^'\\]|\\.)*('|\z)", r"\1'[key]\2", "'"),
            Pattern(rf"(?i)(pwd{_IS}(?:\\+\")?)[^\s\"'&/\\][^\s\"'&\\]*", r"\1[key]"),
        ),
    ),
    "emails": Kind(
        "[email]",
        "@",
        (Pattern(r"[\pL\pN._%+'-]+@(?:[\pL\pN-]+\.)+\pL{2,}", "[email]"),),
    ),
    "tokens": Kind(
        "[token]",
        rf"(?i)authorization|bearer|token|cookie|eyJ|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|ya29|{_SESSIONS}",
        (
            Pattern(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", "[token]"),
            Pattern(_TOKENS_OF_SERVICES, r"\1[token]"),
            Pattern(r"(?i)(\bbearer\s+)[\w.~+/=-]{16,}", r"\1[token]"),
            Pattern(_HEADER, r"\1[token]"),
            *_values(f"authorization|cookie|token|{_SESSIONS}", "[token]"),
        ),
    ),
    "ips": Kind(
        "[ip]", r"[0-9]\.[0-9]+\.[0-9]+\.[0-9]|::|(?:[0-9A-Fa-f]{1,4}:){6}", replace=mask_ips
    ),
}  # fmt: skip
