"""Passes the fetcher's planned fetches to the session, and the answers back."""

from __future__ import annotations

from collections import deque

from skidway.kafka.client.calls import FetchCall
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetching import Fetching, Place
from skidway.kafka.client.metadata import Metadata
from skidway.kafka.client.session import Channel, ClientSession, Inbox

# Seconds between two checks while a partition waits for a leader, or for a new attempt to connect.
LOOK_AGAIN_S = 0.05


class FetchPump:
    """Connects a `Fetching`, which plans fetches, to a session, which manages connections.
    `Fetcher` and `LoopClient` use this class. The class decides nothing."""

    def __init__(self, fetching: Fetching, session: ClientSession, picture: Metadata) -> None:
        self._fetching = fetching
        self._session = session
        self._picture = picture
        self._inbox: Inbox = deque()
        self._requests: dict[int, tuple[int, Place]] = {}  # ticket -> (request id, connection)

    def advance(self, now: float) -> None:
        """Passes answers to the `Fetching`, and submits the fetches that are due."""
        fetching, session, picture = self._fetching, self._session, self._picture
        while self._inbox:
            answer = self._inbox.popleft()
            request_id, place = self._requests.pop(answer.ticket)
            if answer.error is not None:
                fetching.lost(request_id, now, str(answer.error))
            else:
                fetching.answered(request_id, answer.response, now, place)
        if fetching.has_stale_leaders:
            fetching.has_stale_leaders = False
            picture.mark_stale()
        picture.advance(session, now)  # first, so that the plan uses new metadata

        def usable(address: Address) -> bool:
            return session.usable(address, Channel.FETCH, now)

        for planned in fetching.plan(picture.leader, usable, now):
            call = FetchCall(planned.request)
            place = (planned.address, session.ended_count(planned.address, Channel.FETCH))
            ticket = session.submit(planned.address, Channel.FETCH, call, self._inbox, now)
            self._requests[ticket] = planned.id, place
        picture.advance(session, now)

    def next_deadline(self, now: float) -> float | None:
        """Returns the time (monotonic seconds) at which to call `advance` again, even if nothing
        arrives.
        """
        times = [self._fetching.next_deadline(now), self._picture.next_deadline]
        if self._fetching.is_stalled:
            times.append(now + LOOK_AGAIN_S)
        return min((each for each in times if each is not None), default=None)
