"""Training settings: a frozen value, four presets, and overrides by name."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import SplatopError, unknown_name
from ..model import CONVOLUTIONS, FNO_OPERATOR, GRIDS, NETWORKS
from ..numerics import Numerics
from .losses import RECONSTRUCTIONS
from .overrides import parse_overrides

# In a phase of training: as many points as the data have.
FULL = 0
# The largest rate of Adam in stage 2, for the paper's FNO of 6 channels and for its convolutional
# networks. It goes with one over the width.
RATE, CONVOLUTIONAL_RATE = 1e-2, 3e-3
RATED_CHANNELS = 6
NOTHING_TO_REFINE = (
    "expected a coarse grid whose states come out on the given one to refine, got none: give "
    "coarse, and leave out grid=coarse"
)


@dataclass(frozen=True)
class Settings:
    """How to train a model. A setting that is None is chosen automatically (or as in the paper,
    with `numerics="paper"`).

    `phases` are (points per axis, steps) one after the other, 0 points meaning the data's own
    grid: coarse first, then fine. `horizon` is H, the rollout length of the loss. Without a `rate`,
    `peak_rate` is what suits the model.
    """

    preset: str = "fast"
    model: str = "surrogate"
    seed: int = 0
    seeds: int | None = None  # of an ensemble: as many models, from seed, seed + 1, ...
    data_seed: int | None = None  # of the data alone; None: seed

    # Embedded physics: "auto" or "paper", then single choices that override it.
    numerics: str = "auto"
    jets: str | None = None
    encoder: str | None = None
    renderer: str | None = None
    anchors: int | None = None
    kernel_width: float | None = None
    window: int | None = None
    filter: str | None = None
    cutoff: float | None = None
    rolloff: float | None = None
    substeps: int | None = None
    working_grid: bool | None = None
    hold_geometry: bool | None = None
    drop_terms: tuple[str, ...] = ()

    # A coarse model: points divided by `coarse`, `stride` frames in one step.
    coarse: int | None = None
    stride: int = 1
    answers: str = "given"  # the grid of its states: the one given, or the coarse one
    refine: bool = False  # whether states get a learned guess of what the coarse grid leaves out
    refine_steps: int = 400

    # Neural operator.
    network: str = FNO_OPERATOR
    coupling: str = "parallel"
    hidden: int = 6
    modes: int = 10
    blocks: int = 4
    tenfold: bool = False
    conditioned: bool = True  # let the network see coefficients that vary
    residual_scaling: bool = True
    windows_alike: bool = False  # each window in units of what Φ leaves of it, however little

    # Data; None is the benchmark's own size, or all there is in a file.
    trajectories: int | None = None
    data_steps: int | None = None
    points: int | None = None
    calibration_frames: int = 7

    # Stage 1, the encoder.
    encoder_steps: int = 600
    encoder_batch: int = 8
    encoder_rate: float = 7e-4
    encoder_final_rate: float = 1e-6
    encoder_warmup: int = 50
    sobolev: float = 0.0
    reconstruction: str = "shifted"

    # Stage 2, the operator.
    phases: tuple[tuple[int, int], ...] = ((64, 280), (FULL, 20))
    batch: int = 20
    horizon: int = 5
    growing: bool = False  # rollouts of 1, 2, 4, ... steps up to the horizon, one after the other
    noise: float = 0.0  # on the first state of a rollout, in standard deviations of the data
    through_physics: bool = False  # whether gradients pass through Φ from step to step
    rate: float | None = None
    warmup: int = 30
    clip: float | None = 1.0
    keep_if_better: bool = True

    checkpoint_every: int = 100
    checkpoint_minutes: float = 2.0

    def __post_init__(self):
        for name in ("batch", "horizon", "encoder_batch", "checkpoint_every", "hidden", "modes"):
            if getattr(self, name) < 1:
                raise SplatopError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if self.steps < 1:
            raise SplatopError(f"expected at least one training step, got phases {self.phases}")
        if self.members < 1 or (self.members > 1 and self.model == "physics"):
            raise SplatopError(
                f"expected at least one seed, and one alone for physics without a network, got "
                f"{self.members}"
            )
        if self.numerics not in ("auto", "paper"):
            raise unknown_name("numerics", self.numerics, ("auto", "paper"))
        if self.answers not in GRIDS:
            raise unknown_name("grid", self.answers, GRIDS)
        if self.network not in NETWORKS:
            raise unknown_name("network", self.network, NETWORKS)
        if self.refine and (self.coarse is None or self.answers != "given"):
            raise SplatopError(NOTHING_TO_REFINE)
        if self.refine_steps < 1:
            raise SplatopError(f"expected refine_steps of at least 1, got {self.refine_steps}")
        if not 0 <= self.noise < math.inf:
            raise SplatopError(f"expected noise of at least 0, got {self.noise}")
        if self.stride < 1:
            raise SplatopError(f"expected a stride of at least one frame, got {self.stride}")
        if self.reconstruction not in RECONSTRUCTIONS:
            raise unknown_name("reconstruction", self.reconstruction, RECONSTRUCTIONS)

    @property
    def steps(self) -> int:
        return sum(steps for _, steps in self.phases)

    @property
    def is_coarse(self) -> bool:
        """Whether the model has fewer points or longer steps than its data."""
        return self.coarse is not None or self.stride > 1

    @property
    def horizons(self) -> tuple[int, ...]:
        """The rollout lengths of the loss, one after the other."""
        if not self.growing:
            return (self.horizon,)
        return (
            *(2**i for i in range(self.horizon.bit_length()) if 2**i < self.horizon),
            self.horizon,
        )

    def fitting(self, frames: int) -> "Settings":
        """With growing rollouts no longer than trajectories of so many frames."""
        if not self.growing or self.horizon < frames or frames < 2:
            return self
        return replace(self, horizon=frames - 1)

    @property
    def peak_rate(self) -> float:
        """The largest learning rate of stage 2, at the end of its warm-up."""
        if self.rate is not None:
            return self.rate
        wider = max(1.0, self.hidden / RATED_CHANNELS)
        if self.tenfold:  # ten times the parameters are about three times the channels
            wider = 3.0
        convolutional = self.model in ("unet", "resnet") or self.network == CONVOLUTIONS
        if convolutional:
            return (
                CONVOLUTIONAL_RATE if self.network == CONVOLUTIONS else CONVOLUTIONAL_RATE / wider
            )
        return RATE / wider

    @property
    def members(self) -> int:
        return 1 if self.seeds is None else self.seeds

    @property
    def member_seeds(self) -> tuple[int, ...]:
        """The seed of each member's weights and batches."""
        return tuple(range(self.seed, self.seed + self.members))

    @property
    def seed_of_data(self) -> int:
        """All members learn from the same data."""
        return self.seed if self.data_seed is None else self.data_seed

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def with_overrides(self, overrides: Mapping[str, str]) -> "Settings":
        """Settings with fields set from text, as `--set key=value` gives them."""
        return replace(self, **parse_overrides(type(self), overrides))

    def overriding(self, numerics: Numerics, dims: int) -> Numerics:
        """The chosen numerics with whatever these settings fix by hand."""
        changes: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "jets",
                "encoder",
                "renderer",
                "kernel_width",
                "window",
                "filter",
                "rolloff",
                "substeps",
                "working_grid",
                "hold_geometry",
            )
            if getattr(self, name) is not None
        }
        if self.anchors is not None:
            changes["anchors"] = (self.anchors,) * dims
        if self.cutoff is not None:
            changes["cutoff"] = (self.cutoff,)
        return replace(numerics, **changes)


