"""Who holds a part of something that is limited in sum, and who gives way when the sum is reached.
Does no I/O.

The limit is shared by all clients, and a client may hold its part for as long as it likes. So when
the limit is passed, somebody must give way: of the address that holds the most, the one that began
first. A client of another address holds less. A good client of the same address began later,
because it ends what it began, and then holds nothing or begins anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)


class Holders(Generic[Who]):
    """What each holder holds, in sum and by address. One thread uses it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._amounts: dict[str, dict[Who, int]] = {}
        """By address; the holders of an address in the order in which they began."""
        self._sums: dict[str, int] = {}
        self._addresses: dict[Who, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def __contains__(self, who: Who) -> bool:
        return who in self._addresses

    def hold(self, who: Who, address: str, amount: int, *, anew: bool = False) -> None:
        """Notes that `who` now holds `amount`; with 0 it keeps its place, but does not give way.
        anew: it has ended what it began, and begins again, so it is the last of its address to
        give way. The same holds for one that is now of another address."""
        if anew or self._addresses.get(who) != address:
            self.release(who)
            self._addresses[who] = address
        of_address = self._amounts.setdefault(address, {})
        change = amount - of_address.get(who, 0)
        of_address[who] = amount
        self._sums[address] = self._sums.get(address, 0) + change
        self.total += change

    def release(self, who: Who) -> None:
        """Notes that `who` holds nothing. Does nothing if it held nothing."""
        address = self._addresses.pop(who, None)
        if address is None:
            return
        of_address = self._amounts[address]
        amount = of_address.pop(who)
        self.total -= amount
        self._sums[address] -= amount
        if not of_address:
            del self._amounts[address], self._sums[address]

    def most(self) -> int:
        """Returns what the address that holds the most holds."""
        return max(self._sums.values(), default=0)

    def first_address(self) -> str | None:
        """Returns the address of the first holder; None if there is none."""
        return next(iter(self._addresses.values()), None)

    def gives_way(self) -> Who | None:
        """Returns who must give way; None while the sum is within the limit."""
        return self.first() if self.total > self.limit else None

    def first(self) -> Who | None:
        """Returns who is the first to give way; None if nobody holds anything."""
        if not self.total:
            return None
        address = max(self._sums, key=self._sums.__getitem__)
        return next(who for who, amount in self._amounts[address].items() if amount)

    def addresses(self) -> Iterable[str]:
        """Returns the addresses of which anybody is noted, the one that `take_first` has taken from
        last at the end."""
        return self._amounts

    def of_address(self, address: str) -> int:
        """Returns what all holders of the address hold together."""
        return self._sums.get(address, 0)

    def take_first(self, address: str) -> Who:
        """Releases and returns the holder of the address that began first, and puts the address
        behind the others. Somebody of the address must be noted."""
        self._amounts[address] = of_address = self._amounts.pop(address)
        who = next(iter(of_address))
        self.release(who)
        return who
