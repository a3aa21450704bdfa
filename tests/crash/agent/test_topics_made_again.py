"""A real agent notices when a topic is deleted and created again."""

from collections.abc import Callable
from pathlib import Path

from skidway.kafka.client import Client, NewTopic
from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.promises import promise

Make = Callable[..., AgentProcess]
TOPICS = ("logs", "logs.rejected")


def made_again(broker: SkidwayBroker, path: Path, process: AgentProcess) -> None:
    """Writes ten lines to the log `path`, starts the agent, and waits until the agent has sent the
    lines. Then deletes the topics TOPICS and creates them again."""
    path.parent.mkdir()
    path.write_text("".join(f"old {n}\n" for n in range(10)))
    process.start()
    eventually(lambda: process.settled({path: path.stat().st_size}), what="the old lines")
    with Client(broker.address) as client:
        assert not any(client.delete_topics(TOPICS).values())
        eventually(lambda: not set(TOPICS) & set(client.metadata(None).topics), what="deleted")
        assert not any(client.create_topics([NewTopic(name, 1) for name in TOPICS]).values())


@promise("2 topic made again")
def test_the_agent_goes_on_under_the_new_id(
    agent: Make, own_broker: SkidwayBroker, tmp_path: Path
) -> None:
    """If the agent had no unacknowledged line when a topic was deleted and created again, it
    continues without help. The new topic gets only new lines."""
    path = tmp_path / "log" / "a.log"
    process = agent({"topic": "logs", "paths": [str(path)]})
    made_again(own_broker, path, process)
    said = "topics_made_again"
    eventually(lambda: said in process.program.output(), what="it notices")
    with path.open("a") as out:
        out.write("new 1\n")
    eventually(lambda: process.settled({path: path.stat().st_size}), what="the new line")
    assert [line for line, _, _ in rows(own_broker.address, "logs")] == ["new 1"]
    assert process.program.stop() == 0


@promise("2 topic made again")
def test_what_was_on_its_way_to_the_old_one_is_left_to_an_operator(
    agent: Make, own_broker: SkidwayBroker, tmp_path: Path
) -> None:
    """If the agent has an unacknowledged line when it notices that the line's topic was deleted and
    created again, the agent prints one sentence and stops. It stops again at each further start.
    After an operator has run `skidway agent state give-up`, the line counts as uncertain and the
    agent continues."""
    path = tmp_path / "log" / "a.log"
    process = agent({"topic": "logs", "paths": [str(path)]})
    made_again(own_broker, path, process)
    with path.open("a") as out:
        out.write("between\n")
    assert process.program.wait() == 65
    said = process.program.output()
    assert said.count("was made again (its id was") == 1
    (entry,) = process.ledger()
    assert (entry["acknowledged"], entry["pending"]) == (60, len("between\n"))
    process.start(ready=False)
    assert process.program.wait() == 65
    assert "was made again (its id was" in process.program.output()[len(said) :]
    given_up = run_skidway("agent", "state", "give-up", "logs", "--config", str(process.config))
    assert given_up.returncode == 0, given_up.stderr
    with path.open("a") as out:
        out.write("new 1\n")
    process.start()
    eventually(lambda: process.settled({path: path.stat().st_size}), what="the new line")
    assert [line for line, _, _ in rows(own_broker.address, "logs")][-1] == "new 1"
    entries = process.ledger()
    assert sum(entry["uncertain"] for entry in entries) == len("between\n")
    assert sum(entry["acknowledged"] for entry in entries) == path.stat().st_size - len("between\n")
    assert process.program.stop() == 0


@promise("2 silent topic")
def test_a_deleted_topic_stops_no_other_topic(
    agent: Make, own_broker: SkidwayBroker, tmp_path: Path
) -> None:
    """If a topic is deleted, its undelivered lines fill only a share of `buffer.memory`. So the
    agent continues with its other topic, even after it was killed and the deleted topic's source
    was removed."""
    gone, other = tmp_path / "gone.log", tmp_path / "other.log"
    sources = {"topic": "logs", "paths": [str(gone)]}, {"topic": "other", "paths": [str(other)]}
    process = agent(*sources)
    process.settings |= {"buffer.memory": 4 << 20, "compression.type": "none"}
    for path in (gone, other):
        path.write_text("before\n")
    process.start()
    eventually(lambda: process.settled({gone: 7, other: 7}), what="the first lines")
    with Client(own_broker.address) as client:
        assert not any(client.delete_topics(TOPICS).values())
        eventually(lambda: not set(TOPICS) & set(client.metadata(None).topics), what="deleted")
    with gone.open("a") as out:
        out.writelines(f"{number:01000}\n" for number in range(8_000))
    eventually(lambda: process.health().get("held_back", {}).get("logs"), what="it is held back")
    for _ in range(2):
        with other.open("a") as out:
            out.write("after\n" * 10_000)
        eventually(lambda: process.settled({other: other.stat().st_size}), what="the other topic")
        process.program.kill()
        process.settings["sources"] = [sources[1]]
        process.start()
    assert process.program.stop() == 0
