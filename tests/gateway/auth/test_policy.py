"""Rules: what they allow, to whom, and that nothing else is allowed."""

from typing import Any

import pytest
from starlette.routing import Route

from styx import ConfigurationError
from styx.gateway.app import Gateway
from styx.gateway.auth.identity import Identity
from styx.gateway.auth.policy import CALL, DEAD, EDIT, LIST, LOAD, READ, SEE, SQL, Action, action_of, parse
from styx.gateway.openapi import openapi
from styx.gateway.origin import HEALTH_PATHS
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.fake_engine import app as fake_app

RULES = b"""
[[allow]]
keys = ["shop", "batch-*"]
call = ["account.deposit", "cart.*", "order.get_*"]
load = ["account"]

[[allow]]
claims = {role = "teller", level = 2}
call = ["account.*"]
read = ["*"]

[[allow]]
claims = {scope = "bank:own"}
entity = "sub"
call = ["account.transfer"]
read = ["account"]

[[allow]]
see = ["docs"]

[[allow]]
keys = ["operator"]
dead = ["account"]
list = ["account"]
edit = ["account"]

[[allow]]
claims = {scope = "bank:own"}
entity = "sub"
dead = ["*"]

[[allow]]
keys = ["prometheus"]
see = ["metrics"]
"""
POLICY = parse(RULES)


def key(name: str) -> Identity:
    return Identity(name, "key")


def token(**claims: Any) -> Identity:
    return Identity("x", "token", {"sub": "alice", **claims})


TELLER = token(role=["clerk", "teller"], level=2)
ODD_ROLES: list[Any] = [None, "Teller", ["x"], "tellers", 2, {}]
OWNER = token(scope="openid bank:own")


@pytest.mark.parametrize(
    ("identity", "action"),
    [
        *((key(name), Action(CALL, "account.deposit", "a")) for name in ("shop", "batch-", "batch-7")),
        *((key("shop"), Action(CALL, name, "a")) for name in ("cart.add", "cart.x", "order.get_all")),
        (key("shop"), Action(LOAD, "account")),
        (key("anybody"), Action(SEE, "docs")),
        (token(), Action(SEE, "docs")),
        (key("prometheus"), Action(SEE, "metrics")),
        (key("operator"), Action(DEAD, "account")),
        (key("operator"), Action(LIST, "account")),
        (key("operator"), Action(EDIT, "account", "a")),
        *((TELLER, Action(*what, "a")) for what in ((CALL, "account.x"), (READ, "account"), (READ, "cart"))),
        *((OWNER, Action(*what, "alice")) for what in ((CALL, "account.transfer"), (READ, "account"))),
        (token(scope="bank:own", sub="7"), Action(READ, "account", "7")),
    ],
)
def test_allowed(identity: Identity, action: Action) -> None:
    assert POLICY.allows(identity, action)


