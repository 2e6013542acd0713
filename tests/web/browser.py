"""A real Chromium, and a visitor who remembers what went wrong in it."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or ""
CLONE_NEWNET = 0x40000000  # sched.h


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium until the block ends."""
    if not CHROMIUM and os.environ.get("SENTINEL_LAB") != "required":
        pytest.skip("needs Debian's chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def own_network() -> Iterator[None]:
    """A network that nobody changes, for this thread and whatever it starts: Chromium cuts every
    connection (ERR_NETWORK_CHANGED) when an address of the machine comes or goes, as those of other
    workers' labs do. Nothing where that is not allowed: no labs are made there either."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        mine = libc.unshare(CLONE_NEWNET) == 0
        try:
            if mine:
                subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            if mine and libc.setns(before.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")


class Visitor:
    """A browser window that remembers what its console was told and what was asked elsewhere."""

    def __init__(self, browser: Browser, **how: Any) -> None:
        self.context = browser.new_context(**how)
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.clicks = 0
        self.page.on("console", lambda m: self._note(m.type, m.text))
        self.page.on("pageerror", lambda e: self.faults.append(str(e)))
        self.page.on("request", lambda r: self._elsewhere(r.url))

    def click(self, what: Locator) -> None:
        """And count it."""
        what.click()
        self.clicks += 1

    def axe(self) -> list[tuple[str, list[str]]]:
        """The accessibility faults of the page, each with the elements that have it."""
        found = Axe().run(self.page).response["violations"]
        return [(f["id"], [n["html"][:120] for n in f["nodes"]]) for f in found]

    def width(self) -> int:
        """Pixels that the page takes, which are more than the window's where it runs over."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def _note(self, kind: str, text: str) -> None:
        # The machine's network, which others change beside the lab.
        if kind in ("error", "warning") and "net::ERR_NETWORK_CHANGED" not in text:
            self.faults.append(text)

    def _elsewhere(self, url: str) -> None:
        if not url.startswith("http://127.0.0.1:"):
            self.faults.append(f"asked {url}")
