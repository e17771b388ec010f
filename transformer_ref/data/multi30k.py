"""Multi30k (Elliott et al. 2016, 2017): captions of photographs in English, German and French.

Each line of a language translates the same line of the others, so any two of the three are a corpus.
"""

import os
from pathlib import Path

from transformer_ref.data.download import DownloadError, download
from transformer_ref.data.parallel_text import Parallel, expect_two_languages, load_parallel

SPLITS = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
LANGUAGES = ("en", "de", "fr")
FOLDER_VARIABLE = "MULTI30K_DIR"
DOWNLOADS = Path("build/data/multi30k")

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"  # of github.com/multi30k/dataset; its raw text, task 1
MIRRORS = (
    f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw",
    f"https://github.com/multi30k/dataset/raw/{COMMIT}/data/task1/raw",
    f"https://cdn.jsdelivr.net/gh/multi30k/dataset@{COMMIT}/data/task1/raw",
)
FILES = {  # bytes, SHA-256
    "train.en.gz": (568_929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    "train.de.gz": (637_044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    "train.fr.gz": (604_242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
    "val.en.gz": (21_650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    "val.de.gz": (24_681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    "val.fr.gz": (23_001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
    "test_2016_flickr.en.gz": (21_077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    "test_2016_flickr.de.gz": (22_890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
    "test_2016_flickr.fr.gz": (22_310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
    "test_2017_flickr.en.gz": (19_138, "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074"),
    "test_2017_flickr.de.gz": (21_471, "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee"),
    "test_2017_flickr.fr.gz": (20_434, "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496"),
    "test_2017_mscoco.en.gz": (8_844, "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58"),
    "test_2017_mscoco.de.gz": (10_230, "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338"),
    "test_2017_mscoco.fr.gz": (9_751, "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0"),
}


def load_multi30k(split: str, source: str = "en", target: str = "de", folder: str | Path | None = None) -> Parallel:
    """Return the captions of a split in two languages.

    folder: holds files such as train.en.gz and is only read, so it may be offline and shared; without it, the
    environment variable MULTI30K_DIR names one. Without either, files that are missing in build/data/multi30k are
    downloaded there, and their checksums compared.
    Raises ValueError for a split, language or pair that does not exist, FileNotFoundError naming what the folder
    lacks, DownloadError when no mirror had a file.
    """
    asked = (("split", split, SPLITS), ("source", source, LANGUAGES), ("target", target, LANGUAGES))
    for name, value, known in asked:
        if value not in known:
            raise ValueError(f'{name}: expected one of {", ".join(known)}, got "{value}"')
    expect_two_languages(source, target)
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if not folder:
        folder = DOWNLOADS
        for language in sorted({source, target}):
            _download(folder / f"{split}.{language}.gz")
    return load_parallel(folder, split, source, target)


def _download(path: Path) -> None:
    size, sha256 = FILES[path.name]
    try:
        download(path, MIRRORS, size, sha256)
    except DownloadError as error:
        raise DownloadError(
            f"{error}. Where there is no network, put the files into a folder and name it by "
            f"--data-dir or {FOLDER_VARIABLE}"
        ) from error
