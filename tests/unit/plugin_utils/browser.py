# Copyright: hetero.compute contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in headless Chromium: what it lays out, and the pixels of a screenshot."""

from __future__ import annotations

import html
import json
import re
import struct
import subprocess
import zlib

#: Writes down what was laid out. The page's own policy, which forbids scripts, is taken out for it.
MEASURE = """<script>
const seen = name => [...document.querySelectorAll(name)].map(element => {
  const box = element.getBoundingClientRect();
  return {text: element.textContent, kind: element.getAttribute('class'), x: box.x, y: box.y, width: box.width,
          height: box.height, over: element.scrollWidth > element.clientWidth + 1};
});
const found = {cells: seen('.outlets li'), bars: seen('.boot'), pieces: seen('.boot rect'), body: seen('main'),
               labels: seen('.outlets b'), wide: document.documentElement.scrollWidth, title: document.title};
const place = document.createElement('output');
place.textContent = JSON.stringify(found);
document.body.append(place);
</script>"""


def _chromium(folder, *flags):
    """Chromium's standard output; root has no other sandbox than none."""
    words = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(folder, text, width=1320):
    """What the browser laid out of a page."""
    own, policies = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert policies == 1
    path = folder / "measured.html"
    path.write_text(own.replace("</body>", f"{MEASURE}</body>"))
    dom = _chromium(folder / "chromium", f"--window-size={width},1000", "--dump-dom", path.as_uri())
    return json.loads(html.unescape(re.search(r"<output>(.*?)</output>", dom, re.DOTALL)[1]))


def screenshot(folder, text, name, dark=False, width=1320, height=1000):
    """The page as it is, as rows of (red, green, blue); the picture stays in `folder`."""
    path, picture = folder / f"{name}.html", folder / f"{name}.png"
    path.write_text(text)
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    size = f"--window-size={width},{height}"
    _chromium(folder / "chromium", *scheme, size, f"--screenshot={picture}", path.as_uri())
    return pixels(picture.read_bytes())


def pixels(png):
    """The rows of a PNG as Chromium writes them: 8 bits a colour, not interlaced (PNG specification, 9: filtering)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, height, depth, colours, _packing, _filter, interlaced = struct.unpack(">IIBBBBB", data)
        elif kind == b"IDAT":
            packed += data
    assert (depth, interlaced) == (8, 0)
    step = {2: 3, 6: 4}[colours]
    raw, size, rows = zlib.decompress(packed), width * step, []
    above = bytearray(size)
    for number in range(height):
        start = number * (size + 1)
        row = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + size]), above, step)
        rows.append([tuple(row[place : place + 3]) for place in range(0, size, step)])
        above = row
    return rows


def _unfiltered(kind, row, above, step):
    for place in range(len(row)):
        left = row[place - step] if place >= step else 0
        corner = above[place - step] if place >= step else 0
        up = above[place]
        if kind == 1:
            row[place] = (row[place] + left) & 255
        elif kind == 2:
            row[place] = (row[place] + up) & 255
        elif kind == 3:
            row[place] = (row[place] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            row[place] = (row[place] + nearest[2]) & 255
    return row
