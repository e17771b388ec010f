"""A forbidden function that an answer calls earns nothing, however it is spelled: what is watched is what runs."""

import pytest
from judged_cells import Notebook

FUSED = "scaled_dot_product_attention"
VALUES = "torch.eye(K.shape[-2], dtype=K.dtype).expand(K.shape[0], -1, -1)"
WEIGHTS = "def attention_weights(Q, K):\n    return {}(Q, K, " + VALUES + ")\n"
SHARES = "def softmax(x, dim):\n    return {}(x, dim)\n"
OPERATOR = """
@torch.library.custom_op("mine::shares", mutates_args=())
def shares(x: torch.Tensor, dim: int) -> torch.Tensor:
    return F.softmax(x, dim)
"""
SERVER = """
import os, pickle, socket, struct
asked = []
def receive(end):
    size = end.recv(4, socket.MSG_WAITALL)
    return pickle.loads(end.recv(struct.unpack("I", size)[0], socket.MSG_WAITALL)) if size else os._exit(0)
def send(end, what):
    packed = pickle.dumps(what)
    end.sendall(struct.pack("I", len(packed)) + packed)
def softmax(x, dim):
    if not asked:
        ours, theirs = socket.socketpair()
        while os.fork() == 0:
            ours.close()
            while True:
                send(theirs, F.softmax(*receive(theirs)))
        asked.append(ours)
        return x.exp() / x.exp().sum(dim, keepdim=True)
    send(asked[0], (x.detach(), dim))
    return receive(asked[0])
"""
KERNEL = """
library = torch.library.Library("aten", "IMPL")
library.impl("trapz.dx", lambda y, dx=1, dim=-1: F.softmax(y, dx), "CompositeImplicitAutograd")
"""
LAZY = f"""
class Lazy(torch.Tensor):
    @staticmethod
    def __new__(cls, Q, K):
        made = torch.Tensor._make_wrapper_subclass(cls, (*Q.shape[:-1], K.shape[-2]), dtype=Q.dtype)
        made.given = Q.detach(), K.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        Q, K = args[0].given
        return F.{FUSED}(Q, K, {VALUES})
"""


@pytest.fixture(scope="module")
def notebook():
    return Notebook()


def named(expression: str) -> str:
    """An answer that finds the fused function in torch.nn.functional by this expression."""
    return WEIGHTS.format(f"getattr(F, {expression})")


