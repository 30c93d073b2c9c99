"""Evaluation: metrics of rollouts, ablations, and the paper's tables and figures."""

from .evaluation import evaluate as evaluate
from .evaluation import evaluate_all as evaluate_all
from .metrics import spectral_error as spectral_error
from .on_demand import ReferenceTrajectories as ReferenceTrajectories
from .results import METRICS_VERSION as METRICS_VERSION
from .results import Metrics as Metrics
from .results import check_comparable as check_comparable
from .results import load_metrics as load_metrics
from .results import save_metrics as save_metrics
