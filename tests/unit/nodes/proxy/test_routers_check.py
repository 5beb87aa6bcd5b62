# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""If these fail, a set-up ends a node's IPv6 without a word, or leaves it to whoever called itself a router before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

#: In a namespace with two links; what is noted with routers kept out, and heard.
LOOKS = """
    import json, subprocess
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.findings import Findings
    from ansible_collections.hetero.compute.plugins.module_utils._hetero.nodes.proxy import routers_check
    links = ["link set lo up", "link add leg0 type veth peer name leg1"]
    for words in [*links, "link set leg0 up", "link set leg1 up", *{routes!r}]:
        subprocess.run(["ip", *words.split()], check=True)
    said = []
    for heard in (False, True):
        found = Findings()
        routers_check.learned("leg0", heard, found)
        said.append([str(note) for note in found.notes])
    print(json.dumps(said))
"""


def said(*routes):
    argv = ["unshare", "--net", sys.executable, "-c", textwrap.dedent(LOOKS.format(routes=routes))]
    return json.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout)


def test_a_way_that_somebody_told_of_is_named():
    (note,), heard = said("-6 route add default via fe80::bad dev leg0 proto ra")
    assert note.startswith("leg0: its IPv6 default route goes to fe80::bad, because that machine said it is a router")
    assert "ip -6 route del default via fe80::bad dev leg0 proto ra" in note
    assert "tftp_proxy_boards_interface_ra: true" in note
    assert heard == []


def test_each_of_several_is_named():
    routes = [f"-6 route append default via fe80::{end} dev leg0 proto ra" for end in ("bad", "900d")]
    notes, _heard = said(*routes)
    assert ["fe80::bad" in text for text in notes] == [True, False], notes
    assert ["fe80::900d" in text for text in notes] == [False, True], notes


@pytest.mark.parametrize(
    "routes",
    [
        [],
        ["-6 route add default via fe80::1 dev leg0 proto static"],
        ["-6 route add default via fe80::1 dev leg1 proto ra"],
    ],
)
def test_what_is_no_boards_word_is_not_named(routes):
    assert said(*routes) == [[], []]
