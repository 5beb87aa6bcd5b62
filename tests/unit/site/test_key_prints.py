# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys an instance has, in words. If these fail, who is told "another ssh key" has to guess which it has; or a
key is shown, or a damaged one hides why a request is refused.
"""

from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import Refused
from ansible_collections.hetero.compute.plugins.module_utils._hetero.site.key_prints import (
    keys_told,
    must_have_keys,
    with_keys,
)
from ansible_collections.hetero.compute.tests.unit.images.packing import OTHER_KEY


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """A public key, and what ssh-keygen says of it."""
    path = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann at work", "-f", path], check=True)
    said = subprocess.run(["ssh-keygen", "-l", "-f", f"{path}.pub"], check=True, capture_output=True, text=True).stdout
    return path.with_suffix(".pub").read_text(), said.split()[1]


def test_a_key_is_named_as_ssh_keygen_names_it(key):
    line, sha256 = key
    assert keys_told(line) == f"{sha256} ann at work"
    assert keys_told(f'from="lab" {line}') == f"{sha256} ann at work"
    assert keys_told(" ".join(line.split()[:2])) == sha256


def test_several_keys_are_named_and_many_are_counted(key):
    line, sha256 = key
    one = f"{sha256} ann at work"
    assert keys_told(f"{line}\n\n{line}") == f"{one} and {one}"
    assert keys_told(line * 5) == f"{one} and {one} and {one} and 2 more"


@pytest.mark.parametrize("text", ["key", "ssh-ed25519", "ssh-ed25519 AAAAA", "ssh-ed25519 AA-A", "ssh-ed25519 ä x"])
def test_what_is_no_key_is_said_to_be_damaged(text):
    """Lost: why the request is refused, where the database has a damaged key."""
    assert keys_told(text) == "a damaged key"
    assert keys_told("\n") == "none"


def test_whose_a_claim_is_among_those_of_one_name(key):
    """Lost: the end of one's own, or the instance of somebody else, by `only_key`."""
    line, _sha256 = key
    mine = SimpleNamespace(instance="mine", ssh_public_key=f"{OTHER_KEY}\n{line}")
    others = SimpleNamespace(instance="others", ssh_public_key=OTHER_KEY)
    assert with_keys([mine, others], None) == [mine, others]
    assert with_keys([others, mine], line.rpartition(" at")[0]) == [mine]
    assert with_keys([], line) == []
    must_have_keys(mine, f"{line}\n{OTHER_KEY}")
    for wrong in (line, "", "nonsense"):
        with pytest.raises(Refused, match=r"^others: has another ssh key than only_key \(SHA256:\S+ other@desk\)"):
            with_keys([others], wrong)
