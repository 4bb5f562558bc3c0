"""Sweeps on several processes, and what happens to them: killed, out of disk, damaged; nothing is lost nor twice there."""

import ast
import asyncio
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import spinodal
from derive.catalogue import find
from numerics import sweep
from numerics.points import CostError, Points
from numerics.scan import about, grid, made_with, parse_axis, scan
from numerics.stationary import minima
from numerics.store import Store, StoreError

ROOT = Path(__file__).parents[2]
LANDAU, GRID = "classical/landau-4", "a=-1:1:240"
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signals")


def command(folder, *words, over=GRID):
    return [sys.executable, "-m", "spinodal", "scan", LANDAU, "--over", over, "--out", str(folder), "--quiet", *words]


def whole(folder):
    """The records by inputs, without the seconds; each is there once."""
    records = [replace(record, seconds=0.0) for record in Store.open(folder).records()]
    by_inputs = {json.dumps(record.inputs, sort_keys=True): record for record in records}
    assert len(by_inputs) == len(records)
    return by_inputs


def swept(folder, solve, axis="a=-1:1:12", jobs=None, theory=LANDAU, retry=False):
    """A scan of a theory by name, on ``jobs`` processes."""
    entry = find(theory)
    problem, line = entry.problem(), parse_axis(axis)
    setups = [problem.setup(point) for point in grid([line])]
    store = Store.create(folder, about(theory, problem, setups[0], [line], 15))
    work = sweep.Work(entry.recipe({}, [line.name]), solve, 15, made_with(problem)["expression"])
    return scan(problem, setups, solve, store, 15, retry=retry, spread=sweep.engine(problem, work, jobs, None))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A sweep over ``GRID`` to which nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed") / "store"
    swept(folder, minima, axis=GRID)
    return Store.open(folder)


@pytest.fixture(scope="module")
def undisturbed(store):
    """Its records."""
    return whole(store.folder)


# --- who solves a point, and what it solved before, does not matter ---


def test_records_do_not_depend_on_who_solves_them_and_in_which_order(tmp_path):
    """Cold, in a process of its own, against warm, after all others, upwards and downwards."""
    alone, together, down = (tmp_path / name for name in ("alone", "together", "down"))
    assert vars(swept(alone, minima)) == vars(swept(together, minima, jobs=2)) == {"solved": 12, "there": 0, "amiss": 0}
    problem, store = find(LANDAU).problem(), Store.create(down, {})
    scan(
        problem,
        [problem.setup(record.inputs) for record in reversed(list(Store.open(alone).records()))],
        minima,
        store,
        15,
    )
    assert whole(alone) == whole(together) == whole(down)
    assert list(whole(alone)) != list(whole(down))


@pytest.mark.parametrize(
    "words",
    [
        ("copy-head/softmax", "L=32", "--over", "V=8:8:1"),
        ("classical/spiked-wigner-gaussian", "--over", "lambda=1/2:2:2", "--digits", "3"),
    ],
    ids=["action", "state evolution"],
)
def test_records_do_not_depend_on_threads_and_hashes(words, tmp_path):
    """Other threads of linear algebra, another order of sets."""
    for count in "12":
        settings = {f"{library}_NUM_THREADS": count for library in ("OMP", "OPENBLAS", "MKL")} | {
            "PYTHONHASHSEED": count
        }
        scanned = [sys.executable, "-m", "spinodal", "scan", *words, "--out", str(tmp_path / count)]
        subprocess.run(scanned, cwd=ROOT, env={**os.environ, **settings}, check=True, capture_output=True)
    assert whole(tmp_path / "1") == whole(tmp_path / "2")


