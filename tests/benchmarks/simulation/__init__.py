"""Routing under virtual time: the real decision code beside other policies and the bound that none can beat."""

from tests.benchmarks.simulation.table import simulation

__all__ = ["simulation"]
