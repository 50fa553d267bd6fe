"""The ring of mistakes: each place once, the last seen first, and no more than fit."""

import pytest

from styx.model.user_frames import Frame
from styx.reports import mistakes as mistakes_module
from styx.reports.mistakes import Mistake, Mistakes, places, printable, read_page


def mistake(line: int, key: str = "a", message: str = "b") -> Mistake:
    return Mistake(
        time="2025-01-31T12:00:00.000+00:00",
        kind="abort",
        operator="account",
        key=key,
        function="pay",
        tid=line,
        epoch=1,
        type="KeyError",
        message=message,
        frames=places([Frame(__file__, line, "pay")]),
    )


def test_a_place_is_kept_once() -> None:
    kept = Mistakes()
    for key in ("a", "b", "c"):
        kept.add(mistake(3, key))
        kept.add(mistake(4, key))
    kept.add(mistake(3, "d"))
    total, found = read_page(kept.page())
    assert total == 7
    assert [(each.tid, each.key, each.times) for each in found] == [(3, "d", 4), (4, "c", 3)]


def test_of_a_cause_the_lines_are_the_place_and_not_the_words() -> None:
    kept = Mistakes()
    for key in ("a", "b"):
        one = mistake(3)
        one.frames += places([Frame(__file__, 7, "look", cause=f"caused by KeyError: {key}"), Frame("", 0, "")])
        kept.add(one)
    ((found,), total) = (read_page(kept.page())[1], kept.total)
    assert (found.times, total) == (2, 2)
    assert found.text().splitlines()[-3:-1] == ["  caused by KeyError: b", f"  {found.frames[1]}"]


def test_what_was_not_seen_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes_module, "MISTAKES_MAX", 3)
    kept = Mistakes()
    for line in (1, 2, 3, 1, 4):
        kept.add(mistake(line))
    total, found = read_page(kept.page())
    assert (total, [each.tid for each in found]) == (5, [4, 1, 3])


def test_a_page_of_something_else() -> None:
    with pytest.raises(ValueError, match="total"):
        read_page(b"{}")


def test_text_begins_no_line_of_its_own() -> None:
    text = mistake(1, key="x\n2025 ERROR forged", message="m\x1b[2J").text()
    assert text.splitlines()[0] == ("account/x\\n2025 ERROR forged.pay aborted: KeyError: m\\x1b[2J  (tid 1, epoch 1)")
    assert printable("Zürich") == "Zürich"
