"""Random requests for the chaos app: programs, chunks of bulk loads, and reads of one entity, by a profile.

Everything comes from the generator that is passed in, so that a seed names a request for good. What the programs do
stands in `proof.chaos_app`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec

from proof.bank import INITIAL_BALANCE, account
from proof.chaos_app import MODULUS, PROGRAMMED, Cell, key_of
from proof.poisons import POISONS
from styx.messages import Request
from styx.model.bulk_load import encode_pair, load_arguments
from styx.model.function_spec import LOAD_FUNCTION, READ_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.signature import NO_ARGUMENTS

DEPTH_MAX: Final = 5
"""Calls below calls in one program."""
BLOCK_STEPS_MAX: Final = 4
"""Steps drawn for one block; patterns can add a few."""

Steps = list[Any]

_encode = msgspec.msgpack.Encoder().encode


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of random requests; shares are probabilities from 0 to 1.

    `keys`: entities per operator, few for high contention. `calls_max`: calls one program may make, all branches
    counted. `synchronous`: share of calls that wait. `transfers`: share of requests that are bank transfers.
    `poisoned`: share of requests that are wrong in themselves or contain a step that misbehaves.
    """

    keys: int = 4
    calls_max: int = 12
    synchronous: float = 0.4
    transfers: float = 0.15
    poisoned: float = 0.03

    def __post_init__(self) -> None:
        if self.keys < 1 or self.calls_max < 0:
            raise ValueError(f"a profile needs at least one key and no negative number of calls: {self}")


CONTENDED: Final = Profile(keys=2)
MIXED: Final = Profile(keys=8)
SPREAD: Final = Profile(keys=1_000, calls_max=6)
PROFILES: Final = (CONTENDED, MIXED, SPREAD)


def random_request(rng: Random, profile: Profile = MIXED, request_id: str | None = None) -> Request:
    """One request for `proof.chaos_app.app`; `request_id` None: 64 random bits."""
    name = f"{rng.getrandbits(64):016x}" if request_id is None else request_id
    if rng.random() < profile.transfers:
        return _transfer(rng, profile, name)
    index = rng.randrange(len(PROGRAMMED))
    steps = random_program(rng, profile)
    request = Request(
        name, PROGRAMMED[index].name, request_key(key_of(index, rng.randrange(profile.keys))), "run", _encode([steps])
    )
    if rng.random() >= profile.poisoned:
        return request
    if rng.random() < 0.5:
        return _spoiled(rng, request)
    steps.insert(rng.randint(0, len(steps)), ["poison", rng.choice(sorted(POISONS))])
    return msgspec.structs.replace(request, params=_encode([steps]))


def random_program(rng: Random, profile: Profile = MIXED) -> Steps:
    """A program of at most `profile.calls_max` calls."""
    return _Composer(rng, profile).block(0)


def calls_in(steps: Steps) -> int:
    """How many calls a program makes at most."""
    total = 0
    for name, *operands in steps:
        total += name in ("call", "look", "fresh")
        if name in ("call", "look", "fresh", "if", "try"):
            total += sum(calls_in(operand) for operand in operands if _is_program(operand))
    return total


def _is_program(operand: Any) -> bool:
    return isinstance(operand, list) and all(isinstance(step, list) for step in operand)


def request_key(key: Key) -> str | int | list[str | int]:
    """The key in the form that a request read from the log has."""
    return list(key) if isinstance(key, tuple) else key


def _transfer(rng: Random, profile: Profile, name: str) -> Request:
    payer, payee = (f"a{rng.randrange(profile.keys + 1)}" for _ in range(2))
    return Request(name, account.name, payer, "transfer", _encode([payee, rng.randint(1, 60)]))


def _spoiled(rng: Random, request: Request) -> Request:
    """A request that cannot be run."""
    changes: list[dict[str, Any]] = [
        {"operator": "txet"},
        {"function": "rum"},
        {"operator": "number", "key": "not a number"},
        {"operator": "pair", "key": [1]},
        {"params": _encode([])},
        {"params": _encode(["not a program"])},
        {"params": _encode({"programme": []})},
        {"params": b"\xc1"},
    ]
    return msgspec.structs.replace(request, **rng.choice(changes))


