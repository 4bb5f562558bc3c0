r"""What source emitted to torch needs at run time; the one module of the numerics that imports torch, and only such source
imports it.

.. math:: \frac{\partial}{\partial x_i} \frac{\partial^k f}{\partial x_j \cdots} = \frac{\partial^{k+1} f}{\partial x_i
    \partial x_j \cdots}

Automatic differentiation of a stable form is not itself stable: a limit 0/0 is a constant to it, and a branch not taken
sends back nan. So the derivatives are expressions of their own, emitted beside the value, and autograd is told of them.
Beyond the last of them it differentiates that one's source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import factorial
from typing import Any

import torch as _torch
from torch import Tensor

__all__ = ["differentiable", "gamma", "lambertw", "piecewise", "polygamma", "torch"]

Level = Callable[..., Sequence[Any]]
_HALLEY = 20  # steps; from the starts below the last digit is reached in less than ten


class _Torch:
    """What emitted source calls ``torch``: its functions, of numbers too."""

    def __init__(self, module: Any) -> None:
        self._module = module

    @property
    def special(self) -> _Torch:
        return _Torch(self._module.special)

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        function = getattr(self._module, {"equal": "eq"}.get(name, name))

        def of_numbers(*arguments: Any) -> Tensor:
            like = next((argument for argument in arguments if isinstance(argument, Tensor)), None)
            return function(*(_tensor(argument, like) for argument in arguments))  # type: ignore[no-any-return]

        self.__dict__[name] = of_numbers
        return of_numbers


torch = _Torch(_torch)


def _tensor(value: Any, like: Tensor | None) -> Tensor:
    if isinstance(value, Tensor) and value.dtype == _torch.bool:
        return value
    return _torch.as_tensor(value, dtype=_torch.float64, device=None if like is None else like.device)


def differentiable(*levels: Level) -> Callable[..., list[Tensor]]:
    """The function that the first of ``levels`` computes; each further one has all derivatives of the outputs before it.

    The derivatives of one output in all arguments stand together. Arguments are numbers, arrays or tensors, which are
    taken as float64 and broadcast together; so are the outputs, on the device of the first tensor.
    """

    def function(*values: Any) -> list[Tensor]:
        like = next((value for value in values if isinstance(value, Tensor)), None)
        tensors = [_tensor(value, like) for value in values]
        shape = _torch.broadcast_shapes(*(tensor.shape for tensor in tensors))  # type: ignore[no-untyped-call]
        return list(_applied(levels, [tensor.expand(shape) for tensor in tensors]))

    return function


def _applied(levels: Sequence[Level], values: Sequence[Tensor]) -> Sequence[Tensor]:
    if len(levels) > 1 and values:
        return _Elementwise.apply(levels, *values)  # type: ignore[no-any-return, no-untyped-call]
    return _evaluated(levels[0], values)


def _evaluated(level: Level, values: Sequence[Tensor]) -> tuple[Tensor, ...]:
    like = values[0] if values else _torch.zeros((), dtype=_torch.float64)
    return tuple(_tensor(result, like).expand(like.shape).clone() for result in level(*values))


class _Elementwise(_torch.autograd.Function):
    """A level at every point; its derivatives are the next level."""

    @staticmethod
    def forward(levels: Sequence[Level], *values: Tensor) -> tuple[Tensor, ...]:
        return _evaluated(levels[0], values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.levels, *values = inputs
        ctx.save_for_backward(*values)
        ctx.save_for_forward(*values)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        rows = _slopes(ctx)
        wanted = ctx.needs_input_grad[1:]
        pairs = [(cotangent, row) for cotangent, row in zip(cotangents, rows, strict=True) if cotangent is not None]
        return None, *(
            _total([cotangent * row[place] for cotangent, row in pairs]) if needed else None
            for place, needed in enumerate(wanted)
        )

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        moving = [(place, tangent) for place, tangent in enumerate(tangents) if tangent is not None]
        return tuple(reduce(_torch.add, (row[place] * tangent for place, tangent in moving)) for row in _slopes(ctx))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], levels: Sequence[Level], *values: Tensor) -> Any:
        moved = [
            value.expand(info.batch_size, *value.shape) if place is None else value.movedim(place, 0)
            for value, place in zip(values, in_dims[1:], strict=True)
        ]
        results = _applied(levels, moved)
        return tuple(results), (0,) * len(results)


def _slopes(ctx: Any) -> list[Sequence[Tensor]]:
    """The derivatives of each output in all arguments."""
    values = ctx.saved_tensors
    flat = _applied(ctx.levels[1:], values)
    return [flat[start : start + len(values)] for start in range(0, len(flat), len(values))]


def _total(terms: Sequence[Tensor]) -> Tensor | None:
    return reduce(_torch.add, terms) if terms else None


def piecewise(arguments: Sequence[Any], *branches: tuple[Callable[..., Any], Callable[..., Any]]) -> Tensor:
    """The first branch whose condition holds, nan where none does.

    Branches are evaluated everywhere, but where one is not taken its arguments are cut off: no nan comes back from there.
    """
    like = next((argument for argument in arguments if isinstance(argument, Tensor)), None)
    tensors = [_tensor(argument, like) for argument in arguments]
    left = _torch.ones_like(tensors[0], dtype=_torch.bool)
    result = _torch.full_like(tensors[0], _torch.nan)
    for condition, value in branches:
        taken = left & condition(*tensors)
        inside = (_torch.where(taken, tensor, tensor.detach()) for tensor in tensors)
        result = _torch.where(taken, _tensor(value(*inside), like), result)
        left = left & ~taken
    return result


def polygamma(order: int, x: Any) -> Tensor:
    """The derivatives of the digamma function from Hurwitz' zeta function."""
    point = _tensor(x, None)
    if order == 0:
        return _torch.digamma(point)
    size: Tensor = factorial(order) * _torch.special.zeta(_torch.full_like(point, order + 1), point)
    return size if order % 2 else -size


