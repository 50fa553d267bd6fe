"""Code of a version that is being checked and does not end: it is ended, and the version is refused."""

from __future__ import annotations

import re
import threading
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from styx import App, Operator
from styx.model.limits import Limits
from styx.schema.state_findings import StateFindings
from styx.watchdog.watchdog import Watchdog
from styx.watchdog.watched import Watched
from styx.worker.events import Step
from styx.worker.invocation import Running
from styx.worker.slot import Slot
from styx.worker.state_watch import StateWatch

LIMITS = Limits(function_seconds_max=0.2)


def endless(value: Any) -> Any:
    while True:
        pass


def endless_quietly(value: Any) -> Any:
    while True:
        try:
            endless(value)
        except BaseException:  # noqa: BLE001 - it does not want to end
            pass


class New(msgspec.Struct):
    cents: int


class Odd(msgspec.Struct):
    balance: int

    def __post_init__(self) -> None:
        endless(self)


def found(*operators: Operator) -> StateFindings:
    slot = Slot(0)
    for name in ("acc", "other"):
        slot.state.table(name).commit(0, {f"k{n}": msgspec.msgpack.encode({"balance": n}) for n in range(300)})
    running = Running()
    worker = SimpleNamespace(
        executor=SimpleNamespace(running=running, roots={}),
        n_slots=1,
        limits=LIMITS,
        patience=3,
        reached=Step.IDLE,
        epoch=-1,
        recorded_until=-1,
    )
    turns = SimpleNamespace(turn=1)
    watchdog = Watchdog(Watched(cast(Any, worker), turns, threading.get_ident()))
    watchdog.start()
    try:
        app = App("bank", [*operators, Operator("other")])
        watch = StateWatch(1, app, 1, LIMITS, [slot], running, app)
        while not (told := watch.run(1, 50)):
            pass
    finally:
        watchdog.stop()
    assert (running.invocation, running.cut, running.harmless) == (None, False, False)
    [message] = told
    return message.findings


@pytest.mark.parametrize(
    ("declared", "what", "line"),
    [
        ({"state_type": New, "migrate": endless}, "acc.migrate=", "endless"),
        ({"state_type": New, "migrate": endless_quietly}, "acc.migrate=", "endless"),
        ({"state_type": Odd}, "acc.state_type", "endless"),
    ],
)
def test_what_does_not_end_is_ended_once_and_refused(declared: dict[str, Any], what: str, line: str) -> None:
    findings = found(Operator("acc", **declared))
    assert findings.checked == 600
    [first] = findings.first
    assert re.match(rf"acc\['k0'\]: {what} on 'k0' ran for 0\.\d s at test_state_watch.py:\d+ in {line}", first)
    assert "others of its operator were not looked at" in first
    assert findings.refusal() is not None


def test_a_partition_key_that_does_not_end_is_refused() -> None:
    asked: list[str] = []

    def by_region(key: str) -> str:
        if key == "k70":
            asked.append(key)
            endless(key)
        return "all"

    findings = found(Operator("acc", partition_key=by_region))
    [first] = findings.first
    assert first.startswith("acc['k70']: acc.partition_key on 'k70' ran for 0.")
    assert len(asked) < 5


def test_what_ends_is_left_alone() -> None:
    findings = found(Operator("acc", state_type=New, migrate=lambda old: New(100 * old["balance"])))
    assert (findings.checked, findings.offenders, findings.migrated) == (600, 0, {"acc": 300})
