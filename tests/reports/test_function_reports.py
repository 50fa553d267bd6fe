"""So many a second, and what was over it."""

from styx.reports.function_reports import Allowance


def test_so_many_a_second() -> None:
    now_s = 7.0
    allowance = Allowance(2, lambda: now_s)
    assert [allowance.passes() for _ in range(5)] == [True, True, False, False, False]
    now_s = 7.9
    assert not allowance.passes()
    assert (allowance.take_left_out(), allowance.take_left_out()) == (4, 0)
    now_s = 8.0
    assert [allowance.passes() for _ in range(3)] == [True, True, False]
