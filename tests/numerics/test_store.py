"""The record store: whole records or none, one record a key, nothing ever changed."""

import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from numerics.store import Record, Store, StoreError

ABOUT = {"theory": "a theory", "expression": "0123"}


def record(place, **changes):
    return Record("point", {"alpha": str(place)}, {"q": "0.1"}, {"q": "1e-5"}, **changes)


def test_records_come_back_in_order_and_once(tmp_path):
    store = Store.create(tmp_path / "new" / "store", ABOUT)
    assert store.append([record(1), record(2, status="not converged")]) == 2
    assert store.append([record(1, seconds=5.0), record(3)]) == 1
    assert [r.inputs["alpha"] for r in store.records("point")] == ["1", "2", "3"]
    assert list(store.records())[1] == record(2, status="not converged")
    assert store.count() == {"not converged": 1, "ok": 2}
    assert store.get("point", {"alpha": "3"}) == record(3)
    assert store.get("point", {"alpha": "4"}) is store.get("curve", {"alpha": "3"}) is None
    assert [store.holds("point", {"alpha": place}) for place in "34"] == [True, False]
    assert list(Store.open(tmp_path / "new" / "store").records("curve")) == []


def test_what_failed_may_be_followed_by_a_later_attempt(tmp_path):
    store = Store.create(tmp_path, ABOUT)
    assert store.append([record(1, status="failed: lost"), record(2)]) == 2
    assert store.append([record(1, status="failed: again")]) == 1
    assert store.get("point", {"alpha": "1"}) == record(1, status="failed: again")
    assert store.append([record(1)]) == 1
    assert store.append([record(1, status="failed: late")]) == 0
    assert store.count() == {"ok": 2}
    assert list(store.records()) == [record(2), record(1)]


def test_one_process_at_a_time(tmp_path):
    store = Store.create(tmp_path, ABOUT)
    script = (
        "import sys, time; from pathlib import Path; from numerics.store import Store\n"
        "with Store.open(Path(sys.argv[1])).alone():\n"
        "    print('inside', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "inside\n"
        with pytest.raises(StoreError, match="another process"), store.alone():
            pass
        assert store.append([record(1)]) == 1
        other.kill()
        other.wait()
    with store.alone():
        assert store.count() == {"ok": 1}


def test_a_damaged_lock_is_no_other_process(tmp_path):
    store = Store.create(tmp_path, ABOUT)
    (tmp_path / "lock.sqlite").write_text("not a lock, and longer than the header of a database is. " * 9)
    with (
        pytest.raises(StoreError, match=r"lock.sqlite cannot be used: file is not a database; .*remove it"),
        store.alone(),
    ):
        pass
    (tmp_path / "lock.sqlite").unlink()
    with store.alone():
        assert store.count() == {}


def test_a_store_of_another_theory_is_refused(tmp_path):
    Store.create(tmp_path, ABOUT)
    Store.create(tmp_path, ABOUT)
    with pytest.raises(StoreError, match="'b theory'; give another folder"):
        Store.create(tmp_path, {**ABOUT, "theory": "b theory"})


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(StoreError, match="holds no record store"):
        Store.open(tmp_path)
    (tmp_path / "records.sqlite").write_bytes(b"junk" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="not a database"):
        Store.create(tmp_path, ABOUT)


def test_a_database_of_something_else_is_refused(tmp_path):
    (tmp_path / "records.sqlite").touch()
    with pytest.raises(StoreError, match="holds no record store"):
        Store.open(tmp_path)
    connection = sqlite3.connect(tmp_path / "records.sqlite")
    connection.execute("create table about (something text)")
    connection.close()
    with pytest.raises(StoreError, match="holds no record store"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="holds no record store"):
        Store.create(tmp_path, ABOUT)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "records.sqlite").mkdir()
    with pytest.raises(StoreError, match="holds no record store"):
        Store.open(tmp_path)
    with pytest.raises(StoreError, match="unable to open"):
        Store.create(tmp_path, ABOUT)


@pytest.mark.parametrize("version", ["1", "2", "99"])
def test_a_store_of_another_version_is_refused(tmp_path, version):
    Store.create(tmp_path, ABOUT)
    with sqlite3.connect(tmp_path / "records.sqlite") as connection:
        connection.execute(f"update about set text = '{version}' where name = 'schema'")
    connection.close()
    for reach in (Store.open, lambda folder: Store.create(folder, ABOUT)):
        with pytest.raises(StoreError, match=f"version {version}; this one reads 3"):
            reach(tmp_path)


def filled(folder, count=500):
    store = Store.create(folder, ABOUT)
    store.append([record(place) for place in range(count)])
    return store


@pytest.mark.parametrize("share", [0.02, 0.3, 0.97])
def test_a_truncated_store_is_refused(tmp_path, share):
    filled(tmp_path)
    file = tmp_path / "records.sqlite"
    os.truncate(file, int(share * file.stat().st_size))
    for reach in (Store.open, lambda folder: Store.create(folder, ABOUT)):
        with pytest.raises(StoreError, match=r"records\.sqlite"):
            reach(tmp_path)


