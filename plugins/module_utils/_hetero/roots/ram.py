# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RAM system: the proxy's own kernel and initrd for a board, and the keys that let the proxy, and nobody else, in.

The keys of one boot are in a small archive before the image's initrd. TFTP gives that archive to whoever has the
board's address. A board with a console therefore makes its ssh host key itself and prints it there. For other boards a
fresh host key is in the archive, and boards/boot/ram_boot.py, which boots the board, checks that it was fetched once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING, cast

from ..core.command import command
from ..core.errors import BadInput, HeteroError, naming
from ..files.cpio import FILE, FOLDER, archive
from ..files.walk import CHUNK
from ..images.choice import check_arch, image_store
from ..site.boot_sources import RAM
from ..site.proxy_config import SET_UP
from ..tftp.board_folder import BoardFiles
from .console_key import ConsoleKey
from .key_pairs import make_pair

if TYPE_CHECKING:
    from ..images.proxy_node import ProxyNode
    from ..images.store import Image
    from ..site.boards_file import Board
    from .proxy_node import RootsNode

VARIABLE = "tftp_proxy_ram_images"
#: Where sshd of a RAM system finds its keys.
AUTHORIZED, HOST_KEY = "root/.ssh/authorized_keys", "etc/ssh/ssh_host_ed25519_key"
#: In place of HOST_KEY: the word that the RAM system prints on its console beside a host key that it made itself.
CONSOLE_WORD = "etc/ssh/hetero_ram_word"
#: How the proxy learns a RAM system's host key, as a board's wiring has it (`ram_key`): the board makes it and says it
#: on its console, or the proxy makes it and hands it out by TFTP.
RAM_KEYS = ON_CONSOLE, BY_TFTP = "console", "tftp"


def has_ram_image(proxy: ProxyNode, board: Board) -> bool:
    """Return whether a RAM image is configured for the board's architecture."""
    return ram_image_name(proxy, board) is not None


def ram_image(proxy: ProxyNode, board: Board) -> Image:
    """Return the RAM image for a board; raise BadInput, which names the variable, where there is none."""
    name = ram_image_name(proxy, board)
    if name is None:
        what = f"no RAM image is configured for architecture {board.arch}"
        raise BadInput(what, board.name, f"name one in {VARIABLE}, then {SET_UP}")
    image = image_store(proxy).get(name)
    if not image.ram:
        raise BadInput("is no RAM image", name, f'give its image.json "ram": true, or name another in {VARIABLE}')
    check_arch(board, image)
    if image.kernel_for(RAM, board.id) is None:
        remedy = f"give it kernel, or kernel.d/{board.id}"
        raise BadInput(f"has no kernel for {board.name}", f"RAM image {name}", remedy)
    return image


def ram_image_name(proxy: ProxyNode, board: Board) -> str | None:
    """Return the name of the RAM image for a board's architecture, None where none is configured."""
    names = {arch.lower(): name for arch, name in proxy.config.ram_images.items()}
    return names.get((board.arch or "").lower())


def own_key(proxy: ProxyNode) -> str:
    """Return the path of the proxy's own private key for RAM systems, which is made on first use."""
    folder = proxy.folder("ram")
    path = os.path.join(folder, "id_ed25519")
    if not os.path.exists(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            new = os.path.join(scratch, "key")
            make_pair(new, "hetero proxy", scratch)
            try:
                os.link(new, path)  # where two processes make it at once, the key of the first stays
            except FileExistsError:
                return path
    return path


def console_of(proxy: RootsNode, board: Board, image: Image) -> str | None:
    """Return the log of the console on which a board's RAM system prints its host key; None: the proxy makes the key.

    :raises BadInput: the wiring asks for a key on the console, and the board has none or the image prints none.
    """
    wiring = proxy.wiring(board)
    log, how = wiring.console, wiring.ram_key
    if how not in (None, *RAM_KEYS):
        what = f"no such ram_key: {how} (known: {', '.join(RAM_KEYS)})"
        raise BadInput(what, board.name, f"correct it in tftp_proxy_boards, then {SET_UP}")
    if how == ON_CONSOLE and not (log and image.console_key):
        lacks = f'RAM image {image.name} does not say its key ("console_key")' if log else "no console is named for it"
        raise BadInput(f"ram_key is console, and {lacks}", board.name, "correct that, or its ram_key")
    return log if log and image.console_key and how != BY_TFTP else None


def serve_kernel(proxy: ProxyNode, board: Board, image: Image, name: str) -> None:
    """Put the kernel of a RAM image into a board's TFTP folder."""
    _place(BoardFiles(proxy.config.tftp_root, board.ip), name, cast(str, image.kernel_for(RAM, board.id)))


def serve_plain_initrd(proxy: ProxyNode, board: Board, image: Image, name: str) -> None:
    """Put the initrd of a RAM image, if it has one, into the TFTP folder of a board that proves no key."""
    files, initrd = BoardFiles(proxy.config.tftp_root, board.ip), image.initrd_for(RAM)
    if initrd:
        _place(files, name, initrd)
    else:
        files.drop(name)


def serve_initrd(proxy: RootsNode, board: Board, image: Image, name: str) -> tuple[str | None, ConsoleKey | None]:
    """Put the initrd of a RAM image, with the keys of one boot, into a board's TFTP folder.

    :returns: (host key that the board will show, None), or (None, the ConsoleKey that reads it from the console).
    """
    public = command(["ssh-keygen", "-y", "-f", own_key(proxy)], "the proxy's own key")
    log = console_of(proxy, board, image)
    host_key, said = None, ConsoleKey(log) if log else None
    with naming(proxy.folder("ram")), tempfile.TemporaryDirectory(dir=proxy.folder("ram")) as scratch:
        if said:
            own = (CONSOLE_WORD, f"{said.word}\n".encode())
        else:
            pair = make_pair(os.path.join(scratch, "key"), board.name, scratch)
            host_key, own = pair.line, (HOST_KEY, pair.private.encode())
        initrd = os.path.join(scratch, "initrd")
        # The kernel unpacks several archives in a row, each compressed in its own way. An uncompressed archive may come
        # before any other. After a compressed one some kernels (lz4 before Linux 5.10) look for no further archive.
        with open(cast(str, image.initrd_for(RAM)), "rb") as source, open(initrd, "wb") as target:
            target.write(_private_part(public, *own))
            shutil.copyfileobj(source, target, CHUNK)
            os.fchmod(target.fileno(), 0o444)
        _place(BoardFiles(proxy.config.tftp_root, board.ip), name, initrd)
    return host_key, said


def _place(files: BoardFiles, name: str, source: str) -> None:
    with naming(files.folder):
        files.place(name, source)
        if not files.same(name, source):
            raise HeteroError("is not there after it was put in place", files.path(name), "look who removes it")


def _private_part(public: str, name: str, content: bytes) -> bytes:
    folder = FOLDER | 0o755
    return archive(
        [
            ("etc", folder, b""),
            ("etc/ssh", folder, b""),
            (name, FILE | 0o600, content),
            ("root", FOLDER | 0o700, b""),
            ("root/.ssh", FOLDER | 0o700, b""),
            (AUTHORIZED, FILE | 0o600, public.encode()),
        ]
    )
