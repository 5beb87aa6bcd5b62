# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook build_image, as the guides have it typed.

Lost: an image of another architecture than the one that was asked for, by a slip in a name that every other role
refuses; and a look before: its dry run says changed=0 and where to copy archives that are not there.
"""

from __future__ import annotations

import os
import shutil

import pytest

from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT
from ansible_collections.hetero.compute.tests.unit.plays.proxies import changed
from ansible_collections.hetero.compute.tests.unit.plays.test_as_typed import run

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mmdebstrap"), reason="building an image needs root and mmdebstrap"
)


def build_image(folder, *words):
    more = [word for given in words for word in (["-e", given] if "=" in given else [given])]
    env = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build")}
    where = ["-e", f"debian_image_folder={folder}"]
    return run("ansible-playbook", "hetero.compute.build_image", *where, *more, cwd=folder, env=env)


def test_a_misspelt_variable_is_refused(tmp_path):
    for name in ("bookworm-amd64.tar", "bookworm-amd64-ram.tar"):
        (tmp_path / name).touch()
    done = build_image(tmp_path, "debian_image_arhitecture=arm64")
    assert done.returncode != 0, done.stdout
    assert "debian_image_architecture" in done.stdout, done.stdout


def test_a_dry_run_says_that_it_would_build(tmp_path):
    done = build_image(tmp_path, "--check")
    assert done.returncode == 0, done.stdout
    assert list(tmp_path.iterdir()) == []
    assert changed(done.stdout) == 1, done.stdout
    assert f"would build {tmp_path}/bookworm-amd64.tar, " in done.stdout
    assert "copy them to a proxy node" not in done.stdout


def test_a_run_that_finds_them_says_what_to_do_with_them(tmp_path):
    for name in ("bookworm-amd64.tar", "bookworm-amd64-ram.tar"):
        (tmp_path / name).touch()
    for words in ((), ("--check",)):
        done = build_image(tmp_path, *words)
        assert (done.returncode, changed(done.stdout)) == (0, 0), done.stdout
        assert "copy them to a proxy node" in done.stdout
