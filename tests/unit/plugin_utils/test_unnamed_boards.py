# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims on boards that the boards file lost, in the table of status. If these fail, a tenant is not in it at all."""

from __future__ import annotations

from ansible_collections.hetero.compute.plugins.plugin_utils.filters.status_table import status_table

FORGET = "ansible-playbook hetero.compute.reconcile -e forget=jackie"


def board(number):
    return dict(
        id=number, name=f"board{number}", arch="TILEPro64", state="running", instance="carol", since_seconds=130.0,
        vcpus=1, memory_mb=1, local_gb=1, cpu_info={},
    )  # fmt: skip


def claim(number, instance):
    return dict(board=number, name=f"board{number}", instance=instance, owner="jo", created=1.5)


def seen(boards, claims):
    return dict(boards=boards, claims=claims, roots=None, error=None)


def test_a_claim_whose_board_is_not_named_has_a_row():
    proxies = {"proxy1": seen([board(0)], [claim(0, "carol"), claim(7, "jackie")])}
    heading, first, second, *below = status_table(proxies)
    assert second.split("  ")[0] == "board7"
    assert second.index("not in the boards file") == first.index("running") == heading.index("STATE")
    assert second.index("jackie") == heading.index("INSTANCE")
    assert FORGET in " ".join(line.strip() for line in [second, *below])
    assert not any("carol" in line for line in below)


def test_of_several_proxies_it_is_said_whose():
    """Of one all rows may be lost: its claims are the other's otherwise."""
    proxies = {"proxy1": seen([board(7)], [claim(7, "carol")]), "proxy2": seen([], [claim(7, "jackie")])}
    lines = status_table(proxies)
    assert lines[1].startswith("board7 of proxy1  ")
    assert any(line.startswith("board7 of proxy2  ") and "jackie" in line for line in lines)
