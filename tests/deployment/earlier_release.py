"""A package's payload as the release before the modules moved wrote it: the same pickles, with the earlier names."""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO

from styx.deployment.moved_names import MOVED


def _kept_its_name(names: tuple[str, str]) -> bool:
    return names[0].rpartition(".")[2] == names[1].rpartition(".")[2]


_BEFORE = {present: earlier for earlier, present in sorted(MOVED.items(), key=_kept_its_name)}
"""Of a module that several are parts of now, the one that had its name."""


def as_before(payload: bytes) -> bytes:
    """`payload`, in which every text that is the present name of a moved module is the earlier one.

    Without frames, whose lengths would be others; unpicklers need none.
    """
    stream, written = BytesIO(payload), BytesIO()
    while stream.tell() < len(payload):
        start = stream.tell()
        found = [(code.name, argument, at) for code, argument, at in pickletools.genops(stream) if at is not None]
        ends = [at for _, _, at in found[1:]] + [stream.tell()]
        assert found[0][2] == start
        for (code, argument, at), end in zip(found, ends, strict=True):
            if code.endswith("BINUNICODE") and argument in _BEFORE:
                text = _BEFORE[argument].encode()
                written.write(pickle.SHORT_BINUNICODE + len(text).to_bytes(1, "little") + text)
            elif code != "FRAME":
                written.write(payload[at:end])
    return written.getvalue()


def names_in(payload: bytes) -> set[str]:
    """All texts of the pickles."""
    stream, texts = BytesIO(payload), set[str]()
    while stream.tell() < len(payload):
        texts |= {argument for _, argument, _ in pickletools.genops(stream) if isinstance(argument, str)}
    return texts
