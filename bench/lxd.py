# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's LXD with a container of busybox, to measure ours beside: unpacked by `tools/setup bench`, run from there."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

UNPACKED = Path("build/bench").resolve()
NAME = "bench"
INIT = 'trap "exit 0" PWR INT\nwhile :; do sleep 3600 & wait; done\n'


class Lxd:
    """A daemon of its own, all of whose files lie in `folder`; a context manager that ends it with its container."""

    def __init__(self, folder):
        self.folder = Path(folder)
        path = f"{UNPACKED}/usr/bin:{UNPACKED}/usr/sbin:{os.environ['PATH']}"
        home = {"LXD_DIR": str(self.folder / "dir"), "LXD_CONF": str(self.folder / "conf"), "HOME": str(self.folder)}
        self.env = dict(os.environ, PATH=path, LD_LIBRARY_PATH=f"{UNPACKED}/usr/lib/x86_64-linux-gnu", **home)
        self._daemon = None

    def __enter__(self):
        (self.folder / "dir").mkdir()
        with (self.folder / "log").open("w") as log:
            self._daemon = subprocess.Popen(
                [f"{UNPACKED}/usr/bin/lxd", "--group", "root"], env=self.env, stdout=log, stderr=log
            )
        try:
            self._run("lxd", "waitready", "--timeout", "30")
            self.lxc("storage", "create", "d1", "dir")
            self.lxc("image", "import", str(self._image()), "--alias", NAME)
            self.lxc("init", NAME, NAME, "-s", "d1", "-c", "security.privileged=true")
            self.lxc("start", NAME)
        except BaseException:
            print((self.folder / "log").read_text()[-2000:], flush=True)
            self._end()
            raise
        return self

    def __exit__(self, *_exc):
        try:
            self.lxc("delete", "--force", NAME)
            self._run("lxd", "shutdown", "--timeout", "20")
        finally:
            self._end()

    def _end(self):
        self._daemon.terminate()
        self._daemon.wait(30)

    def lxc(self, *words):
        """A command of LXD's client, as a person types it."""
        return self._run("lxc", *words)

    def plug(self, number, node):
        path = ("path=" + node.path, f"major={node.major}", f"minor={node.minor}", "mode=0666")
        self.lxc("config", "device", "add", NAME, f"node{number}", "unix-char", *path)

    def unplug(self, number):
        self.lxc("config", "device", "remove", NAME, f"node{number}")

    def _image(self):
        """An image as LXD imports it: metadata.yaml, and a root with busybox."""
        root = self.folder / "image/rootfs"
        for name in ("bin", "dev", "proc", "sys", "sbin", "tmp", "etc", "run"):
            (root / name).mkdir(parents=True)
        (root / "bin/busybox").write_bytes(Path("/bin/busybox").read_bytes())
        (root / "bin/busybox").chmod(0o755)
        for name in ("sh", "sleep", "ls"):
            (root / "bin" / name).symlink_to("busybox")
        (root / "sbin/init").write_text(f"#!/bin/sh\n{INIT}")
        (root / "sbin/init").chmod(0o755)
        about = dict(architecture="x86_64", creation_date=1, properties=dict(description="busybox"))
        (self.folder / "image/metadata.yaml").write_text(json.dumps(about))
        path = self.folder / "image.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in ("metadata.yaml", "rootfs"):
                tar.add(self.folder / "image" / name, name)
        return path

    def _run(self, *argv):
        done = subprocess.run(
            [f"{UNPACKED}/usr/bin/{argv[0]}", *argv[1:]],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=60,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}: {done.stdout}")
        return done.stdout
