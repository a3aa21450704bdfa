"""Tests which texts `mask` replaces, and which texts it leaves unchanged."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.shaping import addresses
from skidway.agent.shaping.kinds import KINDS, is_card
from skidway.agent.shaping.masks import mask_kinds, mask_matching

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"

TRUTH = [
    (
        "keys",
        """<property name="db.password">x</property> <p name='password' value='y'/> """
        """<p a="b">z</p>""",
        """<property name="db.password">[key]</property> <p name='password' value='[key]'/> """
        """<p a="b">z</p>""",
    ),
    ("keys", "password%20%3D%20x --db.password y", "password%20%3D%20[key] --db.password [key]"),
    ("keys", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nx", "[key]"),
    ("keys", f"k_AIza{'a' * 35}", "k_[key]"),
    (
        "ssns",
        "socialSecurityNumber=078051120 social_security: 1",
        "socialSecurityNumber=[ssn] social_security: [ssn]",
    ),
    ("cards", "paid with 4111111111111111.", "paid with [card]."),
    ("cards", "4111 1111 1111 1111 200", "[card] 200"),
    ("cards", "2024 4111-1111-1111-1111 ok", "2024 [card] ok"),
    ("cards", "amex 3782 822463 10005, diners 3056 930902 5904", "amex [card], diners [card]"),
    ("cards", "378282246310005;6011111111111117", "[card];[card]"),
    ("cards", '{"pan":"5555555555554444"}', '{"pan":"[card]"}'),
    ("cards", "6304000000000000001 4222222222222", "6304000000000000001 [card]"),
    ("cards", "4111111111111112", None),
    ("cards", "blk_4111111111111111 blk_-4111111111111111 1411111111111111", None),
    ("cards", "0.4111111111111111 41111111111111111111111", None),
    ("cards", "1700000000000 1700000000000000", None),
    ("cards", "4111\u00a01111\u202f1111\t1111", "[card]"),
    ("cards", "4111  1111 -1111-1111\n4111 1111\n1111 1111", "[card]\n4111 1111\n1111 1111"),
    (
        "cards",
        "card_4111_1111_1111_1111, 4111.1111.1111.1111. 3782.822463.10005",
        "card_[card], [card]. [card]",
    ),
    ("cards", "30569309025904 3056.930902.5904", "[card] [card]"),
    (
        "cards",
        "4111.1111_1111.1111 4111.1111.1111.1112 1.4111.1111.1111.1111 4111.1111.1111.1111.1",
        None,
    ),
    ("cards", "2024.0115.1030.4500 4.11.1111 5_4111_1111_1111_1111", None),
    ("ssns", "ssn=078-05-1120, SSN: 078051120; 219-09-9999.", "ssn=[ssn], SSN: [ssn]; [ssn]."),
    ("ssns", '{"customerSsn": 1, "ssn": 78051120, "social_security_number":"078 05 1120"}',
     '{"customerSsn": 1, "ssn": "[ssn]", "social_security_number":"[ssn]"}'),
    (
        "ssns",
        "000-12-3456 666-12-3456 900-12-3456 123-00-4567 123-45-0000 1-078-05-1120 078-05-11201",
        None,
    ),
    ("ssns", "ssn: 078 05 1120 x, 078 05 1120", "ssn: [ssn] x, 078 05 1120"),
    (
        "keys",
        "a &lt;ns:password a=1&gt;x&amp;y&lt;/password&gt; --pwd z",
        "a &lt;ns:password a=1&gt;[key]&lt;/password&gt; --pwd [key]",
    ),
    ("ssns", "processname=x className: y 2024-078-05-1120", None),
    ("keys", "run --password geheim -u x --api-key 'a b' --db-secret \"c d\" -pin 1234",
     "run --password [key] -u x --api-key '[key]' --db-secret \"[key]\" -pin [key]"),
    (
        "keys",
        '["--password","hunter2"] [\'--token-secret\', \'x\']',
        '["--password","[key]"] [\'--token-secret\', \'[key]\']',
    ),
    ("keys", "--password --verbose non-secret text --passwordless", None),
    ("keys", "?password%3Dgeheim&x ?r=%2Fa%3Fpassword%253Dgeheim secret%3A%20s",
     "?password%3D[key]&x ?r=%2Fa%3Fpassword%253D[key] secret%3A%20[key]"),
    ("keys", "%22password%22%3A%22hunter2%22%2C%22n%22%3A1", "%22password%22%3A[key]"),
    (
        "keys",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdG\n-----END PGP PRIVATE KEY BLOCK-----.",
        "[key].",
    ),
    (
        "keys",
        "pin=1234 PIN: 5678, cardPin=9 pin_code=1 userPIN = 2",
        "pin=[key] PIN: [key], cardPin=[key] pin_code=[key] userPIN = [key]",
    ),
    (
        "keys",
        '<pin>1234</pin><cardPin a="b">1</cardPin>',
        '<pin>[key]</pin><cardPin a="b">[key]</cardPin>',
    ),
    ("keys", "ping=12 pinned: 3 spin=4 shipping=5 pins=6 mapping: 7 pinned_x=1", None),
    (
        "keys",
        f"AIza{'a' * 35} sk_live_{'4eC39HqL' * 3} rk_test_{'a' * 24} GOCSPX-{'b' * 28}.",
        "[key] [key] [key] [key].",
    ),
    ("keys", f"SG.{'a' * 22}.{'b' * 43} whsec_{'c' * 32} msg.abc.def", "[key] [key] msg.abc.def"),
    (
        "tokens",
        f"npm_{'a1' * 18} github_pat_{'a_' * 30} ya29.{'a' * 30}",
        "[token] [token] [token]",
    ),
    ("tokens", "npm_config_registry=x npm_lifecycle_event_of_some_long_name", None),
    ("tokens", "JSESSIONID=0A1B; ;jsessionid=0A1B.node1?x PHPSESSID: abc; curl --token geheim",
     "JSESSIONID=[token]; ;jsessionid=[token] PHPSESSID: [token]; curl --token [token]"),
    ("ibans", "DE89\u00a03704\u202f0044  0532-0130\t00, NO93-8601-1117-947", "[iban], [iban]"),
    ("ibans", "to DE89 3704 0044 0532 0130 00 EUR", "to [iban] EUR"),
    ("ibans", "GB82WEST12345698765432,NO9386011117947", "[iban],[iban]"),
    ("ibans", "DE00370400440532013000 GB82WEST1234569876543", None),
    ("ibans", "XX82WEST12345698765432 FR1420041010050500013M02606X", None),
    ("emails", "<ann.o'neil+x@mail.example.org>", "<[email]>"),
    ("emails", "jörg@bücher.de, root@localhost", "[email], root@localhost"),
    ("emails", "user@1.2.3.4 a@b @c.de", None),
    ("keys", "key AKIAIOSFODNN7EXAMPLE here", "key [key] here"),
    ("keys", f"a {PEM} b", "a [key] b"),
    ("keys", "-----BEGIN PRIVATE KEY-----\nMIIE and no end", "[key]"),
    ("keys", "db_password=geheim user=x", "db_password=[key] user=x"),
    ("keys", "Password: 'two words' next", "Password: '[key]' next"),
    ("keys", '{"api_key": "a\\"b", "n": 1}', '{"api_key": "[key]", "n": 1}'),
    ("keys", '{"cvv":123,"Passwort":null}', '{"cvv":"[key]","Passwort":"[key]"}'),
    ("keys", '{"secrets":["a","b"],"secret":{"n":1}}', '{"secrets":["[key]"],"secret":{"n":1}}'),
    ("keys", "passwort=a pwd=b x_cvv: 1", "passwort=[key] pwd=[key] x_cvv: [key]"),
    ("keys", "aws_secret_access_key = wJal/b+c", "aws_secret_access_key = [key]"),
    ("keys", "AWS Secret Access Key: wJal/b+c", "AWS Secret Access Key: [key]"),
    (
        "keys",
        "postgres://app:geheim5@db/x redis://:a!b@c",
        "postgres://app:[key]@db/x redis://:[key]@c",
    ),
    ("keys", "http://host:80/a@b http://[::1]:80/ https://ann@host", None),
    ("keys", r"password=\'two words\' x", r"password=\'[key]\' x"),
    ("keys", "?api-key=abc&x=1 secret = s", "?api-key=[key]&x=1 secret = [key]"),
    ("keys", '"{\\"password\\": \\"geheim\\"}"', '"{\\"password\\": \\"[key]\\"}"'),
    ("keys", r'"{\"password\": \"a\\\"b\"}"', r'"{\"password\": \"[key]\"}"'),
    ("keys", r'"{\"cvv\":12}"', r'"{\"cvv\":\"[key]\"}"'),
    ("keys", r'\\\"password\\\":\\\"a b\\\"', r'\\\"password\\\":\\\"[key]\\\"'),
    ("keys", "denied for 'a'@'b' (using password: YES) (using password: no)", None),
    ("keys", "(secret: NO), {cvv=a)b}, f(cvc=x);", "(secret: [key]), {cvv=[key]}, f(cvc=[key]);"),
    ("keys", "using password: abc) password=[key] x", "using password: [key]) password=[key] x"),
    ("keys", '{"password"=>"hunter2", "n"=>1}', '{"password"=>"[key]", "n"=>1}'),
    ("keys", 'password = Some("hunter2"), n', 'password = Some("[key]"), n'),
    ("keys", "{u'password': u'hunter2'}", "{u'password': u'[key]'}"),
    (
        "keys", r"{\x22password\x22:\x22hunt\x5C\x22er2\x22,\x22cvv\x22:1}",
        r"{\x22password\x22:\x22[key]\x22,\x22cvv\x22:\x22[key]\x22}",
    ),
    ("keys", 'password=ab"cd x {"m":"password=ab"}', 'password=[key] x {"m":"password=[key]"}'),
    ("keys", "password\u00a0: hunter2", "password\u00a0: [key]"),
    ("keys", "    [password] => hunter2\n    [n] => 1", "    [password] => [key]\n    [n] => 1"),
    ("keys", "password := hunter2, n", "password := [key], n"),
    ("keys", "$user->password->x y", "$user->password->[key] y"),
    ("keys", "passcode=123 otp=456789", "passcode=[key] otp=[key]"),
    ("keys", "conf['password'] = 'hunter2'", "conf['password'] = '[key]'"),
    ("keys", "{User:ann Password:hunter2 N:1}", "{User:ann Password:[key] N:1}"),
    ("keys", "User(password=hunter2, n=1)", "User(password=[key], n=1)"),
    ("keys", 'password=ab"[x', 'password=[key]"[x'),
    (
        "keys", r"{\u0022password\u0022:\u0022hunter2\u0022,\u0022cvv\u0022:\u00221\u0022}",
        r"{\u0022password\u0022:\u0022[key]\u0022,\u0022cvv\u0022:\u0022[key]\u0022}",
    ),
    ("keys", "password&quot;:&quot;hunter2&quot;}", "password&quot;:&quot;[key]&quot;}"),
    (
        "keys", '<wsse:Password Type="x">hunter2</wsse:Password><n>1</n>',
        '<wsse:Password Type="x">[key]</wsse:Password><n>1</n>',
    ),
    ("keys", "<password><![CDATA[hu]nter2]]></password>", "<password><![CDATA[[key]]]></password>"),
    ("keys", "<password/> <passwords></passwords>", None),
    ("keys", "Failed password for root from x PWD=/home/u", None),
    ("tokens", "Authorization: Basic dXNlcjpwYXNz", "Authorization: [token]"),
    ("tokens", "authorization=abc123 x", "authorization=[token]"),
    ("tokens", "Bearer 0123456789abcdef== ok", "Bearer [token] ok"),
    ("tokens", f"jwt {JWT} ok", "jwt [token] ok"),
    ("tokens", "access_token=abc&x=1 ghp_0123456789abcdefghij", "access_token=[token]&x=1 [token]"),
    ("tokens", '{"token":"tk1","n":1}', '{"token":"[token]","n":1}'),
    ("tokens", "Cookie: session=abc; theme=dark", "Cookie: [token]"),
    ("tokens", '"Set-Cookie":"sid=a b; Path=/","n":1', '"Set-Cookie":"[token]","n":1'),
    ("tokens", "Authorization: Bot MTk4NjIy.Cl2FMQ\nHost: x", "Authorization: [token]\nHost: x"),
    (
        "tokens", "Authorization: AWS4-HMAC-SHA256 SignedHeaders=host, Signature=fe5f",
        "Authorization: [token]",
    ),
    ("tokens", 'Authorization: Digest username="ann", response="6629"', "Authorization: [token]"),
    (
        "tokens", '"Authorization":["Basic dXNl"],"Cookie":["sid=a"]',
        '"Authorization":["[token]"],"Cookie":["[token]"]',
    ),
    ("tokens", "'Authorization': SSWS 00abc, Cookie: [ 'a' ]", "'Authorization': [token] [token]"),
    ("tokens", "-H 'Authorization: NTLM TlRM' http://x", "-H 'Authorization: [token]' http://x"),
    ("tokens", 'Cookie: q={"a":{"b":1},"c":2}; session=S', "Cookie: [token]"),
    ("tokens", "Cookie: a='q'; session=S", "Cookie: [token]"),
    ("tokens", 'Cookie: sid="a,b"; s=S', "Cookie: [token]"),
    ("tokens", "Set-Cookie: flag; s=S", "Set-Cookie: [token]"),
    (
        "tokens", '{"m":"Cookie: a=","n":"x"} "Set-Cookie":["s=S; Path=/"]',
        '{"m":"Cookie: [token]","n":"x"} "Set-Cookie":["[token]"]',
    ),
    ("tokens", "map[Authorization:[Bearer abc] X:[y]]", "map[Authorization:[token]"),
    ("tokens", "{'Authorization': b'Bearer abc', 'n': 1}", "{'Authorization': b'[token]', 'n': 1}"),
    ("tokens", "> proxy-authorization: Basic YTpi", "> proxy-authorization: [token]"),
    ("tokens", "[X-Auth-Token] => abc", "[X-Auth-Token] => [token]"),
    ("tokens", "<accessToken>abc</accessToken>", "<accessToken>[token]</accessToken>"),
    ("tokens", "the bearer token was refused, eyJust", None),
    ("ips", "from 10.0.0.1:80, /192.168.1.255.", "from [ip]:80, /[ip]."),
    ("ips", "dsl-059.45.101.203.example.net", "dsl-[ip].example.net"),
    ("ips", "0:0:0:0:0:ffff:1.2.3.4 at 12:34:56", "[ip] at 12:34:56"),
    ("ips", "[::1]:80 2001:db8::ff00:42:8329.", "[[ip]]:80 [ip]."),
    ("ips", "/0:0:0:0:0:0:0:1:50010 ::ffff:1.2.3.4", "/[ip]:50010 [ip]"),
    ("ips", "from 2001:db8::7: refused", "from [ip]: refused"),
    ("ips", "client:2001:db8::7 /2001:db8::7:52144 x:::1", "client:[ip] /[ip]:52144 x:[ip]"),
    ("ips", "tcp:client:2001:db8::7:https", "tcp:client:[ip]:https"),
    ("ips", "ip=2001:DB8::7,fe80::1%eth0;(2001:db8::7/64)", "ip=[ip],[ip]%eth0;([ip]/64)"),
    ("ips", "f1::bar x::a1::y 1::2::3", None),
    ("ips", "std::1b ns::f:: at:12:34:56 mac:00:1b:44:11:3a:b7", None),
    ("ips", "v1.2.3.4 1.2.3.4.5 256.1.1.1 12:34:56 std::string a::b 00:1b:44:11:3a:b7", None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "expected"), TRUTH)
def test_kinds_are_masked_and_their_likes_are_not(
    kind: str, text: str, expected: str | None
) -> None:
    """Each kind of mask (`cards`, `emails`, ...) replaces the texts of this kind, and leaves
    similar texts unchanged."""
    found = mask_kinds(pa.array([text, None, "plain"]), [kind]).to_pylist()
    assert found == [text if expected is None else expected, None, "plain"]


def test_only_the_kinds_that_are_asked_for_are_masked() -> None:
    """A rule `mask FIELD for KINDS` masks only texts of the kinds that it names."""
    text = "4111111111111111 10.0.0.1 a@example.org"
    assert mask_kinds(pa.array([text]), ["ips"]).to_pylist() == [
        "4111111111111111 [ip] a@example.org"
    ]
    assert mask_kinds(pa.array([text]), KINDS).to_pylist() == ["[card] [ip] [email]"]


@given(st.text("0123456789-. :abcdefAKIDE@=\"'\\ \n", max_size=60))
def test_masks_take_any_text_and_leave_nothing_to_mask(text: str) -> None:
    """Masks can be applied to every text. If a masked text is masked again for cards, IBANs and
    email addresses, the text stays the same."""
    once = mask_kinds(pa.array([text]), KINDS)
    assert mask_kinds(once, ["cards", "ibans", "emails"]).to_pylist() == once.to_pylist()


@given(st.integers(0, 10**15 - 1), st.sampled_from("23456"), st.sampled_from(["", " ", "-"]))
def test_every_card_is_found(number: int, first: str, between: str) -> None:
    """A card number of 16 digits with the right check digit is masked, whether its groups are
    separated by spaces, by hyphens or not at all. With another check digit, a number does not count
    as a card number."""
    digits = f"{first}{number:015d}"[:15]
    card = next(digits + str(last) for last in range(10) if is_card(digits + str(last)))
    shown = between.join(card[at : at + 4] for at in range(0, 16, 4))
    assert mask_kinds(pa.array([f"a {shown} b"]), ["cards"]).to_pylist() == ["a [card] b"]
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)
    assert not is_card(wrong)


def test_patterns_are_masked_with_re2() -> None:
    """`mask FIELD matching PATTERN` replaces every text that the pattern finds."""
    found = mask_matching(pa.array(["secret=a secret=b", None]), r"secret=\S+")
    assert found.to_pylist() == ["[masked] [masked]", None]


def test_addresses_have_one_way_to_match() -> None:
    """In the pattern that finds IPv6 addresses, no repetition gives characters back. The pattern
    for IPv4 addresses has no unbounded repetition. So the search takes time in proportion to the
    length of the text."""
    assert set(_repeats(addresses._COLONED.pattern)) == {"*+"}
    assert set(_repeats(addresses._IPV4.pattern)) == {"{3}"}
    text = ":" * 400_000 + "g"
    assert mask_kinds(pa.array([text]), ["ips"]).to_pylist() == [text]


def _repeats(pattern: str) -> list[str]:
    return re.findall(r"\{[0-9,]+\}|[+*]\+?", pattern)


def test_masked_json_stays_json() -> None:
    """A mask keeps the quotation marks around a value, so that the text is still valid JSON."""
    row = {"token": "tk", "password": 'a"b\\', "secret": 5, "api_key": ["x"], "credentials": None}
    for text in (json.dumps(row), json.dumps({"log": json.dumps(row)})):
        masked = mask_kinds(pa.array([text]), KINDS)
        assert "tk" not in masked[0].as_py().replace("token", "")
        made = json.loads(masked[0].as_py())
        assert json.loads(made["log"] if "log" in made else json.dumps(made)) == {
            "token": "[token]", "password": "[key]", "secret": "[key]", "api_key": ["[key]"],
            "credentials": "[key]",
        }  # fmt: skip
        assert mask_kinds(masked, KINDS).to_pylist() == masked.to_pylist()
