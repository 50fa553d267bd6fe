"""Azurite, Azure's own emulator: a container of one that runs already. It weighs 365 MB with its 457 packages of npm,
too much to install for everybody, so that its tests are skipped unless STYX_AZURITE is its address:

    npm install azurite && npx azurite-blob --inMemoryPersistence --skipApiVersionCheck
    STYX_AZURITE=http://127.0.0.1:10000 scripts/test tests/store
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import urllib.request
from email.utils import formatdate
from uuid import uuid4

import pytest

VARIABLE = "STYX_AZURITE"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The same in every Azurite, and no secret."""


def azurite_container() -> tuple[str, dict[str, str]]:
    """URL and options of a new container."""
    address = os.environ.get(VARIABLE)
    if not address:
        pytest.skip(f"{VARIABLE} names no Azurite; tests/store/azurite.py says how to run one")
    endpoint, container = f"{address.rstrip('/')}/{ACCOUNT}", f"styx-{uuid4()}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    signed = [*["PUT", *[""] * 11], *(f"{name}:{value}" for name, value in headers.items())]
    text = "\n".join([*signed, f"/{ACCOUNT}/{ACCOUNT}/{container}", "restype:container"])
    signature = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signature).decode()}"
    request = urllib.request.Request(f"{endpoint}/{container}?restype=container", method="PUT", headers=headers)
    with urllib.request.urlopen(request):
        return f"az://{container}/folder", {"endpoint": endpoint, "account": ACCOUNT, "account_key": KEY}
