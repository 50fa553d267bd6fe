"""The bank in Flask: `BANK_DATA=bank-data flask --app examples.frameworks.flask_bank:web run`, in one process.

With BANK_URL, a gateway's URL, the same endpoints are in front of a cluster, in any number of processes.
"""

import os
from typing import Any

from flask import Flask, request

import styx
from examples.bank import app

URL = os.environ.get("BANK_URL")
bank = styx.connect_sync(URL) if URL else styx.embedded_sync(app, os.environ.get("BANK_DATA"))
web = Flask(__name__)


@web.post("/transfers")
def transfer() -> Any:
    order, key = request.get_json(), request.headers.get("Idempotency-Key")
    try:
        # The serving process opens the client at its first request. The client closes when the process ends.
        left = bank.open().call(
            "account", order["payer"], "transfer", order["payee"], order["amount"], idempotency_key=key
        )
    except styx.TransactionAborted as aborted:
        return {"error": aborted.message}, 409
    except styx.NotSent as error:
        return {"error": str(error)}, 503, {"Retry-After": "1"}
    except (styx.OutcomeUnknown, TimeoutError) as error:
        return {"error": str(error)}, 504  # it may have happened: no Retry-After
    return {"left": left}


@web.get("/accounts/<name>")
def account(name: str) -> Any:
    state = bank.open().entity("account", name)
    return (state, 200) if state is not None else ({"error": f"no account {name}"}, 404)
