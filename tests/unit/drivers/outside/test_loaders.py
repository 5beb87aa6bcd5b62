# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site's own boot driver declares. If these fail, a wrong value in its file is found when no board boots, or a
file of the proxy's own is overwritten.
"""

from __future__ import annotations

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import BadInput
from ansible_collections.hetero.compute.plugins.module_utils._hetero.drivers.outside.loaders import NONE, declared

FACTS = dict(server="10.0.2.1", id=3, name="board3", ip="10.0.2.4", mac="00:1a:ca:00:00:03")


def refused(said, words):
    with pytest.raises(BadInput, match=rf"^grub\.py: its {words}"):
        declared(said, "grub.py")


def test_a_file_that_declares_nothing_needs_nothing():
    assert declared({}, "grub.py") == NONE
    assert NONE.options_of(FACTS) == []


def test_what_is_declared_as_the_servers_get_it():
    """Lost: the loader, or the board's own address in its configuration's name."""
    said = dict(
        LOADERS={"grub.efi": "/usr/lib/grub.efi"},
        BOOT_FILE="grub.efi",
        DHCP_OPTIONS={210: "/boot/", 209: "{name}-{id} {mac} {ip} {server}"},
    )
    found = declared(said, "grub.py")
    assert (found.files, found.boot_file) == ({"grub.efi": "/usr/lib/grub.efi"}, "grub.efi")
    assert found.options_of(FACTS) == ['209,"board3-3 00:1a:ca:00:00:03 10.0.2.4 10.0.2.1"', '210,"/boot/"']


@pytest.mark.parametrize(
    "name",
    ["undionly.kpxe", "ipxe.efi", "tilera_boards", "pdu_mgr", "vmlinux_3", "initrd_x", "01-aa", "fs_1", "10.0.2.4"],
)
def test_a_name_that_is_the_proxys_own_is_refused(name):
    """Lost: another board's kernel, or the boards file, to a loader of that name."""
    refused({"LOADERS": {name: "/usr/lib/grub.efi"}}, f"LOADERS have {name}, which is the proxy's own")


@pytest.mark.parametrize("name", ["../grub.efi", "a/b", ".hidden", "", "a" * 64, 7])
def test_what_is_no_name_of_a_file_is_refused(name):
    """Lost: a file outside the folder that TFTP serves."""
    refused({"LOADERS": {name: "/usr/lib/grub.efi"}}, "LOADERS have .* which is no name of a file")


@pytest.mark.parametrize("path", ["grub.efi", "/usr/../etc/shadow", "/usr//lib", "", None])
def test_what_is_no_path_is_refused(path):
    """Lost: a secret of the node, served to who asks."""
    refused({"LOADERS": {"grub.efi": path}}, r"LOADERS have no path for grub\.efi")


@pytest.mark.parametrize(
    ("number", "value", "words"),
    [
        (0, "a", "0, which is no option's number"),
        (255, "a", "255, which is no option's number"),
        (True, "a", "True, which is no option's number"),
        (51, "a", "51, which the proxy's DHCP says by itself"),
        (209, 'a"b', "no value for 209"),
        (209, "a\\b", "no value for 209"),
        (209, "a\nb", "no value for 209"),
        (209, "", "no value for 209"),
        (209, 7, "no value for 209"),
        (209, "{host}", r"{host} for 209, which stands for nothing: known are {server}, {id}, {name}, {ip}, {mac}"),
    ],
)
def test_an_option_that_dnsmasq_would_not_take_is_refused(number, value, words):
    """Lost: DHCP of all boards, to one line that ends dnsmasq, or a second line hidden in a value."""
    refused({"DHCP_OPTIONS": {number: value}}, f"DHCP_OPTIONS have {words}")


@pytest.mark.parametrize("key", ["LOADERS", "DHCP_OPTIONS"])
def test_what_is_no_plain_mapping_is_refused(key):
    """Lost: a traceback instead of the line to write."""
    refused({key: None}, f"{key} are no mapping")
    refused({"BOOT_FILE": "a/b"}, "BOOT_FILE is no name of a file")
