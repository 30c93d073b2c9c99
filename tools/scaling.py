"""Write the table of docs/scaling.md: costs on paper beside those that XLA counts."""

from pathlib import Path

from measured import write_between
from splatop.estimate import counted, estimate
from splatop.model import ModelSpec
from splatop.numerics import Numerics

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scaling.md"
BEGIN, END = "<!-- scaling:begin -->", "<!-- scaling:end -->"
SLOPES = {1: "dx(u)", 2: "dx(u) + dy(u)", 3: "dx(u) + dy(u) + dz(u)"}
# (d, N, A): one after the other is varied.
SIZES = [
    *((1, n, 20) for n in (256, 1024)),
    *((2, n, 20) for n in (64, 160, 512)),
    *((2, 160, a) for a in (32, 64)),
    *((3, n, 20) for n in (32, 64)),
]


def spec(dims: int, anchors: int) -> ModelSpec:
    """The paper's operator with a lattice of anchors and a band of 0.4 of them."""
    numerics = Numerics("box", (0.4 * anchors,), 0.0, (anchors,) * dims, substeps=1)
    return ModelSpec(
        kind="surrogate",
        equation=f"dt(u) = -v*({SLOPES[dims]}) + D*lap(u)",
        fields=("u",),
        lengths=(1.0,) * dims,
        dt=0.1,
        numerics=numerics,
        coefficients={"v": 0.1, "D": 1e-3},
    )


def row(dims: int, points: int, anchors: int) -> str:
    grid = (points,) * dims
    one = spec(dims, anchors)
    found, (flops, held) = estimate(one, grid), counted(one, grid)
    four = estimate(one, grid, devices=4)
    cells = [
        *(str(n) for n in (dims, points, anchors)),
        *(f"{value / 1e6:.3g}" for value in (found.physics_flops, found.operator_flops)),
        f"{flops / 1e6:.3g}",
        f"{found.inference_bytes / 1e6:.3g}",
        f"{held / 1e6:.3g}",
        f"{found.training_flops / 1e9:.3g}",
        *(f"{sum(e.training_bytes.values()) / 1e6:.3g}" for e in (found, four)),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    head = [
        "d", "N", "A", "physics, MFLOP", "network, MFLOP", "both, as XLA counts", "MB",
        "MB, as XLA allocates", "training step, GFLOP", "MB of 1 device", "of each of 4",
    ]  # fmt: skip
    block = "\n".join(
        [
            "One channel, one substep, the paper's FNO (6 channels, 10 modes, 4 blocks), batch 20, "
            "horizon 5; written by `tools/scaling.py`. In three dimensions XLA's way of counting "
            "transforms shows.",
            "",
            f"| {' | '.join(head)} |",
            f"|{' --- |' * len(head)}",
            *(row(*size) for size in SIZES),
        ]
    )
    write_between(PAGE, BEGIN, END, block)
    print(block)


if __name__ == "__main__":
    main()
