"""A model as a value: what it is, and one file that holds it."""

from .build import build_model as build_model
from .build import on_given_grid as on_given_grid
from .file import SHIPPED as SHIPPED
from .file import bounded_models as bounded_models
from .file import coarse_models as coarse_models
from .file import load_model as load_model
from .file import model_bytes as model_bytes
from .file import save_model as save_model
from .file import shipped_models as shipped_models
from .model import GivenField as GivenField
from .model import Model as Model
from .model import ensemble_of as ensemble_of
from .spec import CONVOLUTIONS as CONVOLUTIONS
from .spec import FNO_OPERATOR as FNO_OPERATOR
from .spec import GRIDS as GRIDS
from .spec import KINDS as KINDS
from .spec import NETWORKS as NETWORKS
from .spec import OWN_OPERATOR as OWN_OPERATOR
from .spec import ModelSpec as ModelSpec
