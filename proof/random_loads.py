"""Random chunks of bulk loads for the chaos app: some of new keys, some of keys that requests use, some wrong.

Everything comes from the generator that is passed in, so that a seed names a load for good. It only makes requests.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from proof.chaos_app import INITIAL_BALANCE, MODULUS, PROGRAMMED, Cell, account, key_of
from proof.random_programs import Profile, request_key
from styx.messages import Request
from styx.model.bulk_load import encode_pair, load_arguments
from styx.model.function_spec import LOAD_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key

PAIRS_MAX: Final = 8
"""Keys drawn for one chunk; those of other slots are left out."""
NEW_KEYS: Final = 40
"""Keys beyond the profile's, used by no program."""
WRONG: Final = 0.15
"""Share of chunks with something wrong in them."""

_UNFIT: Final = b"\xd4\x63\x00"  # an extension that nobody knows
_encode = msgspec.msgpack.Encoder().encode


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
    wrong = rng.choice(["twice", "slot", "value", "key", "params"]) if rng.random() < WRONG else None
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