def gamma(u: Any) -> Tensor:
    """The gamma function from the logarithm of its size, nan at its poles."""
    x = _tensor(u, None)
    odd = (x < 0) & (_torch.floor(x) % 2 != 0)
    value = _torch.exp(_torch.special.gammaln(x)) * _torch.where(odd, -1.0, 1.0)
    return _torch.where((x <= 0) & (x == _torch.floor(x)), _torch.nan, value)


def lambertw(u: Any, branch: int = 0) -> Tensor:
    r"""A real branch, 0 or -1, of the inverse of :math:`w e^w`, nan where it is not real.

    Halley's method for :math:`w e^w - u`, divided by :math:`e^w`, from the first terms of the series.
    """
    if branch not in (0, -1):
        raise ValueError(f"branch {branch} of the Lambert function is not real; 0 and -1 are")

    def slope(x: Tensor) -> tuple[Tensor]:
        w = lambertw(x, branch)
        return (_torch.exp(-w) / (1 + w),)

    return differentiable(lambda x: (_halley(x, branch),), slope)(u)[0]


def _halley(x: Tensor, branch: int) -> Tensor:
    root = _torch.sqrt(_torch.clamp(2 * (_torch.e * x + 1), min=0))
    near = -1 + root * (1 if branch == 0 else -1) - root**2 / 3
    far = _torch.log(x.abs())
    far = far - _torch.log(far.abs())
    middle = _torch.where(x < 1, x / (1 + x), _torch.log1p(x))
    w = _torch.where(x < -0.2, near, _torch.where((x < _torch.e) & (branch == 0), middle, far))
    for _ in range(_HALLEY):
        half = _torch.exp(-w / 2)  # whose square overflows where x is subnormal
        residual = w - x * half * half
        step = residual / (w + 1 - (w + 2) * residual / (2 * w + 2))
        w = _torch.where(_torch.isfinite(step), w - step, w)
    w = _torch.where(x == _torch.inf, x, w)
    return _torch.where((x >= -1 / _torch.e) & ((x < 0) | (branch == 0)), w, _torch.nan)
