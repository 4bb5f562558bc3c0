"""The loop: seeds, resuming to the bit, and what is refused."""

import math
from dataclasses import dataclass, replace

import pytest
import torch

from simulate.langevin import Langevin, Metropolis, StochasticLangevin
from simulate.optimise import Adam, GradientDescent
from simulate.run import (
    CheckpointError,
    DivergedError,
    Noise,
    device,
    drive,
    generator,
    hessian_product,
    precision,
    stiffness,
    threads,
)
from tests.simulate.heads import head

METHODS = {
    "gradient descent": lambda p: GradientDescent(p.energy, 0.05),
    "Adam": lambda p: Adam(p.energy, 0.05),
    "Langevin": lambda p: Langevin(p.energy, 0.1, 0.05, p.noise()),
    "Metropolis": lambda p: Metropolis(p.energy, 0.1, 0.05, p.noise()),
    "stochastic": lambda p: StochasticLangevin(p.minibatch(2), 0.1, 0.05, p.noise(), horizon=5),
}


def observe(now):
    return {"energy": now["energy"], "size": now["theta"].square().sum(-1)}


@dataclass(frozen=True)
class Stopped:
    """A method that is interrupted in the middle of step ``at``, after it has used its noise."""

    method: object
    at: int

    @property
    def noise(self):
        return self.method.noise

    def describe(self):
        return self.method.describe()

    def begin(self, theta):
        return self.method.begin(theta)

    def step(self, count, now):
        after = self.method.step(count, now)
        if count == self.at:
            raise KeyboardInterrupt
        return after


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
def test_a_run_that_was_interrupted_ends_in_the_same_bits(make, tmp_path):
    problem = head(P=5, seeds=(0, 3), joint=True)
    theta, settings = problem.begin("copy"), {"observe": observe, "burn": 3, "thin": 2, "about": problem.about()}
    straight = drive(make(problem), theta, 20, **settings)
    path = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        drive(Stopped(make(problem), 8), theta, 20, checkpoint=path, **settings)
    resumed = drive(make(problem), theta, 20, checkpoint=path, **settings)
    assert (straight.count, straight.draws["size"].shape) == (20, (2, 8))
    for name, value in straight.now.items():
        assert torch.equal(value, resumed.now[name]), name
    for name, value in straight.draws.items():
        assert torch.equal(value, resumed.draws[name]), name
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.pt"]


def test_a_finished_run_goes_on(tmp_path):
    problem, path = head(P=5, seeds=(0, 3)), tmp_path / "run.pt"
    theta = problem.begin("copy")
    drive(METHODS["Langevin"](problem), theta, 5, checkpoint=path, every=2)
    longer = drive(METHODS["Langevin"](problem), theta, 9, checkpoint=path)
    assert torch.equal(longer.now["theta"], drive(METHODS["Langevin"](problem), theta, 9).now["theta"])


def test_a_row_does_not_depend_on_its_batch():
    both, alone = head(P=5, seeds=(0, 3)), head(P=5, seeds=(3,))
    runs = [drive(METHODS["Metropolis"](p), p.begin("copy"), 15).now["theta"][-1] for p in (both, alone)]
    torch.testing.assert_close(*runs, rtol=1e-10, atol=1e-10)


def test_checkpoints_of_anything_else_are_refused(tmp_path):
    problem, path = head(P=5, seeds=(0, 3)), tmp_path / "run.pt"

    def run(other=problem, method="Langevin", **settings):
        return drive(METHODS[method](other), other.begin("copy"), 3, about=other.about(), checkpoint=path, **settings)

    run()
    before = path.read_bytes()
    for says, call in {
        "gamma_w = 1.0, not 2.0": lambda: run(head(P=5, seeds=(0, 3), gamma_w="2")),
        "replicas = seed 0 P 5": lambda: run(head(P=6, seeds=(0, 3))),
        "precision = float64, not float32": lambda: run(replace(problem, precision="float32")),
        "method = Langevin, rate 0.05": lambda: run(method="Adam"),
        "thin = 1, not 2": lambda: run(thin=2),
    }.items():
        with pytest.raises(CheckpointError, match=says):
            call()
    assert path.read_bytes() == before
    torch.save({**torch.load(path, weights_only=True), "version": 0}, path)
    with pytest.raises(CheckpointError, match="version 0; this one reads"):
        run()
    for content in (b"", b"not a checkpoint", before[: len(before) // 2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is no checkpoint"):
            run()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda content: content.pop("now"), "is no checkpoint"),
        (lambda content: content["now"].pop("energy"), "is no checkpoint"),
        (lambda content: content.update(now={k: v[:1] for k, v in content["now"].items()}), "is no checkpoint"),
        (lambda content: content.update(draws=None), "is no checkpoint"),
        (lambda content: content.update(draws={}), "is no checkpoint"),
        (lambda content: content.update(draws={"size": [1.0]}), "is no checkpoint"),
        (lambda content: content.update(about=None), "is no checkpoint"),
        (lambda content: content.update(noise=[]), "is no checkpoint"),
        (lambda content: content.update(noise=[state[:9] for state in content["noise"]]), "is no checkpoint"),
        (lambda content: content.update(count=3), "is no checkpoint"),  # there are draws of four steps
        (lambda content: content.update(count=-5), "is at step -5 of a run of 4"),
        (lambda content: content.update(count=5), "is at step 5 of a run of 4"),
    ],
)
def test_a_checkpoint_that_lacks_something_is_refused(tmp_path, change, says):
    problem, path = head(P=5, seeds=(0, 3)), tmp_path / "run.pt"

    def go():
        return drive(METHODS["Langevin"](problem), problem.begin("copy"), 4, observe=observe, checkpoint=path)

    go()
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=says) as refused:
        go()
    assert str(path) in str(refused.value)
    assert path.read_bytes() == before


