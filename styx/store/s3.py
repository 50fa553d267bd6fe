"""The store on S3, or on a server that speaks its protocol, such as MinIO: one object of the bucket for each.

An object below `MULTIPART_BYTES_MIN` is sent as one PUT, which the server does whole or not at all. A larger object is
sent in parts, which the server joins at the end, so that the object is there whole or not at all. A server that does
not answer is given up after seconds: the caller tries again.
"""

from __future__ import annotations

import builtins
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from logging import getLogger
from threading import Lock
from typing import Final
from uuid import uuid4
from xml.etree.ElementTree import ParseError

import certifi
from minio import Minio
from minio.error import InvalidResponseError, MinioException, S3Error
from minio.helpers import check_bucket_name
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from styx.errors import ConfigurationError
from styx.store.base import NotFound, StoreRefused, StoreUnreachable, can_begin_a_name, check_name, is_name
from styx.store.stores import StoreUrl, split_url

CONNECT_TIMEOUT_S: Final = 2.0
"""How long an attempt waits for a connection."""
READ_TIMEOUT_S: Final = 30.0
"""How long a request waits for each piece of the answer."""
ATTEMPTS_MAX: Final = 3
"""Attempts for a request that found no connection or an overloaded server. One cut off is not repeated here."""
BACKOFF_S: Final = 0.2
"""The pause before the third attempt is twice this; there is none before the second."""
CONNECTIONS_MAX: Final = 8
"""Connections to the server; further threads wait for one."""
PUT_BYTES_MAX: Final = 5 * 1024**3
"""The largest object that S3 takes in one PUT, as a conditional one is sent whatever its size."""
MULTIPART_BYTES_MIN: Final = 64 * 1024**2
"""The smallest object that is sent in parts. Below, the further requests cost more than two connections save."""
PART_BYTES: Final = 16 * 1024**2
"""Each part but the last; S3 allows none below 5 MiB."""
PARTS_AT_ONCE: Final = 2
"""Parts of one object under way at a time. With the one read next, an object takes three times `PART_BYTES` of memory
beside itself.
"""
OBJECT_BYTES_MAX: Final = 10_000 * PART_BYTES
"""The largest object: S3 joins so many parts."""
CONFLICTS_MAX: Final = 5
"""How often S3 may answer that another conditional PUT of the same name is just being done."""

_OVERLOADED: Final = (500, 502, 503, 504)
_BUCKET_IS_THERE: Final = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})
_ONLY_IF_NEW: Final = {"If-None-Match": "*"}
_PROBE: Final = ".conditional-put/"
_UNCONDITIONAL: Final = (
    "two processes that create one object at the same moment may both be told that they did. "
    "Use a server that knows it, such as MinIO or AWS"
)

_KEYS: Final = "check the access key and the secret key"
_REGION: Final = "the bucket is in another region: give its region, and the endpoint of that region"
_REFUSALS: Final[dict[str, str]] = {
    "AccessDenied": (
        "these keys may not do this: let them get, put, list and delete objects, and ask for the bucket's location"
    ),
    "AccountProblem": "the account is blocked: ask whoever runs the store",
    "AllAccessDisabled": "the bucket is closed: ask whoever runs the store",
    "AuthorizationHeaderMalformed": _REGION,
    "ExpiredToken": "the keys have expired: give new ones",
    "IllegalLocationConstraintException": _REGION,
    "InvalidAccessKeyId": f"the server does not know the access key: {_KEYS}",
    "InvalidBucketName": "the server refuses the bucket's name: 3 to 63 small letters, digits, dots and hyphens",
    "NoSuchBucket": "there is no such bucket: create it, or let the keys create buckets and start again",
    "PermanentRedirect": _REGION,
    "RequestTimeTooSkewed": (
        "the clocks of this machine and of the server are more than 15 minutes apart: set both by a time service"
    ),
    "SignatureDoesNotMatch": f"the secret key does not fit the access key: {_KEYS}",
}
"""Advice, by code, for the errors that a later attempt would get again."""

_log = getLogger(__name__)


