"""What `styx dev` prints, and that an engine that failed ends it."""

import gc
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

import styx
from styx import App, Context, EngineFailed, Operator
from styx.cli import serving
from styx.cli.dev_server import closing_line, opening_lines
from styx.cli.example_call import command
from styx.cli.serving import ServingOptions, Start, serve_embedded
from styx.client import embedded as embedded_module
from styx.client.embedded import EmbeddedClient
from styx.gateway.auth.access import AccessOptions
from styx.gateway.front import Front
from tests.cli.conftest import Styx

shelf = Operator("shelf")
OPTIONS = ServingOptions("127.0.0.1", 8080, Path(".styx"), 10.0)


@shelf.register
async def take(ctx: Context, quantity: int, note: str = "", *more: int) -> None: ...


@shelf.register
async def count(ctx: Context, at_least: Annotated[int, msgspec.Meta(ge=0)] = 0) -> None: ...


app = App("shop", operators=[shelf])


def test_opening_lines() -> None:
    assert opening_lines(app, "http://127.0.0.1:8080", OPTIONS, Start(0.1, None, None)) == [
        "Serving shop at http://127.0.0.1:8080",
        "  POST /v1/shelf/{key}/take   (quantity: int, note: str = '', *more: int)",
        "  POST /v1/shelf/{key}/count  (at_least: Annotated[int, Meta(ge=0)] = 0)",
        "Docs  http://127.0.0.1:8080/docs",
        "Data  .styx (new)",
        f"Try   {command()} call shelf alice take 100",
        "Ctrl-C stops it: requests in flight are finished and a snapshot is stored.",
    ]


def test_a_gateway_that_asks_for_a_key_says_where_it_goes() -> None:
    front = Front(access=AccessOptions(api_keys=Path("keys.json")))
    lines = opening_lines(app, "http://127.0.0.1:8080", OPTIONS._replace(front=front), Start(0.1, None, None))
    assert f"Try   STYX_API_KEY=KEY {command()} call shelf alice take 100" in lines


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (Start(0.1, None, None), "new"),
        (Start(0.126, None, 4), "recovered up to epoch 4 from the log in 0.13 s"),
        (Start(0.1, 4, 4), "recovered up to epoch 4 from the snapshot at epoch 4 in 0.10 s"),
        (Start(0.1, 4, 9, 5), "recovered up to epoch 9 from the snapshot at epoch 4 and 5 epochs of the log in 0.10 s"),
    ],
)
def test_what_came_back(start: Start, expected: str) -> None:
    assert f"Data  .styx ({expected})" in opening_lines(app, "http://127.0.0.1:8080", OPTIONS, start)


def test_other_addresses() -> None:
    options = OPTIONS._replace(host="0.0.0.0", port=9000)
    lines = opening_lines(app, "http://127.0.0.1:9000", options, Start(0.1, None, None))
    assert lines[0].endswith("and at every other address of this machine")
    assert f"Try   {command()} call shelf alice take 100 --url http://127.0.0.1:9000" in lines


def test_app_without_functions() -> None:
    lines = opening_lines(App("empty", operators=[]), "http://127.0.0.1:8080", OPTIONS, Start(0.1, None, None))
    assert not any("Try" in line or "POST" in line for line in lines)


def test_closing_line() -> None:
    assert closing_line(7, Path("data")) == "Stopped; the snapshot at epoch 7 is stored in data."
    assert closing_line(None, Path("data")) == "Stopped; there was nothing to store in data."


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_failed_engine_ends_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[EmbeddedClient] = []
    real = embedded_module.embedded

    def remembered(*args: object, **options: object) -> EmbeddedClient:
        clients.append(real(*args, **options))  # type: ignore[arg-type]
        return clients[-1]

    monkeypatch.setattr(styx, "embedded", remembered, raising=False)
    monkeypatch.setattr(serving, "WATCH_SECONDS", 0.001)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    options = OPTIONS._replace(port=0, data_dir=tmp_path / "data")
    with pytest.raises(EngineFailed):
        await serve_embedded(app, options, on_started=lambda url, start: clients[0].crash(), on_stopping=lambda: None)


@pytest.mark.parametrize(("path", "why"), [("/proc/x", "No such file"), ("file", "it is no directory")])
def test_a_data_directory_that_cannot_be(styx: Styx, tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "file").touch()
    ran = styx("dev", "examples.bank:app", "--data-dir", str(tmp_path / path))
    assert ran.status == 2
    assert f"--data-dir {tmp_path / path} cannot be used: {why}" in ran.err
