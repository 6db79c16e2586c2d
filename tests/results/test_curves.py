"""Curves that members of a run have recorded."""

from __future__ import annotations

import numpy as np

from paircredit.results.curves import RETURN, Curve


def curves_of(edges, values):
    values = {RETURN: np.asarray(values, dtype=float)[None]}
    return Curve("a2c", None, (), np.array([0]), {"frames": np.asarray(edges, dtype=float)}, values)


def test_scores_are_means_over_the_last_tenth():
    curves = curves_of(np.arange(0.0, 101.0, 5.0), np.arange(20.0))
    np.testing.assert_allclose(curves.scores(), [18.5])
    np.testing.assert_allclose(curves.scores(50.0), [9.0])
    assert curves.scores(101.0) is None
    late = curves_of(curves.edges["frames"][-2:], curves.values[RETURN][0, -1:])
    np.testing.assert_allclose(late.scores(), [19.0])
    assert late.scores(50.0) is None


def test_parts_of_training_have_their_own_means():
    curves = curves_of([10.0, 20.0, 40.0], [1.0, 4.0])
    np.testing.assert_allclose(curves.means(RETURN, np.array([10.0, 30.0, 40.0])), [[2.5, 4.0]])
    frames, values = curves.thinned(RETURN, 1)
    assert frames.tolist() == [25.0] and values.tolist() == [[3.0]]