class S3Store:
    """A `Store` under `prefix` in `bucket` at `endpoint`, `HOST` or `HOST:PORT`, over TLS if `secure`.

    The constructor creates a missing bucket, unless the store is only `to_read`. Raises `ConfigurationError` when the
    bucket, the keys or their rights are wrong, and `OSError` when the server is out of reach. A store must not be used
    in a forked process.
    """

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        prefix: str,
        access_key: str,
        secret_key: str,
        secure: bool,
        region: str | None = None,
        to_read: bool = False,
    ) -> None:
        if prefix:
            check_name(prefix)
        self._bucket = bucket
        self._folder = f"{prefix}/" if prefix else ""
        self._where = f"the bucket {bucket!r} at {'https' if secure else 'http'}://{endpoint}"
        self._knows_condition: bool | None = None
        # Held while the server is asked whether it does.
        self._lock = Lock()
        try:
            check_bucket_name(bucket, strict=True)
            self._client = Minio(
                endpoint, access_key, secret_key, secure=secure, region=region, http_client=_connections(secure)
            )
        except ValueError as error:
            raise ConfigurationError(f"there cannot be {self._where}: {error}") from None
        self._open_bucket(to_read)

    def put(self, name: str, data: bytes) -> None:
        key = self._key(name)
        with self._described(f"put {name!r} in"):
            if len(data) < MULTIPART_BYTES_MIN:
                self._send(key, data, {})
            else:
                self._send_in_parts(key, data)

    def put_new(self, name: str, data: bytes) -> bool:
        key = self._key(name)
        with self._described(f"put {name!r}, if it is new, in"):
            if self._is_condition_known():
                stored = self._send_if_new(key, data)
                there = data if stored else self._content(key)
                return there == data
            there = self._content(key)
        if there is None:
            self.put(name, data)
            return True
        return there == data

    def get(self, name: str) -> bytes:
        key = self._key(name)
        with self._described(f"get {name!r} from"):
            data = self._content(key)
        if data is None:
            raise NotFound(name, self._where)
        return data

    def get_range(self, name: str, start: int, size: int) -> bytes:
        if not size:
            return self.get(name)[:0]  # to S3, a length of 0 means everything
        key = self._key(name)
        with self._described(f"get a part of {name!r} from"):
            data = self._content(key, start, size)
        if data is None:
            raise NotFound(name, self._where)
        return data

    def list(self, prefix: str) -> builtins.list[str]:
        if not can_begin_a_name(prefix):
            return []
        with self._described(f"list {prefix!r} in"):
            objects = self._client.list_objects(self._bucket, self._folder + prefix, recursive=True)
            names = [(each.object_name or "").removeprefix(self._folder) for each in objects]
        return sorted(name for name in names if is_name(name))

    def delete(self, name: str) -> None:
        key = self._key(name)
        with self._described(f"delete {name!r} from"):
            self._client.remove_object(self._bucket, key)

    def _open_bucket(self, to_read: bool) -> None:
        with self._described("open"):
            try:
                # Unlike a HEAD of the bucket, whose answer has no body, this says what is wrong.
                next(iter(self._client.list_objects(self._bucket, self._folder)), None)
                return
            except S3Error as error:
                if to_read or error.code != "NoSuchBucket":
                    raise
        with self._described("create"):
            try:
                self._client.make_bucket(self._bucket)
            except S3Error as error:
                if error.code not in _BUCKET_IS_THERE:
                    raise

    def _key(self, name: str) -> str:
        check_name(name)
        key = self._folder + name
        check_name(key)
        return key

    def _send(self, key: str, data: bytes, headers: dict[str, str]) -> None:
        self._check_size(key, data, PUT_BYTES_MAX)
        # The public method copies what it sends, and takes no condition.
        self._client._put_object(self._bucket, key, data, {"Content-Type": "application/octet-stream", **headers})

    def _send_in_parts(self, key: str, data: bytes) -> None:
        """Aborts the upload if a part of it fails: its parts would be kept, and paid for, without being listed."""
        self._check_size(key, data, OBJECT_BYTES_MAX)
        self._client.put_object(
            self._bucket, key, BytesIO(data), len(data), part_size=PART_BYTES, num_parallel_uploads=PARTS_AT_ONCE
        )

    def _check_size(self, key: str, data: bytes, bytes_max: int) -> None:
        if len(data) > bytes_max:
            raise StoreUnreachable(f"{key!r} has {len(data)} bytes; an object in {self._where} has {bytes_max}")

    def _send_if_new(self, key: str, data: bytes) -> bool:
        """False if there is an object under this key."""
        for _ in range(CONFLICTS_MAX):
            try:
                self._send(key, data, _ONLY_IF_NEW)
                return True
            except S3Error as error:
                if _status_of(error) == 412:
                    return False
                if error.code != "ConditionalRequestConflict":
                    raise
        raise StoreUnreachable(f"cannot put {key!r} in {self._where}: others kept storing it at the same time")

    def _is_condition_known(self) -> bool:
        """Whether the server does a PUT only if there is no such object; some ignore that, and would replace it."""
        with self._lock:
            if self._knows_condition is None:
                # No name has a part that starts with a dot, so this is none of them.
                probe = f"{self._folder}{_PROBE}{uuid4().hex}"
                try:
                    self._knows_condition = self._send_if_new(probe, b"") and not self._send_if_new(probe, b"")
                except (S3Error, InvalidResponseError) as error:
                    if _status_of(error) != 501:
                        raise
                    self._knows_condition = False
                self._client.remove_object(self._bucket, probe)
                if not self._knows_condition:
                    _log.warning("%s does not know PUT with If-None-Match: %s", self._where, _UNCONDITIONAL)
        return self._knows_condition

    def _content(self, key: str, start: int = 0, size: int = 0) -> bytes | None:
        """None if there is no such object; `size` 0: up to its end."""
        try:
            response = self._client.get_object(self._bucket, key, offset=start, length=size)
        except S3Error as error:
            if error.code == "NoSuchKey":
                return None
            if error.code == "InvalidRange":
                return b""  # it ends before `start`
            raise
        try:
            # Raises if this is shorter than its Content-Length.
            return response.read()
        finally:
            response.close()
            response.release_conn()

    @contextmanager
    def _described(self, action: str) -> Iterator[None]:
        try:
            yield
        # The library raises the last two for an answer that is not S3's.
        except (MinioException, HTTPError, ParseError, ValueError) as error:
            raise _error(error, action, self._where) from error


