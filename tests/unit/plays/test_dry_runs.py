# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs with --check --diff: they say all that the real run would do, to the end, and do none of it. If these fail, a
user who looks before he leaps is told of a failure that there is not, or of something else than what comes.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.boards.records.store import Store
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images.store import ImageStore
from ansible_collections.hetero.compute.tests.unit.images.packing import image_tar
from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR, changed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")
DRY = ("--check", "--diff")


def told(output):
    """{a thing that the diffs are about: its lines that differ}, with the times of claims left out."""
    found = {}
    for part in output.split("\n--- before: ")[1:]:
        thing, _newline, rest = part.partition("\n")
        lines = rest.split("\n\n")[0].splitlines()[1:]
        found.setdefault(thing, []).append([line.strip().rstrip(",") for line in lines if line[:1] in "+-"])
    return found


def test_what_a_dry_run_tells_is_what_the_real_run_does(proxies):
    """Before, it failed for what its own earlier step would have done, or was silent about all that came after."""
    folders, plays = proxies
    store = ImageStore(str(folders["p1"].folder / "var" / "lib" / "hetero" / "images"))
    store.import_image(image_tar(folders["p1"].folder / "other.tar", kernel="another"), "debian-13")

    def look():
        with Store(folders["p1"].state_db, create=False) as store:
            pdu = (folders["p1"].folder / "etc" / "hetero" / "pdu.json").read_text()
            return store.record(0), json.loads(pdu)["outlets"]["1"]

    def dry_then_real(playbook, **extra):
        before = look() if os.path.exists(folders["p1"].state_db) else None
        rc, output = plays.play(playbook, *DRY, instance="jackie", **extra)
        assert rc == 0, output
        assert before is None or look() == before
        rc, real = plays.play(playbook, "--diff", instance="jackie", **extra)
        assert rc == 0, real
        assert changed(output) == changed(real), (output, real)
        return told(output), told(real), output

    dry, real, output = dry_then_real("provision_instance", flavor=FLAVOR, hours="3")
    assert list(dry) == list(real)
    assert [len(diffs) for diffs in dry.values()] == [len(diffs) for diffs in real.values()]
    assert "expires" in str(dry["jackie"][0])
    assert '+    "size": "500 GiB"' in output
    assert any("reboot" in line and "made then" in line for line in dry["board0 reboot by ssh"][0])
    assert look()[1] == "on"

    dry, real, output = dry_then_real("rebuild_instance", image="debian-13")
    assert {thing: len(diffs) for thing, diffs in dry.items()} == {thing: len(diffs) for thing, diffs in real.items()}
    assert dry["board0"] == real["board0"]  # off, and on again
    assert re.search(r"pdu-a outlet 1 is on: on → off\n", output)
    assert re.search(r"pdu-a outlet 1 is off: off → on\n", output)

    dry, real, output = dry_then_real("terminate_instance")
    # the boot entry goes with the power, and is there still in a dry run
    entry = [line for line in dry["board0 files"][0] if ".ipxe" in line]
    assert [line for line in dry["board0 files"][0] if line not in entry] == real["board0 files"][0]
    assert {**dry, "board0 files": None} == {**real, "board0 files": None}
    assert "export, root and files would be removed, once it is off" in output


@pytest.mark.parametrize(("count", "code"), [(3, 0), (5, 2)])
def test_a_dry_run_of_several_nodes_claims_nothing(proxies, count, code):
    """Lost: a board of each node, to a look; or why there is no room, which the real run says."""
    folders, plays = proxies
    rc, output = plays.play("provision_instance", *DRY, instance="lab", flavor=FLAVOR, count=count, wait=5)
    assert rc == code, output
    assert ("lab wants 5 " in output) == (count == 5)
    for proxy in folders.values():
        if os.path.exists(proxy.state_db):
            with Store(proxy.state_db, create=False) as store:
                assert store.claims() == []
