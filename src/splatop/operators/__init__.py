"""Neural operators: the FNO, the paper's baselines, and what makes any of them a stepper."""

from .baselines import BASELINES as BASELINES
from .baselines import baseline as baseline
from .baselines import parameter_count as parameter_count
from .conditioning import Conditioning as Conditioning
from .convolutions import Convolutions as Convolutions
from .fno import FNO as FNO
from .operator_stepper import OperatorStepper as OperatorStepper
from .operator_stepper import apply_network as apply_network
