"""The keys of a theory file: what its tables hold, read with their types and without surprises.

``control.T`` and the like are one table for each name that is declared, ``phases[]`` and the like lists of tables.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar

from sympy import Rational

from derive.action import SetupError
from derive.exact import ExactnessError
from derive.files.algebra import number
from derive.limits.quantity import ORDERS
from derive.names import instead

__all__ = ["KEYS", "SIZE", "content", "text"]

SIZE = 64_000
"""Bytes of a file."""

_DOTS = 16

T = TypeVar("T")


def text(path: Path) -> str:
    """What the regular file at ``path`` holds, at most `SIZE` bytes of UTF-8; raises `SetupError`."""
    try:
        mode = path.stat().st_mode
        if S_ISREG(mode):
            with path.open("rb") as file:
                read = file.read(SIZE + 1)  # some files do not tell how long they are
            why = f"a theory file may have {SIZE} bytes, and this has more"
            if len(read) <= SIZE:
                return read.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        else:
            why = f"a theory file is a regular file, and this is {'a directory' if S_ISDIR(mode) else 'a device or a pipe'}"
    except UnicodeDecodeError:
        raise SetupError(f"{path} is no text in UTF-8") from None
    except FileNotFoundError:
        why = "there is no such file"
    except (OSError, ValueError) as error:  # a name may hold what no path does
        why = getattr(error, "strerror", None) or str(error)
    raise SetupError(f"{path}: {why}")


def content(source: str, label: str) -> dict[str, Any]:
    """The tables of a file, every value read; tables that are not there are empty. Raises `SetupError` naming the key."""
    if any(re.split("[\"'=#]", line, maxsplit=1)[0].count(".") > _DOTS for line in source.splitlines()):
        raise SetupError(f"{label}: a key has too many dots")  # whose reading takes the square of their number
    try:
        data = tomllib.loads(source, parse_float=str)
    except RecursionError:
        raise SetupError(f"{label}: too many brackets inside each other") from None
    except ValueError as error:  # a TOMLDecodeError is one, as is a number that is too long
        raise SetupError(f"{label} is no TOML: {error}") from None
    kinds = {name.removesuffix("[]").removesuffix(".NAME"): name for name in KEYS}
    _known(data, kinds, label)
    return {kind: _read(data.get(kind), name, f"{label}: {kind}") for kind, name in kinds.items()}


def _read(value: object, name: str, where: str) -> Any:
    if name.endswith("[]"):
        items = [] if value is None else value
        if not isinstance(items, list):
            raise SetupError(f"{where} is a list of tables: each begins with [[{name[:-2]}]]")
        return [_entries(entry, KEYS[name], f"{where}, number {place}") for place, entry in enumerate(items, 1)]
    if name.endswith(".NAME"):
        tables = _mapping(value, where)
        return {symbol: _entries(entry, KEYS[name], f"{where}.{_shown(symbol)}") for symbol, entry in tables.items()}
    if name == "definitions":
        return {
            key: _value(_formula, entry, f"{where}.{_shown(key)}")
            for key, entry in _mapping(value or {}, where).items()
        }
    return _entries(value, KEYS[name], where)


def _entries(value: object, keys: Mapping[str, _Key], where: str) -> dict[str, Any]:
    table = _mapping(value, where)
    _known(table, keys, where)
    for name, key in keys.items():
        if key.needed and name not in table:
            raise SetupError(f"{where} needs the key {name}, which is missing")
    return {name: _value(key.read, table[name], f"{where}.{name}") for name, key in keys.items() if name in table}


def _shown(name: str) -> str:
    return name[:40] if name.isprintable() else repr(name[:40])


def _mapping(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SetupError(f"{where} has to be a table")
    return value


def _known(table: Mapping[str, Any], keys: Mapping[str, Any], where: str) -> None:
    for name in table:
        if name not in keys:
            raise SetupError(f"{where} has no key {name[:40]!r}; {instead(name[:40], keys)}")


def _value(read: Callable[[object], T], value: object, where: str) -> T:
    try:
        return read(value)
    except (ValueError, ExactnessError) as error:
        raise SetupError(f"{where}: {error}") from None


# --- the keys of a file ---


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this has to be text, in quotes")
    hidden = next((c for c in value if not (c.isprintable() or c in "\n\t")), None)
    if hidden is not None:  # a terminal would obey it
        raise ValueError(f"the character U+{ord(hidden):04X} cannot be shown, and has no place in a text")
    return value


def _name(value: object) -> str:
    if not _text(value).strip():
        raise ValueError("a name has at least one letter")
    if not _text(value).isprintable():
        raise ValueError("a name stands in one line")
    return _text(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("this has to be true or false")
    return value


def _formula(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("this has to be a formula, in quotes, or a number")
    return str(value)


def _number(value: object) -> Rational:
    return number(_formula(value))


def _count(largest: int) -> Callable[[object], int]:
    def count(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
            raise ValueError(f"this has to be a whole number from 1 to {largest}")
        return value

    return count


def _list(read: Callable[[object], T], length: int | None = None) -> Callable[[object], tuple[T, ...]]:
    def items(value: object) -> tuple[T, ...]:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            raise ValueError(f"this has to be a list{'' if length is None else f' of {length}'}, in square brackets")
        return tuple(map(read, value))

    return items


def _table(read: Callable[[object], T]) -> Callable[[object], dict[str, T]]:
    def entries(value: object) -> dict[str, T]:
        if not isinstance(value, dict):
            raise ValueError("this has to be a table")
        return {key: read(entry) for key, entry in value.items()}

    return entries


@dataclass(frozen=True)
class _Key:
    """How a key is read, and whether it has to be there."""

    read: Callable[[object], Any]
    needed: bool = False


_PARAMETER = {
    "meaning": _Key(_text, needed=True),
    "default": _Key(_number),
    "lower": _Key(_number),
    "upper": _Key(_number),
    "strict": _Key(_flag),
}

KEYS: Mapping[str, Mapping[str, _Key]] = {
    "theory": {
        "name": _Key(_name, needed=True),
        "summary": _Key(_text, needed=True),
        "source": _Key(_text),
        "action": _Key(_formula),
        "potential": _Key(_formula),
        "window": _Key(_list(_formula, 2), needed=True),
        "size": _Key(_text),
        "digits": _Key(_count(1000)),
    },
    "control.NAME": _PARAMETER,
    "parameters.NAME": _PARAMETER,
    "order_parameters.NAME": {
        "meaning": _Key(_text, needed=True),
        "lower": _Key(_formula, needed=True),
        "upper": _Key(_formula, needed=True),
        "edge": _Key(_flag),
    },
    "overlaps.NAME": {
        "meaning": _Key(_text, needed=True),
        "conjugate": _Key(_text, needed=True),
        "scale": _Key(_formula),
        "conjugate_scale": _Key(_formula),
        "wall": _Key(_formula),
    },
    "definitions": {},
    "symmetries[]": {"name": _Key(_name, needed=True), "image": _Key(_table(_formula), needed=True)},
    "phases[]": {"name": _Key(_name, needed=True), "where": _Key(_formula)},
    "sectors[]": {"name": _Key(_name, needed=True), "vanishing": _Key(_list(_text), needed=True)},
    "observables[]": {
        "name": _Key(_name, needed=True),
        "value": _Key(_formula, needed=True),
        "meaning": _Key(_text, needed=True),
        "crossover": _Key(_formula),
    },
    "closed_forms[]": {"kind": _Key(_text, needed=True), "value": _Key(_formula, needed=True)},
    "limits[]": {
        "parameter": _Key(_text, needed=True),
        "to": _Key(_formula, needed=True),
        "quantity": _Key(_text, needed=True),
        "meaning": _Key(_text, needed=True),
        "order": _Key(_count(ORDERS)),
        "phase": _Key(_text),
        "setup": _Key(_table(_formula)),
    },
    "references[]": {
        "quantity": _Key(_text, needed=True),
        "value": _Key(_formula, needed=True),
        "source": _Key(_text, needed=True),
        "phase": _Key(_text),
        "setup": _Key(_table(_formula)),
    },
}
"""What a file may hold: ``X.NAME`` is one table for each name that is declared, ``X[]`` a list of tables."""
