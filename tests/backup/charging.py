"""The chaos app with a till, whose payments charge somebody outside. A file has each charge; another one holds them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from proof import chaos_app
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

CHARGES_VARIABLE: Final = "STYX_TEST_CHARGES"

till = Operator("till", key_type=str)


def charge(amount: int, idempotency_key: str) -> int:
    """The external function."""
    charges = Path(os.environ[CHARGES_VARIABLE])
    with charges.open("a") as file:
        file.write(f"{idempotency_key}\n")
    while charges.with_suffix(".hold").exists():
        time.sleep(0.02)
    return amount


@till.register
async def pay(ctx: Context, amount: int) -> int:
    """What the till holds then."""
    total: int = (await ctx.get() or 0) + await ctx.call_external(charge, amount)
    await ctx.put(total)
    return total


app = App("charging", [*chaos_app.app.operators.values(), till])
