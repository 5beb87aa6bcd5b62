# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero restore`: before the NFS server starts, mounts the roots of all claims again and tells it what to export.

What is to be there, the claims and the roots themselves say. The units that run this are role tftp_proxy's; how a root
is mounted and how a server is told is known to images/.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Callable, Sequence

from ...boards.records.proxy import Proxy
from ...core.deadline import Deadline
from ...core.errors import naming, told
from ...core.locks import lock
from ...images.choice import image_store
from ...nfs.exports import exporter
from ...roots.ownership import refuse_anothers
from ...roots.provision import Place
from ...roots.roots import UNMOUNT_TIME
from ...site.proxy_config import CONFIG, files_of
from ..verb_parser import verb_parser

if TYPE_CHECKING:
    from ...boards.records.claim_records import Claim
    from ...nfs.exporter import Export, Exporter
    from ...site.proxy_config import ProxyConfig

VERB = "restore"
DOES = "Mount the boards' roots, and tell the NFS server what to export before it starts."


def restore(proxy: Proxy, say: Callable[[str], object]) -> list[Export]:
    """Mount what is to be mounted, have the server begin with all that is, and return that.

    A root that cannot be mounted is said and left out: its empty folder would be served in its stead. Where the claims
    cannot be read the server is not to start: a board that waits for it goes on later, one without export does not.

    :param say: called with a text for each thing that was done or could not be.
    """
    exports: list[Export] = []
    for claim in proxy.store.claims():
        try:
            with naming(f"board{claim.board}"):
                export = _restored(proxy, claim, say)
        except Exception as error:  # noqa: BLE001 - whatever is odd about one root, the others' boards get theirs
            say(f"board{claim.board} of {claim.instance} is not exported: {told(error, f'board{claim.board}')}")
        else:
            exports += [export] if export else []
    _server(proxy.config).begin_with(exports, proxy.config.run_folder)
    return exports


def parser() -> argparse.ArgumentParser:
    """Return the parser of its words."""
    return verb_parser(VERB, DOES, CONFIG, "proxy")


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    with Proxy(files_of(options.config), f"hetero {VERB}", create=False) as proxy:
        exports = restore(proxy, lambda text: sys.stderr.write(f"{text}\n"))
    sys.stdout.write(f"to be exported: {', '.join(export.pseudo for export in exports) or 'nothing'}\n")
    return 0


def _restored(proxy: Proxy, claim: Claim, say: Callable[[str], object]) -> Export | None:
    """Return the export of a claim whose root is there and mounted; None for one that was not provisioned yet."""
    board = proxy.board(claim.board)
    place = Place(proxy, board)
    made = place.root.made()
    if made is None or not made.whole:
        return None
    refuse_anothers(proxy, board, claim)
    image = image_store(proxy).get(made.image)
    if not place.root.ready(image):
        # A verb that holds the board does what its own claim needs. None does after a restart of the machine.
        with lock(proxy.config.run_folder, board.name, VERB, proxy.actor, Deadline(0)):
            place.root.unmount(Deadline(UNMOUNT_TIME))  # half of it, where one was killed
            place.root.mount(image)
        say(f"{board.name} of {claim.instance}: root mounted")
    return place.export


def _server(config: ProxyConfig) -> Exporter:
    return exporter(config.exports, os.path.join(config.state_folder, "exports"))
