"""An app with inlets, behind a gateway, and what it emits."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import pytest

from styx import App, Event, Inlet
from styx.embedded_engine.ports import EngineJournal
from styx.messages import EventRecord
from styx.webhooks import HmacSignature, TimedSignature

SECRET = "a secret of both"


class Price(msgspec.Struct):
    """A value of an event."""

    product: str
    cents: Annotated[int, msgspec.Meta(ge=0)]


class Push(msgspec.Struct):
    """A part of what GitHub sends."""

    ref: str


class Charge(msgspec.Struct):
    """A part of what Stripe sends."""

    id: str
    type: str = ""


changed: Event[Price] = Event("price-changed", Price)
pushed: Event[Push] = Event("pushed", Push)
charged: Event[Charge] = Event("charged", Charge)
inner: Event[Price] = Event("inner", Price)


def made_app() -> App:
    """A new app."""
    inlets = [
        Inlet(changed, key=lambda price: price.product),
        Inlet(pushed, verify=HmacSignature("X-Hub-Signature-256", "HUB", prefix="sha256="), once="X-GitHub-Delivery"),
        Inlet(charged, verify=TimedSignature("STRIPE"), once=lambda charge: charge.id),
    ]
    return App("shop", inlets, events=[changed, pushed, charged, inner])


def signed(body: bytes, secret: str = SECRET) -> str:
    """As GitHub signs a body."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[tuple[str, Any, Any]]]:
    """Gives (event, key, value) of all that was emitted."""
    records: list[EventRecord] = []
    original = EngineJournal.emit_events

    def emit_events(self: Any, effect: Any) -> None:
        records.extend(effect.events)
        original(self, effect)

    monkeypatch.setattr(EngineJournal, "emit_events", emit_events)
    return lambda: [(each.event, each.key, msgspec.msgpack.decode(each.payload)) for each in records]
