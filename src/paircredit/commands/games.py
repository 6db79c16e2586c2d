"""One game under the name of another: what would be labelled wrongly is refused."""

from __future__ import annotations

from paircredit.errors import PaircreditError


def refuse_another_game(env: str, game: object, command: str) -> None:
    """Refuse a game that has a name of its own; one that only the emulator knows can be named as a setting.

    Args:
        env: the name that was typed.
        game: what the environment's setting `game` is to be; None where there is none.
        command: that would be right, with {} in the place of the environment's name.
    """
    from paircredit.envs import environment_config, environments

    own = getattr(environment_config(env), "game", None)
    right = f"{env.split('/')[0]}/{game}"
    if own is not None and game not in (None, own) and right in environments():
        raise PaircreditError(f"The game is a part of the name: {command.format(right)}.")
