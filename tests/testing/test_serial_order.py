"""Golden cases for each rule of the order inside a transaction; every expectation is written by hand.

A script runs on node "root". Its steps: ("sync" | "async", key, script) calls, "put X" writes, "get" and any other word
are recorded. The trace shows `key(` when a function starts, `key)` when it returns, and `key=X` for what `get` read.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Context, Limits, Operator
from styx.errors import ContextClosed
from styx.messages import Request
from styx.model.execution import Outcome
from styx.testing import SerialReference

Script = list[Any]


class Nodes:
    """A reference with the scripted app, and the trace of what ran."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.trace: list[str] = []
        self.paths: list[tuple[bytes, bytes]] = []
        node = Operator("node")

        @node.register
        async def run(ctx: Context, script: Script) -> Any:
            self.trace.append(f"{ctx.key}(")
            self.paths.append((ctx._path, ctx._chain))
            result = await self._steps(ctx, script)
            self.trace.append(f"{ctx.key})")
            return result

        self.reference = SerialReference(App("nodes", [node]), limits)

    async def _steps(self, ctx: Context, script: Script) -> Any:
        result = None
        for step in script:
            if isinstance(step, list):
                kind, key, inner = step
                if kind == "async":
                    ctx.call_async("node", "run", key, (inner,))
                else:
                    result = await ctx.call("node", "run", key, (inner,))
            elif step == "get":
                result = await ctx.get()
                self.trace.append(f"{ctx.key}={result}")
            elif step == "delete":
                await ctx.delete()
            elif step.startswith("put "):
                await ctx.put(step[4:])
            elif step.startswith("raise "):
                raise ValueError(step[6:])
        return result

    def run(self, script: Script) -> Outcome:
        params = msgspec.msgpack.encode([script])
        return self.reference.run(1, 0, Request("r", "node", "root", "run", params))

    def traced(self, script: Script) -> str:
        outcome = self.run(script)
        assert outcome.error is None
        return " ".join(self.trace)

    def state(self) -> dict[Any, Any]:
        return {key: msgspec.msgpack.decode(data) for (_, key), data in self.reference.state.items()}


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def a(key: str, *script: Any) -> Script:
    return ["async", key, list(script)]


def s(key: str, *script: Any) -> Script:
    return ["sync", key, list(script)]


def test_a_synchronous_call_runs_at_its_place(nodes: Nodes) -> None:
    assert nodes.traced(["put 1", s("b"), "get"]) == "root( b( b) root=1 root)"


def test_an_asynchronous_call_runs_after_its_caller_returned(nodes: Nodes) -> None:
    assert nodes.traced([a("b"), "put 1", "get"]) == "root( root=1 root) b( b)"


def test_asynchronous_calls_run_in_the_order_they_were_made(nodes: Nodes) -> None:
    assert nodes.traced([a("b"), a("c"), a("d")]) == "root( root) b( b) c( c) d( d)"


def test_asynchronous_calls_run_depth_first(nodes: Nodes) -> None:
    script = [a("b", a("c", a("d")), a("e")), a("f")]
    assert nodes.traced(script) == "root( root) b( b) c( c) d( d) e( e) f( f)"


def test_an_asynchronous_call_of_a_synchronous_callee_waits_for_the_outermost_function(nodes: Nodes) -> None:
    assert nodes.traced([s("b", s("c", a("d"))), "put 1", "get"]) == "root( b( c( c) b) root=1 root) d( d)"


def test_asynchronous_calls_of_a_chain_run_in_path_order_not_in_returning_order(nodes: Nodes) -> None:
    # "x" is call 0 of the root and the root returns last; "y" is call 0 of call 1.
    assert nodes.traced([a("x"), s("b", a("y")), a("z")]) == "root( b( b) root) x( x) y( y) z( z)"


