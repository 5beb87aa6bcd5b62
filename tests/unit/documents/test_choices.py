# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers that options name, in what is checked and in what is read, against the drivers that there are.

If these fail, a driver that is there cannot be asked for, or the pages offer one that is not.

Tests core/argument_spec.py.
"""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.doc_fragments.pdu import ModuleDocFragment
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.argument_spec import PDU
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import DRIVERS as BOOT
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import http_apis, redfish
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.registry import DRIVERS as POWER
from ansible_collections.hetero.compute.plugins.modules import tilera_boot
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide

ROLE = ROOT / "roles" / "tftp_proxy" / "meta" / "argument_specs.yml"
PDU_DOCUMENTATION = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
BOOT_DOCUMENTATION = yaml.safe_load(tilera_boot.DOCUMENTATION)["options"]


@pytest.mark.parametrize(
    ("option", "there_are"), [("api", http_apis.APIS), ("boot_once", redfish.BOOTS)]
)
def test_options_of_a_pdu_name_what_there_is(option, there_are):
    """Lost: a new driver, to who names it and is told that there is no such."""
    assert sorted(PDU.kwargs["argument_spec"][option]["choices"]) == sorted(there_are)
    assert sorted(PDU_DOCUMENTATION[option]["choices"]) == sorted(there_are)


def test_a_pdu_is_spoken_to_by_each_driver_that_there_is():
    """Lost: the same, of drivers, beside which a site has its own."""
    said = set(re.findall(r"V\((\w+)\)", " ".join(PDU_DOCUMENTATION["driver"]["description"])))
    assert set(POWER) <= said
    assert "choices" not in PDU.kwargs["argument_spec"]["driver"]


def test_a_board_is_booted_by_each_driver_that_there_is():
    """Lost: the same, of boot drivers."""
    assert sorted(tilera_boot.SPEC.kwargs["argument_spec"]["driver"]["choices"]) == sorted(["auto", *BOOT])
    assert sorted(BOOT_DOCUMENTATION["driver"]["choices"]) == sorted(["auto", *BOOT])


@pytest.mark.parametrize(("variable", "there_are"), [("tftp_proxy_pdus", POWER), ("tftp_proxy_boards", BOOT)])
def test_the_role_describes_each_driver(variable, there_are):
    """Lost: a driver that no operator hears of."""
    words = yaml.safe_load(ROLE.read_text())["argument_specs"]["main"]["options"][variable]["description"]
    said = set(re.findall(r"V\((\w+)\)", " ".join(words)))
    assert set(there_are) - {"fake"} <= said


def test_the_page_tells_what_each_power_driver_was_tried_on():
    """Lost: whether a driver was ever run, to who buys a PDU by this table."""
    page = guide("power_driver")
    table = page[page.index(":name: tried") :]
    rows = re.findall(r"^   \* - ``(\w+)``\n     - .+\n     - (.+)\n     - .+$", table, re.MULTILINE)
    assert sorted(driver for driver, _tests in rows) == sorted(POWER)
    tests = ROOT / "tests" / "unit" / "drivers" / "power"
    named = [name for _driver, names in rows for name in re.findall(r"``(\S+)``", names)]
    assert [name for name in named if not ((tests / name).is_file() or (ROOT / name).is_file())] == []
    code = "".join(path.read_text() for path in tests.glob("test_*.py"))
    assert [name for name in re.findall(r"``(test_\w+)``", table) if f"def {name}(" not in code] == []
