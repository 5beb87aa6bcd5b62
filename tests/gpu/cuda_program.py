# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CUDA program without a compiler: through libcuda, memory of the first GPU is taken, filled, copied back, compared.

Ends with 0 and the GPU's name, or with 1 and the call that failed. It knows nothing of containers.
"""

from __future__ import annotations

import ctypes
import sys

#: 64 MiB of words, and the pattern that each is filled with.
WORDS = 16 << 20
PATTERN = 0xC0FFEE01


class Cuda:
    """libcuda, whose calls return 0 or an error's number (cuda.h: CUresult)."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *arguments):
        number = getattr(self._library, name)(*arguments)
        if number:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(number, ctypes.byref(text))
            sys.exit(f"{name}: {number} {(text.value or b'?').decode()}")


def main():
    cuda = Cuda()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    memory = ctypes.c_uint64()
    name = ctypes.create_string_buffer(256)
    back = (ctypes.c_uint32 * WORDS)()
    size = ctypes.c_size_t(ctypes.sizeof(back))
    cuda("cuInit", 0)
    cuda("cuDeviceGet", ctypes.byref(device), 0)
    cuda("cuDeviceGetName", name, len(name), device)
    cuda("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    cuda("cuMemAlloc_v2", ctypes.byref(memory), size)
    cuda("cuMemsetD32_v2", memory, ctypes.c_uint(PATTERN), ctypes.c_size_t(WORDS))
    cuda("cuMemcpyDtoH_v2", back, memory, size)
    if bytes(back) != PATTERN.to_bytes(4, sys.byteorder) * WORDS:
        sys.exit("what came back from the GPU is not what was put there")
    cuda("cuMemFree_v2", memory)
    cuda("cuCtxDestroy_v2", context)
    sys.stdout.write(f"{name.value.decode()}: {size.value >> 20} MiB filled, copied back and compared\n")


if __name__ == "__main__":
    main()
