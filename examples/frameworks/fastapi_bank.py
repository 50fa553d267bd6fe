"""The bank in FastAPI: `BANK_DATA=bank-data uvicorn examples.frameworks.fastapi_bank:web`, in one process.

With BANK_URL, a gateway's URL, the same endpoints are in front of a cluster, in any number of processes.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, PositiveInt

import styx
from examples.bank import app
from styx.client.embedded import EmbeddedClient

URL = os.environ.get("BANK_URL")
bank = styx.connect(URL) if URL else styx.embedded(app, os.environ.get("BANK_DATA"))


class Transfer(BaseModel):
    payer: str
    payee: str
    amount: PositiveInt


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with bank:  # on the event loop that serves; closing it stores a snapshot
        yield


web = FastAPI(lifespan=lifespan)
if isinstance(bank, EmbeddedClient):
    web.mount("/bank", styx.asgi(bank))  # the whole bank under /bank: POST /bank/v1/account/ada/open, /bank/docs


@web.post("/transfers")
async def transfer(order: Transfer, idempotency_key: Annotated[str | None, Header()] = None) -> dict[str, int]:
    try:
        left = await bank.call(
            "account", order.payer, "transfer", order.payee, order.amount, idempotency_key=idempotency_key
        )
    except styx.TransactionAborted as aborted:
        raise HTTPException(409, aborted.message) from None
    except styx.NotSent as error:
        raise HTTPException(503, str(error), {"Retry-After": "1"}) from None
    except (styx.OutcomeUnknown, TimeoutError) as error:
        raise HTTPException(504, str(error)) from None  # it may have happened: no Retry-After
    return {"left": left}


@web.get("/accounts/{name}")
async def account(name: str) -> dict[str, int]:
    reply = await bank.read("account", name)
    if reply.error is not None:
        raise HTTPException(404 if reply.error.code == "unknown_entity" else 503, reply.error.message)
    return {"balance": reply.result["balance"]}
