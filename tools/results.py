"""Write docs/results.md and the README's table from the JSON files that tools/measure.py wrote."""

import json
from pathlib import Path

from measured import table
from paper_system import read as read_paper_system
from result_figures import draw_all
from rivals import finished
from rivals import read as read_rivals
from splatop.benchmarks import BENCHMARKS, get_benchmark
from splatop.evaluate import load_metrics
from splatop.evaluate.published import published_representation, published_rollout
from splatop.evaluate.written import plain
from splatop.model import SHIPPED, load_model

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
DOCS, README = ROOT / "docs", ROOT / "README.md"
PAGE = DOCS / "results.md"
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


def number(value: float | None, digits: int = 2) -> str:
    return plain(value, digits, scientific=digits, missing="diverged")


def shipped() -> dict:
    return {
        name: load_metrics(SHIPPED / f"{name}.metrics.json")
        for name in BENCHMARKS
        if (SHIPPED / f"{name}.metrics.json").exists()
    }


def image(name: str, caption: str) -> str:
    return f"![{caption}](images/results-{name}.png)\n\n*{caption}.*"


def headline() -> str:
    rows = []
    for name, metrics in shipped().items():
        published = published_rollout(name)
        # Where the operator was left out the model is its physics.
        alone = metrics.physics_alone or metrics
        paper, fno = published.get("surrogate"), published.get("fno")
        rows.append(
            [
                name,
                f"**{number(metrics.rl2_mean)}** ± {number(metrics.rl2_std, 1)}",
                number(alone.rl2_mean),
                f"{paper.rl2[0]:.3f}" if paper else "–",
                f"{fno.rl2[0]:.3f}" if fno else "–",
                number(metrics.spectral_error),
                f"{paper.spectral_error:.4f}" if paper else "–",
                f"{load_model(name).record['train_minutes']:.0f}",
            ]
        )
    return table(
        [
            "benchmark",
            "rL2, measured",
            "our physics alone, measured",
            "paper, published",
            "paper's FNO, published",
            "spectral error, measured",
            "paper, published",
            "training, minutes",
        ],
        rows,
    )


def providers() -> str:
    rows = []
    for name, metrics in shipped().items():
        row = [name, number(metrics.rl2_mean)]
        for jets in ("spectral", "finite-difference"):
            path = RESULTS / "jets" / f"{name}.{jets}.json"
            row.append(number(load_metrics(path).rl2_mean) if path.exists() else "not measured")
        rows.append(row)
    return table(["benchmark", "Gaussians", "spectral", "finite differences"], rows)


def resolutions() -> str:
    found = {
        path.stem: json.loads(path.read_text())
        for path in sorted((RESULTS / "resolution").glob("*.json"))
    }
    points = sorted({int(p) for row in found.values() for p in row})
    rows = [
        [
            name,
            *(number(row[str(p)]) if str(p) in row else "" for p in points),
            f"{max(row.values()) / row[str(get_benchmark(name).points)]:.2g}",
        ]
        for name, row in found.items()
    ]
    return table(["benchmark", *(str(p) for p in points), "largest / own grid's"], rows)


def long_rollouts() -> str:
    rows = []
    for path in sorted((RESULTS / "long").glob("*.json")):
        held = json.loads(path.read_text())
        one = held["trajectories"][0]
        rows.append([path.stem, *(number(one[key], 3) for key in ("start", "peak", "end"))])
    return table(
        ["benchmark", "max abs at the start", "largest in 1,000 steps", "at the end"], rows
    )


def rivals() -> str:
    """Every training of every contender, with the published errors at full size."""
    rows = []
    for name, contenders in read_rivals().items():
        published = published_rollout(name)
        for kind, points in contenders.items():
            paper = published.get(kind)
            for n, point in enumerate(points):
                rows.append(
                    [
                        name if n == 0 else "",
                        {"fno": "FNO", "unet": "U-Net"}.get(kind, "splatop") if n == 0 else "",
                        f"{point['steps']:,}",
                        f"{point['minutes']:.1f}",
                        number(point["rl2"]),
                        f"{paper.rl2[0]:.3f}" if paper and n == 0 else "",
                        finished(kind, points) if n == len(points) - 1 else "",
                    ]
                )
    header = [
        "benchmark",
        "model",
        "steps",
        "processor, minutes",
        "rL2",
        "published, at 160²",
        "end",
    ]
    return table(header, rows)


