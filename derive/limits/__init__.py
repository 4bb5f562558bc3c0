"""Limits of closed forms: log-power series, the exact equations of a quantity, Newton's method in the field of series."""
