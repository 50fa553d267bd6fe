"""The command from end to end, on an engine in this process, and its provider as a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.result import Result, SearchResult, read
from benchmarks.driver.target import Outcome
from benchmarks.marketplace.provider.own import PROVIDER_VARIABLE, OwnProvider, read_book
from benchmarks.marketplace.provider.server import KEY
from tests.docs.snippets import ROOT

pytestmark = pytest.mark.slow

SMALL = "--size 0.005 --warm-up 0.5 --quiet"


def run(*words: str) -> tuple[int, str]:
    """Exit status and output. A process of its own: the application reads its environment once."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.marketplace", *" ".join(words).split()],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MARKETPLACE_")},
        check=False,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout + ended.stderr


def test_a_run_with_a_provider_that_declines_passes_its_audit(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    status, shown = run(
        "run --mix a --rate 15 --duration 4 --epoch 1",
        SMALL,
        "--provider own --declined 30 --resent 0.3",
        f"--out {out}",
    )
    assert status == 0, shown
    result = read(out)
    assert isinstance(result, Result)
    assert sum(result.outcomes.values()) == 60
    assert {"checkout", "delivery", "dashboard"} <= {*result.latency}
    assert {"add", "checkout-again"} <= {*result.steps}
    assert result.answered.count == 60, "steps are no transactions"
    assert result.settings["application"]["provider"]
    assert "ABORT" in shown, "a third of the payments was declined"
    assert re.search(r"audit +\d+ criteria on \d+ orders", shown)
    assert re.search(r"shares       checkout \d+\.\d\d% \(planned 30\.00%\), delivery", shown)
    assert sum(line.startswith("epoch") for line in shown.splitlines()) >= 3


@pytest.mark.parametrize(
    ("way", "rate", "least"), [("read", 40, 40), ("sql --replica own --snapshot-interval 1 --timeout 60", 8, 10)]
)
def test_dashboards_that_are_no_transactions_are_of_one_moment_too(
    tmp_path: Path, way: str, rate: int, least: int
) -> None:
    out = tmp_path / "result.json"
    status, shown = run(f"run --mix c --dashboard {way} --rate {rate} --duration 4", SMALL, f"--out {out}")
    assert status == 0, shown
    result = read(out)
    assert isinstance(result, Result)
    assert result.latency["dashboard"][Outcome.COMMITTED].count > least
    assert re.search(r"audit +requests that committed: .*, [1-9]\d dashboard", shown)


def test_a_closed_loop_keeps_as_many_under_way_and_a_sweep_goes_through_its_levels(tmp_path: Path) -> None:
    out = tmp_path / "sweep.json"
    status, shown = run("sweep --mix checkout-only --concurrency 2,4 --bound 60 --duration 1.5", SMALL, f"--out {out}")
    assert status == 0, shown
    result = read(out)
    assert isinstance(result, SearchResult)
    assert [(step.result.plan.concurrency, step.reasons) for step in result.steps] == [(2, []), (4, [])]
    assert "at once" in shown
    chart = tmp_path / "sweep.svg"
    status, shown = run(f"plot {out} --kind latency --out {chart}")
    assert status == 0, shown
    assert "transactions/s" in chart.read_text("utf-8")


def test_data_that_stays_is_loaded_run_on_and_audited_apart(tmp_path: Path) -> None:
    data, witness = f"--data-dir {tmp_path / 'data'}", f"--witness {tmp_path / 'witness'}"
    small = "--size 0.005"
    status, shown = run("load", small, data)
    assert status == 0, shown
    status, shown = run("run --mix b --rate 15 --duration 3 --loaded --no-audit", SMALL, data, witness)
    assert status == 0, shown
    assert run("audit", small, data, witness)[0] == 0
    file = msgspec.msgpack.decode((tmp_path / "witness").read_bytes())
    file["clients"][0]["mirror"][0][2] += 1
    (tmp_path / "witness").write_bytes(msgspec.msgpack.encode(file))
    status, shown = run("audit", small, data, witness)
    assert status == 1, "a seller was told another price"
    assert "VIOLATION    BAL: product" in shown


def test_wrong_options_are_refused_before_anything_starts() -> None:
    assert run("run --mix none")[0] == 2
    status, shown = run("run --on kafka://127.0.0.1:1 --clients 3 --size 0")
    assert status == 2
    assert "size factor" in shown
    status, shown = run("run --lose product.set_price")
    assert status == 2
    assert "app 'marketplace' has events" in shown


@contextmanager
def own_provider(directory: Path) -> Iterator[OwnProvider]:
    provider = OwnProvider(directory, declined=50)
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


def charge(url: str, number: str) -> str:
    body = {"invoice_number": number, "customer_id": 1, "cents": 5, "payment_type": "BOLETO"}
    request = urllib.request.Request(f"{url}/charge", json.dumps(body).encode(), {KEY: number}, method="POST")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.loads(answer.read())["status"])


def test_a_provider_that_is_killed_goes_on_at_its_address_with_what_it_has_decided(tmp_path: Path) -> None:
    numbers = [f"{each}-20260101-1" for each in range(20)]
    with own_provider(tmp_path) as provider:
        url = provider.url
        told = [charge(url, number) for number in numbers]
        assert {*told} == {"approved", "rejected"}
        provider.kill()
        with pytest.raises(OSError, match="refused"):
            charge(url, numbers[0])
        provider.start()
        assert provider.url == url
        assert [charge(url, number) for number in numbers] == told
        assert [(each.invoice_number, each.asked) for each in read_book(url)] == [(number, 2) for number in numbers]
    assert provider.pid is None


def test_a_command_names_its_provider_in_the_environment_while_it_runs() -> None:
    from benchmarks.marketplace.provider.own import provided

    before = os.environ.get(PROVIDER_VARIABLE)
    with provided(["run", "--provider", "own", "--rate", "5"]):
        url = os.environ[PROVIDER_VARIABLE]
        assert read_book(url) == []
    assert os.environ.get(PROVIDER_VARIABLE) == before
    with pytest.raises(OSError, match="refused"):
        read_book(url)
