"""The blocking client: sends requests to brokers and waits for answers, on the caller's thread."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from skidway.clock import Clock, SystemClock
from skidway.kafka.client import requests
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import (
    Address,
    Broker,
    Cluster,
    ConfigChanges,
    ConfigEntry,
    ListedOffset,
    LogDir,
    NewTopic,
    cluster_of,
    parse_bootstrap,
)
from skidway.kafka.client.metadata import Metadata, SharedMetadataCall, metadata_call
from skidway.kafka.client.network import Network
from skidway.kafka.client.session import Channel, ClientSession, Disconnected, Inbox
from skidway.kafka.client.waiting import SelectorWatcher
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError
from skidway.kafka.protocol.describe_configs import ResourceType
from skidway.kafka.protocol.fetch import READ_COMMITTED
from skidway.kafka.security import NO_SECURITY, KafkaSecurity
from skidway.kafka.types import TopicPartition
from skidway.own_process import OwnProcess

_RETRY_WAIT_S = 0.05
_EACH_WITHIN_S = 5.0


# This class has more than 25 methods: one for each request to a cluster, and the loop that waits
# for answers.
class Client:
    """Sends requests to the brokers of one cluster. A client connects at first use. Only one thread
    at a time may use a client.

    A request that no broker answers within the request timeout raises `BrokerUnreachable`. If the
    answer is an error, most methods raise `KafkaError`. The methods that create, delete or alter
    topics return the errors instead. Producers and fetchers that are made with a client use the
    client's connections. While the client, one of its producers or one of its fetchers waits, bytes
    are sent and received for all of them.

    After a fork, every method that needs a broker raises UsageError in the child, and `close`
    leaves the connections to the parent.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "skidway",
        request_timeout_ms: int = 30_000,
        refused_timeout_ms: int | None = None,
        isolation_level: int = READ_COMMITTED,
        clock: Clock | None = None,
        security: KafkaSecurity = NO_SECURITY,
    ) -> None:
        """`bootstrap` is host:port[,host:port...]. Raises UsageError for a malformed text, and
        ConfigurationRefused if the files of `security` cannot be used.

        Until a broker has answered this client, a request gives up after `refused_timeout_ms` if a
        connection has failed. A command sets a short time if a person waits for the command. If
        `refused_timeout_ms` is None, each request gives up after the request timeout.

        `isolation_level` (see `skidway.kafka.protocol.fetch`) holds for fetchers and
        `list_offsets`.
        """
        self.bootstrap = bootstrap
        self.request_timeout_ms = request_timeout_ms
        self.isolation_level = isolation_level
        self._refused_timeout_ms = refused_timeout_ms
        self.clock: Clock = SystemClock() if clock is None else clock
        self.random: Callable[[], float] = random.random
        self.session = ClientSession(
            client_id=client_id,
            request_timeout_s=request_timeout_ms / 1000,
            random=self.random,
        )
        self.picture = Metadata(parse_bootstrap(bootstrap), self.random)
        self._watcher = SelectorWatcher()
        self._network = Network(self.session, self._watcher, security=security)
        self._closed = False
        self._process = OwnProcess("client")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection. Open calls get the error `Disconnected`."""
        if not self._closed and self._process.is_here:
            self._closed = True
            self._network.close()
            self._watcher.close()

    def metadata(
        self, topics: Sequence[str] | None = None, broker: Broker | None = None
    ) -> Cluster:
        """Returns the brokers, and the topics with these names (None means all topics), as `broker`
        knows them, or any broker if `broker` is None. In the result, a topic that does not exist
        has an error."""
        choose = self._any_address if broker is None else _always(broker.address)
        cluster = cluster_of(self._ask(metadata_call(topics), choose))
        self.picture.learned(cluster)
        return cluster

    def metadata_of_each(
        self, timeout_ms: int, topics: Sequence[str] | None = None
    ) -> tuple[dict[Address, Cluster], dict[Address, str]]:
        """Returns the same as `metadata`, but as each broker of the cluster knows it; and, for each
        broker that does not answer, why. Waits no longer than `timeout_ms` for the next answer.

        Asks, all at the same time, the addresses to which this client is connected (if there are
        none, those that it knows), and then the brokers that the answers name, until all that any
        answer names have been asked. Raises BrokerUnreachable if nobody answers.
        """
        call = SharedMetadataCall(topics)
        known = self.picture.addresses()
        wanted = {x for x in known if self.session.is_ready(x, Channel.MAIN)} or set(known)
        found: dict[Address, Cluster] = {}
        failed: dict[Address, str] = {}
        named: set[Address] = set()
        while wanted:
            answers, errors = self._ask_each(dict.fromkeys(wanted, call), timeout_ms / 1000)
            found |= answers
            failed |= errors
            named |= {each.address for x in answers.values() for each in x.brokers.values()}
            wanted = named - found.keys() - failed.keys()
        if not found:
            raise self._unreachable(timeout_ms / 1000)
        self.picture.learned(next(found[x] for x in known if x in found))
        self._connect(x for x in known if x not in found and x not in failed)
        return found, {address: why for address, why in failed.items() if address in named}

    def list_offsets(
        self, times: Mapping[TopicPartition, int], isolation_level: int | None = None
    ) -> dict[TopicPartition, ListedOffset]:
        """Finds for each partition the first offset at or after a time in ms. Instead of a time,
        LATEST means the high watermark (the last stable offset if a transaction is open, unless
        isolation_level is READ_UNCOMMITTED), and EARLIEST means the log start. isolation_level:
        None for the client's.

        Asks for leaders and offsets again until every partition has an offset. Raises KafkaError in
        two cases: a partition still has no offset after the request timeout (for example, because
        it does not exist), or a leader answers with an error that does not go away with time.
        """
        found: dict[TopicPartition, ListedOffset] = {}
        deadline = self.clock.monotonic() + self.request_timeout_ms / 1000
        backoff = Backoff(self.random)
        while True:
            open_ = {tp: time_ms for tp, time_ms in times.items() if tp not in found}
            errors = self._list_offsets_once(open_, found, isolation_level)
            if len(found) == len(times):
                return found
            if self.clock.monotonic() >= deadline:
                raise next(iter(errors.values()))
            for error in errors.values():
                if isinstance(error, KafkaError) and not error.retriable:
                    raise error
            self.pause(backoff.next_s())

    def list_offsets_now(
        self, times: Mapping[TopicPartition, int], isolation_level: int | None = None
    ) -> tuple[dict[TopicPartition, ListedOffset], dict[TopicPartition, KafkaError]]:
        """Does the same as `list_offsets`, but without retries: asks each leader only once. Returns
        the offsets that were found, and, for the partitions without an offset, the errors.
        isolation_level: None for the client's."""
        found: dict[TopicPartition, ListedOffset] = {}
        return found, self._list_offsets_once(times, found, isolation_level)

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commits offsets of a group without members. Raises KafkaError if a broker answers with an
        error that is not retriable, or that does not go away within the request timeout."""
        deadline = self.clock.monotonic() + self.request_timeout_ms / 1000
        backoff = Backoff(self.random)
        while True:
            try:
                return self._commit_once(group, offsets)
            except KafkaError as error:
                if not error.retriable or self.clock.monotonic() >= deadline:
                    raise
            self.pause(backoff.next_s())

    def create_topics(self, topics: Sequence[NewTopic]) -> requests.Results:
        """Creates topics. Returns for each topic an error or None. The controller knows the new
        topics at once; the other brokers learn of them later."""
        call = requests.create_topics_call(topics, self.request_timeout_ms)
        return self._ask_controller(call, requests.created_topics)

    def delete_topics(self, names: Sequence[str]) -> requests.Results:
        """Deletes topics. Returns for each topic an error or None."""
        from skidway.kafka.client import alterations  # imported here: alterations.py says why

        call = alterations.delete_topics_call(names, self.request_timeout_ms)
        return self._ask_controller(call, alterations.deleted_topics)

    def create_partitions(
        self, counts: Mapping[str, int], *, validate_only: bool = False
    ) -> requests.Results:
        """Adds partitions until each topic has the number of partitions that `counts` gives.
        Returns for each topic an error or None.

        Raises UnsupportedVersion if the broker cannot add partitions.
        """
        from skidway.kafka.client import alterations  # imported here: alterations.py says why

        call = alterations.create_partitions_call(
            counts, self.request_timeout_ms, validate_only=validate_only
        )
        return self._ask_controller(call, alterations.created_partitions)

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Returns the settings of topics. Raises KafkaError when one of the topics does not
        exist."""
        if not names:
            return {}
        call = requests.describe_configs_call(ResourceType.TOPIC, names)
        return requests.described_configs(self._ask(call, self._any_address))

    def topic_configs_now(
        self, names: Sequence[str]
    ) -> tuple[dict[str, dict[str, str]], dict[str, KafkaError]]:
        """Returns the settings of topics, and the errors of those topics of which the broker does
        not tell them."""
        if not names:
            return {}, {}
        call = requests.describe_configs_call(ResourceType.TOPIC, names)
        return requests.configs_and_errors(self._ask(call, self._any_address))

    def config_entries(self, topic: str) -> list[ConfigEntry]:
        """Returns every setting of a topic, with its source. Raises KafkaError if there is no such
        topic."""
        call = requests.describe_configs_call(ResourceType.TOPIC, [topic])
        return requests.config_entries(self._ask(call, self._any_address))[topic]

    def alter_configs(
        self, topic: str, changes: ConfigChanges, *, validate_only: bool = False
    ) -> KafkaError | None:
        """Changes settings of a topic. Returns the error, or None. Raises UnsupportedVersion if the
        broker cannot change settings.
        """
        from skidway.kafka.client import alterations  # imported here: alterations.py says why

        call = alterations.alter_configs_call(topic, changes, validate_only=validate_only)
        return alterations.altered_configs(self._ask(call, self._any_address))[topic]

    def log_dirs(self, broker: Broker) -> list[LogDir]:
        """Returns the log directories of a broker, and their contents. Raises UnsupportedVersion if
        the broker cannot describe them."""
        from skidway.kafka.client import alterations  # imported here: alterations.py says why

        response = self._ask(alterations.describe_log_dirs_call(), _always(broker.address))
        return alterations.described_log_dirs(response)

    def broker_configs(self, *keys: str) -> dict[str, str]:
        """Returns the settings of the broker with the lowest id among the brokers that answer;
        none if this client may not see them. keys: their names; all, if there are none."""
        brokers = self.metadata(()).brokers
        for number in sorted(brokers):
            call = requests.describe_configs_call(ResourceType.BROKER, [str(number)], keys or None)
            try:
                response = self._ask(call, _always(brokers[number].address))
            except BrokerUnreachable:  # the broker is in the metadata, but does not answer
                if number == max(brokers):
                    raise
            else:
                return requests.configs_of_broker(response)
        raise BrokerUnreachable("the cluster has no broker now")

    def config_of_brokers(self, key: str) -> dict[str, str]:
        """Returns one setting of each broker that has the setting, answers soon, and lets this
        client see it, by the broker's address."""
        calls = {
            broker.address: requests.describe_configs_call(
                ResourceType.BROKER, [str(number)], (key,)
            )
            for number, broker in sorted(self.metadata(()).brokers.items())
        }
        answers, _ = self._ask_each(calls, _EACH_WITHIN_S)
        told = {x: requests.configs_of_broker(answers[x]) for x in calls if x in answers}
        return {str(address): configs[key] for address, configs in told.items() if key in configs}

    def ask_any(self, call: Call) -> Any:
        """Sends a request of another module of this package to any broker. Returns the response."""
        return self._ask(call, self._any_address)

    # methods that the producers and fetchers of this package call

    def wait(self, timeout_s: float, wake: Sequence[int] = ()) -> bool:
        """Sends the bytes that are ready, waits at most `timeout_s` for a socket or a descriptor of
        `wake`, and receives the bytes that have come. Returns whether a descriptor of `wake` is
        readable."""
        self._process.require()
        now = self.clock.monotonic()
        delivered_count = self.session.delivered_count
        self._network.turn(now)
        deadline = self.session.next_deadline
        if self.session.delivered_count != delivered_count:
            timeout_s = 0  # no wait, because answers or failures have come already
        elif deadline is not None:
            timeout_s = min(timeout_s, deadline - now)
        woken = False
        ready = self._watcher.wait(timeout_s, wake)
        now = self.clock.monotonic()
        for fd, readable, writable in ready:
            if not self._network.ready(fd, readable, writable, now):
                woken = True
        return woken

    def push(self) -> None:
        """Sends the bytes that can be sent without waiting."""
        self._process.require()
        self._network.turn(self.clock.monotonic())

    def pause(self, seconds: float) -> None:
        """Waits for the given time; meanwhile bytes of other requests are sent and received."""
        until = self.clock.monotonic() + seconds
        while (left_s := until - self.clock.monotonic()) > 0:
            self.wait(left_s)

    # asking

    def _any_address(self, now: float) -> Address | None:
        return self.picture.next_address(self.session, Channel.MAIN, now)

    def _ask(self, call: Call, choose: Callable[[float], Address | None]) -> Any:
        """Asks the broker that `choose` returns. If the connection ends, chooses and asks again.
        Returns the first response."""
        begin = self.clock.monotonic()
        deadline = begin + self.request_timeout_ms / 1000
        inbox: Inbox = deque()
        while (now := self.clock.monotonic()) < deadline:
            if self._is_refused(now - begin):
                raise self._unreachable(now - begin)
            address = choose(now)
            if address is None or not self.session.usable(address, Channel.MAIN, now):
                self.wait(min(_RETRY_WAIT_S, deadline - now))
                continue
            ticket = self.session.submit(address, Channel.MAIN, call, inbox, now)
            while not inbox and (now := self.clock.monotonic()) < deadline:
                self.wait(deadline - now)
            self.session.forget(ticket)
            if inbox:
                answer = inbox.popleft()
                if answer.error is None:
                    self._refused_timeout_ms = None
                    return answer.response
                if not isinstance(answer.error, Disconnected):
                    raise answer.error
        raise self._unreachable(self.request_timeout_ms / 1000)

    def _ask_each(
        self, calls: Mapping[Address, Call], timeout_s: float
    ) -> tuple[dict[Address, Any], dict[Address, str]]:
        """Asks several brokers at the same time. Returns their responses, and, for each broker that
        does not answer, why. Gives up when no answer has come for `timeout_s`. If a connection
        ends, asks once more, unless the broker could not be reached before either."""
        deadline = self.clock.monotonic() + timeout_s
        inbox: Inbox = deque()
        found: dict[Address, Any] = {}
        failed = {x: why for x in calls if (why := self.session.failure(x, Channel.MAIN))}
        waiting, tickets = list(calls), dict[int, Address]()
        while (waiting or tickets) and (now := self.clock.monotonic()) < deadline:
            for address in [x for x in waiting if self.session.usable(x, Channel.MAIN, now)]:
                waiting.remove(address)
                ticket = self.session.submit(address, Channel.MAIN, calls[address], inbox, now)
                tickets[ticket] = address
            if not inbox:
                self.wait(min(_RETRY_WAIT_S, deadline - now) if waiting else deadline - now)
            while inbox:
                answer = inbox.popleft()
                address = tickets.pop(answer.ticket)
                if answer.error is None:
                    found[address] = answer.response
                    deadline = self.clock.monotonic() + timeout_s
                    continue
                if isinstance(answer.error, Disconnected) and address not in failed:
                    waiting.append(address)
                failed[address] = str(answer.error)
        for ticket in tickets:
            self.session.forget(ticket)
        late = "no answer in time"
        return found, {x: failed.get(x, f"{x}: {late}") for x in calls if x not in found}

    def _connect(self, addresses: Iterable[Address]) -> None:
        """Begins to connect to addresses, and waits for none."""
        now = self.clock.monotonic()
        for address in addresses:
            if self.session.usable(address, Channel.MAIN, now):
                call = metadata_call(())
                self.session.forget(self.session.submit(address, Channel.MAIN, call, deque(), now))

    def _is_refused(self, waited_s: float) -> bool:
        limit_ms = self._refused_timeout_ms
        refused = limit_ms is not None and waited_s * 1000 >= limit_ms
        return refused and self.session.failure_count > 0

    def _unreachable(self, waited_s: float) -> BrokerUnreachable:
        why = self.session.last_failure or "no answer"
        return BrokerUnreachable(
            f"no broker of {self.bootstrap} answered within {waited_s * 1000:.0f} ms ({why})"
        )

    def _ask_controller(
        self, call: Call, results: Callable[[Any], requests.Results]
    ) -> requests.Results:
        """Sends a request to the controller, and returns its answer. If the controller has changed
        meanwhile, asks the new controller. Raises KafkaError if the cluster still has no controller
        after the request timeout."""
        deadline = self.clock.monotonic() + self.request_timeout_ms / 1000
        backoff = Backoff(self.random)
        while True:
            cluster = self.metadata(())
            controller = cluster.brokers.get(cluster.controller_id)
            if controller is not None:
                found = results(self._ask(call, _always(controller.address)))
                errors = [error.code for error in found.values() if error is not None]
                if ErrorCode.NOT_CONTROLLER not in errors:
                    return found
            if self.clock.monotonic() >= deadline:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
            self.pause(backoff.next_s())

    def _commit_once(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        from skidway.kafka.client import group_offsets  # imported here: few programs need it

        found = self._ask(group_offsets.find_coordinator_call(group), self._any_address)
        address = group_offsets.coordinator(found)
        answer = self._ask(group_offsets.commit_offsets_call(group, offsets), _always(address))
        for error in group_offsets.refused_offsets(answer).values():
            raise error

    def _list_offsets_once(
        self,
        times: Mapping[TopicPartition, int],
        found: dict[TopicPartition, ListedOffset],
        isolation_level: int | None = None,
    ) -> dict[TopicPartition, KafkaError]:
        """Asks the leader of each partition once. Adds the offsets to `found`. Returns the errors
        of the partitions for which no offset was found."""
        cluster = self.metadata(sorted({tp.topic for tp in times}))
        level = self.isolation_level if isolation_level is None else isolation_level
        errors: dict[TopicPartition, KafkaError] = {}
        leaders: dict[Address, dict[TopicPartition, int]] = {}
        for tp, time_ms in times.items():
            address = cluster.leader(tp)
            if address is None:
                errors[tp] = _no_leader(cluster, tp)
            else:
                leaders.setdefault(address, {})[tp] = time_ms
        for address, part in leaders.items():
            response = self._ask(requests.list_offsets_call(part, level), _always(address))
            listed = requests.listed_offsets(response, part)
            for tp in part:
                result = listed.get(tp) or _left_out(tp)
                if isinstance(result, KafkaError):
                    errors[tp] = result
                else:
                    found[tp] = result
        return errors


def _always(address: Address) -> Callable[[float], Address | None]:
    return lambda _: address


def _left_out(tp: TopicPartition) -> KafkaError:
    why = f"the answer of the leader of {tp} leaves out this partition"
    return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, why)


def _no_leader(cluster: Cluster, tp: TopicPartition) -> KafkaError:
    topic = cluster.topics.get(tp.topic)
    if topic is not None and topic.error is not ErrorCode.NONE:
        return KafkaError(topic.error, f"topic {tp.topic}")
    if topic is not None and tp.partition >= len(topic.partitions):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {tp}")
    return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader now")
