"""Golden transcripts of the protocol: what coordinator and workers say to each other, as prose with traces.

`pytest --rewrite` writes the traces anew; review the difference like code. A transcript that is written anew must still
be the trace of a serializable history, so a wrong one cannot be approved by accident.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol.commands import Session
from tests.protocol.transcript import parse, rewritten

TRANSCRIPTS = sorted(Path(__file__).with_name("transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, request: pytest.FixtureRequest) -> None:
    entries = parse(path.read_text())
    session = Session()
    if request.config.getoption("--rewrite"):
        path.write_text(rewritten(entries, session.execute))
    else:
        for entry in entries:
            output = [line for command in entry.commands for line in session.execute(command)]
            assert output == entry.expected, f"{path.name}: after {entry.comment} {entry.commands}"
    session.finish()


def test_a_transcript_comes_back_as_it_was_written() -> None:
    text = "# Prose.\n\n# More prose.\ncluster\nrun\n----\na\nb\n\nstate\n----\n\n# The end.\n"
    entries = parse(text)
    assert [(e.commands, e.expected) for e in entries] == [(["cluster", "run"], ["a", "b"]), (["state"], []), ([], [])]
    output = {"cluster": ["a"], "run": ["b"], "state": []}
    assert rewritten(entries, output.__getitem__) == text


def test_a_command_without_a_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="'run' is not followed"):
        parse("cluster\nrun\n\n# Prose\n")
