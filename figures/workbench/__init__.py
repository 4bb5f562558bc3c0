"""Figures of any theory: its phases, its bifurcations, its branches."""
