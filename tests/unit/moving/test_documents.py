# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports whose values have other types than the tool writes, and dictionaries that would have something computed. If
these fail, who moves in reads a traceback of Python, or loses the memory of his machine to a file.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.documents import Asked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.move_in import move_in
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources.lava import variables
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, SAMPLES, moved, questions
from ansible_collections.hetero.compute.tests.unit.moving.netboxes import rack

WRONG = ({"a": [1]}, [[]], True, "x", None, 1e300)


def spoilt(value, path, wrong):
    """The value with another one at a path."""
    value = json.loads(json.dumps(value))
    *way, last = path
    at = value
    for key in way:
        at = at[key]
    at[last] = wrong
    return value


def from_netbox(folder, lists):
    """The result of what such a NetBox answers; None where it is refused in words."""

    def get(url, _headers):
        found = lists[urlsplit(url).path.partition("/api/")[2].strip("/")]
        return json.dumps({"count": len(found), "next": None, "results": found})

    params = dict(source="netbox", src=[], url="http://netbox/dcim/devices/", folder=str(folder), replace=False)
    try:
        return move_in(params, Asked(url=params["url"], get=get), False)
    except HeteroError:
        return None


@pytest.mark.parametrize("wrong", WRONG)
def test_a_netbox_of_other_types(tmp_path, wrong):
    """Lost: the reason, in a traceback."""
    end = ("dcim/power-ports", 0, "connected_endpoints", 0)
    paths = [("dcim/devices", 0, "id"), ("dcim/devices", 0), end, (*end, "device"), (*end, "device", "id")]
    for number, path in enumerate(paths):
        result = from_netbox(tmp_path / str(number), spoilt(rack(), path, wrong))
        if path == (*end, "device"):
            assert "no cable leads to an outlet" in questions(result)["jackie", "pdu"]


@pytest.mark.parametrize("wrong", WRONG)
def test_nodes_of_ironic_and_machines_of_maas_of_other_types(tmp_path, wrong):
    """Lost: the same."""
    texts = {name: json.loads((SAMPLES / name).read_text()) for name in ("ironic-nodes.json", "ironic-ports.json")}
    key = next(key for key in texts["ironic-ports.json"][0] if key.lower().replace(" ", "_") == "node_uuid")
    for name, path in (("ironic-ports.json", (0, key)), ("ironic-nodes.json", (0, "uuid"))):
        given = {**texts, name: spoilt(texts[name], path, wrong)} if path[1] in texts[name][0] else texts
        paths = [tmp_path / one for one in given]
        for one, text in zip(paths, given.values()):
            one.write_text(json.dumps(text))
        moved(tmp_path / "ironic", "ironic", *paths, replace=True)
    machines = json.loads((SAMPLES / "maas-machines.json").read_text())
    (tmp_path / "m.json").write_text(json.dumps(spoilt(machines, (0, "boot_interface"), {"links": wrong})))
    moved(tmp_path / "maas", "maas", tmp_path / "m.json")


def test_a_power_port_of_labgrid_without_host(tmp_path):
    """Lost: the word that it names none; a PDU of name `none` was asked for, or a traceback came."""
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({"jackie": {"NetworkPowerPort": {"model": "x", "index": 1}}}))
    result = moved(tmp_path / "site", "labgrid", tmp_path / "e.yaml")
    assert questions(result)["jackie", "pdu"].endswith("NetworkPowerPort: names no host)")


def test_an_answer_with_a_driver_of_another_type(tmp_path):
    """Lost: which line of answers.yml is wrong."""
    answers = {"proxy": PROXY, "pdus": {"pdu-a": {"driver": {"a": 1}, "host": "h"}}}
    result = moved(tmp_path / "site", "csv", "boards.csv", answers=answers)
    assert ("pdu-a", "driver") in questions(result)


@pytest.mark.parametrize(
    "text", ["'a' * 10**10", "10**(10**10)", "'a'|center(10**10)", "''.__class__", "[1] * 10**10", "'' ~ 2**10**9"]
)
def test_nothing_of_a_dictionary_is_computed(text):
    """Lost: the machine of who moves in, to a line that fills its memory."""
    assert variables(f"{{% set a = {text} %}}{{% set b = 'x' %}}", "d.jinja2") == {"b": "x"}


def test_plain_values_of_a_dictionary():
    """Lost: what a dictionary says in two parts."""
    text = "{% extends 'qemu' ~ '.jinja2' %}{% set a = 'x ' + 'y' %}{% set b = ['p', 1] %}{% set c = {'k': 'v'} %}"
    assert variables(text, "d.jinja2") == {"extends": "qemu.jinja2", "a": "x y", "b": ["p", 1], "c": {"k": "v"}}


def grows(*keys):
    """Lines of YAML of which each says the one before it ten times."""
    return "".join(f"    {key}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at, key in enumerate(keys, 1))


GROWS = grows("ip", "arch", "vcpus", "model", "disk", "id")
GROUP = "jackie:\n  NetworkPowerPort: {model: apc, host: h, index: 1}\n"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (f"boards:\n  jackie:\n    mac: &a0 [x]\n{GROWS}    features: [*a6, *a6]\n", "has more than 2000000 values"),
        ("boards:\n  jackie:\n    mac: &m {a: *m}\n", "one that holds itself, by its aliases"),
        ("boards:\n  jackie:\n    mac: !!int ''\n", "is not YAML: IndexError: correct it"),
        ("boards:\n  jackie:\n    mac: !!bool x\n", "is not YAML: KeyError: correct it"),
        ("boards:\n  jackie:\n    mac: !!timestamp x\n", "is not YAML: AttributeError: correct it"),
    ],
)
def test_yaml_that_grows_or_holds_itself_is_refused(tmp_path, answers, said):
    """Lost: the machine of who moves in, for hours, to a file of a kilobyte."""
    (tmp_path / "exporter.yaml").write_text(GROUP)
    (tmp_path / "answers.yml").write_text(answers)
    with pytest.raises(HeteroError, match=r"answers\.yml: ") as told:
        moved(tmp_path, "labgrid", tmp_path / "exporter.yaml", replace=True)
    assert said in str(told.value)


def test_what_is_said_once_for_many_is_read(tmp_path):
    """Lost: an exporter's configuration that says the same of many boards by an alias."""
    text = "jackie: &all\n  NetworkPowerPort: &port {model: apc, host: h, index: 1}\n"
    groups = "".join(f"b{at}:\n  <<: *all\n  NetworkPowerPort: {{<<: *port, index: {at}}}\n" for at in (2, 3))
    (tmp_path / "exporter.yaml").write_text(text + groups)
    result = moved(tmp_path / "site", "labgrid", tmp_path / "exporter.yaml", answers={"proxy": PROXY})
    assert {about for about, _key in questions(result)} >= {"jackie", "b2", "b3"}
