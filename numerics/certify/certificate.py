r"""The certificate: theorems with all that is needed to check them, as a JSON document.

.. math:: \text{theory, setup} \;\vdash\; \exists!\, y \in Y: f(y) = 0

It names the theory, holds every parameter as an exact rational, the hash of the action and its printed text, the boxes as
exact decimals, what is claimed in words, and what is assumed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from sympy import Basic, srepr

from derive.action import EffectiveAction
from derive.derivation import Derivation
from numerics.certify.claims import KINDS
from numerics.certify.intervals import Box, Interval
from numerics.certify.theorem import POINTS, Proven, Theorem
from numerics.landscape import Landscape

__all__ = [
    "VERSIONS",
    "Certificate",
    "CertificateError",
    "certificate",
    "document",
    "grounds",
    "read",
    "seal",
    "written",
]

Kept = TypeVar("Kept")

SCHEMA = 1
_LARGEST = 50_000_000
VERSIONS = {name: version(name) for name in ("sympy", "mpmath", "python-flint")}
"""Of the libraries that a proof takes."""


class CertificateError(ValueError):
    """A file is no certificate, or not one of this theory."""


@dataclass(frozen=True)
class Certificate:
    """What is proven about an action at a setup; ``setup`` holds the control where stationary points are meant.

    ``grounds`` are the steps of the theory's derivation that give, and check, what is assumed; ``sealed`` is the hash of
    the document that it was read from. ``source`` is the text of a theory file of the action, where the theory is a module.
    """

    theory: str
    setup: Mapping[str, str]
    expression: str
    sha256: str
    assumptions: tuple[str, ...]
    theorems: tuple[Proven, ...]
    digits: int
    versions: Mapping[str, str]
    grounds: tuple[str, ...] = ()
    sealed: str | None = None
    source: str | None = None


def certificate(landscape: Landscape, proven: Sequence[Proven], digits: int) -> Certificate:
    """The certificate of what is proven on a landscape."""
    setup, action = landscape.setup, landscape.action
    control = {} if setup.control is None else {action.control.name: str(setup.control)}
    return Certificate(
        setup.theory,
        {**setup.as_text(), **control},
        str(action.value),
        hashlib.sha256(srepr(action.value).encode()).hexdigest(),
        assumptions(action, proven),
        tuple(proven),
        digits,
        VERSIONS,
    )


def assumptions(action: EffectiveAction, proven: Sequence[Proven]) -> tuple[str, ...]:
    """What is not proven here: the bounds that a theory declares, where a theorem is about all stationary points."""
    if not any(each.theorem.lowest for each in proven):
        return ()
    bounds = ", ".join(f"{order.lower} <= {order.symbol} <= {order.upper}" for order in action.order_parameters)
    return (f"every stationary point, and the least value of the action, lies where {bounds}",)


def grounds(action: EffectiveAction, derivation: Derivation) -> tuple[str, ...]:
    """The steps of a derivation whose results are, or hold, the bounds of the order parameters; the first for each."""
    ends = [end for order in action.order_parameters for end in (order.lower, order.upper) if end.free_symbols]
    wanted, found = {-end if end.could_extract_minus_sign() else end for end in ends}, []
    for step in derivation.steps if wanted else ():
        value = derivation.value(step.name)
        given = {part for part in (value, *value.args) if part in wanted} if isinstance(value, Basic) else set()
        if given:
            found.append(step.name)
            wanted -= given
        if not wanted:
            break
    return tuple(found)


def labels(action: EffectiveAction, theorem: Theorem) -> list[str]:
    """The names of the unknowns in a theorem's box."""
    if theorem.kind == POINTS:
        return []
    count = KINDS[theorem.kind].points
    places = [""] if count == 1 else [f"_{k + 1}" for k in range(count)]
    names = [f"{variable}{place}" for place in places for variable in action.variables]
    return [*names, action.control.name, *([str(action.size)] if KINDS[theorem.kind].sized else [])]


def _interval(label: str, interval: Interval) -> dict[str, str]:
    return {"name": label, "value": str(interval.middle), "radius": str(interval.radius)}


def written(found: Certificate, action: EffectiveAction) -> str:
    """The document as text."""
    return json.dumps(document(found, action), indent=1) + "\n"


