"""The paper's benchmarks, those between walls and those on shapes, each one value in one table."""

from ..errors import SplatopError, unknown_name
from .benchmark import Benchmark as Benchmark
from .bounded import SHAPES, WALLS
from .periodic import PERIODIC

BENCHMARKS: dict[str, Benchmark] = {
    benchmark.name: benchmark for benchmark in (*PERIODIC, *WALLS, *SHAPES)
}


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of this name, or an error that says which there are."""
    if name not in BENCHMARKS:
        if "." in name:
            raise SplatopError(
                f"expected the name of a benchmark, got '{name}', which looks like a file: give it "
                f"as --data {name}"
            )
        raise unknown_name("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]
