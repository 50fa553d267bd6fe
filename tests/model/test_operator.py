"""Declarations: anything that could only fail later fails at once, and says what to write instead."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Operator
from styx.errors import BadKey, UnknownFunction, UnknownOperator
from styx.model.operator import PARTITIONS_MAX


class One(msgspec.Struct):
    x: int


class Other(msgspec.Struct):
    y: int


async def credit(ctx: Context, amount: int) -> int:
    return amount


# Operators -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "_", "account", "Account_2", "a.b-c", "a" * 128])
def test_good_names(name: str) -> None:
    assert Operator(name).name == name


@pytest.mark.parametrize("name", ["", "1a", "-a", "a b", "a/b", "ä", "a\n", "\0idempotency", "a" * 129, None, 5, b"a"])
def test_bad_names(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="an operator's name is letters, digits"):
        Operator(name)


@pytest.mark.parametrize("n_partitions", [0, -1, PARTITIONS_MAX + 1, 2.0, "4", True])
def test_bad_numbers_of_partitions(n_partitions: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"a number from 1 to {PARTITIONS_MAX}"):
        Operator("account", n_partitions)


def test_a_partition_key_is_a_function() -> None:
    with pytest.raises(ConfigurationError, match="partition_key must be a function of the key"):
        Operator("account", partition_key="key")  # type: ignore[call-overload]


def test_a_state_type_that_cannot_be_converted_to_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="operator 'account': state_type"):
        Operator("account", state_type=One | Other)  # nothing tells them apart


# Functions -----------------------------------------------------------------------------------------------------


def test_registering_returns_the_function_unchanged() -> None:
    operator = Operator("account")
    assert operator.register(credit) is credit
    assert operator.functions["credit"].func is credit


def test_a_function_is_found_by_name_and_by_itself() -> None:
    operator = Operator("account")
    operator.register(credit)
    assert operator.function("credit") is operator.function(credit) is operator.functions["credit"]


def plain(ctx: Context) -> None: ...


async def no_context() -> None: ...


async def only_rest(*ctx: Context) -> None: ...


async def only_named(*, ctx: Context) -> None: ...


async def generator(ctx: Context) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (plain, r"is not an `async def` function; write `async def plain\(ctx, …\)`"),
        (lambda ctx: None, "is not an `async def` function"),
        (generator, "has a `yield`: a function returns one result"),
        (5, "5 is not an `async def` function"),
        (no_context, r"lacks the context: .* as in `async def no_context\(ctx\)`"),
        (only_rest, "lacks the context"),
        (only_named, "lacks the context"),
    ],
)
def test_what_is_no_function_of_an_operator_is_refused_at_once(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Operator("account").register(function)


def test_a_name_is_registered_once() -> None:
    operator = Operator("account")
    operator.register(credit)
    with pytest.raises(ConfigurationError, match="has a function 'credit' already; rename one of them"):
        operator.register(credit)


def test_a_function_is_registered_with_hints() -> None:
    operator = Operator("account")

    @operator.register(read_only=True)
    async def balance(ctx: Context) -> int:
        return int(await ctx.get(0))

    assert operator.register()(credit) is credit, "without hints the brackets change nothing"
    assert operator.functions["balance"].func is balance
    assert operator.functions["balance"].read_only
    assert not operator.functions["credit"].read_only

    @operator.register(local=True)
    async def debit(ctx: Context) -> None:
        """Within its slot."""

    assert [operator.functions[name].local for name in ("balance", "credit", "debit")] == [False, False, True]


def test_what_is_read_only_need_not_be_local() -> None:
    with pytest.raises(ConfigurationError, match="with read_only= or with local=, not with both"):
        Operator("account").register(read_only=True, local=True)


@pytest.mark.parametrize("other", ["read_only", "local"])
def test_what_runs_once_anyway_need_not_be_contended(other: str) -> None:
    with pytest.raises(ConfigurationError, match="with contended= or with read_only= or local=, not with both"):
        Operator("account").register(contended=True, **{other: True})


@pytest.mark.parametrize("hint", ["read_only", "local", "contended"])
@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_a_hint_is_true_or_false(hint: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"'account': {hint}= of register is True or False, got"):
        Operator("account").register(**{hint: value})


def test_nothing_is_registered_instead_of_a_function() -> None:
    with pytest.raises(ConfigurationError, match="None is not an `async def` function"):
        Operator("account").register(None)  # type: ignore[call-overload]


@pytest.mark.parametrize("wanted", ["credid", "", None, 5, plain, ["credit"], {"credit"}])
def test_an_unknown_function_names_those_that_there_are(wanted: Any) -> None:
    operator = Operator("account")
    operator.register(credit)
    with pytest.raises(UnknownFunction, match=r"operator 'account' has no function .*; it has: credit"):
        operator.function(wanted)


def test_a_result_is_converted_to_its_annotation_if_it_fits() -> None:
    operator = Operator("account")

    @operator.register
    async def pair(ctx: Context) -> tuple[int, int]:
        return 1, 2

    App("app", [operator])
    assert operator.functions["pair"].decode_result(b"\x92\x01\x02") == (1, 2)
    assert operator.functions["pair"].decode_result(b"\xc0") is None, "an annotation is no check"


# Apps ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", None, 5])
def test_an_app_needs_a_name(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="an app needs a name"):
        App(name, [])


def test_an_app_is_made_of_operators_with_different_names() -> None:
    with pytest.raises(ConfigurationError, match=r"5 is not an Operator"):
        App("bank", [5])  # type: ignore[list-item]
    with pytest.raises(ConfigurationError, match="has two operators named 'account'; rename one of them"):
        App("bank", [Operator("account"), Operator("account")])


def test_an_operator_is_found_by_name_and_by_itself() -> None:
    account = Operator("account")
    app = App("bank", [account])
    assert app.operator("account") is app.operator(account) is account


@pytest.mark.parametrize("wanted", ["acount", None, 5, Operator("other"), ["account"]])
def test_an_unknown_operator_names_those_that_there_are(wanted: Any) -> None:
    with pytest.raises(UnknownOperator, match=r"app 'bank' has no operator .*; it has: account"):
        App("bank", [Operator("account")]).operator(wanted)


def test_a_wrong_annotation_fails_when_the_app_is_built() -> None:
    operator = Operator("account")

    @operator.register
    async def function(ctx: Context, amount: Decimal) -> None:  # type: ignore[name-defined]  # noqa: F821
        ...

    with pytest.raises(ConfigurationError, match="the annotation 'Decimal' of 'amount' cannot be resolved"):
        App("bank", [operator])


def test_what_an_app_has_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        App("bank", []).operators["new"] = Operator("new")  # type: ignore[index]


def test_slots_of_many_keys_are_those_of_each() -> None:
    for operator in (Operator("o"), Operator("o", 7), Operator("o", 3, partition_key=lambda key: key[0])):
        keys = [f"k{n}" for n in range(100)]
        assert operator.slots_of(keys, 4) == [operator.partition_of(key, 4) % 4 for key in keys]


def test_a_partition_key_that_fails_for_one_of_many_keys_names_it() -> None:
    operator = Operator("o", partition_key=lambda key: key[3])
    with pytest.raises(BadKey, match=r"partition_key of operator 'o' failed for 'abc'"):
        operator.slots_of(["abcd", "abc"], 4)


def test_a_partition_key_that_leaves_the_process_fails_as_any_other() -> None:
    def leaves(key: str) -> str:
        raise SystemExit(3)

    operator = Operator("o", partition_key=leaves)
    with pytest.raises(BadKey, match=r"partition_key of operator 'o' failed for 'abc': SystemExit: 3"):
        operator.slots_of(["abc"], 4)


# migrate= ------------------------------------------------------------------------------------------------------------


def of_dict(old: dict[str, int]) -> int:
    return old["n"]


def with_more(old: Any, more: int = 1) -> int:
    return more


async def waits(old: Any) -> int:
    return 1


def two(old: Any, new: Any) -> int:
    return 1


def nothing() -> int:
    return 1


def unknown(old: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 1


def no_state(old: set[int] | list[int]) -> int:
    return 1


@pytest.mark.parametrize("function", [of_dict, with_more, lambda old: 1, partial(with_more, more=2)])
def test_plain_functions_of_one_argument(function: Any) -> None:
    migration = Operator("acc", state_type=int, migrate=function).migration
    assert migration is not None
    assert migration.decode(b"\x81\xa1n\x05") == {"n": 5}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (waits, "must be a plain function"),
        (two, "must take one argument"),
        (nothing, "must take one argument"),
        (unknown, "annotations cannot be resolved"),
        (no_state, "takes "),
        (dict, "is not a function"),
        (5, "is not a function"),
    ],
)
def test_what_could_only_fail_later_is_refused(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Operator("acc", state_type=int, migrate=function)


def test_it_needs_a_type() -> None:
    with pytest.raises(ConfigurationError, match="needs a state_type"):
        Operator("acc", migrate=of_dict)
