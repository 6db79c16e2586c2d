"""Atari games, emulated on the host by the Arcade Learning Environment.

Here are the names of all 49 with what random play and people score in them, in points of a whole game.
"""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """What scores of a game are held against."""

    random: float
    """That of random play, the same in both sources."""
    human_2015: float
    """That of a person, as Mnih et al. (2015) have it."""
    human: float
    """That of a person, as papers on 57 games have it since 2016."""


GAMES: dict[str, Reference] = {
    "alien": Reference(227.8, 6875.4, 7127.7),
    "amidar": Reference(5.8, 1675.8, 1719.5),
    "assault": Reference(222.4, 1496.4, 742.0),
    "asterix": Reference(210.0, 8503.3, 8503.3),
    "asteroids": Reference(719.1, 13156.7, 47388.7),
    "atlantis": Reference(12850.0, 29028.1, 29028.1),
    "bank_heist": Reference(14.2, 734.4, 753.1),
    "battle_zone": Reference(2360.0, 37800.0, 37187.5),
    "beam_rider": Reference(363.9, 5774.7, 16926.5),
    "bowling": Reference(23.1, 154.8, 160.7),
    "boxing": Reference(0.1, 4.3, 12.1),
    "breakout": Reference(1.7, 31.8, 30.5),
    "centipede": Reference(2090.9, 11963.2, 12017.0),
    "chopper_command": Reference(811.0, 9881.8, 7387.8),
    "crazy_climber": Reference(10780.5, 35410.5, 35829.4),
    "demon_attack": Reference(152.1, 3401.3, 1971.0),
    "double_dunk": Reference(-18.6, -15.5, -16.4),
    "enduro": Reference(0.0, 309.6, 860.5),
    "fishing_derby": Reference(-91.7, 5.5, -38.7),
    "freeway": Reference(0.0, 29.6, 29.6),
    "frostbite": Reference(65.2, 4334.7, 4334.7),
    "gopher": Reference(257.6, 2321.0, 2412.5),
    "gravitar": Reference(173.0, 2672.0, 3351.4),
    "hero": Reference(1027.0, 25762.5, 30826.4),
    "ice_hockey": Reference(-11.2, 0.9, 0.9),
    "jamesbond": Reference(29.0, 406.7, 302.8),
    "kangaroo": Reference(52.0, 3035.0, 3035.0),
    "krull": Reference(1598.0, 2394.6, 2665.5),
    "kung_fu_master": Reference(258.5, 22736.2, 22736.3),
    "montezuma_revenge": Reference(0.0, 4366.7, 4753.3),
    "ms_pacman": Reference(307.3, 15693.4, 6951.6),
    "name_this_game": Reference(2292.3, 4076.2, 8049.0),
    "pong": Reference(-20.7, 9.3, 14.6),
    "private_eye": Reference(24.9, 69571.3, 69571.3),
    "qbert": Reference(163.9, 13455.0, 13455.0),
    "riverraid": Reference(1338.5, 13513.3, 17118.0),
    "road_runner": Reference(11.5, 7845.0, 7845.0),
    "robotank": Reference(2.2, 11.9, 11.9),
    "seaquest": Reference(68.4, 20181.8, 42054.7),
    "space_invaders": Reference(148.0, 1652.3, 1668.7),
    "star_gunner": Reference(664.0, 10250.0, 10250.0),
    "tennis": Reference(-23.8, -8.9, -8.3),
    "time_pilot": Reference(3568.0, 5925.0, 5229.2),
    "tutankham": Reference(11.4, 167.6, 167.6),
    "up_n_down": Reference(533.4, 9082.0, 11693.2),
    "venture": Reference(0.0, 1187.5, 1187.5),
    "video_pinball": Reference(16256.9, 17297.6, 17667.9),
    "wizard_of_wor": Reference(563.5, 4756.5, 4756.5),
    "zaxxon": Reference(32.5, 9173.3, 9173.3),
}
"""By name, as in `atari/ms_pacman`. The paper does not say which of the two human scores it has."""
