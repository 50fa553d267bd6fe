"""Processor time by role, from made-up samples."""

from __future__ import annotations

import os

import pytest

from benchmarks.driver.accounting import Sample, Usage, machine_usage, usage_by_role
from benchmarks.driver.processes import listening, sample, with_children


def test_a_role_has_the_growth_of_its_processes() -> None:
    samples = [
        Sample(10.0, {"worker": {1: Usage(5.0, 100), 2: Usage(1.0, 50)}, "broker": {9: Usage(70.0, 7)}}),
        Sample(12.0, {"worker": {1: Usage(6.0, 300), 2: Usage(1.5, 50)}, "broker": {9: Usage(70.0, 7)}}),
        Sample(14.0, {"worker": {1: Usage(7.0, 200), 2: Usage(2.0, 50)}, "broker": {9: Usage(70.4, 7)}}),
    ]
    usage = usage_by_role(samples)
    assert usage["worker"].cpu_s == pytest.approx(3.0)
    assert usage["worker"].cores == pytest.approx(0.75)
    assert (usage["worker"].processes, usage["worker"].rss_max_bytes) == (2, 350)
    assert usage["broker"].cpu_s == pytest.approx(0.4)


def test_a_new_process_counts_from_its_start_and_a_gone_one_up_to_its_last_sample() -> None:
    samples = [
        Sample(0.0, {"worker": {1: Usage(5.0, 1)}}),
        Sample(1.0, {"worker": {1: Usage(5.5, 1)}}),
        Sample(2.0, {"worker": {2: Usage(0.25, 1)}}),
    ]
    assert usage_by_role(samples)["worker"].cpu_s == pytest.approx(0.75)
    assert usage_by_role(samples)["worker"].processes == 2


def test_a_role_without_a_process_is_left_out() -> None:
    assert usage_by_role([Sample(0.0, {"gateway": {}}), Sample(1.0, {"gateway": {}})]) == {}


def test_what_no_role_used_was_others() -> None:
    samples = [
        Sample(0.0, {"worker": {1: Usage(5.0, 1)}}, busy_s=100.0, stolen_s=1.0),
        Sample(10.0, {"worker": {1: Usage(9.0, 1)}}, busy_s=115.0, stolen_s=1.5),
    ]
    machine = machine_usage(samples)
    assert (machine.seconds, machine.busy_s, machine.others_s, machine.stolen_s) == (10.0, 15.0, 11.0, 0.5)


def test_this_process_is_sampled_and_one_that_is_gone_is_not() -> None:
    taken = sample({"self": [os.getpid()], "gone": [2**22 - 1]})
    assert taken.roles["self"][os.getpid()].rss_bytes > 0
    assert taken.roles["self"][os.getpid()].cpu_s > 0
    assert taken.roles["gone"] == {}
    assert taken.busy_s > 0


def test_a_listening_process_is_found_by_its_port() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        assert listening(server.getsockname()[1]) == [os.getpid()]


def test_a_process_has_itself_among_its_children() -> None:
    assert os.getpid() in with_children(os.getpid())
    assert with_children(2**22 - 1) == []