@pytest.mark.parametrize(
    ("identity", "action"),
    [
        *((key(name), Action(CALL, "account.deposit", "a")) for name in ("sho", "shop2", "batch", "teller", "*")),
        *((key("shop"), Action(CALL, name, "a")) for name in ("account.transfer", "cart", "cartx.add", "order.put")),
        *(
            (key("shop"), each)
            for each in (Action(READ, "account", "a"), Action(LOAD, "cart"), Action(SEE, "metrics"), None)
        ),
        *((token(role=role, level=2), Action(CALL, "account.x", "a")) for role in ODD_ROLES),
        *((token(role="teller", level=level), Action(CALL, "account.x", "a")) for level in (None, "2", 2.0, True, 1)),
        (TELLER, Action(CALL, "cart.add", "a")),
        (TELLER, Action(LOAD, "account")),
        (Identity("shop", "token", {}), Action(CALL, "account.deposit", "a")),
        (Identity("prometheus", "token", {"sub": "prometheus"}), Action(SEE, "metrics")),
        *((OWNER, Action(CALL, "account.transfer", name)) for name in ("bob", "", "alice ", "Alice", None)),
        (token(scope="bank:own", sub=None), Action(READ, "account", "None")),
        (token(scope="bank:own", sub=True), Action(READ, "account", "True")),
        (key("x"), None),
        (key("operator"), Action(DEAD, "cart")),
        (key("operator"), Action(LIST, "cart")),
        (TELLER, Action(LIST, "account")),
        (TELLER, Action(EDIT, "account", "a")),
        (key("shop"), Action(EDIT, "account", "a")),
        (OWNER, Action(EDIT, "account", "alice")),
        (key("operator"), Action(EDIT, "cart", "a")),
        (OWNER, Action(LIST, "account")),
        (key("operator"), Action(LOAD, "account")),
        (key("shop"), Action(DEAD, "account")),
        (TELLER, Action(DEAD, "account")),
        (OWNER, Action(DEAD, "account")),
    ],
)
def test_refused(identity: Identity, action: Action | None) -> None:
    assert not POLICY.allows(identity, action)


def test_without_a_rule_nothing_is_allowed() -> None:
    for text in (b"", b"[[allow]]"):
        assert not parse(text).allows(key("shop"), Action(SEE, "docs"))


@pytest.mark.parametrize(
    "text",
    [
        *(b"[[allow", b"[[alow]]", b"[[allow]]\ncalls=['a.b']", b"[[allow]]\ncall='a.b'", b"[[allow]]\ncall=['a']"),
        *(b"[[allow]]\ncall=['a*b.c']", b"[[allow]]\ncall=['']", b"[[allow]]\nkeys=['*a']", b"\xff", b"allow=1"),
        *(b"[[allow]]\nclaims={a=[1]}", b"[[allow]]\n" * 1001, b"[[allow]]\nread=[" + b"'a'," * 1001 + b"]"),
    ],
)
def test_what_is_no_file_of_rules(text: bytes) -> None:
    with pytest.raises(ConfigurationError):
        parse(text)


def action(method: str, path: str, root: str = "") -> Action | None:
    from urllib.parse import unquote

    sent = root + path
    return action_of({"method": method, "path": unquote(sent), "raw_path": sent.encode(), "root_path": root})


def test_each_path_of_a_gateway_is_one_that_rules_know() -> None:
    """A page that is added without a name would be one that no rule can allow."""
    gateway = Gateway(FakeEngine())
    paths = {route.path for route in gateway._others.routes if isinstance(route, Route)}
    assert paths >= {"/metrics", "/docs", "/healthz"}
    assert {path for path in paths - HEALTH_PATHS if action("GET", path) is None} == set()
    for path, operations in openapi(fake_app)["paths"].items():
        for method in operations:
            assert action(method.upper(), path.replace("{key}", "a")) is not None, path


