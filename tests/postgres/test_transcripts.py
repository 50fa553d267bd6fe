"""Golden transcripts of PostgreSQL's protocol: what a client says, and what the server answers, as prose.

`pytest --rewrite` writes the answers anew; review the difference like code.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.postgres.conversation import (
    Conversation,
    client_proof,
    command_bytes,
    framed,
    lines,
    sasl_initial,
    sign_in,
    startup,
)
from tests.protocol.transcript import parse, rewritten

TRANSCRIPTS = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))


class Told:
    """Executes the commands of one transcript."""

    def __init__(self) -> None:
        self._conversation = Conversation()
        self._last = b""

    def execute(self, command: str) -> list[str]:
        verb, _, rest = command.partition(" ")
        words = dict(each.partition("=")[::2] for each in rest.split())
        if verb == "connects":
            self._conversation = Conversation(tls="tls" in words)
            return []
        if verb == "signs-in":
            self._conversation = Conversation()
            sign_in(self._conversation, **words)
            return []
        effects = len(self._conversation.effects)
        found = self._answer(verb, rest, words)
        if verb in ("ssl", "gss"):
            return [found.decode(), *self._conversation.effects[effects:]]
        told = lines(found) + self._conversation.effects[effects:]
        return told + ["the connection ends"] * self._conversation.ended

    def _answer(self, verb: str, rest: str, words: dict[str, str]) -> bytes:
        match verb:
            case "ssl" | "gss":
                data = struct.pack("!ii", 8, 80877103 + (verb == "gss"))
            case "cancel":
                data = struct.pack("!iii", 16, 80877102, 42) + bytes.fromhex(rest)
            case "startup":
                major, _, minor = words.pop("version", "3.0").partition(".")
                data = startup(words, (int(major) << 16) + int(minor))
            case "proves":
                data = sasl_initial()
            case "password":
                data = framed(b"p", client_proof(rest, self._last[9:].decode()))
            case "leaves":
                data = b""
            case _:
                data = command_bytes(f"{verb} {rest}".strip())
        self._last = self._conversation.send(data)
        return self._last


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    entries = parse(path.read_text())
    told = Told()
    if request.config.getoption("--rewrite"):
        path.write_text(rewritten(entries, told.execute))
        return
    for entry in entries:
        output = [line for command in entry.commands for line in told.execute(command)]
        assert output == entry.expected, f"{path.name}: after {entry.comment} {entry.commands}"
