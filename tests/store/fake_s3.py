"""A small S3 server in this process, to answer what a real one answers at bad times only. It checks no signature."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.local_http import serving

Answer = Callable[["Request"], None]


class FakeS3:
    """One bucket, by whatever name. The next requests are answered by `script`, one each, then as S3 does."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.objects: dict[str, bytes] = {}
        self.script: deque[Answer] = deque()
        self.ignores_condition = False
        self.lacks_condition = False
        self.requests: list[str] = []


class Request(BaseHTTPRequestHandler):
    """One request, with what a test's answer needs to give it."""

    protocol_version = "HTTP/1.1"
    s3: ClassVar[FakeS3]

    def answer(self, status: int, body: bytes = b"", *, length: int | None = None, **headers: str) -> None:
        """Sends `body`, of `length` bytes if one believes the header."""
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def fail(self, status: int, code: str, message: str = "", retry_after: str = "0") -> None:
        body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.answer(status, body.encode(), Retry_After=retry_after)

    def serve(self) -> None:
        """As S3 does."""
        url = urlsplit(self.path)
        key = unquote(url.path).partition("/")[2].partition("/")[2]
        if not key:
            self._list(parse_qs(url.query).get("prefix", [""])[0])
        elif self.command == "PUT":
            self._put(key)
        elif self.command == "DELETE":
            self.s3.objects.pop(key, None)
            self.answer(204)
        elif key in self.s3.objects:
            self.answer(200, self.s3.objects[key])
        else:
            self.fail(404, "NoSuchKey")

    def hang_up(self) -> None:
        """Ends the connection without an answer."""
        self.close_connection = True

    def do_GET(self) -> None:
        self.s3.requests.append(f"{self.command} {urlsplit(self.path).path}")
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.s3.script:
            self.s3.script.popleft()(self)
        else:
            self.serve()

    do_PUT = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _list(self, prefix: str) -> None:
        keys = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in self.s3.objects if key.startswith(prefix))
        head = "<Name>bucket</Name><IsTruncated>false</IsTruncated>"
        self.answer(200, f"<ListBucketResult>{head}{keys}</ListBucketResult>".encode())

    def _put(self, key: str) -> None:
        condition = self.headers.get("If-None-Match")
        if condition and self.s3.lacks_condition:
            self.fail(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        elif condition and not self.s3.ignores_condition and key in self.s3.objects:
            self.fail(412, "PreconditionFailed")
        else:
            self.s3.objects[key] = self.body
            self.answer(200, ETag='"0"')


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    """Serves until the end of the block."""

    class Handler(Request):
        pass

    with serving(Handler) as address:
        Handler.s3 = FakeS3(address)
        yield Handler.s3
