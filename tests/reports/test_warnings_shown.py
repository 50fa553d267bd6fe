"""Warnings are told with the app's line and function; those of libraries are Python's business."""

import asyncio
import threading
import warnings

import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.model.user_frames import UserFrames
from styx.reports.mistakes import Mistake, read_page
from styx.reports.warnings_shown import warnings_shown

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]
account = Operator("account")


async def helper() -> None: ...


@account.register
async def forgets(ctx: Context) -> None:
    helper()  # type: ignore[unused-coroutine]


@account.register
async def warns(ctx: Context) -> None:
    warnings.warn("an old way", DeprecationWarning, stacklevel=1)


app = App("bank", [account])


def kept(client: EmbeddedClient) -> list[Mistake]:
    return read_page(client.engine.reports.mistakes.page())[1]


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        ("forgets", "RuntimeWarning", "coroutine 'helper' was never awaited"),
        ("warns", "DeprecationWarning", "an old way"),
    ],
)
async def test_in_a_function(function: str, kind: str, text: str) -> None:
    warnings.simplefilter("always")
    async with styx.embedded(app) as client:
        with warnings_shown(client.engine.reports, origins=True):
            await client.call("account", "a", function)
        [told] = kept(client)
        assert (told.kind, told.type, told.message) == ("warning", kind, text)
        line = account.function(function).func.__code__.co_firstlineno + 2
        assert [(place.file, place.line, place.function) for place in told.frames][-1:] == [(__file__, line, function)]
        assert (told.operator, told.key, told.function) == ("account", "a", function)


async def test_on_another_thread() -> None:
    warnings.simplefilter("always")
    async with styx.embedded(app) as client:
        with warnings_shown(client.engine.reports, origins=False):
            thread = threading.Thread(target=lambda: warnings.warn("from a thread", UserWarning, stacklevel=1))
            thread.start()
            thread.join()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        [told] = kept(client)
        assert told.message == "from a thread"


async def test_a_library_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(warnings, "showwarning", lambda message, category, filename, lineno, *_: shown.append(lineno))
    async with styx.embedded(app) as client:
        with warnings_shown(client.engine.reports, origins=False):
            show = warnings.showwarning
            monkeypatch.setattr(UserFrames, "of_stack", lambda self, frame: ())
            for line in (1, 1, 2):
                show(UserWarning("careful"), UserWarning, "/usr/lib/python3.11/x.py", line)
            show(DeprecationWarning("old"), DeprecationWarning, "/usr/lib/python3.11/x.py", 3)
        assert kept(client) == []
    assert shown == [1, 2]
