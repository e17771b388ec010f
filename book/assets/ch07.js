/* W07a, W07b and W07c of chapter 07: words that change places, clock hands, and the table as a map.

   A classic script, so that the page works straight from the disk. Its numbers come from the
   same formulas as transformer_ref (sinusoidal_table, explicit_attention), and the page prints them as text too. */

(() => {
  "use strict";

  const { html, svg, head, column, rowHead, digits } = window.widgets;

  const row = (numbers) => `(${numbers.map((number) => digits(number)).join(", ")})`;
  const columns = (...names) => html("thead", {}, html("tr", {}, ...names.map((name) => column(name))));
  const line = (name, ...cells) => html("tr", {}, rowHead(name), ...cells.map((cell) => html("td", {}, cell)));

  const speed = (pair, d, base) => base ** (-2 * pair / d);
  const place = (position, d, base = 10000) => Array.from({ length: d }, (_, column) => {
    const angle = position * speed(Math.floor(column / 2), d, base);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  });

  const slider = (label, id, low, high, step, value, onInput) => {
    const shown = html("span", { style: "display:inline-block;min-width:3.4rem;text-align:right;font-variant-numeric:tabular-nums" });
    const show = () => {
      const words = digits(Number(input.value), 0);
      shown.textContent = words;
      input.setAttribute("aria-valuetext", words);
    };
    const input = html("input", { type: "range", id, min: low, max: high, step, value, oninput: () => { show(); onInput(Number(input.value)); } });
    show();
    return html("div", { style: "display:flex;align-items:center;gap:.4rem" }, html("label", { for: id, style: "min-width:6.2rem" }, label), input, shown);
  };

  // ---- W07a: the words of a sentence change places ---------------------------------------------------------

  const VECTORS = { I: [1, 0, 0, 0], want: [1, 1, 0, 0], to: [0, 1, 0, 0], sleep: [2, 0, 0, 0] };
  const BEFORE = ["I", "want", "to", "sleep"], AFTER = ["sleep", "to", "I", "want"];

  const ofI = (words, withPlaces) => {
    const rows = words.map((word, at) => VECTORS[word].map((number, column) => number + (withPlaces ? place(at, 4)[column] : 0)));
    const query = rows[words.indexOf("I")];
    const scores = rows.map((key) => key.reduce((sum, number, column) => sum + number * query[column], 0) / 2);
    const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
    const total = powers.reduce((sum, power) => sum + power, 0);
    const weights = powers.map((power) => power / total);
    return { rows, weights, vector: query.map((_, column) => weights.reduce((sum, weight, at) => sum + weight * rows[at][column], 0)) };
  };

  const shuffle = (root) => {
    let words = [...BEFORE], withPlaces = false;
    const movers = html("div", { role: "group", "aria-label": "The sentence. A word that is pressed moves one position to the left.", style: "display:flex;flex-wrap:wrap;gap:.4rem" });
    const table = html("table"), output = html("output", { "aria-live": "polite" });
    const draw = (focused) => {
      movers.replaceChildren(...words.map((word, at) => html("button", { type: "button", "aria-label": `${word}, at position ${at}: move left`, onclick: () => {
        words = at ? [...words.slice(0, at - 1), word, words[at - 1], ...words.slice(at + 1)] : [...words.slice(1), word];
        draw(word);
      } }, `← ${word}`)));
      if (focused) movers.children[words.indexOf(focused)].focus();
      const { rows, weights, vector } = ofI(words, withPlaces);
      table.replaceChildren(columns("word", "its vector", "from I"),
        html("tbody", {}, ...words.map((word, at) => line(word, row(rows[at]), digits(weights[at])))));
      const other = ofI(BEFORE, withPlaces).vector;
      const same = other.every((number, column) => Math.abs(number - vector[column]) < 5e-4);
      output.textContent = `${words.join(" ")}: I becomes ${row(vector)}. ` +
        (same ? "In I want to sleep it is the same." : `In I want to sleep it was ${row(other)}.`);
    };
    const switches = html("fieldset", {}, html("legend", {}, "positions"), ...["off", "on"].map((label, index) =>
      html("label", { class: "choice" },
        html("input", { type: "radio", name: "W07a-places", ...(index ? {} : { checked: "" }), onchange: () => { withPlaces = index === 1; draw(); } }),
        html("span", {}, label))));
    const set = (label, order) => html("button", { type: "button", onclick: () => { words = [...order]; draw(); } }, label);
    root.replaceChildren(head("Change the order", "W07a"), html("div", { class: "widget-controls" }, switches, set("I want to sleep", BEFORE), set("sleep to I want", AFTER)),
      movers, html("div", { style: "overflow-x:auto;margin-top:.6rem" }, table), output);
    draw();
  };

  // ---- W07b: one clock hand for each pair of columns ---------------------------------------------------------

  const HANDS = 4, RADIUS = 44, CELL = 104;

  const hands = (root) => {
    let position = 3, step = 2;
    const picture = html("div", { class: "plane" }), table = html("table"), output = html("output", { "aria-live": "polite" });
    const arm = (x, y, angle, style) => svg("line", { x1: x, y1: y, x2: x + RADIUS * Math.sin(angle), y2: y - RADIUS * Math.cos(angle), "stroke-linecap": "round", style });
    const draw = () => {
      const size = 2 * CELL, drawing = svg("svg", { viewBox: `0 0 ${size} ${size + 36}`, "aria-hidden": "true" });
      const now = place(position, 2 * HANDS), later = place(position + step, 2 * HANDS), rows = [];
      for (let pair = 0; pair < HANDS; pair++) {
        const x = CELL * (pair % 2 + 0.5), y = (CELL + 18) * Math.floor(pair / 2) + CELL / 2, turn = speed(pair, 2 * HANDS, 10000);
        drawing.append(svg("circle", { cx: x, cy: y, r: RADIUS, style: "fill:none;stroke:var(--figure-grid);stroke-width:1.5" }),
          arm(x, y, (position + step) * turn, "stroke:var(--figure-ink);stroke-width:2;stroke-dasharray:5 5"),
          arm(x, y, position * turn, "stroke:var(--position);stroke-width:4"),
          svg("text", { x, y: y + RADIUS + 16, "text-anchor": "middle", "font-size": 11, style: "fill:var(--figure-ink)" }, `${pair}: speed ${turn}`));
        rows.push(line(String(pair), digits(now[2 * pair]), digits(now[2 * pair + 1]), digits(step * turn), digits(later[2 * pair]), digits(later[2 * pair + 1])));
      }
      picture.replaceChildren(drawing);
      table.replaceChildren(columns("hand", "sin", "cos", "turn", "new sin", "new cos"), html("tbody", {}, ...rows));
      output.textContent = `From position ${position} to ${digits(position + step, 0)}, the hands turn by ` +
        `${Array.from({ length: HANDS }, (_, pair) => digits(step * speed(pair, 2 * HANDS, 10000))).join(", ")}: the same from any position.`;
    };
    root.replaceChildren(head("Clock hands", "W07b"), html("div", { class: "widget-controls" },
      slider("position t", "W07b-position", 0, 60, 1, position, (value) => { position = value; draw(); }),
      slider("go k positions on", "W07b-step", -20, 20, 1, step, (value) => { step = value; draw(); })),
    html("div", { class: "widget-body" }, picture, html("div", { class: "side", style: "overflow-x:auto" }, table)), output);
    draw();
  };

  // ---- W07c: the table as a map ---------------------------------------------------------------------------

  const map = (root) => {
    let length = 40, d = 16, base = 10000;
    const picture = html("div", { class: "plane" }), output = html("output", { "aria-live": "polite" });
    const draw = () => {
      const width = 320, height = 240, drawing = svg("svg", { viewBox: `0 0 ${width + 52} ${height + 46}`, role: "img",
        "aria-label": `The table of ${length} positions and ${d} columns with base ${base}: bands that are narrow on the left, where hands are fast, and wide on the right.` });
      const text = (x, y, anchor, words) => svg("text", { x, y, "text-anchor": anchor, "font-size": 14, style: "fill:var(--figure-ink)" }, words);
      for (let position = 0; position < length; position++) place(position, d, base).forEach((number, column) => {
        drawing.append(svg("rect", { x: 46 + column * width / d, y: 22 + position * height / length, width: width / d, height: height / length,
          "fill-opacity": Math.abs(number).toFixed(2), style: `fill:${number < 0 ? "#8E4585" : "var(--value)"}` }));
      });
      drawing.append(text(46, 14, "start", "column 0"), text(46 + width, 14, "end", `column ${d - 1}`),
        text(40, 34, "end", "0"), text(40, 22 + height, "end", length - 1), text(46, height + 40, "start", "positions downward; purple −1, green +1"));
      picture.replaceChildren(drawing);
      const round = (pair) => (2 * Math.PI / speed(pair, d, base)).toLocaleString("en", { maximumFractionDigits: 1 });
      output.textContent = d === 2 ? "One hand, once round in 6.3 positions: position 44 is almost position 0."
        : `The fastest hand is round in ${round(0)} positions, the slowest of ${d / 2} in ${round(d / 2 - 1)}.`;
    };
    const select = (label, id, values, chosen, onChange) => {
      const input = html("select", { id, onchange: () => { onChange(Number(input.value)); draw(); } },
        ...values.map((value) => html("option", { value, ...(value === chosen ? { selected: "" } : {}) }, value.toLocaleString("en"))));
      return html("div", {}, html("label", { for: id }, label), " ", input);
    };
    root.replaceChildren(head("The table as a map", "W07c"), html("div", { class: "widget-controls" },
      select("positions T", "W07c-length", [10, 20, 40, 60], length, (value) => { length = value; }),
      select("columns d", "W07c-d", [2, 4, 8, 16, 32], d, (value) => { d = value; }),
      select("base", "W07c-base", [10, 100, 1000, 10000], base, (value) => { base = value; })), picture, output);
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const [id, make] of [["W07a", shuffle], ["W07b", hands], ["W07c", map]]) {
      const root = document.getElementById(id);
      if (root) make(root);
    }
  });
})();
