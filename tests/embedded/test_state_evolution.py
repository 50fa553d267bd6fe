"""Every way in which state, its type and its operator can change between two starts: works, is converted, or is refused
with words. None loses anything silently.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest

from styx import App
from styx.errors import ConfigurationError
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
TYPED = "class Acc(msgspec.Struct{base}):\n    {fields}\n"
PUT = "async def put(ctx: Context, **value: Any) -> None:\n    await ctx.put(Acc(**value))\n"
PLAIN = "async def put(ctx: Context, **value: Any) -> None:\n    await ctx.put(value)\n"
WHEN = "async def put(ctx: Context, **value: Any) -> None:\n    await ctx.put({'at': ctx.now(), **value})\n"
LIST = "async def put(ctx: Context, **value: Any) -> None:\n    await ctx.put([value['n'], 'x'])\n"


class Form(NamedTuple):
    """How an operator is declared, the type before it, and the function that stores."""

    declared: str
    more: str
    put: str


def typed(fields: str, *, declared: str = "", base: str = "") -> Form:
    more = TYPED.format(fields=fields.replace("; ", "\n    "), base=base)
    return Form(f"Operator('acc', state_type=Acc{declared})", "import datetime\n" + more, PUT)


def plain(declared: str = "Operator('acc')", put: str = PLAIN, more: str = "") -> Form:
    return Form(declared, more, put)


N, NAMED = typed("n: int"), typed("n: int; name: str")

WORKS: dict[str, tuple[Form, Form, dict[str, Any], Any]] = {
    "a field with a default": (N, typed("n: int; more: str = 'none'"), {"n": 5}, {"n": 5, "more": "none"}),
    "int becomes float": (N, typed("n: float"), {"n": 5}, {"n": 5.0}),
    "int becomes int or str": (N, typed("n: int | str"), {"n": 5}, {"n": 5}),
    "a dict becomes a Struct": (plain(), N, {"n": 5}, {"n": 5}),
    "a Struct becomes a dict": (N, plain(), {"n": 5}, {"n": 5}),
    "a field's name in Python": (N, typed("count: int = msgspec.field(name='n')"), {"n": 5}, {"n": 5}),
    "a field is optional": (N, typed("n: int | None"), {"n": 5}, {"n": 5}),
    "the same, with a function more": (
        N,
        N._replace(put=PUT + "async def more(ctx: Context) -> None: ..."),
        {"n": 5},
        {"n": 5},
    ),
    "fields in another order": (NAMED, typed("name: str; n: int"), {"n": 5, "name": "x"}, {"n": 5, "name": "x"}),
    "a plain time becomes a typed one": (
        plain(put=WHEN),
        typed("n: int; at: datetime.datetime"),
        {"n": 5},
        None,
    ),
}
NOTED: dict[str, tuple[Form, Form, dict[str, Any], str]] = {
    "a field is removed": (NAMED, N, {"n": 5, "name": "x"}, "a part that its state_type does not have"),
    "a field is renamed, with a default": (N, typed("count: int = 0"), {"n": 5}, "lost when they are put next"),
}
REFUSED: dict[str, tuple[Form, Form, dict[str, Any], str]] = {
    "a field without a default": (N, NAMED, {"n": 5}, "acc['k']: missing required field 'name'"),
    "a field is renamed": (N, typed("count: int"), {"n": 5}, "acc['k']: missing required field 'count'"),
    "int becomes str": (N, typed("n: str"), {"n": 5}, "acc['k'].n: expected 'str', got 'int'"),
    "a map becomes an array": (
        N,
        typed("n: int", base=", array_like=True"),
        {"n": 5},
        "acc['k']: expected 'array', got 'object'",
    ),
    "a list becomes a Struct": (plain(put=LIST), N, {"n": 5}, "acc['k']: expected 'object', got 'array'"),
    "a field has a bound": (
        N,
        typed("n: Annotated[int, msgspec.Meta(lt=3)]"),
        {"n": 5},
        "acc['k'].n: expected 'int' <= 2",
    ),
    "the operator has another name": (
        N,
        N._replace(declared="Operator('account', state_type=Acc)"),
        {"n": 5},
        "renamed to",
    ),
    "key_type": (
        N,
        N._replace(declared="Operator('acc', key_type=int)"),
        {"n": 5},
        "key_type has changed from str to int",
    ),
    "n_partitions": (N, N._replace(declared="Operator('acc', 7)"), {"n": 5}, "n_partitions has changed from 4 to 7"),
    "partition_key": (
        N,
        N._replace(declared="Operator('acc', partition_key=lambda key: key[:1])"),
        {"n": 5},
        "it has a partition_key now",
    ),
}
MIGRATE: dict[str, tuple[Form, str, dict[str, Any], Any]] = {
    "a field without a default": (NAMED, "lambda old: {**old, 'name': 'new'}", {"n": 5}, {"n": 5, "name": "new"}),
    "a field is renamed": (typed("count: int"), "lambda old: {'count': old['n']}", {"n": 5}, {"count": 5}),
    "a field is renamed, with a default": (
        typed("count: int = 0"),
        "lambda old: {'count': old['n']}",
        {"n": 5},
        {"count": 5},
    ),
    "int becomes str": (typed("n: str"), "lambda old: {'n': str(old['n'])}", {"n": 5}, {"n": "5"}),
}
ENDS = ["close", "crash"]


def app_of(edited: Edited, form: Form) -> App:
    head = "from typing import Annotated\n"
    return edited.app(form.declared, form.put, more=head + form.more)


async def stored(edited: Edited, form: Form, value: dict[str, Any], end: str) -> None:
    client = edited.open(app_of(edited, form))
    async with client:
        request = client.engine.maker.make("acc", "k", "put", msgspec.msgpack.encode(value))
        (await client.engine.submit(request, 30)).unwrap()
        if end == "crash":
            client.crash()


def shown(value: Any) -> Any:
    return msgspec.to_builtins(value)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", WORKS)
async def test_what_works(edited: Edited, row: str, end: str) -> None:
    before, after, value, expected = WORKS[row]
    await stored(edited, before, value, end)
    async with edited.open(app_of(edited, after)) as client:
        found = shown(client.entity("acc", "k"))
        assert found == expected if expected is not None else found["n"] == 5
        assert client.state().keys() == {("acc", "k")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", NOTED)
async def test_what_works_and_is_told(edited: Edited, row: str, end: str) -> None:
    before, after, value, words = NOTED[row]
    await stored(edited, before, value, end)
    async with edited.open(app_of(edited, after)) as client:
        assert words in "\n".join(client.engine.app_change.notes)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", REFUSED)
async def test_what_is_refused(edited: Edited, row: str, end: str) -> None:
    before, after, value, words = REFUSED[row]
    await stored(edited, before, value, end)
    for _ in range(2):
        with pytest.raises(ConfigurationError) as refused:
            async with edited.open(app_of(edited, after)):
                pass
        assert words in str(refused.value)
        assert "Nothing was changed" in str(refused.value)
    async with edited.open(app_of(edited, before)) as client:
        assert len(client.state()) == 1


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("row", MIGRATE)
async def test_what_migrate_converts(edited: Edited, row: str, end: str) -> None:
    after, function, value, expected = MIGRATE[row]
    await stored(edited, N, value, end)
    migrating = after._replace(declared=f"Operator('acc', state_type=Acc, migrate={function})")
    client = edited.open(app_of(edited, migrating))
    async with client:
        assert shown(client.entity("acc", "k")) == expected
        client.crash()
    async with edited.open(app_of(edited, migrating)) as client:
        assert shown(client.entity("acc", "k")) == expected
    async with edited.open(app_of(edited, after)) as client:
        assert shown(client.entity("acc", "k")) == expected
