# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""hetero_ssh_folder with the playbooks of users: looked at before anything is claimed, and left without files of
instances that are over. If these fail, a board boots for a play that then fails, or ssh -F leads to the next tenant.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.hetero.compute.tests.unit.plays.proxies import FLAVOR

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a root of one's own needs root: run as root")


def test_a_folder_that_is_none_is_said_before_anything_is_claimed(proxies, tmp_path):
    """Lost: minutes of a boot, and the board, to a play that then fails at a file. A dry run says it as well."""
    made, plays = proxies
    (tmp_path / "file").write_text("")
    why = f"hetero_ssh_folder is {tmp_path}/file, and {tmp_path}/file is no folder: move it away, or set another"
    for flags, count in (((), 1), (("--check",), 3)):
        rc, output = plays.play(
            "provision_instance", *flags, instance="jackie", flavor=FLAVOR, count=count, hetero_ssh_folder="file"
        )
        assert rc != 0
        assert why.replace(f"is {tmp_path}/file, and", "is file, and") in " ".join(output.split()), output
        assert not any(os.path.exists(proxy.state_db) for proxy in made.values())
    for verb in ("start_instance", "reboot_instance", "rebuild_instance", "terminate_instance"):
        rc, output = plays.play(verb, instance="jackie", hetero_ssh_folder=f"{tmp_path}/file")
        assert rc != 0
        assert why in " ".join(output.split()), output
        assert not any(os.path.exists(proxy.state_db) for proxy in made.values())


@pytest.mark.parametrize("empty", ["", "null"])
def test_an_empty_folder_is_none(proxies, tmp_path, empty):
    """Lost: an instance that runs, to a play that failed at a file without a name."""
    _made, plays = proxies
    none = ("-e", '{"hetero_ssh_folder": %s}' % (empty or '""'))
    rc, output = plays.play("provision_instance", *none, instance="jackie", flavor=FLAVOR)
    assert rc == 0, output
    assert "jackie is running on board0: ssh root@10.0." in output
    rc, output = plays.play("terminate_instance", *none, instance="jackie")
    assert rc == 0, output
    assert not {"jackie", "None"} & set(os.listdir(tmp_path))


def test_the_file_of_an_instance_that_is_over_is_removed_by_the_next_end(proxies, tmp_path):
    """Lost: whose board it is. Its terminate was cut off after the release, so that only its file was left, which leads
    to whoever has that address next."""
    _made, plays = proxies
    rc, output = plays.play("provision_instance", instance="jackie", flavor=FLAVOR, hetero_ssh_folder="keys")
    assert rc == 0, output
    rc, output = plays.play("terminate_instance", instance="jackie")
    assert rc == 0, output
    assert os.listdir(tmp_path / "keys") == ["jackie"]
    rc, output = plays.play("terminate_instance", instance="jackie", hetero_ssh_folder="keys")
    assert rc == 0, output
    assert os.listdir(tmp_path / "keys") == []
