// Keeps an open page true: told by server-sent events that something was written, it fetches the
// same page again and puts what has changed in place. Without it the page is as complete.
"use strict";
(() => {
  const PAUSE = 700;
  const sign = document.getElementById("live");
  // An answer that was refused stands at an address that only takes answers.
  const here = document.querySelector("link[rel=canonical]")?.href ?? location.href;
  let busy = false, again = false;

  const say = (text) => { if (sign && sign.textContent !== text) sign.textContent = text; };

  const typing = (part) => {
    const at = document.activeElement;
    return at && part.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
  };

  // Whether a part of the page has come or gone; what is in the parts is compared by itself.
  const sections = (of) => [...of.children].map((part) => part.getAttribute("aria-labelledby")).join();

  const swap = (fresh) => {
    for (const now of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(now.id);
      if (!next || next.innerHTML === now.innerHTML || typing(now)) continue;
      if (now.dataset.live === "sections" && sections(now) === sections(next)) continue;
      if (now.dataset.live === "text") { now.textContent = next.textContent; continue; }
      const open = new Set([...now.querySelectorAll("details[open]")].map((d) => d.id));
      for (const details of next.querySelectorAll("details")) if (open.has(details.id)) details.open = true;
      const held = now.contains(document.activeElement) && document.activeElement.getAttribute("href");
      now.replaceChildren(...next.childNodes);
      if (held) {
        const link = [...now.querySelectorAll("a")].find((a) => a.getAttribute("href") === held);
        if (link) link.focus({preventScroll: true});
      }
    }
    document.title = fresh.title;
  };

  const refresh = async () => {
    if (busy || document.hidden) { again = true; return; }
    busy = true; again = false;
    try {
      const answer = await fetch(here, {cache: "no-store"});
      if (answer.ok) { swap(new DOMParser().parseFromString(await answer.text(), "text/html")); say("live"); }
    } catch { say("not live: no answer from sentinel"); }
    setTimeout(() => { busy = false; if (again) refresh(); }, PAUSE);
  };

  const events = new EventSource("/events");
  events.addEventListener("open", () => { say("live"); });
  events.addEventListener("changed", refresh);
  events.addEventListener("error", () => { say("not live: no answer from sentinel"); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
  window.addEventListener("pagehide", () => events.close());
})();