class _Composer:
    """Makes one program, and counts its calls down."""

    def __init__(self, rng: Random, profile: Profile) -> None:
        self.rng = rng
        self.profile = profile
        self.calls_left = profile.calls_max
        self.patterns: list[tuple[int, Callable[[int], Steps]]] = [
            (30, self._local),
            (16, self._calls),
            (6, self._choice),
            (5, self._diamond),
            (5, self._order),
            (5, self._ask_and_follow),
            (5, self._call_back),
            (4, self._chase),
            (3, self._around_a_call),
            (3, self._caught),
            (2, self._failing_branch),
        ]

    def block(self, depth: int) -> Steps:
        """The program of one invocation."""
        weights = [weight for weight, _ in self.patterns]
        steps: Steps = []
        for _, pattern in self.rng.choices(self.patterns, weights, k=self.rng.randint(1, BLOCK_STEPS_MAX)):
            steps += pattern(depth)
        return steps

    def call(self, target: Steps, depth: int, mode: str | None = None, body: Steps | None = None) -> Steps:
        """One call as a list of steps; empty if the program has used up its calls."""
        if self.calls_left < 1 or depth >= DEPTH_MAX:
            return []
        self.calls_left -= 1
        return [["call", mode or self.mode(), target, self.block(depth + 1) if body is None else body]]

    def mode(self) -> str:
        """Whether the call waits for its result."""
        return "sync" if self.rng.random() < self.profile.synchronous else "async"

    def at(self) -> Steps:
        """Any entity."""
        return ["at", self.rng.randrange(len(PROGRAMMED)), self.rng.randrange(self.profile.keys)]

    # Patterns: what has broken engines before --------------------------------------------------------------

    def _local(self, depth: int) -> Steps:
        rng = self.rng
        choices: list[tuple[int, Steps]] = [
            (20, ["mix", rng.randint(1, 1_000)]),
            (10, ["add", rng.randint(-5, 9)]),
            (10, ["read"]),
            (5, ["keep"]),
            (4, ["set", rng.randint(0, 100)]),
            (4, ["guard", rng.randint(-20, 8)]),
            (3, ["delete"]),
            (2, ["random"]),
            (2, ["uuid"]),
            (1, ["now"]),
            (2, ["mutate"]),
        ]
        return [rng.choices([step for _, step in choices], [weight for weight, _ in choices])[0]]

    def _calls(self, depth: int) -> Steps:
        return self.call(self.at(), depth)

    def _choice(self, depth: int) -> Steps:
        """A call that is made on one path only, decided by a value read."""
        there, elsewhere = self.call(self.at(), depth), self._local(depth)
        if self.rng.random() < 0.5:
            there, elsewhere = elsewhere, there
        return [["read"], ["if", self.rng.randint(1, 6), there, elsewhere]]

    def _diamond(self, depth: int) -> Steps:
        """Two branches that meet on one entity."""
        bottom = self.at()
        steps: Steps = []
        for _ in range(2):
            last = self.call(bottom, depth + 1, body=[*self._local(depth), *self._local(depth)])
            steps += self.call(self.at(), depth, body=[*self._local(depth), *last])
        return steps

    def _order(self, depth: int) -> Steps:
        """A counter names a fresh entity, as order numbers do."""
        if self.calls_left < 1:
            return []
        self.calls_left -= 1
        return [["fresh", self.mode(), [["mix", self.rng.randint(1, 1_000)], *self._calls(depth + 1)]]]

    def _ask_and_follow(self, depth: int) -> Steps:
        """A result decides what is written and whom to call next."""
        question = self.call(self.at(), depth, "sync", [["mix", 3], *self._local(depth)])
        next_call = self.call(["by", self.rng.randrange(len(PROGRAMMED)), self.profile.keys], depth)
        return [*question, ["keep"] if self.rng.random() < 0.3 else ["mix", 5], *next_call]

    def _call_back(self, depth: int) -> Steps:
        """The callee calls its caller's entity, while that waits or after it has returned."""
        back = self.call(["caller"], depth + 1, body=[*self._local(depth), ["mix", 11]])
        return [
            ["mix", 2],
            *self.call(self.at(), depth, body=[*self._local(depth), *back, *self._local(depth)]),
            ["mix", 13],
        ]

    def _chase(self, depth: int) -> Steps:
        """The target depends on the state."""
        return [["read"], *self.call(["by", self.rng.randrange(len(PROGRAMMED)), self.profile.keys], depth)]

    def _around_a_call(self, depth: int) -> Steps:
        """Writes before and after a call, the last one blind now and then; also of the entity by itself."""
        target = ["self"] if self.rng.random() < 0.3 else self.at()
        return [*self._local(depth), *self.call(target, depth), *self._local(depth), *self._local(depth)]

    def _caught(self, depth: int) -> Steps:
        """An own exception that is caught; calls made before it stay made."""
        return [["try", [*self._calls(depth), self.rng.choice([["raise"], ["guard", 5]])]], ["mix", 17]]

    def _failing_branch(self, depth: int) -> Steps:
        """A branch that raises on some values, before or after it has called."""
        condition: Steps = [["read"], ["if", 2, [["raise"]], []]]
        called = self._calls(depth + 1)
        body = [*condition, *called] if self.rng.random() < 0.5 else [*called, *condition]
        return self.call(self.at(), depth, body=body)


# Local requests beside them -------------------------------------------------------------------------------------

STRAYING: Final = 0.06
"""Share of calls in a local request whose target may be on another slot."""
MOVES: Final = 0.25
"""Share of local requests that are bank transfers."""


