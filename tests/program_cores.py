"""More threads than cores, a core taken away, a busy neighbour: at most twice the time of the fair share."""
import os
import statistics
import subprocess
import sys

import pytest

import drive

pytestmark = pytest.mark.alone
MODEL = os.path.join(drive.fetch("smollm2"), "smollm2-135m-q41.gguf")
CORES = sorted(os.sched_getaffinity(0))
REPETITIONS = 3


def speed(threads, cores):
    """-> tokens/s of generation, the median of a few short runs, on the given cores."""
    where = ("taskset", "-c", ",".join(map(str, cores)))
    runs = [drive.pinch_json("bench", "-m", MODEL, "-p", 16, "-n", 32, "-r", 1, "-t", threads, runner=where)["generate"]["tps_median"] for _ in range(REPETITIONS)]
    return statistics.median(runs)


needs_two = pytest.mark.skipif(len(CORES) < 2, reason="one core only")


@needs_two
def test_a_core_taken_away():
    fair, crowded = speed(1, CORES[:1]), speed(2, CORES[:1])
    assert crowded >= fair / 2, f"two threads on one core: {crowded:.1f} tokens/s, one thread {fair:.1f}"


@needs_two
def test_four_times_more_threads_than_cores():
    fair, crowded = speed(2, CORES[:2]), speed(8, CORES[:2])
    assert crowded >= fair / 2, f"eight threads on two cores: {crowded:.1f} tokens/s, two threads {fair:.1f}"


@needs_two
def test_a_busy_loop_beside():
    fair = speed(2, CORES[:2])
    with subprocess.Popen(["taskset", "-c", str(CORES[1]), sys.executable, "-c", "while True: pass"]) as busy:
        try:
            shared = speed(2, CORES[:2])
        finally:
            busy.kill()
    # one core and a half are left
    assert shared >= fair * 0.75 / 2, f"beside a busy loop: {shared:.1f} tokens/s, alone {fair:.1f}"
