"""Packing and unpacking in one process: what is refused and why, and that versions of an app share nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import cloudpickle
import msgspec
import pytest

import styx
from examples import bank, shop
from styx import App, ConfigurationError, Context, Operator
from styx.deployment import package as package_module
from styx.deployment import package_format
from styx.deployment.package import check_surroundings, pack, read_header, unpack
from styx.deployment.package_format import (
    MAGIC,
    PACKAGE_BYTES_MAX,
    Dependency,
    PackageRefused,
    seal,
    unseal,
    unverified_header,
)
from styx.model.function_spec import NO_HINTS, Hints
from styx.schema.description import describe
from tests.deployment.conftest import Load

SECRET = b"a secret of this test"

COUNTER = """
from styx import App, Operator

SEEN = []
counter = Operator("counter")

class Steps:
    made = 0

@counter.register
async def step(ctx):
    SEEN.append(ctx.key)
    Steps.made += 1
    assert Steps.made == len(SEEN), "a class is shared"
    return VERSION, len(SEEN)

app = App("counting", [counter])
"""


def one_function(body: str, *, before: str = "") -> str:
    """An app of one function `run`, with this body."""
    lines = "\n    ".join(body.splitlines())
    return (
        f"from styx import App, Operator\nthing = Operator('thing')\n{before}\n"
        f"@thing.register\nasync def run(ctx):\n    {lines}\n\napp = App('one', [thing])\n"
    )


async def call(app: App, operator: str, function: str, *arguments: Any) -> Any:
    async with styx.embedded(app) as client:
        return await client.call(operator, "k", function, *arguments)


def run(app: App) -> Any:
    return asyncio.run(call(app, "thing", "run"))


# Round trips -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("app", [bank.app, shop.app], ids=lambda app: str(app.name))
def test_an_app_comes_back_as_it_was(app: App) -> None:
    unpacked = unpack(pack(app, SECRET), SECRET)
    assert describe(unpacked) == describe(app)
    for name, operator in app.operators.items():
        assert unpacked.operators[name] is not operator
        for key in ("ada", "bob", "ü"):
            assert unpacked.operators[name].partition_of(key, 16) == operator.partition_of(key, 16)


@pytest.mark.parametrize("hint", Hints._fields)
def test_what_is_declared_of_a_function_comes_with_it(load: Load, hint: str) -> None:
    """Workers that import the app and workers that unpack it must agree on each transaction's place."""
    source = (
        "from styx import App, Operator\nthing = Operator('thing')\n"
        "@thing.register\nasync def plain(ctx):\n    pass\n"
        f"@thing.register({hint}=True)\nasync def hinted(ctx):\n    pass\n"
        "app = App('one', [thing])\n"
    )
    app = load({"one_app.py": source}, "one_app").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    functions = unpacked.operators["thing"].functions
    assert {name: each.hints for name, each in functions.items()} == {
        "plain": NO_HINTS,
        "hinted": Hints(**{hint: True}),
    }
    assert describe(unpacked) == describe(app)


def test_crons_come_with_it(load: Load) -> None:
    source = (
        "from datetime import timedelta\nfrom styx import App, Operator, Retry\n"
        "thing = Operator('thing', key_type=(str, int))\n"
        "@thing.cron('0 3 * * *', key=('a', 1), retry=Retry(2, timedelta(seconds=7)))\nasync def job(ctx):\n    pass\n"
        "app = App('one', [thing])\n"
    )
    app = load({"one_app.py": source}, "one_app").app
    unpacked = unpack(pack(app, SECRET), SECRET)
    assert unpacked.operators["thing"].crons == app.operators["thing"].crons
    assert describe(unpacked).operators["thing"].crons == ["job on ('a', 1): 0 3 * * *; 2 attempts, 7 s"]


def test_the_header_says_what_is_inside() -> None:
    header = read_header(pack(shop.app, SECRET), SECRET)
    assert header.description == describe(shop.app)
    assert header.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert header.styx == styx.__version__
    assert header.cloudpickle == cloudpickle.__version__
    assert header.modules == ["examples.shop"]
    assert header.dependencies == [Dependency("msgspec", msgspec.__version__, ["msgspec"])]
    assert len(header.fingerprint) == 64


def test_the_fingerprint_is_that_of_the_sources(load: Load) -> None:
    files = {"tcounter.py": "VERSION = 1\n" + COUNTER}
    first = read_header(pack(load(files, "tcounter").app, SECRET), SECRET).fingerprint
    again = read_header(pack(load(files, "tcounter").app, SECRET), SECRET).fingerprint
    files["tcounter.py"] = "VERSION = 2\n" + COUNTER
    other = read_header(pack(load(files, "tcounter").app, SECRET), SECRET).fingerprint
    assert first == again != other


