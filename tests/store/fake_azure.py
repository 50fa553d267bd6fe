"""A small Azure Blob server in this process, for what a real one answers at bad times. It checks no signature."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.local_http import serving
from tests.store.fake_s3 import SAVED_AT, FakeS3, Request


class AzureRequest(Request):
    """One request; `/CONTAINER/NAME` is its path. An upload in parts is one block list, kept by the name."""

    def serve(self) -> None:
        url = urlsplit(self.path)
        name = unquote(url.path).partition("/")[2].partition("/")[2]
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if query.get("comp") == "list":
            self._list(query.get("prefix", ""), query.get("marker", ""))
        elif query.get("comp") == "block":
            self.s3.uploads.setdefault(name, {})[query["blockid"]] = self.body
            self.answer(201)
        elif query.get("comp") == "blocklist":
            blocks = self.s3.uploads.pop(name)
            self._store(name, b"".join(blocks[each] for each in re.findall(r">([^<>]+)</\w+>", self.body.decode())))
        elif self.command == "PUT":
            self._store(name, self.body)
        elif query.get("comp") == "batch":
            self._delete_all(re.findall(r"DELETE (\S+) HTTP", self.body.decode()))
        elif name in self.s3.objects:
            self._get(self.s3.objects[name])
        else:
            self.fail(404, "BlobNotFound")

    def _store(self, name: str, data: bytes) -> None:
        if self.s3.stored(name, data, only_new="If-None-Match" in self.headers):
            self.answer(201, ETag='"0"')
        else:
            self.fail(409, "BlobAlreadyExists")

    def _delete_all(self, paths: list[str]) -> None:
        lines = []
        for number, path in enumerate(paths):
            name = unquote(urlsplit(path).path).partition("/")[2].partition("/")[2]
            there = self.s3.objects.pop(name, None) is not None
            status = "202 Accepted" if there else "404 Not Found\r\nx-ms-error-code: BlobNotFound"
            head = ["--batch", "Content-Type: application/http", f"Content-ID: {number}", ""]
            lines += [*head, f"HTTP/1.1 {status}", "x-ms-version: 2020-10-02", "", ""]
        body = "\r\n".join([*lines, "--batch--", ""])
        self.answer(202, body.encode(), content_type="multipart/mixed; boundary=batch")

    def _list(self, prefix: str, after: str) -> None:
        names = sorted(name for name in self.s3.objects if name.startswith(prefix) and name > after)
        page = names[: self.s3.page]
        blobs = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{SAVED_AT}</Last-Modified>"
            f"<Content-Length>{len(self.s3.objects[name])}</Content-Length><Content-Type>x</Content-Type>"
            "<Etag>0</Etag></Properties></Blob>"
            for name in page
        )
        marker = f"<NextMarker>{escape(page[-1]) if len(names) > len(page) else ''}</NextMarker>"
        body = f"<EnumerationResults><Blobs>{blobs}</Blobs>{marker}</EnumerationResults>"
        self.answer(200, body.encode())

    def _get(self, data: bytes) -> None:
        asked = self.headers.get("x-ms-range") or self.headers.get("Range")
        if asked and not re.fullmatch(r"bytes=\d+-\d*", asked):
            self.fail(400, "InvalidHeaderValue")
        super()._get(data)


@contextmanager
def fake_azure() -> Iterator[FakeS3]:
    """Serves until the end of the block."""

    class Handler(AzureRequest):
        pass

    with serving(Handler) as address:
        Handler.s3 = FakeS3(address)
        yield Handler.s3