def paper_system() -> str:
    """The whole system beside itself without each of its parts, and the published error."""
    kinds = {"unet": "learned, solved", "lattice": "lattice"}
    rows = []
    for one, found in read_paper_system().items():
        name, kind = one.split(".")
        paper = published_rollout(name)
        frames = found["frames_of_encoder"] if kind == "unet" else 0
        rows.append(
            [
                name,
                kinds[kind],
                *(number(found[key]) for key in ("rl2", "without_operator", "without_physics")),
                number(found["without_filter"]),
                number(found["spectral_error"]),
                f"{frames:,}",
                f"{found['steps']:,} x {found['batch']}",
                f"{sum(found['minutes'].values()):.0f}",
                f"{paper['surrogate'].rl2[0]:.3f} ({paper['fno'].rl2[0]:.3f})",
                f"{found['rl2'] / paper['surrogate'].rl2[0]:.2g}",
            ]
        )
    header = ["benchmark", "Gaussians", "rL2", "without N_θ", "without Φ", "without the filter"]
    header += ["spectral error", "frames the encoder saw", "steps of N_θ x batch"]
    header += ["minutes, beside other work", "published (FNO alone)", "rL2 over the published"]
    return table(header, rows)


def numerics() -> str:
    rows = []
    for name, metrics in shipped().items():
        chosen = load_model(name).spec.numerics
        representation = metrics.representation or {}
        paper = published_representation(name)
        rows.append(
            [
                name,
                f"{chosen.filter} {', '.join(f'{c:g}' for c in dict.fromkeys(chosen.cutoff))}",
                " x ".join(str(a) for a in chosen.anchors),
                f"{chosen.kernel_width:g}",
                str(chosen.substeps),
                *(
                    f"{number(representation.get(e, None))} ({number(paper[e]) if e in paper else '–'})"
                    for e in ("e_u", "e_grad", "e_lap")
                ),
                "kept" if load_model(name).record.get("operator_earned_its_place") else "left out",
            ]
        )
    return table(
        [
            "benchmark",
            "filter, cutoff",
            "Gaussians",
            "σ/h",
            "substeps",
            "e_u (published)",
            "e_∇u (published)",
            "e_Δu (published)",
            "operator",
        ],
        rows,
    )


def choices() -> str:
    found = [json.loads(path.read_text()) for path in (RESULTS / "choices").glob("*.json")]
    rows = [
        [
            held["changed"],
            number(held["rl2_mean"]),
            number(held["physics_alone"]),
            str(held["steps"]),
            f"{held['minutes']:.1f}",
        ]
        for held in sorted(found, key=lambda one: (one["changed"] != "as it is", one["changed"]))
    ]
    return table(["changed", "rL2", "physics alone", "steps", "minutes of stage 2"], rows)


def encoders() -> str:
    rows = []
    kinds = {
        "unet": "learned, solved",
        "unet-predicted": "learned, predicted",
        "lattice": "lattice",
    }
    for name in BENCHMARKS:
        for kind, label in kinds.items():
            path = RESULTS / "encoders" / f"{name}.{kind}.json"
            if not path.exists():
                continue
            held = json.loads(path.read_text())
            rows.append(
                [
                    name,
                    label,
                    *(number(held[e]) for e in ("e_u", "e_grad", "e_lap")),
                    f"{held['frames_seen']:,}",
                    f"{held['minutes']:.1f}",
                    number(held["rl2_mean"]),
                ]
            )
        paper = published_representation(name)
        if paper and rows and rows[-1][0] == name:
            rollout = published_rollout(name).get("surrogate")
            errors = [number(paper[e]) for e in ("e_u", "e_grad", "e_lap")]
            frames = "–"
            rows.append(
                [name, "*paper, published*", *errors, frames, "", f"{rollout.rl2[0]:.3f}, with N_θ"]
            )
    return table(
        [
            "benchmark",
            "encoder at A = 20",
            "e_u",
            "e_∇u",
            "e_Δu",
            "frames seen",
            "minutes",
            "rL2 of Φ alone",
        ],
        rows,
    )


