# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guides have people write, taken by the code that reads it. If these fail, who copies it gets an error."""

from __future__ import annotations

import re

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.boot.registry import default_driver
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.power.registry import DRIVERS
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import preflight
from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy.setup_plan import Plan
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.boards_file import parse
from ansible_collections.hetero.compute.plugins.plugin_utils.filters.flavors import flavors
from ansible_collections.hetero.compute.tests.unit.documents.pages import GUIDES, ROOT, blocks, guide, named


def variables_of(text):
    """Every mapping in the YAML blocks of a page, at any depth."""

    def inside(value):
        if isinstance(value, dict):
            yield value
        for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from inside(one)

    for language, _options, content in blocks(text):
        if language == "yaml":
            yield from inside(yaml.safe_load(content))


def test_the_first_boards_files_are_taken():
    """The file of the boards, the inventory and the wiring of the first page that an operator follows."""
    inventory = yaml.safe_load(named(guide("first_board"), "inventory"))
    host = inventory["proxies"]["hosts"]["proxy1"]
    boards = parse(named(guide("first_board"), "boards"), source="files/boards")
    assert [(board.id, board.ip, board.arch) for board in boards] == [
        (0, "10.0.2.1", "TILEPro64"),
        (1, "10.0.2.2", "x86_64"),
    ]
    found = Findings()
    wiring = {str(number): wire for number, wire in host["tftp_proxy_boards"].items()}
    plan = Plan(server=host["tftp_proxy_server"], pdus=host["tftp_proxy_pdus"], wiring=wiring)
    plan.credentials_for = list(host["tftp_proxy_pdu_credentials"])
    preflight.wiring(plan, boards, found)
    assert (found.defects, found.notes) == ([], [])
    assert {pdu["driver"] for pdu in host["tftp_proxy_pdus"].values()} <= set(DRIVERS)


def test_the_short_line_and_its_flavor_fit():
    """Who has an x86 board and copies both gets it."""
    _tilera, board = parse(named(guide("first_board"), "boards"), source="files/boards")
    own = yaml.safe_load(named(guide("first_board"), "inventory"))["all"]["vars"]["hetero_extra_instance_types"]
    (flavor,) = flavors({}, own).values()
    assert (flavor["cpu_arch"], default_driver(board)) == (board.arch, "pxe")
    for key in ("memory_mb", "vcpus", "local_gb"):
        assert flavor[key] <= getattr(board, key), key


def test_the_first_boards_image_is_the_one_that_is_built():
    """Lost: the first request of whoever follows the page, refused with `no such image in the store`."""
    page, role = guide("first_board"), ROOT / "roles" / "debian_image" / "defaults" / "main.yml"
    given = yaml.safe_load(role.read_text())
    name = f"{given['debian_image_release']}-{given['debian_image_architecture']}"
    said = yaml.safe_load(named(page, "images"))
    images = {image["name"]: image["src"] for image in said["tftp_proxy_images"]}
    for built in (name, f"{name}-ram"):
        assert images[built] == f"/srv/images/{built}.tar"
    assert said["tftp_proxy_ram_images"] == {"x86_64": f"{name}-ram"}
    assert yaml.safe_load(named(page, "inventory"))["all"]["vars"]["hetero_default_image"] == name
    typed = [line for language, _options, text in blocks(page) if language == "shell" for line in text.splitlines()]
    requests = [line for line in typed if "hetero.compute.provision_instance" in line]
    assert "-e image=" not in requests[0], "the first one takes the default"
    assert {found for line in requests for found in re.findall(r"-e image=(\S+)", line)} <= set(images)


def test_slurms_image_is_imported_from_where_it_was_built():
    """Lost: the second line of whoever types the page, refused with `no such file or folder on node proxy1`."""
    (typed,) = (text for language, _options, text in blocks(guide("slurm")) if "hetero.compute.build_image" in text)
    folder, name = (re.search(rf"debian_image_{word}=(\S+)", typed) for word in ("folder", "name"))
    assert None not in (folder, name), typed
    assert f"mkdir -p {folder[1]}\n" in typed
    assert f"-e image={name[1]} -e src={folder[1]}/{name[1]}.tar\n" in typed


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_variables_are_what_their_roles_take(path):
    """A variable that is no more, or a list where a word is wanted."""
    for role in (folder.name for folder in (ROOT / "roles").iterdir()):
        spec = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
        options = {
            name: dict(option, required=False) for name, option in spec["argument_specs"]["main"]["options"].items()
        }
        for mapping in variables_of(path.read_text()):
            given = {name: value for name, value in mapping.items() if str(name).startswith(f"{role}_")}
            checked = ArgumentSpecValidator(options).validate(given)
            assert checked.error_messages == [], given


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_flavors_are_flavors(path):
    for mapping in variables_of(path.read_text()):
        own = mapping.get("hetero_extra_instance_types", {})
        assert set(flavors({}, own)) == set(own)


def test_each_console_by_conserver_is_one_of_its_configuration():
    """Lost: a console, to who copies both: its log is never there, or nothing answers to its name."""
    page = guide("first_board")
    names = re.findall(r"^console (\w+) \{ include board;", named(page, "conserver"), re.MULTILINE)
    folder = re.search(r"logfile (\S+)/&\.log;", named(page, "conserver"))[1]
    wires = [one for one in variables_of(page) if str(one.get("console_command")).startswith("console ")]
    assert len(wires) == 2
    for wire in wires:
        name = wire["console_command"].split()[-1]
        assert (name in names, wire["console"]) == (True, f"{folder}/{name}.log")
