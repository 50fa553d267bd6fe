"""The order in which a coordinator takes over a deployment.

Older coordinators may be alive and unreachable. What ends this one in any case is found first, so that it takes nothing
from one that works. Then the older ones are fenced, and only then is the log read: behind the fence nobody appends a
marker or a note that the reading would miss. Paper section 7.2.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class TakeOver(Enum):
    """A step of it. A step that fails because log or store are out of reach ends the attempt; the next attempt begins
    with the first step.
    """

    CHECK_LOG = "look whether the log has what the store's manifests refer to"
    MAKE_TOPICS = "make the topics that are missing"
    REHEARSE = "read as in the last step, and look whether the version that runs can be used"
    FENCE = "begin to append, so that the log refuses what older coordinators append"
    READ = "read what the coordinator begins from"


ORDER: Final = (TakeOver.CHECK_LOG, TakeOver.MAKE_TOPICS, TakeOver.REHEARSE, TakeOver.FENCE, TakeOver.READ)
"""The log is checked before topics are made: topics that are made anew would hide that they were lost."""
