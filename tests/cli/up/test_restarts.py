"""When a dead child is started again, and what children are told."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from styx.cli.common_options import ClusterNumbers, DataOptions
from styx.cli.front_options import FrontOptions
from styx.cli.up.child import QUICK_DEATHS_MAX, STEADY_SECONDS, Child, Restarts, how_it_ended
from styx.cli.up.plan import UpPlan, child_environment


def test_pauses_grow_until_it_is_given_up() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after(1, 0.5) for _ in range(QUICK_DEATHS_MAX)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, None]


def test_who_lived_for_long_begins_anew() -> None:
    restarts = Restarts()
    for _ in range(3 * QUICK_DEATHS_MAX):
        assert restarts.pause_after(-9, 0.5) == 0.2
        assert restarts.pause_after(-9, 0.5) == 0.4
        assert restarts.pause_after(-9, STEADY_SECONDS) == 0.2
        restarts = Restarts()


def test_a_steady_life_forgets_quick_deaths() -> None:
    restarts = Restarts()
    for _ in range(QUICK_DEATHS_MAX - 1):
        restarts.pause_after(1, 0.0)
    assert restarts.pause_after(1, STEADY_SECONDS) == 0.2


def test_wrong_usage_is_given_up_at_once() -> None:
    assert Restarts().pause_after(2, 100.0) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "ended with exit code 1"), (-9, "was killed by SIGKILL"), (-63, "was killed by signal 63")],
)
def test_words(code: int, words: str) -> None:
    assert how_it_ended(code) == words


def test_environment_of_children() -> None:
    environment = {
        "PATH": "/bin",
        "STYX_PORT": "9",
        "STYX_SECRET": "old",
        "STYX_SECRET_FILE": "f",
        "STYX_S3_SECRET_KEY": "k",
        "STYX_TLS_KEY": "t",
        "STYX_KAFKA_PASSWORD": "p",
        "STYX_DEBUG": "1",
        "STYX_PLAIN": "1",
    }
    assert child_environment("s", environment) == {
        "PATH": "/bin",
        "STYX_SECRET": "s",
        "STYX_S3_SECRET_KEY": "k",
        "STYX_TLS_KEY": "t",
        "STYX_KAFKA_PASSWORD": "p",
        "STYX_DEBUG": "1",
        "STYX_PLAIN": "1",
    }


def test_a_child_has_as_long_without_its_supervisor_as_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function within its limit, which the supervisor would wait for, is not cut off."""
    given: list[dict[str, str]] = []

    async def start(*_: str, env: dict[str, str], **__: object) -> NoReturn:
        given.append(env)
        raise OSError("not started")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    child = Child("one", list, {"PATH": "/bin"}, print, lambda: None, stop_s=632.0)
    with pytest.raises(OSError, match="not started"):
        asyncio.run(child.run())
    assert given == [{"PATH": "/bin", "STYX_SUPERVISED": "632"}]


def plan(host: str) -> UpPlan:
    return UpPlan(
        app="bank",
        cluster="c",
        workers=2,
        data=DataOptions(log="kafka://h", store="s3://b/p", options={"s3_endpoint": "http://h:1"}),
        host=host,
        front=FrontOptions(allow_host=("shop.example.com", "*.internal"), allow_origin=("https://shop.example.com",)),
        gateway_ports=[8080, 8081],
        coordinator_port=7,
        facts_port=8,
        numbers=ClusterNumbers(
            slots=4,
            snapshot_interval=1.0,
            silence=0.5,
            replication=3,
            reply_partitions=2,
            function_seconds_max=45.0,
            keep_log=True,
        ),
        directory=Path("x"),
    )


def test_words_are_options_that_the_commands_have(monkeypatch: pytest.MonkeyPatch) -> None:
    from styx.cli.application import application

    parser = application()
    wanted = plan("0.0.0.0")
    assert wanted.gateway_urls == ["http://127.0.0.1:8080", "http://127.0.0.1:8081"]
    for words in (wanted.coordinator_words(3), wanted.worker_words("w", 8082), wanted.gateway_words("g", 8080)):
        _, bound, _ = parser.parse_args(words, exit_on_error=False, print_error=False)
        assert bound.arguments["cluster"] == "c"
        if words[0] == "coordinator":
            assert (bound.arguments["workers"], bound.arguments["numbers"]) == (3, wanted.numbers)
            assert bound.arguments["data"] == wanted.data
        else:
            assert bound.arguments["coordinator"] == "127.0.0.1:7"
        if words[0] == "gateway":
            assert bound.arguments["front"] == wanted.front
