"""Methods: how advantages are made and what learns from them; one file each."""

from paircredit.methods.a2c import A2C
from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.credit import Credit
from paircredit.methods.hpwr import HPWR
from paircredit.methods.inner_loop import InnerLoop, Trained
from paircredit.methods.meta_lambda import MetaLambda
from paircredit.methods.meta_pwr import MetaPWR
from paircredit.methods.meta_pwtd import MetaPWTD
from paircredit.methods.outer_loop import InnerData, OuterData, OuterLoop, meta_learn
from paircredit.methods.presets import preset_environment, preset_training, presets
from paircredit.methods.protocol import MetaMethod, Method
from paircredit.methods.registry import make_method, method_name, methods, register_method
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.methods.rgm import RGM
from paircredit.methods.settings import replace_dotted
from paircredit.methods.synthetic_returns import SyntheticReturns
from paircredit.methods.tvt import TVT

__all__ = [
    "A2C",
    "A2CRR",
    "HPWR",
    "RGM",
    "TVT",
    "Credit",
    "InnerData",
    "InnerLoop",
    "MetaLambda",
    "MetaMethod",
    "MetaPWR",
    "MetaPWTD",
    "Method",
    "OuterData",
    "OuterLoop",
    "ReturnPrediction",
    "SyntheticReturns",
    "Trained",
    "make_method",
    "meta_learn",
    "method_name",
    "methods",
    "preset_environment",
    "preset_training",
    "presets",
    "register_method",
    "replace_dotted",
]
