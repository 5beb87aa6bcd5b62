# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own drivers before they are installed. If these fail, a set-up ends well and no verb reaches the PDUs."""

from __future__ import annotations

import json
from dataclasses import replace

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import outside_check, preflight
from ansible_collections.hetero.compute.tests.unit.nodes.proxy.test_preflight import GOOD

CODE = """\
from hetero_drivers.power import PowerDriver

POWER_API = 1


class Acme(PowerDriver):
    needs_host = False

    def login(self): pass
    def logout(self): pass
    def status(self): return {}
    def switch(self, outlets, state): return {}
"""
ACME = {"path": "power_drivers/acme.py", "text": CODE}
ORDER = {"column": "1.3.6.1.4.1.32473.1.6", "value": 1}
TABLE = {"state": "1.3.6.1.4.1.32473.1.4", "on": dict(ORDER, value=2), "off": ORDER}


def said(tmp_path, *drivers, pdu=None, **changes):
    """Defects of a plan with these drivers, whose only PDU is this."""
    changes.setdefault("drivers_folder", str(tmp_path / "drivers"))
    plan = replace(GOOD, drivers=list(drivers), config=str(tmp_path / "proxy.json"), **changes)
    plan = replace(plan, pdus={"pdu-a": pdu or {"driver": "apc", "host": "10.0.100.1"}})
    found = Findings()
    known = outside_check.known(plan, found)
    preflight.wiring(plan, preflight.boards_of(plan, found), found, known)
    return [str(defect) for defect in found.defects], known


def test_a_pdu_may_have_a_driver_of_the_site(tmp_path):
    """Lost: the set-up of a proxy with a driver that it is about to get, or that lies there already."""
    assert said(tmp_path, ACME, pdu={"driver": "acme", "unit": 3})[0] == []
    (defect,) = said(tmp_path, pdu={"driver": "acme", "host": "h"})[0]
    assert defect.startswith("tftp_proxy_pdus, pdu-a: no such driver: \"acme\": use apc, ")
    (tmp_path / "drivers" / "power_drivers").mkdir(parents=True)
    (tmp_path / "drivers" / "power_drivers" / "acme.py").write_text(CODE)
    (tmp_path / "drivers" / "power_drivers" / "acme.py").chmod(0o644)
    assert said(tmp_path, pdu={"driver": "acme"})[0] == []
    (defect,) = said(tmp_path, ACME, pdu={"driver": "acne", "host": "h"})[0]
    assert defect == "tftp_proxy_pdus, pdu-a: no such driver: \"acne\": write acme"


def test_what_is_wrong_with_a_file_is_said_once_and_with_the_others(tmp_path):
    """Lost: a set-up for each; and the others' drivers, for a slip in one."""
    wrong = [
        {"path": "power_drivers/broken.py", "text": "POWER_API = 1\nimport no_such_library\n"},
        {"path": "power_drivers/half.py", "text": CODE.replace("def status", "def state")},
        {"path": "power_drivers/wrong.json", "text": json.dumps({"power_api": 1, "snmp_table": {}})},
        {"path": "power_drivers/newer.py", "text": "POWER_API = 9\n"},
    ]
    defects, known = said(tmp_path, ACME, *wrong, pdu={"driver": "half", "host": "h"})
    wanted = [
        "tftp_proxy_power_drivers, broken.py: cannot be imported: line 2: ModuleNotFoundError",
        "tftp_proxy_power_drivers, half.py: its driver, Acme, has no status: write what is missing",
        "tftp_proxy_power_drivers, wrong.json: its snmp_table has no column of states: give its OID",
        "tftp_proxy_power_drivers, newer.py: is written for power API 9, and release ",
    ]
    assert len(defects) == len(wanted), "\n".join(defects)
    for defect, begin in zip(defects, wanted):
        assert defect.startswith(begin)
    assert not known.power["acme"].needs_host


def test_one_that_lies_there_and_is_wrong_is_said_to_who_names_it(tmp_path):
    """Lost: why a driver that lies on the node is none; or a set-up, for a file that no PDU names."""
    (tmp_path / "drivers" / "power_drivers").mkdir(parents=True)
    (tmp_path / "drivers" / "power_drivers" / "acme.py").write_text("POWER_API = 1\n")
    (tmp_path / "drivers" / "power_drivers" / "acme.py").chmod(0o666)
    assert said(tmp_path)[0] == []
    (defect,) = said(tmp_path, pdu={"driver": "acme", "host": "h"})[0]
    assert "acme.py: others may write to it" in defect


def test_packages_that_a_driver_needs_are_installed_before_it_is_imported(tmp_path):
    """Lost: a driver with a library that only its own package brings: no set-up would ever begin."""
    text = f'PACKAGES = ["no-such-package-0"]\nimport no_such_library\n{CODE}'
    file = {"path": "power_drivers/acme.py", "text": text}
    defects, known = said(tmp_path, file, pdu={"driver": "acme", "host": "h"})
    assert (defects, known.packages) == ([], ["no-such-package-0"])
    table = {"path": "power_drivers/acme.json", "text": json.dumps({"power_api": 1, "snmp_table": TABLE})}
    assert said(tmp_path, table)[1].packages == ["snmp"]


def test_a_table_has_the_credentials_of_its_kind(tmp_path):
    """Lost: a slip in a key of the credentials, which the proxy would pass over in silence."""
    table = {"path": "power_drivers/acme.json", "text": json.dumps({"power_api": 1, "snmp_table": TABLE})}
    pdu = {"driver": "acme", "host": "h"}
    (defect,) = said(tmp_path, table, pdu=pdu, credential_keys={"pdu-a": ["comunity"]})[0]
    assert defect == 'tftp_proxy_pdu_credentials, pdu-a: unknown key "comunity": write community'
    assert said(tmp_path, ACME, pdu={"driver": "acme"}, credential_keys={"pdu-a": ["token"]})[0] == []


def test_files_of_an_earlier_set_up_go_and_no_others(tmp_path):
    """Lost: a file that somebody put there by hand; or the right driver, to one of the same name that was replaced."""
    folder = tmp_path / "drivers"
    (folder / "power_drivers").mkdir(parents=True)
    for name in ("acme.py", "old.py", "by_hand.py"):
        (folder / "power_drivers" / name).write_text(CODE)
    before = ["power_drivers/acme.py", "power_drivers/old.py", "power_drivers/gone.py", "../proxy.json", 7]
    (tmp_path / "proxy.json").write_text(json.dumps({"drivers": before}))
    plan = replace(GOOD, drivers=[ACME], config=str(tmp_path / "proxy.json"), drivers_folder=str(folder))
    assert outside_check.gone(plan) == [str(folder / "power_drivers" / "old.py")]
    assert outside_check.gone(replace(plan, config=str(tmp_path / "none.json"))) == []
