"""`make gpu-check`: the CPU and CUDA give the same numbers, and how fast each is, as a table for the docs.

The time of a gradient by seed, for batches of several sizes, the CPU with one thread. Where there is no CUDA device, one
line says so, and that is no failure.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tabulate import tabulate

from simulate.run import value_and_gradient
from tests.bench.clock import best
from tests.simulate.heads import head
from tests.simulate.teachers import student

BATCHES = (1, 8, 64)
PLACES = ("cpu", "cuda")
LEAST, OF = 3, 8
"""The throughput of a batch of so many seeds on CUDA, in that of one seed after the other on the CPU."""
TESTS = Path(__file__).parents[1] / "simulate" / "test_devices.py"


def copy_heads(place: str, batch: int) -> Callable[[], object]:
    made = replace(head(L=32, V=8, P=400, seeds=range(batch)), on=place)
    return gradient(made, made.begin("copy"))


def students(place: str, batch: int) -> Callable[[], object]:
    made = replace(student(d=1000, rows=batch), device=torch.device(place))
    return gradient(made, made.begin("semantic"))


def gradient(made, theta: torch.Tensor) -> Callable[[], object]:
    def step() -> None:
        _, slope = value_and_gradient(made.energy, theta)
        slope.cpu()  # waits for the device

    return step


MODELS = {"copy head, L = 32, V = 8, P = 400": copy_heads, "student, d = 1000, n = 1500": students}


def measured(places: tuple[str, ...], models=MODELS, batches=BATCHES) -> dict[tuple[str, int, str], float]:
    """Seconds by seed of every model, batch and place."""
    torch.set_num_threads(1)
    return {
        (name, batch, place): best(model(place, batch), 5, time.perf_counter) / batch
        for name, model in models.items()
        for batch in batches
        for place in places
    }


def table(seconds: dict[tuple[str, int, str], float], places: tuple[str, ...]) -> str:
    rows = [
        [name, batch, *(f"{1e3 * seconds[name, batch, place]:.3g}" for place in places)]
        for name, batch in dict.fromkeys(key[:2] for key in seconds)
    ]
    return tabulate(rows, ["gradient", "seeds", *(f"{place}, ms a seed" for place in places)], tablefmt="github")


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no CUDA device here: nothing was checked")
        return 0
    failed = pytest.main(["-q", "-rs", str(TESTS)])
    seconds = measured(PLACES)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n\n{table(seconds, PLACES)}\n")
    ratios = [seconds[name, 1, "cpu"] / seconds[name, OF, "cuda"] for name in MODELS]
    print(f"{OF} seeds on CUDA against one after the other on the CPU: {', '.join(f'{r:.1f}' for r in ratios)} times")
    return int(failed) or int(min(ratios) < LEAST)


if __name__ == "__main__":
    sys.exit(main())
