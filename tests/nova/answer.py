# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Nova itself says. Run by Nova's own environment, with a kind of question as argument: reads its cases as JSON
from standard input, writes an answer for each to standard output. Holds no rule of Nova's.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys

CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18  # linux/sched.h, linux/mount.h


def operators(cases):
    """extra_specs: {value, requirement} → true, false, or the name of the exception.

    A value that is no text and no list goes in as ComputeCapabilitiesFilter gives it: as its text.
    """
    from nova.scheduler.filters import extra_specs_ops

    for case in cases:
        value = case["value"]
        if value is not None and not isinstance(value, list):
            value = str(value)
        try:
            yield extra_specs_ops.match(value, case["requirement"])
        except (IndexError, TypeError, ValueError) as error:
            yield type(error).__name__


def effective(cases):
    """Options of a service: {root, argv, environment, wsgi} → their values, or {"error": name of the exception}.

    `root` holds the etc of the machine in question, which the service's process has in place of this machine's.
    """
    from nova import monkey_patch

    monkey_patch.patch(backend="threading")
    from nova.api.openstack import wsgi_app
    from nova import config
    from oslo_config import cfg

    def read(case):
        _mount(case["root"] + "/etc", "/etc")
        os.environ.clear()
        # the one thing that a web server's start wants beside files: a broker, and none is there to be asked
        os.environ.update(case["environment"], OS_DEFAULT__TRANSPORT_URL="fake://")
        sys.argv = case["argv"]
        try:
            if case["wsgi"]:
                wsgi_app.init_global_data(wsgi_app._get_config_files(), "osapi_compute", "nova-api-os-compute")
            else:
                config.parse_args(sys.argv, configure_db=False, init_rpc=False)
            pci, scheduler = config.CONF.pci, config.CONF.filter_scheduler
            return dict(
                alias=pci.alias,
                device_spec=pci.device_spec,
                enabled_filters=scheduler.enabled_filters,
                available_filters=scheduler.available_filters,
                pci_in_placement=scheduler.pci_in_placement,
            )
        except cfg.Error as error:
            return dict(error=type(error).__name__)

    for case in cases:
        yield _in_a_process(read, case)


def _in_a_process(function, case):
    """Nova's configuration is global, and mounts are the process's own: a child for each case."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        with os.fdopen(into, "w") as file:
            file.write(json.dumps(function(case)))
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as file:
        answer = file.read()
    if os.waitpid(child, 0)[1] != 0 or not answer:
        raise SystemExit(f"no answer to {case}")
    return json.loads(answer)


def _mount(source, target):
    libc = ctypes.CDLL(None, use_errno=True)
    for failed in (
        libc.unshare(CLONE_NEWNS),
        libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
        libc.mount(source.encode(), target.encode(), None, MS_BIND, None),
    ):
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


QUESTIONS = {"operators": operators, "effective": effective}


def main(question):
    cases = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        answers = list(QUESTIONS[question](cases))
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
