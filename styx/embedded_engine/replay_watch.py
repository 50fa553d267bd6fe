"""The watch on an embedded engine's replay: if a reply differs from the given one, the engine does not start.

If the engine was told to accept differences, it logs each of them and goes on.
"""

from __future__ import annotations

import logging

from styx.embedded_engine.app_change import ACCEPT, AppChange
from styx.log.base import LogReader, Stream
from styx.messages import ReplyRecord, decode_reply
from styx.reports.function_reports import FunctionReports
from styx.worker.events import NotResumed, ReplyDiffers
from styx.worker.given_replies import (
    CAUSES,
    ReplayDiffers,
    Told,
    causes,
    contradicts,
    difference,
    function_of,
    not_resumed,
)

_log = logging.getLogger("styx.embedded")


class ReplayWatch:
    """`found` counts the replies that are other ones."""

    def __init__(self, log: LogReader, change: AppChange, reports: FunctionReports) -> None:
        self.found = 0
        self._log = log
        self._change = change
        self._reports = reports
        self._told = Told()

    def differs(self, effect: ReplyDiffers) -> None:
        """Raises `ReplayDiffers`, unless nobody was told anything else or it is accepted."""
        answered = self._answered(effect) if effect.answered is None else effect.answered
        words = difference(effect.request, answered, effect.reply)
        harmless = answered is not None and not contradicts(answered, effect.reply)
        if not (harmless or self._change.accept):
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        function = function_of(effect.request)
        further = self._told.again(function)
        place = effect.reply.tid, effect.reply.epoch
        self._reports.replay_difference(function, *place, None if further is None else words)
        if further is not None:
            why = causes(answered, effect.reply)
            _log.warning("%s; what was answered stands in the log: %s%s", words, why, further)

    def not_resumed(self, effect: NotResumed) -> None:
        """Raises `ReplayDiffers`, unless it is accepted."""
        words = not_resumed(effect.tid, effect.slot)
        if not self._change.accept:
            raise ReplayDiffers(f"{words}: {self._causes()}. Nothing is lost. {self._way_on()}")
        self.found += 1
        further = self._told.again(None)
        self._reports.replay_difference(None, effect.tid, None, None if further is None else words)
        if further is not None:
            _log.warning("%s: %s%s", words, self._causes(), further)

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
