# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""liblxc.so.1 by ctypes: its table of functions, its strings, and its messages about failures.

liblxc.py knows what a container is and what is asked of it.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int, c_void_p
from typing import Any

from ...core.errors import HeteroError
from ...core.plays import play

LIBRARY = "liblxc.so.1"
#: Bytes of an answer that are read. A configuration's value has a few lines.
ANSWER = 1 << 16

_string, _number, _free = c_char_p, c_int, c_void_p


class Table(Structure):
    """The beginning of struct lxc_container (lxc/lxccontainer.h), to whose end liblxc.so.1 only adds."""


def _function(result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, POINTER(Table), *arguments, use_errno=True)


def _unused(*names: str) -> list[tuple[str, Any]]:
    return [(name, c_void_p) for name in names]


Table._fields_ = [
    *_unused("name", "configfile", "pidfile", "slock", "privlock"),
    ("numthreads", c_int),
    *_unused("lxc_conf", "error_string"),
    ("error_num", c_int),
    ("daemonize", c_bool),
    ("config_path", c_char_p),
    ("is_defined", _function(c_bool)),
    ("state", _function(_string)),
    ("is_running", _function(c_bool)),
    *_unused("freeze", "unfreeze"),
    ("init_pid", _function(_number)),
    *_unused("load_config", "start", "startl"),
    ("stop", _function(c_bool)),
    *_unused("want_daemonize", "want_close_all_fds"),
    ("config_file_name", _function(_free)),
    ("wait", _function(c_bool, _string, _number)),
    ("set_config_item", c_void_p),
    ("destroy", _function(c_bool)),
    *_unused("save_config", "create", "createl", "rename", "reboot"),
    ("shutdown", _function(c_bool, _number)),
    *_unused("clear_config", "clear_config_item"),
    ("get_config_item", _function(_number, _string, _string, _number)),
    ("get_running_config_item", _function(_free, _string)),
    *_unused("get_keys", "get_interfaces", "get_ips", "get_cgroup_item"),
    ("set_cgroup_item", _function(c_bool, _string, _string)),
]


class Log(Structure):
    """struct lxc_log (lxc/lxccontainer.h)."""

    _fields_ = [
        *((name, c_char_p) for name in ("name", "lxcpath", "file", "level", "prefix")),
        ("quiet", c_bool),
    ]


class Library:
    """liblxc, loaded once in a process, with its errors written to a file in memory."""

    _loaded: Library | None = None

    def __init__(self) -> None:
        try:
            lxc = ctypes.CDLL(LIBRARY)
        except OSError as error:
            remedy = f"install package lxc, or run {play('gpu_host')}"
            raise HeteroError(f"is not there ({error})", LIBRARY, remedy) from error
        self.new = lxc.lxc_container_new
        self.new.restype, self.new.argtypes = POINTER(Table), [c_char_p, c_char_p]
        self.put = lxc.lxc_container_put
        self.put.restype, self.put.argtypes = c_int, [POINTER(Table)]
        self._defined = lxc.list_defined_containers
        self._defined.restype, self._defined.argtypes = c_int, [c_char_p, POINTER(POINTER(c_void_p)), c_void_p]
        self._free = ctypes.CDLL(None).free
        self._free.restype, self._free.argtypes = None, [c_void_p]
        self._said = os.memfd_create("liblxc")
        log = Log(b"hetero", None, f"/proc/self/fd/{self._said}".encode(), b"ERROR", b"hetero", True)
        lxc.lxc_log_init(ctypes.byref(log))
        lxc.lxc_get_version.restype = c_char_p
        self.version = lxc.lxc_get_version().decode()

    @classmethod
    def get(cls) -> Library:
        if cls._loaded is None:
            cls._loaded = cls()
        return cls._loaded

    def text(self, pointer: Any) -> str | None:
        """Return a string that the library allocated, and free it; None for none."""
        if not pointer:
            return None
        try:
            return os.fsdecode(ctypes.string_at(pointer))
        finally:
            self._free(pointer)

    def defined(self, lxcpath: str) -> list[str]:
        """Return the names of all containers that are defined below `lxcpath`."""
        found = POINTER(c_void_p)()
        number = self._defined(os.fsencode(lxcpath), ctypes.byref(found), None)
        if number < 0:
            raise HeteroError(f"cannot be listed ({self.said() or 'liblxc says no more'})", lxcpath, "check the folder")
        names = [self.text(found[at]) or "" for at in range(number)]
        self._free(ctypes.cast(found, c_void_p))
        return names

    def said(self) -> str:
        """Return the texts of the library's errors since the last call, without their places in its source."""
        size = os.fstat(self._said).st_size
        lines = os.pread(self._said, size, 0).decode("utf-8", "replace").splitlines()
        os.ftruncate(self._said, 0)
        # "hetero c1 20261120144947.494 ERROR    conf - ../src/lxc/conf.c:run_buffer:322 - Script exited with status 1"
        return "; ".join(line.split(" - ", 2)[-1] for line in lines[-4:])
