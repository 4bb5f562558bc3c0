"""What emitted source needs at run time, and how a call goes in and out: one namespace and one `call` per target."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import scipy  # its rooms are opened where they are used: that of special functions takes a fifth of a second
from mpmath import libmp, mp
from numpy.typing import ArrayLike, NDArray
from sympy import Rational

from derive.exact import exact

__all__ = ["MPMATH", "NUMPY", "call", "call_mpmath", "call_numpy", "fill_numpy"]

Function = Callable[..., tuple[Any, ...]]
Array = NDArray[np.float64]


class UndefinedError(ValueError, ZeroDivisionError):
    """An expression has no real value at its arguments."""


_BLOCK = 1 << 14  # points that are evaluated at once: enough that calls cost nothing, few enough for the cache
_MOST_LOST = 1 << 20  # bits beside a limit, which from there on is taken
_BUDGET = 1 << 24  # numbers held by all temporaries of one block


def call(function: Function, statements: int, values: Sequence[Any]) -> list[Any]:
    """Evaluate as it stands."""
    return list(function(*values))


def call_numpy(function: Function, statements: int, values: Sequence[ArrayLike]) -> list[Array]:
    """Evaluate on arrays in blocks; every result has the broadcast shape of the arguments and their wider precision."""
    wide = any(getattr(value, "dtype", None) == np.longdouble for value in values)
    precision = np.longdouble if wide else np.float64
    arrays = [np.asarray(value, dtype=precision) for value in values]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    size = int(np.prod(shape))
    block = max(1 << 10, min(_BLOCK, _BUDGET // (statements + 1)))
    with np.errstate(under="ignore"):  # an exponential that vanishes is no event
        if size <= block:
            results = function(*(array[()] for array in arrays))
            return _whole(results, shape, precision)
        flat = [array.reshape(()) if array.size == 1 else np.broadcast_to(array, shape).reshape(-1) for array in arrays]
        outputs: list[Array] = []
        for start in range(0, size, block):
            stop = min(start + block, size)
            results = function(*(array[start:stop] if array.ndim else array[()] for array in flat))
            outputs = outputs or [np.empty(size, precision) for _ in results]
            for output, result in zip(outputs, results, strict=True):
                output[start:stop] = result
    return [output.reshape(shape) for output in outputs]


def fill_numpy(function: Function, output: Array, values: Sequence[Array | float]) -> None:
    """Evaluate on arrays of one length and floats in blocks, into the rows of ``output``."""
    size = output.shape[1]
    with np.errstate(under="ignore"):
        for start in range(0, size, _BLOCK):
            part = slice(start, min(start + _BLOCK, size))
            block = (value[part] if isinstance(value, np.ndarray) else value for value in values)
            for row, result in zip(output, function(*block), strict=True):
                row[part] = result


def _whole(results: Sequence[Any], shape: tuple[int, ...], precision: type[np.floating[Any]]) -> list[Array]:
    """Arrays of ``shape`` that share no memory; what was computed anew at every point is taken as it is."""
    if not shape:
        return [np.asarray(result, dtype=precision)[()] for result in results]
    taken: set[int] = set()
    arrays = []
    for result in results:
        fresh = isinstance(result, np.ndarray) and result.base is None and result.shape == shape
        if not (fresh and result.dtype == precision and id(result) not in taken):
            result = np.array(np.broadcast_to(result, shape), dtype=precision)[()]
        taken.add(id(result))
        arrays.append(result)
    return arrays


def _numpy_piecewise(arguments: tuple[Array, ...], *branches: tuple[Callable[..., Any], Callable[..., Any]]) -> Array:
    """Conditions are tried in turn, each with its value only at the points that earlier ones left; nan where none holds.

    A condition is not a value: what overflows in it is no event.
    """
    shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
    flat = [np.broadcast_to(argument, shape).reshape(-1) for argument in arguments]
    result = np.full(int(np.prod(shape)), np.nan)
    left = np.arange(result.size)
    for condition, value in branches:
        if not left.size:
            break
        with np.errstate(over="ignore", invalid="ignore"):
            holds = np.broadcast_to(condition(*flat), left.shape)
        if holds.all():
            result[left] = value(*flat)
            break
        if holds.any():
            result[left[holds]] = value(*(argument[holds] for argument in flat))
            left, flat = left[~holds], [argument[~holds] for argument in flat]
    return result.reshape(shape)[()]


def _numpy_lambertw(u: Array, branch: int = 0) -> Array:
    """The real branches; nan where they are complex."""
    value = scipy.special.lambertw(u, branch)
    return np.where(value.imag == 0, value.real, np.nan)


NUMPY: dict[str, Any] = {"numpy": np, "scipy": scipy, "piecewise": _numpy_piecewise, "lambertw": _numpy_lambertw}


def call_mpmath(function: Function, statements: int, values: Sequence[object]) -> list[mpmath.mpf]:
    """Evaluate at the caller's precision, which is left as it is."""
    try:
        return [_real(result) for result in function(*map(_number, values))]
    except UndefinedError:
        raise
    except ZeroDivisionError:
        raise UndefinedError("a division by zero: the expression has no finite value at these arguments") from None


