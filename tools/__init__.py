"""What helps to work on the package and is no part of it: benchmarks, and tables that are made from data."""
