# SPDX-License-Identifier: GPL-2.0-only
"""A page in a browser, under watch."""

from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, Route


class Opener:
    """Opens pages, and writes down whatever they complain of or ask for."""

    def __init__(self, browser: Browser) -> None:
        self.faults: list[str] = []
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    def open(self, file: Path, **options: object) -> Page:
        context = self._browser.new_context(offline=True, **options)  # type: ignore[arg-type]
        self._contexts.append(context)
        page = context.new_page()
        page.route("**/*", self._asks)
        page.on("console", self._says)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.goto(file.as_uri())
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _asks(self, route: Route, request: Request) -> None:
        if request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            self.faults.append(f"asks for {request.url}")
            route.abort()

    def _says(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")


# The page's policy lets nobody evaluate a text: what waits is given as a function.
ALL_DRAWN = """
() => {
  const plots = [...document.querySelectorAll(".plot")];
  return plots.length > 0 && plots.every((plot) => plot.dataset.drawn === "yes");
}
"""


def draw_all(page: Page) -> None:
    """Open every part, as for paper."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(ALL_DRAWN)


# --- What a reader sees ------------------------------------------------------------------------

CUT = """
() => {
  const wide = document.documentElement.clientWidth;
  const inside = (one) => one.parentElement.closest(".scroll, svg, pre");
  return [...document.querySelectorAll("main *, header *, footer *")]
    .filter((one) => !inside(one) && one.getBoundingClientRect().right > wide + 1)
    .map((one) => one.outerHTML.slice(0, 80));
}
"""
"""Parts that leave the page at the right, outside of boxes that scroll."""

OVERLAPS = """
() => [...document.querySelectorAll("tbody tr")].filter((row) => {
  const boxes = [...row.cells].map((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getBoundingClientRect();
  }).filter((box) => box.width);
  return boxes.some((box, place) => place && box.left < boxes[place - 1].right);
}).map((row) => row.outerHTML.slice(0, 120))
"""
"""Rows of tables in which a cell lies on the one before it."""

WIDE = """
() => [...document.querySelectorAll(".scroll")].filter((one) =>
  one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} in ${one.clientWidth}`)
"""
"""Tables that do not fit into their box, which then scrolls."""

SVG_TEXTS = """
() => {
  const faults = [];
  // Vega keeps numbers that it hides, without opacity.
  const seen = (text) => text.textContent && text.getAttribute("opacity") !== "0";
  for (const plot of document.querySelectorAll("svg")) {
    if (!plot.checkVisibility()) continue;
    const whole = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll("text")].filter(seen);
    const boxes = texts.map((text) => text.getBoundingClientRect());
    boxes.forEach((one, place) => {
      const text = texts[place].textContent;
      if (text.includes("…") || one.left < whole.left - 1 || one.right > whole.right + 1 ||
          one.top < whole.top - 3 || one.bottom > whole.bottom + 3)
        faults.push(`${text} is cut`);
      for (let next = place + 1; next < boxes.length; next++) {
        const other = boxes[next];
        if (one.left < other.right - 1 && other.left < one.right - 1 &&
            one.top + 3 < other.bottom && other.top + 3 < one.bottom)
          faults.push(`${text} is on ${texts[next].textContent}`);
      }
    });
  }
  return faults;
}
"""
"""Texts of pictures that leave their picture, or lie on another text."""

SMALLEST = """
() => Math.min(...[...document.querySelectorAll("svg text")].map((text) => {
  const { a, b } = text.getScreenCTM(); // of a text that is turned, a alone is 0
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
}))
"""
"""The size in pixels of the smallest text in a picture."""

CONTRAST = """
() => {
  const parts = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (value) => {
    const [red, green, blue] = parts(value).slice(0, 3).map((part) => {
      const one = part / 255;
      return one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (it) => {
    for (let one = it; one; one = one.parentElement) {
      const value = getComputedStyle(one).backgroundColor;
      if (parts(value).length === 3 || parts(value)[3] === 1) return value;
    }
    return "rgb(255, 255, 255)";
  };
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const it = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || it.closest("script, style, noscript, .skip")) continue;
    if (!it.checkVisibility()) continue;
    const style = getComputedStyle(it);
    const ink = light(it.closest("svg") ? style.fill : style.color);
    const paper = light(ground(it));
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    seen += 1;
    if (ratio < 4.5) faults.add(`${it.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return { seen, faults: [...faults] };
}
"""
"""Texts that do not stand out from their ground, and how many there are in all."""


def check_looks(page: Page, width: int, *, least_words: int) -> None:
    """Check that nothing on a page is cut or overlaps, and that words stand out by day and night.

    least_words: contrast has to be found for more texts than that.
    """
    assert page.evaluate(CUT) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(SVG_TEXTS) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRAST)
        assert found["seen"] > least_words
        assert found["faults"] == []
