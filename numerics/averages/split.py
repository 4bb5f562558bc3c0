r"""Averages over a proximal map that jumps: one direction is integrated along lines that are cut where the map jumps.

.. math:: I = \int \mathcal D\xi_\perp \int \mathcal D\xi\, F, \qquad
          \xi(u) = \frac{u + \varphi'(u)/a - u_0}{\tau}, \qquad
          \varphi(u) = \min_y \tfrac12 (y - y_c)^T K (y - y_c) + g(y, u)

In coordinates z = N y + e u with e^T V^{-1} N = 0 the center moves with u_0 + tau xi along e and y_c stays, so that on a
line M = min_u (a/2)(u - u_c)^2 + phi(u): the global minimiser runs over the points where (a/2) u^2 + phi touches its convex
hull, and jumps over the rest (Maxwell's construction). The integration variable is u itself: F is smooth in it on both
sides of a jump, however close its end is, and no equation has to be solved for u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from numerics.averages.ensemble import Array
from numerics.averages.frame import Frame, Rotated
from numerics.averages.grids import legendre
from numerics.averages.proximal import Minimum, Mirrors, descend, factorised, lowest
from numerics.points import SolverError

__all__ = ["Lines", "Panels", "lines", "margins", "span"]

_BLOCK = 1 << 16  # nodes that are evaluated at once
_SLACK = 1e-3  # by how much the lengths of a panel, in xi and integrated over u, may differ
_FLAT = 1e-3  # the depth of a fold, relative to the metric, whose two sides cancel but for the power 5/2 of it
_SHORT = 1e-7  # the length of a panel on which nothing happens
_DEPTH = 14  # how often a panel is cut
_CROWDED = 32  # panels a line, of those that are cut at once, that no jumps explain
_RELAXATIONS = 8  # Newton steps over y at fixed u, the last two of them safeguarded
_LAST, _FINE = 1e-6, 1e-9  # the last of these steps, and the last where the curvature itself is averaged
_TOLERANCE = 1e-4  # of the steps to the ends of panels, which need not be exact
_ITERATIONS = 10  # of Newton's method for a jump
_PARABOLAS = (0.5, 0.2, 0.05, 0.02)  # parts of a step over which the least pivot is fitted
_SHALLOW = 0.1  # the scale of a fold, relative to its panel, that a parabola describes
_RESOLVED = 0.3  # the scale of a minimum of the pivot, relative to its panel, that nodes resolve as they are
_PROBES = 9  # points of a line at which its least pivot is sought
_SAMPLE = 16  # lines on which the range of u is taken
_MERGED = 1e-5  # minima closer than this are one
_TABLE, _BISECTIONS = 65, 20  # points of a panel and halvings of its range in the first guess of a jump


@dataclass(frozen=True)
class _Slice:
    """A rotated loss as a function of y at fixed u."""

    loss: Rotated
    u: Array

    def __call__(self, y: Array) -> tuple[Array, Array, Array]:
        value, gradient, hessian = self.loss(np.vstack([y, self.u]))
        return value, gradient[:-1], hessian[:-1, :-1]

    def at(self, points: NDArray[np.intp] | NDArray[np.bool_]) -> _Slice:
        return _Slice(self.loss.at(points), self.u[points])


@dataclass(frozen=True)
class Panels:
    """Stretches of lines between two points on the hull: the line of each, xi and zeta at both ends.

    ``scale`` is the distance in u over which dz/dc changes at each end, inf where that is not known.
    """

    line: NDArray[np.intp]
    xi: Array  # (2, panels)
    zeta: Array  # (2, fields, panels)
    scale: Array  # (2, panels)

    def at(self, chosen: NDArray[np.bool_] | slice) -> Panels:
        return Panels(self.line[chosen], self.xi[:, chosen], self.zeta[:, :, chosen], self.scale[:, chosen])

    def until(self, cut: Panels) -> Panels:
        """The parts up to the first ends of panels without length."""
        ends = zip((self.xi, self.zeta, self.scale), (cut.xi, cut.zeta, cut.scale), strict=True)
        return Panels(self.line, *(np.stack([own[0], other[0]]) for own, other in ends))

    def beyond(self, cut: Panels) -> Panels:
        """The parts from the second ends of panels without length."""
        ends = zip((self.xi, self.zeta, self.scale), (cut.xi, cut.zeta, cut.scale), strict=True)
        return Panels(self.line, *(np.stack([other[1], own[1]]) for own, other in ends))

    def nodes(self, order: int) -> tuple[Array, Array]:
        """Places between the ends, from 0 to 1, and weights, both (panels, ``order``).

        Near an end they are spaced evenly in asinh(distance/scale).
        """
        x, w = legendre(order)
        left, right = self.scale / np.abs(self.zeta[1, -1] - self.zeta[0, -1])
        inner, slope = _spread((1 - x) / 2, right[:, None])
        place, outer = _spread(1 - inner, left[:, None])
        return place, outer * slope * w / 2


@dataclass(frozen=True)
class _Sweep:
    """What the nodes of panels give: integrals (averages, panels), whether no jump is seen, xi and zeta at the nodes."""

    integrals: Array
    sound: NDArray[np.bool_]
    xi: Array  # (panels, order)
    zeta: Array  # (fields, panels, order)
    pivot: Array  # (panels, order)

    def at(self, chosen: NDArray[np.bool_]) -> _Sweep:
        return _Sweep(
            self.integrals[:, chosen], self.sound[chosen], self.xi[chosen], self.zeta[:, chosen], self.pivot[chosen]
        )


@dataclass(frozen=True)
class _Nodes:
    """Points on lines where the objective is stationary in y, and in u for the center at ``xi``."""

    line: NDArray[np.intp]
    zeta: Array
    xi: Array
    pivot: Array  # a tau dxi/du
    moreau: Array
    curvature: Array


@dataclass(frozen=True)
class _Cusp:
    """Where the pivot of panels is least, and the distance in u over which it doubles: inf where that is at an end."""

    xi: Array
    zeta: Array
    pivot: Array
    scale: Array


@dataclass(frozen=True)
class Lines:
    """Integrals along lines (averages, lines), the jumps as panels without length, and how many nodes were used."""

    integrals: Array
    jumps: Panels
    nodes: int

    @property
    def densities(self) -> Array:
        """The standard normal density of xi at the jumps."""
        return np.asarray(np.exp(-(self.jumps.xi[0] ** 2) / 2) / np.sqrt(2 * np.pi))

    def jump_weight(self, weights: Array, stride: float) -> float:
        """What jumps contribute to the average of du*/dc over lines with ``weights``; ``stride`` is dc/dxi."""
        apart = (self.jumps.zeta[1, -1] - self.jumps.zeta[0, -1]) / stride
        return float((weights[self.jumps.line] * self.densities * apart).sum())


def lines(
    frame: Frame, outer: Array, mirrors: Mirrors, order: int, pieces: int = 2, reach: float | Array = 6.0
) -> Lines:
    """Integrate over the last coordinate of xi for every column of ``outer`` (variables - 1, lines).

    ``order`` Gauss-Legendre nodes on every panel; ``pieces`` panels a line before it is cut at its jumps, between
    -``reach`` and ``reach`` standard deviations, which may differ from line to line.
    """
    size = outer.shape[1]
    reach = np.broadcast_to(np.asarray(reach, dtype=float), size)
    block = max(1, _BLOCK // (order * pieces))
    starts = range(0, size, block)
    chosen = [slice(start, start + block) for start in starts]
    parts = [_Bundle.of(frame, outer[:, part], mirrors).lines(order, pieces, reach[part]) for part in chosen]
    return Lines(
        np.concatenate([part.integrals for part in parts], axis=1),
        _joined([replace(part.jumps, line=part.jumps.line + start) for part, start in zip(parts, starts, strict=True)]),
        sum(part.nodes for part in parts),
    )


def margins(frame: Frame, outer: Array, mirrors: Mirrors) -> Array:
    """The least pivot within the `span` of u, for every column of ``outer``: negative where a line jumps."""
    bundle, count = _Bundle.of(frame, outer, mirrors), outer.shape[1]
    line = np.repeat(np.arange(count), _PROBES)
    u = np.linspace(*span(frame.near, mirrors), _PROBES)
    zeta = bundle.center[:, line]
    zeta[-1] = np.tile(u, count)
    nodes = bundle.relaxed(line, zeta, _TOLERANCE)
    pivot = nodes.pivot.reshape(count, _PROBES)
    if not frame.ensemble.jacobian:
        return _lowest(pivot, u)
    lowest = np.arange(count) * _PROBES + pivot.argmin(axis=1)
    return bundle.softest(np.arange(count), nodes.zeta[:, lowest], np.full(count, u[1] - u[0]))[0].pivot


@lru_cache(maxsize=64)
def span(frame: Frame, mirrors: Mirrors) -> tuple[float, float]:
    """The range of u that minimisers run through, on a sample of lines up to four standard deviations."""
    outer = np.random.default_rng(0).standard_normal((frame.ensemble.dimension - 1, _SAMPLE))
    line, xi = np.tile(np.arange(_SAMPLE), 2), np.repeat([-4.0, 4.0], _SAMPLE)
    ends = _Bundle.of(frame, outer, mirrors).minimum(line, xi).z[-1]
    return float(ends.min()), float(ends.max())


@dataclass(frozen=True)
class _Bundle:
    """Lines that are integrated at once: where they cross xi = 0, and the loss on each."""

    frame: Frame
    outer: Array
    base: Array  # x at xi = 0
    center: Array  # in the coordinates zeta
    loss: Rotated
    mirrors: Mirrors

    @classmethod
    def of(cls, frame: Frame, outer: Array, mirrors: Mirrors) -> _Bundle:
        base, center = frame.at(np.vstack([outer, np.zeros(outer.shape[1])]))
        return cls(frame, outer, base, center, frame.loss(base), mirrors)

    def moved(self, line: NDArray[np.intp], xi: Array) -> Array:
        """The center at xi on each line."""
        center = self.center[:, line]
        center[-1] += self.frame.stride * xi
        return center

    def minimum(self, line: NDArray[np.intp], xi: Array) -> Minimum:
        """The global minimum at xi on each line."""
        center = self.frame.basis @ self.moved(line, xi)
        loss, stiffness = self.loss.loss.at(line), self.frame.stiffness
        found = lowest(loss, center, stiffness, self.mirrors, _TOLERANCE)
        return replace(found, z=np.linalg.solve(self.frame.basis, found.z))

    def lines(self, order: int, pieces: int, reach: Array) -> Lines:
        count = self.outer.shape[1]
        cuts = np.linspace(-reach, reach, pieces + 1)
        line = np.tile(np.arange(count), pieces + 1)
        hull = self.minimum(line, cuts.ravel()).z.reshape(-1, pieces + 1, count)
        ends = np.stack([hull[:, :-1], hull[:, 1:]]).reshape(2, -1, pieces * count)
        stretch = np.stack([cuts[:-1].ravel(), cuts[1:].ravel()])
        panels = Panels(line[:-count], stretch, ends, np.full_like(stretch, np.inf))
        jumps = [panels.at(slice(0))]
        integrals = np.zeros((self.frame.ensemble.size, count))
        nodes = 0
        for _ in range(_DEPTH):
            swept = self.swept(panels, order)
            nodes += swept.xi.size
            for total, row in zip(integrals, swept.integrals, strict=True):
                total += np.bincount(panels.line[swept.sound], row[swept.sound], count)
            if swept.sound.all():
                break
            panels, jumped = self.cut(panels.at(~swept.sound), swept.at(~swept.sound))
            jumps.append(jumped)
            if len(panels.line) > _CROWDED * count:
                raise SolverError(f"integrals along {count} lines need more than {len(panels.line)} panels")
        else:  # what is left is as good as a jump, on so short a panel
            jumps.append(replace(panels, xi=np.stack([panels.xi.mean(axis=0)] * 2)))
        return Lines(integrals, _joined(jumps), nodes)

    def swept(self, panels: Panels, order: int) -> _Sweep:
        """Integrals over panels (averages, panels), and which of the panels hold no jump."""
        place, w = panels.nodes(order)
        left, right = panels.zeta
        shape = place.shape
        zeta = left[:, :, None] + (right - left)[:, :, None] * place
        nodes = self.relaxed(np.repeat(panels.line, order), zeta.reshape(len(left), -1))
        xi, pivot = nodes.xi.reshape(shape), nodes.pivot.reshape(shape)
        pull = self.frame.metric[-1, -1]
        density = pivot * (right[-1] - left[-1])[:, None] * w / (pull * self.frame.stride)
        length = panels.xi[1] - panels.xi[0]
        slack = 0.0 if self.frame.ensemble.jacobian else _FLAT
        sound = (np.diff(xi, axis=1) > -slack * length[:, None]).all(axis=1)
        sound &= _lowest(pivot, legendre(order)[0]) > -slack * pull
        sound &= np.abs(density.sum(axis=1) - length) <= _SLACK * length
        if self.frame.ensemble.jacobian:
            sound &= ~_narrow(pivot, place)
        weight = density * np.exp(-(xi**2) / 2) / np.sqrt(2 * np.pi)
        integrals = (self.integrand(nodes).reshape(-1, *shape) * weight).sum(axis=2)
        return _Sweep(integrals, sound | (length < _SHORT), xi, nodes.zeta.reshape(-1, *shape), pivot)

    def relaxed(self, line: NDArray[np.intp], zeta: Array, tolerance: float | None = None) -> _Nodes:
        """Minimise over y at the u of ``zeta`` on each line."""
        tolerance = tolerance or (_FINE if self.frame.ensemble.jacobian else _LAST)
        frame, fixed = self.frame, self.center[:, line]
        zeta, value, gradient, curvature = _relaxed(self.loss.at(line), fixed, frame.metric, zeta, tolerance)
        pull = gradient[-1] / frame.metric[-1, -1]
        shift = zeta - fixed
        shift[-1] = -pull
        moreau = value + np.einsum("in,in->n", shift, frame.metric @ shift) / 2
        xi = (zeta[-1] + pull - fixed[-1]) / frame.stride
        return _Nodes(line, zeta, xi, _last_pivot(curvature), moreau, curvature)

    def integrand(self, nodes: _Nodes) -> Array:
        """The integrands (averages, nodes)."""
        frame = self.frame
        return frame.ensemble.integrand(
            self.base[:, nodes.line] + frame.columns[:, -1:] * nodes.xi,
            frame.dual @ np.vstack([self.outer[:, nodes.line], nodes.xi]),
            frame.basis @ nodes.zeta,
            nodes.moreau,
            _jacobian(frame, nodes.curvature) if frame.ensemble.jacobian else np.zeros(0),
            frame.values,
        )

    def softest(self, line: NDArray[np.intp], near: Array, step: Array) -> tuple[_Nodes, Array]:
        """Where the pivot is least in u, from parabolas through ``near``, and the second derivative there."""
        near = near.copy()
        for part in _PARABOLAS:
            shift = part * step
            below, middle, above = (self.shifted(line, near, place * shift).pivot for place in (-1, 0, 1))
            bend = (above - 2 * middle + below) / shift**2
            with np.errstate(divide="ignore", invalid="ignore"):
                move = np.where(bend > 0, (below - above) / (2 * shift) / bend, 0)
            near[-1] += np.clip(move, -4 * shift, 4 * shift)
        return self.shifted(line, near, np.zeros(len(line))), bend

    def shifted(self, line: NDArray[np.intp], near: Array, shift: Array) -> _Nodes:
        """One node on each line, at u shifted from ``near``."""
        zeta = near.copy()
        zeta[-1] += shift
        return self.relaxed(line, zeta)

    def cut(self, panels: Panels, swept: _Sweep) -> tuple[Panels, Panels]:
        """Cut panels at their jump, where dz/dc peaks, or in the middle: the new panels, and the jumps."""
        rough = self.frame.ensemble.jacobian
        xi, pair = _maxwell(panels, swept)
        cusp = self.cusps(panels, swept) if rough else _Cusp(xi, pair[0], np.zeros_like(xi), np.full_like(xi, np.inf))
        shallow = (cusp.pivot < 0) & (cusp.scale < _SHALLOW * np.abs(panels.zeta[1, -1] - panels.zeta[0, -1]))
        if shallow.any():
            xi, pair = np.where(shallow, cusp.xi, xi), np.where(shallow, self.parted(panels.line, cusp), pair)
        xi, pair, value = self.exchange(panels, xi, pair)
        found = np.isfinite(value)
        peaked = ~found & (cusp.pivot > 0) & np.isfinite(cusp.scale)
        xi = np.where(found, np.clip(xi, *panels.xi), np.where(peaked, cusp.xi, panels.xi.mean(axis=0)))
        best = self.minimum(panels.line, xi)
        found &= best.value > value - 1e-11 * np.abs(value)  # no third minimum is lower
        pair = np.where(found, pair, np.where(peaked, cusp.zeta, best.z))
        scale = np.where(found & rough, (pair[1, -1] - pair[0, -1]) / np.sqrt(12), np.where(peaked, cusp.scale, np.inf))
        panels = self.repaired(panels, best.z, ~found & ~peaked & (swept.pivot.min(axis=1) < 0))
        jumped = Panels(panels.line, np.stack([xi, xi]), pair, np.stack([scale, scale]))
        return _joined([panels.until(jumped), panels.beyond(jumped)]), jumped.at(found)

    def cusps(self, panels: Panels, swept: _Sweep) -> _Cusp:
        """Where the pivot of each panel is least."""
        rows, order = np.arange(len(panels.line)), swept.pivot.shape[1]
        lowest, u = swept.pivot.argmin(axis=1), swept.zeta[-1]
        middle = np.clip(lowest, 1, order - 2)
        step = (u[rows, middle + 1] - u[rows, middle - 1]) / 2
        nodes, bend = self.softest(panels.line, swept.zeta[:, rows, lowest], step)
        inside = (bend > 0) & (nodes.zeta[-1] > panels.zeta[0, -1]) & (nodes.zeta[-1] < panels.zeta[1, -1])
        scale = np.sqrt(2 * np.abs(nodes.pivot) / np.where(inside, bend, 1))
        return _Cusp(nodes.xi, nodes.zeta, nodes.pivot, np.where(inside, scale, np.inf))

    def parted(self, line: NDArray[np.intp], cusp: _Cusp) -> Array:
        """The two minima on both sides of a shallow fold, xi(u) being a cubic there."""
        shift = np.sqrt(3) * np.where(np.isfinite(cusp.scale), cusp.scale, 0)
        return np.stack([self.shifted(line, cusp.zeta, side * shift).zeta for side in (-1, 1)])

    def repaired(self, panels: Panels, start: Array, chosen: NDArray[np.bool_]) -> Panels:
        """The ``chosen`` panels, their ends replaced where a descent from ``start`` leads lower."""
        if not chosen.any():
            return panels
        ends, line = panels.zeta.copy(), panels.line[chosen]
        loss = self.loss.at(line)
        for end, xi in zip(ends, panels.xi, strict=True):
            center, old = self.moved(line, xi[chosen]), end[:, chosen]
            shift = old - center
            value = loss(old)[0] + np.einsum("in,in->n", shift, self.frame.metric @ shift) / 2
            found = descend(loss, center, self.frame.metric, start[:, chosen], _TOLERANCE)
            end[:, chosen] = np.where(found.value < value - 1e-6 * np.abs(value), found.z, old)
        return replace(panels, zeta=ends)

    def exchange(self, panels: Panels, xi: Array, pair: Array) -> tuple[Array, Array, Array]:
        """Newton's method for two minima of equal value: xi, the pair, and the value, nan where none was reached.

        The gap of the two values has the slope -(f_a - f_b).e along the line.
        """
        frame, size, count = self.frame, len(pair[0]), len(xi)
        line = np.tile(panels.line, 2)
        loss, pull = self.loss.at(line), frame.metric[-1, -1] * frame.stride
        floor = 1e-8 * frame.metric[-1, -1]
        value, settled = np.full(count, np.nan), np.zeros(count, dtype=bool)
        for _ in range(_ITERATIONS):
            zeta, center = np.concatenate(list(pair), axis=1), self.moved(line, np.tile(xi, 2))
            loss_value, slope, hessian = loss(zeta)
            force = frame.metric @ (zeta - center)
            curvature = hessian + frame.metric[:, :, None]
            step, convex = factorised(curvature, -slope - force, floor)
            along, _ = factorised(curvature, np.eye(size)[:, -1:] * np.full(2 * count, pull), floor)
            energy = loss_value + np.einsum("in,in->n", zeta - center, force) / 2
            energy += np.einsum("in,in->n", slope + force, step) / 2
            goal = zeta + step
            gap, apart = energy[:count] - energy[count:], goal[-1, count:] - goal[-1, :count]
            with np.errstate(all="ignore"):
                shift = -gap / (pull * apart)
            good = convex[:count] & convex[count:] & (apart > _MERGED) & (np.abs(shift) < 1)
            shift = np.where(good, shift, 0)
            change = step + along * np.tile(shift, 2)
            size_of_step = np.abs(change).max(axis=0).reshape(2, count).max(axis=0)
            settled = good & (size_of_step < 1e-7)
            inside = (xi > panels.xi[0] - _SHORT) & (xi < panels.xi[1] + _SHORT)
            value = np.where(settled & inside, energy[:count], np.nan)
            xi, pair = xi + shift, np.stack(np.split(zeta + change, 2, axis=1))
            if (settled | ~good).all():
                break
        return xi, pair, value


def _relaxed(
    loss: Rotated, center: Array, metric: Array, zeta: Array, tolerance: float
) -> tuple[Array, Array, Array, Array]:
    """Minimise over y at fixed u: zeta, and value, gradient and curvature of the loss (with the metric) there.

    A step within ``tolerance`` is the last: value and gradient follow it to second order, the curvature is that before it.
    """
    value, gradient, hessian = loss(zeta)
    block, every = metric[:-1, :-1], np.arange(zeta.shape[1])
    floor = 1e-8 * np.diag(metric).max()
    left: NDArray[np.intp] | slice = slice(None)
    for round_ in range(_RELAXATIONS if len(block) else 0):
        y, slope, bend = zeta[:-1, left], gradient[:, left], hessian[:, :-1, left]
        force = slope[:-1] + block @ (y - center[:-1, left])
        step, convex = factorised(bend[:-1] + block[:, :, None], -force, floor)
        moving = ~convex | ~(np.abs(step) <= tolerance * (1 + np.abs(y))).all(axis=0)
        change = np.einsum("ijn,jn->in", bend, step)
        zeta[:-1, left] += step
        value[left] += np.einsum("in,in->n", slope[:-1] + change[:-1] / 2, step)
        gradient[:, left] += change
        left = every[left][moving]
        if not len(left):
            break
        at = loss.at(left)
        if round_ >= _RELAXATIONS - 2:
            zeta[:-1, left] = descend(_Slice(at, zeta[-1, left]), center[:-1, left], block, zeta[:-1, left]).z
        value[left], gradient[:, left], hessian[..., left] = at(zeta[:, left])
    return zeta, value, gradient, hessian + metric[:, :, None]


def _maxwell(panels: Panels, swept: _Sweep) -> tuple[Array, Array]:
    """Where a panel with a fold jumps, to the accuracy of a table: equal areas under xi(u) on both sides.

    The lower convex hull of the integral of xi touches it at the pair that is sought.
    """
    order = swept.xi.shape[1]
    grid = np.linspace(-1, 1, _TABLE)
    table = _interpolation(order)
    xi, zeta = swept.xi @ table.T, swept.zeta @ table.T
    u = zeta[-1]
    area = np.concatenate(
        [np.zeros((len(u), 1)), np.cumsum((xi[:, 1:] + xi[:, :-1]) / 2 * np.diff(u, axis=1), axis=1)], axis=1
    )
    fold = np.diff(xi, axis=1).argmin(axis=1)
    left = np.arange(len(grid)) <= fold[:, None]
    low, high = panels.xi.copy()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        tilted = area - middle[:, None] * u
        upper = np.where(left, tilted, np.inf).min(axis=1) > np.where(left, np.inf, tilted).min(axis=1)
        low, high = np.where(upper, low, middle), np.where(upper, middle, high)
    tilted = area - low[:, None] * u
    rows = np.arange(len(u))
    ends = [np.where(side, tilted, np.inf).argmin(axis=1) for side in (left, ~left)]
    return (low + high) / 2, np.stack([zeta[:, rows, end] for end in ends])


@lru_cache(maxsize=64)
def _interpolation(order: int) -> Array:
    """From values at Gauss-Legendre nodes to values of their polynomial on an even grid."""
    x, _ = legendre(order)
    degree = order - 1
    polynomials = np.polynomial.legendre.legvander
    return np.asarray(polynomials(np.linspace(-1, 1, _TABLE), degree) @ np.linalg.inv(polynomials(x, degree)))


def _lowest(values: Array, x: Array) -> Array:
    """The least value between the nodes of every row, from the parabola through the lowest node and its neighbours."""
    rows = np.arange(len(values))
    middle = np.clip(values.argmin(axis=1), 1, len(x) - 2)
    a, b, c = (values[rows, middle + shift] for shift in (-1, 0, 1))
    left, right = x[middle] - x[middle - 1], x[middle + 1] - x[middle]
    rise, fall = (c - b) / right, (b - a) / left
    bend = (rise - fall) / (left + right)
    slope = (rise * left + fall * right) / (left + right)
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = np.clip(-slope / (2 * bend), -left, right)
    vertex = b + slope * offset + bend * offset**2
    return np.asarray(np.fmin(values.min(axis=1), np.where(bend > 0, vertex, np.inf)))


def _narrow(pivot: Array, place: Array) -> NDArray[np.bool_]:
    """Whether the pivot has a minimum between the nodes so narrow that they do not resolve its inverse."""
    rows, lowest = np.arange(len(pivot)), pivot.argmin(axis=1)
    middle = np.clip(lowest, 1, pivot.shape[1] - 2)
    a, b, c = (pivot[rows, middle + shift] for shift in (-1, 0, 1))
    x, y, z = (place[rows, middle + shift] for shift in (-1, 0, 1))
    bend = 2 * ((c - b) / (z - y) - (b - a) / (y - x)) / (z - x)
    return np.asarray((lowest == middle) & (2 * b < bend * _RESOLVED**2))


def _spread(t: Array, scale: Array) -> tuple[Array, Array]:
    """scale sinh(k t) with k such that 1 stays where it is, and the derivative; t where ``scale`` is no short one."""
    short = scale < _RESOLVED
    scale = np.where(short, scale, 1)
    k = np.arcsinh(1 / scale)
    return np.where(short, scale * np.sinh(k * t), t), np.where(short, scale * k * np.cosh(k * t), 1)


def _last_pivot(matrix: Array) -> Array:
    """The Schur complement of the last diagonal entry."""
    if len(matrix) == 1:
        return np.asarray(matrix[0, 0])
    solved, _ = factorised(matrix[:-1, :-1], matrix[:-1, -1], 1e-300)
    return np.asarray(matrix[-1, -1] - np.einsum("in,in->n", matrix[-1, :-1], solved))


def _jacobian(frame: Frame, curvature: Array) -> Array:
    """dz/dc = (V^{-1} + Hess g)^{-1} V^{-1} from the curvature in the coordinates zeta."""
    size = len(curvature)
    floor = 1e-300
    ones = np.ones(curvature.shape[2])
    inverse = np.stack(
        [factorised(curvature, np.eye(size)[:, i : i + 1] * ones, floor)[0] for i in range(size)], axis=1
    )
    left = np.tensordot(frame.basis, inverse, ((1,), (0,)))
    right = frame.basis.T @ frame.stiffness
    return np.asarray(np.einsum("ian,aj->ijn", left, right))


def _joined(parts: list[Panels]) -> Panels:
    return Panels(
        np.concatenate([part.line for part in parts]),
        np.concatenate([part.xi for part in parts], axis=1),
        np.concatenate([part.zeta for part in parts], axis=2),
        np.concatenate([part.scale for part in parts], axis=1),
    )
