"""Stores on Google Cloud Storage and Azure Blob Storage, through `obstore`: one object of the service for each.

An object below `PART_BYTES` is one request. A larger object is sent in parts, which the service joins at the end, so
that the object is there whole or not at all. A service that does not answer is given up after seconds: the caller tries
again.

Without a key, Google's login is that of the machine: GOOGLE_APPLICATION_CREDENTIALS, `gcloud`'s, or the service account
of a pod or a machine on Google Cloud. Without a key or a SAS token, Azure's login is that of the machine:
AZURE_CLIENT_ID and the like, the workload identity of a pod, or the managed identity of a machine on Azure.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import AzureStore, GCSStore

from styx.errors import ConfigurationError
from styx.store.base import NotFound, StoreRefused, StoreUnreachable, can_begin_a_name, check_name, is_name
from styx.store.stores import StoreUrl

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, ObjectStore, RetryConfig

CONNECT_TIMEOUT_S: Final = 2.0
"""How long an attempt waits for a connection."""
READ_TIMEOUT_S: Final = 30.0
"""How long a request waits for each piece of the answer; one part must be sent in this time."""
REQUEST_TIMEOUT_S: Final = 300.0
"""How long a request may take with all of its answer; a get of a large object has one."""
ATTEMPTS_MAX: Final = 3
"""Attempts for a request that found no connection or an overloaded service."""
BACKOFF_S: Final = 0.2
"""The pause before the second attempt; the next one is twice as long."""
PART_BYTES: Final = 16 * 1024**2
"""Of a larger object, each part but the last. A connection with 5 Mbit/s sends it within `READ_TIMEOUT_S`; the 10,000
parts that a service joins at most are 156 GiB."""
PARTS_AT_ONCE: Final = 2
"""Parts of one object under way at a time: `PART_BYTES` of memory each, beside the object itself."""

_UNSENDABLE: Final = re.compile(r"[\x00-\x1f\x7f%\\]")
"""Characters that the names of some services cannot have: sent as percent and two digits."""
_STATUS: Final = re.compile(r"status code: (\d{3})")
"""The answer of the service in the text of obstore's error. The error's class tells less, for a request for a list."""
_REFUSALS: Final = ("401", "403", "404")
"""Answers that a later attempt would get again."""
_GCS_ACCESS: Final = "let this login get, create, delete and list objects: roles/storage.objectAdmin on the bucket"
_GCS_NO_LOGIN: Final = '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'
"""For a server that asks for no login. obstore's `skip_signature` concerns reads only."""
_AZURE_ACCESS: Final = (
    "let this login read, write, delete and list blobs: Storage Blob Data Contributor on the container"
)


