"""Signatures that an `Inlet` can ask for: `Inlet(pushed, verify=HmacSignature("X-Hub-Signature-256", "SECRET"))`.

Public names only.
"""

from styx.gateway.signatures import HmacSignature, TimedSignature

__all__ = ["HmacSignature", "TimedSignature"]
