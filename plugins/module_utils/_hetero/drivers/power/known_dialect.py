# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which PDUs with two dialects have obeyed by their command line, so that the next session begins there.

It lies in the run folder, and so until the node starts anew.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Iterable, Mapping, NamedTuple

from ...core.errors import BadInput
from ...core.json_file import read_object
from ...files.whole_file import write_hint

#: The folder below the run folder that holds a file for each such PDU.
FOLDER = "pdu-dialects"


class KnownDialect(NamedTuple):
    """What is known of one PDU.

    :param place: its host, port and account: what another one has shown is not believed.
    """

    run_folder: str
    name: str
    place: Mapping[str, str]

    @property
    def _path(self) -> str:
        return os.path.join(self.run_folder, FOLDER, f"{self.name.replace('/', '_')}.json")

    @property
    def outlets(self) -> set[str] | None:
        """The outlets that its menus and its command line both showed; None where that is not known."""
        with suppress(BadInput, OSError, KeyError, TypeError, ValueError):
            noted = read_object(self._path, "")
            if noted["name"] == self.name and noted["place"] == dict(self.place):
                return set(map(str, noted["outlets"]))
        return None

    def note(self, outlets: Iterable[str]) -> None:
        write_hint(self._path, json.dumps(dict(name=self.name, place=dict(self.place), outlets=sorted(outlets))))

    def forget(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)