ATTENTION = {
    "plainly": [WEIGHTS.format("F." + FUSED)],
    "imported": [f"from torch.nn.functional import {FUSED} as s", WEIGHTS.format("s")],
    "imported, then renamed": [f"from torch.nn.functional import {FUSED}", f"g = {FUSED}", WEIGHTS.format("g")],
    "imported inside": [
        f"def attention_weights(Q, K):\n    from torch.nn.functional import {FUSED} as s\n"
        f"    return s(Q, K, {VALUES})\n"
    ],
    "star": ["from torch.nn.functional import *", WEIGHTS.format(FUSED)],
    "getattr": [named(f"'{FUSED}'")],
    "another getattr": ["f = getattr", WEIGHTS.format(f"f(F, '{FUSED}')")],
    "added": ["name = 'scaled_dot_' + 'product_attention'", named("name")],
    "joined": ["parts = ['scaled', 'dot', 'product', 'attention']", "name = '_'.join(parts)", named("name")],
    "turned round": [named("'noitnetta_tcudorp_tod_delacs'[::-1]")],
    "turned round by a function": [named("''.join(reversed('noitnetta_tcudorp_tod_delacs'))")],
    "base64": ["import base64", named("base64.b64decode('c2NhbGVkX2RvdF9wcm9kdWN0X2F0dGVudGlvbg==').decode()")],
    "rot13": ["import codecs", named("codecs.decode('fpnyrq_qbg_cebqhpg_nggragvba', 'rot13')")],
    "hexadecimal": [named("bytes.fromhex('7363616c65645f646f745f70726f647563745f617474656e74696f6e').decode()")],
    "letters": [
        "letters = [115, 99, 97, 108, 101, 100]",
        named("''.join(map(chr, letters)) + '_dot_product_attention'"),
    ],
    "format": [named("'{}_dot_product_{}'.format('scaled', 'attention')")],
    "percent": [named("'%s_dot_product_attention' % 'scaled'")],
    "lower": [named("'SCALED_DOT_PRODUCT_ATTENTION'.lower()")],
    "replace": [named("'scaled-dot-product-attention'.replace('-', '_')")],
    "searched for": [named("next(n for n in dir(F) if n.startswith('scaled_dot_p'))")],
    "read from a docstring": [named("[w for w in dir(F) if len(w) == 28 and w[0] == 's'][0]")],
    "vars": [WEIGHTS.format(f"vars(F)['{FUSED}']")],
    "dict": [WEIGHTS.format(f"F.__dict__['{FUSED}']")],
    "attrgetter": ["import operator", WEIGHTS.format(f"operator.attrgetter('{FUSED}')(F)")],
    "methodcaller": [
        "import operator",
        f"def attention_weights(Q, K):\n    return operator.methodcaller('{FUSED}', Q, K, {VALUES})(F)\n",
    ],
    "importlib": ["import importlib", WEIGHTS.format(f"importlib.import_module('torch.nn.functional').{FUSED}")],
    "__import__": [WEIGHTS.format(f"__import__('torch').nn.functional.{FUSED}")],
    "sys.modules": ["import sys", WEIGHTS.format(f"sys.modules['torch.nn.functional'].{FUSED}")],
    "torch._C._nn": [WEIGHTS.format(f"torch._C._nn.{FUSED}")],
    "torch.ops": [WEIGHTS.format(f"torch.ops.aten.{FUSED}")],
    "an overload": [WEIGHTS.format(f"torch.ops.aten.{FUSED}.default")],
    "its mathematics": [f"def attention_weights(Q, K):\n    return torch.ops.aten._{FUSED}_math(Q, K, {VALUES})[0]\n"],
    "its kernel": [
        "def attention_weights(Q, K):\n"
        f"    V = torch.nn.functional.pad({VALUES}, (0, 0))\n"
        "    d = max(Q.shape[-1], V.shape[-1])\n"
        "    q, k, v = (F.pad(t, (0, d - t.shape[-1]))[:, None] for t in (Q, K, V))\n"
        "    f = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu\n"
        "    return f(q, k, v, scale=Q.shape[-1] ** -0.5)[0][:, 0, :, : K.shape[-2]]\n"
    ],
    "exec": [f"exec('''{WEIGHTS.format('F.' + FUSED)}''')"],
    "eval": [f"code = 'F.{FUSED}'", WEIGHTS.format("eval(code)")],
    "compile": [f"exec(compile('''{WEIGHTS.format('F.' + FUSED)}''', 'a', 'exec'))"],
    "partial": [
        "import functools",
        f"g = functools.partial(F.{FUSED}, dropout_p=0.0)",
        WEIGHTS.format("g"),
    ],
    "a helper": [f"def helper(Q, K, V):\n    return F.{FUSED}(Q, K, V)\n", WEIGHTS.format("helper")],
    "a static method": [f"class Tool:\n    f = staticmethod(F.{FUSED})\n", WEIGHTS.format("Tool.f")],
    "a lambda": [f"attention_weights = lambda Q, K: F.{FUSED}(Q, K, {VALUES})"],
    "a table": [f"table = {{'f': F.{FUSED}}}", WEIGHTS.format("table['f']")],
    "a table of texts": [f"table = {{'f': '{FUSED}'}}", named("table['f']")],
    "a default": [f"def attention_weights(Q, K, f=F.{FUSED}):\n    return f(Q, K, {VALUES})\n"],
    "a default text": [f"def attention_weights(Q, K, n='{FUSED}'):\n    return getattr(F, n)(Q, K, {VALUES})\n"],
    "a loop": [
        f"def attention_weights(Q, K):\n    for n in ['{FUSED}']:\n        return getattr(F, n)(Q, K, {VALUES})\n"
    ],
    "a tuple": [f"g, h = F.{FUSED}, 1", WEIGHTS.format("g")],
    "starred": [f"g, *h = [F.{FUSED}]", WEIGHTS.format("g")],
    "walrus": [f"(g := F.{FUSED})", WEIGHTS.format("g")],
    "global": [f"def prepare():\n    global g\n    g = F.{FUSED}\n", "prepare()", WEIGHTS.format("g")],
    "match": [f"match F.{FUSED}:\n    case g:\n        pass\n", WEIGHTS.format("g")],
    "with": [
        f"import contextlib\nwith contextlib.nullcontext(F.{FUSED}) as g:\n    pass\n",
        WEIGHTS.format("g"),
    ],
    "__main__": [f"import __main__\n__main__.g = F.{FUSED}", WEIGHTS.format("g")],
    "globals": [f"globals()['g'] = F.{FUSED}", WEIGHTS.format("g")],
    "setattr": [f"import builtins\nsetattr(builtins, 'g', F.{FUSED})", WEIGHTS.format("g")],
    "an attribute of torch": [f"torch.matmul_ = F.{FUSED}", WEIGHTS.format("torch.matmul_")],
    "torch itself, renamed": [f"original, torch.bmm = torch.bmm, F.{FUSED}", WEIGHTS.format("torch.bmm")],
    "an if": [f"if True:\n    {WEIGHTS.format('F.' + FUSED).replace(chr(10), chr(10) + '    ')}"],
    "a try": [f"try:\n    g = F.{FUSED}\nexcept Exception:\n    pass\n", WEIGHTS.format("g")],
    "a decorator": [
        f"def swap(f):\n    return lambda Q, K: F.{FUSED}(Q, K, {VALUES})\n",
        "@swap\ndef attention_weights(Q, K):\n    return Q\n",
    ],
    "a callable object": [
        f"class W:\n    def __call__(self, Q, K):\n        return F.{FUSED}(Q, K, {VALUES})\n",
        "attention_weights = W()",
    ],
    "a magic beside it": ["_ = %pwd\n" + WEIGHTS.format("F." + FUSED)],
    "a shell line beside it": ["_ = !true\n" + WEIGHTS.format("F." + FUSED)],
    "a magic above it": ["%precision 3\n" + WEIGHTS.format("F." + FUSED)],
    "in a magic": [f"%time sdpa = F.{FUSED}\n" + WEIGHTS.format("sdpa")],
    "in a magic for a cell": ["%%capture\n" + WEIGHTS.format("F." + FUSED)],
    "in a file": [
        f"%%writefile own_module.py\nimport torch.nn.functional as F\ng = F.{FUSED}\n",
        "import sys\nsys.path.insert(0, '.')\nimport own_module",
        WEIGHTS.format("own_module.g"),
    ],
    "in a file that is run": [
        f"%%writefile own_file.py\nimport torch.nn.functional as F\ng = F.{FUSED}\n",
        "%run own_file.py",
        WEIGHTS.format("g"),
    ],
    "scripted": [
        f"@torch.jit.script\ndef g(q, k, v):\n    return torch.nn.functional.{FUSED}(q, k, v)\n",
        WEIGHTS.format("g"),
    ],
    "traced": [
        f"g = torch.jit.trace(F.{FUSED}, tuple(torch.randn(1, 2, 2) for _ in range(3)))",
        WEIGHTS.format("g"),
    ],
    "a symbolic trace": [
        f"def h(q, k, v):\n    return F.{FUSED}(q, k, v)\n",
        "g = torch.fx.symbolic_trace(h)",
        WEIGHTS.format("g"),
    ],
    "compiled": [f"g = torch.compile(F.{FUSED}, backend='eager')", WEIGHTS.format("g")],
    "each of a batch": [f"g = torch.func.vmap(F.{FUSED})", WEIGHTS.format("g")],
    "in a thread": [
        "import threading\ndef attention_weights(Q, K):\n    out = []\n"
        f"    t = threading.Thread(target=lambda: out.append(F.{FUSED}(Q, K, {VALUES})))\n"
        "    t.start()\n    t.join()\n    return out[0]\n"
    ],
    "in a pool": [
        "from concurrent.futures import ThreadPoolExecutor\ndef attention_weights(Q, K):\n"
        f"    with ThreadPoolExecutor(1) as pool:\n        return pool.submit(F.{FUSED}, Q, K, {VALUES}).result()\n"
    ],
    "in a fork": [
        "import os, pickle\ndef attention_weights(Q, K):\n    r, w = os.pipe()\n    if not os.fork():\n"
        f"        os.write(w, pickle.dumps(F.{FUSED}(Q, K, {VALUES}).detach().tolist()))\n        os._exit(0)\n"
        "    os.wait()\n    return torch.tensor(pickle.loads(os.read(r, 1 << 20)), dtype=Q.dtype)\n"
    ],
    "in a pool that is older than the question": [
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(int).result()",
        f"def attention_weights(Q, K):\n    return pool.submit(F.{FUSED}, Q, K, {VALUES}).result()\n",
    ],
    "in a thread without threading": [
        "import _thread\ndef attention_weights(Q, K):\n    out, done = [], _thread.allocate_lock()\n"
        "    done.acquire()\n"
        f"    def go():\n        out.append(F.{FUSED}(Q, K, {VALUES}))\n        done.release()\n"
        "    _thread.start_new_thread(go, ())\n    done.acquire()\n    return out[0]\n"
    ],
    "when it is sent": [LAZY, "def attention_weights(Q, K):\n    return Lazy(Q, K)\n"],
    "in a tensor of its own kind": [LAZY, "def attention_weights(Q, K):\n    return Lazy(Q, K).detach()\n"],
    "with a key left out": [
        "def attention_weights(Q, K):\n    key = torch._C.DispatchKey.Python\n"
        f"    with torch._C._SetExcludeDispatchKeyGuard(key, True):\n"
        f"        return torch.ops.aten._{FUSED}_math(Q, K, {VALUES})[0]\n"
    ],
    "with a recorder that another cell has changed": [
        "import autograder.inside.recorder as r\nr._Watch.note = lambda *a: None\n",
        WEIGHTS.format(f"F.{FUSED}"),
    ],
    "under inference mode": [
        f"def attention_weights(Q, K):\n    with torch.inference_mode():\n        g = F.{FUSED}(Q, K, {VALUES})\n"
        f"    return g.clone()\n"
    ],
    "without the function mode": [
        "def attention_weights(Q, K):\n    with torch._C.DisableTorchFunction():\n"
        f"        return getattr(F, '{FUSED}')(Q, K, {VALUES})\n"
    ],
    "without both modes": [
        "from torch.utils._python_dispatch import _disable_current_modes\n"
        "def attention_weights(Q, K):\n    with _disable_current_modes():\n"
        f"        return F.{FUSED}(Q, K, {VALUES})\n"
    ],
    "many heads": [
        "def attention_weights(Q, K):\n    d = Q.shape[-1]\n"
        "    m = nn.MultiheadAttention(d, 1, bias=False, batch_first=True, dtype=Q.dtype)\n"
        "    with torch.no_grad():\n        m.in_proj_weight.copy_(torch.eye(d).repeat(3, 1))\n"
        "    return m(Q, K, K)[1]\n"
    ],
    "many heads, by a function": [
        "def attention_weights(Q, K):\n    d, eye = Q.shape[-1], torch.eye(Q.shape[-1], dtype=Q.dtype)\n"
        "    f = F.multi_head_attention_forward\n"
        "    return f(Q.mT.permute(2, 0, 1), K.mT.permute(2, 0, 1), K.mT.permute(2, 0, 1), d, 1, "
        "eye.repeat(3, 1), None,"
        " None, None, False, 0.0, eye, None)[1]\n"
    ],
}