def test_a_theory_file_travels_as_its_text(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text((ROOT / "derive/classical/landau-4.toml").read_text().replace("x^4/4", "x^4/8"))
    recipe = find(str(file)).recipe({}, ["a"])
    expected = find(str(file)).problem()
    file.unlink()
    assert recipe() == expected
    assert find("copy-head/softmax").recipe({})() == find("copy-head/softmax").problem()


def test_a_worker_that_builds_another_theory_is_refused(tmp_path):
    problem, line = find(LANDAU).problem(), parse_axis("a=-1:1:4")
    work = sweep.Work(find("classical/landau-6").recipe({}), minima, 15, made_with(problem)["expression"])
    spread = sweep.by_processes(problem, work, 2)
    with pytest.raises(ValueError, match="same version of Spinodal"):
        scan(problem, [problem.setup(p) for p in grid([line])], minima, Store.create(tmp_path, {}), 15, spread=spread)


# --- workers that are lost ---


def deadly(problem, setup, digits):
    """Ends its process at a = 1/11."""
    if setup.control.q == 11 and setup.control.p == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Points(())


@pytest.mark.parametrize("together", [1, 4])
def test_a_point_that_kills_its_worker_twice_is_a_record_and_its_neighbours_are_solved(tmp_path, monkeypatch, together):
    """Those that were to be solved in one go with it, too."""
    monkeypatch.setattr(sweep, "blocks", lambda *about: zip(*[iter(about[-1])] * together, strict=True))
    assert vars(swept(tmp_path, deadly, jobs=2)) == {"solved": 12, "there": 0, "amiss": 1}
    store = Store.open(tmp_path)
    assert [(record.inputs["a"], record.status) for record in store.failures()] == [
        ("1/11", "failed: its worker was lost, twice; is there enough memory?")
    ]
    assert vars(swept(tmp_path, minima)) == {"solved": 0, "there": 12, "amiss": 1}
    assert vars(swept(tmp_path, minima, retry=True)) == {"solved": 1, "there": 11, "amiss": 0}


def lost_once(mark, problem, setup, digits):
    """Ends the first process that comes here."""
    if setup.control == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return minima(problem, setup, digits)


def test_points_of_a_worker_that_is_lost_are_solved_by_others(tmp_path):
    tally = swept(tmp_path / "store", partial(lost_once, tmp_path / "mark"), jobs=2)
    assert (tmp_path / "mark").exists()
    assert vars(tally) == {"solved": 12, "there": 0, "amiss": 0}
    swept(tmp_path / "alone", minima)
    assert whole(tmp_path / "store") == whole(tmp_path / "alone")


def dear(problem, setup, digits):
    raise CostError("too many nodes")


def test_what_stops_a_scan_stops_it_in_a_worker_too(tmp_path):
    with pytest.raises(CostError, match="too many nodes"):
        swept(tmp_path, dear, jobs=2)
    assert Store.open(tmp_path).count() == {}


# --- the process itself ---


def killed_and_resumed(folder, over, jobs, times, longest):
    """A scan that is killed at random instants; how many points were there each time."""
    instants, held = random.Random(1), []
    while len(held) < times:
        running = subprocess.Popen(command(folder, "--resume", "--jobs", str(jobs), over=over), cwd=ROOT)
        before = time.monotonic()
        least = held[-1] if held else 0
        while running.poll() is None and _count(folder) <= least:  # it is past its imports
            time.sleep(0.05)
            assert time.monotonic() - before < 60
        time.sleep(instants.uniform(0, longest))
        assert running.poll() is None, "the scan is too short to be killed"
        running.kill()
        running.wait()
        held.append(_count(folder))
    done = subprocess.run(
        command(folder, "--resume", "--json", "--jobs", str(jobs), over=over), cwd=ROOT, capture_output=True
    )
    return held, json.loads(done.stdout)


def _count(folder):
    """How many records there are; the file is there before what is in it."""
    try:
        return sum(Store.open(folder).count().values())
    except StoreError as error:
        if "holds no record store" in str(error):
            return 0
        raise


def test_a_sweep_that_is_killed_at_any_instant_equals_one_that_is_not(tmp_path, undisturbed):
    held, tally = killed_and_resumed(tmp_path / "killed", GRID, 2, times=2, longest=0.3)
    assert 0 < held[0] < held[1] < 240
    assert (tally["there"], tally["solved"], tally["amiss"]) == (held[1], 240 - held[1], 0)
    assert whole(tmp_path / "killed") == undisturbed


@pytest.mark.slow
def test_a_sweep_of_20000_points_killed_ten_times(tmp_path):
    over = "a=-1:1:20000"
    held, tally = killed_and_resumed(tmp_path / "killed", over, 2, times=10, longest=12)
    assert tally["solved"] + held[-1] == 20_000
    assert subprocess.run(command(tmp_path / "whole", over=over), cwd=ROOT).returncode == 0
    killed, complete = whole(tmp_path / "killed"), whole(tmp_path / "whole")
    lost, differ = complete.keys() - killed.keys(), [key for key in complete if killed.get(key) != complete[key]]
    rows = _rows(tmp_path / "killed")
    print(f"killed at {held}; lost {len(lost)}, twice there {rows - len(killed)}, other than alone {len(differ)}")
    assert (len(lost), rows - len(killed), differ) == (0, 0, [])


def _rows(folder):
    """All rows of the file, superseded ones among them."""
    connection = sqlite3.connect(folder / "records.sqlite")
    (rows,) = connection.execute("select count(*) from records").fetchone()
    connection.close()
    return rows


# --- the disk ---


def test_a_full_disk_ends_the_scan_and_keeps_what_was_written(tmp_path, store, undisturbed):
    Store.create(tmp_path, store.about()).append(list(store.records())[:80])
    room = (tmp_path / "records.sqlite").stat().st_size + 10_000

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    words = command(tmp_path, "--resume")
    done = subprocess.run(words, cwd=ROOT, preexec_fn=small, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be written" in done.stderr
    assert "--resume goes on when there is room" in done.stderr
    assert "Traceback" not in done.stderr
    kept = len(whole(tmp_path))
    assert 80 <= kept < 240
    assert vars(swept(tmp_path, minima, axis=GRID)) == {"solved": 240 - kept, "there": kept, "amiss": 0}
    assert whole(tmp_path) == undisturbed


def test_status_says_which_points_failed_and_why(tmp_path, capsys):
    swept(tmp_path, never, axis="a=-1:1:9")
    with pytest.raises(SystemExit):
        spinodal.main(["status", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert ["failed", "9"] in [line.split() for line in lines]
    assert lines[-7:-5] == ["0 points left", "a=-1, h=0; failed: nothing at -1"]
    assert lines[-1] == "and 4 more; --json lists all"
    with pytest.raises(SystemExit):
        spinodal.main(["status", str(tmp_path), "--json"])
    held = json.loads(capsys.readouterr().out)
    assert [point["status"] for point in held["amiss"]] == [
        f"failed: nothing at {a}" for a in parse_axis("a=-1:1:9").values
    ]


def test_a_point_whose_record_has_changed_on_the_disk_is_solved_again(tmp_path, capsys):
    swept(tmp_path, minima, axis="a=-1:1:4")
    undisturbed, file = whole(tmp_path), tmp_path / "records.sqlite"
    file.write_bytes(file.read_bytes().replace(b'x": "-1.00', b'x": "-1.01', 1))
    told = "damaged on the disk, and not counted: record 1; --resume solves it again"

    def ran(*words):
        with pytest.raises(SystemExit) as stopped:
            spinodal.main(words)
        return stopped.value.code, *capsys.readouterr()

    output = ran("status", str(tmp_path))[1]
    assert "1 points left" in output
    assert told in output
    assert json.loads(ran("status", str(tmp_path), "--json")[1])["damaged"] == [1]
    again = ran("scan", LANDAU, "--over", "a=-1:1:4", "--out", str(tmp_path), "--resume", "--quiet")
    assert again == (0, f"1 points solved, 3 were there, 0 are not ok: {tmp_path}\n", f"note: {told}\n")
    assert whole(tmp_path) == undisturbed


def never(problem, setup, digits):
    raise ArithmeticError(f"nothing at {setup.control}")


# --- memory, and what is on disk ---

_LONG = """
import resource, sys
from pathlib import Path
from derive.catalogue import find
from numerics.points import Points
from numerics.scan import grid, parse_axis, scan
from numerics.store import Store

count, early = int(sys.argv[2]), int(sys.argv[2]) // 4
problem, peak, done = find("classical/landau-4").problem(), [], 0

def tell(points):
    global done
    done += points
    if not peak and done >= early:
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

setups = (problem.setup(point) for point in grid([parse_axis(f"a=-1:1:{count}")]))
found = scan(problem, setups, lambda *_, **__: Points(()), Store.create(Path(sys.argv[1]), {}), 15, tell)
assert found.solved == count
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak[0])
"""


@pytest.mark.parametrize("count", [8_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_sweep_needs_no_more_memory_than_a_short_one(tmp_path, count):
    """The peak after all points against that after a quarter of them, in KiB: nothing of a point is kept."""
    done = subprocess.run(
        [sys.executable, "-c", _LONG, str(tmp_path), str(count)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2_000


def test_nothing_on_disk_is_a_pickle():
    """What is loaded cannot run anything: no module reads pickles, and torch reads weights only."""
    modules = [path for room in ("derive", "numerics", "simulate", "figures") for path in (ROOT / room).rglob("*.py")]
    for path in (*modules, ROOT / "spinodal.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            unsafe = name.split(".")[0] in {"pickle", "shelve", "joblib", "marshal", "dill", "cloudpickle"}
            assert not unsafe, f"{path}:{call.lineno}: {name}"
            given = {word.arg: ast.unparse(word.value) for word in call.keywords}
            assert name != "torch.load" or given.get("weights_only") == "True", f"{path}:{call.lineno}"
            assert name not in {"np.load", "numpy.load"} or given.get("allow_pickle", "False") == "False"
    assert any("torch.load" in path.read_text() for path in modules)


# --- a cluster ---


@pytest.fixture
def cluster(tmp_path):
    """A Dask scheduler and two workers, each a process of its own: the address, the scheduler, the workers."""
    pytest.importorskip("distributed")
    dask, file = str(Path(sys.executable).parent / "dask"), tmp_path / "scheduler.json"
    settings = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "start_new_session": True}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ("--no-dashboard", "--scheduler-file", str(file))
    running = [subprocess.Popen([dask, "scheduler", "--port", "0", *options], **settings, **quiet)]
    try:
        _until(file.exists)
        running += [
            subprocess.Popen(
                [dask, "worker", "--nthreads", "1", "--local-directory", name, *options], **settings, **quiet
            )
            for name in "ab"
        ]
        address = json.loads(file.read_text())["address"]
        _until(lambda: _workers(address) == 2)
        yield address, *running
    finally:
        for each in running:
            _end(each)


def _workers(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return len(client.nthreads())


def _end(process):
    """The process and all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _until(holds, seconds=120):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_cluster_of_two_workers_one_of_which_is_killed(cluster, tmp_path, undisturbed):
    address, _, first, second = cluster
    folder = tmp_path / "store"
    running = subprocess.Popen(command(folder, "--cluster", address, "--json"), cwd=ROOT, stdout=subprocess.PIPE)
    _until(lambda: _count(folder) > 20)
    _end(first)
    assert 20 < _count(folder) < 240
    assert json.loads(running.communicate(timeout=120)[0])["solved"] == 240
    assert running.returncode == 0
    assert second.poll() is None
    assert whole(folder) == undisturbed


def test_a_scheduler_that_is_lost_ends_the_scan_and_keeps_what_was_written(cluster, tmp_path, undisturbed):
    address, scheduler, *_ = cluster
    folder = tmp_path / "store"
    running = subprocess.Popen(command(folder, "--cluster", address), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    _until(lambda: _count(folder) > 20)
    _end(scheduler)
    _, complaint = running.communicate(timeout=120)
    assert (running.returncode, complaint.splitlines()[-1]) == (
        3,
        "spinodal: the scheduler has gone; --resume goes on with another one",
    )
    assert "Traceback" not in complaint
    assert swept(folder, minima, axis=GRID).there > 20
    assert whole(folder) == undisturbed


@pytest.mark.slow
def test_a_point_that_kills_every_worker_of_a_cluster_is_given_up(cluster, tmp_path):
    problem, line = find(LANDAU).problem(), parse_axis("a=-1:1:12")
    work = sweep.Work(find(LANDAU).recipe({}), deadly, 15, made_with(problem)["expression"])
    store, spread = Store.create(tmp_path / "store", {}), sweep.on_cluster(problem, work, cluster[0])
    setups = [problem.setup(point) for point in grid([line])]
    assert vars(scan(problem, setups, deadly, store, 15, spread=spread)) == {"solved": 12, "there": 0, "amiss": 1}
    assert [(record.inputs["a"], record.status.partition(",")[0]) for record in store.failures()] == [
        ("1/11", "failed: the scheduler gave it up")
    ]


@pytest.mark.parametrize(
    ("status", "raised", "told"),
    [
        ("lost", None, None),  # its worker went right behind the result
        ("finished", None, None),
        ("error", ZeroDivisionError("of the task"), ZeroDivisionError),
        ("error", OSError("of the task"), OSError),
        ("cancelled", RuntimeError("no scheduler"), CancelledError),
        ("finished", OSError("connection reset"), CancelledError),
        ("lost", RuntimeError("gone"), BrokenExecutor),
    ],
    ids=str,
)
def test_what_a_cluster_answers_counts_by_what_has_come(status, raised, told):
    class Sent:
        def __await__(self):
            if raised is not None:
                raise raised
            return "records"
            yield

    sent, answer = Sent(), Future()
    sent.status = status
    asyncio.run(sweep._answered(sent, answer))
    if told is None:
        assert answer.result(0) == "records"
    else:
        assert type(answer.exception(0)) is told


def test_where_there_is_no_scheduler(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("numerics.sweep._PATIENCE", 1)
    problem = find(LANDAU).problem()
    work = sweep.Work(find(LANDAU).recipe({}), minima, 15, "")
    for address, complaint in (
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("nowhere", "no Dask scheduler answers"),
        ("tcp://x:y:z", "no Dask scheduler answers"),
        ("ftp://127.0.0.1:9", "no Dask scheduler answers"),
    ):
        with pytest.raises(ValueError, match=complaint):
            sweep.engine(problem, work, None, address)
    with pytest.raises(ValueError, match="give one of them"):
        sweep.engine(problem, work, 2, "tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"install spinodal.cluster."):
        sweep.engine(problem, work, None, "tcp://127.0.0.1:9")
