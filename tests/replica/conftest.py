"""The filled app of the tests of `styx.query`."""

from __future__ import annotations

from tests.query.conftest import Filled, filled

__all__ = ["Filled", "filled"]
