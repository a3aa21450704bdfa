"""Small numbers for agents. Ids of agents are random numbers of eight bytes, and the ledger stores
thousands of them for each bucket. To save space, the ledger gives the agents small numbers, and
stores the small numbers of a bucket's agents in ascending order, packed as differences.
"""

from __future__ import annotations

import sqlite3

import numpy as np

from skidway.audit.evidence.guarded import damaged
from skidway.audit.evidence.number_bases import NumberBases
from skidway.audit.evidence.tallies import Int64s


class AgentNumbers:
    """Owns the small numbers that stand for agents in the ledger: 0, 1, 2 and so on for all agents
    that were ever counted. If this object made numbers in a transaction that failed, the caller
    must make a new object.

    bases: the ledger does not store the numbers of agents' deltas themselves, but their differences
    from the numbers in `bases` (see number_bases).
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.bases = NumberBases(connection)
        self._connection = connection
        self._agents: Int64s = np.empty(0, np.int64)
        """The agent ids, in the order of their numbers."""
        self._read()

    def of(self, agents: Int64s, senders: Int64s) -> Int64s:
        """Returns the small numbers of these agents. New agents get new numbers, in the caller's
        transaction.

        senders: for each agent, the ledger's id of a sender that counted for it. New agents are
        numbered in the order of these ids. So, in the order of the agents' numbers, the ids of
        senders mostly ascend too, and their differences take almost no space.
        """
        places = np.searchsorted(self._sorted[:-1], agents)
        if len(self._agents) == 0 or (self._sorted[places] != agents).any():
            new, place = np.unique(agents, return_index=True)
            is_new = ~np.isin(new, self._agents)
            new, place = new[is_new], place[is_new]
            new, first = new[np.argsort(senders[place], kind="stable")], len(self._agents)
            self._connection.executemany(
                "INSERT INTO agent_numbers VALUES (?, ?)", enumerate(new.tolist(), start=first)
            )
            self._set(np.concatenate((self._agents, new)))
            places = np.searchsorted(self._sorted, agents)
        found: Int64s = self._order[places]
        return found

    def agents(self, numbers: Int64s) -> Int64s:
        """Returns the ids of the agents that have these small numbers."""
        if len(numbers) and int(numbers.max()) >= len(self._agents):
            self._read()  # another connection (the writer's) may have added numbers
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(self._agents):
            raise damaged("a bucket names an unknown agent")
        found: Int64s = self._agents[numbers]
        return found

    def _read(self) -> None:
        rows = self._connection.execute("SELECT agent FROM agent_numbers ORDER BY number")
        self._set(np.array([agent for (agent,) in rows], np.int64))

    def _set(self, agents: Int64s) -> None:
        self._agents = agents
        self._order = np.argsort(agents, kind="stable")
        self._sorted = agents[self._order]
