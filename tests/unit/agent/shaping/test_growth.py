"""A text does not grow without bound if masks are applied to the texts that earlier masks have
inserted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.growth import GROWTH_MAX
from skidway.agent.shaping.masks import mask_matching
from skidway.agent.shaping.rejected_text import WITHHELD, WITHHELD_DETAIL, RejectedText
from skidway.agent.shaping.shaper import GROWN, KEPT, Shaped, Shaper
from skidway.kafka.columns import Origins
from support.agent_press import press, reading, recipe, records, rejected
from support.agent_world import World, raw, settings
from support.promises import promise

PATTERNS = ("[a-z]", "b+", ".", "[[]", "masked", "a")


def shaped(texts: list[str | None], rules: str) -> Shaped:
    count = len(texts)
    first = np.arange(count, dtype=np.int64)
    origins = Origins(first * 0, first * 0, first, first * 0 + 1)
    batch = pa.RecordBatch.from_pydict({"msg": pa.array(texts, pa.string())})
    return Shaper(parse(rules), None).apply(batch, origins)


def test_one_rule_is_never_too_much() -> None:
    """A record is rejected if masks make a text more than eight times as long as it was. A single
    rule `mask` makes a text at most eight times as long, so no record is rejected because of a
    single rule."""
    found = shaped(["a" * 1_000, "", None], 'mask msg matching "[a-z]"')
    assert found.by.tolist() == [KEPT] * 3
    assert found.batch.to_pylist()[0]["msg"] == "[masked]" * 1_000


def test_a_record_that_masks_make_too_long_is_named() -> None:
    """If a second rule masks the texts that a first rule has inserted, and a field becomes too
    long, the record is rejected, and the result names the field. This is so even if a later rule
    would leave out a record with this text. Other records are not affected."""
    rules = 'mask msg matching "[a-z]"\nrename msg to text\n'
    rules += 'mask text matching "[a-z]"\ndrop text contains "]][["\n'
    found = shaped(["12", "ab", "c" * 200_000, "-" * 99 + "a", "]][["], rules)
    assert found.by.tolist() == [KEPT, GROWN, GROWN, KEPT, 0]
    assert found.grown == {1: "text", 2: "text"}
    assert found.kept.tolist() == [0, 3]


@promise("2 filtered")
def test_the_reject_says_why() -> None:
    """If masks make a record too long, its line goes to `<topic>.rejected`, with a reason and a
    detail (a short text) that names the field. The line's own text is not sent, because masks would
    make this text too long, too."""
    shape = 'mask line matching "[a-z]"\n' * 3
    found = press(recipe(shape=shape), reading(b"secret\n12\n"))
    assert [record.value[6:] for record in records(found)] == [b"12"]
    (reject,) = rejected(found)
    assert (reject["reason"], reject["line"]) == ("too-long", WITHHELD)
    assert reject["detail"] == (
        "masks make the field line more than 8 times as long; mask each text with one rule only"
    )


def test_a_running_agent_accounts_for_the_line() -> None:
    """If masks make a record too long, the bytes of its line count as rejected in the agent's
    ledger (`skidway agent state show`), and the agent continues."""
    world = World(settings(raw(shape='mask line matching "[a-z]"\n' * 8)))
    world.files.append("/log/a.log", b"x" * 100_000 + b"\n1\n")
    world.start()
    world.settle()
    ledger = world.only()
    assert (ledger["rejected"], ledger["acknowledged"], ledger["pending"]) == (100_001, 2, 0)


def test_texts_of_rejected_lines_are_bounded_too() -> None:
    """If masks would make the text or the detail (the reason in words) of a rejected line too long,
    the agent does not send this text or detail."""
    text = RejectedText(parse('mask a matching "[a-z]"\nmask b matching "[a-z]"'), "utf-8", ())
    assert text.line(b"abc") == WITHHELD
    assert text.detail("abc") == WITHHELD_DETAIL
    assert text.line(b"123") == b"123"


@pytest.mark.parametrize("rules", [1, 2, 5])
@given(texts=st.lists(st.none() | st.text("ab[1é", max_size=30), max_size=6), data=st.data())
def test_the_limit_changes_no_other_text(
    rules: int, texts: list[str | None], data: st.DataObject
) -> None:
    """A record is rejected if and only if its text is too long after one of the masks. All other
    records are the same as without a limit, whatever other records are in the batch."""
    patterns = [data.draw(st.sampled_from(PATTERNS)) for _ in range(rules)]
    found = shaped(texts, "\n".join(f'mask msg matching "{each}"' for each in patterns))
    expected, kept = [], []
    for row, text in enumerate(texts):
        masked, fits = text, True
        for pattern in patterns:
            if masked is not None and fits:
                masked = mask_matching(pa.array([masked], pa.string()), pattern)[0].as_py()
                fits = len(masked.encode()) <= GROWTH_MAX * len((text or "").encode())
        if fits:
            expected.append(masked)
            kept.append(row)
    assert found.kept.tolist() == kept
    assert [each["msg"] for each in found.batch.to_pylist()] == expected
