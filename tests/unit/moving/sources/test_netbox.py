# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a NetBox that answers over real HTTP. If these fail, half a site is taken for the whole, or its token goes
to another server.

Tests moving/move_in.py.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput, HeteroError
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.documents import Asked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.move_in import move_in
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources import netbox as source
from ansible_collections.hetero.compute.plugins.modules.site_files import asker
from ansible_collections.hetero.compute.tests.unit.moving.moves import PROXY, files, questions, wiring
from ansible_collections.hetero.compute.tests.unit.moving.netboxes import (
    KNOWN,
    TOKEN,
    device,
    interface,
    netbox,
    port,
    rack,
)

WAYS = dict(validate_certs=True, ca_path=None, timeout=10)


def asked_of(url, token=TOKEN):
    return Asked(url=f"{url}/dcim/devices/?role=board&per_page=50", token=token, get=asker(WAYS))


def test_devices_cables_and_what_is_not_there(tmp_path):
    (tmp_path / "answers.yml").write_text(json.dumps({"proxy": PROXY}))
    with netbox(rack(), most=2) as (url, _asked):
        params = dict(source="netbox", src=[], url=f"{url}/dcim/devices/", folder=str(tmp_path), replace=False)
        result = move_in(params, asked_of(url), False)
    asked = questions(result)
    assert result["boards"] == [{"id": 0, "name": "jackie"}], "a BMC's MAC counts for nothing"
    assert "eth0 02:00:00:00:04:02, eth1 02:00:00:00:04:03" in asked["bob", "mac"]
    assert "'left'" in asked["bob", "outlet"]
    assert "1 of pdu-a, 2 of pdu-a" in asked["device-3", "pdu"]
    assert "APC AP7921" in asked["pdu-a", "driver"]
    assert ("pdu-a", "host") not in asked
    assert TOKEN not in str(files(tmp_path)) + str(result)
    answers = {"proxy": PROXY, "pdus": {"pdu-a": {"driver": "apc"}}, "boards": {"device-3": {"skip": True}}}
    (tmp_path / "answers.yml").write_text(json.dumps(answers))
    with netbox(rack()) as (url, _asked):
        move_in(dict(params, url=url, replace=True), asked_of(url), False)
    said = wiring(tmp_path)
    assert said["tftp_proxy_pdus"] == {"pdu-a": {"host": "10.0.100.1", "driver": "apc"}}
    assert said["tftp_proxy_boards"] == {0: {"pdu": "pdu-a", "outlet": 8}}


def many():
    return {
        "dcim/devices": [device(number, f"n{number}", f"10.0.3.{number}", **KNOWN) for number in range(1, 8)],
        "dcim/interfaces": [interface(100 + n, n, "eth0", f"02:00:00:00:06:{n:02x}") for n in range(1, 8)],
        "dcim/power-ports": [],
    }


def test_all_pages_are_read_from_this_server_only():
    """`next` of each page names another address, where nobody answers."""
    with netbox(many(), most=3) as (url, asked):
        site = source.read(asked_of(url))
    assert [board.name for board in site.boards] == [f"n{number}" for number in range(1, 8)]
    assert {board.said["mac"] for board in site.boards} == {f"02:00:00:00:06:{n:02x}" for n in range(1, 8)}
    assert {token for _path, token in asked} == {f"Token {TOKEN}"}
    assert "role=board" in asked[0][0]
    assert "per_page" not in asked[0][0]


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (dict(cut=200), "is not JSON, or cut off"),
        (dict(most=3, lost=2), "told of 7 objects, and gave 5"),
        (dict(redirects="http://127.0.0.1:1/"), "answers 302"),
    ],
)
def test_what_is_not_whole_is_no_site(faults, words):
    with netbox(many(), **faults) as (url, _asked), pytest.raises(HeteroError, match=words):
        source.read(asked_of(url))


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_wrong_token_is_said(token):
    with netbox(many()) as (url, _asked), pytest.raises(HeteroError) as said:
        source.read(asked_of(url, token))
    assert "refuses the token (403)" in str(said.value)
    assert "NETBOX_TOKEN" in str(said.value)


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(HeteroError, match="does not answer as a whole"):
        source.read(asked_of("http://127.0.0.1:1"))


