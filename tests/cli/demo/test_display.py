"""Lines in a pipe, a bar on a terminal."""

import io
import sys
import time

import pytest

from styx.cli.demo.display import LiveDisplay, PlainDisplay, display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {"TERM": "xterm"}, LiveDisplay),
        (Terminal(), {"TERM": "dumb"}, PlainDisplay),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}, PlainDisplay),
        (io.StringIO(), {"TERM": "xterm"}, PlainDisplay),
    ],
)
def test_choice(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, environment: dict[str, str], expected: type
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    assert type(display()) is expected


def test_plain_lines_and_not_too_many(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with PlainDisplay() as shown:
        shown.step("engine", "is up")
        for tenth in range(21):
            now_s = 100 + tenth / 10
            shown.progress(tenth / 20, f"at {tenth}")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["engine     is up", "            50%  at 10", "           100%  at 20"]


def test_live_lines_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", stream)
    with LiveDisplay() as shown:
        shown.step("crash", "[not markup] process 7")
        shown.progress(0.5, "1,000 committed")
    text = stream.getvalue()
    assert "[not markup] process 7" in text
    assert "\x1b[" in text