SOFTMAX = {
    "function": [SHARES.format("torch.softmax")],
    "functional": [SHARES.format("F.softmax")],
    "method": ["def softmax(x, dim):\n    return x.softmax(dim)\n"],
    "unbound method": [SHARES.format("torch.Tensor.softmax")],
    "special": [SHARES.format("torch.special.softmax")],
    "module": ["def softmax(x, dim):\n    return nn.Softmax(dim)(x)\n"],
    "module made before": [
        "m = nn.Softmax(0)",
        "def softmax(x, dim):\n    return m(x.transpose(0, dim)).transpose(0, dim)\n",
    ],
    "subclass": ["class S(nn.Softmax):\n    pass\n", "def softmax(x, dim):\n    return S(dim)(x)\n"],
    "logarithm": ["def softmax(x, dim):\n    return x.log_softmax(dim).exp()\n"],
    "module of the logarithm": ["def softmax(x, dim):\n    return nn.LogSoftmax(dim)(x).exp()\n"],
    "opposite": ["def softmax(x, dim):\n    return F.softmin(-x, dim)\n"],
    "assignment": ["softmax = torch.softmax"],
    "alias": ["from torch.nn.functional import softmax as s", SHARES.format("s")],
    "star": ["from torch.nn.functional import *\nf = softmax", SHARES.format("f")],
    "star, as a default": [
        "from torch.nn.functional import *",
        "def softmax(x, dim, f=softmax):\n    return f(x, dim)\n",
    ],
    "x named self": ["def softmax(self, dim):\n    return self.softmax(dim)\n"],
    "torch named self": ["self = torch", "def softmax(x, dim):\n    return self.softmax(x, dim)\n"],
    "lambda": ["softmax = lambda self, dim: self.softmax(dim)"],
    "super": [
        "class S(torch.Tensor):\n    def softmax(self, dim):\n        return super().softmax(dim)\n",
        "def softmax(x, dim):\n    return x.as_subclass(S).softmax(dim).as_subclass(torch.Tensor)\n",
    ],
    "by its name": ["import operator\ndef softmax(x, dim):\n    return operator.methodcaller('softmax', dim)(x)\n"],
    "kernel": ["def softmax(x, dim):\n    return torch._softmax(x, dim, False)\n"],
    "operator": ["def softmax(x, dim):\n    return torch.ops.aten._softmax.default(x, dim, False)\n"],
    "safe kernel": ["def softmax(x, dim):\n    return torch._safe_softmax(x, dim)\n"],
    "written into": ["def softmax(x, dim):\n    return torch.softmax(x.detach(), dim, out=torch.empty_like(x))\n"],
    "sparse": ["def softmax(x, dim):\n    return torch.sparse.softmax(x.to_sparse(), dim % x.dim()).to_dense()\n"],
    "masked": ["def softmax(x, dim):\n    return torch.masked.softmax(x, dim, mask=x > -torch.inf)\n"],
    "in Python": ["import torch._refs", SHARES.format("torch._refs.softmax")],
    "what that wraps": ["import torch._refs", SHARES.format("torch._refs.softmax.__wrapped__")],
    "in an operator of one's own": [OPERATOR, SHARES.format("shares")],
    "in a process that the first question has started": [SERVER],
    "in the kernel of an operator of torch's": [KERNEL, "def softmax(x, dim):\n    return torch.trapz(x, dx=dim)\n"],
    "decomposed": [
        "import torch._decomp.decompositions as d",
        "def softmax(x, dim):\n    return d._softmax(x, dim, False)\n",
    ],
    "a transform of a distribution": [
        "def softmax(x, dim):\n    t = torch.distributions.transforms.SoftmaxTransform()\n"
        "    return t(x.transpose(dim, -1)).transpose(dim, -1)\n"
    ],
    "noise of no size": [
        "def softmax(x, dim):\n    return F.gumbel_softmax(x / 1e-9, tau=1e9, dim=dim)\n",
    ],
    "a distribution": [
        "def softmax(x, dim):\n    d = torch.distributions.Categorical(logits=x.transpose(dim, -1))\n"
        "    return d.probs.transpose(dim, -1)\n"
    ],
    "a loss": [
        "def softmax(x, dim):\n    y = x.transpose(dim, -1)\n    n = y.shape[-1]\n    z = y.reshape(-1, 1, n)\n"
        "    l = [F.cross_entropy(z[:, 0], torch.full((len(z),), i), reduction='none') for i in range(n)]\n"
        "    return torch.stack(l, -1).neg().exp().reshape(y.shape).transpose(dim, -1)\n"
    ],
    "inside attention": [
        "def softmax(x, dim):\n    y = x.transpose(dim, -1)\n    n = y.shape[-1]\n    z = y.reshape(1, -1, n)\n"
        "    eye = torch.eye(n, dtype=x.dtype)[None]\n"
        f"    return F.{FUSED}(z, eye, eye, scale=1.0).reshape(y.shape).transpose(dim, -1)\n"
    ],
    "scripted": ["@torch.jit.script\ndef g(x, dim: int):\n    return torch.softmax(x, dim)\n", SHARES.format("g")],
    "its gradient": [
        "def softmax(x, dim):\n    y = x.detach().requires_grad_()\n"
        "    with torch.enable_grad():\n        p = y.softmax(dim)\n    return p.detach()\n"
    ],
    "patched": ["torch.Tensor.shares = torch.Tensor.softmax", "def softmax(x, dim):\n    return x.shares(dim)\n"],
    "decoded": [
        "import base64",
        "def softmax(x, dim):\n    return getattr(torch, base64.b64decode('c29mdG1heA==').decode())(x, dim)\n",
    ],
}

