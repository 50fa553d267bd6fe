"""The object store on Azure Blob Storage: one block blob of the container for each object.

The login is the account's key or a SAS token, or what the machine has: AZURE_CLIENT_ID and the like, the workload
identity of a pod, or the managed identity of a machine on Azure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import AzureStore

from styx.store.cloud import CloudStore, connection, misconfigured
from styx.store.url import StoreUrl

if TYPE_CHECKING:
    from obstore.store import AzureConfig

_ACCESS: Final = "let this login read, write, delete and list blobs: Storage Blob Data Contributor on the container"


def open_at(url: StoreUrl, options: Mapping[str, str], to_read: bool) -> CloudStore:
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
    client, retries = connection(plain=endpoint.startswith("http://"))
    where = f"the container {container!r} of the Azure storage account {account!r}"
    try:
        store = AzureStore(container, config=config, client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise misconfigured(where, error) from None
    return CloudStore(store, prefix, where, _ACCESS)