def test_older_releases_name_one_outlet_otherwise():
    older = {"connected_endpoint_type": "dcim.poweroutlet", "connected_endpoint": {"name": "3", "device": {"id": 1}}}
    assert source.outlets(older) == [{"name": "3", "device": {"id": 1}}]
    feed = {"connected_endpoints_type": "dcim.powerfeed", "connected_endpoints": [{"name": "feed"}]}
    assert source.outlets(feed) == []


def test_a_mac_of_its_own_object():
    """NetBox 4.2 and later have MACs as objects, of which an interface has a primary one."""
    one = dict(interface(1, 1, "eth0", None), primary_mac_address={"mac_address": "02:00:00:00:07:01"})
    site = source.site_of([device(1, "jackie", "10.0.2.2")], [one], [], [], "netbox")
    assert site.boards[0].said["mac"] == "02:00:00:00:07:01"


@pytest.mark.parametrize(
    ("url", "base", "filters"),
    [
        ("https://n.example.org", "https://n.example.org", []),
        ("https://n.example.org/dcim/devices/?site=lab&page=2", "https://n.example.org", [("site", "lab")]),
        ("https://n.example.org/netbox/api/dcim/devices/", "https://n.example.org/netbox", []),
        ("http://n.example.org:8000/api", "http://n.example.org:8000", []),
    ],
)
def test_addresses_as_people_have_them(url, base, filters):
    assert source.place(url) == (base, filters)


def test_an_address_with_a_password_is_refused():
    with pytest.raises(BadInput) as said:
        source.place("https://jo:geheim@n.example.org/")
    assert "geheim" not in str(said.value)


def test_new_tokens_have_another_scheme():
    seen = []

    def get(_url, headers):
        seen.append(headers["Authorization"])
        return '{"count": 0, "next": null, "results": []}'

    for token in ("abc", "nbt_abc.def"):
        source.Server("http://n", token, get).all("dcim/devices", [])
    assert seen == ["Token abc", "Bearer nbt_abc.def"]


def test_the_module_shows_no_token(tmp_path):
    """As Ansible calls it, with all that it says."""
    with netbox(many()) as (url, _asked):
        given = dict(source="netbox", url=url, token=TOKEN, folder=str(tmp_path / "site"), _ansible_diff=True)
        done = subprocess.run(
            [sys.executable, "-m", "ansible_collections.hetero.compute.plugins.modules.site_files"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": given}), capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    result = json.loads(done.stdout)
    assert result["changed"], done.stdout + done.stderr
    assert len(result["boards"]) == 7
    assert TOKEN not in done.stdout + done.stderr
    assert result["invocation"]["module_args"]["token"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"


def test_two_pdus_of_one_name_are_two():
    """NetBox has a name once in each site; boards of one would be switched by the other's outlets."""
    devices = [device(1, "a", "10.0.2.1"), device(2, "b", "10.0.2.2")]
    ports = [port(1, 1, (8, "pdu-a", "1")), port(2, 2, (9, "pdu-a", "1"))]
    pdus = [device(8, "pdu-a", "10.0.100.1"), device(9, "pdu-a", "10.0.101.1")]
    site = source.site_of(devices, [], ports, pdus, "netbox")
    assert [board.said["pdu"] for board in site.boards] == ["pdu-a-8", "pdu-a-9"]
    assert {name: pdu.said["host"] for name, pdu in site.pdus.items()} == {
        "pdu-a-8": "10.0.100.1",
        "pdu-a-9": "10.0.101.1",
    }


def test_a_site_of_thousands_is_looked_through_once(monkeypatch):
    """Lost: an hour, to who has ten thousand devices in NetBox: each looked at all interfaces and power ports."""
    looks, told = [], source.told
    monkeypatch.setattr(source, "told", lambda *words: looks.append(1) or told(*words))
    numbers = range(1, 301)
    devices = [device(number, f"b{number}", None) for number in numbers]
    macs = [f"02:00:00:00:{number // 256:02x}:{number % 256:02x}" for number in numbers]
    interfaces = [interface(1000 + number, number, "eth0", mac) for number, mac in zip(numbers, macs)]
    ports = [port(2000 + number, number, (9000, "pdu-a", str(number))) for number in numbers]
    site = source.site_of(devices, interfaces, ports, [device(9000, "pdu-a", None)], "netbox")
    assert [board.said["outlet"] for board in site.boards] == [str(number) for number in numbers]
    assert len({board.said["mac"] for board in site.boards}) == len(numbers)
    assert len(looks) < 30 * len(numbers)