@pytest.mark.parametrize("root", ["", "/bank"])
def test_actions(root: str) -> None:
    assert action("POST", "/v1/account/al%2Fice/open", root) == (CALL, "account.open", "al/ice")
    assert action("POST", "/%761/account/a/open", root) is None, "nothing is served there"
    assert action("GET", "/v1/account/a", root) == (READ, "account", "a")
    assert action("GET", "/v1/account/a/balance", root) == (CALL, "account.balance", "a")
    assert action("HEAD", "/v1/account/a/balance", root) == (CALL, "account.balance", "a")
    assert action("POST", "/v1/acc%6Funt", root) == (LOAD, "account", None)
    assert action("GET", "/v1/acc%6Funt", root) == action("HEAD", "/v1/account", root) == (LIST, "account", None)
    pages = {"/metrics": "metrics", "/docs": "docs", "/openapi.json": "docs", "/": "docs", "/%6Detrics": "metrics"}
    for path, page in pages.items():
        assert action("GET", path, root) == (SEE, page, None)
    for method, path in [
        *(
            ("POST", "/v1/account/a"),
            ("PUT", "/v1/account"),
            ("DELETE", "/v1/account/a"),
        ),
        *(("POST", "/metrics"), ("GET", "/other"), ("GET", "/v1/"), ("POST", "/v1//a/open"), ("POST", "/v1/a//open")),
        *(("POST", "/v1/a/%ff/open"), ("POST", "/v1/a/b/c/d"), ("GET", "/metrics/"), ("PUT", "/v1/a/b/c")),
    ]:
        assert action(method, path, root) is None, path


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('entity = "sub"\nlist = ["a"]', "entity and list"),
        ("claims = {}", "an empty table of claims"),
        ('keys = ["a"]\nclaims = {role = "x"}', "keys and claims"),
        ('entity = "sub"\nsql = ["query"]', "entity and sql"),
    ],
)
def test_rules_that_mean_another_thing_than_they_say(rule: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        parse(b"[[allow]]\n" + rule.encode())


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/%761/shelf/a/key", "/%76%31/shelf/a/key", "/v%31/shelf/a/key"])
async def test_a_request_is_spelled_as_it_is(path: str) -> None:
    """A proxy before the gateway may have rules about /v1/."""
    engine = FakeEngine()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"[]"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": "/v1/shelf/a/key", "raw_path": path.encode()}
    assert action_of(scope) is None
    await Gateway(engine)(scope | {"headers": [], "query_string": b"", "root_path": ""}, receive, send)
    assert (sent[0]["status"], engine.requests) == (404, [])


def test_actions_of_edits() -> None:
    for method in ("GET", "HEAD", "POST"):
        assert action(method, "/v1/~edit/acc%6Funt/al%2Fice") == (EDIT, "account", "al/ice")
        for path in (
            "/v1/~edit/account",
            "/v1/~edit/",
            "/v1/~edit/account/a/b",
            "/v1/~edit/account/",
            "/v1/~edit/a/%ff",
        ):
            assert action(method, path) is None, path
    assert action("PUT", "/v1/~edit/account/a") is None
    own = parse(b'[[allow]]\nclaims = {sub = "*"}\nentity = "sub"\nedit = ["account"]')
    assert own.allows(token(), Action(EDIT, "account", "alice"))
    assert not own.allows(token(), Action(EDIT, "account", "bob"))


def test_queries_in_sql_are_known_where_they_are_served() -> None:
    for path, target in (("/v1/sql", "query"), ("/v1/sql/watch", "watch")):
        for method in ("GET", "POST"):
            scope = {"method": method, "path": path, "raw_path": path.encode()}
            assert action_of(scope, has_sql=lambda: True) == Action(SQL, target)
            elsewhere = action_of(scope)
            assert elsewhere is None or elsewhere.kind != SQL
    rules = parse(b'[[allow]]\nkeys = ["a"]\nsql = ["watch"]\n')
    asking = Identity("a", "key")
    assert [rules.allows(asking, Action(SQL, each)) for each in ("watch", "query")] == [True, False]


def test_actions_on_dead_calls() -> None:
    for method in ("GET", "HEAD"):
        assert action(method, "/v1/~dead/account") == (DEAD, "account", None)
    for path in ("/v1/~dead/account/x/replay", "/v1/~dead/account/x/drop", "/v1/~dead/acc%6Funt/x/drop"):
        assert action("POST", path) == (DEAD, "account", None)
        assert action("GET", path) is None
    for path in ("/v1/~dead/account", "/v1/~dead/", "/v1/~dead/account/x", "/v1/~dead/a/x/burn", "/v1/~dead/a%/x/drop"):
        assert action("POST", path) is None
    assert action("POST", "/v1/%7Edead/account/x") == (CALL, "~dead.x", "account"), "no operator has this name"
    assert action("GET", "/v1/~dead") == (LIST, "~dead", None), "likewise"
