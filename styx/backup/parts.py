"""The objects that a snapshot needs, with the parts of them that its manifest names, and whether they are whole.

Pure. Paper section 7.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from styx.protocol.manifest import Manifest, ObjectRef
from styx.snapshot.part import check_part

Parts = dict[str, list[ObjectRef]]
"""By name of the object."""


def parts_of(manifest: Manifest) -> Parts:
    """All that a recovery would read, by object, the oldest object first."""
    parts: Parts = {}
    for slot in manifest.slots:
        for ref in slot.objects:
            parts.setdefault(ref.name, []).append(ref)
    return dict(sorted(parts.items()))


def check_object(refs: Iterable[ObjectRef], data: bytes) -> None:
    """Raises `ObjectCorrupt` if one of these parts is not in the object as it was stored."""
    view = memoryview(data)
    for ref in refs:
        check_part(ref, view[ref.start : ref.start + ref.size])
