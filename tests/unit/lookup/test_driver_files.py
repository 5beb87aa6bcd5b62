# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own drivers on the controller, as a node gets them."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader

from ansible_collections.hetero.compute.plugins.lookup.driver_files import LookupModule
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named


class Lookup(LookupModule):
    """With options as they are given, for only a play knows where those of a collection are described."""

    def set_options(self, var_options=None, direct=None):
        self.given = direct

    def get_option(self, option):
        return self.given.get(option, False)


@pytest.fixture
def site(tmp_path):
    """An inventory's folder with the guides' files where the guides say."""
    (tmp_path / "files").mkdir()
    for page, block, name in (
        ("power_driver", "power-driver", "http_relay.py"),
        ("power_driver", "power-table", "acme_pdu.yml"),
        ("boot_driver", "boot-driver", "sd_card.py"),
    ):
        (tmp_path / "files" / name).write_text(named(guide(page), block))
    return tmp_path


def looked_up(site, drivers, **options):
    return Lookup(loader=DataLoader()).run([drivers], {"inventory_dir": str(site)}, **options)


def test_files_are_found_beside_the_inventory_as_the_guides_name_them(site):
    """Lost: a set-up by the pages; or a table, on a node that reads no YAML."""
    power = yaml.safe_load(named(guide("power_driver"), "own-power-driver"))["tftp_proxy_power_drivers"]
    (boot,) = yaml.safe_load(named(guide("boot_driver"), "own-boot-driver")).values()
    drivers = {"power_drivers": {**power, "acme_pdu": "files/acme_pdu.yml"}, "boot_drivers": boot}
    found = {one["path"]: one["text"] for one in looked_up(site, drivers)}
    assert sorted(found) == ["boot_drivers/sd_card.py", "power_drivers/acme_pdu.json", "power_drivers/http_relay.py"]
    assert found["boot_drivers/sd_card.py"] == (site / "files" / "sd_card.py").read_text()
    table = json.loads(found["power_drivers/acme_pdu.json"])
    assert (table["power_api"], sorted(table["snmp_table"])) == (1, ["is_off", "is_on", "off", "on", "state"])
    assert looked_up(site, drivers, mistakes=True) == []


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("none.py", None, "there is no such file on the controller"),
        ("odd.yml", b"a: [1\n", "is no table in YAML: while parsing"),
        ("dates.yml", b"a: 2020-01-01\n", "is no table in YAML: Object of type date"),
        ("latin.py", b"# M\xfcller\n", "is not UTF-8"),
    ],
)
def test_what_is_wrong_is_returned_beside_the_files(site, name, data, what):
    """Lost: all other mistakes of a set-up, to a traceback of the first one."""
    if data is not None:
        (site / "files" / name).write_bytes(data)
    drivers = {"power_drivers": {"acme": f"files/{name}", "http_relay": "files/http_relay.py"}}
    assert [one["path"] for one in looked_up(site, drivers)] == ["power_drivers/http_relay.py"]
    (mistake,) = looked_up(site, drivers, mistakes=True)
    assert mistake["thing"] == f"tftp_proxy_power_drivers, files/{name}"
    assert mistake["what"].startswith(what), mistake