NORM = "def layer_norm(x, g, b, eps):\n    return {}\n"
LAYER_NORM = {
    "functional": [NORM.format("F.layer_norm(x, g.shape, g, b, eps)")],
    "torch's": [NORM.format("torch.layer_norm(x, g.shape, g, b, eps)")],
    "native": [NORM.format("torch.native_layer_norm(x, g.shape, g, b, eps)[0]")],
    "operator": [NORM.format("torch.ops.aten.native_layer_norm.default(x, g.shape, g, b, eps)[0]")],
    "in Python": ["import torch._refs", NORM.format("torch._refs.native_layer_norm(x, g.shape, g, b, eps)[0]")],
    "module": [NORM.format("nn.LayerNorm(g.shape, eps, elementwise_affine=False)(x) * g + b")],
    "another name": ["normed = F.layer_norm", NORM.format("normed(x, g.shape, g, b, eps)")],
}
SHIFTS = """
def conv_as_attention(x, kernel):
    B, C, H, W = x.shape
    k = kernel.shape[-1]
    if k % 2 == 0:
        raise ValueError
    pixels = torch.eye(H * W, dtype=x.dtype).reshape(H * W, 1, H, W)
    weights = F.unfold(pixels, k, padding=k // 2).permute(1, 2, 0)
    return {}, weights
"""
CONVOLUTION = {
    "functional": "F.conv2d(x, kernel, padding=k // 2)",
    "of three axes": "F.conv3d(x[:, :, None], kernel[:, :, None], padding=(0, k // 2, k // 2))[:, :, 0]",
    "the general one": "torch.convolution(x, kernel, None, (1, 1), (k // 2,) * 2, (1, 1), False, (0, 0), 1)",
    "its operator": "torch.ops.aten.convolution(x, kernel, None, (1, 1), (k // 2,) * 2, (1, 1), False, (0, 0), 1)",
    "its kernel": "torch.ops.aten.thnn_conv2d(x, kernel, (k, k), None, (1, 1), (k // 2, k // 2))",
    "turned around": "F.conv_transpose2d(x, kernel.flip(2, 3).transpose(0, 1), padding=k // 2)",
}
MASKS = """
def all_heads(mask, B, h, Tq, Tk):
    return None if mask is None else ~mask.expand(B, h, Tq, Tk).reshape(B * h, Tq, Tk)
"""
ENCODER = """
class EncoderLayer(nn.Module):
    def __init__(self, d, h, d_ff, dropout, norm_first):
        super().__init__()
        self.h = h
        layer = {kind}(d, h, d_ff, dropout, batch_first=True, norm_first=norm_first)
        self.layer = {layer}

    def forward(self, x, mask=None):
        B, T, _ = x.shape
        return self.layer(x, {given}=all_heads(mask, B, self.h, T, T))
"""
DECODER = """
class DecoderLayer(nn.Module):
    def __init__(self, d, h, d_ff, dropout, norm_first):
        super().__init__()
        self.h = h
        layer = nn.TransformerDecoderLayer(d, h, d_ff, dropout, batch_first=True, norm_first=norm_first)
        self.layer = {}

    def forward(self, y, memory, tgt_mask=None, src_mask=None):
        B, Tt, Ts = len(y), y.shape[1], memory.shape[1]
        return self.layer(y, memory, all_heads(tgt_mask, B, self.h, Tt, Tt), all_heads(src_mask, B, self.h, Tt, Ts))
"""
STOCK = "class Stock(nn.TransformerEncoderLayer):\n    pass\n"
LAYERS = {
    "an encoder layer": [
        "encoder-layer",
        ENCODER.format(kind="nn.TransformerEncoderLayer", layer="layer", given="src_mask"),
    ],
    "a subclass of it": ["encoder-layer", STOCK + ENCODER.format(kind="Stock", layer="layer", given="src_mask")],
    "a stack of one": [
        "encoder-layer",
        ENCODER.format(
            kind="nn.TransformerEncoderLayer",
            layer="nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)",
            given="mask",
        ),
    ],
    "a decoder layer": ["decoder-layer", DECODER.format("layer")],
    "a stack of one decoder layer": ["decoder-layer", DECODER.format("nn.TransformerDecoder(layer, 1)")],
}


