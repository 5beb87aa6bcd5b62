# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own power driver made of its file: what it must be, and for which API.

Tests drivers/power/api.py.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside.source import read
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import api, outlets, registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.driver import PowerDriver
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.snmp import Snmp

#: A PDU that is a file of the driver's own settings.
WHOLE = '''"""A PDU that is a file."""

from __future__ import annotations

from hetero_drivers.power import Answer, PowerDriver

POWER_API = 1


class Filed(PowerDriver):
    dialect = "filed"

    def login(self):
        self.at = self.settings["file"]

    def logout(self):
        pass

    def status(self):
        with open(self.at) as file:
            return {"1": file.read()}

    def switch(self, outlets, state):
        with open(self.at, "w") as file:
            file.write(state)
        return {outlet: Answer(True, "done") for outlet in outlets}
'''
ORDER = {"column": "1.3.6.1.4.1.32473.1.6", "value": 1}
TABLE = {"state": "1.3.6.1.4.1.32473.1.4", "on": dict(ORDER, value=2), "off": ORDER}


@pytest.fixture
def folder(tmp_path):
    where = tmp_path / "drivers"
    where.mkdir(0o755)
    (where / "filed.py").write_text(WHOLE)
    (tmp_path / "pdu").write_text("off")
    return where


def made(text, name="acme.py"):
    return registry.made(read(f"/drivers/{name}", text.encode()))


def test_it_switches(folder, tmp_path, monkeypatch):
    """Lost: the PDU that only this site has."""
    monkeypatch.setattr(registry, "OWN_FOLDER", str(folder))
    settings = {"driver": "filed", "file": str(tmp_path / "pdu")}
    deadline = Deadline(20)
    with outlets.session("pdu-t", settings, {}, deadline, str(tmp_path)) as opened:
        results = outlets.set_outlets(opened, {"1": "on"}, deadline)
        assert opened.dialect == "filed"
    assert (results["1"]["before"], results["1"]["after"]) == ("off", "on")
    assert (tmp_path / "pdu").read_text() == "on"
    assert [path.name for path in folder.iterdir()] == ["filed.py"], "nothing was compiled into the folder"


def test_a_driver_that_is_not_there_is_told_with_those_that_are(folder):
    """Lost: what the name is to be."""
    words = r"pdu-t: no such power driver 'fild' \(known: apc, command, fake, fence, filed, .*or put one of that name "
    with pytest.raises(BadInput, match=words):
        registry.driver_of("fild", "pdu-t", str(folder))


def test_a_broken_one_is_not_the_others_trouble(folder):
    """Lost: all PDUs of a node, for a slip in one driver."""
    (folder / "broken.py").write_text("POWER_API = 1\n\nimport no_such_library\n")
    with pytest.raises(BadInput, match=r"broken.py: cannot be imported: line 3: ModuleNotFoundError: .*no_such"):
        registry.driver_of("broken", "pdu-t", str(folder))
    assert registry.driver_of("filed", "pdu-t", str(folder)).dialect == "filed"
    assert registry.driver_of("apc", "pdu-t", str(folder)) is registry.DRIVERS["apc"]


def test_a_name_of_the_collections_is_the_collections(folder):
    """Lost: the session with all APC PDUs, to a file that came to lie there."""
    (folder / "apc.py").write_text(WHOLE)
    assert registry.driver_of("apc", "pdu-t", str(folder)) is registry.DRIVERS["apc"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("POWER_API = 1\n", r"acme.py: defines 0 classes below PowerDriver: define one: class NAME\(PowerDriver\)"),
        ("BOOT_API = 1\n", r"acme.py: is a boot driver, and no power driver: name a power driver"),
        (f"{WHOLE}\n\nclass Other(Filed):\n    pass\n", r"defines 2 classes below PowerDriver \(Filed, Other\)"),
        (WHOLE.replace("def status", "def state"), r"its driver, Filed, has no status: write what is missing"),
        (WHOLE.replace("def status", "def state").replace("def log", "def lag"), r"has no login, logout, status"),
        ("POWER_API = 1\nraise SystemExit(9)\n", r"cannot be imported: line 2: SystemExit: 9"),
        ("POWER_API = 1\nfrom hetero_drivers.power import Nothing\n", r"cannot be imported: line 2: ImportError"),
    ],
)
def test_what_is_missing_is_named_with_the_file(text, words):
    """Lost: a traceback from within a boot, instead of the line to correct."""
    with pytest.raises(BadInput, match=words):
        made(text)


