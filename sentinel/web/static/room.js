// The machine room on one canvas: racks, their nodes, a cell for each GPU. What a colour means can be
// chosen; pointer and arrow keys tell one node; the same stands in the table below.
"use strict";
(() => {
  const box = document.getElementById("room"), still = document.getElementById("still");
  if (!box) return;
  const AGAIN = 15000, GAP = 1, SIDE = 7, HEAD = 15, MOST = 64, APART = 8, LARGEST = 16000, MANY = 4000;
  let TALL = 6, NAME = 14, GPU = 5;  // pixels of a node, its own cell, a GPU's
  const canvas = document.createElement("canvas"), told = document.createElement("p"), words = document.createElement("span");
  const link = document.createElement("a"), choice = document.createElement("select"), label = document.createElement("label"), key = document.createElement("ul");
  const MODES = {state: "state", job: "job", user: "user", heat: "temperature", score: "lemon score", alerts: "alerts"};
  let room = null, places = [], racks = [], at = -1, read = 0, wide = 0;

  const css = (name) => getComputedStyle(box).getPropertyValue(`--${name}`).trim() || "gray";
  const hue = (text) => {
    let n = 7;
    for (const c of text) n = (n * 31 + c.codePointAt(0)) % 99991;
    return `hsl(${n * 47 % 360} ${45 + n % 40}% ${42 + n % 23}%)`;
  };
  const warm = (t) => `hsl(${Math.max(0, Math.min(210, 210 - (t - 30) * 3.5))} 70% 50%)`;
  const TONE = {critical: "#d92d20", warning: "#e8700a", unknown: "#9155d9", ok: "#8fa3b5"};
  const JUDGED = {lemon: "#d92d20", suspect: "#e8700a", watched: "#f0a13a"};

  const known = new Map();
  const pixel = (c, colour) => {
    if (!known.has(colour)) {
      c.fillStyle = colour;  // the browser itself turns any colour into #rrggbb
      const [r, g, b] = [1, 3, 5].map((n) => parseInt(c.fillStyle.slice(n, n + 2), 16));
      known.set(colour, (255 << 24 | b << 16 | g << 8 | r) >>> 0);
    }
    return known.get(colour);
  };

  // Of a node: the colour of itself, and of its GPU n; null: nothing is known.
  const painter = () => {
    const none = css("edge"), mode = choice.value, own = (n) => room.colours[room.states[room.state[n]]];
    const job = (n) => room.job[n] < 0 ? null : room.jobs[room.job[n]];
    const suspects = (n) => room.suspects[n] || [];
    return {
      state: [own, () => null],
      job: [(n) => job(n) ? hue(job(n)[0]) : none, () => null],
      user: [(n) => job(n) ? hue(job(n)[2]) : none, () => null],
      heat: [(n) => room.heat[n] ? warm(Math.max(...room.heat[n].map((h) => h[1]))) : none,
        (n, g) => room.heat[n] ? (room.heat[n][g] ? warm(room.heat[n][g][1]) : none) : null],
      score: [(n) => suspects(n).length ? JUDGED[suspects(n)[0][2]] || TONE.warning : none,
        (n, g) => suspects(n).length ? (suspects(n)[g] ? JUDGED[suspects(n)[g][2]] || TONE.warning : none) : null],
      alerts: [(n) => room.alerts[n] ? TONE[room.alerts[n][0]] || TONE.unknown : none, () => null],
    }[mode];
  };

  // What `boxes` of sentinel/status/machine_room.py keeps free for it is as large.
  const layout = (width) => {
    [TALL, NAME, GPU] = room.names.length > MANY ? [3, 8, 3] : [6, 14, 5];
    const most = room.gpus.reduce((a, b) => Math.max(a, Math.min(b, 16)), 0), cell = NAME + most * GPU + 3;
    let x = 0, y = 0, tallest = 0;
    places = new Array(room.names.length); racks = [];
    for (const rack of room.racks) {
      const columns = Math.max(1, Math.min(Math.ceil(rack.nodes.length / MOST), Math.floor((width - 2 * SIDE) / cell)));
      const rows = Math.ceil(rack.nodes.length / columns), w = Math.max(columns * cell + SIDE, 56), h = HEAD + rows * (TALL + GAP) + SIDE;
      if (x && x + w > width) { x = 0; y += tallest + APART; tallest = 0; }
      rack.nodes.forEach((n, i) => { places[n] = [x + 4 + Math.floor(i / rows) * cell, y + HEAD + i % rows * (TALL + GAP), rack, i]; });
      racks.push([rack, x, y, w - 3, h]);
      x += w + APART; tallest = Math.max(tallest, h);
    }
    return [y + tallest + 2, cell];
  };

  const draw = () => {
    const width = box.clientWidth || 300, [height] = layout(width), scale = Math.min(devicePixelRatio || 1, LARGEST / height);
    canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
    canvas.width = width * scale; canvas.height = height * scale;
    wide = box.clientWidth;
    const c = canvas.getContext("2d", {willReadFrequently: true}), [node, gpu] = painter(), dark = css("dim"), edge = css("edge");
    c.setTransform(scale, 0, 0, scale, 0, 0);
    // Cells are written as pixels: a hundred thousand rectangles take a browser seconds.
    const image = c.createImageData(canvas.width, canvas.height), pixels = new Uint32Array(image.data.buffer), tall = Math.max(1, Math.round(TALL * scale));
    const put = (colour, x, y, w) => {
      const from = Math.round(x * scale), to = Math.max(from + 1, Math.round((x + w) * scale)), value = pixel(c, colour);
      let row = Math.round(y * scale) * canvas.width;
      for (let i = 0; i < tall; i++, row += canvas.width) pixels.fill(value, row + from, row + to);
    };
    places.forEach(([x, y], n) => {
      const own = node(n);
      put(own, x, y, NAME - 2);
      for (let g = 0; g < Math.min(room.gpus[n], 16); g++) put(gpu(n, g) || own, x + NAME + g * GPU, y, GPU - 1);
    });
    c.putImageData(image, 0, 0);
    c.font = "11px system-ui,sans-serif"; c.strokeStyle = edge;
    for (const [rack, x, y, w, h] of racks) {
      c.strokeRect(x + .5, y + .5, w, h);
      c.fillStyle = dark;
      c.save(); c.beginPath(); c.rect(x, y, w, HEAD); c.clip(); c.fillText(rack.name, x + 4, y + 11); c.restore();
    }
    if (places[at]) {
      const [x, y] = places[at];
      c.strokeStyle = css("ink"); c.lineWidth = 2;
      c.strokeRect(x - 2, y - 2, NAME + Math.min(room.gpus[at], 16) * GPU + 2, TALL + 4); c.lineWidth = 1;
    }
    legend();
  };

  const legend = () => {
    key.hidden = choice.value === "state";  // that one stands above, without scripts too
    if (key.hidden) return;
    const counts = new Map(), [node] = painter(), mode = choice.value;
    const word = (n) => mode === "state" ? room.states[room.state[n]] : mode === "alerts" ? (room.alerts[n]?.[0] ?? "no alert")
      : mode === "score" ? (room.suspects[n]?.[0][2] ?? "not under suspicion")
      : mode === "heat" ? (room.heat[n] ? `${Math.floor(Math.max(...room.heat[n].map((h) => h[1])) / 10) * 10} °C or more` : "not known")
      : room.job[n] < 0 ? "no job that is seen" : mode === "user" ? room.jobs[room.job[n]][2] : `${room.jobs[room.job[n]][0]} ${room.jobs[room.job[n]][1]}`;
    room.names.forEach((_, n) => {
      const w = word(n), known = counts.get(w);
      if (known) known[1]++; else counts.set(w, [node(n), 1]);
    });
    const rows = [...counts].sort((a, b) => b[1][1] - a[1][1]);
    key.replaceChildren(...rows.slice(0, 14).map(([text, [colour, count]]) => {
      const item = document.createElement("li"), mark = document.createElement("i"), many = document.createElement("strong");
      mark.style.background = colour; many.textContent = ` ${count.toLocaleString("en-US")}`;
      item.append(mark, text, many);
      return item;
    }));
    if (rows.length > 14) { const item = document.createElement("li"); item.textContent = `and ${rows.length - 14} more`; key.append(item); }
  };

  const tell = (n) => {
    at = n;
    const job = room.job[n] < 0 ? "" : `job ${room.jobs[room.job[n]].join(" of ").replace(" of ", " ")}`;
    const bad = (room.suspects[n] || []).map(([id, slot, judged, score]) => `${judged} ${id} ${slot} score ${score}`).join(", ");
    const heat = (room.heat[n] || []).map((h) => `${h[1]}`).join(" "), alerts = room.alerts[n];
    words.textContent = [`${places[n][2].name}: ${room.names[n]}`, room.states[room.state[n]], room.gpus[n] ? `${room.gpus[n]} GPUs` : "", job,
      room.reasons[n] || "", alerts ? `${alerts[1]} alert${alerts[1] > 1 ? "s" : ""}, ${alerts[0]}` : "", bad, heat && `${heat} °C`].filter(Boolean).join(" · ");
    link.href = `/nodes/one?name=${encodeURIComponent(room.names[n])}`;
    link.hidden = false;
  };
  const under = (event) => {
    const {offsetX: x, offsetY: y} = event, mine = racks.find(([, rx, ry, w, h]) => x >= rx && x <= rx + w && y >= ry && y <= ry + h);
    return mine ? mine[0].nodes.find((n) => y >= places[n][1] - 1 && y < places[n][1] + TALL + 1 && x >= places[n][0] - 2 && x < places[n][0] + NAME + Math.min(room.gpus[n], 16) * GPU + 2) ?? -1 : -1;
  };
  const move = (event) => {
    if (event.key === "Enter" && at >= 0) { location.href = link.href; return; }
    if (!{ArrowUp: 1, ArrowDown: 1, ArrowLeft: 1, ArrowRight: 1, Home: 1, End: 1}[event.key]) return;
    event.preventDefault();
    const order = room.racks.flatMap((r) => r.nodes);
    if (at < 0 || event.key === "Home") tell(order[0]);
    else if (event.key === "End") tell(order[order.length - 1]);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const n = order.indexOf(at) + (event.key === "ArrowDown" ? 1 : -1);
      if (order[n] !== undefined) tell(order[n]);
    } else {
      const r = room.racks.indexOf(places[at][2]) + (event.key === "ArrowRight" ? 1 : -1), rack = room.racks[r];
      if (rack) tell(rack.nodes[Math.min(places[at][3], rack.nodes.length - 1)]);
    }
    draw();
    const top = canvas.getBoundingClientRect().top + places[at][1];
    if (top < 90 || top > innerHeight - 40) scrollBy({top: top - innerHeight / 2});
  };

  const renew = async () => {
    if (performance.now() - read < AGAIN && room) return;
    read = performance.now();
    try {
      const answer = await fetch("/nodes/room.json", {cache: "no-store"});
      if (!answer.ok) return;
      const name = room && at >= 0 ? room.names[at] : null;
      room = await answer.json();
      at = name === null ? -1 : room.names.indexOf(name);
    } catch { return; }
    if (!room.names.length) return;
    box.hidden = false; if (still) still.hidden = true;
    document.getElementById("hold")?.remove();
    box.classList.toggle("stale", Boolean(room.trouble));
    const before = performance.now();
    draw();
    canvas.getContext("2d").getImageData(0, 0, 1, 1);  // what was asked for is drawn by then
    box.dataset.drawn = (performance.now() - before).toFixed(1);
    if (at >= 0) tell(at);
  };

  for (const [value, text] of Object.entries(MODES)) choice.add(new Option(text, value));
  choice.id = "room-mode"; label.htmlFor = choice.id; label.textContent = "Colour by ";
  choice.addEventListener("change", draw);
  key.className = "legend";
  told.className = "told"; told.setAttribute("role", "status");
  words.textContent = "Point at a node, or use the arrow keys; Enter opens it.";
  link.textContent = "open"; link.hidden = true;
  told.append(words, " ", link);
  canvas.tabIndex = 0; canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Nodes by rack, a cell for each GPU; the same is in the table below");
  canvas.addEventListener("pointermove", (event) => { const n = under(event); if (n >= 0 && n !== at) { tell(n); draw(); } });
  canvas.addEventListener("click", (event) => { const n = under(event); if (n >= 0) { tell(n); location.href = link.href; } });
  canvas.addEventListener("keydown", move);
  const bar = document.createElement("p");
  bar.append(label, choice);
  box.append(bar, key, told, canvas);
  document.addEventListener("renewed", renew);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => { if (room) draw(); });
  new ResizeObserver(() => { if (room && Math.abs(box.clientWidth - wide) > 4) draw(); }).observe(box.parentElement);
  renew();
})();
