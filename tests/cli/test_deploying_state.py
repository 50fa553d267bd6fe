"""`styx deploy` of versions that change what is stored, on a cluster of processes: refused, converted, taken back."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from styx.client.connect import connect
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import STYX
from tests.cli.test_up_process import Cluster, running, until
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

APP = """
import msgspec
from styx import App, Context, Operator

{types}

account = Operator("account", {declared})

@account.register
async def credit(ctx: Context, amount: int) -> int:
    state = await ctx.get() or {new}
    {change}
    await ctx.put(state)
    return {shown}

app = App("{name}", operators=[account])
"""
BALANCES = {
    "types": "class Acc(msgspec.Struct):\n    balance: int",
    "declared": "state_type=Acc",
    "new": "Acc(0)",
    "change": "state.balance += amount",
    "shown": "state.balance",
}
CENTS = {
    "types": "class Acc(msgspec.Struct):\n    cents: int\n    currency: str",
    "declared": "state_type=Acc",
    "new": "Acc(0, 'EUR')",
    "change": "state.cents += 100 * amount",
    "shown": "state.cents",
}
MIGRATING = {
    **CENTS,
    "types": CENTS["types"]
    + """

class Old(msgspec.Struct):
    balance: int

def migrate(old: Old) -> Acc:
    return Acc(100 * old.balance, "EUR")
""",
    "declared": "state_type=Acc, migrate=migrate",
}


@pytest.fixture
def cluster(tmp_path: Path, kafka: RealKafka, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    name = request.node.name.removeprefix("test_")[:40]
    app = APP.format(name=name, **BALANCES)
    yield from running(Cluster(tmp_path, kafka, None, name, app))


def test_state_that_does_not_fit(cluster: Cluster) -> None:
    assert [cluster.credit(5), cluster.credit(5)] == [5, 10]
    cluster.module(APP.format(name=cluster.name, **CENTS))
    misfit = "1 of 1 stored entities do not fit the new version:\n  account['ada']: missing required field 'cents'"
    for words in (["--check"], []):
        ran = cluster.styx("deploy", "shop:app", *words)
        assert (ran.status, ran.out) == (1, "")
        assert misfit in ran.err
        assert "version 1 goes on" in ran.err
    assert cluster.credit(5) == 15

    cluster.module(APP.format(name=cluster.name, **MIGRATING))
    told = "stored entities checked: 1; all of them fit\noperator 'account': converted by migrate=: 1"
    ran = cluster.styx("deploy", "shop:app", "--check")
    assert (ran.status, ran.out) == (0, f"it can be deployed\n{told}")
    assert cluster.credit(5) == 20, "nothing has changed"
    ran = cluster.styx("deploy", "shop:app")
    assert (ran.status, ran.out) == (0, f"version 3 runs\n{told}")
    assert cluster.credit(1) == 2100

    ran = cluster.styx("deploy", "--rollback")
    assert ran.status == 1
    assert "has converted the state of operator 'account'" in ran.err
    cluster.module(APP.format(name=cluster.name, **CENTS))
    assert cluster.styx("deploy", "shop:app").out.startswith("version 4 runs"), "migrate= has done its work"
    assert cluster.credit(1) == 2200


SLOW = {
    **MIGRATING,
    "types": MIGRATING["types"].replace("    return Acc", "    import time\n    time.sleep(0.2)\n    return Acc", 1),
}


def test_a_check_ends_with_its_command(cluster: Cluster) -> None:
    """It would take twice as long as anything is waited for here, and another one would be refused meanwhile."""

    async def fill() -> None:
        async with connect(f"http://127.0.0.1:{cluster.port}") as client:
            await client.load("account", [(f"k{number}", {"balance": 1}) for number in range(8_000)])

    asyncio.run(fill())
    cluster.module(APP.format(name=cluster.name, **SLOW))
    words = [*STYX, "deploy", "shop:app", "--check"]
    with subprocess.Popen(
        words, cwd=cluster.directory, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as long:
        until(lambda: cluster.status()["deploying"] is not None)
        assert "another deployment is under way" in cluster.styx("deploy", "shop:app", "--check").err
        long.send_signal(signal.SIGINT)
        out, err = long.communicate(timeout=PATIENCE_SECONDS)
    assert long.returncode != 0
    assert (out, "Traceback" in err) == ("", False)
    cluster.module(APP.format(name=cluster.name, **MIGRATING))
    until(lambda: cluster.status()["deploying"] is None)
    ran = cluster.styx("deploy", "shop:app", "--check")
    assert "stored entities checked: 8,000; all" in ran.out, ran
    assert cluster.credit(5) == 5