def test_a_driver_for_another_api_is_refused_before_it_runs(monkeypatch):
    """Lost: who switches a board by a driver that understands its orders otherwise, after an upgrade."""
    text = "POWER_API = {}\nraise SystemExit(9)\n"
    with pytest.raises(BadInput, match=r"acme.py: is written for power API 2, and release .* has 1: update the coll"):
        made(text.format(2))
    monkeypatch.setattr(api, "API", 3)
    monkeypatch.setattr(api, "OLDEST", 2)
    with pytest.raises(BadInput, match=r"written for power API 1, which release .* has no more: it has 3: change"):
        made(text.format(1))
    with pytest.raises(BadInput, match="SystemExit"):
        made(text.format(2))


def test_a_file_from_before_there_were_numbers_goes_on():
    """Lost: the PDUs of a site whose drivers were written for an older release, by an upgrade."""
    old = WHOLE.replace("POWER_API = 1\n", "").replace("from hetero_drivers.power import", "from .driver import")
    assert made(old).__name__ == "Filed"


def test_the_api_is_what_its_number_says():
    """Lost: drivers of sites, when a name is taken away and the number stays; raise it, and say so in the guide."""
    assert (api.API, api.OLDEST) == (1, 1)
    names = ["Answer", "BadInput", "Busy", "Deadline", "Drawn", "HeteroError", "Http", "Lost", "PowerDriver", "Snmp"]
    assert api.__all__ == [*names, "TimedOut"]
    promised = ["drawn", "login", "logout", "masked", "status", "switch", "wrong"]
    assert [name for name in promised if not callable(getattr(PowerDriver, name, None))] == []
    assert api.Answer._fields[:2] == ("accepted", "words")


def test_a_table_is_driver_snmp_with_another_table():
    """Lost: a PDU whose table is a file."""
    driver = made(json.dumps({"power_api": 1, "snmp_table": TABLE}), "acme.json")
    assert issubclass(driver, Snmp)
    assert (driver.table, driver.table_name, registry.kin(driver)) == (TABLE, "acme", "snmp")
    http = {"read": {"path": "/r"}, "on": {"path": "/1"}, "off": {"path": "/0"}, "state": "/ison"}
    driver = made(json.dumps({"power_api": 1, "api_table": http}), "acme.json")
    assert (registry.kin(driver), list(driver.wrong("pdu-t", {"host": "h"}))) == ("http", [])
    with pytest.raises(BadInput, match=r"acme.json: its snmp_table has no column of states: give its OID"):
        made(json.dumps({"power_api": 1, "snmp_table": {}}), "acme.json")


def test_the_same_file_is_loaded_once(folder):
    """Lost: what a driver keeps for all sessions of a process."""
    first = registry.driver_of("filed", "pdu-t", str(folder))
    assert registry.driver_of("filed", "pdu-t", str(folder)).__base__ is first.__base__
    (folder / "filed.py").write_text(WHOLE.replace('"filed"', '"other"'))
    assert registry.driver_of("filed", "pdu-t", str(folder)).dialect == "other"


def test_a_driver_may_import_when_it_is_used(folder):
    """Lost: a driver that imports within a method, after others were loaded."""
    begin = "    def login(self):\n"
    late = WHOLE.replace(begin, f"{begin}        from hetero_drivers.power import Lost\n")
    (folder / "filed.py").write_text(late)
    registry.driver_of("filed", "pdu-t", str(folder))("p", {"file": ""}, {}, Deadline(1)).login()


def test_nothing_of_it_is_there_before_a_driver_is(tmp_path):
    """Lost: a node's own package of that name."""
    script = f"import {registry.__name__}, sys; print([name for name in sys.modules if 'hetero_drivers' in name])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
