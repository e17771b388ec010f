/* Chapter 05: drag the words of a sentence (W05a), and from Q, K, V to the output cell by cell (W05b).

   A classic script, so that the page works straight from the disk. Its numbers come from the same formula as
   transformer_ref, and a test compares them. */

(() => {
  "use strict";

  const { html, svg, head, column, rowHead, softmax, choices, handle, onArrow, stepped } = window.widgets;

  // ---- the formula -------------------------------------------------------------------------------------

  const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);

  const products = (Q, K) => Q.map((q) => K.map((k) => dot(q, k))); // (query, key)

  const weightsOf = (Q, K) =>
    products(Q, K).map((row) => softmax(row.map((product) => product / Math.sqrt(Q[0].length))));

  const mix = (A, V) => A.map((row) => V[0].map((_, column) => dot(row, V.map((value) => value[column]))));

  // A number as it is put into a field: with the minus of the keyboard.
  const tidy = (number, digits = 3) => number.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
  const short = (number) => String(Math.round(number * 1000) / 1000).replace("-", "−");

  // ---- W05a: drag the words of a sentence, watch one of them move ----------------------------------------

  const SENTENCES = [
    { words: ["I", "closed", "the", "windows"], asks: 3, points: [[0.2, 0.2], [0, 3], [0.2, 0.2], [1, 1]] },
    { words: ["I", "bought", "new", "windows", "for", "my", "computer"], asks: 3,
      points: [[0.2, 0.2], [0.2, 0.2], [0.2, 0.2], [1, 1], [0.2, 0.2], [0.2, 0.2], [3, 0]] },
  ];
  const UNIT = 104, LEFT = 34, TOP = 30, REACH = 3.3, STEP = 0.1;

  const contextMixer = (root) => {
    let sentence, asks, points;
    const load = (index) => {
      sentence = SENTENCES[index];
      asks = sentence.asks;
      points = sentence.points.map((point) => [...point]);
    };
    load(0);

    const pixel = ([x, y]) => [LEFT + x * UNIT, TOP + (REACH - y) * UNIT];
    const clamp = (number) => Math.min(REACH, Math.max(0, Math.round(number * 100) / 100));
    const size = LEFT + REACH * UNIT + 30;
    const picture = svg("svg", { viewBox: `0 0 ${size} ${size + 22}`, role: "group", "aria-label": "Words in a plane. Move one with the arrow keys." });
    // A finger on a word moves the word, not the page.
    picture.addEventListener("touchstart", (event) => { if (event.target.closest(".handle")) event.preventDefault(); }, { passive: false });
    const table = html("table");
    const output = html("output", { "aria-live": "polite" });
    const select = html("select", { id: "W05a-asks", onchange: () => { asks = Number(select.value); draw(); } });

    const fillSelect = () => select.replaceChildren(...sentence.words.map((word, index) =>
      html("option", { value: index, selected: index === asks }, word)));

    const background = () => {
      const parts = [];
      for (let at = 0; at <= 3; at++) {
        const [x, base] = pixel([at, 0]), [left, y] = pixel([0, at]);
        const [, top] = pixel([0, REACH]), [right] = pixel([REACH, 0]);
        const ink = at === 0 ? "var(--figure-ink)" : "var(--figure-grid)";
        parts.push(svg("line", { x1: x, y1: base, x2: x, y2: top, style: `stroke:${ink}` }),
          svg("line", { x1: left, y1: y, x2: right, y2: y, style: `stroke:${ink}` }));
      }
      const text = (x, y, anchor, words) => svg("text", { x, y, "text-anchor": anchor, "font-size": 16, style: "fill:var(--figure-ink)" }, words);
      parts.push(text(LEFT - 8, 18, "start", "↑ house"), text(size - 8, size + 14, "end", "technology →"));
      return parts;
    };

    const pulls = (row) => points.map((point, index) => {
      if (index === asks) return null;
      const [x1, y1] = pixel(points[asks]), [x2, y2] = pixel(point);
      return svg("line", { class: "pull", "data-word": index, x1, y1, x2, y2, "stroke-linecap": "round", "stroke-width": 0.75 + 16 * row[index], style: "stroke:var(--value)", opacity: 0.75 });
    });

    const move = (index, point) => { points[index] = point.map(clamp); draw(); };

    let named = []; // where names are written: left, right and baseline of each
    // The first baseline for a name where no other name is: the first choice, or above the mark, a line higher each time.
    const free = (text, x, first, above, anchor) => {
      const width = 9 * text.length, left = anchor === "end" ? x - width : x;
      const taken = (y) => named.some(([from, to, base]) => left < to + 4 && from < left + width + 4 && Math.abs(base - y) < 16);
      let y = first;
      for (let line = 0; taken(y); line++) y = above - 17 * line;
      named.push([left, left + width, y]);
      return y;
    };

    const dot = (index, row) => {
      const [x, y] = pixel(points[index]);
      const color = index === asks ? "var(--query)" : "var(--value)";
      const companions = sentence.words.filter((_, other) => points[other][0] === points[index][0] && points[other][1] === points[index][1]);
      const first = sentence.words.findIndex((_, other) => points[other][0] === points[index][0] && points[other][1] === points[index][1]);
      const low = points[index][0] > 2.6;
      const node = handle(picture, index, `${first === index ? companions.join(", ") : sentence.words[index]}: technology ${short(points[index][0])}, house ${short(points[index][1])}, share ${tidy(row[index])}. Arrow keys move it.`, {
        point: points[index], step: STEP, size, move,
        read: (right, down) => [(right - LEFT) / UNIT, REACH - (down - TOP) / UNIT],
      },
      svg("circle", { class: "halo", cx: x, cy: y, r: 22, fill: "transparent" }),
      svg("circle", { cx: x, cy: y, r: 8, style: `fill:${color};stroke:var(--figure-ink)`, "stroke-width": 1.5 }));
      if (first === index) {
        const below = points[index][1] < 0.5; // beside the axis, names stand under it
        const text = companions.join(", "), anchor = low ? "end" : "start", left = low ? x - 6 : below ? x - 8 : x + 13;
        const base = free(text, left, below ? pixel([0, 0])[1] + 17 : y - 12, y - 12, anchor);
        node.append(svg("text", { x: left, y: base, "text-anchor": anchor, "font-size": 16,
          style: "fill:var(--figure-ink);paint-order:stroke;stroke:var(--figure-paper);stroke-width:4px" }, text));
      }
      return node;
    };

    const arrow = (from, to) => {
      const [x1, y1] = pixel(from), [x, y] = pixel(to);
      const angle = Math.atan2(y - y1, x - x1), length = Math.hypot(x - x1, y - y1);
      const x2 = x - 10 * Math.cos(angle), y2 = y - 10 * Math.sin(angle); // the arrow stops at the ring
      const shoulder = (side) => `${x2 - 11 * Math.cos(angle + side)},${y2 - 11 * Math.sin(angle + side)}`;
      return [
        length > 22 ? svg("line", { x1, y1, x2: x2 - 8 * Math.cos(angle), y2: y2 - 8 * Math.sin(angle), style: "stroke:var(--figure-ink)", "stroke-width": 3 }) : null,
        length > 22 ? svg("polygon", { points: `${x2},${y2} ${shoulder(0.45)} ${shoulder(-0.45)}`, style: "fill:var(--figure-ink)" }) : null,
        svg("circle", { class: "moved", cx: x, cy: y, r: 7, style: "fill:var(--figure-paper);stroke:var(--query)", "stroke-width": 4 }),
      ];
    };

    const coordinate = (index, axis) => html("input", {
      type: "number", min: 0, max: REACH, step: STEP, value: short(points[index][axis]), "data-field": `${index}-${axis}`,
      "aria-label": `${sentence.words[index]}, ${["technology", "house"][axis]}`,
      onchange: (event) => {
        const point = [...points[index]];
        point[axis] = Number(event.target.value) || 0;
        move(index, point);
        table.querySelector(`[data-field="${index}-${axis}"]`).focus();
      },
    });

    const fillTable = (weights) => {
      const asker = sentence.words[asks];
      table.replaceChildren(
        html("thead", {}, html("tr", {}, column("word"), column("tech."), column("house"), column(`${asker} takes`), column(`gives ${asker}'s weight`))),
        html("tbody", {}, ...sentence.words.map((word, index) => html("tr", { class: index === asks ? "asks" : null },
          rowHead(word), html("td", {}, coordinate(index, 0)), html("td", {}, coordinate(index, 1)),
          html("td", { class: "takes" }, tidy(weights[asks][index])), html("td", { class: "back" }, tidy(weights[index][asks]))))));
      table.querySelectorAll("thead th")[4].textContent = `takes from ${asker}`;
    };

    const draw = () => {
      const weights = weightsOf(points, points), moved = mix(weights, points)[asks];
      const order = sentence.words.map((_, index) => index).sort((a, b) => (a === asks) - (b === asks));
      named = [];
      picture.replaceChildren(...background(), ...pulls(weights[asks]).filter(Boolean),
        ...order.map((index) => dot(index, weights[asks])), ...arrow(points[asks], moved).filter(Boolean));
      fillTable(weights);
      const side = Math.abs(moved[0] - moved[1]) < 0.05 ? "undecided" : moved[1] > moved[0] ? "nearer to house" : "nearer to technology";
      output.textContent = `new ${sentence.words[asks]} = (${tidy(moved[0], 2)}, ${tidy(moved[1], 2)}), ${side}`;
    };

    const choose = (index) => { load(index); fillSelect(); draw(); };
    let current = 0;
    root.replaceChildren(
      head("Context mixer", "W05a"),
      html("div", { class: "widget-controls" },
        choices("Sentence", ["I closed the windows", "I bought new windows for my computer"], 0, (index) => { current = index; choose(index); }),
        html("label", { for: "W05a-asks" }, "Which query? ", select),
        html("button", { type: "button", onclick: () => choose(current) }, "Start again")),
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture), html("div", { class: "side" }, table, output)));
    fillSelect();
    draw();
  };

  // ---- W05b: from Q, K, V to the output, one step and one cell at a time ---------------------------------

  const WORDS = ["I", "closed", "the", "windows", "and", "doors"];
  const VECTORS = [[1, 0], [1, 1], [0, 1], [2, 0], [0, 0], [2, 1]];
  const FEATURES = ["1st", "2nd"];
  const STEPS = ["Q, K, V", "Q·Kᵀ", "÷ √2", "softmax", "mix V"];

  const matrix = ({ name, rows, columns, values, digits, role = "", heat = false, mark = () => "", onPick = null, chosen = null }) => {
    const cell = (row, column) => {
      const number = values[row][column];
      const isChosen = chosen && chosen[0] === row && chosen[1] === column;
      const shade = heat ? `background:color-mix(in srgb, #0072b2 ${Math.round(number * 100)}%, var(--figure-paper));color:${number >= 0.92 ? "#fff" : "var(--on-weight)"}` : null;
      const attributes = { class: [mark(row, column), isChosen ? "chosen" : ""].join(" ").trim() || null, style: shade };
      if (onPick) {
        Object.assign(attributes, {
          role: "gridcell", tabindex: isChosen ? 0 : -1, "aria-selected": isChosen ? "true" : "false", "data-cell": `${row}-${column}`,
          onclick: () => onPick(row, column, true),
          onkeydown: onArrow((right, down) => onPick(stepped(row, down, rows.length), stepped(column, right, columns.length), true)),
        });
      }
      return html("td", attributes, tidy(number, digits));
    };
    return html("table", { class: `matrix ${role}`, role: onPick ? "grid" : null },
      html("caption", {}, name),
      html("thead", {}, html("tr", {}, html("td", { style: "border:0" }), ...columns.map(column))),
      html("tbody", {}, ...rows.map((word, row) => html("tr", {}, rowHead(word), ...columns.map((_, column) => cell(row, column))))));
  };

  const matrixStepper = (root) => {
    let count = 4, step = 1, swapped = false, chosen = [3, 1];
    const body = html("div", { class: "widget-body" });
    const output = html("output", { "aria-live": "polite" });
    const countText = html("span", {}, "4");

    const numbers = () => {
      const V = VECTORS.slice(0, count), Q = V, K = swapped ? V.map(([x, y]) => [y, x]) : V;
      const raw = products(Q, K), scaled = raw.map((row) => row.map((product) => product / Math.SQRT2));
      const A = weightsOf(Q, K);
      return { Q, K, V, raw, scaled, A, Z: mix(A, V), words: WORDS.slice(0, count) };
    };

    const views = (m) => {
      const [row, column] = chosen, square = { rows: m.words, columns: m.words }, tall = { rows: m.words, columns: FEATURES };
      const inRow = (name) => (r) => (r === row ? name : ""), inColumn = (name) => (r) => (r === column ? name : "");
      const same = (r, c) => (r === row && c === column ? "used" : "");
      const pick = { onPick, chosen };
      const Q = (mark) => ({ ...tall, name: "Q", values: m.Q, digits: 0, role: "q", mark });
      const K = (mark) => ({ ...tall, name: "K", values: m.K, digits: 0, role: "k", mark });
      const V = (mark) => ({ ...tall, name: "V", values: m.V, digits: 0, role: "v", mark });
      const raw = { ...square, name: "Q·Kᵀ", values: m.raw, digits: 0 }, scaled = { ...square, name: "S = Q·Kᵀ ÷ √2", values: m.scaled, digits: 3 };
      const A = { ...square, name: "A, the weights", values: m.A, digits: 3, heat: true };
      return [
        () => [Q(inRow("used")), K(inRow("met")), { ...V(), ...pick }],
        () => [Q(inRow("used")), "·", K(inColumn("met")), "→", { ...raw, ...pick }],
        () => [{ ...raw, mark: same }, "→", { ...scaled, ...pick }],
        () => [{ ...scaled, mark: inRow("used") }, "→", { ...A, ...pick }],
        () => [{ ...A, mark: inRow("used") }, "·", V((r, c) => (c === column ? "mixed" : "")), "→", { ...tall, name: "Z, the output", values: m.Z, digits: 3, ...pick }],
      ][step]();
    };

    const sentence = (m) => {
      const [row, column] = chosen, query = m.words[row], key = m.words[column];
      const sum = (left, right, digits) => left.map((number, i) => `${short(Number(number.toFixed(digits)))}·${short(right[i])}`).join(" + ");
      return [
        () => `${query}: q = (${m.Q[row].join(", ")}), k = (${m.K[row].join(", ")}), v = (${m.V[row].join(", ")})` + (swapped ? "; W_K exchanged the features of the key" : ""),
        () => `query ${query}, key ${key}: ${sum(m.Q[row], m.K[column], 0)} = ${short(m.raw[row][column])}`,
        () => `query ${query}, key ${key}: ${short(m.raw[row][column])} ÷ √2 = ${tidy(m.scaled[row][column])}`,
        () => {
          const powers = m.scaled[row].map(Math.exp), total = powers.reduce((a, b) => a + b, 0);
          return `query ${query}, key ${key}: e^${tidy(m.scaled[row][column])} = ${tidy(powers[column])}; the row's total is ${tidy(total)}; weight ${tidy(m.A[row][column])}`;
        },
        () => `new ${query}, ${FEATURES[column]} number: ${sum(m.A[row], m.V.map((value) => value[column]), 3)} = ${tidy(m.Z[row][column])}`,
      ][step]();
    };

    const onPick = (row, column, focus) => {
      chosen = [row, column];
      draw();
      if (focus) body.querySelector(`[data-cell="${row}-${column}"]`).focus();
    };

    const draw = () => {
      const width = step === 0 || step === 4 ? 2 : count;
      chosen = [Math.min(chosen[0], count - 1), Math.min(chosen[1], width - 1)];
      const m = numbers();
      const parts = views(m), sign = (index) => (typeof parts[index - 1] === "string" ? html("span", { class: "sign" }, parts[index - 1]) : null);
      body.replaceChildren(...parts.flatMap((part, index) => (typeof part === "string" ? [] : [html("div", { class: "with-sign" }, sign(index), matrix(part))])));
      output.textContent = sentence(m);
      countText.textContent = count;
    };

    root.replaceChildren(
      head("Matrix stepper", "W05b"),
      html("div", { class: "widget-controls" },
        choices("Step", STEPS, step, (index) => { step = index; draw(); }),
        html("label", {}, "Words: ", countText, " ",
          html("input", { type: "range", min: 2, max: 6, value: count, "aria-label": "Number of words", oninput: (event) => { count = Number(event.target.value); draw(); } })),
        html("label", {}, html("input", { type: "checkbox", onchange: (event) => { swapped = event.target.checked; draw(); } }), " W_K exchanges the features")),
      body, output);
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => {
    const builders = { "context-mixer": contextMixer, "matrix-stepper": matrixStepper };
    document.querySelectorAll("[data-widget]").forEach((root) => builders[root.dataset.widget](root));
  });
})();
