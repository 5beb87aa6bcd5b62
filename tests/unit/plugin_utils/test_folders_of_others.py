# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lost without: the controller's account, to any other of that machine that can put a folder of its own in the place of
one for `ssh -F`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from posix_acl import let_write

from ansible_collections.hetero.compute.plugins.plugin_utils import folders_of_others
from ansible_collections.hetero.compute.plugins.plugin_utils.folders_of_others import of_others

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="folders of other users need root: run as root")
ANOTHER = 1234


@pytest.fixture(autouse=True)
def nobody_called_sudo(monkeypatch):
    monkeypatch.delenv("SUDO_UID", raising=False)


@pytest.fixture
def keys(tmp_path):
    """A folder in a folder."""
    (tmp_path / "above" / "keys").mkdir(parents=True)
    return tmp_path / "above" / "keys"


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize(
    ("mode", "owner", "why"),
    [
        (0o755, 0, ""),
        (0o777, 0, "in which everybody may write"),
        (0o1777, 0, ""),
        (0o755, ANOTHER, f"which belongs to another user ({ANOTHER})"),
        (0o1755, ANOTHER, f"which belongs to another user ({ANOTHER})"),
    ],
)
def test_what_is_above_counts(keys, mode, owner, why, made):
    keys.parent.chmod(mode)
    os.chown(keys.parent, owner, -1)
    if not made:
        keys.rmdir()
    assert of_others(str(keys)) == (f"below {keys.parent}, {why}" if why else "")


@pytest.mark.parametrize("place", ["keys", "above"])
def test_an_acl_that_lets_another_write(keys, place):
    """The bits of such a folder are those of a group of one's own."""
    folder = keys if place == "keys" else keys.parent
    before = "" if place == "keys" else f"below {folder}, "
    let_write(folder, ANOTHER)
    assert of_others(str(keys)) == f"{before}in which its ACL lets others write (remedy: setfacl -b {folder})"
    folder.chmod(0o750)
    assert of_others(str(keys)) == "", "its mask allows nobody to write"


@pytest.mark.parametrize("chain", [False, True])
def test_a_link_of_another_on_the_way(tmp_path, keys, chain):
    """To our folder when it is looked at, and elsewhere since; also one that a link of ours leads to."""
    link = tmp_path / "link"
    link.symlink_to(keys.parent)
    way = link
    if chain:
        way = tmp_path / "first"
        way.symlink_to(link)
    assert of_others(str(way / "keys")) == ""
    os.lchown(link, ANOTHER, -1)
    assert of_others(str(way / "keys")) == f"below {link}, to which a link of another user leads ({ANOTHER})"


def test_a_link_in_a_folder_of_all(tmp_path, keys):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "link").symlink_to(keys)
    (tmp_path / "all").chmod(0o777)
    assert of_others(str(tmp_path / "all" / "link")) == f"below {tmp_path}/all, in which everybody may write"


def test_links_that_lead_nowhere_end(tmp_path):
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).symlink_to(tmp_path / other)
    assert of_others(str(tmp_path / "a" / "keys")) == ""


def test_a_sandbox_has_no_number_for_the_hosts_folders():
    """Lost: all in a sandbox for one's own account alone (bubblewrap, Flatpak), where / belongs to nobody."""
    code = f"import os, {folders_of_others.__name__} as folders; print(os.stat('/').st_uid, [folders.of_others('/a')])"
    words = ["unshare", "--user", f"--map-user={ANOTHER}", sys.executable, "-c", code]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(words, env=env, user=ANOTHER, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "65534 ['']\n", done.stderr
