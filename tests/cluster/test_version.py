"""What the protocol's version stands for: a change of what processes say to each other, or leave in log and store,
without a new version would let releases form a cluster that do not understand each other.
"""

from __future__ import annotations

import hashlib
import re
from types import ModuleType
from typing import TypeVar, get_type_hints

import msgspec

from styx import messages
from styx.cluster import wire
from styx.deployment import claim, package_format
from styx.model import changes as epoch_changes
from styx.model import limits
from styx.protocol import changes, frames, manifest, reads
from styx.protocol import messages as protocol
from styx.schema import description, state_findings
from styx.sequencer import epoch_record
from styx.snapshot import manifest as snapshot_manifest
from styx.snapshot import part as snapshot_object
from styx.transport import handshake

T = TypeVar("T")

MODULES = (
    *(wire, protocol, manifest, frames, reads, handshake, limits),
    *(changes, epoch_changes, messages, epoch_record, claim, description, package_format, state_findings),
)
FORMATS = (snapshot_object.MAGIC, snapshot_manifest._MAGIC, package_format.MAGIC)
DIGESTS = {4: "4a10506eae72437c021a660d"}
"""Of `text()`, for the present version. Older ones need not stay."""
_MODULE = re.compile(r"\bstyx(\.\w+)*\.(?=[A-Z])")
"""Where a class stands, which no process reads."""


def text() -> str:
    """Every message and record: its tag, and its fields in their order; sorted, wherever they stand."""
    lines = [repr(magic) for magic in FORMATS]
    for module in MODULES:
        for struct in _own(module, msgspec.Struct):
            config = struct.__struct_config__
            fields = [f"{field.encode_name}: {_plain(field)}" for field in msgspec.structs.fields(struct)]
            lines.append(f"{struct.__name__} {config.tag} {config.array_like} {', '.join(fields)}")
        lines += [f"{each.__name__} {get_type_hints(each)}" for each in _own(module, tuple) if hasattr(each, "_fields")]
    return _MODULE.sub("", "\n".join(sorted(lines)))


def _own(module: ModuleType, kind: type[T]) -> list[type[T]]:
    """Classes of a kind that the module defines, by name."""
    found = {each for each in vars(module).values() if isinstance(each, type) and issubclass(each, kind)}
    return sorted((each for each in found if each.__module__ == module.__name__), key=lambda each: each.__name__)


def _plain(field: msgspec.structs.FieldInfo) -> str:
    return f"{field.type} {'' if field.required else field.default}".replace("typing.", "").replace("NODEFAULT", "")


def digest() -> str:
    return hashlib.blake2b(text().encode(), digest_size=12).hexdigest()


def test_what_is_said_and_stored_changes_only_with_the_version() -> None:
    assert DIGESTS.get(handshake.VERSION) == digest(), (
        "Messages or records have changed, and a process of the release before would misread them: raise VERSION in "
        f"styx/transport/handshake.py by one, and write {{VERSION: {digest()!r}}} into DIGESTS of this test. If it has "
        "been raised since the last release already, only DIGESTS changes. See CONTRIBUTING.md, Versions."
    )


def test_the_digest_sees_tags_fields_and_their_order() -> None:
    seen = text()
    assert "Leave 111 True \n" in seen
    assert "Answer 108 True done: <class 'bool'> , text: <class 'str'> , version: <class 'int'> 0" in seen
    assert "EpochRecord 1 True" in seen
    assert "Request None True" in seen
