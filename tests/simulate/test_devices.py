"""The same numbers on every device, step by step, and in single precision what that allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from simulate import copy_head
from simulate.copy_head_observables import measure
from simulate.langevin import Langevin, Metropolis, StochasticLangevin
from simulate.message_passing import MessagePassing
from simulate.optimise import Adam, GradientDescent, polish
from simulate.run import device, drive, hessian_product, stiffness, value_and_gradient
from tests.simulate.elsewhere import DEVICE, Elsewhere
from tests.simulate.heads import head
from tests.simulate.teachers import UNEVEN, student

DOUBLE, SINGLE = 1e-9, 1e-4
"""Relative to the largest number of each tensor."""


@dataclass(frozen=True)
class Place:
    on: str = "cpu"
    precision: str = "float64"

    def head(self, *options, **values):
        return replace(head(*options, P=5, seeds=(0, 3), **values), on=self.on, precision=self.precision)

    def student(self, **values):
        return replace(student(**values), device=torch.device(self.on), dtype=getattr(torch, self.precision))


def of_energy(problem, theta):
    value, gradient = value_and_gradient(problem.energy, theta)
    product, largest = hessian_product(problem.energy, theta, gradient), stiffness(problem.energy, theta, steps=2)
    return {"energy": value, "gradient": gradient, "product": product, "stiffness": largest}


def of_chunks(place):
    problem = place.head(chunk=3)
    return of_energy(problem, problem.begin("copy"))


def of_descent(place):
    problem = replace(place.head(), replicas=place.head().replicas[:1])
    return {"energy": problem.energy(polish(problem.energy, problem.begin("copy"), 1e-3).theta)}


def of_head(place, *options, **values):
    problem = place.head(*options, **values)
    theta = problem.begin("copy")
    seen = measure(problem, theta)
    losses = {"trained": seen.trained, "fresh": seen.fresh, "population": seen.population}
    return of_energy(problem, theta) | losses | seen.order


def of_student(place, start, **values):
    problem = place.student(rows=2, **values)
    theta = problem.begin(start)
    maps, errors = problem.baseline()
    measured = {"tested": problem.test_errors(theta), "maps": maps, "errors": errors}
    return of_energy(problem, theta) | problem.overlaps(theta) | measured


def stepped(make):
    def of_step(place):
        problem = place.head(joint=True, T="1/10")
        return drive(make(problem), problem.begin("copy"), 1).now

    return of_step


def of_messages(place, **values):
    passing = MessagePassing(place.student(**values))
    return drive(passing, passing.student.begin("semantic"), 1).now


QUANTITIES: Mapping[str, Callable[[Place], Mapping[str, Tensor]]] = {
    "linear head": lambda place: of_head(place, "linear"),
    "softmax head": lambda place: of_head(place, "softmax", T="1/10"),
    "factored head": lambda place: of_head(place, rank=2),
    "joint head": lambda place: of_head(place, joint=True),
    "head in chunks": of_chunks,
    "semantic student": lambda place: of_student(place, "semantic"),
    "positional student of three tokens": lambda place: of_student(place, "positional", model=UNEVEN),
    "L-BFGS": of_descent,
    "gradient descent": stepped(lambda p: GradientDescent(p.energy, 0.05)),
    "Adam": stepped(lambda p: Adam(p.energy, 0.05)),
    "Langevin": stepped(lambda p: Langevin(p.energy, 0.1, 0.05, p.noise())),
    "Metropolis": stepped(lambda p: Metropolis(p.energy, 0.1, 0.05, p.noise())),
    "stochastic Langevin": stepped(lambda p: StochasticLangevin(p.minibatch(2), 0.1, 0.05, p.noise())),
    "message passing": of_messages,
    "message passing of three tokens": lambda place: of_messages(place, model=UNEVEN, **{"lambda": "1/10"}),
}
every_quantity = pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)


def deviations(quantity, place):
    """From the CPU in double precision, relative to the largest number of each tensor."""
    expected, found = quantity(Place()), {}
    for name, value in quantity(place).items():
        assert (value.device.type, value.dtype) == (torch.device(place.on).type, getattr(torch, place.precision)), name
        away = value.detach().cpu().double() - expected[name].detach()
        found[name] = float(away.abs().max()) / (float(expected[name].abs().max()) or 1.0)  # a count may be zero
    return found


@every_quantity
def test_single_precision_agrees_with_double_within_its_own(quantity):
    found = deviations(quantity, Place(precision="float32"))
    assert all(value <= SINGLE for value in found.values()), found
    assert max(found.values()) > DOUBLE  # so the comparison of devices could fail


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
@every_quantity
def test_a_cuda_device_agrees_with_the_cpu(quantity):
    found = deviations(quantity, Place(str(device("cuda"))))
    assert all(value <= DOUBLE for value in found.values()), found


def test_the_checkpoint_of_a_student_says_its_precision():
    assert Place(precision="float32").student().about() != Place().student().about()


@every_quantity
def test_no_tensor_is_left_on_the_cpu(quantity, monkeypatch):
    monkeypatch.setattr(copy_head, "device", torch.device)
    with Elsewhere():
        found = deviations(quantity, Place(str(DEVICE)))
    assert all(value <= DOUBLE for value in found.values()), found


def test_a_tensor_that_is_left_on_the_cpu_is_refused():
    with Elsewhere(), pytest.raises(RuntimeError, match="add of tensors on the CPU and elsewhere"):
        torch.ones(2, device=DEVICE) + torch.ones(2)
