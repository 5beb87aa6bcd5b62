# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make release` in a scratch clone. If these fail, a release goes out that was not tested, or half of one.

Tests core/release.py.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from types import SimpleNamespace

import pytest
import yaml

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.release import RELEASE
from ansible_collections.hetero.compute.tests.unit.documents.pages import ROOT


@pytest.fixture
def clone(tmp_path):
    """What is committed, with the tools of this clone; `git` and `release` run there and return what they said."""
    folder = tmp_path / "clone"
    env = dict(os.environ, GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[safe]\n directory = *\n[user]\n name = Jo\n email = jo@example.org\n")

    def run(*argv, expect=0):
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=3600, check=False)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def git(*words):
        return run("git", *words).strip()

    def release(version, expect=0):
        return run("tools/release", version, expect=expect)

    subprocess.run(["git", "clone", "--quiet", ROOT, folder], env=env, check=True)
    git("switch", "--quiet", "--force-create", "releases")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".git" / "info" / "exclude").write_text("/.venv\n")
    (folder / "build").mkdir()
    return SimpleNamespace(folder=folder, git=git, release=release)


def passed(clone):
    """What tests/run writes when all of it has passed."""
    (clone.folder / "build" / "tests-passed").write_text(clone.git("rev-parse", "HEAD^{tree}") + "\n")


def test_what_is_no_release_is_refused_and_changes_nothing(clone):
    """A version nobody can order, files that nobody has seen, a commit that nobody has tested."""
    before = clone.git("rev-parse", "HEAD")
    assert "Which version?" in clone.release("", 1)
    assert "Which version?" in clone.release("1.2", 1)
    assert "make test has not passed for this commit" in clone.release("99.0.0", 1)
    passed(clone)
    clone.git("commit", "--quiet", "--allow-empty-message", "--message", "", "--allow-empty")
    (clone.folder / "new.txt").write_text("")
    assert "the working tree is not clean" in clone.release("99.0.0", 1)
    clone.git("add", "new.txt")
    clone.git("commit", "--quiet", "--message", "untested")
    assert "make test has not passed for this commit" in clone.release("99.0.0", 1)
    clone.git("tag", "100.0.0")
    assert "99.0.0 is older than 100.0.0" in clone.release("99.0.0", 1)
    clone.git("switch", "--quiet", "--detach")
    assert "no branch is checked out" in clone.release("99.0.0", 1)
    clone.git("switch", "--quiet", "releases")
    clone.git("reset", "--quiet", "--hard", before)
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("tag") == "100.0.0"


def test_nodes_are_told_the_release_that_galaxy_is():
    """A database would name another release than the one that made it."""
    assert f"version: {RELEASE}\n" in (ROOT / "galaxy.yml").read_text()


def test_all_that_goes_into_an_archive_is_text(clone):
    """The cache of a program that looks at the code went with each archive to whoever installs it."""
    left_out = yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]
    paths = clone.git("ls-files", "-z").strip("\0").split("\0")
    packed = [path for path in paths if path.split("/")[0] not in left_out]
    assert "README.md" in packed
    assert [path for path in packed if b"\0" in (clone.folder / path).read_bytes()] == []
    for cache in (".mypy_cache", ".pytest_cache", ".ruff_cache"):
        assert cache in left_out, cache


@pytest.mark.long
def test_a_release_is_whole_and_made_once(clone):
    """An archive with another version in it, a changelog without the release, a second tag."""
    passed(clone)
    before = clone.git("rev-parse", "HEAD")
    assert "release 99.0.0 on releases" in clone.release("99.0.0")
    after = clone.git("rev-parse", "HEAD")
    assert clone.git("rev-parse", "HEAD^") == before
    assert clone.git("rev-parse", "99.0.0^{commit}") == after
    assert clone.git("status", "--porcelain") == ""
    assert "version: 99.0.0" in (clone.folder / "galaxy.yml").read_text()
    core = clone.folder / "plugins" / "module_utils" / "_hetero" / "core"
    assert 'RELEASE = "99.0.0"' in (core / "release.py").read_text()
    assert "v99\\.0\\.0" in (clone.folder / "CHANGELOG.md").read_text()
    assert not list(clone.folder.glob("changelogs/fragments/*.yml"))
    with tarfile.open(clone.folder / "build" / "release" / "hetero-compute-99.0.0.tar.gz") as archive:
        names = archive.getnames()
        assert b'"version": "99.0.0"' in archive.extractfile("MANIFEST.json").read()
    assert {"README.md", "docs/docsite/extra-docs.yml", "changelogs/changelog.yaml"} <= set(names)
    assert not [name for name in names if name.split("/")[0] in (".venv", "tests", "tools", "build")]

    assert "release 99.0.0 is there" in clone.release("99.0.0")
    clone.git("tag", "--delete", "99.0.0")  # as if it had been cut off before the tag
    assert "release 99.0.0 on releases" in clone.release("99.0.0")
    assert clone.git("rev-parse", "99.0.0^{commit}") == after
    passed(clone)
    assert "98.0.0 is older than 99.0.0" in clone.release("98.0.0", 1)
    assert "nothing to tell users" in clone.release("99.0.1", 1)
