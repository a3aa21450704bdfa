"""Under random schedules, the audit judges a whole site correctly. The site has two agents and the
tiers broker, mirror and hdfs.

The mirror loses offsets. Counters are killed and count all records again. Rows of the loader have a
wrong bucket, agent or topic. Topics are created again. Records and audit messages expire.
Collectors read at different speeds. Rows change without a change in the manifests. After each step
of a collector, the test asks the real code of the audit which buckets are complete. The test
compares each of these buckets, line by line, with the facts of the site (support.site_truth). In
the end, a bucket must be complete if all tiers have counted the same lines of this bucket.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.evidence import Coverage, Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.tallies import Tally, link
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic.messages import Tier, encode
from support.audit_model import blind_to_checksums, blind_to_holes
from support.promises import promise
from support.randomness import Seeds
from support.site_truth import POLICY, Wrong, changed, completed, expected, judged, named
from support.site_world import Collector, Faults, World

RUNS = range(12)


def _run(seed: int, faults: Faults) -> World:
    world = World(seed, faults)
    try:
        for _ in range(faults.steps):
            world.step()
            _collect(world)
        world.settle()
        _judge_the_end(world)
    except Wrong as wrong:
        raise AssertionError(f"seed {seed}: {wrong}") from wrong
    return world


def _collect(world: World) -> None:
    """Lets one of the collectors read some further messages of one partition, and checks its
    verdicts."""
    choose, collector = world.random, world.random.choice(world.collectors)
    unread = collector.unread(world.audit)
    if unread and choose.random() < 0.4:
        collector.take(world.audit, choose.choice(unread), choose.randint(1, 12))
        judged(world, collector)


def _judge_the_end(world: World) -> None:
    """Lets all collectors read all messages. Asserts that all collectors come to the same verdicts,
    and that each bucket is complete if all tiers have counted the same lines of this bucket."""
    for collector in world.collectors:
        collector.take_all(world.audit)
    first, *others = [judged(world, collector) for collector in world.collectors]
    for collector, other in zip(world.collectors[1:], others, strict=True):
        if other != first or (world.faults.blind is None and _by_ledger(world, collector) != first):
            raise Wrong("two collectors that heard the same differ")
    lacking = expected(world) - completed(first)
    if lacking:
        why = {x.reasons for x in first if (x.source, x.bucket) in lacking}
        raise Wrong(f"never complete: {lacking}: {why}")


def _by_ledger(world: World, collector: Collector) -> list[BucketVerdict]:
    """Gives the messages that `collector` has read, in their order, to a ledger (the database of a
    real collector). Returns the verdicts to which the ledger leads."""
    ledger = Ledger()
    ledger.take([encode(message) for message in collector.messages])
    found = verdicts(ledger.evidence(), POLICY, world.now_ms)
    ledger.close()
    return found


def _run_all(seeds: range, faults: Faults) -> None:
    for seed in seeds:
        _run(seed, faults)


def _ids(faults: Faults) -> str:
    names = [name for name in Faults.__dataclass_fields__ if getattr(faults, name) is True]
    return "+".join([*names, *filter(None, [faults.misplaces])]) or "ordinary"


@promise(
    "1 topic made again", "6 seal of a topic made again", "6 complete", "6 epochs", "6 filtered"
)
@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(foreign=True),
        Faults(foreign=True, kills=True, beats=5),
        Faults(gaps=True),
        Faults(silent_gaps=True, kills=True),
        Faults(kills=True, recounts=True),
        Faults(gaps=True, kills=True, recounts=True, expires=True),
        Faults(misplaces="bucket"),
        Faults(misplaces="agent"),
        Faults(misplaces="topic"),
        Faults(misplaces="bucket", swaps=True),
        Faults(misplaces="agent", swaps=True),
        Faults(misplaces="topic", swaps=True),
        Faults(remakes=True, foreign=True),
        Faults(remakes=True, late=True, kills=True, recounts=True),
        Faults(expires=True, foreign=True),
        Faults(renews=True, expires=True),
        Faults(rules=True),
        Faults(rules=True, gaps=True, kills=True, recounts=True),
        Faults(rules=True, remakes=True, foreign=True),
        Faults(rules=True, misplaces="bucket"),
    ],
    ids=_ids,
)
def test_never_falsely_complete_and_complete_in_the_end(faults: Faults, seeds: Seeds) -> None:
    """The audit never reports an incomplete bucket (time window) as complete, even if a mirror
    loses offsets, counters count again, rows have a wrong bucket or agent, topics are created again
    and records expire. In the end, if all tiers have counted the same lines of a bucket, the audit
    reports the bucket as complete.
    """
    _run_all(seeds(RUNS), faults)


@promise("6 collectors")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(collectors=2),
        Faults(collectors=2, kills=True, recounts=True, gaps=True),
        Faults(collectors=2, remakes=True, late=True),
        Faults(collectors=2, renews=True, foreign=True),
        Faults(collectors=2, rules=True, kills=True),
    ],
    ids=_ids,
)
def test_collectors_at_different_speeds_say_the_same_in_the_end(
    faults: Faults, seeds: Seeds
) -> None:
    """Collectors that read the partitions in different orders never report an incomplete bucket as
    complete. In the end all collectors agree, and a ledger (the database of a real collector) leads
    to the same verdicts."""
    _run_all(seeds(RUNS), faults)


@promise("6 complete")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(misplaces="bucket"),
        Faults(gaps=True, kills=True, recounts=True),
        Faults(remakes=True, foreign=True),
        Faults(expires=True, foreign=True, renews=True),
        Faults(rules=True, gaps=True),
    ],
    ids=_ids,
)
def test_a_collector_made_anew_from_what_is_left_is_never_falsely_complete(
    faults: Faults, seeds: Seeds
) -> None:
    """A new collector reports no incomplete bucket (time window) as complete, even if each
    partition of the audit topic has lost a different number of messages at its beginning."""
    for seed in seeds(RUNS):
        _rebuild(_run(seed, faults), seed)


@promise("6 two ways")
def test_rows_changed_behind_the_manifests_are_named_by_the_recount(seeds: Seeds) -> None:
    """If rows disappear, are doubled or are replaced without a change in the manifests, the recount
    reports exactly the buckets (time windows) of these rows. A recount counts the rows in the files
    again."""
    found = 0
    for seed in seeds(RUNS):
        world = _run(seed, Faults(tampers=True))
        evidence = world.collectors[0].fold.evidence()
        for topic in world.topics["logs"]:
            differing = changed(world, topic.source)
            assert named(world, topic.source, evidence) == differing, f"seed {seed}"
            found += len(differing)
    assert found > 0


def _rebuild(world: World, seed: int) -> None:
    [whole] = [completed(judged(world, collector)) for collector in world.collectors]
    for _ in range(6):
        starts = {
            log: world.random.choice([0, world.random.randint(0, len(messages))])
            for log, messages in world.audit.logs.items()
        }
        rebuilt = Collector(starts)
        rebuilt.take_all(world.audit)
        try:
            found = completed(judged(world, rebuilt))
        except Wrong as wrong:
            raise AssertionError(f"seed {seed}, from {starts}: {wrong}") from wrong
        assert found <= whole, f"seed {seed}, from {starts}"


def _rebuild_all(seeds: range, faults: Faults) -> None:
    for seed in seeds:
        world = _run(seed, replace(faults, blind=None))
        world.faults = faults
        _rebuild(world, seed)


# Each of these functions makes the audit ignore one of its rules. The model must notice this.


def _blind_to_the_mirror(evidence: Evidence) -> None:
    """Makes the audit ignore the mirror's counts, as if the mirror always had the same records as
    the broker."""
    _copy_sums(evidence, Tier.BROKER, Tier.MIRROR)


def _blind_to_rows(evidence: Evidence) -> None:
    """Makes the audit ignore the loader's counts, as if each row were in the same bucket (time
    window) as its line."""
    _copy_sums(evidence, Tier.BROKER, Tier.HDFS)


def _copy_sums(evidence: Evidence, of: Tier, to: Tier) -> None:
    for topic in evidence.topics.values():
        places = [key for key in topic.coverage if key.tier is to]
        for by_agent in topic.tallies.values():
            for tallies in by_agent.values():
                copied = [x for key, x in tallies.items() if key.tier is of]
                for key in [x for x in tallies if x.tier is to]:
                    del tallies[key]
                if places and copied:
                    tallies[max(places)] = copied[-1]


def _forget_left_out(evidence: Evidence) -> None:
    """Makes the audit forget the records that the rules of the second agent left out."""
    for topic in evidence.topics.values():
        for by_agent in topic.tallies.values():
            for tallies in [x for agent, x in by_agent.items() if agent != min(by_agent)]:
                for key, tally in tallies.items():
                    tallies[key] = replace(tally, sums=replace(tally.sums, filtered=()))


def _blind_to_newer_epochs(evidence: Evidence) -> None:
    """Makes the audit ignore newer epochs, as if a counter's old counts were still valid after the
    counter has counted again."""
    known = evidence.senders
    counters = [x for x in known if x.tier is not Tier.AGENT]
    newer = {x for x in counters if x.epoch > 1 and x._replace(epoch=x.epoch - 1) in known}
    for key in newer:
        del evidence.senders[key]
    for topic in evidence.topics.values():
        for key in newer:
            topic.coverage.pop(key, None)
        for by_agent in topic.tallies.values():
            for tallies in by_agent.values():
                for key in newer & tallies.keys():
                    del tallies[key]


def _blind_to_agents(evidence: Evidence) -> None:
    """Makes the audit ignore the differences between agents, by adding up the counts of all agents
    in each bucket."""
    for topic in evidence.topics.values():
        for by_agent in topic.tallies.values():
            for agent in sorted(by_agent)[1:]:
                first = by_agent[min(by_agent)]
                for key, tally in by_agent.pop(agent).items():
                    known = first.get(key)
                    sums = tally.sums + (known.sums if known else Sums())
                    last = max(tally.last, known.last if known else 0)
                    first[key] = Tally(sums, 1, last, checksum.signed(link(last) - link(0)))


def _blind_to_gaps(evidence: Evidence) -> None:
    """Makes the audit ignore gaps, as if each tier (broker, mirror or HDFS) had counted every
    record, even records that expired before the tier could count them."""
    for topic in evidence.topics.values():
        topic.gaps.clear()
        for covered in topic.coverage.values():
            covered.update({x: Coverage(0, each.end) for x, each in covered.items()})


def _blind_to_lags(evidence: Evidence) -> None:
    """Makes the audit ignore how far counters are behind, as if every message of a counter said
    that everything is counted."""
    for key in evidence.senders:
        if key.tier in (Tier.BROKER, Tier.MIRROR):
            evidence.counted[key] = CountedUntil(evidence.heard_ms(key[:2]), {})


def _blind_to_later_senders(evidence: Evidence) -> None:
    """Makes the audit ignore all agents except the agent whose message came first, as if only this
    agent had to send seals."""
    agents = [key for key in evidence.senders if key.tier is Tier.AGENT]
    for topic in evidence.topics.values():
        for key in agents[1:]:
            topic.seals.pop(int(key.producer), None)


@promise("1 topic made again", "6 complete", "6 epochs")
@pytest.mark.parametrize(
    ("faults", "words", "first"),
    [
        (Faults(gaps=True, blind=_blind_to_the_mirror), "E", 0),
        (Faults(recounts=True, expires=True, blind=_blind_to_newer_epochs), "E", 0),
        (Faults(misplaces="bucket", blind=_blind_to_rows), "E", 0),
        (Faults(misplaces="bucket", swaps=True, blind=blind_to_checksums), "E", 0),
        (Faults(misplaces="agent", blind=_blind_to_agents), "E", 0),
        (Faults(misplaces="topic", swaps=True, blind=blind_to_checksums), "E", 0),
        (Faults(remakes=True, foreign=True, unnamed=True), "F", 173),
        (Faults(expires=True, foreign=True, blind=_blind_to_gaps), "F", 53),
        (Faults(foreign=True, beats=5, blind=_blind_to_lags), "F", 120),
        (Faults(tampers=True, unsummed=True), "D", 0),
        (Faults(collectors=2, blind=_blind_to_later_senders), "two collectors", 0),
        (Faults(rules=True, blind=_forget_left_out), "L", 0),
    ],
    ids=[
        "no-mirror",
        "no-newer-epochs",
        "no-rows",
        "no-checksums-of-buckets",
        "no-agents",
        "no-checksums-of-topics",
        "no-topic-ids",
        "no-gaps",
        "no-lags-of-counters",
        "no-checksums-of-the-recount",
        "the-first-that-is-heard",
        "left-out-lines-are-not-shown",
    ],
)
def test_the_schedules_reach_what_each_rule_forbids(faults: Faults, words: str, first: int) -> None:
    """The schedules are able to find errors: if the audit leaves out one of its rules, the model
    reports an error in at least one schedule. The text of this error begins with `words`. To save
    time, the search begins at a seed (`first`) that leads to such an error."""
    assert any(_finds(seed, faults, words) for seed in range(first, first + 300))


def _finds(seed: int, faults: Faults, words: str) -> bool:
    """Returns whether the model reports an error in the run with this seed, and the error's text
    begins with `words`."""
    try:
        _run(seed, faults)
    except AssertionError as wrong:
        return str(wrong).startswith(f"seed {seed}: {words}")
    return False


@promise("6 complete")
def test_without_numbers_and_chains_a_collector_made_anew_says_complete_falsely() -> None:
    """The audit notices missing messages in two ways: messages are numbered, and each message names
    the last earlier message about the same bucket (a chain). If the audit ignores both, some
    schedules lead a new collector to a false verdict "complete", and the model notices this.
    """
    with pytest.raises(AssertionError, match=r"seed \d+, from"):
        _rebuild_all(range(300), Faults(misplaces="bucket", blind=blind_to_holes))