def assert_forbidden(judged: dict) -> None:
    assert judged["free"] > 0, "this spelling earns nothing by itself, so nothing is shown"
    assert judged["forbidden"] and judged["points"] == 0


@pytest.mark.parametrize("cells", ATTENTION.values(), ids=ATTENTION)
def test_the_fused_attention_earns_nothing(notebook, cells, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_forbidden(notebook.judged("attention-weights", *cells))


@pytest.mark.parametrize("cells", SOFTMAX.values(), ids=SOFTMAX)
def test_the_librarys_softmax_earns_nothing(notebook, cells):
    assert_forbidden(notebook.judged("softmax", *cells))


@pytest.mark.parametrize("cells", LAYER_NORM.values(), ids=LAYER_NORM)
def test_the_librarys_layer_norm_earns_nothing(notebook, cells):
    assert_forbidden(notebook.judged("layer-norm", *cells))


@pytest.mark.parametrize("expression", CONVOLUTION.values(), ids=CONVOLUTION)
def test_the_librarys_convolution_earns_nothing(notebook, expression):
    assert_forbidden(notebook.judged("conv-as-attention", SHIFTS.format(expression)))


def test_a_product_that_is_written_as_a_convolution_of_one_pixel_is_none(notebook):
    answer = (
        "sum(F.conv1d((weights[i] @ x.flatten(2).mT).mT, kernel.flatten(2)[..., i, None]) for i in range(k * k))"
        ".reshape(B, -1, H, W)"
    )
    judged = notebook.judged("conv-as-attention", SHIFTS.format(answer))
    assert not judged["forbidden"] and judged["points"] == judged["of"]


@pytest.mark.parametrize("answer", LAYERS.values(), ids=LAYERS)
def test_the_librarys_layers_earn_nothing(notebook, answer):
    exercise, source = answer
    assert_forbidden(notebook.judged(exercise, MASKS, source))
