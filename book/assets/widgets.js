/* What every page needs, and the small tools of which the chapters' widgets are made.

   A classic script, so that the pages work straight from the disk; it comes before the script of a chapter, chNN.js. */

(() => {
  "use strict";

  // ---- small tools, as window.widgets ------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";

  // An attribute that is null, undefined or false is left out; true stands there without a value.
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  };
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  const head = (title, id) => html("p", { class: "widget-head" }, title, " ", html("span", { class: "widget-id" }, id));
  const column = (child) => html("th", { scope: "col" }, child);
  const rowHead = (...children) => html("th", { scope: "row" }, ...children);

  /** A number with so many decimals: no minus before zeros, and a typographic one elsewhere. */
  const digits = (number, many = 3) => number.toFixed(many).replace(/^-(0\.?0*)$/, "$1").replace("-", "−");
  const thousands = (number) => number.toLocaleString("en-US");
  const grid = (times, make) => Array.from({ length: times }, (_, index) => make(index));

  const softmax = (scores) => {
    const largest = Math.max(...scores);
    if (largest === -Infinity) return scores.map(() => 0); // nobody to look at
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  };

  /** Buttons of which one is on: the values by their labels; `chosen` is told the value. */
  const choice = (legend, name, options, start, chosen) => html("fieldset", {}, html("legend", {}, legend),
    ...options.map(([label, value]) => {
      const input = html("input", { type: "radio", name, value: String(value), onchange: () => chosen(value) });
      input.checked = value === start;
      return html("label", { class: "choice" }, input, html("span", {}, label));
    }));

  let serial = 0;
  /** The same for labels alone: `chosen` is told the place of one. */
  const choices = (legend, labels, start, chosen) =>
    choice(legend, `choice-${++serial}`, labels.map((label, index) => [label, index]), start, chosen);

  /** A slider with its name and its value in words, for the eye and for who listens. */
  const slider = (name, id, { min, max, step = 1, value }, words, moved) => {
    const shown = html("span", { class: "slider-value" });
    const show = () => {
      shown.textContent = words(Number(input.value));
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    const input = html("input", { type: "range", id, min, max, step, value, oninput: () => { show(); moved(Number(input.value)); } });
    show();
    return html("div", {}, html("label", { for: id }, name), " ", input, " ", shown);
  };

  /** A listener for keys that calls `move(right, down)` for an arrow key, each of them -1, 0 or 1. */
  const onArrow = (move) => (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!by) return;
    event.preventDefault();
    move(...by);
  };

  /** `index + by`, kept within the places of a list of this length. */
  const stepped = (index, by, length) => Math.min(length - 1, Math.max(0, index + by));

  /** A handle in a picture: arrow keys move its point by a step, and a pointer to what `read` makes of a place in pixels.
      `move(index, point)` draws all anew. size: the picture's width in its own pixels. */
  const handle = (picture, index, label, { point: [x, y], step, size, read, move }, ...drawn) => svg("g", {
    class: "handle", tabindex: 0, role: "button", "data-index": index, "aria-label": label,
    onkeydown: onArrow((right, down) => {
      move(index, [x + right * step, y - down * step]);
      picture.querySelector(`[data-index="${index}"]`).focus();
    }),
    onpointerdown: (event) => {
      event.preventDefault();
      const box = picture.getBoundingClientRect(), scale = size / box.width;
      // The picture, which stays, holds the pointer: the handle is drawn anew with every move.
      picture.setPointerCapture(event.pointerId);
      picture.onpointermove = (moved) => move(index, read((moved.clientX - box.left) * scale, (moved.clientY - box.top) * scale));
      picture.onpointerup = picture.onpointercancel = () => { picture.onpointermove = null; };
    },
  }, ...drawn);

  window.widgets = { html, svg, head, column, rowHead, digits, thousands, grid, softmax, choice, choices, slider, onArrow, stepped, handle };

  // ---- every page ----------------------------------------------------------------------------------------

  // Roles the theme and docutils leave out or give wrongly.
  const mendRoles = () => {
    const sidebar = document.querySelector(".bd-sidebar-primary");
    if (sidebar) { sidebar.setAttribute("role", "region"); sidebar.setAttribute("aria-label", "Book"); }
    document.querySelectorAll(".citation-list, .citation").forEach((node) => node.removeAttribute("role"));
  };

  // A formula that is wider than its column scrolls; by key, too.
  const reachFormulas = () => document.querySelectorAll("div.math").forEach((formula) => {
    formula.toggleAttribute("tabindex", false);
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  });

  const openForPrint = () => document.querySelectorAll("details").forEach((details) => details.setAttribute("open", ""));

  document.addEventListener("DOMContentLoaded", () => {
    mendRoles();
    window.addEventListener("beforeprint", openForPrint);
    const article = document.querySelector("article");
    if (article) new ResizeObserver(reachFormulas).observe(article);
  });
})();
