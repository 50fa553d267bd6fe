"""An embedded engine's options: their defaults, and the values that are refused at once."""

from __future__ import annotations

import os
from typing import Any, Final

from styx.errors import ConfigurationError
from styx.model.app import App
from styx.values.codec import shown

N_SLOTS_DEFAULT: Final = 4
N_SLOTS_MAX: Final = 4096
SNAPSHOT_SECONDS_DEFAULT: Final = 10.0


def check_options(app: Any, data_dir: Any, n_slots: Any, snapshot_interval: Any) -> None:
    """Raises `ConfigurationError` for what could only fail later, or worse, would not."""
    if not isinstance(app, App):
        raise ConfigurationError(f"an engine needs an App, got {shown(app)}")
    if data_dir is not None and not os.fspath(data_dir):
        raise ConfigurationError("data_dir is empty; None means in memory, and '.' this directory")
    if type(n_slots) is not int or not 0 < n_slots <= N_SLOTS_MAX:
        raise ConfigurationError(f"n_slots must be a number from 1 to {N_SLOTS_MAX}, got {shown(n_slots)}")
    if not isinstance(snapshot_interval, int | float) or not snapshot_interval > 0:
        raise ConfigurationError(f"snapshot_interval is a number of seconds above 0, got {shown(snapshot_interval)}")
