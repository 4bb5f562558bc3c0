r"""The record store: solved points, appended one by one, never changed, never lost.

A store is a folder with one SQLite file. SQLite, not a set of Parquet files: every append is a transaction, so a killed
process leaves whole records or none; two writers are serialised by the file itself; a point is found by its inputs
without reading the rest; and the file opens anywhere, for ever. Columns for analysis are one query away.

A record is one solved (or failed) point: its inputs, the values as decimal strings with their errors, a status, and what
it was computed with. Its key is the kind and the inputs. The last record of a key counts, and one that is ok is the last:
what failed may be tried again, and stays beside the later attempt. Each record carries a checksum; one that no longer has
it, since a byte of it has changed on the disk, does not count either, and its point is as good as not solved.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Record", "Store", "StoreError", "UnwritableError"]

SCHEMA = 3
_FILE, _LOCK = "records.sqlite", "lock.sqlite"
_WAIT = 60.0
_PAGE = 1000
_UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
_TEXTS = ("kind", "inputs", "numbers", "errors", "status", "residual", "made_with")
_COLUMNS = ", ".join((*_TEXTS, "seconds"))
# Of bytes, since what has changed may be no text any more.
_SUM = f"checksum({', '.join(f'cast(typeof({name}) || {name} as blob)' for name in _TEXTS)}, seconds)"
_WHOLE = f"(select * from latest where digest = {_SUM})"
_KEYED = "place in (select place from records where kind = ? and inputs = ?)"  # all of it from the table, not the index

_TABLES = """
create table about (name text primary key, text text not null);
create table records (
  place integer primary key, kind text not null, inputs text not null, numbers text not null, errors text not null,
  status text not null, residual text not null, made_with text not null, seconds real not null, digest text not null
);
create index keys on records (kind, inputs);
create view latest as select * from records as one where not exists (
  select 1 from records as later where later.kind = one.kind and later.inputs = one.inputs and later.place > one.place
);
create trigger kept before update on records begin select raise(abort, 'records are never changed'); end;
create trigger whole before delete on records begin select raise(abort, 'records are never deleted'); end;
"""


class StoreError(ValueError):
    """A folder holds no store, another kind of store, or one that this version does not read."""


class UnwritableError(StoreError):
    """A record could not be written, for want of room or of rights; those before are kept."""


@dataclass(frozen=True)
class Record:
    """One point: ``inputs`` (exact, as text), ``values`` and ``errors`` (decimal strings), and how it ended.

    ``made_with`` holds the hash of the expression and the versions that produced the numbers.
    """

    kind: str
    inputs: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    status: str = "ok"
    residual: str = ""
    made_with: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def _text(mapping: Mapping[str, str]) -> str:
    return json.dumps(dict(mapping), sort_keys=True, ensure_ascii=False)


def _checksum(*values: bytes | float | None) -> str:
    """Of the texts of a record, each behind its type, and its seconds, or of what a disk has made of them."""
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()


def _row(record: Record) -> tuple[str | float, ...]:
    """What is written of a record: `_COLUMNS`, and the checksum."""
    mappings = (record.inputs, record.values, record.errors)
    texts = (record.kind, *map(_text, mappings), record.status, record.residual, _text(record.made_with))
    seconds = float(record.seconds)
    return (*texts, seconds, _checksum(*(f"text{text}".encode() for text in texts), seconds))


@dataclass(frozen=True)
class Store:
    """The records in ``folder``; made by `create` or `open`."""

    folder: Path

    @classmethod
    def create(cls, folder: Path, about: Mapping[str, str]) -> Store:
        """The store in ``folder``, made if there is none; one made for something else than ``about`` is refused."""
        folder.mkdir(parents=True, exist_ok=True)
        store = cls(folder)
        with store._connection() as connection:
            # One transaction from the look to the last table: two that create at once meet one store.
            connection.execute("begin exclusive")
            if not connection.execute("select count(*) from sqlite_master").fetchone()[0]:
                for statement in _statements(_TABLES):
                    connection.execute(statement)
                rows = {**about, "schema": str(SCHEMA)}.items()
                connection.executemany("insert into about values (?, ?)", rows)
            connection.execute("commit")
        found = store.about()
        store._mend()
        differ = sorted(name for name in about if found.get(name) != about[name])
        if differ:
            raise StoreError(
                f"{folder} holds a store with {differ[0]} = {found.get(differ[0])!r}, not {about[differ[0]]!r};"
                " give another folder"
            )
        return store

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The store in ``folder``; raises `StoreError` where there is none or it is of another version."""
        if not (folder / _FILE).is_file():
            raise StoreError(f"{folder} holds no record store")
        store = cls(folder)
        store.about()
        return store

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """A connection; one that is closed inside a transaction takes it back."""
        try:
            with closing(sqlite3.connect(self.folder / _FILE, timeout=_WAIT, isolation_level=None)) as connection:
                connection.execute("pragma synchronous = full")
                connection.create_function("checksum", len(_TEXTS) + 1, _checksum, deterministic=True)
                yield connection
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # what is damaged may be named in no text
            file = self.folder / _FILE
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNWRITABLE:  # the upper bits say more
                raise UnwritableError(f"{file} cannot be written: {error}; what is there is whole") from None
            raise StoreError(f"{file}: {error}") from None

    def about(self) -> dict[str, str]:
        """What the store was made for; raises `StoreError` for another version's, and for a file that is no store."""
        with self._connection() as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
            if not {"about", "records"} <= tables:
                raise StoreError(f"{self.folder} holds no record store")
            about = dict(connection.execute("select name, text from about").fetchall())
            damage = connection.execute("pragma quick_check(1)").fetchone()[0]
            if damage != "ok":
                raise StoreError(
                    f"{self.folder / _FILE} is damaged: {damage.splitlines()[-1]}; fetch a copy, or begin in another folder"
                )
        if about.get("schema") != str(SCHEMA):
            raise StoreError(f"{self.folder} is a store of version {about.get('schema')}; this one reads {SCHEMA}")
        return about

    def _mend(self) -> None:
        """Make the index again where it is not that of the records."""
        with self._connection() as connection:
            if connection.execute("pragma integrity_check(1)").fetchone()[0] != "ok":
                connection.execute("reindex")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, no other process is; raises `StoreError` while one is. A process that is killed is outside."""
        path = self.folder / _LOCK
        with ExitStack() as held:
            try:
                lock = held.enter_context(closing(sqlite3.connect(path, timeout=0, isolation_level=None)))
                lock.execute("begin exclusive")
            except sqlite3.Error as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                    raise StoreError("another process is writing there; wait for it, or give another folder") from None
                raise StoreError(f"the lock {path} cannot be used: {error}; if it is damaged, remove it") from None
            yield

    def append(self, records: Sequence[Record]) -> int:
        """Add the records of whose key there is none that is ok, all of them or none; how many those were."""
        rows = [_row(record) for record in records]
        with self._connection() as connection:
            connection.execute("begin immediate")
            before = connection.total_changes
            connection.executemany(
                f"insert into records ({_COLUMNS}, digest) select ?, ?, ?, ?, ?, ?, ?, ?, ?"
                f" where not exists (select 1 from {_WHOLE} where {_KEYED} and status = 'ok')",
                [(*row, *row[:2]) for row in rows],
            )
            connection.execute("commit")
            return connection.total_changes - before

    def holds(self, kind: str, inputs: Mapping[str, str]) -> bool:
        return self.get(kind, inputs) is not None

    def get(self, kind: str, inputs: Mapping[str, str]) -> Record | None:
        """The record of these inputs, if there is one."""
        return next(self._page(_KEYED, kind, _text(inputs)), (None, 0))[0]

    def records(self, kind: str | None = None) -> Iterator[Record]:
        """The records that count, in the order in which they came."""
        return self._chosen("? is null or kind = ?", kind, kind)

    def failures(self) -> Iterator[Record]:
        """Those that are not ok."""
        return self._chosen("status <> 'ok'")

    def _chosen(self, condition: str, *values: str | None) -> Iterator[Record]:
        """The records that fulfil a condition, some in memory at a time; nobody is kept from writing in between."""
        place = 0
        while page := list(self._page(f"({condition}) and place > ? order by place limit ?", *values, place, _PAGE)):
            yield from (record for record, _ in page)
            place = page[-1][1]

    def _page(self, condition: str, *values: str | int | None) -> Iterator[tuple[Record, int]]:
        with self._connection() as connection:
            rows = connection.execute(f"select {_COLUMNS}, place from {_WHOLE} where {condition}", values).fetchall()
        for of, inputs, numbers, errors, status, residual, made_with, seconds, place in rows:
            read = json.loads
            yield (
                Record(of, read(inputs), read(numbers), read(errors), status, residual, read(made_with), seconds),
                place,
            )

    def damaged(self) -> list[int]:
        """The places of the records that no longer are what was written; all other functions pass them over."""
        with self._connection() as connection:
            found = connection.execute(
                f"select place from records where digest is not {_SUM} order by place"
            ).fetchall()
        return [place for (place,) in found]

    def count(self) -> dict[str, int]:
        """How many records there are of each status."""
        with self._connection() as connection:
            return dict(connection.execute(f"select status, count(*) from {_WHOLE} group by status order by status"))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger holds semicolons of its own."""
    pending = ""
    for line in script.strip().splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
