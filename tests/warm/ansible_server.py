# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`ansible_server.py CHANNEL`: becomes ansible-playbook for each play of plays.py, in the environment of this program.

It has imported what each play imports, and read Ansible's settings and what plugins document of theirs. Playbooks,
inventories and variables are read by each play. Who asks gets a child of its own, not of this program: waiting for it,
signals and what it costs are as always.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import platform
import signal
import socket
import sys
import tempfile

CLONE_PARENT = 0x8000  # linux/sched.h
#: clone(2) in the kernel's tables of calls.
CLONE = {"x86_64": 56, "aarch64": 220}
COLLECTION = "hetero.compute"
ACTIONS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "plugins", "action")
#: Kinds of plugins, and those that plays use, beside the collection's own actions.
PLUGINS = {
    "action": "add_host assert debug fail include_tasks set_fact",
    "become": "sudo",
    "cache": "memory",
    "connection": "folder local",
    "inventory": "host_list script auto yaml ini toml",
    "shell": "sh",
    "strategy": "linear",
}
#: Loads filters before its play forks; it is only imported here, and does so once more in each play.
BEFORE_FORKS = "kept_templates"


def import_first():
    """Import what a play imports before it begins, and most of what it does later."""
    from ansible import cli
    from ansible.executor import task_executor  # noqa: F401
    from ansible.executor.process import worker  # noqa: F401
    from ansible.plugins import loader

    loader.init_plugin_loader()
    cli.init_plugin_loader = lambda *_paths: None  # a second time it would warn
    own = [f"{COLLECTION}.{name[:-3]}" for name in sorted(os.listdir(ACTIONS)) if name.endswith(".py")]
    for kind, names in PLUGINS.items():
        plugins = getattr(loader, f"{kind}_loader")
        for name in names.split() + (own if kind == "action" else []):
            plugins.get(name, class_only=True)
    callback = loader.callback_loader.get(BEFORE_FORKS, class_only=True)
    sys.modules[callback.__module__].load_before_forks()


def fork_for_parent():
    """Fork as os.fork() does, but a child of this process's parent; its id, 0 in the child."""
    python = ctypes.PyDLL(None)  # unlike CDLL's, its functions keep the interpreter's lock
    python.PyOS_BeforeFork()
    pid = python.syscall(CLONE[platform.machine()], CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def have_own_folder():
    """Have a folder for temporary files that is nobody else's: Ansible makes one as it reads its settings."""
    from ansible import constants
    from ansible.utils.path import cleanup_tmp_file

    atexit.unregister(cleanup_tmp_file)
    folder = os.path.dirname(constants.DEFAULT_LOCAL_TMP)
    constants.DEFAULT_LOCAL_TMP = tempfile.mkdtemp(prefix=f"ansible-local-{os.getpid()}", dir=folder)
    atexit.register(cleanup_tmp_file, constants.DEFAULT_LOCAL_TMP, warn=True)


def serve(channel):
    """Return what a play is asked for, in the play's process; None here, once nobody asks any more."""
    from forking import asked, drop, take

    while True:
        files = asked(channel)
        if not files:
            return None
        pid = fork_for_parent()
        if pid == 0:
            channel.close()
            return take(files)
        drop(files)
        channel.send(str(pid).encode())


def main(channel):
    from ansible.cli import playbook

    import_first()
    gc.collect()
    gc.freeze()
    request = serve(channel)
    if request is not None:
        sys.path[0] = os.path.dirname(sys.executable)  # where the command lies
        have_own_folder()
        os.chdir(request["cwd"])
        sys.argv = request["argv"]
        playbook.main()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
