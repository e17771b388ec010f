"""Files as `assemble` writes them, as text: a learner's model in a few styles, and the parts of a training run."""

ATTENTIONS = {
    "four linears": """
class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.W_v, self.W_k, self.W_q, self.W_o = (nn.Linear(d, d) for _ in range(4))

    def project(self, x_q, x_kv):
        return self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)
""",
    "fused": """
class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def project(self, x_q, x_kv):
        return self.qkv(x_q).chunk(3, -1)[0], *self.qkv(x_kv).chunk(3, -1)[1:]

    def W_o(self, x):
        return self.out(x)
""",
    "named as in the library": """
class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.in_proj_weight, self.in_proj_bias = nn.Parameter(torch.empty(3 * d, d)), nn.Parameter(torch.zeros(3 * d))
        self.out_proj = nn.Linear(d, d)

    def project(self, x_q, x_kv):
        both = (nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias) for x in (x_q, x_kv))
        mine, theirs = (each.chunk(3, -1) for each in both)
        return mine[0], theirs[1], theirs[2]

    def W_o(self, x):
        return self.out_proj(x)
""",
    "bare matrices": """
class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.A, self.B, self.C, self.D = (nn.Parameter(torch.empty(d, d)) for _ in range(4))

    def project(self, x_q, x_kv):
        return x_q @ self.A, x_kv @ self.B, x_kv @ self.C

    def W_o(self, x):
        return x @ self.D
""",
    "a layer for each head": """
class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.query, self.key, self.value = (nn.ModuleList(nn.Linear(d, d // h) for _ in range(h)) for _ in range(3))
        self.output = nn.Linear(d, d)

    def project(self, x_q, x_kv):
        given = (self.query, x_q), (self.key, x_kv), (self.value, x_kv)
        return (torch.cat([f(x) for f in each], -1) for each, x in given)

    def W_o(self, x):
        return self.output(x)
""",
}
FEEDS = {
    "modules": """
class Think(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.one, self.two = nn.Linear(d, d_ff), nn.Linear(d_ff, d)

    def forward(self, x):
        return self.two(torch.relu(self.one(x)))


class Norm(nn.LayerNorm):
    pass
""",
    "functions": """
class Think(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.W1, self.b1 = nn.Parameter(torch.empty(d, d_ff)), nn.Parameter(torch.zeros(d_ff))
        self.W2, self.b2 = nn.Parameter(torch.empty(d_ff, d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return torch.relu(x @ self.W1 + self.b1) @ self.W2 + self.b2


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g, self.b = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(variance + 1e-5) * self.g + self.b
""",
}
MODEL = """
class Layer(nn.Module):
    def __init__(self, cfg, attentions):
        super().__init__()
        self.first = cfg.norm_first
        self.own = Attention(cfg.d_model, cfg.heads)
        if attentions == 2:
            self.cross = Attention(cfg.d_model, cfg.heads)
        self.think = Think(cfg.d_model, cfg.d_ff)
        self.norms = nn.ModuleList(Norm(cfg.d_model) for _ in range(attentions + 1))
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x, mask, memory=None, seen=None):
        parts = [lambda x: attend(self.own, x, x, mask)]
        if memory is not None:
            parts.append(lambda x: attend(self.cross, x, memory, seen))
        for norm, part in zip(self.norms, [*parts, self.think]):
            x = x + self.drop(part(norm(x))) if self.first else norm(x + self.drop(part(x)))
        return x


def attend(module, x_q, x_kv, mask):
    q, k, v = (each.unflatten(-1, (module.h, -1)).transpose(1, 2) for each in module.project(x_q, x_kv))
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, torch.finfo(q.dtype).min)
    module.last_weights = scores.softmax(-1)
    return module.W_o((module.last_weights @ v).transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.src = nn.Embedding(cfg.source_vocabulary, cfg.d_model)
        self.tgt = nn.Embedding(cfg.target_vocabulary, cfg.d_model)
        self.encoder = nn.ModuleList(Layer(cfg, 1) for _ in range(cfg.encoder_layers))
        self.decoder = nn.ModuleList(Layer(cfg, 2) for _ in range(cfg.decoder_layers))
        self.ends = nn.ModuleDict({n: Norm(cfg.d_model) for n in ("encoder", "decoder")})  # post-norm uses none
        self.generator = nn.Linear(cfg.d_model, cfg.target_vocabulary, bias=False)
        if cfg.tie_embeddings:
            self.src.weight = self.generator.weight = self.tgt.weight

    def embed(self, table, ids):
        D = self.cfg.d_model
        pos, pair = torch.arange(ids.shape[1])[:, None], torch.arange(D)[None] // 2
        angle = pos / 10_000 ** (2 * pair / D)
        return table(ids) * math.sqrt(D) + torch.where(torch.arange(D) % 2 == 0, angle.sin(), angle.cos())

    def end(self, name, x):
        return self.ends[name](x) if self.cfg.norm_first else x

    def forward(self, src, tgt_in):
        seen, said = ((ids != self.cfg.pad)[:, None, None] for ids in (src, tgt_in))
        said = said & torch.ones(tgt_in.shape[1], tgt_in.shape[1], dtype=torch.bool).tril()
        x, y = self.embed(self.src, src), self.embed(self.tgt, tgt_in)
        for layer in self.encoder:
            x = layer(x, seen)
        memory = self.end("encoder", x)
        for layer in self.decoder:
            y = layer(y, said, memory, seen)
        return self.generator(self.end("decoder", y))
"""
PARTS = """
def masked_ce(logits, labels, pad):
    return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad)


def smooth_targets(labels, V, eps, pad):
    targets = torch.full((*labels.shape, V), eps / (V - 2)).scatter_(2, labels[..., None], 1 - eps)
    targets[..., pad] = 0
    return targets.masked_fill((labels == pad)[..., None], 0)


def noam_lr(step, d, warmup):
    return d**-0.5 * min(step**-0.5, step * warmup**-1.5)


def shift_right(labels, bos):
    return torch.cat([torch.full_like(labels[:, :1], bos), labels[:, :-1]], dim=1)


def token_batches(lengths, max_tokens):
    batches, batch = [], []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if lengths[i] * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(i)
    return [*batches, batch]


def greedy_decode(model, src, max_len, bos, eos, pad):
    out, done = torch.full((len(src), 1), bos), torch.zeros(len(src), dtype=torch.bool)
    for _ in range(max_len):
        chosen = model(src, out)[:, -1].argmax(-1).masked_fill(done, pad)
        out, done = torch.cat([out, chosen[:, None]], dim=1), done | (chosen == eos)
        if done.all():
            break
    return out


def beam_search(step_fn, k, max_len, alpha, bos, eos):
    live, finished = [([bos], 0.0)], []
    for _ in range(max_len):
        rows = step_fn(torch.tensor([ids for ids, _ in live])).tolist()
        grown = [([*ids, t], p + q) for (ids, p), row in zip(live, rows) for t, q in enumerate(row)]
        best = sorted(grown, key=lambda one: -one[1])[:k]
        finished += [one for one in best if one[0][-1] == eos]
        live = [one for one in best if one[0][-1] != eos]
        if not live:
            break
    return sorted(((ids, p / (len(ids) - 1) ** alpha) for ids, p in finished or live), key=lambda one: -one[1])
"""
HEAD = "import math\n\nimport torch\nfrom torch import nn\n"


def own_file(attention: str = "four linears", feed: str = "modules", parts: str = PARTS) -> str:
    """The text of a file in that style."""
    return HEAD + ATTENTIONS[attention] + FEEDS[feed] + MODEL + parts
