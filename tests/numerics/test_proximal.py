"""The global proximal map: against dense searches, exact answers, and starts on a saddle."""

import numpy as np
import pytest
from sympy import Integer

from numerics.averages.ensemble import Ensemble
from numerics.averages.proximal import competing, descend, factorised, lowest, minimise, rounded
from tests.numerics import fields


def sampled(ensemble, values, points, widened=1.0, seed=0):
    """Fields, loss and stiffness at a random sample of the measure, widened so that rare cases are seen."""
    level, vectors = np.linalg.eigh(ensemble.covariance(values))
    noise = np.random.default_rng(seed).standard_normal((ensemble.dimension, points))
    x = ensemble.mean(values)[:, None] + widened * (vectors * np.sqrt(np.maximum(level, 0))) @ noise
    return ensemble.center(x, values), ensemble.loss(x, values), np.linalg.inv(ensemble.width(values))


def densest(loss, center, stiffness, starts, seed=1):
    """The lowest minimum from many random starts around every center."""
    random = np.random.default_rng(seed)
    offsets = (random.standard_normal(center.shape) * random.choice([0.3, 1, 2]) for _ in range(starts))
    return minimise(loss, center, stiffness, [center + offset for offset in offsets])


@pytest.fixture(scope="module")
def attention():
    return Ensemble.compile(fields.attention(), fields.OVERLAPS)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_factorised_solves_where_the_matrix_is_positive_definite(size):
    random = np.random.default_rng(0)
    root = random.standard_normal((size, size, 50))
    matrix = np.einsum("ikn,jkn->ijn", root, root) - 0.5 * np.eye(size)[:, :, None]
    vector = random.standard_normal((size, 50))
    solution, positive = factorised(matrix, vector, 1e-12)
    stacked = np.moveaxis(matrix, -1, 0)
    expected = np.linalg.eigvalsh(stacked)[:, 0] > 0
    assert 0 < expected.sum() < 50 or size == 1
    assert (positive == expected).all()
    exact = np.linalg.solve(stacked, vector.T[:, :, None])[:, :, 0].T
    np.testing.assert_allclose(solution[:, positive], exact[:, positive], rtol=1e-6)


@pytest.mark.parametrize("values", [fields.SEMANTIC, fields.POSITIONAL, fields.UNINFORMED, (0.2, 0.1, 0.3, 40.0)])
def test_one_head_agrees_with_a_dense_search(attention, values):
    center, loss, stiffness = sampled(attention, np.array(values), 4000, widened=1.3)
    found = minimise(loss, center, stiffness, competing(attention, np.array(values)).images(center))
    best = densest(loss, center, stiffness, 12)
    assert (found.sheet > 0).any()  # the start at the field alone would have missed some
    assert (found.value <= best.value + 1e-12).all()


@pytest.mark.parametrize("values", [(0.723, 0.0, 0.0, 13.2), (0.5, 0.0, 0.0, 45.0), (0.8, 0.7, 0.0, 8.0)])
def test_large_fields_have_minima_beyond_the_first_mirrors(values):
    """Softmax saturates: minima lie beyond plateaux, and next to none of them may be missed."""
    ensemble = Ensemble.compile(fields.attention(variance=Integer(1)), fields.OVERLAPS)
    center, loss, stiffness = sampled(ensemble, np.array(values), 4000)
    found = lowest(loss, center, stiffness, competing(ensemble, np.array(values)))
    best = densest(loss, center, stiffness, 12)
    assert (found.value - np.minimum(found.value, best.value)).mean() < 2e-4 * found.value.mean()


@pytest.mark.slow
@pytest.mark.parametrize("width", [16.0, 30.0])
def test_three_tokens_and_two_heads_agree_with_a_dense_search(width):
    ensemble = Ensemble.compile(fields.many_tokens(3, 2), fields.OVERLAPS)
    values = np.array([0.09, 0.1, 0.05, width])
    center, loss, stiffness = sampled(ensemble, values, 2000, widened=1.2)
    found = minimise(loss, center, stiffness, competing(ensemble, values).images(center))
    best = densest(loss, center, stiffness, 20)
    assert (found.value <= best.value + 1e-10).all()


