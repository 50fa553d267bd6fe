"""The payment provider, as the service of payments sees it: one question for each invoice, and what it answers.

A provider must answer the same to the same invoice number, and charge it once: after a crash it is asked again. Whoever
cannot be reached in three attempts counts as `unreachable`.
"""

from __future__ import annotations

import http.client
import json
import urllib.request
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from benchmarks.marketplace import settings

ATTEMPTS: Final = 3
TIMEOUT_S: Final = 2.0
ANSWER_BYTES_MAX: Final = 4096
_PARTS: Final = 1 << 64


class Answer(StrEnum):
    """What became of a charge."""

    APPROVED = "approved"
    REJECTED = "rejected"
    UNREACHABLE = "unreachable"


def rejected(invoice_number: str, percent: float, seed: int) -> bool:
    """Whether this invoice is among the `percent` that are rejected: always the same for the same number and seed."""
    digest = blake2b(f"{seed} {invoice_number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) * 100 < percent * _PARTS


def decide(invoice_number: str) -> Answer:
    """The answer if there is no provider."""
    return Answer.REJECTED if rejected(invoice_number, settings.REJECTED, settings.SEED) else Answer.APPROVED


def charge(invoice_number: str, customer_id: int, cents: int, payment_type: str) -> str:
    """Asks the provider to charge `cents`, at most three times. Gives an `Answer`, and raises nothing."""
    body = {
        "invoice_number": invoice_number,
        "customer_id": customer_id,
        "cents": cents,
        "payment_type": payment_type,
    }
    request = urllib.request.Request(
        f"{settings.PROVIDER.rstrip('/')}/charge",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Idempotency-Key": invoice_number},
        method="POST",
    )
    for _ in range(ATTEMPTS):
        answer = _ask(request)
        if answer is not None:
            return answer
    return Answer.UNREACHABLE


def _ask(request: urllib.request.Request) -> Answer | None:
    """One attempt; None if there was no answer that can be understood."""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer = json.loads(response.read(ANSWER_BYTES_MAX))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    status = answer.get("status") if isinstance(answer, dict) else None
    return Answer(status) if status in (Answer.APPROVED, Answer.REJECTED) else None
