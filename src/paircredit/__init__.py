"""Learned pairwise weights for temporal credit assignment."""

__version__ = "0.1.0"
