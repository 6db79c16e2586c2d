"""The seven credit-assignment domains of bsuite (Osband et al. 2020), step for step those of the original package.

What differs between the variants of a domain is data, so that all of them train in one program. All chance of an
episode is drawn at its beginning: `start` takes the draws explicitly, `reset` draws them from a key and calls it, and
`step` needs no random numbers. That is also how the tests replay the draws of the original.
"""

from paircredit.envs.bsuite.catch import CatchConfig
from paircredit.envs.bsuite.sweep import DOMAINS, SWEEP, bsuite_config, domain_sweep

__all__ = ["DOMAINS", "SWEEP", "CatchConfig", "bsuite_config", "domain_sweep"]
