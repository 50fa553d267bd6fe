"""What the services refuse, by name: the name of the class is the type of the error that a client gets."""

from __future__ import annotations


class CartClosed(Exception):
    """The cart is being checked out: nothing can be put in it or taken out of it."""


class CartFull(Exception):
    """The cart has as many products as a cart takes."""


class EmptyCart(Exception):
    """There is nothing in the cart to check out."""


class NotInCart(Exception):
    """The cart has no such product."""


class WrongCustomer(Exception):
    """The checkout names another customer than the cart's."""


class UnknownCustomer(Exception):
    """There is no such customer."""


class UnknownProduct(Exception):
    """There is no such product, or it was deleted."""


class UnknownOrder(Exception):
    """The customer has no order with this number."""


class UnknownStock(Exception):
    """There is no stock of such a product."""


class VersionTaken(Exception):
    """A replacement has the version that the product has, and yet it is another one."""


class WrongStep(Exception):
    """An order cannot come from its status to that one."""


class StillReserved(Exception):
    """Pieces of the product are reserved, so it cannot be removed."""


class AlreadyThere(Exception):
    """What is to be registered is there already."""
