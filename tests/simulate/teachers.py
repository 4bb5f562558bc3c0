"""Small teachers and students, and an explicit evaluation of them, sample by sample, that shares nothing with `simulate`."""

import numpy as np
from sympy import Rational
from sympy.matrices import ImmutableDenseMatrix as Matrix

from derive.action import validated
from derive.positional_semantic.model import CONTROL, DEFAULT, Eigenspace, Model, isotropic, sigma, target_matrix
from simulate.positional_semantic import Student, samples_of, task

HALF = Rational(1, 2)

# Three tokens, ranks 2 and 1, two eigenspaces, covariances that differ by token, and a teacher that leans on positions.
UNEVEN = Model(
    3,
    2,
    1,
    target_matrix(3),
    (
        Eigenspace(
            HALF,
            (sigma**2, 2 * sigma**2, sigma),
            Matrix([[2, 1, 0], [1, 2, 0], [0, 0, 1]]) / 3,
            Matrix([[HALF]]),
            Matrix([[Rational(1, 5)], [0], [Rational(-1, 7)]]),
        ),
        Eigenspace(
            HALF, (sigma, sigma**2, sigma**2), Matrix.eye(3) / 4, Matrix([[1]]), Matrix([[0], [Rational(1, 3)], [0]])
        ),
    ),
)


def setup(model=DEFAULT, **values):
    return validated("positional-semantic", model.parameters, CONTROL, values)


def student(d=20, alpha=1.5, seed=0, model=DEFAULT, rows=1, free=False, **values):
    problem = task(setup(model, **values), d, model, free)
    return Student(problem, seed, (samples_of(problem, alpha),) * rows)


def softmax(scores):
    growth = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return growth / growth.sum(axis=-1, keepdims=True)


def world(problem):
    """Positions, teacher, tokens and outputs of a student's samples."""
    p, teacher = problem.positions.numpy(), problem.teacher.numpy()
    x = problem.inputs.numpy() - p
    return p, teacher, x, answers(problem.task, x, teacher)


def answers(task, x, teacher):
    """y of every sample."""
    out = []
    for tokens in x:
        fields = tokens @ teacher / np.sqrt(task.d)
        attention = (1 - task.mixing) * softmax(fields @ fields.T) + task.mixing * np.array(task.target)
        out.append(attention @ tokens)
    return np.array(out)


def distances(task, Q, x, p, y):
    """|y - f(x)|^2 of every sample."""
    out = []
    for tokens, answer in zip(x, y, strict=True):
        inputs = tokens + p
        fields = inputs @ Q / np.sqrt(task.d)
        out.append(np.sum((answer - softmax(fields @ fields.T) @ inputs) ** 2))
    return np.array(out)


__all__ = ["UNEVEN", "answers", "distances", "isotropic", "setup", "softmax", "student", "world"]
