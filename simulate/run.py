r"""What every experiment shares: seeds, devices, energies of a batch, the loop and checkpoints.

.. math:: \theta_{k+1} = \mathrm{step}(\theta_k, \xi_k), \qquad \xi_k \text{ from the stream of } (\mathrm{seed}, \mathrm{use})

An energy maps a batch of states, one per row, to one number per row; a method says how a batch begins and how it takes
one step; `drive` is the only loop. A run depends on its seed, device and number of threads and on nothing else: stopped
anywhere and resumed from its checkpoint it ends in the same bits.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from tqdm import tqdm

__all__ = [
    "SILENT",
    "BudgetError",
    "CheckpointError",
    "DivergedError",
    "Energy",
    "Method",
    "Noise",
    "Run",
    "Tensors",
    "accuracy",
    "device",
    "drive",
    "generator",
    "hessian_product",
    "precision",
    "stiffness",
    "threads",
    "value_and_gradient",
]

Energy = Callable[[Tensor], Tensor]
"""Energies of shape (rows,) of a batch of states of shape (rows, dimension); no row depends on another."""
Tensors = Mapping[str, Tensor]

_VERSION = 1
_HOLDS = {"about": dict, "count": int, "now": dict, "noise": list, "draws": dict}
"""What a checkpoint holds beside its version."""
_PRECISION = {"float64": torch.float64, "float32": torch.float32}
_ACCURACY = {torch.float64: 1e-10, torch.float32: 1e-5}


class BudgetError(ValueError):
    """The experiment needs more memory than it may use."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read or written, or belongs to another run."""


class DivergedError(ArithmeticError):
    """The energy of a run is no longer finite."""


# --- seeds and devices ---


def generator(seed: int, use: str) -> torch.Generator:
    """The stream of random numbers of one seed for one use; different uses of a seed are independent.

    It lives on the CPU, so that every device sees the same numbers. Raises `ValueError` for a negative seed.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f"the seed {seed!r} is not a whole number >= 0")
    digest = hashlib.sha256(f"{use}/{seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def device(name: str) -> torch.device:
    """The device called ``name``, ``auto`` being the fastest; raises `ValueError` that lists the ones there are.

    With CUDA, all sums are in a fixed order from there on: the same run has the same bits.
    """
    there = ["cpu"]
    if torch.cuda.is_available():
        there += ["cuda", *(f"cuda:{k}" for k in range(torch.cuda.device_count()))]
    chosen = there[min(1, len(there) - 1)] if name == "auto" else name
    if chosen not in there:
        raise ValueError(f"there is no device {name!r} here; the devices are {', '.join(there)}, or auto")
    if chosen != "cpu":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what a fixed order asks of cuBLAS
        torch.use_deterministic_algorithms(True)
    return torch.device(chosen)


def accuracy(like: Tensor) -> float:
    """What an iteration in the precision of ``like`` may be asked for, relative to its scale: half the digits and some."""
    return _ACCURACY[like.dtype]


def precision(name: str) -> torch.dtype:
    """The dtype of that name; raises `ValueError`."""
    if name not in _PRECISION:
        raise ValueError(f"{name!r} is no precision; it is {' or '.join(_PRECISION)}")
    return _PRECISION[name]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch computes with ``count`` threads: the last bits of sums depend on their number."""
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, not {count}")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Noise:
    """One stream of random numbers per row, so that a row does not depend on the batch it is in.

    They are drawn in double precision on the CPU and rounded, so that it does not depend on the device either.
    """

    streams: tuple[torch.Generator, ...]

    @classmethod
    def of(cls, seeds: Iterable[int], use: str = "noise") -> Noise:
        return cls(tuple(generator(seed, use) for seed in seeds))

    def normal(self, like: Tensor) -> Tensor:
        """Standard normal numbers in the shape of ``like``, one stream for each of its rows."""
        rows = [torch.randn(like.shape[1:], generator=stream, dtype=torch.float64) for stream in self.streams]
        return torch.stack(rows).to(like)

    def uniform(self, like: Tensor) -> Tensor:
        """Numbers from [0, 1), one per row."""
        rows = [torch.rand((), generator=stream, dtype=torch.float64) for stream in self.streams]
        return torch.stack(rows).to(like)

    def state(self) -> list[Tensor]:
        return [stream.get_state() for stream in self.streams]

    def restore(self, states: Sequence[Tensor]) -> None:
        for stream, state in zip(self.streams, states, strict=True):
            stream.set_state(state)


