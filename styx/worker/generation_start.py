"""What a worker has loaded when a generation begins: its slots, but for those that it has as the snapshot has them.

State that another version of the app has stored is converted meanwhile. Decides only; loading is `recovery`'s. Paper
section 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from styx.app import App
from styx.deployment.conversion import converts
from styx.limits import Limits
from styx.protocol import Recover
from styx.worker.events import Converting, LoadState
from styx.worker.slot import Table


def load_state(
    message: Recover, slots: list[int], held: Mapping[int, Mapping[str, Table]], app: App, limits: Limits
) -> LoadState:
    """To be loaded for `slots`, which run `app` from here on."""
    manifest = message.manifest
    kept = {slot: held[slot] for slot in slots if slot in held}
    other = manifest is not None and manifest.app_version != message.app_version
    converting = Converting(app, limits, kept) if other and converts(app) else None
    return LoadState(message.generation, slots, manifest, kept.keys(), converting)
