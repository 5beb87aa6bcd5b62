# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module as Ansible starts it: arguments come in, one JSON goes out, and its process ends. That process is a fork of
this one, where its imports, most of what a start costs, are done already."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import traceback

MODULES = "ansible_collections.hetero.compute.plugins.modules."


class Started:
    """A module that runs.

    :param environment: what is different in its environment
    """

    def __init__(self, name, arguments, environment):
        module = importlib.import_module(f"{MODULES}{name}")
        with contextlib.ExitStack() as streams:
            self._streams = [streams.enter_context(tempfile.TemporaryFile("w+")) for _stream in range(3)]
            self._close = streams.pop_all().close
        self._streams[0].write(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
        self._streams[0].seek(0)
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                code = self._run(module, environment)
            finally:
                os._exit(code)

    def _run(self, module, environment):
        # what this process was to do at its end is not the module's
        atexit._clear()
        os.environ.update(environment)
        for number, stream in enumerate(self._streams):
            os.dup2(stream.fileno(), number)
        sys.argv = [module.__file__]
        sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, range(3), "rww")
        try:
            module.main()
        except SystemExit as end:
            return end.code or 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def end(self, seconds=120):
        """(exit code, output, errors) once it has ended; killed when it takes longer."""
        process = os.pidfd_open(self._pid)
        try:
            if not select.select([process], [], [], seconds)[0]:
                os.kill(self._pid, signal.SIGKILL)
        finally:
            os.close(process)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        said = []
        for stream in self._streams[1:]:
            stream.seek(0)
            said.append(stream.read())
        self._close()
        return (code, *said)
