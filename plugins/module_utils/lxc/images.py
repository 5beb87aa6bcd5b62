# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that containers are made from: kept by hash as those of boards (images/store.py), but without a kernel."""

from __future__ import annotations

from ..images.store import ImageStore, default_name, is_source


def image_store(folder):
    """The images of an accelerator host."""
    return ImageStore(folder, kernels=False)


def resolve(folder, image, change=None, progress=None, deadline=None):
    """The image of that name; one that is given by its path is taken in first, under its file's name.

    :param change: a Change; its check mode takes nothing in, and returns None for an image that is not there yet.
    """
    store = image_store(folder)
    if is_source(image):
        return store.import_image(image, default_name(image), change=change, progress=progress, deadline=deadline)
    return store.get(image)