PRESETS: dict[str, Settings] = {
    # Appendix C of the paper. 80 epochs of 256 x 51 frames in batches of 32 are 32,640 steps.
    "paper": Settings(
        preset="paper",
        numerics="paper",
        residual_scaling=False,
        encoder_steps=32_640,
        encoder_batch=32,
        encoder_rate=1.5e-3,
        encoder_warmup=0,
        reconstruction="observed",
        phases=((FULL, 10_000),),
        rate=1e-3,
        warmup=2_000,
        clip=None,
        keep_if_better=False,
    ),
    "fast": Settings(),
    # As many steps as the paper takes, for networks that have all of it to learn.
    "long": Settings(preset="long", phases=((FULL, 10_000),), warmup=300),
    "smoke": Settings(
        preset="smoke",
        trajectories=8,
        data_steps=20,
        points=32,
        encoder_steps=20,
        phases=((FULL, 40),),
        batch=8,
        warmup=5,
        checkpoint_every=20,
    ),
}

# What a coarse model changes in a preset: a network for what a coarse physics lacks, trained by
# rollouts through the physics that grow, with noise that keeps long ones stable.
COARSE: dict[str, Any] = {
    "network": CONVOLUTIONS,
    "hidden": 32,
    "blocks": 4,
    "horizon": 16,
    "growing": True,
    "noise": 1e-3,
    "through_physics": True,
    "batch": 32,
    "phases": ((FULL, 3_000),),
}
COARSE_SMOKE: dict[str, Any] = {
    **COARSE,
    "horizon": 2,
    "batch": 8,
    "phases": ((FULL, 40),),
    "refine_steps": 40,
}

