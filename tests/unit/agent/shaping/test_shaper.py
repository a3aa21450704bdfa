"""Rules of `shape` are applied in their order. Whether the rule `sample` keeps a record depends on
the record's origin, and not on chance."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.pseudonyms import HashKey
from skidway.agent.shaping.rules import SHAPE_VERSION
from skidway.agent.shaping.sampling import chosen
from skidway.agent.shaping.shaper import GROWN, KEPT, Shaped, Shaper
from skidway.errors import ConfigurationRefused
from skidway.kafka.columns import Origins
from support.promises import promise

KNOWN = "5b4d676592edbe7e421dcdc8096d57a168e8cbc82e7892cfe37742bf435cfb9c"
"""The digest of the result of `test_known_records_become_known_records`. If this digest changes,
increase SHAPE_VERSION, the version of the code that applies rules."""

KEY = HashKey(b"0123456789abcdef")
RULES = """
drop level = "DEBUG" as debug
sample 1/3 where level = "INFO" as third
mask message for cards, ibans, emails, keys, tokens, ips
mask message matching "x+"
hash user
rename message to text
remove level
"""


def origins(count: int, file: int = 5) -> Origins:
    first = np.arange(count, dtype=np.int64) * 100
    same = np.ones(count, np.int64)
    return Origins(same * 77, same * file, first, same * 100)


def batch(count: int) -> pa.RecordBatch:
    levels = ["DEBUG", "INFO", "WARN"]
    return pa.RecordBatch.from_pylist(
        [
            {
                "level": levels[index % 3],
                "user": None if index % 5 == 0 else f"user-{index % 4}",
                "message": f"xx 4111 1111 1111 1111 from 10.0.0.{index} to a{index}@example.org "
                "password=geheim Bearer 0123456789abcdef GB82WEST12345698765432",
            }
            for index in range(count)
        ]
    )


def shape(text: str, count: int = 60, key: HashKey | None = KEY) -> Shaped:
    return Shaper(parse(text), key).apply(batch(count), origins(count))


def rows(found: Shaped) -> list[dict[str, Any]]:
    return list(found.batch.to_pylist())


@promise("2 another program")
def test_known_records_become_known_records() -> None:
    """The same rules always turn the same records into the same result. If the result changes,
    SHAPE_VERSION must be increased. Records that a former version of the program had promised to
    send are then not made again: the agent searches the brokers for them."""
    found = shape(RULES)
    said = repr((rows(found), found.by.tolist())).encode()
    assert (SHAPE_VERSION, hashlib.sha256(said).hexdigest()) == (4, KNOWN)


def test_rules_are_applied_in_their_order() -> None:
    """If several rules would leave out a record, only the first of these rules counts the
    record."""
    found = shape('drop level = "DEBUG" as a\ndrop level in ("DEBUG", "INFO") as b')
    levels = np.arange(60) % 3
    assert found.by.tolist() == np.where(levels == 2, KEPT, levels).tolist()
    assert found.kept.tolist() == np.flatnonzero(levels == 2).tolist()
    assert {row["level"] for row in rows(found)} == {"WARN"}
    masked = shape('mask message matching "xx" \nkeep message contains "[masked]" as c')
    assert masked.batch.num_rows == 60


NESTED = pa.schema(
    [
        pa.field("text", pa.string()),
        pa.field("list", pa.list_(pa.string())),
        pa.field("map", pa.map_(pa.string(), pa.string())),
        pa.field(
            "record",
            pa.struct(
                [("inner", pa.string()), ("deep", pa.list_(pa.struct([("t", pa.string())])))]
            ),
        ),
        pa.field("number", pa.int64()),
        pa.field("numbers", pa.list_(pa.int64())),
    ]
)


@pytest.mark.parametrize(
    ("rule", "shown"), [("for ssns", "[ssn]"), ('matching "[0-9]{3}-[0-9-]*"', "[masked]")]
)
def test_a_mask_of_all_fields_finds_every_text(rule: str, shown: str) -> None:
    """A mask of `*` covers all texts of a record, also those in lists, maps and records inside of
    it. Everything else, nulls too, stays as it is."""
    secret = "078-05-1120"

    def row(text: str | None) -> dict[str, Any]:
        return {
            "text": text,
            "list": [text, None, "x"],
            "map": [(secret, text), ("other", "y")],
            "record": {"inner": text, "deep": [{"t": text}, None, {"t": ""}]},
            "number": 78051120,
            "numbers": [1, 2],
        }

    nulls = dict.fromkeys(NESTED.names)
    given = pa.RecordBatch.from_pylist(
        [row("left out"), row(f"a {secret}"), nulls, row(None), row(secret)], NESTED
    )[1:]
    found = Shaper(parse(f"mask * {rule}"), None).apply(given, origins(4))
    wanted = [row(f"a {shown}"), nulls, row(None), row(shown)]
    assert found.batch.to_pylist() == wanted
    assert found.batch.schema.types == NESTED.types
    found.batch.validate(full=True)


def test_masks_of_all_fields_do_not_grow_a_text_without_limit() -> None:
    """If masks of `*` make a text inside of a field too long, the record is left out, and the field
    is named."""
    given = pa.RecordBatch.from_pylist(
        [{"list": ["x" * 10]}, {"list": ["y"]}], pa.schema([("list", pa.list_(pa.string()))])
    )
    rule = 'mask * matching "x"\nmask * matching "[a-z]"'
    found = Shaper(parse(rule), None).apply(given, origins(2))
    assert found.by.tolist() == [GROWN, KEPT]
    assert found.grown == {0: "list"}


@promise("2 filtered")
def test_a_sample_is_the_same_each_time_and_in_each_batch() -> None:
    """Whether the rule `sample` keeps a record depends only on the record's origin and the rule's
    name. It depends neither on the other records of the batch nor on the time."""
    whole = origins(1000)
    found = chosen(whole, "third", 1, 3)
    assert found.tolist() == chosen(whole, "third", 1, 3).tolist()
    for index in (0, 17, 999):
        one = Origins(*(column[index : index + 1] for column in (
            whole.agent, whole.file, whole.first, whole.length)))  # fmt: skip
        assert chosen(one, "third", 1, 3).tolist() == [found[index]]


@pytest.mark.parametrize(("kept", "of"), [(1, 2), (1, 10), (9, 10), (1, 100), (7, 7)])
def test_a_sample_has_the_right_share(kept: int, of: int) -> None:
    """The rule `sample` keeps the configured share of the records, within five standard deviations,
    even if another rule `sample` was applied to these records before."""
    count = 200_000
    share = kept / of
    for picked in (np.ones(count, np.bool_), chosen(origins(count), "other", 1, 2)):
        total = int(picked.sum())
        found = int((chosen(origins(count), "rule", kept, of) & picked).sum())
        assert abs(found - total * share) <= 5 * (total * share * (1 - share)) ** 0.5


def test_the_rest_stays_outside_a_sample() -> None:
    """A rule `sample` with a condition leaves out only records for which the condition is true."""
    found = shape('sample 1/1000000 where level = "INFO" as few')
    assert {row["level"] for row in rows(found)} == {"DEBUG", "WARN"}
    assert found.batch.num_rows == 40


def test_hashes_need_the_key() -> None:
    """The same text and the same key give the same hash. Another text or another key gives another
    hash, and the hash of null is null. Without a key, a rule that hashes is refused."""
    found = [row["user"] for row in rows(shape("hash user"))]
    other = [row["user"] for row in rows(shape("hash user", key=HashKey(b"fedcba9876543210")))]
    assert found[0] is None
    assert found[1] == found[9]
    assert found[1] != found[2]
    assert len(found[1]) == 32
    assert not set(found) & set(other) - {None}
    assert "user-1" not in found
    with pytest.raises(ConfigurationRefused, match=r"hash\.key\.location"):
        shape("hash user", key=None)


def test_a_key_is_never_shown() -> None:
    """The printed form (repr) of a key for hashes contains no part of the key, and neither does the
    key's fingerprint (a hash). Another key has another fingerprint."""
    parts = [KEY.secret[at : at + 4] for at in range(len(KEY.secret) - 3)]
    for shown in (repr(KEY), KEY.fingerprint):
        assert [part for part in parts if part.decode() in shown or part.hex() in shown] == []
    assert KEY.fingerprint != HashKey(b"0123456789abcdeg").fingerprint
