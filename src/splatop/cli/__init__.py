"""The `splatop` command: a thin surface over the library."""

import sys

from . import assimilate as _assimilate  # noqa: F401
from . import bench as _bench  # noqa: F401
from . import data as _data  # noqa: F401  (each module adds its commands to `app`)
from . import demo as _demo  # noqa: F401
from . import discover as _discover  # noqa: F401
from . import estimate as _estimate  # noqa: F401
from . import evaluate as _evaluate  # noqa: F401
from . import generate as _generate  # noqa: F401
from . import identify as _identify  # noqa: F401
from . import models as _models  # noqa: F401
from . import report as _report  # noqa: F401
from . import reproduce as _reproduce  # noqa: F401
from . import train as _train  # noqa: F401
from .app import app, run


def main() -> None:
    """Run the command; a user's mistake is one message on standard error, not a traceback."""
    sys.exit(run(app))