# The paper's settings that differ by benchmark: 3D (40 epochs, batches of 8 and 12), and the
# unknown coefficients (100 epochs, batch 64).
PAPER_BY_BENCHMARK: dict[str, dict[str, Any]] = {
    "advection_diffusion3d": {"encoder_steps": 65_280, "encoder_batch": 8, "batch": 12},
    "unknown_advection_diffusion2d": {"encoder_steps": 20_400, "encoder_batch": 64},
}
# In 3D the coarse grid alone: a step at 64³ costs as much as eight at 32³.
FAST_BY_BENCHMARK: dict[str, dict[str, Any]] = {
    "advection_diffusion3d": {"phases": ((32, 150),), "batch": 12},
}
LONG_BY_BENCHMARK: dict[str, dict[str, Any]] = {
    "advection_diffusion3d": {"phases": ((32, 10_000),), "batch": 12},
}
SMOKE_BY_BENCHMARK: dict[str, dict[str, Any]] = {
    "advection_diffusion3d": {"points": 24, "phases": ((FULL, 6),), "batch": 2, "trajectories": 4},
}


def preset(name: str, benchmark: str | None = None) -> Settings:
    """A preset by name, with what it changes for a benchmark."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    by_benchmark = {
        "paper": PAPER_BY_BENCHMARK,
        "fast": FAST_BY_BENCHMARK,
        "long": LONG_BY_BENCHMARK,
        "smoke": SMOKE_BY_BENCHMARK,
    }[name]
    return replace(PRESETS[name], **by_benchmark.get(benchmark or "", {}))


def coarser(
    settings: Settings,
    *,
    factor: int | None,
    stride: int = 1,
    answers: str = "given",
    refine: bool = False,
) -> Settings:
    """Settings for a model that computes on fewer points, or takes several frames in one step."""
    if factor is None and stride == 1:
        if refine:
            raise SplatopError(NOTHING_TO_REFINE)
        if answers != "given":
            raise SplatopError("expected a coarse grid to answer on, got none: give coarse as well")
        return settings
    if settings.numerics == "paper":
        raise SplatopError("expected another preset for a coarse model, got the paper's")
    changes = COARSE_SMOKE if settings.preset == "smoke" else COARSE
    return replace(
        settings, **changes, coarse=factor, stride=stride, answers=answers, refine=refine
    )
