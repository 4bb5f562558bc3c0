"""Certificates: transitions and stationary points of an action as theorems, and their independent check."""
