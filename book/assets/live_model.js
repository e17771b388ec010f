/* A trained encoder-decoder Transformer in a browser: text in, translation out, no server (chapter 00).

   A classic script without dependencies, so that the page works straight from the disk. The weights come in a script of
   their own, live_model_weights.js, written by `python -m book.recorded.live_model` and loaded on request. The model is
   the one of transformer_ref, name by name and formula by formula; a test compares the logits. Matrices are flat
   Float32Arrays, row by row; (n, d) in a comment means n rows of d numbers. */

(() => {
  "use strict";

  const BOS = 1, EOS = 2, UNK = 3, SPECIALS = 4;
  const JOINER = "\uffed";
  const NORM_EPSILON = 1e-5, POSITION_BASE = 10000;
  const EXTRA_LENGTH = 50; // a translation may be this much longer than its source
  const LIKELIEST = 3; // of the words that could be written next, how many are told

  // The model's own world, as `python -m book.recorded.live_model` measures it on 2,000 sentences that it never saw: none
  // is longer, and on none is the mean log-probability of its own words lower. live_model.json has the numbers.
  const WORLD = { mostTokens: 22, lowestMeanLog: -0.4 };

  // ---- reading the weights -------------------------------------------------------------------------------

  // A matrix is a scale for each row and signed bytes; a vector is float32. All float32 numbers come first.
  const unpack = ({ tensors, data }) => {
    const text = atob(data), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const count = tensors.reduce((sum, [, shape]) => sum + shape[0], 0);
    const floats = new Float32Array(bytes.buffer, 0, count), small = new Int8Array(bytes.buffer, 4 * count);
    const weights = {};
    let float = 0, byte = 0;
    for (const [name, [rows, columns]] of tensors) {
      const own = floats.subarray(float, float += rows);
      if (columns === undefined) { weights[name] = own; continue; }
      const matrix = weights[name] = new Float32Array(rows * columns);
      for (let i = 0; i < matrix.length; i++) matrix[i] = small[byte++] * own[Math.floor(i / columns)];
    }
    return weights;
  };

  // ---- the formulas --------------------------------------------------------------------------------------

  // (n, inputs) -> (n, outputs): each row times the matrix, whose rows are the outputs' weights, plus the bias.
  const linear = (x, matrix, bias, inputs) => {
    const outputs = matrix.length / inputs, n = x.length / inputs, result = new Float32Array(n * outputs);
    for (let row = 0; row < n; row++) {
      for (let out = 0; out < outputs; out++) {
        let sum = bias ? bias[out] : 0;
        for (let i = 0, a = row * inputs, b = out * inputs; i < inputs; i++) sum += x[a++] * matrix[b++];
        result[row * outputs + out] = sum;
      }
    }
    return result;
  };

  const layerNorm = (x, gain, bias) => {
    const d = gain.length, result = new Float32Array(x.length);
    for (let start = 0; start < x.length; start += d) {
      let mean = 0, variance = 0;
      for (let i = 0; i < d; i++) mean += x[start + i] / d;
      for (let i = 0; i < d; i++) variance += (x[start + i] - mean) ** 2 / d;
      const root = Math.sqrt(variance + NORM_EPSILON);
      for (let i = 0; i < d; i++) result[start + i] = ((x[start + i] - mean) / root) * gain[i] + bias[i];
    }
    return result;
  };

  const softmax = (scores) => {
    const largest = Math.max(...scores), powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  };

  // Every query with every key it is given, head by head: the values mixed, and for each query the heads' mean weights.
  const attend = (query, key, value, d, heads) => {
    const d_head = d / heads, queries = query.length / d, keys = key.length / d;
    const mixed = new Float32Array(query.length), means = [];
    for (let q = 0; q < queries; q++) {
      const mean = new Array(keys).fill(0);
      for (let head = 0; head < heads; head++) {
        const at = q * d + head * d_head, scores = [];
        for (let k = 0; k < keys; k++) {
          let dot = 0;
          for (let i = 0; i < d_head; i++) dot += query[at + i] * key[k * d + head * d_head + i];
          scores.push(dot / Math.sqrt(d_head));
        }
        softmax(scores).forEach((share, k) => {
          mean[k] += share / heads;
          for (let i = 0; i < d_head; i++) mixed[at + i] += share * value[k * d + head * d_head + i];
        });
      }
      means.push(mean);
    }
    return { mixed, means };
  };

  const joined = (one, other) => {
    const both = new Float32Array(one.length + other.length);
    both.set(one);
    both.set(other, one.length);
    return both;
  };

  // ---- text and ids --------------------------------------------------------------------------------------

  // Words and marks; a joiner shows where a mark, or an elided word, touched its neighbor.
  const wordsOf = (text) => {
    const words = [];
    for (const chunk of text.replaceAll(JOINER, " ").split(/\s+/u).filter(Boolean)) {
      (chunk.match(/[\p{L}\p{N}_]+['\u2019]?|[^\p{L}\p{N}_]/gu) ?? []).forEach((word, position) => {
        if (position && !/^[\p{L}\p{N}]/u.test(word)) words.push(JOINER + word);
        else {
          if (position) words[words.length - 1] += JOINER;
          words.push(word);
        }
      });
    }
    return words;
  };

  // The characters of a word, joined to each other, with the word's own joiners at its ends.
  const spelled = (word) => {
    const characters = [...word].filter((character) => character !== JOINER);
    const pieces = characters.map((character, i) => (i < characters.length - 1 || word.endsWith(JOINER) ? character + JOINER : character));
    return word.startsWith(JOINER) ? [JOINER, ...pieces] : pieces;
  };

  const together = (tokens) => tokens.join(" ").replace(new RegExp(` ?${JOINER} ?`, "gu"), "");

  // ---- the model -----------------------------------------------------------------------------------------

  class LiveModel {
    constructor(packed) {
      this.config = packed.config;
      this.tokens = packed.tokens;
      this.ids = new Map(packed.tokens.map((token, id) => [token, id]));
      this.weights = unpack(packed);
      this.table = this.weights["source_embedding.table"]; // (vocabulary, d), for source, target and output
    }

    // --- parts, under the names they have in transformer_ref

    linear(x, name, inputs = this.config.d_model) {
      return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`], inputs);
    }

    norm(x, name) {
      return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
    }

    embed(ids, first = 0) {
      const d = this.config.d_model, x = new Float32Array(ids.length * d);
      ids.forEach((id, row) => {
        for (let i = 0; i < d; i++) {
          const angle = (first + row) / POSITION_BASE ** ((i - (i % 2)) / d);
          x[row * d + i] = this.table[id * d + i] * Math.sqrt(d) + (i % 2 ? Math.cos(angle) : Math.sin(angle));
        }
      });
      return x;
    }

    // A sub-layer reads x and writes a change to it: the norm comes before (pre-norm) or after (post-norm).
    residual(x, name, sublayer) {
      const first = this.config.norm_first;
      const change = sublayer(first ? this.norm(x, `${name}_residual.norm`) : x);
      const sum = x.map((number, i) => number + change[i]);
      return first ? sum : this.norm(sum, `${name}_residual.norm`);
    }

    last(x, stack) {
      return this.config.norm_first ? this.norm(x, `${stack}.norm`) : x;
    }

    keysAndValues(x, name) {
      return { key: this.linear(x, `${name}.project_key`), value: this.linear(x, `${name}.project_value`) };
    }

    attention(x, name, { key, value }, note = () => {}) {
      const { mixed, means } = attend(this.linear(x, `${name}.project_query`), key, value, this.config.d_model, this.config.heads);
      note(means);
      return this.linear(mixed, `${name}.project_output`);
    }

    feedForward(x, name) {
      const wide = this.linear(x, `${name}.widen`).map((number) => Math.max(number, 0));
      return this.linear(wide, `${name}.narrow`, this.config.d_ff);
    }

    // --- from ids to logits

    encode(ids) {
      let x = this.embed(ids); // (source, d)
      for (let layer = 0; layer < this.config.encoder_layers; layer++) {
        const at = `encoder.layers.${layer}`;
        x = this.residual(x, `${at}.self_attention`, (read) =>
          this.attention(read, `${at}.self_attention`, this.keysAndValues(read, `${at}.self_attention`)));
        x = this.residual(x, `${at}.feed_forward`, (read) => this.feedForward(read, `${at}.feed_forward`));
      }
      const memory = this.last(x, "encoder"); // (source, d)
      const layers = Array.from({ length: this.config.decoder_layers }, (_, layer) => ({
        source: this.keysAndValues(memory, `decoder.layers.${layer}.cross_attention`),
        target: { key: new Float32Array(0), value: new Float32Array(0) }, // grows by one row a step
      }));
      return { layers, length: 0 };
    }

    // One token more: a score for every token that could follow, and the last layer's look at the source.
    step(id, state) {
      let x = this.embed([id], state.length++), looked = []; // (1, d)
      state.layers.forEach((cache, layer) => {
        const at = `decoder.layers.${layer}`;
        x = this.residual(x, `${at}.self_attention`, (read) => {
          const added = this.keysAndValues(read, `${at}.self_attention`);
          cache.target = { key: joined(cache.target.key, added.key), value: joined(cache.target.value, added.value) };
          return this.attention(read, `${at}.self_attention`, cache.target);
        });
        x = this.residual(x, `${at}.cross_attention`, (read) =>
          this.attention(read, `${at}.cross_attention`, cache.source, ([mean]) => { looked = mean; }));
        x = this.residual(x, `${at}.feed_forward`, (read) => this.feedForward(read, `${at}.feed_forward`));
      });
      const logits = linear(this.last(x, "decoder"), this.table, null, this.config.d_model); // (vocabulary)
      return { logits, looked };
    }

    // --- from text to text

    tokenize(text) {
      return wordsOf(text).flatMap((word) => (this.ids.has(word) ? [word] : spelled(word))).map((piece) => this.ids.get(piece) ?? UNK);
    }

    // What is no token of its own: it is spelled, character by character. Numbers and signs as well as words.
    strangers(text) {
      return [...new Set(wordsOf(text).filter((word) => !this.ids.has(word)).map((word) => word.replaceAll(JOINER, "")))];
    }

    // The text with words that are known in another case only (WINDOWS, anna) written in that case.
    inKnownCase(text) {
      return text.replace(/[\p{L}\p{N}_]+/gu, (word) => {
        const lower = word.toLowerCase(), name = lower.charAt(0).toUpperCase() + lower.slice(1);
        return [word, lower, name].find((way) => this.ids.has(way)) ?? word;
      });
    }

    // Why an answer to this text is not to be trusted; an empty list for a sentence of the model's own world.
    doubts(text, { source, meanLog }) {
      const strangers = this.strangers(text), read = source.length - 1; // without the end
      const sentences = text.split(/[.?!]+/u).filter((part) => /[\p{L}\p{N}]/u.test(part)).length;
      return [
        strangers.length ? `it never saw ${strangers.map((word) => `“${word}”`).join(", ")} and reads it letter by letter` : null,
        sentences > 1 ? "it learned from single sentences, and this is more than one" : null,
        read > WORLD.mostTokens ? `it read ${read} words and marks, and never met more than ${WORLD.mostTokens} at once` : null,
        meanLog < WORLD.lowestMeanLog ? `it gave the words that it wrote ${Math.round(100 * Math.exp(meanLog))} % on average, far less than it does at home` : null,
      ].filter(Boolean);
    }

    // The tokens that could stand at this place and their probabilities, the likeliest first.
    likeliest(logits) {
      const shares = softmax(logits), ids = [...logits.keys()].sort((one, other) => logits[other] - logits[one]);
      return ids.slice(0, LIKELIEST).map((id) => [id, shares[id]]);
    }

    // Greedily, the likeliest token at each step. Returns tokens read and written, weights (written, read), for each
    // token written the likeliest three, and the mean log-probability of what was written.
    translate(text) {
      const source = this.tokenize(text).slice(0, this.config.max_length - 1).concat(EOS);
      const state = this.encode(source), written = [], weights = [], likeliest = [];
      const longest = Math.min(source.length + EXTRA_LENGTH, this.config.max_length);
      for (let token = BOS; token !== EOS && written.length < longest;) {
        const { logits, looked } = this.step(token, state);
        const best = this.likeliest(logits);
        [[token]] = best;
        written.push(token);
        weights.push(looked);
        likeliest.push(best);
      }
      const name = (id) => this.tokens[id];
      return {
        translation: together(written.filter((id) => id >= SPECIALS).map(name)), source: source.map(name), target: written.map(name), weights,
        likeliest: likeliest.map((best) => best.map(([id, share]) => [name(id), share])),
        meanLog: likeliest.reduce((sum, [[, share]]) => sum + Math.log(share) / written.length, 0),
      };
    }
  }

  // ---- loading -------------------------------------------------------------------------------------------

  const address = new URL("live_model_weights.js", document.currentScript.src).href;
  let loading = null;

  // The model, once its weights have arrived; they are asked for on the first call only.
  const load = () => {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => resolve(new LiveModel(window.liveModelWeights));
      script.onerror = () => { loading = null; script.remove(); reject(new Error(`could not load ${address}`)); };
      document.head.append(script);
    });
    return loading;
  };

  window.liveModel = { load, WORLD };
})();