def test_versions_of_an_app_share_nothing(load: Load) -> None:
    one, two = (
        unpack(pack(load({"tcounter.py": f"VERSION = {version}\n" + COUNTER}, "tcounter").app, SECRET), SECRET)
        for version in (1, 2)
    )

    async def both() -> list[Any]:
        async with styx.embedded(one) as first, styx.embedded(two) as second:
            clients = (first, first, second, first)
            return [await client.call("counter", "k", "step") for client in clients]

    assert asyncio.run(both()) == [[1, 1], [1, 2], [2, 1], [1, 3]]


def test_a_package_unpacked_twice_is_two_apps(load: Load) -> None:
    module = load({"tcounter.py": "VERSION = 1\n" + COUNTER}, "tcounter")
    package = pack(module.app, SECRET)
    for _ in range(2):
        assert asyncio.run(call(unpack(package, SECRET), "counter", "step")) == [1, 1]
    assert module.SEEN == []
    assert module.Steps.made == 0


def test_an_app_defined_in_a_function() -> None:
    limit = 7
    account = Operator("account", key_type=(int, str), partition_key=lambda key: key[0] % limit)

    @account.register
    async def look(ctx: Context) -> int:
        return limit

    unpacked = unpack(pack(App("local", [account]), SECRET), SECRET).operators["account"]
    assert (
        unpacked.partition_of((8, "x"), 16) == unpacked.partition_of((1, "y"), 16) == account.partition_of((1, ""), 16)
    )


def test_functions_of_a_module_share_its_globals(load: Load) -> None:
    text = one_function("global n\nn += 1\nreturn n, seen()", before="n = 1\ndef seen():\n    return n\n")
    assert run(unpack(pack(load({"tshare.py": text}, "tshare").app, SECRET), SECRET)) == [2, 2]


def test_a_module_that_is_used_by_its_name(load: Load) -> None:
    files = {
        "tuser.py": one_function("tother.count += 1\nreturn tother.count, tother.get()", before="import tother"),
        "tother.py": "import sys, threading\ncount = 1\ndef get():\n    return count\n",
    }
    assert run(unpack(pack(load(files, "tuser").app, SECRET), SECRET)) == [2, 2]


def test_keys_of_a_dictionary_that_their_own_class_uses(load: Load) -> None:
    before = """
import dataclasses, enum, msgspec

@dataclasses.dataclass(frozen=True)
class Place:
    x: int
    def next(self):
        return NEXT[self]

class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    def next(self):
        return NEXT[self]

class Money(msgspec.Struct, frozen=True):
    cents: int
    def next(self):
        return NEXT[self]

NEXT = {Place(1): Place(2), Colour.RED: Colour.BLUE, Money(1): Money(2)}
"""
    text = one_function(
        "return Place(1).next().x, Colour.RED.next() is Colour.BLUE, Money(1).next().cents", before=before
    )
    assert run(unpack(pack(load({"tkeys.py": text}, "tkeys").app, SECRET), SECRET)) == [2, True, 2]


def test_what_post_init_did_is_not_done_again(load: Load) -> None:
    before = """
import msgspec
class Total(msgspec.Struct):
    cents: int
    def __post_init__(self):
        self.cents += 1
TOTAL = Total(1)
"""
    text = one_function("return TOTAL.cents, Total(4).cents, type(TOTAL) is Total", before=before)
    assert run(unpack(pack(load({"tpost.py": text}, "tpost").app, SECRET), SECRET)) == [2, 5, True]


def test_functions_that_use_each_other_in_a_long_chain(load: Load) -> None:
    chain = "".join(f"def f{i}(): return f{i + 1}\n" for i in range(220))
    text = one_function("return callable(f0())", before=chain + "def f220(): pass\n")
    limit = sys.getrecursionlimit()
    assert run(unpack(pack(load({"tchain.py": text}, "tchain").app, SECRET), SECRET)) is True
    assert sys.getrecursionlimit() == limit


def test_operators_that_call_each_other(load: Load) -> None:
    text = """
from __future__ import annotations
from decimal import Decimal
from styx import App, Operator

thing, other, unused = Operator("thing"), Operator("other"), Operator("unused")

@thing.register
async def run(ctx):
    assert unused.name == "unused"
    return await ctx.call(other, double, key="x", params=("1.5",))

@other.register
async def double(ctx, value: Decimal) -> Decimal:
    return value * 2 if value > 10 else await ctx.call(thing, again, key=ctx.key, params=(value,))

@thing.register
async def again(ctx, value: Decimal) -> Decimal:
    return value + 1

app = App("two", [thing, other])
"""
    assert run(unpack(pack(load({"ttwo.py": text}, "ttwo").app, SECRET), SECRET)) == "2.5"


