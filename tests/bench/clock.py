"""The time that something takes: the best of several, since other work on the machine only adds to it."""

import time


def best(call, rounds=10, clock=time.process_time):
    """Seconds of processor time, or of another ``clock``, of the fastest of ``rounds`` calls after one that warms up."""
    call()
    times = []
    for _ in range(rounds):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)