SILENT = Noise(())
"""Of methods that draw nothing."""


# --- energies ---


def value_and_gradient(energy: Energy, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Energies of shape (rows,) and their gradients of the shape of ``theta``."""
    with torch.enable_grad():
        state = theta.detach().requires_grad_()
        values = energy(state)
        (gradient,) = torch.autograd.grad(values.sum(), state)
    return values.detach(), gradient


def hessian_product(energy: Energy, theta: Tensor, direction: Tensor) -> Tensor:
    """The Hessian of each row's energy times that row of ``direction``, by differentiating twice."""
    with torch.enable_grad():
        state = theta.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(energy(state).sum(), state, create_graph=True)
        (product,) = torch.autograd.grad((gradient * direction).sum(), state)
    return product


def stiffness(energy: Energy, theta: Tensor, seed: int = 0, steps: int = 30) -> Tensor:
    """The curvature of largest size of each row's energy, within a few per cent, by power iteration: (rows,).

    Descent and unadjusted Langevin are unstable at rates above 2 over it, and well below it their bias is small.
    """
    direction = Noise.of([seed], "stiffness").normal(theta[:1]).expand_as(theta)
    for _ in range(steps):
        direction = direction / direction.norm(dim=-1, keepdim=True)
        product = hessian_product(energy, theta, direction)
        largest, direction = (direction * product).sum(-1), product
    found: Tensor = largest
    return found


# --- the loop ---


class Method(Protocol):
    """How a batch of states begins and takes one step. Its tensors hold ``theta`` and the ``energy`` there."""

    @property
    def noise(self) -> Noise: ...

    def describe(self) -> str: ...

    def begin(self, theta: Tensor) -> Tensors: ...

    def step(self, count: int, now: Tensors) -> Tensors: ...


@dataclass(frozen=True)
class Run:
    """Where a run is after ``count`` steps, and the ``draws`` observed on the way, each of shape (rows, draws)."""

    count: int
    now: Tensors
    draws: Tensors


Observe = Callable[[Tensors], Tensors]


@dataclass(frozen=True)
class _Place:
    """All that the rest of a run depends on; ``seen`` is how many draws belong to it."""

    count: int
    now: Tensors
    noise: list[Tensor]
    seen: int


def drive(
    method: Method,
    theta: Tensor,
    steps: int,
    *,
    observe: Observe | None = None,
    burn: int = 0,
    thin: int = 1,
    until: Callable[[Tensors], bool] | None = None,
    about: Mapping[str, str] | None = None,
    checkpoint: Path | None = None,
    every: int = 1000,
    quiet: bool = True,
) -> Run:
    """``steps`` steps of ``method`` from ``theta``, fewer once ``until`` holds.

    After ``burn`` steps, every ``thin``-th state is observed. With a ``checkpoint`` the run goes on from that file if
    it is there, and writes it every ``every`` steps, at the end and when it is interrupted; ``about`` says what the run
    is, and a file of anything else is refused. Raises `DivergedError`, naming the step, as soon as an energy is not
    finite, `CheckpointError`, and `ValueError` for a number of steps that cannot be.
    """
    for name, value, least in (("steps", steps, 0), ("burn", burn, 0), ("thin", thin, 1), ("every", every, 1)):
        if value < least:
            raise ValueError(f"{name} = {value} must be at least {least}")
    loop = {"method": method.describe(), "burn": burn, "thin": thin, "threads": torch.get_num_threads()}
    about = {**(about or {}), **{name: str(value) for name, value in loop.items()}}

    def seen(count: int) -> int:
        return 0 if observe is None else max(0, count - burn) // thin

    place = _Place(0, method.begin(theta), method.noise.state(), 0)
    draws: list[Tensors] = []
    found = None if checkpoint is None else _read(checkpoint, about, place, steps, seen)
    if found is not None:
        place, draws = found
        method.noise.restore(place.noise)
    _refuse_infinite(place, about)
    bar = tqdm(
        total=steps, initial=place.count, desc=about["method"], file=sys.stderr, leave=False, disable=quiet or None
    )
    try:
        while place.count < steps and not (until is not None and until(place.now)):
            count, now = place.count + 1, method.step(place.count, place.now)
            if observe is not None and count > burn and (count - burn) % thin == 0:
                draws.append(observe(now))
            after = _Place(count, now, method.noise.state(), len(draws))
            _refuse_infinite(after, about)
            place = after
            bar.update()
            if checkpoint is not None and count % every == 0:
                _write(checkpoint, about, place, draws)
    finally:  # an interrupted run leaves its last whole step behind, one that blew up the last finite one
        bar.close()
        if checkpoint is not None:
            _write(checkpoint, about, place, draws)
    return Run(place.count, place.now, _joined(draws))


def _refuse_infinite(place: _Place, about: Mapping[str, str]) -> None:
    finite = torch.isfinite(place.now["energy"])
    if not finite.all():
        rows = ", ".join(map(str, (~finite).nonzero().flatten().tolist()))
        raise DivergedError(
            f"the energy of row {rows} is not finite after step {place.count}; take a smaller step ({about['method']})"
        )


def _joined(draws: Sequence[Tensors]) -> dict[str, Tensor]:
    return {name: torch.stack([draw[name] for draw in draws], dim=1) for name in (draws[0] if draws else ())}


def _write(path: Path, about: Mapping[str, str], place: _Place, draws: Sequence[Tensors]) -> None:
    """Write the file beside its place and move it there, so that it is never half a checkpoint."""
    content = {
        "version": _VERSION,
        "about": dict(about),
        "count": place.count,
        "now": dict(place.now),
        "noise": place.noise,
        "draws": _joined(draws[: place.seen]),
    }
    whole, beside = io.BytesIO(), path.with_name(f"{path.name}.part")
    torch.save(content, whole)  # in memory first: where a file cannot take it, torch reports its own state at length
    try:
        beside.write_bytes(whole.getbuffer())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise CheckpointError(f"the checkpoint {path} cannot be written: {error.strerror}") from None


def _read(
    path: Path, about: Mapping[str, str], begun: _Place, steps: int, seen: Callable[[int], int]
) -> tuple[_Place, list[Tensors]] | None:
    """The place and the draws in the file, `None` if there is none; raises `CheckpointError` for what cannot follow on
    ``begun`` within ``steps``."""
    if not path.parent.is_dir():
        raise CheckpointError(f"there is no folder {path.parent} for the checkpoint {path.name}")
    if not path.exists():
        return None
    damaged = CheckpointError(f"{path} is no checkpoint, or a damaged one; remove it to begin this run again")
    try:
        whole = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} cannot be read: {error.strerror}") from None
    try:
        content = torch.load(whole, weights_only=True, map_location=begun.now["theta"].device)
    except Exception:  # of damaged bytes the readers of archives and pickles raise whatever they meet
        raise damaged from None
    if not isinstance(content, dict) or "version" not in content:
        raise damaged
    if content["version"] != _VERSION:
        raise CheckpointError(f"{path} is a checkpoint of version {content['version']}; this one reads {_VERSION}")
    if not all(isinstance(content.get(name), kind) for name, kind in _HOLDS.items()):
        raise damaged
    made_for, count, now, noise, joined = (content[name] for name in _HOLDS)
    for name in (*about, *made_for):
        if made_for.get(name) != about.get(name):
            raise CheckpointError(
                f"{path} belongs to a run with {name} = {made_for.get(name)}, not {about.get(name)}; give another file"
            )
    if not 0 <= count <= steps:
        raise CheckpointError(f"{path} is at step {count} of a run of {steps}; ask for more steps, or remove it")
    drawn = seen(count)
    head = (len(begun.now["theta"]), drawn)
    if not (
        _alike(now, begun.now)
        and _alike(dict(enumerate(noise)), dict(enumerate(begun.noise)))
        and all(isinstance(values, Tensor) and values.shape[:2] == head for values in joined.values())
        and bool(joined) == bool(drawn)
    ):
        raise damaged
    draws: list[Tensors] = [{name: values[:, k] for name, values in joined.items()} for k in range(drawn)]
    return _Place(count, now, [state.cpu() for state in noise], drawn), draws


def _alike(found: Mapping[Any, object], begun: Mapping[Any, Tensor]) -> bool:
    """Whether tensors of the same names have the same shapes and types."""
    kinds = {name: (tensor.shape, tensor.dtype) for name, tensor in begun.items()}
    return kinds == {name: isinstance(value, Tensor) and (value.shape, value.dtype) for name, value in found.items()}
