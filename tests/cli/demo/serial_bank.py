"""A bank that runs one call after the other: what a faultless engine would have answered and logged."""

from collections.abc import Iterable
from itertools import count

from styx.cli.demo.bank import Call, app
from styx.cli.demo.senders import Entry, Journal
from styx.messages import ReplyRecord, Request, reply_of
from styx.testing.recorded_history import RecordedHistory
from styx.testing.serial import SerialReference
from styx.values.codec import encode_any


class SerialBank:
    """Its log (`history`), the clients' books (`journal`) and what the accounts hold."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.history = RecordedHistory({}, [], {}, 0)
        self._reference = SerialReference(app)
        self._numbers = count(1)
        self._first: dict[str, ReplyRecord] = {}

    def run(self, calls: Iterable[Call]) -> list[Entry]:
        """Runs and answers the calls."""
        entries = [self.journal.new(call) for call in calls]
        for entry in entries:
            self.journal.answered(entry, reply_of(self.send(entry)))
        return entries

    def send(self, entry: Entry) -> ReplyRecord:
        """One request: run, or the first reply again if its idempotency key is known."""
        number = next(self._numbers)
        call, request_id = entry.call, f"r{number}"
        params = encode_any(call.arguments, "arguments")
        request = Request(request_id, "account", call.key, call.function, params, entry.idempotency_key)
        self.history.requests[request_id] = (request, number)
        first = self._first.get(entry.idempotency_key)
        if first is None:
            outcome = self._reference.run(number, number, request)
            record = ReplyRecord(request_id, number, number, number // 5, 1, outcome.result or b"", outcome.error)
            self._first[entry.idempotency_key] = record
        else:
            record = ReplyRecord(request_id, number, first.tid, first.epoch, first.phase, first.result, first.error)
        self.history.replies.append(record)
        return record

    def forget(self, entry: Entry) -> None:
        """Forgets an idempotency key, as no engine may."""
        del self._first[entry.idempotency_key]

    def balances(self) -> dict[str, int]:
        """What every account holds, by key."""
        return {str(key): self._reference.value("account", key)["balance"] for _, key in self._reference.state}
