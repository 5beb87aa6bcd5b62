# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Execution environment as ansible-builder sees it. If these fail, jobs in AWX have no netaddr, pexpect or ssh."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
import yaml

from ansible_collections.hetero.compute.tests.awx.jobs import BIN, ROOT, environment


def builder(*words, cwd):
    argv = [BIN / "ansible-builder", *words]
    done = subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def collections(tmp_path):
    """A folder of collections with this one in it, as an image has it."""
    (tmp_path / "ansible_collections" / "hetero").mkdir(parents=True)
    os.symlink(ROOT, tmp_path / "ansible_collections" / "hetero" / "compute")
    return tmp_path


def test_what_the_collection_needs(collections):
    said = yaml.safe_load(builder("introspect", str(collections), cwd=collections))
    needed = {kind: [line.partition("  #")[0] for line in lines] for kind, lines in said.items()}
    assert needed["python"] == ["netaddr>=0.8", "pexpect>=4.6"]
    assert needed["system"] == ["openssh-client [platform:dpkg]", "openssh-clients [platform:rpm]"]


def test_what_is_asked_for_is_what_is_imported():
    """Every package that requirements.txt names for the controller is in the image as well, but for Ansible itself."""
    own = {line.split("=")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if line[:1].isalpha()}
    asked = {line.split(">")[0] for line in (ROOT / "meta" / "ee-requirements.txt").read_text().splitlines()}
    assert own - {"ansible-core"} <= asked


def test_the_image_installs_the_archive(tmp_path):
    """Lost: the image, where no server of collections has this one. What its Containerfile runs is run here."""
    galaxy = [BIN / "ansible-galaxy", "collection"]
    run = dict(env=environment(), capture_output=True, timeout=120)
    subprocess.run([*galaxy, "build", ROOT, "--output-path", tmp_path / "built"], check=True, **run)
    (tmp_path / "awx").mkdir()
    (archive,) = (tmp_path / "built").iterdir()
    archive.rename(tmp_path / "awx" / "hetero-compute.tar.gz")
    file = shutil.copy(ROOT / "awx" / "execution-environment.yml", tmp_path / "awx")
    context, image = tmp_path / "context", tmp_path / "image"
    words = ["--file", str(file), "--context", str(context), "--output-filename", "Containerfile"]
    builder("create", *words, cwd=tmp_path)
    text = (context / "Containerfile").read_text()
    install = "$ANSIBLE_GALAXY_CLI_COLLECTION_OPTS -r requirements.yml --collections-path"
    assert "COPY _build /build\nWORKDIR /build\n" in text
    assert install in text
    # here, not there, this collection is installed already
    words = ["install", "--force", "--offline", "-r", "requirements.yml", "--collections-path", image]
    subprocess.run([*galaxy, *words], cwd=context / "_build", check=True, **run)
    said = yaml.safe_load(builder("introspect", str(image), cwd=tmp_path))
    assert [line.partition("  #")[0] for line in said["python"]] == ["netaddr>=0.8", "pexpect>=4.6"]
    assert "ansible-core>=2.16" in text
    assert "ansible-runner>=2.4" in text
