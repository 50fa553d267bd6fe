"""What an embedded engine does when a replay would give another reply than the one that was given: it does not start.

Unless it was told to accept that: then it says each, and goes on. Reads the replies stream; writes nothing.
"""

from __future__ import annotations

import logging

from styx.embedded_engine.app_change import ACCEPT, AppChange
from styx.log.base import LogReader, Stream
from styx.messages import ReplyRecord, decode_reply
from styx.worker.events import ReplyDiffers
from styx.worker.replay_difference import CAUSES, TOLD_MAX, ReplayDiffers, causes, contradicts, difference

_log = logging.getLogger("styx.embedded")


class ReplayWatch:
    """`found` counts the replies that are other ones."""

    def __init__(self, log: LogReader, change: AppChange) -> None:
        self.found = 0
        self._log = log
        self._change = change

    def differs(self, effect: ReplyDiffers) -> None:
        """Raises `ReplayDiffers`, unless nobody was told anything else or it is accepted."""
        answered = self._answered(effect)
        words = difference(effect.request, answered, effect.reply)
        harmless = answered is not None and not contradicts(answered, effect.reply)
        if not (harmless or self._change.accept):
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        if self.found <= TOLD_MAX:
            further = "; further ones are counted only" if self.found == TOLD_MAX else ""
            why = causes(answered, effect.reply)
            _log.warning("%s; what was answered stands in the log: %s%s", words, why, further)

    def _causes(self) -> str:
        if self._change.changed and not self._change.recorded_code_ran:
            return "the code has changed since the crash, or the function is not deterministic"
        return CAUSES

    def _way_on(self) -> str:
        if self._change.changed and not self._change.recorded_code_ran:
            start = "Start once with the code from before and stop it cleanly, or go"
        else:
            start = "Go"
        return f"{start} on with what the replay gives, with {ACCEPT}: it says each reply that would be another one."

    def _answered(self, effect: ReplyDiffers) -> ReplyRecord | None:
        first, _ = self._log.bounds(Stream.REPLIES, effect.slot)
        for record in self._log.read(Stream.REPLIES, effect.slot, first):
            reply = decode_reply(record.payload)
            if reply.sequence == effect.reply.sequence:
                return reply
        return None
