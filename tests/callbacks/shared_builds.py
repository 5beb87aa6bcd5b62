# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A callback of no event: what each play of a test run would do anew is done once (tests/builds.py).

Ansible packs each module once a play, into a folder that ends with the play; here that folder is a link. What is packed
is compiled, too: a Python of this one's version, as the lab's nodes have, need not compile up to two hundred files at
each call of a module; any other takes the source, which is there as well. A file of variables, which Ansible reads and
parses for each task of a play, is read once in a play. Who waits for a task looks a hundred times a second, not a
thousand times. And garbage in cycles is not looked for: a play ends before there is much, and each look, in each
process that is forked for a task, touches all that the play has read.
"""

from __future__ import annotations

import base64
import dataclasses
import gc
import importlib.util
import io
import marshal
import os
import zipfile

from ansible import constants
from ansible.executor import module_common
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: shared_builds
type: aggregate
short_description: Share packed modules between plays
description: Lays a link to the folder that the environment's HETERO_BUILDS names where Ansible keeps packed modules.
author: hetero.compute contributors (@hetero-compute)
"""

#: How a compiled file begins that is taken without a look at its source (PEP 552: by a hash, which is not checked).
HEAD = importlib.util.MAGIC_NUMBER + (0b01).to_bytes(4, "little") + bytes(8)
#: Seconds between two looks for a task's end.
POLL = 0.01


def compiled(packed):
    """The archive with the code of each source file beside it, where zipimport looks first."""
    archive = io.BytesIO(base64.b64decode(packed))
    with zipfile.ZipFile(archive, "a") as files:
        for source in list(files.infolist()):
            code = compile(files.read(source), source.filename, "exec", dont_inherit=True)
            beside = zipfile.ZipInfo(f"{source.filename}c", source.date_time)
            files.writestr(beside, HEAD + marshal.dumps(code), source.compress_type)
    return base64.b64encode(archive.getvalue())


def compile_what_is_packed():
    cached = getattr(module_common, "_CachedModule", None)
    if cached is None:
        return  # an older Ansible has no such step
    dump = cached.dump
    cached.dump = lambda module, path: dump(dataclasses.replace(module, zip_data=compiled(module.zip_data)), path)


def read_variables_once():
    load = DataLoader.load_from_file

    def from_file(loader, name, cache="all", **options):
        # "vaulted" is what is asked for files of variables: keep those only that were encrypted
        return load(loader, name, cache="all" if cache == "vaulted" else cache, **options)

    DataLoader.load_from_file = from_file


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "shared_builds"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        folder = os.path.join(os.environ["HETERO_BUILDS"], __version__)
        os.makedirs(folder, exist_ok=True)
        os.symlink(folder, os.path.join(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache"))
        compile_what_is_packed()
        read_variables_once()
        constants.DEFAULT_INTERNAL_POLL_INTERVAL = POLL
        gc.disable()
