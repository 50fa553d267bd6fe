"""The judge of topics of events: what an ordinary Kafka consumer has read, held against what has to stand there.

All functions are pure: records in, problems out, one sentence each. They know the headers that `docs/events.md`
promises, and nothing of the engine.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise, zip_longest
from typing import Any, Final, NamedTuple

HEADERS: Final = (
    "styx-id",
    "styx-epoch",
    "styx-phase",
    "styx-tid",
    "styx-version",
    "styx-time",
    "styx-operator",
    "styx-key",
    "content-type",
)
MARK: Final = "styx-mark"


class TopicRecord(NamedTuple):
    """A record as a consumer gives it; `event` is the name that the topic's name ends in."""

    event: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Emission(NamedTuple):
    """An event, with all that its record says. `key` and `value` are plain data, as JSON has them."""

    event: str
    partition: int
    id: str
    epoch: int
    phase: int
    tid: int
    version: int
    time_us: int
    operator: str
    key: Any
    value: Any

    @property
    def place(self) -> tuple[int, int, str]:
        """In the serial order of its partition."""
        return self.epoch, self.phase, self.id

    @property
    def transaction(self) -> tuple[int, int, int]:
        """The place of the transaction in the serial order."""
        return self.epoch, self.phase, self.tid


Content = list[Emission | int]
"""Of a partition, in its order; a number is a mark, of that epoch."""


class Topics(NamedTuple):
    """By event and partition what stands there; and what could not be read as an event or as a mark."""

    content: dict[str, dict[int, Content]]
    problems: list[str]

    def events(self, *names: str) -> list[Emission]:
        """The events of these topics, in serial order as far as their ids tell."""
        parts = chain.from_iterable(self.content.get(name, {}).values() for name in names)
        found = [each for part in parts for each in part if not isinstance(each, int)]
        return sorted(found, key=lambda each: each.place)


def parsed(records: Iterable[TopicRecord]) -> Topics:
    """What records say, which are those of each partition in order. Every header must be there once, and no other."""
    content: dict[str, dict[int, Content]] = defaultdict(lambda: defaultdict(list))
    problems: list[str] = []
    for record in records:
        there = content[record.event][record.partition]
        names = sorted(name for name, _ in record.headers)
        try:
            if names == [MARK]:
                if record.key is not None or record.value is not None:
                    raise ValueError("a mark has a key or a value")
                there.append(int(record.headers[0][1]))
            elif names == sorted(HEADERS):
                there.append(_emission(record))
            else:
                raise ValueError(f"it has the headers {', '.join(names) or 'none'}")
        except (ValueError, TypeError) as error:
            problems.append(f"{record.event} {record.partition}/{record.offset}: {error}")
    return Topics({name: dict(parts) for name, parts in content.items()}, problems)


def _emission(record: TopicRecord) -> Emission:
    headers = {name: value.decode() for name, value in record.headers}
    if record.value is None or record.key is None:
        raise ValueError("an event has no value, or no key")
    if headers["content-type"] != "application/json":
        raise ValueError(f"its content type is {headers['content-type']}")
    key = json.loads(headers["styx-key"])
    as_text = key if isinstance(key, str) else headers["styx-key"]
    if record.key.decode() != as_text:
        raise ValueError(f"the record's key is {record.key!r}, and the header says {headers['styx-key']}")
    epoch, phase, tid, version, time_us = (int(headers[name]) for name in HEADERS[1:6])
    operator, value = headers["styx-operator"], json.loads(record.value)
    return Emission(
        record.event, record.partition, headers["styx-id"], epoch, phase, tid, version, time_us, operator, key, value
    )


# Order and marks -------------------------------------------------------------------------------------------


def order_problems(topics: Topics) -> list[str]:
    """Each id stands once in all topics, each partition is in serial order, and each key is in one partition."""
    problems: list[str] = []
    ids: Counter[str] = Counter()
    homes: dict[tuple[str, str], int] = {}
    for event, parts in topics.content.items():
        for partition, content in parts.items():
            emissions = [each for each in content if not isinstance(each, int)]
            ids.update(each.id for each in emissions)
            for first, second in pairwise(emissions):
                if first.place >= second.place:
                    problems.append(f"{event} partition {partition}: {second.id} stands behind {first.id}")
            for each in emissions:
                home = homes.setdefault((event, json.dumps(each.key)), partition)
                if home != partition:
                    problems.append(f"{event}: events of {each.key!r} stand in the partitions {home} and {partition}")
    problems += [f"event {its_id} stands {times} times" for its_id, times in ids.items() if times > 1]
    return problems


def mark_problems(topics: Topics) -> list[str]:
    """No event stands behind a mark of its epoch or a later one; marks ascend; the last event has one behind it."""
    problems: list[str] = []
    for event, parts in topics.content.items():
        for partition, content in parts.items():
            where, mark, uncovered = f"{event} partition {partition}", -1, ""
            for each in content:
                if isinstance(each, int):
                    if each < mark:
                        problems.append(f"{where}: mark {each} stands behind mark {mark}")
                    mark, uncovered = max(mark, each), ""
                else:
                    if each.epoch <= mark:
                        problems.append(f"{where}: event {each.id} of epoch {each.epoch} stands behind mark {mark}")
                    uncovered = each.id
            if uncovered:
                problems.append(f"{where}: no mark stands behind the last event, {uncovered}")
    return problems


