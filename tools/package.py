"""Build wheel and sdist, install the wheel into empty environments, try it there, write it down.

    python tools/package.py [PYTHON...]      (interpreters to try; without any, this one)

Writes results/package.json and the block in docs/package.md. Needs a package index to install from.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from measured import table, write_between

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results" / "package.json", ROOT / "docs" / "package.md"
BEGIN, END = "<!-- package:begin -->", "<!-- package:end -->"

SMOKE = """
import json, sys
from importlib import metadata, resources

import jax, numpy as np
import splatop
from splatop.model import shipped_models

assert resources.files("splatop").joinpath("py.typed").is_file()
name = sorted(shipped_models())[0]
model = splatop.load(name)
u = np.random.default_rng(0).normal(size=(len(model.spec.fields), *(32,) * model.spec.dims))
out = model.rollout(u.astype("f4"), steps=2)
assert np.isfinite(out).all()
print(json.dumps({
    "python": sys.version.split()[0],
    "jax": jax.__version__,
    "equinox": metadata.version("equinox"),
    "numpy": np.__version__,
    "models": sorted(shipped_models()),
}))
"""


def build(out: Path) -> tuple[Path, Path]:
    """Wheel and sdist of the checkout."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def contents(wheel: Path) -> dict:
    """Sizes, and that nothing is in it that does not belong."""
    with zipfile.ZipFile(wheel) as archive:
        held = {info.filename: info.compress_size for info in archive.infolist()}
    strange = [n for n in held if not n.startswith(("splatop/", "splatop-"))]
    if strange or "splatop/py.typed" not in held:
        raise SystemExit(f"the wheel holds {strange[:5]}, or no py.typed")
    models = {n: size for n, size in held.items() if n.startswith("splatop/models/")}
    return {
        "wheel_bytes": wheel.stat().st_size,
        "files": len(held),
        "models": sum(n.endswith(".safetensors") for n in models),
        "model_bytes": sum(models.values()),
    }


def try_in(python: str, wheel: Path) -> dict:
    """Install into an empty environment of an interpreter and run the smoke test there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        own = environment / "bin"
        install = [str(own / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run(install, check=True, capture_output=True)

        def run(*command: str) -> str:
            # From elsewhere, so that nothing of the checkout can be imported.
            done = subprocess.run(
                command, cwd=folder, check=True, capture_output=True, text=True, timeout=600
            )
            return done.stdout

        found = json.loads(run(str(own / "python"), "-I", "-c", SMOKE).splitlines()[-1])
        assert run(str(own / "splatop"), "--version").startswith("splatop ")
        listed = json.loads(run(str(own / "splatop"), "models", "--json"))
        assert [row["name"] for row in listed] == found["models"]
        return found


def block(held: dict) -> str:
    versions = table(
        ["Python", "JAX", "Equinox", "NumPy"],
        [[one[what] for what in ("python", "jax", "equinox", "numpy")] for one in held["tried"]],
    )
    return (
        f"The wheel of splatop {held['version']} takes {held['wheel_bytes'] / 1e6:.2f} MB, "
        f"{held['model_bytes'] / 1e6:.2f} MB of it {held['models']} trained models; the sdist "
        f"{held['sdist_bytes'] / 1e6:.2f} MB. Installed into empty environments and tried there:\n\n"
        + versions
    )


def main() -> None:
    from splatop import __version__

    pythons = sys.argv[1:] or [sys.executable]
    with tempfile.TemporaryDirectory() as folder:
        wheel, sdist = build(Path(folder))
        held = {"version": __version__, **contents(wheel), "sdist_bytes": sdist.stat().st_size}
        held["tried"] = [try_in(python, wheel) for python in pythons]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(held, indent=1) + "\n")
    write_between(PAGE, BEGIN, END, block(held))
    print(block(held))


if __name__ == "__main__":
    main()
