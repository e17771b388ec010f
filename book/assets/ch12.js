/* W12a and W12c of chapter 12: every head of a trained model, and where a translator errs.

   A classic script, so that the page works straight from the disk. The page prints the same as
   text; the weights come from the page itself. */

(() => {
  "use strict";

  const { html, column, rowHead, onArrow, stepped } = window.widgets;

  const MINIATURE = 56; // the side of a small map, in pixels

  const miniature = (rows) => {
    const canvas = html("canvas", { width: rows[0].length, height: rows.length, style: `width:${MINIATURE}px;height:${MINIATURE}px` });
    const context = canvas.getContext("2d");
    rows.forEach((row, y) => row.forEach((share, x) => {
      context.fillStyle = `rgba(0, 114, 178, ${share})`;
      context.fillRect(x, y, 1, 1);
    }));
    return canvas;
  };

  const modelView = (root, seen) => {
    const groups = ["encoder", "decoder", "cross"].flatMap((kind) => seen[kind].map((heads, layer) => ({ kind, layer, heads })));
    const titles = { encoder: "encoder, the source to itself", decoder: "decoder, the target to itself", cross: "cross, the target to the source" };
    const sides = (kind) => [kind === "encoder" ? seen.source : seen.target, kind === "decoder" ? seen.target : seen.source];
    let chosen = [1, 0];
    const table = html("table", { class: "looked ch12-map" });
    const output = html("output", { "aria-live": "polite" });
    const buttons = [];

    const choose = (group, head, focus) => {
      chosen = [group, head];
      draw();
      if (focus) buttons[group][head].focus();
    };
    // Left and right go through the heads of a layer, up and down through the layers; only the chosen one is a tab stop.
    const onKey = onArrow((right, down) => {
      const group = stepped(chosen[0], down, groups.length);
      choose(group, stepped(chosen[1], right, groups[group].heads.length), true);
    });
    const draw = () => {
      const { kind, layer, heads } = groups[chosen[0]], rows = heads[chosen[1]], [asking, asked] = sides(kind);
      buttons.forEach((row, g) => row.forEach((button, h) => {
        const isChosen = g === chosen[0] && h === chosen[1];
        button.setAttribute("aria-pressed", String(isChosen));
        button.tabIndex = isChosen ? 0 : -1;
      }));
      table.replaceChildren(html("caption", {}, `${titles[kind]}: layer ${layer}, head ${chosen[1]}; each row asks and shares out 1`),
        html("thead", {}, html("tr", {}, column("asks"), ...asked.map((token) => column(html("span", {}, token))))),
        html("tbody", {}, ...rows.map((row, q) => html("tr", {}, rowHead(asking[q]),
          ...row.map((share) => html("td", { class: share >= 0.92 ? "strong" : "", style: `--share:${share}` }, share.toFixed(2).replace(/^0/, "")))))));
      const told = rows.map((row, q) => [asking[q], asked[row.indexOf(Math.max(...row))], Math.max(...row)]);
      const pronoun = told.find(([token]) => ["He", "She", "They"].includes(token)) ?? told[told.length - 1];
      output.textContent = `Layer ${layer}, head ${chosen[1]}: “${pronoun[0]}” attends most to “${pronoun[1]}”, ${pronoun[2].toFixed(2)}.`;
    };
    const grid = html("div", { class: "ch12-heads", role: "group", "aria-label": "All heads; arrow keys go from one to the next", onkeydown: onKey },
      ...groups.map(({ kind, layer, heads }, g) => html("div", { class: "ch12-row" }, html("span", {}, `${kind} ${layer}`),
        ...(buttons[g] = heads.map((rows, h) => html("button", { type: "button", "aria-label": `${kind}, layer ${layer}, head ${h}`, onclick: () => choose(g, h, false) }, miniature(rows)))))));
    root.replaceChildren(html("p", { class: "widget-head" }, "Every head of a model", html("span", { class: "widget-id" }, "W12a")), grid,
      html("div", { class: "live-map", tabindex: 0, role: "region", "aria-label": "Weights of the chosen head" }, table), output);
    draw();
  };

  // ---- W12c: where a translator errs -----------------------------------------------------------------------------------

  const errorBoard = (root, told) => {
    let chosen = [told.lengths.length - 1, 0];
    const output = html("div", { "aria-live": "polite", class: "ch12-lines" });
    const share = ([right, all]) => (all ? (right / all).toFixed(2).replace(/^0/, "") : "–");
    const buttons = told.cells.map((row, i) => row.map((cell, j) => html("button", {
      type: "button", disabled: cell[1] === 0,
      "aria-label": `${share(cell)}: ${told.lengths[i]}, rarest word ${told.rarities[j]}, ${cell[0]} of ${cell[1]} right`,
      onclick: () => { chosen = [i, j]; draw(); },
    }, share(cell))));
    const draw = () => {
      const [i, j] = chosen, [right, all] = told.cells[i][j];
      buttons.forEach((row, a) => row.forEach((button, b) => button.setAttribute("aria-pressed", String(a === i && b === j))));
      const wrong = told.examples.filter(({ place }) => place[0] === i && place[1] === j);
      output.replaceChildren(html("p", {}, `${told.lengths[i]}, rarest word ${told.rarities[j]}: ${right} of ${all} right.`),
        ...wrong.map((each) => html("dl", {}, html("dt", {}, each.source), html("dd", {}, `✗ ${each.said}`), html("dd", {}, `✓ ${each.right}`))));
    };
    root.replaceChildren(html("p", { class: "widget-head" }, "Where it errs", html("span", { class: "widget-id" }, "W12c")),
      html("div", { class: "live-map", tabindex: 0, role: "region", "aria-label": "Share of right lines, group by group" },
        html("table", { class: "looked ch12-errors" }, html("caption", {}, "share of right lines; choose a group"),
          html("thead", {}, html("tr", {}, column("rarest word"), ...told.rarities.map(column))),
          html("tbody", {}, ...buttons.map((row, i) => html("tr", {}, rowHead(told.lengths[i]), ...row.map((button) => html("td", { style: "--share:0" }, button))))))),
      output);
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => {
    const errors = document.getElementById("W12c"), board = document.getElementById("W12c-data");
    if (errors && board) errorBoard(errors, JSON.parse(board.textContent));
    const view = document.getElementById("W12a"), data = document.getElementById("W12a-data");
    if (view && data) modelView(view, JSON.parse(data.textContent));
  });
})();
