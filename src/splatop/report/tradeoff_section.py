"""The section that decides: accuracy against cost, beside solvers of the same equation."""

from collections.abc import Sequence

from ..evaluate.tradeoff import Row, from_json, judged_by, verdicts
from .charts import Line, chart, legend
from .evaluated import EvaluatedRun
from .markup import Html
from .sections import Charts, section
from .ticks import ChartAxis


def tradeoff_section(charts: Charts, runs: Sequence[EvaluatedRun]) -> Html | None:
    """Horizon or error of each contestant against its time for a unit of simulated time."""
    rows: dict[str, Row] = {}
    for run in runs:
        for one in from_json(run.metrics.tradeoff or []):
            rows.setdefault(one.name, one)
    if not rows:
        return None
    found = list(rows.values())
    judged = judged_by(found)

    def height(one: Row) -> float | None:
        return one.horizon if judged == "horizon" else one.rl2

    line = sorted((one for one in found if one.role == "solver"), key=lambda one: one.cost)
    lines = [
        Line("solvers", [one.cost for one in line], [height(one) for one in line], "reference")
    ]
    models = [one for one in found if one.role == "model"]
    alone = [one for one in found if one.role == "physics"]
    for several, letter, styles in ((models, "s", 6), (alone, "p", 3)):
        lines += [
            Line(one.name, [one.cost], [height(one)], f"dot {letter}{index % styles}")
            for index, one in enumerate(several)
        ]
    axis = (
        ChartAxis("time until the error passes 0.3 deviations", low=0.0)
        if judged == "horizon"
        else ChartAxis("mean relative L2 error", log=True)
    )
    drawn = chart(
        lines,
        x=ChartAxis("milliseconds for a unit of simulated time", log=True),
        y=axis,
        title="Accuracy against cost",
        height=340,
    )
    above = "above" if judged == "horizon" else "below"
    caption = (
        f"A model is worth having where it lies {above} the line of the solvers: the same equation "
        "on grids from a quarter of the data's points to all of them, one state, in one compiled "
        "loop, on the machine that evaluated it. "
        + " ".join(f"{verdict}." for verdict in verdicts(found))
        + _until_the_end(found, judged)
    )
    return section(
        "cost", "Accuracy against cost", legend(lines), charts.figure("tradeoff", drawn, caption)
    )


def _until_the_end(rows: Sequence[Row], judged: str) -> str:
    if judged != "horizon" or all(one.horizon < one.length for one in rows):
        return ""
    return f" Those at {max(one.length for one in rows):.3g} hold until the end of the data."
