"""Which lines of a traceback are the app's, and which exceptions it means."""

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from weakref import ref

import pytest

from styx.model.user_frames import CAUSES_MAX, FRAMES_MAX, Frame, UserFrames
from styx.values.codec import encode_strict


class Refused(Exception):
    """An exception of the app's own."""


def raised_by(code: Callable[[], object]) -> BaseException:
    try:
        code()
    except BaseException as error:  # noqa: BLE001 - that is what it is for
        return error
    raise AssertionError("nothing was raised")


def say(error: type[BaseException] | BaseException) -> Callable[[], object]:
    def raises() -> None:
        raise error

    return raises


def looks_up() -> object:
    return {"a": 1}["b"]


def asserts() -> None:
    assert not __name__


def reads() -> object:
    return json.loads("{")


def again() -> None:
    try:
        looks_up()
    except KeyError as error:
        raise Refused from error


def passes_on() -> None:
    try:
        looks_up()
    finally:
        gc.isenabled()


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        (say(Refused), True),
        (say(Refused("why")), True),
        (say(ValueError("too little")), True),
        (say(KeyError("no account")), True),
        (say(PermissionError("not yours")), True),
        (again, True),
        (say(RuntimeError("cannot be")), False),
        (say(TypeError), False),
        (say(NotImplementedError), False),
        (say(SystemExit(1)), False),
        (asserts, False),
        (looks_up, False),
        (passes_on, False),
        (reads, False),
        (lambda: int("x"), False),
        (lambda: 1 / 0, False),
    ],
    ids=map(str, range(16)),
)
def test_what_the_app_raises_on_purpose(code: Callable[[], object], meant: bool) -> None:
    frames = UserFrames()
    for _ in range(2):
        assert frames.raised_on_purpose(raised_by(code)) is meant


def test_an_exception_that_was_never_raised_is_not_meant() -> None:
    assert not UserFrames().raised_on_purpose(Refused())


def own(frames: tuple[Frame, ...]) -> list[str]:
    assert {Path(frame.file).name for frame in frames if frame.own} <= {Path(__file__).name}
    return [frame.function for frame in frames if frame.own]


def test_frames_outermost_first() -> None:
    frames = UserFrames().of(raised_by(looks_up))
    assert own(frames) == ["raised_by", "looks_up"]
    assert frames[-1].line == looks_up.__code__.co_firstlineno + 1


def test_the_library_that_raised_comes_last() -> None:
    *mine, last = UserFrames().of(raised_by(reads))
    assert own(tuple(mine))[-1] == "reads"
    assert (last.own, Path(last.file).name) == (False, "decoder.py")


def test_frames_of_the_engine_are_left_out() -> None:
    assert own(UserFrames().of(raised_by(lambda: encode_strict({1}))))[0] == "raised_by"


def test_the_script_that_starts_a_command_is_not_the_apps() -> None:
    frames = UserFrames()
    assert not frames.is_own_file(str(Path(sys.prefix) / "bin" / "styx"))
    assert frames.is_own_file(str(Path(sys.prefix).parent / "bank.py"))


def test_a_deep_traceback_is_cut() -> None:
    def deeper(depth: int) -> None:
        if depth:
            deeper(depth - 1)
        raise Refused

    frames = UserFrames().of(raised_by(lambda: deeper(100)))
    assert len(frames) == FRAMES_MAX


# What led to an exception --------------------------------------------------------------------------------------


def handles() -> None:
    try:
        looks_up()
    except KeyError:
        raise Refused  # noqa: B904 - that is what it is for


def hides() -> None:
    try:
        looks_up()
    except KeyError:
        raise Refused from None


def from_one_never_raised() -> None:
    raise Refused from ValueError("made only")


def in_a_library() -> None:
    try:
        reads()
    except ValueError as error:
        raise Refused from error


def causes(code: Callable[[], object]) -> list[tuple[str, str]]:
    """(what is said, function) of each other exception's lines."""
    told: list[tuple[str, str]] = []
    cause = ""
    for frame in UserFrames().of(raised_by(code)):
        cause = frame.cause or cause
        if cause:
            told.append((cause, frame.function))
    return told


def test_the_lines_of_its_cause() -> None:
    assert causes(again) == [("caused by KeyError: b", "again"), ("caused by KeyError: b", "looks_up")]
    assert causes(handles) == [("while handling KeyError: b", "handles"), ("while handling KeyError: b", "looks_up")]
    assert causes(hides) == []
    assert causes(from_one_never_raised) == [("caused by ValueError: made only", "")]
    said = "caused by JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert causes(in_a_library)[:2] == [(said, "in_a_library"), (said, "reads")]
    assert len(causes(in_a_library)) == 3, "the library's line"


def test_what_is_handled_around_the_engine_is_no_cause() -> None:
    try:
        looks_up()
    except KeyError:
        assert causes(say(Refused())) == []
        assert len(causes(handles)) == 2


def test_causes_have_an_end() -> None:
    def chain(length: int) -> None:
        try:
            if length:
                chain(length - 1)
        except Refused as error:
            raise Refused(length) from error
        raise Refused(length)

    words = [frame.cause for frame in UserFrames().of(raised_by(lambda: chain(10))) if frame.cause]
    assert len(words) == CAUSES_MAX

    first, second = Refused(1), Refused(2)
    first.__cause__, second.__cause__ = second, first
    words = [frame.cause for frame in UserFrames().of(raised_by(say(first))) if frame.cause]
    assert words == ["caused by Refused: 2"]


def test_a_cause_that_cannot_be_told() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def refuses() -> None:
        raise Refused from Unprintable(1, 2)

    assert causes(refuses) == [("caused by Unprintable: <the exception's message could not be printed>", "")]


def test_nothing_is_kept_alive() -> None:
    frames = UserFrames()
    error = raised_by(again)
    assert frames.of(error)
    frames.raised_on_purpose(error)
    gone = ref(error)
    del error
    assert gone() is None
