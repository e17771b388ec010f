"""11.4: one more word, or a few, with the keys and values of the earlier ones out of a cache."""

import math
from typing import Any

import torch
from torch import Tensor

from autograder.catalogue.ch11_inference.models import SmallDecoder
from autograder.catalogue.ch11_inference.shared import sections
from autograder.catalogue.exercise import Case, Evidence, Exercise
from autograder.catalogue.known_answers import answer, correct, mistake
from autograder.catalogue.numbers import number
from autograder.catalogue.probes import PROMISED, hidden, second_call, visible
from transformer_ref.model.masks import causal_mask

CACHE, CHUNKS = sections("cache chunks")
V, D = 11, 6


def decode_step(model: Any, y_t: Tensor, cache: list, t: int) -> tuple[Tensor, list]:
    """Logits after the last of the new words, (B, V), and the cache with their keys and values."""
    c = y_t.shape[1]
    x = model.embed(y_t, torch.arange(t, t + c))  # (B, c, D)
    grown = []
    for layer, (K, V, cross) in zip(model.layers, cache, strict=True):
        K = torch.cat([K, layer.key(x)], dim=1)  # (B, t + c, D)
        V = torch.cat([V, layer.value(x)], dim=1)  # (B, t + c, D)
        scores = layer.query(x) @ K.transpose(-2, -1) / math.sqrt(K.shape[-1])  # (B, c, t + c)
        weights = scores.masked_fill(~causal_mask(c, t), -torch.inf).softmax(dim=-1)
        x = layer.rest(x, weights @ V, cross)
        grown.append((K, V, cross))
    return model.head(x)[:, -1], grown


def in_any_order(case: Case, result: Any) -> Any:
    """Logits, and of every layer (K, V, cross) with the words in one order: new ones may come first."""
    if not isinstance(result, (tuple, list)) or len(result) != 2 or not isinstance(result[1], (tuple, list)):
        return result
    logits, cache = result
    layers = []
    for layer in cache:
        if not isinstance(layer, (tuple, list)) or len(layer) != 3:
            return result
        K, V, cross = layer
        if not all(isinstance(part, Tensor) and part.ndim == 3 and part.numel() for part in (K, V)):
            return result
        order = K[0, :, 0].argsort()
        layers.append([K[:, order], V[:, order] if V.shape[1] == K.shape[1] else V,
                       list(cross) if isinstance(cross, tuple) else cross])
    return logits, layers


def step(g: torch.Generator, B: int, t: int, c: int, S: int = 3, D: int = D) -> Case:
    """c words after t words, whose keys and values are in the cache; the source has S."""
    model = SmallDecoder(V, D, g)
    ids = torch.randint(V, (B, t + c), generator=g)
    with torch.no_grad():
        cache = model.new_cache(torch.randn(B, S, D, generator=g))
        if t:
            _, cache = decode_step(model, ids[:, :t], cache, 0)
    cache = [(K.detach(), V.detach(), tuple(part.detach() for part in cross)) for K, V, cross in cache]
    return Case((model, ids[:, t:], cache, t))


def equal_words(g: torch.Generator) -> Case:
    """The same word again and again, in two sentences alike: only places tell them apart."""
    model, ids, cache, t = step(g, 3, 4, 2).arguments
    return Case((model, torch.full_like(ids, 7), cache, t))


def first_logits(evidence: Evidence) -> str:
    got, wanted = evidence.got[0].flatten()[0], evidence.expected[0].flatten()[0]
    return f"Your first logit is {number(got)}; without a cache it is {number(wanted)}."


def kept_words(evidence: Evidence) -> str:
    got, wanted = evidence.got[1][0][0].shape[1], evidence.expected[1][0][0].shape[1]
    return f"After this step your cache holds the keys of {got} words; it should hold those of {wanted}."


