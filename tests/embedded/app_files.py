"""Apps as files that are edited between two starts, imported anew each time as another process would."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import styx
from styx.client.embedded import EmbeddedClient

HEAD = """
from __future__ import annotations
from typing import Any
import msgspec
from styx import App, Context, Operator
"""
ACCOUNT = """
async def put(ctx: Context, value: Any) -> Any:
    await ctx.put(value)
    return value

async def note(ctx: Context, value: Any) -> None:
    await ctx.put(value)

async def get(ctx: Context) -> Any:
    return await ctx.get()
"""
NAME = "styx_edited_app"
LOCKED = "import threading\nlock = threading.Lock()\n"
"""What makes an app one that cannot be packed."""


class Edited:
    """A file with an app, and the data directory beside it."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / f"{NAME}.py"
        self.data = directory / "data"

    def app(self, declared: str = "Operator('acc')", functions: str = ACCOUNT, *, more: str = "") -> styx.App:
        """The app of operator `declared` with these functions; `more` comes between the two."""
        return self.source(
            f"{dedent(more)}\nacc = {declared}\n{dedent(functions)}\n"
            "for each in [one for one in list(globals().values()) if getattr(one, '__module__', '') == __name__ "
            "and callable(one) and getattr(one, '__code__', None) and one.__code__.co_flags & 0x80]:\n"
            "    acc.register(each)\n"
            "app = App('bank', [acc])\n"
        )

    def source(self, text: str) -> styx.App:
        """The `app` of this source."""
        self.file.write_text(HEAD + text)
        spec = importlib.util.spec_from_file_location(NAME, self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        # Not by the module's loader: its cache of bytecode goes by times and sizes, which may be the same.
        exec(compile(self.file.read_text(), str(self.file), "exec"), vars(module))  # noqa: S102 - the test's own source
        app = module.app
        assert isinstance(app, styx.App)
        return app

    def open(self, app: styx.App, **options: Any) -> EmbeddedClient:
        """A client on the data directory."""
        return styx.embedded(app, self.data, **options)


def tree(directory: Path) -> dict[str, bytes]:
    """Every file's content, but the lock's and what SQLite writes by opening."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != "lock" and not path.name.endswith(("-wal", "-shm"))
    }
