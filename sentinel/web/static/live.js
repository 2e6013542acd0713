// Keeps an open page true: told by server-sent events that something was written, it fetches the
// same page again and puts what has changed in place. Without it the page is as complete.
"use strict";
(() => {
  const PAUSE = 700, ANSWER = 10000, AGAIN = 3000;
  const SILENCE = 16000;  // the server speaks every 5 seconds
  const sign = document.getElementById("live");
  // An answer that was refused stands at an address that only takes answers.
  const here = document.querySelector("link[rel=canonical]")?.href ?? location.href;
  let busy = false, again = false, events = null, watch = 0;

  const say = (text) => { if (sign && sign.textContent !== text) sign.textContent = text; };
  const banner = document.getElementById("lost"), clock = document.getElementById("clock");
  const lost = (why) => {
    say(`not live: ${why}`);
    if (banner.hidden) banner.textContent = `Not live: ${why}. All this is as of ${clock.textContent}.`;
    banner.hidden = false;
  };
  const alive = () => { say("live"); banner.hidden = true; };

  const typing = (part) => {
    const at = document.activeElement;
    return at && part.contains(at) && at.type !== "checkbox" && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName);
  };

  // Someone copies from it.
  const selected = (part) => {
    const held = getSelection();
    return held && !held.isCollapsed && held.containsNode(part, true);
  };

  // Whether a part of the page has come or gone; what is in the parts is compared by itself.
  const sections = (of) => [...of.children].map((part) => part.getAttribute("aria-labelledby")).join();

  // Ages go on while nobody writes, and while nobody answers: reckoned from the server's clock and
  // from how long ago it said so, never from this machine's, which may be an hour off.
  let told = Number(document.body.dataset.at), heard_at = performance.now();
  const lasting = (seconds) => {
    const n = Math.max(0, Math.floor(seconds)), two = (x) => String(x).padStart(2, "0");
    const m = Math.floor(n / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
    if (m < 2 && n % 60 || !m) return `${n}s`;
    if (m < 60) return n % 60 ? `${m}m ${two(n % 60)}s` : `${m}m`;
    if (h < 24) return m % 60 ? `${h}h ${two(m % 60)}m` : `${h}h`;
    return h % 24 ? `${d}d ${h % 24}h` : `${d}d`;
  };
  const tick = () => {
    const now = told + (performance.now() - heard_at) / 1000;
    for (const time of document.querySelectorAll("time.age")) {
      const text = lasting(now - Date.parse(time.dateTime) / 1000);
      if (time.textContent !== text && !selected(time)) time.textContent = text;
    }
  };
  setInterval(tick, 1000);

  // The viewer's own time beside the cluster's, where they differ.
  const HERE = new Intl.DateTimeFormat("en-GB", {weekday: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short"});
  const zones = (of) => {
    for (const time of of.querySelectorAll("time.at")) {
      const at = new Date(time.dateTime), shown = time.textContent.slice(11, 16);
      const mine = `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`;
      if (mine !== shown) time.textContent += ` (${HERE.format(at)})`;
    }
  };
  zones(document);

  const swap = (fresh) => {
    zones(fresh);
    for (const now of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(now.id);
      if (!next || next.innerHTML === now.innerHTML || typing(now) || selected(now)) continue;
      if (now.dataset.live === "sections" && sections(now) === sections(next)) continue;
      if (now.dataset.live === "text") { now.textContent = next.textContent; continue; }
      const open = new Set([...now.querySelectorAll("details[open]")].map((d) => d.id));
      for (const details of next.querySelectorAll("details")) if (open.has(details.id)) details.open = true;
      const ticked = new Set([...now.querySelectorAll(":checked")].map((box) => box.value));
      for (const box of next.querySelectorAll("[type=checkbox]")) box.checked = ticked.has(box.value);
      const name = (e) => e.getAttribute("href") ?? e.getAttribute("value");
      const held = now.contains(document.activeElement) && name(document.activeElement);
      now.replaceChildren(...next.childNodes);
      if (held) [...now.querySelectorAll("a,[type=checkbox]")].find((e) => name(e) === held)?.focus({preventScroll: true});
    }
    document.title = fresh.title;
    told = Number(fresh.body.dataset.at); heard_at = performance.now();
    document.dispatchEvent(new Event("renewed"));
  };

  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true; again = false;
    const limit = new AbortController(), late = setTimeout(() => limit.abort(), ANSWER);
    try {
      const answer = await fetch(here, {cache: "no-store", signal: limit.signal});
      if (answer.ok) { swap(new DOMParser().parseFromString(await answer.text(), "text/html")); alive(); }
      else lost(`sentinel answers ${answer.status}`);
    } catch { lost("no answer from sentinel"); }
    clearTimeout(late);
    setTimeout(() => { busy = false; if (again) refresh(); }, PAUSE);
  };

  const heard = () => { clearTimeout(watch); watch = setTimeout(retry, SILENCE); };
  const retry = () => { lost("no answer from sentinel"); listen(); };
  const leave = () => { clearTimeout(watch); events?.close(); events = null; };

  // A browser goes on by itself after a broken connection, but neither after an answer that was not
  // 200 (a proxy's while sentinel restarts) nor where a connection is dead and nobody says so. A page
  // that nobody sees lets go: browsers have six connections a server for all their windows.
  const listen = () => {
    leave();
    if (document.hidden) return;
    events = new EventSource("/events");
    events.addEventListener("changed", () => { heard(); refresh(); });
    events.addEventListener("error", () => {
      lost("no answer from sentinel");
      if (events?.readyState === EventSource.CLOSED) { clearTimeout(watch); watch = setTimeout(listen, AGAIN); }
    });
    heard();
  };

  let holding = false;
  document.addEventListener("selectionchange", () => {
    const held = getSelection(), before = holding;
    holding = Boolean(held) && !held.isCollapsed;
    if (before && !holding) refresh();
  });
  document.addEventListener("visibilitychange", () => { listen(); if (!document.hidden) refresh(); });
  window.addEventListener("pagehide", leave);
  window.addEventListener("pageshow", (shown) => { if (shown.persisted) { listen(); refresh(); } });
  listen();
})();
