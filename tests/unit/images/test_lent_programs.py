# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image for another processor: this machine's programs do what they can of it, and none of them is in the image.

If these fail, an ARM image takes an x86 machine an hour again, or its boards find a program that they cannot run.
Scenario arm_pcs builds such an image, and boots it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[3] / "roles" / "debian_image" / "files"
NATIVE = FILES / "native.sh"
pytestmark = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="an image is built on Debian")
#: Says which version a package has on this machine and, asked with --admindir, in the root.
DPKG_QUERY = """#!/bin/sh
case " $* " in *" --admindir="*) echo "$THERE" ;; *) echo "$HERE" ;; esac
"""
#: The root's own programs, by chroot.
CHROOT = """#!/bin/sh
case $2 in
    readlink) echo /usr/bin/python3.11 ;;
    */py3compile) { head -n 1 "$1/usr/bin/python3.11" | cut -c 1-3; shift 2; printf '%s\\n' "$@"; } >> "$CALLS" ;;
esac
"""


@pytest.fixture
def root(tmp_path):
    """A root of another processor, as far as its packages are unpacked."""
    path = tmp_path / "root"
    for folder in ("usr/bin", "usr/lib/other-linux-gnu", "etc/apt/apt.conf.d"):
        (path / folder).mkdir(parents=True)
    for name in ("dash", "python3.11"):
        (path / "usr" / "bin" / name).write_text("the root's own")
        (path / "usr" / "bin" / name).chmod(0o751)
    return path


@pytest.fixture
def native(tmp_path, root):
    """Runs native.sh, where packages of the machine and of the root have these versions."""
    for name, text in (("dpkg-query", DPKG_QUERY), ("chroot", CHROOT)):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(verb, here="0.5.12-2", there="0.5.12-2+deb12u1"):
        path = f"{tmp_path}/bin:{os.environ['PATH']}"
        env = dict(os.environ, PATH=path, HERE=here, THERE=there, CALLS=str(tmp_path / "calls"))
        subprocess.run(["bash", str(NATIVE), verb, str(root)], env=env, timeout=600, check=True)

    return run


def tree(root):
    """What lies in a folder: each path with its mode, its inode and what is in it."""
    return {
        path.relative_to(root): (path.stat().st_mode, path.stat().st_ino, path.is_file() and path.read_bytes())
        for path in root.rglob("*")
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_what_is_lent_runs_in_a_root_that_has_nothing_else_of_the_machine(native, root):
    """Lost: the build, at the first package: dpkg-deb finds no loader; or it finds /lib64, which packages trip over."""
    native("lend")
    assert not (root / "lib64").exists()
    for name in ("dpkg-deb", "zstd", "xz", "cpio", "cp", "sort", "modinfo"):
        argv = ["chroot", str(root), f"/hetero-native/bin/{name}", "--version"]
        assert subprocess.run(argv, capture_output=True, timeout=600, check=False).returncode == 0, name


def test_nothing_of_it_is_left_in_the_image(native, root):
    """Lost: an image that is what it would be without; a board finds another processor's shell."""
    before = tree(root)
    native("lend")
    native("stand-in")
    assert tree(root) != before
    native("scripts-done")
    native("take-back")
    assert tree(root) == before


@pytest.mark.parametrize(("there", "own"), [("0.5.12-2+deb12u1", False), ("0.5.13-1", True)])
def test_the_shell_stands_in_for_the_roots_own_where_it_is_the_same_one(native, root, there, own):
    """Lost: packages' scripts are run by another release's shell; or by an emulated one, for no reason."""
    native("lend")
    native("stand-in", there=there)
    assert ((root / "usr" / "bin" / "dash").read_bytes() == b"the root's own") == own
    native("scripts-done", there=there)
    assert (root / "usr" / "bin" / "dash").read_text() == "the root's own"
    assert (root / "usr" / "bin" / "dash").stat().st_mode & 0o777 == 0o751


def test_python_modules_are_compiled_when_all_packages_are_there(native, root, tmp_path):
    """Lost: compiled modules of a package, so that each start of cloud-init compiles them anew on a board."""
    native("lend")
    note = root / "hetero-native" / "bin" / "py3compile"
    there = note.read_text().replace("/hetero-native", str(root / "hetero-native"))
    subprocess.run(["sh", "-c", there, "py3compile", "-p", "cloud-init", "-X", "a b|c"], timeout=600, check=True)
    native("scripts-done")
    assert (tmp_path / "calls").read_text().splitlines() == ["\x7fEL", "-p", "cloud-init", "-X", "a b|c"]
    assert not note.exists()


@pytest.mark.parametrize("foreign", [True, False])
def test_programs_are_lent_to_a_root_of_another_processor_only(tmp_path, foreign):
    """Lost: an ARM image by emulation alone; or an image of this machine's own processor that loses its libraries."""
    played = tmp_path / "bin"
    played.mkdir()
    (played / "mmdebstrap").write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$PATH" > "$SAID"\nexit 1\n')
    (played / "mmdebstrap").chmod(0o755)
    (played / "unshare").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (played / "unshare").chmod(0o755)
    (played / "dpkg").write_text("#!/bin/sh\necho amd64\n")
    (played / "dpkg").chmod(0o755)
    env = dict(os.environ, PATH=f"{played}:{os.environ['PATH']}", SAID=str(tmp_path / "said"))
    words = ["arm64" if foreign else "amd64", "arch", "bookworm", "http://127.0.0.1:9/debian", "", ""]
    argv = ["bash", str(FILES / "build.sh"), str(tmp_path), "image", *words]
    assert subprocess.run(argv, env=env, capture_output=True, timeout=600, check=False).returncode == 1
    said = (tmp_path / "said").read_text().splitlines()
    verbs = [line.split()[2] for line in said if "native.sh" in line and "-hook=" in line]
    assert verbs == (["lend", "stand-in"] if foreign else [])
    assert said[-1].startswith("/hetero-native/bin:") == foreign
