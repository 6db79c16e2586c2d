"""Methods: one actor-critic, and a credit rule per section of the paper, a file each; TVT is an agent of its own."""

from paircredit.methods.agent import ActorCritic, Learner
from paircredit.methods.loops import InnerLoop, OuterLoop, Trained
from paircredit.methods.presets import presets
from paircredit.methods.registry import make_method, methods, register_method
from paircredit.methods.rule import Credit, CreditRule, Experience, LearningRule, MetaMethod, Method, Needs
from paircredit.settings import replace_dotted

__all__ = [
    "ActorCritic",
    "Credit",
    "CreditRule",
    "Experience",
    "InnerLoop",
    "Learner",
    "LearningRule",
    "MetaMethod",
    "Method",
    "Needs",
    "OuterLoop",
    "Trained",
    "make_method",
    "methods",
    "presets",
    "register_method",
    "replace_dotted",
]
