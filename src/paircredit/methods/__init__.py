"""Methods: one actor-critic, and a credit rule per section of the paper, a file each; TVT is an agent of its own."""

from paircredit.methods.a2c_rr import A2CRR
from paircredit.methods.agent import ActorCritic, Kept, Learner, meta_learn
from paircredit.methods.lambda_returns import A2C, MetaLambda
from paircredit.methods.loops import InnerLoop, OuterData, OuterLoop, Trained
from paircredit.methods.pairwise import HPWR, MetaPWR, MetaPWTD
from paircredit.methods.presets import preset_environment, preset_training, presets
from paircredit.methods.protocol import MetaMethod, Method
from paircredit.methods.registry import make_method, method_name, methods, register_method
from paircredit.methods.return_prediction import ReturnPrediction
from paircredit.methods.rgm import RGM
from paircredit.methods.rule import Credit, CreditRule, Experience, LearningRule, Needs
from paircredit.methods.synthetic_returns import SyntheticReturns
from paircredit.methods.tvt import TVT
from paircredit.settings import replace_dotted

__all__ = [
    "A2C",
    "A2CRR",
    "HPWR",
    "RGM",
    "TVT",
    "ActorCritic",
    "Credit",
    "CreditRule",
    "Experience",
    "InnerLoop",
    "Kept",
    "Learner",
    "LearningRule",
    "MetaLambda",
    "MetaMethod",
    "MetaPWR",
    "MetaPWTD",
    "Method",
    "Needs",
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
