"""The estimators once more, as plain loops over float64 numbers: slow, obvious, and written without looking."""

from __future__ import annotations

import numpy as np


def loop_returns(rewards, discounts, valid):
    """G_t = R_{t+1} + γ_{t+1} G_{t+1}, 0 on padding."""
    result, following = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        following = float(rewards[t]) + float(discounts[t]) * following if valid[t] else 0.0
        result[t] = following
    return result


def loop_td_errors(rewards, values, discounts, valid):
    """δ_{t+1} = R_{t+1} + γ_{t+1} v(S_{t+1}) − v(S_t), 0 on padding."""
    result = np.zeros(len(rewards))
    for t in range(len(rewards)):
        if valid[t]:
            result[t] = float(rewards[t]) + float(discounts[t]) * float(values[t + 1]) - float(values[t])
    return result


def loop_lambda_advantages(rewards, values, discounts, lambdas, valid):
    """The double sum Σ_k Π_j γ_j λ_j δ_k, literally."""
    errors = loop_td_errors(rewards, values, discounts, valid)
    result = np.zeros(len(rewards))
    for t in range(len(rewards)):
        decay = 1.0
        for k in range(t, len(rewards)):
            if not valid[k]:
                break
            result[t] += decay * errors[k]
            decay *= float(discounts[k]) * float(lambdas[k])
    return result


def loop_pairwise_sum(weights, signal, valid):
    """Σ_{k≥t} w_tk x_k over valid pairs."""
    result = np.zeros(len(signal))
    for t in range(len(signal)):
        for k in range(t, len(signal)):
            if valid[t] and valid[k]:
                result[t] += float(weights[t][k]) * float(signal[k])
    return result
