# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables' values that are read once. If these fail, a status of a thousand boards takes ten seconds again."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table
from ansible_collections.hetero.compute.plugins.plugin_utils.plain_values import plain

BOARD = dict(name="board0", arch="tile", state="power off", vcpus=64, memory_mb=8192, local_gb=0, cpu_info={})
FLAVOR = dict(name="tp64", vcpus=1, memory_mb=1, local_gb=0, extra_specs={})


class Evaluated(dict):
    """A dictionary that evaluates what is in it whenever that is read, as Ansible's do."""

    times = 0

    def __getitem__(self, key):
        Evaluated.times += 1
        return super().__getitem__(key)

    def get(self, key, nothing=None):
        return dict.get(self, key, nothing) if key not in self else self[key]

    def items(self):
        return [(key, self[key]) for key in self]


def test_values_are_those_of_the_variable():
    """Lost: what a filter is given."""
    assert plain(Evaluated(a=[Evaluated(b=1), ("c", None)])) == dict(a=[dict(b=1), ["c", None]])
    assert [type(one) for one in (plain(Evaluated()), plain(()), plain("a"), plain(None))] == [
        dict,
        list,
        str,
        type(None),
    ]


def test_a_flavor_is_read_once_however_many_boards_there_are():
    """Lost: four seconds of a status of 3,000 boards, in which nothing but the same flavors was read anew."""
    Evaluated.times = 0
    boards = [dict(BOARD, name=f"board{number}") for number in range(100)]
    assert status_table(boards, fits=Evaluated(tp64=Evaluated(FLAVOR)))[1].split()[3] == "tp64"
    assert Evaluated.times == 1 + len(FLAVOR)
