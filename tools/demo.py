"""The README's first picture and its numbers, from the folder that `make demo` wrote.

python tools/demo.py [FOLDER]    # docs/images/demo.png, results/demo.json, the block in README.md
"""

import json
import shutil
import sys
from pathlib import Path

from measured import write_between
from splatop.cli.demo import NOISE, TEST, TITLES, TRAINING, answer
from splatop.evaluate import load_metrics
from splatop.evaluate.written import plain
from splatop.model import load_model

ROOT = Path(__file__).resolve().parent.parent
PICTURE, RESULT = ROOT / "docs" / "images" / "demo.png", ROOT / "results" / "demo.json"
BEGIN, END = "<!-- demo: written by tools/demo.py -->", "<!-- end of demo -->"


def measured(folder: Path) -> dict:
    return {
        "answer": answer(load_model(folder / "splatop")),
        "rl2_mean": {name: load_metrics(folder / name).rl2_mean for name in TITLES},
        "train_minutes": {
            name: load_model(folder / name).record.get("train_minutes") for name in TITLES
        },
    }


def block(found: dict) -> str:
    errors = ", ".join(
        f"{TITLES[name].partition(':')[0]} {plain(100 * found['rl2_mean'][name], 2)} %"
        for name in ("splatop", "fno", "physics")
    )
    return (
        f"![A held-out trajectory, in space and time](docs/images/demo.png)\n\n"
        f"`make demo`: {TRAINING[0]} trajectories between insulated walls with {100 * NOISE:g} % noise; diffusion is known but not its D, "
        f"a reaction is not known at all. splatop says: *{found['answer']}* Mean error over {TEST[1]} steps of {TEST[0]} held-out "
        f"trajectories: {errors}."
    )


def main(folder: Path) -> None:
    found = measured(folder)
    shutil.copyfile(folder / "demo.png", PICTURE)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    for page, path in (
        (ROOT / "README.md", "docs/images/"),
        (ROOT / "docs" / "index.md", "images/"),
    ):
        write_between(page, BEGIN, END, block(found).replace("docs/images/", path))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
