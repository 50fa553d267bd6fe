"""`styx errors`: what processes remember of mistakes."""

import json

from styx.reports.mistakes import Mistakes
from tests.cli.conftest import Styx
from tests.gateway.fake_engine import FakeEngine
from tests.reports.test_mistakes import mistake


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


def test_nobody_or_somebody_else(styx: Styx, url: str) -> None:
    ran = styx("errors", "--url", url)
    assert ran.status == 1
    assert "no styx dev (it answers with status 404)" in ran.err
    assert "--url" in styx("errors", "--url", "http://127.0.0.1:1").err
    assert styx("errors", "--limit", "0").status == 2
