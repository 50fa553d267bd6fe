"""The command `python -m proof.hostile`: tries what hostile clients and strangers send on something that runs.

    styx dev examples.bank:app
    python -m proof.hostile --url http://127.0.0.1:8080

    python -m proof.hostile --url http://127.0.0.1:8080 --app bank --log kafka://127.0.0.1:9092 \\
        --target 127.0.0.1:7700 --target 127.0.0.1:7710 --target 127.0.0.1:7701

It connects only to the given addresses, so give it only your own. The app is `examples/bank.py`: its
accounts are used with names of their own, transfers run all the time, and in the end no money may be missing.
`--target` names other ports, of workers, coordinators, metrics; `--log` and `--app` let it append garbage to the app's
topics. How many connections and for how long is bounded by `--connections` and `--seconds`. Exit status 1 if anything
was not answered as it must be.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from proof.hostile import slow
from proof.hostile.bank import Bank, BankFailed
from proof.hostile.requests import behind_one_another, hang_up, send_wrong
from proof.hostile.target import Target, target_of, targets_of
from styx.errors import ConfigurationError
from styx.http.room import allow_descriptors

DESCRIPTORS_WANTED = 65_536


class Options(NamedTuple):
    """The attacks to try, and their limits."""

    url: str
    targets: list[str]
    log: str | None = None
    app: str = "bank"
    connections: int = 1_000
    seconds: float = 15.0
    seed: int = 1
    headers: tuple[str, ...] = ()
    authority: str | None = None


Attack = Callable[[], Awaitable[str]]


async def attack(options: Options, tell: Callable[[str], None]) -> Bank:
    """Runs all attacks, one after the other, with honest clients beside them.

    Raises `BankFailed`, `ConfigurationError`, `OSError` and `TimeoutError`.
    """
    gateway = target_of(options.url, list(options.headers), options.authority)
    others = targets_of(options.targets)
    async with gateway.connected():
        pass  # a peer that waits gets no answer at once
    async with Bank(gateway, options.seed) as bank:
        for name, each in _attacks(options, gateway, others, bank):
            tell(f"{name}: {await each()}")
            bank.check()
    tell(f"honest clients: {bank.transfers} transfers, the longest {bank.longest_s:.2f} s")
    tell(f"the bank's audit: {await bank.audit()}, as there must be")
    return bank


def _attacks(options: Options, gateway: Target, others: list[Target], bank: Bank) -> list[tuple[str, Attack]]:
    count, seconds = options.connections, options.seconds
    found: list[tuple[str, Attack]] = [
        ("wrong requests", partial(send_wrong, gateway, bank.path, options.seed)),
        ("requests behind one another", partial(behind_one_another, gateway, bank.path)),
        ("clients that hang up", partial(hang_up, gateway, bank.path, min(count, 100))),
    ]
    if options.log is not None:
        from proof.hostile.topics import fill

        found.append(("topics", partial(fill, options.log, options.app)))
    found += [(f"noise at {each.place}", partial(slow.noise, each, 5)) for each in others]
    found += [
        (f"half-open at {each.place}", partial(slow.half_open, each, count, seconds)) for each in [gateway, *others]
    ]
    found += [
        ("slow headers", partial(slow.dripping, gateway, count // 2, seconds, slow.half_a_header)),
        ("slow bodies", partial(slow.dripping, gateway, count // 2, seconds, slow.half_a_body(bank.path))),
        ("unread answers", partial(slow.unread, gateway, min(count, 50), seconds, gateway.post(bank.path))),
    ]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    usage = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m proof.hostile", description=__doc__, formatter_class=usage)
    parser.add_argument("--url", required=True, help="the gateway's, or that of `styx dev`")
    parser.add_argument("--target", action="append", default=[], help="HOST:PORT of another process; several times")
    parser.add_argument("--log", help="kafka://HOST:PORT, to append garbage to the topics of --app")
    parser.add_argument("--app", default="bank", help="what its topics are called")
    parser.add_argument("--connections", type=int, default=1_000, help="at each port")
    parser.add_argument("--seconds", type=float, default=15.0, help="how long slow clients go on")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--header", action="append", default=[], help="sent with each request: 'Authorization: …'")
    parser.add_argument("--ca", help="a file with the authority of an https:// URL")
    chosen = parser.parse_args(arguments)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    allow_descriptors(DESCRIPTORS_WANTED)
    options = Options(
        chosen.url,
        chosen.target,
        chosen.log,
        chosen.app,
        chosen.connections,
        chosen.seconds,
        chosen.seed,
        tuple(chosen.header),
        chosen.ca,
    )
    try:
        asyncio.run(attack(options, lambda line: print(line, flush=True)))
    except (BankFailed, ConfigurationError, OSError, TimeoutError) as failed:
        print(f"FAILED: {type(failed).__name__}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
