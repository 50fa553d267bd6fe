"""What the processes of `styx up` are given: their environment, and options that their commands have."""

from pathlib import Path

import pytest

from styx.cli.common_options import ClusterNumbers, DataOptions
from styx.cli.front_options import FrontOptions
from styx.cli.up.plan import UpPlan, child_environment


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
    members = (wanted.worker_words("w", 8082), wanted.gateway_words("g", 8080), wanted.ingest_words("i"))
    for words in (wanted.coordinator_words(3), *members):
        _, bound, _ = parser.parse_args(words, exit_on_error=False, print_error=False)
        assert bound.arguments["cluster"] == "c"
        if words[0] == "coordinator":
            assert (bound.arguments["workers"], bound.arguments["numbers"]) == (3, wanted.numbers)
            assert bound.arguments["data"] == wanted.data
        else:
            assert bound.arguments["coordinator"] == "127.0.0.1:7"
        if words[0] == "gateway":
            assert bound.arguments["front"] == wanted.front
