"""The command line of the reference lines, as far as it can be tested without measuring."""

from __future__ import annotations

import pytest

from benchmarks.reference import __main__
from benchmarks.reference.__main__ import main
from benchmarks.reference.line import RATES_MAX, USAGE, rates_of
from styx.errors import ConfigurationError


def test_rates() -> None:
    assert rates_of("100, 2e3,0.5,") == [100.0, 2000.0, 0.5]
    assert rates_of("") == []


@pytest.mark.parametrize("text", ["100;200", "fast", ",".join(["1"] * (RATES_MAX + 1))])
def test_rates_that_cannot_be(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--rates"):
        rates_of(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["echo", "--loaded"], "--loaded"),
        (["echo", "--no-search", "--rates", ""], "--no-search"),
        (["echo", "--rates", "many"], "--rates many"),
        (["echo", "--zipf", "2"], "Zipf"),
        (["postgres", "--keys", "1"], "at least 2 keys"),
        (["echo", "--rates", "100,-1"], "--rate"),
        (["postgres", "--connections", "0"], "--connections"),
        (["postgres", "--loaded"], "--loaded"),
        (["postgres", "--duration", "0"], "--duration"),
    ],
)
def test_wrong_options_are_told_before_anything_is_started(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # nothing could be started
    assert main(words) == USAGE
    assert said in capsys.readouterr().err


def test_the_bare_loop_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bare", "--transactions", "50", "--runs", "2"]) == 0
    assert capsys.readouterr().out.count("µs a transaction") == 2


@pytest.mark.parametrize("words", [[], ["mysql"]])
def test_a_line_must_be_chosen(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == USAGE
    assert "LINE" in capsys.readouterr().err


def test_a_library_that_is_not_installed_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError("No module named 'asyncpg'", name="asyncpg")

    monkeypatch.setattr(__main__, "import_module", missing)
    with pytest.raises(SystemExit):
        main(["postgres"])
    assert "postgres needs asyncpg, from the extra 'bench'" in capsys.readouterr().err
