/* Chapter 01's two script widgets: the path explorer (W01a) and the gradient meter (W01b).

   A classic script, so that the page works straight from the disk. The numbers are path_length and w ** steps, the same
   as on the page; a plain-text twin stands below each widget. */

(() => {
  "use strict";

  const { html, svg, head, choices } = window.widgets;
  const INK = "fill:var(--figure-ink)";

  const slider = (label, min, max, step, value, onInput) => {
    const input = html("input", { type: "range", min, max, step, value, "aria-label": label, oninput: () => onInput(Number(input.value)) });
    const shown = html("span", {}, "");
    const show = (number, words) => { input.value = number; input.setAttribute("aria-valuetext", words); shown.textContent = words; };
    return { input, show, node: html("label", {}, `${label} `, shown, " ", input) };
  };

  // ---- W01a: how many steps lie between two words? -------------------------------------------------------

  // The first and the last piece are always there; the slider adds those in between. * marks the two words that belong together.
  const TEXTS = [
    { name: "person … was", pieces: ["The *person", "who lives next door", "and feeds my cat", "whenever I travel", "*was late"] },
    { name: "boy … He", pieces: ["The *boy was going outside", "with his friends", "and the dog of his aunt", "on a rainy Sunday in May", "*He entered the shop and bought oranges"] },
    { name: "Wicked … tickets", pieces: [
      "I want to watch *Wicked!", "How does the weather in New York look next week?",
      "It looks sunny, with some light rain at the weekend.", "Oh, but I have no rain jacket. Is there a store nearby?",
      "There is one a mile away. They have the blue jacket you have been eyeing for a while.",
      "Looks like I can go! Book the *tickets."] },
  ];
  const plain = (word) => word.replace(/[.,!?]/g, "");
  const KINDS = ["recurrent", "windows", "attention"];
  const WIDTHS = [3, 5, 7];
  const WIDE = 360, EDGE = 14;
  const ROWS = [{ label: 14, base: 56 }, { label: 88, base: 206 }, { label: 238, base: 306 }]; // one for each kind
  const STAIRS = 96; // how high the stack of windows may grow

  const pathLength = (kind, i, j, k) => {
    const distance = Math.abs(i - j);
    return [distance, Math.ceil(distance / ((k - 1) / 2)), Math.min(distance, 1)][kind];
  };

  const pathExplorer = (root) => {
    let text = 0, middle = 3, width = 0, words = [], from = 0, to = 1;
    const sentence = html("p", { class: "path-words" });
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} 316`, role: "img" });
    const output = html("output", { "aria-live": "polite" });
    const more = slider("Length of the text:", 0, 3, 1, middle, (value) => { middle = value; load(); });
    const first = slider("One word:", 0, 1, 1, 0, (value) => { from = value; draw(); });
    const second = slider("Other word:", 0, 1, 1, 1, (value) => { to = value; draw(); });

    const load = () => {
      const { pieces } = TEXTS[text];
      more.input.max = pieces.length - 2;
      middle = Math.min(middle, pieces.length - 2);
      const marked = [...pieces.slice(0, 1 + middle), pieces[pieces.length - 1]].join(" ").split(" ");
      words = marked.map((word) => word.replace("*", ""));
      [from, to] = marked.flatMap((word, index) => (word.startsWith("*") ? [index] : []));
      for (const each of [first, second]) each.input.max = words.length - 1;
      draw();
    };

    const pick = (index) => {
      if (Math.abs(index - from) < Math.abs(index - to)) from = index; else to = index;
      draw();
    };

    const x = (word) => EDGE + (WIDE - 2 * EDGE) * (words.length === 1 ? 0 : word / (words.length - 1));
    const dot = (word, y, radius, color) => svg("circle", { cx: x(word), cy: y, r: radius, style: `fill:var(${color});stroke:var(--figure-ink)` });
    const arc = (kind, a, b, base, height) => svg("path", {
      class: `hop ${kind}`, d: `M ${x(a)} ${base} Q ${(x(a) + x(b)) / 2} ${base - 2 * height} ${x(b)} ${base}`,
      style: "fill:none;stroke:var(--figure-ink)", "stroke-width": 2 });

    const chain = (low, high, base) => Array.from({ length: high - low }, (_, step) => arc("recurrent", low + step, low + step + 1, base, 13));

    const stairs = (low, high, base) => {
      const reach = (WIDTHS[width] - 1) / 2, layers = pathLength(1, low, high, WIDTHS[width]), rise = Math.min(24, STAIRS / Math.max(layers, 1));
      return Array.from({ length: layers }, (_, layer) => {
        const a = low + layer * reach, b = Math.min(a + reach, high), y = base - layer * rise;
        return svg("g", { class: "hop windows" },
          layers > 20 ? null : svg("line", { x1: EDGE, y1: y - rise, x2: WIDE - EDGE, y2: y - rise, style: "stroke:var(--figure-grid)" }),
          svg("line", { x1: x(a), y1: y, x2: x(b), y2: y - rise, style: "stroke:var(--figure-ink)", "stroke-width": 2 }),
          dot(b, y - rise, layers > 20 ? 2 : 3.5, "--figure-paper"));
      });
    };

    const leap = (low, high, base) => (low === high ? [] : [arc("attention", low, high, base, Math.min(48, 10 + (x(high) - x(low)) / 4))]);

    const row = (kind, told) => {
      const { label, base } = ROWS[kind], low = Math.min(from, to), high = Math.max(from, to);
      const small = Math.min(3, x(1) / 5);
      return [
        svg("text", { x: 2, y: label, "font-size": 13, style: INK }, told),
        ...words.map((_, index) => dot(index, base, small, "--figure-paper")),
        ...[chain, stairs, leap][kind](low, high, base),
        dot(from, base, 5, "--figure-ink"), dot(to, base, 5, "--figure-ink")];
    };

    const draw = () => {
      const k = WIDTHS[width], distance = Math.abs(from - to);
      const told = KINDS.map((name, kind) => {
        const steps = pathLength(kind, from, to, k), unit = kind === 1 ? "layer" : "step";
        return `${kind === 1 ? `windows of ${k}` : name}: ${steps} ${unit}${steps === 1 ? "" : "s"}`;
      });
      sentence.replaceChildren(...words.flatMap((word, index) => [
        html("span", { class: index === to || index === from ? "end" : null, onclick: () => pick(index) }, word), " "]));
      picture.replaceChildren(...KINDS.flatMap((_, kind) => row(kind, told[kind])));
      picture.setAttribute("aria-label", `${words.length} words as dots in a row, three times, and three ways from ${plain(words[from])} to ${plain(words[to])}: ${told.join(", ")}.`);
      output.textContent = `${plain(words[from])} and ${plain(words[to])} are ${distance} word${distance === 1 ? "" : "s"} apart. ${told.join(" · ")}.`;
      more.show(middle, `${words.length} words`);
      first.show(from, plain(words[from]));
      second.show(to, plain(words[to]));
    };

    root.replaceChildren(
      head("Path explorer", "W01a"),
      html("div", { class: "widget-controls" },
        choices("Text", TEXTS.map(({ name }) => name), text, (index) => { text = index; load(); }),
        choices("Window", WIDTHS.map(String), width, (index) => { width = index; draw(); })),
      sentence,
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture),
        html("div", { class: "side sliders" }, more.node, first.node, second.node)), output);
    load();
  };

  // ---- W01b: what is left of a gradient after so many steps? ---------------------------------------------

  const PLOT = { left: 56, right: 14, top: 14, bottom: 34 };
  const DECADES = 10; // the axis of powers of ten runs from 10^-10 to 10^10
  const raised = (power) => String(power).replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]));
  const digits = (number) => (number >= 0.001 && number < 10000 ? number.toPrecision(3) : number.toExponential(2).replace(/e\+?(.*)/, (_, power) => ` · 10${raised(power)}`));

  const gradientMeter = (root) => {
    let weight = 0.9, length = 50, powers = false;
    const high = 230;
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${high}`, role: "img" });
    const output = html("output", { "aria-live": "polite" });
    const w = slider("Weight w =", 0.8, 1.2, 0.01, weight, (value) => { weight = value; draw(); });
    const T = slider("Words T =", 2, 100, 1, length, (value) => { length = value; draw(); });

    const x = (word) => PLOT.left + 12 + (WIDE - PLOT.left - PLOT.right - 12) * (word - 1) / (length - 1);
    const y = (value) => {
      const share = powers ? (Math.log10(value) + DECADES) / (2 * DECADES) : value / 2;
      return high - PLOT.bottom - (high - PLOT.top - PLOT.bottom) * Math.min(1, Math.max(0, share));
    };
    const text = (at, line, anchor, words) => svg("text", { x: at, y: line, "text-anchor": anchor, "font-size": 13, style: INK }, words);

    const axes = () => {
      const marks = powers ? [-10, -5, 0, 5, 10].map((exponent) => [10 ** exponent, exponent === 0 ? "1" : `10${raised(exponent)}`])
        : [0, 0.5, 1, 1.5, 2].map((value) => [value, String(value)]);
      return [
        ...marks.flatMap(([value, label]) => [
          svg("line", { x1: PLOT.left, x2: WIDE - PLOT.right, y1: y(value), y2: y(value), style: `stroke:var(${value === 1 ? "--figure-ink" : "--figure-grid"})` }),
          text(PLOT.left - 6, y(value) + 4, "end", label)]),
        text(PLOT.left, high - 12, "start", "word 1"), text(WIDE - PLOT.right, high - 12, "end", `word ${length}`)];
    };

    const draw = () => {
      const reached = weight ** (length - 1);
      const points = Array.from({ length }, (_, index) => `${x(index + 1).toFixed(1)},${y(weight ** (length - 1 - index)).toFixed(1)}`);
      const beyond = !powers && reached > 2;
      picture.replaceChildren(...axes(),
        svg("polyline", { points: points.join(" "), style: "fill:none;stroke:var(--figure-ink)", "stroke-width": 2.5 }),
        svg("circle", { cx: x(1), cy: y(reached), r: 6, style: `fill:var(${beyond ? "--figure-ink" : "--figure-paper"});stroke:var(--figure-ink)`, "stroke-width": 2 }));
      const told = `w to the power of T − 1 = ${weight.toFixed(2)}${raised(length - 1)} = ${digits(reached)}`;
      picture.setAttribute("aria-label", `A curve from word 1 to word ${length}: what a change of that word's state does to the last state. At word 1: ${told}.`);
      output.textContent = `Word 1: ${told}${beyond ? ", above the picture" : ""}.`;
      w.show(weight, weight.toFixed(2));
      T.show(length, String(length));
    };

    root.replaceChildren(
      head("Gradient meter", "W01b"),
      html("div", { class: "widget-controls" },
        choices("Scale", ["plain", "powers of ten"], 0, (index) => { powers = index === 1; draw(); })),
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture),
        html("div", { class: "side sliders" }, w.node, T.node)), output);
    draw();
  };

  const STYLE = `
    .widget .path-words { line-height: 1.7; margin: 0 0 0.6rem; }
    .widget .path-words span { cursor: pointer; padding: 0 0.1rem; }
    .widget .path-words .end { font-weight: 700; text-decoration: underline; text-decoration-thickness: 0.2em; text-underline-offset: 0.18em; }
    .widget .sliders label, .widget .sliders input { display: block; width: 100%; }
    .widget .sliders label { margin-bottom: 0.8rem; }`;

  document.addEventListener("DOMContentLoaded", () => {
    document.head.append(html("style", {}, STYLE));
    const builders = { "path-explorer": pathExplorer, "gradient-meter": gradientMeter };
    document.querySelectorAll("[data-chapter-widget]").forEach((root) => builders[root.dataset.chapterWidget](root));
  });
})();
