"""`POST /v1/events/NAME` and `client.publish`: events from outside, once each, and only from who may send them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import styx
from styx import App, ConfigurationError, Event, Inlet, NotSent
from styx.client.embedded import EmbeddedClient
from styx.errors import BadArguments, InTransactionError, RequestRejected
from styx.gateway.app import Gateway
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.docs_page import docs_page
from styx.gateway.front import Entrance, Front
from styx.gateway.openapi import openapi
from styx.webhooks import HmacSignature, TimedSignature
from tests.gateway.asgi import Answer, exchange
from tests.gateway.publishing_app import SECRET, Charge, Price, changed, emitted, inner, made_app, signed
from tests.gateway.running import running

pytestmark = pytest.mark.anyio
__all__ = ["emitted"]

Emitted = Callable[[], list[tuple[str, Any, Any]]]
PRICE = b'{"product": "tea", "cents": 250}'
PUSH = b'{"ref": "main", "after": "0d1a"}'


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUB", SECRET)
    monkeypatch.setenv("STRIPE", SECRET)


@pytest.fixture
async def shop(emitted: Emitted) -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(made_app()) as client:
        yield client


async def post(shop: EmbeddedClient, name: str, body: bytes = b"", method: str = "POST", **headers: str) -> Answer:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await exchange(Gateway(shop.engine), method, f"/v1/events/{name}", [body], sent)


def stripe(body: bytes, at_s: float | None = None, secret: str = SECRET) -> str:
    told = str(int(time.time() if at_s is None else at_s))
    return f"t={told},v1=00,v1=" + hmac.new(secret.encode(), f"{told}.".encode() + body, hashlib.sha256).hexdigest()


async def test_an_event_is_published(shop: EmbeddedClient, emitted: Emitted) -> None:
    answer = await post(shop, "price-changed", PRICE)
    assert answer.status == 200
    assert answer.json["result"] is None
    assert set(answer.json["transaction"]) == {"id", "epoch", "phase"}
    assert emitted() == [("price-changed", "tea", {"product": "tea", "cents": 250})]


async def test_a_repetition_publishes_once(shop: EmbeddedClient, emitted: Emitted) -> None:
    for _ in range(3):
        assert (await post(shop, "price-changed", PRICE, idempotency_key="one")).status == 200
        assert (await post(shop, "pushed", PUSH, x_hub_signature_256=signed(PUSH), x_github_delivery="a")).status == 200
        charge = b'{"id": "ch_1"}'
        assert (await post(shop, "charged", charge, stripe_signature=stripe(charge))).status == 200
    assert sorted(each[0] for each in emitted()) == ["charged", "price-changed", "pushed"]


WRONG: dict[str, tuple[str, bytes, dict[str, str], int, str, str]] = {
    "an unknown event": ("price", PRICE, {}, 404, "not_found", "It lets in: charged, price-changed, pushed"),
    "an event that nobody lets in": ("inner", PRICE, {}, 404, "not_found", "declare an Inlet for it"),
    "no JSON": ("price-changed", b"{", {}, 422, "bad_arguments", "the body is no event 'price-changed'"),
    "no body": ("price-changed", b"", {}, 422, "bad_arguments", "the body is no event"),
    "another shape": ("price-changed", b"[1]", {}, 422, "bad_arguments", "Expected `object`"),
    "a field too few": ("price-changed", b'{"product": "a"}', {}, 422, "bad_arguments", "`cents`"),
    "out of bounds": ("price-changed", b'{"product": "a", "cents": -1}', {}, 422, "bad_arguments", "`int` >= 0"),
    "a wrong key": ("price-changed", b'{"product": "", "cents": 1}', {}, 200, "", ""),
    "a long key": (
        "price-changed",
        b'{"product": "%s", "cents": 1}' % (b"p" * 5_000),
        {},
        422,
        "bad_arguments",
        "key=",
    ),
    "a blank in the idempotency key": (
        "price-changed",
        PRICE,
        {"idempotency_key": "a b"},
        400,
        "bad_request",
        "visible",
    ),
    "no signature": ("pushed", PUSH, {"x_github_delivery": "a"}, 401, "unauthenticated", "signature is not valid"),
    "an empty signature": ("pushed", PUSH, {"x_hub_signature_256": ""}, 401, "unauthenticated", "is not valid"),
    "a prefix alone": ("pushed", PUSH, {"x_hub_signature_256": "sha256="}, 401, "unauthenticated", "is not valid"),
    "no hex": ("pushed", PUSH, {"x_hub_signature_256": "sha256=xyz"}, 401, "unauthenticated", "is not valid"),
    "not ASCII": ("pushed", PUSH, {"x_hub_signature_256": "sha256=ä"}, 401, "unauthenticated", "is not valid"),
    "another prefix": (
        *("pushed", PUSH, {"x_hub_signature_256": signed(PUSH).replace("256", "1")}),
        *(401, "unauthenticated", "is not valid"),
    ),
    "another body": ("pushed", b"{}", {"x_hub_signature_256": signed(PUSH)}, 401, "unauthenticated", "is not valid"),
    "another secret": (
        *("pushed", PUSH, {"x_hub_signature_256": signed(PUSH, "another")}),
        *(401, "unauthenticated", "is not valid"),
    ),
    "signed, and no event": (
        *("pushed", b"{}", {"x_hub_signature_256": signed(b"{}"), "x_github_delivery": "a"}),
        *(422, "bad_arguments", "`ref`"),
    ),
    "signed, without what tells repetitions": (
        *("pushed", PUSH, {"x_hub_signature_256": signed(PUSH)}),
        *(400, "bad_request", "the header x-github-delivery is missing"),
    ),
    "a signature of long ago": (
        *("charged", PUSH, {"stripe_signature": stripe(PUSH, 1_700_000_000)}),
        *(401, "unauthenticated", "is not valid"),
    ),
    "a signature without a time": (
        *("charged", PUSH, {"stripe_signature": stripe(PUSH).partition(",")[2]}),
        *(401, "unauthenticated", "is not valid"),
    ),
    "a signature of an odd time": (
        *("charged", PUSH, {"stripe_signature": "t=²,v1=00"}),
        *(401, "unauthenticated", "is not valid"),
    ),
    "a signature without an end": (
        *("charged", PUSH, {"stripe_signature": "t=" + "9" * 5_000}),
        *(401, "unauthenticated", "is not valid"),
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_request_is_told(shop: EmbeddedClient, emitted: Emitted, wrong: str) -> None:
    name, body, headers, status, code, says = WRONG[wrong]
    answer = await post(shop, name, body, **headers)
    assert answer.status == status
    if code:
        assert answer.code == code
        assert says in answer.json["error"]["message"]
        assert emitted() == []


async def test_only_post_publishes(shop: EmbeddedClient, emitted: Emitted) -> None:
    for method in ("PUT", "DELETE", "PATCH"):  # GET reads the events
        assert (await post(shop, "price-changed", PRICE, method)).status in (404, 405)
    for path in ("/v1/events/", "/v1/events/price-changed/x", "/v1/events//publish"):
        assert (await exchange(Gateway(shop.engine), "POST", path, [PRICE], {})).status in (400, 404, 422)
    assert emitted() == []


async def test_the_functions_of_an_inlet_are_nobodys(shop: EmbeddedClient, emitted: Emitted) -> None:
    for path in ("/v1/inlet.price-changed/tea/publish", "/v1/inlet.price-changed"):
        answer = await exchange(Gateway(shop.engine), "POST", path, [b"[%b]" % PRICE], {})
        assert (answer.status, answer.code) == (403, "forbidden")
        assert b"posted to /v1/events/NAME" in answer.body
    assert emitted() == []


async def test_a_body_is_limited(shop: EmbeddedClient) -> None:
    assert (await post(shop, "price-changed", b" " * (2 << 20))).status == 413


async def test_without_its_secret_nothing_is_let_in(
    shop: EmbeddedClient, emitted: Emitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    for secret in (None, ""):
        monkeypatch.delenv("HUB", raising=False)
        if secret is not None:
            monkeypatch.setenv("HUB", secret)
        answer = await post(shop, "pushed", PUSH, x_hub_signature_256=signed(PUSH, ""), x_github_delivery="a")
        assert (answer.status, answer.code) == (503, "unavailable")
        assert "HUB is not set in this gateway's environment" in answer.json["error"]["message"]
    assert emitted() == []


@pytest.mark.parametrize("result", [ZeroDivisionError(), None, 1, "yes", b"x"])
async def test_what_is_not_true_is_no_proof(emitted: Emitted, result: Any) -> None:
    def verify(headers: Any, body: bytes) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    app = App("shop", [Inlet(changed, verify=verify)], events=[changed])
    async with styx.embedded(app) as shop:
        assert (await post(shop, "price-changed", PRICE)).code == "unauthenticated"
    assert emitted() == []


async def test_verify_sees_headers_and_body(emitted: Emitted) -> None:
    seen: list[Any] = []

    def verify(*given: Any) -> bool:
        seen.append(given)
        return True

    app = App("shop", [Inlet(changed, verify=verify)], events=[changed])
    async with styx.embedded(app) as shop:
        assert (await post(shop, "price-changed", PRICE, X_One="ä")).status == 200
    assert seen[0][0]["x-one"] == "ä" or "X-One" in seen[0][0]
    assert seen[0][1] == PRICE


async def test_repetitions_at_one_time_publish_once(shop: EmbeddedClient, emitted: Emitted) -> None:
    answers = await asyncio.gather(*(post(shop, "price-changed", PRICE, idempotency_key="one") for _ in range(20)))
    assert {each.status for each in answers} == {200}
    assert len({each.json["transaction"]["id"] for each in answers}) == 1
    assert len(emitted()) == 1


# Behind a guard --------------------------------------------------------------------------------------------


class Guarded:
    """A gateway with API keys, of which `all` may do everything that the policy says, and with one webhook."""

    def __init__(self, folder: Path, shop: EmbeddedClient, policy: str = "", webhooks: tuple[str, ...] = ()) -> None:
        keys = folder / "keys.json"
        self.key, entry = new_key("all", utc_now())
        api_keys.change_file(keys, lambda others: [*others, entry])
        rules = folder / "policy.toml"
        rules.write_text(policy)
        front = Front(access=AccessOptions(api_keys=keys, policy=rules if policy else None, webhooks=webhooks))
        gateway = Gateway(shop.engine)
        self._application = Entrance(gateway, front, front.rules("127.0.0.1", "127.0.0.1")).application

    async def post(self, name: str, body: bytes, with_key: bool, **headers: str) -> Answer:
        sent = {"host": "127.0.0.1"} | {name.replace("_", "-"): value for name, value in headers.items()}
        if with_key:
            sent["authorization"] = f"Bearer {self.key}"
        return await exchange(self._application, "POST", f"/v1/events/{name}", [body], sent)


async def test_who_publishes_needs_a_credential(shop: EmbeddedClient, tmp_path: Path, emitted: Emitted) -> None:
    door = Guarded(tmp_path, shop)
    assert (await door.post("price-changed", PRICE, False)).status == 401
    assert (await door.post("pushed", PUSH, False, x_hub_signature_256=signed(PUSH))).status == 401
    assert emitted() == []
    assert (await door.post("price-changed", PRICE, True)).status == 200
    signature = {"x_hub_signature_256": signed(PUSH), "x_github_delivery": "a"}
    assert (await door.post("pushed", PUSH, True)).status == 401, "a credential is no signature"
    assert (await door.post("pushed", PUSH, True, **signature)).status == 200


async def test_a_webhook_needs_a_signature_alone(shop: EmbeddedClient, tmp_path: Path, emitted: Emitted) -> None:
    door = Guarded(tmp_path, shop, webhooks=("pushed", "price-changed"))
    assert (
        await door.post("pushed", PUSH, False, x_hub_signature_256=signed(b""), x_github_delivery="a")
    ).status == 401
    assert (await door.post("price-changed", PRICE, False)).status == 401, "an inlet without verify= proves nobody"
    assert (await door.post("charged", PUSH, False, stripe_signature=stripe(PUSH))).status == 401, "it is not named"
    assert (await door.post("pushed", PUSH, False, authorization="Bearer x")).status == 401
    assert emitted() == []
    signature = {"x_hub_signature_256": signed(PUSH), "x_github_delivery": "a"}
    assert (await door.post("pushed", PUSH, False, **signature)).status == 200
    assert (await door.post("price-changed", PRICE, True)).status == 200


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ('[[allow]]\npublish = ["price-*"]', 200),
        ('[[allow]]\npublish = ["price-changed"]', 200),
        ('[[allow]]\npublish = ["*"]', 200),
        ('[[allow]]\npublish = ["pushed"]', 403),
        ('[[allow]]\ncall = ["*"]\nread = ["*"]\nload = ["*"]\nsee = ["*"]', 403),
        ('[[allow]]\nkeys = ["other"]\npublish = ["*"]', 403),
    ],
)
async def test_rules_say_who_publishes_what(
    shop: EmbeddedClient, tmp_path: Path, emitted: Emitted, policy: str, status: int
) -> None:
    assert (await Guarded(tmp_path, shop, policy).post("price-changed", PRICE, True)).status == status
    assert len(emitted()) == (status == 200)


# Clients ---------------------------------------------------------------------------------------------------


async def test_clients_publish(shop: EmbeddedClient, emitted: Emitted) -> None:
    reply = await shop.publish(changed, Price("tea", 1))
    assert reply.error is None
    await shop.publish("price-changed", Price("tea", 2), idempotency_key="a")
    await shop.publish("price-changed", Price("tea", 2), idempotency_key="a")
    await shop.publish("charged", Charge("ch_2"))
    await shop.publish("charged", Charge("ch_2"))
    async with running(shop.engine) as gateway, styx.connect(gateway.url) as remote:
        await remote.publish(changed, Price("cocoa", 3))
        await remote.publish("price-changed", {"product": "cocoa", "cents": 4}, idempotency_key="b")
        with pytest.raises(RequestRejected, match="bad_arguments"):
            await remote.publish("price-changed", {"product": "cocoa"})
        with pytest.raises(RequestRejected, match="not_found"):
            await remote.publish(inner, Price("cocoa", 3))
        with pytest.raises(RequestRejected, match="unauthenticated"):
            await remote.publish("pushed", {"ref": "x"})
        with pytest.raises(ValueError, match="timeout"):
            await remote.publish(changed, Price("tea", 1), timeout=-1)
    prices = [(key, value["cents"]) for event, key, value in emitted() if event == "price-changed"]
    assert prices == [("tea", 1), ("tea", 2), ("cocoa", 3), ("cocoa", 4)]
    assert sum(event == "charged" for event, _, _ in emitted()) == 1


async def test_wrong_values_are_refused_where_they_are_given(shop: EmbeddedClient, emitted: Emitted) -> None:
    wrong: list[Any] = [(changed, 7), (changed, None), ("pushed", Price("a", 1)), ("charged", "ch")]
    for event, value in wrong:
        with pytest.raises((InTransactionError, RequestRejected)):
            await shop.publish(event, value)
    others: list[Any] = [inner, "inner", "none", 7, None, Event("price-changed", int)]
    for event in others:
        with pytest.raises((BadArguments, RequestRejected)):
            await shop.publish(event, Price("a", 1))
    with pytest.raises(ValueError, match="timeout"):
        await shop.publish(changed, Price("a", 1), timeout=0)
    assert emitted() == []


def test_a_blocking_client_publishes(emitted: Emitted) -> None:
    with styx.embedded_sync(made_app()) as shop:
        shop.publish(changed, Price("tea", 1))
    assert [each[1] for each in emitted()] == ["tea"]


# Declarations ----------------------------------------------------------------------------------------------


async def is_late(headers: Any, body: bytes) -> bool:
    return True


DECLARATIONS: list[tuple[Callable[[], Any], str]] = [
    (lambda: Inlet("price-changed"), r"takes a styx\.Event"),  # type: ignore[arg-type]
    (lambda: Inlet(Price), r"takes a styx\.Event"),  # type: ignore[arg-type]
    (lambda: Inlet(changed, key="product"), "key= is a plain function"),  # type: ignore[arg-type]
    (lambda: Inlet(changed, verify="secret"), "verify= is a plain function"),  # type: ignore[arg-type]
    (lambda: Inlet(changed, verify=is_late), "verify= is a plain function"),  # type: ignore[arg-type]
    (lambda: Inlet(changed, once=7), "once= is a plain function"),  # type: ignore[arg-type]
    (lambda: Inlet(changed, once="X Delivery"), "once= is the name of a header"),
    (lambda: Inlet(changed, name="a/b"), "an operator's name is"),
    (lambda: App("shop", [Inlet(changed)]), r"declare it in App\(events="),
    (lambda: App("shop", [Inlet(changed)], events=[Event("price-changed", Price)]), "which the app does not have"),
    (lambda: App("shop", [Inlet(changed), Inlet(changed)], events=[changed]), "two operators named"),
    (lambda: HmacSignature("", "HUB"), "header=…"),
    (lambda: HmacSignature("X", ""), "variable=…"),
    (lambda: HmacSignature("X", "HUB", encoding="hax"), "encoding=…"),
    (lambda: HmacSignature("X", "HUB", digest="sha257"), "digest=…"),
    (lambda: HmacSignature("X", "HUB", prefix=None), "prefix=…"),  # type: ignore[arg-type]
    (lambda: TimedSignature(""), "is a name"),
    (lambda: TimedSignature("STRIPE", header=""), "header=…"),
    (lambda: TimedSignature("STRIPE", scheme=1), "scheme=…"),  # type: ignore[arg-type]
    (lambda: TimedSignature("STRIPE", tolerance=300), "is a timedelta"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(DECLARATIONS)))
def test_a_wrong_declaration_is_refused(number: int) -> None:
    wrong, says = DECLARATIONS[number]
    with pytest.raises(ConfigurationError, match=says):
        wrong()


@pytest.mark.parametrize("told", [None, "a b", "", 7, "ä", "x" * 257])
async def test_a_wrong_once_is_told(told: Any, emitted: Emitted) -> None:
    app = App("shop", [Inlet(changed, once=lambda price: told)], events=[changed])
    async with styx.embedded(app) as shop:
        answer = await post(shop, "price-changed", PRICE)
        assert (answer.code, "once= of the inlet" in answer.json["error"]["message"]) == ("bad_arguments", True)
        with pytest.raises(BadArguments, match="once= of the inlet"):
            await shop.publish(changed, Price("a", 1))
    assert emitted() == []


def test_signatures_in_base64_and_without_a_prefix() -> None:
    body = b"body"
    digest = hmac.new(SECRET.encode(), body, hashlib.sha512).digest()
    check = HmacSignature("X-Sig", "HUB", digest="sha512", encoding="base64")
    assert check({"x-sig": base64.b64encode(digest).decode()}, body)
    assert not check({"x-sig": digest.hex()}, body)
    with pytest.raises(NotSent, match="NONE is not set"):
        HmacSignature("X-Sig", "NONE")({"x-sig": "00"}, body)


def test_the_document_has_what_can_be_posted() -> None:
    document = openapi(made_app())
    OpenAPIV31SpecValidator(document).validate()
    posted = sorted(path for path, operations in document["paths"].items() if "post" in operations and "~" not in path)
    assert posted == ["/v1/events/charged", "/v1/events/price-changed", "/v1/events/pushed"]
    price = document["paths"]["/v1/events/price-changed"]["post"]
    assert price["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Price"}
    pushed = document["paths"]["/v1/events/pushed"]["post"]
    assert pushed["parameters"][0]["name"] == "x-github-delivery"
    assert "The request is signed" in pushed["description"]
    assert "inlet.price-changed" not in docs_page(made_app())
