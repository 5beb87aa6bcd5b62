# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook build_image, as the guides have it typed.

If these fail, a slip in a name builds for another architecture than the one that was asked for, and a dry run says
where to copy archives that are not there.
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


#: A mirror that cannot be reached: what is not to be built ends at once.
NOWHERE = "debian_image_mirror=http://127.0.0.1:9/debian"


def build_image(folder, *words, **env):
    more = [word for given in words for word in (["-e", given] if "=" in given else [given])]
    env = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build"), **env}
    where = ["-e", f"debian_image_folder={folder}", "-e", NOWHERE]
    return run("ansible-playbook", "hetero.compute.build_image", *where, *more, cwd=folder, env=env)


def archives(folder):
    for name in ("bookworm-amd64.tar", "bookworm-amd64-ram.tar"):
        (folder / name).touch()


def test_a_misspelt_variable_is_refused(tmp_path):
    archives(tmp_path)
    done = build_image(tmp_path, "debian_image_arhitecture=arm64")
    assert done.returncode != 0, done.stdout
    assert "debian_image_arhitecture: is no variable of this role: write debian_image_architecture" in done.stdout


def test_a_dry_run_says_that_it_would_build(tmp_path):
    """Also where HOME is another folder than the account's own, as by `sudo -E`."""
    folder = tmp_path / "images"
    folder.mkdir()
    done = build_image(folder, "--check", HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert list(folder.iterdir()) == []
    assert changed(done.stdout) == 1, done.stdout
    assert "would build" in done.stdout
    assert "copy them" not in done.stdout
    archives(folder)
    done = build_image(folder, "--check")
    assert changed(done.stdout) == 0, done.stdout
    assert "copy them to a proxy node" in done.stdout
    assert "tftp_proxy_ram_images: {x86_64: bookworm-amd64-ram}" in done.stdout
    assert changed(build_image(folder, "--check", "debian_image_again=true").stdout) == 1


def test_a_build_that_fails_says_why_whatever_home_is(tmp_path):
    """Lost: what mmdebstrap said, for "could not find job", and a build that goes on with nobody waiting."""
    folder = tmp_path / "images"
    folder.mkdir()
    done = build_image(folder, HOME=str(tmp_path))
    assert done.returncode != 0, done.stdout
    assert "127.0.0.1:9" in done.stdout
    assert "could not find job" not in done.stdout