def open_at(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> S3Store:
    """The store at `s3://BUCKET/PREFIX`. Raises `ConfigurationError` and `OSError`."""
    bucket, prefix = url.bucket_and_prefix()
    host, secure = _host(options["endpoint"])
    return S3Store(
        host, bucket, prefix, options["access_key"], options["secret_key"], secure, options.get("region"), to_read
    )


def _host(endpoint: str) -> tuple[str, bool]:
    """(`HOST` or `HOST:PORT`, whether over TLS)."""
    problem, usage = f"{endpoint!r} is not the endpoint of an S3 server", "It is http://HOST:PORT or https://HOST."
    parts = split_url(endpoint, problem, usage)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ConfigurationError(f"{problem}. {usage}")
    return parts.netloc, parts.scheme == "https"


def _connections(secure: bool) -> PoolManager:
    retries = Retry(
        total=ATTEMPTS_MAX - 1,
        read=0,
        backoff_factor=BACKOFF_S,
        status_forcelist=_OVERLOADED,
        # The last answer says more than the library would. A server may ask for a wait of minutes.
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    context = None
    if secure:
        # The system's certificates, with the operator's own among them, or SSL_CERT_FILE's; some systems have none.
        context = ssl.create_default_context()
        context.load_verify_locations(certifi.where())
    return PoolManager(
        num_pools=1,
        maxsize=CONNECTIONS_MAX,
        block=True,
        timeout=Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
        retries=retries,
        ssl_context=context,
    )


def _error(error: Exception, action: str, where: str) -> StoreUnreachable | StoreRefused:
    """The error to raise for `error`: refused, or to be tried again later. `action` is such as "put 'a/b' in", `where`
    the bucket and its server.
    """
    failed = f"cannot {action} {where}"
    if isinstance(error, S3Error):
        code = error.code or ""
        if code in _REFUSALS or _status_of(error) == 403:
            return StoreRefused(f"{failed}: {_REFUSALS.get(code, _REFUSALS['AccessDenied'])} ({code}: {error.message})")
        return StoreUnreachable(f"{failed}: the server answered {code}: {error.message}. It may be overloaded or full")
    if isinstance(error, HTTPError):
        return StoreUnreachable(f"{failed}: {error}. Is the server running, and reachable from here?")
    return StoreUnreachable(f"{failed}: {error}. Is this the address of an S3 server, and is the server healthy?")


def _status_of(error: MinioException) -> int | None:
    """The HTTP status that the server answered with; None if `error` does not tell."""
    if isinstance(error, S3Error):
        return error.response.status
    return error._code if isinstance(error, InvalidResponseError) else getattr(error, "status_code", None)
