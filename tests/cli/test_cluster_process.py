"""A process of a cluster: how it ends when its supervisor is gone."""

import os
import signal
import time

import pytest

from styx.cli import cluster_process


def test_it_has_the_time_that_its_supervisor_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: done.append((pid, number)))
    monkeypatch.setattr(time, "sleep", done.append)
    reading, writing = os.pipe()
    os.close(writing)  # as the supervisor's end does
    cluster_process._watch(reading, 632.0)
    os.close(reading)
    assert done == [(os.getpid(), signal.SIGTERM), 632.0, (os.getpid(), signal.SIGKILL)]
