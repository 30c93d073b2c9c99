"""One self-contained page from run folders: read, play, write down."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from .._version import __version__
from ..data import Trajectories
from ..data.atomic import write_whole
from ..errors import SplatopError
from ..evaluate.published import published_rollout
from .details import coefficients_section, equation_section, learned_section, settings_section
from .evaluated import Entry, EvaluatedRun, entries, read_runs
from .learned_part import compare_with_dropped
from .markup import Child, Html, embedded_json, join, tag
from .overview import comparison_section, header, page_title, verdict_section
from .playback import Playback, play
from .player import isosurface_section, player_data, player_section
from .sections import Charts, error_section, loss_section, section, spectrum_section
from .tradeoff_section import tradeoff_section
from .unknown_section import unknown_section
from .words import ReportVerdict, verdict

Say = Callable[[str], None]

# They are joined to one script, in this order.
_SCRIPTS = ("values.js", "curves.js", "gaussians.js", "profile.js", "player.js", "start.js")
_LINKS = (
    ("verdict", "Verdict"),
    ("player", "Player"),
    ("isosurfaces", "Isosurfaces"),
    ("rollout", "Error and spectra"),
    ("cost", "Cost"),
    ("numbers", "Numbers"),
    ("equation", "Equation"),
    ("unknown", "What ? stands for"),
    ("coefficients", "Coefficients"),
    ("learned", "Missing terms"),
    ("training", "Training"),
    ("settings", "Settings"),
)


@dataclass(frozen=True)
class Report:
    """Where the page was written, and what it says first."""

    path: Path
    verdict: ReportVerdict


def write_report(
    runs: Sequence[str | Path | EvaluatedRun],
    out: str | Path,
    *,
    data: str | Path | Trajectories | None = None,
    trajectory: int | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Write one HTML page about evaluated runs of one problem; nothing it needs lies outside.

    `data` are the test trajectories to play, or their file, without it the benchmark's own;
    `trajectory` is which one, without it the median one. `say` is told what happens.
    """
    out = Path(out)
    if out.suffix.lower() not in (".html", ".htm"):
        raise SplatopError(f"expected an output named .html, got '{out}'")
    found = read_runs(runs)
    shown = entries(found)
    say(f"rolling out {', '.join(entry.label for entry in shown)} on one test trajectory")
    playback = play(shown, data=data, trajectory=trajectory)
    published = published_rollout(found[0].model.spec.benchmark)
    ours = published.get("surrogate")
    said = verdict(found, shown, ours.rl2[0] if ours else None)
    charts = Charts()
    player = player_data(playback, shown) if playback else None
    sections: list[Child] = [
        header(found, __version__),
        verdict_section(said, found),
        player_section(playback, player, shown) if playback and player else _no_player(found[0]),
        isosurface_section(playback, shown) if playback else None,
        _curves(charts, shown, found[0]),
        tradeoff_section(charts, found),
        comparison_section(shown, list(published.values())),
        equation_section(found[0].model.spec),
        unknown_section(charts, found),
        coefficients_section(found, playback),
        _learned(charts, found, playback),
        loss_section(charts, found),
        settings_section(found),
    ]
    page = page_text(page_title(found), sections, {"charts": charts.hover, "player": player})
    write_whole(out, page)
    return Report(out, said)


def _curves(charts: Charts, shown: Sequence[Entry], run: EvaluatedRun) -> Html:
    return section(
        "rollout",
        "Error and spectra",
        tag(
            "div.columns",
            error_section(charts, shown, run.model.spec.dt),
            spectrum_section(charts, shown),
        ),
    )


def _learned(
    charts: Charts, runs: Sequence[EvaluatedRun], playback: Playback | None
) -> Html | None:
    if playback is None:
        return None
    compared = [
        (run, found)
        for run, rollout in zip(runs, playback.rollouts, strict=False)
        if (found := compare_with_dropped(run, playback, rollout.coefficients)) is not None
    ]
    return learned_section(charts, compared, playback)


def _no_player(run: EvaluatedRun) -> Html:
    source = run.metrics.data.get("source") or "unknown"
    return section(
        "player",
        "Reference and prediction, side by side",
        tag(
            "p.note.missing",
            f"There is nothing to play: the test data ({source}) cannot be made again from the "
            "benchmark, and were not given. Write the report again with --data FILE.",
        ),
    )


def page_text(
    title: str,
    sections: list[Child],
    data: dict,
    *,
    scripts: Sequence[str] = _SCRIPTS,
    links: Sequence[tuple[str, str]] = _LINKS,
) -> str:
    """The whole page: its sections, links to those that are there, its data and its scripts."""
    body = join(sections)
    shown = [tag("a", name, href=f"#{key}") for key, name in links if f'id="{key}"' in body]
    template = Template(_asset("report.html"))
    script = "\n".join(_asset(name) for name in scripts)
    # Only this very script may run: the browser itself refuses any that data might smuggle in.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return template.substitute(
        title=tag("title", f"{title} – splatop"),
        style=_asset("report.css"),
        navigation=tag("nav", *shown, aria_label="Sections"),
        body=body,
        data=embedded_json(data),
        script=script,
        script_hash=f"sha256-{digest}",
    )


def _asset(name: str) -> str:
    return (
        resources.files(__name__.rpartition(".")[0])
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
    )
