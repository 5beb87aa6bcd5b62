# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RAM system: the proxy's own kernel and initrd for a board, and the keys that let the proxy, and nobody else, in.

Each boot gets a fresh ssh host key, in a small archive beside the image's initrd. Booting it is for boards/ram_boot.py.
"""

from __future__ import annotations

import os
import shutil
import tempfile

from ..command import command
from ..errors import BadInput, HeteroError, naming
from ..proxy_node.config import SET_UP
from .cpio import FILE, FOLDER, archive
from .provision import check_arch, image_store
from .tftp import BoardFiles
from .tree import CHUNK

VARIABLE = "tftp_proxy_ram_images"
#: Where sshd of a RAM system finds its keys.
AUTHORIZED, HOST_KEY = "root/.ssh/authorized_keys", "etc/ssh/ssh_host_ed25519_key"


def has_ram_image(proxy, board):
    """Whether a RAM image is configured for the board's architecture."""
    return _name(proxy, board) is not None


def ram_image(proxy, board):
    """The RAM image for a board; BadInput names the variable where there is none."""
    name = _name(proxy, board)
    if name is None:
        what = f"no RAM image is configured for architecture {board.arch}"
        raise BadInput(what, board.name, f"name one in {VARIABLE}, then {SET_UP}")
    image = image_store(proxy).get(name)
    if not image.ram:
        raise BadInput("is no RAM image", name, f'give its image.json "ram": true, or name another in {VARIABLE}')
    check_arch(board, image)
    return image


def _name(proxy, board):
    names = {arch.lower(): name for arch, name in proxy.config["ram_images"].items()}
    return names.get(board.arch.lower())


def own_key(proxy):
    """Path of the proxy's own private key for RAM systems, made on first use."""
    folder = proxy.folder("ram")
    path = os.path.join(folder, "id_ed25519")
    if not os.path.exists(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            new, _public = _key_pair(scratch, "hetero proxy")
            try:
                os.link(new, path)  # of two that make it at once, the first one's stays
            except FileExistsError:
                return path
    return path


def serve(proxy, board, image, kernel_name, initrd_name):
    """Put kernel and initrd of a RAM image into a board's TFTP folder; the host key by which it will be known."""
    files = BoardFiles(proxy.config["tftp_root"], board.ip)
    with naming(files.folder):
        return _serve(proxy, board, image, files, kernel_name, initrd_name)


def _serve(proxy, board, image, files, kernel_name, initrd_name):
    public = command(["ssh-keygen", "-y", "-f", own_key(proxy)], "the proxy's own key")
    with tempfile.TemporaryDirectory(dir=proxy.folder("ram")) as scratch:
        path, host_key = _key_pair(scratch, board.name)
        with open(path, "rb") as file:
            own = _private_part(public, file.read())
        initrd = os.path.join(scratch, "initrd")
        # The kernel unpacks archives one after another, each packed in its own way; one that is not packed may stand
        # before any other, while behind one some kernels (lz4 before Linux 5.10) do not look for more.
        with open(image.initrd, "rb") as source, open(initrd, "wb") as target:
            target.write(own)
            shutil.copyfileobj(source, target, CHUNK)
            os.fchmod(target.fileno(), 0o444)
        files.place(initrd_name, initrd)
        files.place(kernel_name, image.kernel)
        if not files.same(initrd_name, initrd) or not files.same(kernel_name, image.kernel):
            raise HeteroError("are not there after they were put in place", files.folder, "look who removes them")
    return " ".join(host_key.split()[:2])


def _private_part(public, host_key):
    folder = FOLDER | 0o755
    return archive(
        [
            ("etc", folder, b""),
            ("etc/ssh", folder, b""),
            (HOST_KEY, FILE | 0o600, host_key),
            ("root", FOLDER | 0o700, b""),
            ("root/.ssh", FOLDER | 0o700, b""),
            (AUTHORIZED, FILE | 0o600, public.encode()),
        ]
    )


def _key_pair(folder, comment):
    """(path of the private key, the public one) of a fresh pair."""
    path = os.path.join(folder, "key")
    command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path], folder)
    with open(f"{path}.pub", encoding="ascii") as file:
        return path, file.read().strip()
