# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the first guide has an operator put on a controller. If these fail, a site is slower than the lab, or hangs."""

from __future__ import annotations

import re
from configparser import RawConfigParser

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT, guide, named

#: Of the repository's own ansible.cfg: where its lab and its copy of the collection lie, and what only the lab needs.
OF_THE_CLONE = {
    ("defaults", "inventory"),
    ("defaults", "collections_path"),
    ("defaults", "interpreter_python"),
    ("defaults", "retry_files_enabled"),
    ("defaults", "localhost_warning"),
    ("inventory", "inventory_unparsed_warning"),
}


def settings(text):
    """{(section, key): value}."""
    read = RawConfigParser()
    read.read_string(text)
    return {(section, key): value for section in read.sections() for key, value in read[section].items()}


def test_a_sites_settings_are_those_of_the_repository():
    own = settings((ROOT / "ansible.cfg").read_text())
    sites = settings(named(guide("first_board"), "ansible.cfg"))
    assert sites == {key: value for key, value in own.items() if key not in OF_THE_CLONE}


def test_a_controller_gets_what_the_collection_needs_there():
    """Lost: a lookup that ends for want of a library, in the middle of a request."""
    pip = re.search(r"^   pip install (.*)$", guide("first_board"), re.MULTILINE)[1]
    needed = re.findall(r"^([a-z-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert needed
    assert [name for name in needed if name not in re.findall(r"[a-z][a-z-]+", pip)] == []
