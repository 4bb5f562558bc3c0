"""The record store: whole records or none, one record a key, nothing ever changed."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

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


def test_a_store_of_another_version_is_refused(tmp_path):
    Store.create(tmp_path, ABOUT)
    with sqlite3.connect(tmp_path / "records.sqlite") as connection:
        connection.execute("update about set text = '99' where name = 'schema'")
    connection.close()
    with pytest.raises(StoreError, match="version 99; this one reads 2"):
        Store.open(tmp_path)


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
        '    c.execute("insert into records (kind, inputs, numbers, errors, status, residual, made_with, seconds)"\n'
        "              \" values ('point', '2', '', '', '', '', '', 0)\")\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode != 0
    assert [r.inputs for r in Store.open(tmp_path).records()] == [{"alpha": "1"}]
