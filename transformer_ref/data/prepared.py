"""A corpus of files as ids on the disk: prepared once, by several processes, then mapped into memory.

Blocks of pairs are encoded by processes of their own, which import no torch and leave a file for each block: what was
interrupted goes on after the blocks that are there. At the end they are joined into flat files of ids and lengths. The
folder's name is a digest of the text and of the tokenizers, so a changed file or tokenizer is prepared anew.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_ref.atomic_write import atomic_write
from transformer_ref.data.parallel_text import ParallelFiles, is_usable
from transformer_ref.processors import usable_processors
from transformer_ref.text.tokenizer import Tokenizer, tokenizer_from_json

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 1  # of the files' form
BLOCK = 50_000  # pairs in a file that one process writes at a time
ROWS = 500_000  # sequences that are hashed at a time
SIDES = ("source", "target")
META = "meta.json"  # written last: where it is, all is there

Report = Callable[[int], None]  # hears how many more pairs are encoded


class Store(NamedTuple):
    """The folder in which corpora are prepared, the number of processes, and the listener for the progress."""

    folder: Path
    workers: int = 0  # 0: one for each processor that this process may use
    report: Report = lambda pairs: None


class MappedIds(Sequence):
    """Sequences of ids in one file that is mapped into memory: item i is a list, read on access.

    ids: (all ids,); starts, lengths: (sequences,).
    """

    def __init__(self, ids: "Tensor", starts: "Tensor", lengths: "Tensor") -> None:
        self.ids, self.starts, self.lengths = ids, starts, lengths

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, item: int) -> list[int]:  # pyright: ignore[reportIncompatibleMethodOverride]  # no slices
        start = self.starts[item].item()
        return self.ids[start : start + self.lengths[item].item()].tolist()


class Prepared(NamedTuple):
    """The pairs of a split that a model can be trained on, and the number of those that were left out."""

    sources: MappedIds
    targets: MappedIds
    empty: int
    too_long: int
    lines_sha256: str
    sha256: str  # of all ids, as `BatchStream.sha256` computes it


def prepared_tokenizer(files: ParallelFiles, learn: Callable[[list[str]], Tokenizer], store: Store) -> Tokenizer:
    """Return the tokenizer of both sides, learned once for each text and each way to learn it.

    learn: its repr must identify it, as that of a dataclass does.
    """
    path = store.folder / f"tokenizer-{_digest(files.sha256(), repr(learn), *_versions())}.json"
    if not path.is_file():
        text = files.load()
        tokenizer = learn([*text.source, *text.target])
        atomic_write(path, tokenizer.to_json())
    return tokenizer_from_json(path.read_text(encoding="utf-8"))


def prepared(files: ParallelFiles, tokenizers: Sequence[Tokenizer], longest: int, store: Store) -> Prepared:
    """Return the pairs with 1 to `longest` tokens on both sides; blocks that are not encoded yet are encoded now.

    tokenizers: of the source and of the target. Raises ValueError and OSError as `ParallelFiles.load` does.
    """
    import torch

    described = [tokenizer.to_json() for tokenizer in tokenizers]
    folder = store.folder / _digest(files.sha256(), *described, *_versions())
    if not (folder / META).is_file():
        _prepare(files, described, folder, store)
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    lengths = [_mapped(folder / f"{side}.lengths") for side in SIDES]
    filled = (lengths[0] > 0) & (lengths[1] > 0)  # (pairs,)
    kept = is_usable(*lengths, longest)
    sides = []
    for side, count in zip(SIDES, lengths, strict=True):
        starts = count.cumsum(0, dtype=torch.int64) - count
        sides.append(MappedIds(_mapped(folder / f"{side}.ids"), starts[kept], count[kept]))
    empty, fitting = int((~filled).sum()), int(kept.sum())
    digest = folder / f"sha256-{longest}"
    if not digest.is_file():
        atomic_write(digest, _sha256(sides))
    return Prepared(*sides, empty, len(kept) - empty - fitting, meta["lines_sha256"], digest.read_text())


def _prepare(files: ParallelFiles, described: list[str], folder: Path, store: Store) -> None:
    """Encode all blocks that are missing and join them, unless a different run is done with the same first."""
    parts = folder.with_suffix(f".{BLOCK}.parts")
    workers = store.workers or usable_processors()
    job = dict(files=[str(files.source), str(files.target)], parts=str(parts), workers=workers, block=BLOCK)
    command = [sys.executable, "-m", "transformer_ref.data.prepared"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    running: list[subprocess.Popen] = []
    try:
        for side, text in zip(SIDES, described, strict=True):
            atomic_write(parts / f"{side}.json", text)
        running += [
            subprocess.Popen(
                [*command, json.dumps(job | {"worker": worker})],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for worker in range(workers)
        ]
        _await(running, folder, files, store.report)
        _join(parts, folder, files)
    except (ValueError, OSError):
        if not (folder / META).is_file():
            raise  # else the run that was done first has removed the blocks
    finally:
        for process in running:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                pipe.close()
        if (folder / META).is_file():
            shutil.rmtree(parts, ignore_errors=True)  # now that no process can write another block


def _await(running: list[subprocess.Popen], folder: Path, files: ParallelFiles, report: Report) -> None:
    """Wait for the workers and report their progress."""
    lock = threading.Lock()

    def listen(process: subprocess.Popen) -> None:
        for line in process.stdout:
            with lock:
                report(int(line))

    listeners = [threading.Thread(target=listen, args=(process,), daemon=True) for process in running]
    for listener in listeners:
        listener.start()
    for listener in listeners:
        listener.join()
    for process in running:
        said = process.stderr.read()
        if process.wait() != 0:
            if not (folder / META).is_file():
                files.load()  # says in a sentence what is wrong with the text
            raise ValueError(f"data: expected to prepare {files.source} and {files.target}, got: {said.strip()[-300:]}")


def _join(parts: Path, folder: Path, files: ParallelFiles) -> None:
    """Write the blocks one after another into the files of a temporary folder, then rename the folder."""
    joined = folder.with_suffix(f".{os.getpid()}.joined")
    shutil.rmtree(joined, ignore_errors=True)
    joined.mkdir()
    try:
        _concatenate(sorted(parts.glob("*.block"), key=lambda path: int(path.stem)), joined)
        atomic_write(joined / META, json.dumps({"version": VERSION, "lines_sha256": files.lines_sha256()}))
        try:
            os.replace(joined, folder)
        except OSError:  # the folder is there
            if not (folder / META).is_file():  # else a different run was done first
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(joined, folder)
    finally:
        shutil.rmtree(joined, ignore_errors=True)


def _concatenate(blocks: Sequence[Path], joined: Path) -> None:
    names = [f"{side}.{kind}" for kind in ("lengths", "ids") for side in SIDES]
    outputs = [open(joined / name, "wb") for name in names]
    try:
        for block in blocks:
            with open(block, "rb") as file:
                sizes = array("q", file.read(4 * 8))
                for output, size in zip(outputs, sizes, strict=True):
                    output.write(file.read(4 * size))
    finally:
        for output in outputs:
            output.close()


def _encode_blocks(job: dict[str, Any]) -> None:
    """Write the blocks of one worker: every `workers`-th one that is missing."""
    parts, files = Path(job["parts"]), ParallelFiles(*map(Path, job["files"]))
    tokenizers = [tokenizer_from_json((parts / f"{side}.json").read_text(encoding="utf-8")) for side in SIDES]
    for number, block in enumerate(_blocks(files, job["block"])):
        if number % job["workers"] != job["worker"]:
            continue
        path = parts / f"{number}.block"
        if not path.is_file():
            lengths, ids = (array("i"), array("i")), (array("i"), array("i"))
            for pair in block:
                for side, line in enumerate(pair):
                    encoded = tokenizers[side].encode(line)
                    lengths[side].append(len(encoded))
                    ids[side].extend(encoded)
            content = (*lengths, *ids)
            sizes = array("q", map(len, content))
            atomic_write(path, b"".join(each.tobytes() for each in (sizes, *content)))
        print(len(block), flush=True)


def _blocks(files: ParallelFiles, size: int) -> Iterator[list[tuple[str, str]]]:
    pairs = files.pairs()
    while block := list(islice(pairs, size)):
        yield block


def _sha256(sides: Sequence[MappedIds]) -> str:
    """Return the digest of all ids and of their order: of each sequence its length in 8 bytes, then its ids."""
    import torch

    digest = hashlib.sha256()
    for side in sides:
        for first in range(0, len(side), ROWS):
            starts, lengths = (each[first : first + ROWS].long() for each in (side.starts, side.lengths))
            ends = (lengths + 2).cumsum(0)  # a length takes as much as two ids
            heads = ends - lengths - 2
            mixed = torch.zeros(int(ends[-1]), dtype=torch.int32)
            mixed[heads] = lengths.int()
            is_id = torch.ones_like(mixed, dtype=torch.bool)
            is_id[heads] = is_id[heads + 1] = False
            within = torch.arange(int(lengths.sum())) - (lengths.cumsum(0) - lengths).repeat_interleave(lengths)
            mixed[is_id] = side.ids[starts.repeat_interleave(lengths) + within]
            digest.update(memoryview(mixed.numpy()))
    return digest.hexdigest()


def _mapped(path: Path) -> "Tensor":
    import torch

    size, dtype = path.stat().st_size // 4, torch.int32
    return torch.from_file(str(path), shared=False, size=size, dtype=dtype) if size else torch.empty(0, dtype=dtype)


def _versions() -> list[str]:
    import tokenizers

    return [str(VERSION), tokenizers.__version__, sys.byteorder]


def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:32]


if __name__ == "__main__":
    _encode_blocks(json.loads(sys.argv[1]))
