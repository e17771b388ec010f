/* Chapter 09: the machine taken apart (W09a), gradients in a deep stack (W09b), norm before or after (W09c), and the
   three attentions (W09d).

   A classic script beside widgets.js. W09a shows the lines of its own text; W09b and W09d show what the page's
   cells have written into its script of JSON; W09c computes with the formulas of the page, and a test compares it. */

(() => {
  "use strict";

  const { html, svg, head, column, rowHead, digits, choice, slider } = window.widgets;

  // ---- W09a: the machine, taken apart -----------------------------------------------------------------------

  const exploded = (root) => {
    const picture = [...document.querySelectorAll(".chapter-hero")].find((each) => each.querySelector('a[href="#part-embedding"]'));
    const line = (link) => document.getElementById(link.getAttribute("href").slice(1)).closest("li");
    const panel = html("output", { "aria-live": "polite" });
    const boxes = [...picture.querySelectorAll("a")];
    const choose = (box) => {
      boxes.forEach((each) => each.classList.toggle("chosen", each.getAttribute("href") === box.getAttribute("href")));
      const said = line(box).cloneNode(true);
      said.querySelectorAll("[id]").forEach((each) => each.removeAttribute("id"));
      panel.replaceChildren(...said.childNodes);
    };
    boxes.forEach((box) => box.addEventListener("click", (event) => { event.preventDefault(); choose(box); }));
    root.replaceChildren(head("The machine, taken apart", "W09a"), html("div", { class: "ch09-machine" }, picture, html("div", { class: "side" }, panel)));
    choose(boxes.find((box) => box.getAttribute("href") === "#part-add"));
  };

  // ---- W09b: gradients in a deep stack -------------------------------------------------------------------------

  const WIDE = 440, HIGH = 270, LEFT = 62, TOP = 14, BOTTOM = 42;
  const ranges = (residual, norm) => (norm !== "none" ? [-2, 2, 1] : residual ? [0, 24, 6] : [-6, 1, 1]); // exponents and step
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const raised = (exponent) => [...String(exponent)].map((sign) => RAISED[sign]).join("");
  const power = (size) => {
    const [digit, exponent] = size.toExponential(0).split("e");
    return Number(exponent) === 0 ? digit : `${digit} · 10${raised(Number(exponent))}`;
  };

  const gradients = (root, { depths, kinds }) => {
    let residual = false, norm = "none", depth = 24;
    const view = html("div", { class: "plane" }), said = html("output", { "aria-live": "polite" });
    const draw = () => {
      const kind = kinds.find((each) => each.residual === residual && each.norm === norm);
      const seeds = kind.layers[depth], [low, high, step] = ranges(residual, norm);
      const first = seeds.map((layers) => layers[0]), last = seeds.map((layers) => layers[layers.length - 1]);
      const x = (layer) => LEFT + ((layer - 0.5) / depth) * (WIDE - LEFT - 12);
      const y = (size) => HIGH - BOTTOM - ((Math.min(high, Math.max(low, Math.log10(size))) - low) / (high - low)) * (HIGH - BOTTOM - TOP);
      const text = (across, down, anchor, words) => svg("text", { x: across, y: down, "text-anchor": anchor, "font-size": 13, style: "fill:var(--figure-ink)" }, words);
      const powers = (sizes) => sizes.map(power).join(", ");
      const alt = `Gradient of each of ${depth} layers, three seeds, on a scale of powers of ten. First layer: ${powers(first)}. Last layer: ${powers(last)}.`;
      const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": alt });
      for (let exponent = low; exponent <= high; exponent += step) {
        picture.append(svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(10 ** exponent), y2: y(10 ** exponent), style: "stroke:var(--figure-grid)" }),
          text(LEFT - 6, y(10 ** exponent) + 5, "end", exponent ? `10${raised(exponent)}` : "1"));
      }
      for (const layer of new Set([1, Math.round((depth + 1) / 2), depth])) picture.append(text(x(layer), HIGH - BOTTOM + 20, "middle", String(layer)));
      picture.append(text((LEFT + WIDE) / 2, HIGH - 4, "middle", "layer (1 is the lowest); size of its gradient"));
      seeds.forEach((layers, seed) => {
        const points = layers.map((size, index) => [x(index + 1), y(size)]);
        picture.append(svg("polyline", { points: points.map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none", "stroke-width": 2, "stroke-dasharray": ["none", "7 4", "2 4"][seed], style: "stroke:var(--figure-ink)" }));
        points.forEach(([cx, cy]) => picture.append(svg("circle", { cx, cy, r: 3, style: "fill:var(--figure-ink)" })));
      });
      view.replaceChildren(picture);
      const ratios = first.map((size, seed) => Math.log10(size / last[seed]));
      const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
      said.textContent = `First layer: ${powers(first)}. Last layer: ${powers(last)}. `
        + (mean < -2 ? "On its way down the gradient vanishes." : mean > 2 ? "On its way down the gradient explodes." : Math.log10(Math.max(...first)) > 2 ? "All layers get far too much." : "All layers get something of the same order.");
    };
    root.replaceChildren(
      head("Gradients in a deep stack", "W09b"),
      html("div", { class: "widget-controls" },
        choice("the plus", "W09b-plus", [["x + f(x)", "with"], ["f(x) alone", "without"]], "without", (value) => { residual = value === "with"; draw(); }),
        choice("the norm", "W09b-norm", [["none", "none"], ["after", "after"], ["before", "before"]], norm, (value) => { norm = value; draw(); }),
        slider("layers", "W09b-depth", { min: 0, max: depths.length - 1, value: depths.indexOf(depth) }, (index) => String(depths[index]), (index) => { depth = depths[index]; draw(); })),
      view, said);
    draw();
  };

  // ---- W09c: norm before or after ---------------------------------------------------------------------------------

  const mean = (x) => x.reduce((sum, value) => sum + value, 0) / x.length;
  const spread = (x) => Math.sqrt(mean(x.map((value) => (value - mean(x)) ** 2)));
  const layerNorm = (x) => x.map((value) => (value - mean(x)) / Math.sqrt(spread(x) ** 2 + 1e-5));
  const part = (x) => [x[x.length - 1], ...x.slice(0, -1)]; // every number one place to the right
  const plus = (x, y) => x.map((value, index) => value + y[index]);

  const steps = (first, x) => {
    const read = first ? layerNorm(x) : x, change = part(read), sum = plus(x, change);
    return first
      ? [["x, the stream", x], ["norm: LN(x)", read, "norm"], ["the part: f(LN(x))", change], ["add: x + f(LN(x))", sum]]
      : [["x, the stream", x], ["the part: f(x)", change], ["add: x + f(x)", sum], ["norm: LN(x + f(x))", layerNorm(sum), "norm"]];
  };

  const placement = (root) => {
    let first = false, layers = 1;
    const flow = html("ol", { class: "ch09-flow" }), table = html("table"), said = html("output", { "aria-live": "polite" });
    const draw = () => {
      let x = [2, 4, 4, 6], last = [];
      const after = [["start", x]];
      for (let number = 1; number <= layers; number += 1) {
        last = steps(first, x);
        x = last[last.length - 1][1];
        after.push([`layer ${number}`, x]);
      }
      flow.replaceChildren(...last.map(([name, numbers, kind]) => html("li", { class: kind ?? "" }, html("span", {}, name), html("b", {}, numbers.map((value) => digits(value)).join("  ")))));
      table.replaceChildren(
        html("caption", {}, "the stream after each layer"),
        html("thead", {}, html("tr", {}, html("td"), ...["1st", "2nd", "3rd", "4th", "spread"].map(column))),
        html("tbody", {}, ...after.map(([name, numbers]) => html("tr", {}, rowHead(name), ...numbers.map((value) => html("td", {}, digits(value))), html("td", { class: "spread" }, digits(spread(numbers)))))));
      said.textContent = `${first ? "Pre" : "Post"}-norm, ${layers === 1 ? "one layer" : `${layers} layers`}: the spread of the word goes from ${digits(spread([2, 4, 4, 6]))} to ${digits(spread(x))}. `
        + (first ? "The stream itself is never normed, so x goes through by the plus alone." : "The stream is cut down to a spread of 1 after every layer.");
    };
    root.replaceChildren(
      head("Norm before or after", "W09c"),
      html("div", { class: "widget-controls" },
        choice("the norm stands", "W09c-place", [["after the plus (post-norm)", "post"], ["before the part (pre-norm)", "pre"]], "post", (value) => { first = value === "pre"; draw(); }),
        slider("layers", "W09c-layers", { min: 1, max: 6, value: layers }, String, (value) => { layers = value; draw(); })),
      html("p", { class: "test-head" }, "The last layer, step by step"), flow, table, said);
    draw();
  };

  // ---- W09d: the three attentions -----------------------------------------------------------------------------------

  const three = (root, all) => {
    const view = html("div"), said = html("output", { "aria-live": "polite" });
    const draw = ({ name, query, key, mask, rows, columns, weights, causal }) => {
      const looks = weights.map((row) => columns[row.indexOf(Math.max(...row))]);
      view.replaceChildren(
        html("table", { class: "ch09-sources" }, html("tbody", {},
          html("tr", {}, rowHead("queries"), html("td", {}, html("span", { class: "role-query" }, query))),
          html("tr", {}, rowHead("keys"), html("td", {}, html("span", { class: "role-key" }, key))),
          html("tr", {}, rowHead("values"), html("td", {}, html("span", { class: "role-value" }, key))),
          html("tr", {}, rowHead("mask"), html("td", {}, mask)))),
        html("table", { class: "matrix ch09-map" },
          html("caption", {}, `weights (${rows.length}, ${columns.length}), the mean of eight heads: `, html("span", { class: "role-query" }, "queries"), " down, ", html("span", { class: "role-key" }, "keys"), " across"),
          html("thead", {}, html("tr", {}, html("td"), ...columns.map((word) => column(html("span", {}, word))))),
          html("tbody", {}, ...weights.map((row, at) => html("tr", {}, rowHead(rows[at]), ...row.map((share, place) => {
            const hidden = causal && place > at;
            return html("td", { class: hidden ? "hidden-cell" : "", style: hidden ? "" : `--share:${share}` }, hidden ? html("span", { class: "visually-hidden" }, "hidden") : digits(share, 2));
          }))))));
      said.textContent = `${name[0].toUpperCase()}${name.slice(1)}: ${rows.map((word, at) => `“${word}” attends most to “${looks[at]}”`).join(", ")}.`;
    };
    root.replaceChildren(
      head("Three attentions", "W09d"),
      html("div", { class: "widget-controls" }, choice("which one", "W09d-which", all.map(({ name }, index) => [name, String(index)]), "2", (value) => draw(all[Number(value)]))),
      view, said);
    draw(all[2]);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const written = document.getElementById("blocks-data");
    const data = written ? JSON.parse(written.textContent) : {};
    const builders = { exploded, placement, depth: (root) => gradients(root, data.depth), three: (root) => three(root, data.three) };
    document.querySelectorAll("[data-blocks]").forEach((root) => builders[root.dataset.blocks](root));
  });
})();
