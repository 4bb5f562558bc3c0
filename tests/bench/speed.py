"""`python -m tests.bench.speed`: measures what docs/speed.md states, into docs/speed.json, and writes the page from that.

Processor time of one thread, the best of some runs, so that other work on the machine counts as little as it can. With
``--write`` only the page is written anew.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from tabulate import tabulate

from simulate.run import value_and_gradient
from tests.bench import bench_batch, bench_emit
from tests.bench.clock import best
from tests.simulate.heads import head

DOCS = Path(__file__).parents[2] / "docs"
LARGE = {"L": 128, "V": 32, "P": 2000}
PASSES = 3
BESIDE = ({"P": 500}, {"P": 1000}, {"L": 32}, {"L": 64}, {"V": 8}, {"V": 16})


def started(*command):
    """Processor time of a command, imports and all, the best of three after one that warms up."""
    used = []
    for _ in range(4):
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime)
    return min(used[1:])


def ceilings():
    """Operations and bytes a second of one thread: a product of matrices, and a copy that fits no cache."""
    a, b = torch.rand(1200, 1200, dtype=torch.float64), torch.rand(2**25, dtype=torch.float64)
    into = torch.empty_like(b)
    return 2 * len(a) ** 3 / best(lambda: a @ a, 5), 2 * b.nbytes / best(lambda: into.copy_(b), 5)


def step(size):
    """Seconds of an energy and its gradient."""
    made = head(**size)
    theta = made.begin("copy")
    return best(lambda: value_and_gradient(made.energy, theta), 3)


def simulators():
    torch.set_num_threads(1)
    flops, bandwidth = ceilings()
    sizes = [LARGE, *({**LARGE, **other} for other in BESIDE)]
    seconds = [step(size) for size in sizes]
    least = [bound(size, flops, bandwidth) for size in sizes]
    logs = np.array([[np.log(size[name]) for name in LARGE] + [1] for size in sizes])
    exponents = np.linalg.lstsq(logs, np.log(seconds), rcond=None)[0][: len(LARGE)]
    return {
        "share of the bound": least[0] / seconds[0],
        "seconds": seconds[0],
        "operations a second": flops,
        "bytes a second": bandwidth,
        "exponents": dict(zip(LARGE, exponents, strict=True)),
    }


def bound(size, flops, bandwidth):
    """The least time of a step: three products of the attention with one-hot tokens, three passes over the attention."""
    attention = size["P"] * size["L"] ** 2
    return max(PASSES * 2 * attention * size["V"] / flops, PASSES * 8 * attention / bandwidth)


def measured():
    ratio, seconds, memory = bench_emit.raced()
    return {
        "emitted": {"ratio": ratio, "seconds": seconds, "memory": memory},
        "batch": bench_batch.seconds(100),
        "certified": best(lambda: bench_batch.certify(32), 3),
        "help": started("-m", "spinodal", "--help"),
        "import": started("-c", "import derive"),
        "transitions": started("-m", "spinodal", "transitions", "copy-head/softmax", "L=32", "V=8"),
        "simulators": simulators(),
    }


def page(found):
    emitted, sim = found["emitted"], found["simulators"]
    exponents = ", ".join(f"{name}^{value:.2f}" for name, value in sim["exponents"].items())
    rows = [
        (
            "emitted NumPy: softmax action, gradient and Hessian on 10^6 points",
            "1.3 times hand-written; memory 3 times the output",
            f"{emitted['ratio']:.2f} times; {emitted['memory']:.2f} times",
            "against `tests/bench/by_hand.py`; peak by tracemalloc",
        ),
        (
            "all transitions at 10^4 (L, V), softmax head, 10 digits",
            "60 s on 2 cores",
            f"{found['batch']:.0f} s on one",
            "`numerics.batch` on a grid of L from 4 to 512 and V from 2 to 64",
        ),
        (
            "50 certified digits of a point",
            "1 s",
            f"{found['certified']:.2f} s",
            "all transitions at L = 32, V = 8, with proofs; without start-up",
        ),
        ("`spinodal --help`", "0.5 s", f"{found['help']:.2f} s", "a process from its beginning"),
        ("`import derive`", "0.5 s", f"{found['import']:.2f} s", "a process from its beginning"),
        (
            "`spinodal transitions copy-head/softmax L=32 V=8`",
            "2 s",
            f"{found['transitions']:.2f} s",
            "a process from its beginning, the derivation cached",
        ),
        (
            "a step of the copy head, L = 128, V = 32, P = 2000",
            "30 % of the bound",
            f"{100 * sim['share of the bound']:.0f} % ({sim['seconds']:.2f} s)",
            f"bound: {sim['operations a second'] / 1e9:.1f} Gflop/s, {sim['bytes a second'] / 1e9:.1f} GB/s, same run",
        ),
    ]
    table = tabulate(rows, ["work", "bar", "measured", "method"], tablefmt="github", disable_numparse=True)
    return TEXT.format(table=table, exponents=exponents)


TEXT = """# Speed

Written by `python -m tests.bench.speed` from `speed.json`. Times are of the processor, one thread, the best of several runs;
the benchmarks (`make bench`) hold ratios within one run, which do not depend on the machine.

{table}

## What bounds each, and what was tried

- **Emitted NumPy.** Arrays are worked on in blocks of 16384 points: with 4096 the calls of NumPy cost a fifth more, with
  65536 nothing is gained. What is left are the exponential and the divisions, which the hand-written function has, too. That
  one takes up to twice as long where the memory of its temporaries is given back and fetched anew, which depends on what the
  process did before: so does the ratio.
- **Many setups.** Some thirty setups are solved by themselves and take most of the time: a few seeds, and those close to the
  line of critical end points, where two folds merge and neighbours are no good starts. All others take a millisecond,
  half of it for writing numbers as text. Names of continuous changes took half of the time until the window and the box
  were emitted as functions instead of substituted into.
- **Certified digits.** Four fifths are the search for branches in arithmetic of 30 digits, which does not depend on the number
  of digits; the proofs in balls are the rest.
- **Start-up.** Nothing heavy is imported before a verb needs it; `transitions` then spends half of its time on imports and
  on reading the derivation, half on the search for branches.
- **Steps of the copy head.** Fitted over P, L and V, the time of a step grows as {exponents}: between the work on features,
  P L V, and the products, P L^2 V and P L V^2. Exponentials are taken of tables only, not of entries of the attention,
  which are there for a few sequences at a time, in the cache, and are neither kept nor calculated again. Batched products
  are a quarter of the time, other products a seventh, multiplications of features a quarter, reading and adding rows of
  tables by token a sixth. What was tried: left to autograd, in chunks of 50, each calculated again for the gradient, it
  takes twice as long, since each chunk fills a table with zeros and adds it to the others; blocks of 2^18 or 2^19 entries
  take up to a tenth longer than of 2^17; X^T A^T has 1.4 times the rate of A X.
"""


def main():
    file = DOCS / "speed.json"
    if "--write" not in sys.argv:
        file.write_text(json.dumps(measured(), indent=1) + "\n")
    (DOCS / "speed.md").write_text(page(json.loads(file.read_text())))


if __name__ == "__main__":
    main()
