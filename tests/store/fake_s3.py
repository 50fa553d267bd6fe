"""A small S3 server in this process, to answer what a real one answers at bad times only. It checks no signature.

The interface of Google Cloud Storage that obstore speaks is the same but for the header of a condition.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from threading import Lock
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.local_http import serving

SAVED_AT = "Mon, 02 Mar 2026 10:00:00 GMT"
SAVED = "<LastModified>2026-03-02T10:00:00.000Z</LastModified><ETag>0</ETag>"
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
        self.page = 1000
        self.uploads: dict[str, dict[str, bytes]] = {}
        self._lock = Lock()

    def stored(self, name: str, data: bytes, only_new: bool) -> bool:
        """Stores an object; False if there is one already and it was to be new."""
        with self._lock:
            if only_new and name in self.objects:
                return False
            self.objects[name] = data
            return True


class Request(BaseHTTPRequestHandler):
    """One request, with what a test's answer needs to give it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    s3: ClassVar[FakeS3]

    def answer(self, status: int, body: bytes = b"", *, length: int | None = None, **headers: str) -> None:
        """Sends `body`, of `length` bytes if one believes the header."""
        self.send_response(status)
        self.send_header("Content-Type", headers.pop("content_type", "application/xml"))
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
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if not key:
            self._list(query.get("prefix", ""), query.get("continuation-token", ""))
        elif "uploads" in query or "uploadId" in query:
            self._in_parts(key, query)
        elif self.command == "PUT":
            self._put(key)
        elif self.command == "DELETE":
            there = self.s3.objects.pop(key, None)
            self.answer(404 if there is None and "x-goog" in str(self.headers) else 204)
        elif key in self.s3.objects:
            self._get(self.s3.objects[key])
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

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _list(self, prefix: str, after: str) -> None:
        keys = sorted(key for key in self.s3.objects if key.startswith(prefix) and key > after)
        page, more = keys[: self.s3.page], len(keys) > self.s3.page
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.s3.objects[key])}</Size>{SAVED}</Contents>"
            for key in page
        )
        following = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        head = f"<Name>bucket</Name><IsTruncated>{str(more).lower()}</IsTruncated>{following}"
        self.answer(200, f"<ListBucketResult>{head}{contents}</ListBucketResult>".encode())

    def _get(self, data: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self.answer(200, data, ETag='"0"', Last_Modified=SAVED_AT)
        elif int(asked[1]) >= len(data):
            self.fail(416, "InvalidRange")
        else:
            part = data[int(asked[1]) : int(asked[2] or len(data)) + 1]
            where = f"bytes {asked[1]}-{int(asked[1]) + len(part) - 1}/{len(data)}"
            self.answer(206, part, ETag='"0"', Last_Modified=SAVED_AT, Content_Range=where)

    def _in_parts(self, key: str, query: dict[str, str]) -> None:
        upload = query.get("uploadId", str(len(self.s3.uploads)))
        if "uploads" in query:
            self.s3.uploads[upload] = {}
            body = f"<Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
            self.answer(200, f"<InitiateMultipartUploadResult>{body}</InitiateMultipartUploadResult>".encode())
        elif self.command == "PUT":
            self.s3.uploads[upload][query["partNumber"]] = self.body
            self.answer(200, ETag='"0"')
        elif self.command == "DELETE":
            del self.s3.uploads[upload]
            self.answer(204)
        else:
            parts = self.s3.uploads.pop(upload)
            self.s3.objects[key] = b"".join(parts[number] for number in sorted(parts, key=int))
            body = f"<Bucket>bucket</Bucket><Key>{escape(key)}</Key><ETag>0</ETag>"
            result = f"<CompleteMultipartUploadResult>{body}</CompleteMultipartUploadResult>"
            self.answer(200, result.encode(), x_goog_generation="1")

    def _put(self, key: str) -> None:
        condition = self.headers.get("If-None-Match") or self.headers.get("x-goog-if-generation-match")
        if condition and self.s3.lacks_condition:
            self.fail(501, "NotImplemented", "A header you provided implies functionality that is not implemented")
        elif self.s3.stored(key, self.body, only_new=bool(condition) and not self.s3.ignores_condition):
            self.answer(200, ETag='"0"')
        else:
            self.fail(412, "PreconditionFailed")


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    """Serves until the end of the block."""

    class Handler(Request):
        pass

    with serving(Handler) as address:
        Handler.s3 = FakeS3(address)
        yield Handler.s3
