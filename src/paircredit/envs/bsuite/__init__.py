"""The seven credit-assignment domains of bsuite (Osband et al. 2020), step for step those of the original package.

What differs between the variants of a domain is data, so that all of them train in one program. All chance of an
episode is drawn at its beginning: `start` takes the draws explicitly, `reset` draws them from a key and calls it, and
`step` needs no random numbers. That is also how the tests replay the draws of the original.
"""
