"""Commands on data sets: benchmarks, generate, inspect, convert."""