def document(found: Certificate, action: EffectiveAction) -> dict[str, Any]:
    """The document, sealed by the hash of all that it says."""
    variables = [str(variable) for variable in action.variables]
    body = {
        "schema": SCHEMA,
        "document": "certificate",
        "theory": found.theory,
        "setup": dict(found.setup),
        "action": {"expression": found.expression, "sha256": found.sha256},
        "digits": found.digits,
        "theorems": [
            {
                "kind": theorem.kind,
                "names": list(theorem.names),
                "via": theorem.via,
                "column": theorem.column,
                "lowest": theorem.lowest,
                "proven": list(sentences),
                "bits": bits,
                "box": list(map(_interval, labels(action, theorem), theorem.box)),
                "others": [list(map(_interval, variables, box)) for box in theorem.others],
            }
            for theorem, sentences, bits in ((each.theorem, each.sentences, each.bits) for each in found.theorems)
        ],
        "assumptions": list(found.assumptions),
        "grounds": list(found.grounds),
        "versions": dict(found.versions),
        **({} if found.source is None else {"source": found.source}),
    }
    return {**body, "seal": seal(body)}


def seal(body: Mapping[str, Any]) -> str:
    """The hash of all that a document says."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> Certificate:
    """The certificate in a file; raises `CertificateError` where it is none, or is not as it was written."""
    try:
        if path.stat().st_size > _LARGEST:
            raise CertificateError(f"{path} is larger than a certificate may be ({_LARGEST // 10**6} MB)")
        text = path.read_text(encoding="utf-8")
        body = json.loads(text, parse_float=_refused, parse_constant=_refused, object_pairs_hook=_once)
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{path} is no JSON document: {str(error)[:120]}") from None
    if not isinstance(body, dict) or body.get("document") != "certificate":
        raise CertificateError(f"{path} is no certificate; `spinodal transitions THEORY --certify` writes one")
    if body.get("schema") != SCHEMA:
        raise CertificateError(
            f"{path} is of schema {str(body.get('schema'))[:20]}; this version reads schema {SCHEMA}"
        )
    sealed = body.pop("seal", None)
    if sealed != seal(body):
        raise CertificateError(
            f"{path} was changed after it was written: it does not have the hash that it says it has"
        )
    try:
        return replace(_parsed(body), sealed=sealed)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CertificateError(f"{path} is no certificate of schema {SCHEMA}: {str(error)[:120]}") from None


def _refused(text: str) -> None:
    raise ValueError(f"{text[:20]} is a number that is not written as a string")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A table whose keys are written once: of two, a reader and a program may take different ones."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is written twice")
    return found


def _parsed(body: Mapping[str, Any]) -> Certificate:
    source = body.get("source")
    if _of(int, body["digits"]) < 1:
        raise ValueError(f"{body['digits']} is no number of digits")
    if (":" in _text(body["theory"])) != (source is not None):
        raise ValueError("a module, whose code is not run, and nothing else goes with the text of an action")
    return Certificate(
        _text(body["theory"]),
        {_text(name): _text(value) for name, value in body["setup"].items()},
        _text(body["action"]["expression"]),
        _text(body["action"]["sha256"]),
        tuple(map(_text, body["assumptions"])),
        tuple(map(_theorem, body["theorems"])),
        _of(int, body["digits"]),
        {_text(name): _text(value) for name, value in body["versions"].items()},
        tuple(map(_text, body["grounds"])),
        source=None if source is None else _text(source),
    )


def _theorem(entry: Mapping[str, Any]) -> Proven:
    if entry["kind"] not in (*KINDS, POINTS):
        raise ValueError(f"there is no theorem of the kind {entry['kind']!r}")
    theorem = Theorem(
        _text(entry["kind"]),
        tuple(map(_text, entry["names"])),
        _box(entry["box"]),
        tuple(map(_box, entry["others"])),
        _of(bool, entry["lowest"]),
        None if entry["via"] is None else _text(entry["via"]),
        _of(int, entry["column"]),
    )
    return Proven(theorem, tuple(map(_text, entry["proven"])), _of(int, entry["bits"]))


def _box(entries: Sequence[Mapping[str, Any]]) -> Box:
    return tuple(Interval.read(_text(entry["value"]), _text(entry["radius"])) for entry in entries)


def _text(value: object) -> str:
    text = _of(str, value)
    text.encode()  # which half of a pair of surrogates is refused by
    return text


def _of(kind: type[Kept], value: object) -> Kept:
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:40]!r} is no {kind.__name__}")
    return value
