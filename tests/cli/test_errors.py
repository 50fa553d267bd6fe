"""`styx errors`: what processes remember of mistakes."""

import json

import pytest

from styx.cli import errors, facts_client
from styx.reports.mistakes import Mistakes
from tests.cli.conftest import Styx
from tests.gateway.fake_engine import FakeEngine
from tests.reports.test_mistakes import mistake

FACTS = "the-token-of-facts"


class Reports:
    def __init__(self) -> None:
        self.mistakes = Mistakes()


def test_the_last_ones(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.reports = Reports()  # type: ignore[attr-defined]
    try:
        for number in (3, 3, 4):
            engine.reports.mistakes.add(mistake(number))  # type: ignore[attr-defined]
        ran = styx("errors", "--url", url)
        assert ran.status == 0
        assert "account/a.pay aborted: KeyError: b  (tid 3, epoch 1)\n" in ran.out
        assert ", 2 times" in ran.out
        assert ran.out.endswith("3 seen at 2 places\n")
        [line] = styx("errors", "--url", url, "--limit", "1", "--json").out.splitlines()
        assert json.loads(line)["tid"] == 4
    finally:
        del engine.reports  # type: ignore[attr-defined]


def test_none(styx: Styx, url: str, engine: FakeEngine) -> None:
    engine.reports = Reports()  # type: ignore[attr-defined]
    try:
        assert styx("errors", "--url", url).out == "No mistake was seen.\n"
    finally:
        del engine.reports  # type: ignore[attr-defined]


@pytest.mark.parametrize("local", [False, True])
def test_a_worker_is_asked_with_its_own_token_also_where_an_api_key_is_set(
    styx: Styx, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    asked: list[str | None] = []

    def fetch(url: str, token: str | None = None) -> tuple[int, bytes]:
        asked.append(token)
        return (200, Mistakes().page()) if token == FACTS else (401, b"")

    monkeypatch.setattr(facts_client, "fetch", fetch)
    monkeypatch.setattr(errors, "_local", lambda: ("http://127.0.0.1:7",) if local else ())
    monkeypatch.setenv("STYX_API_KEY", "key")
    monkeypatch.setenv("STYX_FACTS_TOKEN", FACTS)
    assert styx("errors", *(() if local else ("--url", "http://127.0.0.1:7"))).status == 0
    assert asked == ([FACTS] if local else ["key", FACTS])
    monkeypatch.setenv("STYX_FACTS_TOKEN", "another-token-of-facts")
    ran = styx("errors")
    assert ran.status == 1
    assert "STYX_SECRET" in ran.err


def test_nobody_or_somebody_else(styx: Styx, url: str) -> None:
    ran = styx("errors", "--url", url)
    assert ran.status == 1
    assert "no styx dev (it answers with status 404)" in ran.err
    assert "--url" in styx("errors", "--url", "http://127.0.0.1:1").err
    assert styx("errors", "--limit", "0").status == 2
