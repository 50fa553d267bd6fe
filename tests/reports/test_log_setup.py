"""Log lines as JSON, whatever they hold, and what a line made inside a function is about."""

import json
import logging
from typing import Any

import pytest

import styx
from styx import App, ConfigurationError, Context, Operator
from styx.reports.json_lines import FIELDS, json_wanted
from styx.reports.log_setup import JsonFormatter, add_function, replaying_is

account = Operator("account", key_type=(int, str))


@account.register
async def act(ctx: Context) -> None:
    helps()


def helps() -> None:
    logging.getLogger("my.app").warning("sees %d", 5)


def line(record: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter("dev").format(record)
    assert "\n" not in text
    decoded: dict[str, Any] = json.loads(text)
    return decoded


def made(message: object, *args: object, error: BaseException | None = None, **fields: object) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("my.app", logging.ERROR, __file__, 1, message, args, info)
    if fields:
        setattr(record, FIELDS, fields)
    return record


def test_a_line() -> None:
    decoded = line(made("paid %d", 5))
    assert decoded.pop("time").endswith("+00:00")
    assert decoded == {"level": "ERROR", "logger": "my.app", "process": "dev", "message": "paid 5"}


def test_an_exception() -> None:
    decoded: dict[str, Any] = {}
    try:
        raise KeyError("b")
    except KeyError as error:
        decoded = line(made("failed", error=error))
    assert decoded["traceback"][0].startswith("Traceback")
    assert decoded["traceback"][-1] == "KeyError: 'b'"


@pytest.mark.parametrize(
    "record",
    [
        made("half \ud800"),
        made("%d", "no number"),
        made("two\nlines"),
        made("m", a=2**200, b={1: object()}, c="\ud800"),
    ],
    ids=["surrogate", "arguments", "lines", "fields"],
)
def test_no_line_is_lost(record: logging.LogRecord) -> None:
    assert line(record)["level"] == "ERROR"


def test_a_field_that_json_has_not_leaves_the_others_as_they_are() -> None:
    odd = logging.LogRecord("x", logging.INFO, __file__, 1, "paid", (), None)
    setattr(odd, FIELDS, {"tid": 4, "name": "half \ud800", "cents": 10**400, "key": ("a", 1)})
    told = line(odd)
    assert (told["message"], told["tid"], told["key"]) == ("paid", 4, ["a", 1])
    assert told["name"] == r"'half \ud800'"
    assert told["cents"] == 10**400


def test_the_variable() -> None:
    assert json_wanted({"STYX_LOG_FORMAT": "json"})
    assert not json_wanted({"STYX_LOG_FORMAT": "text"})
    assert not json_wanted({"STYX_LOG_FORMAT": ""})
    with pytest.raises(ConfigurationError, match="text or json"):
        json_wanted({"STYX_LOG_FORMAT": "xml"})


@pytest.mark.anyio
async def test_a_line_made_inside_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(line(record))

    handler = Kept()
    handler.addFilter(add_function)
    replaying_is(lambda: True)
    logging.getLogger("my.app").addHandler(handler)
    try:
        async with styx.embedded(App("bank", [account])) as client:
            await client.call("account", (7, "x"), "act")
        logging.getLogger("my.app").warning("outside")
    finally:
        logging.getLogger("my.app").removeHandler(handler)
        replaying_is(lambda: False)
    inside, outside = lines
    assert {name: inside[name] for name in ("message", "operator", "key", "function", "replaying")} == {
        "message": "sees 5",
        "operator": "account",
        "key": [7, "x"],
        "function": "act",
        "replaying": True,
    }
    assert inside["tid"] > 0
    assert "operator" not in outside
