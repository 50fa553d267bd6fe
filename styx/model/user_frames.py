"""From an exception to the lines of the app's own code that led to it, and to whether the app meant it.

Frames of this package, of the standard library and of installed packages are left out. Only file names, line numbers
and names are kept, never an exception, a traceback or a frame.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dis import opmap
from inspect import unwrap
from pathlib import PurePath
from types import CodeType, FrameType, TracebackType
from typing import Final, NamedTuple

from styx.errors import FunctionTooLong, NondeterministicFunction, describe

FRAMES_MAX: Final = 20
"""Frames told of one exception: the innermost ones."""
CAUSES_MAX: Final = 3
"""Exceptions told of behind the one that was raised."""
DEPTH_MAX: Final = 2_000
"""Frames looked at of one traceback."""
REMEMBERED_MAX: Final = 1_000
"""Places where exceptions were raised, and files, whose kind is remembered."""

DECLARED_BUILTINS: Final = (ValueError, LookupError, PermissionError)
"""Builtin exceptions, with the builtin ones below them, that apps raise to refuse something."""

_HERE: Final = f"{PurePath(__file__).parents[1]}/"
_COMPILED: Final = "styx/"
"""Compiled modules of this package give their file like this."""
_APP_OF_OURS: Final = f"{_HERE}cli/demo/"
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "/lib/python3.")
_OF_PYTHON: Final = (f"{sys.prefix}/lib", f"{sys.prefix}/bin/")
"""Libraries, and the scripts that start commands such as `styx`."""
_RAISE: Final = opmap["RAISE_VARARGS"]
_traceback_of: Final[Callable[[BaseException], TracebackType | None]] = BaseException.__dict__["__traceback__"].__get__
"""Python's own attribute, whatever a class of the app's defines under the name."""
_cause_of: Final[Callable[[BaseException], BaseException | None]] = BaseException.__dict__["__cause__"].__get__
_context_of: Final[Callable[[BaseException], BaseException | None]] = BaseException.__dict__["__context__"].__get__
_is_context_hidden: Final[Callable[[BaseException], bool]] = BaseException.__dict__["__suppress_context__"].__get__


class Frame(NamedTuple):
    """One line of a traceback. `own`: of the app; else it is where a library raised, which only comes last.

    `cause`: with this line begin those of another exception, which led to the one before: `caused by KeyError: a`. One
    that was made and never raised has no line: `file` is empty. `defines`: the function's definition begins in this
    line, with its decorators.
    """

    file: str
    line: int
    function: str
    own: bool = True
    cause: str = ""
    defines: bool = False


class UserFrames:
    """Finds the app's frames, and remembers its findings by place, so that a frequent exception costs little."""

    def __init__(self) -> None:
        self._own_files: dict[str, bool] = {}
        self._meant: dict[tuple[int, int, type], tuple[bool, CodeType]] = {}

    def of(self, error: BaseException) -> tuple[Frame, ...]:
        """The app's frames, outermost first; then the innermost one, if that is a library's; then those of what caused
        it, or of what it came from while that was handled, and so on.

        If it has none itself, those of its cause stand for it: Python makes a `RuntimeError` of a `StopIteration`.
        """
        frames = self._of(error)
        cause = None if frames else _cause_of(error)
        if cause is not None:
            error, frames = cause, self._of(cause)
        return frames + self._causes(error) if frames else frames

    def _causes(self, error: BaseException) -> tuple[Frame, ...]:
        found, told = list[Frame](), [error]
        for _ in range(CAUSES_MAX):
            cause, word = _cause_of(error), "caused by"
            if cause is None and not _is_context_hidden(error):
                cause, word = _handled_within(error), "while handling"
            if cause is None or any(cause is each for each in told):
                break
            frames = self._of(cause)
            if frames or word == "caused by":
                kind, message = describe(cause)
                first = frames[0] if frames else Frame("", 0, "")
                found += [first._replace(cause=f"{word} {kind}: {message}" if message else f"{word} {kind}")]
                found += frames[1:]
            told.append(cause)
            error = cause
        return tuple(found)

    def _of(self, error: BaseException) -> tuple[Frame, ...]:
        found: list[Frame] = []
        traceback, last = _traceback_of(error), None
        for _ in range(DEPTH_MAX):
            if traceback is None:
                break
            if self.is_own(traceback.tb_frame.f_code):
                found.append(_frame(traceback.tb_frame, traceback.tb_lineno))
            last = traceback
            traceback = traceback.tb_next
        frames = found[-FRAMES_MAX:]
        if frames and last is not None and not self.is_own(last.tb_frame.f_code):
            innermost = _frame(last.tb_frame, last.tb_lineno)
            if not is_of_engine(innermost.file):
                frames.append(innermost._replace(own=False))
        if not frames and isinstance(error, FunctionTooLong | NondeterministicFunction):
            frames = [Frame(*line) for line in error.lines if self.is_own_file(line[0])]
        return tuple(frames)

    def of_definition(self, function: Callable[..., object]) -> tuple[Frame, ...]:
        """The line where the app defines `function`: for a mistake found before its start or after its return."""
        code = getattr(unwrap(function), "__code__", None)
        if not isinstance(code, CodeType) or not self.is_own(code):
            return ()
        return (Frame(code.co_filename, code.co_firstlineno, code.co_qualname, defines=True),)

    def of_stack(self, frame: FrameType | None) -> tuple[Frame, ...]:
        """The app's frames among `frame` and its callers, outermost first."""
        found: list[Frame] = []
        for _ in range(DEPTH_MAX):
            if frame is None or len(found) == FRAMES_MAX:
                break
            if self.is_own(frame.f_code):
                found.append(_frame(frame, frame.f_lineno))
            frame = frame.f_back
        return tuple(reversed(found))

    def of_running(self, frame: FrameType | None) -> tuple[Frame, ...]:
        """As `of_stack`, for frames that the engine called: not those of the application around an embedded engine."""
        inside, callers = list[Frame](), list[Frame]()
        for _ in range(DEPTH_MAX):
            if frame is None:
                break
            if self.is_own(frame.f_code):
                callers.append(_frame(frame, frame.f_lineno))
            elif callers and is_of_engine(frame.f_code.co_filename):
                inside += callers
                callers.clear()
            frame = frame.f_back
        return tuple(reversed(inside[:FRAMES_MAX]))

    def raised_on_purpose(self, error: BaseException) -> bool:
        """Whether the app's own code said `raise`, with an exception class of its own or of `DECLARED_BUILTINS`."""
        last = _traceback_of(error)
        if last is None:
            return False
        while last.tb_next is not None:
            last = last.tb_next
        code = last.tb_frame.f_code
        place = (id(code), last.tb_lasti, type(error))
        known = self._meant.get(place)
        if known is None:
            if len(self._meant) >= REMEMBERED_MAX:
                self._meant.clear()
            # With the code object, since another one could get its id.
            known = self._meant[place] = (self._says_raise(last, type(error)), code)
        return known[0]

    def _says_raise(self, at: TracebackType, kind: type[BaseException]) -> bool:
        code = at.tb_frame.f_code
        if not self.is_own(code) or code.co_code[at.tb_lasti : at.tb_lasti + 1] != bytes((_RAISE,)):
            return False
        return kind.__module__ != "builtins" or issubclass(kind, DECLARED_BUILTINS)

    def is_own(self, code: CodeType) -> bool:
        """Whether `code` is the app's."""
        return self.is_own_file(code.co_filename)

    def is_own_file(self, file: str) -> bool:
        """Whether the file holds the app's code."""
        own = self._own_files.get(file)
        if own is None:
            if len(self._own_files) >= REMEMBERED_MAX:
                self._own_files.clear()
            own = self._own_files[file] = _is_own(file)
        return own


def _handled_within(error: BaseException) -> BaseException | None:
    """The exception that a frame on the way of `error` was handling; not one that is handled around the engine."""
    handled = _context_of(error)
    caught = None if handled is None else _traceback_of(handled)
    at = _traceback_of(error)
    for _ in range(DEPTH_MAX):
        if at is None or caught is None:
            break
        if at.tb_frame is caught.tb_frame:
            return handled
        at = at.tb_next
    return None


def is_of_engine(file: str) -> bool:
    """Whether the file belongs to this package; the demo's app does not count."""
    return (file.startswith(_HERE) and not file.startswith(_APP_OF_OURS)) or file.startswith(_COMPILED)


def _is_own(file: str) -> bool:
    if is_of_engine(file) or file.startswith("<frozen"):
        return False
    if not file.startswith(("/", "<")) and not file.endswith(".py"):
        return False  # an extension's source, which was elsewhere when it was built
    return not file.startswith(_OF_PYTHON) and not any(part in file for part in _INSTALLED)


def _frame(frame: FrameType, line: int | None) -> Frame:
    code = frame.f_code
    return Frame(code.co_filename, line or 0, code.co_qualname)