# What cannot be packed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "before", "reason"),
    [
        ("return lock.locked()", "import threading\nlock = threading.Lock()", r"'_thread.lock' object \(in tbad.run\)"),
        ("import tlate\nreturn tlate.x", "", "tbad.run imports tlate when it runs.*import tlate at the top of tbad"),
        (
            "return odd",
            "class Odd:\n    def __reduce__(self): return 'odd'\nodd = Odd()",
            "tbad.odd.*by its name",
        ),
        ("return mine.name", "class Mine(Operator): ...\nmine = Mine('m')", "only an Operator itself can be packed"),
    ],
)
def test_what_cannot_be_packed_is_named(load: Load, body: str, before: str, reason: str) -> None:
    module = load({"tbad.py": one_function(body, before=before), "tlate.py": "x = 1\n"}, "tbad")
    with pytest.raises(ConfigurationError, match=reason):
        pack(module.app, SECRET)
    assert "tbad" not in cloudpickle.list_registry_pickle_by_value()
    assert "tlate" not in sys.modules


def test_cloudpickle_is_left_as_it_was() -> None:
    before = cloudpickle.list_registry_pickle_by_value()
    pack(bank.app, SECRET)
    assert cloudpickle.list_registry_pickle_by_value() == before


def test_an_import_that_may_fail_may_fail(load: Load) -> None:
    text = one_function("try:\n    import tmissing\nexcept ImportError:\n    return 'none'")
    assert run(unpack(pack(load({"ttry.py": text}, "ttry").app, SECRET), SECRET)) == "none"


def test_too_large_an_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_format, "PACKAGE_BYTES_MAX", 1000)
    with pytest.raises(ConfigurationError, match=r"app 'bank' makes a package of .* the limit is 1000"):
        pack(bank.app, SECRET)


# What is refused -------------------------------------------------------------------------------------------


def test_nothing_is_unpickled_unless_the_signature_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    package = pack(bank.app, SECRET)
    header, payload = unseal(package, SECRET)
    forged = seal(header, payload, b"another secret")

    def never(*arguments: object) -> None:
        raise AssertionError("it was unpickled")

    monkeypatch.setattr("styx.deployment.package.AppUnpickler", never)
    at = len(MAGIC)
    damaged = [package[:i] + bytes([package[i] ^ 1]) + package[i + 1 :] for i in range(0, len(package), 37)]
    cut = [package[:i] for i in (0, 3, at, at + 2, at + 4, 200, len(package) - 1)]
    for data in (forged, package + b"x", b"", *damaged, *cut):
        with pytest.raises(PackageRefused):
            unpack(data, SECRET)
        with pytest.raises(PackageRefused):
            read_header(data, SECRET)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-1], "signature is wrong"),
        (lambda data: data[:100], "is cut off"),
        (lambda data: b"PK" + data, "no package of this version's format"),
        (lambda data: data + bytes(PACKAGE_BYTES_MAX), "the limit is 67108864"),
    ],
)
def test_the_reason_is_told(change: Any, reason: str) -> None:
    with pytest.raises(PackageRefused, match=reason):
        read_header(change(pack(bank.app, SECRET)), SECRET)


def test_a_secret_must_not_be_empty() -> None:
    with pytest.raises(ConfigurationError, match="the cluster's secret"):
        pack(bank.app, b"")


def test_another_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    package = pack(bank.app, SECRET)
    monkeypatch.setattr(package_module, "PYTHON", "3.99")
    with pytest.raises(PackageRefused, match=r"this is 3\.99, which cannot run its bytecode"):
        unpack(package, SECRET)


def test_dependencies_that_are_missing_or_different() -> None:
    header, payload = unseal(pack(shop.app, SECRET), SECRET)
    other = msgspec.structs.replace(header, dependencies=[Dependency("msgspec", "0.0.1", ["msgspec"])], styx="0.0.0")
    assert check_surroundings(header) == []
    assert check_surroundings(other) == [
        f"the package was made with msgspec 0.0.1, and {msgspec.__version__} is installed here",
        f"the package was made with styx 0.0.0, and {styx.__version__} is installed here",
    ]
    lacking = msgspec.structs.replace(header, dependencies=[Dependency("no-such-thing", "1.2", ["nosuchthing"])])
    with pytest.raises(PackageRefused, match=r"pip install no-such-thing==1\.2"):
        unpack(seal(lacking, payload, SECRET), SECRET)
    unlisted = msgspec.structs.replace(header, dependencies=[Dependency("nosuchthing", "", ["nosuchthing"])])
    with pytest.raises(PackageRefused, match=r"pip install nosuchthing$"):
        unpack(seal(unlisted, payload, SECRET), SECRET)


def test_the_header_alone_without_the_secret() -> None:
    package = pack(shop.app, SECRET)
    assert unverified_header(package) == read_header(package, SECRET)
    for damaged in (
        b"",
        b"x" + package,
        package[:20],
        MAGIC + package[len(MAGIC) :].replace(b"description", b"descriptiox"),
    ):
        with pytest.raises(PackageRefused):
            unverified_header(damaged)