# What was emitted ------------------------------------------------------------------------------------------


def emitted_problems(topics: Topics, expected: Iterable[Emission]) -> list[str]:
    """Each partition holds exactly what a serial execution emits there, in its order, with all that a record says."""
    wanted: dict[tuple[str, int], list[Emission]] = defaultdict(list)
    for each in expected:
        wanted[each.event, each.partition].append(each)
    seen = {
        (event, partition): [each for each in content if not isinstance(each, int)]
        for event, parts in topics.content.items()
        for partition, content in parts.items()
    }
    problems: list[str] = []
    for where in sorted(wanted.keys() | seen.keys()):
        should, does = sorted(wanted.get(where, []), key=lambda each: each.place), seen.get(where, [])
        first = next((both for both in zip_longest(should, does) if both[0] != both[1]), None)
        if first is not None:
            problems.append(
                f"{where[0]} partition {where[1]} has {len(does)} events, and {len(should)} were emitted; the first "
                f"difference: emitted {first[0]}, read {first[1]}"
            )
    return problems


def number_problems(events: Iterable[Emission]) -> list[str]:
    """The events of each account, of all kinds that it numbers, have the numbers 1, 2, 3 … in serial order."""
    by_account: dict[int, list[int]] = defaultdict(list)
    for each in events:
        by_account[each.value["account"]].append(each.value["number"])
    return [
        f"account {account}: the numbers of its {len(numbers)} events are not 1, 2, 3 …: {_gap(numbers)}"
        for account, numbers in by_account.items()
        if numbers != list(range(1, len(numbers) + 1))
    ]


def _gap(numbers: Sequence[int]) -> str:
    at = next(index for index, number in enumerate(numbers, 1) if number != index)
    return f"in place {at} is {numbers[at - 1]}"


def paired_problems(first: Iterable[Emission], second: Iterable[Emission]) -> list[str]:
    """To each event of the first kind there is one of the second, in the same transaction and with the same value."""
    wanted, found = [Counter((each.tid, each.value) for each in events) for events in (first, second)]
    return [
        f"transaction {tid}: {value!r} was emitted {wanted[tid, value]} times, and heard {found[tid, value]} times"
        for tid, value in sorted((wanted - found) + (found - wanted))
    ]


# Cuts ------------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A state at the end of an epoch, however it is known: by account how many events it has emitted, and its balance.
    `whole`: there are no others.
    """

    epoch: int
    known_by: str
    accounts: Mapping[int, tuple[int, int]]
    whole: bool


class Sums:
    """The sums of the events up to a mark, for each mark: an event counts from the first mark on that it stands before,
    and not before its epoch.
    """

    def __init__(self, topics: Topics, *names: str) -> None:
        steps: dict[int, list[tuple[int, int]]] = defaultdict(list)
        ends: list[int] = []
        for part in chain.from_iterable(topics.content.get(name, {}).values() for name in names):
            mark = -1
            for each in part:
                if isinstance(each, int):
                    mark = max(mark, each)
                else:
                    steps[each.value["account"]].append((max(each.epoch, mark + 1), each.value.get("amount", 0)))
            ends.append(mark)
        self.last_mark = min(ends, default=-1)
        """Up to here there are marks in all partitions."""
        self._epochs: dict[int, list[int]] = {}
        self._balances: dict[int, list[int]] = {}
        for account, of_account in steps.items():
            of_account.sort()
            self._epochs[account] = [epoch for epoch, _ in of_account]
            self._balances[account] = [0, *accumulate(amount for _, amount in of_account)]

    @property
    def accounts(self) -> Iterable[int]:
        """All that have emitted."""
        return self._epochs

    def at(self, account: int, epoch: int) -> tuple[int, int]:
        """(events, balance) of an account in the cut at the mark of this epoch."""
        count = bisect_right(self._epochs.get(account, []), epoch)
        return count, self._balances.get(account, [0])[count]


def cut_problems(sums: Sums, cuts: Iterable[Cut]) -> list[str]:
    """The sums of the events up to each mark are the state at that epoch. Cuts behind the last mark are left out."""
    problems = []
    for cut in cuts:
        if cut.epoch > sums.last_mark:
            continue
        for account in {*cut.accounts, *sums.accounts} if cut.whole else cut.accounts:
            state, found = cut.accounts.get(account, (0, 0)), sums.at(account, cut.epoch)
            if tuple(state) != found:
                problems.append(
                    f"epoch {cut.epoch}, {cut.known_by}: account {account} has (events, balance) {tuple(state)}, and "
                    f"the events up to the mark come to {found}"
                )
    return problems
