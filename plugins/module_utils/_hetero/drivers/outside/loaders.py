# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site's own boot driver needs of the servers that its boards ask, by plain values in its file: loaders that
they fetch by name, the file that DHCP names to their firmware, and further DHCP options.

nodes/proxy/outside_check.py makes of it what the role writes.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Mapping

from ...core.errors import BadInput
from ...core.printable import brief

#: The lines of a file that say so.
LOADERS, BOOT_FILE, DHCP_OPTIONS = "LOADERS", "BOOT_FILE", "DHCP_OPTIONS"
#: A loader's name, which lies in the TFTP root, and names that are the role's, a board's, or those of roots.
NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._+]{0,62}")
TAKEN = re.compile(
    r"boot\.ipxe|undionly\.kpxe|ipxe\.efi|boot\.scr\.uimg|tilera_boards|pdu_mgr"
    r"|(vmlinux|initrd)_.*|01-.*|fs_.*|(\d+\.){3}\d+"
)
#: Options of which an address, its lease and the exchange itself consist (RFC 2132), which dnsmasq answers by itself.
OWN_OPTIONS = {1, 3, 28, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 61, 82}
LARGEST = 254
#: A value as a configuration's quotes hold it (dnsmasq(8), dhcp-option).
VALUE = re.compile(r"[\x20-\x7e]{1,250}")
NO_VALUE = re.compile(r'["\\]')
#: What stands for a board's own facts in a value.
WORDS = ("server", "id", "name", "ip", "mac")
WORD = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class Loaders:
    """What a boot driver needs of the servers.

    :param files: {name by which boards fetch it: its path on the node}.
    :param boot_file: the name that DHCP gives to firmware that is no iPXE; "" for what other boards get.
    :param options: {number of a DHCP option: its value, with WORDS in braces}.
    """

    files: Mapping[str, str]
    boot_file: str
    options: Mapping[int, str]

    def options_of(self, facts: Mapping[str, Any]) -> list[str]:
        """Return the options of a board as dnsmasq takes them.

        :param facts: a value for each of WORDS.
        """
        return [
            f'{number},"{WORD.sub(lambda word: str(facts[word[1]]), value)}"'
            for number, value in sorted(self.options.items())
        ]


NONE = Loaders({}, "", {})


def declared(said: Mapping[str, Any], path: str) -> Loaders:
    """Return the Loaders of what a file says; raise BadInput, with the file, where that is none.

    :param said: {LOADERS, BOOT_FILE or DHCP_OPTIONS: its plain value, None where it is none}.
    """
    files, boot_file, options = said.get(LOADERS, {}), said.get(BOOT_FILE, ""), said.get(DHCP_OPTIONS, {})
    if not isinstance(files, dict):
        raise BadInput(f"its {LOADERS} are no mapping of plain texts", path, _example())
    for name, source in files.items():
        _must_be_loader(name, source, path)
    if not isinstance(boot_file, str) or (boot_file and not NAME.fullmatch(boot_file)):
        raise BadInput(f"its {BOOT_FILE} is no name of a file", path, f"name one of its {LOADERS}")
    if not isinstance(options, dict):
        raise BadInput(f"its {DHCP_OPTIONS} are no mapping", path, f'write {DHCP_OPTIONS} = {{209: "grub.cfg"}}')
    for number, value in options.items():
        _must_be_option(number, value, path)
    return Loaders(files, boot_file, options)


def _example() -> str:
    return f'write {LOADERS} = {{"grub.efi": "/usr/lib/grub/grub.efi"}}, names and absolute paths on the proxy node'


def _must_be_loader(name: object, source: object, path: str) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadInput(f"its {LOADERS} have {brief(repr(name))}, which is no name of a file", path, _example())
    if TAKEN.fullmatch(name):
        raise BadInput(f"its {LOADERS} have {name}, which is the proxy's own, or a board's", path, "name it otherwise")
    if not isinstance(source, str) or not os.path.isabs(source) or os.path.normpath(source) != source:
        raise BadInput(f"its {LOADERS} have no path for {name}", path, _example())


def _must_be_option(number: object, value: object, path: str) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= LARGEST:
        what = f"its {DHCP_OPTIONS} have {brief(repr(number))}, which is no option's number"
        raise BadInput(what, path, f"give one from 1 to {LARGEST}")
    if number in OWN_OPTIONS:
        what = f"its {DHCP_OPTIONS} have {number}, which the proxy's DHCP says by itself"
        raise BadInput(what, path, "take it out")
    if not isinstance(value, str) or not VALUE.fullmatch(value) or NO_VALUE.search(value):
        what = f"its {DHCP_OPTIONS} have no value for {number}"
        raise BadInput(what, path, "give a text of plain ASCII without quotes and backslashes")
    unknown = sorted(set(WORD.findall(value)) - set(WORDS))
    if unknown:
        known = ", ".join(f"{{{word}}}" for word in WORDS)
        what = f"its {DHCP_OPTIONS} have {{{unknown[0]}}} for {number}, which stands for nothing"
        raise BadInput(what, path, f"known are {known}")