def test_a_chain_begins_at_an_asynchronous_call(nodes: Nodes) -> None:
    # "d" is called below "b" synchronously and asynchronously; b's chain ends before "f" starts.
    script = [a("b", s("c", a("d")), a("e")), a("f")]
    assert nodes.traced(script) == "root( root) b( c( c) b) d( d) e( e) f( f)"


def test_a_call_back_sees_the_waiting_callers_writes_and_the_caller_sees_its(nodes: Nodes) -> None:
    script = ["put 1", s("b", s("root", "get", "put 2")), "get"]
    assert nodes.traced(script) == "root( b( root( root=1 root) b) root=2 root)"
    assert nodes.state() == {"root": "2"}


def test_an_asynchronous_call_to_the_own_entity_sees_what_the_caller_wrote_after_it(nodes: Nodes) -> None:
    assert nodes.traced([a("root", "get"), "put 1"]) == "root( root) root( root=1 root)"


def test_branches_of_a_diamond_see_each_other_in_order(nodes: Nodes) -> None:
    script = [a("b", a("d", "put 1")), a("c", a("d", "get", "put 2"))]
    assert nodes.traced(script) == "root( root) b( b) d( d) c( c) d( d=1 d)"
    assert nodes.state() == {"d": "2"}


def test_a_synchronous_call_after_an_asynchronous_one_does_not_see_it(nodes: Nodes) -> None:
    assert nodes.traced([a("b", "put 1"), s("b", "get")]) == "root( b( b=None b) root) b( b)"


def test_a_blind_write_hides_the_committed_state_and_a_delete_hides_the_write(nodes: Nodes) -> None:
    nodes.run(["put 1"])
    nodes.trace.clear()
    assert nodes.traced(["put 2", "get", "delete", "get"]) == "root( root=2 root=None root)"
    assert nodes.state() == {}


def test_the_reply_is_the_roots_return_value_whatever_its_branches_do(nodes: Nodes) -> None:
    outcome = nodes.run(["put 1", a("root", "put 2", "get"), "get"])
    assert outcome == Outcome(msgspec.msgpack.encode("1"), None)
    assert nodes.state() == {"root": "2"}


def test_none_is_a_reply(nodes: Nodes) -> None:
    assert nodes.run([]) == Outcome(b"\xc0", None)


def test_paths_have_two_bytes_a_step_and_count_both_kinds_of_calls(nodes: Nodes) -> None:
    nodes.run([a("x"), s("b", s("c"), a("y")), a("z", s("w"))])
    assert nodes.paths == [
        (b"", b""),
        (b"\0\1", b""),
        (b"\0\1\0\0", b""),
        (b"\0\0", b"\0\0"),
        (b"\0\1\0\1", b"\0\1\0\1"),
        (b"\0\2", b"\0\2"),
        (b"\0\2\0\0", b"\0\2"),
    ]


# The first exception in this order ends the transaction ---------------------------------------------------


def error(outcome: Outcome) -> str:
    assert outcome.error is not None
    code, kind, message = outcome.error
    assert (code, kind, outcome.result) == ("aborted", "ValueError", None)
    return message


def test_an_exception_undoes_everything(nodes: Nodes) -> None:
    nodes.run(["put 1"])
    assert error(nodes.run(["put 2", s("b", "put 3"), a("c", "raise late")])) == "late"
    assert nodes.state() == {"root": "1"}


def test_the_root_raises_before_any_branch(nodes: Nodes) -> None:
    assert error(nodes.run([a("b", "raise branch"), "raise root"])) == "root"
    assert nodes.trace == ["root("]


def test_of_two_failing_branches_the_first_in_path_order_counts(nodes: Nodes) -> None:
    assert error(nodes.run([a("b", a("c", "raise deep")), a("d", "raise shallow")])) == "deep"
    assert "d(" not in nodes.trace


