"""The processor time of a gateway's front for each request: without authentication, with an API key, and with a token.

`python -m benchmarks.front_cost` measures the front alone, before an ASGI application that answers at once.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from benchmarks.driver.one_at_a_time import load_test
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import Access, AccessOptions
from styx.gateway.auth.api_keys import new_key, utc_now
from styx.gateway.auth.tokens import TokenRules, Tokens, read_jwks
from styx.gateway.door import Door
from styx.gateway.hosts import Hosts
from styx.gateway.origin import OriginRules
from styx.http.asgi import Application

REQUESTS: Final = 50_000
RUNS: Final = 5
ISSUER: Final = "https://login.example.com"
RULES: Final = """
[[allow]]
keys = ["shop"]
call = ["account.*"]

[[allow]]
claims = {role = "teller"}
call = ["account.*"]
"""


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def _nothing(*_: object) -> None:
    return None


def scope_of(credential: str) -> dict[str, Any]:
    """A transaction's request as the HTTP client sends it."""
    headers = [
        (b"host", b"127.0.0.1:8080"),
        (b"content-type", b"application/json"),
        (b"styx-key-type", b"str"),
        (b"styx-timeout", b"30.000"),
        (b"content-length", b"5"),
    ]
    if credential:
        headers.append((b"authorization", b"Bearer " + credential.encode()))
    path = "/v1/account/alice/open"
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "headers": headers,
        "root_path": "",
    }


async def microseconds(application: Application, credential: str = "") -> float:
    """Processor time of one request, the median of the runs."""
    found = []
    for _ in range(RUNS):
        began = time.process_time()
        for _ in range(REQUESTS):
            await application(scope_of(credential), _nothing, _nothing)  # type: ignore[arg-type]
        found.append((time.process_time() - began) / REQUESTS * 1e6)
    return sorted(found)[RUNS // 2]


async def measured(folder: Path) -> Iterator[tuple[str, float]]:
    """Each form, with microseconds a request beyond those of the application alone."""
    rules = OriginRules(Hosts("127.0.0.1"))
    key, entry = new_key("shop", utc_now())
    api_keys.change_file(folder / "keys.json", lambda _: [entry])
    (folder / "rules.toml").write_text(RULES)
    signer = rsa.generate_private_key(65_537, 2_048)
    (folder / "jwks.json").write_text(
        json.dumps({"keys": [{**json.loads(RSAAlgorithm.to_jwk(signer.public_key())), "kid": "a"}]})
    )
    claims = {"iss": ISSUER, "aud": "bank", "sub": "alice", "role": "teller", "exp": time.time() + 3600}
    token = jwt.encode(claims, signer, "RS256", {"kid": "a"})
    options = AccessOptions(
        api_keys=folder / "keys.json",
        signing_keys=str(folder / "jwks.json"),
        issuer=ISSUER,
        audiences=("bank",),
        policy=folder / "rules.toml",
        rate=1e9,
        in_flight=1_000_000,
    )
    guard = Access(options).guard(_answer, lambda scope, refusal: None, lambda scope: "")
    bare = await microseconds(_answer)
    door = Door(_answer, rules, lambda scope, refusal: None)
    guarded = Door(guard, rules, lambda scope, refusal: None)
    return iter(
        [
            ("door alone (no keys)", await microseconds(door) - bare),
            ("door, API key, rules, limits", await microseconds(guarded, key) - bare),
            ("door, token seen before, rules, limits", await microseconds(guarded, token) - bare),
        ]
    )


def verified(algorithm: str) -> float:
    """Microseconds to verify a token that was not seen before."""
    curve = algorithm == "ES256"
    signer: Any = ec.generate_private_key(ec.SECP256R1()) if curve else rsa.generate_private_key(65_537, 2_048)
    public = (ECAlgorithm if curve else RSAAlgorithm).to_jwk(signer.public_key())
    tokens = Tokens(TokenRules(ISSUER, ("bank",)))
    tokens.use(read_jwks({"keys": [{**json.loads(public), "kid": "a"}]}))
    claims = {"iss": ISSUER, "aud": "bank", "exp": time.time() + 3600}
    fresh = [jwt.encode({**claims, "sub": str(n)}, signer, algorithm, {"kid": "a"}) for n in range(2_000)]
    began = time.process_time()
    for token in fresh:
        tokens.identify(token, time.time())
    return (time.process_time() - began) / len(fresh) * 1e6


def main() -> None:
    """Measures and prints all figures."""
    with load_test(), tempfile.TemporaryDirectory() as folder:
        for name, each in asyncio.run(measured(Path(folder))):
            print(f"{name:45} {each:6.2f} µs")
    for algorithm in ("RS256", "ES256"):
        print(f"{f'a token not seen before, {algorithm}':45} {verified(algorithm):6.1f} µs")


if __name__ == "__main__":
    main()