def test_a_file_of_another_kind_is_no_checkpoint(tmp_path):
    path = tmp_path / "run.pt"
    torch.save(torch.zeros(3), path)
    with pytest.raises(CheckpointError, match=r"run\.pt is no checkpoint, or a damaged one; remove it"):
        run(checkpoint=path)
    path.unlink()
    path.mkdir()
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        run(checkpoint=path)


def test_a_full_disk_leaves_the_checkpoint_that_was_there(tmp_path):
    resource, path = pytest.importorskip("resource"), tmp_path / "run.pt"
    run(checkpoint=path)
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(CheckpointError, match=r"run\.pt cannot be written: File too large"):
            run(steps=4, checkpoint=path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said_before_the_run(tmp_path):
    with pytest.raises(CheckpointError, match="there is no folder"):
        run(checkpoint=tmp_path / "nowhere" / "run.pt")


def test_code_in_a_checkpoint_is_not_executed(tmp_path):
    path = tmp_path / "run.pt"
    torch.save({"version": 1, "about": math.sqrt}, path)
    with pytest.raises(CheckpointError, match="is no checkpoint"):
        drive(METHODS["Adam"](head()), head().begin("copy"), 3, checkpoint=path)


def test_a_step_that_blows_up_names_the_step_and_the_method(tmp_path):
    problem, path = head(attention="linear", P=5, seeds=(0, 3)), tmp_path / "run.pt"
    settings = {"observe": observe, "about": problem.about(), "checkpoint": path}
    with pytest.raises(DivergedError, match=r"after step \d+; .*gradient descent, rate 50.0"):
        drive(GradientDescent(problem.energy, 50.0), problem.begin("copy"), 999, **settings)
    left = torch.load(path, weights_only=True)
    assert torch.isfinite(left["now"]["energy"]).all()
    assert left["draws"]["energy"].shape == (2, left["count"])


def test_streams_of_a_seed_are_reproducible_and_independent():
    draws = [torch.rand(4, generator=generator(seed, use)) for seed, use in ((0, "a"), (0, "a"), (0, "b"), (1, "a"))]
    assert torch.equal(draws[0], draws[1])
    assert len({tuple(draw.tolist()) for draw in draws}) == 3


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_hessian_products_and_the_largest_curvature(attention):
    problem = head(attention, P=30, seeds=(0, 3), T="1/10")
    theta = problem.begin("copy")
    rows = [torch.autograd.functional.hessian(lambda x: problem.energy(x).sum(), theta)[k, :, k] for k in (0, 1)]
    direction = torch.linspace(-1, 2, theta.numel(), dtype=torch.float64).view_as(theta)
    expected = torch.stack([H @ v for H, v in zip(rows, direction, strict=True)])
    torch.testing.assert_close(hessian_product(problem.energy, theta, direction), expected, rtol=1e-10, atol=1e-12)
    largest = torch.stack([torch.linalg.eigvalsh(H)[-1] for H in rows])
    found = stiffness(problem.energy, theta)
    assert (found <= largest * (1 + 1e-12)).all()
    assert (found > 0.9 * largest).all()


def test_devices_and_precisions():
    assert device("cpu") == torch.device("cpu")
    assert device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert precision("float32") == torch.float32


def test_sums_on_cuda_are_in_a_fixed_order(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    before = torch.are_deterministic_algorithms_enabled()
    try:
        assert [str(device(name)) for name in ("auto", "cuda:0")] == ["cuda", "cuda:0"]
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(before)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with threads(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def run(**settings):
    return drive(METHODS["Adam"](head()), head().begin("copy"), **{"steps": 3, **settings})


def entered(count):
    with threads(count):
        pass


BAD = {
    "steps negative": (lambda: run(steps=-1), "steps = -1"),
    "burn negative": (lambda: run(burn=-1), "burn = -1"),
    "thin zero": (lambda: run(thin=0), "thin = 0"),
    "every zero": (lambda: run(every=0), "every = 0"),
    "device": (lambda: device("tpu"), "the devices are cpu"),
    "precision": (lambda: precision("float16"), "float64 or float32"),
    "seed": (lambda: generator(True, "data"), "whole number"),
    "threads": (lambda: entered(0), "at least 1"),
    "rate": (lambda: Adam(head().energy, 0.0), "rate = 0.0"),
    "decays": (lambda: Adam(head().energy, 0.1, (1.0, 0.9)), "decays"),
    "rate of a sampler": (lambda: Langevin(head().energy, 1.0, -0.1, Noise(())), "rate = -0.1"),
    "temperature": (lambda: Metropolis(head().energy, 0.0, 0.1, Noise(())), "nothing to sample"),
    "power": (lambda: StochasticLangevin(lambda *_: None, 1.0, 0.1, Noise(()), 1.0, 0.4), "power = 0.4"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
