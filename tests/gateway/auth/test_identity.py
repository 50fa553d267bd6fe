"""What belongs to an identity: its idempotency keys, which no other identity's request can meet."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.auth.identity import Identity
from styx.gateway.front import Entrance, Front
from styx.gateway.head import idempotency_key
from styx.model.limits import IDEMPOTENCY_KEY_CHARS_MAX
from tests.gateway.asgi import Answer, exchange
from tests.gateway.auth.signers import AUDIENCE, ISSUER, Signer, jwks

pytestmark = pytest.mark.anyio

RSA = Signer("rsa-1", "RS256")
account = Operator("account")


@account.register
async def credit(ctx: Context, amount: int) -> int:
    balance: int = await ctx.get(0) + amount
    ctx.put(balance)
    return balance


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(App("bank", [account])) as client:
        yield client


class Bank:
    """A gateway before `client`, with the API keys that `add` has made, and tokens."""

    def __init__(self, client: EmbeddedClient, folder: Path) -> None:
        self._client = client
        self._keys = folder / "keys.json"
        self._signing_keys = folder / "jwks.json"
        self._signing_keys.write_text(json.dumps(jwks(RSA)))

    def add(self, name: str) -> str:
        text, entry = new_key(name, utc_now())
        api_keys.change_file(self._keys, lambda keys: [*keys, entry])
        return text

    async def ask(self, credential: str, method: str, path: str, body: bytes = b"", key: str = "order-18") -> Answer:
        """Through a gateway of its own, as the next one is."""
        options = AccessOptions(
            api_keys=self._keys, signing_keys=str(self._signing_keys), issuer=ISSUER, audiences=(AUDIENCE,)
        )
        front = Front(access=options)
        entrance = Entrance(Gateway(self._client.engine), front, front.rules("127.0.0.1", "127.0.0.1"))
        headers = {"host": "127.0.0.1", "authorization": f"Bearer {credential}", "idempotency-key": key}
        return await exchange(entrance.application, method, path, [body], headers)

    async def credit(self, credential: str, amount: int, key: str = "order-18") -> Any:
        return (await self.ask(credential, "POST", "/v1/account/alice/credit", b"[%d]" % amount, key)).json["result"]


@pytest.fixture
def bank(client: EmbeddedClient, tmp_path: Path) -> Bank:
    return Bank(client, tmp_path)


async def test_nobody_meets_anothers_key(bank: Bank) -> None:
    shop, spy = bank.add("shop"), bank.add("spy")
    await bank.credit(shop, 1, "first")
    assert (await bank.ask(spy, "GET", "/v1/account/alice")).json["result"] == 1
    assert await bank.credit(shop, 5) == 6, "a read with the same key took nothing of it"
    assert await bank.credit(shop, 100) == 6, "the same key of the same sender"
    assert await bank.credit(spy, 10) == 16
    assert await bank.credit(RSA.token(sub="shop"), 20) == 36, "a token is no API key of that name"
    assert await bank.credit(RSA.token(sub="shop"), 20) == 36
    assert await bank.credit(RSA.token(sub="spy"), 1) == 37
    assert await bank.credit(shop, 100) == 6


async def test_an_exchanged_key_goes_on(bank: Bank) -> None:
    old = bank.add("shop")
    assert await bank.credit(old, 5) == 5
    assert await bank.credit(bank.add("shop"), 5) == 5


async def test_a_load_is_not_pre_empted(bank: Bank, client: EmbeddedClient) -> None:
    shop, spy = bank.add("shop"), bank.add("spy")
    for number in range(3):
        assert await bank.credit(spy, 0, f"all/{number}") == 0
    loaded = await bank.ask(shop, "POST", "/v1/account?replace=true", b'["alice", 7]', "all")
    assert (loaded.json, client.entity("account", "alice")) == ({"loaded": 1}, 7)
    assert await bank.credit(shop, 1) == 8
    again = await bank.ask(shop, "POST", "/v1/account?replace=true", b'["alice", 7]', "all")
    assert (again.json, client.entity("account", "alice")) == ({"loaded": 1}, 8), "the same load runs once"


def test_what_is_remembered() -> None:
    shop, claims = Identity("shop", "key 1"), {"iss": "a", "sub": "shop"}
    others = [
        Identity("shop2", "key 1"),
        Identity("shop", "token shop", claims),
        Identity("shop", "token shop", claims | {"iss": "b"}),
    ]
    keys = ["a", "x" * 200, "x" * 256, "x" * 255]
    found = {
        idempotency_key({b"idempotency-key": key.encode()}, identity)
        for key in keys
        for identity in (shop, *others, None)
    }
    assert len(found) == len(keys) * 5
    assert max(map(len, found)) <= IDEMPOTENCY_KEY_CHARS_MAX
    assert sum(" " in each for each in found) == len(keys) * 4, "no header can say one"
    same = shop._replace(source="key 2", rate=5.0)
    assert same.fingerprint == shop.fingerprint
    assert idempotency_key({}, shop) == ""
