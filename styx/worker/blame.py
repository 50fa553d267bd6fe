"""Names the request at which the engine failed, so that an operator can set it aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.worker.invocation import Invocation
    from styx.worker.root import RootTransaction


def blame_invocation(error: BaseException, invocation: Invocation | None, root: RootTransaction | None) -> None:
    """Adds the invocation and the transaction to an error of the engine as notes. `root` is None if another worker has
    the transaction's root.
    """
    if invocation is None:
        return
    spec = invocation._spec
    what = f"{spec.operator}.{spec.name} on {shown(invocation._key)}, transaction {invocation._env.tid}"
    error.add_note(f"at {what}{'' if root is None else _request(root.slot, root.offset)}")


def blame_record(error: BaseException, slot: int, offset: int) -> None:
    """Adds the place of a request's record to an error of the engine that occurred while the record was taken."""
    error.add_note(f"at a request{_request(slot, offset)}")


def _request(slot: int, offset: int) -> str:
    return f" of the request {slot}:{offset}; if it fails again, `styx set-aside {slot}:{offset}` refuses that request"


def notes_of(error: BaseException) -> str:
    """The notes of an error in one line; empty if it has none."""
    notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("at ")]
    return "".join(f" ({note})" for note in notes[:1])
