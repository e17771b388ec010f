/* W04a of chapter 04: three scores and a temperature, their probabilities, entropy and slopes.

   A classic script, so that the page works straight from the disk. Its numbers come from the
   same formula as transformer_ref.model.softmax, and the page prints them as text too. */

(() => {
  "use strict";

  const THINGS = ["orange", "apple", "motorcycle"], START = [1, 0.71, -1];
  const REACH = 5; // scores from -5 to 5

  const { html, svg, column, rowHead, digits, softmax } = window.widgets;

  const sharesInBars = (shares) => {
    const left = 92, full = 180, row = 34;
    const picture = svg("svg", { viewBox: `0 0 ${left + full + 56} ${THINGS.length * row}`, "aria-hidden": "true" });
    shares.forEach((share, index) => {
      const middle = (index + 0.5) * row;
      const text = (x, anchor, words) => svg("text", { x, y: middle, "text-anchor": anchor, "dominant-baseline": "central", "font-size": 14.5, style: "fill:var(--figure-ink)" }, words);
      picture.append(text(left - 8, "end", THINGS[index]), text(left + full + 8, "start", digits(share, 3)),
        svg("rect", { x: left, y: middle - 10, width: full, height: 20, rx: 2, style: "fill:none;stroke:var(--figure-grid)" }),
        svg("rect", { x: left, y: middle - 10, width: full * share, height: 20, rx: 2, style: "fill:var(--query)" }));
    });
    return picture;
  };

  const threeScores = (root) => {
    let scores, coolness; // the temperature is 2 to the power of `coolness`
    const bars = html("div", { class: "plane" }), table = html("table"), output = html("output", { "aria-live": "polite" });
    const sliders = [], values = [];

    const draw = () => {
      const tau = 2 ** coolness, shares = softmax(scores.map((score) => score / tau));
      const entropy = -shares.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0);
      bars.replaceChildren(sharesInBars(shares));
      table.replaceChildren(
        html("thead", {}, html("tr", {}, column("thing"), column("score"), column("score ÷ τ"), column("probability"), column("slope"))),
        html("tbody", {}, ...THINGS.map((thing, index) => html("tr", {},
          rowHead(thing), html("td", {}, digits(scores[index], 2)), html("td", {}, digits(scores[index] / tau, 2)),
          html("td", { class: "share" }, digits(shares[index], 3)), html("td", { class: "slope" }, digits(shares[index] * (1 - shares[index]) / tau, 3))))));
      output.textContent = `entropy ${digits(entropy, 3)}: as undecided as ${digits(Math.exp(entropy), 2)} equally likely words`;
      [...scores, tau].forEach((value, index) => {
        const words = digits(value, 2);
        values[index].textContent = words;
        sliders[index].setAttribute("aria-valuetext", words);
      });
    };

    const slider = (label, id, low, high, step, onInput) => {
      const input = html("input", { type: "range", id, min: low, max: high, step, oninput: () => { onInput(Number(input.value)); draw(); } });
      const value = html("span", { style: "display:inline-block;min-width:3.2rem;text-align:right;font-variant-numeric:tabular-nums" });
      sliders.push(input);
      values.push(value);
      return html("div", { style: "display:flex;align-items:center;gap:.4rem" },
        html("label", { for: id, style: "min-width:6.2rem" }, label), input, value);
    };

    const start = () => {
      scores = [...START];
      coolness = 0;
      [...scores, coolness].forEach((value, index) => { sliders[index].value = value; });
      draw();
    };

    const controls = html("div", { class: "widget-controls" },
      ...THINGS.map((thing, index) => slider(thing, `W04a-${thing}`, -REACH, REACH, 0.01, (value) => { scores[index] = value; })),
      slider("temperature τ", "W04a-temperature", -4, 4, 0.125, (value) => { coolness = value; }),
      html("button", { type: "button", onclick: start }, "Start again"));
    root.replaceChildren(
      html("p", { class: "widget-head" }, "Three scores", " ", html("span", { class: "widget-id" }, "W04a")),
      controls,
      html("div", { class: "widget-body" }, bars, html("div", { class: "side" }, table)),
      output);
    start();
  };

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("W04a");
    if (root) threeScores(root);
  });
})();
