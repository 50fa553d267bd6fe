"""Frames come over a pipe as they were written, and nobody waits longer than there is time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from styx.query.frames import END, ROWS, Closed, FrameReader, OutOfTime, write_frame


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The reading and the writing end."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)


def test_frames_one_after_the_other(pipe: tuple[int, int]) -> None:
    with os.fdopen(pipe[1], "wb") as file:
        write_frame(file, ROWS, b"x" * 1_000)
        write_frame(file, END)
    frames = FrameReader(pipe[0], 1_000)
    assert frames.read() == (ROWS, b"x" * 1_000)
    assert frames.read() == (END, b"")
    with pytest.raises(Closed):
        frames.read()


def test_one_that_is_too_large(pipe: tuple[int, int]) -> None:
    with os.fdopen(pipe[1], "wb") as file:
        write_frame(file, ROWS, b"x" * 1_001)
    with pytest.raises(ValueError, match="1001 bytes came at once; the limit is 1000"):
        FrameReader(pipe[0], 1_000).read()


def test_time_is_used_up_by_waiting(pipe: tuple[int, int]) -> None:
    with os.fdopen(pipe[1], "wb") as file:
        write_frame(file, END)
        frames = FrameReader(pipe[0], 10)
        frames.seconds_left = 0.0
        assert frames.read() == (END, b""), "what is there needs no waiting"
        with pytest.raises(OutOfTime):
            frames.read()
