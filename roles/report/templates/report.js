// Reads, hides and zooms curves; filters, sorts and compares results.
"use strict";
/** @type {(css: string, root?: ParentNode) => any[]} */
const all = (css, root = document) => [...root.querySelectorAll(css)];
/** @type {(to: Element, tag: string, set?: object, text?: string) => any} */
const add = (to, tag, set = {}, text = "") => {
  const made = document.createElementNS(to.namespaceURI, tag);
  for (const [name, value] of Object.entries(set)) made.setAttribute(name, value);
  made.textContent = text;
  to.append(made);
  return made;
};
/** @type {(value: number, digits: number) => string} */
const show = (value, maximumSignificantDigits) => value.toLocaleString("en", { maximumSignificantDigits });
/** @type {(part: number, scale: string, low: number, high: number) => number} */
const valueAt = (part, scale, low, high) => scale === "log" ? low * (high / low) ** part : low + part * (high - low);

/** What zooms the figures in one box. @type {Map<Element, ((times: number, by: number) => void)[]>} */
const zooms = new Map();
for (const svg of all("svg[data-axes]")) {
  const box = svg.parentElement, { x: words, y: unit } = svg.dataset;
  /** Of each: left, top, width, height in px; scale, low, high of x, then of y. @type {any[][]} */
  const panels = JSON.parse(svg.dataset.axes), [left, , width, , scale, low, high] = panels[0];
  const [, top, , down] = panels[panels.length - 1], percent = words.includes("%"), time = panels[1];
  const curves = all('g[data-s]:not([data-p="-1"])', svg).map((group) => ({
    name: group.dataset.s, panel: +group.dataset.p, group,
    points: [...(group.querySelector("path[fill=none]")?.getAttribute("d") ?? "").matchAll(/([\d.]+) ([\d.]+)/g)].map((one) => [+one[1], +one[2]]),
  })).filter((one) => one.points.length);
  const said = add(box, "output"), dot = add(svg, "circle", { r: 4, class: "cursor" });
  let zoom = 1, shift = 0, curve = curves[0], point = -1;
  const across = (px) => {
    const value = valueAt((px - left) / width, scale, low, high);
    return percent ? show(100 - 100 / value, 5) : time ? `${Math.floor(value)}` : show(value, 4);
  };
  const tell = () => {
    const [px, py] = curve.points[point];
    said.textContent = `${words.replace("{}", across(px))}: ` + curves.filter((one) => time ? one.panel === curve.panel : one === curve).map((one) => {
      const [, above, , tall, , , , kind, least, most] = panels[one.panel], near = one.points.find((each) => each[0] > px - 0.01);
      return near ? `${one.name} ${unit.replace("{}", show(valueAt(1 - (near[1] - above) / tall, kind, least, most), 3))}` : "";
    }).join(", ");
    dot.setAttribute("cx", px * zoom + shift);
    dot.setAttribute("cy", py);
    for (const one of all("g[data-s]", svg)) one.classList.toggle("dim", !time && one.dataset.s !== curve.name);
  };
  const key = box.closest(".linked") ?? box;
  zooms.set(key, [...zooms.get(key) ?? [], (times, by) => {
    [zoom, shift] = [times, by];
    svg.querySelector(".ticks")?.remove();
    svg.classList.toggle("zoomed", zoom > 1);
    for (const one of all("[clip-path]:not(.xt *, .yt *, .clip)", svg)) {
      const clip = add(svg, "g", { class: "clip", "clip-path": one.getAttribute("clip-path") });
      one.replaceWith(clip);
      one.removeAttribute("clip-path");
      add(clip, "g", { class: "zoom" }).append(one);
    }
    for (const one of all(".zoom", svg)) one.setAttribute("transform", `matrix(${zoom} 0 0 1 ${shift} 0)`);
    const ticks = add(svg, "g", { class: "ticks" });
    for (let at = left; zoom > 1 && at < left + width; at += width / 4)
      add(ticks, "text", { x: at, y: top + down + 16 }, across((at - shift) / zoom));
  }]);
  const zoomTo = (times, px) => {
    const by = Math.max((left + width) * (1 - times), Math.min(left * (1 - times), left + width / 2 - px * times));
    for (const one of zooms.get(key) ?? []) one(times, by);
  };
  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  svg.onpointermove = (event) => {
    const { x, y } = place(event);
    let best = Infinity;
    for (const one of curves)
      if (!one.group.matches(".off") && (!time || y < panels[one.panel][1] + panels[one.panel][3] + 9))
        one.points.forEach((each, index) => {
          const far = one.panel * 1e6 + Math.abs(each[0] * zoom + shift - x) * (time ? 99 : 1) + Math.abs(each[1] - y);
          if (far < best) [best, curve, point] = [far, one, index];
        });
    if (best < Infinity) tell();
  };
  svg.ondblclick = (event) => zoomTo(zoom > 7 ? 1 : zoom * 2, (place(event).x - shift) / zoom);
  box.tabIndex = 0;
  box.role = "application";
  box.ariaLabel = `${svg.ariaLabel}. Arrows read values, + zooms, - shows all.`;
  box.onkeydown = (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0, step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (event.key === "+") zoomTo(zoom * 2, curve?.points[Math.max(point, 0)][0]);
    else if (event.key === "-") zoomTo(1, left);
    else if (curve && (turn || step)) {
      curve = curves[(curves.indexOf(curve) + step + curves.length) % curves.length];
      point = Math.max(0, Math.min(curve.points.length - 1, point + turn));
      tell();
    } else return;
    event.preventDefault();
  };
  for (const one of all("button[data-k]", box.parentElement))
    one.onclick = () => {
      const off = one.ariaPressed === "true";
      one.ariaPressed = `${!off}`;
      for (const group of all("g[data-s]", svg)) if (group.dataset.s === one.dataset.k) group.classList.toggle("off", off);
    };
}

