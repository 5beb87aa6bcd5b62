# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server that has nearly nothing to say, and says it for ever: an import ends in its time."""

from __future__ import annotations

import http.server
import threading

import pytest

from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.deadline import Deadline
from ansible_collections.hetero.compute.plugins.module_utils._hetero.core.errors import TimedOut
from ansible_collections.hetero.compute.plugins.module_utils._hetero.images import sources


class Drips(http.server.BaseHTTPRequestHandler):
    """It sends a byte each few milliseconds, of a body whose length it does not tell."""

    over = threading.Event()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        try:
            while not self.over.wait(0.005):
                self.wfile.write(b"x")
        except OSError:
            return

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Drips)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    Drips.over.clear()
    thread.start()
    # an earlier code would wait for a whole chunk: this ends the body, so that the test fails rather than hangs
    end = threading.Timer(30, Drips.over.set)
    end.start()
    yield f"http://127.0.0.1:{server.server_port}/image.tar"
    end.cancel()
    Drips.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_that_sends_byte_by_byte_is_not_waited_for(url, tmp_path):
    """Lost: an import's time limit, and the lock of its image, to a server that sends a byte now and then."""
    with pytest.raises(TimedOut, match=r"not fetched within 0\.5 s"):
        sources._download(url, str(tmp_path / "image.tar"), "1" * 64, Deadline(0.5))
    assert not Drips.over.is_set(), "it ended by itself, not with the body"
