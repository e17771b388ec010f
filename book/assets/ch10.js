/* Chapter 10: what each place reads and says (W10a), how large a step is (W10b), batches as rectangles (W10c). W10d, the
   laboratory, is chapter 08's script.

   A classic script beside widgets.js. It computes with the formulas of the page, and a test compares it with
   transformer_ref; W10c reads the lengths that the page's own cell has written into its script of JSON. */

(() => {
  "use strict";

  // ---- small tools -------------------------------------------------------------------------------------

  const { html, svg, head, column, rowHead, grid, thousands, choice, slider } = window.widgets;
  const label = (x, y, words, more = {}) => svg("text", { x, y, "text-anchor": "middle", "font-size": 15, style: "fill:var(--figure-ink)", ...more }, words);

  // ---- W10a: the shift player ------------------------------------------------------------------------------

  const ANSWERS = ["Ti", "amo", "molto", "<eos>"], T = ANSWERS.length;
  const BY = { "-1": "one to the left", 0: "not shifted", 1: "one to the right", 2: "two to the right" };
  const CELL = 92, FIRST = 58, WIDE = FIRST + T * CELL, ROWS = { says: 34, reads: 146 };

  /** Which label stands at each place of the input: its index, or null for <bos> in front and <pad> behind. */
  const shifted = (by) => grid(T, (place) => (place - by >= 0 && place - by < T ? place - by : null));

  const player = (root) => {
    let by = 0, place = 1, masked = true, mode = "training";
    const stage = svg("svg", { viewBox: `0 0 ${WIDE} 196`, class: "shift-stage" });
    const table = html("table"), said = html("output", { "aria-live": "polite" });
    const from = () => shifted(by);
    const word = (at) => (from()[at] === null ? (at < by ? "<bos>" : "<pad>") : ANSWERS[from()[at]]);
    const written = (at) => mode === "training" || (at <= place && (from()[at] ?? -1) < at); // a word is said before it is read
    const sees = (asking) => grid(T, (at) => at).filter((at) => written(at) && (!masked || at <= asking));
    const copies = (asking) => sees(asking).some((at) => from()[at] === asking);

    const box = (at, row, text, chosen, color) => {
      const x = FIRST + at * CELL, y = ROWS[row];
      return svg("g", {}, svg("rect", { x: x + 5, y: y - 22, width: CELL - 10, height: 34, rx: 7, "stroke-width": chosen ? 3 : 1.5, style: `fill:var(--figure-paper);stroke:${chosen ? "var(--figure-ink)" : color}` }), label(x + CELL / 2, y, text));
    };

    const draw = () => {
      const seen = sees(place), leak = copies(place);
      stage.replaceChildren(label(6, ROWS.says, "says", { "text-anchor": "start" }), label(6, ROWS.reads, "reads", { "text-anchor": "start" }));
      for (const at of seen) {
        const bad = from()[at] === place;
        const x = FIRST + at * CELL + CELL / 2, end = FIRST + place * CELL + CELL / 2;
        const color = bad ? "var(--mistake)" : "var(--query)";
        const tip = [end + (x - end) * 0.12, ROWS.says + 16], foot = [x, ROWS.reads - 24];
        const size = Math.hypot(tip[0] - foot[0], tip[1] - foot[1]), along = [(tip[0] - foot[0]) / size, (tip[1] - foot[1]) / size];
        const side = (by) => `${tip[0] - 11 * along[0] + by * along[1]},${tip[1] - 11 * along[1] - by * along[0]}`;
        stage.append(svg("line", { x1: foot[0], y1: foot[1], x2: tip[0] - 9 * along[0], y2: tip[1] - 9 * along[1], "stroke-width": bad ? 4 : 2, style: `stroke:${color}` }),
          svg("polygon", { points: `${tip.join()} ${side(6)} ${side(-6)}`, style: `fill:${color}` }));
        if (bad) stage.append(label((x + end) / 2 + 12, (ROWS.reads + ROWS.says) / 2, "✗", { "font-size": 20, "font-weight": 700 }));
      }
      const hold = svg("rect", { x: FIRST, y: ROWS.reads - 22, width: T * CELL, height: 34, fill: "transparent" }); // between words, too
      const moving = svg("g", { class: "handle", "data-row": "reads" }, hold);
      for (let at = 0; at < T; at++) {
        stage.append(box(at, "says", mode === "training" || at <= place ? ANSWERS[at] : "?", at === place, "var(--edge)"));
        moving.append(box(at, "reads", written(at) ? word(at) : "", seen.includes(at), "var(--edge)"));
        stage.append(label(FIRST + at * CELL + CELL / 2, 186, `place ${at}`, { "font-size": 13 }));
      }
      stage.append(moving);
      const visible = seen.map(word).join(" ") || "nothing";
      stage.setAttribute("aria-label", `The input is ${BY[by]}. Place ${place} sees ${visible} and should say ${ANSWERS[place]}.`);
      table.replaceChildren(
        html("thead", {}, html("tr", {}, column("place"), column("reads"), column("sees"), column("should say"), column("computed in"))),
        html("tbody", {}, ...grid(T, (at) => {
          const there = mode === "training" || at <= place;
          return html("tr", { class: there && copies(at) ? "leak" : "" }, rowHead(at),
            html("td", {}, written(at) ? word(at) : "(not yet)"), html("td", {}, there ? sees(at).map(word).join(" ") : ""),
            html("td", { class: "told" }, there ? `${ANSWERS[at]}${copies(at) ? " ✗" : ""}` : ""),
            html("td", {}, mode === "training" ? "the one pass" : there ? `pass ${at + 1}` : ""));
        })));
      const verdict = mode === "translating" && by < 1
        ? "what it learned to read there has not been written yet. This shift exists in training only."
        : leak
        ? `its answer, ${ANSWERS[place]}, is among them: it can copy. The loss will be wonderful.`
        : by === 1
          ? masked || mode === "translating" ? "its answer is not among them, and the newest word is. This is right." : "here its answer is not among them. Look at the other places."
          : by === 2 ? "no answer leaks, but the newest word is missing." : "here its answer is not among them. Look at the other places.";
      said.textContent = `Input ${BY[by]}, ${masked ? "causal mask" : "no mask"}. Place ${place} sees ${visible}; ${verdict}`;
    };

    const pull = slider("the input is", "W10a-by", { min: -1, max: 2, value: by }, (value) => BY[value], (value) => { by = value; draw(); });
    let start = null; // of a drag: where the pointer went down, and the shift at that moment
    stage.addEventListener("pointerdown", (event) => {
      if (!event.target.closest("[data-row]")) return;
      start = { x: event.clientX, by };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener("pointermove", (event) => {
      if (!start) return;
      const cells = ((event.clientX - start.x) * WIDE) / stage.getBoundingClientRect().width / CELL;
      const wanted = Math.max(-1, Math.min(2, start.by + Math.round(cells)));
      if (wanted === by) return;
      const input = pull.querySelector("input");
      input.value = wanted;
      input.dispatchEvent(new Event("input"));
    });
    for (const name of ["pointerup", "pointercancel"]) stage.addEventListener(name, () => { start = null; });
    stage.setAttribute("role", "img");
    root.replaceChildren(
      head("Shift player", "W10a"),
      html("div", { class: "widget-controls" }, pull,
        choice("place", "W10a-place", grid(T, (at) => [String(at), at]), place, (value) => { place = value; draw(); }),
        choice("causal mask", "W10a-mask", [["on", true], ["off", false]], masked, (value) => { masked = value; draw(); }),
        choice("the model is", "W10a-mode", [["training", "training"], ["translating", "translating"]], mode, (value) => { mode = value; draw(); })),
      html("div", { class: "plane" }, stage), table, said);
    draw();
  };

  // ---- W10b: the learning rate --------------------------------------------------------------------------------

  const LENGTH = 20000, FINAL = 0.02; // steps; the share of the peak that the cosine ends at
  const FALLS = {
    root: (step, warm) => Math.min(step / warm, Math.sqrt(warm / step)),
    line: (step, warm) => Math.min(step / warm, 1) * (1 - (step - 1) / LENGTH),
    cosine: (step, warm) => Math.min(step / warm, 1) * (FINAL + ((1 - FINAL) * (1 + Math.cos((Math.PI * (step - 1)) / LENGTH))) / 2),
  };
  const NAMES = { root: "1 / √step, the paper's", line: "a straight line", cosine: "half a cosine" };
  const peakOf = (d, warm) => 1 / Math.sqrt(d * warm);
  const SMALL = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const exponent = (rate) => { // 0.000699 as 6.99 · 10⁻⁴, in one piece
    const [number, power] = rate.toExponential(2).split("e-");
    return `${number}\u00a0·\u00a010⁻${[...power].map((digit) => SMALL[digit]).join("")}`;
  };
  const STEPS = [1, 100, 400, 1000, 2000, 4000, 10000, LENGTH];

  const schedules = (root) => {
    let d = 512, warm = 4000, fall = "root", step = 4000;
    const W = 420, H = 240, LEFT = 62, RIGHT = 14, TOP = 14, BOTTOM = 40;
    const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    const table = html("table"), said = html("output", { "aria-live": "polite" });
    const rate = (at, kind = fall) => peakOf(d, warm) * FALLS[kind](at, warm);

    const draw = () => {
      const top = peakOf(d, warm), x = (at) => LEFT + (at / LENGTH) * (W - LEFT - RIGHT), y = (value) => H - BOTTOM - (value / top) * (H - TOP - BOTTOM);
      picture.replaceChildren();
      for (const share of [0, 0.5, 1]) {
        picture.append(svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(share * top), y2: y(share * top), style: "stroke:var(--figure-grid)" }),
          label(LEFT - 6, y(share * top) + 5, share ? (share * top).toExponential(1) : "0", { "text-anchor": "end", "font-size": 13 }));
      }
      for (const at of [0, 10000, LENGTH]) picture.append(label(x(at), H - BOTTOM + 20, thousands(at), { "font-size": 13, "text-anchor": at === LENGTH ? "end" : "middle" }));
      picture.append(label((LEFT + W) / 2, H - 4, "step; the top line is the peak of the paper's rule", { "font-size": 13 }));
      const points = grid(401, (index) => Math.max(1, Math.round((index * LENGTH) / 400)));
      picture.append(svg("polyline", { points: points.map((at) => `${x(at).toFixed(1)},${y(rate(at)).toFixed(1)}`).join(" "), fill: "none", "stroke-width": 2.6, style: "stroke:var(--query)" }),
        svg("circle", { cx: x(step), cy: y(rate(step)), r: 6, style: "fill:var(--figure-paper);stroke:var(--figure-ink)", "stroke-width": 2.5 }));
      picture.setAttribute("aria-label", `Learning rate over ${thousands(LENGTH)} steps: it grows for ${thousands(warm)} steps, then falls by ${NAMES[fall]}, to ${exponent(rate(LENGTH))}.`);
      table.replaceChildren(
        html("caption", {}, "rate at a step"),
        html("thead", {}, html("tr", {}, column("step"), column("1 / √step"), column("line"), column("cosine"))),
        html("tbody", {}, ...STEPS.map((at) => html("tr", {}, rowHead(thousands(at)), ...Object.keys(FALLS).map((kind) => html("td", {}, rate(at, kind).toExponential(2)))))));
      said.textContent = `d = ${d}, warm-up ${thousands(warm)}: at step ${thousands(step)} the rate is ${exponent(rate(step))}, ${(100 * rate(step) / peakOf(d, warm)).toFixed(1)} % of the peak, ${exponent(peakOf(d, warm))}.`;
    };

    const warmSlider = slider("warm-up", "W10b-warm", { min: 100, max: 10000, step: 100, value: warm }, (value) => `${thousands(value)} steps`, (value) => { warm = value; draw(); });
    const at = (index) => Math.max(1, index * 100); // 0 is step 1
    const stepSlider = slider("look at step", "W10b-step", { min: 0, max: LENGTH / 100, value: step / 100 }, (value) => thousands(at(value)), (value) => { step = at(value); draw(); });
    root.replaceChildren(
      head("How large is a step?", "W10b"),
      html("div", { class: "widget-controls" },
        choice("d", "W10b-d", [128, 256, 512, 1024].map((size) => [String(size), size]), d, (value) => { d = value; draw(); }),
        choice("it falls by", "W10b-fall", [["1 / √step", "root"], ["a line", "line"], ["a cosine", "cosine"]], fall, (value) => { fall = value; draw(); }),
        warmSlider, stepSlider),
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture), html("div", { class: "side" }, table)), said);
    draw();
  };

  // ---- W10c: batches as rectangles ------------------------------------------------------------------------------

  /** Lists of indices: sorted by length and filled, as they come and filled, or the same number in each. */
  const PACKED = {
    sorted: (lengths, limit) => filled([...lengths.keys()].sort((a, b) => lengths[a] - lengths[b] || a - b), lengths, limit),
    come: (lengths, limit) => filled([...lengths.keys()], lengths, limit),
    equal: (lengths, limit) => {
      const size = Math.floor(limit / Math.max(...lengths));
      return grid(Math.ceil(lengths.length / size), (number) => [...lengths.keys()].slice(number * size, (number + 1) * size));
    },
  };
  const filled = (order, lengths, limit) => {
    const batches = [[]];
    let longest = 0;
    for (const item of order) {
      let last = batches[batches.length - 1];
      longest = Math.max(longest, lengths[item]);
      if (longest * (last.length + 1) > limit) {
        batches.push(last = []);
        longest = lengths[item];
      }
      last.push(item);
    }
    return batches;
  };
  const SHOWN = 24; // rows of a batch that are drawn

  const batching = (root, { lengths }) => {
    let limit = 512, order = "come", number = 0, batches = [];
    const picture = svg("svg", { role: "img", class: "rectangle" }), said = html("output", { "aria-live": "polite" });
    const table = html("table");
    const total = lengths.reduce((sum, length) => sum + length, 0);
    const cellsOf = (packed) => packed.reduce((sum, items) => sum + items.length * Math.max(...items.map((item) => lengths[item])), 0);
    const pads = (cells, real) => `${((100 * (cells - real)) / cells).toFixed(1)} %`;

    const draw = () => {
      const items = batches[number], own = items.map((item) => lengths[item]), longest = Math.max(...own);
      const real = own.reduce((sum, length) => sum + length, 0), rows = own.slice(0, SHOWN), unit = 14, high = 9;
      picture.replaceChildren(
        svg("defs", {}, svg("pattern", { id: "W10c-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          svg("rect", { width: 6, height: 6, style: "fill:var(--figure-paper)" }), svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, "stroke-width": 3, style: "stroke:var(--mask)" }))));
      picture.setAttribute("viewBox", `0 0 ${25 * unit + 2} ${SHOWN * (high + 2) + 2}`);
      rows.forEach((length, row) => picture.append(
        svg("rect", { x: 1, y: 1 + row * (high + 2), width: length * unit, height: high, style: "fill:var(--query)", opacity: 0.75 }),
        svg("rect", { x: 1 + length * unit, y: 1 + row * (high + 2), width: (longest - length) * unit, height: high, style: "fill:url(#W10c-hatch)" })));
      const told = `Batch ${number + 1} of ${batches.length}: ${items.length} sentences, longest ${longest}, ${items.length * longest} cells, ${pads(items.length * longest, real)} of them pads.`;
      picture.setAttribute("aria-label", `${told} Words are bars, pads are hatched.${items.length > SHOWN ? ` The first ${SHOWN} sentences are drawn.` : ""}`);
      said.textContent = `${told}${items.length > SHOWN ? ` The first ${SHOWN} are drawn.` : ""}`;
    };

    const pack = () => {
      const packed = Object.entries(PACKED).map(([name, make]) => [name, make(lengths, limit)]);
      batches = Object.fromEntries(packed)[order];
      number = Math.min(number, batches.length - 1);
      const names = { sorted: "sorted", come: "as they come", equal: "equal number" };
      table.replaceChildren(
        html("caption", {}, `all ${thousands(lengths.length)} sentences, at most ${thousands(limit)} cells`),
        html("thead", {}, html("tr", {}, column("order"), column("batches"), column("cells"), column("pads"))),
        html("tbody", {}, ...packed.map(([name, made]) => html("tr", { class: name === order ? "chosen-row" : "", "data-order": name }, rowHead(names[name]),
          html("td", {}, thousands(made.length)), html("td", {}, thousands(cellsOf(made))), html("td", {}, pads(cellsOf(made), total))))));
      draw();
    };

    const go = (by) => { number = (number + by + batches.length) % batches.length; draw(); };
    root.replaceChildren(
      head("Batches as rectangles", "W10c"),
      html("div", { class: "widget-controls" },
        choice("cells in a batch, at most", "W10c-limit", [64, 128, 256, 512, 1024, 1536, 4096].map((size) => [thousands(size), size]), limit, (value) => { limit = value; pack(); }),
        choice("sentences", "W10c-order", [["sorted by length", "sorted"], ["as they come", "come"], ["an equal number", "equal"]], order, (value) => { order = value; pack(); }),
        html("div", {}, html("button", { type: "button", onclick: () => go(-1) }, "← batch before"), " ", html("button", { type: "button", onclick: () => go(1) }, "next batch →"))),
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture), html("div", { class: "side" }, table)), said);
    pack();
  };

  document.addEventListener("DOMContentLoaded", () => {
    const written = document.getElementById("training-data");
    const data = written ? JSON.parse(written.textContent) : {};
    const builders = { "shift-player": player, schedule: schedules, batching: (root) => batching(root, data) };
    document.querySelectorAll("[data-training]").forEach((root) => builders[root.dataset.training](root));
  });
})();
