/* A trained encoder-decoder Transformer in a browser: text in, translation out, no server (chapters 00 and 12).

   A classic script without dependencies, so that a page works straight from the disk. In the book the weights come in a
   script of their own, live_model_weights.js, written by `python -m book.recorded.live_model` and loaded on request; in a
   page that `python -m transformer_ref export --format page` writes, they stand beside this script. The model is the one
   of transformer_ref, name by name and formula by formula; a test compares the logits. Matrices are flat Float32Arrays,
   row by row; (n, d) in a comment means n rows of d numbers. */

(() => {
  "use strict";

  const UNK = 3, SPECIALS = 4;
  const JOINER = "\uffed";
  const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u; // what Python splits at
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
        let sum = bias ? bias[out] : 0, second = 0, third = 0, fourth = 0; // four sums, none of which waits for another
        let i = 0, a = row * inputs, b = out * inputs;
        for (; i + 3 < inputs; i += 4, a += 4, b += 4) {
          sum += x[a] * matrix[b];
          second += x[a + 1] * matrix[b + 1];
          third += x[a + 2] * matrix[b + 2];
          fourth += x[a + 3] * matrix[b + 3];
        }
        for (; i < inputs; i++) sum += x[a++] * matrix[b++];
        result[row * outputs + out] = sum + second + third + fourth;
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

  // The error function, by its complement's expansion in Chebyshev polynomials (Press et al. 2007, section 6.2.2).
  const COFACTORS = [-1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4,
    3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8,
    -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12,
    8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15];
  const erf = (x) => {
    const size = Math.abs(x), t = 2 / (2 + size), twice = 4 * t - 2;
    let d = 0, dd = 0;
    for (let j = COFACTORS.length - 1; j > 0; j--) [d, dd] = [twice * d - dd + COFACTORS[j], d];
    const complement = t * Math.exp(-size * size + 0.5 * (COFACTORS[0] + twice * d) - dd);
    return x < 0 ? complement - 1 : 1 - complement;
  };
  const ACTIVATIONS = {
    relu: (x) => Math.max(x, 0),
    gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
    silu: (x) => x / (1 + Math.exp(-x)),
  };

  const softmax = (scores) => {
    const largest = scores.reduce((most, score) => Math.max(most, score), -Infinity);
    const powers = scores.map((score) => Math.exp(score - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  };

  // Every query with every key it is given, head by head: the values mixed, and each head's weights, (query, key).
  // before: where it is given, query q sees that many keys and those of the queries up to itself.
  const attend = (query, key, value, d, heads, before = Infinity) => {
    const d_head = d / heads, queries = query.length / d, keys = key.length / d;
    const mixed = new Float32Array(query.length), weights = [];
    for (let head = 0; head < heads; head++) {
      const rows = [];
      for (let q = 0; q < queries; q++) {
        const at = q * d + head * d_head, scores = [];
        for (let k = 0; k < Math.min(keys, before + q + 1); k++) {
          let dot = 0;
          for (let i = 0; i < d_head; i++) dot += query[at + i] * key[k * d + head * d_head + i];
          scores.push(dot / Math.sqrt(d_head));
        }
        const shares = softmax(scores);
        shares.forEach((share, k) => {
          for (let i = 0; i < d_head; i++) mixed[at + i] += share * value[k * d + head * d_head + i];
        });
        rows.push(shares);
      }
      weights.push(rows);
    }
    return { mixed, weights };
  };

  // The mean over heads of one query's shares.
  const meanOfHeads = (rows) => rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k] / rows.length, 0));

  const joined = (one, other) => {
    const both = new Float32Array(one.length + other.length);
    both.set(one);
    both.set(other, one.length);
    return both;
  };

  // ---- text and ids --------------------------------------------------------------------------------------

  // A tokenizer has encode(text) -> ids, decode(ids) -> text, and name(id), the token as a reader sees it.

  // A line without anything to see is empty; where the tokenizer was learned from composed letters, it reads those.
  const BLANK = /^[\p{Cc}\p{Cf}\p{Z}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\ufe00-\ufe0f]*$/u;
  const readable = (text, normalization) => (BLANK.test(text) ? "" : normalization ? text.normalize(normalization) : text);

  // A translation is one line, whatever the model writes.
  const LINE_ENDS = "\\r\\n|[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]"; // as Python's splitlines has them
  const LAST_END = new RegExp(`(?:${LINE_ENDS})$`, "u"), ANY_END = new RegExp(LINE_ENDS, "gu");
  const oneLine = (text) => text.replace(LAST_END, "").replace(ANY_END, " ");

  // Words and marks; a joiner shows where a mark, or an elided word, touched its neighbor.
  const wordsOf = (text) => {
    const words = [];
    for (const chunk of text.replaceAll(JOINER, " ").split(SPACE).filter(Boolean)) {
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

  class WordTokenizer {
    constructor({ tokens, normalization }) {
      this.tokens = tokens;
      this.normalization = normalization;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
    }

    encode(text) {
      return wordsOf(readable(text, this.normalization)).flatMap((word) => (this.ids.has(word) ? [word] : spelled(word))).map((piece) => this.ids.get(piece) ?? UNK);
    }

    decode(ids) { return together(ids.filter((id) => id >= SPECIALS).map((id) => this.tokens[id])); }

    name(id) { return this.tokens[id]; }
  }

  // Byte-level byte-pair encoding. A token is written in 256 letters, one a byte: those that can be seen stand for
  // themselves, the others for the letters from U+0100 on (Radford et al. 2019).
  const seen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  const unseen = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => !seen(byte));
  const letterOf = (byte) => String.fromCodePoint(seen(byte) ? byte : 256 + unseen.indexOf(byte));
  const byteOf = new Map(Array.from({ length: 256 }, (_, byte) => [letterOf(byte), byte]));
  const PARTS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

  class SubwordTokenizer {
    constructor({ tokens, merges, normalization }) {
      this.tokens = tokens;
      this.normalization = normalization;
      this.ids = new Map(tokens.map((token, id) => [token, id]).slice(SPECIALS)); // no text spells a special token
      this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
    }

    encode(text) {
      const line = readable(text, this.normalization).split(SPACE).filter(Boolean).join(" ");
      return (line ? ` ${line}`.match(PARTS) : []).flatMap((part) => this.merged([...new TextEncoder().encode(part)].map(letterOf)))
        .map((piece) => this.ids.get(piece) ?? UNK);
    }

    // The letters of a part, joined pair by pair, the pair that was learned first before all others.
    merged(pieces) {
      for (;;) {
        let best = Infinity, at = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity;
          if (rank < best) [best, at] = [rank, i];
        }
        if (at < 0) return pieces;
        pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
      }
    }

    bytes(ids) { return ids.filter((id) => id >= SPECIALS).flatMap((id) => [...this.tokens[id]].map((letter) => byteOf.get(letter))); }

    decode(ids) { return new TextDecoder().decode(new Uint8Array(this.bytes(ids))).replace(/^ /u, ""); }

    name(id) { return id < SPECIALS ? this.tokens[id] : new TextDecoder().decode(new Uint8Array(this.bytes([id]))); }
  }

  // ---- the model -----------------------------------------------------------------------------------------

  class LiveModel {
    constructor(packed) {
      this.config = packed.config;
      this.tokenizer = packed.merges ? new SubwordTokenizer(packed) : new WordTokenizer(packed);
      this.weights = unpack(packed);
      // One table (vocabulary, d) for source, target and output, where they are tied.
      const table = this.weights["source_embedding.weight"];
      this.tables = { source: table, target: this.weights["target_embedding.weight"] ?? table, output: this.weights["output.weight"] ?? table };
      this.activation = ACTIVATIONS[this.config.activation];
    }

    // --- parts, under the names they have in transformer_ref

    linear(x, name, inputs = this.config.d_model) {
      return linear(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`], inputs);
    }

    norm(x, name) {
      return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]);
    }

    // The sine or cosine that feature i adds at a position: pairs side by side, or all sines before all cosines.
    position(at, i) {
      const d = this.config.d_model, sines = Math.ceil(d / 2);
      const [pair, isCosine] = this.config.layout === "concatenated" ? [i % sines, i >= sines] : [Math.floor(i / 2), i % 2 === 1];
      const angle = at / POSITION_BASE ** ((2 * pair) / d);
      return isCosine ? Math.cos(angle) : Math.sin(angle);
    }

    embed(ids, table, first = 0) {
      const d = this.config.d_model, x = new Float32Array(ids.length * d), scale = this.config.scale_embedding ? Math.sqrt(d) : 1;
      ids.forEach((id, row) => {
        for (let i = 0; i < d; i++) x[row * d + i] = table[id * d + i] * scale + this.position(first + row, i);
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
      return this.config.norm_first || this.config.last_norm ? this.norm(x, `${stack}.norm`) : x;
    }

    keysAndValues(x, name) {
      return { key: this.linear(x, `${name}.k_proj`), value: this.linear(x, `${name}.v_proj`) };
    }

    attention(x, name, { key, value }, note = () => {}) {
      const { mixed, weights } = attend(this.linear(x, `${name}.q_proj`), key, value, this.config.d_model, this.config.heads);
      note(weights);
      return this.linear(mixed, `${name}.out_proj`);
    }

    feedForward(x, name) {
      const wide = this.linear(x, `${name}.fc1`).map(this.activation);
      return this.linear(wide, `${name}.fc2`, this.config.d_ff);
    }

    // --- from ids to logits

    // A source, read: its keys and values for each layer of the decoder, and who looked at whom, (layer, head, query, key).
    encode(ids) {
      let x = this.embed(ids, this.tables.source); // (source, d)
      const looked = [];
      for (let layer = 0; layer < this.config.encoder_layers; layer++) {
        const at = `encoder.layers.${layer}`;
        x = this.residual(x, `${at}.self_attention`, (read) =>
          this.attention(read, `${at}.self_attention`, this.keysAndValues(read, `${at}.self_attention`), (weights) => looked.push(weights)));
        x = this.residual(x, `${at}.feed_forward`, (read) => this.feedForward(read, `${at}.feed_forward`));
      }
      const memory = this.last(x, "encoder"); // (source, d)
      const layers = Array.from({ length: this.config.decoder_layers }, (_, layer) => ({
        source: this.keysAndValues(memory, `decoder.layers.${layer}.cross_attention`),
        target: { key: new Float32Array(0), value: new Float32Array(0) }, // grows by one row a step
      }));
      return { layers, looked, length: 0 };
    }

    // One token more: a score for every token that could follow; the last layer's look at the source, the mean of its heads;
    // and all looks, (layer, head, key), at the tokens written (itself) and at the source (across).
    step(id, state) {
      let x = this.embed([id], this.tables.target, state.length++); // (1, d)
      const itself = [], across = [];
      state.layers.forEach((cache, layer) => {
        const at = `decoder.layers.${layer}`;
        x = this.residual(x, `${at}.self_attention`, (read) => {
          const added = this.keysAndValues(read, `${at}.self_attention`);
          cache.target = { key: joined(cache.target.key, added.key), value: joined(cache.target.value, added.value) };
          return this.attention(read, `${at}.self_attention`, cache.target, (weights) => itself.push(weights.map(([row]) => row)));
        });
        x = this.residual(x, `${at}.cross_attention`, (read) =>
          this.attention(read, `${at}.cross_attention`, cache.source, (weights) => across.push(weights.map(([row]) => row))));
        x = this.residual(x, `${at}.feed_forward`, (read) => this.feedForward(read, `${at}.feed_forward`));
      });
      const bias = this.weights["output.bias"] ?? null;
      const logits = linear(this.last(x, "decoder"), this.tables.output, bias, this.config.d_model); // (vocabulary)
      return { logits, looked: meanOfHeads(across.at(-1)), itself, across };
    }

    // --- from text to text

    tokenize(text) { return this.tokenizer.encode(text); }

    // What is no token of its own: it is spelled, character by character. Numbers and signs as well as words. Subwords
    // spell everything.
    strangers(text) {
      if (!(this.tokenizer instanceof WordTokenizer)) return [];
      return [...new Set(wordsOf(readable(text, this.tokenizer.normalization)).filter((word) => !this.tokenizer.ids.has(word)).map((word) => word.replaceAll(JOINER, "")))];
    }

    // The text with words that are known in another case only (WINDOWS, anna) written in that case.
    inKnownCase(text) {
      if (!(this.tokenizer instanceof WordTokenizer)) return text;
      return readable(text, this.tokenizer.normalization).replace(/[\p{L}\p{N}_]+/gu, (word) => {
        const lower = word.toLowerCase(), name = lower.charAt(0).toUpperCase() + lower.slice(1);
        return [word, lower, name].find((way) => this.tokenizer.ids.has(way)) ?? word;
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
    likeliest(logits, count = LIKELIEST) {
      const shares = softmax(logits), ids = [...logits.keys()].sort((one, other) => logits[other] - logits[one]);
      return ids.slice(0, count).map((id) => [id, shares[id]]);
    }

    // Greedily, the likeliest token at each step. Returns tokens read and written, weights (written, read), for each
    // token written the likeliest few, the mean log-probability of what was written, and all looks, (layer, head, query,
    // key): of the source at itself, and, from step to step, of what is written at itself and at the source.
    translate(text, count = LIKELIEST) {
      const { bos, eos, pad, max_length } = this.config;
      const source = this.tokenize(text).slice(0, max_length - 1).concat(eos);
      const state = this.encode(source), written = [], weights = [], likeliest = [], itself = [], across = [];
      const longest = Math.min(source.length + EXTRA_LENGTH, max_length);
      for (let token = bos; token !== eos && written.length < longest;) {
        const { logits, looked, ...looks } = this.step(token, state);
        logits[pad] = -Infinity; // padding is no word
        const best = this.likeliest(logits, count);
        [[token]] = best;
        written.push(token);
        weights.push(looked);
        likeliest.push(best);
        itself.push(looks.itself);
        across.push(looks.across);
      }
      const name = (id) => this.tokenizer.name(id);
      // (step, layer, head, key) -> (layer, head, step, key)
      const byLayer = (looks) => looks[0].map((heads, layer) => heads.map((_, head) => looks.map((step) => step[layer][head])));
      const end = written.indexOf(eos);
      return {
        translation: oneLine(this.tokenizer.decode(end < 0 ? written : written.slice(0, end))), source: source.map(name), target: written.map(name), weights,
        likeliest: likeliest.map((best) => best.map(([id, share]) => [name(id), share])),
        meanLog: likeliest.reduce((sum, [[, share]]) => sum + Math.log(share) / written.length, 0),
        looks: { encoder: state.looked, decoder: byLayer(itself), cross: byLayer(across) },
      };
    }
  }

  // A decoder alone, of letters (chapter 13): transformer_ref/beyond/gpt.py, name by name. `python -m book.recorded.gpt`
  // writes its weights.
  class LiveGPT {
    constructor(packed) {
      this.sizes = packed.sizes;
      this.alphabet = [...packed.alphabet];
      this.weights = unpack(packed);
    }

    encode(text) { return [...text].map((letter) => this.alphabet.indexOf(letter)); } // -1 for a letter it never saw

    decode(ids) { return ids.map((id) => this.alphabet[id]).join(""); }

    // An empty cache: for each block the keys and values of the letters read, (length, d) each.
    begin() {
      return { length: 0, blocks: Array.from({ length: this.sizes.layers }, () => ({ key: new Float32Array(0), value: new Float32Array(0) })) };
    }

    norm(x, name) { return layerNorm(x, this.weights[`${name}.weight`], this.weights[`${name}.bias`]); }

    linear(x, name) {
      const bias = this.weights[`${name}.bias`];
      return linear(x, this.weights[`${name}.weight`], bias, this.weights[`${name}.weight`].length / bias.length);
    }

    // Letters more, n of them: the residual stream before the first block and after each, (n, d) each. Their places must be
    // in the table.
    stream(ids, cache) {
      const { d_model: d, h, max_length } = this.sizes, first = cache.length;
      if (first + ids.length > max_length) throw new RangeError(`the model has ${max_length} places`);
      cache.length += ids.length;
      const token = this.weights["embedding.weight"], place = this.weights["positions.table"];
      let x = new Float32Array(ids.length * d);
      ids.forEach((id, row) => {
        for (let i = 0; i < d; i++) x[row * d + i] = token[id * d + i] + place[(first + row) * d + i];
      });
      const trace = [x];
      const add = (change) => { x = x.map((number, i) => number + change[i]); };
      cache.blocks.forEach((held, block) => {
        const name = `blocks.${block}`, read = this.norm(x, `${name}.self_attention_residual.norm`);
        held.key = joined(held.key, this.linear(read, `${name}.self_attention.k_proj`));
        held.value = joined(held.value, this.linear(read, `${name}.self_attention.v_proj`));
        const { mixed } = attend(this.linear(read, `${name}.self_attention.q_proj`), held.key, held.value, d, h, first);
        add(this.linear(mixed, `${name}.self_attention.out_proj`));
        const wide = this.linear(this.norm(x, `${name}.feed_forward_residual.norm`), `${name}.feed_forward.fc1`).map(ACTIVATIONS.gelu);
        add(this.linear(wide, `${name}.feed_forward.fc2`));
        trace.push(x);
      });
      return trace;
    }

    // Scores for the next letter, (n, letters), of an entry of the stream, (n, d).
    head(x) { return linear(this.norm(x, "norm"), this.weights["embedding.weight"], null, this.sizes.d_model); }

    // Scores for the next letter, (letters), after the last of these; the cache is read on.
    read(ids, cache) { return this.head(this.stream(ids, cache).at(-1).slice(-this.sizes.d_model)); }
  }

  // ---- loading -------------------------------------------------------------------------------------------

  const { src } = document.currentScript; // empty where this script stands in the page itself

  // Something made of weights, once they have arrived; they are asked for on the first call only, or are there already.
  const loader = (file, global, Model) => {
    const address = src && new URL(file, src).href;
    let loading = null;
    return () => {
      loading ??= new Promise((resolve, reject) => {
        if (window[global]) { resolve(new Model(window[global])); return; }
        const script = document.createElement("script");
        script.src = address;
        script.onload = () => resolve(new Model(window[global]));
        script.onerror = () => { loading = null; script.remove(); reject(new Error(`could not load ${address}`)); };
        document.head.append(script);
      });
      return loading;
    };
  };

  window.liveModel = {
    WORLD, softmax,
    load: loader("live_model_weights.js", "liveModelWeights", LiveModel),
    loadGPT: loader("gpt_weights.js", "gptWeights", LiveGPT),
  };
})();
