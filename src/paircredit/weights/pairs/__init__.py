"""The logits of all pairs of an episode: four back ends with one signature and one answer."""
