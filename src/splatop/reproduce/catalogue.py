"""Every table and figure of the paper by name: its label there, and what draws it here."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from ..benchmarks import get_benchmark
from ..errors import SplatopError, unknown_name
from ..evaluate import metrics_tables as tables
from ..evaluate.metrics_tables import Table, with_physics_alone
from ..evaluate.results import Metrics
from . import plots, settings_tables
from .schematic import architecture_figure
from .snapshots import isosurface_figure, snapshot_figure
from .workshop import PlannedRun, Workshop, keep_going

FIXED = (
    "advection2d",
    "advection_diffusion2d",
    "burgers2d",
    "advection_allen_cahn2d",
    "advection_diffusion3d",
)
REMAINING = tuple(name for name in FIXED if name != "burgers2d")
UNKNOWN = "unknown_advection_diffusion2d"
NETWORKS = ("fno", "unet", "resnet")

Failed = list[str]
Draw = Callable[[Workshop, Failed], "Table | Figure"]


@dataclass(frozen=True)
class Item:
    """A table or figure. `label` and `caption` are the paper's."""

    name: str
    label: str
    caption: str
    draw: Draw


def matched(benchmark: str) -> list[PlannedRun]:
    """The paper's comparison at equal parameters."""
    return [PlannedRun(benchmark), *(PlannedRun(benchmark, kind) for kind in NETWORKS)]


def tenfold(benchmark: str) -> list[PlannedRun]:
    """The networks with ten times as many parameters."""
    return [PlannedRun(benchmark, kind, {"tenfold": "true"}) for kind in NETWORKS]


def unconditioned(runs: list[PlannedRun]) -> list[PlannedRun]:
    """Purely data-driven: the FNO does not see the coefficients either."""
    return [
        PlannedRun(r.benchmark, r.kind, {**r.settings, "conditioned": "false"})
        if r.kind == "fno"
        else r
        for r in runs
    ]


def _some(
    shop: Workshop, runs: list[PlannedRun], failed: Failed, *, split: str = "test"
) -> list[Metrics]:
    found = list(keep_going(runs, lambda run: shop.metrics(run, split=split), failed))
    if not found:
        raise SplatopError(f"expected at least one of its runs, got none: {'; '.join(failed)}")
    return found


def _all(
    shop: Workshop, runs: list[PlannedRun], failed: Failed, *, split: str = "test"
) -> list[Metrics]:
    """As `_some`, each surrogate followed by its physics alone."""
    return with_physics_alone(_some(shop, runs, failed, split=split))


def _by_benchmark(shop: Workshop, names: tuple[str, ...], failed: Failed):
    return {name: _some(shop, matched(name), failed) for name in names}


def _table_rollout(shop: Workshop, failed: Failed) -> Table:
    return tables.rollout_table(_by_benchmark(shop, FIXED, failed))


def _surrogates(shop: Workshop, names: tuple[str, ...], failed: Failed) -> list[Metrics]:
    return _some(shop, [PlannedRun(name) for name in names], failed)


def _fig_rollout(shop: Workshop, failed: Failed) -> Figure:
    runs = matched("burgers2d")
    return plots.rollout_figure(
        _all(shop, runs, failed, split="train"),
        _all(shop, runs, failed),
        get_benchmark("burgers2d").train_steps,
    )


def _fig_rollout_all(shop: Workshop, failed: Failed) -> Figure:
    groups = {name: _all(shop, matched(name), failed) for name in REMAINING}
    return plots.rollout_grid(groups)


def _fig_spectra_all(shop: Workshop, failed: Failed) -> Figure:
    order = ("advection_allen_cahn2d", "advection2d", "advection_diffusion2d", FIXED[-1])
    return plots.spectra_grid({name: _all(shop, matched(name), failed) for name in order})


def _fig_partial(shop: Workshop, failed: Failed) -> Figure:
    runs = unconditioned([*matched(UNKNOWN), *tenfold(UNKNOWN)])
    return plots.curves_and_spectra(_some(shop, runs, failed))


def _fig_partial_ablation(shop: Workshop, failed: Failed) -> Figure:
    runs = [PlannedRun(UNKNOWN), PlannedRun(UNKNOWN, "fno", label="FiLM-FNO")]
    return plots.partial_ablation_figure(_all(shop, runs, failed))


def _fig_cost(shop: Workshop, failed: Failed) -> Figure:
    names = ("advection_diffusion2d", "advection_diffusion3d")
    return plots.cost_figure({name: _all(shop, matched(name), failed) for name in names})


def _fig_ablation(shop: Workshop, failed: Failed) -> Figure:
    pairs = {
        name: _all(shop, [PlannedRun(name), PlannedRun(name, "fno")], failed) for name in FIXED
    }
    bare = PlannedRun("burgers2d", settings={"filter": "none"}, label="Surrogate without filter")
    return plots.ablation_figure(pairs, _some(shop, [PlannedRun("burgers2d"), bare], failed))


def _fig_capacity(shop: Workshop, failed: Failed) -> Figure:
    runs = [*matched("burgers2d"), *tenfold("burgers2d")]
    return plots.capacity_figure(_some(shop, runs, failed))


def _snapshots(benchmark: str, fractions: tuple[float, ...]) -> Draw:
    def draw(shop: Workshop, failed: Failed) -> Figure:
        steps = shop.steps_at(benchmark, fractions)
        frames = keep_going(matched(benchmark), lambda run: shop.frames(run, steps), failed)
        is_3d = get_benchmark(benchmark).dims == 3
        return (isosurface_figure if is_3d else snapshot_figure)(list(frames))

    return draw


