"""Networks made ready for a loop: what does not change from step to step is computed before it."""

from __future__ import annotations

from typing import Any

import jax


def prepare(tree: Any) -> Any:
    """The same functions, every module that has a `prepared` form in that form."""

    def has_form(node: Any) -> bool:
        return hasattr(node, "prepared")

    return jax.tree.map(lambda node: node.prepared() if has_form(node) else node, tree, is_leaf=has_form)
