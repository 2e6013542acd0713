"""The status page and `status` of a made-up cluster, and a mail."""

import shutil
from pathlib import Path

from docs.pictures_scene import DEAD, render_status, served_page
from docs.pictures_terminal import WIDTH, draw

SIZE = {"width": 1180, "height": 900}
PAGES = {"/": "page", f"/jobs/one?check=progress&subject={DEAD}": "training"}


def page(place: Path) -> None:
    """The page of a cluster at night, and `status` of it."""
    draw("status", "sentinel status", render_status(WIDTH), place)
    from playwright.sync_api import sync_playwright

    with served_page() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme in ("light", "dark"):
            window = browser.new_context(color_scheme=scheme, viewport=SIZE).new_page()
            for at, name in PAGES.items():
                window.goto(address + at)
                window.wait_for_timeout(1500)
                path = place / f"{name}-{scheme}.png"
                window.screenshot(path=path, full_page=True)
                print(path)
        browser.close()


def mail(place: Path) -> None:
    """The mail about a training that died, as a mail program of that width shows it."""
    from playwright.sync_api import sync_playwright

    from sentinel.channels.email import Email
    from sentinel.channels.format.examples import SAMPLES
    from sentinel.config.default import settings_from_data
    from sentinel.wiring import app

    block = {"kind": "email", "to": ["you@example.org"], "from": "you@example.org", "host": "x"}
    settings = settings_from_data({"channels": {"mail": block}}, app.CHECKS, app.CHANNELS)
    channel: Email = settings.channels[0].plugin
    html = dict(channel.preview(SAMPLES["firing"]))["html"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width, name in ((800, "mail"), (360, "mail-phone")):
            window = browser.new_page(viewport={"width": width, "height": 640})
            window.set_content(html)
            window.screenshot(path=place / f"{name}.png", full_page=True)
            print(place / f"{name}.png")
        browser.close()
