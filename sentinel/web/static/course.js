// Draws how a training or a file system went, from the same data as the picture that stands there
// without scripts: one time axis, values under pointer and keyboard. uPlot draws the lines.
"use strict";
(() => {
  const chart = document.getElementById("chart"), still = document.getElementById("course");
  if (!chart || !still || !window.uPlot) return;
  const AGAIN = 15000, HEIGHT = 150, LEFT = 84;
  const told = document.createElement("p"), words = document.createElement("span"), link = document.createElement("a");
  const NUMBERS = new Intl.NumberFormat("en-US", {maximumFractionDigits: 0});
  let data = null, plots = [], at = null, read = 0;

  const scaled = (value, units, by) => {
    let n = 0;
    while (Math.abs(value) >= by - .5 && n < units.length - 1) { value /= by; n++; }
    return `${+value.toPrecision(3)} ${units[n]}`;
  };
  const lasting = (s) => {
    const n = Math.round(Math.abs(s)), two = (a, x, b, y) => b ? `${a}${x} ${b}${y}` : `${a}${x}`;
    if (n < 120) return `${n}s`;
    if (n < 3600) return two(Math.floor(n / 60), "m", n % 60, "s");
    if (n < 86400) return two(Math.floor(n / 3600), "h", Math.floor(n / 60) % 60, "m");
    return two(Math.floor(n / 86400), "d", Math.floor(n / 3600) % 24, "h");
  };
  const said = (unit, v) => unit === "bytes" ? scaled(v, ["B", "kB", "MB", "GB", "TB", "PB", "EB"], 1000)
    : unit === "seconds" ? lasting(v) : unit === "percent" ? `${+v.toPrecision(4)}%`
    : Math.abs(v) >= 1000 && Math.abs(v) < 1e15 ? NUMBERS.format(v) : String(+v.toPrecision(4));

  const zoned = (options) => {
    try { return new Intl.DateTimeFormat("en-GB", {...options, timeZone: data.zone}); }
    catch { return new Intl.DateTimeFormat("en-GB", options); }
  };
  const moment = (t) => zoned({day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit"}).format(t * 1000);
  const colour = (name) => getComputedStyle(chart).getPropertyValue(`--${name}`).trim() || "gray";
  const KINDS = {hang: "critical", restart: "unknown", checkpoint: "ok", slowdown: "warning", loss: "critical",
    error: "warning", alert: "warning", ack: "link", action: "link", node: "info"};

  const upright = (u, t, style, from = 0) => {
    const x = Math.round(u.valToPos(t, "x", true)), {top, height} = u.bbox;
    u.ctx.strokeStyle = style;
    u.ctx.beginPath(); u.ctx.moveTo(x, top + from * height); u.ctx.lineTo(x, top + height); u.ctx.stroke();
  };
  const flat = (u, level, style, text) => {
    const y = Math.round(u.valToPos(level, "y", true)), {left, width} = u.bbox;
    u.ctx.strokeStyle = u.ctx.fillStyle = style;
    u.ctx.beginPath(); u.ctx.moveTo(left, y); u.ctx.lineTo(left + width, y); u.ctx.stroke();
    u.ctx.textAlign = "left";
    u.ctx.fillText(text, left + 5, y - 4);
  };
  const behind = (line, first) => (u) => {
    const {ctx} = u, {left, top, width, height} = u.bbox;
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top - 2, width, height + 2); ctx.clip();
    ctx.lineWidth = devicePixelRatio; ctx.font = `${12 * devicePixelRatio}px system-ui,sans-serif`;
    for (const mark of data.marks) {
      const style = colour(KINDS[mark.kind] || "info");
      if (mark.until !== null) {
        const x = u.valToPos(mark.at, "x", true);
        ctx.fillStyle = style; ctx.globalAlpha = .14;
        ctx.fillRect(x, top, Math.max(2, u.valToPos(mark.until, "x", true) - x), height);
        ctx.globalAlpha = 1;
      }
      upright(u, mark.at, style, mark.kind === "checkpoint" ? .92 : 0);
    }
    ctx.setLineDash([6, 5]);
    for (const [name, level] of line.limits) flat(u, level, colour(name), `${name} at ${said(line.unit, level)}`);
    if (data.last > data.now + 1) upright(u, data.now, colour("dim"));
    if (data.at !== null) upright(u, data.at, colour("link"));
    if (line.ahead) {
      const value = line.y[line.y.length - 1], [early, middle, late] = line.ahead, path = (t) => ctx.lineTo(u.valToPos(t, "x", true), u.valToPos(line.goal, "y", true));
      const start = () => { ctx.beginPath(); ctx.moveTo(u.valToPos(data.now, "x", true), u.valToPos(value, "y", true)); };
      start(); path(early); path(late); ctx.closePath();
      ctx.fillStyle = colour("band"); ctx.globalAlpha = .5; ctx.fill(); ctx.globalAlpha = 1;
      start(); path(middle); ctx.strokeStyle = colour("line"); ctx.stroke();
      upright(u, middle, colour("critical"));
      ctx.setLineDash([]); ctx.fillStyle = colour("critical"); ctx.textAlign = "right";
      const full = [`full ${moment(middle).slice(0, -3)}`, Math.min(u.valToPos(middle, "x", true) - 5, left + width - 5), top + 14 * devicePixelRatio];
      ctx.lineWidth = 6 * devicePixelRatio; ctx.strokeStyle = colour("card"); ctx.strokeText(...full);  // lines do not cross it
      ctx.fillText(...full);
    }
    ctx.restore();
  };

  const clocks = (u, ticks, axis, space, step) => {
    const whole = zoned({hour: "2-digit", minute: "2-digit", ...(step < 60 ? {second: "2-digit"} : {})}), day = zoned({day: "2-digit", month: "short"});
    return ticks.map((t) => step >= 86400 || /^(00|24):00(:00)?$/.test(whole.format(t * 1000)) ? day.format(t * 1000) : whole.format(t * 1000));
  };
  const TIMES = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];
  const range = (line) => (u, low, high) => {
    const levels = [...line.y.filter((v) => v !== null), ...line.limits.map((l) => l[1]), ...(line.ahead ? [line.goal] : [])];
    low = Math.min(...levels); high = Math.max(...levels);
    const least = Math.max(Math.abs(low), Math.abs(high)) * .02 || 1, positive = low >= 0;
    if (high - low < least) { const middle = (low + high) / 2; low = middle - least / 2; high = middle + least / 2; }
    const room = (high - low) * .06;
    return [positive ? Math.max(0, low - room) : low - room, high + room];
  };
  const options = (line, n, count) => ({
    width: chart.clientWidth, height: HEIGHT + (n === count - 1 ? 24 : 0), title: "", legend: {show: false},
    tzDate: (t) => { try { return uPlot.tzDate(new Date(t * 1000), data.zone); } catch { return new Date(t * 1000); } },
    padding: [10, 32, n === count - 1 ? 0 : 8, 0],
    scales: {x: {time: true, range: () => [data.first, data.last]}, y: {range: range(line)}},
    cursor: {drag: {x: false, y: false}, y: false, points: {size: 7}},
    series: [{}, {stroke: () => colour("line"), width: 2, spanGaps: false, points: {show: (u, s, a, b) => b - a < 2}}],
    axes: [
      {show: n === count - 1, size: 32, stroke: () => colour("dim"), grid: {show: false}, ticks: {stroke: () => colour("edge")}, values: clocks},
      {size: chart.clientWidth < 500 ? 58 : LEFT, stroke: () => colour("dim"), grid: {stroke: () => colour("edge"), width: 1}, ticks: {show: false},
        ...(line.unit === "seconds" ? {incrs: TIMES} : {}),
        values: (u, ticks) => ticks.map((v) => said(line.unit, v))},
    ],
    hooks: {drawAxes: [behind(line, n === 0)], ready: [(u) => {
      u.over.addEventListener("pointermove", (e) => show(u.posToVal(e.offsetX, "x")));
      u.over.addEventListener("pointerdown", (e) => show(u.posToVal(e.offsetX, "x")));
    }]},
  });

  // The last value that was seen by then; none where the line is parted.
  const value = (line, t) => {
    let n = line.x.findIndex((x) => x > t);
    n = n < 0 ? line.x.length - 1 : n - 1;
    return n < 0 ? null : line.y[n];
  };
  const near = (t) => {
    const reach = (data.last - data.first) / 150;
    return data.marks.filter((m) => m.until === null ? Math.abs(m.at - t) <= reach : m.at - reach <= t && t <= m.until + reach);
  };
  const show = (t) => {
    at = Math.max(data.first, Math.min(data.last, t));
    for (const u of plots) u.setCursor({left: u.valToPos(at, "x"), top: 10}, false);
    const numbers = data.lines.map((line) => [line, value(line, at)]).filter(([, v]) => v !== null && at <= data.now + 1)
      .map(([line, v]) => `${line.title} ${said(line.unit, v)}`);
    const happened = near(at).slice(0, 4).map((m) => m.text);
    words.textContent = [`${moment(at)} ${data.zone}`, ...numbers, ...happened].join(" · ");
    link.href = `${chart.dataset.here}&at=${Math.round(at)}&span=3600`;
    link.hidden = false;
  };
  const key = (event) => {
    const step = (data.last - data.first) / (event.shiftKey ? 10 : 100), from = at ?? data.now;
    const later = data.marks.map((m) => m.at).sort((a, b) => a - b);
    const goes = {ArrowLeft: () => from - step, ArrowRight: () => from + step, Home: () => data.first, End: () => Math.min(data.now, data.last),
      ArrowDown: () => later.find((t) => t > from + 1) ?? from, ArrowUp: () => later.findLast((t) => t < from - 1) ?? from}[event.key];
    if (event.key === "Enter" && event.target === chart && !link.hidden) location.href = link.href;
    if (!goes) return;
    event.preventDefault();
    show(goes());
  };

  const draw = () => {
    plots.forEach((u) => u.destroy());
    chart.replaceChildren(told);
    plots = data.lines.map((line, n) => {
      const head = document.createElement("h3");
      head.textContent = line.title;
      chart.append(head);
      return new uPlot(options(line, n, data.lines.length), [line.x, line.y], chart);
    });
    if (at !== null) show(at);
  };
  const renew = async () => {
    if (performance.now() - read < AGAIN && data) return;
    read = performance.now();
    try {
      const answer = await fetch(chart.dataset.src, {cache: "no-store"});
      if (!answer.ok) return;
      data = await answer.json();
    } catch { return; }
    if (!data.lines.length) return;
    chart.hidden = false; still.hidden = true;
    draw();
  };

  words.textContent = "Point at a moment, or use the arrow keys: left and right in time, up and down from event to event.";
  link.textContent = "this moment"; link.hidden = true;
  told.className = "told"; told.setAttribute("role", "status");
  told.append(words, " ", link);
  chart.addEventListener("keydown", (event) => { if (data) key(event); });
  document.addEventListener("renewed", renew);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => { if (data) draw(); });
  let width = 0;
  new ResizeObserver(() => {
    if (data && Math.abs(chart.clientWidth - width) > 4) { width = chart.clientWidth; draw(); }
  }).observe(chart.parentElement);
  renew();
})();
