# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of a proxy's variables. If these fail, a set-up is a success and leaves a proxy.json that no verb reads, or
changes half of a node before a program refuses its file.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight, settings_check
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.leases import at
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.proxy_config import read_config
from ansible_collections.hetero.compute.tests.unit.boards.nodes import CPU

GOOD = {
    "server": "10.0.2.254",
    "tftp_root": "/tftpboot",
    "state_folder": "/var/lib/hetero",
    "run_folder": "/run/hetero",
    "roots_overcommit": 1.0,
    "root_gb": 8,
    "dhcp": False,
    "pinned": True,
    "tile_monitor": "/usr/local/TileraMDE/bin/tile-monitor",
    "wipe": {"method": "discard", "samples": "64"},
    "ram_images": {"tilepro64": "ram"},
}
#: What is set, and what the set-up says of it.
WRONG = (
    ({"root_gb": 0}, "tftp_proxy_root_gb: is 0: give a whole number from 1 to 1000000"),
    ({"roots_overcommit": 2e6}, "tftp_proxy_roots_overcommit: is 2000000.0: give a number from 1 to 1e+06"),
    ({"roots_overcommit": 0.5}, "tftp_proxy_roots_overcommit: is 0.5: give a number from 1 to 1e+06"),
    ({"tile_monitor": "relative/tile"}, 'tftp_proxy_tile_monitor: is "relative/tile": give an absolute path'),
    ({"tftp_root": "relative/path"}, 'tftp_proxy_tftp_root: is "relative/path": give an absolute path'),
    ({"state_folder": "~/state"}, 'tftp_proxy_state_folder: is "~/state": give an absolute path'),
    ({"run_folder": None}, "tftp_proxy_run_folder: is null: give an absolute path"),
    ({"ram_images": {"x86_64": []}}, "tftp_proxy_ram_images.x86_64: is []: give text"),
    ({"dhcp": "maybe"}, 'tftp_proxy_dhcp: is "maybe": give true or false'),
)
OTHERS = (
    ({"dhcp_router": "10.0.2.999"}, 'tftp_proxy_dhcp_router: is "10.0.2.999": give an IPv4 address'),
    ({"dhcp_ra_prefix": "hello"}, 'tftp_proxy_dhcp_ra_prefix: is "hello": give an IPv6 prefix of 64 bits'),
    ({"dhcp_ra_prefix": "fd00::1"}, 'tftp_proxy_dhcp_ra_prefix: is "fd00::1": give an IPv6 prefix'),
    ({"dhcp_ra_prefix": "fd00:1:2:3:4::"}, 'tftp_proxy_dhcp_ra_prefix: is "fd00:1:2:3:4::": give an IPv6 prefix'),
    ({"dhcp_ra_prefix": "fd00:1ab::/64"}, 'tftp_proxy_dhcp_ra_prefix: is "fd00:1ab::/64": give an IPv6 prefix'),
    ({"timeout": -5.0}, "tftp_proxy_timeout: is -5.0: give a number from 0.1 to 86400"),
)


def said(settings=None, **fields):
    """The defects that the whole look says of this role's variables."""
    plan = Plan(server="10.0.2.254", settings={**GOOD, **(settings or {})}, **fields)
    return [str(defect) for defect in preflight.look(plan).defects if str(defect).startswith("tftp_proxy_")]


def test_right_values_have_nothing_to_say():
    """Lost: a set-up that ran for years."""
    right = ["fd00:1ab::", "2001:db8:1:2::", ""]
    for prefix in right:
        assert said(dhcp_ra_prefix=prefix, dhcp_router="10.0.2.1", timeout=0.5) == []


@pytest.mark.parametrize(("settings", "line"), WRONG)
def test_what_no_verb_would_read_is_refused_before_it_is_written(tmp_path, settings, line):
    """Lost: every verb, status and the end of leases, until somebody corrects a file that a success has left."""
    defects = said(settings)
    assert len(defects) == 1, defects
    assert defects[0].startswith(line)
    if None not in settings.values():
        (tmp_path / "proxy.json").write_text(json.dumps({**GOOD, **settings}))
        with pytest.raises(BadInput):
            read_config(str(tmp_path / "proxy.json"))


@pytest.mark.parametrize(("fields", "line"), OTHERS)
def test_what_a_program_would_refuse_is_refused_before_a_file_is_written(fields, line):
    """Lost: half of a set-up, by a program that names a file which is gone."""
    defects = said(**fields)
    assert len(defects) == 1, defects
    assert defects[0].startswith(line)