def anchors() -> str:
    rows = []
    paths = (RESULTS / "anchors").glob("*.json")
    for path in sorted(paths, key=lambda p: int(p.stem.split(".")[-1])):
        held = json.loads(path.read_text())
        lattice, learned = held["lattice"], held["learned"]
        errors = [
            f"{number(lattice[e])} / {number(learned[e])}" for e in ("e_u", "e_grad", "e_lap")
        ]
        count = int(path.stem.split(".")[-1])
        rows.append(
            [
                f"{count} ({count**2})",
                *errors,
                f"{lattice['width']:g}",
                f"{learned['frames_seen']:,}",
                f"{learned['minutes']:.1f}",
            ]
        )
    return table(
        [
            "A (Gaussians)",
            "e_u, lattice / learned",
            "e_∇u",
            "e_Δu",
            "σ/h of the lattice",
            "frames seen",
            "minutes",
        ],
        rows,
    )


def true_coefficients() -> str:
    held = json.loads((RESULTS / "true_coefficients.json").read_text())
    errors = held["coefficient_errors"]
    return table(
        ["rL2, identified", "rL2, true ones given", *(f"mean error of {k}" for k in errors)],
        [
            [
                number(held["rl2_identified"]),
                number(held["rl2_true"]),
                *(f"{100 * e:.2g} %" for e in errors.values()),
            ]
        ],
    )


def bench() -> str:
    held = json.loads((RESULTS / "bench.json").read_text())
    shown = {k: v for k, v in held.items() if not k.startswith(("lattice_", "window_"))}
    return table(
        ["what", "measured"], [[k.replace("_", " "), f"{v:.3g}"] for k, v in shown.items()]
    )