RIGHT = answer("""
    def decode_step(model, y_t, cache, t):
        c = y_t.shape[1]
        x = model.embed(y_t, torch.arange(t, t + c))
        mask = torch.ones(c, t + c, dtype=torch.bool).tril(t)
        grown = []
        for layer, (K, V, cross) in zip(model.layers, cache):
            K = torch.cat([K, layer.key(x)], dim=1)
            V = torch.cat([V, layer.value(x)], dim=1)
            scores = layer.query(x) @ K.transpose(-2, -1) / K.shape[-1] ** 0.5
            scores = scores.masked_fill(~mask, float('-inf'))
            mixed = torch.softmax(scores, dim=-1) @ V
            x = layer.rest(x, mixed, cross)
            grown.append((K, V, cross))
        return model.head(x)[:, -1], grown
""")
PLACES, MASK = "torch.arange(t, t + c)", "mask = torch.ones(c, t + c, dtype=torch.bool).tril(t)"
KEYS, VALUES = "K = torch.cat([K, layer.key(x)], dim=1)", "V = torch.cat([V, layer.value(x)], dim=1)"
HIDE, GROWN = "scores = scores.masked_fill(~mask, float('-inf'))", "grown.append((K, V, cross))"
SCORES = "scores = layer.query(x) @ K.transpose(-2, -1) / K.shape[-1] ** 0.5"
FAILS = "e = (scores - scores.amax(dim=-1, keepdim=True)).exp()"  # it raises for an empty axis, as chapter 04's does
MIXED, REST = "mixed = torch.softmax(scores, dim=-1) @ V", "x = layer.rest(x, mixed, cross)"
LATE = """Attention was computed before the new keys and values were appended. At first the cache is empty, so there was
    no key to attend to, and the softmax stopped with an error; later, each new word could not attend to itself. Its own
    key must be in the cache before attention is computed."""
SAYS_CHUNKS = "c is 1 for a step, and more when several words come at once"

