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
