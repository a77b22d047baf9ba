"""Threads that share a batch: every number once, and nothing begun after a failure."""

from __future__ import annotations

import signal
import time
from threading import Barrier, Event, get_ident

import pytest

from inference.thread_team import call_in_thread, map_in_threads, run_in_ranges
from tests.processes import run_python


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 3000])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_number_is_run_once(count: int, workers: int) -> None:
    ranges: list[tuple[int, int]] = []
    run_in_ranges(lambda first, last: ranges.append((first, last)), count, workers)
    ranges.sort()
    assert [first for first, _ in ranges] == [0, *(last for _, last in ranges)][: len(ranges)]
    assert sum(last - first for first, last in ranges) == count
    assert all(first < last for first, last in ranges)


def test_a_range_ends_where_it_is_told_to() -> None:
    ranges: list[tuple[int, int]] = []

    def end(first: int, last: int) -> int:
        return min(last, first - first % 10 + 10)

    run_in_ranges(lambda first, last: ranges.append((first, last)), 95, 1, end=end)
    assert {first // 10 for first, _ in ranges} == set(range(10))
    assert all(first // 10 == (last - 1) // 10 for first, last in ranges)


def test_short_tasks_run_in_the_calling_process() -> None:
    threads: set[int] = set()
    run_in_ranges(lambda *_: threads.add(get_ident()), 900, 2)
    assert threads == {get_ident()}


def test_long_work_is_shared() -> None:
    threads: list[int] = []

    def run(first: int, last: int) -> None:
        threads.append(get_ident())
        time.sleep(0.02 * (last - first))

    run_in_ranges(run, 20, 2)
    # The first tells how long one takes: 20 of them take longer than threads need to begin.
    assert threads[0] == get_ident()
    assert get_ident() not in threads[2:]
    assert len(set(threads)) == 3
    threads.clear()
    run_in_ranges(run, 6, 3, at_once=True)
    assert get_ident() not in threads
    assert len(set(threads)) == 3


@pytest.mark.parametrize(("count", "at_once"), [(9, False), (10, True)])
def test_a_few_that_take_long_are_taken_one_by_one(count: int, at_once: bool) -> None:
    sizes: list[int] = []

    def run(first: int, last: int) -> None:
        sizes.append(last - first)
        time.sleep(0.05 * (last - first))

    run_in_ranges(run, count, 2, at_once=at_once)
    assert sizes == [1] * count


def test_one_number_needs_no_thread() -> None:
    threads: list[int] = []
    run_in_ranges(lambda *_: threads.append(get_ident()), 1, 50, at_once=True)
    assert threads == [get_ident()]


def test_ranges_have_numbers_by_how_long_they_take() -> None:
    sizes: list[int] = []

    def run(first: int, last: int) -> None:
        sizes.append(last - first)
        time.sleep(0.001 * (last - first))

    run_in_ranges(run, 200, 1)
    # Some 20 ms of work each, at 1 ms a number and what the clock adds.
    assert sizes[0] == 1
    assert 5 <= max(sizes) <= 20


def test_tasks_not_yet_begun_are_dropped_when_a_range_fails() -> None:
    begun: list[int] = []
    failing = Event()

    def run(first: int, last: int) -> None:
        for number in range(first, last):
            begun.append(number)
            if number == 50:
                failing.set()
                raise ValueError("fifty")
            if number > 50:
                failing.wait(60.0)
                time.sleep(0.5)  # Raising takes microseconds.
            time.sleep(0.001)

    with pytest.raises(ValueError, match="fifty"):
        run_in_ranges(run, 10_000, 2, end=lambda first, _: first + 1)
    # Up to the one that failed, and the one that the other thread was at: numbers 0 to 51.
    assert len(begun) <= 52


def test_a_failure_is_raised_once_all_threads_have_ended() -> None:
    running: set[int] = set()
    begun = Barrier(3)

    def run(first: int, _: int) -> None:
        running.add(first)
        begun.wait(60.0)
        if first == 1:
            running.remove(first)
            raise ValueError("one")
        time.sleep(0.2)
        running.remove(first)

    with pytest.raises(ValueError, match="one"):
        run_in_ranges(run, 10, 3, at_once=True, end=lambda first, _: first + 1)
    assert not running


def test_an_interrupt_waits_for_the_ranges_that_have_begun() -> None:
    begun: list[int] = []
    finished: list[int] = []

    def run(first: int, _: int) -> None:
        begun.append(first)
        time.sleep(0.3)
        finished.append(first)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_in_ranges(run, 100, 2, at_once=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert sorted(begun) == sorted(finished)
    assert len(begun) <= 4


@pytest.mark.parametrize("workers", [1, 3])
def test_results_are_in_the_order_of_the_numbers(workers: int) -> None:
    def square(number: int) -> int:
        # Later numbers end earlier.
        time.sleep((8 - number) / 1000)
        return number**2

    assert map_in_threads(square, range(3, 8), workers) == [9, 16, 25, 36, 49]
    assert map_in_threads(square, range(0), workers) == []


def test_numbers_are_shared_one_by_one_among_threads() -> None:
    # The barrier lets nobody pass until two threads have each taken a number.
    barrier = Barrier(2, timeout=10)
    assert map_in_threads(lambda _: barrier.wait() >= 0, range(4), 2) == [True] * 4


def test_a_failure_of_one_number_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda number: 1 // (number - 2), range(5), 2)


def test_a_function_runs_in_another_thread() -> None:
    assert call_in_thread(get_ident) != get_ident()
    with pytest.raises(ZeroDivisionError):
        call_in_thread(lambda: 1 // 0)


@pytest.mark.kill
def test_interrupts_while_threads_start_block_no_process() -> None:
    """An interrupt is raised once the function has ended, whenever it arrives."""
    code = """
import signal
from inference.thread_team import call_in_thread

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
interrupts = 0
ended = []
for number in range(3000):
    try:
        # Interrupts arrive before, while and after the thread starts.
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (number % 20 + 1))
        for _ in range(50):
            call_in_thread(lambda: ended.append(number))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
print(interrupts > 1000)
"""
    assert run_python(code)[0] == "True\n"
