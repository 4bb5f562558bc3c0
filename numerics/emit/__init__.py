"""SymPy expressions to numbers: one function, `emit`, and one lookup table per target."""

from numerics.emit.emitted import EmissionError, Emitted, PrecisionError, emit

__all__ = ["EmissionError", "Emitted", "PrecisionError", "emit"]