def _number(value: object) -> mpmath.mpf:
    """``value`` without loss: exact for integers, correctly rounded at the working precision for other rationals."""
    if isinstance(value, mpmath.mpf):
        return value
    if isinstance(value, str | Fraction | Rational | float):  # a float is refused there
        value = exact(value, "the argument")
        if isinstance(value, Rational) and value.is_finite:
            return mp.make_mpf(libmp.from_rational(int(value.p), int(value.q), mp.prec, "n"))
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return mp.make_mpf(libmp.from_int(operator.index(value)))
    if isinstance(value, mpmath.ctx_mp_python._constant):
        return +value
    raise TypeError(f"{value!r} is not a real number; pass an int, Fraction, SymPy Rational, mpf or decimal string")


def _real(value: Any) -> mpmath.mpf:
    if isinstance(value, mpmath.mpc):
        if value.imag:
            raise UndefinedError(f"the value is not real: {mpmath.nstr(value, 10)}")
        value = value.real
    return mpmath.mpf(value)


def _mpmath_piecewise(
    arguments: tuple[Any, ...], *branches: tuple[Callable[..., Any], Callable[..., Any]]
) -> mpmath.mpf:
    for condition, value in branches:
        if holds := condition(*arguments):
            with mp.workprec(mp.prec + holds - True):
                result = _real(value(*arguments))
            return +result
    return mpmath.nan


def _away(x: mpmath.mpf, order: int) -> int:
    """One more than the bits that a quotient of this order loses beside its limit; 0 where that is as good as its value."""
    lost = (order + 2) * max(0, -mpmath.mag(x)) if x else _MOST_LOST
    return 1 + lost if lost < _MOST_LOST else 0


def _mpmath_expm1(u: mpmath.mpf) -> mpmath.mpf:
    """exp(u) - 1 with as many extra bits as the subtraction loses; faster than mpmath's own."""
    lost = max(0, -mpmath.mag(u)) if u else mp.prec
    if lost > mp.prec or not mpmath.isfinite(u):
        return mpmath.expm1(u)
    above = libmp.mpf_exp(u._mpf_, mp.prec + lost + 5)
    return mp.make_mpf(libmp.mpf_sub(above, libmp.fone, mp.prec, "n"))


def _mpmath_log1p(u: mpmath.mpf) -> mpmath.mpf:
    """log(1 + u), the sum being exact; faster than mpmath's own."""
    if not -1 < u < mpmath.inf or not u or abs(mpmath.mag(u)) > mp.prec:
        return mpmath.log1p(u)
    return mp.make_mpf(libmp.mpf_log(libmp.mpf_add(libmp.fone, u._mpf_), mp.prec, "n"))


def _mpmath_xlogy(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    """x log y, which is 0 where x is."""
    return x * mpmath.log(y) if x else mpmath.mpf(0)


def _mpmath_xlog1py(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf:
    return x * _mpmath_log1p(y) if x else mpmath.mpf(0)


def _largest(*values: Any) -> mpmath.mpf:
    return mpmath.mpf(max(values))


def _smallest(*values: Any) -> mpmath.mpf:
    return mpmath.mpf(min(values))


MPMATH: dict[str, Any] = {
    "mpmath": mpmath,
    "away": _away,
    "piecewise": _mpmath_piecewise,
    "expm1": _mpmath_expm1,
    "log1p": _mpmath_log1p,
    "xlogy": _mpmath_xlogy,
    "xlog1py": _mpmath_xlog1py,
    "largest": _largest,
    "smallest": _smallest,
}