const rows = all(".results tr[data-g]"), pills = all(".pills button"), heads = all(".results thead th");
const choice = () => new URLSearchParams(location.hash.startsWith("#?") ? location.hash.slice(2) : "");
const worth = (row, index) => parseFloat(row.cells[index].dataset.v);
const update = () => {
  const chosen = choice(), sort = +(chosen.get("sort") ?? 0), column = Math.abs(sort) - 1;
  for (const one of pills) one.ariaPressed = `${chosen.has(one.name, one.value)}`;
  for (const row of rows) row.hidden = [...chosen.keys()].some((name) => name in row.dataset && !chosen.has(name, row.dataset[name]));
  const order = [...rows];
  const rank = (row) => isNaN(worth(row, column)) ? Infinity : worth(row, column) * sort;
  if (sort) order.sort((a, b) => rank(a) - rank(b) || 0);
  for (const row of order) row.parentNode.append(row, row.more);
  heads.forEach((head, index) => {
    head.ariaSort = index !== column ? null : sort > 0 ? "ascending" : "descending";
    const [better, floor] = (head.dataset.v ?? "").split(" ");
    for (const row of better ? rows : []) {
      const own = worth(row, index), known = rows.filter((one) => !one.hidden && one.dataset.g === row.dataset.g).map((one) => worth(one, index)).filter((one) => one > 0);
      const ratio = better === "high" ? Math.max(...known) / own : own / Math.min(...known);
      const { dataset } = row.cells[index];
      dataset.r = !known[1] || !(ratio >= 1) ? "" : ratio === 1 ? "best" : ratio <= 1 + +floor ? "noise" : ratio < 1.2 ? "near" : ratio < 2 ? "far" : "worst";
      dataset.x = dataset.r && ratio > 1 ? `×${show(ratio, 3)}` : "";
    }
  });
};
const choose = (change) => {
  const chosen = choice();
  change(chosen);
  history.replaceState(null, "", `#?${chosen}`);
  update();
};
for (const one of pills) one.onclick = () => choose((chosen) => chosen[one.ariaPressed === "true" ? "delete" : "append"](one.name, one.value));
for (const row of rows) {
  row.more = row.nextElementSibling;
  const open = add(row.cells[0], "button", { type: "button", "aria-expanded": false, "aria-label": "Details" }, "▸");
  open.onclick = () => open.ariaExpanded = `${!(row.more.hidden = !row.more.hidden)}`;
}
heads.forEach((head, index) => {
  const name = [...head.childNodes], column = `${index + 1}`;
  if (!head.matches(".n")) return;
  const button = add(head, "button", { type: "button" });
  button.append(...name);
  button.onclick = () => choose((chosen) => chosen.set("sort", chosen.get("sort") === column ? `-${column}` : column));
});
onhashchange = update;
update();