def test_all_wrong_values_are_said_at_once_and_each_of_them_once():
    """Lost: a set-up for each."""
    settings = {"root_gb": 0, "roots_overcommit": 1e9, "tile_monitor": "x", "server": "10.0.2", "wipe": {"method": "z"}}
    settings["pdus"] = {"a": {"driver": "apc", "host": "h", "port": 0}}
    defects = said(settings, timeout=0, pdus=settings["pdus"], wipe=settings["wipe"], roots_overcommit=1e9, root_gb=0)
    wanted = ["dhcp", "pdus.a.port", "roots_overcommit", "root_gb", "tile_monitor", "wipe", "server", "timeout"]
    found = [line.partition(": ")[0][len("tftp_proxy_") :] for line in defects]
    assert sorted(found) == sorted(wanted[1:]), defects


def test_a_ram_image_that_is_nowhere_is_told(tmp_path):
    """Lost: the end of the first lease on a board with a disk, which nobody can wipe."""
    found = Findings()
    images = {"a": "ram-a", "b": "coming", "c": "../x"}
    plan = Plan(
        server="10.0.2.254", state_folder=str(tmp_path), ram_images=images, images=[{"name": "coming", "src": "/"}]
    )
    settings_check.ram_images(plan, found)
    notes = list(map(str, found.notes))
    assert [note.partition(": give")[0] for note in notes] == [
        "tftp_proxy_ram_images, a: ram-a: no such image in the store (known: none)",
        "tftp_proxy_ram_images, c: ../x: no such image in the store (known: none)",
    ]
    assert notes[0].endswith(", or name it in tftp_proxy_images")


def entry(number, **more):
    """A reservation of the number-th day of 2020, unless `more` says another time."""
    dates = {"from": f"2020-01-{number:02} 08:00Z", "until": f"2020-01-{number:02} 18:00Z"}
    return dict({"owner": "ann", "flavor": "tp64", "count": 2}, **dates, **more)


def of_table(*entries, boards=range(3), mistakes=()):
    """(defects, notes) of the whole look that are of a table of reservations."""
    rows = [f"{n} 10.0.2.{n + 1} 00:1a:ca:00:57:{n:02x} 10 16218 917 0 0 tilera_hv 1 {CPU}" for n in boards]
    settings = dict(GOOD, reservations={"table": list(entries), "flavors": {"tp64": {}}})
    plan = Plan(server="10.0.2.254", settings=settings, boards_text="\n".join(rows) + "\n", mistakes=list(mistakes))
    found = preflight.look(plan)
    return [[str(one) for one in said if "_reservations" in str(one)] for said in (found.defects, found.notes)]


NEXT = {"from": "2090-01-01 08:00Z", "until": "2090-01-02 08:00Z"}


def test_reservations_that_are_over_are_noted_and_stop_nothing():
    """Lost: the course, to a wrong year that nobody was told of; or a set-up, to a table that aged."""
    assert of_table({**entry(1), **NEXT}) == [[], []]
    defects, (note,) = of_table(entry(1), {**entry(2), **NEXT}, entry(3))
    assert defects == []
    first, second = f"2 tp64 for ann until {at(1577901600.0)}", f"2 tp64 for ann until {at(1578074400.0)}"
    told = f"tftp_proxy_reservations: over is [0] ({first}), [2] ({second})"
    assert note == f"{told}: nothing is reserved by that: correct the dates where they are wrong, or take it out"
    _defects, (note,) = of_table(*(entry(day) for day in range(1, 8)))
    assert note.count("2 tp64 for ann until ") == 4
    assert " and 3 more: nothing" in note


def test_reserved_boards_are_boards_of_the_file():
    """Lost: the board that was meant, until the first day of the course. A board of a reservation that is over may be
    gone.
    """
    which = {"flavor": None, "count": None}
    good, gone = {**entry(1), **which, **NEXT, "which": [0, "board2"]}, {**entry(1), **which, "which": [12]}
    assert of_table(good, gone)[0] == []
    (defect,), _notes = of_table(good, dict(good, which=[1, 12, "board7", "bord1"]))
    assert defect == (
        "tftp_proxy_reservations[1].which: names board12, board7, bord1, and the boards file has 0 to 2: "
        "name boards of it, by number or as board3"
    )
    assert of_table(dict(good, which=[12]), boards=()) == [[], []], "the boards file itself has a mistake"


def test_all_mistakes_of_a_table_are_said_beside_those_of_the_controller():
    """Lost: a set-up for each of two looks; or two lines for one mistake."""
    flavor = {"thing": "tftp_proxy_reservations[0].flavor", "what": "is no flavor", "remedy": "did you mean tp64?"}
    wrong = dict(entry(1), flavor="tp63", ownr="x")
    defects, _notes = of_table(wrong, "ann", mistakes=[flavor])
    assert sorted(one.partition(": ")[0] for one in defects) == [
        "tftp_proxy_reservations[0].flavor", "tftp_proxy_reservations[0].ownr", "tftp_proxy_reservations[1]",
    ]  # fmt: skip
    assert "tftp_proxy_reservations[0].flavor: is no flavor: did you mean tp64?" in defects
