# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`hetero VERB …`: what a proxy node does by itself, started by systemd or by hand. Each verb is a file of its own."""

from __future__ import annotations

from ..errors import BadInput
from . import backup, restore


def _reap(arguments):
    # Imported when it is asked for: a fault in a PDU's driver must not keep the roots from being restored.
    from . import reap

    return reap.main(arguments)


#: Verb → what runs it with the words after it; returns the exit code.
VERBS = {backup.VERB: backup.main, restore.VERB: restore.main, "reap": _reap}


def main(arguments):
    verb = arguments[0] if arguments else ""
    if verb not in VERBS:
        raise BadInput(f"no such verb (known: {', '.join(sorted(VERBS))})", f"hetero {verb}".strip(), "name one")
    return VERBS[verb](arguments[1:])
