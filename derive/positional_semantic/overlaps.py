r"""The names of the theory: fields of student and teacher, overlaps of every token and their conjugates.

.. math:: q_l = \frac{Q^T \Sigma_l Q}{d}, \quad \theta_l = \frac{Q^T \Sigma_l Q^*}{d}, \quad
          m_l = \frac{Q^T p_l}{\sqrt d}, \quad V_l = \lim_{\beta \to \infty} \beta (r_l - q_l)

r_l is the overlap of a copy with itself, q_l that of two copies at the same data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Symbol

from derive.positional_semantic.model import Matrix, Model

__all__ = ["Overlaps", "conjugates", "fields", "overlaps", "paired", "rectangular", "symmetric"]


def fields(name: str, length: int, rank: int) -> Matrix:
    """The L x r matrix of fields called ``name``; one index where the rank is one."""
    return Matrix(length, rank, lambda place, a: Symbol(f"{name}_{place + 1}{a + 1 if rank > 1 else ''}", real=True))


def symmetric(name: str, size: int) -> Matrix:
    """A symmetric matrix of symbols, one for each entry a <= b; for size one the bare name."""

    def entry(a: int, b: int) -> Symbol:
        low, high = sorted((a, b))
        return Symbol(name if size == 1 else f"{name}_{low + 1}{high + 1}", real=True)

    return Matrix(size, size, entry)


def rectangular(name: str, rows: int, columns: int) -> Matrix:
    """A matrix of symbols."""

    def entry(a: int, b: int) -> Symbol:
        places = str(a + 1) * (rows > 1) + str(b + 1) * (columns > 1)
        return Symbol(f"{name}_{places}" if places else name, real=True)

    return Matrix(rows, columns, entry)


@dataclass(frozen=True)
class Overlaps:
    """The overlaps of one token, or their conjugates: q and V (r_s x r_s, symmetric), m (r_s), theta (r_s x r_t)."""

    q: Matrix
    V: Matrix
    m: Matrix
    theta: Matrix


def _named(model: Model, suffix: str) -> tuple[Overlaps, ...]:
    s, t = model.student_rank, model.teacher_rank
    return tuple(
        Overlaps(
            symmetric(f"q{suffix}_{place}", s),
            symmetric(f"V{suffix}_{place}", s),
            rectangular(f"m{suffix}_{place}", s, 1),
            rectangular(f"theta{suffix}_{place}", s, t),
        )
        for place in range(1, model.length + 1)
    )


def overlaps(model: Model) -> tuple[Overlaps, ...]:
    """The overlaps of every token."""
    return _named(model, "")


def conjugates(model: Model) -> tuple[Overlaps, ...]:
    """The conjugates of every token."""
    return _named(model, "hat")


def paired(tokens: Sequence[Overlaps], hats: Sequence[Overlaps]) -> list[tuple[str, Symbol, Symbol]]:
    """(q, V, m or theta; overlap; the conjugate it multiplies in the potential) for every independent entry."""
    found = []
    for token, hat in zip(tokens, hats, strict=True):
        for name, left, right in (("q", token.q, hat.V), ("V", token.V, hat.q)):
            found += [(name, left[a, b], right[a, b]) for a in range(left.rows) for b in range(a, left.rows)]
        for name, left, right in (("m", token.m, hat.m), ("theta", token.theta, hat.theta)):
            found += [(name, a, b) for a, b in zip(left, right, strict=True)]
    return found
