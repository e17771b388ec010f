/* Chapter 03: two arrows that can be moved, with their dot product, cosine and scaled dot product (W03a).

   A classic script of its own, loaded by its page alone. Its numbers come from the formulas of
   transformer_ref.model.similarity, and a test compares them. */

(() => {
  "use strict";

  const REACH = 4.5, UNIT = 44, MARGIN = 12, STEP = 0.5;
  const SIZE = 2 * (REACH * UNIT + MARGIN);
  const ARROWS = [{ name: "a", color: "var(--query)" }, { name: "b", color: "var(--key)" }];
  const STARTS = [
    ["the first pair", [[1, 4], [0, 3]]],
    ["the second pair", [[1, 4], [3, 0]]],
    ["opposite", [[1, 2], [-1.5, -3]]],
    ["a zero vector", [[2, 1], [0, 0]]],
  ];

  // ---- small tools -------------------------------------------------------------------------------------

  const { html, svg, column, rowHead, digits, handle } = window.widgets;

  const plain = (number) => String(Math.round(number * 1000) / 1000).replace("-", "−");
  const factor = (number) => (number < 0 ? `(${plain(number)})` : plain(number));

  // ---- the numbers ---------------------------------------------------------------------------------------

  const measure = ([a, b]) => {
    const dot = a[0] * b[0] + a[1] * b[1];
    const lengths = [Math.hypot(...a), Math.hypot(...b)];
    const cosine = lengths[0] && lengths[1] ? dot / (lengths[0] * lengths[1]) : 0;
    return { dot, lengths, cosine, scaled: dot / Math.SQRT2 };
  };

  const verdict = ({ lengths, cosine }) => {
    if (!lengths[0] || !lengths[1]) return "a zero vector points nowhere: its cosine is 0 by agreement";
    if (cosine > 0.9999) return "the same direction";
    if (cosine < -0.9999) return "opposite directions";
    if (Math.abs(cosine) < 0.0001) return "a right angle: the one says nothing about the other";
    const degrees = Math.round((Math.acos(cosine) * 180) / Math.PI);
    return `${degrees}° apart, more ${cosine > 0 ? "alike than not" : "opposite than alike"}`;
  };

  // ---- W03a ------------------------------------------------------------------------------------------------

  const pixel = ([x, y]) => [MARGIN + (x + REACH) * UNIT, MARGIN + (REACH - y) * UNIT];
  const snap = (number) => Math.min(4, Math.max(-4, Math.round(number / STEP) * STEP)) || 0;

  const grid = () => {
    const parts = [];
    for (let at = -4; at <= 4; at++) {
      const [x] = pixel([at, 0]), [, y] = pixel([0, at]);
      const ink = at === 0 ? "var(--figure-ink)" : "var(--figure-grid)";
      parts.push(svg("line", { x1: x, y1: MARGIN, x2: x, y2: SIZE - MARGIN, style: `stroke:${ink}` }),
        svg("line", { x1: MARGIN, y1: y, x2: SIZE - MARGIN, y2: y, style: `stroke:${ink}` }));
    }
    return parts;
  };

  const shaft = (from, to, color, width) => {
    const [x1, y1] = pixel(from), [x2, y2] = pixel(to);
    if (Math.hypot(x2 - x1, y2 - y1) < 1) return [];
    const angle = Math.atan2(y2 - y1, x2 - x1);
    const shoulder = (side) => `${x2 - 15 * Math.cos(angle + side)},${y2 - 15 * Math.sin(angle + side)}`;
    return [
      svg("line", { x1, y1, x2: x2 - 11 * Math.cos(angle), y2: y2 - 11 * Math.sin(angle), "stroke-width": width, style: `stroke:${color}` }),
      svg("polygon", { points: `${x2},${y2} ${shoulder(0.42)} ${shoulder(-0.42)}`, style: `fill:${color}` }),
    ];
  };

  // The shadow of b on the line of a: its length times the length of a is the dot product.
  const shadow = ([a, b], { dot, lengths }) => {
    if (!lengths[0] || !lengths[1]) return [];
    const part = dot / lengths[0] ** 2, foot = [a[0] * part, a[1] * part];
    const [x, y] = pixel(foot), [bx, by] = pixel(b), [ox, oy] = pixel([0, 0]);
    return [
      svg("line", { x1: bx, y1: by, x2: x, y2: y, "stroke-dasharray": "5 4", "stroke-width": 1.5, style: "stroke:var(--figure-ink)" }),
      svg("line", { class: "shadow", x1: ox, y1: oy, x2: x, y2: y, "stroke-width": 14, "stroke-linecap": "butt", opacity: 0.55, style: "stroke:var(--key)" }),
    ];
  };

  const build = (root) => {
    let points = STARTS[0][1].map((point) => [...point]);

    const picture = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": "Two arrows from the origin. Move the tip of one with the arrow keys." });
    const fields = html("table"), numbers = html("table");
    const output = html("output", { "aria-live": "polite" });

    const move = (index, point) => { points[index] = point.map(snap); draw(); };

    const tip = (index) => {
      const { name, color } = ARROWS[index], [x, y] = pixel(points[index]);
      const up = points[index][1] >= 0;
      return handle(picture, index, `Tip of ${name}: ${plain(points[index][0])}, ${plain(points[index][1])}. Arrow keys move it by a half.`, {
        point: points[index], step: STEP, size: SIZE, move,
        read: (right, down) => [(right - MARGIN) / UNIT - REACH, REACH - (down - MARGIN) / UNIT],
      },
      svg("circle", { class: "halo", cx: x, cy: y, r: 22, fill: "transparent" }),
      svg("circle", { cx: x, cy: y, r: 6, "stroke-width": 1.5, style: `fill:${color};stroke:var(--figure-ink)` }),
      svg("text", { x: x + (index ? -16 : 16), y: y + (up ? -12 : 24), "text-anchor": "middle", "font-size": 18, "font-weight": 600,
        style: "fill:var(--figure-ink);paint-order:stroke;stroke:var(--figure-paper);stroke-width:4px" }, name));
    };

    const coordinate = (index, axis) => html("input", {
      type: "number", min: -4, max: 4, step: STEP, value: points[index][axis], "data-field": `${index}-${axis}`,
      "aria-label": `${ARROWS[index].name}, ${["first", "second"][axis]} number`,
      onchange: (event) => {
        const point = [...points[index]];
        point[axis] = Number(event.target.value) || 0;
        move(index, point);
        fields.querySelector(`[data-field="${index}-${axis}"]`).focus();
      },
    });


    const fillTables = (found) => {
      fields.replaceChildren(
        html("thead", {}, html("tr", {}, column("arrow"), column("1st"), column("2nd"), column("length"))),
        html("tbody", {}, ...ARROWS.map(({ name }, index) => html("tr", {}, rowHead(name),
          html("td", {}, coordinate(index, 0)), html("td", {}, coordinate(index, 1)), html("td", {}, digits(found.lengths[index]))))));
      const [[a1, a2], [b1, b2]] = points.map((point) => point.map(factor));
      const lengths = found.lengths.map((length) => length.toFixed(3)).join(" · ");
      const rows = [
        ["dot", `${a1}·${b1} + ${a2}·${b2}`, plain(found.dot)],
        ["cosine", found.lengths[0] && found.lengths[1] ? `${plain(found.dot)} ÷ (${lengths})` : "by agreement", digits(found.cosine)],
        ["scaled", `${plain(found.dot)} ÷ √2`, digits(found.scaled)],
      ];
      numbers.replaceChildren(
        html("thead", {}, html("tr", {}, column("measure"), column("how"), column("number"))),
        html("tbody", {}, ...rows.map(([name, how, number]) => html("tr", {}, rowHead(name), html("td", {}, how), html("td", { class: "number", "data-measure": name }, number)))));
    };

    const draw = () => {
      const found = measure(points);
      picture.replaceChildren(...grid(), ...shadow(points, found),
        ...ARROWS.flatMap(({ color }, index) => shaft([0, 0], points[index], color, index ? 3.5 : 5)), ...ARROWS.map((_, index) => tip(index)));
      fillTables(found);
      output.textContent = `dot ${plain(found.dot)}, cosine ${digits(found.cosine)}, scaled ${digits(found.scaled)}: ${verdict(found)}`;
    };

    root.replaceChildren(
      html("p", { class: "widget-head" }, "Two arrows", " ", html("span", { class: "widget-id" }, "W03a")),
      html("div", { class: "widget-controls" }, ...STARTS.map(([label, start]) =>
        html("button", { type: "button", onclick: () => { points = start.map((point) => [...point]); draw(); } }, label))),
      html("div", { class: "widget-body" }, html("div", { class: "plane" }, picture), html("div", { class: "side" }, fields, html("div", { style: "height:0.7rem" }), numbers, output)));
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("[data-two-arrows]").forEach(build));
})();