def page() -> str:
    parts = [
        "# Results",
        "Written by `make results` from the JSON files in `src/splatop/models` and `results`, "
        "which `tools/measure.py` writes. rL2 is the mean over trajectories and 200 steps. What is "
        "marked *published* is the paper's own number; everything else was measured on two CPU cores.",
        "## The paper's protocol\n\n30 held-out trajectories, 200 steps, 160² points (64³ in 3D), "
        "one model per benchmark, trained by `splatop train NAME` (preset `fast`) with the lattice "
        "encoder's Gaussians in Φ. Each phase of training has 256 trajectories of 50 steps "
        "from the same initial states, solved on its own grid.",
        headline(),
        "*Physics alone* is the same Φ without the operator. Where the equation is complete, the "
        "automatic numerics leave almost nothing for an operator to learn; it is kept only where "
        "it lowers the rollout error of the training data (`splatop info NAME` says).",
        image("rollouts", "rL2 by lead time, with 10 to 90 % of the trajectories"),
        image("spectra", "Spectra averaged over time, and the reference's"),
        "## What the automatic numerics chose\n\nFrom the training data and the equation alone "
        "(`splatop tune NAME` prints the reasons), with the representation errors of the Gaussians "
        "on test frames, unfiltered, and the paper's for its 20 x 20 (20 x 20 x 20) trained ones.",
        numerics(),
    ]
    sections = [
        (
            "jets",
            "## Where the derivatives come from\n\nrL2 of the same models with Φ on other "
            "derivatives. Inside the kept band the lattice's derivatives equal spectral ones, so on "
            "these periodic problems Gaussians cost nothing and buy nothing over spectral "
            "derivatives; both beat finite differences. Where an operator was kept it was trained "
            "on what Φ with Gaussians leaves, so with other derivatives it corrects for too much. "
            "Other derivatives: 10 test trajectories, 4 in 3D.",
            providers,
        ),
        (
            "resolution",
            "## Other grids\n\nrL2 of the same models on test data at other resolutions, from the same "
            "initial states.",
            resolutions,
        ),
        ("long", "## A thousand steps", long_rollouts),
        (
            "choices",
            "## What each choice buys\n\nadvection2d, 100 steps at 64² (six test trajectories at "
            "160²), one setting changed at a time; the operator is kept whatever it does. The preset "
            "itself takes 300 steps, the last 20 of them on the full grid.",
            choices,
        ),
        (
            "encoders",
            "## Learned Gaussians\n\nThe U-Net encoder at the paper's A = 20, trained here, beside "
            "the lattice with as many Gaussians. Errors are relative to spectral derivatives, on "
            "unfiltered frames at twelve moments of test trajectories; rollouts of Φ with these Gaussians over four test trajectories "
            "(one in 3D) and 200 steps, without an operator. In 3D a "
            "step solves for its 8,000 amplitudes once, and a lattice holds what its stages differ by.",
            encoders,
        ),
        (
            "anchors",
            "## What learning buys per Gaussian\n\nadvection_allen_cahn2d, test frames. The lattice "
            "with the best of the widths 0.8, 1, 1.2 and 1.5.\n\n"
            + image("anchors", "Representation errors against the anchors along each axis"),
            anchors,
        ),
        (
            "rivals",
            "## Networks that get their time\n\n`python tools/rivals.py train`: at 64², 256 "
            "training trajectories (8 between walls), batches of 20, five-step rollout loss, by "
            "`splatop train BENCHMARK --model KIND --preset long`; the best of three learning "
            "rates by held-out error. Each point is a whole training; times are of the processor, two "
            "cores have two minutes of it in one. 30 test trajectories of 200 steps. A row stops "
            "where three times as many steps brought less than 2 %, at three times the 10,000 steps of the "
            "preset, or where no time was left, which the last column says.",
            lambda: rivals() + "\n\n" + image("rivals", "rL2 against time to train"),
        ),
        (
            "paper_system",
            "## The paper's complete system\n\n`python tools/paper_system.py train`: 400 Gaussians in Φ with "
            "the paper's cutoffs and one RK4 step, plus N_θ, on the paper's tests (160², 200 steps, six "
            "trajectories). Trained for minutes instead of the paper's 10,000 steps of 20. Columns without a part "
            "leave it out of the trained system, without training again. Where the operator raises the error it does "
            "so in late steps, which training (50 steps) has not seen. Kinds without a row were not trained.",
            paper_system,
        ),
        (
            "true_coefficients.json",
            "## Coefficients that are identified\n\nunknown_advection_diffusion2d: the shipped model "
            "identifies v and D from the first seven frames of each of the 30 test trajectories; "
            "beside it, the same model told the true ones.",
            true_coefficients,
        ),
        (
            "bench.json",
            "## Speed\n\n`splatop bench --json`, a group at a time (`--only`): contenders timed in turns "
            "in one process, medians compared. The U-Net encoder solves for its amplitudes in 2D "
            "and predicts them in 3D.",
            bench,
        ),
    ]
    for folder, text, make in sections:
        if (RESULTS / folder).exists():
            parts += [text, make()]
    return "\n\n".join(parts) + "\n"


def readme(text: str) -> str:
    """The README with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    note = (
        "Mean rL2 over 30 held-out trajectories and 200 steps at the paper's sizes; *measured* on "
        "two CPU cores by `tools/measure.py`, *published* in the paper. The whole equation is known here: "
        "what is measured is the physics on Gaussians, and what an operator adds to it."
    )
    tables = f"{note}\n\n{headline()}"
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


if __name__ == "__main__":
    draw_all(shipped(), RESULTS, DOCS / "images")
    PAGE.write_text(page())
    README.write_text(readme(README.read_text()))