def test_a_damaged_page_is_refused(tmp_path):
    filled(tmp_path)
    content = bytearray((tmp_path / "records.sqlite").read_bytes())
    page = int.from_bytes(content[16:18], "big")
    for place in range(len(content) // page // 2, len(content) // page):
        content[place * page : place * page + 64] = bytes(range(64))
    (tmp_path / "records.sqlite").write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged: .*another folder|malformed"):
        Store.open(tmp_path)


def flipped(file, place, bit=1):
    content = bytearray(file.read_bytes())
    content[place] ^= bit
    file.write_bytes(content)


@pytest.mark.parametrize("part", ["0.1", "1e-5", "alpha", "77", "point", "ok"])
def test_a_record_in_which_a_byte_has_changed_is_named_and_does_not_count(tmp_path, part):
    written = [record(place) for place in range(100, 110)] + [record(77), record(200)]
    store, file = Store.create(tmp_path, ABOUT), tmp_path / "records.sqlite"
    store.append(written)
    # The last record stands first in its page, and the one before it behind it: the cells grow towards the front.
    cell = file.read_bytes().index(b'point{"alpha": "77"}')
    flipped(file, file.read_bytes().index(part.encode(), cell))
    assert store.damaged() == [11]
    assert list(store.records()) == [one for one in written if one != record(77)]
    assert store.get("point", {"alpha": "77"}) is None
    assert store.count() == {"ok": 11}
    assert store.append(written) == 1
    assert list(store.records())[-1] == record(77)
    assert (store.count(), store.damaged()) == ({"ok": 12}, [11])


def test_no_changed_byte_is_read_as_another_record(tmp_path):
    """Wherever it is: the store is refused, or what it holds is right, and what it lacks can be written again."""
    rng, written = random.Random(0), [record(place) for place in range(60)]
    whole = tmp_path / "records.sqlite"
    Store.create(tmp_path, ABOUT).append(written)
    content, refused, lacking = whole.read_bytes(), 0, 0
    for _ in range(200):
        whole.write_bytes(content)
        flipped(whole, rng.randrange(len(content)), 1 << rng.randrange(8))
        try:
            read = list(Store.open(tmp_path).records())
            assert all(one in written for one in read)
            lacking += len(read) < len(written)
            store = Store.create(tmp_path, ABOUT)
            store.append(written)
            assert sorted(map(str, store.records())) == sorted(map(str, written))
        except StoreError:
            refused += 1
    assert refused > 5
    assert lacking > 5


def test_records_are_read_a_page_at_a_time_while_others_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr("numerics.store._PAGE", 7)
    store = filled(tmp_path, 30)
    seen = []
    for one in store.records():
        seen.append(int(one.inputs["alpha"]))
        if len(seen) == 10:
            store.append([record(30)])
    assert seen == list(range(31))
    store.append([record(31, status="failed: lost")])
    assert [one.inputs["alpha"] for one in store.failures()] == ["31"]


def attempts(folder, answers):
    """What another user than root is told, since root may do anything."""
    if os.geteuid() == 0:
        os.setuid(65534)
    store = Store.open(folder)
    said = [str(store.count())]
    for attempt in (lambda: store.append([record(9)]), lambda: store.alone().__enter__()):
        try:
            attempt()
        except StoreError as error:
            said.append(f"{type(error).__name__}: {error}")
    answers.send(said)


@pytest.mark.skipif(sys.platform != "linux", reason="no fork that is safe")
def test_a_store_that_may_only_be_read():
    answers, other = multiprocessing.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder, 3)
        (folder / "records.sqlite").chmod(0o444)
        folder.chmod(0o555)
        process = multiprocessing.get_context("fork").Process(target=attempts, args=(folder, other))
        process.start()
        process.join()
        folder.chmod(0o755)
        count, written, locked = answers.recv()
        assert count == "{'ok': 3}"
        assert written.startswith("UnwritableError")
        assert "readonly" in written
        assert locked.startswith("StoreError: the lock")
        assert Store.open(folder).count() == {"ok": 3}


def test_records_cannot_be_changed(tmp_path):
    store = Store.create(tmp_path, ABOUT)
    store.append([record(1)])
    connection = sqlite3.connect(tmp_path / "records.sqlite")
    for statement in ("delete from records", "update records set status = 'ok'"):
        with pytest.raises(sqlite3.DatabaseError, match="records are never"):
            connection.execute(statement)
    connection.close()


def write_many(job):
    folder, first = job
    store = Store.create(folder, ABOUT)
    return sum(store.append([record(place)]) for place in range(first, first + 40))


def test_two_writers_are_serialised(tmp_path):
    with ProcessPoolExecutor(2) as pool:
        written = list(pool.map(write_many, [(tmp_path, 0), (tmp_path, 20)]))
    assert sum(written) == 60
    assert sum(Store.open(tmp_path).count().values()) == 60


def test_a_killed_writer_leaves_whole_records(tmp_path):
    script = (
        "import os, sys; from pathlib import Path; from numerics.store import Record, Store\n"
        "store = Store.create(Path(sys.argv[1]), {})\n"
        "store.append([Record('point', {'alpha': '1'})])\n"
        "with store._connection() as c:\n"
        "    c.execute('begin immediate')\n"
        '    c.execute("insert into records (kind, inputs, numbers, errors, status, residual, made_with, seconds, digest)"\n'
        "              \" values ('point', '2', '', '', '', '', '', 0, '')\")\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode != 0
    assert [r.inputs for r in Store.open(tmp_path).records()] == [{"alpha": "1"}]