def random_near(rng: Random, profile: Profile, n_slots: int, request_id: str) -> Request:
    """A request for a local function, nearly all of whose calls stay on its slot."""
    if rng.random() < MOVES:
        payer = f"a{rng.randrange(profile.keys + 1)}"
        slot = _slot(account, payer, n_slots)
        payees = [f"a{n}" for n in range(min(profile.keys, NEAR_KEYS) + 1)]
        near = [payee for payee in payees if _slot(account, payee, n_slots) == slot] or [payer]
        payee = rng.choice(payees if rng.random() < STRAYING else near)
        return Request(request_id, account.name, payer, "move", _encode([payee, rng.randint(1, 60)]))
    index = rng.randrange(len(PROGRAMMED))
    key = key_of(index, rng.randrange(profile.keys))
    composer = _NearComposer(rng, profile, n_slots, _slot(PROGRAMMED[index], key, n_slots))
    steps = composer.block(0)
    if rng.random() < profile.poisoned:
        steps.insert(rng.randint(0, len(steps)), ["poison", rng.choice(sorted(POISONS))])
    return Request(request_id, PROGRAMMED[index].name, request_key(key), "near", _encode([steps]))


NEAR_KEYS: Final = 60
"""Keys of an operator that are looked at for one on the slot."""


class _NearComposer(_Composer):
    """Makes a program whose targets are on one slot, with few exceptions."""

    def __init__(self, rng: Random, profile: Profile, n_slots: int, slot: int) -> None:
        super().__init__(rng, profile)
        self.patterns = [each for each in self.patterns if each[1] not in (self._order, self._ask_and_follow)]
        self.patterns = [each for each in self.patterns if each[1] != self._chase or n_slots == 1]
        self._near = [
            (index, n)
            for index, operator in enumerate(PROGRAMMED)
            for n in range(min(profile.keys, NEAR_KEYS))
            if _slot(operator, key_of(index, n), n_slots) == slot
        ]

    def at(self) -> Steps:
        if not self._near or self.rng.random() < STRAYING:
            return super().at()
        return ["at", *self.rng.choice(self._near)]


# Bulk loads and reads beside them ------------------------------------------------------------------------------

PAIRS_MAX: Final = 8
"""Keys drawn for one chunk; those of other slots are left out."""
NEW_KEYS: Final = 40
"""Keys beyond the profile's, used by no program."""
WRONG_LOADS: Final = 0.15
"""Share of chunks with something wrong in them."""

_UNFIT: Final = b"\xd4\x63\x00"  # an extension that nobody knows


def random_load(rng: Random, profile: Profile, n_slots: int, request_id: str) -> Request:
    """One chunk for `proof.chaos_app.app`, nearly always of one slot.

    Accounts are only ever opened with what a first transfer finds, so that loads make no money.
    """
    index = rng.randrange(len(PROGRAMMED) + 1)
    operator = account if index == len(PROGRAMMED) else PROGRAMMED[index]
    numbers = range(profile.keys + (1 if rng.random() < 0.3 else NEW_KEYS))
    drawn = [_key(index, rng.choice(numbers)) for _ in range(rng.randint(1, PAIRS_MAX))]
    slot = _slot(operator, drawn[0], n_slots)
    keys = list(dict.fromkeys(key for key in drawn if _slot(operator, key, n_slots) == slot))
    replace = operator is not account and rng.random() < 0.5
    wrong = rng.choice(["twice", "slot", "value", "key", "params"]) if rng.random() < WRONG_LOADS else None
    if wrong == "twice":
        keys.append(rng.choice(keys))
    elif wrong == "slot":
        keys = drawn
    pairs = [encode_pair(key, operator.encode_state(_state(rng, operator))) for key in keys]
    if wrong == "value":
        pairs[-1] = encode_pair(keys[-1], _UNFIT if operator.state_type is None else _encode({"number": "one"}))
    elif wrong == "key":
        pairs[-1] = encode_pair("no key of anything" * 200, b"\xc0")
    request = Request(request_id, operator.name, request_key(keys[0]), LOAD_FUNCTION, load_arguments(pairs, replace))
    return msgspec.structs.replace(request, params=request.params[:-1]) if wrong == "params" else request


def _key(index: int, n: int) -> Key:
    return f"a{n}" if index == len(PROGRAMMED) else key_of(index, n)


def _slot(operator: Operator, key: Key, n_slots: int) -> int:
    return operator.partition_of(key, n_slots) % n_slots


def _state(rng: Random, operator: Operator) -> Any:
    if operator is account:
        return INITIAL_BALANCE
    cell = Cell(rng.randrange(MODULUS), rng.randrange(3), "loaded")
    return cell if operator.state_type is not None else msgspec.structs.asdict(cell)


ABSENT: Final = 0.1
"""Share of reads of keys beyond the profile's."""
WRONG_READS: Final = 0.03
"""Share of keys that are of no operator."""


def random_read(rng: Random, profile: Profile, request_id: str) -> Request:
    """One read for `proof.chaos_app.app`."""
    index = rng.randrange(len(PROGRAMMED) + 1)
    number = rng.randrange(profile.keys) + (profile.keys if rng.random() < ABSENT else 0)
    wrong = rng.random() < WRONG_READS
    if index == len(PROGRAMMED):
        key: Key = ("no", "key") if wrong else f"a{number}"
        return Request(request_id, account.name, request_key(key), READ_FUNCTION, NO_ARGUMENTS)
    key = ("no", "key", "of", "any") if wrong else key_of(index, number)
    return Request(request_id, PROGRAMMED[index].name, request_key(key), READ_FUNCTION, NO_ARGUMENTS)
