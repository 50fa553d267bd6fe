"""The lines about refusals: what is in one, and how many there are."""

import json

import pytest

from styx.gateway.auth.audit import LINES_AT_ONCE, TEXT_CHARS_MAX, Audit


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    found = [json.loads(record.getMessage()) for record in caplog.records if record.name == "styx.audit"]
    caplog.clear()
    return found


def test_a_line(caplog: pytest.LogCaptureFixture) -> None:
    Audit().refused(
        1.0, 403, "forbidden", "shop may not\n" + "x" * 9999, client="10.0.0.1", who=None, action="y" * 9999
    )
    (line,) = lines(caplog)
    assert (line["event"], line["status"], line["code"], line["client"]) == ("refused", 403, "forbidden", "10.0.0.1")
    assert "who" not in line
    assert len(str(line["action"])) == TEXT_CHARS_MAX
    assert len(str(line["message"])) == 2 * TEXT_CHARS_MAX


def test_an_attacker_does_not_fill_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit()
    for _ in range(10_000):
        audit.refused(1.0, 401, "unauthenticated", "no")
    assert len(lines(caplog)) == LINES_AT_ONCE
    audit.flush(1.0)
    assert lines(caplog) == []
    audit.refused(1.1, 401, "unauthenticated", "no")
    (line,) = lines(caplog)
    assert line["left_out"] == 10_000 - LINES_AT_ONCE
    audit.refused(1.1, 401, "unauthenticated", "no")
    audit.flush(2.0)
    (last,) = lines(caplog)
    assert last["left_out"] == 1, "told also if nothing is refused any more"
    audit.flush(3.0)
    assert lines(caplog) == []
