# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module pdu_info as users run it. If these fail, who asks for a state does it by the module that switches."""

from __future__ import annotations

import json

import pytest

from ansible_collections.hetero.compute.tests.unit.drivers.power.emulated_pdu import PASSWORD, boards
from ansible_collections.hetero.compute.tests.unit.drivers.power.test_pdu_power import run


def test_all_outlets_or_those_that_are_named(node, tmp_path):
    """Without it, a look in check mode would show nothing, or a look would count as a change."""
    on = boards(tmp_path, "3")
    _pdu, arguments = node(outlets={"3": {**on["3"], "state": "on"}})
    for check in (False, True):
        result, text = run(tmp_path, check, "pdu_info", **arguments)
        assert result["changed"] is False
        assert len(result["outlets"]) == 8
        assert result["outlets"]["3"] == {"before": "on", "after": "on", "seconds": 0.0}
        assert result["outlets"]["4"] == {"before": "off", "after": "off", "seconds": 0.0}
        assert (result["dialect"], result["host_key"], set(result["seconds"])) == ("menu", None, {"session"})
        assert "deprecat" not in text.lower()
        assert PASSWORD not in text
    result, _text = run(tmp_path, module="pdu_info", outlets=["3", "4"], **arguments)
    assert set(result["outlets"]) == {"3", "4"}
    result, _text = run(tmp_path, module="pdu_info", outlets=["3", "77"], **arguments)
    assert "pdu-t: no outlet 77 (it has 1, 2," in result["msg"]


def test_a_pdu_that_no_configuration_knows(emulated, tmp_path):
    """Without it, a PDU could not be tried before the set-up."""
    pdu = emulated(dialect="cli")
    arguments = {"host": "127.0.0.1", "port": pdu.port, "username": "apc", "password": PASSWORD, "timeout": 60}
    result, text = run(tmp_path, module="pdu_info", outlets=["all"], **arguments)
    assert len(result["outlets"]) == 8
    assert result["dialect"] == "cli"
    assert PASSWORD not in text


def test_a_wrong_password(node, tmp_path):
    """Without it, the person who mistyped it would search the cables."""
    pdu, arguments = node()
    (tmp_path / "credentials.json").write_text(json.dumps({"pdu-t": {"username": "apc", "password": "hush-hush-7"}}))
    result, text = run(tmp_path, module="pdu_info", **arguments)
    assert "pdu-t: refuses user 'apc'" in result["msg"]
    assert result["failure"]["thing"] == pdu.name
    assert "hush-hush-7" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"outlets": ["1"]}, "one of the following is required: pdu, host"),
        ({"pdu": "a", "host": "b"}, "mutually exclusive: pdu|host"),
        ({"host": "b", "driver": "fence"}, "all of the following are missing: agent"),
        ({"pdu": "a", "state": "off", "outlets": ["1"]}, "Unsupported parameters for (hetero.compute.pdu_info) module"),
        ({"pdu": "a", "config": "/nowhere/proxy.json"}, "run ansible-playbook hetero.compute.proxy"),
    ],
)
def test_wrong_arguments_are_told(tmp_path, arguments, words):
    """Without it, an outlet could be turned off by a module that promises to look."""
    result, _text = run(tmp_path, module="pdu_info", **arguments)
    assert words in result["msg"]
