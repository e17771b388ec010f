/* The inventory of beliefs: the same questions at the door and at the exit, compared in the reader's own browser.

   Answers are kept under the inventory's name and version; nothing leaves the page but a file that the reader saves.
   What is right is said when there are two sets of answers, never before: else the first round would teach the second.
   A classic script, so that the page works straight from the disk. */

(() => {
  "use strict";

  const RIGHT = "right", UNKNOWN = "unknown", LARGEST_FILE = 65536;

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  const button = (text, act, quiet = false) => {
    const node = make("button", { type: "button", ...(quiet ? { class: "quiet" } : {}) }, text);
    node.addEventListener("click", act);
    return node;
  };

  const today = () => {
    const now = new Date();
    return [now.getFullYear(), now.getMonth() + 1, now.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  };

  const shuffle = (nodes) => {
    for (let last = nodes.length - 1; last > 0; last--) {
      const other = Math.floor(Math.random() * (last + 1));
      [nodes[last], nodes[other]] = [nodes[other], nodes[last]];
    }
    return nodes;
  };

  const build = (box) => {
    const form = box.querySelector("form"), questions = [...form.querySelectorAll("fieldset")];
    const { inventory, version, told } = JSON.parse(box.querySelector("script[type='application/json']").textContent);
    const place = `${inventory}-${version}`;
    const above = make("div"), below = make("div"), result = make("div");
    let kept = { person: "", before: null, after: null, draft: {} };

    const nameOf = (fieldset) => fieldset.id.replace("inventory-", "");
    const labelOf = (fieldset, answer) => [...fieldset.querySelectorAll("label")].find((label) => label.control.value === answer);
    const chosen = (fieldset) => fieldset.querySelector("input:checked")?.value;
    const wordsOf = (fieldset, answer) => make("span", {}, ...labelOf(fieldset, answer).querySelector("span").cloneNode(true).childNodes);

    const keep = () => { try { localStorage.setItem(place, JSON.stringify(kept)); } catch { /* a browser that keeps nothing */ } };

    // A round of answers, if it is one: a day, and for every question one of its choices.
    const asRound = (round) => (round && typeof round.day === "string" && questions.every((fieldset) =>
      typeof round.answers?.[nameOf(fieldset)] === "string" && labelOf(fieldset, round.answers[nameOf(fieldset)])) ? round : null);

    // Drawn when the first round is kept: two files of one person are one person, and equal answers of two are two.
    const drawn = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const asPerson = (person) => (/^[0-9a-f]{32}$/.test(person) ? person : drawn());

    const recall = (found) => ({
      person: asPerson(found?.person), before: asRound(found?.before), after: asRound(found?.before) && asRound(found?.after), draft: found?.draft ?? {},
    });

    const fill = (answers) => questions.forEach((fieldset) => {
      const answer = answers[nameOf(fieldset)], label = answer && labelOf(fieldset, answer);
      fieldset.querySelectorAll("input").forEach((input) => { input.checked = label?.control === input; });
    });

    const mix = () => questions.forEach((fieldset) => {
      const labels = [...fieldset.querySelectorAll("label")];
      const known = shuffle(labels.filter((label) => label.control.value !== UNKNOWN));
      fieldset.append(...known, labels.find((label) => label.control.value === UNKNOWN));
    });

    const save = () => {
      const { person, before, after } = kept;
      const text = JSON.stringify({ inventory, version, person, before, after }, null, 1) + "\n";
      const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `${place}.json` });
      document.body.append(link);
      link.click();
      link.remove();
    };

    // --- what the reader sees ---

    const forget = () => {
      const node = button("Forget my answers", () => {
        if (node.dataset.asked) { kept = { person: "", before: null, after: null, draft: {} }; keep(); show(); return; }
        node.dataset.asked = "yes";
        node.textContent = "Press again to forget them";
      }, true);
      return node;
    };

    const loader = (said) => {
      const input = make("input", { type: "file", accept: ".json,application/json" });
      input.addEventListener("change", async () => {
        const file = input.files[0];
        let found = null;
        try { found = file.size <= LARGEST_FILE ? JSON.parse(await file.text()) : null; } catch { /* said below */ }
        const loaded = found?.inventory === inventory && found?.version === version ? recall(found) : null;
        if (!loaded?.before) { said.textContent = `That file holds no answers to version ${version} of these questions.`; return; }
        kept = loaded;
        keep();
        show();
      });
      return make("label", { class: "inventory-load" }, "I have a saved file: ", input);
    };

    const hand_in = (said) => {
      const open = questions.filter((fieldset) => !chosen(fieldset));
      questions.forEach((fieldset) => fieldset.classList.toggle("open", open.includes(fieldset)));
      if (open.length) {
        const numbers = open.map((fieldset) => questions.indexOf(fieldset) + 1).join(", ");
        said.textContent = `Still open: ${numbers}. “I do not know” is an answer.`;
        open[0].querySelector("input").focus();
        return;
      }
      const answers = Object.fromEntries(questions.map((fieldset) => [nameOf(fieldset), chosen(fieldset)]));
      kept.person = asPerson(kept.person);
      kept[kept.before ? "after" : "before"] = { day: today(), answers };
      kept.draft = {};
      keep();
      show(true);
    };

    const ask = (sentence) => {
      mix();
      fill(kept.draft);
      form.hidden = false;
      const said = make("p", { class: "inventory-said", role: "status" });
      const count = () => { said.textContent = `${questions.filter(chosen).length} of ${questions.length} answered`; };
      form.onchange = () => {
        kept.draft = Object.fromEntries(questions.filter(chosen).map((fieldset) => [nameOf(fieldset), chosen(fieldset)]));
        questions.forEach((fieldset) => { if (chosen(fieldset)) fieldset.classList.remove("open"); });
        keep();
        count();
      };
      count();
      above.replaceChildren(make("p", {}, sentence), ...(kept.before ? [] : [make("div", { class: "inventory-bar" }, loader(said))]));
      below.replaceChildren(make("div", { class: "inventory-bar" }, button("I am done", () => hand_in(said)), said));
    };

    const wait = () => {
      const title = make("h2", { tabindex: "-1" }, "Thank you");
      above.replaceChildren(
        title,
        make("p", {}, `You answered on ${kept.before.day}. Nothing is said about it yet: come back after chapter 12, answer once more, and see what has changed.`),
        make("div", { class: "inventory-bar" }, button("Save my answers", save), button("Chapter 12 is behind me: ask again", () => ask("The same questions, in another order of choices.")), forget()),
      );
      return title;
    };

    const change = (fieldset, kind) => {
      const name = nameOf(fieldset), before = kept.before.answers[name], after = kept.after.answers[name];
      const about = told[name];
      const called = (answer) => (answer === RIGHT || answer === UNKNOWN ? [] : [` In exercise ${about.exercises[answer]} this mistake is called “${answer}”.`]);
      const asked = make("p", { class: "asked" }, ...fieldset.querySelector("legend").cloneNode(true).childNodes);
      const lines = [asked];
      if (before === after) lines.push(make("p", {}, "Both times: ", wordsOf(fieldset, after), ...called(after)));
      else lines.push(make("p", {}, "Before: ", wordsOf(fieldset, before), ...called(before)), make("p", {}, "After: ", wordsOf(fieldset, after), ...called(after)));
      if (after !== RIGHT) lines.push(make("p", {}, make("strong", {}, "Right: "), wordsOf(fieldset, RIGHT)));
      const because = make("p");
      because.innerHTML = about.because; // our own words, from the page
      because.append(" ", make("a", { href: about.href }, `Reread ${about.section}`), ".");
      lines.push(because);
      return make("div", { class: `inventory-change ${kind}` }, ...lines);
    };

    const tally = () => {
      const counts = (round) => [RIGHT, "", UNKNOWN].map((kind) => Object.values(round.answers).filter((answer) =>
        (kind ? answer === kind : answer !== RIGHT && answer !== UNKNOWN)).length);
      const row = (text, round) => make("tr", {}, make("th", { scope: "row" }, text), ...counts(round).map((count) => make("td", {}, String(count))));
      const head = ["", "right", "believed otherwise", "not known"].map((text) => (text ? make("th", { scope: "col" }, text) : make("td")));
      return make("table", { class: "table" }, make("thead", {}, make("tr", {}, ...head)),
        make("tbody", {}, row(`before, ${kept.before.day}`, kept.before), row(`after, ${kept.after.day}`, kept.after)));
    };

    const tell = () => {
      const of = (fieldset) => [kept.before.answers[nameOf(fieldset)], kept.after.answers[nameOf(fieldset)]];
      const groups = [
        ["Beliefs that you hold now, and that do not hold", "wrong", ([, after]) => after !== RIGHT && after !== UNKNOWN],
        ["Still not known", "wrong", ([, after]) => after === UNKNOWN],
        ["Beliefs that you have given up, and what you have learned", "right", ([before, after]) => after === RIGHT && before !== RIGHT],
      ];
      const title = make("h2", { tabindex: "-1" }, "What has changed");
      const parts = groups.flatMap(([heading, kind, belongs]) => {
        const found = questions.filter((fieldset) => belongs(of(fieldset)));
        return found.length ? [make("h3", {}, `${heading} (${found.length})`), ...found.map((fieldset) => change(fieldset, kind))] : [];
      });
      const both = questions.filter((fieldset) => of(fieldset).every((answer) => answer === RIGHT));
      if (both.length) parts.push(make("details", {}, make("summary", {}, `Right both times (${both.length})`), ...both.map((fieldset) => change(fieldset, "right"))));
      result.replaceChildren(title, tally(), make("div", { class: "inventory-bar" }, button("Save my result", save), forget()), ...parts);
      return title;
    };

    const show = (moved = false) => {
      form.hidden = true;
      [above, below, result].forEach((part) => part.replaceChildren());
      if (!kept.before) { ask("You answer them twice; this is the first time. Nothing is marked."); return; }
      const title = kept.after ? tell() : wait();
      if (moved) title.focus();
    };

    try { kept = recall(JSON.parse(localStorage.getItem(place))); } catch { /* nothing kept, or not by us */ }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.before(above);
    form.after(below, result);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".inventory").forEach(build));
})();
