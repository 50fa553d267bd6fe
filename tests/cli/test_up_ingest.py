"""`styx up` of an app that reads a topic of others, on a real broker: records come in, and dead processes come back."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from proof.cluster.ingest_faults import make_topic
from styx.cli.app_target import load_app
from styx.client.connect import connect
from styx.process.ports import free_port
from styx.testing.patience import PATIENCE_SECONDS
from tests.cli.served import STYX, unset, up
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
APP = """
from styx import App, Context, Event, Ingest, Inlet, Operator

account = Operator("account")

@account.register
async def paid(ctx: Context, payment: dict) -> None:
    await ctx.put(await ctx.get(0) + payment["cents"])

payments = Ingest("payments", topic="{topic}", to=(account, paid), key=lambda record: record.value["account"])
changed = Event("price-changed", dict[str, int])
inlet = Inlet(changed, once=lambda prices: "-".join(sorted(prices)))
app = App("{name}", [account, payments, inlet], events=[changed])
"""


async def write(kafka: RealKafka, topic: str, count: int) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    await producer.start()
    try:
        for _ in range(count):
            await producer.send_and_wait(topic, b'{"account": "ada", "cents": 5}')
    finally:
        await producer.stop()


def test_records_of_others_come_in(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"up-ingest-{secrets.token_hex(4)}"
    topic = f"others.{name}"
    (tmp_path / "shop.py").write_text(APP.format(topic=topic, name=name))
    environment = unset()
    data = ["--log", f"kafka://{kafka.bootstrap}", "--store", f"file://{tmp_path}/store", "--slots", "4"]

    def until(balance: str) -> None:
        end_s = time.monotonic() + PATIENCE_SECONDS
        words = [*STYX, "state", "get", "account", "ada"]
        while True:
            ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            if ran.stdout.strip() == balance:
                return
            assert time.monotonic() < end_s, ran
            time.sleep(0.2)

    def pid() -> int:
        return int(json.loads((tmp_path / f".styx/run/{name}/cluster.json").read_text())["pids"]["ingest"])

    port = free_port()

    async def publish() -> None:
        app = load_app(f"{tmp_path}/shop.py:app")
        async with connect(f"http://127.0.0.1:{port}") as remote, connect(f"kafka://{kafka.bootstrap}", app) as direct:
            first = await remote.publish("price-changed", {"tea": 1})
            assert (await direct.publish(app.events["price-changed"], {"tea": 1})).tid == first.tid
            assert (await remote.publish("price-changed", {"tea": 1})).tid == first.tid
            assert (await direct.publish("price-changed", {"cocoa": 1})).tid != first.tid

    with up(tmp_path, environment, "--workers", "1", "--port", str(port), *data) as (_, lines):
        asyncio.run(publish())
        assert any("ingest" in line for line in lines)
        asyncio.run(make_topic(kafka.bootstrap, topic))
        asyncio.run(write(kafka, topic, 3))
        until("15")
        os.kill(pid(), signal.SIGKILL)
        asyncio.run(write(kafka, topic, 4))
        until("35")
