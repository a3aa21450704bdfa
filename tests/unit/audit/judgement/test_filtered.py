"""Tests how the audit counts filtered records (records that a rule of an agent left out): their
numbers are sent, stored and shown, and change no verdict."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts.counts import Counts, Sums, joined_by_rule
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.evidence.ledger import Ledger, ledger_of
from skidway.audit.judgement.standing import judged
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports.report import bucket_document, document, sentence
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.messages import Delta, Message, decode, encode
from support.audit_senders import AGENT, LOGS
from support.one_bucket import COUNTERS, DUE, NOW, POLICY, SIZE, START, count, delta, good, seal
from support.promises import promise

DEBUG, HEALTH = Filtered("debug", 3, 300), Filtered("health", 2, 20)
RULES = st.lists(
    st.builds(Filtered, st.sampled_from("abc"), st.integers(-9, 9), st.integers(-99, 99)),
    max_size=3, unique_by=lambda x: x.rule,
).map(lambda x: tuple(sorted(x, key=lambda each: each.rule)))  # fmt: skip


def with_filtered(counted: Count, *filtered: Filtered) -> Count:
    return replace(counted, filtered=filtered)


def some(*filtered: Filtered) -> list[Message]:
    """Returns the messages about a complete bucket. The agent's rules have left out the records
    `filtered` of this bucket."""
    first, *others = good()
    assert isinstance(first, Delta)
    counts = tuple(with_filtered(x, *filtered) for x in first.counts)
    return [replace(first, counts=counts), *others]


def ledger(messages: list[Message]) -> Ledger:
    return ledger_of(encode(x) for x in messages)


def test_what_was_left_out_is_told_with_the_count_of_its_bucket() -> None:
    """A delta (a message with counts) has one entry for each bucket, with the bucket's counts and
    its filtered records (those that a rule left out). Each entry names the bucket's previous delta.
    So a missing delta is noticed, whether it had counts or only filtered records. Decoding an
    encoded delta gives the same values."""
    counts = Counts(SIZE)
    counts.put((LOGS, 7, START), Sums(5, 50, 99))
    counts.put((LOGS, 7, START), Sums(filtered=(HEALTH,)))
    counts.put((LOGS, 7, START), Sums(filtered=(DEBUG,)))
    numbered = number_deltas(AGENT, START, 0, counts, {})
    (made,) = numbered.deltas
    assert made.counts == (with_filtered(count(), DEBUG, HEALTH),)
    assert decode(encode(made)) == made


@given(RULES, RULES, RULES)
def test_sums_by_rule_add_up_in_any_order(
    one: tuple[Filtered, ...], two: tuple[Filtered, ...], three: tuple[Filtered, ...]
) -> None:
    """The audit adds up, for each rule, the counts of the records that the rule left out. The sums
    do not depend on the order in which the counts are added, or on how they are grouped."""
    joined_twice = joined_by_rule(joined_by_rule(one, two), three)
    assert joined_twice == joined_by_rule(one, joined_by_rule(three, two))
    for rule in "abc":
        parts = [x.records for each in (one, two, three) for x in each if x.rule == rule]
        found = [x.records for x in joined_twice if x.rule == rule]
        assert sum(found) == sum(parts)


@promise("6 filtered")
def test_the_ledger_keeps_what_was_left_out_once() -> None:
    """If a delta (a message with counts) arrives twice, the ledger counts its filtered records
    (those that a rule left out) only once. For each bucket and rule, it adds up the filtered
    records of all deltas."""
    messages = some(DEBUG)
    second = delta(AGENT, 3, replace(with_filtered(count(0), DEBUG, HEALTH), previous=1))
    values = [encode(x) for x in (*messages, second, *messages, second)]
    evidence = ledger_of(values).evidence()
    (verdict,) = verdicts(evidence, POLICY, NOW)
    assert verdict.filtered == (Filtered("debug", 6, 600), HEALTH)
    assert verdict.records == 5


@promise("6 filtered")
def test_a_bucket_with_filtered_records_is_complete() -> None:
    """A bucket with filtered records (those that a rule left out) is complete if the tiers have
    equal counts of its other records. Reports show filtered records by rule beside every
    verdict."""
    evidence = ledger(some(DEBUG, HEALTH)).evidence()
    found = judged(evidence, POLICY, NOW)
    (topic,) = found.topics
    assert topic.by_status[Status.COMPLETE] == 1
    assert topic.filtered == (DEBUG, HEALTH)
    assert "rules filtered 5 records (debug 3, health 2)" in sentence(found)
    (said,) = document(found, [])["topics"]
    assert said["filtered"] == 5
    assert said["filtered_by_rule"][0] == {"rule": "debug", "records": 3, "bytes": 300}
    (verdict,) = verdicts(evidence, POLICY, NOW)
    assert bucket_document(verdict)["filtered"] == 5
    assert topic.and_later(topic, ()).filtered[0] == Filtered("debug", 6, 600)


@promise("6 filtered")
def test_a_bucket_of_which_nothing_is_left_is_complete() -> None:
    """If rules left out all records of a bucket, the bucket is complete, although only the agent
    reports it. If another tier counted a record of the bucket, the bucket is not complete."""
    empty = with_filtered(replace(count(0), checksum=0), DEBUG)
    messages: list[Message] = [delta(AGENT, 1, empty), seal(AGENT, 2, DUE, 1)]
    (verdict,) = verdicts(ledger(messages).evidence(), POLICY, NOW)
    assert (verdict.status, verdict.reasons) == (Status.COMPLETE, ())
    more = [*messages, delta(COUNTERS[0], 1, count(1))]
    (verdict,) = verdicts(ledger(more).evidence(), POLICY, NOW)
    assert verdict.status is Status.INCOMPLETE
