"""The object store on Google Cloud Storage: one object of the bucket for each.

The login is a service account's key, or what the machine has: GOOGLE_APPLICATION_CREDENTIALS, `gcloud`'s, or the
service account of a pod or a machine on Google Cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import GCSStore

from styx.store.cloud import CloudStore, connection, misconfigured
from styx.store.url import StoreUrl

if TYPE_CHECKING:
    from obstore.store import GCSConfig

_ACCESS: Final = "let this login get, create, delete and list objects: roles/storage.objectAdmin on the bucket"
_NO_LOGIN: Final = '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'
"""For a server that asks for none. obstore's `skip_signature` concerns reads only."""


def open_at(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> CloudStore:
    """The store at `gs://BUCKET/PREFIX`. Raises `ConfigurationError` and `OSError`."""
    bucket, prefix = url.bucket_and_prefix()
    endpoint, key = options.get("endpoint", ""), options.get("service_account_key", "")
    config: GCSConfig = {}
    if endpoint:
        config["base_url"] = endpoint.rstrip("/")
    if key or endpoint:
        config["service_account_key"] = key or _NO_LOGIN
    client, retries = connection(plain=endpoint.startswith("http://"))
    where = f"the bucket {bucket!r} of Google Cloud Storage" + (f" at {endpoint}" if endpoint else "")
    try:
        store = GCSStore(bucket, config=config, client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise misconfigured(where, error) from None
    return CloudStore(store, prefix, where, _ACCESS)
