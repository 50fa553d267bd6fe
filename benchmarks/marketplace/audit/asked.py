"""What requests asked for and were given, as values of their types."""

from __future__ import annotations

from benchmarks.marketplace.answers import CheckoutResult
from benchmarks.marketplace.record import Asked, Ended, Kind
from benchmarks.marketplace.values import CustomerCheckout


def submitted(asked: Asked) -> CustomerCheckout:
    """The submission of a checkout."""
    return asked.argument_as(0, CustomerCheckout)


def checkout_result(asked: Asked) -> CheckoutResult | None:
    """What a checkout was answered; None if it was not, or has failed."""
    return asked.result_as(CheckoutResult) if asked.ended is Ended.COMMITTED else None


def is_checkout(asked: Asked) -> bool:
    """Whether it submits a cart."""
    return asked.kind in (Kind.CHECKOUT, Kind.CHECKOUT_AGAIN)