def test_a_callees_exception_does_not_reach_its_caller() -> None:
    seen: list[str] = []
    node = Operator("node")

    @node.register
    async def fail(ctx: Context) -> None:
        raise ValueError("mine")

    @node.register
    async def careful(ctx: Context) -> str:
        try:
            await ctx.call(node, fail, "b")
        except ValueError:
            seen.append("caught")
        finally:
            try:
                await ctx.put("written while closing")
            except ContextClosed as refusal:
                seen.append(type(refusal).__name__)
        return "survived"

    reference = SerialReference(App("nodes", [node]))
    outcome = reference.run(1, 0, Request("r", "node", "a", "careful", b"\x90"))
    assert error(outcome) == "mine"
    assert seen == ["ContextClosed"]
    assert reference.state == {}


# Limits ------------------------------------------------------------------------------------------------------


def nested(kind: str, depth: int) -> Script:
    script: Script = []
    for _ in range(depth):
        script = [[kind, "n", script]]
    return script


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_transaction_may_run_as_many_functions_as_the_limit_says(kind: str) -> None:
    nodes = Nodes(Limits(invocations_max=5))
    assert nodes.run(nested(kind, 4)).error is None
    outcome = nodes.run(nested(kind, 5))
    assert outcome.error is not None
    assert outcome.error[:2] == ("aborted", "CallLimitExceeded")
    assert "more than 5 functions (Limits.invocations_max; " in outcome.error[2]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_arguments_count_as_one_call_more_for_each_share_of_the_bytes(kind: str) -> None:
    nodes = Nodes(Limits(invocations_max=100, transaction_bytes_max=100_000))
    padding = ["x" * 9_995]  # with brackets and length 10,000 bytes: each call counts as eleven
    assert nodes.run([[kind, "n", padding]] * 9).error is None
    outcome = nodes.run([[kind, "n", padding]] * 10)
    assert outcome.error == (
        "aborted",
        "CallLimitExceeded",
        "the transaction's calls have more than 100000 bytes of arguments and results (Limits.transaction_bytes_max; "
        "each call counts as at least 1000): hand over less, or split it over several requests",
    )
    outcome = nodes.run([[kind, "n", []]] * 100)
    assert outcome.error is not None
    assert "more than 100 functions (Limits.invocations_max; those with large" in outcome.error[2]


def test_results_count_in_the_same_way_for_who_waits_for_them() -> None:
    nodes = Nodes(Limits(invocations_max=100, transaction_bytes_max=100_000))
    nodes.run([s("n", "put " + "x" * 11_997)])  # a str of 12,000 bytes: each result counts as twelve
    assert nodes.run([s("n", "get")] * 7).error is None
    outcome = nodes.run([s("n", "get")] * 8)
    assert outcome.error is not None
    assert outcome.error[1] == "CallLimitExceeded"
    assert "more than 100000 bytes of arguments and results" in outcome.error[2]
    assert nodes.run([a("n", "get")] * 98).error is None, "nobody gets these"


def test_a_call_counts_when_it_is_made_so_that_an_exception_before_that_comes_first() -> None:
    nodes = Nodes(Limits(invocations_max=3))
    assert error(nodes.run([s("b", "raise early"), a("c"), a("d")])) == "early"
    for too_many in ([a("b", "raise late"), a("c"), a("d")], [a("b", a("c")), a("d")], [s("b", a("c"), a("d"))]):
        outcome = nodes.run(too_many)
        assert outcome.error is not None
        assert outcome.error[1] == "CallLimitExceeded"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_endless_recursion_ends_at_the_depth_limit_without_python_recursion(kind: str) -> None:
    node = Operator("node")

    @node.register
    async def again(ctx: Context) -> None:
        if kind == "sync":
            await ctx.call(node, again, "n")
        else:
            ctx.call_async(node, again, "n")

    reference = SerialReference(App("nodes", [node]))
    outcome = reference.run(1, 0, Request("r", "node", "n", "again", b"\x90"))
    assert outcome.error is not None
    assert outcome.error[:2] == ("aborted", "CallDepthExceeded")
    assert len(reference.entities) == Limits().call_depth_max + 1
