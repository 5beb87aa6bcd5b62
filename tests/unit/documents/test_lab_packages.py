# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles install is in the images of the lab's nodes, which have no mirror. If these fail, no lab comes up, and the
scenario that tells so runs in `make test-all` only.
"""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT

IMAGES = ROOT / "roles" / "lab" / "files" / "images"
#: Packages of priority required or important that each of these images has, or that others of it depend on.
ALWAYS = {"dbus", "e2fsprogs", "openssh-client", "openssl"}
#: Role → the variable with its packages.
VARIABLES = {"gpu_lxc": "_gpu_lxc_packages", "kvm_guests": "_kvm_guests_packages"}
VARIABLES["tftp_proxy"] = "_tftp_proxy_own_packages"


def packages(role):
    return set(yaml.safe_load((ROOT / "roles" / role / "vars" / "main.yml").read_text())[VARIABLES[role]])


@pytest.mark.parametrize(
    ("role", "script"), [("kvm_guests", "kvm-host.sh"), ("gpu_lxc", "node.sh"), ("tftp_proxy", "node.sh")]
)
def test_a_node_of_the_lab_has_what_its_role_installs(role, script):
    words = set(re.split(r"[\s,=\"]+", (IMAGES / script).read_text()))
    if script == "node.sh":
        defaults = (ROOT / "roles" / "lab" / "defaults" / "main.yml").read_text()
        words.update(yaml.safe_load(defaults)["lab_node_packages"])
    assert packages(role) - words - ALWAYS == set()


def test_a_node_of_the_lab_has_what_some_sites_need():
    """Lost: a try in the lab of a power driver, of consoles by conserver or of boot files by HTTP: no such package."""
    said = yaml.safe_load((ROOT / "roles" / "tftp_proxy" / "vars" / "main.yml").read_text())
    lists = re.findall(r"\(\[([^]]+)\] if ", said["_tftp_proxy_packages"])
    some = {word for words in lists for word in re.findall(r"'([a-z0-9-]+)'", words)}
    some.update(said["_tftp_proxy_driver_packages"].values())
    assert {"conserver-server", "nginx-light", "ipmitool", "python3-sushy"} <= some
    defaults = yaml.safe_load((ROOT / "roles" / "lab" / "defaults" / "main.yml").read_text())
    assert some - set(defaults["lab_node_packages"]) - ALWAYS == set()
