# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide for sites that come from elsewhere: each of its examples, in a file, read by the command below it.

If these fail, the page shows what the playbook does not say.

Tests moving/sources/labgrid.py, moving/sources/registry.py.
"""

from __future__ import annotations

import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.documents import Asked
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.move_in import move_in
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources.labgrid import MODELS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources.netbox import CUSTOM
from ansible_collections.hetero.compute.plugins.module_utils._hetero.moving.sources.registry import SOURCES
from ansible_collections.hetero.compute.plugins.modules.site_files import asker
from ansible_collections.hetero.compute.tests.unit.documents.pages import guide, named
from ansible_collections.hetero.compute.tests.unit.moving.netboxes import KNOWN, TOKEN, device, interface, netbox, port

GUIDE = guide("moving_in")
#: Source → {file: the block that it holds}.
FILES = {
    "csv": {"boards.csv": "csv"},
    "ironic": {"nodes.json": "ironic-nodes", "ports.json": "ironic-ports"},
    "labgrid": {"exporter.yaml": "labgrid"},
    "lava": {"devices/jackie.jinja2": "lava"},
    "maas": {"machines.json": "maas-machines", "power.json": "maas-power"},
}


def said(folder, block, url=None):
    """The lines that a command of the page says, in a folder."""
    words = dict(re.findall(r"-e '?(\w+)=([^\s']+)", named(GUIDE, block)))
    paths = [str(folder / name) for name in words.get("src", "").split(",") if name]
    url = url or words.get("url", "")
    ways = dict(validate_certs=True, ca_path=None, timeout=10)
    params = dict(source=words["source"], src=paths, url=url, folder=str(folder), replace="replace" in words)
    result = move_in(params, Asked(paths, url, TOKEN, asker(ways)), False)
    return [line.replace(str(folder), "…") for line in result["lines"]]


def shown(block):
    return named(GUIDE, block).splitlines()


@pytest.mark.parametrize("source", FILES)
def test_each_example_says_what_the_page_shows(tmp_path, source):
    for path, block in FILES[source].items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(named(GUIDE, block))
    assert said(tmp_path, f"{source}-command") == shown(f"{source}-says")
    written = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.name == "answers.yml")
    assert "SECRET" not in written
    assert "null" in written


def test_the_answers_complete_the_table(tmp_path):
    (tmp_path / "boards.csv").write_text(named(GUIDE, "csv"))
    said(tmp_path, "csv-command")
    (tmp_path / "answers.yml").write_text(named(GUIDE, "answers"))
    assert said(tmp_path, "csv-again") == shown("csv-again-says")
    assert (tmp_path / "host_vars" / "proxy1.yml").exists()
    assert (tmp_path / "inventory.yml").exists()


def test_netboxs_example(tmp_path):
    lists = {
        "dcim/devices": [device(1, "jackie", "10.0.2.2", **KNOWN), device(9, "pdu-a", "10.0.100.1", "APC", "AP7921")],
        "dcim/interfaces": [interface(11, 1, "eth0", "02:00:00:00:04:01")],
        "dcim/power-ports": [port(21, 1, (9, "pdu-a", "Outlet 8"))],
    }
    with netbox(lists) as (url, asked):
        lines = said(tmp_path, "netbox-command", f"{url}/dcim/devices/?site=lab&role=board")
    assert lines.pop() == f"- {url}: the token went there unencrypted"
    assert [line.replace(url, "NetBox") for line in lines] == shown("netbox-says")
    assert "site=lab&role=board" in asked[0][0]


def test_the_page_names_all_sources_and_words():
    """Lost: a source, a model or a field, to who reads that there is none."""
    assert set(FILES) | {"netbox"} == set(SOURCES)
    text = " ".join(GUIDE.split())
    for word in [*MODELS, *(key for key in CUSTOM if key not in ("vendor", "model"))]:
        assert f"``{word}``" in text, word
