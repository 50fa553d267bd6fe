"""The FastAPI application: checkouts and price updates, with what fills and empties a cart, on PostgreSQL.

Its paths, bodies and answers are those of a Styx gateway in front of the marketplace, so the same client talks to both.
Bodies are read by msgspec, with the checks of the same types, because that costs less than FastAPI's own models.

    uvicorn --factory benchmarks.marketplace.postgres.application:make_app --workers 2
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import msgspec
from fastapi import FastAPI, Request, Response

from benchmarks.marketplace.answers import CheckoutOutcome
from benchmarks.marketplace.errors import CartFull, EmptyCart, UnknownCustomer, UnknownProduct, WrongCustomer
from benchmarks.marketplace.postgres import statements
from benchmarks.marketplace.postgres.checking_out import CHECKOUT_VARIABLE, FORMS, SubmittedBefore
from benchmarks.marketplace.services.cart.rows import CartItemRow
from benchmarks.marketplace.values import CartItem, Cents, CustomerCheckout, Version
from benchmarks.reference.serialized import Overloaded, pool_here, serialized

_NO_PLACE: Final = {"id": 0, "epoch": 0, "phase": 0}
_encode: Final = msgspec.json.Encoder().encode
_item_of: Final = msgspec.json.Decoder(tuple[CartItem]).decode
_submission_of: Final = msgspec.json.Decoder(tuple[CustomerCheckout]).decode
_price_of: Final = msgspec.json.Decoder(tuple[Cents, Version]).decode
_key_of: Final = msgspec.json.Decoder(tuple[int, int]).decode


def make_app() -> FastAPI:
    """The application of this process; its database is in the environment (`serialized.py`)."""
    app = FastAPI(lifespan=_connected, openapi_url=None)
    app.post("/v1/cart/{customer_id}/add_item")(add_item)
    app.post("/v1/cart/{customer_id}/seal")(seal)
    app.post("/v1/cart/{customer_id}/checkout")(checkout)
    app.post("/v1/product/{key}/set_price")(set_price)
    app.exception_handler(msgspec.ValidationError)(_bad_arguments)
    app.exception_handler(Overloaded)(_overloaded)
    for kind in (CartFull, EmptyCart, UnknownCustomer, UnknownProduct, WrongCustomer):
        app.exception_handler(kind)(_aborted)
    return app


@asynccontextmanager
async def _connected(app: FastAPI) -> AsyncIterator[None]:
    async with pool_here() as pool:
        app.state.pool = pool
        app.state.check_out = FORMS[os.environ[CHECKOUT_VARIABLE]]
        yield


async def add_item(customer_id: int, request: Request) -> Response:
    """See `benchmarks.marketplace.services.cart.filling.add_item`."""
    (item,) = _item_of(await request.body())
    try:
        await serialized(request.app.state.pool, statements.ADD_ITEM, customer_id, *msgspec.structs.astuple(item))
    except asyncpg.CheckViolationError as error:
        if error.constraint_name != statements.CART_IS_FULL:
            raise
        raise CartFull(f"the cart of customer {customer_id} has the most products") from None
    return _answer(CartItemRow(**msgspec.structs.asdict(item), added_price=item.unit_price))


async def seal(customer_id: int, request: Request) -> Response:
    """See `benchmarks.marketplace.services.cart.filling.seal`."""
    (dropped,) = await serialized(request.app.state.pool, statements.SEAL, customer_id)
    return _answer(dropped)


async def checkout(customer_id: int, request: Request) -> Response:
    """See `benchmarks.marketplace.services.cart.checking_out.checkout`."""
    (submission,) = _submission_of(await request.body())
    if submission.customer_id != customer_id:
        raise WrongCustomer(f"customer {submission.customer_id} cannot check out the cart of customer {customer_id}")
    state, repeated = request.app.state, False
    try:
        order_id, refused = await state.check_out(state.pool, submission)
    except (EmptyCart, SubmittedBefore) as error:
        found = await serialized(state.pool, statements.SUBMITTED, customer_id, submission.checkout_id)
        if found is None:
            raise EmptyCart(str(error)) from None
        order_id, refused = found
        repeated = True
    outcome = CheckoutOutcome.NOT_ACCEPTED if order_id is None else CheckoutOutcome.ACCEPTED
    return _answer({"outcome": outcome, "order_id": order_id, "refused": refused, "repeated": repeated})


async def set_price(key: str, request: Request) -> Response:
    """See `benchmarks.marketplace.services.product.selling.set_price`. The key is (seller, product)."""
    seller_id, product_id = _key_of(key)
    price, version = _price_of(await request.body())
    found = await serialized(request.app.state.pool, statements.SET_PRICE, seller_id, product_id, price, version)
    if found is None:
        raise UnknownProduct(f"seller {seller_id} does not offer a product {product_id}")
    return _answer(dict(found))


def _answer(result: Any) -> Response:
    return Response(_encode({"result": result, "transaction": _NO_PLACE}), media_type="application/json")


def _refusal(status: int, code: str, error: Exception) -> Response:
    body = {"error": {"code": code, "type": type(error).__name__, "message": str(error)}}
    return Response(_encode(body), status, media_type="application/json")


async def _aborted(_: Request, error: Exception) -> Response:
    return _refusal(409, "aborted", error)


async def _bad_arguments(_: Request, error: Exception) -> Response:
    return _refusal(422, "bad_arguments", error)


async def _overloaded(_: Request, error: Exception) -> Response:
    return _refusal(429, "overloaded", error)
