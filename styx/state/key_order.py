"""All keys of a table in order, so that a page of a listing costs what it gives, and not a look at every key.

It is made when somebody first lists the table, a bounded piece at a time: keys are put into buckets, whose bounds are
those of a sample, and a bucket is sorted when it is first read. From then on a key that comes or goes costs a search.
Nobody pays for it who is not listed: an order that has been kept up for as many keys as it has, and was not read
meanwhile, is given up. It is derived from the table, and is never stored.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

_SAMPLE_MAX: Final = 16_384
_SAMPLES_A_BUCKET: Final = 4
_BUCKET: Final = 256
"""Keys of a bucket, about, but of a table so large that the sample has not enough bounds for so many."""
BUCKET_MAX: Final = 1_024
"""Keys of a sorted bucket; a longer one is divided."""
UNREAD_MIN: Final = 10_000
"""Keys that come and go without a read before an order is given up, however few it has."""


class KeyOrder:
    """The order of `keys`, all of one type and none of them twice. It is `ready` when `go_on` has been called often
    enough; `add` and `remove` keep it up before and after that.
    """

    __slots__ = ("_at", "_bounds", "_buckets", "_found", "_length", "_moved", "_sorted", "_unread")

    def __init__(self, keys: Iterable[Any]) -> None:
        found = self._found = list(keys)
        self._at = 0
        self._length = len(found)
        # Whether a key is there, of those that have come or gone since.
        self._moved: dict[Any, bool] = {}
        sample = sorted(found[:: len(found) // _SAMPLE_MAX + 1])
        step = max(_SAMPLES_A_BUCKET, _BUCKET * len(sample) // max(1, len(found)))
        self._bounds: list[Any] = sample[step::step]
        self._buckets: list[list[Any]] = [[] for _ in range(len(self._bounds) + 1)]
        self._sorted: list[bool] = [False] * len(self._buckets)
        self._unread = 0

    @property
    def ready(self) -> bool:
        """Whether it has all keys."""
        return not self._found and not self._moved

    @property
    def unread(self) -> bool:
        """Whether it has cost more than it is worth: nobody has read it for so long."""
        return self._unread > max(self._length, UNREAD_MIN)

    def go_on(self, keys: int) -> bool:
        """Takes in about so many keys more; whether it is ready."""
        bounds, buckets = self._bounds, self._buckets
        taken = self._found[self._at : self._at + keys]
        for key in taken:
            buckets[bisect_right(bounds, key)].append(key)
        self._at += len(taken)
        if self._at < len(self._found):
            return False
        self._found = []
        for key in list(islice(self._moved, max(0, keys - len(taken)))):
            self._put(key, self._moved.pop(key))
        return self.ready

    def add(self, key: Any) -> None:
        """A key comes, which is not there."""
        self._move(key, True)

    def remove(self, key: Any) -> None:
        """A key goes, which is there."""
        self._move(key, False)

    def walk(self, start: Any = None) -> Iterator[Any]:
        """The keys in order, from `start` on, which need not be one; all without it. Until the walk has ended, nothing
        may come or go.
        """
        assert self.ready, "the order of keys is read before it is made"
        self._unread = 0
        bounds, buckets = self._bounds, self._buckets
        first = 0 if start is None else bisect_right(bounds, start)
        begin = 0 if start is None else bisect_left(self._in_order(first), start)
        for at in range(first, len(buckets)):
            bucket = self._in_order(at)
            yield from islice(bucket, begin, None)
            begin = 0

    def _move(self, key: Any, there: bool) -> None:
        self._unread += 1
        self._length += 1 if there else -1
        if self.ready:
            self._put(key, there)
        else:
            self._moved[key] = there

    def _put(self, key: Any, there: bool) -> None:
        """Makes it so that a key is there or not, whatever was before: one that went and came again has not moved."""
        at = bisect_right(self._bounds, key)
        bucket = self._in_order(at)
        place = bisect_left(bucket, key)
        found = place < len(bucket) and bucket[place] == key
        if there and not found:
            bucket.insert(place, key)
            if len(bucket) > BUCKET_MAX:
                half = len(bucket) // 2
                self._bounds.insert(at, bucket[half])
                self._buckets.insert(at + 1, bucket[half:])
                self._sorted.insert(at + 1, True)
                del bucket[half:]
        elif found and not there:
            del bucket[place]
            if not bucket and self._bounds:
                del self._buckets[at]
                del self._sorted[at]
                del self._bounds[max(0, at - 1)]

    def _in_order(self, at: int) -> list[Any]:
        bucket = self._buckets[at]
        if not self._sorted[at]:
            bucket.sort()
            self._sorted[at] = True
        return bucket
