"""Authenticated, framed connections between the processes of a cluster. Payloads are opaque bytes.

`listen` and `dial` give a `Connection` to a peer that has proved that it knows the cluster's secret. Nothing is
unpickled. Nothing is retried: the caller decides which peers to dial, and when to dial again.
"""

from __future__ import annotations

from styx.transport.connection import SEND_BUFFER_BYTES_MAX, Connection
from styx.transport.frame import FRAME_BYTES_MAX, FrameTooLarge
from styx.transport.handshake import Hello, Refusal, Refused
from styx.transport.listener import Listener, listen
from styx.transport.opening import dial
from styx.transport.tls import Security, TlsFiles

__all__ = [
    "FRAME_BYTES_MAX",
    "SEND_BUFFER_BYTES_MAX",
    "Connection",
    "FrameTooLarge",
    "Hello",
    "Listener",
    "Refusal",
    "Refused",
    "Security",
    "TlsFiles",
    "dial",
    "listen",
]
