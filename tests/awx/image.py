# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a Containerfile, run in roots below a folder as podman runs them in images; no registry is asked.

A minimal Debian, without lists of packages and without Python, stands in for docker.io/library/debian:12.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# $1 root, $2 working folder there, then the command. Nothing of this machine can be written from there: what packages
# install writes certificates, and may write devices.
ENTER = """
set -e
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/dev"
mkdir -m 1777 "$1/dev/shm"
for name in null zero full random urandom; do
    touch "$1/dev/$name"
    mount --bind "/dev/$name" "$1/dev/$name"
done
root=$1 work=$2
shift 2
cd /
exec chroot $USERSPEC "$root" sh -c 'cd "$0" && exec "$@"' "$work" "$@"
"""
#: Where a root has this machine's way to packages: addresses of name servers, and who vouches for a mirror.
RESOLVER, VOUCHERS = "etc/resolv.conf", "etc/certificates-of-the-test.crt"
#: Whom this machine believes, also where no variable says so.
THIS_MACHINES = "/etc/ssl/certs/ca-certificates.crt"


def debian(folder):
    """Make the root of a Debian 12 image in `folder`."""
    argv = ["unshare", "--mount", "mmdebstrap", "--quiet", "--variant=minbase", "bookworm", folder, MIRROR]
    subprocess.run(list(map(str, argv)), check=True, stdin=subprocess.DEVNULL, timeout=1800)
    (folder / RESOLVER).unlink(missing_ok=True)
    shutil.copy("/etc/resolv.conf", folder / RESOLVER)
    shutil.copy(os.environ.get("PIP_CERT") or THIS_MACHINES, folder / VOUCHERS)
    folder.chmod(0o755)


def inside(root, argv, work="/", user="", **variables):
    """What a command in `root` printed, and its exit code, as subprocess.run gives them.

    :param user: UID:GID, else root
    """
    names = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    names.update(PIP_CERT=f"/{VOUCHERS}", PATH=SYSTEM_PATH, USERSPEC=f"--userspec={user}" * bool(user), **variables)
    unshare = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"]
    entering = [*unshare, "sh", "-c", ENTER, "enter", root, work, *argv]
    run = dict(env=names, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800)
    return subprocess.run(list(map(str, entering)), check=False, **run)


class Build:
    """The stages of `context`/Containerfile, each a root in `folder`; `base` is the root of the first one's image.

    AssertionError with what a step printed where it fails.
    """

    def __init__(self, context, base, folder):
        self.context, self.base, self.folder = context, base, folder
        self.defaults, self.stages, self.root, self.names, self.work = {}, {}, None, {}, "/"
        for line in (context / "Containerfile").read_text().splitlines():
            word, _blank, rest = line.strip().partition(" ")
            if word in ("ARG", "FROM", "ENV", "WORKDIR", "COPY", "RUN"):
                getattr(self, f"_{word.lower()}")(rest)

    def _arg(self, rest):
        name, given, value = rest.partition("=")
        if self.root is None:
            self.defaults[name] = value.strip('"')
        else:
            self.names[name] = value.strip('"') if given else self.defaults[name]

    def _from(self, rest):
        source, name = rest.split(" AS ")
        root, self.names = self.stages.get(source, (self.base, {}))
        self.root, self.names, self.work = self.folder / name, dict(self.names), "/"
        subprocess.run(["cp", "--archive", "--one-file-system", root, self.root], check=True, timeout=600)
        self.stages[name] = self.root, self.names

    def _env(self, rest):
        name, _equals, value = rest.partition("=")
        self.names[name] = value

    def _workdir(self, rest):
        self.work = rest
        (self.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest):
        stage, source, target = re.fullmatch(r"(?:--from=(\w+) )?(\S+) (\S+)", rest).groups()
        source = (self.stages[stage][0] if stage else self.context) / source.strip("/")
        target = self.root / target.strip("/")
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def _run(self, rest):
        done = inside(self.root, ["sh", "-c", rest], self.work, **self.names)
        assert done.returncode == 0, f"RUN {rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
