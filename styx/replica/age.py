"""How old the state of a replica is: since when something later may have closed that it does not know of.

It needs no clock of another machine. Whoever gives epochs is heard of four times a second, also while there are none,
over the connection on which they would come. So if everybody was heard of after the last epoch came, the state was the
newest one then. While epochs come, the state is as old as the last of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping


class Age:
    """`as_of_s` is until when nothing later was known of, in seconds since 1970; minus infinity before anything was
    known.
    """

    def __init__(self) -> None:
        self.as_of_s = float("-inf")
        self._given_s = float("inf")
        self._looked_s = float("-inf")
        self._heard: dict[Hashable, tuple[int, float]] = {}

    def given(self, closed_s: float, now_s: float) -> None:
        """Epochs have come, the last of which closed at `closed_s`."""
        self.as_of_s = max(self.as_of_s, min(closed_s, now_s))
        self._given_s = now_s

    def ends(self) -> None:
        """Nothing comes any more."""
        self._given_s = float("inf")

    def look(self, received: Mapping[Hashable, int], now_s: float) -> None:
        """By who gives epochs or says who does, how many bytes have come from there so far."""
        before_s, self._looked_s = self._looked_s, now_s
        heard: dict[Hashable, tuple[int, float]] = {}
        for each, count in received.items():
            known = self._heard.get(each, (count, float("-inf")))
            heard[each] = known if known[0] == count else (count, before_s)
        self._heard = heard
        oldest_s = min((at_s for _, at_s in heard.values()), default=float("-inf"))
        if oldest_s > self._given_s:
            self.as_of_s = max(self.as_of_s, oldest_s)