def test_the_result_is_a_minimum_and_its_hessian_that_of_the_loss(attention):
    center, loss, stiffness = sampled(attention, np.array(fields.POSITIONAL), 500)
    found = minimise(loss, center, stiffness, competing(attention, np.array(fields.POSITIONAL)).images(center))
    value, gradient, hessian = loss(found.z)
    shift = found.z - center
    assert np.abs(gradient + stiffness @ shift).max() < 1e-10
    np.testing.assert_allclose(found.hessian, hessian)
    np.testing.assert_allclose(found.value, value + (shift * (stiffness @ shift)).sum(axis=0) / 2)
    assert np.linalg.eigvalsh(np.moveaxis(hessian, -1, 0) + stiffness).min() > 0


def test_the_derivatives_of_the_loss_are_those_of_finite_differences(attention):
    _, loss, _ = sampled(attention, np.array(fields.SEMANTIC), 20)
    z, step = np.random.default_rng(3).standard_normal((2, 20)), 1e-5
    _, gradient, hessian = loss(z)
    for i, unit in enumerate(np.eye(2)[:, :, None]):
        above, below = loss(z + step * unit), loss(z - step * unit)
        np.testing.assert_allclose(gradient[i], (above[0] - below[0]) / (2 * step), atol=1e-9)
        np.testing.assert_allclose(hessian[i], (above[1] - below[1]) / (2 * step), atol=1e-9)


def test_a_start_on_a_saddle_is_left():
    ensemble = Ensemble.compile(*fields.double_well())
    values = np.array([0.0, 1.0, 4.0, 0.5])
    x = np.zeros((1, 3))
    found = descend(ensemble.loss(x, values), x, np.array([[2.0]]), x)
    np.testing.assert_allclose(np.abs(found.z), np.sqrt(1 - 1 / 2), rtol=1e-10)


def test_no_points_are_no_error():
    ensemble = Ensemble.compile(*fields.double_well())
    empty = np.zeros((1, 0))
    values = np.array([0.0, 1.0, 4.0, 0.5])
    assert descend(ensemble.loss(empty, values), empty, np.array([[2.0]]), empty).z.shape == (1, 0)


def test_mirrors_are_found_however_rarely_the_other_minimum_wins(attention):
    for values in (fields.LATE, fields.SEMANTIC, fields.POSITIONAL, fields.UNINFORMED):
        mirrors = competing(attention, np.array(values))
        np.testing.assert_allclose(mirrors.normals[0], [np.sqrt(0.5), -np.sqrt(0.5)])
        assert mirrors.levels[0] == 0


def test_a_convex_loss_has_no_mirrors():
    ensemble = Ensemble.compile(*fields.double_well())
    assert len(competing(ensemble, np.array([0.0, 1.0, 4.0, 0.2])).normals) == 0


def test_values_of_a_cell_share_their_mirrors(attention):
    middle = np.array(rounded(attention, np.array(fields.POSITIONAL)))
    np.testing.assert_allclose(middle, fields.POSITIONAL, rtol=0.11)
    assert (np.array(rounded(attention, 1.01 * middle)) == middle).all()
    assert competing(attention, 1.01 * middle) is competing(attention, middle)


def test_cells_shrink_towards_the_edge_of_the_domain(attention):
    """At q = 4 theta^2 the fields are those of the teacher: beyond, there are none."""
    near = np.array([0.1, 0.15, 0.0, 10.0])
    cell = np.array(rounded(attention, near))
    assert (cell != near).any()
    assert rounded(attention, near * [1.001, 1, 1, 1]) == tuple(cell)
    assert 1 / 1.4 < attention.conditioning(cell) / attention.conditioning(near) < 1.4
    edge = np.array([0.09004, 0.15, 0.0, 10.0])
    assert attention.defined(edge)
    assert rounded(attention, edge) == tuple(edge)