EXERCISE = Exercise(
    id="decode-step", number="11.4", difficulty=3, minutes=35, visible_points=2, hidden_points=6,
    reference=decode_step, normalize=in_any_order, mutable_args=(2,), section=CACHE, quotes=first_logits,
    omits={"precision": "the small model computes in float32"},
    probes=(
        visible("the first word, with an empty cache", step, 2, 0, 1),
        visible("one word after three", step, 2, 3, 1),
        visible("two words at once after four", step, 2, 4, 2),
        hidden("one word after five, a batch of three", step, 3, 5, 1, 4, 10, announced_by="y_t: (B, c)"),
        hidden("three words at once, with an empty cache", step, 2, 0, 3, 2, announced_by=SAYS_CHUNKS),
        hidden("one sentence, one word", step, 1, 2, 1, 5, announced_by=PROMISED),
        hidden("four words at once after two", step, 3, 2, 4, announced_by=SAYS_CHUNKS),
        hidden("equal words", equal_words, announced_by=PROMISED),
        second_call(step, 2, 3, 2),
    ),
    mistakes=(
        mistake("position always 0", RIGHT.but(PLACES, "torch.arange(c)"), CACHE,
            """Each new word was given position 0, as if a sentence began with it. The t words in the cache come before:
            the first new one is at position t."""),
        mistake("position one too many", RIGHT.but(PLACES, "torch.arange(t + 1, t + c + 1)"), CACHE,
            "Your positions are one too high. Positions count from 0: after t words the next one is at position t."),
        mistake("position one too few", RIGHT.but(PLACES, "torch.arange(t - 1, t + c - 1).clamp(min=0)"), CACHE,
            "Your positions are one too low: the new word got that of the last one in the cache. After t words the "
            "next one is at position t."),
        mistake("one place for all new words", RIGHT.but(PLACES, "torch.full((c,), t)"), CHUNKS,
            "All new words got position t. Of several at once, the second is at t + 1, and so on."),
        mistake("the last place for all new words", RIGHT.but(PLACES, "torch.full((c,), t + c - 1)"), CHUNKS,
            "All new words got the position of the last of them. They are at t, t + 1, and so on."),
        mistake("the new word cannot see itself", RIGHT.without(KEYS).without(VALUES).but(
                  MASK, "mask = torch.ones(c, t, dtype=torch.bool)").but(HIDE, "pass").but(
                  MIXED, "mixed = torch.softmax(scores, dim=-1) @ V").after(REST, """
                      K = torch.cat([K, layer.key(x)], dim=1)
                      V = torch.cat([V, layer.value(x)], dim=1)
                  """), CACHE,
            """Attention came before the new keys and values were appended, so a word cannot see itself, and the first
            one sees nothing. And the appended keys and values were computed from the layer's result. Append first, then
            attend."""),
        mistake("the new words appended nowhere", RIGHT.without(KEYS).without(VALUES).without(HIDE), CACHE,
            """The keys and values of the new words are missing, both in attention and in the returned cache: the new
            words attend only to the earlier ones. Append first, then attend.""", quotes=kept_words),
        mistake("attends before it appends",
                RIGHT.but(KEYS, "k, v, K_old, V_old = layer.key(x), layer.value(x), K, V").but(
                  VALUES, "K, V = torch.cat([K, k], dim=1), torch.cat([V, v], dim=1)").but(
                  "layer.query(x) @ K.tr", "layer.query(x) @ K_old.tr").but(HIDE, "pass").but("dim=-1) @ V",
                      "dim=-1) @ V_old"), CACHE,
            """The scores were computed with the keys of the *earlier* words only, so the new word cannot see itself,
            and the first one sees nothing. Append first, then attend."""),
        mistake("attends before it appends, except with an empty cache",
                RIGHT.after(MASK, "mask[:, t:] &= t == 0"), CACHE,
            """Once the cache holds words, the new ones attend only to those: a new word cannot see itself. Append
            first, then attend, whether or not the cache is empty."""),
        mistake("attends before it appends, with chapter 04's softmax",
                RIGHT.but(KEYS, "k, v = layer.key(x), layer.value(x)").without(VALUES).but(HIDE, FAILS).but(
                  MIXED, "mixed = e / e.sum(dim=-1, keepdim=True) @ V").but(
                  GROWN, "grown.append((torch.cat([K, k], dim=1), torch.cat([V, v], dim=1), cross))"), CACHE,
            LATE),
        mistake("attends before it appends, under the mask for all words",
                RIGHT.but(KEYS, "k, v = layer.key(x), layer.value(x)").without(VALUES).but(HIDE, f"""
                  {HIDE}
                  {FAILS}
                """).but(MIXED, "mixed = e / e.sum(dim=-1, keepdim=True) @ V").but(
                  GROWN, "grown.append((torch.cat([K, k], dim=1), torch.cat([V, v], dim=1), cross))"), CACHE,
            LATE),
        mistake("the cache not asked, and no mask",
                RIGHT.but(KEYS, "k, v = layer.key(x), layer.value(x)").without(VALUES).but(
                  HIDE, "pass").but("layer.query(x) @ K.tr", "layer.query(x) @ k.tr").but("dim=-1) @ V",
                      "dim=-1) @ v").but(
                  GROWN, "grown.append((torch.cat([K, k], dim=1), torch.cat([V, v], dim=1), cross))"), CACHE,
            """The new words attend only to each other, and to later ones: the cache grows, and is never read. Scores
            are computed with all keys, old and new, under a mask that is closed for what comes later."""),
        mistake("keys of the embedding in every layer", RIGHT.but(
                  "x = model.embed(y_t, torch.arange(t, t + c))",
                  "x = first = model.embed(y_t, torch.arange(t, t + c))").but(
                  "layer.key(x)", "layer.key(first)").but("layer.value(x)", "layer.value(first)"), CACHE,
            """Keys and values of every layer were computed from the embedding. Each layer computes them from *its own*
            input, the output of the layer before it."""),
        mistake("keys of the layer's output in the cache", RIGHT.but(GROWN, """
                  K = torch.cat([K[:, :t], layer.key(x)], dim=1)
                  V = torch.cat([V[:, :t], layer.value(x)], dim=1)
                  grown.append((K, V, cross))
            """), CACHE,
            """The keys and values that came back in the cache were computed from the *output* of each layer. Attention
            uses those of the layer's input: keep the same ones.""", quotes=None),
        mistake("the diagonal blocked", RIGHT.but("tril(t)", "tril(t - 1)"), CACHE,
            "The new word cannot see itself: the mask is closed on its own position. Row i is at position t + i, and "
            "may attend to itself."),
        mistake("the diagonal blocked by a large number",
                RIGHT.but("tril(t)", "tril(t - 1)").but("float('-inf')", "-1e9"), CACHE,
            """The new word cannot see itself: the mask is closed on its own position (the first word has no other key,
            so it goes unnoticed there). Row i is at position t + i, and may attend to itself."""),
        mistake("values in front, keys behind", RIGHT.but("[V, layer.value(x)]", "[layer.value(x), V]"), CACHE,
            "New values come first and new keys last, so each key has the value of another word. Both at the "
            "same end."),
        mistake("the cache overwritten", RIGHT.but("torch.cat([K, layer.key(x)], dim=1)", "layer.key(x)").but(
                  "torch.cat([V, layer.value(x)], dim=1)", "layer.value(x)").but(MASK,
                      "mask = torch.ones(c, c, dtype=torch.bool).tril()"), CACHE,
            "The new keys and values took the place of the old ones. A cache grows: append to what is there.",
            quotes=kept_words),
        mistake("the cache handed back as it was",
                RIGHT.but("return model.head(x)[:, -1], grown", "return model.head(x)[:, -1], cache"), CACHE,
            """The logits are right, but the cache came back as it was, without the new words: the next step would know
            nothing of them.""",
            quotes=kept_words),
        mistake("only the new ones in the cache", RIGHT.but(GROWN, "grown.append((K[:, t:], V[:, t:], cross))"), CACHE,
            """The logits are right, but of all keys and values only the new ones came back. The next step needs those
            before as well.""",
            quotes=kept_words),
        mistake("keys in front, values behind", RIGHT.but("[K, layer.key(x)]", "[layer.key(x), K]"), CACHE,
            "New keys come first and new values last, so each key has the value of another word. Both at the "
            "same end."),
        mistake("in front, with a mask for behind", RIGHT.but("[K, layer.key(x)]", "[layer.key(x), K]").but(
                  "[V, layer.value(x)]", "[layer.value(x), V]"), CHUNKS,
            """New keys and values were put in front of the old ones. For one word that is as good, but the mask of
            several relies on the order of the sentence: the columns of your newest words are not where it closes
            them."""),
        mistake("the mask not shifted", RIGHT.but("tril(t)", "tril()"), CHUNKS,
            """The new words lost what is in the cache: row 0 of your mask opens only the first column. Row i is at
            position t + i, so its row of ones is longer by t."""),
        mistake("the mask not shifted, and none for one word",
                RIGHT.but("tril(t)", "tril(0 if c > 1 else t)"), CHUNKS,
            """Of several words at once, the first saw only the first key of the cache. Such a mask begins at key 0, as
            that of `is_causal` does, and fits only an empty cache. Row i is at position t + i, so its row of ones is
            longer by t."""),
        mistake("no mask for several words", RIGHT.but(HIDE, "pass"), CHUNKS,
            """Of several words at once, each saw the ones after it. A single word needs no mask; several need one that
            is closed for what comes later."""),
        mistake("only the newest words looked at", RIGHT.but(
                  MASK, "mask = torch.ones(c, t + c, dtype=torch.bool).tril(t)\n    mask[:, :t] = t == 0"), CHUNKS,
            "The new words look only at each other; the columns of the cache are closed."),
        mistake("the mask the wrong way round", RIGHT.but("~mask", "mask"), CHUNKS,
            "The mask is inverted: the query attends to what should be hidden. A step without any allowed key gives "
            "NaN."),
        mistake("scale missing", RIGHT.but(" / K.shape[-1] ** 0.5", ""), CACHE,
            "The division by the root of d_k is missing, so the weights are sharper than those of `forward`."),
        mistake("divided by d_k", RIGHT.but("K.shape[-1] ** 0.5", "K.shape[-1]"), CACHE,
            "The scores were divided by d_k itself, not by its root."),
        mistake("divided by the root of the number of words", RIGHT.but("K.shape[-1]", "K.shape[1]"), CACHE,
            "The scores were divided by the root of the number of words in the cache. It is the width of a key, d_k, "
            "that makes them large."),
        mistake("softmax over the new words",
                RIGHT.but("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=-2)"), CACHE,
            "The softmax ran over the queries. The weights of each query sum to 1 over the *keys*, the last axis."),
        mistake("no softmax", RIGHT.but("torch.softmax(scores, dim=-1)", "scores.nan_to_num(neginf=0)"), CACHE,
            "The scores themselves mixed the values. The softmax between is missing."),
        mistake("the first word's logits", RIGHT.but("[:, -1], grown", "[:, 0], grown"), CHUNKS,
            "Of several words you returned the logits of the first. The *last* one predicts what comes next."),
        mistake("logits of all new words", RIGHT.but("[:, -1], grown", ", grown"), CHUNKS,
            "Logits of every new word came back, (B, c, V). Return those of the last one, (B, V)."),
        mistake("only the logits", RIGHT.but("[:, -1], grown", "[:, -1]"), CACHE,
            "Only the logits came back. The next step needs the cache as well: return both."),
        mistake("the cache first",
                RIGHT.but("return model.head(x)[:, -1], grown", "return grown, model.head(x)[:, -1]"), CACHE,
            "The pair is the wrong way round: first the logits, then the cache."),
        mistake("the source's keys forgotten", RIGHT.but(GROWN, "grown.append((K, V))"), CACHE,
            "The cache came back without the keys and values of the source, its third part. They never change, but "
            "the next step needs them too."),
        mistake("the first layer's cache for all",
                RIGHT.but("zip(model.layers, cache)", "zip(model.layers, [cache[0]] * len(cache))"), CACHE,
            "All layers used the keys and values of layer 0. Each layer has its own."),
        mistake("the last layer's cache for all", RIGHT.but(
                  "return model.head(x)[:, -1], grown", "return model.head(x)[:, -1], [grown[-1]] * len(grown)"), CACHE,
            "The cache that came back has one layer's keys and values for all layers. Each layer has its own."),
        mistake("the first layer alone", RIGHT.but(GROWN, "grown.append((K, V, cross))\n        break"), CACHE,
            "Only the first layer was run. The loop ends after the last one."),
        mistake("x added to what is mixed", RIGHT.but(REST, "x = layer.rest(x, x + mixed, cross)"), CACHE,
            "x was added to the mixed values. layer.rest adds it by itself."),
        mistake("rest called the other way round", RIGHT.but(REST, "x = layer.rest(mixed, x, cross)"), CACHE,
            "layer.rest was given the mixed values first. Its first argument is x, as it came into the layer."),
        mistake("keys cut anew", RIGHT.but("K.transpose(-2, -1)", "K.reshape(K.shape[0], K.shape[2], K.shape[1])"),
                CACHE,
            "The keys were reshaped from (B, t, D) to (B, D, t), so each holds features of several words. Exchange the "
            "axes with transpose."),
        mistake("every layer fed with the embedding", RIGHT.but(REST, "x_last = layer.rest(x, mixed, cross)").but(
                  "model.head(x)", "model.head(x_last)"), CACHE,
            "Each layer was given the embedding. A layer works on what the one before it has made."),
        mistake("the rest of the layer left out", RIGHT.but(REST, "x = mixed"), CACHE,
            "What follows attention in a layer was left out: the sum, the norms, the cross-attention, "
            "feed-forward. `layer.rest` has it all."),
        mistake("the head left out", RIGHT.but("model.head(x)[:, -1]", "x[:, -1]"), CACHE,
            "Vectors of width D came back. The model's head makes logits over the vocabulary of them."),
        mistake("values for keys", RIGHT.but("[V, layer.value(x)]", "[V, layer.key(x)]"), CACHE,
            "The new word's key was appended to the values. A key is matched, a value is mixed: each layer "
            "computes both."),
        mistake("everything computed with old words as x", RIGHT.but("layer.query(x)", "layer.key(x)"), CACHE,
            "The new word's key was used as its query. The query projection makes the query."),
    ),
    correct=(
        correct("appended by cat", RIGHT),
        correct("the cache changed in place", """
            def decode_step(model, y, cache, t):
                n = y.size(1)
                h = model.embed(y, torch.arange(n) + t)
                blocked = torch.triu(torch.ones(n, n + t, dtype=torch.bool), diagonal=t + 1)
                for i, layer in enumerate(model.layers):
                    old_k, old_v, cross = cache[i]
                    k = torch.cat((old_k, layer.key(h)), 1)
                    v = torch.cat((old_v, layer.value(h)), 1)
                    cache[i] = (k, v, cross)
                    a = torch.einsum('bqd,bkd->bqk', layer.query(h), k) * k.size(-1) ** -0.5
                    h = layer.rest(h, a.masked_fill(blocked, -torch.inf).softmax(-1) @ v, cross)
                return model.head(h[:, -1]), cache
        """),
        correct("a buffer filled in", """
            def decode_step(model, y_t, cache, t):
                B, c = y_t.shape
                x = model.embed(y_t, torch.arange(t, t + c))
                new = []
                for i in range(len(model.layers)):
                    layer = model.layers[i]
                    K, V, cross = cache[i]
                    D = x.shape[-1]
                    buffer = torch.zeros(2, B, t + c, D)
                    buffer[0, :, :t], buffer[1, :, :t] = K, V
                    buffer[0, :, t:], buffer[1, :, t:] = layer.key(x), layer.value(x)
                    q = layer.query(x)
                    rows = []
                    for place in range(c):
                        seen = t + place + 1
                        s = (q[:, place:place + 1] * buffer[0, :, :seen]).sum(-1) / math.sqrt(D)
                        rows.append((s.softmax(-1)[..., None] * buffer[1, :, :seen]).sum(1))
                    x = layer.rest(x, torch.stack(rows, 1), cross)
                    new.append([buffer[0], buffer[1], cross])
                return model.head(x)[:, -1], new
        """),
        correct("in front, with the mask turned", """
            def decode_step(model, y_t, cache, t):
                c = y_t.shape[1]
                x = model.embed(y_t, torch.arange(t, t + c))
                mask = torch.cat([torch.ones(c, c).tril(), torch.ones(c, t)], dim=1).bool()
                grown = []
                for layer, (K, V, cross) in zip(model.layers, cache):
                    K, V = torch.cat([layer.key(x), K], dim=1), torch.cat([layer.value(x), V], dim=1)
                    scores = layer.query(x) @ K.mT / K.shape[-1] ** 0.5
                    x = layer.rest(x, scores.masked_fill(~mask, -1e9).softmax(dim=-1) @ V, cross)
                    grown.append((K, V, cross))
                return model.head(x)[:, -1], grown
        """),
        correct("torch's attention", """
            def decode_step(model, y_t, cache, t):
                c = y_t.shape[1]
                x = model.embed(y_t, torch.arange(t, t + c))
                grown = []
                for layer, (K, V, cross) in zip(model.layers, cache):
                    K = torch.cat([K, layer.key(x)], dim=1)
                    V = torch.cat([V, layer.value(x)], dim=1)
                    mask = torch.arange(t + c)[None, :] <= torch.arange(t, t + c)[:, None]
                    x = layer.rest(x, F.scaled_dot_product_attention(layer.query(x), K, V, attn_mask=mask), cross)
                    grown.append((K, V, cross))
                return model.head(x)[:, -1, :], tuple(grown)
        """),
        correct("word after word", """
            def decode_step(model, y_t, cache, t):
                for place in range(y_t.shape[1]):
                    x = model.embed(y_t[:, place:place + 1], torch.tensor([t + place]))
                    grown = []
                    for layer, (K, V, cross) in zip(model.layers, cache):
                        K, V = torch.cat([K, layer.key(x)], 1), torch.cat([V, layer.value(x)], 1)
                        w = torch.softmax(layer.query(x) @ K.transpose(1, 2) / K.shape[2] ** 0.5, 2)
                        x = layer.rest(x, w @ V, cross)
                        grown.append((K, V, cross))
                    cache = grown
                return model.head(x).squeeze(1), cache
        """),
    ),
    hints=(
        "which words give the queries, and which give the keys? At which position of the sentence is the "
        "first new word?",
        "x (B, c, D); K and V grow from (B, t, D) to (B, t + c, D); scores (B, c, t + c), in which row i may see t + "
        "i + 1 columns.",
        "embed at positions t and on; for each layer: append the new keys and values, attend with the causal mask of "
        "offset t, then rest; at the end the head, at the last word. Return the logits and, for each layer, (K, V, "
        "cross).",
    ),
)  # fmt: skip
