"""The provider's HTTP interface.

| request | answer |
|---|---|
| `POST /charge`: a `Question`, with its `Idempotency-Key` | `{"status": "approved"}` or `"rejected"`; or 503 |
| `POST /behaviour`: a `Behaviour` | 204; what is left out is as usual again |
| `GET /book` | a `Charge` in JSON on each line |
| `GET /healthz` | 204 |
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.marketplace.provider.book import Behaviour, Book, Question, Told

KEY: Final = "Idempotency-Key"
_questions: Final[msgspec.json.Decoder[Question]] = msgspec.json.Decoder(Question)
_behaviours: Final[msgspec.json.Decoder[Behaviour]] = msgspec.json.Decoder(Behaviour)


def make_server(book: Book) -> Starlette:
    """The provider with this book."""

    async def charge(request: Request) -> Response:
        try:
            question = _questions.decode(await request.body())
        except msgspec.DecodeError as error:
            return _refused(str(error))
        if request.headers.get(KEY) != question.invoice_number:
            return _refused(f"the header {KEY} is the invoice number: got {request.headers.get(KEY)!r}")
        if book.behaviour.delay_ms:
            await asyncio.sleep(book.behaviour.delay_ms / 1000)
        told = book.ask(question)
        if told is Told.UNREACHABLE:
            return Response(status_code=503)
        return JSONResponse({"status": told.value})

    async def behave(request: Request) -> Response:
        try:
            book.behaviour = _behaviours.decode(await request.body())
        except msgspec.DecodeError as error:
            return _refused(str(error))
        return Response(status_code=204)

    async def read(_: Request) -> Response:
        return StreamingResponse(_lines(book), media_type="application/x-ndjson")

    async def health(_: Request) -> Response:
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/charge", charge, methods=["POST"]),
            Route("/behaviour", behave, methods=["POST"]),
            Route("/book", read, methods=["GET"]),
            Route("/healthz", health, methods=["GET"]),
        ]
    )


def _lines(book: Book) -> Iterator[bytes]:
    return (msgspec.json.encode(each) + b"\n" for each in book.charges())


def _refused(why: str) -> Response:
    return JSONResponse({"error": why}, status_code=422)
