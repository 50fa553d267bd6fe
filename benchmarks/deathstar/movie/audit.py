"""The audit of a run: it reads all lists, reviews and ratings, and compares them with the ledger.

Requests cannot find a review that is in no list. So the audit would not see a review that an aborted transaction left
in the storage alone. It sees remains in a list or in a rating.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.deathstar.movie.catalogue import username
from benchmarks.deathstar.movie.found import Found, find
from benchmarks.deathstar.movie.ledger import Ledger
from benchmarks.deathstar.movie.parts import user, user_number
from benchmarks.deathstar.movie.settings import READ_MOVIE, READ_USER, Settings
from benchmarks.driver.reading import read_each
from benchmarks.driver.workload import Audit
from styx.client.base import Client


async def audit(client: Client, settings: Settings, witnesses: Sequence[Mapping[str, Any]]) -> Audit:
    """Reads and compares. The clients must have ended: what they still send is in no witness."""
    ledger = Ledger(witnesses)
    # A request's slot runs what it got before it, and a username's requests come to the slot that these come to.
    # After these reads, whatever reached the log has happened.
    await read_each(client, user, [username(number) for number in ledger.uncertain_users], user_number)
    found = await find(client, settings, ledger.told)
    return Audit(_checked(settings, ledger, found), ledger.violations(found))


def _checked(settings: Settings, ledger: Ledger, found: Found) -> list[str]:
    counts = ledger.counts
    ratings = f"the ratings of all {settings.movies} movies: each has the count and the sum of its reviews"
    if not ledger.witnessed:
        return [
            f"all {len(found.stored)} reviews in the lists: each is stored, in its movie's list once and in its user's",
            ratings,
        ]
    checked = [
        f"{len(ledger.told)} reviews that clients were told of: each is stored as it was asked for, and stands once, "
        f"in the order of writing, in the list of its movie and in that of its user "
        f"({counts['not committed']} requests did not commit)",
        f"all lists of {settings.movies} movies and {settings.users} users: no review in them that nobody asked for",
        ratings,
        "every reply: no review of what is no movie or too long, and no other abort",
    ]
    if counts["unknown"]:
        there = len(found.stored) - len(ledger.told)
        checked.append(f"{counts['unknown']} reviews without an answer: {there} are there, as completely as the others")
    for kind, what in ((READ_MOVIE, "movies: each saw the rating of the reviews that it listed"), (READ_USER, "users")):
        if counts[kind]:
            checked.append(f"{counts[kind]} pages of {what}")
    return checked
