"""The chart's smoke test: asks, within a minute, whether the gateway serves the app and all workers share its slots.

The exit status is 0 if so, else 1, with what is wrong. It runs in the image of styx, and sends no request to the app.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from typing import Any

GATEWAY, COORDINATOR = os.environ["GATEWAY_URL"], os.environ["COORDINATOR_URL"]
API_KEY, FACTS_TOKEN = os.environ.get("STYX_API_KEY", ""), os.environ.get("STYX_FACTS_TOKEN", "")
TLS = ssl.create_default_context(cafile=os.environ["STYX_CA"]) if GATEWAY.startswith("https:") else None
SECONDS_MAX = float(os.environ.get("SECONDS_MAX", "60"))


def fetched(url: str, token: str) -> Any:
    """The answer as JSON; raises `OSError` or `ValueError` with what is wrong."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5, context=TLS) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        text = error.read(1000).decode(errors="replace")
        raise OSError(f"{url} answers {error.code}: {text}") from None
    except OSError as error:
        raise OSError(f"{url}: {error}") from None


def found() -> str:
    """What there is, in words; raises `OSError` or `ValueError` with what is wrong."""
    fetched(GATEWAY + "/readyz", "")
    paths = [path for path in fetched(GATEWAY + "/openapi.json", API_KEY).get("paths", {}) if path.startswith("/v1/")]
    if not paths:
        raise ValueError("the gateway's /openapi.json has no function of an app; deploy one: styx deploy MODULE:APP")
    status = fetched(COORDINATOR + "/status", FACTS_TOKEN)
    if status["phase"] != "running":
        raise ValueError(f"the cluster is not running: {status['phase']}: {status['waiting'] or status['phase_text']}")
    idle = [worker["name"] for worker in status["workers"] if not worker["member"]]
    if idle:
        raise ValueError(f"{', '.join(idle)} of {len(status['workers'])} workers stand by and share no slots")
    return (
        f"app {status['app']}, version {status['app_version']}, with {len(paths)} paths; "
        f"{len(status['workers'])} workers share {status['n_slots']} slots; generation {status['generation']}"
    )


deadline = time.monotonic() + SECONDS_MAX
while True:
    try:
        print("ok:", found())
        sys.exit(0)
    except (OSError, ValueError) as error:
        print(error, flush=True)
    if time.monotonic() > deadline:
        print(f"failed: still so after {SECONDS_MAX:g} s")
        sys.exit(1)
    time.sleep(1)
