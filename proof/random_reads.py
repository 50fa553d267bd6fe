"""Random reads of one entity for the chaos app: keys that requests use, keys that nobody does, and keys that are none.

Everything comes from the generator that is passed in, so that a seed names a read for good. It only makes requests.
"""

from __future__ import annotations

from random import Random
from typing import Final

from proof.chaos_app import PROGRAMMED, account, key_of
from proof.random_programs import Profile, request_key
from styx.messages import Request
from styx.model.function_spec import READ_FUNCTION
from styx.model.partitioning import Key
from styx.model.signature import NO_ARGUMENTS

ABSENT: Final = 0.1
"""Share of reads of keys beyond the profile's."""
WRONG: Final = 0.03
"""Share of keys that are of no operator."""


def random_read(rng: Random, profile: Profile, request_id: str) -> Request:
    """One read for `proof.chaos_app.app`."""
    index = rng.randrange(len(PROGRAMMED) + 1)
    number = rng.randrange(profile.keys) + (profile.keys if rng.random() < ABSENT else 0)
    wrong = rng.random() < WRONG
    if index == len(PROGRAMMED):
        key: Key = ("no", "key") if wrong else f"a{number}"
        return Request(request_id, account.name, request_key(key), READ_FUNCTION, NO_ARGUMENTS)
    key = ("no", "key", "of", "any") if wrong else key_of(index, number)
    return Request(request_id, PROGRAMMED[index].name, request_key(key), READ_FUNCTION, NO_ARGUMENTS)
