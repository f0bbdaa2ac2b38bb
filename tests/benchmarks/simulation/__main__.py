"""`python -m tests.benchmarks.simulation`"""

from tests.benchmarks.simulation.table import print_table

print_table()
