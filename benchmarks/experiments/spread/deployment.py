"""Several deployments as one: all their processes, all their replies, and one client for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.replies import Replies, RepliesSeen
from benchmarks.experiments.spread.client import SpreadClient
from benchmarks.experiments.spread.target import SpreadTargets

PARTITIONS_MAX: Final = 1_000_000
"""Of one deployment's replies topic; the next one's are numbered from here on."""

T = TypeVar("T")


def spread_over(deployments: Sequence[Deployment]) -> Deployment:
    """They must be of one kind, with client processes."""
    makers = [each.make_target for each in deployments if each.make_target is not None]
    seen = [each.replies for each in deployments if each.replies is not None]
    return Deployment(
        facts=deployments[0].facts | {"clusters": len(deployments)},
        open_client=lambda: SpreadClient([each.open_client for each in deployments]),
        make_target=SpreadTargets(tuple(makers)),
        pids=_together([each.pids for each in deployments]),
        urls=_together([each.urls for each in deployments]),
        replies=RepliesOfAll(seen),
    )


def _together(each: Iterable[Callable[[], Mapping[str, Sequence[T]]]]) -> Callable[[], Mapping[str, Sequence[T]]]:
    """By role; what they share, such as the broker, once."""

    def together() -> Mapping[str, Sequence[T]]:
        by_role: dict[str, dict[T, None]] = {}
        for ask in each:
            for role, of_role in ask().items():
                by_role.setdefault(role, {}).update(dict.fromkeys(of_role))
        return {role: list(of_role) for role, of_role in by_role.items()}

    return together


class RepliesOfAll:
    """A `RepliesSeen` over several."""

    def __init__(self, each: Sequence[RepliesSeen]) -> None:
        self._each = each

    def ends(self) -> dict[int, int]:
        """See `RepliesSeen.ends`."""
        return {
            number * PARTITIONS_MAX + partition: end
            for number, replies in enumerate(self._each)
            for partition, end in replies.ends().items()
        }

    def since(self, offsets: Mapping[int, int]) -> Replies:
        """See `RepliesSeen.since`."""
        read = repeated = 0
        for number, replies in enumerate(self._each):
            of_one = {at % PARTITIONS_MAX: end for at, end in offsets.items() if at // PARTITIONS_MAX == number}
            counted = replies.since(of_one)
            read, repeated = read + counted.read, repeated + counted.repeated
        return Replies(read, repeated)
