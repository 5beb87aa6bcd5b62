# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Power drivers that a site wrote itself: files on the node, beside a collection that is as it was installed."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import outlets as power
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power import registry
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named

#: Outlets that are words in a file.
DRIVER = """\
import json

from ...core.errors import Lost
from .driver import Answer, PowerDriver


class Written(PowerDriver):
    needs_host = False

    def login(self):
        self._file = self.settings["agent"]

    def logout(self):
        pass

    def status(self):
        try:
            with open(self._file) as file:
                return json.load(file)
        except OSError as error:
            raise Lost("is away", self.name, "look") from error

    def switch(self, outlets, state):
        states = {**self.status(), **dict.fromkeys(outlets, state)}
        with open(self._file, "w") as file:
            json.dump(states, file)
        return {outlet: Answer(True, state) for outlet in outlets}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The node's folder of such drivers, with one, `written`."""
    own = tmp_path / "power_drivers"
    own.mkdir(mode=0o755)
    (own / "written.py").write_text(DRIVER)
    monkeypatch.setattr(registry, "OWN_FOLDER", str(own))
    return own


def switched(folder, driver="written", state="on"):
    file = folder.parent / "outlets"
    if not file.exists():
        file.write_text(json.dumps({"1": "off", "2": "off"}))
    deadline = Deadline(5)
    with power.session("pdu-x", {"driver": driver, "agent": str(file)}, {}, deadline, str(folder.parent)) as session:
        return power.set_outlets(session, {"1": state}, deadline)


def test_it_switches_and_is_read_back(folder):
    """Lost: a PDU, to who will not keep a fork of the collection for it."""
    assert [switched(folder, state=state)["1"]["after"] for state in ("on", "cycled", "off")] == ["on", "on", "off"]
    assert sorted(path.name for path in folder.iterdir()) == ["written.py"]


def test_the_guides_driver_is_one_as_it_stands(folder):
    """Lost: an afternoon, to who copies the guide's file into a folder of their own."""
    (folder / "http_relay.py").write_text(named(guide("power_driver"), "power-driver"))
    variable = yaml.safe_load(named(guide("power_driver"), "own-power-driver"))["tftp_proxy_power_drivers"]
    assert [registry.driver_of(name, "pdu-x").__name__ for name in variable] == ["HttpRelay"]


@pytest.mark.parametrize("name", ["writen", "../written", "/etc/x", "__init__", ""])
def test_a_name_that_is_none_leads_to_no_file(folder, name):
    """Lost: which drivers there are, to who misspelt one; or a node, to who chooses a path."""
    with pytest.raises(BadInput, match=r"pdu-x: no such power driver .*uhubctl, written"):
        switched(folder, name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def (", "is no Python of node .+: line 1: "),
        ("import nothing_like_it", "cannot be imported: line 1: ModuleNotFoundError"),
        ("from .driver import PowerDriver", "defines 0 classes below PowerDriver"),
        (f"{DRIVER}\n\nclass Other(Written):\n    pass\n", "defines 2 classes below PowerDriver"),
        ("from .driver import PowerDriver\n\n\nclass Half(PowerDriver):\n    pass\n", "its driver, Half, has no log"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_path(folder, text, said):
    """Lost: an error that can be read, to a traceback."""
    (folder / "written.py").write_text(text)
    with pytest.raises(BadInput, match=rf"power_drivers/written\.py: {said}"):
        switched(folder)


#: (a method's first line, what is put in its place).
MISTAKES = {
    "login": ("self._file = ", 'self._file = {}["outlet secret"]; '),
    "logout": ("pass\n", "self.connection.close()\n"),
    "status": ("return json.load(file)", "return None"),
    "status of numbers": ("return json.load(file)", "return int"),
    "switch": ("return {outlet: Answer", "raise SystemExit(1)  # "),
    "switch without a word": ("return {outlet: Answer(True, state) for outlet in outlets}", "return {}"),
    "making": ("needs_host = False", "needs_host = False\n\n    def __init__(self, *words):\n        int('x')"),
}


@pytest.mark.parametrize("where", list(MISTAKES))
def test_a_mistake_in_it_is_an_error_of_its_pdu(folder, where):
    """Lost: the boots of all boards of a call, at whatever PDU, and the status of the node, to a KeyError."""
    old, new = MISTAKES[where]
    assert old in DRIVER
    (folder / "written.py").write_text(DRIVER.replace(old, new))
    with pytest.raises(HeteroError) as raised:
        switched(folder)
    errors = getattr(raised.value, "errors", {"": raised.value})
    for error in errors.values():
        assert isinstance(error, BadInput), "no outlet, and no board, is at fault"
        assert str(error).startswith("pdu-x: its driver broke off (")
        assert f"correct {folder}/written.py" in str(error)


def test_a_mistake_where_it_looks_at_its_settings_is_one_of_them(folder):
    """Lost: all that is wrong with a set-up, to a KeyError in one driver of the site."""
    looks = "    @classmethod\n    def wrong(cls, name, settings):\n        yield 'host', settings['unit']\n"
    (folder / "written.py").write_text(DRIVER.replace("    needs_host = False\n", f"    needs_host = False\n\n{looks}"))
    ((key, error),) = registry.driver_of("written", "pdu-x").wrong("pdu-x", {})
    assert (key, str(error)) == (
        "driver", f"pdu-x: its driver broke off (KeyError): correct {folder}/written.py"
    )


@pytest.mark.parametrize("where", ["file", "folder"])
def test_what_others_may_write_is_not_run(folder, where):
    """Lost: the node, to whoever may write that file or put another in its place."""
    (folder / "written.py" if where == "file" else folder).chmod(0o777)
    with pytest.raises(HeteroError, match="others may write to it"):
        switched(folder)


def test_the_set_up_knows_their_names():
    """Lost: a set-up that takes the wiring; or a driver that never is asked, to one of the collection of its name."""

    def said(*names):  # of power drivers; those of boots are in drivers/boot
        found, plan = Findings(), Plan(server="10.0.2.254", pdus={"pdu-x": {"driver": "written", "host": "h"}})
        plan.power_drivers = list(names)
        preflight.wiring(plan, [], found)
        return [f"{defect.thing}: {defect.what}" for defect in found.defects]

    assert said("written") == []
    assert said() == ['tftp_proxy_pdus, pdu-x: no such driver: "written"']
    assert said("written", "apc", "../x") == [
        'tftp_proxy_power_drivers, "apc": is a driver of the collection, which would be taken',
        'tftp_proxy_power_drivers, "../x": is no name of a driver',
    ]