class CloudStore:
    """A `Store` of the objects of `store` whose names begin with `prefix`. Errors name the place by `where`, and the
    rights that its login needs by `access`.

    The constructor lists one object. Raises `ConfigurationError` when the place, the login or its rights are wrong, and
    `OSError` when the service is out of reach.
    """

    def __init__(self, store: ObjectStore, prefix: str, where: str, access: str) -> None:
        if prefix:
            check_name(prefix)
        self._store = store
        self._folder = f"{prefix}/" if prefix else ""
        self._where = where
        self._access = access
        with self._described("open"):
            next(iter(obstore.list(store, _sent(prefix) or None, chunk_size=1)), None)

    def put(self, name: str, data: bytes) -> None:
        key = self._key(name)
        with self._described(f"put {name!r} in"):
            obstore.put(
                self._store,
                key,
                data,
                use_multipart=len(data) > PART_BYTES,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE,
            )

    def put_new(self, name: str, data: bytes) -> bool:
        key = self._key(name)
        with self._described(f"put {name!r}, if it is new, in"):
            try:
                obstore.put(self._store, key, data, mode="create")
                return True
            except AlreadyExistsError:
                pass
        try:
            return self.get(name) == data
        except NotFound:
            # Another process has deleted it by now.
            return False

    def get(self, name: str) -> bytes:
        key = self._key(name)
        with self._described(f"get {name!r} from"):
            try:
                return bytes(obstore.get(self._store, key).bytes())
            except FileNotFoundError:
                raise NotFound(name, self._where) from None

    def get_range(self, name: str, start: int, size: int) -> bytes:
        key = self._key(name)
        with self._described(f"get a part of {name!r} from"):
            try:
                if size:
                    return bytes(obstore.get_range(self._store, key, start=start, length=size))
            except FileNotFoundError:
                raise NotFound(name, self._where) from None
            except BaseError:
                if start < self._size(name, key):
                    raise
            # Of a part that begins behind the end, the service says that it cannot be.
            self._size(name, key)
            return b""

    def list(self, prefix: str) -> builtins.list[str]:
        if not can_begin_a_name(prefix):
            return []
        # The service lists folders; the rest of the prefix is compared here.
        folder = (self._folder + prefix).rpartition("/")[0]
        with self._described(f"list {prefix!r} in"):
            pages = obstore.list(self._store, _sent(folder) or None, chunk_size=1000)
            names = [unquote(each["path"]).removeprefix(self._folder) for page in pages for each in page]
        return sorted(name for name in names if name.startswith(prefix) and is_name(name))

    def delete(self, name: str) -> None:
        key = self._key(name)
        with self._described(f"delete {name!r} from"):
            try:
                obstore.delete(self._store, key)
            except FileNotFoundError:
                return

    def _size(self, name: str, key: str) -> int:
        try:
            return obstore.head(self._store, key)["size"]
        except FileNotFoundError:
            raise NotFound(name, self._where) from None

    def _key(self, name: str) -> str:
        check_name(name)
        key = _sent(self._folder + name)
        check_name(key)
        return key

    @contextmanager
    def _described(self, action: str) -> Iterator[None]:
        failed = f"cannot {action} {self._where}"
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            status = _STATUS.search(str(error))
            code = status[1] if status else ""
            if code in _REFUSALS:
                advice = "create it first" if code == "404" else self._access
                raise StoreRefused(f"{failed}: {advice} ({_words(error)})") from None
            raise StoreUnreachable(
                f"{failed}: {_words(error)}. Is the service reachable from here, and is there a login?"
            ) from None


def open_gcs(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> CloudStore:
    """The store at `gs://BUCKET/PREFIX`. Raises `ConfigurationError` and `OSError`."""
    bucket, prefix = url.bucket_and_prefix()
    endpoint, key = options.get("endpoint", ""), options.get("service_account_key", "")
    config: GCSConfig = {}
    if endpoint:
        config["base_url"] = endpoint.rstrip("/")
    if key or endpoint:
        config["service_account_key"] = key or _GCS_NO_LOGIN
    where = f"the bucket {bucket!r} of Google Cloud Storage" + (f" at {endpoint}" if endpoint else "")
    return CloudStore(_service(GCSStore, bucket, config, endpoint, where), prefix, where, _GCS_ACCESS)


def open_azure(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> CloudStore:
    """The store at `az://CONTAINER/PREFIX`. Raises `ConfigurationError` and `OSError`."""
    container, prefix = url.bucket_and_prefix()
    account, endpoint = options["account"], options.get("endpoint", "")
    config: AzureConfig = {"account_name": account}
    if endpoint:
        config["endpoint"] = endpoint.rstrip("/")
    if "account_key" in options:
        config["account_key"] = options["account_key"]
    if "sas_token" in options:
        config["sas_key"] = options["sas_token"]
    where = f"the container {container!r} of the Azure storage account {account!r}"
    return CloudStore(_service(AzureStore, container, config, endpoint, where), prefix, where, _AZURE_ACCESS)


def _service(make: Callable[..., ObjectStore], bucket: str, config: object, endpoint: str, where: str) -> ObjectStore:
    """obstore's side of a bucket. Raises `ConfigurationError` for an option that obstore cannot use."""
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
        "read_timeout": timedelta(seconds=READ_TIMEOUT_S),
        "timeout": timedelta(seconds=REQUEST_TIMEOUT_S),
        "allow_http": endpoint.startswith("http://"),
    }
    pause = timedelta(seconds=BACKOFF_S)
    retries: RetryConfig = {
        "max_retries": ATTEMPTS_MAX - 1,
        "backoff": {"init_backoff": pause, "max_backoff": 2 * pause, "base": 2},
    }
    try:
        return make(bucket, config=config, client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise ConfigurationError(f"there cannot be {where}: {_words(error)}") from None


def _sent(name: str) -> str:
    return _UNSENDABLE.sub(lambda found: f"%{ord(found[0]):02X}", name)


def _words(error: Exception) -> str:
    """The first line of what obstore says; the rest is the structure of its error."""
    return str(error).partition("\n")[0].rstrip(".")
