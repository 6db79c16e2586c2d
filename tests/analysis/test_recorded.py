"""Curves that members of a run have recorded."""

from __future__ import annotations

import dataclasses

import numpy as np

from paircredit.analysis.recorded import Recorded


def curves_of(edges, values):
    return Recorded(np.array([0]), np.asarray(edges, dtype=float), np.asarray(values, dtype=float)[None])


def test_scores_are_means_over_the_last_tenth():
    curves = curves_of(np.arange(0.0, 101.0, 5.0), np.arange(20.0))
    np.testing.assert_allclose(curves.scores(), [18.5])
    np.testing.assert_allclose(curves.scores(50.0), [9.0])
    assert curves.scores(101.0) is None
    late = dataclasses.replace(curves, edges=curves.edges[-2:], values=curves.values[:, -1:])
    np.testing.assert_allclose(late.scores(), [19.0])
    assert late.scores(50.0) is None


def test_parts_of_training_have_their_own_means():
    curves = curves_of([10.0, 20.0, 40.0], [1.0, 4.0])
    np.testing.assert_allclose(curves.means(np.array([10.0, 30.0, 40.0])), [[2.5, 4.0]])
    frames, values = curves.thinned(1)
    assert frames.tolist() == [25.0] and values.tolist() == [[3.0]]
