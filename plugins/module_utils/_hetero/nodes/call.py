# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module run from the copy on its node that this very file is in, as Ansible's wrapper runs one that it has sent.

A program: `python3 -I call.py`. plugin_utils/short_calls.py calls it.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from contextlib import suppress
from importlib import import_module

#: The line that it says before the module runs: from then on the call was made.
BEGUN = "hetero.compute: begun"


def main() -> None:
    """Run what standard input asks for: a `module`, its `arguments` as JSON text, the `profile` of that JSON.

    The module prints its result and ends the process. It is imported first, with all that it imports: of a copy that
    is damaged, nothing is begun.
    """
    request = json.load(sys.stdin)
    module = f"hetero.modules.{request['module']}"
    from ansible.module_utils import basic

    if not hasattr(import_module(module), "main"):
        sys.stderr.write(f"no module {request['module']} here\n")
        return
    _load_words(request["profile"])
    # runpy runs it as the program that it is, and warns of what was imported before
    del sys.modules[module]
    basic._ANSIBLE_ARGS = request["arguments"].encode()
    basic._ANSIBLE_PROFILE = request["profile"]
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _load_words(profile: str) -> None:
    """Import what Ansible imports only when a module ends: another release's set-up may have removed this copy then."""
    with suppress(ImportError):  # ansible-core before 2.19 has none of it
        from ansible.module_utils.common.json import Direction, get_module_encoder

        get_module_encoder(profile, Direction.MODULE_TO_CONTROLLER)


if __name__ == "__main__":
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 5)[0])
    main()
