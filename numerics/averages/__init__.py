"""Gaussian averages as a service: ensembles of SymPy averages, rules of integration, global proximal maps."""

from numerics.averages.ensemble import Ensemble, ensembles
from numerics.averages.jumps import jumps
from numerics.averages.rules import CostError, Cubature, Estimate, GaussHermite, PointSet, QuasiMonteCarlo, Rule, Split
from numerics.averages.substitution import Substitution

__all__ = [
    "CostError",
    "Cubature",
    "Ensemble",
    "Estimate",
    "GaussHermite",
    "PointSet",
    "QuasiMonteCarlo",
    "Rule",
    "Split",
    "Substitution",
    "ensembles",
    "jumps",
]
