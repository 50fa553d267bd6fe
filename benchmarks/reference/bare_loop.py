"""The bare loop: it decodes the request, runs the same function bodies on a dictionary of bytes, and encodes the reply,
without an engine.
"""

from __future__ import annotations

import msgspec

from styx.messages import ReplyRecord, decode_request, encode_reply
from styx.values.codec import decode_plain, encode_strict


def bare_loop(requests: list[bytes], state: dict[int, bytes]) -> list[bytes]:
    """The replies to `requests`, run one after the other on `state`, which maps keys to encoded states."""
    replies = []
    decode_arguments = msgspec.msgpack.Decoder(tuple[int, int]).decode
    encode = msgspec.msgpack.Encoder().encode
    for tid, data in enumerate(requests, 1):
        request = decode_request(data)
        to, amount = decode_arguments(request.params)
        key = request.key
        assert isinstance(key, int)
        debtor = decode_plain(state[key])
        if debtor["balance"] < amount:
            error = ("aborted", "InsufficientFunds", f"{key} cannot pay {amount}")
            replies.append(encode_reply(ReplyRecord(request.request_id, tid, tid, 0, 0, b"", error)))
            continue
        debtor["balance"] -= amount
        state[key] = encode_strict(debtor)
        creditor = decode_plain(state[to])
        creditor["balance"] += amount
        state[to] = encode_strict(creditor)
        reply = ReplyRecord(request.request_id, tid, tid, 0, 1, encode(debtor["balance"]))
        replies.append(encode_reply(reply))
    return replies