# The paper shows t = 0, 33, ..., 199 of 200 steps, or 0, 40, ..., 200, or 0, 50, 100, 200.
_SIXTHS = (0.0, 0.165, 0.33, 0.5, 0.665, 0.83, 0.995)
_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_HALVES = (0.0, 0.25, 0.5, 1.0)

_ITEMS = (
    Item(
        "fig-architecture",
        "fig:architecture",
        "Method overview: the Gaussian representation and the composite one-step surrogate",
        lambda shop, failed: architecture_figure(shop.encoding(PlannedRun("burgers2d"))),
    ),
    Item(
        "table-benchmarks",
        "tab:benchmarks",
        "Fixed-coefficient full-physics benchmarks and data-generation parameters",
        lambda shop, failed: settings_tables.benchmarks_table((*FIXED, UNKNOWN)),
    ),
    Item(
        "table-rollout",
        "tab:metrics_comparison",
        "Aggregate test-rollout performance on the five PDE benchmarks",
        _table_rollout,
    ),
    Item(
        "fig-rollout",
        "fig:rollout",
        "Long-horizon autoregressive rollout on the Burgers benchmark, training and held-out",
        _fig_rollout,
    ),
    Item(
        "fig-isosurfaces-3d",
        "fig:advdiff3d_field",
        "Three-dimensional advection-diffusion rollout, isosurfaces u = ±0.4",
        _snapshots("advection_diffusion3d", _HALVES),
    ),
    Item(
        "fig-spectra",
        "fig:burgers2d_spectrum_all",
        "Spectral fidelity on the 2D Burgers test set: spectra, ratio, error",
        lambda shop, failed: plots.spectra_figure(_all(shop, matched("burgers2d"), failed)),
    ),
    Item(
        "table-identification",
        "sec:partial:identify",
        "Coefficient identification: relative errors of velocity and diffusivity (in the text)",
        lambda shop, failed: tables.identification_table(shop.metrics(PlannedRun(UNKNOWN))),
    ),
    Item(
        "fig-partial",
        "fig:partial_baselines",
        "Partial-physics regime: matched and ten-fold baselines, error and spectra",
        _fig_partial,
    ),
    Item(
        "fig-cost",
        "fig:cost",
        "Per-step inference cost, 2D and 3D advection-diffusion",
        _fig_cost,
    ),
    Item(
        "fig-ablation",
        "fig:ablation_full",
        "Ablation in the full-physics regime: physics removed, filter removed",
        _fig_ablation,
    ),
    Item(
        "fig-partial-ablation",
        "fig:partial_ablation",
        "Component ablation in the partial-physics regime",
        _fig_partial_ablation,
    ),
    Item(
        "table-local-rendering",
        "tab:local_dense_rendering",
        "Local rendering (window 4) against dense summation over all Gaussians",
        lambda shop, failed: tables.local_rendering_table(_surrogates(shop, FIXED[:4], failed)),
    ),
    Item(
        "table-cutoffs",
        "tab:cutoffs",
        "Spectral filtering and time-step parameters of the embedded physics",
        lambda shop, failed: settings_tables.cutoffs_table(_surrogates(shop, FIXED, failed)),
    ),
    Item(
        "table-hyperparameters",
        "tab:hparams",
        "Training hyperparameters of the two stages",
        lambda shop, failed: settings_tables.hyperparameters_table(shop.preset),
    ),
    Item(
        "fig-rollout-all",
        "fig:additional_rollout_curves",
        "Long-horizon test-rollout accuracy on the remaining fixed-coefficient benchmarks",
        _fig_rollout_all,
    ),
    Item(
        "fig-snapshots-allen-cahn",
        "fig:snapshot_ac",
        "Representative rollout of 2D advection-Allen-Cahn",
        _snapshots("advection_allen_cahn2d", _SIXTHS),
    ),
    Item(
        "fig-snapshots-advection-diffusion",
        "fig:snapshot_ad",
        "Representative rollout of 2D advection-diffusion",
        _snapshots("advection_diffusion2d", _SIXTHS),
    ),
    Item(
        "fig-snapshots-burgers",
        "fig:snapshot_burgers",
        "Representative rollout of 2D Burgers, normalised vorticity",
        _snapshots("burgers2d", _FIFTHS),
    ),
    Item(
        "fig-spectra-all",
        "fig:additional_spectra",
        "Time-averaged radial energy spectra for the remaining fixed-coefficient benchmarks",
        _fig_spectra_all,
    ),
    Item(
        "fig-capacity",
        "fig:capacity_control",
        "Model-capacity control on the Burgers benchmark",
        _fig_capacity,
    ),
    Item(
        "table-representation",
        "tab:representation_diagnostics",
        "Relative reconstruction errors of field, gradient and Laplacian",
        lambda shop, failed: tables.representation_table(_surrogates(shop, FIXED, failed)),
    ),
)

ITEMS: dict[str, Item] = {item.name: item for item in _ITEMS}
# Names that stand for several.
GROUPS: dict[str, tuple[str, ...]] = {
    "fig-snapshots": tuple(name for name in ITEMS if name.startswith("fig-snapshots-")),
    "tables": tuple(name for name in ITEMS if name.startswith("table-")),
    "figures": tuple(name for name in ITEMS if name.startswith("fig-")),
    "all": tuple(ITEMS),
}


def select(names: list[str]) -> list[Item]:
    """The items that names and names of groups stand for, each once, in the paper's order."""
    chosen: set[str] = set()
    for name in names:
        if name not in ITEMS and name not in GROUPS:
            raise unknown_name("table or figure", name, [*ITEMS, *GROUPS])
        chosen.update(GROUPS.get(name, (name,)))
    return [item for name, item in ITEMS.items() if name in chosen]
